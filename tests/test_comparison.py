"""A comparison sees what differs, claims nothing where nothing does, and takes what both share out of its intervals."""

import math
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.stats import binomtest
from sklearn import metrics as sk

from headeval.comparison import BY_CLASS, COMPARED, DECISION_RATES, FREELY, Comparison, compare
from headeval.core.delong import auc_difference
from headeval.core.weighted import FPR_LIMITS
from headeval.evaluation import Evaluation, evaluate
from headeval.evidence import Resampling
from headeval.scored_rows import ScoredRows

ALL = {"auc", *COMPARED, *DECISION_RATES}


def sigmoid(z: np.ndarray) -> np.ndarray:
    return np.asarray(1 / (1 + np.exp(-z)))


def compared(
    new: Any,
    baseline: Any,
    labels: Any,
    *,
    kinds: tuple[str, str] = ("logit", "logit"),
    resamples: int = 60,
    **also: Any,
) -> Comparison:
    """Both classifiers on the same rows; options of `evaluate` and columns of the rows in `also`."""
    columns = {name: also[name] for name in ("weights", "groups") if name in also}
    sides: list[tuple[Evaluation, ScoredRows]] = []
    for scores, kind in zip((new, baseline), kinds, strict=True):
        rows: Any = {"kind": kind, **columns}
        options = {name: value for name, value in also.items() if name not in columns}
        sides.append(
            (evaluate(scores, labels, n_resamples=0, **options, **rows), ScoredRows.checked(scores, labels, **rows))
        )
    resampling = Resampling.planned(sides[0][1], resamples, also.get("seed", 0))
    return compare(sides[0][0], sides[1][0], sides[0][1], sides[1][1], name="old", resampling=resampling)


