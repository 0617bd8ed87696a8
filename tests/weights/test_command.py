"""The command line of `scripts/import_weights.py`."""

import runpy
import sys
from pathlib import Path

import pytest

from vitpos.record import read_record
from vitpos.weights.command import main, parse

SCRIPT = Path(__file__).resolve().parents[2] / "scripts" / "import_weights.py"
SMALL = ["timm.img_size=[32,48]", "timm.patch_size=8", "timm.embed_dim=32", "timm.depth=2", "timm.num_heads=2"]


def test_arguments():
    settings = parse(
        ["timm=a=b.pth", "model=vit", "timm.img_size=[32,48]", "timm.global_pool=token", "data=where", "data.cell=8"]
    )
    assert (settings.timm, settings.model, settings.output_dir, settings.experiment_name) == (
        "a=b.pth", "vit", "outputs", "imported",
    )  # fmt: skip
    assert settings.arguments == {"img_size": [32, 48], "global_pool": "token"}
    assert settings.data == ["data=where", "data.cell=8"]


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ([], "timm= is missing. Usage: timm=NAME"),
        (["vit_tiny"], "'vit_tiny': not understood. Usage"),
        (["timm=x", "seed=1"], "'seed=1': not understood"),
        (["timm=x", "timm.img_size=[1"], "the value can't be read"),
    ],
)
def test_bad_arguments(arguments, message):
    with pytest.raises(SystemExit) as end:
        main(arguments)
    assert message in str(end.value)


def test_a_file_becomes_a_run(saved, tmp_path, capsys, caplog):
    path = saved(architecture="vit_small_patch16_dinov3")
    main([f"timm={path}", "model=vit_small_patch16_dinov3", *SMALL, f"output_dir={tmp_path}", "experiment_name=mine"])
    folder = Path(caplog.messages[-1])
    assert folder.parent == tmp_path / "mine"
    assert read_record(folder).position.label == "RoPE DINOv3, imported (weights.safetensors)"
    assert "no test accuracy: the classes are not those of data=where_absolute" in caplog.text


def test_a_problem_ends_the_program_with_its_message(saved, tmp_path, monkeypatch):
    arguments = [f"timm={saved()}", "model=vit_tiny_patch16_224", f"output_dir={tmp_path}/o"]
    monkeypatch.setattr(sys, "argv", [str(SCRIPT), *arguments])
    with pytest.raises(SystemExit) as end:
        runpy.run_path(str(SCRIPT), run_name="__main__")
    assert str(end.value).startswith(
        "the weights are not those of timm's vit_tiny_patch16_224: no weight for blocks.2."
    )
    assert not (tmp_path / "o").exists()
