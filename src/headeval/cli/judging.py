"""What `report` computes: the evaluation, and what stands beside it."""

import dataclasses
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from headeval.cli.rows import Columns, Subject, read_subject, reading
from headeval.cli.sources import Source, check_models, column_source, head_source
from headeval.comparison import Comparison, compare
from headeval.core.calibration import ReliabilityTable, reliability_table
from headeval.core.stable import sigmoid
from headeval.curves import Curves, curves
from headeval.drift import Drift, drift
from headeval.errors import UsageError
from headeval.evaluation import Evaluation
from headeval.evidence import Resampling
from headeval.files.heads import read_head
from headeval.files.scores import declared_scores
from headeval.files.tables import Tables, open_tables
from headeval.files.unlabelled import read_unlabelled
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
        parts = (judge_slice(column, name, _part(subject, values == name, measured), whole) for name in names)
        found += worst_first(parts)
    return tuple(found)


def _part(subject: Subject, mask: Any, measured: Measured) -> Evaluation:
    weights = subject.examples.weights
    if weights is not None and not weights[mask].any():
        raise UsageError("--by: a slice has no weight: --weight gives all of its rows 0")
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
    if subject.classes and source.classes and subject.classes != source.classes:
        raise UsageError(
            f"the baseline {printable(source.name)} has the classes {', '.join(map(quoted, source.classes))}, "
            f"what is judged has {', '.join(map(quoted, subject.classes))}: they cannot be compared"
        )
    return source


def read_baseline(
    subject: Subject, source: Source, columns: Columns, *, threshold: float | None, quiet: bool
) -> Subject:
    """Return the same rows scored by the baseline, at its own threshold where it has one."""
    head, embeddings = source.head, subject.examples.embeddings
    at = threshold if source.threshold is None else None
    if head is None or embeddings is None or head.dim != embeddings.shape[1]:
        return read_subject(subject.tables, source, columns, threshold=at, quiet=quiet)
    check_models(head, subject.tables, columns.embedding_model)
    return dataclasses.replace(
        subject, source=source, scores=head.logits(embeddings), threshold=head.threshold, threshold_from="head"
    )


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


def drifted(subject: Subject, reference: Sequence[str], columns: Columns, measured: Measured, *, quiet: bool) -> Drift:
    """Return how the rows differ from those of the reference, scored by the same head or column."""
    tables = open_tables(reference)
    other = _reference_rows(tables, subject.source, columns, quiet)
    embeddings = subject.examples.embeddings
    return drift(
        subject.scores,
        other["scores"],
        subject.labels,
        other["labels"],
        embeddings,
        other["embeddings"],
        None if subject.ids is None else subject.ids.tolist(),
        other["ids"],
        None if embeddings is None else subject.examples.digests,
        None if embeddings is None else other["digests"],
        reference=", ".join(reference),
        confidence=measured.confidence,
        seed=measured.seed,
    )


def _reference_rows(tables: Tables, source: Source, columns: Columns, quiet: bool) -> dict[str, Any]:
    columns = dataclasses.replace(columns, weight=None, group=None)
    if all(columns.label in file.schema.names for file in tables.files):
        subject = read_subject(tables, source, columns, named=True, quiet=quiet)
        examples = subject.examples
        return {
            "scores": subject.scores,
            "labels": subject.labels,
            "embeddings": examples.embeddings,
            "ids": None if subject.ids is None else subject.ids.tolist(),
            "digests": examples.digests,
        }
    head = source.head
    if head is not None:
        check_models(head, tables, columns.embedding_model)
    rows = read_unlabelled(
        tables,
        embedding=columns.embedding if head else None,
        score=None if head else source.name,
        score_kind=source.kind,
        identifier=columns.id_column(tables),
        dim=head.dim if head else None,
        track=reading(quiet),
    )
    scores = head.logits(rows.embeddings) if head and rows.embeddings is not None else rows.scores
    ids = None if rows.ids is None else rows.ids.tolist()
    return {"scores": scores, "labels": None, "embeddings": rows.embeddings, "ids": ids, "digests": rows.digests}


def before_calibration(subject: Subject, table: ReliabilityTable) -> ReliabilityTable | None:
    """Return the reliability before the head's last calibration, whose map is undone; None where there was none."""
    calibrations = subject.source.head.metrics.get("calibrations") if subject.source.head else None
    if not isinstance(calibrations, list) or not calibrations or not isinstance(calibrations[-1], dict):
        return None
    slope, intercept = (calibrations[-1].get(key) for key in ("slope", "intercept"))
    if not isinstance(slope, int | float) or not isinstance(intercept, int | float) or not slope > 0:
        return None
    return reliability_table(
        sigmoid((subject.scores - intercept) / slope),
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
