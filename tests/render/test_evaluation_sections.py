"""An evaluation at a terminal: 80 columns, whole numbers, the record's own intervals, and no undefined number."""

import dataclasses
import io
import re
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from rich.cells import cell_len
from rich.console import Console

from headeval.core.intervals import Interval
from headeval.core.thresholds import ConfusionCounts
from headeval.evaluation import METRICS, Evaluation, evaluate
from headeval.metric import Metric
from headeval.printable import printable
from headeval.render.evaluation_sections import chance, convention_bins, evaluation_sections, flagging_rule
from headeval.render.sections import Section, in_sentence
from headeval.render.terminal import render_report
from headeval.report import Report

BOUNDED = [info for info in METRICS.values() if info.has_interval]


def shown(evaluation: Evaluation) -> str:
    raw = io.BytesIO()
    file = io.TextIOWrapper(raw, encoding="utf-8", newline="\n")
    Console(file=file, width=80).print(render_report(Report({}, "held-out", evaluation)))
    file.flush()
    text = raw.getvalue().decode()
    assert max(map(cell_len, text.splitlines())) <= 80
    return text


def four(value: float) -> str:
    """A number as it must be shown: four decimals, and neither 0 nor 1 unless it is."""
    text = f"{abs(value):.4f}"
    if float(text) == 0 and value:
        return "<0.0001" if value > 0 else ">-0.0001"
    if float(text) == 1 and abs(value) < 1:
        return ">0.9999" if value > 0 else "<-0.9999"
    return f"-{text}" if value < 0 else text


def titled(evaluation: Evaluation) -> dict[str, Section]:
    return {section.title: section for section in evaluation_sections(evaluation)}


def measures(evaluation: Evaluation) -> dict[str, tuple[str, ...]]:
    """By title of the metric, the cells after it."""
    grids = [grid for section in evaluation_sections(evaluation) for grid in section.grids]
    return {row[0]: row[1:] for grid in grids if grid.columns[0].heading == "measure" for row in grid.rows}


def test_every_bounded_metric_is_shown_with_the_interval_of_the_record(evaluation: Evaluation) -> None:
    rows = measures(evaluation)
    errors = titled(evaluation)["Calibration"].grids[0]
    (line,) = [row for row in errors.rows if row[0] == "95 % interval"]
    for info in BOUNDED:
        metric = getattr(evaluation, info.name)
        expected = f"[{four(metric.interval.lower)}, {four(metric.interval.upper)}]"
        if info.name in ("ece", "ece_positive_class"):
            assert expected in line, info.name
            continue
        assert rows[info.title][:2] == (four(metric.value), expected), info.name
    text = shown(evaluation)
    for info in BOUNDED:
        interval = getattr(evaluation, info.name).interval
        assert f"[{four(interval.lower)}, {four(interval.upper)}]" in text, info.name


def test_rates_show_the_rows_behind_them_unless_rows_weigh_differently() -> None:
    p, y = [0.9] * 8 + [0.1] * 12, [1] * 6 + [0] * 2 + [1] * 4 + [0] * 8
    rows = measures(evaluate(p, y, kind="prob", n_resamples=0))
    expected = {
        "accuracy": "14/20",
        "precision": "6/8",
        "recall": "6/10",
        "specificity": "8/10",
        "FPR": "2/10",
        "F1": "",
        "flag rate": "8/20",
    }
    assert {name: rows[name][2] for name in expected} == expected
    assert rows["prevalence"][-1] == "share of positives, 10/20"
    weighted = evaluate(p, y, kind="prob", n_resamples=0, weights=np.arange(20) + 1.0)
    rows = measures(weighted)
    assert {rows[name][2] for name in expected} == {""}
    assert rows["prevalence"][-1] == "share of positives"
    decisions = titled(weighted)["Decisions"]
    assert "rates are weighted, the counts are rows" in decisions.footnotes
    assert decisions.grids[0].rows == (("1", "6", "4", "10"), ("0", "2", "8", "10"), ("all", "8", "12", "20"))


