"""The page in a real browser: what the slider shows is what `headeval report --threshold` prints, and nothing leaks."""

import csv
import html
import json
import re
import shutil
from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from documents import ROOT
from headeval.cli.main import run
from headeval.curves import curves
from headeval.evaluation import evaluate
from headeval.printable import printable
from headeval.render.page import render_page
from headeval.report import Report, Slice

pytestmark = pytest.mark.slow  # each starts a browser, or a page in it

playwright = pytest.importorskip("playwright.sync_api", reason="playwright is not installed")

BROWSERS = ("chromium", "chromium-browser", "google-chrome", "google-chrome-stable")
SCORES = ROOT / "sample_data" / "scores.csv"
NARROW = {"width": 360, "height": 740}


@pytest.fixture(scope="module")
def browser() -> Iterator[Any]:
    path = next((found for name in BROWSERS if (found := shutil.which(name))), None)
    if path is None:
        pytest.skip(f"none of {', '.join(BROWSERS)} is installed")
    with playwright.sync_playwright() as driver:
        running = driver.chromium.launch(executable_path=path, args=["--no-sandbox"])
        yield running
        running.close()


class Opened:
    """A page that was opened, with everything it did beside showing itself."""

    def __init__(self, browser: Any, file: Path, **settings: Any) -> None:
        self.context = browser.new_context(**settings)
        self.page = self.context.new_page()
        self.messages: list[str] = []
        self.requests: list[str] = []
        self.dialogs: list[str] = []
        self.page.on("console", lambda message: self.messages.append(message.text))
        self.page.on("pageerror", lambda error: self.messages.append(str(error)))
        self.page.on("dialog", lambda dialog: (self.dialogs.append(dialog.message), dialog.dismiss()))
        self.page.on("request", lambda request: self.requests.append(request.url))
        self.page.goto(file.as_uri())
        self.own = file.as_uri()

    def quiet(self) -> bool:
        """Whether it said nothing, asked for nothing and started nothing."""
        return (self.messages, self.dialogs, self.requests) == ([], [], [self.own])

    def threshold(self) -> str:
        return str(self.page.input_value("#typed"))

    def rows(self) -> list[list[str]]:
        """The cells of every row of the tables that follow the slider, as they are seen."""
        script = "rows => rows.map(row => [...row.querySelectorAll('th, td')].map(cell => cell.innerText.trim()))"
        found = self.page.eval_on_selector_all("tr:has([data-cell])", script)
        return [[str(cell) for cell in row] for row in found]

    def wait_for(self, condition: str) -> None:
        """Wait until an expression is true; the page's own policy would forbid it to look for itself."""
        for _ in range(100):
            if self.page.evaluate(condition):
                return
            self.page.wait_for_timeout(50)
        pytest.fail(f"never true: {condition[:200]}")

    def charts(self) -> int:
        """How many charts have ink: drawn pixels."""
        script = """canvases => canvases.filter(canvas => canvas.getContext("2d")
            .getImageData(0, 0, canvas.width, canvas.height).data.some(value => value)).length"""
        return int(self.page.eval_on_selector_all("canvas", script))


@pytest.fixture
def open_page(browser: Any, tmp_path: Path) -> Iterator[Callable[..., Opened]]:
    opened: list[Opened] = []

    def show(report: Report | str, **settings: Any) -> Opened:
        file = tmp_path / f"page{len(opened)}.html"
        file.write_text(report if isinstance(report, str) else render_page(report), encoding="utf-8")
        opened.append(Opened(browser, file, **settings))
        return opened[-1]

    yield show
    for page in opened:
        page.context.close()


def drawn(scores: Any, labels: Any, *, classes: tuple[str, str] = ("safe", "unsafe"), **options: Any) -> Report:
    settings = {"kind": "prob", "threshold": 0.5} | options
    evaluation = evaluate(scores, labels, classes=classes, n_resamples=0, **settings)
    return Report({"data": "rows.csv"}, "held-out", evaluation, curves=curves(scores, labels, **settings))


@pytest.fixture(scope="module")
def sample_report() -> Report:
    with SCORES.open(encoding="utf-8", newline="") as file:
        rows = list(csv.DictReader(file))
    return drawn([float(row["prob"]) for row in rows], [int(row["label"] == "unsafe") for row in rows])


@pytest.fixture(scope="module")
def sample_page(sample_report: Report) -> str:
    return render_page(sample_report)


