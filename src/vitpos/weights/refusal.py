"""What timm's ViTs can have and ours cannot, each by the name of timm's option.

A network that passes here has a place for every weight; `convert` and `compare` still check that it does what timm's
does.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from timm.layers import (
    Attention,
    AttentionRope,
    GluMlp,
    LayerNorm,
    Mlp,
    PatchEmbed,
    RmsNorm,
    RotaryEmbeddingCat,
    RotaryEmbeddingDinoV3,
    RotaryEmbeddingMixed,
    SwiGLU,
)
from timm.models.eva import Eva, EvaAttention, EvaBlock
from timm.models.vision_transformer import Block, VisionTransformer
from torch import nn

NETWORKS = (VisionTransformer, Eva)
LAYERS = (Block, EvaBlock)
ATTENTIONS = (Attention, AttentionRope, EvaAttention)
MLPS = (Mlp, GluMlp, SwiGLU)
NORMS = (LayerNorm, nn.LayerNorm, RmsNorm)
ROPES = (RotaryEmbeddingCat, RotaryEmbeddingMixed, RotaryEmbeddingDinoV3)


def refuse_unknown(network: nn.Module, name: str) -> None:
    """Refuse a network that cannot be built from ours.

    Args:
        network: timm's.
        name: of its architecture.

    Raises:
        ValueError: naming the options that have no counterpart.
    """
    if type(network) not in NETWORKS:
        raise ValueError(
            f"{name} is a {type(network).__name__}, which has no counterpart here; "
            f"{' and '.join(kind.__name__ for kind in NETWORKS)} have"
        )
    found = [*_around_layers(network)]
    if not any(option.startswith("block_fn") for option in found):
        found += _in_layers(network)
    if found:
        raise ValueError(f"{name} cannot be imported, no counterpart here for timm's {'; '.join(found)}")


def _around_layers(network: Any) -> Iterator[str]:
    embed, layers = network.patch_embed, list(network.blocks)
    if type(embed) is not PatchEmbed:
        yield f"embed_layer={type(embed).__name__}"
    else:
        if embed.patch_size[0] != embed.patch_size[1]:
            yield f"patch_size={embed.patch_size}, not square"
        if not _is_off(embed.norm):
            yield f"embed_norm_layer={type(embed.norm).__name__}"
    if not _is_off(network.norm_pre):
        yield "pre_norm=True (a norm in front of the layers, as in CLIP)"
    if network.global_pool not in ("token", "avg"):
        yield f"global_pool={network.global_pool!r}, only token and avg have one"
    if getattr(network, "pool_include_prefix", False):
        yield "pool_include_prefix=True"
    if any(module.p for module in network.modules() if isinstance(module, nn.Dropout)):
        yield "dropout (drop_rate, pos_drop_rate, proj_drop_rate, attn_drop_rate)"
    if network.patch_drop is not None and not _is_off(network.patch_drop):
        yield "patch_drop_rate"
    norms = [norm for norm in (network.norm, network.fc_norm) if not _is_off(norm)]
    if len(norms) > 1:
        yield "fc_norm=True together with a final norm"
    kinds = {type(layer) for layer in layers}
    if not kinds <= set(LAYERS):
        yield f"block_fn={', '.join(sorted(kind.__name__ for kind in kinds))}"
    rope = getattr(network, "rope", None)
    if rope is not None:
        yield from _in_rope(rope)
        if isinstance(rope, RotaryEmbeddingDinoV3) and network.pos_embed is not None:
            yield "use_abs_pos_emb=True together with rope_type='dinov3'"


def _in_rope(rope: Any) -> Iterator[str]:
    if type(rope) not in ROPES:
        yield f"rope_type of {type(rope).__name__}"
    elif isinstance(rope, RotaryEmbeddingCat):
        if rope.in_pixels:
            yield "rope in_pixels=True"
        # Coordinates of the two axes stretched by one factor are a slower ladder of frequencies; by two they are not.
        if rope.ref_feat_shape is not None and rope.feat_shape is not None:
            stretch = {have / want for have, want in zip(rope.feat_shape, rope.ref_feat_shape, strict=True)}
            if len(stretch) > 1:
                yield f"ref_feat_shape={tuple(rope.ref_feat_shape)} on a grid of other proportions"
        elif rope.ref_feat_shape is not None:
            yield "ref_feat_shape with dynamic_img_size=True"
    elif isinstance(rope, RotaryEmbeddingDinoV3):
        if rope.grid_indexing != "ij":
            yield f"rope_grid_indexing={rope.grid_indexing!r} of rope_type='dinov3'"
        if not rope.rotate_half:
            yield "rope_rotate_half=False of rope_type='dinov3'"
        if rope.grid_offset:
            yield f"rope_grid_offset={rope.grid_offset} of rope_type='dinov3'"


def _in_layers(network: Any) -> Iterator[str]:
    layer = network.blocks[0]  # timm builds all alike; a layer that differs fails when its weights find no place
    attention, mlp = layer.attn, layer.mlp
    if type(layer.norm1) not in NORMS:
        yield f"norm_layer={type(layer.norm1).__name__}"
    if type(attention) not in ATTENTIONS:
        yield f"attn_layer={type(attention).__name__}"
    else:
        if not _is_off(attention.q_norm):
            yield "qk_norm=True"
        if not _is_off(attention.norm):
            yield "scale_attn_norm=True"
        if getattr(attention, "gate", None) is not None:
            yield "gated attention"
        if attention.proj.bias is None:
            yield "proj_bias=False"
        if attention.proj.in_features != network.embed_dim:
            yield f"attn_head_dim={attention.head_dim}"
        if getattr(attention, "num_kv_heads", attention.num_heads) != attention.num_heads:
            yield f"num_kv_heads={attention.num_kv_heads}"
    if type(mlp) not in MLPS:
        yield f"mlp_layer={type(mlp).__name__}"
    elif not isinstance(mlp.norm, (nn.Identity, *NORMS)):
        yield f"norm {type(mlp.norm).__name__} in the MLP"
    if isinstance(layer, EvaBlock) and (layer.gamma_1 is None) != (layer.gamma_2 is None):
        yield "attn_only_layer_scale=True"


def _is_off(module: nn.Module) -> bool:
    return isinstance(module, nn.Identity)
