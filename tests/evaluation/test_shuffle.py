"""Shuffled patches: the same pixels, other places, reproducibly."""

import pytest
import torch

from vitpos.evaluation.shuffle import shuffle_patches


def patches(images, size):
    unfolded = torch.nn.functional.unfold(images, size, stride=size)
    return [sorted(map(tuple, image.T.tolist())) for image in unfolded]


IMAGES = torch.arange(3 * 2 * 8 * 12.0).reshape(3, 2, 8, 12)
INDEX = torch.tensor([5, 0, 9])


def test_keeps_every_patch_whole():
    shuffled = shuffle_patches(IMAGES, INDEX, 4, seed=0)
    assert shuffled.shape == IMAGES.shape
    assert not torch.equal(shuffled, IMAGES)
    assert patches(shuffled, 4) == patches(IMAGES, 4)


def test_depends_on_seed_and_index_alone():
    whole = shuffle_patches(IMAGES, INDEX, 2, seed=1)
    order = torch.tensor([2, 0, 1])
    assert torch.equal(shuffle_patches(IMAGES[order], INDEX[order], 2, seed=1), whole[order])
    assert torch.equal(shuffle_patches(IMAGES[1:2], INDEX[1:2], 2, seed=1), whole[1:2])
    assert not torch.equal(shuffle_patches(IMAGES, INDEX, 2, seed=2), whole)


def test_images_get_permutations_of_their_own():
    same = IMAGES[:1].expand(2, -1, -1, -1)
    first, second = shuffle_patches(same, torch.tensor([0, 1]), 2, seed=0)
    assert not torch.equal(first, second)


@pytest.mark.parametrize(("name", "pool"), [("none", "mean"), ("none", "cls"), ("learned_1d", "cls")])
def test_only_a_network_without_positions_does_not_notice(vit, name, pool):
    model, images = vit(name, pool=pool), torch.randn(4, 1, 8, 8)
    with torch.no_grad():
        change = (model(shuffle_patches(images, torch.arange(4), 2, seed=0)) - model(images)).abs().max()
    assert (change < 1e-4) == (name == "none")
