"""Reliability bins and calibration errors against exact fractions; proper scores against scikit-learn and mpmath."""

import math
from fractions import Fraction
from typing import Any

import mpmath
import numpy as np
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st
from scipy import special
from sklearn import metrics
from sklearn.calibration import calibration_curve

from headeval.core.bins import rows_of_table
from headeval.core.calibration import (
    DEFAULT_BINS,
    Binning,
    Convention,
    ReliabilityTable,
    binned_rows,
    ece,
    reliability_bins,
    reliability_table,
    unit_weights,
)
from headeval.core.proper_scores import brier_score, log_loss, log_loss_from_logits

CONVENTIONS: list[Convention] = ["top-label", "top-label-left", "positive-class"]
BINNINGS: list[Binning] = ["equal-width", "equal-mass"]

# Multiples of 1/64 are exact in float64, and so are 1 − p and, for a power of two, the edges of the bins.
dyadic = st.integers(0, 64).map(lambda k: k / 64)
anything = st.one_of(dyadic, st.floats(0, 1))
labelled = st.lists(st.tuples(anything, st.integers(0, 1)), min_size=1, max_size=40)
labelled_dyadic = st.lists(st.tuples(dyadic, st.integers(0, 1)), min_size=1, max_size=40)


def columns(rows: list[tuple[float, int]]) -> tuple[list[float], list[int]]:
    return [p for p, _ in rows], [y for _, y in rows]


def exact_row(p: float, y: int, convention: Convention) -> tuple[Fraction, int]:
    """Return confidence and outcome."""
    exact = Fraction(p)
    if convention == "positive-class":
        return exact, y
    half = Fraction(1, 2)
    predicted = int(exact >= half) if convention == "top-label" else int(exact > half)
    return (exact if predicted else 1 - exact), int(predicted == y)


def exact_table(
    rows: list[tuple[float, int]], convention: Convention, n_bins: int
) -> tuple[list[int], list[Fraction], list[Fraction], Fraction, Fraction]:
    """Equal-width counts, mean confidences, mean outcomes, ECE and MCE, straight from the definition."""
    held: list[list[tuple[Fraction, int]]] = [[] for _ in range(n_bins)]
    for p, y in rows:
        confidence, outcome = exact_row(p, y, convention)
        place = (
            math.floor(confidence * n_bins) if convention == "top-label-left" else math.ceil(confidence * n_bins) - 1
        )
        held[min(max(place, 0), n_bins - 1)].append((confidence, outcome))
    counts = [len(b) for b in held]
    confidences = [sum((c for c, _ in b), Fraction(0)) / max(len(b), 1) for b in held]
    outcomes = [Fraction(sum(o for _, o in b), max(len(b), 1)) for b in held]
    gaps = [abs(o - c) for o, c in zip(outcomes, confidences, strict=True)]
    error = sum((Fraction(n, len(rows)) * gap for n, gap in zip(counts, gaps, strict=True)), Fraction(0))
    return counts, confidences, outcomes, error, max(gaps)


def floats(values: list[Fraction]) -> list[float]:
    return [float(v) for v in values]


@pytest.mark.parametrize("n_bins", [1, 2, 4, 8, 16])
@pytest.mark.parametrize("convention", CONVENTIONS)
@given(rows=labelled_dyadic)
@settings(max_examples=60)
def test_equal_width_table_is_the_exact_one(rows: list[tuple[float, int]], convention: Convention, n_bins: int) -> None:
    counts, confidences, outcomes, error, largest = exact_table(rows, convention, n_bins)
    table = reliability_table(*columns(rows), convention=convention, n_bins=n_bins)
    assert table.counts.tolist() == counts
    assert table.confidence == pytest.approx(floats(confidences), abs=1e-15)
    assert table.accuracy == pytest.approx(floats(outcomes), abs=1e-15)
    assert table.ece == pytest.approx(float(error), abs=1e-14)
    assert table.mce == pytest.approx(float(largest), abs=1e-15)
    assert table.lower.tolist() == [b / n_bins for b in range(n_bins)]
    assert table.upper.tolist() == [(b + 1) / n_bins for b in range(n_bins)]
    assert table.n_bins == n_bins


@given(labelled, st.integers(1, 30))
def test_contract_functions_are_the_top_label_table(rows: list[tuple[float, int]], n_bins: int) -> None:
    table = reliability_table(*columns(rows), convention="top-label", n_bins=n_bins)
    counts, confidence, accuracy = reliability_bins(*columns(rows), n_bins=n_bins)
    assert counts.tolist() == table.counts.tolist()
    assert confidence.tolist() == table.confidence.tolist()
    assert accuracy.tolist() == table.accuracy.tolist()
    assert ece(*columns(rows), n_bins=n_bins) == table.ece


