"""What it takes to read the configuration: `scripts/train.py --cfg job`."""

from __future__ import annotations

import resource
import subprocess
import sys
import time
from collections.abc import Sequence
from statistics import median

from vitpos.benchmark.settings import Settings
from vitpos.benchmark.table import Table
from vitpos.cli import CONFIG_FOLDER

BASELINE = "import torch"
SCRIPTS = CONFIG_FOLDER.parent / "scripts"


def measure(settings: Settings) -> list[Table]:
    """Return seconds of the command beside those of importing PyTorch, in turn."""
    ours = [sys.executable, str(SCRIPTS / "train.py"), "--cfg", "job"]
    theirs = [sys.executable, "-c", BASELINE]
    for command in (ours, theirs):
        _seconds(command)
    times = [(_seconds(ours), _seconds(theirs)) for _ in range(settings.rounds)]
    ratios = [own[0] / other[0] for own, other in times]
    row = {
        "name": "train.py --cfg job",
        "baseline": BASELINE,
        "ratio": median(ratios),
        "min": min(ratios),
        "max": max(ratios),
        "rounds": settings.rounds,
        "cpu_seconds": median(own[0] for own, _ in times),
        "wall_seconds": median(own[1] for own, _ in times),
    }
    return [Table("startup", "Start of the command line", [row], "ratio: of CPU seconds.")]


def _seconds(command: Sequence[str]) -> tuple[float, float]:
    """Return the CPU and the wall seconds of a command.

    Raises:
        subprocess.CalledProcessError: it fails.
    """
    before, started = _spent(), time.perf_counter()
    subprocess.run(command, check=True, stdout=subprocess.DEVNULL)
    return _spent() - before, time.perf_counter() - started


def _spent() -> float:
    usage = resource.getrusage(resource.RUSAGE_CHILDREN)
    return usage.ru_utime + usage.ru_stime
