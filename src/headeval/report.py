"""The records that commands hand to the renderers: an Evaluation with where it comes from and what was asked of it."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from headeval.certifying.claims import ClaimCheck
from headeval.comparison import Comparison
from headeval.core.calibration import ReliabilityTable
from headeval.core.newton import LogisticFit
from headeval.core.scaling import Scaling
from headeval.core.thresholds import DecisionChanges
from headeval.curves import Curves
from headeval.drift import Drift, Leakage
from headeval.evaluation import Evaluation
from headeval.head_history import RowsSeen
from headeval.multiclass import ClassEvaluation
from headeval.requirements import Decision, EachDecision, Verdict
from headeval.solver.penalty_path import Path

FEW_ROWS = 30
FEW_OF_A_CLASS = 10


@dataclass(frozen=True, slots=True)
class Slice:
    """The rows with one value in a column.

    Attributes
    ----------
    column, value : text from the table.
    evaluation : of these rows.
    shortfall : how far the slice falls below the whole in its worst of AUC, recall and FPR; None where it has none of
        them, negative where it is better in all.
    worst : the name of that metric, empty without.
    below : whether the interval of one of them lies wholly on the bad side of the whole's value.
    small : whether it has too few rows to say much.
    """

    column: str
    value: str
    evaluation: Evaluation
    shortfall: float | None = None
    worst: str = ""
    below: bool = False
    small: bool = False


@dataclass(frozen=True, slots=True)
class Report:
    """One judged classifier.

    Attributes
    ----------
    provenance : what was judged on what; JSON-able values in the order shown.
    how : which rows the numbers come from, in words.
    seen : how many of the rows made the head, where that is known; when most did, `how` is shown as a caution.
    decisions : one a requirement, in the order asked.
    notes : sentences a reader must not miss, beside those of the evaluation.
    each : one a requirement that every slice had to meet.
    comparison : with a baseline on the same rows.
    drift : against the rows of a reference file.
    claim : what the head says its threshold keeps, tested on these rows.
    curves : what is drawn; only where something is.
    before : the reliability before the head's last calibration.
    classes : all classes where there are more than two; `evaluation` is then of the flagged one against the rest.
    """

    provenance: Mapping[str, Any]
    how: str
    evaluation: Evaluation
    slices: tuple[Slice, ...] = ()
    decisions: tuple[Decision, ...] = ()
    notes: tuple[str, ...] = ()
    seen: RowsSeen | None = None
    each: tuple[EachDecision, ...] = ()
    comparison: Comparison | None = None
    drift: Drift | None = None
    claim: ClaimCheck | None = None
    curves: Curves | None = None
    before: ReliabilityTable | None = None
    classes: ClassEvaluation | None = None

    @property
    def in_sample(self) -> str | None:
        """What most of the rows were used for, "fitted" or "calibrated"; None where they were not, or it is unknown."""
        return None if self.seen is None else self.seen.in_sample

    @property
    def passed(self) -> bool:
        """Whether every requirement was met; true when none was made."""
        return all(verdict is Verdict.MET for verdict in self.verdicts)

    @property
    def verdicts(self) -> tuple[Verdict, ...]:
        """How each requirement came out, those of every slice last."""
        return (*(decision.verdict for decision in self.decisions), *(decision.verdict for decision in self.each))


@dataclass(frozen=True, slots=True)
class HeldOut:
    """The evaluation of a fit on rows it has not seen.

    Attributes
    ----------
    how : which rows the evaluation comes from, in words.
    evaluation : None where it was skipped.
    n_folds, fold_seed : of an out-of-fold evaluation, whose rows are those of the fit; 0 and None for other rows.
    seen : how many of other rows the fit has seen after all; when most, `how` is shown as a caution.
    leakage : which of other rows are, or nearly are, rows of the fit.
    classes : all classes where there are more than two; `evaluation` is then of the flagged one against the rest.
    """

    how: str
    evaluation: Evaluation | None
    n_folds: int = 0
    fold_seed: int | None = None
    seen: RowsSeen | None = None
    leakage: Leakage | None = None
    classes: ClassEvaluation | None = None


@dataclass(frozen=True, slots=True)
class FitSummary:
    """A fitted head: the story of the fit, and how the head does on rows the fit has not seen.

    Attributes
    ----------
    provenance : what was fitted on what; JSON-able values in the order shown.
    notes : sentences a reader must not miss, beside those of the evaluation.
    path : the penalties tried, where there were several.
    """

    provenance: Mapping[str, Any]
    story: LogisticFit
    held_out: HeldOut
    notes: tuple[str, ...] = ()
    path: Path | None = None


@dataclass(frozen=True, slots=True)
class CalibrationSummary:
    """A fitted scaling with the same rows judged before and after.

    Attributes
    ----------
    changes : decisions at the threshold that the calibration changes.
    classes : all classes before and after; None for two.
    """

    provenance: Mapping[str, Any]
    scaling: Scaling
    before: Evaluation
    after: Evaluation
    changes: DecisionChanges
    notes: tuple[str, ...] = ()
    classes: tuple[ClassEvaluation, ClassEvaluation] | None = None
