"""The terminal output fits 80 columns, loses nothing, needs no colour, and obeys no text from outside."""

import dataclasses
import io
import re
from collections.abc import Callable

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from rich.cells import cell_len
from rich.console import Console, RenderableType
from scipy.stats import binomtest

from headeval.core.logistic import fit_logistic
from headeval.core.scaling import Scaling
from headeval.core.thresholds import ConfusionCounts, DecisionChanges
from headeval.evaluation import Evaluation, evaluate
from headeval.printable import printable
from headeval.render.bars import bar_text
from headeval.render.terminal import render_calibration, render_fit, render_report
from headeval.report import CalibrationSummary, FitSummary, HeldOut, Report, Slice
from headeval.requirement_parsing import parse_requirement
from headeval.requirements import decide
from headeval.slicing import judge_slice


def shown(renderable: RenderableType, *, width: int = 80, encoding: str = "utf-8", color: bool = False) -> str:
    """What a console of that width and encoding receives."""
    raw = io.BytesIO()
    file = io.TextIOWrapper(raw, encoding=encoding, newline="\n")
    Console(file=file, width=width, force_terminal=color, color_system="standard" if color else None).print(renderable)
    file.flush()
    return raw.getvalue().decode(encoding)


def wilson(successes: int, n: int, digits: int = 4) -> str:
    """Wilson's 95 % interval as scipy has it."""
    lower, upper = binomtest(successes, n).proportion_ci(method="wilson")
    return f"[{lower:.{digits}f}, {upper:.{digits}f}]"


def squeezed(text: str) -> str:
    return re.sub(r"\s", "", text)


@pytest.fixture
def fitted(evaluation: Evaluation) -> FitSummary:
    story = dataclasses.replace(fit_logistic([[1.0], [-1.0]], [1, 0], l2=1.0), steps=6, gradient_norm=3.1e-13)
    return FitSummary(
        {"l2": 1.0}, story, HeldOut("out-of-fold: 5 stratified folds", evaluation, n_folds=5), ("a note",)
    )


@pytest.fixture
def calibrated() -> CalibrationSummary:
    """Six rows at logits ±1 and ±0.1; a shift by 0.5 flags the row at -0.1."""
    logits, labels = np.array([1.0, 1.0, 0.1, -0.1, -1.0, -1.0]), [1, 1, 0, 1, 0, 0]
    before, after = evaluate(logits, labels, kind="logit"), evaluate(logits + 0.5, labels, kind="logit")
    return CalibrationSummary(
        {"head": "h.json"}, Scaling("platt", 1.0, 0.5, 0.4, 0.3), before, after, DecisionChanges(1, 0)
    )


def test_eighty_columns_are_enough(
    report: Report, full_report: Report, fitted: FitSummary, calibrated: CalibrationSummary, hostile_report: Report
) -> None:
    renderables = (
        render_report(report),
        render_report(full_report),
        render_report(hostile_report),
        render_fit(fitted),
        render_calibration(calibrated),
    )
    for renderable in renderables:
        assert max(map(cell_len, shown(renderable).splitlines())) <= 80


def test_no_text_from_outside_is_lost_or_interpreted(hostile_report: Report, hostile: str) -> None:
    text = squeezed(shown(render_report(hostile_report)))
    assert squeezed(printable(hostile)) in text


def test_long_names_fold_and_no_number_does(evaluation: Evaluation) -> None:
    parts = tuple(Slice("c" * 100, f"{'Z' * 100}{i}", evaluation) for i in range(3))
    text = shown(render_report(Report({}, "held-out", evaluation, parts)))
    assert "…" not in text
    assert text.count("Z") == 600  # in both tables, at the threshold and of the scores
    for name in ("auc", "ap", "recall", "fpr"):
        metric = getattr(evaluation, name)
        assert text.count(f"{metric.value:.2f} [{metric.interval.lower:.2f}, {metric.interval.upper:.2f}]") == 3