def test_defaults_are_those_of_the_conventions() -> None:
    assert DEFAULT_BINS == {"top-label": 15, "top-label-left": 10, "positive-class": 10}
    for convention in CONVENTIONS:
        assert reliability_table([0.5], [1], convention=convention).n_bins == DEFAULT_BINS[convention]
    assert reliability_table([0.5], [1]).convention == "top-label"
    assert reliability_table([0.5], [1]).binning == "equal-width"
    rng = np.random.default_rng(2)
    p, y = rng.random(200), rng.integers(0, 2, 200)
    assert len(reliability_bins(p, y)[0]) == 15
    assert ece(p, y) == ece(p, y, n_bins=15) != ece(p, y, n_bins=10)


@pytest.mark.parametrize("binning", BINNINGS)
@pytest.mark.parametrize("convention", CONVENTIONS)
@given(rows=labelled, n_bins=st.integers(1, 50))
@settings(max_examples=60)
def test_every_row_is_in_one_bin_whose_edges_hold_it(
    rows: list[tuple[float, int]], convention: Convention, binning: Binning, n_bins: int
) -> None:
    table = reliability_table(*columns(rows), convention=convention, n_bins=n_bins, binning=binning)
    assert table.counts.sum() == len(rows)
    assert table.lower[0] == 0.0
    assert table.upper[-1] == 1.0
    assert table.lower[1:].tolist() == table.upper[:-1].tolist()
    # Only a block of confidences all exactly 0 or 1 may have a bin of no width, at an end.
    assert (table.lower <= table.upper).all()
    assert (table.lower < table.upper)[1:-1].all()
    held = table.counts > 0
    slack = 1e-15  # the mean of equal values may be rounded past them
    assert (table.confidence[held] >= table.lower[held] - slack).all()
    assert (table.confidence[held] <= table.upper[held] + slack).all()
    assert (table.confidence[~held] == 0).all()
    assert (table.accuracy[~held] == 0).all()
    assert 0 <= table.ece <= table.mce + slack
    assert table.mce <= 1 + slack


@pytest.mark.parametrize("n_bins", range(1, 101))
def test_upper_edges_fall_into_the_bin_below_for_any_number_of_bins(n_bins: int) -> None:
    """The product (b/B)·B is not b for some b and B; comparing edges is immune to that."""
    for b in range(1, n_bins + 1):
        table = reliability_table([b / n_bins], [1], convention="positive-class", n_bins=n_bins)
        assert np.flatnonzero(table.counts).tolist() == [b - 1]
        just_above = math.nextafter(b / n_bins, 2.0)
        if just_above <= 1:
            table = reliability_table([just_above], [1], convention="positive-class", n_bins=n_bins)
            assert np.flatnonzero(table.counts).tolist() == [b]
        if b / n_bins >= 0.5:
            assert np.flatnonzero(reliability_bins([b / n_bins], [1], n_bins=n_bins)[0]).tolist() == [b - 1]
        if b / n_bins > 0.5:
            table = reliability_table([b / n_bins], [1], convention="top-label-left", n_bins=n_bins)
            assert np.flatnonzero(table.counts).tolist() == [min(b, n_bins - 1)]


def test_reference_binary_bins() -> None:
    counts, confidence, accuracy = reliability_bins([0.9, 0.8, 0.3, 0.6], [1, 0, 0, 1], n_bins=5)
    assert counts.tolist() == [0, 0, 1, 2, 1]
    assert confidence == pytest.approx([0, 0, 0.6, 0.75, 0.9], abs=1e-15)
    assert accuracy.tolist() == [0, 0, 1, 0.5, 1]
    assert ece([0.9, 0.8, 0.3, 0.6], [1, 0, 0, 1], n_bins=5) == pytest.approx(0.25, abs=1e-15)


@pytest.mark.parametrize(("p", "n_bins", "place"), [(0.5, 2, 0), (0.75, 4, 2), (1.0, 2, 1), (1.0, 15, 14), (1.0, 1, 0)])
def test_reference_edges(p: float, n_bins: int, place: int) -> None:
    assert np.flatnonzero(reliability_bins([p], [1], n_bins=n_bins)[0]).tolist() == [place]


