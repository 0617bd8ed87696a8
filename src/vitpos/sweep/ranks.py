"""A job of several processes: PyTorch's elastic launcher starts its ranks and ends all of them when one fails."""

from __future__ import annotations

import contextlib
import os
import re
import signal
import subprocess
import sys
from pathlib import Path
from typing import Any

import yaml

from vitpos.record import CONFIG_FILE, write_text_atomic
from vitpos.sweep.process import LOG_FILE, clean_environment

AGENT_ERROR = "agent.error"


class RankError(RuntimeError):
    """A process of a job failed or died.

    Args:
        text: that process's traceback, or what is known of its end.

    Attributes:
        kind: name of the error in the traceback; of this class if there is none.
        message: that error's message, or the whole text.
    """

    def __init__(self, text: str) -> None:
        super().__init__(text)
        self.kind, self.message = type(self).__name__, text.strip()
        _, frame, end = self.message.rpartition("\n  File ")
        found = re.search(r"^(?:\w+\.)*([A-Z]\w*)(?:: |$)", end, re.MULTILINE)
        if frame and found:
            self.kind, self.message = found[1], end[found.end() :]


def ranks_of(config: dict[str, Any]) -> int:
    """Return how many processes a job asks for.

    Raises:
        ValueError: not a positive whole number.
    """
    devices = config["trainer"]["devices"]
    if not isinstance(devices, int) or isinstance(devices, bool) or devices < 1:
        raise ValueError(f"trainer.devices={devices!r}: must be a positive whole number of processes")
    return devices


def launch_ranks(config: dict[str, Any], folder: Path, threads: int) -> None:
    """Run a job in its ranks until they have ended.

    The ranks read the composed config from the run folder; the command line is not run again.

    Args:
        config: resolved plain config.
        folder: its run folder.
        threads: CPU threads of each rank.

    Raises:
        RankError: a rank failed.
    """
    for stale in _errors(folder):
        stale.unlink()
    write_text_atomic(folder / CONFIG_FILE, yaml.safe_dump(config, sort_keys=False))
    command = [sys.executable, "-m", "vitpos.sweep.agent", "--standalone", f"--nproc-per-node={ranks_of(config)}"]
    command += ["-m", "vitpos.sweep.rank", str(folder)]
    environment = clean_environment() | {"OMP_NUM_THREADS": str(threads)}
    with (folder / LOG_FILE).open("ab") as output:
        process = subprocess.Popen(command, stdout=output, stderr=output, env=environment, start_new_session=True)
        try:
            code = process.wait()
        finally:
            with contextlib.suppress(ProcessLookupError):
                # Nothing of the job outlives it: its ranks end when they see that the agent has gone.
                os.killpg(process.pid, signal.SIGKILL)
            process.wait()
    if code:
        reports = _errors(folder)
        if reports:
            raise RankError(reports[0].read_text(encoding="utf-8"))
        raise RankError(f"the processes ended with exit code {code} and left no message; see {folder / LOG_FILE}")


def _errors(folder: Path) -> list[Path]:
    """Return what failed ranks left, the root cause first."""
    ranks = sorted(folder.glob("rank*.error"), key=lambda path: path.stat().st_mtime_ns)
    return [path for path in [folder / AGENT_ERROR] if path.exists()] + ranks
