"""One solver in a process of its own: `python benchmarks/solvers.py NAME FOLDER [--l2 1]`, driven by `race`.

The data lies in memory before the clock starts, in the type that the solver works in; what headeval converts, it
converts on the clock. All minimise Σ softplus(z) − y z + (l2/2) ‖w‖² over the rows, which scikit-learn writes with
C = 1/l2 and, like glum with alpha = l2/n, divides by n: a tolerance on its gradient is divided too.
"""

import argparse
import warnings
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
from embeddings import read_arrays
from gradient import gradient_norm, unit_rows
from numpy.typing import NDArray
from waiting import wait_and_run

TOLERANCE = 1e-9
Call = Callable[[], Any]


@dataclass(frozen=True, slots=True)
class Task:
    """Attributes: embeddings (n, d) and labels (n,) to fit on, and the penalty."""

    X: NDArray[np.float32]
    y: NDArray[np.uint8]
    l2: float


@dataclass(frozen=True, slots=True)
class Found:
    """What a fit gave.

    Attributes
    ----------
    w : (d+1,) with the intercept last; None for what fits nothing.
    steps : or passes over the rows.
    l2 : the penalty chosen, where there were several.
    more : whatever else the table shows.
    """

    w: NDArray[np.float64] | None
    steps: int
    l2: float | None = None
    more: dict[str, Any] = field(default_factory=dict)


def headeval(task: Task) -> Call:
    """Return headeval's solver."""
    from headeval.core.threads import thread_count
    from headeval.solver.memory import ArraySource
    from headeval.solver.optimum import optima
    from headeval.solver.rows import RowColumns

    def fit() -> Found:
        source = ArraySource.of(task.X, RowColumns(task.y))
        return Found(optima(source, l2=task.l2)[0].w, source.passes, more={"threads": thread_count()})

    return fit


def irls(task: Task) -> Call:
    """Return headeval's Newton method on all rows in float64."""
    from headeval.core.logistic import fit_logistic

    X, y = unit_rows(task.X), task.y.astype(np.int64)

    def fit() -> Found:
        found = fit_logistic(X, y, l2=task.l2)
        return Found(found.w, found.steps)

    return fit


def product(task: Task) -> Call:
    """Return one float32 product of the matrix with its own transpose."""

    def multiply() -> Found:
        task.X.T @ task.X
        return Found(None, 1)

    return multiply


def _scikit_learn(X: NDArray[Any], y: NDArray[np.uint8], **settings: Any) -> Call:
    from sklearn.linear_model import LogisticRegression

    def fit() -> Found:
        model = LogisticRegression(**settings).fit(X, y)
        return Found(np.append(model.coef_[0].astype(np.float64), model.intercept_[0]), int(model.n_iter_[0]))

    return fit


def newton_cholesky(task: Task) -> Call:
    """Return scikit-learn's Newton method, to the same gradient."""
    tol = TOLERANCE / len(task.y)
    return _scikit_learn(unit_rows(task.X), task.y, C=1 / task.l2, solver="newton-cholesky", tol=tol)


def lbfgs(task: Task) -> Call:
    """Return what scikit-learn does unless told otherwise."""
    return _scikit_learn(task.X, task.y, C=1 / task.l2)


def lbfgs_to_the_end(task: Task) -> Call:
    """Return scikit-learn's L-BFGS, as far as it goes."""
    tol = TOLERANCE / len(task.y)
    return _scikit_learn(unit_rows(task.X), task.y, C=1 / task.l2, tol=tol, max_iter=10_000)


def glum(task: Task) -> Call:
    """Return glum's iteratively reweighted least squares, to the same gradient."""
    from glum import GeneralizedLinearRegressor

    X, y, n = unit_rows(task.X), task.y.astype(np.float64), len(task.y)
    settings: dict[str, Any] = {"family": "binomial", "alpha": task.l2 / n, "l1_ratio": 0}

    def fit() -> Found:
        # Its tolerance is on the sum of the entries, which is √d times the largest and more.
        tol = TOLERANCE / n * np.sqrt(X.shape[1])
        model = GeneralizedLinearRegressor(**settings, gradient_tol=tol, max_iter=30).fit(X, y)
        return Found(np.append(model.coef_, model.intercept_), int(model.n_iter_))

    return fit


SOLVERS: dict[str, Callable[[Task], Call]] = {
    "headeval": headeval,
    "irls": irls,
    "newton-cholesky": newton_cholesky,
    "lbfgs": lbfgs,
    "lbfgs-to-the-end": lbfgs_to_the_end,
    "glum": glum,
    "product": product,
}


def serve(calls: Mapping[str, Callable[[Task], Call]]) -> None:
    """Load, wait, run one of them."""
    parser = argparse.ArgumentParser(description="One solver, driven by the benchmarks.")
    parser.add_argument("name", choices=calls)
    parser.add_argument("folder", type=Path)
    parser.add_argument("--l2", type=float, default=1.0)
    asked = parser.parse_args()
    warnings.simplefilter("ignore")  # the gradient tells how far each came
    task = Task(*read_arrays(asked.folder), asked.l2)

    def facts(found: Found) -> dict[str, Any]:
        l2 = task.l2 if found.l2 is None else found.l2
        norm = None if found.w is None else gradient_norm(task.X, task.y, found.w, l2=l2)
        return {"gradient": norm, "steps": found.steps, "l2": l2, **found.more}

    wait_and_run(calls[asked.name](task), facts)


if __name__ == "__main__":
    serve(SOLVERS)
