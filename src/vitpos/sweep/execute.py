"""One job = one process tree with one composed config: lock, train or launch ranks, turn failures into records."""

from __future__ import annotations

import contextlib
import logging
import os
import signal
import subprocess
import sys
import threading
import time
import traceback
import warnings
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal

from filelock import FileLock, Timeout

from vitpos.record import CONFIG_FILE, Record, write_record, write_text_atomic
from vitpos.record.folder import run_folder
from vitpos.sweep.jobs import LOCK_FILE

LOG_FILE = "run.log"
# Variables by which launchers tell a process its rank; found outside one, they are left over from something else.
RANK_VARIABLES = ("RANK", "LOCAL_RANK", "WORLD_SIZE", "LOCAL_WORLD_SIZE", "GROUP_RANK", "MASTER_ADDR", "MASTER_PORT")


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


class RankError(RuntimeError):
    """A process of a multi-process job failed; carries that process's traceback."""


def execute(config: dict[str, Any], threads: int) -> Outcome:
    """Run one job unless it is finished or another process holds it.

    Never raises for what goes wrong inside the job: the failure is written as a record and returned.

    Args:
        config: resolved plain config.
        threads: CPU threads the job may use.
    """
    folder, started = run_folder(config), time.perf_counter()
    try:
        folder.mkdir(parents=True, exist_ok=True)
        lock = FileLock(folder / LOCK_FILE)
        lock.acquire(blocking=False)
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


def _finished(folder: Path) -> bool:
    from vitpos.record import RESULT_FILE, RecordError, read_record

    try:
        return (folder / RESULT_FILE).exists() and read_record(folder).status == "finished"
    except RecordError:
        return False


def _train(config: dict[str, Any], folder: Path, threads: int) -> Record:
    from vitpos.record import read_record

    if ranks_of(config) > 1:
        _launch_ranks(config, folder, threads)
        return read_record(folder)
    import torch

    from vitpos.training.run import run

    torch.set_num_threads(threads)
    for name in RANK_VARIABLES:
        os.environ.pop(name, None)
    record = run(config)
    assert record is not None
    return record


def ranks_of(config: dict[str, Any]) -> int:
    """Return how many processes a job asks for.

    Raises:
        ValueError: not a positive whole number.
    """
    devices = config["trainer"]["devices"]
    if not isinstance(devices, int) or isinstance(devices, bool) or devices < 1:
        raise ValueError(f"trainer.devices={devices!r}: must be a positive whole number of processes")
    return devices


def _launch_ranks(config: dict[str, Any], folder: Path, threads: int) -> None:
    """Start the ranks through PyTorch's elastic launcher, which ends all of them when one fails.

    The ranks read the composed config from the run folder; the command line is not run again.

    Raises:
        RankError: a rank failed.
    """
    import yaml

    for stale in folder.glob("rank*.error"):
        stale.unlink()
    write_text_atomic(folder / CONFIG_FILE, yaml.safe_dump(config, sort_keys=False))
    ranks = ranks_of(config)
    command = [sys.executable, "-m", "torch.distributed.run", "--standalone", f"--nproc-per-node={ranks}"]
    command += ["-m", "vitpos.sweep.rank", str(folder)]
    environment = clean_environment() | {"OMP_NUM_THREADS": str(max(1, threads // ranks))}
    with (folder / LOG_FILE).open("ab") as output:
        process = subprocess.Popen(command, stdout=output, stderr=output, env=environment, start_new_session=True)
        try:
            code = process.wait()
        finally:
            with contextlib.suppress(ProcessLookupError):
                os.killpg(process.pid, signal.SIGKILL)  # nothing of the job outlives it
    if code:
        reports = sorted(folder.glob("rank*.error"), key=lambda path: path.stat().st_mtime)
        if reports:
            raise RankError(reports[0].read_text(encoding="utf-8"))
        raise RankError(f"a rank ended with exit code {code} and left no message; see {folder / LOG_FILE}")


def clean_environment() -> dict[str, str]:
    """Return the environment without the variables that another launcher may have left behind."""
    return {name: value for name, value in os.environ.items() if name not in RANK_VARIABLES}


def _failed(config: dict[str, Any], folder: Path, error: Exception, seconds: float) -> Outcome:
    """Record a failure; when even that is impossible, only report it."""
    from vitpos.training.run import describe

    text = str(error) if isinstance(error, RankError) else traceback.format_exc()
    lines = [line for line in str(error).splitlines() if line.strip()] or [""]
    first = lines[-1] if isinstance(error, RankError) else f"{type(error).__name__}: {lines[0]}"
    logging.getLogger(__name__).error("%s", text)
    detail = {"type": type(error).__name__, "message": str(error), "traceback": text}
    try:
        record = {**describe(config), "status": "failed", "error": detail}
        write_record(folder, Record.model_validate(record))
    except Exception as second:
        first += f" (and no record could be written: {second})"
    return Outcome(folder, "failed", seconds, error=first)


@contextlib.contextmanager
def log_into(path: Path) -> Iterator[None]:
    """Send log messages and warnings of this process to a file, beside wherever they go already."""
    handler = logging.FileHandler(path, encoding="utf-8")
    handler.setFormatter(logging.Formatter("%(asctime)s %(levelname)s %(name)s: %(message)s"))
    root = logging.getLogger()
    showwarning = warnings.showwarning
    root.addHandler(handler)
    logging.captureWarnings(True)
    try:
        yield
    finally:
        logging.captureWarnings(False)
        warnings.showwarning = showwarning
        root.removeHandler(handler)
        handler.close()


def die_with_parent(interval: float = 1.0) -> None:
    """End this process soon after the one that started it has died, so that its locks and devices are free again."""
    parent = os.getppid()

    def watch() -> None:
        while os.getppid() == parent:
            time.sleep(interval)
        os.kill(os.getpid(), signal.SIGKILL)

    threading.Thread(target=watch, daemon=True, name="die-with-parent").start()
