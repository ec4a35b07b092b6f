"""How often the intervals of a classifier of three classes hold the truth, in simulated samples of 300 rows."""

import numpy as np
import pytest
from scipy import special
from sklearn import metrics

from headeval.multiclass import evaluate_classes

SAMPLES, N, MANY = 150, 300, 300_000
LEAST_COVERED = 0.90  # at nominal 95 %; the standard error of a share of 150 samples is 1.8 %
PRIORS = {"even": (0.4, 0.35, 0.25), "rare": (0.8, 0.1, 0.1)}


def sample(
    rng: np.random.Generator, n: int, prior: tuple[float, ...], separation: float, copies: int = 1
) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Gaussian classes with the logits of Bayes' rule; rows of a group agree in label and half of the noise."""
    units = n // copies
    y = np.repeat(rng.choice(len(prior), size=units, p=prior), copies)
    noise = rng.normal(size=(units * copies, len(prior)))
    if copies > 1:
        noise = np.sqrt(0.5) * (noise + np.repeat(rng.normal(size=(units, len(prior))), copies, axis=0))
    x = separation * np.eye(len(prior))[y] + noise
    return separation * x + np.log(prior), y, np.repeat(np.arange(units), copies)


def truth(prior: tuple[float, ...], separation: float) -> dict[str, float]:
    """The measures of very many rows, by scikit-learn."""
    z, y, _ = sample(np.random.default_rng(99), MANY, prior, separation)
    p, called = special.softmax(z, axis=1), z.argmax(axis=1)
    return {
        "top1_accuracy": metrics.accuracy_score(y, called),
        "macro_recall": metrics.recall_score(y, called, average="macro"),
        "macro_precision": metrics.precision_score(y, called, average="macro"),
        "macro_f1": metrics.f1_score(y, called, average="macro"),
        "weighted_f1": metrics.f1_score(y, called, average="weighted"),
        "macro_auc": metrics.roc_auc_score(y, p, multi_class="ovr"),
        "hand_till_auc": metrics.roc_auc_score(y, p, multi_class="ovo"),
        "multiclass_log_loss": metrics.log_loss(y, p),
        "multiclass_brier": float(((p - np.eye(len(prior))[y]) ** 2).sum(axis=1).mean()),
        "top_label_ece": 0.0,
        "classwise_ece": 0.0,
        "first:ap": metrics.average_precision_score(y == 0, p[:, 0]),
        "last:ap": metrics.average_precision_score(y == 2, p[:, 2]),
        "last:ece": 0.0,
    }


@pytest.mark.slow
@pytest.mark.parametrize(("prior", "separation", "copies"), [("rare", 2.0, 1), ("even", 2.0, 3)])
def test_intervals_cover(prior: str, separation: float, copies: int) -> None:
    """With groups too, whose rows are alike; the truth is that of many rows, or that a calibrated one has no error."""
    expected = truth(PRIORS[prior], separation)
    covered = dict.fromkeys(expected, 0)
    for seed in range(SAMPLES):
        rng = np.random.default_rng([seed, copies])
        z, y, groups = sample(rng, N, PRIORS[prior], separation, copies)
        found = evaluate_classes(
            z,
            y,
            kind="logit",
            classes=("first", "second", "last"),
            n_resamples=300,
            groups=None if copies == 1 else groups,
        )
        each = {rates.name: rates for rates in found.per_class}
        for name, value in expected.items():
            of, _, rate = name.rpartition(":")
            interval = getattr(each[of] if of else found, rate).interval
            covered[name] += interval is not None and interval.lower <= value <= interval.upper
    assert not {name: count / SAMPLES for name, count in covered.items() if count / SAMPLES < LEAST_COVERED}
