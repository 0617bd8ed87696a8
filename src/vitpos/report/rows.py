"""What the analysis of a section of a study holds: one row per arm."""

from __future__ import annotations

from dataclasses import dataclass, field

from vitpos.report.grouping import Section, Setting
from vitpos.report.predictions import ImageComparison
from vitpos.report.selection import Selection
from vitpos.report.statistics import Summary, sampling_half_width
from vitpos.report.study import Run
from vitpos.report.verdict import Comparison


@dataclass(frozen=True)
class Row:
    """An arm in the table.

    Attributes:
        arm: name of the arm.
        runs: the finished runs that the main columns average over, one per seed.
        accuracy: test top-1 under the shared setting; None if no seed finished.
        comparison: difference to the reference; None for the reference itself and without pairs.
        images: the same on stored predictions.
        tuned_runs: the finished runs under the arm's own best setting.
        tuned: test top-1 under it.
        tuned_comparison: difference to the reference under the reference's own best setting.
        metrics: further metrics under the shared setting.
        cost: mean cost of the runs; parameters of the first.
        failed: seeds of failed runs under the shared setting.
        missing: seeds that other arms have and this one has not.
        best: no arm is shown to be better than this one.
        confounded_by: settings, other than position, that differ from the reference's.
    """

    arm: str
    runs: list[Run]
    accuracy: Summary | None
    comparison: Comparison | None
    images: ImageComparison | None
    tuned_runs: list[Run]
    tuned: Summary | None
    tuned_comparison: Comparison | None
    metrics: dict[str, Summary]
    cost: dict[str, float | None]
    failed: tuple[int, ...]
    missing: tuple[int, ...]
    best: bool
    confounded_by: tuple[str, ...]

    def sampling(self, test_images: int | None) -> float | None:
        """Return the test-sampling half-width of one network of this arm; None where the test set's size is unknown."""
        return sampling_half_width(self.accuracy.mean, test_images) if self.accuracy and test_images else None


@dataclass(frozen=True)
class Analysis:
    """A section with everything that is drawn, printed and said of it.

    Attributes:
        section: the runs.
        reference: the arm of the differences; empty if it has no finished run here.
        margin: half-width of the tie band, a fraction.
        selection: which settings the columns stand for.
        rows: one per arm.
        seeds: seeds of the section.
        test_images: size of the test set; None if unknown or not the same for all runs.
        test_sizes: all sizes of the test set that were seen.
        duplicates: runs left out because another one has the same arm, setting and seed.
    """

    section: Section
    reference: str
    margin: float
    selection: Selection
    rows: list[Row]
    seeds: tuple[int, ...]
    test_images: int | None
    test_sizes: frozenset[int]
    duplicates: tuple[Run, ...] = field(default=())

    @property
    def setting(self) -> Setting | None:
        """The shared setting of the main columns."""
        return self.selection.shared

    def row(self, arm: str) -> Row | None:
        """Return the row of an arm."""
        return next((row for row in self.rows if row.arm == arm), None)
