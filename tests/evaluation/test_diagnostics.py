"""Diagnostics of a record."""

import json

import pytest
import torch

from vitpos.evaluation.diagnostics import diagnose

SETTINGS = {"images": 16, "shuffle_images": 0, "seed": 0}


def test_numbers_are_plain_and_of_all_images(vit, bars):
    model = vit("learned_1d")
    found = diagnose(model, bars(), SETTINGS, "cpu")
    assert json.loads(json.dumps(found)) == found
    assert found["shuffle_n"] == 30
    assert found["shuffle_top1"] + found["shuffle_drop"] == pytest.approx(
        found["silenced_top1"] + found["silenced_drop"]
    )
    assert found["sensitivity"] > 0.01
    assert len(found["attention_distance"]) == 2 and len(found["attention_distance"][0]) == 2
    assert list(found["probe"]) == ["content", "stem", "layer0", "layer1"]
    assert not model.training


def test_batches_change_nothing(vit, bars):
    model = vit("rope_axial")
    whole, parts = (diagnose(model, bars(batch_size=size), SETTINGS, "cpu") for size in (30, 4))
    for name in ("shuffle_top1", "silenced_top1"):
        assert whole[name] == parts[name]
    assert whole["sensitivity"] == pytest.approx(parts["sensitivity"], rel=1e-4)


def test_without_positions_nothing_is_lost(vit, bars):
    found = diagnose(vit("none"), bars(), SETTINGS, "cpu")
    assert (found["shuffle_drop"], found["silenced_drop"], found["sensitivity"]) == (0, 0, 0)


def test_reads_no_more_images_than_asked_for(vit, bars):
    assert diagnose(vit(), bars(), SETTINGS | {"shuffle_images": 11}, "cpu")["shuffle_n"] == 11


def test_leaves_the_random_stream_and_the_mode_alone(vit, bars):
    model = vit("learned_1d").train()
    state = torch.random.get_rng_state()
    diagnose(model, bars(), SETTINGS, "cpu")
    assert torch.equal(state, torch.random.get_rng_state())
    assert model.training


@pytest.mark.parametrize(("name", "value"), [("images", 1), ("shuffle_images", -1)])
def test_refuses_by_name(vit, bars, name, value):
    with pytest.raises(ValueError, match=f"diagnostics.{name}={value}"):
        diagnose(vit(), bars(), SETTINGS | {name: value}, "cpu")