@pytest.mark.parametrize("labels", [[0] * 5, [1] * 5], ids=["no positives", "no negatives"])
def test_undefined_is_shown_as_undefined_with_its_reason(labels: list[int]) -> None:
    evaluation = evaluate([0.1, 0.2, 0.3, 0.35, 0.45], labels, kind="prob", n_resamples=40)
    rows = measures(evaluation)
    undefined = [info for info, metric in evaluation.metrics() if metric.value is None]
    assert len(undefined) > 8
    for info in undefined:
        cells = rows[info.title]
        assert cells[:2] == ("undefined", ""), info.name
        assert cells[-1] == getattr(evaluation, info.name).reason
    assert shown(evaluation).count("undefined") == len(undefined)
    assert titled(evaluation)["Ranking"].lead == ""


def test_an_infinite_log_loss_is_shown_as_such_with_its_reason() -> None:
    evaluation = evaluate([0.0, 1.0, 0.6], [1, 1, 0], kind="prob", n_resamples=40)
    assert measures(evaluation)["log loss"] == ("∞", "", "the true class was given probability 0 in 1 row")
    slope = measures(evaluation)["calibration slope"]
    assert slope == ("undefined", "", "a probability is exactly 0 or 1, so that its logit is infinite")


def test_without_intervals_no_column_promises_any() -> None:
    evaluation = evaluate([0.9, 0.6, 0.4, 0.1], [1, 0, 1, 0], kind="prob", confidence=None)
    for section in evaluation_sections(evaluation):
        for grid in section.grids:
            assert all("interval" not in column.heading for column in grid.columns)
            assert {len(row) for row in grid.rows} == {len(grid.columns)}
        assert not any("intervals" in note for note in section.footnotes)
    assert "interval" not in shown(evaluation)


@pytest.mark.parametrize(("confidence", "heading"), [(0.9, "90 % interval"), (0.999, "99.9 % interval")])
def test_intervals_are_headed_by_their_confidence(confidence: float, heading: str) -> None:
    evaluation = evaluate([0.9, 0.6, 0.4, 0.1], [1, 0, 1, 0], kind="prob", confidence=confidence, n_resamples=0)
    for title in ("Ranking", "Decisions", "Reliability"):
        assert heading in [column.heading for column in titled(evaluation)[title].grids[-1].columns]
    assert heading in [row[0] for row in titled(evaluation)["Calibration"].grids[0].rows]


def test_the_methods_of_intervals_are_told(evaluation: Evaluation) -> None:
    sections = titled(evaluation)
    assert "intervals: AUC: DeLong; average precision: bootstrap" in sections["Ranking"].footnotes
    assert "intervals: ECE, log loss: bootstrap; calibration slope: Wald" in sections["Calibration"].footnotes
    assert any(note.startswith("intervals: Wilson;") for note in sections["Decisions"].footnotes)


def test_the_best_f1_says_where_it_is_and_that_it_flatters() -> None:
    evaluation = evaluate([0.9, 0.7, 0.6, 0.4], [1, 0, 1, 0], kind="prob", n_resamples=0)
    assert measures(evaluation)["best F1"] == ("0.8000", "", "at 0.5, chosen on these very rows, so it flatters")


def test_calibration_errors_stand_beside_what_chance_would_show(evaluation: Evaluation) -> None:
    rows = {row[0]: row[1:] for row in titled(evaluation)["Calibration"].grids[0].rows}
    tables, noise = evaluation.calibration, evaluation.noise
    assert rows["bins"] == tuple(map(convention_bins, tables)) == ("15 equal-width (lo, hi]", "10 equal-width (lo, hi]")
    assert rows["ECE"] == tuple(four(table.ece) for table in tables)
    assert rows["MCE"] == tuple(four(table.mce) for table in tables)
    assert rows["corrected"] == tuple(four(part.ece_corrected) for part in noise)
    assert rows["if calibrated"] == tuple(f"{part.mean:.3f}, up to {part.quantile_95:.3f}" for part in noise)
    assert chance(noise[0]) == rows["if calibrated"][0]


def test_the_parts_of_the_brier_score_add_up_to_it(evaluation: Evaluation) -> None:
    (note,) = [note for note in titled(evaluation)["Calibration"].footnotes if note.startswith("Brier")]
    total, reliability, resolution, uncertainty, within = map(float, re.findall(r"[+-]?\d\.\d+", note))
    assert total == pytest.approx(evaluation.brier.value, abs=5e-5)
    # five numbers, each rounded to four decimals
    assert reliability - resolution + uncertainty + within == pytest.approx(total, abs=5 * 5e-5)
    assert f"{uncertainty:.4f}" == f"{250 / 1200 * 950 / 1200:.4f}"


