"""What a record may and may not say."""

from __future__ import annotations

import json
import math

import pytest

from vitpos.record import Record, with_transfer

ROW = {"height": 8, "width": 8, "coordinates": "extrapolate", "table": "bicubic", "top1": 0.5, "n": 10}


@pytest.mark.parametrize("value", [math.nan, math.inf, -math.inf])
def test_not_finite_is_null_everywhere(value, make_record):
    record = make_record(
        metrics={"test/nll": value, "test/top1": value},
        diagnostics={"attention_distance": [[1.0, value]]},
        cost={"parameters": 1, "position_parameters": 0, "train_seconds": value, "extra": value},
        position={"name": "x", "label": "x", "theta": value},
        transfer=[ROW | {"top1": value, "nll": value}],
    )
    assert record.metrics == {"test/nll": None, "test/top1": None}
    text = record.to_json()
    assert "NaN" not in text
    assert "Inf" not in text
    again = Record.model_validate(json.loads(text))
    assert again == record
    assert again.diagnostics["attention_distance"] == [[1.0, None]]
    assert again.position.model_extra == {"theta": None}


def test_further_settings_are_kept(make_record):
    record = make_record(position={"name": "rope", "label": "RoPE", "theta": 100.0, "nested": {"a": [1, 2]}})
    again = Record.model_validate_json(record.to_json())
    assert again.position.model_extra == {"theta": 100.0, "nested": {"a": [1, 2]}}


@pytest.mark.parametrize(
    "change",
    [
        {"status": "failed"},
        {"error": {"type": "ValueError", "message": "x"}},
        {"metrics": {"fewshot/5": 64.2}},
        {"metrics": {"val/top1_last": -0.1}},
        {"transfer": [ROW | {"top1": 50}]},
        {"transfer": [ROW | {"protocol": "x"}]},
        {"config_hash": "0123"},
        {"data": {"name": "digits"}},
    ],
)
def test_refused(change, make_record):
    with pytest.raises(ValueError, match=r"Record|error"):
        make_record(**change)


def test_percent_is_only_refused_where_a_fraction_is_meant(make_record):
    assert make_record(metrics={"test/nll": 2.3, "test/ece": 0.02}).metrics["test/nll"] == 2.3


def test_sizes_and_switches(make_record):
    record = make_record(
        parent={"name": "none-s0-00000000", "image_size": [8, 12]},
        transfer=[ROW | {"temperature": False}, ROW | {"temperature": "log_tokens"}],
    )
    assert record.data.image_size == (8, 8)
    assert record.parent.image_size == (8, 12)
    assert [row.temperature for row in record.transfer] == ["off", "log_tokens"]


def test_transfer_rows_are_replaced_and_protocols_kept_apart(make_record):
    record = make_record(transfer=[ROW])
    more = with_transfer(record, [ROW | {"top1": 0.6}, ROW | {"coordinates": "rescale"}, ROW | {"height": 4}])
    assert [(row.height, row.coordinates, row.top1) for row in more.transfer] == [
        (4, "extrapolate", 0.5),
        (8, "extrapolate", 0.6),
        (8, "rescale", 0.5),
    ]
    assert with_transfer(more, [ROW | {"top1": 0.6}]) == more
    assert len(record.transfer) == 1
