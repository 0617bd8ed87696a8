"""Tables as Markdown."""

from __future__ import annotations

from collections.abc import Sequence

from vitpos.report.flags import Flag
from vitpos.report.table import Table


def to_markdown(table: Table) -> str:
    """Return a table as Markdown, its caption below."""

    def line(cells: Sequence[str]) -> str:
        return "| " + " | ".join(text.replace("|", "\\|") for text in cells) + " |"

    head = line([column.heading for column in table.columns])
    rule = "|" + "|".join("---:" if column.numeric else "---" for column in table.columns) + "|"
    body = [line([f"**{cell.text}**" if cell.strong else cell.text for cell in row]) for row in table.rows]
    return "\n".join([head, rule, *body, "", table.caption, ""])


def flags_to_markdown(flags: Sequence[Flag]) -> str:
    """Return remarks as a list; nothing without remarks."""
    return "".join(f"- **{flag.kind}**: {flag.text}\n" for flag in flags)
