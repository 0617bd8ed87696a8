"""Attention distance against closed forms and against the fused attention of the network."""

import pytest
import torch
from torch import nn

from vitpos.evaluation import attention
from vitpos.evaluation.attention import attention_distance, attention_weights, patch_distances


def test_distances_are_in_pixels_between_patch_centres():
    distances = patch_distances((2, 3), patch_size=4)
    assert distances.shape == (6, 6)
    assert distances[0].tolist() == pytest.approx([0, 4, 8, 4, 32**0.5, 80**0.5])
    assert torch.equal(distances, distances.T)


@pytest.mark.parametrize("pool", ["mean", "cls"])
def test_uniform_attention_has_the_mean_distance(vit, pool):
    model = vit("none", image_size=(8, 12), pool=pool)
    for block in model.blocks:
        nn.init.zeros_(block.attn.qkv.weight)
    distances = attention_distance(model, torch.randn(5, 1, 8, 12))
    assert distances.shape == (2, 2)
    assert torch.allclose(distances, patch_distances((4, 6), 2).mean().expand(2, 2), atol=1e-5)


def test_a_head_that_looks_only_at_itself_has_distance_zero(vit):
    from vitpos.position import Position

    class Self(Position):
        label, family, injection = "self", "bias", "bias"

        def bias(self, q, k, layer):
            return 1e4 * torch.eye(q.shape[2])

    assert attention_distance(vit(Self), torch.randn(3, 1, 8, 8)).abs().max() < 1e-4


def test_chunks_change_nothing(vit, monkeypatch):
    model, images = vit("rope_axial"), torch.randn(7, 1, 8, 8)
    whole = attention_distance(model, images)
    monkeypatch.setattr(attention, "CHUNK", 1)
    assert torch.allclose(attention_distance(model, images), whole, atol=1e-5)


@pytest.mark.parametrize("name", ["learned_1d", "rope_mixed", "relative_1d", "peg", "learned_2d_every", "log_cpb"])
def test_explicit_weights_are_those_of_the_fused_path(vit, name):
    model, images = vit(name), torch.randn(3, 1, 8, 8)
    with torch.no_grad():
        trace = model.trace(images)
        x = trace["stem"]
        for layer, (weights, block) in enumerate(zip(attention_weights(model, images), model.blocks, strict=True)):
            x = block.norm1(model.position.before_layer(x, layer))
            _, _, v = block.attn.project(x)
            mixed = block.attn.proj((weights @ v).transpose(1, 2).flatten(2))
            assert torch.allclose(mixed, block.attn(x, model.position, layer, model.temperature), atol=1e-5)
            assert torch.allclose(weights.sum(-1), torch.ones(()), atol=1e-5)
            x = trace[f"layer{layer}"]
