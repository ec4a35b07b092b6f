"""Requirements are read strictly and fail closed."""

import pytest

from headeval.errors import UsageError
from headeval.evaluation import METRICS, evaluate
from headeval.requirements import Requirement, Verdict, decide, parse_requirement

EVALUATION = evaluate([0.9, 0.6, 0.4, 0.1], [1, 1, 0, 0], kind="prob")  # AUC 1, accuracy 1, prevalence ½


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
        ("ece-positive-class<=0.1", "did you mean ece_positive_class"),
    ],
)
def test_common_slips_are_answered_with_the_way_out(text: str, words: str) -> None:
    with pytest.raises(UsageError, match=words):
        parse_requirement(text)
