"""Schema of `result.json`: versioned, validated on writing and on reading.

Units: fractions in [0, 1] for accuracies, seconds for times, MiB for memory, pixels for sizes.
JSON has no NaN or infinity. A number that is not finite is stored as null, and null reads back as None, "not a finite
number": a report shows a dash for it and never averages over it.
"""

from __future__ import annotations

import math
from typing import Annotated, Any, Literal

from pydantic import BaseModel, BeforeValidator, ConfigDict, Field, NonNegativeFloat, NonNegativeInt, PositiveInt
from pydantic import model_validator as check

SCHEMA: Literal[1] = 1
FRACTIONS = ("top1", "top5", "fewshot", "knn", "ece")


def _finite(value: Any) -> Any:
    """Turn NaN and infinities into None, at any depth of plain containers."""
    if isinstance(value, float) and not math.isfinite(value):
        return None
    if isinstance(value, dict):
        return {key: _finite(item) for key, item in value.items()}
    if isinstance(value, list | tuple):
        return [_finite(item) for item in value]
    return value


def _size(value: Any) -> Any:
    """Read one number as a square: 32 -> (32, 32)."""
    return (value, value) if isinstance(value, int) else value


def _switch(value: Any) -> Any:
    """Read YAML's bare `off` (False) and null as the named option "off"."""
    return "off" if value in (False, None) else value


Number = Annotated[float | None, BeforeValidator(_finite)]
Amount = Annotated[NonNegativeFloat | None, BeforeValidator(_finite)]
Fraction = Annotated[Annotated[float, Field(ge=0, le=1)] | None, BeforeValidator(_finite)]
Size = Annotated[tuple[PositiveInt, PositiveInt], BeforeValidator(_size)]
Plain = Annotated[Any, BeforeValidator(_finite)]


class _Closed(BaseModel):
    """A part whose keys are all known; another key is a mistake."""

    model_config = ConfigDict(extra="forbid", populate_by_name=True)


class _Open(BaseModel):
    """A part that carries further plain settings of its own under their own names."""

    model_config = ConfigDict(extra="allow", populate_by_name=True)
    __pydantic_extra__: dict[str, Plain] = Field(init=False)


class PositionInfo(_Open):
    """The arm: `name` of the YAML file, label for tables, injection point, family, and the method's own numbers."""

    name: str
    label: str
    injection: str = "none"
    family: str = "none"


class ModelInfo(_Open):
    """The network: a short `name`, and its settings."""

    name: str


class DataInfo(_Open):
    """The data set: a short `name`, the training image size (height, width), and its settings."""

    name: str
    image_size: Size


class Cost(_Open):
    """What the accuracy was paid with: counts, FLOPs per image (forward), seconds, images per second, MiB."""

    parameters: NonNegativeInt
    position_parameters: NonNegativeInt
    flops_per_image: Amount = None
    train_seconds: Amount = None
    train_images_per_second: Amount = None
    peak_memory_mib: Amount = None


class TransferRow(_Closed):
    """One evaluation at one image size under one protocol; `status` other than "ok" has no accuracy."""

    height: PositiveInt
    width: PositiveInt
    coordinates: str
    table: str
    temperature: Annotated[str, BeforeValidator(_switch)] = "off"
    top1: Fraction = None
    nll: Number = None
    n: NonNegativeInt = 0
    tokens: PositiveInt | None = None
    images_per_second: Amount = None
    peak_memory_mib: Amount = None
    status: str = "ok"

    @property
    def key(self) -> tuple[int, int, str, str, str]:
        """What makes two rows the same measurement."""
        return self.height, self.width, self.coordinates, self.table, self.temperature


class Parent(_Open):
    """The finished run whose weights a fine-tuned run started from: its run name and its training image size."""

    name: str
    image_size: Size


class ErrorInfo(_Open):
    """Why a run failed."""

    type: str
    message: str
    traceback: str = ""


class Record(_Closed):
    """Everything a report needs to know of one run.

    Raises:
        pydantic.ValidationError: a missing or unknown key, an accuracy outside [0, 1] (percent, perhaps), a failed run
            without an error or a finished run with one.
    """

    version: Literal[1] = Field(default=SCHEMA, alias="schema")
    status: Literal["finished", "failed"]
    experiment: str
    run: str
    config_hash: Annotated[str, Field(pattern=r"^[0-9a-f]{8}$")]
    seed: int
    commit: str | None = None
    started: str | None = None
    resumed: bool = False
    versions: dict[str, str] = {}
    device: str | None = None
    overrides: list[str] = []
    parent: Parent | None = None
    position: PositionInfo
    model: ModelInfo
    data: DataInfo
    cost: Cost | None = None
    metrics: dict[str, Number] = {}
    best_epoch: NonNegativeInt | None = None
    epochs: NonNegativeInt | None = None
    transfer: list[TransferRow] = []
    diagnostics: dict[str, Plain] = {}
    error: ErrorInfo | None = None

    @check(mode="after")
    def _consistent(self) -> Record:
        """Hold the rules that span several keys."""
        for name, value in self.metrics.items():
            fraction = any(part.startswith(FRACTIONS) for part in name.split("/"))
            if fraction and value is not None and not 0 <= value <= 1:
                raise ValueError(f"metrics[{name!r}]={value}: must be a fraction between 0 and 1, not percent")
        if (self.status == "failed") != (self.error is not None):
            raise ValueError(
                f"status={self.status!r} with error={self.error!r}: a failed run, and only it, has an error"
            )
        return self

    def to_json(self) -> str:
        """Return the record as indented JSON text with a final newline."""
        return self.model_dump_json(by_alias=True, indent=2) + "\n"
