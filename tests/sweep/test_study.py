"""The end of a sweep: a report that cannot be built or sent does not hide the runs."""

from __future__ import annotations

from types import SimpleNamespace

import pytest
from omegaconf import OmegaConf

from vitpos.sweep.execute import execute
from vitpos.sweep.study import Study, publish_study, track
from vitpos.sweep.sync import offline_runs
from vitpos.training import tracking

REPORT = {"reference": "none", "margin": 0.5}


@pytest.fixture
def study(make_jobs, quick_training):
    def make(*overrides, **report):
        jobs = make_jobs("position=none", "seed=0,1", *overrides)
        for job in jobs:
            execute(job.config, 1)
        return Study(jobs, OmegaConf.create(REPORT | report))

    return make


def test_nothing_is_reported_before_a_run_has_ended(make_jobs, capsys):
    publish_study(Study(make_jobs("position=none"), OmegaConf.create(REPORT)), send=True)
    assert capsys.readouterr().out == ""


def test_settings_that_make_no_report_are_said(study, capsys):
    publish_study(study(margin=-1), send=False)
    assert capsys.readouterr().out.startswith("no report: margin=-1")


def test_a_report_that_cannot_be_written_is_said(study, capsys):
    jobs = study()
    jobs.folder.joinpath("report").write_text("a file in the way")
    publish_study(jobs, send=False)
    assert "no report: " in capsys.readouterr().out


def test_a_study_that_cannot_be_sent_is_said(study, capsys, monkeypatch):
    def refuse(self, folder, **options):
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(tracking.WandbTracking, "open", refuse)
    publish_study(study("logger=wandb"), send=True)
    text = capsys.readouterr().out
    assert "report    " in text
    assert "no W&B report: [Errno 28] No space left on device" in text


def test_without_tracking_nothing_is_sent(study):
    jobs = study()
    publish_study(jobs, send=True)
    assert not list(jobs.folder.rglob("*wandb*"))
    assert track(jobs.jobs[0].config) == ""


def test_a_study_whose_server_is_lost_is_sent_later(study, capsys, monkeypatch, tmp_path, caplog):
    """As with a job's run: said once, closed all the same, and left to `make sync`."""
    file = tmp_path / "wandb" / "run-1-x" / "run-x.wandb"
    file.parent.mkdir(parents=True)
    file.touch()
    closed = []

    def lose(content):
        raise ConnectionResetError("Connection lost")

    def finish(exit_code):
        closed.append(exit_code)

    run = SimpleNamespace(
        log=lose,
        finish=finish,
        offline=False,
        settings=SimpleNamespace(sync_file=file),
    )
    monkeypatch.setattr(tracking.WandbTracking, "open", lambda self, folder, **options: run)
    publish_study(study("logger=wandb"), send=True)
    assert "report    " in capsys.readouterr().out
    assert closed == [0]
    assert sum("W&B has failed (Connection lost)" in entry.message for entry in caplog.records) == 1
    assert offline_runs(tmp_path / "wandb")[0] == [file.parent]
