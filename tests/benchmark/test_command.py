"""The command on tiny sizes: it runs, and its files have the promised columns. No time is asserted."""

import csv

import pytest

from vitpos.benchmark.command import main
from vitpos.benchmark.networks import model_sizes, position_names
from vitpos.benchmark.runs import compose_jobs, first_job
from vitpos.benchmark.settings import parse
from vitpos.benchmark.what import step
from vitpos.record.folder import run_folder
from vitpos.sweep.execute import Outcome
from vitpos.sweep.joblib_pool import JoblibPool
from vitpos.sweep.jobs import Job

TINY = ("dim=24", "heads=3", "depth=2", "image_size=8", "patch_size=4", "batch=2", "rounds=1")


@pytest.fixture(autouse=True)
def brief(monkeypatch):
    monkeypatch.setattr("vitpos.benchmark.machine_rate.ENOUGH", 1.0)


@pytest.fixture
def benchmark(tmp_path, capsys):
    def run(*arguments):
        main([*arguments, f"output={tmp_path}"])
        tables = {path.stem: list(csv.DictReader(path.read_text().splitlines())) for path in tmp_path.glob("*.csv")}
        return tables, capsys.readouterr().out

    return run


def test_every_module_and_every_peer_has_a_baseline():
    plan = dict(step.plan(parse([])))
    assert set(position_names()) <= set(plan)
    assert plan["none"] == "timm/none"
    assert {plan[name] for name in position_names() if name != "none"} == {"none"}
    assert plan["timm/learned"] == plan["timm/rope_axial"] == plan["torchvision/learned"] == "timm/none"
    assert dict(step.plan(parse(["peers=false", "modules=[peg]"]))) == {"none": "timm/none", "peg": "none"}


@pytest.mark.parametrize("given", ["modules=[peg,liere]", "modules=peg,liere"])
def test_lists_do_without_brackets(given):
    assert parse([given]).modules == ["peg", "liere"]
    assert parse(["data=digits"]).data == ["digits"]


def test_steps_beside_their_baselines(benchmark, monkeypatch):
    monkeypatch.setattr("vitpos.benchmark.what.utilisation.measure", lambda settings: [])
    tables, printed = benchmark(*TINY, "modules=[rope_axial,relative_2d]")
    rows = tables["benchmark"]
    assert list(rows[0]) == [
        "name", "baseline", "ratio", "min", "max", "rounds", "step_ms", "images_per_second", "memory_ratio",
        "memory_mib", "utilisation",
    ]  # fmt: skip
    assert all(float(row["ratio"]) > 0 and float(row["memory_ratio"]) > 0 for row in rows)
    assert "timm/rope_dinov3" in printed


def test_utilisation_has_a_row_per_model(benchmark, monkeypatch):
    two = dict(list(model_sizes().items())[:2])
    monkeypatch.setattr("vitpos.benchmark.what.utilisation.model_sizes", lambda: two)
    tables, _ = benchmark(*TINY, "what=utilisation")
    assert [row["name"] for row in tables["utilisation"]] == ["vit_nano", "vit_tiny"]
    assert all(float(row["utilisation"]) > 0 for row in tables["utilisation"])


def test_fit_and_transfer_beside_bare_loops(benchmark, monkeypatch):
    monkeypatch.setattr("vitpos.callbacks.figures.PositionFigures._draw", lambda *arguments: None)
    monkeypatch.setattr("vitpos.data.digits.TEST_IMAGES", 40)
    arguments = ("rounds=1", "data=[digits]", "images=128", "epochs=1")
    tables, _ = benchmark("what=fit", *arguments)
    assert list(tables["fit"][0])[:3] == ["name", "baseline", "ratio"]
    assert [(row["name"], row["steps"]) for row in tables["fit"]] == [("digits", "2"), ("digits, figures", "2")]
    tables, _ = benchmark("what=transfer", *arguments)
    assert tables["transfer"][0]["sizes"] == "8"


def test_a_data_set_that_is_elsewhere_is_skipped_with_a_line(tmp_path, monkeypatch):
    from vitpos.benchmark.runs import present

    monkeypatch.setenv("VITPOS_DATA", str(tmp_path))
    found, missing = present(["digits", "cifar10"])
    assert found == ["digits"]
    assert len(missing) == 1
    assert missing[0].startswith("cifar10 skipped: ")


