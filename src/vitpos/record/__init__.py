"""The run record: what a finished or failed run says of itself, written last and atomically, checked on reading.

Imports neither torch nor wandb, so that reading results needs neither.
"""

from vitpos.record.files import (
    CONFIG_FILE,
    METRICS_FILE,
    PREDICTIONS_FILE,
    RESULT_FILE,
    Problem,
    RecordError,
    read_record,
    read_records,
    write_bytes_atomic,
    write_record,
    write_text_atomic,
)
from vitpos.record.identity import EXCLUDED, identity, run_name
from vitpos.record.merge import with_transfer
from vitpos.record.schema import (
    SCHEMA,
    Cost,
    DataInfo,
    ErrorInfo,
    ModelInfo,
    Parent,
    PositionInfo,
    Record,
    TransferRow,
)

__all__ = [
    "CONFIG_FILE",
    "EXCLUDED",
    "METRICS_FILE",
    "PREDICTIONS_FILE",
    "RESULT_FILE",
    "SCHEMA",
    "Cost",
    "DataInfo",
    "ErrorInfo",
    "ModelInfo",
    "Parent",
    "PositionInfo",
    "Problem",
    "Record",
    "RecordError",
    "TransferRow",
    "identity",
    "read_record",
    "read_records",
    "run_name",
    "with_transfer",
    "write_bytes_atomic",
    "write_record",
    "write_text_atomic",
]
