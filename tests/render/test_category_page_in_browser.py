"""The page of several categories in a real browser: each has its own slider and charts, once it is opened."""

import shutil
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from headeval.category_report import CategoriesReport, JudgedCategory
from headeval.curves import curves
from headeval.evaluation import evaluate
from headeval.render.category_page import render_categories_page
from headeval.report import Report

pytestmark = pytest.mark.slow  # each starts a browser, or a page in it

playwright = pytest.importorskip("playwright.sync_api", reason="playwright is not installed")

BROWSERS = ("chromium", "chromium-browser", "google-chrome", "google-chrome-stable")
HOSTILE = "</script><script>alert(1)</script>"
NAMES = ("hate", "spam", HOSTILE)


@pytest.fixture(scope="module")
def browser() -> Iterator[Any]:
    path = next((found for name in BROWSERS if (found := shutil.which(name))), None)
    if path is None:
        pytest.skip(f"none of {', '.join(BROWSERS)} is installed")
    with playwright.sync_playwright() as driver:
        running = driver.chromium.launch(executable_path=path, args=["--no-sandbox"])
        yield running
        running.close()


def rows(index: int) -> tuple[Any, Any]:
    rng = np.random.default_rng(index)
    probs = rng.uniform(size=300).round(2)
    return probs, rng.uniform(size=300) < probs


def judged(index: int) -> Report:
    probs, labels = rows(index)
    options: dict[str, Any] = {"kind": "prob", "threshold": 0.3 + index / 10}
    evaluation = evaluate(probs, labels, n_resamples=0, classes=("safe", "unsafe"), **options)
    return Report({"data": "rows.csv"}, "held-out", evaluation, curves=curves(probs, labels, **options))


@pytest.fixture(scope="module")
def file(tmp_path_factory: pytest.TempPathFactory) -> Path:
    parts = tuple(JudgedCategory(name, 5, judged(index)) for index, name in enumerate(NAMES))
    page = tmp_path_factory.mktemp("page") / "page.html"
    page.write_text(render_categories_page(CategoriesReport({"data": "rows.csv"}, parts)), encoding="utf-8")
    return page


class Opened:
    """A page that was opened, with everything it did beside showing itself."""

    def __init__(self, browser: Any, file: Path, **settings: Any) -> None:
        self.context = browser.new_context(**settings)
        self.page = self.context.new_page()
        self.said: list[str] = []
        self.requests: list[str] = []
        self.page.on("console", lambda message: self.said.append(message.text))
        self.page.on("pageerror", lambda error: self.said.append(str(error)))
        self.page.on("dialog", self._dismiss)
        self.page.on("request", lambda request: self.requests.append(request.url))
        self.page.goto(file.as_uri())
        self.own = file.as_uri()

    def _dismiss(self, dialog: Any) -> None:
        self.said.append(dialog.message)
        dialog.dismiss()

    def quiet(self) -> bool:
        """Whether it said nothing, asked for nothing and started nothing."""
        return (self.said, self.requests) == ([], [self.own])

    def toggle(self, index: int) -> None:
        self.page.locator("summary").nth(index).click()
        self.page.wait_for_timeout(100)

    def drawn(self, index: int) -> int:
        """How many charts of a category have ink: drawn pixels."""
        script = """canvases => canvases.filter(canvas => canvas.getContext("2d")
            .getImageData(0, 0, canvas.width, canvas.height).data.some(value => value)).length"""
        return int(self.page.eval_on_selector_all(f'[data-report="c{index}-"] canvas', script))

    def shown(self, index: int) -> str:
        """The numbers of a category that follow its slider."""
        return str(self.page.inner_text(f'[data-report="c{index}-"] tr:has-text("recall") >> nth=0'))


@pytest.fixture
def opened(browser: Any, file: Path) -> Iterator[Opened]:
    page = Opened(browser, file)
    yield page
    page.context.close()


def test_charts_are_made_when_a_category_is_opened_and_only_its_own(opened: Opened) -> None:
    assert opened.page.locator("canvas").count() == 0
    opened.toggle(1)
    assert [opened.drawn(index) for index in range(3)] == [0, 6, 0]
    opened.toggle(2)
    assert [opened.drawn(index) for index in range(3)] == [0, 6, 6]
    opened.toggle(1)
    opened.toggle(1)  # once more: nothing is made twice
    assert opened.page.locator("canvas").count() == 12
    # Reading pixels twice, as this test does, is all that the browser has to say something about.
    assert [line for line in opened.said if "willReadFrequently" not in line] == []


def test_each_slider_moves_the_numbers_of_its_own_category(opened: Opened) -> None:
    opened.toggle(0)
    opened.toggle(1)
    before = opened.shown(0)
    for threshold in ("0.81", "0.05"):
        opened.page.fill("#c1-typed", threshold)
        opened.page.press("#c1-typed", "Enter")
        probs, labels = rows(1)
        flagged = probs >= float(threshold)
        assert f"{int((flagged & labels).sum())}/{int(labels.sum())}" in opened.shown(1)
        assert f"{(flagged & labels).sum() / labels.sum():.4f}" in opened.shown(1)
    assert opened.shown(0) == before
    assert opened.page.input_value("#c0-typed") == "0.3"
    opened.page.click("#c1-reset")
    assert opened.page.input_value("#c1-typed") == "0.4"
    assert opened.quiet()


def test_charts_fit_a_window_that_has_become_narrow_while_they_were_folded_away(opened: Opened) -> None:
    opened.page.set_viewport_size({"width": 1000, "height": 800})
    opened.toggle(0)
    opened.toggle(0)
    opened.page.set_viewport_size({"width": 360, "height": 740})
    opened.toggle(0)
    opened.page.wait_for_timeout(200)
    widths = opened.page.eval_on_selector_all(
        "canvas", "found => found.map(each => each.getBoundingClientRect().width)"
    )
    assert len(widths) == 6
    assert max(widths) <= 360
    assert opened.page.evaluate("document.documentElement.scrollWidth") <= 360


def test_charts_take_colours_that_have_changed_while_they_were_folded_away(opened: Opened) -> None:
    picture = "document.querySelector('canvas').toDataURL()"
    opened.toggle(0)
    light = opened.page.evaluate(picture)
    opened.toggle(0)
    opened.page.emulate_media(color_scheme="dark")
    opened.toggle(0)
    opened.page.wait_for_timeout(200)
    assert opened.page.evaluate(picture) != light


def test_without_scripts_every_category_still_shows_its_numbers(browser: Any, file: Path) -> None:
    page = Opened(browser, file, java_script_enabled=False)
    for index in range(3):
        page.toggle(index)
        recall = judged(index).evaluation.recall.value
        assert f"{recall:.4f}" in page.page.inner_text(f"details:nth-of-type({index + 1})")
    page.context.close()


def test_a_hostile_name_runs_nothing(opened: Opened) -> None:
    assert opened.page.locator("summary h3").all_inner_texts() == list(NAMES)
    opened.toggle(2)
    opened.page.fill("#c2-typed", "0.5")
    assert opened.quiet()
