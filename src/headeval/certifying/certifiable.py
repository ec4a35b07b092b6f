"""Requirements that a threshold can be certified for, and the goal that decides among those that meet them."""

import dataclasses
import difflib
import re
from collections.abc import Sequence
from dataclasses import dataclass

from headeval.core.thresholds import ConfusionCounts
from headeval.errors import UsageError
from headeval.printable import quoted
from headeval.requirement_parsing import Requirement, parse_requirement, synonym

LEAST_RATE = 1e-10
# metric -> the side it can be held to, and the rows it is about.
CERTIFIABLE = {
    "fpr": ("<", "negatives"),
    "specificity": (">", "negatives"),
    "recall": (">", "positives"),
    "precision": (">", "flagged rows"),
    "flag_rate": ("<", "benign rows"),
}
_NAME = re.compile(r"\s*([A-Za-z_][A-Za-z0-9_.-]*)\s*([<>].*)", re.DOTALL)


@dataclass(frozen=True, slots=True)
class Goal:
    """Which of several thresholds is taken.

    Attributes
    ----------
    maximise : "recall", "specificity", "precision", "f1" or "accuracy"; None where costs decide.
    cost_fp, cost_fn : of a false positive and a miss, where costs decide.
    """

    maximise: str | None
    cost_fp: float = 0.0
    cost_fn: float = 0.0

    @property
    def needs_both_classes(self) -> bool:
        """Whether it weighs flags of one class against those of the other; else it takes an end of what is left."""
        return self.maximise not in {"recall", "specificity"}

    def __str__(self) -> str:
        if self.maximise is None:
            return f"smallest cost, {self.cost_fp:g} for a false positive and {self.cost_fn:g} for a miss"
        lowest = {"recall": ": the lowest threshold", "specificity": ": the highest threshold"}
        return f"largest {self.maximise}{lowest.get(self.maximise, '')}"


def measured_errors(counts: ConfusionCounts, flagged_benign: int, benign: int, metric: str) -> tuple[int, int]:
    """Return the rows that count against a requirement on `metric`, and the rows that it is about."""
    return {
        "fpr": (counts.false_positives, counts.negatives),
        "specificity": (counts.false_positives, counts.negatives),
        "recall": (counts.false_negatives, counts.positives),
        "precision": (counts.false_positives, counts.flagged),
        "flag_rate": (flagged_benign, benign),
    }[metric]


def parse_certifiable(texts: Sequence[str], *, labelled: bool, benign: bool) -> tuple[Requirement, ...]:
    """Read requirements that can be certified with the rows there are; a category and a colon may stand before each.

    Parameters
    ----------
    labelled, benign : whether there are labelled rows, and unlabelled benign ones.

    Raises
    ------
    UsageError
        When a text is no requirement, or its metric, side or bound cannot be certified.
    """
    requirements = tuple(_certifiable(text) for text in texts)
    for requirement in requirements:
        if requirement.metric == "flag_rate" and not benign:
            raise UsageError(
                f"--require {quoted(requirement)} is about unlabelled benign traffic: name it with --benign FILE "
                "(for labelled rows there is fpr)"
            )
        if requirement.metric != "flag_rate" and not labelled:
            raise UsageError(
                f"--require {quoted(requirement)} needs labelled rows: give DATA (with --benign alone only flag_rate "
                "can be certified)"
            )
    return requirements


