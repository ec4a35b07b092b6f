"""What follows from the numbers against trusting them too far: each rule is a sentence, or nothing."""

from collections.abc import Callable, Iterable, Mapping

from headeval.certifying.claims import ClaimVerdict
from headeval.evaluation import METRICS, Evaluation
from headeval.head import LinearHead
from headeval.metric import Metric
from headeval.printable import printable
from headeval.render.left_out import LIKE_THEM, much_left_out, part_of
from headeval.render.numbers import count, exact, interval_text, metric_value, number
from headeval.render.sections import in_cell, in_sentence
from headeval.report import Report, Slice

FEW = 100  # of a class: the 95 % interval of a rate of 0.9 is then at least 0.1 wide
MOST_NAMED = 6
_MOST_ROWS = 10**15  # a head file can hold anything
WORSE_WHEN = {"auc": "lower", "recall": "lower", "fpr": "higher"}  # what slices are compared by

Rule = Callable[[Report, LinearHead | None], str | None]


def limits(report: Report, head: LinearHead | None) -> tuple[str, ...]:
    """Return a sentence for every limit that the numbers show, in a fixed order."""
    found = (rule(report, head) for rule in RULES)
    return tuple(sentence for sentence in found if sentence)


def few_positives(report: Report, _head: LinearHead | None) -> str | None:
    """Recall from few rows."""
    evaluation = report.evaluation
    return _few_of(evaluation.classes[1], evaluation.counts.positives, "recall", evaluation.recall)


def few_negatives(report: Report, _head: LinearHead | None) -> str | None:
    """False alarms from few rows."""
    evaluation = report.evaluation
    return _few_of(evaluation.classes[0], evaluation.counts.negatives, "the false-positive rate", evaluation.fpr)


def perfect_on_few_rows(report: Report, _head: LinearHead | None) -> str | None:
    """A score of 1 that fewer than `FEW` rows speak for."""
    evaluation, counts = report.evaluation, report.evaluation.counts
    smaller = min(counts.positives, counts.negatives)
    rows = {
        "auc": smaller,
        "ap": smaller,
        "accuracy": counts.n,
        "precision": counts.flagged,
        "recall": counts.positives,
        "specificity": counts.negatives,
    }
    perfect = [name for name, behind in rows.items() if getattr(evaluation, name).value == 1 and behind < FEW]
    if not perfect:
        return None
    each = "; ".join(
        f"{METRICS[name].title} on {count(rows[name])} rows{_still(getattr(evaluation, name))}" for name in perfect
    )
    return f"A score of 1 on few rows is no certainty: {each}."


def uncalibrated(report: Report, _head: LinearHead | None) -> str | None:
    """Probabilities that are further off than chance makes calibrated ones."""
    evaluation = report.evaluation
    for table, noise in zip(evaluation.calibration, evaluation.noise, strict=True):
        if table.convention == "positive-class" and table.ece > noise.quantile_95:
            return (
                f"The stated probabilities are off by {number(table.ece)} on average (positive-class ECE); "
                f"calibrated ones would stay at or below {number(noise.quantile_95)} in 95 of 100 such samples."
            )
    return None


def extreme_or_timid(report: Report, _head: LinearHead | None) -> str | None:
    """A calibration slope whose interval leaves out 1."""
    slope = report.evaluation.calibration_slope
    if slope.interval is None or slope.interval.lower <= 1 <= slope.interval.upper:
        return None
    said = "too near 0 and 1 (overconfident)" if slope.interval.upper < 1 else "too far from 0 and 1 (underconfident)"
    return f"The stated probabilities are {said}: calibration slope {_with_interval(slope)}, where 1 is right."


def too_high_or_low(report: Report, _head: LinearHead | None) -> str | None:
    """A calibration intercept whose interval leaves out 0."""
    intercept = report.evaluation.calibration_intercept
    if intercept.interval is None or intercept.interval.lower <= 0 <= intercept.interval.upper:
        return None
    said = "high" if intercept.interval.upper < 0 else "low"
    shown = _with_interval(intercept)
    return f"The stated probabilities are too {said} on the whole: calibration intercept {shown}, where 0 is right."


def many_unlabelled(report: Report, head: LinearHead | None) -> str | None:
    """Rows left out for want of a label that the others need not be like."""
    parts = {
        "rows to judge": (report.provenance.get("unlabelled_rows_left_out"), report.evaluation.counts.n),
        "rows of the fit": tuple(recorded(head, "fit").get(key) for key in ("unlabelled_left_out", "n")),
    }
    found = [
        part_of(left_out, left_out + n, what)
        for what, (left_out, n) in parts.items()
        if type(left_out) is int and type(n) is int and 0 <= n < _MOST_ROWS
        if 0 <= left_out < _MOST_ROWS and much_left_out(left_out, left_out + n)
    ]
    if not found:
        return None
    return f"{' and '.join(found)} have no label and were left out: {LIKE_THEM}."


def slices_below(report: Report, _head: LinearHead | None) -> str | None:
    """Slices whose interval lies wholly on the bad side of the whole."""
    whole = report.evaluation
    worse = [(part, name) for part in report.slices for name in WORSE_WHEN if _surely_worse(name, part, whole)]
    if not worse:
        return None
    each = _some(
        f"{_named(part)} ({METRICS[name].title} {_with_interval(getattr(part.evaluation, name))}, "
        f"all rows {metric_value(getattr(whole, name))})"
        for part, name in worse
    )
    return f"Worse than all rows by the whole interval, among {count(len(report.slices))} slices: {each}."


