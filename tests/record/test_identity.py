"""The identity of a run follows every setting that matters and no other."""

from __future__ import annotations

import copy

import pytest

from vitpos.record import EXCLUDED, identity, run_name

CONFIG = {
    "experiment_name": "digits",
    "position_name": "rope_axial",
    "seed": 3,
    "position": {"_target_": "vitpos.position.rope_axial.RopeAxial", "theta": 100.0},
    "model": {"dim": 64, "depth": 4},
    "data": {"_target_": "vitpos.data.digits.Digits", "root": "data", "num_workers": 2, "image_size": [8, 8]},
    "optim": {"lr": 1e-3},
    "trainer": {"max_epochs": 30, "enable_progress_bar": True},
    "logger": {"_target_": "x"},
    "transfer": {"sizes": [8, 12]},
    "output_dir": "outputs",
}


def changed(key: str, value: object) -> dict:
    config = copy.deepcopy(CONFIG)
    *path, last = key.split(".")
    part = config
    for name in path:
        part = part.setdefault(name, {})
    part[last] = value
    return config


def reverse(value: object) -> object:
    if isinstance(value, dict):
        return {key: reverse(item) for key, item in reversed(value.items())}
    return value


def test_form():
    name = run_name(CONFIG)
    assert name == f"rope_axial-s3-{identity(CONFIG)}"
    assert len(identity(CONFIG)) == 8
    assert int(identity(CONFIG), 16) >= 0


def test_pinned():
    """A change of the canonical form would orphan every finished run; it must be deliberate."""
    assert identity({"seed": 1, "optim": {"lr": 0.001, "betas": (0.9, 0.999)}, "x": None}) == "5dea4ac4"


def test_key_order_does_not_matter():
    assert identity(reverse(CONFIG)) == identity(CONFIG)


@pytest.mark.parametrize("key", EXCLUDED)
def test_excluded_keys_do_not_matter(key):
    assert identity(changed(key, "anything")) == identity(CONFIG)


@pytest.mark.parametrize(
    ("key", "value"),
    [
        ("seed", 4),
        ("optim.lr", 2e-3),
        ("position.theta", 10),
        ("model.dim", 128),
        ("trainer.max_epochs", 31),
        ("trainer.precision", "bf16-mixed"),
        ("data.image_size", [8, 12]),
        ("data.limit_train", 100),
        ("model.logger", "nested keys of the same name count"),
        ("a_setting_added_later", 1),
    ],
)
def test_everything_else_matters(key, value):
    assert identity(changed(key, value)) != identity(CONFIG)


@pytest.mark.parametrize(("left", "right"), [(1, 1.0), ((1, 2), [1, 2]), (1e-3, 0.001), (-0.0, 0)])
def test_same_value_written_differently(left, right):
    assert identity({"x": left}) == identity({"x": right})


@pytest.mark.parametrize(("left", "right"), [(1, "1"), (None, "None"), (1, True), ([], {}), (float("inf"), None)])
def test_different_values_that_look_alike(left, right):
    assert identity({"x": left}) != identity({"x": right})


@pytest.mark.parametrize("value", [object(), {1: 2}, {"a": {3}}])
def test_not_plain_is_named(value):
    with pytest.raises(ValueError, match=r"config key model\.act"):
        identity({"model": {"act": value}})


@pytest.mark.parametrize("change", [{"position_name": None}, {"position_name": "a/b"}, {"seed": None}, {"seed": True}])
def test_no_name_without_its_parts(change):
    with pytest.raises(ValueError, match=r"position_name|seed"):
        run_name(CONFIG | change)
