"""Options of the ViT that imported networks need: other norms, a norm before pooling or none, no head."""

from functools import partial

import pytest
import torch
from torch import nn

from vitpos.models.block import Block
from vitpos.models.vit import ViT
from vitpos.position.none import NoPosition
from vitpos.spec import ImageSpec


def vit(classes=5, pool="mean", final_norm="pooled", registers=0, **block):
    torch.manual_seed(0)
    layer, spec = partial(Block, heads=2, **block), ImageSpec((16, 24), 3, classes)
    return ViT(spec, NoPosition, 8, 32, 2, layer, pool, registers, final_norm=final_norm).eval()


def test_an_unknown_final_norm_is_named():
    with pytest.raises(ValueError, match=r"model\.final_norm='before': choose one of pooled, tokens, none"):
        vit(final_norm="before")


@pytest.mark.parametrize(
    ("pool", "final_norm", "norm", "fc_norm"),
    [
        ("cls", "pooled", True, False),
        ("cls", "tokens", True, False),
        ("mean", "pooled", False, True),
        ("mean_beside_cls", "tokens", True, False),
        ("mean", "none", False, False),
        ("cls", "none", False, False),
    ],
)
def test_where_the_final_norm_is(pool, final_norm, norm, fc_norm):
    model = vit(pool=pool, final_norm=final_norm)
    assert (isinstance(model.norm, nn.LayerNorm), isinstance(model.fc_norm, nn.LayerNorm)) == (norm, fc_norm)


def test_a_norm_before_pooling_acts_on_every_patch():
    model, images = vit(final_norm="tokens", pool="mean_beside_cls", registers=1), torch.randn(2, 3, 16, 24)
    tokens = model.trace(images)["layer1"]
    expected = torch.nn.functional.layer_norm(tokens, (32,), eps=1e-6)[:, 2:].mean(1)
    torch.testing.assert_close(model.features(images), expected)


def test_norms_are_all_of_the_kind_of_the_layers():
    model = vit(norm=partial(nn.LayerNorm, eps=1e-3))
    assert {module.eps for module in model.modules() if isinstance(module, nn.LayerNorm)} == {1e-3}
    assert model.fc_norm.weight is not model.blocks[0].norm1.weight
    assert {m.eps for m in vit().modules() if isinstance(m, nn.LayerNorm)} == {1e-6}


def test_without_classes_there_is_no_head():
    model, images = vit(classes=0), torch.randn(2, 3, 16, 24)
    assert not [name for name in model.state_dict() if name.startswith("head")]
    assert torch.equal(model(images), model.features(images))
