"""Which part of a photograph is seen, in training and in evaluation."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from PIL import Image
from torchvision.transforms import InterpolationMode, v2

from vitpos.spec import ImageSize


@dataclass(frozen=True)
class CentralView:
    """Resample the central part of an image: the same field of view at every size of one shape.

    The view is the largest centred box of the wanted aspect ratio, its sides shrunk to `crop`. It is cut and resampled
    (bicubic, antialiased) in one step, so no rounding of an intermediate size moves it.

    Attributes:
        size: wanted (height, width) in pixels.
        crop: share of the box's sides, above 0 and at most 1.
    """

    size: ImageSize
    crop: float

    def __call__(self, image: Image.Image) -> Image.Image:
        """Return the view of an image of any size."""
        scale = min(image.height / self.size[0], image.width / self.size[1]) * self.crop
        height, width = scale * self.size[0], scale * self.size[1]
        left, top = (image.width - width) / 2, (image.height - height) / 2
        # Rounding must not push the box over the edge, which Pillow refuses.
        box = (max(left, 0), max(top, 0), min(left + width, image.width), min(top + height, image.height))
        return image.resize((self.size[1], self.size[0]), Image.Resampling.BICUBIC, box=box)


@dataclass(frozen=True)
class PhotoAugment:
    """Settings of the augmentation of photographs.

    Attributes:
        scale: smallest and largest share of the area that a random crop keeps.
        flip: mirror half of the images left to right.
        operations: RandAugment's operations per image; 0 is off.
        magnitude: RandAugment's strength, 0 to 30.
        mixup: alpha of the Beta distribution of mixup's weight; 0 is off.
        cutmix: the same for cutmix; if both are on, each batch uses one of the two with equal chance.
    """

    scale: Sequence[float] = (0.08, 1.0)
    flip: bool = True
    operations: int = 0
    magnitude: int = 9
    mixup: float = 0.0
    cutmix: float = 0.0

    def __post_init__(self) -> None:
        """Refuse numbers that have no meaning."""
        if len(self.scale) != 2 or not 0 < self.scale[0] <= self.scale[1] <= 1:
            raise ValueError(f"data.augment.scale={self.scale}: give two shares of the area, 0 < least <= most <= 1")
        if not 0 <= self.magnitude <= 30:
            raise ValueError(f"data.augment.magnitude={self.magnitude}: must lie between 0 and 30")
        for name in ("operations", "mixup", "cutmix"):
            if getattr(self, name) < 0:
                raise ValueError(f"data.augment.{name}={getattr(self, name)}: must be zero or more")

    def build(self, size: ImageSize) -> v2.Compose:
        """Return the transform of a PIL image to a random view of `size`; it draws from torch's global generator."""
        steps: list[object] = [
            v2.RandomResizedCrop(size, tuple(self.scale), interpolation=InterpolationMode.BICUBIC, antialias=True)
        ]
        if self.flip:
            steps.append(v2.RandomHorizontalFlip())
        if self.operations:
            steps.append(v2.RandAugment(self.operations, self.magnitude, interpolation=InterpolationMode.BILINEAR))
        return v2.Compose(steps)
