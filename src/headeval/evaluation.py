"""Everything a report says about one set of scored rows, as one frozen record, and how it is computed."""

import dataclasses
import math
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any, Literal, get_args

import numpy as np
from numpy.typing import ArrayLike

from headeval.core import checks
from headeval.core.calibration import Binning, Convention, ReliabilityTable, reliability_table
from headeval.core.checks import FloatArray, IntArray
from headeval.core.proper_scores import brier_score, log_loss, log_loss_from_logits
from headeval.core.ranking import average_precision, roc_auc
from headeval.core.stable import sigmoid
from headeval.core.thresholds import ConfusionCounts, confusion_counts

ScoreKind = Literal["logit", "prob"]


@dataclass(frozen=True, slots=True)
class Metric:
    """One number, or the reason why there is none.

    Attributes
    ----------
    value : None where undefined; infinite only for a log loss.
    reason : why it is undefined or infinite, else empty.
    """

    value: float | None
    reason: str = ""


@dataclass(frozen=True, slots=True)
class MetricInfo:
    """What a metric is called where people read it.

    Attributes
    ----------
    name : the field of `Evaluation`, the key in JSON, the name in a requirement.
    title : the row's heading in a table.
    group : "ranking", "calibration", "decision" or "data".
    what : one phrase that says what the number means.
    """

    name: str
    title: str
    group: str
    what: str

    @property
    def is_share(self) -> bool:
        """Whether the metric lies between 0 and 1."""
        return self.name not in {"n", "log_loss"}


def _metric(title: str, group: str, what: str) -> Any:
    return field(metadata={"title": title, "group": group, "what": what})


@dataclass(frozen=True, slots=True)
class Evaluation:
    """What a classifier did on labelled rows; every number that is shown anywhere comes from here.

    Attributes
    ----------
    classes : names of (negative, positive).
    threshold : a row is flagged when the probability of the positive class is ≥ this.
    counts : the four outcomes at the threshold.
    calibration : the chosen ECE convention first, then another one beside it; positive-class is always there.
    notes : sentences a reader must not miss.
    """

    classes: tuple[str, str]
    threshold: float
    counts: ConfusionCounts
    calibration: tuple[ReliabilityTable, ...]
    notes: tuple[str, ...]
    n: Metric = _metric("rows", "data", "labelled rows judged")
    prevalence: Metric = _metric("prevalence", "data", "share of positives")
    auc: Metric = _metric("AUC", "ranking", "P(a random positive outscores a random negative)")
    ap: Metric = _metric("average precision", "ranking", "a random ranking scores the prevalence")
    ece: Metric = _metric("ECE", "calibration", "mean gap between confidence and accuracy, chosen convention")
    mce: Metric = _metric("MCE", "calibration", "largest gap of a bin, chosen convention")
    ece_positive_class: Metric = _metric("ECE positive-class", "calibration", "mean gap between p and share positive")
    brier: Metric = _metric("Brier score", "calibration", "mean (p - y)²; 0 is perfect")
    log_loss: Metric = _metric("log loss", "calibration", "nats a row; 0 is perfect")
    accuracy: Metric = _metric("accuracy", "decision", "decided rightly")
    precision: Metric = _metric("precision", "decision", "of the flagged, truly positive")
    recall: Metric = _metric("recall", "decision", "of the positives, flagged")
    specificity: Metric = _metric("specificity", "decision", "of the negatives, passed")
    fpr: Metric = _metric("FPR", "decision", "of the negatives, flagged")
    f1: Metric = _metric("F1", "decision", "harmonic mean of precision and recall")

    @property
    def reliability(self) -> ReliabilityTable:
        """The positive-class table: does p mean the share of positives."""
        return next(table for table in self.calibration if table.convention == "positive-class")

    def metrics(self) -> Iterator[tuple[MetricInfo, Metric]]:
        """Yield every metric with its description, in the order of the fields."""
        for info in METRICS.values():
            yield info, getattr(self, info.name)


METRICS = {
    entry.name: MetricInfo(entry.name, **entry.metadata)
    for entry in dataclasses.fields(Evaluation)
    if "title" in entry.metadata
}


