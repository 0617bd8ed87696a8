"""Cost of a training step against tokens, depth and heads, beside theory."""

from __future__ import annotations

import dataclasses
from collections.abc import Iterator
from pathlib import Path

from rich.progress import track

from vitpos.benchmark.clock import Clock, without_collecting
from vitpos.benchmark.cost_model import Shape
from vitpos.benchmark.networks import network, position_names
from vitpos.benchmark.settings import Settings
from vitpos.benchmark.slopes import Curve, draw_curves
from vitpos.benchmark.step import TrainingStep
from vitpos.benchmark.table import Table
from vitpos.figures.save import save

ROWS = (4, 6, 8, 12, 16)  # of the square grids
DEPTHS = (2, 4, 8)
BATCH = 8  # images of a step on a CPU
REPRESENTATIVES = ("none", "learned_1d", "rope_axial", "relative_1d", "relative_2d")  # of the families


def measure(settings: Settings) -> list[Table]:
    """Return one row per module and axis; the figure is written beside the table."""
    modules = position_names(settings.modules or REPRESENTATIVES)
    if settings.place.type == "cpu":
        settings = dataclasses.replace(settings, batch=min(settings.batch, BATCH))
    plan = [(module, axis, sizes) for axis, sizes in _axes(settings) for module in modules]
    curves = [_curve(settings, *entry) for entry in track(plan, description="scaling", transient=True)]
    note = (
        f"Exponents of a training step's time in log-log; theory: of its matrix products without positions. Width "
        f"{settings.dim}, {settings.batch} images; where they do not grow {settings.depth} layers, {settings.heads} "
        f"heads, {(settings.image_size // settings.patch_size) ** 2 + 1} tokens; {settings.precision} on "
        f"{settings.device}."
    )
    figure, numbers = draw_curves(curves, note)
    save(figure, Path(settings.output) / "scaling", numbers)
    rows = [
        {
            "name": curve.module,
            "axis": curve.axis,
            "slope": curve.measured,
            "theory": curve.theory,
            "sizes": " ".join(map(str, curve.sizes)),
            "step_ms": " ".join(f"{1000 * seconds:.1f}" for seconds in curve.seconds),
        }
        for curve in curves
    ]
    return [Table("scaling", "Cost against tokens, depth and heads", rows, note)]


def _axes(settings: Settings) -> Iterator[tuple[str, tuple[int, ...]]]:
    yield "tokens", tuple(rows**2 + 1 for rows in ROWS)
    yield "depth", DEPTHS
    heads = (1, 2, 3, 4, 6, 8, 12, 16)
    yield "heads", tuple(count for count in heads if settings.dim % (4 * count) == 0)  # 4: what rotations need


def _curve(settings: Settings, module: str, axis: str, sizes: tuple[int, ...]) -> Curve:
    clock = Clock(settings.place, settings.threads)
    seconds, flops = list[float](), list[float]()
    for size in sizes:
        grown = dict(zip(ROWS, (rows * settings.patch_size for rows in ROWS), strict=True))
        image = grown[round((size - 1) ** 0.5)] if axis == "tokens" else settings.image_size
        current = dataclasses.replace(settings, image_size=image)
        changed = {axis: size} if axis != "tokens" else {}
        step = TrainingStep(network(module, current, **changed), current)
        step()
        with without_collecting():
            seconds.append(min(clock.seconds(step) for _ in range(settings.rounds)))
        patches = (image // settings.patch_size) ** 2
        depth = changed.get("depth", settings.depth)
        flops.append(Shape(patches, settings.dim, depth, 3 * settings.patch_size**2, settings.classes).training_flops)
    return Curve(module, axis, sizes, tuple(seconds), tuple(flops))
