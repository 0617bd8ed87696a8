"""Memory of a forward pass over 64 x 64 patches with twelve heads, for every position module."""

from __future__ import annotations

import dataclasses
from collections.abc import Iterator

import torch
from rich.progress import track

from vitpos.benchmark.memory import MIB, bytes_of, peak_bytes
from vitpos.benchmark.networks import network, position_names
from vitpos.benchmark.settings import Settings
from vitpos.benchmark.table import Row, Table

ROWS = 64
DIM, DEPTH, HEADS = 768, 2, 12
LIMIT = 4096  # MiB


def measure(settings: Settings) -> list[Table]:
    """Return one row per module."""
    modules = position_names(settings.modules)
    settings = dataclasses.replace(
        settings, dim=DIM, depth=DEPTH, heads=HEADS, image_size=ROWS * settings.patch_size, batch=1
    )
    note = (
        f"One image of {ROWS} x {ROWS} patches, width {DIM}, {HEADS} heads, {DEPTH} layers; weights and tables "
        f"included. fits: below {LIMIT} MiB."
    )
    return [Table("large_grid", "Memory of a forward pass over a large grid", list(_rows(settings, modules)), note)]


def _rows(settings: Settings, modules: list[str]) -> Iterator[Row]:
    for name in track(modules, description="large grids", transient=True):
        model = network(name, settings).to(settings.place).eval()
        images = torch.zeros(1, settings.spec.channels, *settings.spec.image_size, device=settings.place)
        with torch.no_grad():
            peak = peak_bytes(lambda model=model, images=images: model(images), settings.place)  # type: ignore[misc]
        lasting = bytes_of([*model.parameters(), *model.buffers(), images])
        total = (lasting + peak) / MIB
        yield {
            "name": name,
            "memory_mib": total,
            "tables_mib": bytes_of([*model.position.parameters(), *model.position.buffers()]) / MIB,
            "fits": "yes" if total < LIMIT else "no",
        }
