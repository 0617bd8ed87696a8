"""Every figure and number of a table of positions, of whatever origin; `scripts/inspect_positions.py` calls it."""

from __future__ import annotations

import json
import re
import sys
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import torch
from torch import Tensor

from vitpos.evaluation.inspect_source import Source, open_source
from vitpos.evaluation.inspect_summary import in_words, summarise
from vitpos.evaluation.portrait import READING, Drawing, draw_panels, draw_position
from vitpos.evaluation.resized import draw_resize
from vitpos.evaluation.similarity import MEANING, cosine_similarity, nothing_to_draw
from vitpos.figures.table import (
    choose_dimensions,
    curves_figure,
    marked_rows_figure,
    similarities_figure,
    symmetric_limit,
    table_figure,
)
from vitpos.position import Transfer
from vitpos.position.grid import frequency_ladder

USAGE = (
    "source=RUN_FOLDER|FILE|TIMM_NAME|OWNER/NAME [key=TENSOR] [grid=HxW] [prefix=P] [seed=S] [limit=L] [to=HxW] "
    "[out=FOLDER]"
)
DEFAULTS = {"source": "", "key": "", "grid": "", "prefix": "", "seed": "0", "limit": "", "to": "", "out": ""}
MOST_DRAWN = 2048  # rows and columns of a similarity map; larger ones are thinned evenly
THETA = 10000.0  # of the sinusoid drawn for comparison (Vaswani et al. 2017)


def main(arguments: Sequence[str]) -> None:
    """Inspect what `key=value` arguments name and print the summary; problems end the program with their message."""
    try:
        print("\n".join(inspect(**parse(arguments))["words"]))
    except ValueError as error:
        sys.exit(str(error))


def parse(arguments: Sequence[str]) -> dict[str, Any]:
    """Return the arguments of `inspect` from `key=value` strings.

    Raises:
        ValueError: an unknown or missing setting, or a value that is not what it should be.
    """
    settings = dict(DEFAULTS)
    for argument in arguments:
        name, equals, value = argument.partition("=")
        if not equals or name not in settings:
            raise ValueError(f"{argument!r}: not understood. Usage: {USAGE}")
        settings[name] = value
    if not settings["source"]:
        raise ValueError(f"source= is missing. Usage: {USAGE}")
    for name in ("prefix", "seed"):
        if settings[name] and not settings[name].isdigit():
            raise ValueError(f"{name}={settings[name]}: must be a whole number, at least 0")
    try:
        limit = float(settings["limit"] or 0)
    except ValueError:
        limit = -1.0
    if limit < 0:
        raise ValueError(f"limit={settings['limit']}: must be a number above 0")
    return {
        "source": settings["source"],
        "key": settings["key"],
        "grid": _parse_grid("grid", settings["grid"]),
        "to": _parse_grid("to", settings["to"]),
        "prefix": int(settings["prefix"]) if settings["prefix"] else None,
        "seed": int(settings["seed"] or 0),
        "limit": limit or None,
        "out": Path(settings["out"]) if settings["out"] else None,
    }


def _parse_grid(name: str, value: str) -> tuple[int, int] | None:
    found = re.fullmatch(r"[\[(]?\s*(\d+)\s*[x,]\s*(\d+)\s*[\])]?", value)
    if value and (found is None or "0" in found.groups()):
        raise ValueError(f"{name}={value}: give rows and columns, as 14x14 or [14,14]")
    return (int(found[1]), int(found[2])) if found else None


def inspect(
    source: str,
    *,
    key: str = "",
    grid: tuple[int, int] | None = None,
    prefix: int | None = None,
    seed: int = 0,
    limit: float | None = None,
    to: tuple[int, int] | None = None,
    out: Path | None = None,
) -> dict[str, Any]:
    """Draw and summarise a table of positions into a folder of its own.

    Args:
        source: see `inspect_source.open_source`.
        key: which tensor, where the origin holds several.
        grid: (rows, columns) of the patches; without it a square grid is inferred if `prefix` is given.
        prefix: tokens in front of the patches; without it all that exceeds a given grid.
        seed: of the dimensions drawn as curves and of the shuffled baseline.
        limit: colours of the table run from -limit to limit; by default the 99th percentile.
        to: for a run of ours, a grid to resize to; drawn before, after and difference, under the default protocol.
        out: folder to write into, `outputs/inspect/<name>` by default.

    Returns:
        The summary as written to `summary.json`: origin, numbers (`inspect_summary.summarise`), `words`, `figures`.

    Raises:
        ValueError: an origin that can't be read, or a grid that does not fit.
    """
    opened = open_source(source, key)
    folder = out or Path("outputs", "inspect", opened.name)
    summary: dict[str, Any] = {"source": source, "key": opened.key}
    words: list[str] = []
    drawings: dict[str, Drawing] = {}
    if to and opened.position is None:
        raise ValueError(f"to={to}: only a run of ours says how its positions follow the image to another grid")
    if opened.position is not None:
        given = (grid not in (None, opened.grid)) or (prefix not in (None, opened.prefix))
        if given:
            raise ValueError(f"{source} is a run of grid {opened.grid} and prefix {opened.prefix}: leave both out")
        drawings |= draw_position(opened.position, f"Run {opened.name}.")
        if to and drawings:
            drawings["resize"] = draw_resize(opened.position, to, Transfer(), f"Run {opened.name}.")
        if opened.table is None:
            words.append(f"{opened.position.label} adds no table to the tokens.")
            words.append(
                f"Drawn instead: {', '.join(drawings)}." if drawings else f"{nothing_to_draw(opened.position)}."
            )
    if opened.table is not None:
        place, front = resolve_grid(opened, grid, prefix)
        numbers = summarise(opened.table, place, front, seed)
        words += in_words(numbers)
        if place is None:
            words.append("No tile panel: the grid is unknown; give grid=HxW, or prefix=P for a square one.")
        summary |= numbers
        drawings |= dict(draw_table(opened, place, front, seed=seed, limit=limit))
    files = [str(path) for name, drawing in drawings.items() for path in drawing.save(folder / name)]
    words.append(f"{len(files)} files in {folder}" if files else "No figure written.")
    summary |= {"words": words, "figures": sorted(drawings)}
    folder.mkdir(parents=True, exist_ok=True)
    (folder / "summary.json").write_text(json.dumps(summary, indent=2) + "\n", encoding="utf-8")
    return summary


