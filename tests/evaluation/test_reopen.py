import pickle

import pytest
import torch
import yaml

from vitpos.evaluation.reopen import reopen
from vitpos.training.finetune import resize_to_training_size


@pytest.mark.parametrize("compiled", [False, True])
@pytest.mark.parametrize("name", ["none", "learned_2d", "rope_mixed", "relative_2d"])
def test_the_network_is_the_one_that_was_saved(finished_run, name, compiled):
    folder, saved = finished_run(name, compiled=compiled)
    config, model, data = reopen(folder)
    images = next(iter(data.eval_dataloader("test")))[0]
    with torch.no_grad():
        assert torch.equal(model(images), saved.eval()(images))
    assert not model.training
    assert config["position_name"] == name


def test_a_fine_tuned_network_stands_at_its_own_size(finished_run):
    folder, saved = finished_run("learned_1d")
    config = yaml.safe_load((folder / "config.yaml").read_text())
    config["data"]["image_size"] = [8, 12]
    config["resize"] = {"table": "linear_corners", "coordinates": "extrapolate", "temperature": "log_tokens"}
    (folder / "config.yaml").write_text(yaml.safe_dump(config))
    _, model, data = reopen(folder)
    resize_to_training_size(saved, config)
    assert model.image_size == data.spec.image_size == (8, 12)
    assert model.temperature == saved.temperature > 1
    images = next(iter(data.eval_dataloader("test")))[0]
    with torch.no_grad():
        assert torch.equal(model(images), saved.eval()(images))


def test_settings_of_this_machine_replace_those_of_the_run(finished_run):
    folder, _ = finished_run()
    config, _, data = reopen(folder, {"batch_size": 7})
    assert config["data"]["batch_size"] == data.batch_size == 7


def test_nothing_but_tensors_is_unpickled(finished_run):
    class Evil:
        def __reduce__(self):
            return (pytest.fail, ("code ran",))

    folder, _ = finished_run()
    path = folder / "checkpoints" / "best.ckpt"
    content = torch.load(path, weights_only=True)
    torch.save({**content, "hyper_parameters": Evil()}, path, pickle_module=pickle)
    with pytest.raises(ValueError, match=r"best.ckpt: not a readable checkpoint of a run \(UnpicklingError"):
        reopen(folder)


def test_names_must_match(finished_run):
    folder, _ = finished_run()
    path = folder / "checkpoints" / "best.ckpt"
    content = torch.load(path, weights_only=True)
    del content["state_dict"]["model.head.bias"]
    torch.save(content, path)
    with pytest.raises(ValueError, match=r"best.ckpt does not fit this network.*\n.*head.bias"):
        reopen(folder)


def test_missing_and_damaged_folders_are_refused_by_name(finished_run, tmp_path):
    with pytest.raises(ValueError, match=r"nowhere: not the folder of a run \(config.yaml: No such file"):
        reopen(tmp_path / "nowhere")
    folder, _ = finished_run()
    path = folder / "checkpoints" / "best.ckpt"
    path.write_bytes(path.read_bytes()[:1000])
    with pytest.raises(ValueError, match=r"best.ckpt: not a readable checkpoint"):
        reopen(folder)
    path.unlink()
    with pytest.raises(ValueError, match=r"best.ckpt: no such checkpoint"):
        reopen(folder)
