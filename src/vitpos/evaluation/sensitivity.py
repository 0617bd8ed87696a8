"""What a trained network does without its position module, at test time."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

from torch import Tensor

from vitpos.models.vit import ViT
from vitpos.position import Position


@contextmanager
def silenced(model: ViT) -> Iterator[ViT]:
    """Give the network a position module whose every hook is the identity, and its own back afterwards."""
    own = model.position
    silent = Position(own.geometry)
    silent.resize(own.grid, own.transfer)
    model.position = silent
    try:
        yield model
    finally:
        model.position = own


def logit_change(logits: Tensor, without: Tensor) -> float:
    """Return how much the logits (B, classes) depend on the module: the relative root mean square of their change.

    sqrt(sum |l - l'|^2 / sum |l|^2) over images and classes, with l centred per image because softmax ignores a
    constant; 0 when nothing changed, about 1 when the change is as large as the logits. Zero logits give 0.
    """
    centred, other = (values.double() - values.double().mean(-1, keepdim=True) for values in (logits, without))
    scale = centred.square().sum()
    return float(((centred - other).square().sum() / scale).sqrt()) if scale > 0 else 0.0
