"""Shared fixtures: composed configs without a command line."""

from __future__ import annotations

import os
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import pytest

os.environ.setdefault("OMP_NUM_THREADS", "1")  # one test process per core
os.environ["WANDB_MODE"] = "offline"

CONF = Path(__file__).resolve().parents[1] / "conf"
TINY = ("data.limit_train=64", "data.batch_size=32", "trainer.max_epochs=1", "model.depth=2", "model.dim=16")
QUIET = ("logger=none", "transfer=none", "fewshot=none", "diagnostics.images=16", "diagnostics.shuffle_images=16")


@pytest.fixture
def compose(tmp_path: Path) -> Callable[..., dict[str, Any]]:
    """Return a function from overrides to the resolved plain config of a tiny run under `tmp_path`."""

    def make(*overrides: str, base: Sequence[str] = (*TINY, *QUIET)) -> dict[str, Any]:
        from hydra import compose as hydra_compose
        from hydra import initialize_config_dir
        from hydra.core.hydra_config import HydraConfig

        from vitpos.sweep.jobs import make_job

        lines = [f"output_dir={tmp_path / 'outputs'}", *base, *overrides]
        with initialize_config_dir(str(CONF), version_base="1.3"):
            composed = hydra_compose("train", lines, return_hydra_config=True)
            HydraConfig.instance().set_config(composed)
            return make_job(composed, tuple(overrides)).config

    return make


def pytest_generate_tests(metafunc: pytest.Metafunc) -> None:
    """Run a test that asks for `position_name` over every file in conf/position."""
    if "position_name" in metafunc.fixturenames:
        metafunc.parametrize("position_name", sorted(path.stem for path in (CONF / "position").glob("*.yaml")))
