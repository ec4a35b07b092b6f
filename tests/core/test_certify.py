"""Certified thresholds: exact counts, and simulated deployments in which the promise holds as often as it says."""

import math
from collections.abc import Callable

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.stats import binom, norm

from headeval.core.certify import (
    PRECISION_STARTS,
    Certified,
    allowed_errors,
    certify_few_flagged,
    certify_few_missed,
    certify_precision,
    edge_bound,
)
from headeval.core.rows_needed import more_rows_needed, rows_needed

DEPLOYMENTS = 1000
ROUNDING = 1 + 1e-9  # of a level such as 1 - 0.9


@given(
    st.integers(0, 400), st.sampled_from([0.001, 0.01, 0.05, 0.2, 0.5, 0.9]), st.sampled_from([0.5, 0.9, 0.95, 0.99])
)
def test_allowed_errors_is_the_last_that_the_binomial_distribution_allows(
    n: int, rate: float, confidence: float
) -> None:
    within = [k for k in range(n + 1) if binom.cdf(k, n, rate) <= (1 - confidence) * ROUNDING]
    assert allowed_errors(n, rate, confidence=confidence) == max(within, default=-1)


def test_a_probability_of_exactly_the_level_passes() -> None:
    assert allowed_errors(1, 0.9, confidence=0.9) == 0  # P(Bin(1, 0.9) = 0) = 0.1, and 1 - 0.9 = 0.09999999999999998
    assert rows_needed(0, 0.5, confidence=0.875) == 3


def test_the_published_counts() -> None:
    assert allowed_errors(1000, 0.01, confidence=0.95) == 4  # P(Bin ≤ 4) = 0.0287, P(Bin ≤ 5) = 0.066
    assert allowed_errors(2994, 0.001, confidence=0.95) == -1
    assert allowed_errors(2995, 0.001, confidence=0.95) == 0
    assert [rows_needed(k, 0.001, confidence=0.95) for k in (0, 1, 2)] == [2995, 4742, 6294]


@pytest.mark.parametrize("rate", [0.3, 0.05, 0.01])
@pytest.mark.parametrize("errors", [0, 1, 2, 5, 10])
def test_rows_needed_is_the_first_number_that_is_enough(errors: int, rate: float) -> None:
    n = rows_needed(errors, rate, confidence=0.95)
    assert binom.cdf(errors, n, rate) <= 0.05 < binom.cdf(errors, n - 1, rate)


def test_more_rows_needed_counts_from_what_is_there() -> None:
    assert more_rows_needed(1000, 0, 0.001, confidence=0.95) == (1995, 1995)
    without, at_this_rate = more_rows_needed(1000, 8, 0.01, confidence=0.95)
    assert without == rows_needed(8, 0.01, confidence=0.95) - 1000
    assert at_this_rate is not None
    n = 1000 + at_this_rate
    assert binom.cdf(int(0.008 * n), n, 0.01) <= 0.05
    assert more_rows_needed(1000, 10, 0.01, confidence=0.95)[1] is None  # such errors never show it
    assert more_rows_needed(5000, 0, 0.001, confidence=0.95) == (0, 0)


