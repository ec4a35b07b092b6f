"""Several categories side by side: notes told once, averages, pages whose parts do not get in each other's way."""

import collections
import html
import html.parser
import io
import json
import re
from typing import Any

import numpy as np
import pytest
from rich.console import Console

from headeval.category_report import CategoriesReport, JudgedCategory
from headeval.comparison import compare
from headeval.curves import curves
from headeval.evaluation import evaluate
from headeval.files.schemas import validator
from headeval.head import LinearHead
from headeval.printable import printable
from headeval.render.categories import categories_sheet
from headeval.render.category_card import render_categories_card
from headeval.render.category_document import categories_document
from headeval.render.category_notes import merged_notes
from headeval.render.category_page import render_categories_page
from headeval.render.document import report_document
from headeval.render.junit import categories_junit_xml
from headeval.render.markdown import sheet_markdown
from headeval.render.page import render_page
from headeval.render.terminal import SheetView
from headeval.report import Report
from headeval.requirement_parsing import parse_requirement
from headeval.requirements import decide, undecided
from headeval.scored_rows import ScoredRows
from headeval.slicing import judge_slice, worst_first


def judged(seed: int, *, drawn: bool = False, notes: tuple[str, ...] = ()) -> Report:
    rng = np.random.default_rng(seed)
    probs = rng.uniform(size=80)
    labels = rng.uniform(size=80) < probs
    options: dict[str, Any] = {"kind": "prob", "threshold": 0.3 + seed / 10}
    evaluation = evaluate(probs, labels, n_resamples=0, classes=("safe", "unsafe"), **options)
    lines = curves(probs, labels, **options) if drawn else None
    return Report({"data": ["rows.csv"], "label_column": "x"}, "80 rows", evaluation, notes=notes, curves=lines)


def several(*names: str, drawn: bool = False, notes: tuple[str, ...] = ()) -> CategoriesReport:
    parts = [JudgedCategory(name, 7, judged(index, drawn=drawn, notes=notes)) for index, name in enumerate(names)]
    return CategoriesReport({"data": ["rows.csv"], "label_columns": list(names)}, tuple(parts))


def terminal(report: CategoriesReport, width: int = 80) -> str:
    console = Console(file=io.StringIO(), width=width, force_terminal=False, color_system=None)
    console.print(SheetView(categories_sheet(report)))
    text: str = console.file.getvalue()  # type: ignore[attr-defined]
    return text


class _Ids(html.parser.HTMLParser):
    """Every id of a page, and every id that something points to."""

    def __init__(self, page: str) -> None:
        super().__init__()
        self.ids: list[str] = []
        self.named: list[str] = []
        self.feed(page)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        for name, value in attrs:
            if name == "id":
                self.ids.append(value or "")
            elif name in {"for", "aria-labelledby", "aria-describedby"}:
                self.named.append(value or "")


# --- notes


@pytest.mark.parametrize(
    ("notes", "expected"),
    [
        ({"a": ["same"], "b": ["same"]}, ["same"]),
        ({"a": ["same"], "b": ["same"], "c": []}, ["a, b: same"]),
        ({"a": ["only"], "b": []}, ["a: only"]),
        ({"a": ["1 of 20 rows"], "b": ["3 of 1,000 rows"]}, ["a: 1 of 20 rows; likewise, with its own numbers, b"]),
        (
            {"a": ["p is 0.5"], "b": ["p is 0.25"], "c": ["p is 1"]},
            ["a: p is 0.5; likewise, with their own numbers, b, c"],
        ),
        ({"a": ["x", "y"], "b": ["y", "z"]}, ["a: x", "y", "b: z"]),
        ({"a": ["twice", "twice"], "b": ["twice"]}, ["twice"]),
        ({"\x1b[0m": ["no\x07te"], "b": []}, ["\\x1b[0m: no\\x07te"]),
        ({}, []),
    ],
)
def test_notes_are_told_once_with_the_categories_they_concern(notes: dict[str, list[str]], expected: list[str]) -> None:
    assert list(merged_notes(notes.items())) == expected