def test_scaling_draws_its_curves(benchmark, monkeypatch, tmp_path):
    monkeypatch.setattr("vitpos.benchmark.what.scaling.ROWS", (1, 2))
    monkeypatch.setattr("vitpos.benchmark.what.scaling.DEPTHS", (1, 2))
    tables, _ = benchmark(*TINY, "what=scaling", "modules=[rope_axial]")
    assert [(row["name"], row["axis"]) for row in tables["scaling"]] == [
        ("rope_axial", axis) for axis in ("tokens", "depth", "heads")
    ]
    assert (tmp_path / "scaling.png").exists()


def test_large_grids_are_weighed(benchmark, monkeypatch):
    monkeypatch.setattr("vitpos.benchmark.what.large_grid.ROWS", 4)
    tables, _ = benchmark("what=large_grid", "modules=[none,relative_2d]")
    plain, biased = tables["large_grid"]
    assert float(biased["memory_mib"]) > float(plain["memory_mib"]) > 2 * 12 * 768**2 * 4 / 2**20
    assert plain["fits"] == "yes"


def test_jobs_are_counted_without_composing_them():
    job, count = first_job(["experiment=learning_rate"])
    jobs = compose_jobs(["experiment=learning_rate"])
    assert count == len(jobs)
    assert job.name == jobs[0].name


def test_experiments_are_priced(benchmark):
    tables, _ = benchmark("what=cost", "flops=1e12")
    rows = {(row["name"], row["model"]): row for row in tables["cost"]}
    small, large = rows["table8", "vit_nano"], rows["table8", "vit_base"]
    assert int(small["runs"]) == int(large["runs"]) == 40
    assert float(large["hours"]) > 1000 * float(small["hours"])


def test_a_run_is_predicted(benchmark, monkeypatch):
    seen = []
    monkeypatch.setattr("vitpos.benchmark.what.prediction.run", seen.append)
    tables, _ = benchmark("what=prediction", "data=[digits]", "epochs=2")
    assert [config["trainer"]["max_epochs"] for config in seen] == [1, 12, 24, 2]
    row = tables["prediction"][0]
    assert float(row["ratio"]) == pytest.approx(float(row["predicted_s"]) / float(row["measured_s"]))


def test_a_sweep_is_timed(benchmark, monkeypatch):
    """The same jobs run both ways."""
    names = []

    def finish(job, **settings):
        names.append(job.name if isinstance(job, Job) else run_folder(job).name)
        return Outcome(tmp, "finished")

    tmp = run_folder(compose_jobs([])[0].config)
    monkeypatch.setattr("vitpos.benchmark.what.sweep.execute", finish)
    monkeypatch.setattr(JoblibPool, "run", lambda self, jobs: map(finish, jobs))
    tables, _ = benchmark("what=sweep", "data=[digits]", "epochs=1", "runs=3", "modules=[none,peg]")
    assert tables["sweep"][0]["name"] == "3 runs, 2 at once"
    assert len(names) == 6
    assert names[:3] == names[3:]


def test_the_start_of_the_command_line_is_timed(benchmark, monkeypatch):
    monkeypatch.setattr("vitpos.benchmark.what.startup.BASELINE", "pass")
    tables, _ = benchmark("what=startup", "rounds=1")
    assert float(tables["startup"][0]["cpu_seconds"]) > 0


@pytest.mark.parametrize(
    ("argument", "words"),
    [
        ("what=speed", "what=speed: choose one of cost, fit"),
        ("batch=0", "batch=0: must be at least 1"),
        ("device=tpu", "device=tpu: choose cpu or cuda"),
        ("dept=3", "dept.*--help lists the settings"),
        ("depth=deep", "deep.*--help lists the settings"),
        ("modules=[nothing]", r"modules=nothing: choose from none, alibi_2d"),
    ],
)
def test_bad_settings_are_named(argument, words, tmp_path):
    with pytest.raises(SystemExit, match=words):
        main([argument, f"output={tmp_path}"])


def test_help_lists_every_setting(capsys):
    with pytest.raises(SystemExit):
        parse(["--help"])
    assert "  rounds=0: pairs of the thing measured" in capsys.readouterr().out
