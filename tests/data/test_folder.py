import shutil

import numpy as np
import pytest
import torch
from PIL import Image

from vitpos.data.folder import MEAN, STD, Folder
from vitpos.data.sampler import Shard
from vitpos.data.splits import Split
from vitpos.data.views import PhotoAugment

CLASSES = ("cat", "dog", "owl")
PLAIN = PhotoAugment(scale=(1.0, 1.0), flip=False)


def save(path, number):
    """Write an image of one colour that tells its number: lossless, and the same at every size."""
    path.parent.mkdir(parents=True, exist_ok=True)
    Image.new("RGB", (20 + number % 3, 24), (number, 255 - number, 10)).save(path)


@pytest.fixture(scope="module")
def source(tmp_path_factory):
    root = tmp_path_factory.mktemp("photos")
    for label, name in enumerate(CLASSES):
        for number in range(10):
            save(root / "train" / name / f"{number:02d}.png", 10 * label + number)
        for number in range(3):
            save(root / "val" / name / f"{number}.png", 100 + 10 * label + number)
    return root


@pytest.fixture
def root(source, tmp_path):
    return shutil.copytree(source, tmp_path / "photos")


@pytest.fixture
def build(settings):
    def folder(root, **overrides):
        common = settings(**{"image_size": [16, 12], "batch_size": 4, "split": Split(0.2, seed=0)})
        del common["augment"]
        own = {"name": "photos", "augment": PLAIN, "crop": 0.875, "num_workers": 0, "check_files": True}
        return Folder(root=root, **common | own | overrides)

    return folder


def numbers(images):
    """Read the numbers back out of normalised images."""
    return ((images[:, 0] * STD[0] + MEAN[0]) * 255).round().long()


