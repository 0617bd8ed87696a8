"""A penalty on the distance between patches, steeper in some heads than in others."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Literal

import torch
from torch import Tensor, nn

from vitpos.position.base import Geometry, Position, Transfer
from vitpos.position.checks import require, require_choice
from vitpos.position.grid import alibi_slopes, pad_prefix, patch_coordinates
from vitpos.position.once import OncePerPass


class Alibi2D(Position):
    """Add -m_h |(dy, dx)| to the logits, the Euclidean distance in patches.

    ALiBi of Press et al. 2022 in two dimensions. Pairs with a prefix token get zero. `rescale` measures distances in
    patches of the trained grid.

    Args:
        geometry: the network served.
        slopes: `geometric` is the published sequence, which covers few heads poorly; `learned` starts there and learns
            one slope per head for all layers; a list gives one fixed slope per head.

    Raises:
        ValueError: an unknown choice, or a list that does not have one slope per head.
    """

    label = "ALiBi 2-D"
    source = "Press et al. 2022 (ALiBi), in two dimensions"
    family = "bias"
    injection = "bias"
    honours = frozenset({"coordinates"})
    distance: Tensor
    slopes: Tensor

    def __init__(
        self, geometry: Geometry, *, slopes: Literal["geometric", "learned"] | Sequence[float] = "geometric"
    ) -> None:
        super().__init__(geometry)
        if isinstance(slopes, str):
            require_choice("slopes", slopes, ("geometric", "learned"))
            self._fixed = alibi_slopes(geometry.heads).float()
        else:
            count = len(slopes)
            require(count == geometry.heads, f"slopes={list(slopes)}: give one for each of {geometry.heads} heads")
            self._fixed = torch.tensor(list(slopes), dtype=torch.float32, device="cpu")
        self._learned = slopes == "learned"
        if self._learned:
            self.slopes = nn.Parameter(self._fixed.to(torch.get_default_device()))
        self._once = OncePerPass(geometry.depth)
        self.resize(geometry.grid, Transfer())

    def derive(self) -> Mapping[str, Tensor | None]:
        """Distances between patches (T, T), zero for prefix tokens, and the slopes (K,) unless they are learned."""
        position = patch_coordinates(self.grid, self.geometry.grid, self.transfer.coordinates)  # N 2
        distance = (position[:, None] - position[None]).square().sum(-1).sqrt().float()  # N N
        tables: dict[str, Tensor | None] = {"distance": pad_prefix(distance, self.geometry.prefix, dims=2)}
        return tables if self._learned else {**tables, "slopes": self._fixed}

    def bias(self, q: Tensor, k: Tensor, layer: int) -> Tensor:
        """Scale the distances by each head's slope, once for all layers, (1, K, T, T)."""
        return self._once(layer, lambda: (-self.slopes.float()[:, None, None] * self.distance).to(q.dtype)[None])
