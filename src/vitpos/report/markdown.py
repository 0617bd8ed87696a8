"""Tables as Markdown."""

from __future__ import annotations

from collections.abc import Sequence

from vitpos.report.figures import Picture
from vitpos.report.flags import Flag
from vitpos.report.table import Table
from vitpos.report.view import Report


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


def markdown_report(report: Report) -> str:
    """Return a whole report as Markdown."""
    parts = [f"# {report.study.name}\n"]
    if not report.sections:
        parts.append("No run has finished or failed yet.\n")
    parts += [_figure(report.matrix)] if report.matrix else []
    for view in report.sections:
        parts += [
            f"## {view.table.title}\n",
            f"{view.summary}\n",
            to_markdown(view.table),
            flags_to_markdown(view.flags),
        ]
        parts += [_figure(picture) for picture in view.pictures]
    for transfer in report.transfers:
        parts += [f"## Other image sizes: {transfer.table.title}\n", to_markdown(transfer.table)]
        parts += [_figure(transfer.picture)] if transfer.picture else []
    if report.flags:
        parts += ["## Remarks\n", flags_to_markdown(report.flags)]
    return "\n".join(part for part in parts if part)


def _figure(picture: Picture) -> str:
    return f"![{picture.title}](figures/{picture.name}.svg)\n\n{picture.caption}\n"
