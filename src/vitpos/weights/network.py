"""The `model` settings and the image spec of a timm ViT, read off the network itself."""

from __future__ import annotations

import math
from typing import Any

import timm.layers
from timm.layers import GluMlp, Mlp, SwiGLU
from torch import nn

from vitpos.spec import ImageSpec

LAYER_NORM_EPS = 1e-6  # of `vitpos.models.block.layer_norm`, which goes without saying


def image_spec(network: Any) -> ImageSpec:
    """Return the image size a timm ViT is set to, its channels and its classes, 0 without a head."""
    height, width = network.patch_embed.img_size
    return ImageSpec((int(height), int(width)), network.patch_embed.proj.in_channels, int(network.num_classes))


def model_settings(network: Any) -> dict[str, Any]:
    """Return the settings of our network that computes what a timm ViT does, as in `conf/model`.

    Args:
        network: one that `refusal.refuse_unknown` lets pass.
    """
    layer, cls = network.blocks[0], network.cls_token is not None
    pool = "cls" if network.global_pool == "token" else "mean_beside_cls" if cls else "mean"
    before, after = (not isinstance(norm, nn.Identity) for norm in (network.norm, network.fc_norm))
    settings = {
        "_target_": "vitpos.models.vit.ViT",
        "_partial_": True,
        "patch_size": int(network.patch_embed.patch_size[0]),
        "dim": int(network.embed_dim),
        "depth": len(network.blocks),
        "pool": pool,
        "registers": 0 if network.reg_token is None else int(network.reg_token.shape[1]),
        "drop_path": round(getattr(network.blocks[-1].drop_path1, "drop_prob", 0.0), 6),  # timm's went through float32
        "block": _block(layer, int(network.embed_dim)),
    }
    if not before and not after:
        settings["final_norm"] = "none"
    elif before and pool != "cls":
        settings["final_norm"] = "tokens"
    return settings


def _block(layer: Any, dim: int) -> dict[str, Any]:
    attention, mlp = layer.attn, layer.mlp
    hidden = (mlp.fc1_g if isinstance(mlp, SwiGLU) else mlp.fc1).out_features
    settings = {
        "_target_": "vitpos.models.block.Block",
        "_partial_": True,
        "heads": int(attention.num_heads),
        "mlp_ratio": ratio_of(hidden, dim),
        "layer_scale": _layer_scale(layer),
        "qkv_bias": _has_qkv_bias(attention),
    }
    plain = isinstance(layer.norm1, nn.LayerNorm) and layer.norm1.eps == LAYER_NORM_EPS
    if not plain:
        settings["norm"] = _norm(layer.norm1)
    if not (type(mlp) is Mlp and type(mlp.act) is nn.GELU and isinstance(mlp.norm, nn.Identity)):
        settings["mlp"] = _mlp(mlp)
    return settings


def ratio_of(hidden: int, dim: int) -> float:
    """Return the ratio from which a layer gets its hidden width back: int(dim * ratio) = hidden."""
    ratio = hidden / dim
    return ratio if int(dim * ratio) == hidden else math.nextafter(ratio, math.inf)


def _layer_scale(layer: Any) -> float:
    """Return the initial gain, which decides whether there is one; 0 is none."""
    if hasattr(layer, "ls1"):
        return 0.0 if isinstance(layer.ls1, nn.Identity) else float(layer.ls1.init_values)
    return 0.0 if layer.gamma_1 is None else float(layer.init_values) or 1e-5


def _has_qkv_bias(attention: Any) -> bool:
    if attention.qkv is None:
        return attention.q_proj.bias is not None
    return attention.qkv.bias is not None or getattr(attention, "q_bias", None) is not None


def _norm(norm: Any) -> dict[str, Any]:
    kind = nn.LayerNorm if isinstance(norm, nn.LayerNorm) else type(norm)  # timm's own LayerNorm computes the same
    return {"_target_": _path(kind), "_partial_": True, "eps": float(norm.eps)}


def _mlp(mlp: Any) -> dict[str, Any]:
    settings: dict[str, Any] = {"_target_": _path(type(mlp)), "_partial_": True}
    if isinstance(mlp, GluMlp):
        settings["gate_last"] = mlp.gate_last
    settings["act_layer"] = {"_target_": "hydra.utils.get_class", "path": _path(type(mlp.act))}
    if not isinstance(mlp.norm, nn.Identity):
        settings["norm_layer"] = _norm(mlp.norm)
    return settings


def _path(kind: type) -> str:
    """Return where a class can be imported from, the public place where there is one."""
    for public in (nn, timm.layers):
        if getattr(public, kind.__name__, None) is kind:
            return f"{public.__name__}.{kind.__name__}"
    return f"{kind.__module__}.{kind.__qualname__}"