def test_traffic_is_rounded_to_rows_and_asked_for() -> None:
    scores, labels = [0.9] * 8 + [0.1] * 2 + [0.9] + [0.1] * 99, [1] * 10 + [0] * 100
    assert "Traffic" not in titled(evaluate(scores, labels, kind="prob", n_resamples=0))
    day: dict[str, Any] = {"prevalence": 0.001, "per_day": 100_000.0}
    section = titled(evaluate(scores, labels, kind="prob", n_resamples=0, **day))["Traffic"]
    values = {row[0]: row[1] for row in section.grids[0].rows}
    expected = {"alerts": "1,079", "true alerts": "80", "false alerts": "999", "misses": "20", "precision": "0.0741"}
    assert values == expected
    assert section.lead == "expected at a prevalence of 0.1 % and 100,000 rows a day"
    alone = titled(evaluate(scores, labels, kind="prob", n_resamples=0, prevalence=0.001))["Traffic"]
    assert [row[:2] for row in alone.grids[0].rows] == [("precision", "0.0741")]
    undefined = titled(evaluate([0.9], [1], kind="prob", n_resamples=0, **day))["Traffic"]
    assert undefined.grids[0].rows[-1][:3] == ("precision", "–", "")


def test_bins_show_their_rows_and_wilsons_interval(evaluation: Evaluation) -> None:
    (grid,) = titled(evaluation)["Reliability"].grids
    table = evaluation.reliability
    filled = [row for row in grid.rows if row[1] != "0"]
    assert [row[1] for row in filled] == [str(n) for n in table.counts if n]
    intervals = [interval for interval in evaluation.reliability_intervals if interval is not None]
    for row, interval in zip(filled, intervals, strict=True):
        for shown_bound, bound in zip(row[4].strip("[]").split(", "), (interval.lower, interval.upper), strict=True):
            assert float(shown_bound.strip("<>")) == pytest.approx(bound, abs=0.0101)
    empty = [row for row in grid.rows if row[1] == "0"]
    assert all(row[2:] == ("–",) * 4 for row in empty)
    assert len(grid.bars) == len(grid.rows)


NUMBERS = st.sampled_from([0.0, 0.00001, 0.5, 0.99999, 1.0])


@settings(max_examples=25, deadline=None)
@given(st.data())
def test_no_number_is_folded_or_cut_whatever_its_width(data: st.DataObject) -> None:
    base = evaluate([0.9, 0.6, 0.4, 0.1], [1, 0, 1, 0], kind="prob", n_resamples=0, prevalence=1e-4, per_day=1e9)
    changes: dict[str, Any] = {}
    for info in BOUNDED:
        value = data.draw(NUMBERS)
        if info.scale in ("any", "positive"):
            value = data.draw(st.sampled_from([value, 12345.6789, 1e9]))
        if info.scale == "any":
            value = -value
        lower, upper = value - abs(value) / 10 - 1e-5, value + abs(value) / 10 + 1e-5
        changes[info.name] = Metric(value, interval=Interval(lower, upper, 0.95, "by hand"))
    n = data.draw(st.sampled_from([3, 12_345_678]))
    evaluation = dataclasses.replace(base, counts=ConfusionCounts(n, n, n, n), **changes)
    lines = shown(evaluation).splitlines()
    for section in evaluation_sections(evaluation):
        for grid in section.grids:
            for row in grid.rows:
                numbers = [cell for cell, column in zip(row, grid.columns, strict=True) if column.numeric and cell]
                pattern = r"\s+".join(map(re.escape, numbers))
                assert any(re.search(rf"(^|\s){pattern}(\s|$)", line) for line in lines), row


def test_class_names_stay_text_and_short_within_sentences(hostile: str) -> None:
    evaluation = evaluate([0.9, 0.2], [1, 0], kind="prob", classes=("safe", hostile), n_resamples=0)
    rule = flagging_rule(evaluation)
    assert rule == f"flagged when P({in_sentence(hostile)}) ≥ 0.5"
    assert rule.isprintable()
    text = shown(evaluation)
    assert re.sub(r"\s", "", printable(hostile))[:20] in re.sub(r"\s", "", text)
    for section in evaluation_sections(evaluation):
        texts = [section.title, section.lead, *section.footnotes]
        texts += [cell for grid in section.grids for row in grid.rows for cell in row]
        assert all(text.isprintable() for text in texts)
