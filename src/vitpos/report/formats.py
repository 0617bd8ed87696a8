"""Numbers as a reader sees them: fractions become percent, differences points."""

from __future__ import annotations

import re
from collections.abc import Iterable

DASH = "—"
MINUS = "−"


def percent(fraction: float | None) -> str:
    """0.91234 -> 91.23."""
    return DASH if fraction is None else f"{100 * fraction:.2f}"


def points(difference: float | None) -> str:
    """0.0123 -> +1.23, -0.0123 -> −1.23."""
    return DASH if difference is None else _signed(f"{100 * difference:+.2f}")


def with_interval(text: str, half_width: float | None) -> str:
    """Append the half-width of an interval, a fraction, in points; nothing where there is none."""
    return text if half_width is None else f"{text} ± {100 * half_width:.2f}"


def count(number: float | None) -> str:
    """1234567 -> 1,234,567."""
    return DASH if number is None else f"{round(number):,}"


def significant(number: float | None, digits: int = 3) -> str:
    """12.3456 -> 12.3, 0.00123 -> 0.00123, 123456 -> 123,456."""
    if number is None:
        return DASH
    if abs(number) >= 10**digits:
        return f"{number:,.0f}"
    return _signed(f"{number:.{digits}g}")


def p_value(p: float | None) -> str:
    """0.0321 -> 0.032, 0.00001 -> < 0.001."""
    if p is None:
        return DASH
    return "< 0.001" if p < 0.001 else f"{p:.3f}"


def p_equals(p: float) -> str:
    """0.0321 -> = 0.032, 0.00001 -> < 0.001."""
    text = p_value(p)
    return text if text.startswith("<") else f"= {text}"


def span(numbers: Iterable[int]) -> str:
    """0, 1, 2, 5 -> 0–2, 5."""
    ordered = sorted(set(numbers))
    runs: list[list[int]] = []
    for number in ordered:
        if runs and number == runs[-1][-1] + 1:
            runs[-1].append(number)
        else:
            runs.append([number])
    return ", ".join(f"{run[0]}–{run[-1]}" if len(run) > 1 else str(run[0]) for run in runs)


def plural(number: int, noun: str) -> str:
    """1, seed -> 1 seed; 3, seed -> 3 seeds."""
    return f"{number} {noun}" if number == 1 else f"{number} {noun}s"


def natural(text: str) -> list[tuple[float, str]]:
    """Return a sort key that puts theta=10 before theta=100, and fewshot/5 before fewshot/10."""
    parts = re.split(r"(\d+(?:\.\d+)?)", text)
    return [(float(part), "") if place % 2 else (-1.0, part) for place, part in enumerate(parts)]


def _signed(text: str) -> str:
    return text.replace("-", MINUS)
