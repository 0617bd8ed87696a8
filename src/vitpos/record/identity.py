"""The identity of a run: a hash over every setting that can change the trained network or its test accuracy."""

from __future__ import annotations

import hashlib
import json
import math
from collections.abc import Mapping
from typing import Any

# Dotted keys of the resolved config that cannot change the training result. Everything else is part of the identity, so
# a setting added later counts until somebody shows that it cannot matter.
EXCLUDED = (
    "experiment_name",  # where the result lies
    "output_dir",  # where the result lies
    "position_name",  # a name; the settings themselves are under `position`
    "model_name",  # likewise
    "data_name",  # likewise
    "overrides",  # how the settings were typed
    "from",  # where the parent lies; `parent` names it
    "hydra",  # the launcher and its folders
    "launcher",  # how many jobs run at once, and where
    "logger",  # who is told
    "callbacks",  # what is drawn and shown
    "diagnostics",  # measured on the finished network
    "fewshot",  # measured on the finished network
    "transfer",  # measured on the finished network
    "data.root",  # where the same images lie
    "data.check_files",  # whether they were looked at first
    "data.num_workers",  # how fast they are read; augmentation is a function of (seed, epoch, step) alone
    "data.transfer_sizes",  # measured on the finished network
    "data.shots",  # measured on the finished network
    "trainer.progress",  # what is shown
    "trainer.timeout_minutes",  # how long a rank waits for the others
)


def identity(config: Mapping[str, Any]) -> str:
    """Return 8 hex digits of the SHA-256 of the canonical JSON of a resolved config, without the `EXCLUDED` keys.

    Canonical: keys sorted, tuples as lists, whole floats as integers (`lr: 1.0` is `lr: 1`). The order in which a
    config was composed, and a key that is excluded, leave the identity as it is.

    Args:
        config: plain nested mapping, interpolations resolved.

    Raises:
        ValueError: a value that is not plain (None, bool, number, string, list, mapping with string keys), by its key.
    """
    text = json.dumps(_canonical(config, ""), sort_keys=True, separators=(",", ":"), allow_nan=False)
    return hashlib.sha256(text.encode()).hexdigest()[:8]


def run_name(config: Mapping[str, Any]) -> str:
    """Return the name of the run and of its folder, `<position_name>-s<seed>-<identity>`.

    Raises:
        ValueError: `position_name` or `seed` missing or unusable.
    """
    name, seed = config.get("position_name"), config.get("seed")
    if not isinstance(name, str) or not name or "/" in name:
        raise ValueError(f"position_name={name!r}: must be the name of a file in conf/position")
    if not isinstance(seed, int) or isinstance(seed, bool):
        raise ValueError(f"seed={seed!r}: must be a whole number")
    return f"{name}-s{seed}-{identity(config)}"


def _canonical(value: Any, path: str) -> Any:
    """Return a plain copy of `value`, which sits at the dotted key `path`, without excluded keys."""
    if isinstance(value, Mapping):
        plain = {}
        for key, item in value.items():
            if not isinstance(key, str):
                raise ValueError(f"config key {path or '(top)'}: {key!r} is not a string")
            inner = f"{path}.{key}" if path else key
            if inner not in EXCLUDED:
                plain[key] = _canonical(item, inner)
        return plain
    if isinstance(value, list | tuple):
        return [_canonical(item, f"{path}[{index}]") for index, item in enumerate(value)]
    if isinstance(value, float):
        if not math.isfinite(value):
            return repr(value)  # .inf is a legitimate setting, JSON has no number for it
        return int(value) if value.is_integer() else value
    if value is None or isinstance(value, bool | int | str):
        return value
    raise ValueError(f"config key {path}={value!r}: {type(value).__name__} is not a plain value")
