import numpy as np
import pytest
import pytorch_lightning as pl
import torch

from vitpos.data.augment import Augment
from vitpos.data.sampler import Shard
from vitpos.training.fit import Batches

AUGMENT = Augment(padding=1, flip=True, mixup=1.0, cutmix=1.0)


def epoch(loader, number=0):
    loader.sampler.set_epoch(number)
    return list(loader)


def assert_same(one, other):
    for a, b in zip(one, other, strict=True):
        for x, y in zip(a, b, strict=True):
            assert torch.equal(x, y)


def test_a_batch_is_images_labels_and_index(toy):
    loader = toy().train_dataloader()
    batches = epoch(loader)
    assert len(batches) == len(loader) == 6  # 48 training images, 8 per batch
    for images, labels, index in batches:
        assert images.shape == (8, 2, 4, 6)
        assert (images.dtype, labels.dtype, index.dtype) == (torch.float32, torch.int64, torch.int64)
        assert torch.equal(labels, index % 3)
        expected = torch.stack(((index / 100 - 0.5) / 0.5, ((index + 3) / 100 - 0.25) / 0.125), 1)
        torch.testing.assert_close(images[:, :, 2, 3], expected)


def test_evaluation_shows_each_image_once_in_file_order(toy):
    data = toy()
    seen = {split: torch.cat([i for *_, i in data.eval_dataloader(split)]) for split in ("train", "val", "test")}
    assert sorted(torch.cat((seen["train"], seen["val"])).tolist()) == list(range(60))
    assert seen["test"].tolist() == list(range(10))
    assert all(torch.equal(index, index.sort().values) for index in seen.values())
    assert torch.equal(data.train_dataloader().chosen, seen["train"])


def test_the_same_validation_image_twice_is_the_same_tensor(toy):
    data = toy(augment=AUGMENT)
    assert_same(data.val_dataloader(), data.val_dataloader())


@pytest.mark.parametrize("seed", [0, 1, 2])
def test_splits_do_not_depend_on_the_training_seed(toy, seed):
    for split in ("train", "val"):
        assert_same(toy(seed=seed, limit_train=12).eval_dataloader(split), toy(limit_train=12).eval_dataloader(split))


@pytest.mark.parametrize("world", [2, 4])
@pytest.mark.parametrize("augment", [Augment(), Augment(padding=1, flip=True), AUGMENT])
def test_any_number_of_ranks_trains_on_the_same_batches(toy, world, augment):
    data = toy(augment=augment)
    alone = epoch(data.train_loader(Shard()), 3)
    ranks = [epoch(data.train_loader(Shard(rank, world)), 3) for rank in range(world)]
    for whole, parts in zip(alone, zip(*ranks, strict=True), strict=True):
        together = [torch.cat(each) for each in zip(*parts, strict=True)]
        order, place = together[2].sort()[1], whole[2].sort()[1]
        for one, other in zip(whole, together, strict=True):
            assert torch.equal(one[place], other[order])


@pytest.mark.parametrize("world", [1, 2, 3, 4])
@pytest.mark.parametrize("split", ["train", "val", "test"])
def test_any_number_of_ranks_evaluates_each_image_once(toy, world, split):
    data = toy()
    alone = torch.cat([index for *_, index in data.eval_loader(split, (4, 6), Shard())])
    loaders = [data.eval_loader(split, (4, 6), Shard(rank, world)) for rank in range(world)]
    parts = [torch.cat([index for *_, index in loader]) for loader in loaders]
    assert sorted(torch.cat(parts).tolist()) == alone.tolist()
    assert all(len(list(loader)) == len(loader) for loader in loaders)


def test_more_ranks_than_images_are_refused_by_name(toy):
    with pytest.raises(ValueError, match="10 test images can't be shared by 11 ranks"):
        toy().eval_loader("test", (4, 6), Shard(0, 11))


def test_batches_are_a_function_of_seed_epoch_and_step(toy):
    loader = toy(augment=AUGMENT).train_dataloader()
    first = epoch(loader, 0)
    second = epoch(loader, 1)
    torch.manual_seed(9)
    np.random.seed(9)
    assert_same(epoch(loader, 0), first)
    assert_same(epoch(toy(augment=AUGMENT).train_dataloader(), 1), second)
    assert not torch.equal(first[0][2], second[0][2])
    assert not torch.equal(epoch(toy(seed=1).train_dataloader())[0][2], first[0][2])


def test_the_order_is_the_same_with_and_without_augmentation(toy):
    plain, augmented = (epoch(toy(augment=each).train_dataloader()) for each in (Augment(), AUGMENT))
    assert all(torch.equal(a[2], b[2]) for a, b in zip(plain, augmented, strict=True))


def test_training_draws_nothing_from_the_global_generators(toy):
    before = torch.get_rng_state(), np.random.get_state()[1].copy()
    epoch(toy(augment=AUGMENT).train_dataloader())
    assert torch.equal(torch.get_rng_state(), before[0])
    assert np.array_equal(np.random.get_state()[1], before[1])


