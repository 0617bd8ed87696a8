"""A record is there whole or not at all, and is checked before it is believed."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from vitpos.record import RecordError, read_record, read_records, write_record, write_text_atomic


def write_run(make_record, experiment: Path, name: str, **changes) -> Path:
    folder = experiment / name
    folder.mkdir(parents=True)
    write_record(folder, make_record(run=name, **changes))
    return folder


def test_round_trip(tmp_path, make_record):
    record = make_record(
        transfer=[{"height": 12, "width": 8, "coordinates": "rescale", "table": "bicubic", "top1": 0.5}]
    )
    write_record(tmp_path, record)
    assert read_record(tmp_path) == record
    assert json.loads((tmp_path / "result.json").read_text())["schema"] == 1
    assert [path.name for path in tmp_path.iterdir()] == ["result.json"]


def test_readable_like_any_file(tmp_path):
    (tmp_path / "plain").write_text("")
    write_text_atomic(tmp_path / "atomic", "")
    assert (tmp_path / "atomic").stat().st_mode == (tmp_path / "plain").stat().st_mode


def test_changed_after_building_is_checked_again(tmp_path, make_record):
    record = make_record()
    record.metrics["test/top1"] = 75.0
    with pytest.raises(ValueError, match="fraction"):
        write_record(tmp_path, record)
    assert not list(tmp_path.iterdir())


def test_failing_disk_leaves_the_old_record_and_no_rest(tmp_path, monkeypatch, make_record):
    write_record(tmp_path, make_record(seed=1))

    def full(descriptor):
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(os, "fsync", full)
    with pytest.raises(OSError, match="No space"):
        write_record(tmp_path, make_record(seed=2))
    assert read_record(tmp_path).seed == 1
    assert [path.name for path in tmp_path.iterdir()] == ["result.json"]


def test_kill_in_the_middle_of_a_write_leaves_no_half_record(tmp_path):
    script = (
        "import os, signal, sys; from pathlib import Path\n"
        "import vitpos.record.files as files\n"
        "os.fsync = lambda descriptor: os.kill(os.getpid(), signal.SIGKILL)\n"
        "files.write_text_atomic(Path(sys.argv[1]) / 'result.json', '{' * 100000)\n"
    )
    done = subprocess.run([sys.executable, "-c", script, str(tmp_path)], check=False)
    assert done.returncode == -signal.SIGKILL
    assert not (tmp_path / "result.json").exists()
    with pytest.raises(RecordError, match="cannot be read"):
        read_record(tmp_path)


@pytest.mark.parametrize("share", [0.0, 0.3, 0.9, 0.999])
def test_truncated_record(tmp_path, share, make_record):
    write_record(tmp_path, make_record())
    path = tmp_path / "result.json"
    text = path.read_text()
    path.write_text(text[: int(len(text) * share) - 1] if share else "")
    with pytest.raises(RecordError, match=r"result\.json: not valid JSON"):
        read_record(tmp_path)


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"schema": 2}, r"schema 2; this version reads schema 1"),
        ({"schema": None}, r"schema None"),
        ({"status": "done"}, r"status"),
        ({"metrics": {"test/top1": 91.2}}, r"fraction"),
        ({"surprise": 1}, r"surprise"),
        ({"seed": "three"}, r"seed"),
    ],
)
def test_wrong_content_names_file_and_key(tmp_path, change, message, make_record):
    write_record(tmp_path, make_record())
    path = tmp_path / "result.json"
    path.write_text(json.dumps(json.loads(path.read_text()) | change))
    with pytest.raises(RecordError, match=r"result\.json.*" + message):
        read_record(tmp_path)


@pytest.mark.parametrize("text", ['{"schema": 1, "metrics": {"test/top1": NaN}}', "[]", "\xff"])
def test_not_a_record(tmp_path, text):
    (tmp_path / "result.json").write_bytes(text.encode("latin-1"))
    with pytest.raises(RecordError, match=r"result\.json"):
        read_record(tmp_path)


def test_every_folder_is_accounted_for(tmp_path, make_record):
    good = write_run(make_record, tmp_path, "none-s0-00000000")
    write_run(make_record, tmp_path, "a-s1-00000001", error={"type": "E", "message": "m"}, status="failed")
    (tmp_path / "unfinished").mkdir()
    (tmp_path / "unfinished" / "config.yaml").write_text("seed: 1\n")
    (tmp_path / "holiday-photos").mkdir()
    (tmp_path / "copy of none").mkdir()
    (tmp_path / "copy of none" / "result.json").write_text((good / "result.json").read_text())
    (tmp_path / "broken").mkdir()
    (tmp_path / "broken" / "result.json").write_text("{")
    (tmp_path / "report").mkdir()
    (tmp_path / ".locks").mkdir()
    (tmp_path / "notes.txt").write_text("")
    records, problems = read_records(tmp_path)
    assert [record.run for record in records] == ["a-s1-00000001", "none-s0-00000000"]
    assert {problem.folder.name: problem.kind for problem in problems} == {
        "unfinished": "unfinished",
        "holiday-photos": "foreign",
        "copy of none": "foreign",
        "broken": "unreadable",
    }


def test_missing_experiment_is_named(tmp_path):
    with pytest.raises(RecordError, match="nowhere: no such experiment folder"):
        read_records(tmp_path / "nowhere")


def test_imports_neither_torch_nor_wandb():
    code = "import sys, vitpos.record; sys.exit(bool({'torch', 'wandb', 'pandas', 'matplotlib'} & set(sys.modules)))"
    assert subprocess.run([sys.executable, "-c", code], check=False).returncode == 0
