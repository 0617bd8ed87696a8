"""Figures while training: when, where, and without touching the training."""

import logging
from types import SimpleNamespace

import numpy as np
import pytest
import pytorch_lightning as pl
import torch
from hydra import compose, initialize_config_dir
from hydra.utils import instantiate
from pytorch_lightning.loggers import WandbLogger
from torch.utils.data import DataLoader, TensorDataset

from vitpos.callbacks.figures import PositionFigures
from vitpos.cli import CONFIG_FOLDER
from vitpos.training.task import ClassificationTask

pytestmark = [
    pytest.mark.filterwarnings("ignore:.*does not have many workers"),
    pytest.mark.filterwarnings("ignore:.*is smaller than the logging interval"),
    pytest.mark.filterwarnings("ignore:.*LeafSpec.* is deprecated"),
]


def task(position_name):
    with initialize_config_dir(str(CONFIG_FOLDER), version_base="1.3"):
        position = dict(compose(f"position/{position_name}").position)
    model = {
        "_target_": "vitpos.models.vit.ViT",
        "_partial_": True,
        **{"patch_size": 2, "dim": 16, "depth": 1, "pool": "cls"},
        "block": {"_target_": "vitpos.models.block.Block", "_partial_": True, "heads": 2},
    }
    return ClassificationTask(
        network={"seed": 5, "model": model, "position": position},
        spec={"image_size": [4, 6], "channels": 1, "classes": 3},
        optim={"lr": 1e-3, "weight_decay": 0.05},
    )


def fit(module, callbacks, folder, epochs=3, checkpoint=None):
    images = torch.randn(8, 1, 4, 6, generator=torch.Generator().manual_seed(0))
    data = DataLoader(TensorDataset(images, torch.arange(8) % 3, torch.arange(8)), batch_size=4)
    trainer = pl.Trainer(
        max_epochs=epochs,
        accelerator="cpu",
        callbacks=callbacks,
        default_root_dir=folder,
        logger=False,
        enable_progress_bar=False,
        enable_model_summary=False,
        enable_checkpointing=False,
    )
    trainer.fit(module, data, data, ckpt_path=checkpoint, weights_only=True)
    return trainer


def names(folder):
    return sorted(path.name for path in (folder / "figures").glob("*.png"))


def test_draws_at_chosen_epochs_at_the_end_and_the_strip(tmp_path):
    fit(task("learned_1d"), [PositionFigures(tmp_path, epochs=[0, 1, 3, 99])], tmp_path)
    assert names(tmp_path) == [
        "similarity.png",
        "similarity_epoch000.png",
        "similarity_epoch001.png",
        "similarity_history.png",
    ]
    assert len(list((tmp_path / "figures").iterdir())) == 4 * 3
    with np.load(tmp_path / "figures" / "similarity_history.npz") as strip:
        assert strip["names"].tolist() == ["epoch 0", "epoch 1", "epoch 3"]
        assert strip["tiles"].shape == (3, 2, 3, 2, 3)
        assert not np.array_equal(strip["tiles"][0], strip["tiles"][2])


def test_caption_says_how_it_was_trained(tmp_path, monkeypatch):
    captions = []
    callback = PositionFigures(tmp_path, epochs=[])
    monkeypatch.setattr(callback, "_send", lambda trainer, name, picture, caption: captions.append((name, caption)))
    fit(task("rope_axial"), [callback], tmp_path, epochs=2)
    assert captions == [
        ("kernel", "RoPE axial, injection rotate; seed 5; 2 of 2 epochs; learning rate 0.001, weight decay 0.05.")
    ]


def test_drawing_changes_no_weight(tmp_path):
    plain, drawn = task("rope_mixed"), task("rope_mixed")
    fit(plain, [], tmp_path, epochs=2)
    fit(drawn, [PositionFigures(tmp_path, epochs=[0, 1])], tmp_path, epochs=2)
    for name, value in plain.state_dict().items():
        assert torch.equal(value, drawn.state_dict()[name]), name


def test_strip_survives_a_resumed_run(tmp_path):
    first = fit(task("learned_1d"), [PositionFigures(tmp_path, epochs=[0, 1])], tmp_path, epochs=1)
    first.save_checkpoint(tmp_path / "last.ckpt")
    before = (tmp_path / "figures" / "similarity_epoch000.npz").read_bytes()
    resumed = PositionFigures(tmp_path, epochs=[0, 1])
    fit(task("learned_1d"), [resumed], tmp_path, epochs=2, checkpoint=tmp_path / "last.ckpt")
    assert (tmp_path / "figures" / "similarity_epoch000.npz").read_bytes() == before
    with np.load(tmp_path / "figures" / "similarity_history.npz") as strip:
        assert strip["names"].tolist() == ["epoch 0", "epoch 2"]


def test_none_writes_a_line_and_no_figure(tmp_path, caplog):
    with caplog.at_level(logging.INFO, logger="vitpos"):
        fit(task("none"), [PositionFigures(tmp_path, epochs=[0])], tmp_path, epochs=1)
    assert "nothing to draw" in caplog.text
    assert not (tmp_path / "figures").exists()


def test_a_failing_picture_does_not_end_the_training(tmp_path, caplog, monkeypatch):
    monkeypatch.setattr("vitpos.callbacks.figures.draw_position", lambda *_: 1 / 0)
    trainer = fit(task("learned_1d"), [PositionFigures(tmp_path, epochs=[1])], tmp_path, epochs=2)
    assert trainer.current_epoch == 2
    assert "could not be drawn" in caplog.text and "ZeroDivisionError" in caplog.text


def test_only_rank_zero_draws(tmp_path):
    trainer = SimpleNamespace(is_global_zero=False, current_epoch=0, max_epochs=1)
    PositionFigures(tmp_path, epochs=[0]).on_train_start(trainer, task("learned_1d"))
    assert not (tmp_path / "figures").exists()


def test_images_go_to_weights_and_biases_under_stable_keys(tmp_path):
    class Recorder(WandbLogger):
        def __init__(self):
            self.sent = []

        def log_image(self, key, images, step=None, **kwargs):
            self.sent.append((key, images, step, kwargs))

    logger = Recorder()
    trainer = SimpleNamespace(loggers=[SimpleNamespace(), logger], global_step=7)
    PositionFigures._send(trainer, "similarity", tmp_path / "similarity_epoch001.png", "caption")
    assert logger.sent == [
        ("figures/similarity", [str(tmp_path / "similarity_epoch001.png")], 7, {"caption": ["caption"]})
    ]


def test_negative_epochs_are_refused(tmp_path):
    with pytest.raises(ValueError, match=r"callbacks.figures.epochs=\[-1, 2\]"):
        PositionFigures(tmp_path, epochs=[2, -1])


def test_built_from_its_config(tmp_path):
    with initialize_config_dir(str(CONFIG_FOLDER), version_base="1.3"):
        settings = compose("callbacks/figures").callbacks
    callback = instantiate(settings.figures)(folder=tmp_path)
    assert isinstance(callback, PositionFigures)
    assert callback.epochs[0] == 0
