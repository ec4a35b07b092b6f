"""How far each group of rows falls below the whole."""

from collections.abc import Iterable

from headeval.evaluation import Evaluation
from headeval.report import FEW_OF_A_CLASS, FEW_ROWS, Slice

# Of each, how much worse a slice is than the whole: a lower AUC or recall, a higher false-positive rate.
_WORSE = {"auc": -1, "recall": -1, "fpr": 1}


def judge_slice(column: str, value: str, part: Evaluation, whole: Evaluation) -> Slice:
    """Return a slice with its shortfall: by how much its worst of AUC, recall and FPR is worse than the whole's.

    Examples
    --------
    >>> from headeval.evaluation import evaluate
    >>> whole = evaluate([0.9, 0.8, 0.6, 0.2], [1, 1, 1, 0], kind="prob", threshold=0.7)
    >>> part = judge_slice("language", "de", evaluate([0.8, 0.6], [1, 1], kind="prob", threshold=0.7), whole)
    >>> part.worst, round(part.shortfall, 4), part.small
    ('recall', 0.1667, True)
    """
    shortfalls = {
        name: sign * (here - there)
        for name, sign in _WORSE.items()
        if (here := getattr(part, name).value) is not None and (there := getattr(whole, name).value) is not None
    }
    worst = max(shortfalls, key=lambda name: shortfalls[name], default="")
    return Slice(
        column,
        value,
        part,
        shortfall=shortfalls.get(worst),
        worst=worst,
        below=any(_surely_worse(name, part, whole) for name in shortfalls),
        small=_is_small(part),
    )


def worst_first(slices: Iterable[Slice]) -> tuple[Slice, ...]:
    """Return the slices by their shortfall, the largest first; small ones, which chance moves, come last."""
    return tuple(
        sorted(slices, key=lambda part: (part.small, part.shortfall is None, -(part.shortfall or 0.0), part.value))
    )


def _surely_worse(name: str, part: Evaluation, whole: Evaluation) -> bool:
    interval, there = getattr(part, name).interval, getattr(whole, name).value
    if interval is None:
        return False
    return bool(interval.lower > there if _WORSE[name] > 0 else interval.upper < there)


def _is_small(part: Evaluation) -> bool:
    counts = part.counts
    return counts.n < FEW_ROWS or any(0 < rows < FEW_OF_A_CLASS for rows in (counts.positives, counts.negatives))
