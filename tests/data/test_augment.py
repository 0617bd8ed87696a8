import pytest
import torch

from vitpos.data.augment import Augment, Draws, shift
from vitpos.data.sampler import EpochSampler, Shard


def reference(image, top, left, padding):
    height, width = image.shape[-2:]
    result = torch.zeros_like(image)
    for row in range(height):
        for column in range(width):
            y, x = row + top - padding, column + left - padding
            if 0 <= y < height and 0 <= x < width:
                result[:, row, column] = image[:, y, x]
    return result


def test_shift_equals_the_definition_on_rectangles():
    images = torch.randint(1, 256, (25, 3, 5, 7), dtype=torch.uint8)
    top, left = torch.arange(25) // 5, torch.arange(25) % 5
    shifted = shift(images, top, left, 2)
    for image, result, y, x in zip(images, shifted, top.tolist(), left.tolist(), strict=True):
        assert torch.equal(result, reference(image, y, x, 2))


def test_flip_mirrors_exactly_the_drawn_images():
    images = torch.randint(0, 256, (4, 3, 5, 6), dtype=torch.uint8)
    flip = torch.tensor([True, False, False, True])
    result = Augment(flip=True).apply(images, Draws(torch.zeros(4), torch.zeros(4), flip))
    for image, after, mirrored in zip(images, result, flip.tolist(), strict=True):
        assert torch.equal(after, image.flip(-1) if mirrored else image)


def test_no_augmentation_changes_nothing():
    images = torch.randint(0, 256, (4, 1, 5, 6), dtype=torch.uint8)
    sampler = EpochSampler(4, 4, 0, Shard())
    assert torch.equal(Augment().apply(images, Augment().draw(sampler).at(0)), images)


def test_draws_are_uniform_and_independent_per_image():
    sampler = EpochSampler(20_000, 100, 0, Shard())
    draws = Augment(padding=2, flip=True).draw(sampler)
    for corner in (draws.top, draws.left):
        shares = torch.bincount(corner.flatten(), minlength=5) / 20_000
        assert len(shares) == 5
        assert (shares - 0.2).abs().max() < 0.015
    assert abs(draws.flip.float().mean() - 0.5) < 0.015
    together = torch.stack((draws.top.flatten(), draws.left.flatten(), draws.flip.flatten().long())).float()
    assert (torch.corrcoef(together) - torch.eye(3)).abs().max() < 0.03
    assert not torch.equal(draws.at(0).top, draws.at(1).top)


def test_draws_depend_on_seed_and_epoch_and_not_on_other_settings():
    sampler = EpochSampler(64, 8, 0, Shard())
    first = Augment(padding=1, flip=True).draw(sampler)
    assert torch.equal(first.flip, Augment(padding=3, flip=True).draw(sampler).flip)
    sampler.set_epoch(1)
    assert not torch.equal(first.flip, Augment(padding=1, flip=True).draw(sampler).flip)
    assert not torch.equal(first.flip, Augment(padding=1, flip=True).draw(EpochSampler(64, 8, 1, Shard())).flip)


@pytest.mark.parametrize("setting", ["padding", "mixup", "cutmix"])
def test_a_negative_number_is_refused_by_name(setting):
    with pytest.raises(ValueError, match=f"data.augment.{setting}=-1"):
        Augment(**{setting: -1})