def evaluate(
    scores: ArrayLike,
    labels: ArrayLike,
    *,
    kind: ScoreKind,
    threshold: float = 0.5,
    classes: tuple[str, str] = ("0", "1"),
    ece_convention: Convention = "top-label",
    n_bins: int | None = None,
    binning: Binning = "equal-width",
) -> Evaluation:
    """Judge scores against labels; nothing undefined becomes a number.

    Ranking and log loss use logits where they are known, since float probabilities saturate and tie. The
    rows are sorted first, so that their order changes no bit of the result.

    Parameters
    ----------
    scores : (n,) logits (log-odds of class 1) or probabilities of class 1, as `kind` says; n ≥ 1.
    labels : (n,) in {0, 1}.
    kind : "logit" or "prob".
    threshold : in [0, 1], on the probability.
    classes : names of (negative, positive).
    ece_convention, binning : of the metrics `ece` and `mce`, as for `reliability_table`.
    n_bins : bins of every calibration table; None takes each convention's default.

    Raises
    ------
    ValueError
        When an argument breaks the above.

    Examples
    --------
    >>> evaluation = evaluate([0.9, 0.8, 0.3, 0.6], [1, 0, 0, 1], kind="prob")
    >>> evaluation.auc.value, evaluation.recall.value, evaluation.precision.value
    (0.75, 1.0, 0.6666666666666666)
    """
    s, y = _sorted_rows(scores, labels, kind)
    threshold = checks.real_number("threshold", threshold, minimum=0.0, maximum=1.0)
    if not isinstance(classes, tuple) or len(classes) != 2 or not all(isinstance(name, str) for name in classes):
        raise ValueError(f"classes must be a tuple of the two names (negative, positive), got {classes!r}")
    p = sigmoid(s) if kind == "logit" else s
    counts = confusion_counts(p, y, threshold=threshold)
    tables = tuple(
        reliability_table(p, y, convention=convention, n_bins=n_bins, binning=binning)
        for convention in _conventions(ece_convention)
    )
    positive_class = next(table for table in tables if table.convention == "positive-class")
    ranking = _ranking(s, y, counts)
    return Evaluation(
        classes=classes,
        threshold=threshold,
        counts=counts,
        calibration=tables,
        notes=_notes(s, p, kind, counts, positive_class) + _worse_than_chance(ranking["auc"]),
        n=Metric(float(counts.n)),
        prevalence=Metric(counts.positives / counts.n),
        **ranking,
        ece=Metric(tables[0].ece),
        mce=Metric(tables[0].mce),
        ece_positive_class=Metric(positive_class.ece),
        brier=Metric(brier_score(p, y)),
        log_loss=_log_loss(s, y, kind),
        **_decision(counts),
    )


def _sorted_rows(scores: ArrayLike, labels: ArrayLike, kind: ScoreKind) -> tuple[FloatArray, IntArray]:
    if kind not in get_args(ScoreKind):
        raise ValueError(f"kind must be one of {', '.join(get_args(ScoreKind))}, got {kind!r}")
    s = checks.probabilities("scores", scores) if kind == "prob" else checks.finite_array("scores", scores, ndim=1)
    y = checks.binary_labels(labels, n=s.shape[0])
    if not s.size:
        raise ValueError("scores must hold at least one row")
    order = np.lexsort((y, s))
    return s[order], y[order]


def _conventions(chosen: Convention) -> tuple[Convention, Convention]:
    """The operator's question, whether 0.9 means 90 %, is answered beside whatever was chosen."""
    return (chosen, "top-label" if chosen == "positive-class" else "positive-class")


def _ranking(s: FloatArray, y: IntArray, counts: ConfusionCounts) -> dict[str, Metric]:
    if not counts.positives:
        reason = "no row is positive"
        return {"auc": Metric(None, reason), "ap": Metric(None, reason)}
    if not counts.negatives:
        return {
            "auc": Metric(None, "every row is positive"),
            "ap": Metric(None, "every row is positive, so it is 1 whatever the scores"),
        }
    return {"auc": Metric(roc_auc(s, y)), "ap": Metric(average_precision(s, y))}


def _worse_than_chance(auc: Metric) -> tuple[str, ...]:
    if auc.value is None or auc.value >= 0.5:
        return ()
    return ("the scores rank worse than chance (AUC below 0.5): is the positive class the right one?",)


def _log_loss(s: FloatArray, y: IntArray, kind: ScoreKind) -> Metric:
    if kind == "logit":
        return Metric(log_loss_from_logits(s, y))
    loss = log_loss(s, y)
    if math.isfinite(loss):
        return Metric(loss)
    impossible = int(np.count_nonzero(np.where(y == 1, s == 0, s == 1)))
    return Metric(math.inf, f"the true class was given probability 0 in {impossible} {_rows(impossible)}")


def _decision(counts: ConfusionCounts) -> dict[str, Metric]:
    undefined = {
        "precision": "nothing is flagged",
        "recall": "no row is positive",
        "specificity": "no row is negative",
        "fpr": "no row is negative",
        "f1": "no row is positive and nothing is flagged",
    }
    names = ("accuracy", "precision", "recall", "specificity", "fpr", "f1")
    values = {name: getattr(counts, name) for name in names}
    return {name: Metric(value, undefined[name] if value is None else "") for name, value in values.items()}


def _notes(
    s: FloatArray, p: FloatArray, kind: ScoreKind, counts: ConfusionCounts, table: ReliabilityTable
) -> tuple[str, ...]:
    """Return what would otherwise be misread; each is decided by the numbers alone."""
    notes = []
    if kind == "logit":
        lost = np.unique(s).size - np.unique(p).size
        if lost:
            notes.append(
                f"{lost} distinct logits share a probability with another (float saturation); "
                "the ranking metrics use the logits"
            )
        if s[0] >= 0 and s[-1] <= 1:
            notes.append("all logits lie between 0 and 1: are they probabilities?")
    if table.binning == "equal-width" and np.count_nonzero(table.counts) == 1 and np.unique(p).size > 1:
        notes.append(
            "all probabilities fall into one bin, where ECE only compares their mean with the prevalence; "
            "--binning equal-mass divides them"
        )
    if counts.flagged == counts.n:
        notes.append("every row is flagged at this threshold")
    return tuple(notes)


def _rows(count: int) -> str:
    return "row" if count == 1 else "rows"
