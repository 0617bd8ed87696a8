"""From a command line to jobs: order, duplicates, refusals, and the shortcut past Hydra's composition."""

from __future__ import annotations

import pytest
from hydra.core.hydra_config import HydraConfig
from omegaconf import OmegaConf

from vitpos.sweep.jobs import make_job as job_of


def pairs(jobs):
    return [(job.config["seed"], job.config["position_name"]) for job in jobs]


def test_seeds_are_outermost(make_jobs):
    jobs = make_jobs("position=none,sincos_2d", "seed=0,1")
    assert pairs(jobs) == [(0, "none"), (0, "sincos_2d"), (1, "none"), (1, "sincos_2d")]


def test_a_run_asked_for_twice_is_there_once(make_jobs):
    assert pairs(make_jobs("position=none,none", "seed=0,0")) == [(0, "none")]


def test_one_value_is_a_sweep_of_one_job(make_jobs):
    assert pairs(make_jobs("position=none", "seed=3")) == [(3, "none")]


def test_the_command_line_wins_over_the_sweep_of_an_experiment(make_jobs):
    jobs = make_jobs("experiment=digits", "seed=7", "position=none,sincos_2d")
    assert pairs(jobs) == [(7, "none"), (7, "sincos_2d")]
    assert all(job.config["experiment_name"] == "test" for job in jobs)


def test_glob_sweeps_every_module(make_jobs):
    from vitpos.cli import CONFIG_FOLDER

    jobs = make_jobs("position=glob(*)", "seed=0")
    assert [job.config["position_name"] for job in jobs] == sorted(
        path.stem for path in (CONFIG_FOLDER / "position").glob("*.yaml")
    )


@pytest.mark.parametrize("key", ["experiment=digits,table8", "launcher=joblib,ray", "experiment_name=a,b"])
def test_what_decides_about_a_sweep_is_not_swept(make_jobs, key):
    with pytest.raises(ValueError, match=f"{key.split('=')[0]} cannot be swept: run one sweep per value"):
        make_jobs(key)


def test_a_range_without_values_is_refused(make_jobs):
    with pytest.raises(ValueError, match=r"seed=interval\(0,2\): give the values as a list"):
        make_jobs("seed=interval(0,2)")


@pytest.mark.parametrize(
    ("override", "message"),
    [("seed=-", "seed"), ("experiment_name=../elsewhere", "plain folder name"), ("trainer.nothing=1", "nothing")],
)
def test_a_job_that_does_not_compose_is_named(make_jobs, override, message):
    with pytest.raises(Exception, match=message):
        make_jobs("position=none,sincos_2d", override)


def test_lists_and_paths_can_be_given_and_swept(make_jobs):
    jobs = make_jobs("data.transfer_sizes=[4,[8,12]]", "optim.betas=[0.9,0.99],[0.8,0.99]", "from=''")
    assert [job.config["optim"]["betas"] for job in jobs] == [[0.9, 0.99], [0.8, 0.99]]
    assert jobs[0].config["data"]["transfer_sizes"] == [4, [8, 12]]
    (job,) = make_jobs("+data.root='/some/where else/a=b'")
    assert job.config["data"]["root"] == "/some/where else/a=b"


def test_jobs_are_plain_and_resolved(make_jobs):
    for job in make_jobs("position=none,rope_axial", "seed=0,1"):
        assert "${" not in repr(job.config)
        assert "hydra" not in job.config
        assert f"position={job.config['position_name']}" in job.config["overrides"]


COMMANDS = [
    ("position=none,rope_mixed", "seed=0,1"),
    ("experiment=digits", "position=none,log_cpb", "optim.lr=1e-3,2e-3", "seed=4"),
    ("model=vit_tiny,vit_nano", "+optim.extra={a: 1},{a: 2}", "data.augment={padding: 2}", "seed=0,1"),
    ("data=digits,fashion_mnist", "model.patch_size=2,4", "data.transfer_sizes=[4,8],[8]", "++seed=5"),
    ("position=learned_1d,learned_2d", "report.margin=1", "~optim.ema_decay"),
]


@pytest.mark.parametrize("arguments", COMMANDS, ids=str)
def test_the_shortcut_equals_full_composition(expand_command, arguments):
    jobs, loader, master = expand_command(*arguments)
    assert jobs
    for job in jobs:
        full = loader.load_sweep_config(master, list(job.overrides))
        state = HydraConfig.instance()
        before = state.cfg
        state.set_config(full)
        try:
            assert job == job_of(full, job.overrides)
        finally:
            state.cfg = before


def test_the_shortcut_composes_once_per_choice_of_files(expand_command, monkeypatch):
    from hydra._internal.config_loader_impl import ConfigLoaderImpl

    composed = []
    original = ConfigLoaderImpl.load_sweep_config

    def count(self, master, overrides):
        composed.append(overrides)
        return original(self, master, overrides)

    monkeypatch.setattr(ConfigLoaderImpl, "load_sweep_config", count)
    jobs, _, _ = expand_command("position=none,rope_axial", "seed=range(20)", "optim.lr=1e-3,2e-3")
    assert len(jobs) == 80
    assert len(composed) == 2


def test_the_current_hydra_config_is_left_alone(make_jobs):
    state = HydraConfig.instance()
    before = state.cfg
    make_jobs("position=none,rope_axial")
    assert state.cfg is before


def test_settings_keep_their_types(make_job):
    job = make_job("seed=1", "optim.lr=1e-3", "trainer.compile=false", "experiment_name='1'")
    assert (job.config["seed"], job.config["optim"]["lr"], job.config["trainer"]["compile"]) == (1, 1e-3, False)
    assert job.config["experiment_name"] == "1"
    assert OmegaConf.is_config(job.config) is False
