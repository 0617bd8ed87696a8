import numpy as np
import pytest

from vitpos import reference
from vitpos.position import Geometry
from vitpos.position.rope_golden import RopeGolden


def test_rotation_equals_the_formula(geometry, q, k):
    module, (height, width) = RopeGolden(geometry, min_frequency=0.5, max_frequency=50.0), geometry.grid
    pairs = geometry.head_dim // 2
    frequencies = np.geomspace(0.5, 50.0, pairs)
    angles = np.zeros((geometry.heads, geometry.patches, pairs))
    for head in range(geometry.heads):
        for patch in range(geometry.patches):
            y, x = 2 * (patch // width + 0.5) / height - 1, 2 * (patch % width + 0.5) / width - 1
            for pair in range(pairs):
                direction = (head * pairs + pair) * np.pi * (1 - np.sqrt(5)) / 2
                angles[head, patch, pair] = frequencies[pair] * (x * np.cos(direction) + y * np.sin(direction))
    for before, after in zip((q, k), module.rotate(q, k, 2), strict=True):
        expected = reference.rotate(before[:, :, 1:].double().numpy(), angles, "half")
        np.testing.assert_allclose(after[:, :, 1:], expected, atol=1e-5)


def test_impossible_settings_are_refused(geometry):
    with pytest.raises(ValueError, match="min_frequency=5"):
        RopeGolden(geometry, min_frequency=5.0, max_frequency=1.0)
    with pytest.raises(ValueError, match="head width=5"):
        RopeGolden(Geometry((3, 5), 1, 5, 1, 1))
