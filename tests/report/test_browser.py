"""The page in a real browser: sorts, filters, opens runs, by keyboard too; no error, no request."""

from __future__ import annotations

import shutil

import pytest

from vitpos.report import make_report
from vitpos.report.build import write_comparison

CHROMIUM = shutil.which("chromium") or shutil.which("chromium-browser") or shutil.which("google-chrome")
playwright = pytest.importorskip("playwright.sync_api")
pytestmark = pytest.mark.skipif(CHROMIUM is None, reason="needs chromium")


@pytest.fixture(scope="module")
def browser():
    with playwright.sync_playwright() as driver:
        # A container has neither the sandbox's privileges nor a large /dev/shm.
        opened = driver.chromium.launch(executable_path=CHROMIUM, args=["--no-sandbox", "--disable-dev-shm-usage"])
        yield opened
        opened.close()


@pytest.fixture
def open_page(browser):
    """Open a file; at the end nothing may have been logged or requested but that file."""
    noise, requests, pages = [], [], []

    def load(path, **options):
        page = browser.new_page(**options)
        page.set_default_timeout(10_000)
        page.on("console", lambda message: noise.append(message.text))
        page.on("pageerror", lambda error: noise.append(str(error)))
        page.on("request", lambda request: requests.append(request.url))
        page.goto(path.as_uri())
        pages.append((page, path.as_uri()))
        return page

    yield load
    for page, _ in pages:
        page.close()
    assert noise == []
    assert {url for url in requests if not url.startswith("data:")} <= {url for _, url in pages}


def arms(page) -> list[str]:
    rows = page.locator("#section1-table tbody tr:not([hidden])")
    return [rows.nth(place).locator("th").inner_text() for place in range(rows.count())]


def test_sort_filter_and_open(finished_page, open_page):
    page = open_page(finished_page)
    assert arms(page) == ["none", "learned_1d", "sincos_2d", "rope_axial", "relative_1d"]
    heading = page.get_by_role("columnheader", name="Top-1 (%)", exact=True).first
    heading.get_by_role("button").click()
    assert arms(page)[0] == "none"
    assert heading.get_attribute("aria-sort") == "ascending"
    heading.get_by_role("button").press("Enter")
    assert arms(page) == ["rope_axial", "relative_1d", "sincos_2d", "learned_1d", "none"]
    assert heading.get_attribute("aria-sort") == "descending"
    # Sorted by difference, the reference, which has none, is last both ways.
    delta = page.get_by_role("columnheader", name="Δ (points)").first.get_by_role("button")
    for _ in range(2):
        delta.click()
        assert arms(page)[-1] == "learned_1d"

    page.get_by_label("Filter arms").fill("1d")
    assert sorted(arms(page)) == ["learned_1d", "relative_1d"]
    assert page.locator("[data-table=section1-table] [role=status]").inner_text() == "2 of 5 shown"
    page.get_by_label("Filter arms").fill("")
    page.get_by_label("Verdict", exact=True).select_option("better")
    assert arms(page) == ["rope_axial"]

    page.get_by_label("Filter runs").fill("none-s3-")
    run = page.locator("#run-table button[data-run]:visible")
    assert run.count() == 1
    run.focus()
    page.keyboard.press("Enter")
    detail = page.locator("tr.detail")
    assert "python scripts/train.py position=none seed=3" in detail.inner_text()
    assert detail.locator("svg.curve").count() == 3
    assert run.get_attribute("aria-expanded") == "true"
    page.keyboard.press("Enter")
    assert detail.count() == 0
    page.get_by_label("Filter runs").fill("")
    page.get_by_label("Status", exact=True).select_option("failed")
    page.locator("#run-table button[data-run]:visible").click()
    assert "loss is NaN" in page.locator("tr.detail").inner_text()


def test_keyboard_reaches_the_results_first(finished_page, open_page):
    page = open_page(finished_page)
    page.keyboard.press("Tab")
    assert page.evaluate("document.activeElement.textContent") == "Skip to the results"
    page.keyboard.press("Enter")
    assert page.evaluate("location.hash") == "#main"


def test_themes_and_print(finished_page, open_page):
    page = open_page(finished_page, color_scheme="dark")
    background = "getComputedStyle(document.documentElement).backgroundColor"
    assert page.evaluate(background) == "rgb(21, 24, 28)"
    page.get_by_label("Theme").select_option("light")
    assert page.evaluate(background) == "rgb(255, 255, 255)"
    page.get_by_label("Theme").select_option("dark")
    assert page.evaluate(background) == "rgb(21, 24, 28)"
    page.emulate_media(media="print")
    assert page.evaluate(background) == "rgb(255, 255, 255)"
    assert not page.get_by_label("Filter arms").is_visible()


def test_nothing_is_wider_than_a_narrow_window(finished_page, open_page):
    page = open_page(finished_page, viewport={"width": 500, "height": 800})
    assert page.evaluate("document.documentElement.scrollWidth") <= 500


def test_names_for_screen_readers(finished_page, open_page):
    page = open_page(finished_page)
    assert page.get_by_role("img", name="Difference to learned_1d").count() == 1
    assert page.get_by_role("region", name="Runs", exact=True).count() >= 1
    unnamed = page.evaluate(
        "[...document.querySelectorAll('button, input, select')].filter("
        "(node) => !(node.textContent.trim() || node.labels?.[0]?.textContent.trim())).length"
    )
    assert unnamed == 0


def test_comparison_page(digits, new_experiment, open_page):
    other = new_experiment("fashion")
    for arm in ("learned_1d", "none"):
        other.arm(arm, [0.7, 0.71], data={"name": "fashion", "image_size": 28})
    reports = [make_report(study.folder) for study in (digits, other)]
    page = open_page(write_comparison(reports, digits.folder.parent)[1] / "comparison.html")
    page.get_by_role("columnheader", name="Average rank").get_by_role("button").click()
    assert page.locator("#comparison-table tbody th").first.inner_text() == "learned_1d"
