import numpy as np
import pytest
import torch
from timm.layers.pos_embed_sincos import RotaryEmbeddingMixed, apply_rot_embed_cat

from vitpos import reference
from vitpos.position import Geometry, Transfer
from vitpos.position.rope_mixed import RopeMixed


def test_rotation_equals_the_formula_and_timm(geometry, q, k):
    module, (height, width) = RopeMixed(geometry), geometry.grid
    other = RotaryEmbeddingMixed(32, depth=3, num_heads=2)
    other.load_state_dict({"freqs": module.frequencies.detach()})
    embeddings = other.get_embed([height, width])
    x, y = np.tile(np.arange(width), height), np.repeat(np.arange(height), width)
    for layer in range(geometry.depth):
        turned = module.rotate(q, k, layer)
        fx, fy = module.frequencies.detach().double().numpy()[:, layer]  # K E/2 each
        angles = x[:, None] * fx[:, None] + y[:, None] * fy[:, None]  # K N E/2
        for before, after in zip((q, k), turned, strict=True):
            expected = reference.rotate(before[:, :, 1:].double().numpy(), angles)
            np.testing.assert_allclose(after[:, :, 1:].detach(), expected, atol=1e-5)
            timms = apply_rot_embed_cat(before[:, :, 1:], embeddings[layer])
            torch.testing.assert_close(after[:, :, 1:], timms, atol=1e-5, rtol=0)


def test_gradients_equal_timms(geometry, q, k):
    module = RopeMixed(geometry)
    other = RotaryEmbeddingMixed(32, depth=3, num_heads=2)
    other.load_state_dict({"freqs": module.frequencies.detach()})
    weights = torch.randn_like(q)[:, :, 1:]
    sum((turned[:, :, 1:] * weights).sum() for turned in module.rotate(q, k, 1)).backward()
    embedding = other.get_embed(list(geometry.grid))[1]
    sum((apply_rot_embed_cat(t[:, :, 1:], embedding) * weights).sum() for t in (q, k)).backward()
    torch.testing.assert_close(module.frequencies.grad, other.freqs.grad, atol=1e-4, rtol=1e-4)


def test_frequencies_start_in_orthogonal_directions_of_published_magnitude():
    module = RopeMixed(Geometry((3, 5), 1, 64, 2, 3), theta=10.0)
    x, y = module.frequencies.detach()  # L K E/2 each
    magnitude = (x**2 + y**2).sqrt()
    expected = torch.tensor([10.0 ** (-4 * k / 32) for k in range(8)]).repeat(2)
    torch.testing.assert_close(magnitude, expected.expand_as(magnitude))
    (x1, x2), (y1, y2) = x.chunk(2, -1), y.chunk(2, -1)
    torch.testing.assert_close(x1 * x2 + y1 * y2, torch.zeros_like(x1), atol=1e-6, rtol=0)
    angles = torch.atan2(y[..., 0], x[..., 0]).flatten()
    assert len(angles.unique()) == 6


def test_zero_frequencies_rotate_nothing(geometry, q, k):
    module = RopeMixed(geometry)
    torch.nn.init.zeros_(module.frequencies)
    assert torch.equal(module.rotate(q, k, 1)[0], q)


def test_ntk_keeps_the_fastest_and_interpolates_the_slowest_pair():
    module = RopeMixed(Geometry((4, 6), 0, 32, 2, 1))
    module.resize((8, 6), Transfer(coordinates="ntk"))
    x, y = module.stretch[:, 0]
    assert torch.equal(x, torch.ones(8))
    assert y[[0, 4]].tolist() == [1, 1]
    assert y[[3, 7]].tolist() == [0.5, 0.5]


def test_phases_stay_in_float32_under_autocast(geometry, q, k):
    module = RopeMixed(geometry)
    exact = module.rotate(q, k, 0)
    with torch.autocast("cpu", torch.bfloat16):
        assert torch.equal(module.rotate(q, k, 0)[0], exact[0])


def test_head_width_must_be_divisible_by_four():
    with pytest.raises(ValueError, match="head width=6"):
        RopeMixed(Geometry((3, 5), 1, 12, 2, 1))
