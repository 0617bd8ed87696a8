"""Synthetic experiments with known truth."""

from __future__ import annotations

import csv
import io
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import yaml

from vitpos.record import Record, identity, run_name, write_record
from vitpos.report import build_report

FAMILY = {
    "none": "none",
    "learned_1d": "additive",
    "sincos_2d": "additive",
    "rope_axial": "rotary",
    "relative_1d": "bias",
}
CURVE = "epoch,step,lr,train/loss,val/top1\n0,10,0.0005,2.0,0.4\n1,20,0.001,1.0,0.7\n2,30,0.0001,0.5,0.8\n"


class Experiment:
    """Writes runs as the training writes them."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        folder.mkdir(parents=True, exist_ok=True)

    def run(
        self,
        position: str = "learned_1d",
        seed: int = 0,
        top1: float | None = 0.9,
        *,
        config: dict[str, Any] | None = None,
        answers: np.ndarray | None = None,
        store_config: bool = True,
        **changes: Any,
    ) -> Path:
        """Write one run; `config` overrides top-level parts, `changes` overrides keys of the record."""
        parts: dict[str, Any] = {
            "experiment_name": self.folder.name,
            "position_name": position,
            "seed": seed,
            "position": {"_target_": f"vitpos.position.{position}.X", "_partial_": True},
            "model": {"dim": 64, "depth": 4},
            "data": {"_target_": "vitpos.data.digits.Digits", "root": "data", "image_size": 8, "batch_size": 128},
            "optim": {"lr": 0.001},
            "trainer": {"max_epochs": 30},
            "output_dir": str(self.folder.parent),
        }
        for key, value in (config or {}).items():
            parts[key] = {**parts.get(key, {}), **value} if isinstance(value, dict) else value
        name = run_name(parts)
        numbers = {key: value for key, value in parts["position"].items() if not key.startswith("_")}
        failed = changes.get("status") == "failed"
        record: dict[str, Any] = {
            "schema": 1,
            "status": "finished",
            "experiment": self.folder.name,
            "run": name,
            "config_hash": identity(parts),
            "seed": seed,
            "commit": "0123456789abcdef",
            "started": "2026-01-01T00:00:00+00:00",
            "versions": {"torch": "2.9.0", "vitpos": "0.1.0"},
            "device": "cpu",
            "overrides": [f"position={position}", f"seed={seed}"],
            "position": {
                **numbers,
                "name": position,
                "label": position.replace("_", " "),
                "family": FAMILY.get(position, "additive"),
                "injection": "stem",
            },
            "model": {"name": "vit_nano", **parts["model"]},
            "data": {"name": "digits", **{key: value for key, value in parts["data"].items() if key[0] != "_"}},
        }
        if failed:
            record["error"] = {"type": "ValueError", "message": "loss is NaN", "traceback": "Traceback ..."}
        else:
            record |= {
                "cost": {
                    "parameters": 200_000 + len(position),
                    "position_parameters": 0 if position == "none" else 1088,
                    "flops_per_image": 3.5e6,
                    "train_seconds": 12.0 + seed,
                    "train_images_per_second": 3200.0,
                    "step_ms": 40.0,
                    "peak_memory_mib": 350.0,
                },
                "metrics": {
                    "test/top1": top1,
                    "val/top1": top1,
                    "test/nll": 0.3,
                    "fewshot/5": 0.6,
                    "fewshot/5_sd": 0.01,
                },
                "best_epoch": 2,
                "epochs": 3,
            }
        metrics = changes.pop("metrics", None)
        record |= changes
        if metrics:
            record["metrics"] = {**record["metrics"], **metrics}
        folder = self.folder / name
        folder.mkdir()
        if store_config:
            (folder / "config.yaml").write_text(yaml.safe_dump(parts, sort_keys=False))
        (folder / "metrics.csv").write_text(CURVE)
        if answers is not None:
            label = np.zeros(len(answers), dtype=np.int64)
            np.savez(folder / "predictions.npz", index=np.arange(len(answers)), label=label, prediction=1 - answers)
        write_record(folder, Record.model_validate(record))
        return folder

    def arm(self, position: str, accuracies: list[float], **options: Any) -> None:
        """Write one run per accuracy, seeds from 0."""
        for seed, top1 in enumerate(accuracies):
            self.run(position, seed, top1, **options)


@pytest.fixture
def experiment(tmp_path):
    return Experiment(tmp_path / "outputs" / "digits")


@pytest.fixture
def new_experiment(tmp_path):
    return lambda name: Experiment(tmp_path / "outputs" / name)


def fill(experiment: Experiment) -> Experiment:
    """Write five arms, five seeds; `none` clearly worse, one better, one tied, one not resolved."""
    base = [0.930, 0.935, 0.925, 0.932, 0.928]
    experiment.arm("learned_1d", base)
    experiment.arm("none", [value - 0.15 + 0.002 * (seed % 2) for seed, value in enumerate(base)])
    experiment.arm("rope_axial", [value + 0.02 + 0.001 * (seed % 3) for seed, value in enumerate(base)])
    experiment.arm("sincos_2d", [value + 0.0005 * (seed % 2) for seed, value in enumerate(base)])
    experiment.arm("relative_1d", [value + 0.03 * (seed % 2) - 0.01 for seed, value in enumerate(base)])
    return experiment


@pytest.fixture
def digits(experiment):
    return fill(experiment)


@pytest.fixture(scope="session")
def finished_page(tmp_path_factory):
    """The page of `digits` with one failed run, drawn once for all tests that only read it."""
    experiment = fill(Experiment(tmp_path_factory.mktemp("finished") / "digits"))
    experiment.run("none", 7, status="failed")
    return build_report(experiment.folder) / "report.html"


@pytest.fixture
def read_csv():
    def read(text: str | Path) -> list[dict[str, str]]:
        content = text.read_text() if isinstance(text, Path) else text
        return list(csv.DictReader(io.StringIO(content)))

    return read
