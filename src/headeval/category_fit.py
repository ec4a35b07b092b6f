"""What `fit` shows of several categories: each with its head and how it does, or why it was left out."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from headeval.category_summaries import LeftOut
from headeval.core.newton import LogisticFit
from headeval.drift import Leakage
from headeval.report import HeldOut


@dataclass(frozen=True, slots=True)
class RowsJudged:
    """The rows of --eval, in one category.

    Attributes
    ----------
    known, positives, unknown : rows with a label of it, those that are positive, and rows without.
    """

    known: int
    positives: int
    unknown: int


@dataclass(frozen=True, slots=True)
class CategoryFit:
    """One category with its head, fitted on the rows whose label of it is known.

    Attributes
    ----------
    known, positives, unknown : rows with a label of it, those that are positive, and rows without.
    l2 : the penalty of its fit.
    story : of its fit.
    held_out : how it does on rows that the fit has not seen.
    notes : sentences a reader must not miss, beside those of the evaluation.
    other : the rows that it is judged on, where they are not those of the fit.
    """

    name: str
    known: int
    positives: int
    unknown: int
    l2: float
    story: LogisticFit
    held_out: HeldOut
    notes: tuple[str, ...] = ()
    other: RowsJudged | None = None

    @property
    def judged(self) -> RowsJudged:
        """The rows that the numbers are of: those of --eval, else those of the fit."""
        return self.other or RowsJudged(self.known, self.positives, self.unknown)


@dataclass(frozen=True, slots=True)
class CategoryFits:
    """Heads of several categories, fitted over one reading.

    Attributes
    ----------
    provenance : what was fitted on what; JSON-able values in the order shown.
    how : which rows the evaluations come from, in words.
    threshold : of every head.
    fits, left_out : in the order asked.
    notes : sentences a reader must not miss, beside those of the categories.
    leakage : which rows of --eval are, or nearly are, rows of the fits.
    """

    provenance: Mapping[str, Any]
    how: str
    threshold: float
    fits: tuple[CategoryFit, ...]
    left_out: tuple[LeftOut, ...]
    notes: tuple[str, ...] = ()
    leakage: Leakage | None = None

    @property
    def in_sample(self) -> tuple[str, ...]:
        """The categories most of whose rows of --eval have made the head."""
        seen = ((fit.name, fit.held_out.seen) for fit in self.fits)
        return tuple(name for name, rows in seen if rows is not None and rows.in_sample is not None)
