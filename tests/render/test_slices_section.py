"""Slices at a terminal: within 80 columns no number is cut, no name is lost, and the record's intervals are shown."""

import dataclasses
import io
import re
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from rich.cells import cell_len
from rich.console import Console

from headeval.core.intervals import Interval
from headeval.core.thresholds import ConfusionCounts
from headeval.evaluation import Evaluation, evaluate
from headeval.metric import Metric
from headeval.printable import printable
from headeval.render.slices import slice_sections
from headeval.render.terminal import render_report
from headeval.report import Report, Slice
from headeval.slicing import judge_slice

PLAIN = evaluate([0.9, 0.6, 0.4, 0.1], [1, 0, 1, 0], kind="prob", n_resamples=0)
CUT = ("recall", "fpr", "auc", "ap", "ece_positive_class")


def shown(whole: Evaluation, *slices: Slice) -> str:
    """The slices as a console of 80 columns receives them."""
    raw = io.BytesIO()
    file = io.TextIOWrapper(raw, encoding="utf-8", newline="\n")
    Console(file=file, width=80).print(render_report(Report({}, "held-out", whole, slices)))
    file.flush()
    text = raw.getvalue().decode()
    assert max(map(cell_len, text.splitlines())) <= 80
    return text[text.index("Slices by") :]


def metric(value: float, lower: float, upper: float) -> Metric:
    return Metric(value, interval=Interval(lower, upper, 0.95, "by hand"))


def with_metrics(counts: tuple[int, int, int, int], **metrics: Metric) -> Evaluation:
    return dataclasses.replace(PLAIN, counts=ConfusionCounts(*counts), **metrics)


def squeezed(text: str) -> str:
    return re.sub(r"\s", "", text)


def test_every_number_of_a_slice_by_hand() -> None:
    cells = {
        "recall": metric(0.6, 0.5123, 0.7),
        "fpr": metric(0.1, 0.0499, 0.2),
        "auc": metric(0.9, 0.8, 0.95),
        "ap": metric(0.75, 0.6, 0.8),
        "ece_positive_class": metric(0.05, 0.0, 0.1),
        "prevalence": metric(0.5, 0.4, 0.6),
    }
    part = Slice("lang", "de", with_metrics((30, 5, 20, 45), **cells), 0.2, "recall", below=True)
    lines = [line.split("  ") for line in shown(PLAIN, part).splitlines()]
    rows = [[cell.strip() for cell in line if cell] for line in lines if "de" in line]
    assert rows == [
        ["de", "100", "50", "0.60 [0.51, 0.70]", "0.10 [0.05, 0.20]", "recall -0.20 !"],
        ["de", "0.50", "0.90 [0.80, 0.95]", "0.75 [0.60, 0.80]", "0.05 [0.00, 0.10]"],
    ]


def test_the_lead_has_the_numbers_of_all_rows_beside_which_slices_are_judged() -> None:
    (section,) = slice_sections((Slice("lang", "de", PLAIN),), PLAIN)
    assert section.lead == "worst first; all rows: recall 0.50, FPR 0.50, AUC 0.75, AP 0.83, ECE pos. 0.35"


@pytest.mark.parametrize(
    ("shortfall", "worst", "below", "text"),
    [
        (0.2, "recall", False, "recall -0.20"),
        (0.2, "fpr", True, "FPR +0.20 !"),
        (0.001, "auc", False, "AUC >-0.01"),
        (0.0, "auc", False, "no"),
        (-0.3, "auc", False, "no"),
        (None, "", False, "–"),
    ],
)
def test_the_change_has_the_sign_of_the_number_it_is_about(
    shortfall: float | None, worst: str, below: bool, text: str
) -> None:
    (section,) = slice_sections((Slice("lang", "de", PLAIN, shortfall, worst, below),), PLAIN)
    assert section.grids[0].rows[0][-1] == text
    assert any(note.startswith("! ") for note in section.footnotes) is below


def test_undefined_is_said_to_be_and_why() -> None:
    part = judge_slice("lang", "de", evaluate([0.2, 0.1], [0, 0], kind="prob", n_resamples=0), PLAIN)
    (section,) = slice_sections((part,), PLAIN)
    assert section.grids[0].rows[0] == ("de *", "2", "0", "–", "0.00 [0.00, 0.66]", "no")
    assert "– undefined (recall, AUC, AP): no row is positive" in section.footnotes
    (section,) = slice_sections((Slice("lang", "de", PLAIN),), part.evaluation)
    assert "recall undefined" in section.lead
    assert "AUC undefined" in section.lead


