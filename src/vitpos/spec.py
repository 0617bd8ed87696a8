"""What a data set tells a model about its images."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

ImageSize = tuple[int, int]


def as_size(size: int | Sequence[int]) -> ImageSize:
    """Return (height, width) in pixels of a setting that is either one number or a pair.

    Raises:
        ValueError: not one or two positive whole numbers.
    """
    pair = tuple(size) if isinstance(size, Sequence) else (size, size)
    if len(pair) != 2 or any(not isinstance(side, int) or isinstance(side, bool) or side < 1 for side in pair):
        raise ValueError(f"image size {size!r}: give one positive whole number or a pair [height, width]")
    return pair[0], pair[1]


@dataclass(frozen=True)
class ImageSpec:
    """Shape of the images and number of classes.

    Attributes:
        image_size: (height, width) in pixels.
        channels: colour channels.
        classes: number of labels.
    """

    image_size: ImageSize
    channels: int
    classes: int
