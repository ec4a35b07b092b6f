"""Temperature scaling of many classes, and the threshold that follows it as far as one can.

Of two classes the log-odds are an affine map of those before, and a threshold is carried along exactly. Of more classes
they are not: dividing all logits by T brings the others nearer to each other too, by more for one row than for another.
So rows can change places, and no threshold need decide them all as before.
"""

import numpy as np
from numpy.typing import ArrayLike

from headeval.core import checks
from headeval.core.class_scores import losses_from_logits, order_of_contents
from headeval.core.proper_scores import mean_loss
from headeval.core.scaling import Scaling, ScalingError, usable_temperature
from headeval.core.scaling_intervals import temperature_slope_interval
from headeval.core.thresholds import short_number


def fit_class_temperature(logits: ArrayLike, labels: ArrayLike) -> Scaling:
    """Fit one temperature to the logits of all classes, and refuse one that should not be used.

    Parameters
    ----------
    logits : (n, C) finite, n ≥ 1, C ≥ 2.
    labels : (n,) in {0, …, C−1}; a class may be without rows.

    Raises
    ------
    ValueError
        When an argument breaks the above.
    ScalingError
        As `fit_temperature_scaling`.

    References
    ----------
    Guo, Pleiss, Sun and Weinberger, On calibration of modern neural networks, ICML 2017, section 4.2.

    Examples
    --------
    Two of four rows of three classes are right at logits (0, 0, 1): e^β/(2 + e^β) = 1/2, so β = ln 2.

    >>> scaling = fit_class_temperature([[0.0, 0.0, 1.0]] * 4, [2, 2, 0, 1])
    >>> round(scaling.temperature, 4), scaling.log_loss_after < scaling.log_loss_before
    (1.4427, True)
    """
    z = checks.finite_array("logits", logits, ndim=2)
    y = checks.class_labels(labels, n=z.shape[0], n_classes=z.shape[1])
    if z.size:  # so that the order of the rows changes no bit
        order = order_of_contents(z, y)
        z, y = z[order], y[order]
    temperature = usable_temperature(z, y)
    slope = 1.0 / temperature
    before, after = (mean_loss(losses_from_logits(logits, y)) for logits in (z, slope * z))
    if not after <= before * (1 + 1e-12):  # equal up to rounding where the identity is already best
        raise ScalingError(f"the calibrated log loss, {after:.6g}, would be worse than before, {before:.6g}")
    interval = temperature_slope_interval(slope, z)
    as_they_are = None if interval is None else interval.lower <= 1 <= interval.upper
    return Scaling("temperature", slope, 0.0, before, after, interval, None, as_they_are)


def closest_threshold(threshold: float, before: ArrayLike, after: ArrayLike) -> float:
    """Return the threshold on other probabilities that changes the fewest decisions of these rows.

    All thresholds between two neighbouring probabilities decide alike, and the fewest changes are looked for among all
    such gaps. Of several that change equally few, the one that flags as many rows as before, or as nearly, is taken,
    and of those the highest. Within its gap the threshold stays where it was, or is a short number in the half of
    the gap that is nearer.

    Parameters
    ----------
    threshold : in [0, 1], on the probabilities before.
    before, after : (n,) probabilities of the same rows.

    Raises
    ------
    ValueError
        When an argument breaks the above.

    Examples
    --------
    The second row and the third are still told apart, by another threshold.

    >>> closest_threshold(0.5, [0.9, 0.6, 0.4, 0.1], [0.8, 0.44, 0.4, 0.1])
    0.43
    """
    t = checks.real_number("threshold", threshold, minimum=0.0, maximum=1.0)
    was, now = checks.probabilities("before", before) >= t, checks.probabilities("after", after)
    if was.shape != now.shape:
        raise ValueError(f"before and after must have the same length, got {was.shape[0]} and {now.shape[0]}")
    values, place = np.unique(now, return_inverse=True)
    # Gap j lies below values[j]: the rows at values[:j] pass, the others are flagged. Above 1 there is no threshold.
    flagged = np.bincount(place, weights=was, minlength=values.size)
    rows = np.bincount(place, minlength=values.size)
    lost = np.concatenate([[0], np.cumsum(flagged)])  # were flagged, and pass
    kept = np.concatenate([[0], np.cumsum(rows - flagged)])  # passed, and pass
    changed, more = lost + kept[-1] - kept, np.abs(kept[-1] - kept - lost)
    gaps = values.size + int(not values.size or values[-1] < 1.0)
    best = int(np.lexsort((-np.arange(gaps), more[:gaps], changed[:gaps]))[0])
    low = float(values[best - 1]) if best else -np.inf
    high = float(values[best]) if best < values.size else 1.0
    if low < t <= high:
        return t
    middle = (max(low, 0.0) + high) / 2  # no further than need be: the rows say nothing of the rest of a wide gap
    return short_number(middle, high) if t > high else short_number(low, middle)