def sample(n: int = 400, seed: int = 0, noise: float = 0.5) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Logits, the same with noise, labels."""
    rng = np.random.default_rng(seed)
    z = 2 * rng.normal(size=n) - 0.5
    y = (rng.random(n) < sigmoid(z)).astype(int)
    return z, z + noise * rng.normal(size=n), y


def test_differences_are_new_less_baseline_of_every_metric_compared() -> None:
    z, old, y = sample()
    found = compared(z, old, y, threshold=0.3)
    assert set(found.differences) == ALL
    p, was = sigmoid(z), sigmoid(old)
    for name, measure in (
        ("auc", sk.roc_auc_score),
        ("ap", sk.average_precision_score),
        ("brier", sk.brier_score_loss),
        ("log_loss", sk.log_loss),
    ):
        assert found.differences[name].value == pytest.approx(measure(y, p) - measure(y, was), abs=1e-12)
    for name, measure in (("recall", sk.recall_score), ("precision", sk.precision_score), ("f1", sk.f1_score)):
        assert found.differences[name].value == pytest.approx(measure(y, p >= 0.3) - measure(y, was >= 0.3), abs=1e-12)
    assert found.name == "old"


def test_changed_rows_and_mcnemar_are_counted_by_hand() -> None:
    """Each at its own threshold: new flags at 0.5, the baseline at 0.25."""
    y = np.array([1, 1, 1, 0, 0, 0, 0, 1])
    new = np.array([0.6, 0.4, 0.6, 0.6, 0.1, 0.1, 0.1, 0.5])
    old = np.array([0.2, 0.3, 0.3, 0.2, 0.3, 0.3, 0.3, 0.1])
    rows = [ScoredRows.checked(p, y, kind="prob") for p in (new, old)]
    both = [evaluate(p, y, kind="prob", threshold=t, n_resamples=0) for p, t in ((new, 0.5), (old, 0.25))]
    found = compare(both[0], both[1], rows[0], rows[1], name="old", resampling=None)
    # newly flagged: rows 1, 4, 8; no longer: rows 2, 5, 6, 7; right only by the new: 1, 5, 6, 7, 8; by the old: 2, 4
    assert (found.changes.newly_flagged, found.changes.no_longer_flagged) == (3, 4)
    assert (found.only_new_right, found.only_baseline_right) == (5, 2)
    assert found.mcnemar_p == pytest.approx(binomtest(5, 7).pvalue)
    assert all(part.interval is None for name, part in found.differences.items() if name != "auc")


@pytest.mark.parametrize("also", [(), ("weights",), ("groups",), ("weights", "groups")])
def test_a_classifier_is_no_better_than_itself_and_nobody_can_be_sure_of_that(also: tuple[str, ...]) -> None:
    z, _, y = sample(80)
    columns = {"weights": np.arange(80) % 3 + 0.5, "groups": np.arange(80) // 2}
    found = compared(z, z, y, **{name: columns[name] for name in also})
    assert set(found.differences) == ALL
    for name, part in found.differences.items():
        assert part.value == 0, name
        if name == "log_loss":  # has no largest value that rows not seen could cost
            assert part.interval is None
            continue
        assert part.interval is not None, name
        assert -1 <= part.interval.lower < 0 < part.interval.upper <= 1, name
    assert found.differences["auc"].p_value == 1
    assert (found.changes.newly_flagged, found.changes.no_longer_flagged) == (0, 0)
    assert found.mcnemar_p == (None if also else 1)


def test_equal_classifiers_are_told_apart_by_no_more_than_the_rows_allow() -> None:
    """Rows on which the two differ can be missing from m rows with a share of up to 1 − (α/2)^(1/m)."""
    z, _, y = sample(100)
    of_one_class = {"recall": y.sum(), "fpr": 100 - y.sum(), "specificity": 100 - y.sum()}
    for name, part in compared(z, z, y).differences.items():
        if name not in ("log_loss", "auc", *FPR_LIMITS):
            reach = 1 - 0.025 ** (1 / of_one_class.get(name, min(y.sum(), 100 - y.sum())))
            assert part.interval is not None
            assert (part.interval.lower, part.interval.upper) == pytest.approx((-reach, reach), rel=1e-9), name


def test_a_recall_that_rows_cannot_bound_leaves_what_both_intervals_leave() -> None:
    """100 negatives cannot tell of an FPR of 0.1 %, so neither can the difference of two recalls there."""
    z, old, y = sample(200)
    rows = [ScoredRows.checked(scores, y, kind="logit") for scores in (z, old)]
    new, was = (evaluate(scores, y, kind="logit", n_resamples=200) for scores in (z, old))
    found = compare(new, was, *rows, name="old", resampling=Resampling(200, 0, grouped=False))
    part, here, there = (
        item["recall_at_0_1pct_fpr"] if isinstance(item, dict) else item.recall_at_0_1pct_fpr.interval
        for item in (dict(found.differences), new, was)
    )
    assert here is not None
    assert there is not None
    assert here.lower == there.lower == 0
    assert part.interval is not None
    assert (part.interval.lower, part.interval.upper) == (-there.upper, here.upper)


def test_a_clearly_better_classifier_is_seen() -> None:
    z, old, y = sample(1000, noise=3)
    found = compared(z, old, y)
    for name in ("auc", "ap", "partial_auc", "accuracy", "f1", "recall", "specificity"):
        part = found.differences[name]
        assert part.interval is not None
        assert part.interval.lower > 0, name
    for name in ("brier", "log_loss", "ece_positive_class", "fpr"):
        part = found.differences[name]
        assert part.interval is not None
        assert part.interval.upper < 0, name
    assert found.mcnemar_p is not None
    assert found.mcnemar_p < 1e-6
    assert found.differences["auc"].p_value is not None
    assert found.differences["auc"].p_value < 1e-6


def test_exchanging_the_two_mirrors_everything() -> None:
    """DeLong's bounds to the last digits. The bootstrap sorts the rows by the new scores first, so that the same draws
    meet another order of the rows: its bounds are mirrored as far as resamples fix them, a tenth of the width here."""
    z, old, y = sample(300)
    one, other = compared(z, old, y, resamples=1000), compared(old, z, y, resamples=1000)
    assert (one.changes.newly_flagged, one.changes.no_longer_flagged) == (
        other.changes.no_longer_flagged,
        other.changes.newly_flagged,
    )
    assert (one.only_new_right, one.only_baseline_right) == (other.only_baseline_right, other.only_new_right)
    assert one.mcnemar_p == other.mcnemar_p
    for name, part in one.differences.items():
        back = other.differences[name]
        assert back.value == -part.value, name
        assert part.interval is not None
        assert back.interval is not None
        width = part.interval.upper - part.interval.lower
        within = 1e-12 if name == "auc" else 0.1 * width
        mirrored = (-back.interval.upper, -back.interval.lower)
        assert (part.interval.lower, part.interval.upper) == pytest.approx(mirrored, abs=within), name


def test_what_both_share_is_taken_out() -> None:
    """A paired interval of similar classifiers is far narrower than the difference of two independent ones."""
    z, old, y = sample(600, noise=0.2)
    new, baseline = (evaluate(scores, y, kind="logit", n_resamples=200) for scores in (z, old))
    found = compared(z, old, y, resamples=200).differences
    for name in ("auc", "ap", "brier", "log_loss", "recall", "accuracy", "flag_rate"):
        widths = []
        for side in (new, baseline):
            interval = getattr(side, name).interval
            widths.append(interval.upper - interval.lower)
        paired = found[name].interval
        assert paired is not None
        assert paired.upper - paired.lower < 0.6 * math.hypot(*widths), name


def test_the_interval_of_a_difference_of_rates_is_that_of_paired_rows() -> None:
    """Var = (b + c − (b − c)²/n)/n² for a difference in accuracy with b and c rows won by either (Agresti, §11.1)."""
    rng = np.random.default_rng(2)
    n = 2000
    y = (rng.random(n) < 0.3).astype(int)
    right_new, right_old = rng.random(n) < 0.8, rng.random(n) < 0.7
    p = [np.where(right == (y == 1), 0.9, 0.1) for right in (right_new, right_old)]
    found = compared(*p, y, kinds=("prob", "prob"), resamples=500)
    b, c = found.only_new_right, found.only_baseline_right
    half = 1.96 * math.sqrt((b + c - (b - c) ** 2 / n) / n**2)
    part = found.differences["accuracy"]
    assert part.value == pytest.approx((b - c) / n)
    assert part.interval is not None
    assert (part.interval.lower, part.interval.upper) == pytest.approx(
        (part.value - half, part.value + half), abs=0.25 * half
    )


def test_a_difference_over_all_rows_varies_with_the_share_of_positives() -> None:
    """New flags every row, the baseline none: the difference in accuracy is 2·prevalence − 1, whose spread is that of
    the prevalence and nothing else; recall, of positives alone, does not vary at all."""
    y = (np.arange(1000) % 4 == 0).astype(int)
    found = compared(np.full(1000, 0.9), np.full(1000, 0.1), y, kinds=("prob", "prob"), resamples=500).differences
    part = found["accuracy"]
    assert part.value == pytest.approx(-0.5)
    assert part.interval is not None
    half = 1.96 * 2 * math.sqrt(0.25 * 0.75 / 1000)
    assert part.interval.upper - part.interval.lower == pytest.approx(2 * half, rel=0.25)
    recall = found["recall"].interval
    assert recall is not None
    assert (recall.method, recall.upper) == ("exact, rows of its class", 1)


@pytest.mark.parametrize(
    "columns", [{"weights": np.arange(100) % 2 + 1.0}, {"groups": np.arange(100) // 2}], ids=["weights", "groups"]
)
def test_mcnemar_is_left_out_where_rows_are_not_alike_and_the_rest_is_not(columns: dict[str, Any]) -> None:
    z, old, y = sample(100)
    found = compared(z, old, y, **columns)
    assert found.mcnemar_p is None
    assert set(found.differences) == ALL
    part = found.differences["auc"]
    assert part == auc_difference(z, old, y, **columns)


@settings(max_examples=10, deadline=None)
@given(st.randoms(use_true_random=False), st.sampled_from([(), ("weights",), ("groups",)]))
def test_the_order_of_the_rows_changes_no_bit(random: Any, also: tuple[str, ...]) -> None:
    z, old, y = (np.round(column, 1) for column in sample(60))
    columns = {"weights": np.arange(60) % 4 + 0.1, "groups": np.arange(60) % 7}
    order = list(range(60))
    random.shuffle(order)
    one, other = (
        compared(z[rows], old[rows], y[rows], **{name: columns[name][rows] for name in also})
        for rows in (slice(None), order)
    )
    assert one.differences == other.differences
    assert (one.changes, one.only_new_right, one.mcnemar_p) == (other.changes, other.only_new_right, other.mcnemar_p)


def test_the_seed_alone_decides_the_draws() -> None:
    z, old, y = sample(100)
    first, again, other = (compared(z, old, y, seed=seed).differences for seed in (1, 1, 2))
    assert first == again
    changed = {name for name, part in first.items() if part.interval != other[name].interval}
    assert ALL - changed <= {"auc", "recall_at_0_1pct_fpr", "recall_at_1pct_fpr"}


def test_a_logit_can_be_compared_with_a_probability() -> None:
    z, old, y = sample(100)
    one = compared(z, old, y)
    other = compared(z, sigmoid(old), y, kinds=("logit", "prob"))
    for name, part in one.differences.items():
        assert other.differences[name].value == pytest.approx(part.value, abs=1e-12), name
        assert (other.differences[name].interval is None) == (part.interval is None)


def without_intervals(*, confidence: float | None, resamples: int) -> Comparison:
    z, old, y = sample(100)
    return compared(z, old, y, confidence=confidence, resamples=resamples)


@pytest.mark.parametrize(
    ("make", "left"),
    [
        (lambda: without_intervals(confidence=None, resamples=60), set()),
        (lambda: without_intervals(confidence=0.95, resamples=0), {"auc"}),
    ],
    ids=["no confidence", "no resamples"],
)
def test_values_are_there_without_intervals_too(make: Callable[[], Comparison], left: set[str]) -> None:
    found = make().differences
    assert set(found) == ALL
    assert {name for name, part in found.items() if part.interval is not None} == left


def test_more_confidence_widens_every_interval() -> None:
    z, old, y = sample(100)
    narrow, wide = (compared(z, old, y, confidence=confidence, resamples=200).differences for confidence in (0.8, 0.99))
    for name, part in narrow.items():
        outer = wide[name].interval
        assert part.interval is not None
        assert outer is not None
        if name not in FPR_LIMITS:  # too few negatives: nothing is known but what both intervals leave
            assert outer.lower < part.interval.lower < part.interval.upper < outer.upper, name


def test_undefined_and_infinite_metrics_are_not_compared_and_nothing_is_warned_of() -> None:
    """One class only, nothing flagged, and a probability of 0 for the true class (warnings are errors here)."""
    found = compared([0.1, 0.2, 0.3], [0.3, 0.2, 0.4], [0, 0, 0], kinds=("prob", "prob"))
    assert set(found.differences) == {
        *("brier", "log_loss", "ece", "ece_positive_class"),
        *("accuracy", "specificity", "fpr", "flag_rate"),
    }
    for part in found.differences.values():
        assert part.interval is None or part.interval.lower <= part.value <= part.interval.upper
    impossible = [0.0, 0.2, 0.7, 0.4, 0.6, 0.3]
    found = compared(impossible, impossible[::-1], [1, 0, 1, 0, 1, 0], kinds=("prob", "prob"))
    assert set(found.differences) == ALL - {"log_loss"}


def test_rows_that_are_not_the_same_are_refused() -> None:
    z, _, y = sample(20)
    rows = [ScoredRows.checked(z, labels, kind="logit") for labels in (y, 1 - y)]
    both = [evaluate(z, labels, kind="logit", n_resamples=0) for labels in (y, 1 - y)]
    with pytest.raises(ValueError, match="of the same rows"):
        compare(both[0], both[1], rows[0], rows[1], name="old", resampling=None)


def test_every_metric_is_drawn_in_one_of_two_ways() -> None:
    assert sorted([*BY_CLASS, *FREELY]) == sorted([*COMPARED, *DECISION_RATES])


@settings(max_examples=60, deadline=None)
@given(
    st.lists(
        st.tuples(st.sampled_from([0.0, 0.3, 0.5, 1.0]), st.sampled_from([0.0, 0.3, 0.5, 1.0]), st.integers(0, 1)),
        min_size=1,
        max_size=10,
    ),
    st.booleans(),
)
def test_no_interval_has_zero_width_or_misses_its_value(rows: list[tuple[float, float, int]], grouped: bool) -> None:
    new, old, y = map(list, zip(*rows, strict=True))
    also = {"groups": [index // 2 for index in range(len(y))]} if grouped else {}
    found = compared(new, old, y, kinds=("prob", "prob"), resamples=40, **also)
    for name, part in found.differences.items():
        if part.interval is not None:
            assert part.interval.lower < part.interval.upper, name
            assert part.interval.lower <= part.value <= part.interval.upper, name
            if name != "log_loss":
                assert part.interval.lower >= -1, name
                assert part.interval.upper <= 1, name


@pytest.mark.parametrize(("name", "rows"), [("recall", 6), ("fpr", 34), ("specificity", 34), ("accuracy", 6)])
def test_where_no_decision_differs_the_rows_behind_the_rate_say_how_far_it_could(name: str, rows: int) -> None:
    """Of n rows without a difference, a kind as frequent as 1 − 0.025^(1/n) can be missing by chance."""
    y = np.array([1] * 6 + [0] * 34)
    scores = np.linspace(0.9, 0.1, 40)
    difference = compared(scores, scores, y, kinds=("prob", "prob"), resamples=200).differences[name]
    assert difference.interval is not None
    assert difference.interval.upper == pytest.approx(1 - 0.025 ** (1 / rows))
