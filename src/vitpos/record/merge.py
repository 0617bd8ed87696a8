"""Add later evaluations to a record without retraining."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

from vitpos.record.schema import Record, TransferRow


def with_transfer(record: Record, rows: Iterable[TransferRow | Mapping[str, Any]]) -> Record:
    """Return the record with transfer rows added, in the order of size and protocol.

    A row of the same size under the same protocol replaces the old one; rows of different protocols stay apart.

    Raises:
        pydantic.ValidationError: a row that fails the schema.
    """
    merged = {row.key: row for row in record.transfer}
    for row in rows:
        new = row if isinstance(row, TransferRow) else TransferRow.model_validate(row)
        merged[new.key] = new
    return record.model_copy(update={"transfer": [merged[key] for key in sorted(merged)]})