def test_with_numbers_no_number_is_left_out() -> None:
    notes = [("a", ["on 12 rows"]), ("b", ["on 30 rows"]), ("c", ["on 12 rows"])]
    assert merged_notes(notes, with_numbers=True) == ("a, c: on 12 rows", "b: on 30 rows")


# --- the overview


def test_the_overview_shows_value_and_interval_of_each_category_in_one_row() -> None:
    report = several("hate", "spam")
    rows = {row[0]: row for grid in categories_sheet(report).sections[0].grids for row in grid.rows[:-1]}
    for name, part in report.judged:
        cells = "\n".join(rows[name])  # of the last grid
        for metric in ("ece_positive_class", "recall", "fpr"):
            found = getattr(part.evaluation, metric)
            assert f"{found.value:.4f}" in cells
            if found.interval is not None:
                assert f"[{found.interval.lower:.3f}, {found.interval.upper:.3f}]" in cells
        assert f"\n{part.evaluation.threshold:.4f}\n" in cells


@pytest.mark.parametrize(("threshold", "told"), [(0.25, False), (0.123456, True), (0.00001, True)])
def test_a_threshold_that_is_rounded_says_so(threshold: float, told: bool) -> None:
    part = Report({}, "", evaluate([0.2, 0.7], [0, 1], kind="prob", threshold=threshold))
    section = categories_sheet(CategoriesReport({}, (JudgedCategory("hate", 0, part),))).sections[0]
    assert any("thresholds are rounded here" in note for note in section.footnotes) == told


def test_the_macro_average_says_of_how_many_where_some_have_none() -> None:
    report = several("hate", "spam")
    one_class = Report({}, "", evaluate([0.2, 0.7], [0, 0], kind="prob"))
    less = CategoriesReport({}, (*report.parts, JudgedCategory("harm", 0, one_class)))
    ranked, _ = categories_sheet(less).sections[0].grids
    mean = np.mean([part.evaluation.auc.value for _, part in report.judged])
    assert ranked.rows[-1][4] == f"{mean:.4f} of 2"
    footnotes = categories_sheet(less).sections[0].footnotes
    assert f"harm: AUC, AP, recall undefined: {one_class.evaluation.auc.reason}" in footnotes
    assert " of " not in categories_sheet(report).sections[0].grids[0].rows[-1][4]


def test_line_breaks_in_cells_break_lines_in_every_format() -> None:
    report = several("hate", "spam")
    auc = report.judged[0][1].evaluation.auc
    assert auc.interval is not None
    lower, upper = f"{auc.interval.lower:.3f}", f"{auc.interval.upper:.3f}"
    lines = terminal(report).splitlines()
    at = next(index for index, line in enumerate(lines) if line.startswith("  hate"))
    assert f"{auc.value:.4f}" in lines[at]
    assert f"[{lower}, {upper}]" in lines[at + 1]
    assert f"| {auc.value:.4f}<br>&#91;{lower}, {upper}] |" in sheet_markdown(categories_sheet(report))
    assert f'<td class="number">{auc.value:.4f}\n[{lower}, {upper}]</td>' in render_categories_page(report)


def test_in_sample_and_unknown_rows_are_never_passed_over() -> None:
    assert categories_sheet(several("hate", "spam")).how.endswith("which rows made what is judged is not known")


# --- JSON


def test_the_document_holds_each_categorys_own_document_and_fits_its_schema() -> None:
    report = several("hate", "spam")
    gate = parse_requirement("hate:auc>=0.1", of_parts=True)
    lost = parse_requirement("harm:auc>=0.1", of_parts=True)
    parts = (*report.parts, JudgedCategory("harm", 12, None, "none of 12 rows has a known label"))
    decisions = (decide(gate, report.judged[0][1].evaluation), undecided(lost, parts[-1].why))
    found = categories_document(CategoriesReport(report.provenance, parts, decisions))
    validator("categories-report").validate(found)
    assert [part["report"] for part in found["categories"]] == [
        *(report_document(part) for _, part in report.judged),
        None,
    ]
    assert [(one["of"], one["verdict"]) for one in found["requirements"]] == [("hate", "met"), ("harm", "undecided")]
    assert found["passed"] is False


