import numpy as np
import pytest
from scipy.special import erf

from vitpos import reference
from vitpos.position import Geometry, Transfer
from vitpos.position.fourier import Fourier


def expected(module, rows, columns):
    weights = {key: value.detach().double().numpy() for key, value in module.codes[0].named_parameters()}
    positions = np.array([(x, y) for y in rows for x in columns], dtype=np.float64)
    features = reference.fourier_features(positions, weights["frequencies"])
    hidden = features @ weights["mlp.0.weight"].T + weights["mlp.0.bias"]
    hidden = hidden * (1 + erf(hidden / np.sqrt(2))) / 2  # GeLU
    return hidden @ weights["mlp.2.weight"].T + weights["mlp.2.bias"]


def test_code_equals_the_formula_at_each_protocol(geometry):
    module, (height, width) = Fourier(geometry), geometry.grid
    code = module.code(0).detach().numpy()
    np.testing.assert_allclose(code[1:], expected(module, range(height), range(width)), atol=1e-5)
    assert not code[0].any()
    module.resize((6, 2), Transfer())
    np.testing.assert_allclose(module.code(0).detach()[1:], expected(module, range(6), range(2)), atol=1e-5)
    module.resize((6, 2), Transfer(coordinates="rescale"))
    axes = reference.rescaled(6, height), reference.rescaled(2, width)
    np.testing.assert_allclose(module.code(0).detach()[1:], expected(module, *axes), atol=1e-5)


def test_gamma_is_the_distance_over_which_features_decorrelate():
    frequencies = Fourier(Geometry((3, 5), 1, 32, 2, 1), features=20000, gamma=4.0).codes[0].frequencies
    assert float(frequencies.detach().std()) == pytest.approx(0.25, rel=0.05)


@pytest.mark.parametrize("settings", [{"features": 7}, {"features": 0}, {"hidden": 0}, {"gamma": 0}], ids=str)
def test_impossible_settings_are_refused(geometry, settings):
    with pytest.raises(ValueError, match=next(iter(settings))):
        Fourier(geometry, **settings)
