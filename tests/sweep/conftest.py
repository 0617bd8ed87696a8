"""Sweeps of tiny runs, expanded as the command line would and run in this process."""

from __future__ import annotations

import json
import time

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

    def run(self, jobs, study=0):
        for job in jobs:
            yield execute(job.config, threads=1)


@pytest.fixture(scope="session")
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


@pytest.fixture(scope="session")
def expand_into():
    """Expand a multirun command line without running it: (jobs, loader, master config)."""

    def make(folder, *arguments, base=TINY):
        texts = [f"output_dir={folder / 'outputs'}", "experiment_name=test", *base, *arguments]
        with initialize_config_dir(str(CONFIG_FOLDER), version_base="1.3"):
            hydra = GlobalHydra.instance().hydra
            master = hydra.compose_config("train", texts, run_mode=RunMode.MULTIRUN, with_log_configuration=False)
            jobs = list(expand(hydra.config_loader, master, dict(master.hydra.sweeper.params), texts))
            return jobs, hydra.config_loader, master

    return make


@pytest.fixture
def expand_command(expand_into, tmp_path):
    """Expand a command line whose outputs go to the test's own folder."""
    return lambda *arguments, **options: expand_into(tmp_path, *arguments, **options)


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


class WandbFile:
    """What the `.wandb` file of an offline run says.

    Attributes:
        run: name, group, job type, tags, id.
        config: nested.
        history: one mapping per row, tables and images as W&B's references.
        summary: final values by dotted name.
        exit_code: None for a run that was not closed.
    """

    def __init__(self, path):
        from wandb.proto.wandb_internal_pb2 import Record as Message

        self.path, self.run, self.exit_code = path, None, None
        self.config, self.history, self.summary = {}, [], {}
        for content in self._records(path.read_bytes()):
            message = Message.FromString(content)
            kind = message.WhichOneof("record_type")
            if kind == "run":
                self.run = message.run
                self._update(self.config, message.run.config.update)
            elif kind == "config":
                self._update(self.config, message.config.update)
            elif kind == "history":
                row = {}
                self._update(row, message.history.item)
                self.history.append(row)
                self.summary |= row
            elif kind == "summary":
                self._update(self.summary, message.summary.update)
            elif kind == "exit":
                self.exit_code = message.exit.exit_code

    @staticmethod
    def _update(target, items):
        for item in items:
            keys = list(item.nested_key) or [item.key]
            node = target
            for key in keys[:-1]:
                node = node.setdefault(key, {})
            node[keys[-1]] = json.loads(item.value_json)

    @staticmethod
    def _records(data, block=32768):
        """Yield the records of a LevelDB log: blocks of chunks with a header (checksum, length, kind)."""
        place, parts = 7, []
        while place + 7 <= len(data):
            if block - place % block < 7:
                place += block - place % block
                continue
            length, kind = int.from_bytes(data[place + 4 : place + 6], "little"), data[place + 6]
            parts.append(data[place + 7 : place + 7 + length])
            place += 7 + length
            if kind in (1, 4):  # whole, or last part
                yield b"".join(parts)
                parts = []

    def values(self, key):
        """Return the values of one key over the history, rows without it left out."""
        return [row[key] for row in self.history if key in row]


@pytest.fixture(scope="session")
def wandb_files():
    """Return a function from a folder to the `.wandb` files inside, in the order of their start."""

    def read(folder):
        paths = sorted(folder.rglob("*.wandb"), key=lambda path: path.parent.name)
        end = time.monotonic() + 10
        while True:  # W&B's service writes the last records after `finish` has returned
            files = [WandbFile(path) for path in paths]
            if all(file.exit_code is not None for file in files) or time.monotonic() > end:
                return files
            time.sleep(0.1)

    return read
