"""Generated images in which we know what position is worth: the calibration of every comparison."""

from __future__ import annotations

from typing import Unpack, final

import numpy as np
import torch
from numpy.typing import NDArray

from vitpos.data.base import Part
from vitpos.data.memory import Arrays, InMemory, MemorySettings
from vitpos.data.splits import Indices
from vitpos.data.streams import CONTENT, numpy_stream
from vitpos.data.tasks import Grid, Integers, Scene, Task
from vitpos.spec import ImageSize

NOISE = 96  # grey levels of each pixel's noise, 0 .. NOISE - 1
# Added to the noise where an object is; orange, blue, green, yellow of Okabe and Ito's colour-blind-safe set, dimmed.
COLOURS = np.array([[150, 100, 0], [0, 72, 112], [0, 100, 73], [150, 143, 42]], dtype=np.uint8)
_PLACES, _NOISE = 0, 1
_PART = {"train": 0, "test": 1}


@final
class Where(InMemory):
    """Coloured cells on a grid of noise, and a question about their places.

    Images i = g * classes + label, label = 0 .. classes - 1, form group g: the same cells, noise included, in places
    that give each label once. For every task but `Bag` a network that sees the cells as a set therefore gives all
    images of a group one answer, right for one of them: its accuracy is 1 / classes, on any whole groups. This holds
    if the network's patches are whole cells or divide them.

    Images of another size are generated with more or fewer cells of the same size, not resampled; image i shows the
    same objects in relation to the grid.

    Args:
        task: the question.
        cell: side of a cell in pixels; the network's patch size.
        train_images: to train and validate on, whole groups.
        test_images: whole groups.
        settings: see `InMemory`; `split.seed` is also the seed of the images.

    Raises:
        ValueError: images that aren't whole groups, or a size that is not a grid of cells large enough for the task.
    """

    channels = 3
    mean = (0.19, 0.19, 0.19)
    std = (0.2, 0.2, 0.2)
    any_size = True

    def __init__(
        self, *, task: Task, cell: int, train_images: int, test_images: int, **settings: Unpack[MemorySettings]
    ) -> None:
        super().__init__(**settings)
        self.task, self.cell, self.classes = task, cell, task.classes
        self._images: dict[Part, int] = {"train": train_images, "test": test_images}
        if cell < 1:
            raise ValueError(f"data.cell={cell}: must be at least 1")
        for part, images in self._images.items():
            if images < 1 or images % self.classes:
                raise ValueError(
                    f"data.{part}_images={images}: must be a multiple of {self.classes}, one image for each label"
                )
        for size in (self.image_size, *self.transfer_sizes):
            self.grid(size)

    def grid(self, image_size: ImageSize) -> Grid:
        """Return (rows, columns) of cells.

        Raises:
            ValueError: cells that don't fill the image, or too few for the task.
        """
        rows, columns = (side // self.cell for side in image_size)
        least = self.task.least
        if (rows * self.cell, columns * self.cell) != image_size or rows < least[0] or columns < least[1]:
            raise ValueError(
                f"image size {image_size[0]}x{image_size[1]}: {type(self.task).__name__} needs whole cells of "
                f"data.cell={self.cell} pixels, at least {least[0]}x{least[1]} of them"
            )
        return rows, columns

    def carve(self, labels: Indices) -> tuple[Indices, Indices]:
        """Keep whole groups for validation, so that chance is exact there too."""
        groups = len(labels) // self.classes
        val = round(self.split.val_fraction * groups) * self.classes
        if not 0 < val < len(labels):
            raise ValueError(
                f"data.split.val_fraction={self.split.val_fraction} of {groups} groups of images leaves none to train "
                "or none to validate on"
            )
        every = np.arange(len(labels))
        return every[:-val], every[-val:]

    def part_labels(self, part: Part) -> Indices:
        """Return the label of every image in a part, generating none."""
        return np.tile(np.arange(self.classes), self._images[part] // self.classes)

    def read(self, part: Part, image_size: ImageSize) -> Arrays:
        """Generate one part: uint8 images (n, 3, h, w) and labels (n,)."""
        grid, groups = self.grid(image_size), self._images[part] // self.classes
        uniform = self._stream(part, _PLACES).random((groups, self.task.draws(grid)))
        scene = self.task.place(uniform, grid)
        shape = (groups, grid[0] * grid[1], self.channels, self.cell, self.cell)
        noise = self._stream(part, _NOISE).integers(0, NOISE, shape, dtype=np.uint8)
        cells = paint(scene, noise, grid[1])  # n N C p p
        images = cells.reshape(-1, *grid, *shape[2:]).transpose(0, 3, 1, 4, 2, 5)  # n C H p W p
        pixels = torch.from_numpy(np.ascontiguousarray(images)).view(-1, self.channels, *image_size)
        return pixels, torch.from_numpy(self.part_labels(part))

    def _stream(self, part: Part, quantity: int) -> np.random.Generator:
        # A stream for each quantity: the first images stay the same if there are more of them.
        return numpy_stream(self.split.seed, CONTENT, _PART[part], quantity)


def paint(scene: Scene, noise: NDArray[np.uint8], columns: int) -> NDArray[np.uint8]:
    """Return the cells of each image in raster order, (G * C, N, channels, p, p).

    Object k takes the k-th noise cell of its group wherever it goes; the other noise cells fill the rest in order.
    """
    cells: Integers = (scene.rows * columns + scene.columns).reshape(-1, scene.rows.shape[-1])  # n K
    images, objects, total = *cells.shape, noise.shape[1]
    each = np.arange(images)[:, None]
    empty = np.ones((images, total), dtype=bool)
    empty[each, cells] = False
    source = objects - 1 + empty.cumsum(1)  # n N, right where empty
    source[each, cells] = np.arange(objects)
    group = np.arange(images)[:, None] // scene.rows.shape[1]
    painted: NDArray[np.uint8] = noise[group, source]  # n N C p p
    painted[each, cells] += COLOURS[scene.kinds.reshape(images, objects)][..., None, None]
    return painted
