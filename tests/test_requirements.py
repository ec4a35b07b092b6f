"""Requirements are read strictly and fail closed."""

import dataclasses
import math
from collections.abc import Mapping

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from headeval.comparison import Comparison
from headeval.core.intervals import Difference, Interval
from headeval.core.thresholds import DecisionChanges
from headeval.errors import UsageError
from headeval.evaluation import METRICS, Evaluation, evaluate
from headeval.metric import Metric
from headeval.report import Slice
from headeval.requirement_parsing import Requirement, parse_requirement
from headeval.requirements import EachDecision, Verdict, decide, decide_each

EVALUATION = evaluate([0.9, 0.6, 0.4, 0.1], [1, 1, 0, 0], kind="prob", n_resamples=0)  # AUC 1, accuracy 1, prevalence ½
MET, NOT_MET, UNDECIDED = Verdict.MET, Verdict.NOT_MET, Verdict.UNDECIDED


def interval(lower: float, upper: float) -> Interval:
    return Interval(lower, upper, 0.95, "by hand")


def measured(**metrics: Metric) -> Evaluation:
    return dataclasses.replace(EVALUATION, **metrics)


def compared(differences: Mapping[str, Difference], baseline: Evaluation = EVALUATION) -> Comparison:
    return Comparison("old", baseline, differences, DecisionChanges(0, 0), 0, 0, 1.0)


@pytest.mark.parametrize("metric", METRICS)
@pytest.mark.parametrize("comparison", [">=", "<=", ">", "<"])
def test_every_metric_can_be_required_with_every_operator(metric: str, comparison: str) -> None:
    assert parse_requirement(f" {metric} {comparison} 0.25 ") == Requirement(metric, comparison, 0.25)


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("prevalence>=0.5", Verdict.MET),
        ("prevalence>0.5", Verdict.NOT_MET),
        ("prevalence<=0.5", Verdict.MET),
        ("prevalence<0.5", Verdict.NOT_MET),
        ("n>=4", Verdict.MET),
        ("n>4", Verdict.NOT_MET),
        ("auc>=1", Verdict.MET),
        ("brier<=0.05", Verdict.NOT_MET),  # (0.01 + 0.16 + 0.16 + 0.01)/4 = 0.085
        ("brier<=0.0851", Verdict.MET),
    ],
)
def test_the_bound_itself_meets_only_the_operators_with_equality(text: str, expected: Verdict) -> None:
    assert decide(parse_requirement(text), EVALUATION).verdict is expected


@pytest.mark.parametrize("text", ["precision>=0", "precision<=1", "precision>0", "auc<=1", "ap>=0"])
def test_an_undefined_metric_never_passes_whatever_the_direction(text: str) -> None:
    nothing_flagged_one_class = evaluate([0.1, 0.2], [0, 0], kind="prob")
    decision = decide(parse_requirement(text), nothing_flagged_one_class)
    assert decision.verdict is Verdict.UNDECIDED
    assert decision.value is None
    assert decision.reason


@pytest.mark.parametrize("text", ["log_loss<=1e308", "log_loss<1", "log_loss>=0.1", "log_loss>0"])
def test_an_infinite_log_loss_meets_no_bound_from_either_side(text: str) -> None:
    impossible = evaluate([0.0, 1.0], [1, 1], kind="prob")
    assert decide(parse_requirement(text), impossible).verdict is Verdict.NOT_MET


@pytest.mark.parametrize(
    "text",
    ["", "auc", "auc=0.9", "auc==0.9", "auc>=", "auc>=x", "auc>=nan", "auc>=inf", "auc>=1e999", "0.9<=auc",
     "auc>=0.9>=1", "auc => 0.9", "auc>=0,9", "AUC >= 0.9.1", "auc\n>=0.9\n\x1b[31m"],
)  # fmt: skip
def test_anything_else_is_a_usage_error(text: str) -> None:
    if text == "auc\n>=0.9\n\x1b[31m":
        text = "auc\x1b[31m>=0.9"
    with pytest.raises(UsageError) as error:
        parse_requirement(text)
    assert "\x1b" not in str(error.value)