def test_reference_row_of_zeros_is_in_the_first_bin() -> None:
    counts, confidence, accuracy = reliability_bins([[0.0, 0.0, 0.0]], [0], n_bins=3)
    assert (counts.tolist(), confidence.tolist(), accuracy.tolist()) == ([1, 0, 0], [0, 0, 0], [1, 0, 0])
    table = reliability_table([0.0, -0.0], [0, 1], convention="positive-class")
    assert table.counts[0] == 2


def test_reference_several_classes() -> None:
    probs = [[0.1, 0.2, 0.7], [0.6, 0.3, 0.1], [0.4, 0.4, 0.2]]
    counts, confidence, accuracy = reliability_bins(probs, [2, 1, 0], n_bins=5)
    assert counts.tolist() == [0, 1, 1, 1, 0]
    assert accuracy.tolist() == [0, 1, 0, 1, 0]
    assert confidence == pytest.approx([0, 0.4, 0.6, 0.7, 0], abs=1e-15)
    assert ece(probs, [2, 1, 0], n_bins=5) == pytest.approx((0.6 + 0.6 + 0.3) / 3, abs=1e-15)


@given(labelled_dyadic, st.integers(1, 20))
def test_two_columns_are_the_column_of_class_one(rows: list[tuple[float, int]], n_bins: int) -> None:
    # At one half the first of two equal columns predicts 0 and the single column 1: leave that point out.
    rows = [row for row in rows if row[0] != 0.5] or [(0.25, 1)]
    p, y = columns(rows)
    assert ece(np.column_stack([1 - np.array(p), p]), y, n_bins=n_bins) == ece(p, y, n_bins=n_bins)


def test_one_half_predicts_one_or_zero_by_convention() -> None:
    assert reliability_table([0.5], [1], convention="top-label").accuracy.max() == 1.0
    assert reliability_table([0.5], [0], convention="top-label").accuracy.max() == 0.0
    assert reliability_table([0.5], [0], convention="top-label-left").accuracy.max() == 1.0
    assert reliability_table([0.5], [1], convention="top-label-left").accuracy.max() == 0.0
    assert reliability_bins([[0.5, 0.5]], [0])[2].max() == 1.0  # the first of equal columns


def test_reference_top_label_left() -> None:
    table = reliability_table([0.1, 0.9], [0, 1], convention="top-label-left", n_bins=2)
    assert table.ece == pytest.approx(0.1, abs=1e-15)
    table = reliability_table([0.0, 1.0], [0, 1], convention="top-label-left", n_bins=2)
    assert (table.ece, table.counts.tolist()) == (0.0, [0, 2])
    # 0.75 opens a bin on the left and closes one on the right.
    assert reliability_table([0.75], [1], convention="top-label-left", n_bins=4).counts.tolist() == [0, 0, 0, 1]
    assert reliability_table([0.75], [1], convention="top-label", n_bins=4).counts.tolist() == [0, 0, 1, 0]


@pytest.mark.parametrize("binning", BINNINGS)
def test_no_rows_are_error_zero_in_top_label_left_alone(binning: Binning) -> None:
    table = reliability_table([], [], convention="top-label-left", binning=binning)
    assert (table.ece, table.mce, table.counts.sum()) == (0.0, 0.0, 0)
    assert table.n_bins == (1 if binning == "equal-mass" else 10)
    for convention in ("top-label", "positive-class"):
        with pytest.raises(ValueError, match="at least one row"):
            reliability_table([], [], convention=convention, binning=binning)


@pytest.mark.parametrize("convention", CONVENTIONS)
def test_reference_tied_block_is_one_equal_mass_bin(convention: Convention) -> None:
    p, y = np.full(100, 0.5), np.arange(100) < 90
    table = reliability_table(p, y, convention=convention, binning="equal-mass")
    assert (table.counts.tolist(), table.lower.tolist(), table.upper.tolist()) == ([100], [0.0], [1.0])
    assert table.ece == pytest.approx(0.4, abs=1e-15)


