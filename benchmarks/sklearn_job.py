"""The whole job as people write it with pandas and scikit-learn: Parquet in, a head and a printed report out.

python benchmarks/sklearn_job.py rows.parquet head.json [--test test.parquet] [--solver newton-cholesky]
"""

import argparse
import json
from pathlib import Path

import numpy as np
import pandas as pd
from sklearn.calibration import calibration_curve
from sklearn.linear_model import LogisticRegression
from sklearn.metrics import (
    average_precision_score,
    brier_score_loss,
    classification_report,
    confusion_matrix,
    log_loss,
    roc_auc_score,
    roc_curve,
)


def read(path: Path) -> tuple[np.ndarray, np.ndarray]:
    """Return embeddings and labels."""
    frame = pd.read_parquet(path)
    X = np.stack(frame["embedding"].to_list())
    return X, (frame["label"] == "unsafe").to_numpy().astype(int)


def fit(X: np.ndarray, y: np.ndarray, solver: str) -> LogisticRegression:
    """Fit as it comes, or by Newton's method in float64 until the gradient vanishes."""
    if solver == "lbfgs":
        return LogisticRegression(C=1.0, max_iter=1000).fit(unit(X), y)
    return LogisticRegression(C=1.0, solver=solver, tol=1e-9 / len(y)).fit(unit(X.astype(np.float64)), y)


def unit(X: np.ndarray) -> np.ndarray:
    """Return rows of unit length."""
    return np.asarray(X / np.linalg.norm(X, axis=1, keepdims=True))


def report(y: np.ndarray, p: np.ndarray) -> None:
    """Print what there is to say about probabilities."""
    fpr, tpr, _ = roc_curve(y, p)
    print("ROC AUC", roc_auc_score(y, p))
    print("average precision", average_precision_score(y, p))
    print("recall at 1 % false positives", tpr[fpr <= 0.01].max())
    print("Brier score", brier_score_loss(y, p))
    print("log loss", log_loss(y, p))
    print("confusion", confusion_matrix(y, p >= 0.5).tolist())
    print(classification_report(y, p >= 0.5, target_names=["safe", "unsafe"]))
    for observed, predicted in zip(*calibration_curve(y, p, n_bins=10), strict=True):
        print(f"  {predicted:.3f} {observed:.3f}")


def main() -> None:
    """Read, fit, write, report."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("data", type=Path)
    parser.add_argument("head", type=Path)
    parser.add_argument("--test", type=Path)
    parser.add_argument("--solver", default="lbfgs", choices=["lbfgs", "newton-cholesky"])
    asked = parser.parse_args()
    X, y = read(asked.data)
    model = fit(X, y, asked.solver)
    head = {"weights": [model.coef_[0].tolist()], "bias": model.intercept_.tolist()}
    asked.head.write_text(json.dumps(head))
    if asked.test:
        X, y = read(asked.test)
        report(y, model.predict_proba(unit(X))[:, 1])


if __name__ == "__main__":
    main()
