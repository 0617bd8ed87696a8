"""Where a network of timm's comes from: a name, whose weights timm fetches, or a weights file and its architecture."""

from __future__ import annotations

import difflib
from collections.abc import Mapping
from contextlib import nullcontext
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import timm
import torch
from torch import nn

from vitpos.evaluation.inspect_source import _hub as hub
from vitpos.weights.convert import require_same
from vitpos.weights.file import ANCHOR, ENDINGS, read_weights, without_derived
from vitpos.weights.refusal import refuse_unknown

# Arguments that choose what to read from fetched weights; all others would make timm change the weights.
READING = ("global_pool", "num_classes")


@dataclass(frozen=True)
class Origin:
    """A network of timm's with its weights, in float32 on the CPU.

    Attributes:
        name: timm's name, or the name of the file.
        architecture: timm's name of the architecture, without a tag.
        network: the network.
        preprocessing: `mean`, `std` and `crop` (share of the sides seen) of the images it was trained on, where known.
    """

    name: str
    architecture: str
    network: nn.Module
    preprocessing: Mapping[str, Any] = field(default_factory=dict)


def open_network(source: str, architecture: str, arguments: Mapping[str, Any]) -> Origin:
    """Return the network that `timm=` names.

    Args:
        source: a timm name with or without its tag, or a weights file.
        architecture: timm's name of the architecture of a file; empty for a name.
        arguments: of the architecture, where they are not its defaults.

    Raises:
        ValueError: neither a name nor a file; a file that is damaged, holds code, or does not fit the architecture; a
            network that ours cannot be; no network connection.
    """
    path = Path(source)
    if path.is_dir():
        raise ValueError(f"timm={source}: a folder; give the weights file in it, and model= for its architecture")
    if path.is_file():
        return _from_file(path, architecture, dict(arguments))
    if path.suffix in ENDINGS:
        raise ValueError(f"timm={source}: no such file")
    if architecture:
        raise ValueError(f"model={architecture}: says what a file holds, but timm={source} is no file")
    return _from_name(source, dict(arguments))


def _from_name(source: str, arguments: dict[str, Any]) -> Origin:
    name = source.removeprefix("timm/")
    for argument in arguments:
        if argument not in READING:
            raise ValueError(
                f"timm.{argument}: timm would change the weights of {name} to suit it; "
                f"only {' and '.join(READING)} may be given for a name"
            )
    architecture = name.rpartition("/")[2].rpartition(":")[2].partition(".")[0]
    try:
        with hub(source) if ":" in name else nullcontext():  # timm itself knows the architecture of all other names
            empty = _create(name, arguments, meta=True)
        refuse_unknown(empty, architecture)
        classes, theirs = arguments.get("num_classes", 0), empty.pretrained_cfg.get("num_classes")
        if classes not in (0, theirs):
            raise ValueError(f"timm.num_classes={classes}: {name} has {theirs} classes; 0 takes no head")
        with hub(source):
            network = timm.create_model(name, pretrained=True, **arguments)
    except RuntimeError as error:  # no weights of this name
        raise ValueError(f"timm={source}: {error}; timm has {_tags(architecture)}") from error
    except ValueError as error:
        if not isinstance(error.__cause__, OSError):
            raise
        raise ValueError(
            f"timm={source}: its weights can't be fetched ({type(error.__cause__).__name__}); without a network give "
            f"a file ({', '.join(ENDINGS)}) and model={architecture}"
        ) from error.__cause__
    known: dict[str, Any] = network.pretrained_cfg
    preprocessing = {
        key: list(known[theirs]) if isinstance(known[theirs], tuple) else known[theirs]
        for key, theirs in (("mean", "mean"), ("std", "std"), ("crop", "crop_pct"))
        if known.get(theirs)
    }
    return Origin(name, architecture, network.float().eval(), preprocessing)


def _from_file(path: Path, architecture: str, arguments: dict[str, Any]) -> Origin:
    if path.suffix not in ENDINGS:
        raise ValueError(f"timm={path}: files ending in {', '.join(ENDINGS)} can be read, not {path.suffix!r}")
    if not architecture:
        raise ValueError(f"model= is missing: timm's name of the architecture that {path} holds weights of")
    architecture, weights = architecture.removeprefix("timm/"), read_weights(path)
    if "head.weight" in weights:
        arguments.setdefault("num_classes", len(weights["head.weight"]))
    if weights[ANCHOR].ndim == 4:
        arguments.setdefault("in_chans", weights[ANCHOR].shape[1])
    network = _create(architecture, arguments)
    refuse_unknown(network, architecture)
    weights = without_derived(weights, network)
    height, width = network.patch_embed.img_size
    advice = f"timm.KEY=VALUE changes an argument of the architecture; timm.img_size is {height}x{width}"
    have, want = (
        {name: tuple(weight.shape) for name, weight in each.items()} for each in (weights, network.state_dict())
    )
    require_same(have, want, f"timm's {architecture}", advice)
    network.load_state_dict(weights, strict=True)
    return Origin(path.name, architecture, network.eval())


def _create(name: str, arguments: dict[str, Any], meta: bool = False) -> Any:
    """Build an architecture with random weights, or none on the meta device.

    Raises:
        ValueError: no such architecture or tag, or arguments that it doesn't take.
    """
    architecture = name.partition(".")[0]
    if ":" not in name and not timm.is_model(architecture):
        close = difflib.get_close_matches(architecture, timm.list_models(), n=4)
        hint = f"; perhaps {' or '.join(close)}" if close else ""
        raise ValueError(f"{name}: neither a weights file nor an architecture of timm's{hint}")
    try:
        with torch.device("meta" if meta else "cpu"):
            return timm.create_model(name, pretrained=False, **arguments)
    except (RuntimeError, TypeError, AssertionError, ValueError) as error:
        given = "".join(f" timm.{key}={value}" for key, value in arguments.items())
        tags = f"; timm has {_tags(architecture)}" if "tag" in str(error) else ""
        raise ValueError(
            f"timm can't build {name}{given and ' with' + given}: {error or type(error).__name__}{tags}"
        ) from error


def _tags(architecture: str) -> str:
    return ", ".join(timm.list_pretrained(f"{architecture}.*")) or f"no weights of {architecture}"