@pytest.mark.parametrize("convention", CONVENTIONS)
@given(rows=labelled, n_bins=st.integers(1, 20))
@settings(max_examples=60)
def test_equal_mass_bins_never_split_ties_and_are_never_empty(
    rows: list[tuple[float, int]], convention: Convention, n_bins: int
) -> None:
    table = reliability_table(*columns(rows), convention=convention, n_bins=n_bins, binning="equal-mass")
    assert table.n_bins <= n_bins
    assert (table.counts > 0).all()
    # Whole bins of whole tied blocks: each cumulated count is the number of rows on one side of an edge.
    predicted = [p >= 0.5 if convention == "top-label" else p > 0.5 for p, _ in rows]
    confidences = [
        p if convention == "positive-class" or up else 1.0 - p for (p, _), up in zip(rows, predicted, strict=True)
    ]
    below = [sum(c < e if convention == "top-label-left" else c <= e for c in confidences) for e in table.upper[:-1]]
    assert np.cumsum(table.counts)[:-1].tolist() == below
    # A bin is at most its fair share and the tied blocks at its two ends.
    largest_tie = max(confidences.count(c) for c in confidences)
    assert table.counts.max() <= math.ceil(len(rows) / n_bins) + 2 * (largest_tie - 1)


@pytest.mark.parametrize("convention", CONVENTIONS)
@given(n=st.integers(1, 60), n_bins=st.integers(1, 20))
@settings(max_examples=60)
def test_equal_mass_bins_share_distinct_values_evenly(convention: Convention, n: int, n_bins: int) -> None:
    p = 0.51 + np.random.default_rng(n).permutation(n) / 128
    table = reliability_table(p, np.zeros(n), convention=convention, n_bins=n_bins, binning="equal-mass")
    assert table.n_bins == min(n, n_bins)
    assert table.counts.max() - table.counts.min() <= 1


@given(labelled)
def test_one_bin_compares_the_two_means(rows: list[tuple[float, int]]) -> None:
    p, y = columns(rows)
    for binning in BINNINGS:
        table = reliability_table(p, y, convention="positive-class", n_bins=1, binning=binning)
        assert table.ece == pytest.approx(abs(np.mean(p) - np.mean(y)), abs=1e-14)


@pytest.mark.parametrize("binning", BINNINGS)
@pytest.mark.parametrize("convention", CONVENTIONS)
@given(rows=labelled_dyadic, random=st.randoms(use_true_random=False))
@settings(max_examples=40)
def test_row_order_changes_nothing(
    rows: list[tuple[float, int]], random: Any, convention: Convention, binning: Binning
) -> None:
    def contents(table: ReliabilityTable) -> list[object]:
        return [table.counts.tolist(), table.confidence.tolist(), table.accuracy.tolist(), table.ece, table.mce]

    options: Any = {"convention": convention, "binning": binning, "n_bins": 7}
    expected = contents(reliability_table(*columns(rows), **options))
    random.shuffle(rows)
    assert contents(reliability_table(*columns(rows), **options)) == expected


@pytest.mark.parametrize("n_bins", [5, 10, 20])
def test_positive_class_is_scikit_learns_calibration_curve(n_bins: int) -> None:
    rng = np.random.default_rng(4)
    p = rng.random(700) ** 2  # off the edges, where scikit-learn's [lo, hi) differs
    y = (rng.random(700) < p).astype(int)
    table = reliability_table(p, y, convention="positive-class", n_bins=n_bins)
    share, mean = calibration_curve(y, p, n_bins=n_bins, strategy="uniform")
    held = table.counts > 0
    assert table.accuracy[held] == pytest.approx(share, rel=1e-13)
    assert table.confidence[held] == pytest.approx(mean, rel=1e-13)


def fields(table: ReliabilityTable) -> dict[str, Any]:
    """Every number of a table, as text that tells each bit."""
    values = {name: getattr(table, name) for name in table.__slots__}
    return {name: value.tolist() if isinstance(value, np.ndarray) else value for name, value in values.items()}


weighted_dyadic = st.lists(st.tuples(dyadic, st.integers(0, 1), st.integers(0, 8)), min_size=1, max_size=30).filter(
    lambda rows: any(w for _, _, w in rows)
)


@pytest.mark.parametrize("convention", CONVENTIONS)
@given(rows=weighted_dyadic, n_bins=st.sampled_from([1, 2, 4, 8]), unit=st.sampled_from([1.0, 0.1, 1e-300, 1e300]))
@settings(max_examples=60)
def test_a_weighted_row_counts_as_often_as_its_weight(
    rows: list[tuple[float, int, int]], n_bins: int, unit: float, convention: Convention
) -> None:
    p, y, w = zip(*rows, strict=True)
    repeated = [(a, b) for a, b, times in rows for _ in range(times)]
    counts, confidences, outcomes, error, largest = exact_table(repeated, convention, n_bins)
    table = reliability_table(p, y, convention=convention, n_bins=n_bins, weights=[unit * times for times in w])
    assert table.confidence == pytest.approx(floats(confidences), rel=1e-14, abs=1e-15)
    assert table.accuracy == pytest.approx(floats(outcomes), rel=1e-14, abs=1e-15)
    assert table.weight == pytest.approx([count / sum(w) for count in counts], rel=1e-14)
    assert table.ece == pytest.approx(float(error), abs=1e-14)
    assert table.mce == pytest.approx(float(largest), abs=1e-14)
    # Counts are of rows, whatever they weigh.
    assert table.counts.tolist() == reliability_table(p, y, convention=convention, n_bins=n_bins).counts.tolist()


