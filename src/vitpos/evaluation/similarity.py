"""What a position module tells a network apart, seen through the contract's hooks alone.

Additive hooks are shown by the cosine similarity of what they add, attention hooks by the position-only attention
kernel. A module that a newcomer writes is covered without another line, because nothing here knows any module by
name.

Letters: B contents, P prefix, H W grid, N = H*W, T = P + N, D width, K heads.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import partial
from typing import Literal, NamedTuple

import torch
from torch import Tensor

from vitpos.evaluation.inference import evaluating
from vitpos.evaluation.kernel import attention_kernel, contents, device_of
from vitpos.position import Position

Kind = Literal["table", "response", "kernel", "strength"]
Hook = Callable[[Tensor], Tensor]

MEANING: dict[Kind, str] = {
    "table": "similarity of position vectors",
    "response": "similarity of responses to uniform content",
    "kernel": "position-only attention kernel",
    "strength": "strength of the contextual position bias",
}
EXPLANATION: dict[Kind, str] = {
    "table": "Cosine similarity of the vectors that the module adds.",
    "response": "The module adds no table: cosine similarity of what it adds when all tokens hold the same content, "
    "over all contents.",
    "kernel": "The module acts inside attention: what it adds to the logits when all tokens hold the same content, "
    "mean over contents of unit variance per channel.",
    "strength": "Part of the position bias that depends on content: root mean square over contents of unit variance "
    "per channel.",
}


@dataclass(frozen=True)
class PositionMap:
    """What one hook says about every pair of patches.

    Attributes:
        kind: what the values are; see `MEANING`.
        where: the layers it holds for: `stem`, `layer 3`, `layers 0-5`.
        grid: (H, W).
        values: (K, N, N) per head for attention hooks, (1, N, N) for additive ones, prefix tokens left out.
    """

    kind: Kind
    where: str
    grid: tuple[int, int]
    values: Tensor

    @property
    def head_tiles(self) -> Tensor:
        """Tiles (K, H, W, H, W): [k, r, c] is the map of position (r, c) against every position, in head k."""
        return self.values.reshape(-1, *self.grid, *self.grid)

    @property
    def tiles(self) -> Tensor:
        """The same averaged over heads, (H, W, H, W)."""
        return self.head_tiles.mean(0)


def cosine_similarity(table: Tensor) -> Tensor:
    """Return the cosine similarity (N, N) of the rows of a table (N, D); undefined (NaN) where a row is zero."""
    return _normalise(table.double() @ table.double().T).float()


def position_maps(position: Position) -> list[PositionMap]:
    """Return everything the module's hooks say about pairs of patches, at its present grid.

    Tables come first, then responses, kernels and strengths, each in the network's order; neighbouring layers that say
    exactly the same come as one. The list is empty for a module whose hooks, with its present weights, tell no two
    patches apart.
    """
    prefix = position.geometry.prefix
    found = [
        _Finding("table", where, cosine_similarity(table[prefix:])[None])
        for where, table in added_tables(position)
        if _varies(table[prefix:].T)
    ]
    for where, hook in _additive_hooks(position):
        if not _is_additive(position, hook):
            found.append(_Finding("response", where, _response_similarity(position, hook)[None]))
    kernels = [(layer, *attention_kernel(position, layer)) for layer in range(position.geometry.depth)]
    found += [_Finding("kernel", f"layer {layer}", mean) for layer, mean, _ in kernels]
    found += [_Finding("strength", f"layer {layer}", strength) for layer, _, strength in kernels]
    return [
        PositionMap(finding.kind, finding.where, position.grid, finding.values.cpu())
        for finding in _merge(found)
        if _varies(finding.values)
    ]


def added_tables(position: Position) -> list[tuple[str, Tensor]]:
    """Return (where, table (T, D)) for each hook that adds the same vectors whatever the content.

    A table is what the hook makes of zeros. Layers that add equal tables come as one entry, hooks that add nothing as
    none.
    """
    tables = [
        _Finding("table", where, _apply(position, hook, _zeros(position))[0])
        for where, hook in _additive_hooks(position)
        if _is_additive(position, hook)
    ]
    return [(finding.where, finding.values) for finding in _merge(tables)]


def nothing_to_draw(position: Position) -> str:
    """Return the sentence that stands where `position_maps` is empty."""
    return f"{position.label}: nothing to draw, with these weights no hook of this module tells two patches apart"


class _Finding(NamedTuple):
    kind: Kind
    where: str
    values: Tensor


def _additive_hooks(position: Position) -> Iterator[tuple[str, Hook]]:
    """Yield (where, hook) for the stem and for each layer, hooks that return their input unchanged left out."""
    hooks: list[tuple[str, Hook]] = [("stem", position.embed)]
    for layer in range(position.geometry.depth):
        hooks.append((f"layer {layer}", partial(position.before_layer, layer=layer)))
    probe = _probe(position)
    for where, hook in hooks:
        if not torch.equal(_apply(position, hook, probe), probe):
            yield where, hook


def _is_additive(position: Position, hook: Hook) -> bool:
    """Tell whether a hook adds the same to any content."""
    probe = _probe(position)
    added = _apply(position, hook, probe) - probe
    return torch.allclose(added, _apply(position, hook, _zeros(position)), rtol=1e-3, atol=1e-5)


def _response_similarity(position: Position, hook: Hook) -> Tensor:
    """Return the cosine similarity (N, N) of the responses to all contents laid end to end, one long row per patch."""
    dim, prefix, patches = position.geometry.dim, position.geometry.prefix, position.grid[0] * position.grid[1]
    gram = torch.zeros(patches, patches, dtype=torch.float64, device=device_of(position))
    for content in contents(dim, (prefix + patches) * dim, gram.device):
        x = content[:, None].expand(-1, prefix + patches, -1).contiguous()  # B T D
        added = (_apply(position, hook, x) - x)[:, prefix:].double()
        gram += torch.einsum("bid,bjd->ij", added, added)
    return _normalise(gram).float()


def _normalise(gram: Tensor) -> Tensor:
    """Turn inner products (N, N) into cosines."""
    norms = gram.diagonal().sqrt()
    return gram / norms[:, None] / norms[None]


def _varies(values: Tensor) -> bool:
    """Tell whether any row differs along its last dimension; what is constant along the keys cancels in attention."""
    values = values.nan_to_num()
    spread = values.amax(-1) - values.amin(-1)
    return bool((spread > 1e-5 * values.abs().max().clamp(min=1e-6)).any())


def _merge(found: list[_Finding]) -> Iterator[_Finding]:
    """Join neighbouring layers that say exactly the same."""
    runs: list[list[_Finding]] = []
    for finding in found:
        before = runs[-1][-1] if runs else None
        if (
            before is not None
            and before.kind == finding.kind
            and before.where.startswith("layer")
            and torch.equal(before.values, finding.values)
        ):
            runs[-1].append(finding)
        else:
            runs.append([finding])
    for run in runs:
        first, last = run[0].where, run[-1].where
        where = first if len(run) == 1 else f"layers {first.split()[-1]}-{last.split()[-1]}"
        yield run[0]._replace(where=where)


def _zeros(position: Position) -> Tensor:
    geometry = position.geometry
    tokens = geometry.prefix + position.grid[0] * position.grid[1]
    return torch.zeros(1, tokens, geometry.dim, device=device_of(position))


def _probe(position: Position) -> Tensor:
    """Return fixed unstructured content (1, T, D)."""
    zeros = _zeros(position)
    return torch.randn(zeros.shape, generator=torch.Generator().manual_seed(0)).to(zeros)


def _apply(position: Position, hook: Hook, x: Tensor) -> Tensor:
    with evaluating(position):
        return hook(x).float()
