"""The HTML page is whole in itself, well formed, accessible by its structure, and runs nothing but its own scripts."""

import base64
import hashlib
import html.parser
import json
import re
import subprocess
import sys
from dataclasses import replace
from importlib import resources
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from headeval.curves import curves
from headeval.errors import UsageError
from headeval.evaluation import evaluate
from headeval.printable import printable
from headeval.render.evaluation_sections import evaluation_sections
from headeval.render.page import data_block, render_page
from headeval.render.page_panel import packed
from headeval.render.traffic import traffic_section
from headeval.report import Report
from headeval.requirement_parsing import parse_requirement
from headeval.requirements import decide

VOID = {"meta", "rect", "line", "circle", "path", "br", "img", "link", "input"}
MOST_BYTES = 600_000


class _Structure(html.parser.HTMLParser):
    """Collects elements, attributes and scripts, and checks that every element is closed in its place."""

    def __init__(self, text: str) -> None:
        super().__init__()
        self.elements: list[tuple[str, dict[str, str | None]]] = []
        self.text = ""
        self.raw: list[str] = []  # of script and style
        self._open: list[str] = []
        self.feed(text)
        self.close()
        assert not self._open

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.elements.append((tag, dict(attrs)))
        if tag not in VOID:
            self._open.append(tag)
        if tag in {"script", "style"}:
            self.raw.append("")

    def handle_endtag(self, tag: str) -> None:
        if tag not in VOID:
            assert self._open.pop() == tag

    def handle_startendtag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.elements.append((tag, dict(attrs)))

    def handle_data(self, data: str) -> None:
        if self._open and self._open[-1] in {"script", "style"}:
            self.raw[-1] += data
        else:
            self.text += data

    def named(self, tag: str) -> list[dict[str, str | None]]:
        return [attributes for name, attributes in self.elements if name == tag]


def sample(n: int = 300, *, seed: int = 0) -> tuple[np.ndarray, np.ndarray]:
    rng = np.random.default_rng(seed)
    labels = (rng.uniform(size=n) < 0.2).astype(int)
    return rng.normal(size=n) * 1.5 + 2.5 * labels - 2, labels


def drawn(scores: Any, labels: Any, *, classes: tuple[str, str] = ("safe", "unsafe"), **options: Any) -> Report:
    """A report with curves; `options` as for `evaluate`."""
    settings = {"kind": "logit", "threshold": 0.25} | options
    evaluation = evaluate(scores, labels, classes=classes, n_resamples=0, **settings)
    return Report({"data": "rows.csv"}, "held-out", evaluation, curves=curves(scores, labels, **settings))


def page_data(page: str) -> Any:
    structure = _Structure(page)
    kinds = [attributes.get("type") for attributes in structure.named("script")]
    return json.loads([raw for raw in structure.raw if raw.startswith("{")][kinds.index("application/json")])


def unpacked(packed_texts: dict[str, str]) -> list[str]:
    """What the page's script does."""
    texts: list[str] = []
    for part in packed_texts["rest"].split(packed_texts["by"]):
        middle = "" if part == packed_texts["none"] else part
        texts.append(texts[-1] if part == "" else packed_texts["before"] + middle + packed_texts["after"])
    return texts


# --- text from outside


@pytest.mark.parametrize("with_curves", [False, True], ids=["tables", "charts"])
def test_a_hostile_report_has_the_elements_of_a_tame_one(
    hostile_report: Report, hostile: str, with_curves: bool
) -> None:
    rows = ([0.9, 0.2, 0.6, 0.4], [1, 0, 0, 1])
    found = curves(*rows, kind="prob", threshold=0.5) if with_curves else None
    hostile_report = replace(hostile_report, curves=found)
    classes = {"classes": ("safe", "unsafe")}
    tame = Report(
        {"a": "b", "data": ["c", "d"]},
        "e",
        replace(hostile_report.evaluation, **classes),
        hostile_report.slices,
        hostile_report.decisions,
        ("f",),
        curves=found,
    )
    page, plain = _Structure(render_page(hostile_report)), _Structure(render_page(tame))
    assert [tag for tag, _ in page.elements] == [tag for tag, _ in plain.elements]
    assert printable(hostile) in page.text
    assert len(page.named("script")) == (3 if with_curves else 0)
    assert not [name for _, attributes in page.elements for name in attributes if name.startswith("on")]
    assert not [name for _, attributes in page.elements for name in attributes if name in {"style", "href", "src"}]


@given(st.text())
def test_data_reads_back_and_cannot_end_its_element(text: str) -> None:
    block = data_block({"text": text})
    assert json.loads(block) == {"text": text}
    assert not set("<>&\u2028\u2029") & set(block)


@given(st.lists(st.text(alphabet="|~;01 p", max_size=4), min_size=1))
def test_packed_texts_read_back(texts: list[str]) -> None:
    assert unpacked(packed(texts)) == texts


# --- nothing from anywhere, nothing but its own


