"""An imported network is a finished run: reopened, evaluated, inspected, and said to be imported."""

import numpy as np
import pytest
import torch
import yaml
from filelock import FileLock

from vitpos.evaluation.finished import evaluate_finished
from vitpos.evaluation.finished import parse as parse_evaluation
from vitpos.evaluation.inspect_source import open_source
from vitpos.evaluation.reopen import reopen
from vitpos.record import read_record, read_records
from vitpos.training.task import ClassificationTask
from vitpos.weights.origin import Origin
from vitpos.weights.run_folder import fingerprint, import_network
from vitpos.weights.settings import transfer_sizes

ARCHITECTURE = "vit_small_patch16_rope_mixed_ape_224"


@pytest.fixture
def imported(small, tmp_path):
    """Import a small network; returns it and its run folder."""

    def make(architecture=ARCHITECTURE, *data, preprocessing=None, **arguments):
        network = small(architecture, **{"img_size": (24, 32), **arguments})
        origin = Origin("weights.pth", architecture, network, preprocessing or {})
        folder, _ = import_network(
            origin, output_dir=str(tmp_path / "outputs"), experiment_name="imported", data=data, overrides=["timm=x"]
        )
        return network, folder

    return make


def test_the_folder_of_a_finished_run(imported, tmp_path):
    network, folder = imported()
    records, problems = read_records(tmp_path / "outputs" / "imported")
    assert (len(records), problems) == (1, [])
    record = records[0]
    assert folder == tmp_path / "outputs" / "imported" / record.run
    assert record.run.startswith("rope_mixed_ape-s0-")
    assert (record.status, record.overrides, record.metrics) == ("finished", ["timm=x"], {})
    assert record.position.label == "1-D learned + RoPE mixed, imported (weights.pth)"
    assert (record.position.family, record.position.injection) == ("combined", "stem + rotate")
    assert record.model.name == ARCHITECTURE
    assert record.model.weights["timm"] == "weights.pth"
    assert record.diagnostics["timm_difference"] < 1e-5
    assert record.cost.parameters == sum(p.numel() for p in network.parameters())
    assert record.cost.position_parameters == 12 * 32 + 2 * 2 * 2 * 8
    config = yaml.safe_load((folder / "config.yaml").read_text())
    assert config["data"]["image_size"] == [24, 32]
    assert (config["data_name"], config["position_name"]) == ("where_absolute", "rope_mixed_ape")
    assert config["weights"] == record.model.weights
    assert not list(folder.rglob("*.tmp"))


def test_the_checkpoint_is_one_of_ours(imported):
    network, folder = imported()
    path, images = folder / "checkpoints" / "best.ckpt", torch.randn(2, 3, 24, 32)
    content = torch.load(path, weights_only=True)
    assert set(content["hyper_parameters"]) == {"network", "spec", "optim"}
    assert content["hyper_parameters"]["spec"] == {"image_size": [24, 32], "channels": 3, "classes": 5}
    assert all(name.startswith("model.") for name in content["state_dict"])
    config, model, data = reopen(folder)
    assert config["model_name"] == ARCHITECTURE
    assert data.spec.image_size == model.image_size == (24, 32)
    with torch.no_grad():
        torch.testing.assert_close(model(images), network(images), atol=1e-5, rtol=1e-5)
        task = ClassificationTask.load_from_checkpoint(path, map_location="cpu").eval()
        assert torch.equal(task(images), model(images))


def test_evaluated_again_like_any_run(imported):
    _, folder = imported(num_classes=9)  # as many as the data have
    settings, _ = parse_evaluation(
        [
            "run=x",
            "accelerator=cpu",
            "transfer.sizes=[24,[24,48]]",
            "transfer.coordinates=extrapolate,rescale",
            "fewshot=ridge",
        ]
    )
    record = evaluate_finished(folder, settings)
    assert {(row.height, row.width, row.coordinates, row.table) for row in record.transfer} == {
        (24, width, way, "bicubic_antialias") for width in (24, 48) for way in ("extrapolate", "rescale")
    }
    assert {row.status for row in record.transfer} == {"ok"}
    assert {"fewshot/5", "fewshot/5_sd"} < set(record.metrics)


def test_inspected_like_any_run(imported):
    network, folder = imported()
    source = open_source(str(folder))
    assert (source.name, source.grid, source.prefix) == (folder.name, (3, 4), 1)
    assert torch.equal(source.table, torch.cat((torch.zeros(1, 32), network.pos_embed[0])))


