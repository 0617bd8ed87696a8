"""Two thousand runs in ten seconds and half a gigabyte."""

from __future__ import annotations

import json
import os
import resource
import subprocess
import sys

import pytest
import yaml

SCRIPT = """
import json, pathlib, sys, time
started = time.process_time()
from vitpos.report.command import main
assert main(sys.argv[1:]) == 0
# Not getrusage: its peak starts at that of the process that forked this one.
peak = next(line for line in pathlib.Path("/proc/self/status").read_text().splitlines() if line.startswith("VmHWM"))
print(json.dumps({"seconds": time.process_time() - started, "mib": int(peak.split()[1]) / 1024}), file=sys.stderr)
"""


@pytest.fixture
def many(experiment):
    """2,000 run folders, copied as text from one: writing them properly would take longer than the report."""
    rows = [
        {"height": side, "width": side, "coordinates": "extrapolate", "table": "bicubic", "top1": 0.5, "n": 1000}
        for side in (4, 6, 8, 10, 12)
    ]
    model = {f"setting{number}": number for number in range(80)}
    first = experiment.run("arm0", 0, 0.9, transfer=rows, config={"model": model})
    result, config = (
        json.loads((first / "result.json").read_text()),
        yaml.safe_load((first / "config.yaml").read_text()),
    )
    curve = "epoch,step,lr,train/loss,val/top1\n" + "".join(f"{n},{n},0.001,{1 / (n + 1)},0.5\n" for n in range(100))
    for arm in range(20):
        for seed in range(100):
            name = f"arm{arm}-s{seed}-{arm:04d}{seed:04d}"
            accuracy = 0.9 + 0.001 * arm + 0.0001 * (seed * 7 % 13)
            own = {"run": name, "seed": seed, "metrics": {"test/top1": accuracy, "val/top1": accuracy}}
            position = result["position"] | {"name": f"arm{arm}"}
            folder = experiment.folder / name
            folder.mkdir()
            (folder / "result.json").write_text(json.dumps(result | own | {"position": position}))
            part = {"seed": seed, "position_name": f"arm{arm}"}
            (folder / "config.yaml").write_text(
                "".join(yaml.safe_dump({key: value}) for key, value in (config | part).items())
                if seed == 0
                else (experiment.folder / f"arm{arm}-s0-{arm:04d}0000" / "config.yaml")
                .read_text()
                .replace("seed: 0\n", f"seed: {seed}\n")
            )
            (folder / "metrics.csv").write_text(curve)
    (first / "result.json").unlink()
    return experiment


def test_two_thousand_runs(many):
    command = [sys.executable, "-c", SCRIPT, "experiment=digits", "reference=arm0", f"output_dir={many.folder.parent}"]
    done = subprocess.run(
        command, capture_output=True, text=True, check=False, env=os.environ | {"OMP_NUM_THREADS": "1"}
    )
    assert done.returncode == 0, done.stderr[-2000:]
    used = json.loads(done.stderr.splitlines()[-1])
    assert used["mib"] < 500
    # Processor time, so that a busy machine does not fail the test.
    assert used["seconds"] < 10 * slowness()
    assert "99 of 100" not in done.stdout


def slowness() -> float:
    """How much slower than 25 million loop turns a second this processor is at the moment, at least 1."""
    before = resource.getrusage(resource.RUSAGE_SELF).ru_utime
    total = 0
    for number in range(5_000_000):
        total += number
    return max(1.0, (resource.getrusage(resource.RUSAGE_SELF).ru_utime - before) / 0.2)
