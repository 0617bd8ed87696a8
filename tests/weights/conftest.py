"""Small networks of timm's whose every weight matters, and their files."""

import pytest
import timm
import torch
from hydra.utils import instantiate
from omegaconf import OmegaConf
from safetensors.torch import save_file

from vitpos.models.vit import ViT
from vitpos.weights.convert import convert
from vitpos.weights.network import image_spec, model_settings
from vitpos.weights.positions import describe_positions
from vitpos.weights.refusal import refuse_unknown
from vitpos.weights.settings import compose_config

SMALL = {"img_size": (32, 48), "patch_size": 8, "embed_dim": 32, "depth": 2, "num_heads": 2}


def randomise(network, seed=1):
    """Give every parameter values at which it changes the answer: no zero bias, no gain of one, no tiny LayerScale."""
    generator = torch.Generator().manual_seed(seed)
    with torch.no_grad():
        for name, parameter in network.named_parameters():
            noise = torch.randn(parameter.shape, generator=generator)
            gain = (name.endswith("weight") and parameter.ndim == 1) or "gamma" in name
            table = "token" in name or name in ("pos_embed", "rope.freqs")
            scale = 0.5 if table else 0.3 if parameter.ndim == 1 else parameter[0].numel() ** -0.5
            parameter.copy_(noise * scale + gain)
    return network.eval()


@pytest.fixture
def small():
    """A network of timm's of any architecture, with random weights, for images of 32 x 48 px."""

    def make(architecture="vit_tiny_patch16_224", **arguments):
        return randomise(timm.create_model(architecture, **{**SMALL, "num_classes": 5, **arguments}))

    return make


@pytest.fixture
def ours():
    """Our network with the weights of one of timm's."""

    def make(network):
        refuse_unknown(network, "x")
        positions, spec = describe_positions(network), image_spec(network)
        data = ("data=digits",) if spec.channels == 1 else ()
        config = compose_config(positions, data, spec, network.patch_embed.patch_size[0], {})
        position = instantiate(OmegaConf.to_container(config.position, resolve=True), _convert_="all")
        model: ViT = instantiate(model_settings(network), _convert_="all")(spec=spec, position=position)
        model.load_state_dict(convert(network.state_dict(), positions, model), strict=True)
        return model.eval()

    return make


@pytest.fixture
def saved(small, tmp_path):
    """Write weights to a file, those of `small()` unless given; returns its path."""

    def write(name="weights.safetensors", weights=None, **arguments):
        weights = weights if weights is not None else small(**arguments).state_dict()
        path = tmp_path / name
        if path.suffix == ".safetensors":
            save_file(weights, path)
        else:
            torch.save(weights, path)
        return path

    return write
