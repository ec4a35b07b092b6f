"""Gates fail closed: what is undefined, NaN, infinite or of no rows meets no requirement of any name and operator."""

import dataclasses
import itertools
import math
from collections.abc import Iterator
from typing import Any

import numpy as np
import pytest

from headeval.category_report import CategoriesReport, JudgedCategory
from headeval.comparison import COMPARED, DECISION_RATES, Comparison
from headeval.core.intervals import Difference, Interval
from headeval.core.thresholds import DecisionChanges
from headeval.errors import UsageError
from headeval.evaluation import METRICS, Evaluation, evaluate
from headeval.metric import Metric
from headeval.multiclass import CLASS_METRICS, CLASS_RATES, ClassEvaluation, evaluate_classes
from headeval.report import Report, Slice
from headeval.requirement_parsing import Part, Requirement, parse_requirement
from headeval.requirement_scope import of_categories, of_classifier
from headeval.requirements import Verdict, decide, decide_each, held_back, undecided

NAN, INFINITE = math.nan, math.inf
PARTS: tuple[Part, ...] = ("value", "lower", "upper")
OPERATORS = (">=", "<=", ">", "<")
BOUNDS = (-1e308, 0.0, 0.5, 1e308)
ASKED: list[tuple[Part, str, float]] = list(itertools.product(PARTS, OPERATORS, BOUNDS))
EVALUATION = evaluate([0.9, 0.6, 0.4, 0.1], [1, 1, 0, 0], kind="prob", n_resamples=0)
CLASSES: ClassEvaluation = evaluate_classes(
    [[0.7, 0.2, 0.1], [0.1, 0.8, 0.1], [0.2, 0.2, 0.6]], [0, 1, 2], kind="prob", classes=("a", "b", "c"), n_resamples=0
)
COMPARABLE = ("auc", *COMPARED, *DECISION_RATES)
UNMEASURED = (None, NAN, INFINITE, -INFINITE)


def interval(lower: float, upper: float) -> Interval:
    return Interval(lower, upper, 0.95, "by hand")


def named(name: str, metric: Metric) -> dict[str, Any]:
    return {name: metric}


def broken() -> Iterator[Metric]:
    """No number, and whatever may stand beside it, even an interval that holds every bound."""
    everything = interval(-INFINITE, INFINITE)
    for value, beside in itertools.product(UNMEASURED, (None, interval(-0.5, 1.5), everything)):
        yield Metric(value, "", beside)
    yield from (Metric(value, "no row", everything, guarantee=everything) for value in UNMEASURED)


BROKEN = list(broken())


def part_of(metric: Metric, name: str = "auc", value: str = "de", *, n: int = 40) -> Slice:
    """A slice in which the metric is what is given."""
    half = n // 2
    whole = evaluate([0.9] * half + [0.1] * half, [1] * half + [0] * half, kind="prob", n_resamples=0)
    return Slice("language", value, dataclasses.replace(whole, **named(name, metric)))


# --- one classifier


@pytest.mark.parametrize("name", METRICS)
def test_a_metric_that_is_no_number_meets_no_requirement_of_any_operator_and_bound(name: str) -> None:
    for metric in BROKEN:
        evaluation = dataclasses.replace(EVALUATION, **named(name, metric))
        for part, comparison, bound in ASKED:
            found = decide(Requirement(name, comparison, bound, part), evaluation)
            assert found.verdict is not Verdict.MET, (metric, found)
            if metric.value is None or math.isnan(metric.value):
                assert (found.verdict, found.value) == (Verdict.UNDECIDED, None)
                assert found.reason
            assert not Report({}, "", evaluation, decisions=(found,)).passed


@pytest.mark.parametrize("name", METRICS)
def test_an_interval_that_is_not_there_meets_no_requirement_on_its_ends(name: str) -> None:
    for beside in (None, interval(NAN, NAN), interval(NAN, 1.0), interval(0.0, NAN)):
        evaluation = dataclasses.replace(EVALUATION, **named(name, Metric(0.5, "", beside)))
        for part, comparison, bound in ASKED:
            if part != "value":
                found = decide(Requirement(name, comparison, bound, part), evaluation)
                assert (found.verdict, found.value) == (Verdict.UNDECIDED, None)


