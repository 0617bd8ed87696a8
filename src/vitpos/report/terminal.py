"""Tables in the terminal."""

from __future__ import annotations

from rich import box
from rich.console import Console
from rich.markup import escape
from rich.table import Table as RichTable

from vitpos.report.table import Table

# What a terminal of ordinary width has no room for.
_LEFT_OUT = ("Seeds min–max (%)", "MFLOPs", "Memory (MiB)", "Sampling ±")


def print_table(table: Table, console: Console) -> None:
    """Print the first columns of a table, as many as matter in a terminal, and its caption."""
    shown = [place for place, column in enumerate(table.columns) if column.heading not in _LEFT_OUT]
    drawn = RichTable(title=escape(table.title), box=box.SIMPLE_HEAD, title_justify="left")
    for place in shown:
        column = table.columns[place]
        drawn.add_column(escape(column.heading), justify="right" if column.numeric else "left", no_wrap=place == 0)
    for row in table.rows:
        texts = [(escape(row[place].text), row[place].strong) for place in shown]
        drawn.add_row(*(f"[bold]{text}[/]" if strong else text for text, strong in texts))
    console.print(drawn)
    console.print(escape(table.caption), style="dim", highlight=False)
