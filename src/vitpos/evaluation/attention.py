"""How far a head looks: mean attention distance (Dosovitskiy et al. 2020, Figure 7 right and D.7).

Letters: B images, K heads, N patches, P prefix, T = P + N tokens, D width, L layers.
"""

from __future__ import annotations

from collections.abc import Iterator

import torch
from torch import Tensor

from vitpos.models.block import Block
from vitpos.models.vit import ViT

IMAGES = 128  # of the paper
CHUNK = 2**24  # attention weights in memory at a time


def patch_distances(grid: tuple[int, int], patch_size: int) -> Tensor:
    """Return the distance in pixels (N, N) between the centres of all pairs of patches."""
    rows, columns = torch.meshgrid(torch.arange(grid[0]), torch.arange(grid[1]), indexing="ij")
    centres = torch.stack([rows, columns], -1).reshape(-1, 2).float() * patch_size  # N 2
    return torch.cdist(centres, centres, compute_mode="donot_use_mm_for_euclid_dist")


def attention_weights(model: ViT, images: Tensor) -> Iterator[Tensor]:
    """Yield the attention weights (B, K, T, T) of one layer after the other."""
    trace = model.trace(images)
    x = trace["stem"]
    for layer, block in enumerate(model.blocks):
        assert isinstance(block, Block)
        x = model.position.before_layer(x, layer)
        yield block.attn.weights(block.norm1(x), model.position, layer, model.temperature)
        x = trace[f"layer{layer}"]


def attention_distance(model: ViT, images: Tensor) -> Tensor:
    """Return the mean attention distance (L, K) in pixels of the images (B, C, height, width).

    For a query patch i, d_i = sum_j a_ij |p_i - p_j| / sum_j a_ij over key patches j, with p the patch centres;
    averaged over queries and images. Prefix tokens have no place, so they are neither queries nor keys and the
    weights on patches are
    renormalised: a head that mostly reads CLS is not thereby local.

    The model must be in evaluation mode. Layers are visited one by one and images in chunks, so that at most `CHUNK`
    weights exist at a time.
    """
    prefix, geometry = model.prefix, model.geometry
    distances = patch_distances(model.position.grid, model.patch_size).to(images.device)
    tokens = prefix + len(distances)
    total = torch.zeros(geometry.depth, geometry.heads, dtype=torch.float64, device=images.device)
    with torch.no_grad():
        for chunk in torch.split(images, max(1, CHUNK // (geometry.heads * tokens**2))):
            for layer, weights in enumerate(attention_weights(model, chunk)):
                among_patches = weights[:, :, prefix:, prefix:].float()  # B K N N
                mean = torch.einsum("bkij,ij->bki", among_patches, distances) / among_patches.sum(-1)  # B K N
                total[layer] += mean.mean(-1).sum(0).double()
    return (total / len(images)).float().cpu()
