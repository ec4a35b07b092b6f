"""What `report` computes: the evaluation, and what stands beside it."""

import dataclasses
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from headeval.cli.reference_rows import read_reference
from headeval.cli.rows import Columns, read_subject
from headeval.cli.sources import Source, check_models, column_source, head_source
from headeval.cli.subject import Subject
from headeval.comparison import Comparison, compare
from headeval.core.calibration import ReliabilityTable, reliability_table
from headeval.core.class_scores import log_odds
from headeval.core.stable import sigmoid
from headeval.curves import Curves, curves
from headeval.drift import Drift, drift
from headeval.errors import DataError, UsageError
from headeval.evaluation import Evaluation
from headeval.evidence import Resampling
from headeval.files.heads import read_head
from headeval.files.row_sample import RowSample
from headeval.files.scores import declared_scores
from headeval.files.tables import Tables, open_tables
from headeval.printable import printable, quoted
from headeval.report import Slice
from headeval.slicing import judge_slice, worst_first

MOST_SLICES = 500


@dataclass(frozen=True, slots=True)
class Measured:
    """How the command line asks everything to be measured: arguments of `evaluate`.

    Attributes
    ----------
    confidence, n_resamples, seed : of the intervals.
    prevalence, per_day : of the traffic, for all rows only.
    ece_convention, n_bins, binning : of the calibration tables.
    """

    ece_convention: str
    n_bins: int | None
    binning: str
    confidence: float
    n_resamples: int | None
    seed: int
    prevalence: float | None
    per_day: float | None

    @property
    def traffic(self) -> dict[str, float | None]:
        """What is asked of all rows alone."""
        return {"prevalence": self.prevalence, "per_day": self.per_day}

    @property
    def options(self) -> dict[str, Any]:
        """What is asked of all rows and of each part, by the names of `evaluate`."""
        return {name: value for name, value in dataclasses.asdict(self).items() if name not in self.traffic}

    @property
    def class_options(self) -> dict[str, Any]:
        """What is asked of all classes together, by the names of `evaluate_classes`."""
        return {name: value for name, value in self.options.items() if name != "ece_convention"}


def judged_slices(subject: Subject, by: Sequence[str], whole: Evaluation, measured: Measured) -> tuple[Slice, ...]:
    """Return each value of each column, the slice that falls furthest below the whole first."""
    found: list[Slice] = []
    for column in dict.fromkeys(by):
        values = subject.examples.slices[column]
        names = sorted(set(values.tolist()))
        if len(names) > MOST_SLICES:
            raise UsageError(
                f"--by {quoted(column)} has {len(names):,} different values, at most {MOST_SLICES} are judged: "
                "name a column of groups"
            )
        parts = (judge_slice(column, name, _part(subject, column, name, measured), whole) for name in names)
        found += worst_first(parts)
    return tuple(found)


def _part(subject: Subject, column: str, name: str, measured: Measured) -> Evaluation:
    mask = subject.examples.slices[column] == name
    weights = subject.examples.weights
    if weights is not None and not weights[mask].any():
        raise DataError(
            f"--by {quoted(column)}: the slice {quoted(name)} has no weight, as --weight gives all of its rows 0; "
            "take these rows out of the file"
        )
    return subject.evaluate(mask, **measured.options)


def baseline_source(
    tables: Tables, subject: Source, *, head: Path | None, logit: str | None, prob: str | None
) -> Source | None:
    """Return what to compare with, or None; only one thing can be named."""
    if sum(option is not None for option in (head, logit, prob)) > 1:
        raise UsageError("--baseline, --baseline-logit and --baseline-prob exclude each other: name one")
    if head is not None:
        source = head_source(read_head(head), str(head))
    elif logit is not None:
        source = column_source(tables, logit, "logit", declared_scores(tables))
    elif prob is not None:
        source = column_source(tables, prob, "prob", declared_scores(tables))
    else:
        return None
    check_comparable(subject, source)
    return source


def check_comparable(subject: Source, baseline: Source) -> None:
    """Refuse a baseline that decides between other classes.

    Raises
    ------
    UsageError : naming the classes of both.
    """
    if subject.classes and baseline.classes and subject.classes != baseline.classes:
        raise UsageError(
            f"the baseline {printable(baseline.name)} has the classes {', '.join(map(quoted, baseline.classes))}, "
            f"what is judged has {', '.join(map(quoted, subject.classes))}: they cannot be compared"
        )


