"""Sweeps of tiny runs, expanded as the command line would and run in this process."""

from __future__ import annotations

import pytest
import yaml
from hydra import initialize_config_dir
from hydra.core.global_hydra import GlobalHydra
from hydra.types import RunMode

from vitpos.cli import CONFIG_FOLDER
from vitpos.record import Record, write_record
from vitpos.record.folder import run_folder
from vitpos.sweep.execute import execute
from vitpos.sweep.expand import expand
from vitpos.training import run as training

TINY = (
    "trainer.max_epochs=1",
    "trainer.accelerator=cpu",
    "data.limit_train=64",
    "model.depth=1",
    "model.dim=16",
    "model.block.heads=2",
    "transfer=none",
    "fewshot=none",
    "callbacks=none",
    "diagnostics.images=16",
    "diagnostics.shuffle_images=16",
    "logger=none",
)


class Here:
    """A launcher that runs jobs in this process, one after the other."""

    def at_once(self, jobs):
        return 1

    def run(self, jobs):
        for job in jobs:
            yield execute(job.config, threads=1)


@pytest.fixture
def here():
    return Here()


@pytest.fixture
def quick_training(monkeypatch):
    """Replace training by writing the record of a finished run; returns the configs it was called with.

    A config with a seed listed in the attribute `failing` raises.
    """

    class Calls(list):
        failing = ()

    calls = Calls()

    def run(config):
        calls.append(config)
        if config["seed"] in calls.failing:
            raise RuntimeError(f"seed {config['seed']} does not work")
        folder = run_folder(config)
        (folder / "config.yaml").write_text(yaml.safe_dump(config))
        detail = {"status": "finished", "metrics": {"test/top1": 0.5, "val/top1": 0.5}, "best_epoch": 0, "epochs": 1}
        record = Record.model_validate({**training.describe(config), **detail})
        write_record(folder, record)
        return record

    monkeypatch.setattr(training, "run", run)
    return calls


@pytest.fixture
def expand_command(tmp_path):
    """Expand a multirun command line without running it: (jobs, loader, master config)."""

    def make(*arguments, base=TINY):
        texts = [f"output_dir={tmp_path / 'outputs'}", "experiment_name=test", *base, *arguments]
        with initialize_config_dir(str(CONFIG_FOLDER), version_base="1.3"):
            hydra = GlobalHydra.instance().hydra
            master = hydra.compose_config("train", texts, run_mode=RunMode.MULTIRUN, with_log_configuration=False)
            jobs = expand(hydra.config_loader, master, dict(master.hydra.sweeper.params), texts)
            return jobs, hydra.config_loader, master

    return make


@pytest.fixture
def make_jobs(expand_command):
    """Return a function from a multirun command line to its jobs."""
    return lambda *arguments, **options: expand_command(*arguments, **options)[0]


@pytest.fixture
def make_job(make_jobs):
    """Return a function from a command line to its only job."""

    def make(*arguments, **options):
        (job,) = make_jobs(*arguments, **options)
        return job

    return make
