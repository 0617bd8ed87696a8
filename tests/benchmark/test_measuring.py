"""Clocks, pairs, memory, slopes: what they return for things whose cost is known. No time is asserted."""

import math

import pytest
import torch

from vitpos.benchmark.clock import Clock
from vitpos.benchmark.memory import peak_bytes
from vitpos.benchmark.pairs import Comparison, compare
from vitpos.benchmark.slopes import Curve, draw_curves, slope
from vitpos.benchmark.table import Table, shown

CPU = torch.device("cpu")


def test_a_ratio_is_taken_against_the_neighbours_in_time():
    found = Comparison((2.0, 6.0, 3.0), (1.0, 1.0, 3.0, 1.0))
    assert found.ratios == [2.0, 3.0, 1.5]
    assert found.ratio == 2.0


def test_both_run_in_turn():
    calls = []
    found = compare(lambda: calls.append("one"), lambda: calls.append("base"), 3, Clock(CPU, 1))
    assert calls == ["base", "one", "base", "one", "base", "one", "base"]
    assert len(found.ratios) == 3


def test_peak_memory_is_what_is_held_at_once():
    def function():
        first = torch.empty(1000)
        second = torch.empty(500)
        del first
        third = torch.empty(700)
        return second, third

    function()
    assert peak_bytes(function, CPU) == pytest.approx(4 * 1500, abs=256)


def test_slope_of_a_power_law():
    assert slope((1, 2, 4), (3.0, 12.0, 48.0)) == pytest.approx(2.0)
    with pytest.raises(ValueError, match="two points"):
        slope((1,), (1.0,))
    with pytest.raises(ValueError, match="two points"):
        slope((1, 2), (1.0, 0.0))


def test_curves_are_drawn_with_theory_beside_them():
    curves = [
        Curve(name, axis, (2, 4), (1.0, 2.0), (10.0, 40.0)) for axis in ("tokens", "depth") for name in ("none", "x")
    ]
    assert curves[0].measured == pytest.approx(1.0)
    assert curves[0].theory == pytest.approx(2.0)
    figure, numbers = draw_curves(curves, "caption")
    assert [axes.get_xlabel() for axes in figure.axes] == ["tokens", "depth"]
    dashed = figure.axes[0].lines[-1]
    assert list(dashed.get_ydata()) == [0.5, 2.0]
    assert set(numbers) == {"tokens_none", "tokens_x", "depth_none", "depth_x"}


def test_numbers_as_a_person_reads_them():
    assert [shown(value) for value in (1.01234, 12.345, 1234.5, 7, "x", None)] == [
        "1.012", "12.3", "1,234", "7", "x", "-",
    ]  # fmt: skip
    assert math.isnan(float(shown(math.nan)))


def test_a_table_keeps_all_columns_in_its_file(tmp_path, capsys):
    from rich.console import Console

    table = Table("t", "Title", [{"name": "a", "ratio": 1.5, "detail": 2}], "note", ("detail",))
    assert table.write(tmp_path).read_text() == "name,ratio,detail\na,1.5,2\n"
    table.show(Console(width=80))
    printed = capsys.readouterr().out
    assert "ratio" in printed
    assert "detail" not in printed
    assert "note" in printed
