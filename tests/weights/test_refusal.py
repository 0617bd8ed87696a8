"""What ours cannot be is refused by the name of timm's option, not found out later."""

from functools import partial

import pytest
import timm
import torch
from timm.layers import GluMlp
from torch import nn

from vitpos.weights.network import model_settings
from vitpos.weights.positions import describe_positions
from vitpos.weights.refusal import refuse_unknown

VIT, ROPE, DINO = "vit_tiny_patch16_224", "vit_small_patch16_rope_224", "vit_small_patch16_dinov3"


@pytest.mark.parametrize(
    ("architecture", "options", "named"),
    [
        (VIT, {"pre_norm": True}, "pre_norm=True"),
        (VIT, {"global_pool": "map"}, "global_pool='map'"),
        (VIT, {"global_pool": ""}, "global_pool=''"),
        (VIT, {"global_pool": "avg", "pool_include_prefix": True}, "pool_include_prefix=True"),
        (VIT, {"qk_norm": True}, "qk_norm=True"),
        (VIT, {"scale_attn_norm": True}, "scale_attn_norm=True"),
        (VIT, {"proj_bias": False}, "proj_bias=False"),
        (VIT, {"attn_drop_rate": 0.1}, r"dropout \(drop_rate, .*attn_drop_rate\)"),
        (VIT, {"patch_drop_rate": 0.1}, "patch_drop_rate"),
        (ROPE, {"patch_drop_rate": 0.1}, "patch_drop_rate"),
        (VIT, {"attn_layer": "diff"}, "attn_layer=DiffAttention"),
        (VIT, {"embed_norm_layer": "layernorm"}, "embed_norm_layer=LayerNorm"),
        (VIT, {"patch_size": (8, 16), "img_size": (32, 48)}, r"patch_size=\(8, 16\), not square"),
        (VIT, {"norm_layer": "layernorm2d"}, "norm_layer=LayerNorm2d"),
        (VIT, {"mlp_layer": timm.layers.GatedMlp}, "mlp_layer=GatedMlp"),
        ("vit_base_patch16_rpn_224", {}, "block_fn=ResPostBlock"),
        ("vit_small_patch16_18x2_224", {}, "block_fn=ParallelThingsBlock"),
        ("vit_base_patch16_clip_224", {}, "pre_norm=True"),
        ("deit_tiny_distilled_patch16_224", {}, "is a VisionTransformerDistilled, which has no counterpart"),
        ("vit_relpos_small_patch16_224", {}, "is a VisionTransformerRelPos"),
        ("vit_small_r26_s32_224", {}, "embed_layer=HybridEmbed"),
        ("eva02_base_patch16_clip_224", {}, "scale_attn_norm=True"),
        (ROPE, {"use_fc_norm": True, "use_post_transformer_norm": True}, "fc_norm=True together with a final norm"),
        (ROPE, {"attn_only_layer_scale": True}, "attn_only_layer_scale=True"),
        (ROPE, {"qkv_fused": False, "num_kv_heads": 2}, "num_kv_heads=2"),
        (ROPE, {"use_post_norm": True}, "block_fn=EvaBlockPostNorm"),
        (ROPE, {"ref_feat_shape": (7, 14)}, r"ref_feat_shape=\(7, 14\) on a grid of other proportions"),
        (ROPE, {"ref_feat_shape": 14, "dynamic_img_size": True}, "ref_feat_shape with dynamic_img_size=True"),
        (ROPE, {"rope_type": "mrope", "rope_grid_indexing": "ij"}, "rope_type of RotaryEmbeddingMRope"),
        (DINO, {"rope_grid_indexing": "xy"}, "rope_grid_indexing='xy'"),
        (DINO, {"rope_rotate_half": False}, "rope_rotate_half=False"),
        (DINO, {"rope_grid_offset": 0.25}, r"rope_grid_offset=0\.25"),
        (DINO, {"use_abs_pos_emb": True}, "use_abs_pos_emb=True together with rope_type='dinov3'"),
    ],
    ids=lambda value: value if isinstance(value, str) else None,
)
def test_options_without_a_counterpart_are_named(architecture, options, named):
    with torch.device("meta"):
        network = timm.create_model(architecture, **{"depth": 2, **options} if "r26" not in architecture else options)
    with pytest.raises(ValueError, match=named) as raised:
        refuse_unknown(network, architecture)
    assert str(raised.value).startswith(architecture)


def test_several_options_are_named_at_once():
    with torch.device("meta"):
        network = timm.create_model(VIT, depth=1, qk_norm=True, pre_norm=True)
    with pytest.raises(ValueError, match=r"pre_norm=True .*; qk_norm=True"):
        refuse_unknown(network, VIT)


@pytest.mark.parametrize(
    ("pattern", "position"),
    [
        ("deit_*_patch16_224", "learned_1d"),
        ("deit3_*", "learned_1d"),
        ("vit_*_reg4_gap_256", None),
        ("vit_*_rope_224", "rope_axial"),
        ("vit_*_rope_ape_224", "rope_axial_ape"),
        ("vit_*_rope_mixed_224", "rope_mixed"),
        ("vit_*_rope_mixed_ape_224", "rope_mixed_ape"),
        ("vit_*_dinov3*", "rope_dinov3"),
    ],
)
def test_every_architecture_of_a_family_has_settings(pattern, position):
    found = [name for name in timm.list_models(pattern) if "distilled" not in name]
    assert len(found) > 1
    for name in found:
        with torch.device("meta"):
            network = timm.create_model(name, depth=1)
        refuse_unknown(network, name)
        assert model_settings(network)["dim"] == network.embed_dim
        assert describe_positions(network).name == (position or describe_positions(network).name)


def test_settings_are_those_of_the_files_in_conf_where_nothing_differs(small):
    assert model_settings(small(drop_path_rate=0.2))["drop_path"] == 0.2
    block = model_settings(small())["block"]
    assert set(block) == {"_target_", "_partial_", "heads", "mlp_ratio", "layer_scale", "qkv_bias"}
    special = model_settings(small(norm_layer=partial(nn.LayerNorm, eps=1e-5), mlp_layer=GluMlp))
    assert special["block"]["norm"] == {"_target_": "torch.nn.LayerNorm", "_partial_": True, "eps": 1e-5}
    assert special["block"]["mlp"] == {
        "_target_": "timm.layers.GluMlp",
        "_partial_": True,
        "gate_last": True,
        "act_layer": {"_target_": "hydra.utils.get_class", "path": "torch.nn.GELU"},
    }
