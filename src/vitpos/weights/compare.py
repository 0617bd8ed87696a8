"""Does an imported network do what timm's does? Names and shapes that fit prove nothing about what is computed."""

from __future__ import annotations

from typing import Any

import torch
from timm.layers import RotaryEmbeddingMixed, apply_rot_embed_cat
from torch import Tensor, nn

from vitpos.models.vit import ViT

TOLERANCE = 1e-4
IMAGES = 2


def compare(network: nn.Module, model: ViT, seed: int = 0) -> float:
    """Return the largest difference of logits between timm's network and ours, for random images of the native size.

    Rotary angles are compared by themselves too: where LayerScale is small, the logits hardly show them.

    Args:
        network: timm's, in float32.
        model: ours, at its training size.
        seed: of the images.

    Returns:
        The difference relative to the largest logit, or absolute where all are below 1.

    Raises:
        ValueError: more than `TOLERANCE`, or values that are not finite.
    """
    network.eval()
    model.eval()
    generator = torch.Generator().manual_seed(seed)
    images = torch.randn(IMAGES, model.patch_embed.proj.in_channels, *model.image_size, generator=generator)
    with torch.no_grad():
        _require("rotary angles", _rotation_difference(network, model, generator))
        return _require("logits", difference(model(images), network(images)))


def difference(ours: Tensor, theirs: Tensor) -> float:
    """Return the largest difference over max(1, largest value)."""
    return float((ours - theirs).abs().max() / theirs.abs().max().clamp(min=1))


def _rotation_difference(network: Any, model: ViT, generator: torch.Generator) -> float:
    rope = getattr(network, "rope", None)
    if rope is None:
        return 0.0
    geometry = model.geometry
    x = torch.randn(1, geometry.heads, geometry.tokens, geometry.head_dim, generator=generator)  # B K T E
    prefix, half = geometry.prefix, network.blocks[0].attn.rotate_half
    embedded = rope.get_embed(shape=None if rope.feat_shape is not None else list(geometry.grid))
    mixed = isinstance(rope, RotaryEmbeddingMixed)
    worst = 0.0
    for layer in range(geometry.depth if mixed else 1):
        turned = apply_rot_embed_cat(x[:, :, prefix:], embedded[layer] if mixed else embedded, half=half)
        theirs = torch.cat((x[:, :, :prefix], turned), dim=2)
        worst = max(worst, *(difference(ours, theirs) for ours in model.position.rotate(x, x, layer)))
    return worst


def _require(what: str, found: float) -> float:
    if not found <= TOLERANCE:  # NaN included
        raise ValueError(
            f"the imported network does not do what timm's does: {what} differ by {found:.2g}, more than "
            f"{TOLERANCE:g}; the weights hold values that are not finite, or timm's network has something unknown here"
        )
    return found
