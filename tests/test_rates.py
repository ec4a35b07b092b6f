"""Rates and their intervals, against scipy and against what weights and groups must mean."""

from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.stats import beta, binomtest

from headeval.core.thresholds import ConfusionCounts
from headeval.metric import Metric
from headeval.rates import rates, rates_of_rows
from headeval.scored_rows import ScoredRows

COUNTS = [(3, 2, 1, 4), (0, 0, 5, 5), (7, 0, 0, 9), (1, 0, 0, 1), (40, 3, 11, 946), (0, 2, 0, 3), (2, 0, 3, 0)]
# Bounds are found by bisection and by closed forms here and by scipy's own routines there.
CLOSE = {"rel": 1e-9, "abs": 1e-12}


def parts(tp: int, fp: int, fn: int, tn: int) -> dict[str, tuple[int, int]]:
    """Successes and the rows they are among, from the definitions."""
    n = tp + fp + fn + tn
    return {
        "prevalence": (tp + fn, n),
        "accuracy": (tp + tn, n),
        "precision": (tp, tp + fp),
        "recall": (tp, tp + fn),
        "specificity": (tn, tn + fp),
        "fpr": (fp, tn + fp),
        "flag_rate": (tp + fp, n),
    }


def scored(rows: list[tuple[float, int]], **also: object) -> ScoredRows:
    return ScoredRows.checked([p for p, _ in rows], [y for _, y in rows], kind="prob", **also)


def bounds(metric: Metric) -> tuple[float, float, float, float]:
    assert metric.interval is not None
    assert metric.guarantee is not None
    return (metric.interval.lower, metric.interval.upper, metric.guarantee.lower, metric.guarantee.upper)


@pytest.mark.parametrize("counts", COUNTS)
@pytest.mark.parametrize("confidence", [0.8, 0.95, 0.999])
def test_shown_and_exact_intervals_are_those_of_scipy(counts: tuple[int, int, int, int], confidence: float) -> None:
    found = rates(ConfusionCounts(*counts), confidence=confidence)
    for name, (successes, n) in parts(*counts).items():
        metric = found[name]
        if not n:
            assert metric.value is None
            continue
        assert metric.value == float(Fraction(successes, n))
        test = binomtest(successes, n)
        expected = [*test.proportion_ci(confidence, method="wilson"), *test.proportion_ci(confidence, method="exact")]
        assert bounds(metric) == pytest.approx(expected, **CLOSE), name
        assert metric.interval is not None
        assert metric.guarantee is not None
        assert (metric.interval.method, metric.guarantee.method) == ("Wilson", "Clopper-Pearson")
        assert metric.gate_interval is metric.guarantee  # what gates are held against


@pytest.mark.parametrize("counts", COUNTS)
def test_the_interval_of_f1_is_carried_over_from_the_share_it_is_a_map_of(counts: tuple[int, int, int, int]) -> None:
    tp, fp, fn, _ = counts
    metric = rates(ConfusionCounts(*counts), confidence=0.9)["f1"]
    assert metric.value == float(Fraction(2 * tp, 2 * tp + fp + fn))
    test = binomtest(tp, tp + fp + fn)
    shares = [*test.proportion_ci(0.9, method="wilson"), *test.proportion_ci(0.9, method="exact")]
    assert bounds(metric) == pytest.approx([2 * j / (1 + j) for j in shares], **CLOSE)


def test_the_exact_interval_of_f1_covers_the_true_f1_in_simulated_samples() -> None:
    """100 rows, a tenth of them positive; at least 95 % up to three standard errors of 4,000 samples."""
    probability = np.array([0.07, 0.05, 0.03, 0.85])
    truth = 2 * 0.07 / (2 * 0.07 + 0.05 + 0.03)
    drawn, times = np.unique(
        np.random.default_rng(0).multinomial(100, probability, size=4000), axis=0, return_counts=True
    )
    held = {True: 0, False: 0}
    for counts, many in zip(drawn.tolist(), times.tolist(), strict=True):
        metric = rates(ConfusionCounts(*counts), confidence=0.95)["f1"]
        for exact, interval in ((False, metric.interval), (True, metric.guarantee)):
            held[exact] += many * (interval is not None and interval.lower <= truth <= interval.upper)
    assert held[True] / 4000 >= 0.95 - 3 * np.sqrt(0.05 * 0.95 / 4000)
    assert held[False] / 4000 >= 0.93


@pytest.mark.parametrize(
    ("counts", "undefined"),
    [
        ((0, 0, 3, 2), {"precision": "nothing is flagged"}),
        ((0, 1, 0, 2), {"recall": "no row is positive"}),
        ((1, 0, 2, 0), {"specificity": "no row is negative", "fpr": "no row is negative"}),
        (
            (0, 0, 0, 2),
            {
                "precision": "nothing is flagged",
                "recall": "no row is positive",
                "f1": "no row is positive and nothing is flagged",
            },
        ),
    ],
)
def test_an_undefined_rate_has_a_reason_and_no_interval(
    counts: tuple[int, int, int, int], undefined: dict[str, str]
) -> None:
    found = rates(ConfusionCounts(*counts), confidence=0.95)
    assert {name: metric for name, metric in found.items() if metric.value is None} == {
        name: Metric(None, reason) for name, reason in undefined.items()
    }


def test_without_confidence_there_are_values_and_no_interval() -> None:
    plain, none = (rates(ConfusionCounts(3, 2, 1, 4), confidence=confidence) for confidence in (0.95, None))
    rows = scored([(0.9, 1), (0.2, 0)], weights=[1.0, 2.0])
    for found in (none, rates_of_rows(rows, 0.5, confidence=None)):
        assert all(metric.interval is metric.guarantee is None for metric in found.values())
    assert {name: metric.value for name, metric in none.items()} == {name: m.value for name, m in plain.items()}


