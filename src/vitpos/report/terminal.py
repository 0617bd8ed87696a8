"""Tables in the terminal."""

from __future__ import annotations

from rich import box
from rich.console import Console
from rich.markup import escape
from rich.table import Table as RichTable

from vitpos.report.table import Table

# What goes first when the terminal is too narrow for all.
_OPTIONAL = (
    "Seeds min–max (%)",
    "Sampling ±",
    "MFLOPs",
    "Memory (MiB)",
    "Top-5 (%)",
    "Parameters",
    "5-shot (%)",
    "Step (ms)",
    "PE parameters",
    "Tuned setting",
    "Tuned verdict",
    "Tuned top-1 (%)",
)


def print_table(table: Table, console: Console) -> None:
    """Print a table and its caption; columns that don't fit the terminal are left out, they are in the files."""
    shown = list(range(len(table.columns)))
    for heading in _OPTIONAL:
        if sum(_width(table, place) + 3 for place in shown) <= console.width:
            break
        shown = [place for place in shown if table.columns[place].heading != heading]
    drawn = RichTable(title=escape(table.title), box=box.SIMPLE_HEAD, title_justify="left")
    for place in shown:
        column = table.columns[place]
        # Numbers stay whole; headings and words may wrap.
        least = max((len(row[place].text) for row in table.rows), default=0) if column.numeric or place == 0 else 0
        drawn.add_column(escape(column.heading), justify="right" if column.numeric else "left", min_width=least)
    for row in table.rows:
        texts = [(escape(row[place].text), row[place].strong) for place in shown]
        drawn.add_row(*(f"[bold]{text}[/]" if strong else text for text, strong in texts))
    console.print(drawn)
    console.print(escape(table.caption), style="dim", highlight=False)


def _width(table: Table, place: int) -> int:
    return max(len(text) for text in [table.columns[place].heading, *(row[place].text for row in table.rows)])
