"""Linear position probe: how well a patch's row and column can be read from its features, layer by layer.

Letters: B images, N patches, D width.
"""

from __future__ import annotations

import torch
from torch import Tensor

from vitpos.models.vit import ViT

CONTENT = "content"
RIDGE = 1e-4  # of the mean feature variance: enough to be solvable, too little to bias the fit


def probe_position(model: ViT, images: Tensor) -> dict[str, dict[str, float | None]]:
    """Return R2 of a linear probe for the patch row and column, per layer.

    The first half of the images fits the probe, the second half scores it: R2 = 1 - squared error / variance, 1 when
    position can be read exactly, 0 when the features say nothing, below 0 when the fit does not carry over. `content`
    is the baseline: the same probe on the patch embedding before any position enters, which finds what the images
    themselves give away (a dark border betrays the edge).

    Args:
        model: in evaluation mode.
        images: (B, C, height, width), at least two.

    Returns:
        `content`, `stem`, `layer0` .. to {"row": R2, "column": R2}; None where the grid has a single row or column.

    Raises:
        ValueError: fewer than two images.
    """
    if len(images) < 2:
        raise ValueError(f"images={len(images)}: the probe needs at least 2, half to fit and half to score")
    with torch.no_grad():
        features = {CONTENT: model.patch_embed(images)}
        trace = model.trace(images)
        layers = ["stem", *(f"layer{layer}" for layer in range(len(model.blocks)))]
        features |= {name: trace[name][:, model.prefix :] for name in layers}
        targets = _targets(model.position.grid).to(images.device)  # N 2
        return {name: _probe(feature.double(), targets) for name, feature in features.items()}


def _targets(grid: tuple[int, int]) -> Tensor:
    """Return the row and column (N, 2) of each patch, centred."""
    rows, columns = torch.meshgrid(*(torch.arange(side, dtype=torch.float64) for side in grid), indexing="ij")
    targets = torch.stack([rows, columns], -1).reshape(-1, 2)
    return targets - targets.mean(0)


def _probe(features: Tensor, targets: Tensor) -> dict[str, float | None]:
    """Fit on the first half of (B, N, D) by ridge regression in closed form and score the second."""
    half = len(features) // 2
    mean = features[:half].mean((0, 1))
    train, held_out = (part - mean for part in (features[:half], features[half:]))
    gram = torch.einsum("bnd,bne->de", train, train)
    gram.diagonal().add_(RIDGE * gram.diagonal().mean() + torch.finfo(gram.dtype).tiny)
    weights = torch.linalg.solve(gram, torch.einsum("bnd,nt->dt", train, targets))  # D 2
    squared_error = (held_out @ weights - targets).square().mean((0, 1))
    variance = targets.square().mean(0)
    return {
        name: None if variance[axis] == 0 else float(1 - squared_error[axis] / variance[axis])
        for axis, name in enumerate(("row", "column"))
    }
