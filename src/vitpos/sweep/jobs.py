"""What a job is, and what its folder says of it."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal

from filelock import FileLock, Timeout
from omegaconf import DictConfig, OmegaConf

from vitpos.record import CONFIG_FILE, RESULT_FILE, RecordError, read_record
from vitpos.record.folder import run_folder
from vitpos.sweep.checks import check_settings, check_switch

State = Literal["finished", "failed", "running", "interrupted", "missing", "damaged"]
LOCK_FILE = ".lock"
# Settings of the command rather than of a run.
COMMAND_KEYS = ("hydra", "plan", "fail_fast", "report")


@dataclass(frozen=True)
class Job:
    """One run to be: its resolved plain config and the overrides it was composed from."""

    config: dict[str, Any]
    overrides: tuple[str, ...]

    @property
    def folder(self) -> Path:
        """Folder of the run."""
        return run_folder(self.config)

    @property
    def name(self) -> str:
        """Name of the run."""
        return self.folder.name


def divide_overrides(jobs: Sequence[Job]) -> tuple[list[str], dict[str, str]]:
    """Return the overrides that all jobs share, and by name those that each has for itself."""
    if len(jobs) < 2:
        return [], {job.name: " ".join(job.overrides) for job in jobs}
    shared = [text for text in jobs[0].overrides if all(text in job.overrides for job in jobs)]
    return shared, {job.name: " ".join(text for text in job.overrides if text not in shared) for job in jobs}


def make_job(composed: DictConfig, overrides: tuple[str, ...]) -> Job:
    """Return the job of a composed Hydra config.

    Raises:
        omegaconf.OmegaConfBaseException: an interpolation that cannot be resolved, or a missing value.
        ValueError: a folder name that would leave `output_dir`, a `from` that cannot be continued, or a setting that
            `check_settings` refuses.
    """
    if composed["from"]:
        from vitpos.training.finetune import inherit

        composed = inherit(composed, overrides)
    settings = {key: composed._get_node(key) for key in composed if key not in COMMAND_KEYS}
    plain = {
        str(key): OmegaConf.to_container(node, resolve=True, throw_on_missing=True)
        if OmegaConf.is_config(node)
        else composed[key]
        for key, node in settings.items()
    }
    for key in ("plan", "fail_fast"):
        check_switch(key, composed[key])
    name = str(plain["experiment_name"])
    if not name or name.startswith(".") or Path(name).name != name:
        raise ValueError(f"experiment_name={name!r}: must be a plain folder name")
    check_settings(plain, overrides)
    return Job({**plain, "overrides": list(overrides)}, overrides)


def state_of(folder: Path) -> State:
    """Return what a run folder says: only a record that passes its checks makes a run finished or failed."""
    if not folder.is_dir():
        return "missing"
    if is_locked(folder):
        return "running"
    if (folder / RESULT_FILE).exists():
        try:
            return read_record(folder).status
        except RecordError:
            return "damaged"
    return "interrupted" if (folder / CONFIG_FILE).exists() else "missing"


def is_locked(folder: Path) -> bool:
    """Return whether a living process holds the run; looking leaves nothing behind."""
    path = folder / LOCK_FILE
    if not path.exists():
        return False
    lock = FileLock(path)
    try:
        with lock.acquire(blocking=False):
            return False
    except Timeout:
        return True
    except OSError:  # a folder of another user
        return False
