"""Every file in conf/data builds, and agrees with itself."""

from pathlib import Path

import pytest
from hydra import compose, initialize_config_dir
from omegaconf import OmegaConf

from vitpos.data.base import ImageData
from vitpos.training.build import build_data

CONF = Path(__file__).parents[2] / "conf"
NAMES = sorted(path.stem for path in (CONF / "data").glob("*.yaml"))


@pytest.fixture(params=NAMES)
def config(request, monkeypatch, tmp_path):
    monkeypatch.setenv("VITPOS_DATA", str(tmp_path))
    with initialize_config_dir(str(CONF), version_base=None):
        composed = compose("train", [f"data={request.param}"])
    return {"data": OmegaConf.to_container(composed.data, resolve=True), "seed": 3}


def test_it_builds_without_reading_an_image(config):
    data = build_data(config)
    assert isinstance(data, ImageData)
    assert data.seed == 3
    assert not data.reads


def test_transfer_sizes_are_grids_around_the_training_size(config):
    data = build_data(config)
    patch = config["data"]["patch_size"]
    sizes = data.transfer_sizes
    assert len(sizes) == len(set(sizes)) >= 6
    assert data.image_size in sizes
    assert all(side % patch == 0 for size in sizes for side in size)
    assert any(max(size) < min(data.image_size) for size in sizes)
    assert any(min(size) > max(data.image_size) for size in sizes)
    assert any(height > width for height, width in sizes) and any(height < width for height, width in sizes)


def test_the_batch_can_be_shared_by_ranks_and_mixed(config):
    assert config["data"]["batch_size"] % (2 * 8) == 0


def test_data_that_needs_no_files_is_ready(config):
    if "root" in config["data"]:
        pytest.skip("needs files")
    data = build_data(config)
    data.setup()
    images, labels, _ = next(iter(data.train_dataloader()))
    assert images.shape == (data.batch_size, data.spec.channels, *data.spec.image_size)
    assert labels.max() < data.spec.classes


def test_the_synthetic_tasks_cut_cells_as_the_model_cuts_patches():
    for override, cell in (("data.patch_size=4", 4), ("data.patch_size=8", 8), ("model.patch_size=8", 8)):
        with initialize_config_dir(str(CONF), version_base=None):
            assert compose("train", ["data=where_arrow", override]).data.cell == cell