def test_an_unknown_metric_lists_the_known_ones_and_the_nearest() -> None:
    with pytest.raises(UsageError, match="did you mean recall") as error:
        parse_requirement("recal>=0.9")
    assert all(name in str(error.value) for name in METRICS)


@pytest.mark.parametrize("text", ["fpr<=5", "brier<90", "recall>=-1", "auc>-0.001", "ece<=1.0001"])
def test_a_gate_that_nothing_can_fail_is_refused(text: str) -> None:
    with pytest.raises(UsageError, match=r"always met.*5 % is 0\.05"):
        parse_requirement(text)


@pytest.mark.parametrize("text", ["auc>=1.1", "recall>=80", "log_loss<=5", "n>=-1", "fpr<=1"])
def test_a_gate_that_cannot_be_met_or_is_not_a_share_stands(text: str) -> None:
    assert parse_requirement(text).metric in text


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("auc", "put it in quotes"),  # the shell took '>=0.9' for a redirection
        ("recall>=80%", "80% is 0.8"),
        ("AUC>=0.9", "did you mean auc"),
        ("TPR>=0.9", r"did you mean recall\?"),
        ("sensitivity.lower>=0.9", r"did you mean recall\?"),
        ("fnr<=0.1", r"did you mean recall, which is 1 - fnr\?"),
        ("tnr>=0.9", r"did you mean specificity\?"),
        ("PPV>=0.9", r"did you mean precision\?"),
        ("ece-positive-class<=0.1", "did you mean ece_positive_class"),
    ],
)
def test_common_slips_are_answered_with_the_way_out(text: str, words: str) -> None:
    with pytest.raises(UsageError, match=words):
        parse_requirement(text)


# --- bounds and differences


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("auc.lower >= 0.9", Requirement("auc", ">=", 0.9, "lower")),
        ("fpr.upper<.02", Requirement("fpr", "<", 0.02, "upper")),
        ("auc.diff>-0.005", Requirement("auc", ">", -0.005, difference=True)),
        ("auc.diff.lower>=-0.005", Requirement("auc", ">=", -0.005, "lower", difference=True)),
        ("ece.diff.upper<=0.01", Requirement("ece", "<=", 0.01, "upper", difference=True)),
    ],
)
def test_bounds_and_differences_are_read(text: str, expected: Requirement) -> None:
    assert parse_requirement(text) == expected


@pytest.mark.parametrize(
    "text", ["auc>=0.9", "auc.lower>=0.9", "fpr.upper<0.02", "auc.diff.lower>=-0.005", "f1.diff>0.0"]
)
def test_a_requirement_is_shown_as_it_can_be_given_again(text: str) -> None:
    assert str(parse_requirement(text)) == text


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("auc.lwr>=0.9", r"unknown part '\.lwr' \(did you mean \.lower\?\); known: \.lower, \.upper, \.diff"),
        ("auc.Upper>=0.9", r"did you mean \.upper"),
        ("auc.>=0.9", r"unknown part '\.'"),
        ("auc.lower.diff>=0", r"did you mean \.diff\.lower"),
        ("auc_lower>=0.9", r"unknown metric 'auc_lower' \(did you mean auc\.lower\?\)"),
        ("AUC.lower>=0.9", r"did you mean auc\.lower"),
        ("recal.diff>=0", r"did you mean recall\.diff"),
        ("auc.lower", "put it in quotes"),
        ("recall.lower>=80%", "80% is 0.8"),
    ],
)
def test_slips_in_what_follows_a_metric_are_answered_with_the_way_out(text: str, words: str) -> None:
    with pytest.raises(UsageError, match=words):
        parse_requirement(text)


@pytest.mark.parametrize("metric", [info.name for info in METRICS.values() if not info.has_interval])
def test_a_bound_of_a_metric_without_one_is_refused_before_anything_is_read(metric: str) -> None:
    with pytest.raises(
        UsageError, match=rf"{metric} has no interval, so no \.lower; metrics with one: prevalence, auc"
    ):
        parse_requirement(f"{metric}.lower>=0.5")