def slices_too_small(report: Report, _head: LinearHead | None) -> str | None:
    """Slices of too few rows."""
    small = [part for part in report.slices if part.small]
    if not small:
        return None
    each = _some(f"{_named(part)} ({count(part.evaluation.counts.n)} rows)" for part in small)
    return f"Too few rows to say how it does there: {each}."


def seen_before(report: Report, _head: LinearHead | None) -> str | None:
    """Rows that made what is judged."""
    seen = report.seen
    if seen is None or not seen.either:
        return None
    about = "" if seen.exact else "about "
    where = f"{about}{count(seen.either)} of {count(seen.n)} rows"
    return f"Of the rows judged, {where} were used to fit or calibrate what is judged, and flatter it."


def another_prevalence(report: Report, head: LinearHead | None) -> str | None:
    """The share of positives differs from that of the fit, beyond the chance of these rows."""
    fitted = recorded(head, "fit").get("prevalence")
    now = report.evaluation.prevalence
    if not isinstance(fitted, float) or now.interval is None or now.interval.lower <= fitted <= now.interval.upper:
        return None
    positive = in_sentence(report.evaluation.classes[1])
    return (
        f"The share of {positive} is {metric_value(now)} in these rows and was {number(fitted)} in those of the fit: "
        "precision, flag rate and probabilities depend on that share and hold for traffic like these rows."
    )


def another_threshold(report: Report, head: LinearHead | None) -> str | None:
    """The head's file has another threshold than the one judged."""
    judged = report.evaluation.threshold
    if head is None or head.threshold == judged:
        return None
    return f"The decisions were judged at {exact(judged)}, while the head file says {exact(head.threshold)}."


def claim_broken(report: Report, _head: LinearHead | None) -> str | None:
    """These rows speak against what the threshold was certified to keep."""
    broken = _claimed(report, ClaimVerdict.BROKEN)
    return f"The threshold does not keep here what it was certified for: {broken}." if broken else None


def claim_undecided(report: Report, _head: LinearHead | None) -> str | None:
    """These rows are too few to test what the threshold was certified to keep."""
    undecided = _claimed(report, ClaimVerdict.UNDECIDED)
    return (
        f"These rows cannot tell whether the threshold keeps what it was certified for: {undecided}."
        if undecided
        else None
    )


def claim_untested(report: Report, _head: LinearHead | None) -> str | None:
    """A certified threshold that these rows are no test of."""
    reason = "" if report.claim is None else report.claim.void or report.claim.same_rows
    return f"What the head says its threshold keeps was not tested: {printable(reason)}." if reason else None


def weighted_rows(report: Report, _head: LinearHead | None) -> str | None:
    """Rows that count differently."""
    if not report.evaluation.weighted:
        return None
    return "Rows were weighted: every measure speaks of the population that the weights stand for, not of these rows."


def no_intervals(report: Report, _head: LinearHead | None) -> str | None:
    """Numbers without a word on their chance."""
    if report.evaluation.confidence is not None:
        return None
    return "No intervals were computed: how far chance moves the numbers is not shown."


RULES: tuple[Rule, ...] = (
    seen_before,
    few_positives,
    few_negatives,
    perfect_on_few_rows,
    uncalibrated,
    extreme_or_timid,
    too_high_or_low,
    many_unlabelled,
    slices_below,
    slices_too_small,
    another_prevalence,
    another_threshold,
    claim_broken,
    claim_undecided,
    claim_untested,
    weighted_rows,
    no_intervals,
)


def recorded(head: LinearHead | None, key: str) -> Mapping[str, object]:
    """Return an object among the head's `metrics`; empty where there is none of that name."""
    entry = head.metrics.get(key) if head else None
    return entry if isinstance(entry, Mapping) else {}


def _few_of(name: str, rows: int, rate: str, metric: Metric) -> str | None:
    if rows >= FEW:
        return None
    if not rows:
        return f"No {in_sentence(name)} row was judged: {rate} is unknown."
    known = f"; its interval is {interval_text(metric.interval)}" if metric.interval else ""
    return f"{rate[0].upper()}{rate[1:]} rests on {count(rows)} {in_sentence(name)} rows{known}."


def _surely_worse(name: str, part: Slice, whole: Evaluation) -> bool:
    interval, there = getattr(part.evaluation, name).interval, getattr(whole, name).value
    if interval is None or there is None:
        return False
    return bool(interval.upper < there if WORSE_WHEN[name] == "lower" else interval.lower > there)


def _still(metric: Metric) -> str:
    return f", where the interval begins at {number(metric.interval.lower)}" if metric.interval else ""


def _with_interval(metric: Metric) -> str:
    return metric_value(metric) + (f" {interval_text(metric.interval)}" if metric.interval else "")


def _named(part: Slice) -> str:
    return f"{in_cell(part.column)} = {in_cell(part.value)}"


def _claimed(report: Report, verdict: ClaimVerdict) -> str:
    checks = () if report.claim is None else report.claim.checks
    of_verdict = [check for check in checks if check.verdict is verdict]
    return _some(
        f"{check.claimed.requirement} (here {_with_interval(Metric(check.value, interval=check.interval))})"
        for check in of_verdict
    )


def _some(texts: Iterable[str]) -> str:
    """Join the first few; the rest is counted."""
    found = list(texts)
    more = f" and {len(found) - MOST_NAMED} more" if len(found) > MOST_NAMED else ""
    return "; ".join(found[:MOST_NAMED]) + more