def test_more_rows_at_this_rate_are_the_fewest_in_which_whole_errors_show_it() -> None:
    fewest = next(rows for rows in range(30, 100) if binom.cdf(rows // 30, rows, 0.1) <= 0.1)
    assert more_rows_needed(30, 1, 0.1, confidence=0.9)[1] == fewest - 30
    # One in a hundred is no less than 1 %, though with a confidence of 30 % two of 200 rows might pass for it.
    assert binom.cdf(2, 200, 0.01) < 0.7
    assert more_rows_needed(100, 1, 0.01, confidence=0.3)[1] is None


def test_before_the_first_row_the_rows_needed_are_all_of_them_be_it_one() -> None:
    """P(Bin(1, 0.95) = 0) = 0.05."""
    assert more_rows_needed(0, 0, 0.01, confidence=0.95) == (299, 299)
    assert rows_needed(0, 0.95, confidence=0.9) == 1
    assert more_rows_needed(0, 0, 0.95, confidence=0.9) == (1, 1)


def test_a_rate_of_zero_cannot_be_shown_and_a_rate_of_one_needs_no_showing() -> None:
    assert certify_few_flagged([1.0, 2.0], 0.0, confidence=0.95).empty
    assert certify_few_missed([1.0, 2.0], 0.0, confidence=0.95).empty
    everything = certify_few_flagged([1.0, 2.0], 1.0, confidence=0.95)
    assert (everything.lower, everything.upper, everything.empty) == (-math.inf, math.inf, False)
    with pytest.raises(ValueError, match="rows would be needed"):
        rows_needed(0, 1e-14, confidence=0.95)


@given(st.lists(st.integers(0, 5), max_size=60), st.sampled_from([0.05, 0.1, 0.3]))
def test_a_threshold_is_certified_exactly_where_its_own_count_passes_the_test(scores: list[int], rate: float) -> None:
    """Ties and all: the half-lines are what walking through every threshold would find."""
    flagged = certify_few_flagged(scores, rate, confidence=0.9)
    missed = certify_few_missed(scores, rate, confidence=0.9)
    for t in np.arange(-1, 7, 0.5):
        errors = sum(score >= t for score in scores)
        assert (flagged.lower < t <= flagged.upper) == (binom.cdf(errors, len(scores), rate) <= 0.1 * ROUNDING), t
        errors = sum(score < t for score in scores)
        assert (missed.lower < t <= missed.upper) == (binom.cdf(errors, len(scores), rate) <= 0.1 * ROUNDING), t


def test_the_highest_scores_are_enough_and_too_few_of_them_are_refused() -> None:
    scores = np.random.default_rng(0).normal(size=5000)
    whole = certify_few_flagged(scores, 0.01, confidence=0.95)
    assert certify_few_flagged(np.sort(scores)[-100:], 0.01, confidence=0.95, n=5000) == whole
    with pytest.raises(ValueError, match="highest"):
        certify_few_flagged(np.sort(scores)[-10:], 0.01, confidence=0.95, n=5000)


def test_of_the_highest_scores_one_more_than_may_be_flagged_is_needed_and_to_see_that_it_is_alone_two() -> None:
    highest = np.arange(1000.0)[::-1]
    with pytest.raises(ValueError, match="scores must hold the highest 5 of the 1000 rows, got 4"):
        certify_few_flagged(highest[:4], 0.01, confidence=0.95, n=1000)
    found = [certify_few_flagged(highest[:m], 0.01, confidence=0.95, n=1000) for m in (5, 6)]
    assert found == [Certified(995.0, math.inf, 1000, 4), Certified(995.0, math.inf, 1000, 5, closed=True)]
    with pytest.raises(ValueError, match="n must be at least 1000"):
        certify_few_flagged(highest, 0.01, confidence=0.95, n=999)


def test_the_order_of_the_rows_does_not_matter() -> None:
    """This order is one of the few in which scores partitioned a place too low leave another one in the place."""
    assert binom.cdf(305, 1000, 0.33) <= 0.05 < binom.cdf(306, 1000, 0.33)
    scores = np.random.default_rng(146).permutation(np.arange(1000.0))
    assert certify_few_flagged(scores, 0.33, confidence=0.95).lower == 999 - 305
    assert certify_few_missed(scores, 0.33, confidence=0.95).upper == 305


def test_where_nothing_or_everything_may_be_wrong_the_ends_are_infinite() -> None:
    scores = [1.0, 2.0, 3.0]
    assert certify_few_flagged(scores, 0.1, confidence=0.95) == Certified(math.inf, math.inf, 3, -1)
    assert certify_few_missed(scores, 0.1, confidence=0.95) == Certified(-math.inf, -math.inf, 3, -1)
    assert certify_few_flagged(scores, 1.0, confidence=0.95) == Certified(-math.inf, math.inf, 3, 3)
    assert certify_few_missed(scores, 1.0, confidence=0.95) == Certified(-math.inf, math.inf, 3, 3)
    # P(Bin(3, 0.7) ≤ 1) = 0.216 and P(Bin(3, 0.7) ≤ 2) = 0.657
    assert certify_few_missed(scores, 0.7, confidence=0.75) == Certified(-math.inf, 2.0, 3, 1)


@pytest.mark.parametrize(
    ("found", "empty"),
    [
        (Certified(1.0, 2.0, 5, 0), False),
        (Certified(1.0, 1.0, 5, 0), True),
        (Certified(1.0, 1.0, 5, 0, closed=True), False),
        (Certified(2.0, 1.0, 5, 0, closed=True), True),
        (Certified(-math.inf, math.inf, 5, None, grid=np.array([0.5])), False),
        (Certified(-math.inf, math.inf, 5, None, grid=np.array([])), True),
        (Certified(1.0, 1.0, 5, None, grid=np.array([0.5])), True),
    ],
)
def test_a_half_line_of_no_length_is_empty_unless_its_end_is_in_it(found: Certified, empty: bool) -> None:
    assert found.empty == empty


@pytest.mark.parametrize(
    ("function", "arguments", "message"),
    [
        (allowed_errors, (-1, 0.1, 0.9), "n must be at least 0"),
        (allowed_errors, (5, 1.5, 0.9), "rate must be finite and between 0 and 1"),
        (allowed_errors, (5, -0.1, 0.9), "rate must be finite and between 0 and 1"),
        (allowed_errors, (5, 0.1, 1.5), "confidence must be finite and between 0 and 1"),
        (allowed_errors, (5, 0.1, 0.0), "confidence must lie strictly between"),
        (allowed_errors, (5, 0.1, 1.0), "confidence must lie strictly between"),
        (edge_bound, (0, 5, 0.9), "flagged must be at least 1"),
        (edge_bound, (6, 5, 0.9), "n must be at least 6"),
        (edge_bound, (1, 5, 1.0), "confidence must lie between"),
        (certify_few_flagged, ([[1.0]], 0.1, 0.9), "scores must be 1-D"),
        (certify_few_missed, ([[1.0]], 0.1, 0.9), "scores must be 1-D"),
        (certify_precision, ([0.5], [2], 0.9, 0.9), "labels must be integers"),
        (certify_precision, ([1.5], [1], 0.9, 0.9), "probs must lie in"),
        (rows_needed, (-1, 0.1, 0.9), "errors must be at least 0"),
        (more_rows_needed, (-1, 0, 0.1, 0.9), "n must be at least 0"),
    ],
)
def test_impossible_arguments_are_refused(function, arguments, message) -> None:
    *positional, confidence = arguments
    with pytest.raises(ValueError, match=f"^{message}"):
        function(*positional, confidence=confidence)


def violations(deploy: Callable[[np.random.Generator], bool | None], seed: int) -> float:
    """The share of simulated deployments that break the promise; one without a threshold promises nothing."""
    rng = np.random.default_rng(seed)
    return sum(bool(deploy(rng)) for _ in range(DEPLOYMENTS)) / DEPLOYMENTS


def most(level: float) -> float:
    """A level of violations that 2,000 deployments exceed by chance once in a thousand times."""
    return float(binom.ppf(0.999, DEPLOYMENTS, level)) / DEPLOYMENTS


def test_1000_negatives_allow_5_false_positives_at_1_per_cent_and_with_a_tie_at_the_edge_4() -> None:
    """The order-statistic rule: the score of the 5th highest negative is the threshold, and it is flagged."""
    scores = np.arange(1000.0)
    found = certify_few_flagged(scores, 0.01, confidence=0.95)
    assert (found.lower, found.closed, found.errors_allowed) == (995.0, True, 5)
    scores[3] = scores[4]  # elsewhere a tie changes nothing
    assert certify_few_flagged(scores, 0.01, confidence=0.95) == found
    scores[994] = scores[995]
    found = certify_few_flagged(scores, 0.01, confidence=0.95)
    assert (found.lower, found.closed, found.errors_allowed) == (995.0, False, 4)
    assert certify_few_flagged(np.arange(2994.0), 0.001, confidence=0.95).empty
    assert certify_few_flagged(np.arange(2995.0), 0.001, confidence=0.95).errors_allowed == 0


@pytest.mark.parametrize(
    ("flagged", "n", "confidence"), [(1, 299, 0.95), (5, 1000, 0.95), (12, 400, 0.9), (1, 10**6, 0.95)]
)
def test_the_bound_at_an_edge_is_the_worst_over_all_atoms(flagged: int, n: int, confidence: float) -> None:
    """Of r rows at or above the edge just one holds the atom with probability r·s·(1 − s)^(r − 1), s its share."""
    rate = edge_bound(flagged, n, confidence=confidence)
    s = np.linspace(0, 1, 100_001)[1:]
    once = (flagged * s * (1 - s) ** (flagged - 1)).max()
    error = binom.cdf(flagged - 1, n, rate) + once * binom.pmf(flagged, n, rate)
    assert error == pytest.approx(1 - confidence, rel=1e-6)
    assert binom.cdf(flagged - 1, n, rate) < 1 - confidence  # more careful than for a continuous distribution


def test_the_bound_at_an_edge_meets_the_level_exactly_and_is_1_where_every_row_is_flagged() -> None:
    """Of two rows the higher alone: P(Bin(2, α) ≤ 1) = 1 − α², and one quarter is 1 − 0.75."""
    assert math.sqrt(0.75) * (1 - 1e-9) < edge_bound(1, 2, confidence=0.75) < math.sqrt(0.75)
    assert edge_bound(3, 3, confidence=0.9) == 1.0


@pytest.mark.parametrize(
    ("n", "atom", "above"),
    [
        (299, 0.0101, 0.0),
        pytest.param(1000, 0.00202, 0.00808, marks=pytest.mark.slow),
        pytest.param(1000, 0.0101, 0.0, marks=pytest.mark.slow),
    ],
)
def test_an_atom_that_is_hit_once_or_never_does_not_break_the_promise(n: int, atom: float, above: float) -> None:
    """No tie shows it: a saturated probability, or a default score, that a share of all negatives has."""

    def deploy(rng: np.random.Generator) -> bool:
        u = rng.random(n)
        scores = np.where(u < above, 2 + u, np.where(u < above + atom, 1.0, u - 2))
        found = certify_few_flagged(scores, 0.01, confidence=0.95)
        return found.lower < 1.0 or (found.lower == 1.0 and found.closed)

    assert violations(deploy, 6) <= most(0.05)


@pytest.mark.slow
def test_fpr_holds_as_often_as_promised_and_is_not_wasted() -> None:
    def deploy(rng: np.random.Generator) -> bool:
        return norm.sf(certify_few_flagged(rng.normal(size=1000), 0.01, confidence=0.95).lower) > 0.01

    # Exactly: the 5th highest of 1,000 breaks it with probability P(Bin(1000, 0.01) ≤ 4) = 0.0287.
    assert binom.ppf(0.001, DEPLOYMENTS, 0.0287) / DEPLOYMENTS <= violations(deploy, 1) <= most(0.0287)


def test_the_textbook_rule_breaks_the_promise_nearly_every_other_time() -> None:
    def deploy(rng: np.random.Generator) -> bool:
        # the largest recall with a sample FPR of at most 1 %: the threshold at the 10th highest negative
        return norm.sf(np.sort(rng.normal(size=1000))[-10]) > 0.01

    broken = violations(deploy, 2)
    assert binom.ppf(0.001, DEPLOYMENTS, 0.458) / DEPLOYMENTS <= broken <= most(0.458)


@pytest.mark.parametrize(
    "step",
    [
        pytest.param(1e-6, marks=pytest.mark.slow),
        pytest.param(1e-4, marks=pytest.mark.slow),
        pytest.param(0.05, marks=pytest.mark.slow),
        0.3,
        1.0,
    ],
)
def test_fpr_holds_for_scores_with_ties_too(step: float) -> None:
    def deploy(rng: np.random.Generator) -> bool:
        found = certify_few_flagged(np.round(rng.normal(size=1000) / step) * step, 0.01, confidence=0.95)
        # the scores above `lower` are those from the next step on: from lower + step/2 before rounding
        return norm.sf(found.lower + (-step / 2 if found.closed else step / 2)) > 0.01

    assert violations(deploy, 3) <= most(0.05)


@pytest.mark.slow
def test_an_atom_at_the_stopping_score_does_not_break_the_promise() -> None:
    """2 % of the negatives score exactly 1 and 0.5 % more: flagging from 1 on flags 2.5 %, not 1 %."""

    def deploy(rng: np.random.Generator) -> bool:
        u = rng.random(1000)
        scores = np.where(u < 0.005, 1 + u, np.where(u < 0.025, 1.0, u - 1))
        found = certify_few_flagged(scores, 0.01, confidence=0.95)
        return found.lower < 1.0 or (found.lower == 1.0 and found.closed)

    assert violations(deploy, 4) <= most(0.05)


@pytest.mark.parametrize("step", [0.0, 0.3])
def test_recall_holds_as_often_as_promised(step: float) -> None:
    def deploy(rng: np.random.Generator) -> bool:
        scores = rng.normal(size=200)
        rounded = np.round(scores / step) * step if step else scores
        upper = certify_few_missed(rounded, 0.1, confidence=0.95).upper
        return norm.cdf(upper - step / 2) > 0.1

    exact = float(binom.cdf(allowed_errors(200, 0.1, confidence=0.95), 200, 0.1))
    broken = violations(deploy, 5)
    assert broken <= most(0.05)
    if not step:
        assert binom.ppf(0.001, DEPLOYMENTS, exact) / DEPLOYMENTS <= broken <= most(exact)


@pytest.mark.slow
def test_fpr_and_recall_hold_together_when_they_share_the_level() -> None:
    def deploy(rng: np.random.Generator) -> bool | None:
        flagged = certify_few_flagged(rng.normal(size=400), 0.05, confidence=0.975)
        missed = certify_few_missed(rng.normal(size=150) + 3.2, 0.1, confidence=0.975)
        if not flagged.lower < missed.upper:
            return None
        return norm.sf(flagged.lower) > 0.05 or norm.cdf(missed.upper - 3.2) > 0.1

    assert violations(deploy, 6) <= most(0.05)


def precision_at(t: float, sharp: float) -> float:
    """Of u uniform in [0, 1], positive with probability u^sharp: the share positive of those ≥ t."""
    return (1 - t ** (sharp + 1)) / (sharp + 1) / (1 - t)


@pytest.mark.slow
@pytest.mark.parametrize(("n", "sharp", "share"), [(600, 1.0, 0.8), (300, 0.3, 0.85), (2000, 3.0, 0.7)])
def test_precision_holds_as_often_as_promised(n: int, sharp: float, share: float) -> None:
    found = []

    def deploy(rng: np.random.Generator) -> bool | None:
        u = rng.random(n)
        certified = certify_precision(u, rng.random(n) < u**sharp, share, confidence=0.9)
        found.append(not certified.empty)
        return not certified.empty and precision_at(float(certified.grid[0]), sharp) < share

    broken = violations(deploy, 7)
    assert np.mean(found) > 0.5
    assert broken <= most(0.1)


@pytest.mark.slow
def test_precision_that_falls_again_at_the_top_is_not_certified_there() -> None:
    """Above 0.9 half of the rows are negative: a walk that skipped failed thresholds would certify it."""

    def deploy(rng: np.random.Generator) -> bool:
        u = rng.random(1500)
        y = rng.random(1500) < np.where(u > 0.9, 0.5, np.where(u > 0.5, 1.0, 0.0))
        certified = certify_precision(u, y, 0.8, confidence=0.9)
        good = certified.grid
        true = np.where(good > 0.9, 0.5, np.where(good > 0.5, (0.9 - good + 0.05) / (1 - good), 0.45 / (1 - good)))
        return bool((true < 0.8).any())

    assert violations(deploy, 8) <= most(0.1)


def test_a_head_without_an_error_is_certified_from_the_highest_start_down_to_the_lowest_threshold() -> None:
    found = certify_precision([1.0] * 100, [1] * 100, 0.9, confidence=0.95)
    assert (found.lower, found.upper, found.n, found.errors_allowed) == (-math.inf, math.inf, 100, None)
    assert found.grid is not None
    assert found.grid.tolist() == [step / 1000 for step in range(1, 991)]


def test_precision_of_zero_is_shown_by_any_positive_and_not_by_negatives_alone() -> None:
    assert certify_precision([1.0, 1.0], [0, 0], 0.0, confidence=0.95).empty
    assert not certify_precision([1.0, 1.0], [0, 1], 0.0, confidence=0.95).empty


def test_precision_is_tested_at_the_shared_level_and_stops_at_the_first_failure() -> None:
    # 0.9⁵⁶ = 0.00274 > 0.05/20 > 0.9⁵⁷ = 0.00247: so 57 rows without a negative are enough, and 56 are not.
    assert len(PRECISION_STARTS) == 20
    for n, enough in ((56, False), (57, True)):
        certified = certify_precision([0.7] * n, [1] * n, 0.9, confidence=0.95)
        assert certified.empty != enough
    assert certified.grid is not None
    assert certified.grid.max() == 0.7
    # Four negatives at 0.4, and a thousand positives at 0.2 that would make up for them. Starts below 0.4 fail too
    # until the positives are in; the starts at 0.2 and below are walks of their own.
    p, y = [0.7] * 57 + [0.4] * 30 + [0.2] * 5000, [1] * 57 + [0] * 30 + [1] * 5000
    grid = certify_precision(p, y, 0.9, confidence=0.95).grid
    assert grid is not None
    assert not ((grid > 0.2) & (grid <= 0.4)).any()
    assert {0.401, 0.7, 0.2, 0.001} <= set(np.round(grid, 3).tolist())
