"""Several categories judged side by side: a report of each, what they are on average, and what was required."""

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from headeval.evaluation import METRICS
from headeval.report import Report
from headeval.requirements import Decision, EachDecision, Verdict


@dataclass(frozen=True, slots=True)
class JudgedCategory:
    """One category.

    Attributes
    ----------
    name : text from outside.
    unknown : rows whose label is not known; they play no part.
    report : on the rows whose label is known; None where there are none that can be judged.
    why : there is no report; empty where there is one.
    """

    name: str
    unknown: int
    report: Report | None
    why: str = ""

    @property
    def known(self) -> int:
        """How many rows were judged."""
        return 0 if self.report is None else self.report.evaluation.counts.n


@dataclass(frozen=True, slots=True)
class Average:
    """The mean of a metric over the categories where it is defined, each counting the same.

    Attributes
    ----------
    value : None where no category has the metric; infinite where one is.
    categories : how many have it.
    """

    value: float | None
    categories: int


@dataclass(frozen=True, slots=True)
class CategoriesReport:
    """Several judged categories.

    Attributes
    ----------
    provenance : what was judged on what; JSON-able values in the order shown.
    parts : in the order asked; at least one.
    decisions : one a requirement and category, in the order asked.
    each : one a requirement that every slice of a category had to meet.
    """

    provenance: Mapping[str, Any]
    parts: tuple[JudgedCategory, ...]
    decisions: tuple[Decision, ...] = ()
    each: tuple[EachDecision, ...] = ()

    @property
    def judged(self) -> tuple[tuple[str, Report], ...]:
        """Name and report of the categories that have one."""
        return tuple((part.name, part.report) for part in self.parts if part.report is not None)

    @property
    def averages(self) -> dict[str, Average]:
        """The macro average of every metric that is no count, by its name."""
        reports = [report for _, report in self.judged]
        return {
            name: macro_average([getattr(report.evaluation, name).value for report in reports])
            for name, info in METRICS.items()
            if info.scale != "count"
        }

    @property
    def in_sample(self) -> tuple[str, ...]:
        """The categories most of whose rows made the head."""
        return tuple(name for name, report in self.judged if report.in_sample is not None)

    @property
    def passed(self) -> bool:
        """Whether every requirement was met; true when none was made."""
        return all(verdict is Verdict.MET for verdict in self.verdicts)

    @property
    def verdicts(self) -> tuple[Verdict, ...]:
        """How each requirement came out, those of every slice last."""
        return (*(decision.verdict for decision in self.decisions), *(decision.verdict for decision in self.each))


def macro_average(values: Sequence[float | None]) -> Average:
    """Return the mean of the values there are.

    Examples
    --------
    >>> macro_average([0.5, None, 1.0]), macro_average([None])
    (Average(value=0.75, categories=2), Average(value=None, categories=0))
    """
    defined = [value for value in values if value is not None and not math.isnan(value)]
    return Average(math.fsum(defined) / len(defined) if defined else None, len(defined))
