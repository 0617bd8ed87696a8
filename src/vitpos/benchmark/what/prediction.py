"""The cost model against whole runs on this machine."""

from __future__ import annotations

import os
import tempfile
import warnings
from typing import Any

from rich.progress import track

from vitpos.benchmark.clock import Clock
from vitpos.benchmark.rates import measure_rates
from vitpos.benchmark.runs import compose_jobs, limit, present
from vitpos.benchmark.settings import Settings
from vitpos.benchmark.studies import study_of
from vitpos.benchmark.table import Table
from vitpos.record.folder import run_folder
from vitpos.training.run import run

EPOCHS = 3
TINY = ("data=digits", "data.limit_train=64", "data.shots=[1]")  # runs of little but fixed costs
SHORT, LONG = 12, 24  # epochs of such runs; all figures are drawn before the twelfth


def measure(settings: Settings) -> list[Table]:
    """Return predicted and measured seconds of one run per data set."""
    os.environ["WANDB_MODE"] = "offline"
    names, missing = present(settings.data)
    clock = Clock(settings.place, settings.threads)
    rows = []
    with tempfile.TemporaryDirectory() as folder, warnings.catch_warnings():
        warnings.simplefilter("ignore")
        base = [f"output_dir={folder}", f"model={settings.model}", "logger=none"]
        _seconds([*base, *TINY, "trainer.max_epochs=1", "experiment_name=warm"], clock)
        fixed, per_epoch = _overhead([*base, *TINY], clock)
        for name in track(names, description="whole runs", transient=True):
            overrides = [
                *base,
                f"data={name}",
                *limit(name, settings.images),
                f"trainer.max_epochs={settings.epochs or EPOCHS}",
            ]
            config = compose_jobs(overrides)[0].config
            rates = measure_rates(config, clock)
            predicted = study_of(config).seconds(rates.training, rates.forward, fixed, per_epoch)
            _, measured = _seconds(overrides, clock)
            rows.append(
                {
                    "name": name,
                    "model": settings.model,
                    "predicted_s": predicted,
                    "measured_s": measured,
                    "ratio": predicted / measured,
                    "train_gflops": rates.training / 1e9,
                    "forward_gflops": rates.forward / 1e9,
                    "fixed_s": fixed,
                    "epoch_s": per_epoch,
                }
            )
    note = (
        "A run: training, validation, test, other sizes, few-shot, diagnostics, figures. predicted: matrix products "
        "over the rates that a few steps reached just before, plus the fixed seconds of a run and of an epoch, from "
        "runs on 64 images."
    )
    return [Table("prediction", "The cost model beside whole runs", rows, " ".join([note, *missing]))] if rows else []


def _overhead(overrides: list[str], clock: Clock) -> tuple[float, float]:
    """Return the seconds that a run, and each of its epochs, takes beyond matrix products."""
    beyond = []
    for epochs in (SHORT, LONG):
        config, spent = _seconds([*overrides, f"trainer.max_epochs={epochs}", f"experiment_name=tiny{epochs}"], clock)
        rates = measure_rates(config, clock)
        beyond.append(spent - study_of(config).seconds(rates.training, rates.forward))
    per_epoch = (beyond[1] - beyond[0]) / (LONG - SHORT)
    return beyond[0] - SHORT * per_epoch, per_epoch


def _seconds(overrides: list[str], clock: Clock) -> tuple[dict[str, Any], float]:
    """Return the config of a run and its seconds."""
    config = compose_jobs(overrides)[0].config
    run_folder(config).mkdir(parents=True)
    return config, clock.seconds(lambda: run(config))