def test_counts_of_millions_do_not_fold(evaluation: Evaluation) -> None:
    counts = ConfusionCounts(12_345_678, 12_345_679, 12_345_670, 12_345_671)
    many = dataclasses.replace(evaluation, counts=counts)
    text = shown(render_report(Report({}, "held-out", many, (Slice("source", "a long name of a source", many),))))
    assert f"  a long name of a source  49,382,698  24,691,348  {'–':>15}\n" in text
    rates = [
        f"{metric.value:.2f} [{metric.interval.lower:.2f}, {metric.interval.upper:.2f}]"
        for metric in (evaluation.recall, evaluation.fpr)
    ]
    assert f"  a long name of a source  {'  '.join(rates)}\n" in text


@pytest.mark.parametrize("width", [40, 60])
def test_a_narrow_terminal_still_gets_everything(report: Report, width: int) -> None:
    text = shown(render_report(report), width=width)
    assert max(map(cell_len, text.splitlines())) <= width
    assert squeezed(f"{report.evaluation.recall.value:.4f}") in squeezed(text)
    assert "│" not in text  # a bar that is cut off would lie


def test_verdicts_are_words_without_any_colour(report: Report) -> None:
    assert "\x1b" not in shown(render_report(report))
    lines = shown(render_report(report)).rstrip().splitlines()
    assert lines[-1] == "1 of 3 requirements not met."
    assert [re.split(r"  +", line.strip())[1] for line in lines[-5:-2]] == ["met", "NOT MET", "met"]


def test_all_met_is_said_last(report: Report) -> None:
    decisions = tuple(decide(parse_requirement(text), report.evaluation) for text in ("n>=1", "auc>=0.1", "ece<=1"))
    text = shown(render_report(Report({}, "held-out", report.evaluation, (), decisions)))
    assert text.endswith("\nAll 3 requirements met.\n")


def test_without_requirements_no_verdict_is_claimed(evaluation: Evaluation) -> None:
    text = shown(render_report(Report({}, "held-out", evaluation)))
    assert not re.search(r"^Requirement|^The requirement|\b(not )?met\b|undecided", text, re.MULTILINE | re.IGNORECASE)


@pytest.mark.parametrize("encoding", ["ascii", "latin-1", "cp1252"])
def test_consoles_that_cannot_show_everything_get_substitutes(
    encoding: str, report: Report, hostile_report: Report, fitted: FitSummary
) -> None:
    text = shown(render_report(report), encoding=encoding)
    assert "P(unsafe) >= 0.25" in text
    assert "#" in text
    assert "||g||inf" in shown(render_fit(fitted), encoding=encoding)
    shown(render_report(hostile_report), encoding=encoding)


def test_columns_stay_aligned_in_ascii(report: Report) -> None:
    """Substitutes are longer than what they stand for, so they are made before widths are measured."""
    for encoding, nothing in (("ascii", "-"), ("utf-8", "–")):
        lines = shown(render_report(report), encoding=encoding).splitlines()
        start = next(i for i, line in enumerate(lines) if line.startswith("  p "))
        end = lines[start].index("gap") + len("gap")
        rows = [line[:end].replace(", ", ",").split() for line in lines[start + 2 : start + 7]]
        assert {len(row) for row in rows} == {6}
        assert [row[-1] for row in rows].count(nothing) == 1


def test_colour_changes_no_character(report: Report) -> None:
    plain, coloured = shown(render_report(report)), shown(render_report(report), color=True)
    assert "\x1b[" in coloured
    assert re.sub(r"\x1b\[[0-9;]*m", "", coloured) == plain


@given(st.floats(0, 1), st.floats(0, 1), st.booleans(), st.integers(1, 40))
def test_a_bar_has_its_width_and_its_mark(share: float, mean: float, ascii_only: bool, width: int) -> None:
    text = bar_text(share, mean, width=width, ascii_only=ascii_only)
    mark = "|" if ascii_only else "│"
    assert len(text) == width
    assert text.count(mark) == 1
    assert text.index(mark) == min(int(mean * width), width - 1)
    assert not ascii_only or text.isascii()


