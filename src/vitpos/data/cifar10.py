"""CIFAR-10 (Krizhevsky 2009): 60,000 colour images of 32 x 32 pixels in 10 classes."""

from __future__ import annotations

from typing import final

from torchvision.datasets import CIFAR10

from vitpos.data.cifar import Cifar


@final
class Cifar10(Cifar):
    """Ten classes of animals and vehicles."""

    source = CIFAR10
    classes = 10
    mean = (0.4914, 0.4822, 0.4465)
    std = (0.2470, 0.2435, 0.2616)
