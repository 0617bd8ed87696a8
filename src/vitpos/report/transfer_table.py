"""Accuracies at other image sizes as a table: a row per arm and size, zero-shot and fine-tuned side by side."""

from __future__ import annotations

from collections.abc import Sequence

from vitpos.report.formats import DASH, percent, with_interval
from vitpos.report.protocols import Protocol, belongs, choose_panels, heading
from vitpos.report.table import Cell, Column, Table
from vitpos.report.transfer import Point, Size

CAPTION = (
    "Test top-1 in percent, mean ± half-width of the 95 % t-interval over training seeds. Zero-shot: the network as "
    "trained; fine-tuned: trained on at that size. Protocols are never averaged; one that does not concern an arm "
    "changes nothing for it."
)


def transfer_table(title: str, points: Sequence[Point]) -> Table | None:
    """Lay out the points of one section, None without any. Beyond the default, one factor at a time is shown."""
    if not points:
        return None
    panels = choose_panels(point.protocol for point in points)
    tuned = any(point.protocol.fine_tuned for point in points)
    columns = [Column("Position", "Position module.", numeric=False), Column("Size (px)", "Height x width.")]
    columns += [Column(f"Zero-shot, {heading(panel)} (%)", "Zero-shot accuracy.") for panel in panels]
    columns += [Column("Fine-tuned (%)", "After training on at this size.")] if tuned else []
    sizes = sorted({point.size for point in points}, key=lambda size: (size[0] * size[1], size))
    arms = list(dict.fromkeys(point.arm for point in points))
    trained = points[0].trained
    rows = []
    for arm in arms:
        own = [point for point in points if point.arm == arm]
        most = max(point.accuracy.n if point.accuracy else 0 for point in own)
        for size in sizes:
            here = [point for point in own if point.size == size]
            if here:
                rows.append([Cell(arm, arm), _size_cell(size, trained), *_cells(here, panels, tuned, most)])
    return Table(title, CAPTION, columns, rows, [row[0].text for row in rows])


def _cells(points: Sequence[Point], panels: Sequence[Protocol], tuned: bool, most: int) -> list[Cell]:
    cells = [_cell([point for point in points if belongs(point.protocol, panel)], most) for panel in panels]
    return cells + ([_cell([point for point in points if point.protocol.fine_tuned], most)] if tuned else [])


def _cell(points: Sequence[Point], most: int) -> Cell:
    """Return the accuracy at one size under one protocol; `most` is the usual number of seeds of the arm."""
    texts = []
    for point in points:
        if point.accuracy:
            text = with_interval(percent(point.accuracy.mean), point.accuracy.ci95)
            text += f" (n = {point.accuracy.n})" if point.accuracy.n != most else ""
            # Several fine-tuning schedules at one size stay apart.
            texts.append(
                f"{text} ({point.protocol.epochs} ep.)" if point.protocol.fine_tuned and len(points) > 1 else text
            )
        else:
            texts.append(", ".join(sorted(point.failures)).replace("_", " "))
    value = points[0].accuracy.mean if len(points) == 1 and points[0].accuracy else None
    return Cell("; ".join(texts) or DASH, value)


def _size_cell(size: Size, trained: Size) -> Cell:
    note = " (trained)" if size == trained else ""
    return Cell(f"{size[0]} x {size[1]}{note}", size[0] * size[1])
