"""A position module in figures: every map its hooks yield, drawn in the same panel form."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import NamedTuple

import numpy as np
from matplotlib.figure import Figure
from numpy.typing import ArrayLike, NDArray

from vitpos.evaluation.similarity import MEANING, Kind, PositionMap, position_maps
from vitpos.figures.save import save
from vitpos.figures.tiles import COSINE, Panel, Scale, panels_figure
from vitpos.position import Position

FIGURE: dict[Kind, str] = {"table": "similarity", "response": "response", "kernel": "kernel", "strength": "strength"}
LOGITS: dict[Kind, str] = {"kernel": "attention logit", "strength": "attention logit (RMS)"}
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
        caption: line below each figure.
    """
    maps = position_maps(position)
    drawings: dict[str, Drawing] = {}
    for kind in MEANING:
        chosen = [entry for entry in maps if entry.kind == kind]
        if not chosen:
            continue
        title = f"{position.label}: {MEANING[kind]}"
        drawings[FIGURE[kind]] = draw_panels(
            kind, [entry.where for entry in chosen], np.stack([entry.tiles.numpy() for entry in chosen]), title, caption
        )
        if len(chosen[0].values) > 1:
            drawings[f"{FIGURE[kind]}_heads"] = _draw_heads(chosen, title, caption)
    return drawings


def draw_panels(kind: Kind, names: list[str], tiles: NDArray[np.float32], title: str, caption: str) -> Drawing:
    """Draw a panel (H, W, H, W) per name from tiles (n, H, W, H, W), coloured as the kind demands."""
    scale = Scale.of([tiles], LOGITS[kind]) if kind in LOGITS else COSINE
    panels = [Panel(name, tile) for name, tile in zip(names, tiles, strict=True)]
    return Drawing(panels_figure(panels, scale, title=title, caption=caption), {"tiles": tiles, "names": names})


def _draw_heads(maps: list[PositionMap], title: str, caption: str) -> Drawing:
    kind, (rows, columns) = maps[0].kind, maps[0].grid
    heads = len(maps[0].values)
    if len(maps) == 1 and heads <= MAX_HEADS:
        names = [f"head {head}" for head in range(heads)]
        return draw_panels(kind, names, maps[0].head_tiles.numpy(), f"{title}, {maps[0].where}", caption)
    centre = (rows // 2, columns // 2)
    tiles = np.stack([entry.head_tiles[:, *centre].numpy() for entry in maps])  # layers K H W
    # Every entry stands for a run of layers; name the first of each run by its place in the list below the figure.
    layers = ", ".join(f"{index} = {entry.where}" for index, entry in enumerate(maps))
    figure = panels_figure(
        [Panel(f"query patch at row {centre[0]}, column {centre[1]}", tiles)],
        Scale.of([tiles], LOGITS[kind]),
        title=f"{title}, per head",
        caption=f"Rows: {layers}. {caption}",
        rows="entry",
        columns="head",
    )
    return Drawing(figure, {"tiles": tiles, "names": [entry.where for entry in maps]})