@pytest.mark.parametrize("binning", BINNINGS)
@pytest.mark.parametrize("convention", CONVENTIONS)
@given(rows=labelled, n_bins=st.integers(1, 20))
@example(rows=[(5e-324, 0)], n_bins=1)  # no weight may round the smallest confidence away
@settings(max_examples=40)
def test_equal_weights_change_no_bit(
    rows: list[tuple[float, int]], n_bins: int, convention: Convention, binning: Binning
) -> None:
    options: Any = {"convention": convention, "binning": binning, "n_bins": n_bins}
    plain = reliability_table(*columns(rows), **options)
    for unit in (1.0, 2.0**-600, 2.0**600):
        assert fields(reliability_table(*columns(rows), weights=[unit] * len(rows), **options)) == fields(plain)
    assert plain.weight.tolist() == [count / len(rows) for count in plain.counts]


def test_a_bin_without_weight_is_empty_but_for_its_count() -> None:
    table = reliability_table([0.1, 0.9], [1, 1], convention="positive-class", n_bins=2, weights=[0, 3])
    assert (table.counts.tolist(), table.weight.tolist()) == ([1, 1], [0, 1])
    assert (table.confidence.tolist(), table.accuracy.tolist()) == ([0, 0.9], [0, 1])
    assert [table.ece, table.mce] == pytest.approx([0.1, 0.1])


@given(labelled, st.integers(1, 20), st.randoms(use_true_random=False))
def test_weights_do_not_move_equal_mass_edges(rows: list[tuple[float, int]], n_bins: int, random: Any) -> None:
    options: Any = {"binning": "equal-mass", "n_bins": n_bins}
    weights = [1 + random.random() for _ in rows]
    plain, weighted = (reliability_table(*columns(rows), weights=w, **options) for w in (None, weights))
    assert weighted.upper.tolist() == plain.upper.tolist()
    assert weighted.counts.tolist() == plain.counts.tolist()


@pytest.mark.parametrize("weights", [[1.0], [1.0, -1.0], [0.0, 0.0], [1.0, math.nan]])
def test_unusable_weights_are_refused(weights: list[float]) -> None:
    with pytest.raises(ValueError, match="weights must"):
        reliability_table([0.5, 0.6], [0, 1], weights=weights)


@pytest.mark.parametrize("binning", BINNINGS)
@pytest.mark.parametrize("convention", CONVENTIONS)
@given(rows=labelled, n_bins=st.integers(1, 20))
@settings(max_examples=40)
def test_binned_rows_make_up_the_table(
    rows: list[tuple[float, int]], n_bins: int, convention: Convention, binning: Binning
) -> None:
    table = reliability_table(*columns(rows), convention=convention, n_bins=n_bins, binning=binning)
    index, confidence, outcome = binned_rows(*columns(rows), table)
    assert [exact_row(p, y, convention)[1] for p, y in rows] == outcome.tolist()
    for b in range(table.n_bins):
        held = index == b
        assert held.sum() == table.counts[b]
        if held.any():
            assert confidence[held].mean() == pytest.approx(table.confidence[b], rel=1e-13, abs=1e-300)
            assert outcome[held].mean() == pytest.approx(table.accuracy[b], rel=1e-13)


@pytest.mark.parametrize("binning", BINNINGS)
@pytest.mark.parametrize("convention", CONVENTIONS)
def test_rows_put_into_the_bins_of_their_table_make_it_again(convention: Convention, binning: Binning) -> None:
    p, y, w = np.array([0.0, 0.3, 0.5, 0.62, 0.81, 1.0]), np.array([0, 1, 0, 1, 0, 1]), np.array([1, 2, 0.5, 0, 1.5, 1])
    table = reliability_table(p, y, convention=convention, binning=binning, n_bins=3, weights=w)
    assert fields(rows_of_table(p, y, unit_weights(w, n=6), table).table()) == fields(table)


