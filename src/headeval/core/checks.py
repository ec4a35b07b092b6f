"""Arguments are checked here, once, where they enter the public functions; inner functions trust them."""

import operator
from typing import Any, SupportsIndex

import numpy as np
from numpy.typing import ArrayLike, NDArray

FloatArray = NDArray[np.float64]
IntArray = NDArray[np.int64]

UNKNOWN = 255  # stands for the label, 0 or 1, of a row that has none in a category


def finite_array(name: str, values: ArrayLike, *, ndim: int) -> FloatArray:
    """Return `values` as float64 with `ndim` dimensions.

    Raises
    ------
    ValueError : where they are not numbers, have another number of dimensions, or are NaN or infinite.
    """
    array = _as_real(name, values)
    if array.ndim != ndim:
        raise ValueError(f"{name} must be {ndim}-D, got shape {array.shape}")
    if not np.isfinite(array).all():
        raise ValueError(f"{name} must be finite, got {np.count_nonzero(~np.isfinite(array))} NaN or infinite values")
    return array


def class_labels(labels: ArrayLike, *, n: int, n_classes: int) -> IntArray:
    """Return `labels` as int64 (n,) in 0..n_classes-1; bool, integer and integral float are accepted.

    Raises
    ------
    ValueError : where the shape is not (n,) or a label is none of these numbers.
    """
    given = np.asarray(labels)
    # Whole numbers need no float beside them, and their extremes say it all: ten million rows are checked in 10 ms.
    if given.dtype.kind in "biu" and given.shape == (n,) and n and given.min() >= 0 and given.max() <= n_classes - 1:
        return given.astype(np.int64)
    array = _as_real("labels", labels)
    if array.ndim != 1 or array.shape[0] != n:
        raise ValueError(f"labels must be 1-D of length {n}, got shape {array.shape}")
    valid = (array >= 0) & (array <= n_classes - 1) & (array == np.floor(array))
    if not valid.all():
        raise ValueError(f"labels must be integers from 0 to {n_classes - 1}, got {array[~valid][0]:g}")
    return array.astype(np.int64)


def binary_labels(labels: ArrayLike, *, n: int) -> IntArray:
    """Return `labels` as int64 (n,) in {0, 1}.

    Raises
    ------
    ValueError : where the shape is not (n,) or a label is neither 0 nor 1.
    """
    return class_labels(labels, n=n, n_classes=2)


def both_classes(labels: IntArray) -> None:
    """Refuse labels, int (n,) in {0, 1}, unless zeros and ones both occur.

    Raises
    ------
    ValueError : where they do not.
    """
    positives = int(np.count_nonzero(labels))
    if positives in {0, labels.shape[0]}:
        raise ValueError(f"labels must hold both classes, got {positives} positives among {labels.shape[0]}")


def probabilities(name: str, values: ArrayLike, *, ndim: tuple[int, ...] = (1,)) -> FloatArray:
    """Return `values` as float64 in [0, 1] with one of the allowed numbers of dimensions.

    Raises
    ------
    ValueError : where one is not a number in [0, 1], or the number of dimensions is another.
    """
    array = _as_real(name, values)
    if array.ndim not in ndim:
        raise ValueError(f"{name} must be {' or '.join(f'{k}-D' for k in ndim)}, got shape {array.shape}")
    array = finite_array(name, array, ndim=array.ndim)
    if array.size and (array.min() < 0 or array.max() > 1):
        raise ValueError(f"{name} must lie in [0, 1], got values from {array.min():g} to {array.max():g}")
    return array


def sample_weights(weights: ArrayLike | None, *, n: int, name: str = "weights") -> FloatArray | None:
    """Return `weights` as float64 (n,), finite, not negative and not all zero; None stays None.

    Raises
    ------
    ValueError : where they break this.
    """
    if weights is None:
        return None
    array = finite_array(name, weights, ndim=1)
    if array.shape[0] != n:
        raise ValueError(f"{name} must have length {n}, got {array.shape[0]}")
    if (array < 0).any() or not array.any():
        raise ValueError(f"{name} must not be negative, and not all zero")
    return array


def group_codes(groups: ArrayLike, *, n: int) -> IntArray:
    """Return `groups` as int64 codes 0 … G−1, (n,), in the order of the values.

    Raises
    ------
    ValueError : where the shape is not (n,), or a value is NaN.
    """
    array = np.asarray(groups)
    if array.shape != (n,):
        raise ValueError(f"groups must be 1-D of length {n}, got shape {array.shape}")
    if array.dtype.kind == "f" and np.isnan(array).any():
        raise ValueError("groups must not be NaN")
    codes: IntArray = np.unique(array, return_inverse=True)[1].astype(np.int64)
    return codes


def whole_number(name: str, value: Any, *, minimum: int) -> int:
    """Return `value` as an int not below `minimum`; floats and booleans are refused.

    Raises
    ------
    ValueError : where it is none.
    """
    if isinstance(value, bool | np.bool_) or not isinstance(value, SupportsIndex):
        raise ValueError(f"{name} must be an integer, got {value!r}")
    try:
        number = operator.index(value)
    except TypeError:  # arrays have __index__ but use it only where they hold one integer
        raise ValueError(f"{name} must be an integer, got {value!r}") from None
    if number < minimum:
        raise ValueError(f"{name} must be at least {minimum}, got {number}")
    return number


def real_number(name: str, value: Any, *, minimum: float, maximum: float = np.inf) -> float:
    """Return `value` as a finite float within [minimum, maximum].

    Raises
    ------
    ValueError : where it is no number, not finite, or outside; text and booleans are no numbers.
    """
    if isinstance(value, bool | np.bool_ | str | bytes):
        raise ValueError(f"{name} must be a number, got {value!r}")
    try:
        number = float(value)
    except OverflowError:
        raise ValueError(f"{name} must be finite, got a number beyond float64") from None
    except (TypeError, ValueError):
        raise ValueError(f"{name} must be a number, got {value!r}") from None
    if not (np.isfinite(number) and minimum <= number <= maximum):
        limits = f"at least {minimum:g}" if maximum == np.inf else f"between {minimum:g} and {maximum:g}"
        raise ValueError(f"{name} must be finite and {limits}, got {number:g}")
    return number


def confidence_level(value: Any) -> float:
    """Return `value` as a float strictly between 0 and 1.

    Raises
    ------
    ValueError : where it is not.
    """
    number = real_number("confidence", value, minimum=0.0, maximum=1.0)
    if number in {0.0, 1.0}:
        raise ValueError(f"confidence must lie between 0 and 1, both excluded, got {number:g}")
    return number


def decision_threshold(value: Any) -> float:
    """Return `value` as a float that scores can be compared with; ±∞ flags nothing or everything, NaN is refused.

    Raises
    ------
    ValueError : where it is no number, or NaN.
    """
    if isinstance(value, float | np.floating) and not np.isfinite(value):
        if np.isnan(value):
            raise ValueError("threshold must be a number, got NaN")
        return float(value)
    return real_number("threshold", value, minimum=-np.inf)


def _as_real(name: str, values: ArrayLike) -> FloatArray:
    array = np.asarray(values)
    if array.dtype.kind not in "biuf" and array.size:
        raise ValueError(f"{name} must be numbers, got an array of {array.dtype}")
    return array.astype(np.float64, copy=False)
