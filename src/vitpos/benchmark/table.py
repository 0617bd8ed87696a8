"""Measured rows as a file and in the terminal."""

from __future__ import annotations

import csv
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from rich import box
from rich.console import Console
from rich.markup import escape
from rich.table import Table as RichTable

Row = Mapping[str, object]


@dataclass(frozen=True)
class Table:
    """Rows with the same columns.

    Attributes:
        name: of its file, without an ending.
        title: what is measured.
        rows: values by column; at least one row.
        note: what a reader must know to read them.
        file_only: columns that are not printed.
    """

    name: str
    title: str
    rows: Sequence[Row]
    note: str = ""
    file_only: Collection[str] = ()

    @property
    def columns(self) -> list[str]:
        """Names of the columns, in the order of the first row."""
        return list(self.rows[0])

    def write(self, folder: Path) -> Path:
        """Write all values as CSV and return the file."""
        folder.mkdir(parents=True, exist_ok=True)
        path = folder / f"{self.name}.csv"
        with path.open("w", newline="", encoding="utf-8") as file:
            writer = csv.DictWriter(file, self.columns, lineterminator="\n")
            writer.writeheader()
            writer.writerows(self.rows)
        return path

    def show(self, console: Console) -> None:
        """Print the rows, numbers rounded."""
        drawn = RichTable(title=escape(self.title), box=box.SIMPLE_HEAD, title_justify="left", padding=(0, 1, 0, 0))
        printed = [column for column in self.columns if column not in self.file_only]
        for column in printed:
            numeric = any(isinstance(row[column], int | float) for row in self.rows)
            drawn.add_column(escape(column), justify="right" if numeric else "left", no_wrap=True)
        for row in self.rows:
            drawn.add_row(*(escape(shown(row[column])) for column in printed))
        console.print(drawn)
        if self.note:
            console.print(escape(self.note), style="dim", highlight=False)


def shown(value: object) -> str:
    """Return a value as a person reads it: three decimals below ten, none from a hundred on, a dash for nothing."""
    if value is None:
        return "-"
    if not isinstance(value, float):
        return str(value)
    size = abs(value)
    return f"{value:.3f}" if size < 10 else f"{value:.1f}" if size < 100 else f"{value:,.0f}"
