"""The IDX format of the MNIST family, plain or gzipped."""

from __future__ import annotations

import gzip
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

_UNSIGNED_BYTE = 8


def read_idx(path: Path) -> NDArray[np.uint8]:
    """Read an array of bytes.

    The header holds two zero bytes, the type, the number of dimensions, and each dimension as a big-endian 32-bit
    number; the values follow in C order (http://yann.lecun.com/exdb/mnist/).

    Raises:
        ValueError: naming the file, when it is no such file or is damaged.
    """
    try:
        content = gzip.decompress(path.read_bytes()) if path.suffix == ".gz" else path.read_bytes()
    except (OSError, EOFError) as error:
        raise ValueError(f"{path}: damaged or unreadable ({error})") from error
    start = 4 + 4 * content[3] if len(content) > 3 else 4
    if len(content) < start or content[:3] != bytes((0, 0, _UNSIGNED_BYTE)):
        raise ValueError(f"{path}: not an IDX file of bytes")
    shape = tuple(int(side) for side in np.frombuffer(content[4:start], dtype=">u4"))
    if len(content) - start != np.prod(shape, dtype=np.int64):
        raise ValueError(f"{path}: damaged: the header announces {shape}, {len(content) - start} values follow")
    return np.frombuffer(content, dtype=np.uint8, offset=start).reshape(shape).copy()
