"""A tracked sweep, read back from its `.wandb` files: one run per job, whole, closed, and nothing elsewhere."""

from __future__ import annotations

import json
import os
from types import SimpleNamespace

import pytest
import wandb
from omegaconf import OmegaConf

from vitpos.record import read_record
from vitpos.sweep.execute import execute
from vitpos.sweep.overview import run_jobs

REPORT = OmegaConf.create({"reference": "sincos_2d", "margin": 0.5})


@pytest.fixture(scope="module")
def home(tmp_path_factory):
    """A home folder of its own, and W&B told nothing but to stay offline."""
    with pytest.MonkeyPatch.context() as patch:
        for name in [name for name in os.environ if name.startswith("WANDB_")]:
            patch.delenv(name)
        wandb.teardown()
        patch.setenv("HOME", str(tmp_path_factory.mktemp("home")))
        patch.setenv("WANDB_MODE", "offline")
        # What is set while runs are open ends with the test.
        for name in ("WANDB_CACHE_DIR", "WANDB_DATA_DIR", "WANDB_ARTIFACT_DIR"):
            patch.setenv(name, "")
        yield tmp_path_factory.getbasetemp() / os.environ["HOME"]
        wandb.teardown()


@pytest.fixture(scope="module")
def sweep(home, expand_into, here, wandb_files, tmp_path_factory):
    """A sweep of two jobs, the second of which fails in its second epoch."""
    folder = tmp_path_factory.mktemp("sweep")
    jobs, _, _ = expand_into(
        folder,
        "position=sincos_2d",
        "optim.lr=1e-3,1e30",
        "optim.warmup=0",
        "optim.grad_clip=0",
        "trainer.max_epochs=2",
        "logger=wandb",
        "logger.tags=[mine]",
        "callbacks=figures",
        "transfer=default",
        "data.transfer_sizes=[8,[8,12]]",
    )
    import matplotlib.pyplot as plt

    figures = plt.get_fignums()
    finished = run_jobs(jobs, here, fail_fast=False, report=REPORT)
    files = {file.run.display_name: file for file in wandb_files(folder)}
    return SimpleNamespace(
        folder=folder, jobs=jobs, finished=finished, files=files, figures=(figures, plt.get_fignums())
    )


def test_every_job_has_its_own_run(sweep, wandb_files):
    assert not sweep.finished
    assert len(wandb_files(sweep.folder)) == 3
    for job in sweep.jobs:
        run = sweep.files[job.name].run
        assert (run.run_group, run.job_type, list(run.tags)) == ("test", "train", ["sincos_2d", "mine"])
    assert len({file.run.run_id for file in sweep.files.values()}) == 3


def test_the_config_is_nested_plain_and_its_own(sweep):
    for job in sweep.jobs:
        config = sweep.files[job.name].config
        ours = {key: value for key, value in config.items() if key != "_wandb"}
        assert {key: ours[key] for key in job.config} == json.loads(json.dumps(job.config))
        assert set(ours) - set(job.config) == {"folder", "commit", "config_hash"}
        assert ours["folder"] == str(job.folder)
        assert "${" not in json.dumps(ours)
        assert ours["overrides"] == list(job.overrides)


def test_a_failed_job_is_closed_as_failed(sweep):
    good, bad = sweep.jobs
    assert sweep.files[good.name].exit_code == 0
    assert sweep.files[bad.name].exit_code == 1
    assert read_record(bad.folder).status == "failed"


def test_the_history_is_complete(sweep):
    good = sweep.files[sweep.jobs[0].name]
    for key in ("val/top1", "val/nll", "train/loss"):
        assert len(good.values(key)) == 2, key
    assert good.values("epoch")[0] == 0
    assert good.values("figures/similarity")
    assert [row["_step"] for row in good.history] == list(range(len(good.history)))
    steps = [row["trainer/global_step"] for row in good.history if "val/top1" in row]
    assert steps == sorted(set(steps))


def test_best_and_last_stand_apart_in_the_summary(sweep):
    record, summary = read_record(sweep.jobs[0].folder), sweep.files[sweep.jobs[0].name].summary
    assert summary["val/top1"] == record.metrics["val/top1"]
    assert summary["val/top1_last"] == record.metrics["val/top1_last"]
    assert summary["test/top1"] == record.metrics["test/top1"]
    assert summary["cost/parameters"] == record.cost.parameters
    assert summary["best_epoch"] == record.best_epoch


