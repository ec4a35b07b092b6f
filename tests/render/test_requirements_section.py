"""Requirements at a terminal: asked, measured and decided are told apart, and a verdict is a word."""

import dataclasses
import io
import re
from typing import Any

import numpy as np
import pytest
from rich.cells import cell_len
from rich.console import Console

from headeval.comparison import compare
from headeval.evaluation import Evaluation, evaluate
from headeval.multiclass import evaluate_classes
from headeval.printable import printable
from headeval.render.requirements import MOST_NAMED, requirements_section, verdict_line
from headeval.render.sections import Section
from headeval.render.terminal import render_report
from headeval.report import Report, Slice
from headeval.requirement_parsing import parse_requirement
from headeval.requirement_scope import of_classifier
from headeval.requirements import Verdict, decide, decide_each
from headeval.scored_rows import ScoredRows


def counted(tp: int, fp: int, fn: int, tn: int, **also: Any) -> Evaluation:
    scores = [0.9] * (tp + fp) + [0.1] * (fn + tn)
    return evaluate(scores, [1] * tp + [0] * fp + [1] * fn + [0] * tn, kind="prob", n_resamples=0, **also)


WHOLE = counted(80, 20, 20, 180)


def report(
    *asked: str, each: tuple[str, ...] = (), slices: tuple[Slice, ...] = (), whole: Evaluation = WHOLE
) -> Report:
    decisions = tuple(decide(parse_requirement(text), whole) for text in asked)
    return Report(
        {},
        "held-out",
        whole,
        decisions=decisions,
        each=decide_each([parse_requirement(text, each=True) for text in each], slices, 30),
    )


def section(judged: Report) -> Section:
    found = requirements_section(judged)
    assert found is not None
    return found


def shown(judged: Report) -> str:
    raw = io.BytesIO()
    file = io.TextIOWrapper(raw, encoding="utf-8", newline="\n")
    Console(file=file, width=80).print(render_report(judged))
    file.flush()
    text = raw.getvalue().decode()
    assert max(map(cell_len, text.splitlines())) <= 80
    return text[text.index("\nRequirements") :]


def test_nothing_required_is_no_section() -> None:
    assert requirements_section(report()) is None


def test_plain_metrics_stand_beside_what_was_measured() -> None:
    found = section(report("recall>=0.75", "fpr<0.05", "n>=1000"))
    (grid,) = found.grids
    assert [column.heading for column in grid.columns] == ["requirement", "verdict", "measured"]
    assert grid.rows == (
        ("recall >= 0.75", "met", "0.8000"),
        ("fpr < 0.05", "NOT MET", "0.1000"),
        ("n >= 1000", "NOT MET", "300"),
    )
    assert grid.tones == ("good", "bad", "bad")
    assert found.footnotes == ()


def test_bounds_stand_beside_the_metric_and_the_interval_they_are_an_end_of() -> None:
    """The exact interval, which is held against the bound, and not Wilson's, which is shown elsewhere."""
    judged = report("recall.lower>=0.75", "auc>=0.8", "recall.upper>=0.85", "fpr.upper<=0.05")
    exact = WHOLE.recall.guarantee
    assert exact is not None
    assert WHOLE.fpr.guarantee is not None
    of_recall = f"0.8000 [{exact.lower:.4f}, {exact.upper:.4f}]"
    of_fpr = f"0.1000 [{WHOLE.fpr.guarantee.lower:.4f}, {WHOLE.fpr.guarantee.upper:.4f}]"
    (grid,) = section(judged).grids
    assert [column.heading for column in grid.columns] == ["requirement", "verdict", "value", "of"]
    assert grid.rows == (
        ("recall.lower >= 0.75", "UNDECIDED", f"{exact.lower:.4f}", of_recall),
        ("auc >= 0.8", "met", "0.8500", ""),
        ("recall.upper >= 0.85", "met", f"{exact.upper:.4f}", of_recall),
        ("fpr.upper <= 0.05", "NOT MET", f"{WHOLE.fpr.guarantee.upper:.4f}", of_fpr),
    )
    assert grid.tones == ("doubtful", "good", "good", "bad")


def test_undefined_is_shown_as_undefined_with_its_reason() -> None:
    judged = report("recall>=0.5", "recall.lower>=0.5", whole=counted(0, 1, 0, 9))
    found = section(judged)
    assert found.grids[0].rows == (
        ("recall >= 0.5", "UNDECIDED", "undefined", ""),
        ("recall.lower >= 0.5", "UNDECIDED", "undefined", ""),
    )
    assert found.footnotes == ("recall >= 0.5: no row is positive", "recall.lower >= 0.5: no row is positive")


