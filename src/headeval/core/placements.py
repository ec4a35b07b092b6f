"""Placements: how the rows of one class stand among the other class, and how much their mean varies.

The placement of a row is the share of the other class that it is ordered rightly against, ties counting one half. The
AUC is the mean placement of the positives, and that of the negatives.
"""

import math
from dataclasses import dataclass
from typing import Self

import numpy as np
from numpy.typing import ArrayLike, NDArray

from headeval.core import checks
from headeval.core.checks import FloatArray, IntArray
from headeval.core.ranked import RankedCounts


@dataclass(frozen=True, slots=True)
class RankedRows:
    """Rows of positive weight with both classes, in an order that the order of the input has no influence on.

    Attributes
    ----------
    scores : one (n,) or several, each ranking the same rows.
    positive : (n,) bool.
    weights : (n,) in (0, 1), scaled; None where every row counts once.
    units : (n,) codes of the independent units, 0…G−1; None where each row is its own.
    """

    scores: tuple[FloatArray, ...]
    positive: NDArray[np.bool_]
    weights: FloatArray | None
    units: IntArray | None

    @classmethod
    def checked(
        cls,
        scores: ArrayLike,
        labels: ArrayLike,
        *,
        baseline: ArrayLike | None = None,
        weights: ArrayLike | None = None,
        groups: ArrayLike | None = None,
    ) -> Self:
        """Check the arguments of the functions of `headeval.core.delong` and drop rows of weight 0.

        Raises
        ------
        ValueError
            When a shape disagrees, a number is not allowed, or a class is missing.
        """
        columns = [checks.finite_array("scores", scores, ndim=1)]
        n = columns[0].shape[0]
        if baseline is not None:
            columns.append(checks.finite_array("baseline", baseline, ndim=1))
            if columns[1].shape[0] != n:
                raise ValueError(f"baseline must have length {n}, got {columns[1].shape[0]}")
        positive = checks.binary_labels(labels, n=n)
        factor = checks.sample_weights(weights, n=n)
        units = None if groups is None else checks.group_codes(groups, n=n)
        # Sums of floats depend on the order of their terms. Rows of one class that tie in all of this are equal; rows
        # of two classes are never in one sum.
        keys = columns if factor is None else [factor, positive, *columns]
        order = np.argsort(columns[0]) if len(keys) == 1 else np.lexsort(keys)
        if factor is not None:
            # Products of weights must not overflow; a power of two takes no digits from them.
            factor = np.ldexp(factor, -math.frexp(float(factor.max()))[1])
            order = order[factor[order] > 0]
            factor = factor[order]
        positive = positive[order]
        checks.both_classes(positive)
        if units is not None:
            units = checks.group_codes(units[order], n=order.shape[0])
        return cls(tuple(column[order] for column in columns), positive == 1, factor, units)

    @property
    def shares(self) -> FloatArray:
        """(n,) weights, those of each class adding up to 1."""
        if self.weights is None:
            positives = int(np.count_nonzero(self.positive))
            return np.where(self.positive, 1 / positives, 1 / (self.positive.shape[0] - positives))
        heavy = float(self.weights[self.positive].sum())
        return self.weights / np.where(self.positive, heavy, float(self.weights[~self.positive].sum()))


@dataclass(frozen=True, slots=True)
class Spread:
    """How much the mean of a quantity of the rows varies, and what that rests on.

    Attributes
    ----------
    variance : of the mean; None where one unit holds all of a class, 0.0 where the values are equal.
    freedom : degrees of freedom of the variance; 0.0 where one unit carries all that is not zero.
    pairs : how many disjoint pairs of a unit with positives and one with negatives there are, ≥ 1; a real number
        where weights make some count less.
    """

    variance: float | None
    freedom: float
    pairs: float


def placements(rows: RankedRows, column: int = 0) -> tuple[float, FloatArray]:
    """Return the AUC of one column of scores and the (n,) losses of the rows: 1 − placement.

    Without weights all sums are of whole and half numbers, hence exact, so that the AUC is the one of pairs counted
    in integers; a perfect ranking gives exactly 1.0 and losses of 0.0, with weights too.

    References
    ----------
    DeLong, DeLong and Clarke-Pearson, Biometrics 44 (1988), V10 and V01; Sun and Xu, IEEE Signal Processing Letters 21
    (2014), by sorting in O(n log n).
    """
    order = np.argsort(rows.scores[column], kind="stable")
    ranked, positive = rows.scores[column][order], rows.positive[order]
    weights = np.ones(order.shape[0]) if rows.weights is None else rows.weights[order]
    new = np.append(True, ranked[1:] != ranked[:-1])
    first = np.flatnonzero(new)
    tied_p, tied_n = np.add.reduceat(weights * positive, first), np.add.reduceat(weights * ~positive, first)
    up_to_p, up_to_n = np.cumsum(tied_p), np.cumsum(tied_n)
    total_p, total_n = up_to_p[-1], up_to_n[-1]
    lost_p = total_n - up_to_n + 0.5 * tied_n  # negatives above a positive of the block
    lost_n = up_to_p - 0.5 * tied_p  # positives below a negative of the block
    wrong = float(tied_p @ lost_p)
    right = float(tied_p @ (up_to_n - 0.5 * tied_n))
    block = np.cumsum(new) - 1
    losses = np.empty(order.shape[0])
    losses[order] = np.where(positive, (lost_p / total_n)[block], (lost_n / total_p)[block])
    return (min(1.0, right / float(total_p * total_n)) if wrong > 0 else 1.0), losses


