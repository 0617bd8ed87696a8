"""Fashion-MNIST: 70,000 grey images of clothes, 28 x 28 pixels (Xiao et al. 2017, arXiv 1708.07747)."""

from __future__ import annotations

import tempfile
from pathlib import Path
from typing import Unpack, final

import numpy as np
import torch
import torchvision.datasets

from vitpos.data.base import Part
from vitpos.data.download import find_or_fetch
from vitpos.data.idx import read_idx
from vitpos.data.memory import Arrays, InMemory, MemorySettings
from vitpos.spec import ImageSize

DEBIAN = Path("/usr/share/datasets/fashion-mnist")
_STEMS = {"train": "train", "test": "t10k"}
_ADVICE = (
    "Without a network: install Debian's package dataset-fashion-mnist, or put the four files "
    "{train,t10k}-{images-idx3,labels-idx1}-ubyte, gzipped or not, into data.root."
)


@final
class FashionMNIST(InMemory):
    """Ten classes of clothes, 6,000 training and 1,000 test images each.

    Taken from `data.root` (plain files or torchvision's folder), else from Debian's package, else downloaded.

    Args:
        root: folder of the data set.
        settings: see `InMemory`.
    """

    channels = 1
    classes = 10
    mean = (0.2860,)
    std = (0.3530,)

    def __init__(self, *, root: str | Path, **settings: Unpack[MemorySettings]) -> None:
        super().__init__(**settings)
        self.root = Path(root).expanduser().absolute()

    def read(self, part: Part, image_size: ImageSize) -> Arrays:
        """Read one part of the images, fetching the data set if it is nowhere.

        Raises:
            ValueError: no data and no network, or a damaged file.
        """
        folder = find_or_fetch("Fashion-MNIST", self.root, find=self._folder, fetch=self._download, advice=_ADVICE)
        images, labels = (read_idx(path) for path in _files(folder, part))
        if images.ndim != 3 or labels.shape != images.shape[:1] or labels.max(initial=0) >= self.classes:
            raise ValueError(f"{folder}: images {images.shape} and labels {labels.shape} are not Fashion-MNIST's")
        return torch.from_numpy(images).unsqueeze(1), torch.from_numpy(labels.astype(np.int64))

    def _folder(self) -> Path | None:
        """Return the first folder that holds all four files."""
        for folder in (self.root, self.root / "FashionMNIST" / "raw", DEBIAN):
            if all(len(_files(folder, part)) == 2 for part in _STEMS):
                return folder
        return None

    def _download(self) -> None:
        # Each file appears whole: a download cut short leaves nothing that looks like the data set.
        with tempfile.TemporaryDirectory(dir=self.root, prefix=".download-") as temporary:
            torchvision.datasets.FashionMNIST(temporary, download=True)
            target = self.root / "FashionMNIST" / "raw"
            target.mkdir(parents=True, exist_ok=True)
            for path in Path(temporary, "FashionMNIST", "raw").glob("*-ubyte"):
                path.replace(target / path.name)


def _files(folder: Path, part: str) -> list[Path]:
    """Return the image and the label file of a part, those of the two that exist."""
    names = (f"{_STEMS[part]}-images-idx3-ubyte", f"{_STEMS[part]}-labels-idx1-ubyte")
    candidates = [[folder / name, folder / f"{name}.gz"] for name in names]
    return [next(path for path in paths if path.is_file()) for paths in candidates if any(p.is_file() for p in paths)]