@pytest.mark.parametrize("name", METRICS)
def test_an_infinite_end_of_an_interval_meets_no_requirement(name: str) -> None:
    evaluation = dataclasses.replace(EVALUATION, **named(name, Metric(0.5, "", interval(-INFINITE, INFINITE))))
    for part, comparison, bound in ASKED:
        if part != "value":
            assert decide(Requirement(name, comparison, bound, part), evaluation).verdict is not Verdict.MET


@pytest.mark.parametrize("name", COMPARABLE)
def test_a_difference_that_is_no_number_or_not_there_meets_no_requirement(name: str) -> None:
    for value, beside in itertools.product((NAN, INFINITE, -INFINITE), (None, interval(-1, 1), interval(NAN, NAN))):
        differences = {name: Difference(value, beside, None)}
        for part, comparison, bound in ASKED:
            requirement = Requirement(name, comparison, bound, part, difference=True)
            found = decide(requirement, EVALUATION, compared(differences))
            assert found.verdict is not Verdict.MET, found
            assert decide(requirement, EVALUATION, compared({})).verdict is Verdict.UNDECIDED


def compared(differences: dict[str, Difference]) -> Comparison:
    return Comparison("old", EVALUATION, differences, DecisionChanges(0, 0), 0, 0, 1.0)


def test_every_form_that_require_knows_is_among_those_above() -> None:
    """Whatever is parsed is a name, a part, an operator and perhaps a difference: no other form comes to a verdict."""
    for name, suffix, comparison in itertools.product(
        METRICS | CLASS_METRICS, ("", ".lower", ".upper", ".diff", ".diff.lower", ".diff.upper"), OPERATORS
    ):
        try:
            found = parse_requirement(f"{name}{suffix}{comparison}0.5", baseline=True, of_parts=True)
        except UsageError:
            continue
        assert (found.part in PARTS, found.comparison in OPERATORS) == (True, True)
        assert found.metric in (COMPARABLE if found.difference else METRICS | CLASS_METRICS)


# --- several classes: all together, and each


@pytest.mark.parametrize("name", CLASS_METRICS)
def test_a_metric_of_all_classes_that_is_no_number_meets_no_requirement(name: str) -> None:
    for metric in BROKEN:
        classes = dataclasses.replace(CLASSES, **named(name, metric))
        for part, comparison, bound in ASKED:
            found = decide(Requirement(name, comparison, bound, part), EVALUATION, None, classes)
            assert found.verdict is not Verdict.MET, found


@pytest.mark.parametrize("name", CLASS_RATES)
@pytest.mark.parametrize("of", ["a", "*"])
def test_a_metric_of_a_class_that_is_no_number_meets_no_requirement(name: str, of: str) -> None:
    for metric in BROKEN:
        first, *others = CLASSES.per_class
        classes = dataclasses.replace(CLASSES, per_class=(dataclasses.replace(first, **named(name, metric)), *others))
        for part, comparison, bound in ASKED:
            asked = of_classifier([Requirement(name, comparison, bound, part, of=of)], [], CLASSES.classes)
            assert len(asked) == (3 if of == "*" else 1)
            decisions = tuple(decide(requirement, EVALUATION, None, classes) for requirement in asked)
            assert decisions[0].verdict is not Verdict.MET
            assert not Report({}, "", EVALUATION, decisions=decisions, classes=classes).passed


# --- several categories


@pytest.mark.parametrize("name", METRICS)
@pytest.mark.parametrize("of", ["hate", "*"])
def test_a_metric_of_a_category_that_is_left_out_meets_no_requirement(name: str, of: str) -> None:
    """The other category meets everything that can be met; of `hate` there are no rows."""
    parts = (JudgedCategory("hate", 9, None, "no label"), JudgedCategory("spam", 0, Report({}, "", EVALUATION)))
    for part, comparison, bound in ASKED:
        asked = of_categories([Requirement(name, comparison, bound, part, of=of)], ["hate", "spam"])
        decisions = tuple(
            undecided(requirement, "no label") if requirement.of == "hate" else decide(requirement, EVALUATION)
            for requirement in asked
        )
        assert (decisions[0].verdict, decisions[0].reason) == (Verdict.UNDECIDED, "no label")
        assert not CategoriesReport({}, parts, decisions).passed


