"""All classes in every format: axes named, nothing cut off, and text from outside stays text."""

import dataclasses
import io
import json
import re

import jsonschema
import numpy as np
import pytest
from rich.console import Console

from documents import ROOT
from headeval.evaluation import METRICS, evaluate
from headeval.multiclass import CLASS_METRICS, CLASS_RATES, ClassEvaluation, evaluate_classes
from headeval.printable import printable
from headeval.render.class_document import class_document
from headeval.render.classes import (
    AXES,
    MOST_CLASSES,
    MOST_CONFUSIONS,
    MOST_IN_MATRIX,
    class_notes,
    class_sections,
    confusion_section,
    rows_of_classes,
)
from headeval.render.document import report_document, to_json
from headeval.render.markdown import render_markdown
from headeval.render.numbers import metric_value
from headeval.render.page import render_page
from headeval.render.sections import Section
from headeval.render.terminal import render_report
from headeval.report import Report


def judged(taken: list[int], true: list[int], classes: tuple[str, ...], *, sure: bool = True) -> ClassEvaluation:
    """Rows whose likeliest class has probability 0.7 and all others the same."""
    n = len(classes)
    probs = np.full((len(true), n), 0.3 / (n - 1))
    probs[np.arange(len(true)), taken] = 0.7
    return evaluate_classes(probs, true, kind="prob", classes=classes, confidence=0.95 if sure else None, n_resamples=0)


def report_on(classes: ClassEvaluation) -> Report:
    evaluation = evaluate([0.9, 0.2, 0.6, 0.4], [1, 0, 0, 1], kind="prob", classes=("not c", classes.classes[-1]))
    return Report({}, "held-out", evaluation, classes=classes)


def terminal(report: Report, width: int, encoding: str = "utf-8") -> str:
    file = io.TextIOWrapper(io.BytesIO(), encoding=encoding)
    console = Console(file=file, width=width, force_terminal=False, color_system=None)
    console.print(render_report(report))
    file.flush()
    return file.buffer.getvalue().decode(encoding)  # type: ignore[attr-defined]


def section(report_sections: tuple[Section, ...], title: str) -> Section:
    return next(part for part in report_sections if part.title == title)


THREE = judged([0, 0, 1, 1, 2, 0, 0], [0, 0, 1, 2, 2, 1, 0], ("a", "b", "c"))


def test_the_matrix_has_true_classes_down_and_predicted_ones_across() -> None:
    """Counted by hand: one b is taken for a, one c for b; the other way round the table would be another."""
    (grid,) = confusion_section(THREE).grids
    assert [column.heading for column in grid.columns] == [AXES, "a", "b", "c", "all"]
    assert grid.rows == (
        ("a", "3", "0", "0", "3"),
        ("b", "1", "1", "0", "2"),
        ("c", "0", "1", "1", "2"),
        ("all", "4", "2", "1", "7"),
    )


def test_each_class_has_its_rows_in_its_own_line() -> None:
    decided, ranked = section(class_sections(THREE), "Each class against the rest").grids
    assert [row[:2] for row in decided.rows] == [("a", "3"), ("b", "2"), ("c (flagged)", "2")]
    assert [row[:2] for row in ranked.rows] == [("a", "4"), ("b", "2"), ("c (flagged)", "1")]
    headings = [column.heading for column in decided.columns]
    recall, precision = headings.index("recall"), headings.index("precision")
    assert [row[recall].split()[0] for row in decided.rows] == ["1.00", "0.50", "0.50"]
    assert [row[precision].split()[0] for row in decided.rows] == ["0.75", "0.50", "1.00"]


@pytest.mark.parametrize("sure", [True, False], ids=["intervals", "none"])
def test_every_measure_of_all_classes_stands_in_its_row(sure: bool) -> None:
    classes = judged([0, 1, 2, 0, 1], [0, 1, 2, 1, 1], ("a", "b", "c"), sure=sure)
    rows = [row for grid in section(class_sections(classes), "All 3 classes").grids for row in grid.rows]
    assert len(rows) == len(CLASS_METRICS)
    for info, metric in classes.metrics():
        (row,) = (row for row in rows if row[0] == info.title)
        assert row[1] == metric_value(metric)
        assert len(row) == (4 if sure else 3)