def test_diagnostics_and_transfer_are_in_the_run(sweep):
    record, file = read_record(sweep.jobs[0].folder), sweep.files[sweep.jobs[0].name]
    assert file.summary["diagnostics/shuffle_top1"] == record.diagnostics["shuffle_top1"]
    assert file.summary["diagnostics/silenced_top1"] == record.diagnostics["silenced_top1"]
    assert {row.top1 for row in record.transfer} == {
        value for name, value in file.summary.items() if name.startswith("transfer/") and name != "transfer/table"
    }
    (table,) = file.values("transfer/table")
    content = json.loads((file.path.parent / "files" / table["path"]).read_text())
    assert len(content["data"]) == len(record.transfer) == 2
    assert {"height", "width", "top1", "coordinates"} <= set(content["columns"])


def test_the_study_is_a_run_of_the_same_group(sweep):
    report = sweep.files["test-report"]
    assert (report.run.run_group, report.run.job_type, report.exit_code) == ("test", "report", 0)
    (table,) = report.values("report/table")
    content = json.loads((report.path.parent / "files" / table["path"]).read_text())
    assert content["columns"][0] == "position"
    assert "report/transfer" in report.summary
    pictures = {path.stem for path in (sweep.folder / "outputs" / "test" / "report").rglob("*.png")}
    assert pictures
    assert {f"report/{name}" for name in pictures} <= set(report.summary)
    assert report.config["jobs"] == [job.name for job in sweep.jobs]


def test_nothing_is_written_elsewhere_and_no_checkpoint_is_copied(sweep, home):
    assert not list(home.rglob("*"))
    for job in sweep.jobs:
        files = [path for path in (job.folder / "wandb").rglob("*") if path.is_file()]
        assert sum(path.stat().st_size for path in files) < 5e6
        assert not [path for path in files if path.suffix == ".ckpt"]
    assert sorted(path.name for path in (sweep.folder / "outputs").iterdir()) == ["test"]


def test_no_figure_is_left_open(sweep):
    before, after = sweep.figures
    assert before == after


def test_a_resumed_run_keeps_its_id(sweep, wandb_files):
    job = sweep.jobs[0]
    (job.folder / "result.json").unlink()
    assert execute(job.config, 1).status == "finished"
    first, second = wandb_files(job.folder)
    assert first.run.run_id == second.run.run_id
    assert second.run.display_name == job.name
    assert read_record(job.folder).resumed


def test_disabled_writes_nothing(expand_into, home, monkeypatch, tmp_path):
    monkeypatch.setenv("WANDB_MODE", "disabled")
    (job,), _, _ = expand_into(tmp_path, "position=none", "logger=wandb")
    assert execute(job.config, 1).status == "finished"
    assert not [path for path in tmp_path.rglob("*") if "wandb" in path.name]
    assert not list(home.rglob("*"))


def test_a_dead_server_costs_one_message(expand_into, home, monkeypatch, tmp_path, wandb_files, caplog):
    monkeypatch.delenv("WANDB_MODE")
    monkeypatch.setenv("WANDB_BASE_URL", "http://127.0.0.1:9")
    monkeypatch.setenv("WANDB_API_KEY", "0" * 40)
    (job,), _, _ = expand_into(tmp_path, "position=none", "logger=wandb")
    outcome = execute(job.config, 1)
    assert outcome.status == "finished"
    messages = [record.getMessage() for record in caplog.records if "W&B" in record.getMessage()]
    assert messages == ["W&B is offline: http://127.0.0.1:9 does not answer; `make sync` uploads the runs later"]
    (file,) = wandb_files(tmp_path)
    assert file.exit_code == 0
    assert file.path.parent.name.startswith("offline-run-")
    assert file.values("val/top1")


@pytest.mark.slow
def test_fifty_pictures_leave_no_figure_open(expand_into, tmp_path):
    import matplotlib.pyplot as plt

    from vitpos.callbacks.figures import PositionFigures
    from vitpos.training.build import build_data
    from vitpos.training.fit import plain_spec
    from vitpos.training.task import ClassificationTask

    (job,), _, _ = expand_into(tmp_path, "position=sincos_2d")
    network = {key: job.config[key] for key in ("seed", "model", "position")}
    optim = {key: value for key, value in job.config["optim"].items() if key != "_target_"}
    task = ClassificationTask(network, plain_spec(build_data(job.config)), optim)
    figures = PositionFigures(folder=tmp_path, epochs=[1])
    trainer = SimpleNamespace(is_global_zero=True, current_epoch=0, max_epochs=9, loggers=[], global_step=0)
    before = plt.get_fignums()
    for _ in range(50):
        figures.on_train_epoch_end(trainer, task)
    assert plt.get_fignums() == before
