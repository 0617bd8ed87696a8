"""A report ready to be shown: what tables, figures and pages are made from."""

from __future__ import annotations

from dataclasses import dataclass

from vitpos.report.figures import Picture
from vitpos.report.flags import Flag
from vitpos.report.rows import Analysis
from vitpos.report.study import Study
from vitpos.report.table import Table
from vitpos.report.transfer import Point


@dataclass(frozen=True)
class SectionView:
    """A section ready to be shown.

    Attributes:
        analysis: its numbers.
        flags: remarks on it.
        table: its table with caption.
        summary: two sentences.
        pictures: its figures.
    """

    analysis: Analysis
    flags: list[Flag]
    table: Table
    summary: str
    pictures: list[Picture]


@dataclass(frozen=True)
class TransferView:
    """Other image sizes of networks trained in one section.

    Attributes:
        table: accuracies by arm, size and protocol.
        picture: resolution curves, None for a single size.
    """

    table: Table
    picture: Picture | None


@dataclass(frozen=True)
class Report:
    """A study ready to be shown.

    Attributes:
        study: the runs.
        settings: reference and margin, as typed.
        flags: remarks on the whole study.
        sections: one view per section.
        points: accuracies at other image sizes.
        transfers: the same, ready to be shown.
        matrix: arms x sections, None for a study of one section.
        table8: the paper's table with ours beside it; None if the study has too few of its cells.
    """

    study: Study
    settings: str
    flags: list[Flag]
    sections: list[SectionView]
    points: list[Point]
    transfers: list[TransferView]
    matrix: Picture | None
    table8: Table | None

    @property
    def command(self) -> str:
        """The command that rebuilds the report."""
        return f"python scripts/report.py experiment={self.study.name} {self.settings}"

    @property
    def pictures(self) -> list[Picture]:
        """All figures, in order."""
        found = [self.matrix] if self.matrix else []
        found += [picture for view in self.sections for picture in view.pictures]
        return found + [view.picture for view in self.transfers if view.picture]
