"""What a run folder says of its run."""

from __future__ import annotations

import pytest
from filelock import FileLock

from vitpos.record import Record, write_record
from vitpos.sweep.jobs import LOCK_FILE, is_locked, state_of


def record_of(status):
    error = {"type": "ValueError", "message": "no"} if status == "failed" else None
    return Record.model_validate(
        {
            "status": status,
            "experiment": "test",
            "run": "none-s0-0123abcd",
            "config_hash": "0123abcd",
            "seed": 0,
            "position": {"name": "none", "label": "None"},
            "model": {"name": "vit_nano"},
            "data": {"name": "digits", "image_size": 8},
            "error": error,
        }
    )


def test_no_folder_is_missing(tmp_path):
    assert state_of(tmp_path / "none") == "missing"
    assert not (tmp_path / "none").exists()


def test_a_folder_of_something_else_is_missing(tmp_path):
    (tmp_path / "notes.txt").write_text("hello")
    assert state_of(tmp_path) == "missing"


def test_a_config_without_a_record_is_interrupted(tmp_path):
    (tmp_path / "config.yaml").write_text("seed: 0\n")
    assert state_of(tmp_path) == "interrupted"


@pytest.mark.parametrize("status", ["finished", "failed"])
def test_a_record_decides(tmp_path, status):
    write_record(tmp_path, record_of(status))
    assert state_of(tmp_path) == status


@pytest.mark.parametrize("content", ["", "{", '{"schema": 1}', '{"schema": 99}', "[]"])
def test_a_record_that_fails_its_checks_is_not_believed(tmp_path, content):
    (tmp_path / "result.json").write_text(content)
    assert state_of(tmp_path) == "damaged"


def test_a_held_lock_is_a_running_job_and_looking_changes_nothing(tmp_path):
    lock = FileLock(tmp_path / LOCK_FILE)
    with lock:
        assert state_of(tmp_path) == "running"
    assert not is_locked(tmp_path)
    before = sorted(tmp_path.iterdir())
    assert state_of(tmp_path) == "missing"
    assert sorted(tmp_path.iterdir()) == before


@pytest.mark.parametrize(
    ("override", "message"),
    [
        ("trainer.max_epochs=0", r"trainer.max_epochs=0: must be a whole number from 1 on"),
        ("trainer.max_epochs=1.5", r"trainer.max_epochs=1.5: must be a whole"),
        ("model.block.heads=0", r"model.block.heads=0: must be a whole"),
        ("trainer.deterministic=nope", r"trainer.deterministic='nope': must be true or false"),
        ("data.augment.flip=no", r"data.augment.flip='no': must be true or false"),
        ("plan=maybe", r"plan='maybe': must be true or false"),
        ("output_dir=null", r"output_dir=None: must be the name of a folder"),
        ("trainer.precision=16-true", r"float16 do not train"),
        ("seed=1.5", r"seed=1.5: must be a whole number"),
        ("experiment=finetune data.image_size=16", r"from=… is missing"),
    ],
)
def test_settings_are_checked_before_they_cost_time(compose, override, message):
    with pytest.raises(ValueError, match=message):
        compose(*override.split())