def test_an_iteration_continues_where_a_stored_one_stood(toy):
    whole = epoch(toy(augment=AUGMENT).train_dataloader(), 2)
    loader = toy(augment=AUGMENT).train_dataloader()
    loader.sampler.set_epoch(2)
    batches = iter(loader)
    for _ in range(4):
        next(batches)
    resumed = toy(augment=AUGMENT).train_dataloader()
    resumed.load_state_dict(loader.state_dict())
    assert_same(epoch(resumed, 2), whole[4:])
    assert_same(epoch(resumed, 2), whole)


def test_a_finished_epoch_starts_over(toy):
    loader = toy().train_dataloader()
    whole = epoch(loader)
    loader.load_state_dict(loader.state_dict())
    assert_same(epoch(loader), whole)


# Lightning's own warnings: a deprecated call of torch's, advice on validation and loggers.
lightning_noise = pytest.mark.filterwarnings("ignore::FutureWarning", "ignore::UserWarning")


class Recorder(pl.LightningModule):
    def __init__(self, interrupt=None):
        super().__init__()
        self.weight = torch.nn.Parameter(torch.zeros(()))
        self.seen, self.interrupt = [], interrupt

    def training_step(self, batch, step):
        self.seen.append((self.current_epoch, step, batch[2].tolist()))
        return self.weight * batch[0].mean()

    def on_train_batch_end(self, *_):
        if self.global_step == self.interrupt:
            self.trainer.save_checkpoint(self.trainer.default_root_dir + "/stop.ckpt")
            raise KeyboardInterrupt

    def configure_optimizers(self):
        return torch.optim.SGD(self.parameters(), lr=0.1)


def trainer(folder):
    return pl.Trainer(
        accelerator="cpu",
        max_epochs=3,
        logger=False,
        enable_checkpointing=False,
        enable_progress_bar=False,
        enable_model_summary=False,
        default_root_dir=folder,
    )


@lightning_noise
@pytest.mark.parametrize("stop", [1, 8, 12])
def test_a_stopped_training_sees_the_images_of_one_never_stopped(toy, tmp_path, stop):
    whole = Recorder()
    trainer(tmp_path).fit(whole, datamodule=Batches(toy(augment=AUGMENT)))
    assert len(whole.seen) == 18
    first = Recorder(interrupt=stop)
    with pytest.raises((KeyboardInterrupt, SystemExit)):
        trainer(tmp_path).fit(first, datamodule=Batches(toy(augment=AUGMENT)))
    second = Recorder()
    trainer(tmp_path).fit(second, datamodule=Batches(toy(augment=AUGMENT)), ckpt_path=str(tmp_path / "stop.ckpt"))
    assert first.seen + second.seen == whole.seen


@lightning_noise
def test_fitting_reads_no_test_image(toy, tmp_path):
    data = toy()
    trainer(tmp_path).fit(Recorder(), datamodule=Batches(data))
    assert data.reads == {"train": 1}
    data.test_dataloader()
    data.test_dataloader()
    assert data.reads == {"train": 1, "test": 1}


def test_the_native_size_passes_untouched_and_other_sizes_are_resampled(toy):
    data = toy()
    native = next(iter(data.eval_dataloader("test")))[0]
    assert torch.equal(native, next(iter(data.eval_dataloader("test", [4, 6])))[0])
    for size in (2, 5, [8, 3], [4, 12]):
        images = next(iter(data.eval_dataloader("test", size)))[0]
        assert images.shape[-2:] == ((size, size) if isinstance(size, int) else tuple(size))
        # A constant channel stays that constant.
        torch.testing.assert_close(images[:, 0, 0, 0], native[:, 0, 0, 0])


def test_training_and_evaluation_see_the_same_image_at_a_new_size(toy):
    data = toy(image_size=[8, 12])
    assert data.spec.image_size == (8, 12)
    train = {
        int(i): x for images, _, index in epoch(data.train_dataloader()) for x, i in zip(images, index, strict=True)
    }
    for images, _, index in data.eval_dataloader("train"):
        for image, number in zip(images, index.tolist(), strict=True):
            assert torch.equal(train.get(number, image), image)


def test_images_are_not_copied_for_an_epoch_or_a_split(toy):
    data = toy()
    pixels = data.train_dataloader().pixels
    assert all(loader.pixels is pixels for loader in (data.train_dataloader(), data.val_dataloader()))


@pytest.mark.parametrize(
    ("overrides", "message"),
    [
        ({"batch_size": 0}, "data.batch_size=0"),
        ({"batch_size": 49}, "data.batch_size=49 is larger than the 48 training images"),
        ({"limit_train": -1}, "data.limit_train=-1"),
        ({"limit_train": 49}, "data.limit_train=49"),
        ({"limit_train": 6}, "data.batch_size=8 is larger than the 6 training images"),
        ({"seed": -1}, "seed=-1"),
        ({"image_size": 0}, "image size 0"),
        ({"transfer_sizes": [[4, 4, 4]]}, "image size"),
    ],
)
def test_a_setting_that_does_not_fit_is_refused_by_name(toy, overrides, message):
    with pytest.raises(ValueError, match=message):
        toy(**overrides).setup()
