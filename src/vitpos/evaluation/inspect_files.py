"""Weights files of any origin as named tensors, read without executing anything they contain."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import torch
from safetensors import SafetensorError, safe_open
from torch import Tensor

# In order of preference; a name matches as a whole or after a dot or slash.
TABLE_NAMES = (
    "pos_embed",
    "wpe.weight",
    "position_embeddings.weight",
    "position_embeddings",
    "position_embedding.weight",
    "positional_embedding",
    "pos_embedding",
    "embed_positions.weight",
    "pos_emb",
    "pos_embed.weight",
    "table",
)


class Weights(NamedTuple):
    """Shapes by name, and how to read one of the tensors."""

    path: Path
    shapes: Mapping[str, tuple[int, ...]]
    read: Callable[[str], Tensor]


def open_weights(path: Path) -> Weights:
    """Open a `.safetensors`, `.bin`, `.pth`, `.pt`, `.ckpt`, `.npy` or `.npz` file.

    Raises:
        ValueError: another ending, a damaged file, or a pickle that holds more than weights, which is never executed.
    """
    opener = OPENERS.get(path.suffix)
    if opener is None:
        raise ValueError(f"source={path}: files ending in {', '.join(OPENERS)} can be read, not {path.suffix!r}")
    return opener(path)


def find_table(weights: Weights, key: str = "") -> str:
    """Return the name of the position table, the given one or the only one that looks like it.

    Raises:
        ValueError: no such name, no likely name, or several; the message lists what is there.
    """
    if key:
        if key not in weights.shapes:
            raise ValueError(f"key={key!r} is not in {weights.path}, which holds:\n{_listing(weights.shapes)}")
        return key
    for wanted in TABLE_NAMES:
        found = [name for name in weights.shapes if name == wanted or name.endswith((f".{wanted}", f"/{wanted}"))]
        if len(found) == 1:
            return found[0]
        if found:
            listing = _listing({name: weights.shapes[name] for name in found})
            raise ValueError(f"{weights.path} holds several position tables, choose with key=...:\n{listing}")
    if len(weights.shapes) == 1:
        return next(iter(weights.shapes))
    raise ValueError(
        f"no position table recognised in {weights.path}; choose with key=...:\n{_listing(weights.shapes)}"
    )


def as_table(tensor: Tensor, name: str) -> tuple[Tensor, tuple[int, int] | None]:
    """Return the table (T, D) in float32, and the grid where the tensor itself has one.

    Accepts (T, D), (1, T, D) and (1, H, W, D).

    Raises:
        ValueError: another shape, fewer than two positions, whole numbers, or values that are not finite.
    """
    shape = tuple(tensor.shape)
    bare = tensor
    while bare.ndim > 2 and bare.shape[0] == 1:
        bare = bare[0]
    grid = (int(bare.shape[0]), int(bare.shape[1])) if bare.ndim == 3 else None
    if bare.ndim not in (2, 3) or bare.numel() // bare.shape[-1] < 2:
        raise ValueError(f"{name} of shape {shape} is no table of positions: (T, D), (1, T, D) or (1, H, W, D) is")
    if not tensor.is_floating_point():
        raise ValueError(f"{name} holds {tensor.dtype}: a table of positions holds floating-point numbers")
    table = bare.reshape(-1, bare.shape[-1]).float()
    if not torch.isfinite(table).all():
        raise ValueError(f"{name} holds values that are NaN or infinite")
    return table, grid


def _listing(shapes: Mapping[str, tuple[int, ...]], most: int = 60) -> str:
    """List names with shapes, tables first, since a wanted name is most likely one."""
    names = sorted(shapes, key=lambda name: ("pos" not in name and "wpe" not in name, name))
    lines = [f"  {name}  {'x'.join(map(str, shapes[name]))}" for name in names[:most]]
    return "\n".join([*lines, f"  ... and {len(names) - most} more"] if len(names) > most else lines)


def _open_safetensors(path: Path) -> Weights:
    try:
        with safe_open(path, framework="pt") as file:
            shapes = {name: tuple(file.get_slice(name).get_shape()) for name in file.keys()}  # noqa: SIM118
    except SafetensorError as error:
        raise ValueError(f"{path}: not a readable safetensors file ({error})") from error

    def read(name: str) -> Tensor:
        with safe_open(path, framework="pt") as file:
            tensor: Tensor = file.get_tensor(name)
            return tensor

    return Weights(path, shapes, read)


def _open_pickle(path: Path) -> Weights:
    try:
        content = torch.load(path, map_location="cpu", weights_only=True)
    except Exception as error:  # unpickling and unzipping raise many kinds
        first = str(error).strip().partition("\n")[0]
        raise ValueError(
            f"{path}: refused, it is damaged or holds more than weights, and what a pickle holds besides is code "
            f"({type(error).__name__}: {first})"
        ) from error
    tensors = dict(_flatten(content, ""))
    if not tensors:
        raise ValueError(f"{path}: holds no tensors")
    return Weights(path, {name: tuple(tensor.shape) for name, tensor in tensors.items()}, tensors.__getitem__)


def _flatten(content: Any, name: str) -> Iterator[tuple[str, Tensor]]:
    """Yield the tensors of nested containers under dotted names."""
    if isinstance(content, Tensor):
        yield name or "table", content.detach()
    elif isinstance(content, Mapping):
        for key, value in content.items():
            yield from _flatten(value, f"{name}.{key}" if name else str(key))


def _open_numpy(path: Path) -> Weights:
    try:
        loaded = np.load(path, allow_pickle=False)
        arrays = {"table": loaded} if isinstance(loaded, np.ndarray) else {name: loaded[name] for name in loaded.files}
    except (ValueError, OSError, EOFError) as error:
        raise ValueError(f"{path}: refused, it is damaged or holds Python objects ({error})") from error
    return Weights(
        path, {name: array.shape for name, array in arrays.items()}, lambda name: torch.from_numpy(arrays[name])
    )


OPENERS: dict[str, Callable[[Path], Weights]] = {
    ".safetensors": _open_safetensors,
    **dict.fromkeys((".bin", ".pth", ".pt", ".ckpt"), _open_pickle),
    **dict.fromkeys((".npy", ".npz"), _open_numpy),
}
