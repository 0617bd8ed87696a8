"""Refusals of settings: each names the setting, the value and the rule."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from vitpos.position.base import Geometry


def require(met: bool, rule: str) -> None:
    """Refuse a setting; `rule` names the setting, the value and what is allowed.

    Raises:
        ValueError: `met` is false.
    """
    if not met:
        raise ValueError(rule)


def require_choice(name: str, value: object, choices: tuple[str, ...]) -> None:
    """Refuse a value outside `choices`, naming the setting.

    Raises:
        ValueError: `value` is not one of `choices`.
    """
    if value not in choices:
        raise ValueError(f"{name}={value!r}: choose one of {', '.join(choices)}")


def require_head_width(geometry: Geometry, divisor: int, reason: str) -> None:
    """Refuse a head width that `divisor` does not divide.

    Raises:
        ValueError: the width of a head is not a multiple of `divisor`.
    """
    rule = "even" if divisor == 2 else f"divisible by {divisor}"
    require(
        geometry.head_dim % divisor == 0,
        f"head width={geometry.head_dim} (dim={geometry.dim}, heads={geometry.heads}): must be {rule}, {reason}",
    )
