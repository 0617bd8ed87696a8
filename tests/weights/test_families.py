"""Every family gives timm's logits and features, at its own size and at others."""

from copy import deepcopy
from functools import partial

import pytest
import timm
import torch
from timm.layers import GluMlp, LayerNorm, SwiGLUPacked

from vitpos.position import Transfer
from vitpos.weights.compare import compare, difference

VIT, EVA = "vit_tiny_patch16_224", "eva02_tiny_patch14_224"
PLAIN = [
    (VIT, {}),
    (VIT, {"num_classes": 0}),
    (VIT, {"in_chans": 1, "qkv_bias": False}),
    (VIT, {"no_embed_class": True}),
    (VIT, {"reg_tokens": 2}),
    (VIT, {"reg_tokens": 2, "no_embed_class": True, "num_classes": 0}),
    (VIT, {"fc_norm": True}),
    (VIT, {"final_norm": False}),
    (VIT, {"pos_embed": "none"}),
    (VIT, {"global_pool": "avg"}),
    (VIT, {"global_pool": "avg", "fc_norm": False}),
    (VIT, {"global_pool": "avg", "class_token": False}),
    (VIT, {"global_pool": "avg", "class_token": False, "fc_norm": False, "reg_tokens": 3}),
    (VIT, {"act_layer": "gelu_tanh", "norm_layer": partial(LayerNorm, eps=1e-3)}),
    (VIT, {"norm_layer": "rmsnorm", "init_values": 0.1}),
    (VIT, {"mlp_layer": SwiGLUPacked, "mlp_ratio": 2.66667 * 2}),
    (VIT, {"mlp_layer": GluMlp, "scale_mlp_norm": True}),
    ("deit_tiny_patch16_224", {}),
    ("deit3_small_patch16_224", {}),
    ("vit_wee_patch16_reg1_gap_256", {}),
    ("vit_base_patch32_siglip_gap_256", {}),
    ("vit_small_patch14_reg4_dinov2", {}),
    ("vit_giant_patch14_dinov2", {}),
    ("flexivit_small", {}),
]
ROTARY = [
    ("vit_small_patch16_rope_224", {}),
    ("vit_small_patch16_rope_224", {"rope_grid_indexing": "ij", "rope_rotate_half": True, "rope_grid_offset": 0.5}),
    ("vit_small_patch16_rope_ape_224", {}),
    ("vit_small_patch16_rope_ape_224", {"no_embed_class": False, "num_reg_tokens": 1}),
    ("vit_small_patch16_rope_mixed_224", {}),
    ("vit_small_patch16_rope_mixed_224", {"rope_grid_indexing": "ij"}),
    ("vit_small_patch16_rope_mixed_ape_224", {}),
    ("vit_tiny_patch16_dinov3_qkvb", {}),
    ("vit_small_patch16_dinov3", {}),
    ("vit_small_patch16_dinov3", {"global_pool": "token", "num_classes": 0}),
    ("vit_small_plus_patch16_dinov3", {}),
    ("vit_small_plus_patch16_dinov3_qkvb", {"global_pool": "token"}),
    ("vit_7b_patch16_dinov3", {"init_values": None}),
    ("vit_small_patch16_lingbot", {}),
]
# Their coordinates are stretched to the grid of pretraining, which another size would change.
STRETCHED = [
    ("vit_medium_patch16_rope_reg1_gap_256", {}),
    ("vit_medium_patch16_rope_reg1_gap_256", {"ref_feat_shape": (2, 3)}),
    ("vit_betwixt_patch16_rope_reg4_gap_256", {}),
    (EVA, {}),
    ("eva02_base_patch14_224", {"ref_feat_shape": (8, 12)}),
    ("eva_giant_patch14_224", {}),
]


def names(cases):
    return [f"{name}-{'-'.join(options)}" for name, options in cases]


def agree(model, network):
    generator = torch.Generator().manual_seed(0)
    images = torch.randn(3, network.patch_embed.proj.in_channels, *model.image_size, generator=generator)
    with torch.no_grad():
        logits, features = network(images), network.forward_head(network.forward_features(images), pre_logits=True)
        assert difference(model(images), logits) < 1e-5
        assert difference(model.features(images), features) < 1e-5
        assert difference(model.trace(images)["logits"], logits) < 1e-5
    assert logits.std(0).mean() > 1e-2  # the images matter


@pytest.mark.parametrize(("architecture", "options"), PLAIN + ROTARY, ids=names(PLAIN + ROTARY))
def test_same_answers_as_timm(small, ours, architecture, options):
    network = small(architecture, **options)
    model = ours(network)
    assert compare(network, model) < 1e-5
    for size in ((32, 48), (48, 48), (24, 64)):
        resized = deepcopy(network)  # timm resamples its table for good
        resized.set_input_size(img_size=size)
        model.resize(size, Transfer())
        agree(model, resized)


@pytest.mark.parametrize(("architecture", "options"), STRETCHED, ids=names(STRETCHED))
def test_same_answers_where_coordinates_are_stretched(small, ours, architecture, options):
    network = small(architecture, **({"ref_feat_shape": (4, 6)} | options if "giant" not in architecture else options))
    model = ours(network)
    assert compare(network, model) < 1e-5
    agree(model, network)


@pytest.mark.parametrize("architecture", [VIT, "vit_tiny_patch16_dinov3_qkvb"])
def test_whole_architectures(ours, architecture):
    network = timm.create_model(architecture).eval()
    model = ours(network)
    agree_size = network.patch_embed.img_size
    assert model.image_size == agree_size
    assert sum(p.numel() for p in model.parameters()) == sum(p.numel() for p in network.parameters()) + (
        0 if architecture == VIT else 12 * 192  # a key bias of zero, which timm leaves out
    )
    assert compare(network, model) < 1e-5


def test_a_wrong_angle_is_seen_behind_a_small_layer_scale(small, ours):
    network = small("vit_small_patch16_rope_224")
    with torch.no_grad():
        for layer in network.blocks:
            layer.gamma_1.fill_(1e-5)
    model = ours(network)
    network.rope.pos_embed.copy_(network.rope.pos_embed.flip(0))
    with torch.no_grad():
        images = torch.ones(1, 3, 32, 48)
        assert difference(model(images), network(images)) < 1e-4  # the logits hardly show it
    with pytest.raises(ValueError, match="rotary angles differ by"):
        compare(network, model)


def test_what_is_not_finite_is_not_equal(small, ours):
    network = small()
    network.head.bias.data[0] = torch.nan
    with pytest.raises(ValueError, match="logits differ by nan"):
        compare(network, ours(network))


def test_only_the_position_module_tells_where_a_patch_is(small, ours):
    network = small("vit_small_patch16_dinov3")
    model = ours(network)
    assert [name for name in model.state_dict() if name.startswith("position.")] == []
    learned = ours(small("vit_small_patch16_rope_mixed_ape_224"))
    assert {name for name in learned.state_dict() if name.startswith("position.")} == {
        "position.first.tables.0",
        "position.second.frequencies",
    }