@pytest.mark.parametrize(
    "change",
    [
        {"passed": True},
        {"version": 2},
        {"categories": []},
        {"categories": [{"name": "a", "known": 1, "unknown": 0, "not_judged": None, "report": None}]},
        {"categories": [{"name": "a", "known": 1, "unknown": 0, "not_judged": None, "report": {"format": "x"}}]},
        {"averages": {"auc": 0.5}},
        {"more": 1},
    ],
)
def test_the_schema_refuses_what_is_no_such_document(change: dict[str, Any]) -> None:
    found = categories_document(several("hate"))
    assert validator("categories-report").is_valid(found)
    assert not validator("categories-report").is_valid(found | change)


# --- the page


def test_the_page_holds_the_whole_page_of_each_category() -> None:
    report = several("hate", "spam", drawn=True)
    page = render_categories_page(report)
    for name, part in report.judged:
        own = render_page(part)
        tables = re.findall(r"<caption.*?</table>", own, flags=re.DOTALL)
        assert len(tables) > 5
        missing = [table for table in tables if _words(table) not in _words(page)]
        assert not missing
        assert f"<h3>{name}</h3>" in page


def _words(page: str) -> str:
    """The texts of a page without its tags, which differ in ids and levels."""
    return " ".join(re.sub(r"<[^>]*>", " ", page).split())


def test_ids_are_unique_and_every_one_that_is_named_is_there() -> None:
    found = _Ids(render_categories_page(several("hate", "spam", "harm", drawn=True)))
    assert [name for name, times in collections.Counter(found.ids).items() if times > 1] == []
    assert found.named
    assert set(found.named) <= set(found.ids)


def test_scripts_stand_once_in_the_page_and_not_at_all_without_curves() -> None:
    drawn, plain = (render_categories_page(several("hate", "spam", drawn=drawn)) for drawn in (True, False))
    assert drawn.count('"use strict";') == render_page(judged(0, drawn=True)).count('"use strict";')
    assert "<script" not in plain
    assert drawn.count("<details") == plain.count("<details") == 2
    data = re.findall(r'<script type="application/json" id="(c\d-)data">(.*?)</script>', drawn)
    assert [at for at, _ in data] == re.findall(r'data-report="(c\d-)"', drawn) == ["c0-", "c1-"]
    assert all(json.loads(text)["steps"] for _, text in data)


def test_a_page_of_one_report_is_as_it_was_but_for_its_levels() -> None:
    """Headings of a category stand below its name; those of a report of its own below the title."""
    page = render_page(judged(0, drawn=True))
    assert re.findall(r"<h(\d)", page)[:3] == ["1", "2", "2"]
    assert set(re.findall(r"<h(\d)", render_categories_page(several("hate", drawn=True)))) == set("12345")


# --- hostile texts


def test_hostile_names_and_notes_stay_text(hostile: str) -> None:
    report = several("hate", hostile, notes=(hostile,))
    gate = parse_requirement("x:auc>=0.1", of_parts=True)
    gate = type(gate)(gate.metric, gate.comparison, gate.bound, of=hostile)
    report = CategoriesReport(
        {"heads": hostile, "data": [hostile]},
        (*report.parts, JudgedCategory(hostile * 2, 1, None, hostile)),
        (decide(gate, report.judged[1][1].evaluation),),
    )
    texts = [
        terminal(report),
        sheet_markdown(categories_sheet(report)),
        render_categories_page(report),
        render_categories_card(report, {}),
        categories_junit_xml(report),
    ]
    for text in texts:
        assert not re.search(r"[\x00-\x08\x0b-\x1f\x7f-\x9f\u202e\u200b\udcff]", text)
    page, markdown = texts[2], texts[1]
    assert "<script" not in page
    assert "<img" not in page
    assert printable(hostile) in html.unescape(page)
    lines = [line for line in markdown.splitlines() if line.startswith("|")]
    assert {line.count("|") for line in lines} <= {4, 6, 7}  # the grids have three, five and six columns
    validator("categories-report").validate(categories_document(report))


