import numpy as np
import pytest
import torch
from sklearn.datasets import load_digits

from vitpos.data.augment import Augment
from vitpos.data.digits import Digits


@pytest.fixture(scope="module")
def digits(settings):
    return Digits(**settings(image_size=8, batch_size=128, augment=Augment(padding=1)))


def parts(data, split):
    images, labels, index = (torch.cat(each) for each in zip(*data.eval_dataloader(split), strict=True))
    return images, labels, index


def test_every_digit_is_in_exactly_one_split(digits):
    images, labels = zip(*(parts(digits, split)[:2] for split in ("train", "val", "test")), strict=True)
    assert [len(each) for each in labels] == [1150, 287, 360]
    together = (torch.cat(images) * 0.3760 + 0.3053) * 16
    ours = sorted(
        (*image.flatten().round().int().tolist(), label)
        for image, label in zip(together, torch.cat(labels).tolist(), strict=True)
    )
    source = load_digits()
    theirs = sorted((*map(int, row), int(label)) for row, label in zip(source.data, source.target, strict=True))
    assert ours == theirs


def test_test_images_are_stratified_and_the_same_for_every_split_seed(digits, settings):
    from vitpos.data.splits import Split

    other = Digits(**settings(image_size=8, split=Split(0.4, seed=5), seed=3))
    for one, another in zip(parts(digits, "test"), parts(other, "test"), strict=True):
        assert torch.equal(one, another)
    assert np.ptp(np.bincount(parts(digits, "test")[1])) <= 2


def test_pixels_are_normalised(digits):
    images = parts(digits, "train")[0]
    assert abs(float(images.mean())) < 0.02
    assert abs(float(images.std()) - 1) < 0.02
