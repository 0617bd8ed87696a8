"""A run's config as flat settings: dotted key -> value as text, read fast enough for thousands of runs."""

from __future__ import annotations

import functools
import json
import re
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import yaml

from vitpos.record import CONFIG_FILE, EXCLUDED

NOT = "-"  # the value of a setting that a run does not have
# Top-level keys that say which run this is, not under which conditions it was trained.
_IDENTIFYING = ("seed", "position", "from", "parent")
# libyaml's parser is ten times as fast as the Python one.
_LOADER = getattr(yaml, "CSafeLoader", yaml.SafeLoader)
# Every key in the first column starts a part; lists of a top-level key may stand in the first column too.
_PART = re.compile(r"^(?=[^\s#-])", re.MULTILINE)


def read_settings(folder: Path) -> dict[str, str] | None:
    """Return the settings in a run's `config.yaml`, None without the file.

    Raises:
        ValueError: the file can't be read or is not a YAML mapping.
    """
    try:
        text = (folder / CONFIG_FILE).read_text(encoding="utf-8")
    except FileNotFoundError:
        return None
    except OSError as error:
        raise ValueError(str(error)) from error
    try:
        return _settings(text)
    except yaml.YAMLError as error:
        raise ValueError(str(error).splitlines()[0]) from error


def flatten(settings: Mapping[str, Any], prefix: str = "") -> dict[str, str]:
    """Return dotted key -> value as text of nested settings."""
    flat: dict[str, str] = {}
    for key, value in settings.items():
        dotted = f"{prefix}.{key}" if prefix else str(key)
        if isinstance(value, dict) and value:
            flat |= flatten(value, dotted)
        else:
            flat[dotted] = _text(value)
    return flat


@functools.cache
def is_condition(key: str) -> bool:
    """Return whether a dotted setting can change a result and is neither position nor seed."""
    parents = {key[:place] for place, character in enumerate(key) if character == "."} | {key}
    return parents.isdisjoint(EXCLUDED) and parents.isdisjoint(_IDENTIFYING)


def _settings(text: str) -> dict[str, str]:
    # Anchors, tags and document marks tie parts together; such a file is read as one.
    if any(mark in text for mark in ("&", "*", "!", "---", "\t")):
        return dict(_read_part(text))
    flat: dict[str, str] = {}
    for part in _PART.split(text):
        flat |= _read_part(part)
    return flat


@functools.lru_cache(maxsize=50_000)
def _read_part(text: str) -> Mapping[str, str]:
    """Return the settings in a piece of YAML; most runs of a study share most pieces, so each is read once."""
    content = yaml.load(text, Loader=_LOADER)
    if content is None:
        return {}
    if not isinstance(content, dict):
        raise yaml.YAMLError(f"holds a {type(content).__name__}, not settings")
    return flatten(content)


def _text(value: Any) -> str:
    """Return a setting's value as a person types it."""
    if value is None:
        return NOT
    if isinstance(value, float):
        return f"{value:.10g}"
    return json.dumps(value, default=str) if isinstance(value, bool | list | dict) else str(value)
