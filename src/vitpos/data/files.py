"""A folder of images, one sub-folder for each class: what is in it, and whether it can be read."""

from __future__ import annotations

import hashlib
import os
from collections.abc import Iterable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray
from PIL import Image
from torchvision.datasets.folder import IMG_EXTENSIONS

from vitpos.data.splits import Indices

STAMP = ".vitpos-checked"


class Files(NamedTuple):
    """Image files and their labels.

    Attributes:
        folder: the part's folder.
        names: paths below `folder`, (n,) of bytes: one array, which loader workers share without copying.
        labels: (n,).
    """

    folder: Path
    names: NDArray[np.bytes_]
    labels: Indices

    def path(self, number: int) -> Path:
        """Return the path of one image."""
        return self.folder / os.fsdecode(self.names[number])


def class_names(folder: Path) -> list[str]:
    """Return the names of a part's class folders in order.

    Raises:
        ValueError: no such folder, or no class in it.
    """
    if not folder.is_dir():
        raise ValueError(f"data.root: {folder} is missing; expected one folder for each class in it")
    names = sorted(entry.name for entry in os.scandir(folder) if entry.is_dir() and not entry.name.startswith("."))
    if not names:
        raise ValueError(f"data.root: {folder} holds no class folders")
    return names


def find_files(folder: Path, classes: Iterable[str]) -> Files:
    """List the images of each class, in order of class and path.

    Raises:
        ValueError: a class without images.
    """
    names: list[bytes] = []
    labels: list[int] = []
    for label, name in enumerate(classes):
        found = sorted(
            os.fsencode(os.path.relpath(os.path.join(where, file), folder))  # noqa: PTH118 (a million files)
            for where, _, files in os.walk(folder / name, followlinks=True)
            for file in files
            if file.lower().endswith(IMG_EXTENSIONS) and not file.startswith(".")
        )
        if not found:
            raise ValueError(f"data.root: {folder / name} holds no image ({', '.join(IMG_EXTENSIONS)})")
        names += found
        labels += [label] * len(found)
    return Files(folder, np.array(names), np.array(labels, dtype=np.int64))


def open_rgb(path: Path) -> Image.Image:
    """Read an image as 8-bit RGB: grey and palette images are expanded, transparent ones laid on white.

    Raises:
        ValueError: naming the file, if it is damaged or has more than 8 bits per channel.
    """
    try:
        with Image.open(path) as image:
            if image.mode.startswith(("I", "F")):
                raise ValueError(f"{path}: mode {image.mode!r} has more than 8 bits per channel; convert it first")
            if image.has_transparency_data:
                layer = image.convert("RGBA")
                return Image.alpha_composite(Image.new("RGBA", layer.size, "white"), layer).convert("RGB")
            return image.convert("RGB")
    except (OSError, SyntaxError, Image.DecompressionBombError) as error:
        raise ValueError(f"{path}: not a readable image ({error})") from error


def check(files: Files, threads: int) -> None:
    """Read every image once; skipped while names, sizes and times are those of the last check that passed.

    Args:
        files: what to check.
        threads: images read at a time.

    Raises:
        ValueError: naming the first unreadable file.
    """
    stamp, state = files.folder / STAMP, _state(files)
    if stamp.is_file() and stamp.read_text() == state:
        return
    with ThreadPoolExecutor(threads) as pool:
        for start in range(0, len(files.names), 1024):  # a million futures at once would fill the memory
            numbers = range(start, min(start + 1024, len(files.names)))
            for _ in pool.map(lambda number: open_rgb(files.path(number)).close(), numbers):
                pass
    try:
        stamp.write_text(state)
    except OSError:  # a read-only folder is checked each time
        return


def _state(files: Files) -> str:
    digest = hashlib.sha256()
    for number, name in enumerate(files.names):
        status = files.path(number).stat()
        digest.update(b"%s\0%d\0%d\0" % (name, status.st_size, status.st_mtime_ns))
    return digest.hexdigest()
