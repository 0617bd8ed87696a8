"""Accuracy at other image sizes: zero-shot under each protocol, and fine-tuned. Protocols never share a row."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from statistics import fmean

from vitpos.record import TransferRow
from vitpos.report.columns import Field
from vitpos.report.grouping import base_title, make_sections, name_arms
from vitpos.report.protocols import NOT_APPLICABLE, Protocol
from vitpos.report.rows import Analysis
from vitpos.report.statistics import Summary, summarise
from vitpos.report.study import Run, Study

Size = tuple[int, int]


@dataclass(frozen=True)
class Point:
    """An arm at one size under one protocol, over seeds.

    Attributes:
        section: title of the section the networks were trained in, before any fine-tuning.
        arm: name of the arm.
        trained: image size the network was trained at, before any fine-tuning.
        size: image size evaluated.
        protocol: how.
        accuracy: top-1 over seeds; None if no evaluation succeeded.
        nll: mean negative log-likelihood; None where a seed lacks it.
        images: test images; None if seeds disagree.
        tokens: tokens per image.
        images_per_second: mean throughput.
        peak_memory_mib: mean peak memory.
        failures: status -> number of seeds, for those other than ok.
        seeds: seeds averaged over.
    """

    section: str
    arm: str
    trained: Size
    size: Size
    protocol: Protocol
    accuracy: Summary | None
    nll: float | None
    images: int | None
    tokens: int | None
    images_per_second: float | None
    peak_memory_mib: float | None
    failures: dict[str, int]
    seeds: tuple[int, ...]


def transfer_points(study: Study, analyses: Sequence[Analysis]) -> list[Point]:
    """Collect the points of a study: of the runs in its tables, and of the parents its fine-tuned runs came from."""
    points = []
    listed = set()
    for analysis in analyses:
        for row in analysis.rows:
            points += _points(analysis.section.title, row.arm, row.runs)
            listed |= {run.name for run in row.runs}
    parents = {run.record.parent.name for run in study.runs if run.record.parent}
    outside = [study.parents[name] for name in sorted(parents & study.parents.keys() - listed)]
    outside = [run for run in outside if run.record.status == "finished"]
    if outside:
        arms = name_arms(outside)
        for section in make_sections(outside, arms, split_all=True):
            for arm, runs in section.arms.items():
                points += _points(section.title, arm, runs)
    return points


def transfer_fields(points: Iterable[Point]) -> list[dict[str, Field]]:
    """Return the rows of `transfer.csv`, one per position, size and protocol."""
    return [
        {
            "position": point.arm,
            "height": point.size[0],
            "width": point.size[1],
            "protocol": point.protocol.text,
            "n": point.accuracy.n if point.accuracy else 0,
            "top1_mean": point.accuracy.mean if point.accuracy else None,
            "top1_ci95": point.accuracy.ci95 if point.accuracy else None,
            "table": point.protocol.table,
            "coordinates": point.protocol.coordinates,
            "temperature": point.protocol.temperature,
            "fine_tuned_epochs": point.protocol.epochs,
            "trained_height": point.trained[0],
            "trained_width": point.trained[1],
            "top1_sd": point.accuracy.sd if point.accuracy else None,
            "nll_mean": point.nll,
            "images": point.images,
            "tokens": point.tokens,
            "images_per_second": point.images_per_second,
            "peak_memory_mib": point.peak_memory_mib,
            "not_ok": "; ".join(f"{status}: {number}" for status, number in sorted(point.failures.items())),
            "section": point.section,
        }
        for point in points
    ]


def _points(section: str, arm: str, runs: Sequence[Run]) -> list[Point]:
    rows: dict[tuple[Size, Protocol], list[tuple[Run, TransferRow]]] = defaultdict(list)
    for run in runs:
        for row in run.record.transfer:
            rows[(row.height, row.width), Protocol(row.table, row.coordinates, row.temperature)].append((run, row))
        if run.record.parent:
            tuned = _fine_tuned(run)
            rows[run.record.data.image_size, tuned].append((run, _own_row(run, tuned)))
    return [
        _point(section, arm, size, protocol, found)
        for (size, protocol), found in sorted(rows.items(), key=lambda item: (item[0][1].order, item[0][0]))
    ]


def _point(section: str, arm: str, size: Size, protocol: Protocol, found: list[tuple[Run, TransferRow]]) -> Point:
    good = [(run, row) for run, row in found if not _failure(row)]
    images = {row.n for _, row in good if row.n}
    first = found[0][0]
    parent = first.record.parent if protocol.fine_tuned else None
    trained = parent.image_size if parent else first.record.data.image_size
    return Point(
        section=base_title(first, trained) if parent else section,
        arm=arm,
        trained=trained,
        size=size,
        protocol=protocol,
        accuracy=summarise([row.top1 for _, row in good if row.top1 is not None]),
        nll=_mean([row.nll for _, row in good]),
        images=images.pop() if len(images) == 1 else None,
        tokens=found[0][1].tokens,
        images_per_second=_mean([row.images_per_second for _, row in good]),
        peak_memory_mib=_mean([row.peak_memory_mib for _, row in good]),
        failures=dict(Counter(bad for _, row in found if (bad := _failure(row)))),
        seeds=tuple(sorted(run.seed for run, _ in good)),
    )


def _failure(row: TransferRow) -> str:
    """Return why a row has no accuracy; empty where it has one."""
    if row.status != "ok":
        return row.status
    return "no accuracy" if row.top1 is None else ""


def _fine_tuned(run: Run) -> Protocol:
    """Return the protocol a run was fine-tuned under: how its parent's positions followed to the new size."""
    table, coordinates, temperature = (
        run.conditions.get(f"resize.{name}", default)
        for name, default in (("table", NOT_APPLICABLE), ("coordinates", NOT_APPLICABLE), ("temperature", "off"))
    )
    return Protocol(table, coordinates, temperature, fine_tuned=True, epochs=run.record.epochs or 0)


def _own_row(run: Run, protocol: Protocol) -> TransferRow:
    """Return the test result of a fine-tuned run as a row."""
    height, width = run.record.data.image_size
    return TransferRow(
        height=height,
        width=width,
        coordinates=protocol.coordinates,
        table=protocol.table,
        temperature=protocol.temperature,
        top1=run.accuracy,
        nll=run.metric("test/nll"),
    )


def _mean(values: list[float | None]) -> float | None:
    known = [value for value in values if value is not None]
    return fmean(known) if known and len(known) == len(values) else None
