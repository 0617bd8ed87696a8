"""A checkpoint is there whole or not at all."""

import os

import pytest
import torch

from vitpos.training.atomic import AtomicCheckpointIO


def test_a_checkpoint_replaces_the_one_before(tmp_path):
    path = tmp_path / "checkpoints" / "last.ckpt"
    for value in (1, 2):
        AtomicCheckpointIO().save_checkpoint({"value": value, "weights": torch.ones(3)}, path)
    assert torch.load(path, weights_only=True)["value"] == 2
    assert [item.name for item in path.parent.iterdir()] == ["last.ckpt"]


@pytest.mark.parametrize("step", ["fsync", "replace"])
def test_a_write_that_fails_leaves_the_old_one(tmp_path, monkeypatch, step):
    path = tmp_path / "last.ckpt"
    AtomicCheckpointIO().save_checkpoint({"value": 1}, path)

    def full(*args):
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(os if step == "fsync" else type(path), step, full)
    with pytest.raises(OSError, match="No space left"):
        AtomicCheckpointIO().save_checkpoint({"value": 2}, path)
    assert torch.load(path, weights_only=True)["value"] == 1
    assert [item.name for item in tmp_path.iterdir()] == ["last.ckpt"]


def test_a_full_disk_is_an_oserror(tmp_path):
    (tmp_path / ".last.ckpt.tmp").symlink_to("/dev/full")
    with pytest.raises(OSError, match="No space left"):
        AtomicCheckpointIO().save_checkpoint({"value": torch.ones(100_000)}, tmp_path / "last.ckpt")
    assert not list(tmp_path.iterdir())


def test_an_epoch_saved_twice_is_one_file_with_two_names(tmp_path, monkeypatch):
    saver, best, last = AtomicCheckpointIO(), tmp_path / "best.ckpt", tmp_path / "last.ckpt"

    def save(path, epoch):
        saver.save_checkpoint({"epoch": epoch, "global_step": 10 * epoch}, path)
        return torch.load(path, weights_only=True)["epoch"]

    assert [save(best, 1), save(last, 1)] == [1, 1]
    assert best.samefile(last)
    assert save(last, 2) == 2
    assert torch.load(best, weights_only=True)["epoch"] == 1
    assert [save(last, 2), save(best, 3)] == [2, 3]  # the same name again is written again
    monkeypatch.setattr(type(best), "hardlink_to", lambda *_: (_ for _ in ()).throw(OSError("no links here")))
    assert save(last, 3) == 3
    assert not best.samefile(last)
    assert {item.name for item in tmp_path.iterdir()} == {"best.ckpt", "last.ckpt"}
