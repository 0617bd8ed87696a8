"""What a finished run's record puts into its W&B run."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

from vitpos.record import Record
from vitpos.training.wandb_logger import TolerantWandbLogger

if TYPE_CHECKING:
    from pytorch_lightning.loggers import Logger


def publish(logger: Logger | None, record: Record, pictures: Mapping[str, Path]) -> None:
    """Put what was measured and drawn after training into the summary, tables and images of the W&B run.

    The best epoch's validation metrics stand under their names, the last epoch's under names ending in `_last`. No step
    is passed, so nothing is dropped.
    """
    if isinstance(logger, TolerantWandbLogger):
        logger.tracked.attempt(lambda run: _send(run, record, pictures))


def _send(run: Any, record: Record, pictures: Mapping[str, Path]) -> None:
    import wandb

    run.summary.update(summary(record))
    if pictures:
        run.log({f"figures/{name}": wandb.Image(str(path)) for name, path in pictures.items()})
    if record.transfer:
        rows = [row.model_dump() for row in record.transfer]
        columns: list[str | int] = list(rows[0])
        run.log({"transfer/table": wandb.Table(columns=columns, data=[list(row.values()) for row in rows])})


def summary(record: Record) -> dict[str, Any]:
    """Return the numbers of a record under flat names, those that are not finite left out."""
    values: dict[str, Any] = {**record.metrics, "best_epoch": record.best_epoch}
    values |= {f"cost/{name}": value for name, value in (record.cost.model_dump() if record.cost else {}).items()}
    for row in record.transfer:
        protocol = "-".join((row.table, row.coordinates, row.temperature))
        values[f"transfer/{row.height}x{row.width}/{protocol}"] = row.top1
    for name, value in record.diagnostics.items():
        layers = value if isinstance(value, list) else [value]
        numbers = {f"/{index}" if len(layers) > 1 else "": item for index, item in enumerate(layers)}
        values |= {
            f"diagnostics/{name}{place}": item for place, item in numbers.items() if isinstance(item, int | float)
        }
    return {name: value for name, value in values.items() if value is not None}
