"""Two position modules in one network, as papers that add a rotary to an absolute embedding have them."""

from __future__ import annotations

from collections.abc import Callable

from torch import Tensor

from vitpos.position.base import Geometry, Grid, Position, Transfer


class Combined(Position):
    """Apply `first`, then `second`, at every hook; biases add.

    Args:
        geometry: the network served.
        first: builds a position module from `geometry=`.
        second: builds the other.
    """

    family = "combined"

    def __init__(self, geometry: Geometry, *, first: Callable[..., Position], second: Callable[..., Position]) -> None:
        super().__init__(geometry)
        self.first, self.second = first(geometry=geometry), second(geometry=geometry)
        parts = self.first, self.second
        self.label = " + ".join(part.label for part in parts)
        self.source = "; ".join(part.source for part in parts)
        self.honours = self.first.honours | self.second.honours
        if any("coordinates" in part.honours and "ntk" not in part.honours for part in parts):
            self.honours -= {"ntk"}

    @property
    def injection(self) -> str:
        """Where the two act."""
        return f"{self.first.injection} + {self.second.injection}"

    def embed(self, x: Tensor) -> Tensor:
        """Act at the stem, one after the other."""
        return self.second.embed(self.first.embed(x))

    def before_layer(self, x: Tensor, layer: int) -> Tensor:
        """Act on the input of a layer, one after the other."""
        return self.second.before_layer(self.first.before_layer(x, layer), layer)

    def rotate(self, q: Tensor, k: Tensor, layer: int) -> tuple[Tensor, Tensor]:
        """Rotate queries and keys, one after the other."""
        return self.second.rotate(*self.first.rotate(q, k, layer), layer)

    def bias(self, q: Tensor, k: Tensor, layer: int) -> Tensor | None:
        """Add the biases that exist."""
        first, second = self.first.bias(q, k, layer), self.second.bias(q, k, layer)
        if first is None or second is None:
            return second if first is None else first
        return first + second

    def resize(self, grid: Grid, transfer: Transfer) -> None:
        """Announce the grid to both."""
        super().resize(grid, transfer)
        self.first.resize(grid, transfer)
        self.second.resize(grid, transfer)