def test_no_measure_of_all_classes_has_the_title_of_one_of_the_flagged_class() -> None:
    assert not {info.title for info in CLASS_METRICS.values()} & {info.title for info in METRICS.values()}
    (notes,) = (part.footnotes for part in class_sections(THREE) if part.title == "All 3 classes")
    assert "top-1 accuracy: of 3 classes; accuracy under Decisions: of c or not, at the threshold" in notes


def test_chance_stands_beside_the_error_it_explains() -> None:
    rows = {row[0]: row for grid in section(class_sections(THREE), "All 3 classes").grids for row in grid.rows}
    assert re.match(r"if calibrated 0\.\d{3}, up to 0\.\d{3}; ", rows["top-label ECE"][-1])
    assert not any("if calibrated" in row[-1] for title, row in rows.items() if title != "top-label ECE")


def test_a_number_that_there_is_not_says_why() -> None:
    classes = judged([0, 0, 1], [0, 0, 0], ("a", "b", "c"))
    part = section(class_sections(classes), "Each class against the rest")
    recall = [column.heading for column in part.grids[0].columns].index("recall")
    assert part.grids[0].rows[2][recall] == "–"
    assert "– undefined (recall, AUC, AP of b, c): no row is of the class" in part.footnotes


def test_of_many_classes_the_largest_confusions_are_named() -> None:
    names = tuple(f"class {index}" for index in range(MOST_IN_MATRIX + 1))
    rng = np.random.default_rng(0)
    true = rng.integers(0, len(names), 3000)
    taken = np.where(rng.random(3000) < 0.4, true, rng.integers(0, len(names), 3000))
    taken[:60], true[:60] = 5, 3
    classes = judged(taken.tolist(), true.tolist(), names)
    (grid,) = confusion_section(classes).grids
    assert len(grid.rows) == MOST_CONFUSIONS
    hits = np.sum((true == 3) & (taken == 5))
    assert grid.rows[0] == ("class 3", "class 5", str(hits), f"{hits / np.sum(true == 3):.2f}")
    counts = [int(row[2]) for row in grid.rows]
    assert counts == sorted(counts, reverse=True)
    assert all(row[0] != row[1] for row in grid.rows)
    assert f"{np.sum(true != taken):,} of 3,000 rows" in confusion_section(classes).lead


def test_where_nothing_is_confused_there_is_no_table() -> None:
    names = tuple("abcdefghijklmn")
    classes = judged(list(range(14)) * 2, list(range(14)) * 2, names)
    found = confusion_section(classes)
    assert (found.grids, found.lead) == ((), "0 of 28 rows have another class as their likeliest")


def test_of_very_many_classes_those_of_lowest_recall_are_shown() -> None:
    names = tuple(f"k{index}" for index in range(MOST_CLASSES + 5))
    true = list(range(len(names))) * 2
    taken = [*range(len(names)), *range(len(names))]
    taken[len(names) + 42] = 0  # class 42 is right once of twice
    part = section(class_sections(judged(taken, true, names)), "Each class against the rest")
    assert len(part.grids[0].rows) == MOST_CLASSES
    assert part.grids[0].rows[0][0] == "k42"
    assert part.grids[0].rows[-1][0] == f"k{len(names) - 1} (flagged)"
    assert f"JSON has all {len(names)}" in part.footnotes[0]


def test_long_names_become_numbers_above_the_matrix_which_the_rows_explain() -> None:
    names = tuple(f"a rather long name of class {index}" for index in range(4))
    (grid,) = confusion_section(judged([0, 1, 2, 3], [0, 1, 2, 3], names)).grids
    assert [column.heading for column in grid.columns] == [AXES, "1", "2", "3", "4", "all"]
    assert [row[0] for row in grid.rows] == [*(f"{index + 1} {name}" for index, name in enumerate(names)), "all"]