ROWS = st.lists(
    st.tuples(st.sampled_from([0.0, 0.4, 0.5, 1.0]), st.integers(0, 1), st.integers(0, 3)), min_size=1, max_size=12
).filter(lambda rows: any(weight for *_, weight in rows))


@given(ROWS)
def test_whole_weights_are_repeated_rows(rows: list[tuple[float, int, int]]) -> None:
    weighted = rates_of_rows(scored([row[:2] for row in rows], weights=[w for *_, w in rows]), 0.5, confidence=0.9)
    repeated = rates_of_rows(scored([row[:2] for row in rows for _ in range(row[2])]), 0.5, confidence=0.9)
    for name, metric in weighted.items():
        assert metric.value == repeated[name].value, name
        assert (metric.interval is None) == (metric.value is None), name
        assert bool(metric.reason) == (metric.value is None), name


@given(ROWS, st.booleans())
def test_no_interval_of_weighted_or_grouped_rows_has_zero_width_or_misses_its_value(
    rows: list[tuple[float, int, int]], grouped: bool
) -> None:
    also = {"groups": [w for *_, w in rows]} if grouped else {"weights": [0.1 * w for *_, w in rows]}
    for metric in rates_of_rows(scored([row[:2] for row in rows], **also), 0.5, confidence=0.9).values():
        if metric.value is not None:
            lower, upper, least, most = bounds(metric)
            assert 0 <= lower < upper <= 1
            assert 0 <= least < most <= 1
            assert lower <= metric.value <= upper
            assert least <= metric.value <= most


MIXED = [(0.9, 1), (0.8, 1), (0.7, 0), (0.3, 1), (0.2, 0), (0.1, 0), (0.6, 1)]


def test_equal_weights_and_groups_of_one_row_cost_nothing() -> None:
    plain = rates_of_rows(scored(MIXED), 0.5, confidence=0.95)
    for also in ({"weights": np.full(7, 2.5)}, {"groups": np.arange(7)}, {"weights": np.ones(7), "groups": range(7)}):
        found = rates_of_rows(scored(MIXED, **{key: list(value) for key, value in also.items()}), 0.5, confidence=0.95)
        for name, metric in found.items():
            assert metric.value == plain[name].value
            assert bounds(metric) == pytest.approx(bounds(plain[name]), **CLOSE), name


def test_rows_repeated_within_a_group_tell_no_more_than_once() -> None:
    """G groups of two equal rows are worth between G - 1 and G rows: how groups differ is estimated from the groups,
    with the factor G/(G - 1), how rows differ from all 2G rows."""
    once = rates_of_rows(scored(MIXED), 0.5, confidence=0.95)
    twice = rates_of_rows(scored(MIXED * 2, groups=np.tile(np.arange(7), 2)), 0.5, confidence=0.95)
    for name, (k, n) in parts(3, 1, 1, 2).items():
        assert twice[name].value == once[name].value
        lower, upper = bounds(twice[name])[2:]
        assert lower <= bounds(once[name])[2] < bounds(once[name])[3] <= upper, name
        size = n - 1  # of the two negatives, one a group, is left one row
        assert lower >= beta.ppf(0.025, k / n * size, size - k / n * size + 1) - 1e-12, name
        assert upper <= beta.ppf(0.975, k / n * size + 1, size - k / n * size) + 1e-12, name


def test_rows_repeated_within_a_group_are_one_row_where_all_agree() -> None:
    rows = [(0.9, 1), (0.8, 1), (0.2, 0), (0.1, 0)]
    once = rates_of_rows(scored(rows), 0.5, confidence=0.95)
    twice = rates_of_rows(scored(rows * 2, groups=list("abcdabcd")), 0.5, confidence=0.95)
    for name in ("accuracy", "precision", "recall", "specificity", "fpr", "f1"):
        assert bounds(twice[name]) == pytest.approx(bounds(once[name]), **CLOSE)


def test_intervals_on_an_effective_size_are_called_so_and_no_others() -> None:
    for also in ({}, {"weights": [1.0, 2.0, 1.0, 1.0, 2.0, 1.0, 1.0]}, {"groups": [0, 0, 1, 1, 2, 2, 3]}):
        end = ", effective size" if also else ""
        for name, metric in rates_of_rows(scored(MIXED, **also), 0.5, confidence=0.95).items():
            assert metric.interval is not None
            assert metric.guarantee is not None
            methods = (metric.interval.method, metric.guarantee.method)
            assert methods == (f"Wilson{end}", f"Clopper-Pearson{end}"), name
        assert rates_of_rows(scored(MIXED, **also), 0.5, confidence=None)["recall"].guarantee is None


def test_a_class_without_weight_leaves_its_rates_undefined_and_says_that_it_is_the_weight() -> None:
    found = rates_of_rows(scored([(0.9, 1), (0.2, 0), (0.8, 0)], weights=[0.0, 1.0, 2.0]), 0.5, confidence=0.95)
    assert found["recall"] == Metric(None, "no row is positive that has any weight")
    assert found["fpr"].value == pytest.approx(2 / 3)
    assert found["prevalence"].value == 0


def test_shares_of_weight_never_exceed_one() -> None:
    """The weights of the flagged and of all rows, summed in another order, differ in the last digit."""
    found = rates_of_rows(scored([(0.9, 1)] * 4, weights=[0.3, 0.3, 1.0, 0.3]), 0.5, confidence=0.95)
    assert {found[name].value for name in ("prevalence", "accuracy", "precision", "recall", "f1", "flag_rate")} == {1.0}