# --- slices


def sliced(*sizes: int) -> CategoriesReport:
    """One category, whose slices have so many rows of either class."""
    rng = np.random.default_rng(1)
    labels = np.concatenate([np.repeat([0, 1], size) for size in sizes])
    probs, where = rng.uniform(size=len(labels)), np.repeat(np.arange(len(sizes)), 2 * np.array(sizes))
    whole, *parts = (
        evaluate(probs[mask], labels[mask], kind="prob", n_resamples=0)
        for mask in (where >= 0, *(where == at for at in range(len(sizes))))
    )
    slices = worst_first(judge_slice("team", str(at), part, whole) for at, part in enumerate(parts))
    return CategoriesReport({}, (JudgedCategory("hate", 0, Report({}, "", whole, slices=slices)),))


@pytest.mark.parametrize(("sizes", "told"), [((9, 8), True), ((14, 5, 9), True), ((9, 20), False), ((20, 20), False)])
def test_slices_that_are_all_small_are_said_to_be_and_how_many_rows_would_do(
    sizes: tuple[int, ...], told: bool
) -> None:
    (section,) = (part for part in categories_sheet(sliced(*sizes)).sections if part.title == "Slices by team")
    (row,) = section.grids[0].rows
    assert row[1].endswith(" *") == told
    few = [note for note in section.footnotes if note.startswith("*")]
    expected = "* no slice of this category has enough rows: fewer than 30, or 1 to 9 of a class"
    assert few == ([expected] if told else [])


def test_the_page_does_not_send_to_itself_for_the_slices_that_it_has() -> None:
    report = sliced(20, 20)
    page = _words(render_categories_page(report))
    assert "--html" not in page
    assert "all slices of a category are in its own part of this page" in page
    assert "--format json and --html have all slices" in terminal(report)


# --- comparison, card


def test_the_comparison_shows_each_category_less_its_baseline() -> None:
    rng = np.random.default_rng(0)
    labels = rng.random(200) < 0.4
    new, old = (ScoredRows.checked(labels + rng.normal(size=200), labels, kind="logit") for _ in range(2))
    now, before = (evaluate(rows.s, rows.y, kind="logit", n_resamples=0) for rows in (new, old))
    comparison = compare(now, before, new, old, name="old", resampling=None)
    report = CategoriesReport({}, (JudgedCategory("hate", 0, Report({}, "", now, comparison=comparison)),))
    section = next(part for part in categories_sheet(report).sections if part.title == "Comparison")
    assert now.auc.value is not None
    assert before.auc.value is not None
    difference = now.auc.value - before.auc.value
    (row,) = section.grids[0].rows
    assert row[0] == "hate"
    assert row[1].startswith(f"{difference:+.4f}\n[")


def test_the_card_tells_what_heads_share_once_and_the_rest_of_each() -> None:
    fits = {"hate": {"l2": 1.0, "n": 100}, "spam": {"l2": 30.0, "n": 100}}
    heads = {
        name: LinearHead.binary([1, 2], 0, classes=("no", "yes"), embedding_model="the-model", metrics={"fit": fit})
        for name, fit in fits.items()
    }
    card = render_categories_card(several("hate", "spam"), heads)
    assert card.count("| embedding model | the-model |") == 1
    assert card.count("| rows of the fit | 100 |") == 1
    assert card.count("| l2 | 1 |") == card.count("| l2 | 30 |") == 1
    hate, spam = (card.index(f"### Category {name}") for name in ("hate", "spam"))
    assert hate < card.index("| l2 | 1 |") < spam < card.index("| l2 | 30 |")
    assert card.count("### Limits that follow from the numbers") == card.count("### Not recorded") == 1
    assert card.count("whom its errors harm, and how") == 1
