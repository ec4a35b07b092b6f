"""Folds and penalties in a process of its own: `python benchmarks/trainings.py NAME FOLDER [--l2 1]`, driven by `race`.

Each gives weights from all rows; with folds also a score of every row by a fit that has not seen it; with a path the
penalty that did best out of fold, of the nine that `--l2 auto` tries.
"""

from typing import Any

import numpy as np
from solvers import Call, Found, Task, lbfgs, serve

FOLDS = 5
PENALTIES = (0.01, 0.03, 0.1, 0.3, 1.0, 3.0, 10.0, 30.0, 100.0)


def _headeval(task: Task, *, penalties: tuple[float, ...], n_folds: int, auto: bool = False) -> Call:
    from headeval.core.threads import thread_count
    from headeval.solver.memory import ArraySource
    from headeval.solver.rows import RowColumns
    from headeval.solver.training import train

    identity = np.arange(len(task.y))

    def fit() -> Found:
        source = ArraySource.of(task.X, RowColumns(task.y))
        found = train(source, penalties=penalties, n_folds=n_folds, identity=identity, auto=auto)
        more: dict[str, Any] = {"threads": thread_count()}
        if found.out_of_fold is not None:
            more["log_loss"] = _log_loss(task, found.out_of_fold)
        return Found(found.fit.w, found.passes, found.l2, more)

    return fit


def _log_loss(task: Task, logits: Any) -> float:
    return float(np.logaddexp(0.0, np.where(task.y > 0, -logits, logits)).mean())


def headeval(task: Task) -> Call:
    """Return a fit without folds."""
    return _headeval(task, penalties=(task.l2,), n_folds=0)


def headeval_folds(task: Task) -> Call:
    """Return a fit with out-of-fold logits."""
    return _headeval(task, penalties=(task.l2,), n_folds=FOLDS)


def headeval_auto(task: Task) -> Call:
    """Return a fit with the best of nine penalties, and out-of-fold logits."""
    return _headeval(task, penalties=PENALTIES, n_folds=FOLDS, auto=True)


def lbfgs_folds(task: Task) -> Call:
    """Return a fit and out-of-fold logits by scikit-learn, as they come."""
    from sklearn.linear_model import LogisticRegression
    from sklearn.model_selection import cross_val_predict

    alone = lbfgs(task)

    def fit() -> Found:
        found: Found = alone()
        model = LogisticRegression(C=1 / task.l2)
        logits = cross_val_predict(model, task.X, task.y, cv=FOLDS, method="decision_function")
        return Found(found.w, found.steps, None, {"log_loss": _log_loss(task, logits)})

    return fit


def lbfgs_path(task: Task) -> Call:
    """Return scikit-learn's choice among the same penalties, as it comes."""
    from sklearn.linear_model import LogisticRegressionCV

    def fit() -> Found:
        Cs = [1 / l2 for l2 in PENALTIES]
        model = LogisticRegressionCV(Cs=Cs, cv=FOLDS, scoring="neg_log_loss").fit(task.X, task.y)
        w = np.append(model.coef_[0].astype(np.float64), model.intercept_[0])
        return Found(w, int(np.sum(model.n_iter_)), 1 / float(np.ravel(model.C_)[0]))

    return fit


TRAININGS = {
    "headeval": headeval,
    "headeval-folds": headeval_folds,
    "headeval-auto": headeval_auto,
    "lbfgs": lbfgs,
    "lbfgs-folds": lbfgs_folds,
    "lbfgs-path": lbfgs_path,
}

if __name__ == "__main__":
    serve(TRAININGS)
