"""Which resolution-transfer protocols to run, and what of them a position module honours."""

from __future__ import annotations

import itertools
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from vitpos.position import Transfer
from vitpos.spec import ImageSize, as_size

NOT_APPLICABLE = "not_applicable"
FACTORS = ("table", "coordinates", "temperature")
OFF = "off"


@dataclass(frozen=True)
class Protocol:
    """One way to follow the image to another size.

    Attributes:
        transfer: what the network is told.
        applied: per factor its value, or `not_applicable` where the position module does not react to it.
    """

    transfer: Transfer
    applied: Mapping[str, str]


def protocols(settings: Mapping[str, Any], honours: Iterable[str]) -> list[Protocol]:
    """Return all combinations of the factors that can differ for one position module, each once.

    The attention temperature belongs to the network, so every module honours it. `ntk` is left out for a module that
    computes codes from coordinates but has no frequencies to stretch.

    Args:
        settings: `table`, `coordinates` and `temperature`, each a value or a list of values.
        honours: what the position module reacts to, see `Position`.

    Raises:
        ValueError: a missing or empty factor, or an unknown value.
    """
    able = {"temperature", *honours}
    choices = [values(settings, factor) for factor in FACTORS]
    # Everything asked for is checked, also what this module ignores: a misspelt value is never silently dropped.
    wanted = [Transfer(*choice) for choice in itertools.product(*choices)]
    found: dict[tuple[str, ...], Protocol] = {}
    for transfer in wanted:
        if transfer.coordinates == "ntk" and "coordinates" in able and "ntk" not in able:
            continue
        applied = {factor: getattr(transfer, factor) if factor in able else NOT_APPLICABLE for factor in FACTORS}
        # What is not honoured stays at its default, so that equal rows are equal evaluations.
        honoured = Transfer(**{factor: value for factor, value in applied.items() if factor in able})  # type: ignore[arg-type]
        found.setdefault(tuple(applied.values()), Protocol(honoured, applied))
    return list(found.values())


def values(settings: Mapping[str, Any], factor: str) -> list[Any]:
    """Return the values asked for one factor; YAML's bare `off`, which reads as false, is the value "off".

    Raises:
        ValueError: the factor is missing or empty.
    """
    given = settings.get(factor)
    several = list(given) if isinstance(given, Sequence) and not isinstance(given, str) else [given]
    if given is None or not several:
        raise ValueError(f"transfer.{factor}={given!r}: give a value or a list of values")
    return [OFF if value is False else value for value in several]


def sizes(settings: Mapping[str, Any], patch_size: int) -> list[ImageSize]:
    """Return the image sizes (height, width) asked for, each once, in the order given.

    Args:
        settings: `sizes`, a list whose entries are one number or a pair [height, width].
        patch_size: side of a patch in pixels.

    Raises:
        ValueError: not a list, not a size, or a side that the patch size does not divide.
    """
    given = settings.get("sizes")
    if not isinstance(given, Sequence) or isinstance(given, str):
        raise ValueError(f"transfer.sizes={given!r}: give a list such as [28, 56, [28, 42]]")
    wanted = [as_size(size) for size in given]
    for height, width in wanted:
        if height % patch_size or width % patch_size:
            raise ValueError(
                f"transfer.sizes: {height}x{width} px is not divisible into patches of {patch_size} px; "
                f"both sides must be multiples of the patch size"
            )
    return list(dict.fromkeys(wanted))
