"""Names and files: what is read, and what is refused by name."""

import json
from contextlib import contextmanager

import pytest
import timm
import torch
from safetensors.torch import save_file

from vitpos.weights import origin
from vitpos.weights.convert import convert
from vitpos.weights.network import ratio_of
from vitpos.weights.origin import open_network

VIT, ROPE = "vit_tiny_patch16_224", "vit_small_patch16_rope_224"
SMALL = {"img_size": (32, 48), "patch_size": 8, "embed_dim": 32, "depth": 2, "num_heads": 2}  # as `small` has it


def refused(message, *arguments):
    with pytest.raises(ValueError, match=message) as raised:
        open_network(*arguments)
    return str(raised.value)


@pytest.mark.parametrize("name", ["a.safetensors", "a.pth", "a.bin", "a.pt"])
def test_files_of_every_kind_hold_the_same(small, saved, name):
    network = small(in_chans=1)
    found = open_network(str(saved(name, network.state_dict())), VIT, SMALL)
    assert (found.name, found.architecture, found.preprocessing) == (name, VIT, {})
    assert found.network.num_classes == 5
    for key, value in network.state_dict().items():
        assert torch.equal(found.network.state_dict()[key], value)


@pytest.mark.parametrize("front", ["state_dict", "model", "module", "model.module"])
def test_the_container_of_the_weights_does_not_matter(small, saved, front):
    content = small().state_dict()
    for part in reversed(front.split(".")):
        content = {part: content}
    content |= {"epoch": 3, "optimizer": {"state": {0: {"step": torch.ones(())}}}}
    assert open_network(str(saved("a.pth", content)), VIT, SMALL).network.num_classes == 5


def test_half_precision_is_widened(small, saved):
    halves = {name: value.half() for name, value in small().state_dict().items()}
    found = open_network(str(saved("a.pth", halves)), VIT, SMALL).network
    assert {value.dtype for value in found.state_dict().values()} == {torch.float32}
    assert torch.equal(found.head.weight, halves["head.weight"].float())


def test_weights_and_places_must_be_the_same(small, saved):
    weights = small(reg_tokens=2).state_dict()
    settings = {**SMALL, "reg_tokens": 2}

    def change(drop=(), **more):
        return str(saved("a.pth", {name: value for name, value in weights.items() if name not in drop} | more))

    refused(r"no weight for blocks\.1\.norm1\.bias 32", change(drop=["blocks.1.norm1.bias"]), VIT, settings)
    refused(r"no weight for head\.weight 1000x32, head\.bias", change(drop=["head.weight", "head.bias"]), VIT, settings)
    refused(r"no place for extra\.scale 3", change(**{"extra.scale": torch.ones(3)}), VIT, settings)
    refused(r"no weight for patch_embed\.proj\.weight", change(drop=["patch_embed.proj.weight"]), VIT, settings)
    found = refused(r"reg_token 1x2x32 instead of 1x4x32", change(), VIT, {**SMALL, "reg_tokens": 4})
    assert "pos_embed 1x27x32 instead of 1x29x32" in found
    found = refused("no place for reg_token 1x2x32", change(), VIT, SMALL)
    assert "timm.img_size is 32x48" in found
    refused(r"pos_embed 1x27x32 instead of 1x28x32", change(), VIT, {**settings, "img_size": (40, 40)})
    refused("no weight for blocks.2.", change(), VIT, {**settings, "depth": 3})
    refused(r"no place for reg_token 1x2x32, pos_embed .*no weight for blocks\.0\.gamma_1 32", change(), ROPE, SMALL)


def test_a_head_may_be_left_out_by_name(small, saved):
    weights = small(num_classes=0).state_dict()
    assert open_network(str(saved("a.pth", weights)), VIT, {**SMALL, "num_classes": 0}).network.num_classes == 0


