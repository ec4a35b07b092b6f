"""Everything a report says about one classifier of many classes, as one frozen record, and how it is computed."""

import dataclasses
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from numpy.typing import ArrayLike

from headeval.class_calibrated import ClassCalibrated
from headeval.class_decided import decision_metrics, missing_classes
from headeval.class_ranked import ClassRanked
from headeval.class_rates import CLASS_RATES, ClassRates, decided_rates
from headeval.class_rows import ClassRows
from headeval.core import checks
from headeval.core.bins import Binning, ReliabilityTable
from headeval.core.calibration_evidence import CalibrationNoise
from headeval.core.checks import IntArray
from headeval.core.class_counts import confusion_matrix
from headeval.evidence import FEWEST_RESAMPLES, MOST_RESAMPLES, Resampling
from headeval.metric import Metric, MetricInfo, described
from headeval.printable import listed
from headeval.scored_rows import ScoreKind

__all__ = ["CLASS_METRICS", "CLASS_RATES", "ClassEvaluation", "ClassRates", "evaluate_classes"]

_CLASSES_OF_ALL_RESAMPLES = 100_000


@dataclass(frozen=True, slots=True)
class ClassEvaluation:
    """What a classifier of C classes did on labelled rows, whatever the threshold of the last one.

    Undefined is undefined: a class without rows has no recall and no AUC, a class that is never predicted no precision,
    and an average over classes that holds one of these is undefined too, with a reason that names the class. Others put
    0 there (scikit-learn, with a warning) or leave the class out, which changes what is averaged.

    Attributes
    ----------
    classes : names of the C classes.
    n : labelled rows.
    confusion : (C, C) rows, whatever their weights, true classes down and predicted ones across. The predicted class is
        that of the largest score, the first of equal ones.
    reliability : the top-label table: confidence of the predicted class against being right.
    noise : of that table, the ECE that chance alone would show.
    per_class : one against the rest, in the order of `classes`.
    confidence : of all intervals; None where none were asked for.
    resampling : how the bootstrap intervals were drawn; None where there are none.
    weighted : whether rows were weighted; counts stay numbers of rows.
    notes : sentences a reader must not miss.
    """

    classes: tuple[str, ...]
    n: int
    confusion: IntArray
    reliability: ReliabilityTable
    noise: CalibrationNoise
    per_class: tuple[ClassRates, ...]
    confidence: float | None
    resampling: Resampling | None
    weighted: bool
    notes: tuple[str, ...]
    top1_accuracy: Metric = described("top-1 accuracy", "decision", "the class of the largest score is the right one")
    balanced_accuracy: Metric = described("balanced accuracy", "decision", "mean recall of the classes")
    macro_precision: Metric = described("macro precision", "decision", "mean over the classes, each counting alike")
    macro_recall: Metric = described("macro recall", "decision", "mean over the classes, each counting alike")
    macro_f1: Metric = described("macro F1", "decision", "mean over the classes, each counting alike")
    micro_precision: Metric = described("micro precision", "decision", "over all decisions: the top-1 accuracy")
    micro_recall: Metric = described("micro recall", "decision", "over all decisions: the top-1 accuracy")
    micro_f1: Metric = described("micro F1", "decision", "over all decisions: the top-1 accuracy")
    weighted_precision: Metric = described("weighted precision", "decision", "mean over the classes by their rows")
    weighted_recall: Metric = described("weighted recall", "decision", "mean over the classes by their rows")
    weighted_f1: Metric = described("weighted F1", "decision", "mean over the classes by their rows")
    macro_auc: Metric = described("macro AUC", "ranking", "mean AUC of each class against the rest")
    hand_till_auc: Metric = described("Hand-Till AUC", "ranking", "mean AUC over all pairs of classes")
    top_label_ece: Metric = described("top-label ECE", "calibration", "mean gap between confidence and accuracy")
    top_label_mce: Metric = described("top-label MCE", "calibration", "largest gap of a bin", has_interval=False)
    classwise_ece: Metric = described("class-wise ECE", "calibration", "mean over the classes of their own ECE")
    multiclass_log_loss: Metric = described(
        "log loss of all classes", "calibration", "nats a row; 0 is perfect", scale="positive"
    )
    multiclass_brier: Metric = described(
        "Brier score of all classes", "calibration", "sum over the classes; 0 is perfect, 2 the worst", scale="positive"
    )

    def metrics(self) -> Iterator[tuple[MetricInfo, Metric]]:
        """Yield every metric with its description, in the order of the fields."""
        for info in CLASS_METRICS.values():
            yield info, getattr(self, info.name)


CLASS_METRICS = {
    entry.name: MetricInfo(entry.name, **entry.metadata)
    for entry in dataclasses.fields(ClassEvaluation)
    if "title" in entry.metadata
}


