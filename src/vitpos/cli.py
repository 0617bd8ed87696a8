"""What every entry point does before Hydra looks at the command line."""

from __future__ import annotations

import re
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any, cast

CONFIG_FOLDER = Path(__file__).resolve().parents[2] / "conf"
NOTHING = ("", "null", "none", "None", "Null", "~")


def check_arguments(arguments: Sequence[str]) -> None:
    """Refuse, with a helpful line, what Hydra would answer with a traceback or not at all.

    Raises:
        SystemExit: an override written as an option, an `=` inside a value, several experiments, a group switched to
            nothing, or a setting of a group that a chosen file does not own.
    """
    for argument in arguments:
        option = re.match(r"^--([\w.]+=.*)$", argument)
        if option and not argument.startswith(("--config", "--package", "--experimental")):
            sys.exit(f"{argument}: settings have no hyphens, {option[1]}")
    found = (argument.partition("=") for argument in arguments if re.match(r"^[\w/.]+=", argument))
    pairs = [(key, value) for key, _, value in found]
    for key, value in pairs:
        _check_value(key, value)
    chosen = dict(pairs)
    for key, value in pairs:
        _check_owners(key, value, chosen)


def _check_value(key: str, value: str) -> None:
    bare = re.sub(r"'[^']*'|\"[^\"]*\"|\\=", "", value)
    if "=" in bare and not re.match(r"^\w+\(", value):
        sys.exit(f"{key}={value}: a value that holds = needs quotes, {key}=\"'{value}'\"")
    if not (CONFIG_FOLDER / key).is_dir():
        return
    if key == "experiment":
        if "," in value:
            sys.exit(f"{key}={value}: run one experiment at a time")
        return
    choices = sorted(path.stem for path in (CONFIG_FOLDER / key).glob("*.yaml"))
    if value.strip("'\" ") in NOTHING and value not in choices:
        sys.exit(f"{key}={value}: choose one of {', '.join(choices)}")


def _check_owners(key: str, value: str, chosen: dict[str, str]) -> None:
    group, _, setting = key.partition(".")
    if not setting or not (CONFIG_FOLDER / group).is_dir() or group not in chosen:
        return
    names = [name for name in re.split(r"[,\s]+", chosen[group]) if (CONFIG_FOLDER / group / f"{name}.yaml").exists()]
    without = [name for name in names if not owns(group, name, setting)]
    if without and len(without) < len(names):
        owners = ", ".join(name for name in names if name not in without)
        sys.exit(f"{key}={value}: {group} {owners} has this setting; {', '.join(without)} has not. Sweep them apart.")


def owns(group: str, name: str, setting: str) -> bool:
    """Return whether `conf/<group>/<name>.yaml`, with the files it inherits from, has the dotted setting."""
    from omegaconf import OmegaConf

    # Unresolved: what a setting refers to lies in other files.
    loaded = OmegaConf.load(CONFIG_FOLDER / group / f"{name}.yaml")
    config = cast(dict[str, Any], OmegaConf.to_container(loaded, resolve=False))
    parents = [entry for entry in config.get("defaults", []) if isinstance(entry, str) and entry != "_self_"]
    node: object = config
    for part in setting.split("."):
        if not isinstance(node, dict) or part not in node:
            return any(owns(group, parent, setting) for parent in parents)
        node = node[part]
    return True
