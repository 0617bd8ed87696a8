"""Where a run lies."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from vitpos.record.identity import run_name


def run_folder(config: Mapping[str, Any]) -> Path:
    """Return the folder of a run: `output_dir/experiment_name/<position>-s<seed>-<hash>`."""
    return Path(config["output_dir"]) / str(config["experiment_name"]) / run_name(config)
