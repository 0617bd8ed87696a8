import numpy as np
import pytest
import torch

from vitpos.data.mix import Mix


def mixed(step=0, epoch=0, seed=0, **alphas):
    images = torch.arange(8.0).view(8, 1, 1, 1).expand(8, 1, 6, 6).clone()
    labels = torch.arange(8) % 3
    return Mix(**({"mixup": 0.0, "cutmix": 0.0} | alphas), classes=3, seed=seed)(images, labels, epoch, step)


def test_mixup_blends_images_and_labels_with_one_weight():
    images, labels = mixed(mixup=1.0)
    weight = float((images[0, 0, 0, 0] - 7) / -7)
    plain, hard = torch.arange(8.0), torch.nn.functional.one_hot(torch.arange(8) % 3).float()
    assert 0 < weight < 1
    torch.testing.assert_close(images[:, 0, 0, 0], weight * plain + (1 - weight) * plain.flip(0))
    torch.testing.assert_close(labels, weight * hard + (1 - weight) * hard.flip(0))


def test_cutmix_weighs_labels_by_area():
    for step in range(5):
        images, labels = mixed(step=step, cutmix=1.0)
        kept = float((images[0] == 0).float().mean())
        torch.testing.assert_close(labels[0], kept * torch.eye(3)[0] + (1 - kept) * torch.eye(3)[1])


def test_mixing_is_a_function_of_seed_epoch_and_step():
    one = mixed(mixup=1.0)
    assert all(torch.equal(a, b) for a, b in zip(one, mixed(mixup=1.0), strict=True))
    for other in ({"step": 1}, {"epoch": 1}, {"seed": 1}):
        assert not torch.equal(one[0], mixed(mixup=1.0, **other)[0])


def test_numpys_global_generator_is_put_back():
    np.random.seed(7)
    expected = np.random.rand()
    np.random.seed(7)
    mixed(mixup=1.0)
    assert np.random.rand() == expected


def test_an_odd_batch_is_refused_by_name():
    with pytest.raises(ValueError, match=r"data.augment.mixup.*data.batch_size"):
        Mix(1.0, 0.0, classes=3, seed=0)(torch.zeros(3, 1, 2, 2), torch.zeros(3, dtype=torch.long), 0, 0)
