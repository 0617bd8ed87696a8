"""Accuracy and cost of a trained network at other image sizes, with the protocol in every row.

Letters: B batch, H W grid, T tokens.
"""

from __future__ import annotations

import logging
from collections.abc import Mapping
from typing import Any

import torch
import torch.distributed as dist
from torch import Tensor

from vitpos.data.base import Batch, ImageData
from vitpos.evaluation.cost import Meter, is_out_of_memory
from vitpos.evaluation.inference import answer, evaluating, processes
from vitpos.evaluation.predictions import collect, predict, score
from vitpos.evaluation.protocol import FACTORS, NOT_APPLICABLE, OFF, Protocol, protocols, sizes
from vitpos.models.vit import ViT, grid_of
from vitpos.position import Transfer
from vitpos.spec import ImageSize

log = logging.getLogger(__name__)

OK, OUT_OF_MEMORY, NOT_FINITE = "ok", "out_of_memory", "not_finite"
_SEVERITY = (OK, NOT_FINITE, OUT_OF_MEMORY)


def evaluate_transfer(
    model: ViT,
    data: ImageData,
    settings: Mapping[str, Any],
    device: torch.device | str,
    *,
    precision: str = "32-true",
    trained_top1: float | None = None,
) -> list[dict[str, Any]]:
    """Evaluate on the test images at each size under each protocol, then return the network to where it was.

    Every size reads the images once, whatever the number of protocols. A size too large for memory, or whose logits are
    not finite, is recorded as such and the others go on. In a process group all processes must call.

    Args:
        model: trained network on `device`, set to the size and protocol it was trained with.
        data: gives the test images at any size.
        settings: `sizes`, `table`, `coordinates` and `temperature`; each factor a value or a list of values.
        device: where the network is.
        precision: as Lightning names it.
        trained_top1: accuracy that `predict` gave at the trained size; None measures it first.

    Returns:
        One row per size and protocol with height, width, coordinates, table, temperature, top1, nll, n, tokens,
        images_per_second, peak_memory_mib and status (ok, out_of_memory, not_finite). A factor that the position module
        does not react to is `not_applicable`.

    Raises:
        ValueError: an unknown protocol, or a size that the patch size does not divide.
        RuntimeError: back at the trained size the accuracy is not what it was.
    """
    wanted = sizes(settings, model.patch_size)
    ways = protocols(settings, model.position.honours)
    if not wanted:
        return []
    home, home_transfer = model.image_size, model.position.transfer
    if trained_top1 is None:
        trained_top1 = predict(model, data.eval_dataloader("test"), device, precision).top1
    rows: list[dict[str, Any]] = []
    try:
        for size in wanted:
            runs = [_Run(way, torch.device(device)) for way in ways]
            found = _evaluate_size(model, data, size, runs, precision)
            for row in found:
                log.info("%s", describe(row))
            rows += found
    finally:
        model.resize(home, home_transfer)
    again = predict(model, data.eval_dataloader("test"), device, precision).top1
    if again != trained_top1:
        raise RuntimeError(
            f"back at {home[0]}x{home[1]} px the accuracy is {again!r}, it was {trained_top1!r}: "
            f"{type(model.position).__name__}.resize does not restore the trained state"
        )
    return rows


def _evaluate_size(
    model: ViT, data: ImageData, size: ImageSize, runs: list[_Run], precision: str
) -> list[dict[str, Any]]:
    """Return one row per run from one pass over the images."""
    try:
        with evaluating(model):
            for images, labels, index in data.eval_dataloader("test", image_size=size):
                for run in runs:
                    run.step(model, (images, labels, index), size, precision)
    except (RuntimeError, MemoryError) as error:  # the images themselves do not fit
        if not is_out_of_memory(error):
            raise
        for run in runs:
            run.fail(OUT_OF_MEMORY)
    rows, columns = grid_of(size, model.patch_size)
    tokens = model.prefix + rows * columns
    return [
        {"height": size[0], "width": size[1], **run.protocol.applied, **run.result(), "tokens": tokens} for run in runs
    ]


class _Run:
    """One protocol at one size: its scores, its cost, and what went wrong."""

    def __init__(self, protocol: Protocol, device: torch.device) -> None:
        self.protocol, self.device = protocol, device
        self.meter, self.parts, self.status = Meter(device), list[Tensor](), OK

    def step(self, model: ViT, batch: Batch, size: ImageSize, precision: str) -> None:
        """Add one batch, unless an earlier one did not fit."""
        if self.status != OK:
            return
        try:
            images, labels, index = (part.to(self.device) for part in batch)
            _announce(model, size, self.protocol.transfer)
            with self.meter.measure(len(images)):
                logits = answer(model, images, precision)
            self.parts.append(score(logits, labels, index))
        except (RuntimeError, MemoryError) as error:
            if not is_out_of_memory(error):
                raise
            self.fail(OUT_OF_MEMORY)

    def fail(self, status: str) -> None:
        """Note what went wrong and let go of what was collected."""
        self.status, self.parts = status, []
        if self.device.type == "cuda":
            torch.cuda.empty_cache()

    def result(self) -> dict[str, Any]:
        """Return top1, nll, n, images_per_second, peak_memory_mib and status; alike on all processes."""
        row: dict[str, Any] = {"top1": None, "nll": None, "n": 0, "images_per_second": None, "peak_memory_mib": None}
        # A process that ran out of memory has nothing to gather, and the others must not wait for it.
        self.status = _worst(self.status, self.device)
        if self.status == OK:
            try:
                found = collect(self.parts, self.device)
                row |= {"top1": found.top1, "nll": float(found.nll.mean()), "n": found.n}
                row["images_per_second"] = self.meter.images_per_second
                row["peak_memory_mib"] = self.meter.peak_memory_mib
            except FloatingPointError:
                self.status = NOT_FINITE
        return {**row, "status": self.status}


def _announce(model: ViT, size: ImageSize, transfer: Transfer) -> None:
    """Resize the network, unless it is there already."""
    if model.image_size != size or model.position.transfer != transfer:
        model.resize(size, transfer)


def _worst(status: str, device: torch.device) -> str:
    """Return the worst status of all processes."""
    if processes() == 1:
        return status
    place = torch.tensor(_SEVERITY.index(status), device=device)
    dist.all_reduce(place, op=dist.ReduceOp.MAX)
    return _SEVERITY[int(place.item())]


def describe(row: Mapping[str, Any]) -> str:
    """Return a row as a person reads it, without the factors that do nothing."""
    way = ", ".join(row[factor] for factor in FACTORS if row[factor] not in (NOT_APPLICABLE, OFF)) or "as it is"
    cost = f", {row['images_per_second']:.0f} images/s" if row["images_per_second"] else ""
    outcome = f"top-1 {row['top1']:.2%}" if row["status"] == OK else row["status"]
    return f"{row['height']}x{row['width']} px, {way}: {outcome}{cost}"
