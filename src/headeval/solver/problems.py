"""What is to be minimised, and when it counts as done."""

import numpy as np

from headeval.core.checks import FloatArray
from headeval.core.newton import GRADIENT_TOLERANCE
from headeval.solver.lbfgs import Problem
from headeval.solver.rows import RowColumns

_MEAN_AGREES = 5e-12  # half of what the contract asks for
_EPS = float(np.finfo(np.float64).eps)


def problem_of(columns: RowColumns, l2: float, left_out: int | None, close_enough: float = 0.0) -> Problem:
    """Return the problem of all rows, or of all but those of a fold."""
    # log(1 + e) is exact to eps of a nat, not of itself, in every row.
    rounding = _EPS * max(1.0, total_weight(columns, left_out))
    return Problem(l2, left_out, gradient_tolerance(columns, left_out), close_enough, rounding)


def gradient_tolerance(columns: RowColumns, left_out: int | None) -> float:
    """Return what ‖g‖∞ must fall below to count as zero: 1e-9, or the rounding of its own sum where that is larger.

    Of less than a hundred rows less is asked for: the intercept's part, divided by them, is mean(p) − mean(y), which is
    promised to vanish to 1e-11.
    """
    # The largest sum of terms is that of the intercept, since entries of unit vectors are at most 1.
    total = total_weight(columns, left_out)
    return max(4 * _EPS * total, min(GRADIENT_TOLERANCE, _MEAN_AGREES * total))


def total_weight(columns: RowColumns, left_out: int | None) -> float:
    """Return the sum of the weights of the rows that count."""
    return float(columns.counted(left_out).sum())


def null_weights(columns: RowColumns, d: int) -> FloatArray:
    """Return the best weights (d+1,) without any feature: the log-odds of the positives as the intercept."""
    s = columns.counted(None)
    positive, total = float(s[columns.labels > 0].sum()), float(s.sum())
    w = np.zeros(d + 1)
    if 0 < positive < total:
        w[-1] = np.log(positive) - np.log(total - positive)
    return w


def one_class(columns: RowColumns, left_out: int | None) -> bool:
    """Whether rows of one class only count, so that the intercept would go on for ever."""
    s = columns.counted(left_out)
    return not (s[columns.labels > 0].any() and s[columns.labels == 0].any())
