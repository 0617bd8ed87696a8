"""AdamW with one weight-decay rule for all arms, and a learning rate that is a function of the optimiser step."""

from __future__ import annotations

import math
from dataclasses import dataclass

import torch
from torch import nn


@dataclass(frozen=True)
class OptimSettings:
    """Settings of the optimiser and its schedule.

    Attributes:
        lr: peak learning rate.
        weight_decay: decoupled decay of matrices.
        betas: moment coefficients of Adam.
        warmup: share of all optimiser steps with a linearly rising rate.
        final_lr: rate of the last step as a share of `lr`.
        label_smoothing: mass spread over all classes.
        grad_clip: largest global gradient norm; 0 does not clip.
        ema_decay: decay of the moving average of weights; 0 keeps none.
    """

    lr: float
    weight_decay: float
    betas: tuple[float, float] = (0.9, 0.999)
    warmup: float = 0.1
    final_lr: float = 0.01
    label_smoothing: float = 0.0
    grad_clip: float = 0.0
    ema_decay: float = 0.0

    def __post_init__(self) -> None:
        """Refuse values no run can use."""
        for name in ("lr", "weight_decay", "warmup", "final_lr", "label_smoothing", "grad_clip", "ema_decay"):
            value = getattr(self, name)
            if not isinstance(value, int | float) or isinstance(value, bool):
                raise ValueError(f"optim.{name}={value!r} must be a number")
        for name, valid, rule in (
            ("lr", self.lr > 0, "must be above 0"),
            ("weight_decay", self.weight_decay >= 0, "must be at least 0"),
            ("betas", len(self.betas) == 2 and all(0 <= b < 1 for b in self.betas), "must be two numbers in [0, 1)"),
            ("warmup", 0 <= self.warmup < 1, "is a share of all steps, in [0, 1)"),
            ("final_lr", 0 <= self.final_lr <= 1, "is a share of lr, in [0, 1]"),
            ("label_smoothing", 0 <= self.label_smoothing < 1, "must be in [0, 1)"),
            ("grad_clip", self.grad_clip >= 0, "must be at least 0"),
            ("ema_decay", 0 <= self.ema_decay < 1, "must be in [0, 1)"),
        ):
            if not valid:
                raise ValueError(f"optim.{name}={getattr(self, name)!r} {rule}")


def rate_at(step: int, steps: int, warmup: float, final: float) -> float:
    """Return the learning rate of an optimiser step as a share of the peak.

    Linear from 1/w to 1 over the first w = round(warmup * steps) steps, then half a cosine down to `final`, reached at
    the last step.

    Args:
        step: optimiser step, from 0.
        steps: all optimiser steps of the run.
        warmup: share of the steps that warm up.
        final: share of the peak at the last step.
    """
    rising = round(warmup * steps)
    if step < rising:
        return (step + 1) / rising
    progress = min((step - rising) / max(steps - 1 - rising, 1), 1.0)
    return final + (1 - final) * 0.5 * (1 + math.cos(math.pi * progress))


def parameter_groups(model: nn.Module, weight_decay: float) -> list[dict[str, object]]:
    """Split the parameters: matrices of the backbone decay; biases, norms, tokens and position parameters do not."""
    decay: list[nn.Parameter] = []
    rest: list[nn.Parameter] = []
    for name, parameter in model.named_parameters():
        if not parameter.requires_grad:
            continue
        matrix = parameter.ndim >= 2 and not name.startswith("position.") and not name.endswith("_token")
        (decay if matrix else rest).append(parameter)
    return [{"params": decay, "weight_decay": weight_decay}, {"params": rest, "weight_decay": 0.0}]


def build_optimizer(model: nn.Module, settings: OptimSettings, *, fused: bool = True) -> torch.optim.AdamW:
    """Return AdamW over `parameter_groups`.

    Args:
        model: network, where it is going to be trained.
        settings: rate, decay and moments.
        fused: update all parameters in one kernel. Not with a gradient scaler (fp16): the kernel unscales by itself,
            after gradients have been clipped.
    """
    groups = parameter_groups(model, settings.weight_decay)
    return torch.optim.AdamW(groups, lr=settings.lr, betas=(settings.betas[0], settings.betas[1]), fused=fused)
