"""What `calibrate` and `threshold` show of several categories: each with what was found, or why it was left out."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from headeval.certifying.summary import ThresholdSummary
from headeval.report import CalibrationSummary


@dataclass(frozen=True, slots=True)
class LeftOut:
    """A category of which nothing was written.

    Attributes
    ----------
    known, positives, unknown : rows with a label of it, those that are positive, and rows without.
    why : what the rows do not allow, or what more it would take.
    """

    name: str
    known: int
    positives: int
    unknown: int
    why: str


@dataclass(frozen=True, slots=True)
class CategoryCalibration:
    """One category with its scaling.

    Attributes
    ----------
    unknown : rows without a label of it.
    summary : as of its head alone, on the rows whose label is known.
    """

    name: str
    unknown: int
    summary: CalibrationSummary


@dataclass(frozen=True, slots=True)
class CategoryCalibrations:
    """A folder of heads, calibrated.

    Attributes
    ----------
    provenance : what was calibrated on what; JSON-able values in the order shown.
    method : "temperature" or "platt".
    categories, left_out : in the order of the folder.
    """

    provenance: Mapping[str, Any]
    method: str
    categories: tuple[CategoryCalibration, ...]
    left_out: tuple[LeftOut, ...]


@dataclass(frozen=True, slots=True)
class CategoryThreshold:
    """One category with the threshold chosen for it.

    Attributes
    ----------
    unknown : rows without a label of it.
    summary : as of its head alone, on the rows whose label is known.
    """

    name: str
    unknown: int
    summary: ThresholdSummary


@dataclass(frozen=True, slots=True)
class CategoryThresholds:
    """A folder of heads, each with a threshold chosen for it.

    Attributes
    ----------
    provenance : what was chosen on what; JSON-able values in the order shown.
    confidence : of each certificate by itself.
    categories, left_out : in the order of the folder.
    notes : sentences a reader must not miss, beside those of the categories.
    """

    provenance: Mapping[str, Any]
    confidence: float
    categories: tuple[CategoryThreshold, ...]
    left_out: tuple[LeftOut, ...]
    notes: tuple[str, ...] = ()

    @property
    def certified(self) -> int:
        """How many of the thresholds are certified for something."""
        return sum(bool(category.summary.requirements) for category in self.categories)

    @property
    def together(self) -> float:
        """The confidence with which all certificates hold together, at least (Bonferroni); 0 where they are too many.

        Examples
        --------
        >>> CategoryThresholds({}, 0.95, (), ()).together
        1.0
        """
        return max(0.0, 1 - self.certified * (1 - self.confidence))