def test_files_that_are_no_weights(saved, tmp_path):
    broken = tmp_path / "broken.safetensors"
    broken.write_bytes(b"\x10\x00\x00\x00\x00\x00\x00\x00{broken")
    refused(r"broken\.safetensors: not a readable safetensors file", str(broken), VIT, SMALL)
    whole = saved("whole.pth")
    cut = tmp_path / "cut.pth"
    cut.write_bytes(whole.read_bytes()[: whole.stat().st_size // 2])
    refused(r"cut\.pth: refused, it is damaged", str(cut), VIT, SMALL)
    code = saved("code.pth", {"model": timm.create_model("test_vit", depth=1), "args": object()})
    refused(r"code\.pth: refused, it is damaged or holds more than weights", str(code), VIT, SMALL)
    other = saved("other.pth", {"wte.weight": torch.ones(3, 3)})
    refused(r"no weight for patch_embed\.proj\.weight, .* holds wte\.weight", str(other), VIT, SMALL)
    notes = tmp_path / "notes.txt"
    notes.write_text("x")
    refused(r"files ending in \.safetensors, .* not '\.txt'", str(notes), VIT, SMALL)


def test_several_networks_in_one_file(small, saved):
    weights = small().state_dict()
    both = saved("both.pth", {"state_dict": weights, "state_dict_ema": weights})
    refused(r"holds several networks, at 'state_dict\.', 'state_dict_ema\.'", str(both), VIT, SMALL)
    more = saved("more.pth", {"model": weights, "text": {"proj": torch.ones(2)}})
    refused(r"text\.proj do not belong to the network at 'model\.'", str(more), VIT, SMALL)


def test_fixed_frequencies_are_compared_not_copied(small, saved):
    network = small("vit_small_patch16_dinov3")
    periods = {"rope.periods": network.rope.periods.clone()}
    path = str(saved("a.pth", network.state_dict() | periods))
    assert "rope.periods" not in open_network(path, "vit_small_patch16_dinov3", SMALL).network.state_dict()
    rounded = str(saved("b.pth", network.state_dict() | {"rope.periods": periods["rope.periods"].bfloat16()}))
    open_network(rounded, "vit_small_patch16_dinov3", SMALL)
    wrong = str(saved("c.pth", network.state_dict() | {"rope.periods": periods["rope.periods"] * 1.1}))
    refused(r"rope\.periods 4 is computed, not learned", wrong, "vit_small_patch16_dinov3", SMALL)


def test_what_a_source_can_be(saved, tmp_path):
    path = str(saved())
    refused("model= is missing", path, "", SMALL)
    refused("no such file", str(tmp_path / "none.pth"), VIT, {})
    refused("a folder; give the weights file in it", str(tmp_path), VIT, {})
    refused("says what a file holds, but timm=vit_tiny_patch16_224 is no file", VIT, VIT, {})
    refused(
        "vit_tiny_patch16_244: neither a weights file nor .* perhaps vit_tiny_patch16_224",
        "vit_tiny_patch16_244",
        "",
        {},
    )
    refused("vit_tiny_patch16_244: neither", path, "vit_tiny_patch16_244", SMALL)
    refused("resnet18 is a ResNet, which has no counterpart", path, "resnet18", {})
    refused(r"vit_tiny_patch16_224 cannot be imported.*qk_norm=True", path, VIT, {**SMALL, "qk_norm": True})
    refused(r"timm can't build .*timm\.colour=red", path, VIT, {**SMALL, "colour": "red"})
    refused("Invalid pretrained tag .*; timm has vit_tiny_patch16_224.augreg_in21k", f"{VIT}.nonsense", "", {})


@pytest.fixture
def fetched(monkeypatch):
    """Replace the hub by random weights."""
    create = timm.create_model

    def fetch(name, pretrained=False, **arguments):
        torch.manual_seed(0)
        return create(name, pretrained=False, **arguments)

    @contextmanager
    def nothing(source):
        yield

    monkeypatch.setattr(timm, "create_model", fetch)
    monkeypatch.setattr(origin, "hub", nothing)


@pytest.mark.usefixtures("fetched")
def test_names():
    found = open_network("timm/test_vit.r160_in1k", "", {})
    assert (found.name, found.architecture) == ("test_vit.r160_in1k", "test_vit")
    assert found.preprocessing == {"mean": [0.5, 0.5, 0.5], "std": [0.5, 0.5, 0.5], "crop": 0.95}
    assert open_network("test_vit", "", {"num_classes": 0}).network.num_classes == 0
    refused(r"timm\.num_classes=7: test_vit has 1000 classes", "test_vit", "", {"num_classes": 7})
    refused(r"timm\.img_size: timm would change the weights", "test_vit", "", {"img_size": 320})
    refused("pre_norm=True", "vit_base_patch16_clip_224", "", {})


def test_without_a_network_a_name_says_what_to_do(monkeypatch):
    @contextmanager
    def offline(source):
        try:
            raise ConnectionError("unreachable")
        except OSError as error:
            raise ValueError("source=...") from error
        yield

    monkeypatch.setattr(origin, "hub", offline)
    found = refused(r"timm=test_vit: its weights can't be fetched \(ConnectionError\)", "test_vit", "", {})
    assert "give a file (.safetensors" in found
    assert "model=test_vit" in found


def test_weights_that_do_not_fit_ours_are_named(small, ours):
    network = small("vit_small_patch16_dinov3_qkvb")
    model, positions = ours(network), origin_positions(network)
    weights = network.state_dict()
    with pytest.raises(ValueError, match=r"blocks\.0\.attn\.qkv\.bias lacks the part of k, v"):
        convert({name: value for name, value in weights.items() if name != "blocks.0.attn.v_bias"}, positions, model)
    with pytest.raises(
        ValueError, match=r"no place for blocks\.0\.attn\.relative 2.*no weight for blocks\.1\.ls1\.gamma 32"
    ):
        dropped = {name: value for name, value in weights.items() if name != "blocks.1.gamma_1"}
        convert(dropped | {"blocks.0.attn.relative": torch.ones(2)}, positions, model)


def origin_positions(network):
    from vitpos.weights.positions import describe_positions

    return describe_positions(network)


def test_hidden_widths_survive_rounding():
    for dim in (30, 192, 384, 1536, 4096):
        for hidden in (*range(1, 400, 7), 8192, 6144, 5 * dim):
            assert int(dim * ratio_of(hidden, dim)) == hidden


def test_safetensors_metadata_is_no_weight(small, tmp_path):
    path = tmp_path / "a.safetensors"
    save_file(small().state_dict(), path, metadata={"format": "pt", "note": json.dumps({"x": 1})})
    open_network(str(path), VIT, SMALL)
