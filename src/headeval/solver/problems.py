"""What is to be minimised, and when it counts as done."""

from dataclasses import dataclass

import numpy as np

from headeval.core.checks import FloatArray
from headeval.core.newton import GRADIENT_TOLERANCE
from headeval.solver.rows import RowColumns

_MEAN_AGREES = 5e-12  # half of what the contract asks for
# Of the loss of a row, for each dimension, may be left to gain: a sample's optimum is off by more than that anyway.
_SAMPLE_ENOUGH = 0.1
_EPS = float(np.finfo(np.float64).eps)


@dataclass(frozen=True, slots=True)
class Problem:
    """One loss to be minimised over a source's rows.

    Attributes
    ----------
    l2 : penalty on all weights but the intercept.
    left_out : the fold whose rows do not count, or None.
    tolerance : of ‖g‖∞.
    close_enough : of gᵀ B⁻¹ g, about twice the loss still to be gained; 0 goes by the gradient alone.
    loss_rounding : of the sum of the losses, beside that of its relative size.
    category : whose labels are meant, where rows have several.
    """

    l2: float
    left_out: int | None
    tolerance: float
    close_enough: float = 0.0
    loss_rounding: float = 0.0
    category: int | None = None


def problem_of(columns: RowColumns, l2: float, left_out: int | None, close_enough: float = 0.0) -> Problem:
    """Return the problem of all rows, or of all but those of a fold."""
    # log(1 + e) is exact to eps of a nat, not of itself, in every row.
    rounding = _EPS * max(1.0, total_weight(columns, left_out))
    return Problem(l2, left_out, gradient_tolerance(columns, left_out), close_enough, rounding)


def problem_of_a_sample(columns: RowColumns, l2: float, d: int) -> Problem:
    """Return the problem of rows that stand for more rows, and so need not be followed to the end."""
    return Problem(l2, None, 0.0, _SAMPLE_ENOUGH * d * weight_of_a_row(columns))


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
    return float(sum(columns.class_weights(left_out)))


def weight_of_a_row(columns: RowColumns) -> float:
    """Return what a row counts on average, or 1 where none counts: the unit of what is lost in a row."""
    return total_weight(columns, None) / columns.n or 1.0


def null_weights(columns: RowColumns, d: int) -> FloatArray:
    """Return the best weights (d+1,) without any feature: the log-odds of the positives as the intercept."""
    negative, positive = columns.class_weights(None)
    w = np.zeros(d + 1)
    if positive and negative:
        w[-1] = np.log(positive) - np.log(negative)
    return w


def one_class(columns: RowColumns, left_out: int | None) -> bool:
    """Whether rows of one class only count, so that the intercept would go on for ever."""
    return not all(columns.class_weights(left_out))