def read_baseline(
    subject: Subject, source: Source, columns: Columns, *, threshold: float | None, quiet: bool
) -> Subject:
    """Return the same rows scored by the baseline, at its own threshold where it has one."""
    head, logits = source.head, subject.also
    at = threshold if source.threshold is None else None
    if head is None or logits is None:
        source = _of_same_labels(source, subject.source)
        return read_subject(subject.tables, source, columns, threshold=at, hold=False, quiet=quiet)
    check_models(head, subject.tables, columns.embedding_model)
    return dataclasses.replace(
        subject, source=source, scores=logits, threshold=head.threshold, threshold_from="head", also=None
    )


def _of_same_labels(baseline: Source, subject: Source) -> Source:
    """One column of scores says nothing of more than two classes: labels are read as they are for what is judged."""
    if baseline.class_names is not None or subject.class_names is None:
        return baseline
    return dataclasses.replace(baseline, classes=subject.classes, class_names=subject.class_names)


def compared(subject: Subject, baseline: Subject, whole: Evaluation, measured: Measured) -> Comparison:
    """Return the comparison with the baseline; both are resampled together."""
    rows, others = subject.scored_rows(), baseline.scored_rows()
    return compare(
        whole,
        baseline.evaluate(**measured.options),
        rows,
        others,
        name=baseline.source.name,
        resampling=Resampling.planned(rows, measured.n_resamples, measured.seed),
    )


def drifted(
    subject: Subject,
    sample: RowSample,
    reference: Sequence[str],
    columns: Columns,
    measured: Measured,
    *,
    quiet: bool,
) -> Drift:
    """Return how the rows differ from those of the reference, scored by the same head or column.

    Parameters
    ----------
    sample : the embeddings of the rows, or of a random sample of them, gathered while they were read.
    """
    tables, sample = open_tables(reference), sample.finished()
    other = read_reference(tables, subject.source, columns, seed=measured.seed, quiet=quiet)
    embedded = subject.examples.embedding_at is not None
    return drift(
        subject.scores,
        other.scores,
        subject.labels,
        other.labels,
        sample.embeddings if embedded else None,
        other.sample.embeddings if embedded else None,
        None if subject.ids is None else subject.ids.tolist(),
        None if other.ids is None else other.ids.tolist(),
        subject.examples.digests if embedded else None,
        other.digests if embedded else None,
        rows=sample.rows if embedded else None,
        reference_rows=other.sample.rows if embedded else None,
        reference_stream=None if other.sample.complete else other.stream,
        reference=", ".join(reference),
        confidence=measured.confidence,
        seed=measured.seed,
    )


def before_calibration(subject: Subject, table: ReliabilityTable) -> ReliabilityTable | None:
    """Return the reliability before the head's last calibration, whose map is undone; None where there was none."""
    calibrations = subject.source.head.metrics.get("calibrations") if subject.source.head else None
    if not isinstance(calibrations, list) or not calibrations or not isinstance(calibrations[-1], dict):
        return None
    slope, intercept = (calibrations[-1].get(key) for key in ("slope", "intercept"))
    if not isinstance(slope, int | float) or not isinstance(intercept, int | float) or not slope > 0:
        return None
    logits = subject.class_logits
    if logits is None:
        before = (subject.scores - intercept) / slope
    elif intercept == 0:  # a temperature divides the logits of all classes, which is no map of the log-odds alone
        before = log_odds(logits / slope)
    else:
        return None
    return reliability_table(
        sigmoid(before),
        subject.labels,
        convention="positive-class",
        n_bins=table.n_bins if table.binning == "equal-width" else None,
        binning=table.binning,
        weights=subject.examples.weights,
    )


def drawn(subject: Subject, measured: Measured) -> Curves:
    """Return the curves of the page and the plots."""
    return curves(
        subject.scores,
        subject.labels,
        kind=subject.source.kind,
        threshold=subject.threshold,
        confidence=measured.confidence,
        seed=measured.seed,
        weights=subject.examples.weights,
        groups=subject.examples.groups,
        **measured.traffic,
    )
