"""What a process of a sweep owes its surroundings: it ends with its parent, and its output goes to the run's log."""

from __future__ import annotations

import contextlib
import functools
import logging
import os
import signal
import sys
import threading
import time
import warnings
from collections.abc import Iterator
from pathlib import Path

LOG_FILE = "run.log"
# Variables by which launchers tell a process its rank; found outside one, they are left over from something else.
RANK_VARIABLES = (
    "RANK",
    "LOCAL_RANK",
    "GROUP_RANK",
    "ROLE_RANK",
    "WORLD_SIZE",
    "LOCAL_WORLD_SIZE",
    "GROUP_WORLD_SIZE",
    "NODE_RANK",
    "MASTER_ADDR",
    "MASTER_PORT",
)
WATCH_SECONDS = 0.25


@functools.cache
def die_with_parent() -> None:
    """End this process soon after the one that started it has died, so that its locks and devices are free again.

    A worker that runs many jobs may call this for each; it watches once.
    """
    parent = os.getppid()

    def watch() -> None:
        while os.getppid() == parent:
            time.sleep(WATCH_SECONDS)
        os.kill(os.getpid(), signal.SIGKILL)

    threading.Thread(target=watch, daemon=True, name="die-with-parent").start()


def clean_environment() -> dict[str, str]:
    """Return the environment without the variables that another launcher may have left behind."""
    return {name: value for name, value in os.environ.items() if name not in RANK_VARIABLES}


def forget_ranks() -> None:
    """Remove such variables from this process, which is no rank of anything."""
    for name in RANK_VARIABLES:
        os.environ.pop(name, None)


@contextlib.contextmanager
def log_into(path: Path) -> Iterator[None]:
    """Send log messages and warnings of this process to a file, beside wherever they go already.

    Raises:
        OSError: the file cannot be opened.
    """
    handler = logging.FileHandler(path, encoding="utf-8")
    handler.setFormatter(logging.Formatter("%(asctime)s %(levelname)s %(name)s: %(message)s"))
    root, ours = logging.getLogger(), logging.getLogger("vitpos")
    level, showwarning = ours.level, warnings.showwarning
    root.addHandler(handler)
    ours.setLevel(logging.INFO)
    logging.captureWarnings(True)
    try:
        yield
    finally:
        logging.captureWarnings(False)
        warnings.showwarning = showwarning
        ours.setLevel(level)
        root.removeHandler(handler)
        with contextlib.suppress(OSError):  # a full disk has been reported by then
            handler.close()


@contextlib.contextmanager
def output_into(path: Path) -> Iterator[None]:
    """Send what this process writes to its terminal, native code included, to the end of a file.

    Nothing is redirected when the file cannot be opened.
    """
    try:
        target = os.open(path, os.O_WRONLY | os.O_APPEND | os.O_CREAT, 0o666)
    except OSError:
        yield
        return
    _flush()
    saved = os.dup(1), os.dup(2)
    os.dup2(target, 1)
    os.dup2(target, 2)
    os.close(target)
    try:
        yield
    finally:
        _flush()
        for number, copy in zip((1, 2), saved, strict=True):
            os.dup2(copy, number)
            os.close(copy)


def _flush() -> None:
    for stream in (sys.stdout, sys.stderr):
        with contextlib.suppress(OSError, ValueError):
            stream.flush()
