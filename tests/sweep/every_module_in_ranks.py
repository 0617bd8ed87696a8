"""Train every position module for two steps in several ranks, as a job would: run by torch.distributed.run."""

import torch
import torch.distributed as dist
import torch.nn.functional as F
from hydra import compose, initialize_config_dir
from omegaconf import OmegaConf
from torch.nn.parallel import DistributedDataParallel

from vitpos.cli import CONFIG_FOLDER
from vitpos.spec import ImageSpec
from vitpos.training.build import build_model

dist.init_process_group("gloo")
torch.set_num_threads(1)
rank = dist.get_rank()
with initialize_config_dir(str(CONFIG_FOLDER), version_base="1.3"):
    model_part = OmegaConf.create({"data": {"patch_size": 2}, **compose("model/vit_nano")})["model"]
    settings = OmegaConf.to_container(model_part, resolve=True) | {"depth": 2, "dim": 16}
    settings["block"]["heads"] = 2
    for path in sorted((CONFIG_FOLDER / "position").glob("*.yaml")):
        position = OmegaConf.to_container(compose(f"position/{path.stem}")["position"], resolve=True)
        model = build_model({"seed": 0, "model": settings, "position": position}, ImageSpec((8, 8), 1, 10))
        ranks = DistributedDataParallel(
            model, find_unused_parameters=False, broadcast_buffers=False, gradient_as_bucket_view=True
        )
        optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
        for step in range(2):
            generator = torch.Generator().manual_seed(10 * step + rank)
            images = torch.randn(4, 1, 8, 8, generator=generator)
            optimizer.zero_grad()
            F.cross_entropy(ranks(images), torch.arange(4)).backward()
            optimizer.step()
        for value in model.parameters():
            other = value.detach().clone()
            dist.broadcast(other, src=0)
            assert torch.equal(other, value), f"{path.stem}: ranks differ"
        if rank == 0:
            print(path.stem, flush=True)
dist.destroy_process_group()
