"""One run, in this process: what it writes, that arms are paired, that it can be repeated and resumed."""

import csv
import json

import pytest
import torch
import yaml

from vitpos.data.base import ImageData
from vitpos.record import read_record
from vitpos.record.folder import run_folder
from vitpos.training.build import build_data, build_model
from vitpos.training.fit import History
from vitpos.training.run import run
from vitpos.training.task import ClassificationTask, NonFiniteLossError


def rows_of(folder):
    return list(csv.DictReader((folder / "metrics.csv").read_text().splitlines()))


def common(model):
    return {name: value for name, value in model.state_dict().items() if not name.startswith("position.")}


def test_arms_share_backbone_weights_and_batches(compose, position_name):
    reference, arm = compose("position=none", "seed=4"), compose(f"position={position_name}", "seed=4")
    batches = []
    models = []
    for config in (reference, arm):
        data = build_data(config)
        data.setup()
        models.append(common(build_model(config, data.spec)))
        loader = data.train_dataloader()
        batches.append([tensor for epoch in (0, 1) for tensor in _epoch(loader, epoch)])
    assert models[0].keys() == models[1].keys()
    assert all(torch.equal(value, models[1][name]) for name, value in models[0].items())
    assert all(torch.equal(a, b) for a, b in zip(*batches, strict=True))


def _epoch(loader, epoch):
    loader.sampler.set_epoch(epoch)
    return [tensor for batch in loader for tensor in batch]


def test_a_run_leaves_a_self_describing_folder(compose):
    config = compose("position=learned_1d", "trainer.max_epochs=2")
    record = run(config)
    folder = run_folder(config)
    assert record == read_record(folder)
    assert yaml.safe_load((folder / "config.yaml").read_text()) == config
    rows = rows_of(folder)
    assert [row["epoch"] for row in rows] == ["0", "1"]
    assert float(rows[record.best_epoch]["val/top1"]) == record.metrics["val/top1"]
    assert record.metrics["val/top1"] == max(float(row["val/top1"]) for row in rows)
    assert record.metrics["val/top1_last"] == float(rows[-1]["val/top1"])
    assert {"test/top1", "test/top5", "test/nll", "test/ece"} <= set(record.metrics)
    assert record.cost.position_parameters == 17 * 16
    assert record.position.name == "learned_1d"
    assert record.position.injection == "stem"
    assert record.seed == 0
    assert len(record.commit or "") in (0, 40, 41)
    assert (folder / "predictions.npz").exists()
    assert "${" not in json.dumps(config)

    # The checkpoint alone rebuilds the network, without unpickling anything but tensors and plain containers.
    path = folder / "checkpoints" / "best.ckpt"
    torch.load(path, weights_only=True)
    task = ClassificationTask.load_from_checkpoint(path, map_location="cpu").eval()
    again = ClassificationTask.load_from_checkpoint(path, map_location="cpu").eval()
    images = torch.randn(2, 1, 8, 8)
    assert torch.equal(task(images), again(images))
    assert not [name for name in task.hparams if name not in ("network", "spec", "optim")]
    assert "=" not in path.name