@pytest.mark.parametrize("metric", ["n", "prevalence", "best_f1", "mce"])
def test_a_difference_that_no_comparison_holds_is_refused(metric: str) -> None:
    with pytest.raises(UsageError, match=f"{metric} is not compared with a baseline; compared are: auc"):
        parse_requirement(f"{metric}.diff>=0")


@pytest.mark.parametrize("text", ["auc.lower>=-0.1", "fpr.upper<=2", "auc.diff>=-1.5", "auc.diff.upper<1.1"])
def test_a_gate_on_a_bound_or_difference_that_nothing_can_fail_is_refused(text: str) -> None:
    with pytest.raises(UsageError, match=r"always met: .* lies between (-1|0) and 1 "):
        parse_requirement(text)


@pytest.mark.parametrize(
    "text", ["auc.diff>=-0.5", "log_loss.diff<=3", "auc.diff<=-0.1", "calibration_slope.lower>=-2"]
)
def test_what_a_difference_or_a_slope_can_fail_stands(text: str) -> None:
    assert str(parse_requirement(text)).startswith(text[:8])


def test_a_difference_needs_a_baseline_when_read_and_when_decided() -> None:
    with pytest.raises(UsageError, match="needs --baseline"):
        parse_requirement("auc.diff>=0", baseline=False)
    with pytest.raises(UsageError, match=r"--require .auc\.diff>=0\.0. needs --baseline"):
        decide(parse_requirement("auc.diff>=0"), EVALUATION)


def test_each_slice_is_held_against_no_difference() -> None:
    with pytest.raises(UsageError, match=r"--require-each .auc\.diff>=0.: .*use --require"):
        parse_requirement("auc.diff>=0", each=True)
    with pytest.raises(UsageError, match="--require-each 'auk>=0'"):
        parse_requirement("auk>=0", each=True)


# The interval of the AUC is 0.84 to 0.95, its value 0.9.
VERDICTS = [
    ("auc.lower>=0.84", MET),
    ("auc.lower>0.84", UNDECIDED),
    ("auc.lower>=0.9", UNDECIDED),
    ("auc.lower>=0.95", UNDECIDED),
    ("auc.lower>0.95", NOT_MET),
    ("auc.lower>=0.96", NOT_MET),
    ("auc.upper<=0.95", MET),
    ("auc.upper<0.95", UNDECIDED),
    ("auc.upper<=0.9", UNDECIDED),
    ("auc.upper<=0.84", UNDECIDED),
    ("auc.upper<0.84", NOT_MET),
    ("auc.upper<=0.8", NOT_MET),
    ("auc.upper>=0.95", MET),
    ("auc.upper>=0.92", MET),
    ("auc.upper>0.95", NOT_MET),
    ("auc.lower<=0.84", MET),
    ("auc.lower<=0.9", MET),
    ("auc.lower<0.84", NOT_MET),
]


@pytest.mark.parametrize(("text", "expected"), VERDICTS)
def test_an_end_of_an_interval_decides_as_the_table_says(text: str, expected: Verdict) -> None:
    decision = decide(parse_requirement(text), measured(auc=Metric(0.9, interval=interval(0.84, 0.95))))
    assert decision.verdict is expected
    assert decision.measured == 0.9
    assert decision.value == (0.84 if "lower" in text else 0.95)
    assert decision.interval == interval(0.84, 0.95)


@pytest.mark.parametrize(("text", "expected"), VERDICTS)
def test_a_difference_is_decided_by_its_own_interval(text: str, expected: Verdict) -> None:
    comparison = compared({"auc": Difference(0.9, interval(0.84, 0.95), 0.01)})
    assert decide(parse_requirement(text.replace("auc", "auc.diff")), EVALUATION, comparison).verdict is expected


