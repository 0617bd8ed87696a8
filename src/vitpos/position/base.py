"""The contract between a Vision Transformer and the module that tells it where its patches are.

Letters: B batch, H W grid rows and columns, N = H*W patches, P prefix tokens (CLS, registers), T = P + N tokens,
D width, K heads, E = D / K head width, L layers.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from itertools import chain
from typing import Literal, Self, get_args

import torch
from torch import Tensor, nn

from vitpos.position.checks import require, require_choice

Grid = tuple[int, int]
TableResampling = Literal["bicubic_antialias", "bicubic", "bilinear", "linear_corners"]
Coordinates = Literal["extrapolate", "rescale", "ntk"]
Temperature = Literal["off", "log_tokens"]


@dataclass(frozen=True)
class Geometry:
    """What a position module may know of the network it serves.

    Attributes:
        grid: (rows, columns) of patches at the training size.
        prefix: CLS and register tokens in front of the patches.
        dim: token width D.
        heads: attention heads K.
        depth: transformer layers L.
    """

    grid: Grid
    prefix: int
    dim: int
    heads: int
    depth: int

    def __post_init__(self) -> None:
        """Refuse sizes no network can have."""
        for name, value, least in (
            ("grid rows", self.grid[0], 1),
            ("grid columns", self.grid[1], 1),
            ("prefix", self.prefix, 0),
            ("dim", self.dim, 1),
            ("heads", self.heads, 1),
            ("depth", self.depth, 1),
        ):
            if value < least:
                raise ValueError(f"{name}={value}: must be at least {least}")
        if self.dim % self.heads:
            raise ValueError(f"dim={self.dim} is not divisible by heads={self.heads}")

    @property
    def head_dim(self) -> int:
        """Width E of one head."""
        return self.dim // self.heads

    @property
    def patches(self) -> int:
        """Number N of patches."""
        return self.grid[0] * self.grid[1]

    @property
    def tokens(self) -> int:
        """Number T of tokens, prefix included."""
        return self.prefix + self.patches


@dataclass(frozen=True)
class Transfer:
    """How positions follow the image to another size; every stored number names these three factors.

    Attributes:
        table: resampling of learned tables and bias tables.
        coordinates: what computed codes do with coordinates beyond the trained grid.
        temperature: `log_tokens` multiplies attention logits by log(T_new) / log(T_trained).
    """

    table: TableResampling = "bicubic_antialias"
    coordinates: Coordinates = "extrapolate"
    temperature: Temperature = "off"

    def __post_init__(self) -> None:
        """Refuse unknown protocols."""
        for name, options in (("table", TableResampling), ("coordinates", Coordinates), ("temperature", Temperature)):
            require_choice(f"transfer.{name}", getattr(self, name), get_args(options))


class Position(nn.Module):
    """Abstract position module: five hooks, each an identity until a method overrides it.

    A network owns exactly one instance and builds it last, so that the backbone's initial weights do not depend on it.
    A subclass ends its constructor with `self.resize(geometry.grid, Transfer())` if it derives tables.

    Attributes:
        label: name in tables and figures.
        source: the publication, author and year.
        family: none, additive, rotary, bias, convolutional or combined.
        honours: the factors of `Transfer` this module reacts to, out of "table" and "coordinates"; "ntk" besides
            "coordinates" says that it has frequencies to stretch.
    """

    label: str
    source: str = ""
    family: str
    honours: frozenset[str] = frozenset()

    def __init__(self, geometry: Geometry) -> None:
        super().__init__()
        self.geometry = geometry
        self.grid: Grid = geometry.grid
        self.transfer = Transfer()
        self._derived_for: tuple[object, ...] | None = None

    @property
    def injection(self) -> str:
        """Where the module acts, for the record: none, stem, every, shared, rotate, bias, layer K, ..."""
        raise NotImplementedError

    def embed(self, x: Tensor) -> Tensor:
        """Act once on the tokens (B, T, D) at the stem."""
        return x

    def before_layer(self, x: Tensor, layer: int) -> Tensor:
        """Act on the tokens (B, T, D) that enter layer `layer` (0 .. L-1)."""
        return x

    def rotate(self, q: Tensor, k: Tensor, layer: int) -> tuple[Tensor, Tensor]:
        """Rotate queries and keys (B, K, T, E) each.

        In the last layer of a network that pools a CLS token, `q` holds that token alone: nobody reads the others.
        """
        return q, k

    def bias(self, q: Tensor, k: Tensor, layer: int) -> Tensor | None:
        """Return what is added to the scaled attention logits, broadcastable to (B, K, T, T), or None.

        Where `q` holds fewer tokens (see `rotate`), only as many rows of the result are needed; more do no harm.
        """
        return None

    def resize(self, grid: Grid, transfer: Transfer) -> None:
        """Announce the grid of the next images. Going away and coming back is bit-exact.

        Raises:
            ValueError: a grid without a row or a column, or `ntk` for a module without frequencies.
        """
        require(min(grid) >= 1, f"grid={grid}: must have at least one row and one column")
        if transfer.coordinates == "ntk" and "coordinates" in self.honours and "ntk" not in self.honours:
            raise ValueError(
                f"transfer.coordinates='ntk': {self.label} has no frequencies to stretch; choose extrapolate or rescale"
            )
        self.grid, self.transfer = (int(grid[0]), int(grid[1])), transfer
        reacts_to = [getattr(transfer, factor) for factor in ("table", "coordinates") if factor in self.honours]
        if self._derived_for != (*self.grid, *reacts_to):
            self._derived_for = (*self.grid, *reacts_to)
            self._rebuild()

    def derive(self) -> Mapping[str, Tensor | None]:
        """Compute, on the CPU and in float32, the tables that follow from the settings, `grid` and `transfer`.

        They become non-persistent buffers of these names: no checkpoint holds them, a move or a cast keeps them exact.
        """
        return {}

    def _rebuild(self) -> None:
        here = next(chain(self.parameters(), self.buffers()), None)
        device = torch.get_default_device() if here is None else here.device
        with torch.inference_mode(False):  # a size announced during inference must not spoil later training
            for name, table in self.derive().items():
                self.register_buffer(name, None if table is None else table.to(device), persistent=False)

    def _apply(self, fn: Callable[[Tensor], Tensor], recurse: bool = True) -> Self:
        """Move or cast, then derive again: `.bfloat16()` may round a finished result, never a phase."""
        super()._apply(fn, recurse)  # type: ignore[no-untyped-call]
        self._rebuild()
        return self
