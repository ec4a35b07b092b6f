"""How much work to spend on the preconditioner: from the shape of the data alone, never from the clock.

The costs are those of a processor with wide vectors, in nanoseconds; only their ratios matter, and they matter little:
twice the rows of the best sample cost a few per cent.
"""

import math
from dataclasses import dataclass

_PASS = 0.4  # of one number of an embedding, in a pass for loss and gradient
_PRODUCT = 6e-3  # of one multiplication in a float32 product of a matrix with its transpose
_FACTOR = 7e-3  # of d³ of a float32 Cholesky factor
_WARM_PASSES = 10
_PATIENCE = 13
_SHARES = (2, 4, 8, 16, 32, 64, 128)  # rows of the sample, as multiples of d
_LARGEST_SHARE, _SMALL_BYTES = 4, 2**27  # of the rows' own memory for a sample, where that is not small anyway


@dataclass(frozen=True, slots=True)
class Plan:
    """How a fit in memory begins.

    Attributes
    ----------
    rows : of the sample, n for all.
    again : whether the Hessian is formed again where the sample's fit ends.
    patience : passes over all rows after which a search that has not ended is worth another Hessian.
    """

    rows: int
    again: bool
    patience: int


def plan(n: int, d: int) -> Plan:
    """Return the cheapest plan for n rows of d dimensions in memory.

    Examples
    --------
    >>> plan(50_000, 768)
    Plan(rows=6144, again=True, patience=15)
    """
    most = max(n // _LARGEST_SHARE, _SMALL_BYTES // (4 * max(d, 1)))
    sizes = [share * d for share in _SHARES if share * d <= min(most, n // 2)] or [n]
    _, rows, again = min((_cost(rows, again, n, d), rows, again) for rows in sizes for again in (True, False))
    return Plan(rows, again, _PATIENCE + min(_PATIENCE, round(_formed(rows, d) / (_PASS * n * d))))


def _formed(rows: int, d: int) -> float:
    return _PRODUCT * rows * d**2 + _FACTOR * d**3


def _cost(rows: int, again: bool, n: int, d: int) -> float:
    warm = 0.0 if rows == n else _WARM_PASSES * _PASS * rows * d
    # What was counted on embeddings of various spectra; a Hessian at the origin costs some passes more.
    passes = 10 + 20 * math.sqrt(d / rows) + (0 if again else 8)
    return (2 if again else 1) * _formed(rows, d) + warm + passes * _PASS * n * d
