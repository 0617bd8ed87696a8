"""Killed runs continue to the very result of an undisturbed one; see drills.py for the long drills."""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path

import pytest

DRILLS = Path(__file__).with_name("drills.py")


def drill(*arguments):
    done = subprocess.run([sys.executable, str(DRILLS), *arguments], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout


@pytest.mark.slow
def test_a_run_killed_before_each_of_its_writes(tmp_path):
    kills = int(drill("writes", str(tmp_path / "drill")).split()[0])
    # Config, id, metrics and checkpoints of three epochs, predictions, record.
    assert kills >= 8


@pytest.mark.slow
def test_memory_and_files_stay_flat(tmp_path):
    drill("memory", str(tmp_path / "drill"), "--times", "5")


@pytest.mark.slow
def test_a_run_killed_at_random_moments(tmp_path):
    # How many kills fit in before the run has finished depends on the machine; that none changes the result does not.
    said = re.match(
        r"(\d+) kills, (\d+) attempts: the same result", drill("moments", str(tmp_path / "drill"), "--times", "10")
    )
    assert said
    kills, attempts = int(said[1]), int(said[2])
    assert 1 <= kills <= 10
    assert attempts == kills + 1
