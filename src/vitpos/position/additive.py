"""Addition of a code to the tokens, written once for all additive modules."""

from __future__ import annotations

from typing import Literal, get_args

import torch
from torch import Tensor, nn

from vitpos.position.base import Geometry, Position
from vitpos.position.checks import require, require_choice

Injection = Literal["stem", "every", "shared"]


def normal_tables(copies: int, shape: tuple[int, ...], std: float) -> nn.ParameterList:
    """Return learned tables with entries from a normal distribution around zero.

    Raises:
        ValueError: a negative `std`.
    """
    require(std >= 0, f"std={std}: must not be negative")
    return nn.ParameterList(nn.init.normal_(torch.empty(shape), std=std) for _ in range(copies))


class Additive(Position):
    """Abstract module that adds a code to the tokens: at the stem, or at the input of every layer.

    A subclass implements `code`; `copies` says how many separately learned tables it needs.

    Args:
        geometry: the network served.
        inject: `stem` adds once; `every` adds one separate table per layer at that layer's input; `shared` adds the
            same table at every layer's input.

    Raises:
        ValueError: an unknown `inject`.
    """

    family = "additive"

    def __init__(self, geometry: Geometry, inject: Injection) -> None:
        super().__init__(geometry)
        require_choice("inject", inject, get_args(Injection))
        self.inject = inject

    @property
    def injection(self) -> str:
        """The value of `inject`."""
        return self.inject

    @property
    def copies(self) -> int:
        """Separately learned tables: L for `every`, otherwise 1."""
        return self.geometry.depth if self.inject == "every" else 1

    def code(self, copy: int) -> Tensor:
        """Return the code of all tokens (T, D) from table number `copy`, at the current grid."""
        raise NotImplementedError

    def embed(self, x: Tensor) -> Tensor:
        """Add the code at the stem."""
        return x + self.code(0).to(x.dtype) if self.inject == "stem" else x

    def before_layer(self, x: Tensor, layer: int) -> Tensor:
        """Add the layer's own or the shared code."""
        if self.inject == "stem":
            return x
        return x + self.code(layer if self.inject == "every" else 0).to(x.dtype)
