import math

import pytest
from scipy import stats

from headeval.core.student import student_quantile, student_tail


@pytest.mark.parametrize("freedom", [0.3, 1, 2.5, 11, 400, 1e7])
@pytest.mark.parametrize("confidence", [0.5, 0.9, 0.95, 0.999])
def test_quantiles_agree_with_scipy(freedom, confidence):
    expected = stats.t.ppf((1 + confidence) / 2, freedom)
    assert student_quantile(confidence, freedom) == pytest.approx(expected, rel=1e-9)


@pytest.mark.parametrize("freedom", [0.3, 1, 2.5, 11, 400, 1e7])
@pytest.mark.parametrize("t", [0.01, 1, 2.776, 9, 30])
def test_tails_agree_with_scipy(freedom, t):
    assert student_tail(t, freedom) == pytest.approx(2 * stats.t.sf(t, freedom), rel=1e-8, abs=1e-300)


def test_without_freedom_nothing_is_excluded():
    assert student_quantile(0.95, 0) == math.inf
    assert student_tail(5, 0) == student_tail(0, 3) == 1.0
    assert student_tail(1e9, 1e-9) == pytest.approx(1)
    assert student_quantile(0.95, 1e-9) > 1e300


@pytest.mark.parametrize("function", [student_quantile, student_tail])
def test_more_freedom_than_the_beta_distribution_takes_is_refused(function):
    with pytest.raises(ValueError, match="freedom must be finite and between 0 and 1e"):
        function(0.9, 2e150)


@pytest.mark.parametrize(("confidence", "freedom"), [(1.0, 3), (0.0, 3), (0.9, -1), (0.9, math.nan)])
def test_impossible_arguments_are_refused(confidence, freedom):
    with pytest.raises(ValueError, match="must"):
        student_quantile(confidence, freedom)