def test_without_intervals_there_are_no_brackets() -> None:
    bare = evaluate([0.9, 0.6, 0.4, 0.1], [1, 0, 1, 0], kind="prob", confidence=None)
    (section,) = slice_sections((judge_slice("lang", "de", bare, bare),), bare)
    assert section.grids[0].rows[0] == ("de *", "4", "2", "0.50", "0.50", "no")
    assert "[" not in "".join((*section.grids[1].rows[0], *section.footnotes))


NUMBERS = st.sampled_from([0.0, 0.00002, 0.3456, 0.99998, 1.0])
COUNTS = st.sampled_from([0, 7, 1234, 99_999, 1_234_567, 123_456_789])


@settings(max_examples=40, deadline=None)
@given(
    st.lists(st.tuples(COUNTS, COUNTS, *[NUMBERS] * 5), min_size=1, max_size=3),
    st.sampled_from(["en", "a long name of a language", "有害的内容"]),
    st.sampled_from([0.00002, 0.3456]),
)
def test_no_number_is_cut_or_folded_and_no_name_lost(parts: list[tuple[Any, ...]], name: str, shortfall: float) -> None:
    """Numbers of every width: "<0.01 [<0.01, <0.01]" and counts of hundreds of millions among them."""
    slices = []
    for tp, tn, *values in parts:
        cells = {key: metric(v, max(v - 1e-5, 0), min(v + 1e-5, 1)) for key, v in zip(CUT, values, strict=True)}
        slices.append(Slice("language", name, with_metrics((tp, 1, 0, tn), **cells), shortfall, "recall", below=True))
    text = shown(PLAIN, *slices)
    (section,) = slice_sections(tuple(slices), PLAIN)
    lines = text.splitlines()
    for grid in section.grids:
        for row in grid.rows:
            numbers = re.compile(r"\s+".join(map(re.escape, row[1:])) + r"\s*$")
            assert any(numbers.search(line) for line in lines), row
    assert squeezed(re.sub(r"[^\S\n]*[<>0-9\[].*", "", text)).count(squeezed(name)[:2]) >= len(slices) * len(
        section.grids
    )
    for heading in ("rows", "pos.", "below the whole", "prev."):
        assert any(re.search(rf"\s{re.escape(heading)}(\s|$)", line) for line in lines), heading


def test_ordinary_slices_stand_in_two_tables_and_only_crowded_ones_in_three() -> None:
    ordinary = with_metrics((1234, 100, 300, 9999), recall=metric(0.8, 0.78, 0.82), fpr=metric(0.02, 0.01, 0.03))
    crowded = with_metrics((1_234_567, 100, 300, 9999), recall=metric(0.8, 0.78, 0.82), fpr=metric(1e-4, 1e-5, 2e-4))
    for part, n_grids in ((ordinary, 2), (crowded, 3)):
        (section,) = slice_sections((Slice("language", "Deutsch", part, 0.1, "recall"),), PLAIN)
        assert len(section.grids) == n_grids


def test_hostile_names_stay_text(hostile: str) -> None:
    text = shown(PLAIN, judge_slice(hostile, hostile, PLAIN, PLAIN))
    assert squeezed(printable(hostile))[:20] in squeezed(text)
    (section,) = slice_sections((judge_slice(hostile, hostile, PLAIN, PLAIN),), PLAIN)
    assert section.title == f"Slices by {printable(hostile)}"
    for grid in section.grids:
        assert grid.columns[0].heading == printable(hostile)
        assert grid.rows[0][0] == f"{printable(hostile)} *"


def test_columns_come_in_the_order_of_their_first_slice() -> None:
    parts = [Slice(column, str(i), PLAIN) for i in range(10) for column in ("b", "a")]
    sections = slice_sections(tuple(parts), PLAIN)
    assert [section.title for section in sections] == ["Slices by b", "Slices by a"]


def test_a_mark_stands_beside_how_many_chance_alone_would_make() -> None:
    """Ten slices with AUC, recall and FPR each: 30 intervals of 95 %, of which one side misses 2.5 %."""
    parts = [Slice("a", str(i), PLAIN, below=i == 0) for i in range(10)]
    (section,) = slice_sections(tuple(parts), PLAIN)
    assert any(note.endswith("by chance about 0.8 of 30 intervals would") for note in section.footnotes)
    (section,) = slice_sections(tuple(parts[1:]), PLAIN)
    assert not any("by chance about" in note for note in section.footnotes)
