"""How much work to spend where a fit of C classes begins: from the shape of the data alone."""

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class ClassPlan:
    """How a fit in memory begins.

    Attributes
    ----------
    rows : of the sample, n for all.
    rounds : how often it is minimised, each time with the Hessian of where it stands.
    """

    rows: int
    rounds: int


def class_plan(n: int, d: int, n_classes: int) -> ClassPlan:
    rows = 8 * d
    return ClassPlan(n if rows > n // 2 else rows, 1)