def test_without_intervals_a_bound_has_none_to_show() -> None:
    found = section(report("recall.lower>=0.5", whole=counted(8, 1, 2, 9, confidence=None)))
    assert found.grids[0].rows == (("recall.lower >= 0.5", "UNDECIDED", "undefined", "0.8000 –"),)
    assert found.footnotes == ("recall.lower >= 0.5: intervals were not asked for",)


def test_a_value_shows_on_which_side_of_its_bound_it_lies_and_the_bound_is_not_rounded() -> None:
    whole = counted(2, 0, 1, 3)
    found = section(report("recall>=0.66666", "recall>=0.66667", whole=whole))
    assert found.grids[0].rows == (
        ("recall >= 0.66666", "met", "0.6667"),
        ("recall >= 0.66667", "NOT MET", "0.666667"),
    )


def parts(n: int, **also: Any) -> tuple[Slice, ...]:
    """n failing slices of recall 1/2, one that passes, one too small."""
    failing = [Slice("team", f"t{i:02}", counted(10, 0, 10, 20)) for i in range(n)]
    return (*failing, Slice("team", "good", counted(20, 0, 0, 20)), Slice("team", "tiny", counted(1, 0, 1, 1)))


def test_requirements_of_every_slice_are_counted_and_the_failing_ones_named() -> None:
    found = section(report(each=("recall>=0.8", "fpr<=0.5"), slices=parts(2)))
    (grid,) = found.grids
    assert [column.heading for column in grid.columns] == [
        "every slice",
        "verdict",
        "slices judged",
        "failing",
        "skipped",
    ]
    assert grid.rows == (("recall >= 0.8", "NOT MET", "3", "2", "1"), ("fpr <= 0.5", "met", "3", "0", "1"))
    assert grid.tones == ("bad", "good")
    assert found.footnotes == (
        "recall >= 0.8 is not met in team=t00 0.5000, team=t01 0.5000",
        "recall >= 0.8 is not judged (fewer than 30 rows) in team=tiny",
        "fpr <= 0.5 is not judged (fewer than 30 rows) in team=tiny",
    )


def test_of_many_failing_slices_the_first_are_named_and_the_rest_counted() -> None:
    note, _ = section(report(each=("recall>=0.8",), slices=parts(MOST_NAMED + 3))).footnotes
    assert note.count("team=") == MOST_NAMED
    assert note.endswith(", 3 more")
    note, _ = section(report(each=("recall>=0.8",), slices=parts(MOST_NAMED))).footnotes
    assert "more" not in note


def test_slices_that_are_undecided_are_told_from_those_that_fail() -> None:
    slices = (Slice("team", "sure", counted(10, 0, 90, 20)), Slice("team", "unsure", counted(20, 0, 20, 20)))
    notes = section(report(each=("recall.lower>=0.4",), slices=slices)).footnotes
    assert [note.rpartition(" ")[0] for note in notes] == [
        "recall.lower >= 0.4 is not met in team=sure",
        "recall.lower >= 0.4 is undecided in team=unsure",
    ]


def test_slices_that_could_not_be_judged_are_no_success() -> None:
    found = section(report("auc>=0.1", each=("recall>=0.8",), slices=parts(0)[1:]))
    assert len(found.grids) == 2
    assert found.grids[1].rows == (("recall >= 0.8", "UNDECIDED", "0", "0", "1"),)
    assert found.footnotes == (
        "recall >= 0.8 is not judged (fewer than 30 rows) in team=tiny",
        "recall >= 0.8: no slice could be judged",
    )


def test_hostile_names_of_slices_stay_text(hostile: str) -> None:
    judged = report(each=("recall>=0.8",), slices=(Slice(hostile, hostile, counted(10, 0, 10, 20)),))
    (note,) = section(judged).footnotes
    assert note == f"recall >= 0.8 is not met in {printable(hostile)}={printable(hostile)} 0.5000"
    assert re.sub(r"\s", "", note) in re.sub(r"\s", "", shown(judged))


