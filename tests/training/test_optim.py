"""Schedule and weight-decay rule."""

import math

import pytest
import torch
from torch import nn

from vitpos.training.optim import OptimSettings, build_optimizer, parameter_groups, rate_at


def test_schedule_is_the_closed_formula():
    steps, warmup, final = 100, 0.1, 0.01
    rates = [rate_at(step, steps, warmup, final) for step in range(steps)]
    assert rates[:10] == pytest.approx([(step + 1) / 10 for step in range(10)])
    assert rates[10] == 1.0
    assert rates[-1] == pytest.approx(final)
    middle = final + (1 - final) * 0.5 * (1 + math.cos(math.pi * 45 / 89))
    assert rates[55] == pytest.approx(middle)
    assert rate_at(steps + 5, steps, warmup, final) == pytest.approx(final)  # never rises again


@pytest.mark.parametrize(
    ("key", "value"),
    [("lr", 0.0), ("weight_decay", -1.0), ("warmup", 1.0), ("final_lr", 2.0), ("label_smoothing", 1.0),
     ("grad_clip", -1.0), ("ema_decay", 1.0), ("betas", (0.9, 1.0))],
)  # fmt: skip
def test_bad_settings_name_themselves(key, value):
    with pytest.raises(ValueError, match=f"optim.{key}="):
        OptimSettings(**({"lr": 1e-3, "weight_decay": 0.0} | {key: value}))


def test_position_parameters_never_decay(compose, position_name):
    from vitpos.spec import ImageSpec
    from vitpos.training.build import build_model

    model = build_model(compose(f"position={position_name}"), ImageSpec((8, 8), 1, 10))
    decay, rest = parameter_groups(model, 0.5)
    decayed = {id(p) for p in decay["params"]}
    kept = {id(p) for p in rest["params"]}
    everything = dict(model.named_parameters())
    assert decayed | kept == {id(p) for p in everything.values()}
    for name, parameter in everything.items():
        matrix = parameter.ndim >= 2 and not name.startswith("position.") and not name.endswith("_token")
        assert (id(parameter) in decayed) == matrix, name

    before = {name: p.detach().clone() for name, p in model.position.named_parameters()}
    optimizer = build_optimizer(model, OptimSettings(lr=0.1, weight_decay=0.5))
    for parameter in model.parameters():
        parameter.grad = torch.zeros_like(parameter)
    optimizer.step()
    for name, parameter in model.position.named_parameters():
        assert torch.equal(parameter, before[name]), name


def test_frozen_parameters_are_left_out():
    layer = nn.Linear(2, 2)
    layer.bias.requires_grad_(False)
    assert [len(group["params"]) for group in parameter_groups(layer, 0.1)] == [1, 0]