def test_classes_that_agree_are_measured(imported):
    _, folder = imported("vit_tiny_patch16_224", "data=digits", in_chans=1, num_classes=10, img_size=(16, 16))
    record = read_record(folder)
    assert record.data.name == "digits"
    assert set(record.metrics) == {"test/top1", "test/top5", "test/nll", "test/ece"}
    assert np.load(folder / "predictions.npz")["index"].shape == (360,)
    settings, _ = parse_evaluation(["run=x", "accelerator=cpu", "transfer.sizes=[16]"])
    found = evaluate_finished(folder, settings)
    assert found.metrics == record.metrics
    assert found.transfer[0].top1 == record.metrics["test/top1"]


def test_generated_images_measure_nothing(imported):
    _, folder = imported(num_classes=9)  # as many as the generated images have
    assert read_record(folder).metrics == {}


def test_without_a_head_there_are_features(imported):
    network, folder = imported("vit_small_patch16_dinov3", num_classes=0)
    _, model, _ = reopen(folder)
    images = torch.randn(2, 3, 24, 32)
    with torch.no_grad():
        torch.testing.assert_close(model(images), network(images), atol=1e-5, rtol=1e-5)
    assert read_record(folder).metrics == {}


def test_importing_twice_keeps_what_was_measured(imported):
    _, folder = imported()
    record, written = read_record(folder), (folder / "result.json").stat().st_mtime_ns
    assert imported()[1] == folder
    assert (folder / "result.json").stat().st_mtime_ns == written
    (folder / "result.json").unlink()  # as if the import had been interrupted
    assert imported()[1] == folder
    assert read_record(folder).model_copy(update={"started": record.started}) == record
    with FileLock(folder / ".lock"), pytest.raises(ValueError, match="another process holds this run"):
        imported()


def test_other_weights_are_another_run(small, imported):
    network, folder = imported()
    assert imported(num_classes=4)[1] != folder
    weights = {name: value.clone() for name, value in network.state_dict().items()}
    first = fingerprint(weights)
    weights["head.bias"][0] += 1e-6
    assert fingerprint(weights) != first
    assert len(first) == 16


def test_a_data_set_must_suit(imported, tmp_path):
    for data, message in (
        (["data=digits"], r"data=digits: its images have 1 channels, the network takes 3"),
        (["data=nothing"], "data=nothing: "),
        (["data=where", "data.colour=red"], "colour"),
        (["data=where", "data.image_size=48"], r"data\.image_size: it is the network's own, 24x32"),
        (["data=where_absolute", "data.task.regions=4"], "at least 4x4"),
    ):
        with pytest.raises(ValueError, match=message):
            imported(ARCHITECTURE, *data)
    assert not (tmp_path / "outputs").exists()


def test_settings_of_a_data_set(imported):
    _, folder = imported(
        ARCHITECTURE, "data=where_relative", "data.train_images=144", "data.test_images=72", "data.transfer_sizes=[24]"
    )
    data = read_record(folder).data
    assert (data.name, data.train_images, data.transfer_sizes, data.cell) == ("where_relative", 144, [24], 8)


def test_the_preprocessing_of_training_is_kept_and_used(imported, tmp_path):
    for part in ("train", "val"):
        for name in ("cat", "dog"):
            (tmp_path / "photos" / part / name).mkdir(parents=True)
    known = {"mean": [0.5, 0.5, 0.5], "crop": 0.9}
    _, folder = imported(ARCHITECTURE, "data=folder", f"data.root={tmp_path}/photos", preprocessing=known)
    record = read_record(folder)
    assert record.data.crop == 0.9
    assert record.model.weights["mean"] == [0.5, 0.5, 0.5]
    _, folder = imported(
        ARCHITECTURE, "data=folder", f"data.root={tmp_path}/photos", "data.crop=1.0", preprocessing=known
    )
    assert read_record(folder).data.crop == 1.0


def test_a_network_that_differs_leaves_nothing(small, imported, monkeypatch, tmp_path):
    from vitpos.weights import compare

    monkeypatch.setattr(compare, "TOLERANCE", -1.0)
    with pytest.raises(ValueError, match="the imported network does not do what timm's does"):
        imported()
    assert not (tmp_path / "outputs").exists()


def test_sizes_around_the_native_one():
    assert transfer_sizes((224, 224), 16) == [(112, 112), (160, 160), (224, 224), (288, 288), (336, 336), (224, 336)]
    assert transfer_sizes((16, 16), 8) == [(16, 16), (24, 24)]
