"""Why no threshold can be certified, and what it would take: never a silent compromise."""

from collections.abc import Sequence

from headeval.certifying.certifiable import CERTIFIABLE, Goal, measured_errors
from headeval.certifying.choice import Allowed, Sample, choose_threshold
from headeval.core.binomial import binomial_cdf
from headeval.core.certify import PRECISION_STARTS
from headeval.core.intervals import clopper_pearson
from headeval.core.rows_needed import more_rows_needed
from headeval.errors import FitError

_ADVICE = "loosen one of them, lower --confidence, give more rows, or take a better head; nothing was written"


class InfeasibleError(FitError):
    """No threshold can be certified.

    Attributes
    ----------
    short : the reason and what it would take in one line, for a table of many heads.
    """

    def __init__(self, text: str, short: str) -> None:
        super().__init__(text)
        self.short = short


def infeasible(sample: Sample, allowed: Sequence[Allowed], *, confidence: float) -> InfeasibleError:
    """Return the error for requirements that leave no threshold: the first that fails alone, or how they clash."""
    for part in allowed:
        if part.certified.errors_allowed == -1:
            return _too_few(part, confidence)
        if part.certified.grid is not None and part.certified.empty:
            return _imprecise(sample, part, confidence)
        if part.certified.lower >= 1.0:
            return _saturated(part)
    return _clash(sample, allowed, confidence)


def level_text(part: Allowed, confidence: float) -> str:
    """Return the confidence of one requirement, and where it shares it, of what."""
    if part.level == confidence:
        return f"{100 * confidence:.10g} %"
    return f"{100 * part.level:.10g} % (its share of {100 * confidence:.10g} % for all requirements together)"


def _too_few(part: Allowed, confidence: float) -> InfeasibleError:
    metric, bound, n = part.requirement.metric, part.requirement.bound, part.certified.n
    rate = bound if CERTIFIABLE[metric][0] == "<" else 1 - bound
    more, _ = more_rows_needed(n, 0, rate, confidence=part.level)
    error, without = ("missed", "with no miss") if metric == "recall" else ("flagged", "with none flagged")
    return InfeasibleError(
        f"{part.requirement} cannot be certified at {level_text(part, confidence)} on {n:,} {part.among}, "
        f"even if none of them were {error}\n"
        f"it takes at least {n + more:,}, {without}: {more:,} more; or a looser bound, or a lower --confidence "
        "(see --plan)",
        f"{part.requirement} takes at least {n + more:,} {part.among}, {without}: {more:,} more",
    )


def _saturated(part: Allowed) -> InfeasibleError:
    allowed = part.certified.errors_allowed or 0
    return InfeasibleError(
        f"{part.requirement} leaves no threshold: more than the {allowed:,} allowed of {part.certified.n:,} "
        f"{part.among} have a probability of 1 or as near as floats tell\n"
        "no threshold up to 1 passes them: calibrate the head, or fit a better one",
        f"{part.requirement}: more than {allowed:,} of {part.certified.n:,} {part.among} have a probability of 1",
    )


def _imprecise(sample: Sample, part: Allowed, confidence: float) -> InfeasibleError:
    """The nearest of the thresholds where walks begin is shown, with what more flagged rows would do there."""
    rate = 1 - part.requirement.bound
    level = 1 - (1 - part.level) / len(PRECISION_STARTS)
    outcomes = []
    for start in PRECISION_STARTS:
        wrong, flagged = measured_errors(sample.counts(start), 0, 0, "precision")
        outcomes.append((binomial_cdf(wrong, flagged, rate), start, wrong, flagged))
    _, start, wrong, flagged = min(outcomes)
    without, at_this_rate = more_rows_needed(flagged, wrong, rate, confidence=level)
    further = f"{without:,} more flagged rows without a wrong one would do"
    if at_this_rate is None:
        further += "; at the precision seen there no number would"
    elif at_this_rate > without:
        further += f", about {at_this_rate:,} at the precision seen there"
    return InfeasibleError(
        f"{part.requirement} cannot be certified at {level_text(part, confidence)}: nearest to it, "
        f"at threshold {start:g}, {flagged - wrong:,} of {flagged:,} flagged rows are positive\n{further}",
        f"{part.requirement} takes at least {flagged + without:,} flagged rows, with no further wrong one: "
        f"{without:,} more",
    )


def _clash(sample: Sample, allowed: Sequence[Allowed], confidence: float) -> InfeasibleError:
    parts = [f"{part.requirement} {_leaves(sample, part, allowed, confidence)}" for part in allowed]
    every = "both" if len(allowed) == 2 else f"all {len(allowed)}"
    return InfeasibleError(
        f"no threshold keeps {every} requirements with {100 * confidence:.10g} % confidence: "
        f"{'; '.join(parts)}\n{_ADVICE}",
        f"no threshold keeps {every}: {parts[0]}",
    )


def _leaves(sample: Sample, part: Allowed, allowed: Sequence[Allowed], confidence: float) -> str:
    """Say where one requirement holds, and what the others come to at the end of it that is best for them."""
    upper = part.requirement.metric == "recall"
    best = choose_threshold(sample, [part], Goal("specificity" if upper else "recall"))
    if best is None:  # not reached: each leaves something by itself
        return "leaves none"
    where = f"allows up to {best:.4g}" if upper else f"allows {best:.4g} and above"
    there = [_there(sample, other, best, confidence) for other in allowed if other is not part]
    return f"{where} ({', '.join(there)})"


def _there(sample: Sample, other: Allowed, threshold: float, confidence: float) -> str:
    metric = other.requirement.metric
    benign = 0 if sample.benign is None else sample.benign.size
    errors, n = measured_errors(sample.counts(threshold), sample.flagged_benign(threshold), benign, metric)
    if not n:
        return f"{metric} undefined there"
    k = errors if CERTIFIABLE[metric][0] == "<" else n - errors
    interval = clopper_pearson(k, n, confidence=confidence)
    return f"{metric} there {k / n:.3f}, {interval.lower:.3f} to {interval.upper:.3f}"