def test_eighty_columns_hold_every_number_of_the_longest_requirements() -> None:
    p, old = [0.9] * 4 + [0.2, 0.1] * 30, [0.8] * 2 + [0.3] * 62
    labels = [1] * 4 + [0] * 60
    both = [evaluate(scores, labels, kind="prob", n_resamples=60) for scores in (p, old)]
    rows = [ScoredRows.checked(scores, labels, kind="prob") for scores in (p, old)]
    comparison = compare(both[0], both[1], rows[0], rows[1], name="old", resampling=both[0].resampling)
    asked = ("recall_at_0_1pct_fpr.diff.lower>=-0.12345678901", "calibration_intercept.upper<=0.30000000000000004")
    decisions = tuple(decide(parse_requirement(text), both[0], comparison) for text in asked)
    judged = Report({}, "held-out", both[0], decisions=decisions, comparison=comparison)
    lines = shown(judged).splitlines()
    (grid,) = section(judged).grids
    for row in grid.rows:
        numbers = r"\s+".join(map(re.escape, filter(None, row[1:3])))
        assert any(re.search(numbers + r"\s", f"{line} ") for line in lines), row


@pytest.mark.parametrize(
    ("verdicts", "text"),
    [
        ("", ""),
        ("m", "The requirement is met."),
        ("n", "The requirement is not met."),
        ("u", "The requirement is undecided."),
        ("mm", "All 2 requirements met."),
        ("mnu", "1 of 3 requirements not met, 1 undecided."),
        ("mnn", "2 of 3 requirements not met."),
        ("muu", "2 of 3 requirements undecided."),
    ],
)
def test_one_sentence_tells_the_outcome(verdicts: str, text: str) -> None:
    by_letter = {"m": Verdict.MET, "n": Verdict.NOT_MET, "u": Verdict.UNDECIDED}
    assert verdict_line([by_letter[letter] for letter in verdicts]) == text


CLASSES = evaluate_classes(
    np.eye(3)[[0, 0, 1, 2, 1, 0]] * 0.7 + 0.1,
    [0, 0, 1, 2, 2, 1],
    kind="prob",
    classes=("safe", "rude", "hate"),
    n_resamples=0,
)


@pytest.mark.parametrize(
    ("asked", "told", "plain"),
    [
        ("hate:recall.lower", "of the rows of hate, those whose likeliest class it is", "flagged at the threshold"),
        ("rude:recall", "of the rows of rude, those whose likeliest class it is", "of hate, flagged at the threshold"),
        ("hate:precision", "of the rows for which hate is likeliest, those of it", "flagged at the threshold"),
        ("hate:f1", "harmonic mean of precision and recall of hate as the likeliest class", "flagged at the threshold"),
        (
            "hate:ece",
            "mean gap between P(hate) and its share, in the bins of the class-wise ECE",
            "of hate, as --ece-c",
        ),
        ("hate:auc", "hate against the rest", "the same number"),
        ("rude:auc", "rude against the rest", "hate"),
        (
            "*:precision",
            "of the rows for which the class is likeliest, those of it",
            "of hate, flagged at the threshold",
        ),
    ],
)
def test_of_one_class_of_several_a_name_means_something_else_and_that_is_said(
    asked: str, told: str, plain: str
) -> None:
    """hate:recall is of the likeliest class, recall of the threshold: the two numbers differ."""
    texts = (f"{asked}>=0.1", "recall>=0.1", "macro_f1>=0.1")
    wanted = of_classifier([parse_requirement(text, of_parts=True) for text in texts], [], CLASSES.classes)
    decisions = tuple(decide(one, WHOLE, None, CLASSES) for one in wanted)
    judged = Report({}, "held-out", WHOLE, decisions=decisions, classes=CLASSES)
    found = requirements_section(judged, judged.classes)
    assert found is not None
    (note,) = (note for note in found.footnotes if "without a prefix" in note)
    of, _, metric = asked.partition(".")[0].partition(":")
    names = ", ".join(f"{name}:{metric}" for name in (CLASSES.classes if of == "*" else [of]))
    assert note.startswith(f"{names}: {told}; without a prefix: {plain}")
    assert note in " ".join(shown(judged).split())


def test_where_there_are_two_classes_nothing_is_said_of_a_prefix() -> None:
    """In a folder of heads hate:recall is at the threshold, as recall is of one head."""
    wanted = [parse_requirement("hate:recall>=0.1", of_parts=True)]
    decisions = tuple(decide(dataclasses.replace(one, of=""), WHOLE) for one in wanted)
    of_category = tuple(dataclasses.replace(one, requirement=wanted[0]) for one in decisions)
    assert section(Report({}, "held-out", WHOLE, decisions=of_category)).footnotes == ()