# --- every slice


@pytest.mark.parametrize("name", METRICS)
def test_no_requirement_on_each_slice_is_met_where_no_slice_has_the_metric(name: str) -> None:
    for value in UNMEASURED:
        slices = [part_of(Metric(value, "why", interval(-0.5, 1.5)), name)]
        for some in ([], slices, slices * 2):
            for part, comparison, bound in ASKED:
                (found,) = decide_each([Requirement(name, comparison, bound, part)], some, 0)
                assert found.verdict is not Verdict.MET, found
                assert not Report({}, "", EVALUATION, each=(found,)).passed


@pytest.mark.parametrize("value", [NAN, INFINITE, -INFINITE])
def test_a_slice_whose_metric_is_nan_or_infinite_is_not_passed_over_beside_slices_that_meet_it(value: float) -> None:
    good = part_of(Metric(0.97, "", interval(0.9, 1.0)), value="en")
    for part, bound in (("value", 0.5), ("lower", 0.5), ("upper", 0.5)):
        (found,) = decide_each([parse_requirement(f"auc{'' if part == 'value' else f'.{part}'}>={bound}")], [good], 0)
        assert found.verdict is Verdict.MET
        (found,) = decide_each([found.requirement], [good, part_of(Metric(value))], 0)
        assert found.verdict is not Verdict.MET
        assert [name for _, name, _ in found.failing] == ["de"]


def test_a_slice_without_the_metric_is_named_as_not_judged() -> None:
    """No row of it is positive, so that no recall could be too low; it neither meets nor fails the requirement."""
    good = part_of(Metric(0.97), value="en")
    (found,) = decide_each([parse_requirement("auc>=0.5")], [good, part_of(Metric(None, "no row is positive"))], 0)
    assert (found.verdict, found.judged) == (Verdict.MET, 1)
    assert found.skipped == (("language", "de", "no row is positive"),)


# --- together


def test_one_requirement_that_is_not_met_is_enough() -> None:
    met = decide(parse_requirement("auc>=0.5"), EVALUATION)
    assert Report({}, "", EVALUATION, decisions=(met, met)).passed
    for other in (undecided(met.requirement, "why"), held_back(met, "the rows made the head")):
        for decisions in ((met, other), (other, met)):
            assert not Report({}, "", EVALUATION, decisions=decisions).passed


def test_no_rows_are_refused_and_never_evaluated() -> None:
    with pytest.raises(ValueError, match="at least one row"):
        evaluate([], [], kind="prob")
    with pytest.raises(ValueError, match="at least one row"):
        evaluate_classes(np.empty((0, 3)), [], kind="prob", classes=("a", "b", "c"))


def undefined_of(evaluation: Evaluation) -> set[str]:
    return {info.name for info, metric in evaluation.metrics() if metric.value is None}


@pytest.mark.parametrize(
    ("labels", "threshold", "expected"),
    [
        ([1, 1, 1], 0.5, {"specificity", "fpr"}),
        ([0, 0, 0], 0.5, {"recall"}),
        ([1, 1, 1], 0.95, {"specificity", "fpr", "precision"}),
        ([0, 0, 0], 0.95, {"recall", "precision", "f1"}),
        ([1, 0, 1], 0.95, {"precision"}),
    ],
)
def test_what_has_no_rows_is_undefined_by_name(labels: list[int], threshold: float, expected: set[str]) -> None:
    """Counted by hand: a rate whose denominator is 0; and without both classes nothing is ranked."""
    found = undefined_of(evaluate([0.9, 0.6, 0.7], labels, kind="prob", threshold=threshold, n_resamples=0))
    ranked = {name for name, info in METRICS.items() if info.group == "ranking"}
    assert found - {"calibration_slope", "calibration_intercept"} == expected | (
        ranked if len({*labels}) == 1 else set()
    )