def resolve_grid(
    source: Source, grid: tuple[int, int] | None, prefix: int | None
) -> tuple[tuple[int, int] | None, int]:
    """Return (grid, prefix) of a table: given, or said by its origin, or square behind a given prefix; never guessed.

    Raises:
        ValueError: they do not add up to the rows of the table.
    """
    assert source.table is not None
    rows = len(source.table)
    grid = grid or (source.grid if prefix in (None, source.prefix) else None)
    if prefix is None:
        prefix = source.prefix if source.prefix is not None else rows - grid[0] * grid[1] if grid else 0
        if prefix < 0:
            raise ValueError(f"grid={grid}: has {grid[0] * grid[1] if grid else 0} patches, the table {rows} rows")
    elif grid is None:
        side = round(max(rows - prefix, 0) ** 0.5)
        if side * side != rows - prefix or side == 0:
            raise ValueError(
                f"prefix={prefix}: leaves {rows - prefix} of {rows} rows, which is no square grid; give grid=HxW"
            )
        grid = (side, side)
    if grid and grid[0] * grid[1] + prefix != rows:
        raise ValueError(
            f"grid={grid} and prefix={prefix} make {grid[0] * grid[1] + prefix} rows, the table has {rows}"
        )
    return grid, prefix


def draw_table(
    source: Source, grid: tuple[int, int] | None, prefix: int, *, seed: int, limit: float | None
) -> Iterator[tuple[str, Drawing]]:
    """Yield the figures of a table by name: the table, curves, similarities, a sinusoid twice, and tiles on a grid."""
    assert source.table is not None
    table = source.table
    rows, dims = table.shape
    name = f"{source.name}, {source.key}"
    caption = f"{rows} positions, {dims} dimensions."
    limit = limit or symmetric_limit(table)
    chosen = choose_dimensions(dims, seed)
    sampled = f"{caption} {len(chosen)} dimensions drawn by seed {seed}."
    yield "table", Drawing(table_figure(table, limit, title=name, caption=caption), {"table": table})
    yield (
        "curves",
        Drawing(curves_figure(table, chosen, title=name, caption=sampled), {"table": table, "dimensions": chosen}),
    )
    steps = -(-rows // MOST_DRAWN), -(-dims // MOST_DRAWN)
    over_positions, across_dimensions = (
        cosine_similarity(table[:: steps[0]]),
        cosine_similarity(table.T[:: steps[1]]),
    )
    thinned = f" Every {steps[0]}th position and {steps[1]}th dimension." if max(steps) > 1 else ""
    yield (
        "similarities",
        Drawing(
            similarities_figure(over_positions, across_dimensions, title=name, caption=caption + thinned, step=steps),
            {"positions": over_positions, "dimensions": across_dimensions},
        ),
    )
    sinusoid = sinusoid_like(table)
    formula = f"sin (dimension 2i, solid) and cos (2i + 1, dotted) of position / {THETA:g}^(2i / {2 * -(-dims // 2)})."
    like = f"Sinusoid of the shape of {name}"
    marked = np.unique(np.linspace(0, rows - 1, 5).astype(int)).tolist()
    yield (
        "sinusoid",
        Drawing(
            marked_rows_figure(
                sinusoid, marked, 1.0, strands=2, title=f"Sinusoid of the shape of {name}", caption=formula
            ),
            {"table": sinusoid, "marked": marked},
        ),
    )
    yield (
        "sinusoid_curves",
        Drawing(
            curves_figure(sinusoid, chosen, title=like, caption=f"{formula} {sampled}"),
            {"table": sinusoid, "dimensions": chosen},
        ),
    )
    if grid and source.position is None:  # a run of ours has its panels already
        tiles = cosine_similarity(table[prefix:]).reshape(1, *grid, *grid).numpy()
        title = f"{name}: {MEANING['table']}"
        yield "tiles", draw_panels("table", ["all patches"], tiles, title, f"{READING} {caption}")


def sinusoid_like(table: Tensor) -> Tensor:
    """Return the sinusoidal table of the shape (T, D) of another: E[t, 2i] = sin(t w_i), E[t, 2i+1] = cos(t w_i)."""
    rows, dims = table.shape
    pairs = -(-dims // 2)
    phase = torch.arange(rows, dtype=torch.float64)[:, None] * frequency_ladder(pairs, THETA)
    return torch.stack((phase.sin(), phase.cos()), -1).flatten(1)[:, :dims].float()