def test_binned_rows_are_whole_numbers() -> None:
    for p, y in (([0.9, 0.2], [1, 1]), ([[0.1, 0.9], [0.8, 0.2]], [1, 1])):
        index, _, outcome = binned_rows(p, y, reliability_table(p, y, n_bins=2))
        assert (index.dtype.kind, outcome.dtype.kind, outcome.tolist()) == ("i", "i", [1, 0])


@pytest.mark.parametrize("largest", [5e-324, 0.3, 1.0, 2.0, 3.0, 1.7e308])
def test_the_largest_unit_weight_is_from_1_to_2_and_a_power_of_two_of_the_given_one(largest: float) -> None:
    unit = unit_weights([0.0, largest], n=2)
    assert 1 <= unit[1] < 2
    assert Fraction(unit[1]) / Fraction(largest) in {Fraction(2) ** k for k in range(-1024, 1075)}
    assert unit_weights(None, n=2).tolist() == [1.0, 1.0]


def test_a_column_a_class_is_for_top_label_alone_and_labels_are_those_of_its_columns() -> None:
    for convention in ("top-label-left", "positive-class"):
        with pytest.raises(ValueError, match=r"^probs must be 1-D, got shape \(1, 2\)"):
            reliability_table([[0.2, 0.8]], [1], convention=convention)
    with pytest.raises(ValueError, match=r"^probs must have a column for each of at least 2 classes"):
        reliability_table([[1.0]], [0])
    with pytest.raises(ValueError, match=r"^labels must be integers from 0 to 1, got 2"):
        reliability_table([0.5], [2])


def test_binned_rows_are_those_of_the_table() -> None:
    with pytest.raises(ValueError, match=r"table must be made of these rows, got counts \[0, 2\] for \[0, 1\]"):
        binned_rows([0.9], [1], reliability_table([0.9, 0.8], [1, 1], n_bins=2))


@given(labelled)
def test_brier_score_is_the_exact_mean_square(rows: list[tuple[float, int]]) -> None:
    expected = sum((Fraction(p) - y) ** 2 for p, y in rows) / len(rows)
    assert brier_score(*columns(rows)) == pytest.approx(float(expected), rel=1e-14)


@given(st.lists(st.tuples(st.floats(1e-6, 1 - 1e-6), st.integers(0, 1)), min_size=1, max_size=30))
def test_brier_score_and_log_loss_are_scikit_learns(rows: list[tuple[float, int]]) -> None:
    p, y = columns(rows)
    assert brier_score(p, y) == pytest.approx(metrics.brier_score_loss(y, p, pos_label=1), rel=1e-13)
    assert log_loss(p, y) == pytest.approx(metrics.log_loss(y, p, labels=[0, 1]), rel=1e-9)


def test_log_loss_of_an_impossible_event_is_infinite() -> None:
    assert log_loss([0.0, 0.5], [1, 1]) == math.inf
    assert log_loss([1.0, 0.5], [0, 1]) == math.inf
    assert log_loss([1.0, 0.0, -0.0], [1, 0, 0]) == 0.0


def test_log_loss_keeps_small_probabilities() -> None:
    assert log_loss([1e-300], [0]) == pytest.approx(1e-300, rel=1e-14, abs=0)
    assert log_loss([1e-300], [1]) == pytest.approx(300 * math.log(10), rel=1e-14)


@given(st.lists(st.tuples(st.floats(-800, 800), st.integers(0, 1)), min_size=1, max_size=20))
def test_log_loss_from_logits_is_exact_where_probabilities_saturate(rows: list[tuple[float, int]]) -> None:
    z, y = columns(rows)
    with mpmath.workdps(800):
        terms = [mpmath.log(1 + mpmath.exp(mpmath.mpf(-v if label else v))) for v, label in rows]
        expected = float(mpmath.fsum(terms) / len(terms))
    assert log_loss_from_logits(z, y) == pytest.approx(expected, rel=1e-14, abs=0 if expected > 1e-300 else 1e-320)


def test_log_loss_from_logits_agrees_with_log_loss() -> None:
    z = np.linspace(-20, 20, 41)
    y = np.arange(41) % 2
    assert log_loss_from_logits(z, y) == pytest.approx(log_loss(special.expit(z), y), rel=1e-9)


def test_log_loss_from_logits_does_not_overflow() -> None:
    assert log_loss_from_logits([1e308, 1e308, -1e308], [0, 0, 1]) == pytest.approx(1e308)
    assert log_loss_from_logits([1e4, -1e4], [0, 1]) == 1e4
    assert log_loss_from_logits([1e308, -1e308, 1e4], [1, 0, 1]) == 0.0