def spread(rows: RankedRows, values: FloatArray) -> Spread:
    """Return how much the mean of `values` (n,) varies, a quantity that has the same mean in either class.

    The influence of a row on the mean is its share times (value − mean). The variance is Σ influence² with the factor
    m/(m − 1) for each class, m its number of units; the influences of a unit are added before they are squared.
    """
    n_units = rows.positive.shape[0] if rows.units is None else int(rows.units.max()) + 1
    shares = rows.shares
    # A pair takes two units, also where each unit holds both classes.
    total, pairs, variances, carriers = np.zeros(n_units), n_units / 2, [], []
    for mine in (rows.positive, ~rows.positive):
        share, value = shares[mine], values[mine]
        size = kish_size(share) if rows.weights is not None else float(share.shape[0])
        if rows.units is not None:
            size = min(size, float(np.count_nonzero(np.bincount(rows.units[mine]))))
        if size <= 1:
            return Spread(None, 0.0, 1.0)
        pairs = min(pairs, size)
        influence = math.sqrt(size / (size - 1)) * share * (value - share @ value)
        carried = share * np.abs(value)
        if rows.units is not None:
            influence = np.bincount(rows.units[mine], influence, minlength=n_units).astype(np.float64)
            carried = np.bincount(rows.units[mine], carried).astype(np.float64)
            total += influence
        else:
            total[mine] = influence
        variances.append(float(influence @ influence))
        carriers.append(kish_size(carried))
    variance = float(total @ total)
    # What rounding leaves of equal values is no variance.
    if variance <= (1e-12 * float(shares @ np.abs(values))) ** 2:
        variance = 0.0
    return Spread(variance, _freedom(variances, carriers, n_units), max(1.0, pairs))


def counted_spread(ranked: RankedCounts, auc: float) -> Spread:
    """Return the `spread` of the placements' losses, or of the placements where AUC < ½, from counts at each score.

    The rows of one class and one score have one placement, a whole number of half rows of the other class. What is
    summed are these numbers times how many rows have them, block by block, without a column for every row.

    Parameters
    ----------
    ranked : of rows that all count once and are independent, both classes present.
    auc : their AUC.
    """
    P, N = int(ranked.true_positives[-1]), int(ranked.false_positives[-1])
    if min(P, N) == 1:
        return Spread(None, 0.0, 1.0)
    mean = min(auc, 1 - auc)
    sums = np.array([0.0] * 6)
    for tp, fp in ranked.blocks():
        above = (fp[1:] + fp[:-1]) / (2 * N)  # a tie is half above and half below
        below = (2 * P - tp[1:] - tp[:-1]) / (2 * P)
        for place, (counts, lost) in enumerate(((tp, above), (fp, below))):
            rows, value = np.diff(counts), lost if auc >= 0.5 else 1 - lost
            carried, off = rows * value, value - mean
            sums[3 * place : 3 * place + 3] += carried.sum(), (carried * value).sum(), (rows * off * off).sum()
    variances, carriers = [], []
    for size, (total, squares, off_squares) in zip((P, N), sums.reshape(2, 3).tolist(), strict=True):
        variances.append(off_squares / size / (size - 1))
        carriers.append(min(total**2 / squares, float(size)) if squares else 0.0)
    variance = sum(variances)
    # What rounding leaves of equal values is no variance.
    if variance <= (1e-12 * 2 * mean) ** 2:
        variance = 0.0
    return Spread(variance, _freedom(variances, carriers, P + N), float(min(P, N)))


def kish_size(shares: FloatArray) -> float:
    """Return (Σs)²/Σs² of shares ≥ 0: how many equal ones vary as much as these; 0.0 where all are 0.

    References
    ----------
    Kish, Survey Sampling (1965), §11.7.
    """
    largest = float(shares.max())
    if largest == 0:
        return 0.0
    shares = shares / largest  # squares of tiny shares must not underflow
    return min(float(shares.sum() ** 2 / (shares @ shares)), float(shares.shape[0]))


def _freedom(variances: list[float], carriers: list[float], n_units: int) -> float:
    """Return the degrees of freedom of a sum of two variances, each carried by so many units (Welch)."""
    total, rest = sum(variances), 0.0
    for variance, carrier in zip(variances, carriers, strict=True):
        if variance > 0:
            if carrier <= 1:
                return 0.0
            rest += (variance / total) ** 2 / (carrier - 1)
    return min(1 / rest, n_units - 1.0) if rest > 0 else 0.0
