"""The page is one file that asks for nothing, says everything, and shows no test result that was not chosen."""

from __future__ import annotations

import base64
import json
import re
from html.parser import HTMLParser

import pytest

from vitpos.report import make_report
from vitpos.report.html import render_page

PIXEL = base64.b64decode("iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAQAAAC1HAwCAAAAC0lEQVR42mNk+A8AAQUBAScY42YAAAAASUVORK5CYII=")
EMPTY = b'<svg width="1" height="1" viewBox="0 0 1 1" xmlns="http://www.w3.org/2000/svg"></svg>'


class Page(HTMLParser):
    """Collects elements, and checks that they are closed in order."""

    VOID = ("meta", "link", "input", "br", "img")

    def __init__(self, text: str) -> None:
        super().__init__()
        self.elements: list[tuple[str, dict[str, str | None]]] = []
        self.open: list[str] = []
        self.feed(text)
        assert self.open == []

    def handle_starttag(self, tag, attrs):
        self.elements.append((tag, dict(attrs)))
        if tag not in self.VOID:
            self.open.append(tag)

    def handle_startendtag(self, tag, attrs):
        self.elements.append((tag, dict(attrs)))

    def handle_endtag(self, tag):
        assert self.open.pop() == tag

    def attributes(self, name):
        return [attrs[name] for _, attrs in self.elements if attrs.get(name)]


def read(experiment) -> str:
    """Return the page with empty figures: drawing them takes most of the time."""
    report = make_report(experiment.folder)
    return render_page(report, {picture.name: EMPTY for picture in report.pictures})


def run_data(text: str) -> dict:
    return json.loads(re.search(r'<script type="application/json" id="run-data">(.*?)</script>', text, re.DOTALL)[1])


def test_one_file_that_asks_for_nothing(finished_page):
    text = finished_page.read_text()
    page = Page(text)
    assert not {tag for tag, _ in page.elements} & {"iframe", "object", "embed", "base"}
    for name in ("src", "href", "xlink:href", "action", "poster", "srcset"):
        assert all(value.startswith(("#", "data:")) for value in page.attributes(name))
    assert "default-src 'none'" in text
    assert not re.search(r"@import|url\(\s*['\"]?(?!#)", text)


def test_identifiers_are_unique_and_labels_point_to_them(finished_page):
    page = Page(finished_page.read_text())
    identifiers = page.attributes("id")
    assert len(identifiers) == len(set(identifiers))
    wanted = {name for value in page.attributes("aria-labelledby") for name in value.split()}
    wanted |= set(page.attributes("for"))
    wanted |= {value[1:] for tag, attrs in page.elements if tag == "a" and (value := attrs["href"])}
    assert wanted <= set(identifiers)


def test_tables_have_headers_for_screen_readers(digits):
    page = Page(read(digits))
    assert all(attrs.get("scope") in ("col", "row") for tag, attrs in page.elements if tag == "th")
    assert all(attrs.get("role") == "img" for tag, attrs in page.elements if tag == "svg")
    assert ("html", {"lang": "en"}) in page.elements


def test_it_says_what_the_table_says(digits):
    text = read(digits)
    for words in ("78.08 ± 0.59", "−14.92 ± 0.14", "Holm-adjusted over 4 comparisons", "Better: rope_axial"):
        assert words in text
    assert "The arms differ in the position module and in nothing else that can change a result." in text


def test_drill_down_of_a_run(digits):
    folder = next(digits.folder.glob("none-s3-*"))
    (folder / "figures").mkdir()
    (folder / "figures" / "similarity.png").write_bytes(PIXEL)
    data = run_data(read(digits))
    run = data["runs"][folder.name]
    assert run["command"] == "python scripts/train.py position=none seed=3"
    assert run["curves"] == {
        "epoch": [0, 1, 2],
        "val/top1": [0.4, 0.7, 0.8],
        "train/loss": [2, 1, 0.5],
        "lr": [0.0005, 0.001, 0.0001],
    }
    assert run["figure"].startswith("data:image/png;base64,iVBOR")
    assert run["config"]["seed"] == "3"
    assert "optim.lr" not in run["config"]
    assert data["common"]["optim.lr"] == "0.001"
    assert data["common"]["data.root"] == "data"


def test_pictures_are_shared_out_before_they_fill_the_page(digits, monkeypatch):
    from vitpos.report.html import runs

    for folder in list(digits.folder.iterdir()):
        (folder / "figures").mkdir()
        (folder / "figures" / "kernel.png").write_bytes(PIXEL)
    monkeypatch.setattr(runs, "_FIGURE_BYTES", 5 * len(PIXEL))
    data = run_data(read(digits))["runs"]
    assert {name.split("-")[1] for name, run in data.items() if run["figure"]} == {"s0"}
    assert sum(bool(run["figure"]) for run in data.values()) == 5


def test_a_confounder_is_in_the_settings(digits):
    digits.run("peg", 0, 0.9, config={"optim": {"lr": 0.003}})
    text = read(digits)
    assert "Besides the position module the arms differ in optim.lr" in text
    assert "optim.lr=0.003" in text


def test_failures_and_markup_in_them(digits):
    error = {"type": "ValueError", "message": "<script>alert(1)</script>", "traceback": "</script><b>&amp; line 1"}
    digits.run("none", 9, status="failed", error=error)
    text = read(digits)
    assert "<script>alert" not in text
    assert "ValueError: &lt;script&gt;alert(1)&lt;/script&gt;" in text
    assert (
        run_data(text)["runs"][next(digits.folder.glob("none-s9-*")).name]["error"]["traceback"] == error["traceback"]
    )
    Page(text)


def test_test_results_that_were_not_chosen_are_not_shown(experiment):
    for lr, val, test in ((0.001, 0.9, 0.88), (0.003, 0.8, 0.9876)):
        for seed in range(2):
            metrics = {"val/top1": val, "fewshot/5": test}
            experiment.run("learned_1d", seed, test, config={"optim": {"lr": lr}}, metrics=metrics)
    text = read(experiment)
    assert "98.76" not in text
    assert "0.9876" not in text
    assert text.count("not chosen</td>") == 2


@pytest.mark.parametrize("content", ["", "epoch\n", "a,b\n1,2\n", "epoch,val/top1\n0,nan\n1\n", "\x00"])
def test_odd_curves(experiment, content):
    folder = experiment.run("none", 0, 0.9)
    (folder / "metrics.csv").write_text(content)
    assert "val/top1" not in run_data(read(experiment))["runs"][folder.name]["curves"]


def test_without_any_run(experiment):
    text = read(experiment)
    assert "No run has finished or failed yet." in text
    Page(text)