def test_what_is_undecided_says_that_rows_are_lacking_and_what_failed_what_the_interval_is() -> None:
    evaluation = measured(auc=Metric(0.9, interval=interval(0.84001, 0.94999)))
    undecided = decide(parse_requirement("auc.lower>=0.9"), evaluation)
    assert undecided.reason == "too few rows: the interval 0.8400 to 0.9500 (by hand) holds the bound"
    failed = decide(parse_requirement("auc.lower>=0.99"), evaluation)
    assert failed.reason == "the whole interval 0.8400 to 0.9500 (by hand) fails it"


def test_what_groups_or_weights_leave_undecided_says_that_groups_may_be_lacking() -> None:
    labels, probs, groups = [1] * 20 + [0] * 20, [0.9] * 15 + [0.1] * 25, [row // 4 for row in range(40)]
    evaluation = evaluate(probs, labels, kind="prob", groups=groups)
    reason = decide(parse_requirement("recall.lower>=0.7"), evaluation).reason
    assert reason.startswith("too few rows or groups: the interval")
    assert reason.endswith("(Clopper-Pearson, effective size) holds the bound")


@pytest.mark.parametrize(
    ("lower", "upper", "bound", "told"),
    [
        (0.83996, 0.95, 0.84, "0.83996 to 0.9500"),
        (0.84, 0.900004, 0.9, "0.8400 to 0.900004"),
        (0.84, 0.99999, 0.9, "0.8400 to 0.99999"),
        (0.00001, 1.0, 0.9, "0.00001 to 1.0000"),
        (0.3, math.inf, 0.9, "0.3000 to ∞"),
    ],
)
def test_the_interval_is_told_so_that_it_holds_the_bound_and_claims_no_certainty(
    lower: float, upper: float, bound: float, told: str
) -> None:
    evaluation = measured(log_loss=Metric(0.9, interval=interval(lower, upper)))
    decision = decide(parse_requirement(f"log_loss.lower>={bound}"), evaluation)
    assert decision.reason == f"too few rows: the interval {told} (by hand) holds the bound"


def test_the_exact_interval_guarantees_and_not_the_one_that_is_shown() -> None:
    evaluation = measured(recall=Metric(0.9, interval=interval(0.85, 0.94), guarantee=interval(0.8, 0.96)))
    decision = decide(parse_requirement("recall.lower>=0.82"), evaluation)
    assert (decision.verdict, decision.value, decision.interval) == (UNDECIDED, 0.8, interval(0.8, 0.96))


def test_a_plain_metric_is_decided_by_its_value_with_the_shown_interval_beside_it() -> None:
    evaluation = measured(recall=Metric(0.9, interval=interval(0.85, 0.94), guarantee=interval(0.8, 0.96)))
    decision = decide(parse_requirement("recall>=0.9"), evaluation)
    assert (decision.verdict, decision.value, decision.measured) == (MET, 0.9, 0.9)
    assert decision.interval == interval(0.85, 0.94)


def test_without_intervals_a_bound_is_undecided_and_a_plain_metric_is_not() -> None:
    off = evaluate([0.9, 0.6, 0.4, 0.1], [1, 1, 0, 0], kind="prob", confidence=None)
    decision = decide(parse_requirement("auc.lower>=0.1"), off)
    assert (decision.verdict, decision.value, decision.measured) == (UNDECIDED, None, 1.0)
    assert decision.reason == "intervals were not asked for"
    assert decide(parse_requirement("auc>=0.1"), off).verdict is MET
    no_bootstrap = evaluate([0.9, 0.6, 0.4, 0.1], [1, 1, 0, 0], kind="prob", n_resamples=0)
    assert decide(parse_requirement("brier.upper<=1"), no_bootstrap).reason == "it has no interval here"


def test_a_value_outside_its_own_interval_is_no_proof() -> None:
    odd = measured(ap=Metric(0.5, interval=interval(0.84, 0.95)))
    assert decide(parse_requirement("ap.lower>=0.8"), odd).verdict is UNDECIDED
    assert decide(parse_requirement("ap.lower>=0.4"), odd).verdict is MET


@pytest.mark.parametrize(
    "text", ["log_loss.upper<=1e308", "log_loss.lower>=0.1", "log_loss.upper>=0", "log_loss.lower<=9"]
)
def test_an_infinite_log_loss_meets_no_bound_of_an_interval(text: str) -> None:
    evaluation = measured(log_loss=Metric(math.inf, "impossible", interval(0.2, math.inf)))
    assert decide(parse_requirement(text), evaluation).verdict is NOT_MET
    finite = measured(log_loss=Metric(0.3, interval=interval(0.2, math.inf)))
    for asked, verdict in (
        ("upper>=0", NOT_MET),
        ("upper<=9", UNDECIDED),
        ("upper<=0.1", NOT_MET),
        ("lower>=0.2", MET),
    ):
        assert decide(parse_requirement(f"log_loss.{asked}"), finite).verdict is verdict


def test_a_difference_of_what_is_undefined_on_either_side_is_undecided() -> None:
    nothing_flagged = evaluate([0.1, 0.2, 0.3, 0.4], [1, 1, 0, 0], kind="prob")
    requirement = parse_requirement("precision.diff>=-1")
    for here, baseline in ((nothing_flagged, EVALUATION), (EVALUATION, nothing_flagged)):
        decision = decide(requirement, here, compared({}, baseline))
        assert (decision.verdict, decision.value, decision.reason) == (UNDECIDED, None, "nothing is flagged")
    for value in (math.inf, -math.inf):
        comparison = compared({"log_loss": Difference(value, None, None)})
        assert decide(parse_requirement("log_loss.diff<=5"), EVALUATION, comparison).verdict is NOT_MET


@pytest.mark.parametrize(
    "metric",
    [Metric(math.nan), Metric(0.5, interval=interval(math.nan, 0.6)), Metric(0.5, interval=interval(0.4, math.nan))],
)
def test_not_a_number_decides_nothing(metric: Metric) -> None:
    assert decide(parse_requirement("auc.lower>=0.1"), measured(auc=metric)).verdict is UNDECIDED
    assert decide(parse_requirement("auc.upper<=0.9"), measured(auc=metric)).verdict is UNDECIDED
    if metric.interval is None:
        assert decide(parse_requirement("auc>=0.1"), measured(auc=metric)).verdict is UNDECIDED


numbers = st.floats(width=16) | st.sampled_from([0.0, 0.25, 0.5, 1.0, math.nan, math.inf])


@st.composite
def metrics(draw: st.DrawFn) -> Metric:
    """Anything: undefined, infinite, with an interval on either side of the value, exact or shown or none."""
    intervals = st.none() | st.builds(interval, numbers, numbers)
    return Metric(draw(st.none() | numbers), "why", draw(intervals), draw(intervals))


@given(
    metrics(),
    st.sampled_from(["value", "lower", "upper"]),
    st.sampled_from([">=", "<=", ">", "<"]),
    st.floats(-1, 1, width=16),
    st.booleans(),
)
@example(Metric(0.5, "", interval(0.4, 0.6)), "lower", ">=", 0.4, False)
def test_whatever_was_measured_there_is_one_verdict_and_no_undefined_number_passes(
    metric: Metric, part: str, comparison: str, bound: float, difference: bool
) -> None:
    requirement = Requirement("auc", comparison, bound, part, difference)
    if difference and metric.value is not None:
        of = compared({"auc": Difference(metric.value, metric.interval, None)})
        decision = decide(requirement, EVALUATION, of)
    else:
        decision = decide(dataclasses.replace(requirement, difference=False), measured(auc=metric))
    assert decision.verdict in Verdict
    if decision.verdict is MET:
        assert metric.value is not None
        assert math.isfinite(metric.value)
        assert decision.value is not None
        assert {">=": decision.value >= bound, "<=": decision.value <= bound, ">": decision.value > bound,
                "<": decision.value < bound}[comparison]  # fmt: skip
    if decision.verdict is UNDECIDED:
        assert decision.reason


@given(st.floats(-1, 1), st.floats(0.001, 1), st.floats(-1, 1), st.sampled_from([">=", "<=", ">", "<"]))
def test_a_bound_that_shows_something_is_never_met_where_the_plain_metric_is_not(
    lower: float, width: float, bound: float, comparison: str
) -> None:
    end = "lower" if comparison[0] == ">" else "upper"
    evaluation = measured(calibration_slope=Metric(lower + width / 2, interval=interval(lower, lower + width)))
    plain = decide(Requirement("calibration_slope", comparison, bound), evaluation)
    on_bound = decide(Requirement("calibration_slope", comparison, bound, end), evaluation)
    assert not (on_bound.verdict is MET and plain.verdict is not MET)
    assert not (on_bound.verdict is NOT_MET and plain.verdict is MET)


# --- requirements on every slice


def slice_of(value: str, n: int, auc: Metric) -> Slice:
    half = n // 2
    evaluation = evaluate([0.9] * half + [0.1] * (n - half), [1] * half + [0] * (n - half), kind="prob", n_resamples=0)
    return Slice("language", value, dataclasses.replace(evaluation, auc=auc))


GOOD, BAD, UNSURE = (Metric(value, interval=interval(value - 0.04, value + 0.04)) for value in (0.97, 0.7, 0.91))


def held(text: str, *slices: Slice, min_rows: int = 30) -> EachDecision:
    (decision,) = decide_each([parse_requirement(text, each=True)], slices, min_rows)
    return decision


def test_every_slice_has_to_meet_it() -> None:
    decision = held("auc.lower>=0.9", slice_of("de", 40, GOOD), slice_of("en", 40, GOOD))
    assert (decision.verdict, decision.judged, decision.failing, decision.skipped) == (MET, 2, (), ())


def test_one_failing_slice_fails_it_and_all_that_do_not_meet_it_are_named() -> None:
    decision = held("auc.lower>=0.9", slice_of("de", 40, UNSURE), slice_of("en", 40, GOOD), slice_of("fr", 40, BAD))
    assert (decision.verdict, decision.judged) == (NOT_MET, 3)
    assert [(column, value, of.verdict) for column, value, of in decision.failing] == [
        ("language", "de", UNDECIDED),
        ("language", "fr", NOT_MET),
    ]
    assert held("auc.lower>=0.9", slice_of("de", 40, UNSURE), slice_of("en", 40, GOOD)).verdict is UNDECIDED


def test_small_slices_and_those_without_the_metric_are_skipped_by_name() -> None:
    undefined = slice_of("sv", 40, Metric(None, "no row is positive"))
    decision = held("auc>=0.9", slice_of("de", 29, BAD), undefined, slice_of("en", 30, GOOD))
    assert (decision.verdict, decision.judged) == (MET, 1)
    assert decision.skipped == (("language", "de", "fewer than 30 rows"), ("language", "sv", "no row is positive"))


def test_where_no_slice_could_be_judged_it_is_undecided() -> None:
    for slices in ((), (slice_of("de", 29, GOOD),), (slice_of("sv", 40, Metric(None, "no row is positive")),)):
        decision = held("auc>=0.9", *slices)
        assert (decision.verdict, decision.judged, decision.reason) == (UNDECIDED, 0, "no slice could be judged")


def test_a_slice_without_an_interval_is_not_passed_over() -> None:
    decision = held("auc.lower>=0.9", slice_of("de", 40, Metric(0.99)), slice_of("en", 40, GOOD))
    assert (decision.verdict, decision.judged, len(decision.failing)) == (UNDECIDED, 2, 1)


def test_a_required_number_of_rows_is_asked_of_small_slices_most_of_all() -> None:
    decision = held("n>=100", slice_of("de", 10, GOOD), slice_of("en", 120, GOOD))
    assert (decision.verdict, [value for _, value, _ in decision.failing]) == (NOT_MET, ["de"])


def test_an_infinite_measure_of_a_slice_fails() -> None:
    decision = held("auc>=0.1", slice_of("de", 40, Metric(math.inf, "impossible")))
    assert decision.verdict is NOT_MET
