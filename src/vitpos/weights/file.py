"""The weights of one network in a file, whatever container they lie in."""

from __future__ import annotations

from pathlib import Path

import torch
from torch import Tensor, nn

from vitpos.evaluation.inspect_files import open_weights
from vitpos.weights.convert import show

ENDINGS = (".safetensors", ".pth", ".pt", ".bin", ".ckpt")
ANCHOR = "patch_embed.proj.weight"  # every ViT has it: what stands in front of it stands in front of all names
BESIDE = ("optimizer",)  # what a training checkpoint may hold besides a network


def read_weights(path: Path) -> dict[str, Tensor]:
    """Read the weights of the one network that a file holds, whatever container they lie in.

    Raises:
        ValueError: damaged, holding code, no ViT in it, several, or tensors that belong to none.
    """
    opened = open_weights(path)
    fronts = [name.removesuffix(ANCHOR) for name in opened.shapes if name == ANCHOR or name.endswith(f".{ANCHOR}")]
    if not fronts:
        some = ", ".join(list(opened.shapes)[:4])
        raise ValueError(f"{path}: no weight for {ANCHOR}, which every ViT of timm's has; it holds {some}, …")
    if len(fronts) > 1:
        raise ValueError(f"{path}: holds several networks, at {', '.join(map(repr, fronts))}; save the one to import")
    front = fronts[0]
    beside = [name for name in opened.shapes if not name.startswith(front) and name.partition(".")[0] not in BESIDE]
    if beside:
        raise ValueError(f"{path}: {', '.join(beside[:4])} do not belong to the network at {front!r}; save it alone")
    return {name.removeprefix(front): opened.read(name) for name in opened.shapes if name.startswith(front)}


def without_derived(weights: dict[str, Tensor], network: nn.Module) -> dict[str, Tensor]:
    """Leave out tables that timm computes, such as fixed frequencies, after checking that the file has the same.

    Raises:
        ValueError: naming one that is different.
    """
    state, buffers = network.state_dict(), dict(network.named_buffers())
    kept = {}
    for name, weight in weights.items():
        derived = buffers.get(name)
        if name in state or derived is None:
            kept[name] = weight
        elif derived.shape != weight.shape or not torch.allclose(
            weight.to(derived), derived, rtol=max(1e-5, torch.finfo(weight.dtype).eps)
        ):
            raise ValueError(
                f"{name} {show(tuple(weight.shape))} is computed, not learned, and timm computes other values than the "
                "file has"
            )
    return kept
