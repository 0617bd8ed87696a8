"""timm's weights under our names: every one finds its place, every place gets its weight, or nothing is done.

Outside the position module our names are timm's. `Eva`, timm's second ViT, has names of its own for LayerScale and for
the projection to q, k and v.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping

import torch
from torch import Tensor, nn

from vitpos.models.vit import ViT
from vitpos.weights.positions import Positions

NAMED = 12  # weights that an error names
QKV_PART = re.compile(r"(blocks\.\d+\.attn\.)([qkv])(?:_proj\.(weight|bias)|_(bias))")


def convert(weights: Mapping[str, Tensor], positions: Positions, model: ViT) -> dict[str, Tensor]:
    """Return a state dict of our network, in float32.

    Args:
        weights: of timm's network, by timm's names.
        positions: where the weights of the position module go.
        model: our network, which says what it needs.

    Raises:
        ValueError: naming weights without a place, places without a weight, and shapes that differ.
    """
    out: dict[str, Tensor] = {}
    parts: dict[str, dict[str, Tensor]] = {}
    for name, weight in weights.items():
        part = QKV_PART.fullmatch(name)
        if part:
            kind = part[3] or part[4]
            parts.setdefault(f"{part[1]}qkv.{kind}", {})[part[2]] = weight
        elif name in positions.places:
            place, change = positions.places[name]
            out[f"position.{place}"] = change(weight)
        else:
            out[re.sub(r"\.gamma_([12])$", r".ls\1.gamma", name)] = weight
    out |= {name: _join(name, pieces) for name, pieces in parts.items()}
    if not any(name.startswith("norm.") for name in out) and isinstance(model.fc_norm, nn.Identity):
        # Where one token is read, a norm after pooling is the norm before.
        out = {re.sub(r"^fc_norm\.", "norm.", name): weight for name, weight in out.items()}
    require_same(
        {name: tuple(weight.shape) for name, weight in out.items()},
        {name: tuple(weight.shape) for name, weight in model.state_dict().items()},
        "the network of ours",
    )
    return {name: weight.detach().float().contiguous() for name, weight in out.items()}


def _join(name: str, pieces: Mapping[str, Tensor]) -> Tensor:
    """Stack q, k and v; keys without a bias have one of zero.

    Raises:
        ValueError: a projection is missing.
    """
    missing = {"q", "k", "v"} - set(pieces)
    if missing == {"k"} and name.endswith("bias"):
        pieces = {**pieces, "k": torch.zeros_like(pieces["q"])}
    elif missing:
        raise ValueError(f"{name} lacks the part of {', '.join(sorted(missing))}")
    return torch.cat([pieces[part] for part in "qkv"])


def require_same(
    have: Mapping[str, tuple[int, ...]], want: Mapping[str, tuple[int, ...]], network: str, advice: str = ""
) -> None:
    """Refuse weights that are not, by name and shape, those of a network.

    Args:
        have: shapes of the weights.
        want: shapes of the places.
        network: what has the places, for the message.
        advice: what to do, appended to the message.

    Raises:
        ValueError: naming what differs.
    """
    problems = [
        _list("no place for", (f"{name} {show(have[name])}" for name in have if name not in want)),
        _list("no weight for", (f"{name} {show(want[name])}" for name in want if name not in have)),
        _list(
            "other shapes:",
            (
                f"{name} {show(have[name])} instead of {show(want[name])}"
                for name in have
                if name in want and have[name] != want[name]
            ),
        ),
    ]
    found = [problem for problem in problems if problem]
    if found:
        raise ValueError(f"the weights are not those of {network}: {'; '.join(found)}{advice and f'. {advice}'}")


def _list(head: str, items: Iterable[str]) -> str:
    every = list(items)
    more = f" and {len(every) - NAMED} more" if len(every) > NAMED else ""
    return f"{head} {', '.join(every[:NAMED])}{more}" if every else ""


def show(shape: tuple[int, ...]) -> str:
    """Return a shape as 3x4, and that of a single number as 1."""
    return "x".join(map(str, shape)) or "1"