@pytest.mark.parametrize("width", [80, 120])
def test_no_number_is_folded_or_cut_off(width: int) -> None:
    names = ("offensive language", "neither of the two", "hateful")
    rng = np.random.default_rng(1)
    true = rng.integers(0, 3, 40_000)
    taken = np.where(rng.random(40_000) < 0.7, true, rng.integers(0, 3, 40_000))
    classes = judged(taken.tolist(), true.tolist(), names)
    text = terminal(report_on(classes), width)
    assert max(map(len, text.splitlines())) <= width
    for part in class_sections(classes):
        for grid in part.grids:
            for row in grid.rows:
                for column, cell in zip(grid.columns, row, strict=True):
                    if column.numeric:
                        assert cell in text, (part.title, row)


def test_on_an_ascii_console_the_axes_are_still_named() -> None:
    text = terminal(report_on(THREE), 80, "ascii")
    assert "true v / predicted ->" in text
    assert text.isascii()


def test_names_from_outside_stay_text_in_every_format(hostile: str) -> None:
    classes = judged([0, 0, 1, 1, 2], [0, 0, 1, 2, 2], ("a", "b", hostile))
    report = report_on(classes)
    shown = terminal(report, 120)
    assert not re.search(r"[\x00-\x09\x0b-\x1f\x7f-\x9f\u202e]", shown)
    page, markdown = render_page(report), render_markdown(report)
    for text in (page, markdown):
        assert "<script>alert" not in text
        assert "<img" not in text
    assert not re.search(r"[\x00-\x09\x0b-\x1f\x7f-\x9f\u202e]", markdown)
    assert to_json(report_document(report)).isascii()
    assert printable(hostile, longest=80) in " ".join(
        cell for grid in confusion_section(classes).grids for row in grid.rows for cell in row
    )


def test_json_has_the_key_only_where_there_are_more_than_two_classes() -> None:
    with_classes = report_document(report_on(THREE))
    without = report_document(dataclasses.replace(report_on(THREE), classes=None))
    assert with_classes["all_classes"] == class_document(THREE)
    assert "all_classes" not in without
    assert {key: value for key, value in with_classes.items() if key != "all_classes"} == without


def test_classes_of_few_rows_are_named() -> None:
    (note,) = (note for note in class_notes(THREE) if "few rows" in note)
    assert note.endswith("3 a, 2 b, 2 c")


def test_rows_of_many_classes_are_summed_up() -> None:
    counts = {f"k{index}": 1000 + index for index in range(12)}
    text = rows_of_classes(counts)
    assert text.startswith(f"{sum(counts.values()):,} rows: 1,011 k11 (flagged), 1,000 k0, ")
    assert text.endswith(", 3,027 of 3 other classes")


def test_the_schema_requires_every_metric_of_all_classes_and_of_each() -> None:
    schema = json.loads((ROOT / "schemas" / "report.schema.json").read_text(encoding="utf-8"))
    parts = schema["$defs"]["all_classes"]["properties"]
    assert parts["metrics"]["required"] == list(CLASS_METRICS)
    assert parts["per_class"]["items"]["properties"]["metrics"]["required"] == list(CLASS_RATES)
    assert "all_classes" not in schema["required"]


@pytest.mark.parametrize(
    "classes",
    [
        THREE,
        judged([0, 0, 1], [0, 0, 0], ("a", "b", "c")),
        judged([0, 1, 2], [0, 1, 2], ("a", "b", "c"), sure=False),
        evaluate_classes([[0.0, 1.0, 0.0], [0.2, 0.3, 0.5]], [0, 2], kind="prob", classes=("a", "b", "c")),
    ],
    ids=["plain", "one class", "no intervals", "infinite log loss"],
)
def test_every_document_keeps_the_schema(classes: ClassEvaluation) -> None:
    schema = json.loads((ROOT / "schemas" / "report.schema.json").read_text(encoding="utf-8"))
    document = json.loads(to_json(report_document(report_on(classes))))
    jsonschema.Draft202012Validator(schema).validate(document)
    for part in (document["all_classes"], *document["all_classes"]["per_class"]):
        missing = {name for name, value in part["metrics"].items() if value is None}
        assert missing == set(part["undefined"])
