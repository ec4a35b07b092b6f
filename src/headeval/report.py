"""The records that commands hand to the renderers: an Evaluation with where it comes from and what was asked of it."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from headeval.core.newton import LogisticFit
from headeval.core.scaling import Scaling
from headeval.core.thresholds import DecisionChanges
from headeval.evaluation import Evaluation
from headeval.requirements import Decision, Verdict


@dataclass(frozen=True, slots=True)
class Slice:
    """The rows with one value in a column.

    Attributes
    ----------
    column, value : text from the table.
    """

    column: str
    value: str
    evaluation: Evaluation


@dataclass(frozen=True, slots=True)
class Report:
    """One judged classifier.

    Attributes
    ----------
    provenance : what was judged on what; JSON-able values in the order shown.
    how : which rows the numbers come from, in words.
    in_sample : "fitted" or "calibrated" when the head used these very rows for that, which is shown as a caution.
    decisions : one a requirement, in the order asked.
    notes : sentences a reader must not miss, beside those of the evaluation.
    """

    provenance: Mapping[str, Any]
    how: str
    evaluation: Evaluation
    slices: tuple[Slice, ...] = ()
    decisions: tuple[Decision, ...] = ()
    notes: tuple[str, ...] = ()
    in_sample: str | None = None

    @property
    def passed(self) -> bool:
        """Whether every requirement was met; true when none was made."""
        return all(decision.verdict is Verdict.MET for decision in self.decisions)


@dataclass(frozen=True, slots=True)
class FitSummary:
    """A fitted head: the story of the fit and, unless skipped, an evaluation on rows the fit has not seen.

    Attributes
    ----------
    evaluation : out-of-fold or from an evaluation file; None when skipped.
    how : which rows the evaluation comes from, in words.
    in_sample : whether the evaluation file holds the very rows of the fit, which is shown as a caution.
    """

    provenance: Mapping[str, Any]
    story: LogisticFit
    how: str
    evaluation: Evaluation | None
    notes: tuple[str, ...] = ()
    in_sample: bool = False


@dataclass(frozen=True, slots=True)
class CalibrationSummary:
    """A fitted scaling with the same rows judged before and after.

    Attributes
    ----------
    changes : decisions at the threshold that the calibration changes.
    """

    provenance: Mapping[str, Any]
    scaling: Scaling
    before: Evaluation
    after: Evaluation
    changes: DecisionChanges
    notes: tuple[str, ...] = ()
