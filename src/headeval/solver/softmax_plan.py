"""How much work to spend where a fit of C classes begins: from the shape of the data alone, never from the clock.

The costs are those of a processor with wide vectors, in nanoseconds; only their ratios matter, and they matter little.
"""

import itertools
from dataclasses import dataclass
from enum import Enum

# Zero-sum coordinates up to which the whole Hessian is formed: 50 MB in float32.
MOST_COORDINATES = 3_600
MOST_BLOCK_BYTES = 2**28

_MOST_ON_A_DISK = 2_000

_PASS = 0.45  # of one number of an embedding and a class, in a pass for loss and gradient
_PRODUCT = 1.2e-2  # of one multiplication in a float32 product of a matrix with its transpose
_FACTOR = 7e-3  # of d³ of a float32 Cholesky factor
_WARM_PASSES = 6
_SHARES = (2, 4, 8, 16, 32, 64, 128)  # rows of the sample, as multiples of d
_LARGEST_SHARE, _SMALL_BYTES = 4, 2**27  # of the rows' own memory for a sample, where that is not small anyway


class Form(Enum):
    """What stands for the Hessian of C classes."""

    WHOLE = "the Hessian"
    BLOCKS = "its blocks on the diagonal, one a class"
    PRODUCT = "a product of what belongs to the classes and what belongs to the features"


@dataclass(frozen=True, slots=True)
class ClassPlan:
    """How a fit in memory begins.

    Attributes
    ----------
    form : what stands for the Hessian.
    rows : of the sample, n for all.
    """

    form: Form
    rows: int


def form_for(d: int, n_classes: int) -> Form:
    """Return what may be formed within some hundred megabytes: the best of it takes the fewest passes.

    Examples
    --------
    >>> [form_for(384, n_classes).name for n_classes in (3, 100, 1000)]
    ['WHOLE', 'BLOCKS', 'PRODUCT']
    """
    if (n_classes - 1) * (d + 1) <= MOST_COORDINATES:
        return Form.WHOLE
    return Form.BLOCKS if 4 * n_classes * (d + 1) ** 2 <= MOST_BLOCK_BYTES else Form.PRODUCT


def form_on_a_disk(d: int, n_classes: int) -> Form:
    """Return what is formed in a pass that is dear: the whole Hessian while that takes no longer than the pass."""
    best = form_for(d, n_classes)
    return Form.BLOCKS if best is Form.WHOLE and (n_classes - 1) * (d + 1) > _MOST_ON_A_DISK else best


def class_plan(n: int, d: int, n_classes: int) -> ClassPlan:
    """Return the cheapest plan for n rows of d dimensions in memory.

    Examples
    --------
    >>> class_plan(8_000, 384, 3).rows, class_plan(100_000, 384, 3).rows
    (3072, 12288)
    """
    best = form_for(d, n_classes)
    # Of many classes the whole Hessian takes longer to form than the passes that it saves.
    forms = [best, Form.BLOCKS] if best is Form.WHOLE else [best]
    most = max(n // _LARGEST_SHARE, _SMALL_BYTES // (4 * max(d, 1)))
    sizes = [share * d for share in _SHARES if share * d <= min(most, n // 2)] or [n]
    _, _, plan = min(
        (_cost(rows, n, d, n_classes, form), place, ClassPlan(form, rows))
        for place, (form, rows) in enumerate(itertools.product(forms, sizes))
    )
    return plan


def _cost(rows: int, n: int, d: int, n_classes: int, form: Form) -> float:
    one_pass = _PASS * d * n_classes
    # Passes as they were counted on embeddings of various spectra.
    if form is Form.WHOLE:
        formed = _PRODUCT * rows * (n_classes * d) ** 2 + _FACTOR * (n_classes * d) ** 3
        passes = 8 + 80 * d / rows
    elif form is Form.BLOCKS:
        formed = n_classes * (_PRODUCT * rows * d**2 + _FACTOR * d**3)
        passes = 20 + 100 * d / rows
    else:
        formed, passes = _PRODUCT * rows * d**2, 60 + 100 * d / rows
    return formed + _WARM_PASSES * one_pass * rows + passes * one_pass * n
