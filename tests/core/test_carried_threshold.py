"""A calibration carries the threshold along, so that no decision changes on the rows at hand."""

import mpmath
import numpy as np
import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from headeval.core.scaling import Scaling
from headeval.core.stable import sigmoid
from headeval.core.thresholds import DecisionChanges, decision_changes

moderate = st.floats(-12, 12)


@example([6.0], 6.0, 1.0, 0.998046875)  # 37 is a logit whose sigmoid is 1
@given(
    st.lists(moderate, min_size=1, max_size=50),
    st.floats(0.05, 8),
    st.floats(-3, 3),
    st.one_of(st.floats(0.001, 0.999), st.integers(0, 49)),
)
def test_no_decision_changes_wherever_floats_can_tell_the_rows_apart(
    logits: list[float], slope: float, intercept: float, t: float | int
) -> None:
    """Also where the threshold is the very probability of a row, which rounding easily pushes aside."""
    scaling = Scaling("platt", slope, intercept, 0.5, 0.4)
    before, after = sigmoid(logits), sigmoid(scaling.apply(logits))
    threshold = float(before[t % len(before)]) if isinstance(t, int) else t
    moved = scaling.carry_threshold(threshold, before, after)
    assert 0 <= moved <= 1
    flagged, now = before >= threshold, after >= moved
    lost = flagged & ~now
    assert not lost.any()  # what was flagged stays flagged
    # a threshold is at most 1, so a row whose probability rounds to 1 cannot be passed
    gap = after[flagged].min(initial=1.0) > after[~flagged].max(initial=-1.0)
    if gap:
        np.testing.assert_array_equal(flagged, now)


def test_the_carried_threshold_is_the_image_of_the_old_one() -> None:
    scaling = Scaling("platt", 1.7, -0.8, 0.5, 0.4)
    with mpmath.workdps(40):
        logit = mpmath.log(mpmath.mpf(0.3)) - mpmath.log(1 - mpmath.mpf(0.3))
        expected = 1 / (1 + mpmath.exp(-(mpmath.mpf(1.7) * logit - mpmath.mpf(0.8))))
    rows = np.array([0.01, 0.99])
    moved = scaling.carry_threshold(0.3, rows, sigmoid(scaling.apply(np.log(rows / (1 - rows)))))
    assert moved == pytest.approx(float(expected), rel=1e-14)


def test_temperature_leaves_a_half_a_half_and_everything_stays_flagged() -> None:
    scaling = Scaling("temperature", 0.37, 0.0, 0.5, 0.4)
    rows = np.array([0.2, 0.8])
    after = sigmoid(scaling.apply(np.log(rows / (1 - rows))))
    assert scaling.carry_threshold(0.5, rows, after) == 0.5
    platt = Scaling("platt", 0.37, 2.0, 0.5, 0.4)
    assert platt.carry_threshold(0.0, rows, after) == 0.0


def test_at_a_threshold_of_1_the_rows_whose_probability_rounds_to_it_stay_flagged() -> None:
    scaling = Scaling("temperature", 0.05, 0.0, 0.5, 0.4)
    logits = np.array([-3.0, 30.0, 36.5, 38.0, 45.0])
    before, after = sigmoid(logits), sigmoid(scaling.apply(logits))
    assert (before >= 1).tolist() == [False, False, False, True, True]
    carried = scaling.carry_threshold(1.0, before, after)
    assert carried < 0.9
    assert (after >= carried).tolist() == [False, False, False, True, True]


def test_the_threshold_moves_into_the_gap_that_rounding_has_left() -> None:
    """One row passed and one flagged, whose images the float image of the threshold fails to separate."""
    scaling = Scaling("platt", 1.0, 0.0, 0.5, 0.4)
    assert scaling.carry_threshold(0.5, [0.4, 0.6], [0.7, 0.8]) == np.nextafter(0.7, 1)
    assert scaling.carry_threshold(0.5, [0.4, 0.6], [0.2, 0.3]) == 0.3
    with pytest.raises(ValueError, match="same length"):
        scaling.carry_threshold(0.5, [0.4, 0.6], [0.2])


@pytest.mark.parametrize("threshold", [-0.1, 1.0000000000000002, 1.5])
def test_a_threshold_that_is_no_probability_is_not_carried(threshold: float) -> None:
    with pytest.raises(ValueError, match=r"^threshold must be finite and between 0 and 1, got"):
        Scaling("platt", 1.0, 0.0, 0.5, 0.4).carry_threshold(threshold, [0.4, 0.6], [0.7, 0.8])


def test_changes_are_counted_with_each_side_at_its_own_threshold() -> None:
    # flagged before: the last two; flagged after at 0.8: the first and the last
    before, after = [0.1, 0.3, 0.6, 0.9], [0.8, 0.7, 0.7, 0.9]
    assert decision_changes(before, after, threshold=0.5, threshold_after=0.8) == DecisionChanges(1, 1)
    assert decision_changes(before, after, threshold=0.5) == DecisionChanges(2, 0)


def test_a_threshold_of_1_is_carried_without_rows_that_would_pin_it() -> None:
    """From the logit 54·ln 2 on a probability rounds to 1."""
    scaling = Scaling("temperature", 0.05, 0.0, 0.5, 0.4)
    expected = 1 / (1 + mpmath.exp(-mpmath.mpf(0.05) * 54 * mpmath.log(2)))
    assert scaling.carry_threshold(1.0, [0.2], [0.4]) == pytest.approx(float(expected), rel=1e-12)
