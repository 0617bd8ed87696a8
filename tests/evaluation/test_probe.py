"""The linear probe against features whose content of position is known."""

import pytest
import torch

from vitpos.evaluation.probe import _probe, _targets, probe_position

GRID = (4, 6)


def noise(images=8, width=16):
    return torch.randn(images, 24, width, generator=torch.Generator().manual_seed(0), dtype=torch.float64)


def test_targets_are_centred_rows_and_columns():
    targets = _targets((2, 3))
    assert targets[:, 0].tolist() == [-0.5] * 3 + [0.5] * 3
    assert targets[:, 1].tolist() == [-1, 0, 1] * 2


def test_position_in_the_features_is_read_exactly():
    features = noise()
    features[..., :2] += 100 * _targets(GRID)
    scores = _probe(features, _targets(GRID))
    assert scores["row"] > 0.99 and scores["column"] > 0.99


def test_one_axis_does_not_help_the_other():
    features = noise(images=64)
    features[..., 0] += 100 * _targets(GRID)[:, 1]
    scores = _probe(features, _targets(GRID))
    assert scores["column"] > 0.99
    assert abs(scores["row"]) < 0.1


def test_noise_says_nothing():
    assert all(abs(score) < 0.1 for score in _probe(noise(images=64), _targets(GRID)).values())


def test_scores_are_of_images_the_probe_has_not_seen():
    features = noise(images=2, width=400)  # more features than patches: any fit of the seen image is perfect
    assert _probe(features, _targets(GRID))["row"] < 0.5


def test_constant_features_are_no_error():
    assert _probe(torch.zeros(4, 24, 3, dtype=torch.float64), _targets(GRID)) == {"row": 0.0, "column": 0.0}


def test_a_single_row_has_no_score():
    assert _probe(torch.randn(4, 5, 3, dtype=torch.float64), _targets((1, 5)))["row"] is None


def test_every_layer_beside_the_content_alone(vit):
    images = torch.randn(32, 1, 8, 8)
    scores = probe_position(vit("learned_1d"), images)
    assert list(scores) == ["content", "stem", "layer0", "layer1"]
    assert scores["content"]["row"] < 0.1 < scores["stem"]["row"]
    assert probe_position(vit("none"), images)["layer1"]["row"] < 0.1


def test_one_image_is_too_few(vit):
    with pytest.raises(ValueError, match="images=1"):
        probe_position(vit(), torch.randn(1, 1, 8, 8))
