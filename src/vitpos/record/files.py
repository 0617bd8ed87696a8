"""Write a record so that it is there whole or not at all; read it so that nothing unchecked is believed."""

from __future__ import annotations

import json
import os
import tempfile
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

from pydantic import ValidationError

from vitpos.record.schema import SCHEMA, Record

RESULT_FILE = "result.json"
CONFIG_FILE = "config.yaml"
METRICS_FILE = "metrics.csv"
PREDICTIONS_FILE = "predictions.npz"
# What lies beside the run folders of an experiment without being a run.
NOT_RUNS = ("report",)


class RecordError(ValueError):
    """A record that cannot be believed; the message names the file and the problem."""


@dataclass(frozen=True)
class Problem:
    """A folder of an experiment that yields no record.

    Attributes:
        folder: the folder.
        kind: unfinished (a config, no record), unreadable (a record that fails its checks), foreign (no run of ours).
        message: what was found, for a person.
    """

    folder: Path
    kind: Literal["unfinished", "unreadable", "foreign"]
    message: str


def write_text_atomic(path: Path, text: str) -> None:
    """Write `text` in UTF-8; see `write_bytes_atomic`."""
    write_bytes_atomic(path, text.encode())


def write_bytes_atomic(path: Path, content: bytes) -> None:
    """Write `content` to `path` so that a reader sees the old file or the new one, never a part.

    The content goes to a temporary file in the same folder, reaches the disk, and is renamed over the target.

    Raises:
        OSError: folder missing or read-only, disk full; the target is untouched and no temporary file stays.
    """
    descriptor, temporary = tempfile.mkstemp(prefix=f".{path.name}.", suffix=".tmp", dir=path.parent)
    try:
        with os.fdopen(descriptor, "wb") as file:
            # mkstemp gives 0600; results are as readable as any other file of the run.
            os.fchmod(file.fileno(), 0o666 & ~_umask())
            file.write(content)
            file.flush()
            os.fsync(file.fileno())
        Path(temporary).replace(path)
    except BaseException:
        Path(temporary).unlink(missing_ok=True)
        raise
    _sync_folder(path.parent)


def write_record(folder: Path, record: Record) -> None:
    """Write `folder/result.json`, last of all files of a run: a folder without it is unfinished."""
    # Validate again: a record may have been changed after it was built.
    checked = Record.model_validate(record.model_dump(by_alias=True))
    write_text_atomic(folder / RESULT_FILE, checked.to_json())


def read_record(folder: Path) -> Record:
    """Read and check `folder/result.json`.

    Raises:
        RecordError: missing, truncated, not JSON, of another schema version, or failing a check of the schema.
    """
    path = folder / RESULT_FILE
    try:
        content = json.loads(path.read_text(encoding="utf-8"), parse_constant=_refuse_constant)
    except OSError as error:
        raise RecordError(f"{path}: cannot be read ({error.strerror or error})") from error
    except ValueError as error:  # truncated text, NaN, bad UTF-8
        raise RecordError(f"{path}: not valid JSON ({error})") from error
    if not isinstance(content, dict):
        raise RecordError(f"{path}: holds a {type(content).__name__}, not a record")
    if content.get("schema") != SCHEMA:
        raise RecordError(f"{path}: schema {content.get('schema')!r}; this version reads schema {SCHEMA}")
    try:
        return Record.model_validate(content)
    except ValidationError as error:
        first = error.errors(include_url=False)[0]
        where = ".".join(str(part) for part in first["loc"]) or "record"
        more = f" (and {error.error_count() - 1} more)" if error.error_count() > 1 else ""
        raise RecordError(f"{path}: {where}: {first['msg']}{more}") from error


def read_records(experiment: Path) -> tuple[list[Record], list[Problem]]:
    """Read every run folder of an experiment folder, in the order of their names.

    Returns:
        The records, and one `Problem` per folder that yields none. Nothing found in a run folder raises.

    Raises:
        RecordError: the experiment folder itself does not exist.
    """
    if not experiment.is_dir():
        raise RecordError(f"{experiment}: no such experiment folder")
    records: list[Record] = []
    problems: list[Problem] = []
    for folder in sorted(path for path in experiment.iterdir() if path.is_dir()):
        if folder.name in NOT_RUNS or folder.name.startswith("."):
            continue
        if not (folder / RESULT_FILE).exists():
            ours = (folder / CONFIG_FILE).exists()
            message = "started, no result yet" if ours else f"neither {CONFIG_FILE} nor {RESULT_FILE}: not a run"
            problems.append(Problem(folder, "unfinished" if ours else "foreign", message))
            continue
        try:
            record = read_record(folder)
        except RecordError as error:
            problems.append(Problem(folder, "unreadable", str(error)))
            continue
        # A copied folder would count its run twice.
        if record.run != folder.name:
            message = f"its record belongs to run {record.run!r}: a copied or renamed folder"
            problems.append(Problem(folder, "foreign", message))
            continue
        records.append(record)
    return records, problems


def _refuse_constant(constant: str) -> float:
    raise ValueError(f"{constant} is not JSON; numbers that are not finite are stored as null")


def _umask() -> int:
    current = os.umask(0)
    os.umask(current)
    return current


def _sync_folder(folder: Path) -> None:
    """Make the rename itself durable where the system lets a folder be synced."""
    if os.name != "posix":
        return
    descriptor = os.open(folder, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)