def _certifiable(text: str) -> Requirement:
    shown = f"--require {quoted(text)}"
    of, colon, asked = text.rpartition(":")
    if colon and not of.strip():
        raise UsageError(f"{shown}: no category stands before the colon")
    named = _NAME.match(asked)
    name = named.group(1) if named else ""
    if named and name not in CERTIFIABLE:
        raise UsageError(f"{shown}: {_uncertifiable(name, named.group(2))}")
    requirement = parse_requirement(text, of_parts=True)
    metric = requirement.metric
    side, example = CERTIFIABLE[metric][0], "0.01" if CERTIFIABLE[metric][0] == "<" else "0.9"
    if requirement.comparison[0] != side:
        raise UsageError(
            f"{shown}: {metric} can be certified from the other side only, such as '{metric}{side}={example}'"
        )
    impossible, trivial = (0.0, 1.0) if side == "<" else (1.0, 0.0)
    if requirement.bound == trivial:
        raise UsageError(f"{shown} is always met")
    if 0 < abs(requirement.bound - impossible) < LEAST_RATE:
        raise UsageError(
            f"{shown}: an error rate below {LEAST_RATE:g} takes more rows than anybody has: give a looser bound"
        )
    if (requirement.bound - impossible) * (1 if side == "<" else -1) <= 0:
        raise UsageError(
            f"{shown}: no number of rows certifies a rate of {impossible:g} or beyond; a bound such as "
            f"'{metric}{side}={abs(impossible - 0.001):g}' takes 2,995 rows without an error at 95 %"
        )
    return requirement


def refuse_categories(requirements: Sequence[Requirement], why: str, *, or_else: str = "") -> None:
    """Refuse requirements of a category or a class where nothing may stand before the metric.

    Parameters
    ----------
    why : nothing may, in words.
    or_else : what else may be wanted, in words.

    Raises
    ------
    UsageError : naming the first.
    """
    for requirement in requirements:
        if requirement.of:
            plain = dataclasses.replace(requirement, of="")
            raise UsageError(f"--require {quoted(requirement)}: {why}: write {quoted(plain)}{or_else}")


def _uncertifiable(name: str, rest: str) -> str:
    """Say what could be meant by a name that is no certifiable metric; `rest` is what follows it."""
    metric, _, part = name.partition(".")
    base = metric.lower().replace("-", "_")
    if base in CERTIFIABLE and (CERTIFIABLE[base][0], part) in {("<", "upper"), (">", "lower")}:
        return f"the {part} bound is what is certified anyway: write {quoted(f'{base}{rest.rstrip()}')}"
    close = [base] if base in CERTIFIABLE else difflib.get_close_matches(base, CERTIFIABLE, n=1)
    hint = synonym(base) or (f" (did you mean {close[0]}?)" if close else "")
    return f"a threshold cannot be certified for {quoted(name)}{hint}; for these it can: {', '.join(CERTIFIABLE)}"


def chosen_goal(
    requirements: Sequence[Requirement],
    maximise: str | None,
    cost_fp: float | None,
    cost_fn: float | None,
    *,
    labelled: bool,
) -> Goal:
    """Return what is to be made large or small among the certified thresholds.

    Where nothing is said, recall, as far as something bounds the flags from above; else specificity.

    Parameters
    ----------
    labelled : whether there are labelled rows, which every goal but recall needs.

    Raises
    ------
    UsageError
        When the options contradict each other, or leave the threshold open.
    """
    if (cost_fp is None) != (cost_fn is None):
        raise UsageError("--cost-fp and --cost-fn belong together: what a false positive and what a miss costs")
    if not labelled and (maximise not in {None, "recall"} or cost_fp is not None):
        named = f"--maximise {maximise} needs" if maximise else "--cost-fp and --cost-fn need"
        raise UsageError(f"{named} labelled rows: give DATA")
    if cost_fp is not None and cost_fn is not None:
        if maximise:
            raise UsageError("--maximise excludes --cost-fp and --cost-fn: one goal decides")
        return Goal(None, cost_fp, cost_fn)
    bounded = any(requirement.metric != "recall" for requirement in requirements)
    if maximise == "recall" and not bounded:
        raise UsageError("--maximise recall alone flags every row: bound the flags too, such as --require 'fpr<=0.01'")
    if maximise == "specificity" and all(requirement.metric != "recall" for requirement in requirements):
        raise UsageError("--maximise specificity alone flags no row: add --require 'recall>=0.9' or such")
    if not requirements and not maximise:
        raise UsageError(
            "nothing says which threshold to choose: give --require 'fpr<=0.01' or such, --maximise METRIC, "
            "or --cost-fp with --cost-fn"
        )
    return Goal(maximise or ("recall" if bounded else "specificity"))
