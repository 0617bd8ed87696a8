"""The ViT: sizes, named intermediates, agreement with timm."""

from functools import partial

import pytest
import timm
import torch

from vitpos.models.block import Block
from vitpos.models.vit import ViT, grid_of
from vitpos.position import Transfer
from vitpos.position.learned_1d import Learned1D
from vitpos.position.none import NoPosition
from vitpos.position.relative_1d import Relative1D
from vitpos.position.rope_axial import RopeAxial
from vitpos.position.rope_mixed import RopeMixed
from vitpos.spec import ImageSpec


def vit(position=NoPosition, size=(32, 48), **settings):
    torch.manual_seed(0)
    settings = {"patch_size": 8, "dim": 32, "depth": 2, "block": partial(Block, heads=2)} | settings
    return ViT(ImageSpec(size, 3, 5), position=position, **settings).eval()


def test_paper_token_counts():
    assert vit(size=(224, 224), patch_size=16, depth=1).geometry.tokens == 197
    assert vit(size=(384, 384), patch_size=16, depth=1).geometry.tokens == 577


@pytest.mark.parametrize("size", [(30, 32), (32, 30), (4, 4)])
def test_patch_size_must_divide_the_image(size):
    with pytest.raises(ValueError, match=r"model.patch_size=8 does not divide"):
        grid_of(size, 8)


@pytest.mark.parametrize(("key", "value"), [("pool", "max"), ("registers", -1), ("depth", 0)])
def test_bad_settings_name_themselves(key, value):
    with pytest.raises(ValueError, match=f"model.{key}="):
        vit(**{key: value})


def test_an_unannounced_size_is_refused():
    model = vit()
    with pytest.raises(ValueError, match=r"48x32 px reached a network set to 32x48"):
        model(torch.zeros(1, 3, 48, 32))
    model.resize((48, 32), Transfer())
    assert model(torch.zeros(1, 3, 48, 32)).shape == (1, 5)


@pytest.mark.parametrize(("pool", "prefix"), [("cls", 3), ("mean", 2), ("mean_beside_cls", 3)])
def test_pools_and_registers(pool, prefix):
    model = vit(pool=pool, registers=2)
    assert model.geometry.prefix == prefix
    assert model.trace(torch.zeros(2, 3, 32, 48))["stem"].shape == (2, prefix + 24, 32)


def test_trace_is_the_forward_pass():
    model, images = vit(learned), torch.randn(2, 3, 32, 48)
    trace = model.trace(images)
    assert list(trace) == ["stem", "layer0", "layer1", "pre_logits", "logits"]
    assert torch.equal(trace["logits"], model(images))
    assert torch.equal(trace["pre_logits"], model.features(images))


def learned(geometry):
    return Learned1D(geometry, inject="stem", prefix="learned", std=0.02)


def test_explicit_attention_equals_the_fused_kernel():
    model = vit(Relative1D)
    for parameter in model.position.parameters():
        torch.nn.init.normal_(parameter, std=0.5)
    attention, x = model.blocks[0].attn, torch.randn(2, 25, 32)
    weights = attention.weights(x, model.position, 0, temperature=1.3)
    _, _, v = attention.project(x)
    expected = attention.proj((weights @ v).transpose(1, 2).flatten(2))
    torch.testing.assert_close(attention(x, model.position, 0, temperature=1.3), expected)
    torch.testing.assert_close(weights.sum(-1), torch.ones(2, 2, 25))


def test_temperature_follows_the_number_of_tokens():
    model = vit()
    model.resize((64, 96), Transfer(temperature="log_tokens"))
    torch.testing.assert_close(model.temperature, torch.tensor(97.0).log().item() / torch.tensor(25.0).log().item())
    model.resize((32, 48), Transfer(temperature="log_tokens"))
    assert model.temperature == 1.0


@pytest.mark.parametrize("pool", ["cls", "mean"])
def test_same_parameters_same_logits_as_timm(pool):
    other = timm.models.vision_transformer.VisionTransformer(
        img_size=(32, 48), patch_size=8, embed_dim=32, depth=2, num_heads=2, num_classes=5, pos_embed="none",
        global_pool="token" if pool == "cls" else "avg", class_token=pool == "cls", init_values=0.1,
    ).eval()  # fmt: skip
    model = vit(pool=pool, block=partial(Block, heads=2, layer_scale=0.1))
    model.load_state_dict(other.state_dict(), strict=True)
    images = torch.randn(2, 3, 32, 48)
    torch.testing.assert_close(model(images), other(images), atol=1e-5, rtol=1e-5)


def test_cost_counts_what_the_formulas_say():
    model = vit(learned)
    cost = model.cost()
    tokens, dim, depth, patches = 25, 32, 2, 24
    layer = 2 * tokens * dim * dim * 12 + 4 * tokens * tokens * dim
    assert cost["flops_per_image"] == depth * layer + 2 * patches * 3 * 64 * dim + 2 * dim * 5
    assert cost["position_parameters"] == tokens * dim
    assert cost["parameters"] == sum(p.numel() for p in model.parameters())


@pytest.mark.parametrize("position", [NoPosition, learned, Relative1D, RopeAxial, RopeMixed])
@pytest.mark.parametrize("pool", ["cls", "mean", "mean_beside_cls"])
def test_what_nobody_reads_changes_nothing(position, pool):
    """The last layer computes the tokens that are pooled; logits and gradients are those of all tokens."""
    model, images = vit(position, pool=pool, registers=1).double(), torch.randn(2, 3, 32, 48).double()
    for parameter in model.position.parameters():
        torch.nn.init.normal_(parameter, std=0.5)
    *_, whole = model._walk(images)
    expected = model.head(model._pool(whole))
    torch.testing.assert_close(model(images), expected)
    gradients = [torch.autograd.grad(out.square().sum(), list(model.parameters())) for out in (model(images), expected)]
    for found, wanted in zip(*gradients, strict=True):
        torch.testing.assert_close(found, wanted)
