"""How an accuracy at another image size came about, and which protocols stand side by side."""

from __future__ import annotations

import itertools
from collections.abc import Iterable
from dataclasses import dataclass

NOT_APPLICABLE = "not_applicable"
_BASE = {"table": "bicubic_antialias", "coordinates": "extrapolate", "temperature": "off"}


@dataclass(frozen=True)
class Protocol:
    """How an accuracy at another size came about.

    Attributes:
        table: resampling of tables, or `not_applicable`.
        coordinates: what computed codes did, or `not_applicable`.
        temperature: off or log_tokens.
        fine_tuned: whether the network was trained on at that size; else zero-shot.
        epochs: epochs of fine-tuning, 0 for zero-shot.
    """

    table: str
    coordinates: str
    temperature: str
    fine_tuned: bool = False
    epochs: int = 0

    @property
    def order(self) -> tuple[bool, bool, str, str, str, int]:
        """What protocols are sorted by: zero-shot first, nothing added to the attention first."""
        plain = self.temperature == "off"
        return self.fine_tuned, not plain, self.table, self.coordinates, self.temperature, self.epochs

    @property
    def text(self) -> str:
        """The protocol in words, without factors that do nothing."""
        factors = [name for name in (self.table, self.coordinates) if name != NOT_APPLICABLE]
        factors += [self.temperature] if self.temperature != "off" else []
        kind = f"fine-tuned {self.epochs} epochs" if self.fine_tuned else "zero-shot"
        return ", ".join([kind, *factors])


def choose_panels(protocols: Iterable[Protocol]) -> list[Protocol]:
    """Return the zero-shot protocols to draw: all values of one factor, the others at their default."""
    zero_shot = [protocol for protocol in protocols if not protocol.fine_tuned]
    values = {}
    for factor, default in _BASE.items():
        found = sorted({getattr(protocol, factor) for protocol in zero_shot} - {NOT_APPLICABLE})
        # The default first, so that it is the base the others differ from.
        values[factor] = sorted(found, key=lambda value: value != default) or [NOT_APPLICABLE]
    base = {factor: found[0] for factor, found in values.items()}
    return [
        Protocol(*combination)
        for combination in itertools.product(*values.values())
        if sum(value != base[factor] for factor, value in zip(values, combination, strict=True)) <= 1
    ]


def belongs(own: Protocol, panel: Protocol) -> bool:
    """Return whether a result is drawn in a panel: every factor is the panel's, or does nothing for this arm."""
    return not own.fine_tuned and all(
        getattr(own, factor) in (getattr(panel, factor), NOT_APPLICABLE) for factor in _BASE
    )


def heading(protocol: Protocol) -> str:
    """Return the factors of a zero-shot protocol that do something."""
    factors = [protocol.table, protocol.coordinates]
    factors += [protocol.temperature] if protocol.temperature != "off" else []
    return ", ".join(factor for factor in factors if factor != NOT_APPLICABLE) or "zero-shot"