@pytest.mark.parametrize(
    ("share", "text"),
    [(0.0, "       │"), (0.5, "████   │"), (1.0, "███████│"), (0.0625, "▌      │"), (0.4999, "████   │")],
)
def test_a_bar_is_as_long_as_the_share(share: float, text: str) -> None:
    assert bar_text(share, 1.0, width=8, ascii_only=False) == text


def test_the_reliability_table_can_be_checked_by_hand() -> None:
    """Two rows at 0.05 with none positive; three at 0.95 with two positive; eight empty bins between in one row."""
    evaluation = evaluate([0.05, 0.05, 0.95, 0.95, 0.95], [0, 0, 1, 1, 0], kind="prob")
    lines = shown(render_report(Report({}, "held-out", evaluation))).splitlines()
    start = next(i for i, line in enumerate(lines) if line.startswith("  p ")) + 2
    rows = [line.replace(", ", ",").split() for line in lines[start : start + 3]]
    none, two = wilson(0, 2, digits=2), wilson(2, 3, digits=2)
    assert rows[0][:6] == ["[0,0.1]", "2", "0.0500", "0.0000", none.replace(" ", ""), "-0.0500"]
    assert rows[1] == ["(0.1,0.9]", "0", "–", "–", "–", "–"]
    assert rows[2][:6] == ["(0.9,1]", "3", "0.9500", "0.6667", two.replace(" ", ""), "-0.2833"]


def test_decisions_can_be_checked_by_hand() -> None:
    """Six true positives, two false, four missed, eight passed: precision 6/8, recall 6/10, F1 2/3."""
    scores = [0.9] * 8 + [0.1] * 12
    labels = [1] * 6 + [0] * 2 + [1] * 4 + [0] * 8
    evaluation = evaluate(scores, labels, kind="prob", classes=("safe", "unsafe"))
    text = shown(render_report(Report({}, "held-out", evaluation)))
    lines = [re.split(r" {2,}", line.strip()) for line in text.splitlines()]
    assert ["unsafe", "6", "4", "10"] in lines
    assert ["safe", "2", "8", "10"] in lines
    assert ["all", "8", "12", "20"] in lines
    rates = {line[0]: line[1:4] for line in lines if len(line) > 3}
    assert rates["accuracy"] == ["0.7000", wilson(14, 20), "14/20"]
    assert rates["precision"] == ["0.7500", wilson(6, 8), "6/8"]
    assert rates["recall"] == ["0.6000", wilson(6, 10), "6/10"]
    assert rates["specificity"] == ["0.8000", wilson(8, 10), "8/10"]
    assert rates["FPR"] == ["0.2000", wilson(2, 10), "2/10"]
    assert rates["flag rate"] == ["0.4000", wilson(8, 20), "8/20"]
    # F1 = 2J/(1 + J) of the 6 among the 12 rows that are positive or flagged
    lower, upper = binomtest(6, 12).proportion_ci(method="wilson")
    assert rates["F1"][:2] == ["0.6667", f"[{2 * lower / (1 + lower):.4f}, {2 * upper / (1 + upper):.4f}]"]
    assert "flagged when P(unsafe) ≥ 0.5" in text


@pytest.mark.parametrize(
    ("positives", "negatives", "marked"), [(10, 20, False), (9, 40, True), (40, 9, True), (14, 15, True)]
)
def test_slices_of_few_rows_are_marked(positives: int, negatives: int, marked: bool) -> None:
    part = evaluate([0.9] * positives + [0.1] * negatives, [1] * positives + [0] * negatives, kind="prob")
    text = shown(render_report(Report({}, "held-out", part, (judge_slice("lang", "en", part, part),))))
    assert ("en *" in text, "* few rows" in text) == (marked, marked)


def test_an_undefined_number_of_a_slice_has_its_reason_below(evaluation: Evaluation) -> None:
    part = evaluate([0.2, 0.1], [0, 0], kind="prob")
    text = shown(render_report(Report({}, "held-out", evaluation, (Slice("lang", "en", part),))))
    assert "– undefined (recall, AUC, AP): no row is positive" in text


