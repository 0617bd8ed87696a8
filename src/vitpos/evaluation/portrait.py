"""A position module in figures: every map its hooks yield, drawn in the same panel form."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import torch
from matplotlib.figure import Figure
from numpy.typing import ArrayLike, NDArray

from vitpos.evaluation.similarity import EXPLANATION, MEANING, Kind, PositionMap, position_maps
from vitpos.figures.attention import distance_figure
from vitpos.figures.save import save
from vitpos.figures.tiles import COSINE, Panel, Scale, panels_figure
from vitpos.position import Position

FIGURE: dict[Kind, str] = {"table": "similarity", "response": "response", "kernel": "kernel", "strength": "strength"}
LOGITS: dict[Kind, str] = {"kernel": "change of the logit", "strength": "change of the logit (RMS)"}
READING = "Tile (r, c): position (r, c) against every position, prefix tokens left out."
MAX_HEADS = 16  # full panels, one per head; beyond, or for several layers, one tile per layer and head


class Drawing(NamedTuple):
    """A figure and the numbers it shows."""

    figure: Figure
    arrays: Mapping[str, ArrayLike]

    def save(self, path: Path) -> list[Path]:
        """Write it as `figures.save` does."""
        return save(self.figure, path, self.arrays)


def draw_position(position: Position, caption: str = "") -> dict[str, Drawing]:
    """Return the figures of a module by name: `similarity`, `response`, `kernel`, `kernel_heads`, `strength`, ...

    Empty where the module tells no two patches apart (`evaluation.similarity.nothing_to_draw` says so in words).

    Args:
        position: the module, with the weights and at the grid to draw.
        caption: where it comes from, below each figure.
    """
    maps = position_maps(position)
    drawings: dict[str, Drawing] = {}
    for kind in MEANING:
        chosen = [entry for entry in maps if entry.kind == kind]
        if not chosen:
            continue
        title = f"{position.label}: {MEANING[kind]}"
        names, tiles = [entry.where for entry in chosen], np.stack([entry.tiles.numpy() for entry in chosen])
        if all(_alike(entry) for entry in chosen):
            heads = " All heads are alike." if len(chosen[0].values) > 1 else ""
        else:
            heads = " Mean over heads."
            drawings[f"{FIGURE[kind]}_heads"] = _draw_heads(chosen, title, f"{EXPLANATION[kind]} {caption}")
        about = f"{READING} {EXPLANATION[kind]}{heads} {caption}"
        drawings[FIGURE[kind]] = draw_panels(kind, names, tiles, title, about)
    return drawings


def draw_attention(diagnostics: Mapping[str, Any], caption: str = "") -> Drawing:
    """Draw the attention distances of a record's diagnostics (`evaluation.diagnostics.diagnose`)."""
    distances = np.asarray(diagnostics["attention_distance"])
    uniform = diagnostics["attention_distance_uniform"]
    figure = distance_figure(distances, uniform, title="Mean attention distance", caption=caption)
    return Drawing(figure, {"distances": distances, "uniform": uniform})


def draw_panels(
    kind: Kind, names: Sequence[str], tiles: NDArray[np.float32], title: str, caption: str, *, per_row: int = 0
) -> Drawing:
    """Draw a panel (H, W, H, W) per name from tiles (n, H, W, H, W), coloured as the kind demands."""
    scale = Scale.of([tiles], LOGITS[kind]) if kind in LOGITS else COSINE
    panels = [Panel(name, tile) for name, tile in zip(names, tiles, strict=True)]
    figure = panels_figure(panels, scale, title=title, caption=caption, per_row=per_row)
    return Drawing(figure, {"tiles": tiles, "names": list(names)})


def _alike(entry: PositionMap) -> bool:
    """Tell whether all heads hold the same map."""
    return torch.equal(entry.values, entry.values[:1].expand_as(entry.values))


def _draw_heads(maps: list[PositionMap], title: str, caption: str) -> Drawing:
    """Draw a full panel per head, or a tile per layer and head where that would be too many panels."""
    kind, (rows, columns), heads = maps[0].kind, maps[0].grid, len(maps[0].values)
    if len(maps) == 1 and heads <= MAX_HEADS:
        names = [f"head {head}" for head in range(heads)]
        return draw_panels(kind, names, maps[0].head_tiles.numpy(), f"{title}, {maps[0].where}", f"{READING} {caption}")
    centre = (rows // 2, columns // 2)
    layers = [entry.where for entry in maps]
    tiles = np.stack([entry.head_tiles[:, *centre].numpy() for entry in maps])  # layers K H W
    figure = panels_figure(
        [Panel(f"patch at row {centre[0]}, column {centre[1]} against every patch", tiles)],
        Scale.of([tiles], LOGITS[kind]),
        title=f"{title}, per head",
        caption=caption,
        rows=layers,
        columns="head",
    )
    return Drawing(figure, {"tiles": tiles, "names": layers})
