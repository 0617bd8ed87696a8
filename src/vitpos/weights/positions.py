"""Which position module of ours is a timm ViT's, with which numbers, and where its weights go."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

from timm.layers import RotaryEmbeddingDinoV3, RotaryEmbeddingMixed
from torch import Tensor


@dataclass(frozen=True)
class Positions:
    """A position module as settings.

    Attributes:
        name: file in `conf/position`.
        changes: what differs from that file.
        places: name of a weight of timm's -> name of ours and what to do to it.
    """

    name: str
    changes: dict[str, Any] = field(default_factory=dict)
    places: dict[str, tuple[str, Callable[[Tensor], Tensor]]] = field(default_factory=dict)


def describe_positions(network: Any) -> Positions:
    """Return the position module that does what a timm ViT's do.

    Args:
        network: one that `refusal.refuse_unknown` lets pass.
    """
    table = None if network.pos_embed is None else _table(network)
    rope = None if getattr(network, "rope", None) is None else _rope(network)
    if table is None or rope is None:
        return table or rope or Positions("none")
    return Positions(
        f"{rope.name}_ape",
        {"first": table.changes, "second": rope.changes},
        {
            timm_name: (f"{part}.{name}", change)
            for part, module in (("first", table), ("second", rope))
            for timm_name, (name, change) in module.places.items()
        },
    )


def _table(network: Any) -> Positions:
    """Return the learned table; timm keeps it as (1, T, D), with rows for the prefix unless no_embed_class."""
    prefix = "zero" if network.no_embed_class else "learned"
    return Positions("learned_1d", {"prefix": prefix}, {"pos_embed": ("tables.0", lambda table: table[0])})


def _rope(network: Any) -> Positions:
    rope = network.rope
    if isinstance(rope, RotaryEmbeddingMixed):
        # Ours has x in front of y; timm has it so with xy.
        swap = rope.grid_indexing == "ij"
        place = ("frequencies", lambda freqs: freqs.flip(0) if swap else freqs)
        changes = {"theta": float(rope.temperature), "pairing": "interleaved"}
        return Positions("rope_mixed", changes, {"rope.freqs": place})
    if isinstance(rope, RotaryEmbeddingDinoV3):
        return Positions(
            "rope_dinov3",
            {
                "min_period": 1.0,
                "max_period": float(rope.temperature),
                "endpoint": False,
                "normalise": rope.normalize_coords,
                "shift": rope.shift_coords or 0.0,
                "jitter": rope.jitter_coords or 1.0,
                "rescale": rope.rescale_coords or 1.0,
            },
        )
    stretch = 1.0 if rope.ref_feat_shape is None else rope.ref_feat_shape[0] / rope.feat_shape[0]
    return Positions(
        "rope_axial",
        {
            "theta": float(rope.temperature),
            "max_frequency": stretch,
            "coordinates": "integer",
            "offset": float(rope.grid_offset),
            "order": rope.grid_indexing,
            "pairing": "half" if network.blocks[0].attn.rotate_half else "interleaved",
        },
    )
