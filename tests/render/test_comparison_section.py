"""The comparison at a terminal: both values, their difference with its sign and interval, and who changed side."""

import dataclasses
import io
import re
from typing import Any

import numpy as np
import pytest
from rich.cells import cell_len
from rich.console import Console

from headeval.comparison import Comparison, compare
from headeval.core.intervals import Difference, Interval
from headeval.core.thresholds import DecisionChanges
from headeval.evaluation import METRICS, Evaluation, evaluate
from headeval.printable import printable
from headeval.render.comparison import comparison_section
from headeval.render.terminal import render_report
from headeval.report import Report
from headeval.scored_rows import ScoredRows


def pair(*, n: int = 200, threshold: float = 0.5, name: str = "old.json", **also: Any) -> tuple[Evaluation, Comparison]:
    rng = np.random.default_rng(4)
    z = 2 * rng.normal(size=n)
    y = (rng.random(n) < 1 / (1 + np.exp(-z))).astype(int)
    old = z + rng.normal(size=n)
    columns = {key: also.pop(key)[:n] for key in ("weights", "groups") if key in also}
    rows = [ScoredRows.checked(scores, y, kind="logit", **columns) for scores in (z, old)]
    new = evaluate(z, y, kind="logit", threshold=threshold, n_resamples=60, **columns, **also)
    was = evaluate(old, y, kind="logit", n_resamples=0, **columns, **also)
    return new, compare(new, was, rows[0], rows[1], name=name, resampling=new.resampling)


def shown(new: Evaluation, comparison: Comparison) -> str:
    raw = io.BytesIO()
    file = io.TextIOWrapper(raw, encoding="utf-8", newline="\n")
    Console(file=file, width=80).print(render_report(Report({}, "held-out", new, comparison=comparison)))
    file.flush()
    text = raw.getvalue().decode()
    assert max(map(cell_len, text.splitlines())) <= 80
    return text[text.index("\nComparison") :]


def test_values_differences_and_intervals_are_those_of_the_record() -> None:
    new, comparison = pair()
    lines = [re.split(r"\s{2,}", line.strip()) for line in shown(new, comparison).splitlines()]
    rows = {line[0]: line[1:] for line in lines if len(line) == 5}
    assert rows.pop("measure") == ["baseline", "new", "difference", "95 % interval"]
    assert set(rows) == {METRICS[name].title for name in comparison.differences}
    for name, difference in comparison.differences.items():
        interval = difference.interval
        assert interval is not None
        assert rows[METRICS[name].title] == [
            f"{getattr(comparison.baseline, name).value:.4f}",
            f"{getattr(new, name).value:.4f}",
            f"{difference.value:+.4f}",
            f"[{interval.lower:+.4f}, {interval.upper:+.4f}]",
        ], name


def by_hand(comparison: Comparison, **differences: Difference) -> Comparison:
    return dataclasses.replace(comparison, differences=differences)


def test_a_difference_of_nothing_has_no_sign_and_a_tiny_one_is_not_nothing() -> None:
    new, comparison = pair()
    tiny = Interval(-0.00001, 0.00002, 0.95, "by hand")
    same = by_hand(comparison, auc=Difference(0.0, tiny, 1.0), recall=Difference(-0.00003, None, None))
    grid = comparison_section(same, new).grids[0]
    assert [row[3:] for row in grid.rows] == [("0.0000", "[>-0.0001, <+0.0001]"), (">-0.0001", "–")]


def test_rows_that_changed_side_are_counted() -> None:
    new, comparison = pair()
    comparison = dataclasses.replace(
        comparison, changes=DecisionChanges(1_234_567, 2), only_new_right=3, only_baseline_right=4
    )
    assert comparison_section(comparison, new).grids[1].rows == (
        ("newly flagged", "1,234,567"),
        ("no longer flagged", "2"),
        ("right only by the new", "3"),
        ("right only by the baseline", "4"),
    )


def test_p_values_say_of_what() -> None:
    new, comparison = pair()
    asked = by_hand(comparison, auc=Difference(0.1, Interval(0.0, 0.2, 0.95, "DeLong"), 0.0123))
    notes = comparison_section(dataclasses.replace(asked, mcnemar_p=0.5), new).footnotes
    assert "decisions, McNemar's exact test: p = 0.5000, how often chance alone parts them as far" in notes
    assert "AUC, paired DeLong: p = 0.0123, how often chance alone parts them as far" in notes
    assert "intervals: DeLong" in notes
    notes = comparison_section(dataclasses.replace(asked, mcnemar_p=1e-9), new).footnotes
    assert "decisions, McNemar's exact test: p < 0.0001, how often chance alone parts them as far" in notes
    without = by_hand(comparison, auc=Difference(0.1, None, None))
    assert not any("DeLong" in note for note in comparison_section(without, new).footnotes)


@pytest.mark.parametrize("columns", [{"weights": np.arange(200) % 3 + 1.0}, {"groups": np.arange(200) // 2}])
def test_mcnemar_left_out_is_said_to_be(columns: dict[str, Any]) -> None:
    new, comparison = pair(**columns)
    text = shown(new, comparison)
    assert "McNemar's test is left out: it needs independent rows of equal weight" in text
    assert "exact: p" not in text


def test_thresholds_are_told_where_they_differ() -> None:
    assert "thresholds:" not in shown(*pair())
    assert "thresholds: baseline 0.5, new 0.30000000000000004" in shown(*pair(threshold=0.1 + 0.2))


def test_without_intervals_there_is_no_column_of_them() -> None:
    new, comparison = pair(confidence=None)
    section = comparison_section(comparison, new)
    assert [column.heading for column in section.grids[0].columns] == ["measure", "baseline", "new", "difference"]
    assert all(len(row) == 4 for row in section.grids[0].rows)
    assert not any(note.startswith("intervals") for note in section.footnotes)


def test_the_name_of_the_baseline_stays_text(hostile: str) -> None:
    new, comparison = pair(n=40, name=hostile)
    expected = f"difference to the baseline {printable(hostile)} on the same rows"
    assert comparison_section(comparison, new).lead == expected
    assert re.sub(r"\s", "", expected) in re.sub(r"\s", "", shown(new, comparison))


def test_the_widest_numbers_are_not_folded() -> None:
    new, comparison = pair(confidence=0.999)
    widest = {
        name: Difference(-0.00001, Interval(-0.99999, -0.00001, 0.999, "x" * 30), None)
        for name in comparison.differences
    }
    text = shown(new, dataclasses.replace(comparison, differences=widest))
    assert text.count(">-0.0001  [<-0.9999, >-0.0001]") == len(widest)
    large = {"log_loss": Difference(-712.4002, Interval(-1234.5678, 123456.7891, 0.999, "x"), None)}
    big = dataclasses.replace(new, log_loss=dataclasses.replace(new.log_loss, value=123456.7891))
    text = shown(big, dataclasses.replace(comparison, differences=large))
    assert re.search(r"123456\.7891\s+-712\.4002\s+\[-1234\.5678, \+123456\.7891\]", text)
