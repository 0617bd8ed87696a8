"""Where a table of positions comes from: a run of ours, a file, a timm ViT or a model on the Hugging Face hub."""

from __future__ import annotations

import json
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

import torch
from torch import Tensor

from vitpos.evaluation.inspect_files import OPENERS, Weights, as_table, find_table, open_weights
from vitpos.evaluation.similarity import added_tables
from vitpos.position import Position

CHECKPOINT = Path("checkpoints", "best.ckpt")
HUB_TIMEOUT = 5.0  # seconds


@dataclass(frozen=True)
class Source:
    """A table of positions and what its origin says about it.

    Attributes:
        name: short, for titles and folder names.
        key: which tensor of the origin it is.
        table: (T, D) float32; None for a module of ours that adds none.
        grid: (H, W) where the origin says it.
        prefix: tokens in front of the patches where the origin says it.
        position: the module, for a run of ours.
    """

    name: str
    key: str
    table: Tensor | None
    grid: tuple[int, int] | None = None
    prefix: int | None = None
    position: Position | None = None


def open_source(source: str, key: str = "") -> Source:
    """Open a run folder, a weights file, a timm model by name, or a hub model by `owner/name`.

    Raises:
        ValueError: nothing of these, or no table in it; the message says what was found.
    """
    path = Path(source)
    if path.is_dir():
        return _from_run(path, key)
    if path.is_file():
        # Many files are called `model`; the folder tells them apart.
        return _from_weights(open_weights(path), f"{path.absolute().parent.name}-{path.stem}", key)
    if path.suffix in OPENERS or len(path.parts) > 2:
        raise ValueError(f"source={source}: no such file")
    return _from_timm(source) or _from_hub(source, key)


def _from_run(folder: Path, key: str) -> Source:
    from vitpos.training.checkpoint import read_checkpoint

    checkpoint = folder / CHECKPOINT
    if not checkpoint.is_file():
        raise ValueError(f"source={folder}: not a finished run, {CHECKPOINT} is not in it")
    position = read_checkpoint(checkpoint).build().position
    tables = dict(added_tables(position))
    if key and key not in tables:
        choices = f"tables at {', '.join(tables)}" if tables else "no table at all"
        raise ValueError(f"key={key!r}: {position.label} adds {choices}")
    where = key or next(iter(tables), "")
    geometry = position.geometry
    table = tables[where].cpu() if where else None
    return Source(folder.name, where, table, geometry.grid, geometry.prefix, position)


def _from_weights(weights: Weights, name: str, key: str) -> Source:
    chosen = find_table(weights, key)
    table, grid = as_table(weights.read(chosen), chosen)
    return Source(name, chosen, table, grid, 0 if grid else None)


def _from_timm(source: str) -> Source | None:
    """Return the table of a timm model with its pretrained weights; None if timm knows no such model."""
    import timm

    name = source.removeprefix("timm/")
    if not timm.is_model(name.partition(".")[0]):
        return None
    try:
        with torch.device("meta"):
            empty = timm.create_model(name)
    except RuntimeError as error:  # an unknown tag
        tags = ", ".join(timm.list_pretrained(f"{name.partition('.')[0]}.*"))
        raise ValueError(f"source={source}: {error} timm has {tags}") from error
    if not isinstance(getattr(empty, "pos_embed", None), Tensor):
        raise ValueError(f"source={source}: this timm model has no pos_embed table")
    with _hub(source):
        model = timm.create_model(name, pretrained=True)
    table, grid = as_table(model.pos_embed.detach(), "pos_embed")
    grid = grid or tuple(model.patch_embed.grid_size)
    return Source(name, "pos_embed", table, grid, len(table) - grid[0] * grid[1])


def _from_hub(source: str, key: str) -> Source:
    """Return the table of a hub model's safetensors, whole or in shards."""
    from huggingface_hub import hf_hub_download
    from huggingface_hub.errors import EntryNotFoundError, HFValidationError, RepositoryNotFoundError

    with _hub(source):
        try:
            try:
                path = Path(hf_hub_download(source, "model.safetensors"))
            except EntryNotFoundError as error:
                if isinstance(error, OSError):  # offline, not a missing file
                    raise
                index = json.loads(Path(hf_hub_download(source, "model.safetensors.index.json")).read_text("utf-8"))
                shards: dict[str, str] = index["weight_map"]
                listed = Weights(Path(source), dict.fromkeys(shards, ()), lambda name: torch.empty(0))
                path = Path(hf_hub_download(source, shards[find_table(listed, key)]))
        except (HFValidationError, RepositoryNotFoundError) as error:
            raise ValueError(
                f"source={source}: neither a run folder, nor a file, nor a timm model, nor a model on the hub"
            ) from error
    return _from_weights(open_weights(path), source.replace("/", "--"), key)


@contextmanager
def _hub(source: str) -> Iterator[None]:
    """Fetch from the hub, or from what it left in the local cache; without either say so at once, not after retries.

    Raises:
        ValueError: no network and nothing cached.
    """
    from huggingface_hub import constants, get_session

    offline = constants.HF_HUB_OFFLINE
    if not offline:
        try:
            get_session().head(constants.ENDPOINT, timeout=HUB_TIMEOUT)
        except Exception:  # whatever the client of the installed version raises
            constants.HF_HUB_OFFLINE = True
    try:
        yield
    except OSError as error:
        raise ValueError(
            f"source={source}: neither a run folder nor a file, and its weights can't be fetched "
            f"({type(error).__name__}); without a network give a file (.safetensors, .bin, .pth, .npy)"
        ) from error
    finally:
        constants.HF_HUB_OFFLINE = offline
