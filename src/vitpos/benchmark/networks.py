"""Our networks at the sizes of a measurement, one per file of `conf/position`."""

from __future__ import annotations

import functools
from collections.abc import Callable, Sequence
from functools import partial
from typing import Any

import torch
from hydra import compose, initialize_config_dir
from hydra.utils import instantiate
from omegaconf import OmegaConf

from vitpos.benchmark.settings import Settings
from vitpos.cli import CONFIG_FOLDER
from vitpos.models.block import Block
from vitpos.models.vit import ViT
from vitpos.position import Position

WITHOUT = "none"  # the file without positions, every other one's baseline


def position_names(chosen: Sequence[str] = ()) -> list[str]:
    """Return the files of `conf/position`, the baseline first, or those chosen.

    Raises:
        ValueError: a choice that is no such file.
    """
    names = sorted(path.stem for path in (CONFIG_FOLDER / "position").glob("*.yaml"))
    names = sorted(names, key=lambda name: name != WITHOUT)
    unknown = [name for name in chosen if name not in names]
    if unknown:
        raise ValueError(f"modules={','.join(unknown)}: choose from {', '.join(names)}")
    return list(chosen) or names


@functools.cache
def position(name: str) -> Callable[..., Position]:
    """Return what builds the position module of a file."""
    with initialize_config_dir(str(CONFIG_FOLDER), version_base="1.3"):
        config = compose(f"position/{name}").position
    built: Callable[..., Position] = instantiate(config, _convert_="all")
    return built


def network(name: str, settings: Settings, **sizes: Any) -> ViT:
    """Return a network with initial weights from a fixed seed.

    Args:
        name: file of `conf/position`.
        settings: images and sizes.
        sizes: `dim`, `depth` or `heads`, where they differ from those of the settings.
    """
    dim, depth, heads = (sizes.get(key, getattr(settings, key)) for key in ("dim", "depth", "heads"))
    torch.manual_seed(0)
    return ViT(
        settings.spec, position(name), patch_size=settings.patch_size, dim=dim, depth=depth,
        block=partial(Block, heads=heads),
    )  # fmt: skip


def model_sizes() -> dict[str, dict[str, int]]:
    """Return `dim`, `depth` and `heads` of every file of `conf/model`, smallest first."""
    sizes = {}
    for path in (CONFIG_FOLDER / "model").glob("*.yaml"):
        config = OmegaConf.load(path)
        sizes[path.stem] = {"dim": config.dim, "depth": config.depth, "heads": config.block.heads}
    return dict(sorted(sizes.items(), key=lambda item: item[1]["dim"]))
