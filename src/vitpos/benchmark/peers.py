"""Networks of other libraries at the same sizes, for comparison."""

from __future__ import annotations

import importlib.util
from collections.abc import Callable
from typing import Any

import torch
from torch import nn

from vitpos.benchmark.settings import Settings

PLAIN = "timm/none"  # the baseline of our network without positions, and of every other peer

Build = Callable[[Settings], nn.Module]


def peers() -> tuple[dict[str, Build], list[str]]:
    """Return what builds each peer, and a line for each library that is not installed."""
    found: dict[str, Build] = {
        PLAIN: lambda settings: _timm(settings, pos_embed="none"),
        "timm/learned": lambda settings: _timm(settings, pos_embed="learn"),
        "timm/relative_bias": _timm_relative,
        "timm/rope_axial": lambda settings: _timm_rotary(settings, rope_type="cat"),
        "timm/rope_mixed": lambda settings: _timm_rotary(settings, rope_type="mixed"),
        "timm/rope_dinov3": lambda settings: _timm_rotary(settings, rope_type="dinov3", rope_rotate_half=True),
        "torchvision/learned": _torchvision,
    }
    if importlib.util.find_spec("vit_pytorch") is None:
        return found, ["vit-pytorch is not installed: pip install -e '.[bench]' adds it"]
    return {**found, "vit-pytorch/learned": _vit_pytorch}, []


def plain(settings: Settings) -> nn.Module:
    """Return timm's ViT without positions."""
    return peers()[0][PLAIN](settings)


def _common(settings: Settings) -> dict[str, Any]:
    torch.manual_seed(0)
    return {
        "img_size": settings.image_size,
        "patch_size": settings.patch_size,
        "num_classes": settings.classes,
        "embed_dim": settings.dim,
        "depth": settings.depth,
        "num_heads": settings.heads,
        "global_pool": "token",
    }


def _timm(settings: Settings, pos_embed: str) -> Any:
    from timm.models.vision_transformer import VisionTransformer

    return VisionTransformer(**_common(settings), pos_embed=pos_embed)


def _timm_relative(settings: Settings) -> Any:
    from timm.models.vision_transformer_relpos import VisionTransformerRelPos

    return VisionTransformerRelPos(**_common(settings), rel_pos_type="bias", class_token=True, init_values=None)


def _timm_rotary(settings: Settings, **rope: Any) -> Any:
    from timm.models.eva import Eva

    plain_attention = {"attn_type": "rope", "use_abs_pos_emb": False, "use_rot_pos_emb": True}
    return Eva(**_common(settings), **plain_attention, **rope)


def _torchvision(settings: Settings) -> Any:
    from torchvision.models import VisionTransformer

    torch.manual_seed(0)
    return VisionTransformer(
        image_size=settings.image_size, patch_size=settings.patch_size, num_layers=settings.depth,
        num_heads=settings.heads, hidden_dim=settings.dim, mlp_dim=4 * settings.dim, num_classes=settings.classes,
    )  # fmt: skip


def _vit_pytorch(settings: Settings) -> Any:
    from vit_pytorch import ViT

    torch.manual_seed(0)
    return ViT(
        image_size=settings.image_size, patch_size=settings.patch_size, num_classes=settings.classes,
        dim=settings.dim, depth=settings.depth, heads=settings.heads, dim_head=settings.dim // settings.heads,
        mlp_dim=4 * settings.dim, pool="cls",
    )  # fmt: skip