def test_a_batch_is_images_labels_and_index(build, source):
    data = build(source)
    data.setup()
    assert data.spec.image_size == (16, 12)
    assert (data.spec.channels, data.spec.classes, data.class_names) == (3, 3, list(CLASSES))
    for images, labels, index in data.train_dataloader():
        assert images.shape == (4, 3, 16, 12)
        assert (images.dtype, labels.dtype, index.dtype) == (torch.float32, torch.int64, torch.int64)
        assert torch.equal(labels, index // 10)
        assert (numbers(images) == index[:, None, None]).all()


def test_val_is_carved_from_train_and_the_folder_val_is_the_test_set(build, source):
    data = build(source)
    train, val, test = (torch.cat([i for *_, i in data.eval_dataloader(split)]) for split in ("train", "val", "test"))
    assert sorted(torch.cat((train, val)).tolist()) == list(range(30))
    assert np.bincount(data.labels("val")[1]).tolist() == [2, 2, 2]
    assert test.tolist() == list(range(9))
    for images, labels, index in data.test_dataloader():
        assert (numbers(images) == (100 + 10 * labels + index % 3)[:, None, None]).all()


def test_evaluation_works_at_any_size(build, source):
    for size in (8, [24, 16]):
        images = next(iter(build(source).eval_dataloader("val", size)))[0]
        assert images.shape[-2:] == ((size, size) if isinstance(size, int) else tuple(size))


def test_images_do_not_depend_on_the_number_of_workers(build, source):
    augment = PhotoAugment(operations=2, mixup=0.5)
    loaders = [build(source, augment=augment, num_workers=workers).train_dataloader() for workers in (0, 1, 2)]
    for loader in loaders:
        loader.sampler.set_epoch(1)
    for batches in zip(*loaders, strict=True):
        for other in batches[1:]:
            assert all(torch.equal(one, another) for one, another in zip(batches[0], other, strict=True))


def test_images_vary_with_epoch_and_seed_and_leave_the_global_generator_alone(build, source):
    augment = PhotoAugment(operations=2)
    before = torch.get_rng_state()

    def views(seed, epoch):
        loader = build(source, augment=augment, seed=seed).train_dataloader()
        loader.sampler.set_epoch(epoch)
        return {int(i): image for images, _, index in loader for image, i in zip(images, index, strict=True)}

    first, again, later, other = views(0, 0), views(0, 0), views(0, 1), views(1, 0)
    assert all(torch.equal(image, again[number]) for number, image in first.items())
    assert any(not torch.equal(image, later[number]) for number, image in first.items() if number in later)
    assert any(not torch.equal(image, other[number]) for number, image in first.items() if number in other)
    assert torch.equal(torch.get_rng_state(), before)


@pytest.mark.parametrize("world", [2, 4])
def test_any_number_of_ranks_sees_the_same_images(build, source, world):
    data = build(source, augment=PhotoAugment(mixup=0.5), batch_size=8)
    alone = list(data.train_loader(Shard()))
    ranks = [list(data.train_loader(Shard(rank, world))) for rank in range(world)]
    for whole, parts in zip(alone, zip(*ranks, strict=True), strict=True):
        together = [torch.cat(each) for each in zip(*parts, strict=True)]
        order, place = together[2].sort()[1], whole[2].sort()[1]
        for one, another in zip(whole, together, strict=True):
            assert torch.equal(one[place], another[order])
    seen = [torch.cat([i for *_, i in data.eval_loader("test", (16, 16), Shard(r, world))]) for r in range(world)]
    assert sorted(torch.cat(seen).tolist()) == list(range(9))


def test_an_iteration_continues_where_a_stored_one_stood(build, source):
    whole = list(build(source, augment=PhotoAugment()).train_dataloader())
    resumed = build(source, augment=PhotoAugment()).train_dataloader()
    resumed.load_state_dict({"step": 2})
    rest = list(resumed)
    assert len(rest) == len(whole) - 2
    for one, other in zip(whole[2:], rest, strict=True):
        assert all(torch.equal(a, b) for a, b in zip(one, other, strict=True))


def test_fitting_shows_no_test_image(build, source):
    data = build(source)
    data.setup()
    list(data.train_dataloader())
    list(data.val_dataloader())
    assert data.reads["test"] == 0
    data.test_dataloader()
    assert data.reads["test"] == 1


def test_labels_are_known_without_opening_images(build, source, monkeypatch):
    monkeypatch.setattr("vitpos.data.stream.open_rgb", pytest.fail)
    index, labels = build(source).labels("test")
    assert np.array_equal(labels, index // 3)


def test_limit_train_keeps_all_classes(build, source):
    data = build(source, limit_train=6)
    assert np.bincount(data.labels("train")[1]).tolist() == [2, 2, 2]
    assert len(data.labels("val")[0]) == 6


def test_a_class_that_only_one_part_has_is_refused_by_name(build, root):
    save(root / "val" / "wolf" / "0.png", 1)
    with pytest.raises(ValueError, match=r"data\.root=.*train lacks 1 of the classes in val, for example 'wolf'"):
        build(root).setup()
    shutil.rmtree(root / "val" / "wolf")
    shutil.rmtree(root / "val" / "owl")
    with pytest.raises(ValueError, match=r"val lacks 1 of the classes in train, for example 'owl'"):
        build(root).setup()


@pytest.mark.parametrize("part", ["train", "val"])
def test_an_empty_class_folder_is_refused_by_name(build, root, part):
    for path in (root / part / "dog").iterdir():
        path.unlink()
    with pytest.raises(ValueError, match=f"{part}/dog holds no image"):
        build(root).setup()


@pytest.mark.parametrize("part", ["train", "val"])
def test_a_damaged_file_is_refused_by_name_before_training(build, root, part):
    path = sorted((root / part / "owl").iterdir())[0]
    path.write_bytes(path.read_bytes()[:60])
    with pytest.raises(ValueError, match=f"{part}/owl/{path.name}: not a readable image"):
        build(root).setup()
    build(root, check_files=False).setup()


@pytest.mark.parametrize("workers", [0, 1])
def test_a_file_damaged_after_the_check_is_named_too(build, root, workers):
    data = build(root, num_workers=workers)
    data.setup()
    for path in (root / "train" / "cat").iterdir():
        path.write_bytes(b"gone")
    with pytest.raises(ValueError, match=r"train/cat/\d\d\.png: not a readable image"):
        list(data.train_dataloader())


def test_a_missing_root_is_refused_by_name(build, tmp_path):
    with pytest.raises(ValueError, match=r"data\.root: .*nowhere/train is missing"):
        build(tmp_path / "nowhere").setup()


@pytest.mark.parametrize(
    ("overrides", "message"),
    [
        ({"crop": 0}, r"data\.crop=0"),
        ({"crop": 1.1}, r"data\.crop=1\.1"),
        ({"num_workers": -1}, r"data\.num_workers=-1"),
        ({"num_workers": "many"}, r"data\.num_workers=many"),
        ({"batch_size": 25}, r"data\.batch_size=25 is larger than the 24 training images"),
        ({"limit_train": 2}, r"data\.limit_train=2"),
        ({"split": Split(0.01, seed=0)}, r"val_fraction=0\.01 of 30 images leaves none"),
    ],
)
def test_a_setting_that_does_not_fit_is_refused_by_name(build, source, overrides, message):
    with pytest.raises(ValueError, match=message):
        build(source, **overrides).setup()


def test_automatic_workers_share_the_cores_among_ranks(build, source, monkeypatch):
    monkeypatch.setattr("os.sched_getaffinity", lambda _: set(range(8)))
    assert build(source, num_workers="auto").num_workers == 8
    monkeypatch.setenv("LOCAL_WORLD_SIZE", "4")
    assert build(source, num_workers="auto").num_workers == 2
    monkeypatch.setenv("LOCAL_WORLD_SIZE", "16")
    assert build(source, num_workers="auto").num_workers == 1