def printed(threshold: str, capsys: pytest.CaptureFixture[str]) -> str:
    """What the command prints at a threshold, with the escapes of Markdown taken back."""
    capsys.readouterr()
    arguments = ["report", str(SCORES), "--prob", "prob", "--threshold", threshold, "--format", "markdown"]
    assert run([*arguments, "--resamples", "0"]) == 0
    return html.unescape(capsys.readouterr().out)


def is_printed(row: list[str], text: str) -> bool:
    cells = r"\s*\|\s*".join(re.escape(cell) for cell in row)
    return re.search(rf"^\|\s*{cells}\s*\|\s*$", text, flags=re.MULTILINE) is not None


# --- the numbers


@pytest.mark.parametrize("threshold", ["0.37", "0.9", "0", "1"])
def test_a_typed_threshold_shows_what_the_command_prints(
    threshold: str, open_page: Callable[..., Opened], sample_page: str, capsys: pytest.CaptureFixture[str]
) -> None:
    opened = open_page(sample_page)
    opened.page.fill("#typed", threshold)
    opened.page.press("#typed", "Enter")
    assert opened.threshold() == threshold
    text, rows = printed(threshold, capsys), opened.rows()
    assert len(rows) >= 10
    assert not [row for row in rows if not is_printed(row, text)]
    assert opened.page.inner_text('[data-cell="0.lead"]').endswith(f"≥ {threshold}")
    assert opened.quiet()


def test_the_slider_moved_by_keys_shows_what_the_command_prints(
    open_page: Callable[..., Opened], sample_page: str, capsys: pytest.CaptureFixture[str]
) -> None:
    opened = open_page(sample_page)
    before = opened.rows()
    assert opened.threshold() == "0.5"
    opened.page.focus("#slider")
    for key in ("ArrowRight", "ArrowRight", "PageUp", "ArrowLeft", "End", "Home", "PageUp", "PageUp"):
        opened.page.keyboard.press(key)
    threshold, text, rows = opened.threshold(), printed(opened.threshold(), capsys), opened.rows()
    assert threshold not in {"0", "0.5", "1"}
    assert rows != before
    assert not [row for row in rows if not is_printed(row, text)]
    assert opened.page.get_attribute("#slider", "aria-valuetext") == threshold
    assert opened.quiet()


def test_everything_is_reached_and_done_by_keys_alone(open_page: Callable[..., Opened], sample_page: str) -> None:
    opened = open_page(sample_page)
    reached: list[str] = []
    while len(reached) < 60 and "to-cheapest" not in reached:
        opened.page.keyboard.press("Tab")
        reached.append(opened.page.evaluate("document.activeElement.id"))
    wanted = ["slider", "typed", "previous", "next", "cost-false-positive", "cost-missed", "to-cheapest"]
    assert [name for name in reached if name in wanted] == wanted
    opened.page.focus("#next")
    opened.page.keyboard.press("Enter")
    assert float(opened.threshold()) > 0.5
    opened.page.focus("#reset")
    opened.page.keyboard.press("Space")
    assert opened.threshold() == "0.5"


def test_the_arrows_stop_where_a_decision_changes(open_page: Callable[..., Opened]) -> None:
    """Scores 0.2, 0.4, 0.6: above 0.5, 0.601 is the first to pass the last row; below, 0.4 flags one more."""
    opened = open_page(drawn([0.2, 0.4, 0.6], [0, 1, 1]))
    opened.page.click("#next")
    assert opened.threshold() == "0.601"
    assert opened.page.is_disabled("#next")
    opened.page.click("#previous")
    assert opened.threshold() == "0.6"
    opened.page.click("#previous")
    assert opened.threshold() == "0.4"
    assert opened.page.is_enabled("#reset")


def test_a_threshold_between_two_steps_says_which_is_shown(open_page: Callable[..., Opened]) -> None:
    opened = open_page(drawn([0.2, 0.4, 0.6], [0, 1, 1]))
    opened.page.fill("#typed", "0.31234")
    opened.page.press("#typed", "Enter")
    assert opened.threshold() == "0.312"
    assert "0.31234 lies between two steps" in opened.page.inner_text("#status")
    for nonsense in ("7", "-1", ""):
        opened.page.fill("#typed", nonsense)
        opened.page.press("#typed", "Enter")
        assert opened.threshold() == "0.312"
        assert "a number between 0 and 1" in opened.page.inner_text("#status")
    assert opened.quiet()


