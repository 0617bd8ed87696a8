"""What runs in a worker process, whoever started it."""

from __future__ import annotations

import contextlib
import faulthandler
import multiprocessing
import os
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from filelock import FileLock

from vitpos.record.folder import run_folder
from vitpos.sweep.execute import Outcome, execute, record_crash
from vitpos.sweep.places import Place, claim
from vitpos.sweep.process import LOG_FILE, die_with_parent, output_into

DEVICES = ".devices"  # beside the experiments: who holds which GPUs

_held: list[FileLock] = []  # a worker keeps its GPUs for life, across jobs


def start(output_dir: str, places: Sequence[Place]) -> None:
    """Prepare a worker of a pool, once: end with the pool, and take GPUs before anything looks for some."""
    die_with_parent()
    # The pool leaves its own way to start processes behind, which loader workers cannot use.
    multiprocessing.set_start_method(None, force=True)  # type: ignore[arg-type]
    if places:
        _held.append(claim(Path(output_dir) / DEVICES, places))


def work(config: dict[str, Any], threads: int) -> Outcome:
    """Run one job, with everything it prints in its own log."""
    folder = run_folder(config)
    with contextlib.suppress(OSError):  # a foreign file in the way, a read-only disk: `execute` reports it
        folder.mkdir(parents=True, exist_ok=True)
    with output_into(folder / LOG_FILE):
        faulthandler.enable()  # a crash in native code leaves a traceback in the log
        if os.environ.get("CUDA_VISIBLE_DEVICES"):
            print(f"GPUs {os.environ['CUDA_VISIBLE_DEVICES']}")
        return execute(config, threads)


def crashed(config: dict[str, Any], message: str) -> Outcome:
    """Record a job whose worker died."""
    with output_into(run_folder(config) / LOG_FILE):
        return record_crash(config, message)
