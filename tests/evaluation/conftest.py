"""A tiny network with any position module, and a tiny data set whose classes can be told apart."""

from copy import deepcopy
from functools import cache, partial

import numpy as np
import pytest
import torch
import yaml
from hydra import compose, initialize_config_dir
from hydra.utils import instantiate
from omegaconf import OmegaConf

from vitpos.cli import CONFIG_FOLDER
from vitpos.data.augment import Augment
from vitpos.data.memory import InMemory
from vitpos.data.splits import Split
from vitpos.evaluation.predictions import predict
from vitpos.models.block import Block
from vitpos.models.vit import ViT
from vitpos.record import Record, write_record
from vitpos.record.folder import run_folder
from vitpos.spec import ImageSpec, as_size
from vitpos.training.build import build_data
from vitpos.training.fit import plain_spec
from vitpos.training.machine import describe_device
from vitpos.training.run import describe
from vitpos.training.task import ClassificationTask


class Bars(InMemory):
    """Noisy 8 x 8 images with a bright row; the class is the place of the row among four."""

    channels = 1
    classes = 4
    levels = 255
    mean = (0.5,)
    std = (0.25,)

    def read(self, part, image_size):
        generator = np.random.default_rng(0 if part == "train" else 1)
        labels = np.arange(60 if part == "train" else 30) % 4
        pixels = generator.integers(0, 150, (len(labels), 1, 8, 8))
        pixels[np.arange(len(labels)), 0, 2 * labels] += 80
        return torch.from_numpy(pixels.astype(np.uint8)), torch.from_numpy(labels)


@pytest.fixture
def bars():
    """A data module; keyword arguments change its settings."""

    def make(**changes):
        settings = {
            "seed": 0,
            "image_size": 8,
            "batch_size": 8,
            "limit_train": 0,
            "split": Split(val_fraction=0.2, seed=0),
            "augment": Augment(),
            "transfer_sizes": [4, 8, [8, 12]],
            "shots": [1, 5],
        }
        return Bars(**settings | changes)

    return make


@cache
def settings(group, choice):
    """The plain settings of a file in conf, beside the patch size of the digits."""
    with initialize_config_dir(str(CONFIG_FOLDER), version_base="1.3"):
        whole = OmegaConf.merge({"data": {"patch_size": 2}}, compose(f"{group}/{choice}"))
    return OmegaConf.to_container(whole, resolve=True)[group]


@pytest.fixture(scope="session")
def position():
    """The partial of a file in conf/position."""
    return lambda name: instantiate(settings("position", name), _convert_="all")


@pytest.fixture
def vit(position):
    """A network of 2 layers for 8 x 8 images, in evaluation mode, with weights large enough for varied answers."""

    def build(name="learned_1d", image_size=8, **settings):
        with torch.random.fork_rng():
            torch.manual_seed(0)
            model = ViT(
                spec=ImageSpec(as_size(image_size), 1, 4),
                position=position(name) if isinstance(name, str) else name,
                **{"patch_size": 2, "dim": 32, "depth": 2, "block": partial(Block, heads=2)} | settings,
            )
            with torch.no_grad():
                for parameter in model.parameters():
                    if parameter.ndim > 1:
                        parameter.mul_(5)
                for parameter in model.position.parameters():
                    parameter.add_(0.3 * torch.randn_like(parameter))  # what starts at zero would hide resizing
                typical = model.eval().features(torch.randn(64, 1, *model.image_size) - 0.8).mean(dim=0)
                model.head.bias.copy_(-model.head.weight @ typical)
        return model

    return build


@pytest.fixture
def finished_run(tmp_path):
    """The folder of a finished run on digits, as training leaves it, with a network that has learned nothing."""

    def make(name="rope_axial", experiment="digits", compiled=False, **changes):
        parts = {"position": name, "data": "digits", "model": "vit_nano", "optim": "adamw", "trainer": "default"}
        config = {group: deepcopy(settings(group, choice)) for group, choice in parts.items()}
        config |= {"experiment_name": experiment, "output_dir": str(tmp_path), "seed": 0, "from": ""}
        config |= {"position_name": name, "model_name": "vit_nano", "data_name": "digits"}
        config["data"] |= changes
        data = build_data(config)
        task = ClassificationTask(
            network={key: config[key] for key in ("seed", "model", "position")},
            spec=plain_spec(data),
            optim={key: value for key, value in config["optim"].items() if key != "_target_"},
        )
        folder = run_folder(config)
        (folder / "checkpoints").mkdir(parents=True)
        state = task.state_dict()
        if compiled:  # as a compile wrapper would have named them
            state = {key.replace("model.", "model._orig_mod.", 1): value for key, value in state.items()}
        content = {"state_dict": state, "hyper_parameters": dict(task.hparams), "epoch": 0}
        torch.save(content, folder / "checkpoints" / "best.ckpt")
        (folder / "config.yaml").write_text(yaml.safe_dump(config))
        predictions = predict(task.model, data.eval_dataloader("test"), "cpu")
        record = {
            **describe(config),
            "status": "finished",
            "device": describe_device(torch.device("cpu")),
            "metrics": {"test/top1": predictions.top1},
        }
        write_record(folder, Record.model_validate(record))
        return folder, task.model

    return make
