"""Two things timed in turn, so that what a machine does meanwhile falls on both."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from statistics import median

from vitpos.benchmark.clock import Clock, without_collecting

Step = Callable[[], object]


@dataclass(frozen=True)
class Comparison:
    """Times of something and of its baseline, taken in turn: baseline, it, baseline, it, ..., baseline.

    Attributes:
        seconds: of the thing, one per round.
        baseline: of the baseline, one more.
    """

    seconds: tuple[float, ...]
    baseline: tuple[float, ...]

    @property
    def ratios(self) -> list[float]:
        """Each time over the mean of the baseline's times just before and after it."""
        around = zip(self.baseline, self.baseline[1:], strict=False)
        return [2 * own / (before + after) for own, (before, after) in zip(self.seconds, around, strict=True)]

    @property
    def ratio(self) -> float:
        """The median ratio."""
        return median(self.ratios)


def compare(one: Step, baseline: Step, rounds: int, clock: Clock) -> Comparison:
    """Time `one` against `baseline`, both warmed up before."""
    seconds, around = list[float](), list[float]()
    with without_collecting():
        around.append(clock.seconds(baseline))
        for _ in range(rounds):
            seconds.append(clock.seconds(one))
            around.append(clock.seconds(baseline))
    return Comparison(tuple(seconds), tuple(around))
