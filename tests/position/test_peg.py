import numpy as np
import pytest
import torch

from vitpos import reference
from vitpos.position import Geometry, Transfer
from vitpos.position.peg import PEG


@pytest.mark.parametrize("prefix", [0, 1, 5])
@pytest.mark.parametrize("kernel", [3, 5])
@pytest.mark.parametrize("size", [None, (6, 2)], ids=["trained", "elsewhere"])
def test_output_equals_the_formula_and_prefix_bypasses(grid, prefix, kernel, size):
    module = PEG(Geometry(grid, prefix, 8, 2, 3), kernel=kernel)
    height, width = size or grid
    module.resize((height, width), Transfer())
    x = torch.randn(2, prefix + height * width, 8)
    out = module.before_layer(x, 1).detach()
    image = x[1, prefix:].T.reshape(8, height, width).double().numpy()
    weight, bias = (p.detach().double().numpy() for p in (module.conv.weight, module.conv.bias))
    expected = image + reference.depthwise_convolution(image, weight[:, 0], bias)
    np.testing.assert_allclose(out[1, prefix:].T.reshape(8, height, width), expected, atol=1e-5)
    assert torch.equal(out[:, :prefix], x[:, :prefix])


def test_acts_after_the_chosen_layer_only(geometry):
    module, x = PEG(geometry, after=1), torch.randn(2, geometry.tokens, 32)
    assert [module.before_layer(x, layer) is x for layer in range(3)] == [True, True, False]
    assert module.injection == "after layer 1"


def test_zero_weights_add_nothing(geometry):
    module, x = PEG(geometry), torch.randn(2, geometry.tokens, 32)
    for parameter in module.parameters():
        torch.nn.init.zeros_(parameter)
    assert torch.equal(module.before_layer(x, 1), x)


@pytest.mark.parametrize("settings", [{"after": 2}, {"after": -1}, {"kernel": 2}, {"kernel": 0}], ids=str)
def test_impossible_settings_are_refused(geometry, settings):
    with pytest.raises(ValueError, match=next(iter(settings))):
        PEG(geometry, **settings)