def test_equal_runs_are_equal_and_test_data_stay_shut_while_training(compose, monkeypatch):
    reads = []
    original = ImageData.eval_dataloader

    def counting(self, split, image_size=None):
        reads.append(split)
        return original(self, split, image_size)

    monkeypatch.setattr(ImageData, "eval_dataloader", counting)
    seen = []
    monkeypatch.setattr(History, "on_fit_end", lambda self, trainer, module: seen.extend(reads), raising=False)
    metrics = [run(compose("position=rope_mixed", "seed=2", f"experiment_name={name}")).metrics for name in ("a", "b")]
    assert metrics[0] == metrics[1]
    assert seen
    assert "test" not in seen[: len(seen) // 2]


class StopError(Exception):
    """Stands for a kill."""


def run_until(config, epoch, monkeypatch):
    """Train and stop where an epoch would start."""

    def stop(self, trainer, module):
        if trainer.current_epoch == epoch:
            raise StopError

    with monkeypatch.context() as patch:
        patch.setattr(History, "on_train_epoch_start", stop)
        with pytest.raises(StopError):
            run(config)


def test_a_stopped_run_continues_as_if_never_stopped(compose, monkeypatch):
    overrides = ("position=sincos_2d", "trainer.max_epochs=3", "model.drop_path=0.3", "model.depth=2")
    whole = run(compose(*overrides, "experiment_name=whole"))
    config = compose(*overrides, "experiment_name=stopped")

    run_until(config, 1, monkeypatch)
    resumed = run(config)
    assert resumed.resumed
    assert not whole.resumed
    assert resumed.metrics == whole.metrics

    def losses(name):
        rows = rows_of(run_folder(compose(*overrides, f"experiment_name={name}")))
        return [(row["epoch"], row["step"], row["lr"], row["train/loss"]) for row in rows]

    assert losses("stopped") == losses("whole")


def test_a_stopped_run_continues_from_its_last_epoch_even_on_a_plateau(compose, monkeypatch):
    config = compose("trainer.max_epochs=4", "optim.lr=1e-12")  # the first epoch stays the best

    run_until(config, 3, monkeypatch)
    saved = {
        name: torch.load(run_folder(config) / "checkpoints" / f"{name}.ckpt", weights_only=True)["epoch"]
        for name in ("best", "last")
    }
    assert saved == {"best": 0, "last": 2}
    assert run(config).best_epoch == 0


def test_a_damaged_checkpoint_is_named(compose):
    config = compose("trainer.max_epochs=1")
    path = run_folder(config) / "checkpoints" / "last.ckpt"
    path.parent.mkdir(parents=True)
    path.write_bytes(b"PK\x03\x04 half a file")
    with pytest.raises(RuntimeError, match=r"last.ckpt cannot be read .* delete the run folder"):
        run(config)


def test_a_loss_that_is_not_finite_ends_the_run(compose):
    with pytest.raises(NonFiniteLossError, match="training loss is nan in epoch 0"):
        run(compose("optim.lr=1e30", "optim.grad_clip=0", "trainer.max_epochs=2", "optim.warmup=0"))


@pytest.mark.parametrize("override", ["optim.ema_decay=0.9", "data.augment.mixup=0.4", "trainer.accumulate=2"])
def test_options_of_training(compose, override):
    assert run(compose(override)).status == "finished"


def test_learning_rate_counts_optimiser_steps(compose):
    from vitpos.training.optim import rate_at

    for accumulate in (1, 2):
        config = compose(f"trainer.accumulate={accumulate}", "trainer.max_epochs=4", f"experiment_name=a{accumulate}")
        run(config)
        rows = rows_of(run_folder(config))
        steps = int(rows[-1]["step"])
        assert steps == 4 * 2 // accumulate
        for row in rows[:-1]:  # the rate after step s is that of step s
            rate = 1e-3 * rate_at(int(row["step"]), steps, 0.1, 0.01)
            assert float(row["lr"]) == pytest.approx(rate)


def test_what_cannot_be_evaluated_is_refused_before_training(compose):
    for override, message in (
        ("transfer.sizes=[7]", "7x7 px is not divisible"),
        ("transfer.coordinates=stretch", "stretch"),
        ("fewshot.shots=[40]", "40"),
    ):
        config = compose("transfer=default", "fewshot=ridge", override)
        with pytest.raises(ValueError, match=message):
            run(config)
        assert not list((run_folder(config) / "checkpoints").glob("*.ckpt"))


def test_shots_of_the_data_set_shrink_with_limit_train(compose):
    metrics = run(compose("fewshot=ridge")).metrics
    assert "fewshot/5" in metrics
    assert "fewshot/25" not in metrics


@pytest.mark.parametrize("size", [28.0, True, "28", [28], [28, 28, 1], 0, [0, 3]])
def test_image_sizes_are_whole_numbers(size):
    from vitpos.spec import as_size

    with pytest.raises(ValueError, match="image size"):
        as_size(size)


@pytest.mark.parametrize("precision", ["bf16-true", "bf16-mixed"])
def test_half_precision_runs_to_the_end(compose, precision):
    record = run(compose(f"trainer.precision={precision}", "fewshot=ridge", "position=rope_axial"))
    assert record.metrics["fewshot/1"] > 0
    assert record.diagnostics
