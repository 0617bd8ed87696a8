import re

import pytest
import torch
from hydra import compose, initialize_config_dir
from omegaconf import OmegaConf

from vitpos.cli import CONFIG_FOLDER
from vitpos.evaluation.reopen import reopen
from vitpos.record import read_record, write_record
from vitpos.record.folder import run_folder
from vitpos.sweep.jobs import make_job
from vitpos.training.finetune import inherit, parent_config, read_parent, resize_to_training_size
from vitpos.training.run import run

QUICK = [
    "trainer.max_epochs=1",
    "trainer.accelerator=cpu",
    "logger=none",
    "~callbacks.figures",
    "transfer.sizes=[8,12]",
    "fewshot=none",
]


@pytest.fixture
def composed():
    def make(folder, *overrides):
        overrides = ("experiment=finetune", f"from={folder}", *overrides)
        with initialize_config_dir(str(CONFIG_FOLDER), version_base="1.3"):
            return compose("train", list(overrides)), overrides

    return make


def test_network_data_and_seed_are_the_parents(finished_run, composed):
    folder, _ = finished_run("rope_mixed", batch_size=61, transfer_sizes=[8, 10])
    child = inherit(*composed(folder, "data.image_size=12"))
    parent = parent_config(folder)
    assert OmegaConf.to_container(child.position) == parent["position"]
    assert OmegaConf.to_container(child.model) == parent["model"]
    assert OmegaConf.to_container(child.data) == parent["data"] | {"image_size": 12}
    assert (child.position_name, child.model_name, child.data_name, child.seed) == (
        "rope_mixed",
        "vit_nano",
        "digits",
        0,
    )
    assert child.parent == {"name": folder.name, "image_size": [8, 8]}
    assert child.transfer.sizes == [8, 10]  # of the parent's data, not of the default
    assert child.trainer.max_epochs == 5


def test_single_settings_and_the_seed_can_be_changed(finished_run, composed):
    folder, _ = finished_run("none")
    given = composed(folder, "data.image_size=[8,12]", "data.batch_size=32", "seed=4", "trainer.max_epochs=2")
    child = inherit(*given)
    assert (child.data.image_size, child.data.batch_size, child.seed) == ([8, 12], 32, 4)
    assert child.trainer.max_epochs == 2


@pytest.mark.parametrize("group", ["position=none", "model=vit_tiny", "data=fashion_mnist"])
def test_another_network_or_data_set_is_refused(finished_run, composed, group):
    folder, _ = finished_run("none")
    with pytest.raises(ValueError, match=rf"^{group.split('=')[0]}=…: a run that starts from .* leave it out"):
        inherit(*composed(folder, "data.image_size=12", group))


def test_only_a_finished_run_can_be_a_parent(finished_run, composed, tmp_path):
    with pytest.raises(ValueError, match="nowhere: not a finished run"):
        inherit(*composed(tmp_path / "nowhere", "data.image_size=12"))
    folder, _ = finished_run("none")
    record = read_record(folder)
    error = {"type": "X", "message": "", "traceback": ""}
    write_record(folder, type(record).model_validate(record.model_dump() | {"status": "failed", "error": error}))
    with pytest.raises(ValueError, match=re.escape(f"from={folder}: this run failed; give a finished one")):
        inherit(*composed(folder, "data.image_size=12"))


def test_identity_names_the_parent_not_its_place(finished_run, composed, monkeypatch, tmp_path):
    folder, _ = finished_run("none")
    monkeypatch.chdir(tmp_path)
    here = make_job(*composed(folder, "data.image_size=12"))
    relative = make_job(*composed(folder.relative_to(tmp_path), "data.image_size=12"))
    other = make_job(*composed(finished_run("none", batch_size=61)[0], "data.image_size=12"))
    assert here.name == relative.name != other.name


@pytest.mark.parametrize("name", ["learned_1d", "relative_2d"])
def test_weights_are_the_parents_and_the_size_is_new(finished_run, composed, name):
    folder, saved = finished_run(name)
    config = make_job(*composed(folder, "data.image_size=12")).config
    model = read_parent(config).build()
    assert all(torch.equal(value, model.state_dict()[key]) for key, value in saved.state_dict().items())
    resize_to_training_size(model, config)
    assert (model.image_size, model.position.grid, model.geometry.grid) == ((12, 12), (6, 6), (4, 4))
    assert all(torch.equal(value, model.state_dict()[key]) for key, value in saved.state_dict().items())


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore:.*LeafSpec.*:FutureWarning")  # in Lightning itself
def test_a_chain_of_fine_tunings(finished_run, composed, tmp_path):
    folder, _ = finished_run("learned_1d", limit_train=200)
    for size in (12, 16):
        quick = [*QUICK, f"data.image_size={size}", f"output_dir={tmp_path}"]
        config = make_job(*composed(folder, *quick)).config
        record = run(config)
        assert record.parent.name == folder.name
        assert record.parent.image_size == ((8, 8) if size == 12 else (12, 12))
        assert record.data.image_size == (size, size)
        assert [(row.height, row.status) for row in record.transfer] == [(8, "ok"), (12, "ok")]
        assert (record.transfer[1].top1 == record.metrics["test/top1"]) or size == 16
        folder = run_folder(config)
    _, model, _ = reopen(folder)
    assert (model.image_size, model.geometry.grid) == ((16, 16), (4, 4))
