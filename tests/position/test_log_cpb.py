import numpy as np
import pytest
import torch
from timm.layers import RelPosMlp

from vitpos import reference
from vitpos.position import Geometry, Transfer
from vitpos.position.log_cpb import LogCPB


def strong(geometry):
    module = LogCPB(geometry, hidden=16)
    for parameter in module.parameters():
        torch.nn.init.normal_(parameter, std=0.5)
    return module


def expected(module, grid, trained, layer=0):
    first, second = module.mlps[layer][0], module.mlps[layer][2]
    w1, b1, w2 = (p.detach().double().numpy() for p in (first.weight, first.bias, second.weight))
    table = 16 / (1 + np.exp(-np.maximum(reference.log_offsets(grid, trained) @ w1.T + b1, 0) @ w2.T))
    return np.stack([reference.relative_bias(table[..., head], grid) for head in range(table.shape[-1])])


def test_bias_equals_the_formula_and_timm(grid):
    module, q = strong(Geometry(grid, 0, 32, 2, 3)), torch.zeros(1)
    bias = module.bias(q, q, 2)
    np.testing.assert_allclose(bias[0].detach(), expected(module, grid, grid, 2), atol=1e-5)
    other = RelPosMlp(grid, num_heads=2, hidden_dim=16, mode="swin").eval()
    weights = dict(zip(("mlp.fc1.weight", "mlp.fc1.bias", "mlp.fc2.weight"), module.mlps[2].parameters(), strict=True))
    other.load_state_dict(weights)
    torch.testing.assert_close(bias, other.get_bias(), atol=1e-5, rtol=0)


def test_prefix_pairs_get_what_a_network_that_knows_nothing_gives_to_all(geometry, q, k):
    module = strong(geometry)
    assert (module.bias(q, k, 0)[..., 0, :] == 8).all()
    assert (module.bias(q, k, 0)[..., :, 0] == 8).all()
    torch.nn.init.zeros_(module.mlps[0][2].weight)
    assert (module.bias(q, k, 0) == 8).all()  # a constant, so nothing at all to the softmax


@pytest.mark.parametrize("size", [(6, 8), (2, 2)], ids=str)
def test_larger_images_continue_on_the_log_scale(size):
    module, q = strong(Geometry((4, 4), 0, 32, 2, 1)), torch.zeros(1)
    module.resize(size, Transfer())
    np.testing.assert_allclose(module.bias(q, q, 0)[0].detach(), expected(module, size, (4, 4)), atol=1e-5)


def test_hidden_must_be_positive(geometry):
    with pytest.raises(ValueError, match="hidden=0"):
        LogCPB(geometry, hidden=0)