def evaluate_classes(
    scores: ArrayLike,
    labels: ArrayLike,
    *,
    kind: ScoreKind,
    classes: Sequence[str],
    confidence: float | None = 0.95,
    n_resamples: int | None = None,
    seed: int = 0,
    weights: ArrayLike | None = None,
    groups: ArrayLike | None = None,
    n_bins: int | None = None,
    binning: Binning = "equal-width",
) -> ClassEvaluation:
    """Judge scores of C classes against labels, and say how sure each number is; nothing undefined becomes a number.

    Classes are ranked by their log-odds where logits are known, since probabilities saturate and tie. Class-wise ECE
    (Kull et al. 2019) is the mean over the classes of the gap between p_c and the share of class c, in 15 bins by
    default as the top-label ECE. The rows are sorted first, so that their order changes no bit of the result.

    Parameters
    ----------
    scores : (n, C) logits or probabilities, as `kind` says; n ≥ 1, C ≥ 2. The probabilities of a row add up to 1, up to
        what rounding to two digits does.
    labels : (n,) in {0, …, C−1}; a class need not occur.
    kind : "logit" or "prob".
    classes : C names.
    confidence : of the intervals, in (0, 1); None computes none.
    n_resamples : of the bootstrap, ≥ 0; 0 leaves its intervals out, None takes 1,000, fewer for many classes. Of more
        than 1,000 rows or groups, so many random batches of them are drawn instead.
    seed : of all random numbers, ≥ 0.
    weights : (n,), not negative, not all zero; every metric is then weighted, counts stay numbers of rows.
    groups : (n,) codes; rows of one group are not independent of each other, which widens the intervals.
    n_bins, binning : of all calibration tables, as for `reliability_table`; None takes 15.

    Raises
    ------
    ValueError
        When an argument breaks the above.

    References
    ----------
    Kull et al., Beyond temperature scaling: obtaining well-calibrated multi-class probabilities with Dirichlet
    calibration, NeurIPS 2019, on class-wise ECE.

    Examples
    --------
    >>> found = evaluate_classes(
    ...     [[0.7, 0.2, 0.1], [0.1, 0.8, 0.1], [0.5, 0.3, 0.2]], [0, 1, 2], kind="prob", classes=("a", "b", "c")
    ... )
    >>> found.confusion.tolist(), round(found.top1_accuracy.value, 4), found.per_class[2].recall.value
    ([[1, 0, 0], [0, 1, 0], [1, 0, 0]], 0.6667, 0.0)
    >>> found.macro_precision.value, found.macro_precision.reason
    (None, "class 'c' is never predicted, so that it has no precision")
    """
    rows = ClassRows.in_order(scores, labels, kind=kind, weights=weights, groups=groups)
    names = _checked_names(classes, rows.n_classes)
    confidence = None if confidence is None else checks.confidence_level(confidence)
    planned = _planned(rows, n_resamples, seed)
    resampling = planned if confidence is not None and planned.n_resamples else None
    calibrated = ClassCalibrated.of(
        rows, n_bins, binning, confidence=confidence, resampling=resampling, seed=planned.seed
    )
    return _judge(rows, names, calibrated, confidence=confidence, resampling=resampling)


def _judge(
    rows: ClassRows,
    names: tuple[str, ...],
    calibrated: ClassCalibrated,
    *,
    confidence: float | None,
    resampling: Resampling | None,
) -> ClassEvaluation:
    ranked = ClassRanked.of(rows, names, confidence=confidence)
    decided = decided_rates(rows, confidence)
    confusion = confusion_matrix(rows.y, rows.predicted, n_classes=rows.n_classes)
    return ClassEvaluation(
        classes=names,
        n=rows.n,
        confusion=confusion,
        reliability=calibrated.reliability,
        noise=calibrated.noise,
        per_class=_per_class(names, confusion, decided, ranked, calibrated),
        confidence=confidence,
        resampling=resampling,
        weighted=rows.weights is not None,
        notes=_notes(rows, names, confusion),
        macro_auc=ranked.macro_auc,
        hand_till_auc=ranked.hand_till_auc,
        **calibrated.metrics,
        **decision_metrics(rows, names, decided, confidence=confidence),
    )


def _checked_names(classes: Sequence[str], n_classes: int) -> tuple[str, ...]:
    names = tuple(classes)
    if isinstance(classes, str) or not all(isinstance(name, str) for name in names):
        raise ValueError(f"classes must be the names of the {n_classes} classes, got {classes!r}")
    if len(names) != n_classes or len(set(names)) != n_classes:
        raise ValueError(f"classes must be {n_classes} different names, one a column of scores, got {len(set(names))}")
    return names


def _planned(rows: ClassRows, n_resamples: int | None, seed: int) -> Resampling:
    planned = Resampling.planned(rows.top, n_resamples, seed)
    if n_resamples is not None:
        return planned
    # Batches are what is drawn, so that the number of rows costs nothing; every class costs the same.
    fitting = max(FEWEST_RESAMPLES, min(MOST_RESAMPLES, _CLASSES_OF_ALL_RESAMPLES // rows.n_classes))
    return dataclasses.replace(planned, n_resamples=fitting)


def _per_class(
    names: tuple[str, ...],
    confusion: IntArray,
    decided: Sequence[dict[str, Metric]],
    ranked: ClassRanked,
    calibrated: ClassCalibrated,
) -> tuple[ClassRates, ...]:
    rows, predicted = confusion.sum(axis=1).tolist(), confusion.sum(axis=0).tolist()
    return tuple(
        ClassRates(
            name,
            rows[c],
            predicted[c],
            auc=ranked.aucs[c],
            ap=ranked.precisions[c],
            ece=calibrated.errors[c],
            **decided[c],
        )
        for c, name in enumerate(names)
    )


def _notes(rows: ClassRows, names: tuple[str, ...], confusion: IntArray) -> tuple[str, ...]:
    """Return what would otherwise be misread."""
    notes = []
    if not rows.counts.actual.all():
        notes.append(f"{missing_classes(rows, names)}: macro averages over the classes are undefined")
    silent = (confusion.sum(axis=0) == 0) & (confusion.sum(axis=1) > 0)
    if silent.any():
        which = listed(name for name, here in zip(names, silent, strict=True) if here)
        notes.append(f"never predicted: {which}")
    if rows.kind == "logit" and rows.s.min() >= 0 and rows.s.max() <= 1:
        notes.append("all logits lie between 0 and 1: are they probabilities?")
    return tuple(notes)
