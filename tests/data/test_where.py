import numpy as np
import pytest
import torch
from torch import nn

from vitpos.data.tasks import Absolute, Arrow, Bag, Distance, Relative
from vitpos.data.where import Where

POSITIONAL = [Absolute(3), Relative(), Distance(), Arrow()]


def name(task):
    return type(task).__name__


@pytest.fixture
def build(settings):
    def where(task, **overrides):
        own = {"cell": 4, "train_images": 20 * 72, "test_images": 72, "image_size": 24, "batch_size": 72}
        return Where(task=task, **settings(**own | {"transfer_sizes": [16, [16, 32]]} | overrides))

    return where


def cells(images, side):
    """Return each image's square patches as rows of bytes in lexical order: the image as a multiset."""
    batch, channels, height, width = images.shape
    patches = images.reshape(batch, channels, height // side, side, width // side, side)
    patches = patches.permute(0, 2, 4, 1, 3, 5).reshape(batch, -1, channels * side**2).numpy()
    return [sorted(map(bytes, image)) for image in patches]


@pytest.mark.parametrize("task", POSITIONAL, ids=name)
@pytest.mark.parametrize("size", [(24, 24), (16, 32), (36, 20)])
@pytest.mark.parametrize("patch", [4, 2, 1])
@pytest.mark.parametrize("part", ["train", "test"])
def test_images_of_all_labels_hold_the_same_patches(build, task, size, patch, part):
    pixels, labels = build(task, train_images=72, batch_size=1).read(part, size)
    held = cells(pixels, patch)
    for group in range(0, len(labels), task.classes):
        assert labels[group : group + task.classes].tolist() == list(range(task.classes))
        assert all(held[group] == held[image] for image in range(group, group + task.classes))


@pytest.mark.parametrize("task", POSITIONAL, ids=name)
def test_images_differ_within_a_group_and_between_groups(build, task):
    pixels, _ = build(task).read("test", (24, 24))
    assert len({bytes(image.numpy()) for image in pixels}) == len(pixels)
    assert len({tuple(each) for each in cells(pixels, 4)}) == len(pixels) // task.classes


def test_patches_that_are_larger_than_cells_do_tell(build):
    """The invariance rests on the alignment: a patch of two cells shows how they lie."""
    pixels, _ = build(Arrow()).read("test", (24, 24))
    held = cells(pixels, 8)
    assert held[0] != held[1]


def test_a_bag_tells_its_label_by_its_patches_alone(build):
    data = build(Bag())
    pixels, labels = data.read("test", (24, 24))
    held = cells(pixels, 4)
    assert all(held[group] != held[group + other] for group in range(0, 72, 4) for other in (1, 2, 3))
    # Shuffling the cells of an image keeps what it says: count the kinds by their colours.
    bright = pixels.view(-1, 3, 6, 4, 6, 4).float().mean((3, 5)).flatten(2) - 48  # n 3 N
    colours = torch.tensor([[150, 100, 0], [0, 72, 112], [0, 100, 73], [150, 143, 42]]).float()
    nothing = torch.zeros(1, 3)
    kind = torch.cdist(bright.mT, torch.cat((colours, nothing))).argmin(-1)
    assert torch.equal(nn.functional.one_hot(kind, 5)[..., :4].sum(1).argmax(-1), labels)


class SetNetwork(nn.Module):
    """Sees patches as a set, as a Transformer without positions does."""

    def __init__(self, classes):
        super().__init__()
        self.first, self.last = nn.Conv2d(3, 32, 4, 4), nn.Linear(32, classes)

    def forward(self, images):
        return self.last(self.first(images).flatten(2).relu().double().mean(-1).float())


@pytest.mark.parametrize("task", POSITIONAL, ids=name)
@pytest.mark.parametrize("split", ["val", "test"])
def test_a_network_without_positions_is_exactly_at_chance(build, task, split):
    torch.manual_seed(0)
    data, network = build(task), SetNetwork(task.classes)
    optimiser = torch.optim.Adam(network.parameters(), lr=1e-2)
    for images, labels, _ in data.train_dataloader():
        loss = nn.functional.cross_entropy(network(images), labels)
        optimiser.zero_grad()
        loss.backward()
        optimiser.step()
    with torch.no_grad():
        right = [(network(images).argmax(-1) == labels) for images, labels, _ in data.eval_dataloader(split)]
    assert torch.cat(right).double().mean() == pytest.approx(1 / task.classes, abs=1e-12)


@pytest.mark.parametrize("task", [*POSITIONAL, Bag()], ids=name)
def test_images_are_a_function_of_the_split_seed_and_their_number(build, task):
    few, many = build(task, train_images=72, batch_size=1), build(task)
    assert torch.equal(few.read("train", (24, 24))[0], many.read("train", (24, 24))[0][:72])
    assert torch.equal(build(task, seed=5).read("train", (24, 24))[0], many.read("train", (24, 24))[0])
    assert not torch.equal(few.read("test", (24, 24))[0], few.read("train", (24, 24))[0])


def test_validation_holds_whole_groups(build):
    data = build(Arrow())
    labels = torch.cat([labels for _, labels, _ in data.val_dataloader()])
    assert torch.equal(labels, torch.arange(8).repeat(36))
    assert not set(data.train_dataloader().chosen.tolist()) & set(data.val_dataloader().chosen.tolist())


def test_another_size_has_more_cells_and_is_not_resampled(build):
    data = build(Relative())
    small, large = (next(iter(data.eval_dataloader("test", size)))[0] for size in (24, [48, 24]))
    assert small.shape[-2:] == (24, 24) and large.shape[-2:] == (48, 24)
    levels = (large * 0.2 + 0.19) * 255
    torch.testing.assert_close(levels, levels.round(), rtol=0, atol=1e-3)


def test_noise_is_independent_of_the_cell(build):
    pixels, _ = build(Relative()).read("train", (24, 24))
    means = pixels.view(-1, 3, 6, 4, 6, 4).float().mean((0, 1, 3, 5))
    assert (means / means.mean() - 1).abs().max() < 0.1


def test_fitting_generates_no_test_image(build):
    data = build(Bag())
    data.setup()
    list(data.train_dataloader())
    assert data.reads["test"] == 0


@pytest.mark.parametrize(
    ("overrides", "message"),
    [
        ({"image_size": 22}, r"image size 22x22.*data\.cell=4"),
        ({"transfer_sizes": [[24, 26]]}, r"image size 24x26.*data\.cell=4"),
        ({"image_size": 8}, "at least 3x3"),
        ({"cell": 0}, r"data\.cell=0"),
        ({"train_images": 100}, r"data\.train_images=100: must be a multiple of 8"),
        ({"test_images": 0}, r"data\.test_images=0"),
        ({"train_images": 8}, r"val_fraction=0\.2 of 1 groups"),
    ],
)
def test_a_setting_that_does_not_fit_is_refused_by_name(build, overrides, message):
    with pytest.raises(ValueError, match=message):
        build(Arrow(), **overrides).setup()


def test_painted_objects_are_brighter_and_do_not_overflow(build):
    pixels, _ = build(Bag()).read("train", (24, 24))
    assert int(pixels.max()) <= 150 + 95
    assert int(pixels.float().mean((2, 3)).max()) > np.mean([48])
