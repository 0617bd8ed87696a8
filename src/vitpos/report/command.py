"""The command line of the report: `key=value` settings, as everywhere else, without Hydra."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from dataclasses import dataclass, fields
from pathlib import Path

from rich.console import Console

from vitpos.record import RecordError
from vitpos.report.build import MARGIN, REFERENCE, make_report, print_report, write_comparison, write_report
from vitpos.report.grouping import name_arms
from vitpos.report.terminal import print_table
from vitpos.report.view import Report

USAGE = """\
Rebuild the report of finished runs, from their stored records alone.

  python scripts/report.py experiment=digits
  python scripts/report.py experiments=[digits,fashion_mnist] reference=sincos_2d margin=1.0

experiment=NAME        folder under output_dir
experiments=[A,B,...]  several: each gets its report, and all a comparison across data sets
reference=NAME         arm that the others are compared with (learned_1d)
margin=POINTS          differences within it count as tied; 0 switches ties off (0.5)
output_dir=FOLDER      where the experiments lie (outputs)
"""


@dataclass(frozen=True)
class Settings:
    """Settings of the command line.

    Attributes:
        experiments: names of the experiments.
        reference: arm of the differences.
        margin: tie band in percentage points.
        output_dir: where the experiments lie.
    """

    experiments: tuple[str, ...]
    reference: str = REFERENCE
    margin: float = MARGIN
    output_dir: Path = Path("outputs")


def parse(arguments: Sequence[str]) -> Settings:
    """Read `key=value` settings.

    Raises:
        ValueError: an unknown key, a value of the wrong kind, or no experiment.
    """
    given: dict[str, str] = {}
    for argument in arguments:
        key, equals, value = argument.partition("=")
        if not equals or key not in {"experiment", *(field.name for field in fields(Settings))}:
            raise ValueError(f"{argument!r}: give settings as key=value\n\n{USAGE}")
        given[key] = value
    names = [
        name.strip() for key in ("experiment", "experiments") for name in given.pop(key, "").strip("[]").split(",")
    ]
    experiments = tuple(dict.fromkeys(name for name in names if name))
    if not experiments:
        raise ValueError(f"experiment=…: name an experiment\n\n{USAGE}")
    try:
        margin = float(given.pop("margin", MARGIN))
    except ValueError as error:
        raise ValueError(f"{error}: margin must be a number of percentage points") from error
    return Settings(
        experiments,
        reference=given.get("reference", REFERENCE),
        margin=margin,
        output_dir=Path(given.get("output_dir", "outputs")),
    )


def main(arguments: Sequence[str] | None = None) -> int:
    """Build reports and print them; return the exit code, 1 where something could not be read."""
    console = Console()
    texts = sys.argv[1:] if arguments is None else list(arguments)
    if {"-h", "--help"} & set(texts):
        print(USAGE)
        return 0
    try:
        settings = parse(texts)
        reports = [
            make_report(settings.output_dir / name, settings.reference, settings.margin)
            for name in settings.experiments
        ]
        if any(text.startswith("reference=") for text in texts):
            _know(settings.reference, reports)
        for report in reports:
            folder = write_report(report)
            print_report(report, console)
            console.print(f"written to {folder}", markup=False, highlight=False, soft_wrap=True)
        if len(reports) > 1:
            comparison, folder = write_comparison(reports, settings.output_dir)
            print_table(comparison.table, console)
            console.print(comparison.summary, markup=False, highlight=False)
            console.print(f"written to {folder}", markup=False, highlight=False, soft_wrap=True)
    except (RecordError, ValueError) as error:
        print(error, file=sys.stderr)
        return 1
    return 0


def _know(reference: str, reports: Sequence[Report]) -> None:
    """Refuse a reference that no run of any experiment has: a typing mistake must not overwrite a good report.

    Raises:
        ValueError: with the arms there are.
    """
    known = sorted({arm for report in reports for arm in name_arms(report.study.runs).values()})
    if known and reference not in known:
        raise ValueError(f"reference={reference}: no run has it; the arms are {', '.join(known)}")
