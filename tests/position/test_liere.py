import numpy as np
import pytest
import torch
from scipy.linalg import expm

from vitpos import reference
from vitpos.position import Geometry, Transfer, liere
from vitpos.position.liere import LieRE


def expected(module, rows, columns, layer):
    blocks = module.geometry.head_dim // module.block
    generators = module.generators.detach().double().numpy()[:, layer]
    out = np.zeros((module.geometry.heads, len(rows) * len(columns), blocks, module.block, module.block))
    for head in range(module.geometry.heads):
        for block in range(blocks):
            a, b = (reference.skew(axis[head, block], module.block) for axis in generators)
            places = [(x, y) for y in rows for x in columns]
            for patch, (x, y) in enumerate(places):
                out[head, patch, block] = reference.rotation_of(x * a + y * b)
                np.testing.assert_allclose(out[head, patch, block], expm(x * a + y * b), atol=1e-9)
    return out


@pytest.mark.parametrize("block_size", ["full", 8, 4])
def test_rotation_equals_the_exponential_of_the_formula(geometry, q, k, block_size):
    module, (height, width) = LieRE(geometry, block_size=block_size), geometry.grid
    turns = expected(module, np.arange(height) / height, np.arange(width) / width, 1)
    for before, after in zip((q, k), module.rotate(q, k, 1), strict=True):
        x = before[:, :, 1:].double().numpy().reshape(*before.shape[:2], geometry.patches, -1, module.block)
        turned = np.einsum("knpij,bknpj->bknpi", turns, x).reshape(*x.shape[:3], -1)
        np.testing.assert_allclose(after[:, :, 1:].detach(), turned, atol=2e-4)
        assert torch.equal(after[:, :, :1], before[:, :, :1])


def test_protocols_at_another_size():
    module = LieRE(Geometry((4, 4), 0, 8, 1, 1), block_size=4)
    module.resize((8, 8), Transfer())
    assert module.position.max() == 7 / 4
    module.resize((8, 8), Transfer(coordinates="rescale"))
    np.testing.assert_allclose(module.position[:8, 0], reference.rescaled(8, 4) / 4)


def test_zero_generators_rotate_nothing(geometry, q, k):
    assert torch.equal(LieRE(geometry, scale=0.0).rotate(q, k, 0)[0], q)


@pytest.mark.parametrize("block_size", [0, 1, 3, 32, "half"])
def test_block_must_divide_the_head_width(geometry, block_size):
    with pytest.raises(ValueError, match=f"block_size={block_size}: must be full or at least 2 and divide"):
        LieRE(geometry, block_size=block_size)


def test_few_patches_at_a_time_turn_as_all_at_once(geometry, q, k, monkeypatch):
    module = LieRE(geometry)
    whole = module.rotate(q, k, 1)
    monkeypatch.setattr(liere, "AT_ONCE", 2 * geometry.heads * geometry.head_dim * module.block)
    seen = []
    monkeypatch.setattr(LieRE, "rotations", lambda *args, made=LieRE.rotations: seen.append(made(*args)) or seen[-1])
    for one, other in zip(whole, module.rotate(q, k, 1), strict=True):
        torch.testing.assert_close(one, other, atol=1e-5, rtol=0)
    assert {piece.shape[1] for piece in seen} <= {1, 2}
    assert sum(piece.shape[1] for piece in seen) == geometry.patches
