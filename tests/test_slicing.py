"""A slice falls below the whole by its worst metric; small ones come last; only what is sure is called so."""

import dataclasses
from typing import Any

import pytest

from headeval.core.intervals import Interval
from headeval.evaluation import Evaluation, evaluate
from headeval.metric import Metric
from headeval.report import Slice
from headeval.slicing import judge_slice, worst_first


def counted(tp: int, fp: int, fn: int, tn: int) -> Evaluation:
    """Rows at 0.9 and 0.1, so that AUC = TPR·TNR + (TPR·FPR + FNR·TNR)/2 = (TPR + TNR)/2."""
    scores = [0.9] * (tp + fp) + [0.1] * (fn + tn)
    return evaluate(scores, [1] * tp + [0] * fp + [1] * fn + [0] * tn, kind="prob", n_resamples=0)


WHOLE = counted(80, 20, 20, 180)  # recall 0.8, FPR 0.1, AUC 0.85


@pytest.mark.parametrize(
    ("counts", "worst", "shortfall"),
    [
        ((12, 2, 8, 18), "recall", 0.8 - 0.6),
        ((19, 8, 1, 12), "fpr", 0.4 - 0.1),
        ((20, 0, 0, 20), "fpr", 0.0 - 0.1),  # better in all: a negative shortfall, the smallest gain
        ((0, 5, 0, 15), "fpr", 0.25 - 0.1),  # no positive: neither recall nor AUC
        ((14, 0, 6, 0), "recall", 0.8 - 0.7),  # no negative
    ],
)
def test_the_shortfall_is_that_of_the_worst_metric(
    counts: tuple[int, int, int, int], worst: str, shortfall: float
) -> None:
    part = judge_slice("lang", "de", counted(*counts), WHOLE)
    assert (part.column, part.value, part.worst) == ("lang", "de", worst)
    assert part.shortfall == pytest.approx(shortfall, abs=1e-12)


def test_a_lower_auc_is_a_shortfall_too() -> None:
    """Recall and FPR at the threshold are those of the whole, and every negative above it is the first of all."""
    whole = evaluate([0.9, 0.8, 0.7, 0.2, 0.1], [1, 1, 0, 0, 1], kind="prob", n_resamples=0)
    part = evaluate([0.7, 0.75, 0.8, 0.2, 0.1], [1, 1, 0, 0, 1], kind="prob", n_resamples=0)
    judged = judge_slice("lang", "de", part, whole)
    assert (judged.worst, judged.shortfall) == ("auc", pytest.approx(4 / 6 - 2 / 6))


def test_what_has_none_of_the_metrics_has_no_shortfall() -> None:
    undefined = {name: Metric(None, "no") for name in ("auc", "recall", "fpr")}
    judged = judge_slice("lang", "de", dataclasses.replace(WHOLE, **undefined), WHOLE)
    assert (judged.shortfall, judged.worst, judged.below) == (None, "", False)


@pytest.mark.parametrize(
    ("name", "interval", "below"),
    [
        ("recall", (0.5, 0.79), True),
        ("recall", (0.5, 0.8), False),
        ("recall", (0.81, 0.9), False),  # wholly better
        ("auc", (0.5, 0.84), True),
        ("auc", (0.5, 0.86), False),
        ("fpr", (0.11, 0.3), True),
        ("fpr", (0.1, 0.3), False),
        ("fpr", (0.01, 0.05), False),  # wholly better
        ("precision", (0.0, 0.1), False),  # is not looked at
    ],
)
def test_a_slice_is_below_only_where_its_interval_excludes_the_value_of_the_whole(
    name: str, interval: tuple[float, float], below: bool
) -> None:
    metric = dataclasses.replace(getattr(WHOLE, name), interval=Interval(*interval, 0.95, "by hand"))
    judged = judge_slice("lang", "de", dataclasses.replace(WHOLE, **{name: metric}), WHOLE)
    assert judged.below is below


def test_without_intervals_nothing_is_surely_below() -> None:
    part = evaluate([0.1] * 50 + [0.9] * 50, [1] * 50 + [0] * 50, kind="prob", confidence=None)
    judged = judge_slice("lang", "de", part, WHOLE)
    assert (judged.below, judged.shortfall) == (False, pytest.approx(0.9))


@pytest.mark.parametrize(
    ("counts", "small"),
    [
        ((10, 0, 0, 20), False),
        ((10, 0, 0, 19), True),
        ((9, 0, 0, 100), True),
        ((100, 0, 0, 9), True),
        ((0, 0, 0, 30), False),  # a class that is not there at all is told by what is undefined
        ((0, 0, 0, 29), True),
    ],
)
def test_few_rows_or_few_of_a_class_make_a_slice_small(counts: tuple[int, int, int, int], small: bool) -> None:
    assert judge_slice("lang", "de", counted(*counts), WHOLE).small is small


def test_the_worst_slice_comes_first_and_small_ones_last() -> None:
    def part(value: str, shortfall: float | None, *, small: bool = False) -> Slice:
        return Slice("c", value, WHOLE, shortfall=shortfall, small=small)

    given: list[Slice] = [
        part("better", -0.2),
        part("small and bad", 0.9, small=True),
        part("unknown", None),
        part("bad", 0.3),
        part("as bad", 0.3),
        part("equal", 0.0),
        part("small", None, small=True),
    ]
    expected = ["as bad", "bad", "equal", "better", "unknown", "small and bad", "small"]
    order: Any
    for order in (given, given[::-1]):
        assert [one.value for one in worst_first(order)] == expected