def test_what_is_said_is_what_stands_in_the_tables(open_page: Callable[..., Opened], sample_page: str) -> None:
    opened = open_page(sample_page)
    opened.page.fill("#typed", "0.7")
    opened.page.press("#typed", "Enter")
    recall = next(row for row in opened.rows() if row[0] == "recall")
    status = opened.page.inner_text("#status")
    assert status.startswith("At threshold 0.7, not the one in use (0.5)")
    assert f"recall {recall[1]} {recall[2]}" in status
    opened.wait_for("document.getElementById('said').textContent.includes('0.7')")


def test_costs_move_with_the_threshold_and_the_two_prices(open_page: Callable[..., Opened]) -> None:
    """Ten rows, four positive. At 0.5 one false alarm, one miss: (3 + 20)/10; above 0.2 two false alarms: 6/10."""
    scores = [0.1, 0.1, 0.1, 0.2, 0.4, 0.6, 0.35, 0.7, 0.8, 0.9]
    opened = open_page(drawn(scores, [0] * 6 + [1] * 4))
    assert "200 per 1,000 rows" in opened.page.inner_text("#cost-here")
    opened.page.fill("#cost-false-positive", "3")
    opened.page.fill("#cost-missed", "20")
    assert opened.page.inner_text("#cost-here") == "At threshold 0.5: 2,300 per 1,000 rows."
    lowest = opened.page.inner_text("#cost-lowest")
    assert lowest.startswith("Lowest on these rows: 600 at threshold 0.201")
    assert "chosen on this very sample" in lowest
    opened.page.click("#to-cheapest")
    assert opened.threshold() == "0.201"
    assert "600 per 1,000 rows" in opened.page.inner_text("#cost-here")
    assert opened.quiet()


def test_costs_are_those_of_the_traffic_where_it_is_given(open_page: Callable[..., Opened]) -> None:
    """FPR 1/6 and recall 3/4 at a prevalence of 1 %: 0.99/6 + 0.01/4 = 0.1675."""
    scores = [0.1, 0.1, 0.1, 0.2, 0.4, 0.6, 0.35, 0.7, 0.8, 0.9]
    opened = open_page(drawn(scores, [0] * 6 + [1] * 4, prevalence=0.01, per_day=1e6))
    assert opened.page.inner_text("#cost-here") == "At threshold 0.5: 167.5 per 1,000 rows at a prevalence of 1 %."
    before = opened.page.inner_text("tr:has-text('false alerts')")
    opened.page.click("#next")
    assert opened.page.inner_text("tr:has-text('false alerts')") != before


# --- charts


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_charts_are_drawn_and_described_in_both_schemes(
    scheme: str, open_page: Callable[..., Opened], sample_page: str
) -> None:
    opened = open_page(sample_page, color_scheme=scheme)
    assert opened.charts() == len(opened.page.query_selector_all(".chart")) == 6
    label = opened.page.get_attribute("#roc", "aria-label")
    opened.page.click("#next")
    assert opened.page.get_attribute("#roc", "aria-label") != label
    ink, paper = opened.page.evaluate(
        "[getComputedStyle(document.body).color, getComputedStyle(document.body).backgroundColor]"
    )
    brightness = [sum(map(int, re.findall(r"\d+", text)[:3])) for text in (ink, paper)]
    assert (brightness[0] < brightness[1]) == (scheme == "light")
    assert opened.quiet()


def test_a_change_of_scheme_redraws_the_charts(open_page: Callable[..., Opened], sample_page: str) -> None:
    opened = open_page(sample_page, color_scheme="light")
    picture = "document.querySelector('#roc canvas').toDataURL()"
    light = opened.page.evaluate(picture)
    opened.page.emulate_media(color_scheme="dark")
    opened.wait_for(f"{picture} !== {json.dumps(light)}")
    assert opened.quiet()


def test_the_point_moves_on_the_curve(open_page: Callable[..., Opened], sample_page: str) -> None:
    opened = open_page(sample_page)
    picture = "document.querySelector('#roc canvas').toDataURL()"
    before = opened.page.evaluate(picture)
    opened.page.fill("#typed", "0.2")
    opened.page.press("#typed", "Enter")
    assert opened.page.evaluate(picture) != before


def test_a_click_on_the_curve_takes_the_threshold_there(open_page: Callable[..., Opened]) -> None:
    """Two perfectly ranked rows: only a threshold in between has recall 1 without false positives."""
    opened = open_page(drawn([0.2, 0.8], [0, 1], threshold=0.9))
    opened.page.locator("#roc .u-over").click(position={"x": 8, "y": 8})
    assert 0.2 < float(opened.threshold()) <= 0.8


