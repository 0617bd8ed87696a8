"""The contract between a Vision Transformer and the module that tells it where its patches are.

Letters: B batch, H W grid rows and columns, N = H*W patches, P prefix tokens (CLS, registers), T = P + N tokens,
D width, K heads, E = D / K head width, L layers.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar, Literal

from torch import Tensor, nn

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
        for name, options in (
            ("table", ("bicubic_antialias", "bicubic", "bilinear", "linear_corners")),
            ("coordinates", ("extrapolate", "rescale", "ntk")),
            ("temperature", ("off", "log_tokens")),
        ):
            value = getattr(self, name)
            if value not in options:
                raise ValueError(f"transfer.{name}={value!r}: choose one of {', '.join(options)}")


class Position(nn.Module):
    """Abstract position module: five hooks, each an identity until a method overrides it.

    A network owns exactly one instance and builds it last, so that the backbone's initial weights do not depend on it.

    Class attributes:
        label: name in tables and figures.
        family: none, additive, rotary, bias, convolutional or combined.
        honours: the factors of `Transfer` this module reacts to, out of "table" and "coordinates".
    """

    label: ClassVar[str]
    family: ClassVar[str]
    honours: ClassVar[frozenset[str]] = frozenset()

    def __init__(self, geometry: Geometry) -> None:
        super().__init__()
        self.geometry = geometry
        self.grid: Grid = geometry.grid
        self.transfer = Transfer()

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
        """Rotate queries and keys (B, K, T, E) each."""
        return q, k

    def bias(self, q: Tensor, k: Tensor, layer: int) -> Tensor | None:
        """Return what is added to the scaled attention logits, broadcastable to (B, K, T, T), or None."""
        return None

    def resize(self, grid: Grid, transfer: Transfer) -> None:
        """Announce the grid of the next images. Going away and coming back is bit-exact.

        Raises:
            ValueError: a grid without a row or a column.
        """
        if min(grid) < 1:
            raise ValueError(f"grid={grid}: must have at least one row and one column")
        self.grid, self.transfer = (int(grid[0]), int(grid[1])), transfer
