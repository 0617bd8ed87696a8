"""No positions: the arm everything else is measured against."""

from __future__ import annotations

from vitpos.position.base import Position


class NoPosition(Position):
    """Leave every hook an identity.

    Self-attention is then equivariant under permutations of the patches and the pooled output invariant. CLS and
    register tokens stay: this arm differs from the others by the position parameters only.
    """

    label = "No position embedding"
    family = "none"
    injection = "none"