def test_rows_of_one_class_can_be_swept(open_page: Callable[..., Opened]) -> None:
    opened = open_page(drawn([0.2, 0.7], [0, 0]))
    opened.page.click("#next")
    assert opened.threshold() == "0.701"
    assert opened.charts() == 4
    assert opened.quiet()


# --- what comes from outside


def test_names_with_markup_stay_text(open_page: Callable[..., Opened]) -> None:
    hostile = '<script>alert(1)</script>"><img src=x onerror=alert(2)>\u2028{{ 7 * 7 }}'
    report = drawn([0.9, 0.2, 0.6, 0.4], [1, 0, 0, 1], classes=(f"a{hostile}", hostile))
    report = replace(
        report,
        provenance={hostile: hostile},
        how=hostile,
        notes=(hostile,),
        slices=(Slice(hostile, hostile, report.evaluation),),
    )
    opened = open_page(report, viewport=NARROW)
    opened.page.click("#next")
    assert printable(hostile) in opened.page.inner_text("body")
    assert opened.page.evaluate("document.querySelectorAll('img').length") == 0
    assert opened.page.evaluate("document.documentElement.scrollWidth") <= NARROW["width"]
    assert opened.quiet()


def test_the_policy_lets_no_other_script_run_and_nothing_be_fetched(
    open_page: Callable[..., Opened], sample_page: str
) -> None:
    opened = open_page(sample_page.replace("</main>", "<script>window.foreign = 1</script></main>"))
    assert opened.page.evaluate("window.foreign") is None
    fetched = "fetch('https://example.invalid/').then(() => 'fetched', () => 'refused')"
    assert opened.page.evaluate(fetched) == "refused"
    assert opened.requests == [opened.own]


# --- other ways to read it


def test_on_a_phone_nothing_is_wider_than_the_screen(open_page: Callable[..., Opened], sample_page: str) -> None:
    opened = open_page(sample_page, viewport=NARROW, has_touch=True, is_mobile=True)
    assert opened.page.evaluate("document.documentElement.scrollWidth") <= NARROW["width"]
    lefts = opened.page.eval_on_selector_all(
        ".chart", "charts => charts.map(chart => chart.getBoundingClientRect().left)"
    )
    assert len(set(lefts)) == 1
    assert opened.page.locator(".controls").bounding_box()["height"] < NARROW["height"] / 4
    assert opened.quiet()


def test_charts_follow_the_width_of_the_window(open_page: Callable[..., Opened], sample_page: str) -> None:
    opened = open_page(sample_page, viewport={"width": 1100, "height": 800})
    opened.page.set_viewport_size(NARROW)
    opened.wait_for("document.querySelector('#roc .uplot').offsetWidth < 340")
    assert opened.page.evaluate("document.documentElement.scrollWidth") <= NARROW["width"]


def test_on_paper_there_are_numbers_and_charts_and_nothing_to_press(
    open_page: Callable[..., Opened], sample_page: str
) -> None:
    opened = open_page(sample_page)
    opened.page.emulate_media(media="print", color_scheme="dark")
    assert not opened.page.is_visible("#slider")
    assert opened.page.is_visible("#status")
    assert opened.page.is_visible("#roc canvas")
    assert opened.page.evaluate("getComputedStyle(document.body).backgroundColor") == "rgb(255, 255, 255)"
    assert opened.page.pdf(format="A4").startswith(b"%PDF")
    assert opened.quiet()


def test_without_javascript_the_tables_remain(open_page: Callable[..., Opened], sample_page: str) -> None:
    opened = open_page(sample_page, java_script_enabled=False)
    text = opened.page.inner_text("main")
    assert "need JavaScript" in text
    assert "Charts" not in text
    assert not opened.page.is_visible("#slider")
    assert re.search(r"recall\s+0\.\d{4}", text)


def test_many_rows_open_and_move_quickly(open_page: Callable[..., Opened]) -> None:
    rng = np.random.default_rng(3)
    probs = rng.beta(0.3, 2, size=20_000)
    opened = open_page(drawn(probs, (rng.uniform(size=20_000) < probs).astype(int), confidence=None))
    took = opened.page.evaluate("""() => {
        const slider = document.getElementById("slider"), start = performance.now();
        for (let step = 0; step < 20; step++) {
            slider.value = 37 * step;
            slider.dispatchEvent(new Event("input"));
        }
        return performance.now() - start;
    }""")
    assert took < 20 * 100  # a hand feels no lag below a tenth of a second
    assert opened.quiet()
