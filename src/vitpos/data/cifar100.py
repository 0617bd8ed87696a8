"""CIFAR-100 (Krizhevsky 2009): 60,000 colour images of 32 x 32 pixels in 100 classes."""

from __future__ import annotations

from typing import final

from torchvision.datasets import CIFAR100

from vitpos.data.cifar import Cifar


@final
class Cifar100(Cifar):
    """A hundred fine classes of things."""

    source = CIFAR100
    classes = 100
    mean = (0.5071, 0.4865, 0.4409)
    std = (0.2673, 0.2564, 0.2762)