def test_without_curves_the_page_runs_nothing(report: Report) -> None:
    page = render_page(report)
    structure = _Structure(page)
    assert not {"script", "link", "img", "iframe", "object", "a"} & {tag for tag, _ in structure.elements}
    assert not re.search(r"https?:|url\(|@import|src=|href=", page)


@pytest.mark.parametrize("with_curves", [False, True], ids=["tables", "charts"])
def test_the_policy_allows_what_stands_in_the_page_and_nothing_else(report: Report, with_curves: bool) -> None:
    structure = _Structure(render_page(drawn(*sample()) if with_curves else report))
    (policy,) = [meta["content"] for meta in structure.named("meta") if "http-equiv" in meta]
    digests = [base64.b64encode(hashlib.sha256(raw.encode()).digest()).decode() for raw in structure.raw]
    style, *scripts = [f"'sha256-{digest}'" for digest in digests]
    rules = ["default-src 'none'", f"style-src {style}"]
    if with_curves:
        rules.append(f"script-src {scripts[1]} {scripts[2]}")  # the first holds data and is not run
    assert policy == "; ".join([*rules, "base-uri 'none'", "form-action 'none'"])


def test_the_charting_library_is_the_published_one_and_comes_with_its_licence() -> None:
    """The digests are those of `npm pack uplot@1.6.32`."""
    folder = resources.files("headeval.render").joinpath("vendor", "uPlot-1.6.32")
    digests = {
        "uPlot.iife.min.js": "19c8d4c6ad88929a79f4ae49d6f7161566dfd0ba3d15cc495e974f787eb78f1f",
        "uPlot.min.css": "df630c6a8d6f8eeaff264b50f73ce5b114f646ffd9a0bb74f049b0a00135fa04",
    }
    assert {name: hashlib.sha256(folder.joinpath(name).read_bytes()).hexdigest() for name in digests} == digests
    page = render_page(drawn(*sample()))
    licence = folder.joinpath("LICENSE").read_text(encoding="utf-8")
    assert "Leon Sorokin" in licence
    assert licence.strip() in page
    assert "uPlot 1.6.32" in page


@pytest.mark.slow
def test_a_hundred_thousand_rows_make_a_page_of_less_than_600_kb() -> None:
    assert len(render_page(drawn(*sample(100_000, seed=1))).encode()) < MOST_BYTES


# --- what the slider shows


@pytest.mark.parametrize("traffic", [{}, {"prevalence": 0.01, "per_day": 1e5}], ids=["rows", "traffic"])
@pytest.mark.parametrize("confidence", [None, 0.9])
def test_every_step_shows_the_texts_of_the_report_at_its_threshold(
    traffic: dict[str, float], confidence: float | None
) -> None:
    scores, labels = sample(60)
    options = {"kind": "logit", "confidence": confidence, **traffic}
    page = render_page(drawn(scores, labels, **options))
    structure, data = _Structure(page), page_data(page)
    places = {attributes["data-cell"] for _, attributes in structure.elements if "data-cell" in attributes}
    by_outcome = {key: unpacked(texts) for key, texts in data["byOutcome"].items()}
    by_step = {key: unpacked(texts) for key, texts in data["byStep"].items()}
    assert set(by_outcome) | set(by_step) <= places
    for step in (0, 1, 250, 500, data["inUse"], len(data["steps"]) - 1):
        there = evaluate(
            scores, labels, classes=("safe", "unsafe"), threshold=float(data["steps"][step]), n_resamples=0, **options
        )
        decisions = next(part for part in evaluation_sections(there) if part.title == "Decisions")
        sections = [decisions, *([traffic_section(there.traffic, confidence)] if there.traffic else [])]
        shown = by_step | dict.fromkeys(by_outcome)
        shown = {key: texts[step] for key, texts in by_step.items()}
        shown |= {key: texts[data["outcome"][step]] for key, texts in by_outcome.items()}
        for number, section in enumerate(sections):
            assert shown.get(f"{number}.lead", section.lead) == section.lead
            for at, grid in enumerate(section.grids):
                for row, cells in enumerate(grid.rows):
                    for column, cell in enumerate(cells):
                        key = f"{number}.{at}.{row}.{column}"
                        assert key in places
                        assert shown.get(key, cell) == cell, (key, step)


def test_the_slider_starts_at_the_threshold_in_use() -> None:
    data = page_data(render_page(drawn(*sample(), threshold=0.30000000000000004)))
    assert data["steps"][data["inUse"]] == "0.30000000000000004"


def test_the_cells_stand_once_and_the_other_sections_stay(report: Report) -> None:
    """The panel takes Decisions out of the list below it, and leaves the rest."""
    titles = re.findall(r"<h2[^>]*>(.*?)</h2>", render_page(drawn(*sample())))
    assert [title for title in titles if titles.count(title) > 1] == []
    assert {"Threshold", "Decisions", "Charts", "Cost", "Ranking", "Calibration", "Reliability", "Provenance"} <= set(
        titles
    )
    assert "Charts" not in re.findall(r"<h2[^>]*>(.*?)</h2>", render_page(report))