def test_slices_of_two_columns_stand_in_two_tables(evaluation: Evaluation) -> None:
    parts = tuple(Slice(column, "v", evaluation) for column in ("lang", "source", "lang"))
    text = shown(render_report(Report({}, "held-out", evaluation, parts)))
    assert (text.count("Slices by lang"), text.count("Slices by source")) == (1, 1)


def test_a_fit_tells_its_story_and_which_rows_it_was_judged_on(fitted: FitSummary) -> None:
    text = shown(render_fit(fitted))
    assert "converged to ‖g‖∞ ≤ 1e-09 by Newton (IRLS)" in text
    assert "out-of-fold: 5 stratified folds" in text
    assert "Reliability" in text
    assert "- a note" in text


def test_a_fit_that_did_not_converge_says_so() -> None:
    story = fit_logistic([[1.0], [-1.0], [0.3]], [1, 0, 0], l2=1e-3, iters=1)
    text = squeezed(shown(render_fit(FitSummary({}, story, HeldOut("no evaluation: --folds 0", None)))))
    assert squeezed("NOT CONVERGED after 1 step, ‖g‖∞") in text
    assert squeezed(story.reason.value) in text


def test_a_fit_without_evaluation_shows_no_number_but_says_why() -> None:
    story = fit_logistic([[1.0], [-1.0]], [1, 0], l2=1.0)
    text = shown(render_fit(FitSummary({}, story, HeldOut("no evaluation: --folds 0", None))))
    assert "CAUTION: no evaluation: --folds 0" in text
    assert "AUC" not in text


def test_a_calibration_shows_both_sides_as_in_sample(calibrated: CalibrationSummary) -> None:
    text = shown(render_calibration(calibrated))
    lines = [re.split(r" {2,}", line.strip()) for line in text.splitlines()]
    both = {line[0]: line[1:] for line in lines if len(line) == 3}
    for name, title in (("log_loss", "log loss"), ("brier", "Brier score"), ("auc", "AUC")):
        pair = [getattr(side, name).value for side in (calibrated.before, calibrated.after)]
        assert both[title] == [f"{value:.4f}" for value in pair]
    for table_before, table_after in zip(calibrated.before.calibration, calibrated.after.calibration, strict=True):
        assert both[f"ECE {table_before.convention}"] == [f"{table_before.ece:.4f}", f"{table_after.ece:.4f}"]
        assert both[f"MCE {table_before.convention}"] == [f"{table_before.mce:.4f}", f"{table_after.mce:.4f}"]
    # 2 of 3 positives flagged before; the row at -0.1 is the third
    assert both["recall at the threshold"] == ["0.6667", "1.0000"]
    assert "CAUTION: in-sample for the calibration" in text
    assert "decisions changed: 1 (1 newly flagged, 0 no longer)" in text
    assert "platt: slope 1.0000, intercept 0.5000" in text


def test_a_temperature_is_called_by_what_it_corrects(calibrated: CalibrationSummary) -> None:
    for slope, word in ((0.5, "T = 2.0000: the logits were overconfident"), (2.0, "T = 0.5000: the logits were under")):
        scaling = Scaling("temperature", slope, 0.0, 0.4, 0.3)
        summary = CalibrationSummary({}, scaling, calibrated.before, calibrated.after, DecisionChanges(4, 3))
        text = shown(render_calibration(summary))
        assert word in text
        assert "decisions changed: 7 (4 newly flagged, 3 no longer)" in text


def test_provenance_is_shown_in_order_and_readably(evaluation: Evaluation) -> None:
    provenance = {"b": 0.30000000000000004, "a": None, "list_of": ["x", "y"], "pair": {"k": True}}
    text = shown(render_report(Report(provenance, "held-out", evaluation)))
    lines = [line.split(maxsplit=1) for line in text.splitlines()[1:4]]
    assert [line[0] for line in lines] == ["b", "a", "list"]
    for value in ("0.30000000000000004", "none", "x, y", "k: yes"):
        assert value in text


@pytest.mark.parametrize("render", [render_report])
def test_rendering_prints_nothing(
    render: Callable[[Report], RenderableType], report: Report, capsys: pytest.CaptureFixture[str]
) -> None:
    render(report)
    assert capsys.readouterr() == ("", "")
