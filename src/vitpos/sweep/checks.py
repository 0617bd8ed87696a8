"""Settings that nothing else checks before a job costs time: a word where a number or a switch is meant."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from vitpos.record import run_name

SWITCHES = ("trainer.compile", "trainer.deterministic", "data.augment.flip")
COUNTS = ("trainer.max_epochs", "trainer.accumulate", "model.depth", "model.block.heads")
TEXTS = ("output_dir", "experiment_name")


def check_settings(config: Mapping[str, Any], overrides: Sequence[str]) -> None:
    """Refuse what would fail late or, worse, mean something else.

    Raises:
        ValueError: the setting, its value and the rule.
    """
    for key in SWITCHES:
        check_switch(key, _find(config, key))
    for key in COUNTS:
        value = _find(config, key)
        if value is not None and (not isinstance(value, int) or isinstance(value, bool) or value < 1):
            raise ValueError(f"{key}={value!r}: must be a whole number from 1 on")
    for key in TEXTS:
        if not isinstance(config[key], str | int):
            raise ValueError(f"{key}={config[key]!r}: must be the name of a folder")
    if str(config["trainer"]["precision"]) == "16-true":
        raise ValueError("trainer.precision='16-true': weights in float16 do not train; use 16-mixed or bf16-true")
    # `resize` says how a parent's positions follow; an experiment that has it means nothing without a parent.
    if "resize" in config:
        if not config["from"]:
            raise ValueError("from=… is missing: the folder of the finished run to start from")
        if not any(text.startswith("data.image_size=") for text in overrides):
            raise ValueError("data.image_size=… is missing: the size to go on training at")
    run_name(config)  # refuses a seed that is no whole number


def check_switch(key: str, value: object) -> None:
    """Refuse a switch that is neither true nor false: Hydra takes `no` for a word, and any word counts as true.

    Raises:
        ValueError: the setting and its value.
    """
    if value is not None and not isinstance(value, bool):
        raise ValueError(f"{key}={value!r}: must be true or false")


def _find(config: Mapping[str, Any], key: str) -> Any:
    value: Any = config
    for part in key.split("."):
        value = value.get(part) if isinstance(value, Mapping) else None
    return value