def test_costs_of_weighted_rows_are_weighted() -> None:
    """Of the weights 1 + 2 + 3 + 4, 3 is flagged wrongly at 0.5 and 4 is missed."""
    report = drawn([0.9, 0.2, 0.6, 0.4], [1, 0, 0, 1], kind="prob", threshold=0.5, weights=[1, 2, 3, 4])
    data = page_data(render_page(report))
    points, at = data["points"], data["outcome"][data["inUse"]]
    assert (points["falsePositives"][at], points["missed"][at]) == pytest.approx((0.3, 0.4))
    assert (points["positives"], points["negatives"], points["prevalence"]) == pytest.approx((0.5, 0.5, 0.5))


@pytest.mark.parametrize("label", [0, 1])
def test_rows_of_one_class_have_a_slider_but_no_roc(label: int) -> None:
    page = render_page(drawn([0.2, 0.7], [label, label], kind="prob"))
    ids = {attributes.get("id") for _, attributes in _Structure(page).elements}
    assert {"slider", "reliability", "histogram"} <= ids
    assert not {"roc", "pr"} & ids


# --- reading it


@pytest.mark.parametrize("with_curves", [False, True], ids=["tables", "charts"])
def test_tables_can_be_read_aloud(report: Report, with_curves: bool) -> None:
    structure = _Structure(render_page(drawn(*sample()) if with_curves else report))
    assert len(structure.named("table")) == len(structure.named("caption")) > 4
    assert {header["scope"] for header in structure.named("th")} == {"col", "row"}
    assert structure.named("html") == [{"lang": "en"}]
    assert [tag for tag, _ in structure.elements if tag in {"h1", "main"}] == ["main", "h1"]
    regions = [attributes for attributes in structure.named("div") if attributes.get("role")]
    assert all(attributes.get("aria-label") or attributes.get("aria-labelledby") for attributes in regions)


def test_every_chart_says_what_it_shows_in_numbers() -> None:
    report = drawn(*sample())
    structure = _Structure(render_page(report))
    charts = {
        attributes["id"]: attributes["aria-label"]
        for attributes in structure.named("div")
        if attributes.get("role") == "img"
    }
    assert set(charts) == {"roc", "pr", "reliability", "bins", "histogram", "costs"}
    evaluation = report.evaluation
    assert f"AUC {evaluation.auc.value:.4f}" in str(charts["roc"])
    assert f"Average precision {evaluation.ap.value:.4f}" in str(charts["pr"])
    bins = zip(evaluation.reliability.confidence, evaluation.reliability.counts, strict=True)
    assert all(f"at {mean:.2f}" in str(charts["reliability"]) for mean, rows in bins if rows)
    assert f"of {evaluation.counts.positives} unsafe rows" in str(charts["histogram"])


def test_what_a_calibration_changed_is_drawn_beside_it() -> None:
    scores, labels = sample()
    report = drawn(scores, labels)
    before = evaluate(scores * 3, labels, kind="logit", n_resamples=0).reliability
    chart = page_data(render_page(replace(report, before=before)))["charts"]["reliability"]
    shares = [share for share in chart["before"] if share is not None]
    assert shares == pytest.approx(before.accuracy[before.counts > 0].tolist(), abs=1e-5)
    assert "before calibration" not in render_page(report).split("<script")[0]


def test_bars_are_as_long_as_the_share_and_marked_at_the_mean() -> None:
    """Two rows at 0.05, none positive; four at 0.95, three positive: bars of 0 and 75 %."""
    evaluation = evaluate([0.05] * 2 + [0.95] * 4, [0, 0, 1, 1, 1, 0], kind="prob")
    structure = _Structure(render_page(Report({}, "held-out", evaluation)))
    bars = [rect["width"] for rect in structure.named("rect") if rect["class"] == "bar"]
    marks = [line["x1"] for line in structure.named("line")]
    assert (bars, marks) == (["0.00", "75.00"], ["5.00", "95.00"])


def test_the_verdict_is_title_and_heading(report: Report) -> None:
    page = render_page(report)
    assert "<title>headeval: 1 of 3 requirements not met</title>" in page
    assert '<h1 class="bad">headeval: 1 of 3 requirements not met</h1>' in page


def test_the_verdict_stands_above_the_slider() -> None:
    report = drawn(*sample())
    report = replace(report, decisions=(decide(parse_requirement("auc>=0.5"), report.evaluation),))
    page = render_page(report)
    assert page.index("Requirements</h2>") < page.index('id="slider"')


# --- jinja2


def test_without_jinja2_the_message_says_what_to_install(report: Report, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "jinja2", None)
    with pytest.raises(UsageError, match=re.escape("pip install 'headeval[html]'")):
        render_page(report)


def test_the_other_formats_do_not_load_jinja2() -> None:
    rooms = ", ".join(f"headeval.render.{name}" for name in ("terminal", "markdown", "document", "page"))
    code = f"import sys, {rooms}; sys.exit('jinja2' in sys.modules)"
    assert subprocess.run([sys.executable, "-c", code], check=False).returncode == 0
