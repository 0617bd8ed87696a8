"""One job: take its lock, train it here or in ranks, turn a failure into a record."""

from __future__ import annotations

import logging
import time
import traceback
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal

from filelock import FileLock, Timeout
from hydra.errors import InstantiationException

from vitpos.record import RESULT_FILE, Record, RecordError, read_record, write_record
from vitpos.record.folder import run_folder
from vitpos.sweep.jobs import LOCK_FILE
from vitpos.sweep.process import LOG_FILE, forget_ranks, log_into
from vitpos.sweep.ranks import RankError, launch_ranks, ranks_of

# `is_locked` holds a lock for a moment; a job must not take such a look for another owner.
LOOKING = 0.5


@dataclass(frozen=True)
class Outcome:
    """How a job ended.

    Attributes:
        folder: its run folder.
        status: finished; skipped (finished before); busy (another process runs it); failed.
        seconds: wall time.
        top1: test accuracy, if finished.
        error: first line of the error, if failed.
    """

    folder: Path
    status: Literal["finished", "skipped", "busy", "failed"]
    seconds: float = 0.0
    top1: float | None = None
    error: str = ""


def execute(config: dict[str, Any], threads: int) -> Outcome:
    """Run one job unless it is finished or another process holds it.

    Never raises for what goes wrong inside the job: the failure is written as a record and returned.

    Args:
        config: resolved plain config.
        threads: CPU threads of each process of the job.
    """
    folder, started = run_folder(config), time.perf_counter()
    try:
        folder.mkdir(parents=True, exist_ok=True)
        lock = FileLock(folder / LOCK_FILE).acquire(timeout=LOOKING)
    except Timeout:
        return Outcome(folder, "busy")
    except OSError as error:
        return Outcome(folder, "failed", error=f"{type(error).__name__}: {error}")
    try:
        with lock, log_into(folder / LOG_FILE):
            if _finished(folder):
                return Outcome(folder, "skipped")
            try:
                record = _train(config, folder, threads)
            except Exception as error:
                return _failed(config, folder, error, time.perf_counter() - started)
            seconds = time.perf_counter() - started
            return Outcome(folder, "finished", seconds, record.metrics.get("test/top1"))
    except OSError as error:  # no space or no permission for the log itself
        return Outcome(folder, "failed", time.perf_counter() - started, error=f"{type(error).__name__}: {error}")


def record_crash(config: dict[str, Any], message: str) -> Outcome:
    """Record that a job's process died without a word; called in another process, which does not run the job."""
    folder = run_folder(config)
    try:
        with FileLock(folder / LOCK_FILE).acquire(timeout=LOOKING), log_into(folder / LOG_FILE):
            return _failed(config, folder, RankError(message), 0.0)
    except (OSError, Timeout):
        return Outcome(folder, "failed", error=message)


def _finished(folder: Path) -> bool:
    try:
        return (folder / RESULT_FILE).exists() and read_record(folder).status == "finished"
    except RecordError:
        return False


def _train(config: dict[str, Any], folder: Path, threads: int) -> Record:
    # Imported here: whatever composes, lists and reports jobs must not wait seconds for PyTorch.
    import torch

    from vitpos.training.run import run

    if ranks_of(config) > 1:
        launch_ranks(config, folder, threads)
        return read_record(folder)
    forget_ranks()
    torch.set_num_threads(threads)
    record = run(config)
    assert record is not None
    return record


def _failed(config: dict[str, Any], folder: Path, error: Exception, seconds: float) -> Outcome:
    """Record a failure; when even that is impossible, only report it."""
    from vitpos.training.run import describe

    text = traceback.format_exc()
    if isinstance(error, InstantiationException) and isinstance(error.__cause__, Exception):
        error = error.__cause__  # what the class itself says of its settings
    kind, message = type(error).__name__, str(error)
    if isinstance(error, RankError):
        kind, message, text = error.kind, error.message, str(error)
    logging.getLogger(__name__).error("%s", text)
    lines = message.strip().splitlines()
    first = ": ".join([*([kind] if kind != "RankError" else []), *lines[:1]])
    detail = {"type": kind, "message": message, "traceback": text}
    try:
        record = {**describe(config), "status": "failed", "error": detail}
        write_record(folder, Record.model_validate(record))
    except Exception as second:
        first += f" (and no record could be written: {second})"
    return Outcome(folder, "failed", seconds, error=first)
