"""Builders of plain records for tests."""

from __future__ import annotations

from typing import Any

import pytest

from vitpos.record import Record


def _make_record(**changes: Any) -> Record:
    content: dict[str, Any] = {
        "schema": 1,
        "status": "finished",
        "experiment": "digits",
        "run": "none-s0-0123abcd",
        "config_hash": "0123abcd",
        "seed": 0,
        "position": {"name": "none", "label": "none", "injection": "none", "family": "none"},
        "model": {"name": "vit_nano", "dim": 64},
        "data": {"name": "digits", "image_size": 8},
        "cost": {"parameters": 1000, "position_parameters": 0},
        "metrics": {"test/top1": 0.75, "val/top1": 0.8},
    }
    return Record.model_validate(content | changes)


@pytest.fixture
def make_record():
    return _make_record
