"""Logistic regression by Newton's method, which for this loss is iteratively reweighted least squares (IRLS).

The loss, its gradient and its Hessian stand in `headeval.core.newton`.
"""

import numpy as np
from numpy.typing import ArrayLike

from headeval.core import checks
from headeval.core.checks import FloatArray
from headeval.core.newton import LogisticFit, LogisticProblem, Reason, newton
from headeval.core.stable import sigmoid

LARGEST_FEATURE = 1e140  # a sum of squares of larger ones would leave the range of float64


def fit_logistic(
    X: ArrayLike,
    y: ArrayLike,
    *,
    l2: float,
    iters: int = 100,
    fit_intercept: bool = True,
    sample_weight: ArrayLike | None = None,
) -> LogisticFit:
    """Minimise the penalised logistic loss from w = 0 and tell how it went.

    Parameters
    ----------
    X : (n, d) features, n ≥ 1, finite, none beyond ±1e140.
    y : (n,) labels in {0, 1}.
    l2 : ridge penalty on the feature weights, finite and ≥ 0; scikit-learn's C = 1/l2.
    iters : most Newton steps, an integer ≥ 1.
    fit_intercept : whether a column of ones is appended to X; its weight is never penalised.
    sample_weight : (n,) row weights ≥ 0, finite and not all zero; a weight of 2 equals the row twice. None is 1 each.

    Returns
    -------
    fit : `fit.w` is (d+1,) with the intercept **last**, or (d,) without one.

    Raises
    ------
    ValueError
        When an argument breaks the above. A fit that does not converge is returned, not raised.

    References
    ----------
    McCullagh and Nelder, Generalized Linear Models, 2nd ed. 1989, section 2.5.

    Examples
    --------
    >>> fit = fit_logistic([[1.0], [-1.0]], [1, 0], l2=1.0, fit_intercept=False)
    >>> round(float(fit.w[0]), 4), fit.reason.name
    (0.6748, 'CONVERGED')
    """
    problem = _checked_problem(X, y, l2, fit_intercept, sample_weight)
    return newton(problem, checks.whole_number("iters", iters, minimum=1), stop_if_separated=True)


def logistic_regression_fit(
    X: ArrayLike, y: ArrayLike, l2: float, iters: int, fit_intercept: bool = True
) -> FloatArray:
    """Return the weights after at most `iters` Newton steps from w = 0.

    At the optimum the largest entry of the gradient is at most 1e-9, or the rounding of its own sum where that is
    larger (with features of size 1, for more than about a million rows).

    Parameters
    ----------
    X : (n, d) features, n ≥ 1, finite, none beyond ±1e140.
    y : (n,) labels in {0, 1}.
    l2 : ridge penalty on the feature weights, finite and ≥ 0; scikit-learn's C = 1/l2.
    iters : most steps, an integer ≥ 1; fewer once max|δ| ≤ 1e-12 · max(1, max|w|).
    fit_intercept : whether a column of ones is appended to X; its weight is never penalised.

    Returns
    -------
    w : (d+1,) with the intercept **last**, or (d,) without one.

    Raises
    ------
    ValueError
        When an argument breaks the above, or when the Hessian is singular.

    References
    ----------
    McCullagh and Nelder, Generalized Linear Models, 2nd ed. 1989, section 2.5.

    Examples
    --------
    One step from zero: g = −1, H = 2·¼ + 1, so w = 2/3.

    >>> logistic_regression_fit([[1.0], [-1.0]], [1, 0], 1.0, 1, fit_intercept=False).round(6).tolist()
    [0.666667]
    """
    problem = _checked_problem(X, y, l2, fit_intercept, None)
    fit = newton(problem, checks.whole_number("iters", iters, minimum=1), stop_if_separated=False)
    if fit.reason is Reason.SINGULAR:
        raise ValueError(fit.reason.value)
    return fit.w


def logistic_predict_proba(X: ArrayLike, w: ArrayLike, fit_intercept: bool = True) -> FloatArray:
    """Return p = sigmoid(Xa w), the probability of class 1.

    Parameters
    ----------
    X : (n, d) features, finite.
    w : (d+1,) with the intercept last, or (d,) without one; finite.
    fit_intercept : whether w has an intercept.

    Returns
    -------
    p : (n,) in [0, 1].

    Raises
    ------
    ValueError
        When an argument breaks the above.

    Examples
    --------
    >>> logistic_predict_proba([[0.0], [1000.0]], [1.0, 0.0]).tolist()
    [0.5, 1.0]
    """
    Xa = _with_intercept(checks.finite_array("X", X, ndim=2), fit_intercept)
    w = checks.finite_array("w", w, ndim=1)
    if w.shape[0] != Xa.shape[1]:
        raise ValueError(f"w must have length {Xa.shape[1]}, got {w.shape[0]}")
    with np.errstate(over="ignore"):  # a logit beyond the range of float64 is p = 0 or 1
        return sigmoid(Xa @ w)


def _with_intercept(X: FloatArray, fit_intercept: bool) -> FloatArray:
    Xa = np.column_stack([X, np.ones(X.shape[0])]) if fit_intercept else X
    return np.ascontiguousarray(Xa)  # the order of the sums, and so the last bit, must not depend on the layout


def _checked_problem(
    X: ArrayLike, y: ArrayLike, l2: float, fit_intercept: bool, sample_weight: ArrayLike | None
) -> LogisticProblem:
    Xa = _with_intercept(checks.finite_array("X", X, ndim=2), fit_intercept)
    n = Xa.shape[0]
    if n == 0:
        raise ValueError("X must have at least one row")
    largest = max(Xa.max(initial=0.0), -Xa.min(initial=0.0))
    if largest > LARGEST_FEATURE:
        raise ValueError(f"X must not hold values beyond {LARGEST_FEATURE:g}, got {largest:g}")
    labels = checks.binary_labels(y, n=n).astype(np.float64)
    penalty = np.full(Xa.shape[1], checks.real_number("l2", l2, minimum=0.0))
    if fit_intercept:
        penalty[-1] = 0.0
    s = checks.sample_weights(sample_weight, n=n, name="sample_weight")
    return LogisticProblem(Xa, labels, np.ones(n) if s is None else s, penalty)
