"""One softmax solver in a process of its own: `python benchmarks/class_solvers.py NAME FOLDER [--l2 1]`, for `race`.

All minimise Σ logsumexp(z) − z_y + (l2/2) Σ ‖w_c‖² over the unit rows, every class penalised alike.
"""

import argparse
import warnings
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
from embeddings import read_arrays
from gradient import unit_rows
from numpy.typing import NDArray
from solvers import Call, Found, Task
from waiting import wait_and_run


def headeval(task: Task) -> Call:
    """Return headeval's solver."""
    from headeval.core.threads import thread_count
    from headeval.solver.memory import ArraySource
    from headeval.solver.rows import RowColumns
    from headeval.solver.softmax_training import train_classes

    n_classes, identity = int(task.y.max()) + 1, np.arange(len(task.y))

    def fit() -> Found:
        source = ArraySource.of(task.X, RowColumns(task.y))
        found = train_classes(source, n_classes=n_classes, penalties=(task.l2,), n_folds=0, identity=identity)
        return Found(found.fit.w, source.passes, more={"threads": thread_count()})

    return fit


def _lbfgs(task: Task, **settings: Any) -> Call:
    from sklearn.linear_model import LogisticRegression

    X = unit_rows(task.X)

    def fit() -> Found:
        model = LogisticRegression(C=1 / task.l2, **settings).fit(X, task.y)
        return Found(np.column_stack([model.coef_, model.intercept_]), int(np.max(model.n_iter_)))

    return fit


def lbfgs(task: Task) -> Call:
    """Return what scikit-learn does unless told otherwise, on rows in float64."""
    return _lbfgs(task)


def lbfgs_longer(task: Task) -> Call:
    """Return the same with as many steps as its tolerance takes."""
    return _lbfgs(task, max_iter=1000)


def lbfgs_to_the_end(task: Task) -> Call:
    """Return scikit-learn's L-BFGS, as far as it goes."""
    return _lbfgs(task, tol=1e-9 / len(task.y), max_iter=10_000)


SOLVERS: dict[str, Callable[[Task], Call]] = {
    "headeval": headeval,
    "lbfgs": lbfgs,
    "lbfgs-longer": lbfgs_longer,
    "lbfgs-to-the-end": lbfgs_to_the_end,
}


def class_gradient_norm(X: NDArray[np.float32], y: NDArray[np.uint8], W: NDArray[np.float64], *, l2: float) -> float:
    """Return ‖g‖∞ at weights (C, d+1) with the intercepts last, in float64 and by nothing of headeval."""
    rows = unit_rows(X)
    z = rows @ W[:, :-1].T + W[:, -1]
    p = np.exp(z - z.max(axis=1, keepdims=True))
    p /= p.sum(axis=1, keepdims=True)
    p[np.arange(len(y)), y] -= 1.0
    g = np.column_stack([p.T @ rows + l2 * W[:, :-1], p.sum(axis=0)])
    return float(np.abs(g).max())


def main() -> None:
    """Load, wait, run one of them."""
    parser = argparse.ArgumentParser(description="One softmax solver, driven by the benchmarks.")
    parser.add_argument("name", choices=SOLVERS)
    parser.add_argument("folder", type=Path)
    parser.add_argument("--l2", type=float, default=1.0)
    asked = parser.parse_args()
    warnings.simplefilter("ignore")  # the gradient tells how far each came
    task = Task(*read_arrays(asked.folder), asked.l2)

    def facts(found: Found) -> dict[str, Any]:
        if found.w is None:
            raise SystemExit("no weights")
        return {
            "gradient": class_gradient_norm(task.X, task.y, found.w, l2=task.l2),
            "steps": found.steps,
            "l2": task.l2,
            **found.more,
        }

    wait_and_run(SOLVERS[asked.name](task), facts)


if __name__ == "__main__":
    main()
