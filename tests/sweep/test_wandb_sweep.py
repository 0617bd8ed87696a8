"""The shipped W&B sweep file: what its agents would run is accepted by our entry point."""

from __future__ import annotations

import itertools

import pytest
import yaml
from wandb.sdk.launch.sweeps.utils import create_sweep_command_args

from vitpos.cli import CONFIG_FOLDER, check_arguments

SWEEP = yaml.safe_load((CONFIG_FOLDER / "wandb_sweep.yaml").read_text())


def values(parameter):
    return parameter["values"] if "values" in parameter else [parameter["value"]]


def command_lines():
    """Return the arguments of every run, as W&B's agent writes them."""
    names = list(SWEEP["parameters"])
    for chosen in itertools.product(*(values(SWEEP["parameters"][name]) for name in names)):
        arguments = {name: {"value": value} for name, value in zip(names, chosen, strict=True)}
        yield create_sweep_command_args({"args": arguments})["args_no_hyphens"]


def test_the_command_has_no_hyphens():
    assert SWEEP["command"][-2:] == ["${program}", "${args_no_hyphens}"]
    assert (CONFIG_FOLDER.parent / SWEEP["program"]).exists()


def test_every_command_line_is_a_run_of_its_own(make_job):
    lines = list(command_lines())
    assert lines[0][:2] == ["experiment_name=wandb_sweep", "position=none"]
    jobs = []
    for line in (lines[0], lines[-1], lines[len(lines) // 2]):
        check_arguments(line)
        jobs.append(make_job(*line))
    assert len({job.name for job in jobs}) == 3
    assert jobs[0].config["experiment_name"] == "wandb_sweep"
    assert jobs[0].config["optim"]["lr"] == 0.0005


def test_the_metric_is_one_that_runs_log(make_job):
    assert SWEEP["metric"] == {"name": "val/top1", "goal": "maximize"}


@pytest.mark.parametrize("style", ["args", "args_override_hydra"])
def test_other_styles_are_refused_or_equal(style, make_job):
    arguments = create_sweep_command_args({"args": {"position": {"value": "none"}, "optim.lr": {"value": 0.1}}})[style]
    if style == "args":
        with pytest.raises(SystemExit, match="no hyphens, position=none"):
            check_arguments(arguments)
    else:
        check_arguments(arguments)
