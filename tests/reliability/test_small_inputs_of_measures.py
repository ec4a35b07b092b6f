"""Small scores and labels on which others went wrong: each has its right value, in the function and in the command."""

import itertools
import json
import math
from collections.abc import Callable
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from headeval import ece, evaluate, reliability_bins, roc_auc, roc_curve
from headeval.core.bins import Binning, Convention
from headeval.core.calibration import reliability_table
from headeval.core.proper_scores import brier_score
from headeval.core.ranking import average_precision
from headeval.core.stable import sigmoid

Headeval = Callable[..., Any]
FAST = ("--resamples", "0", "--quiet")
ROUNDING = 1e-15
CONVENTIONS: tuple[Convention, ...] = ("top-label", "top-label-left", "positive-class")
BINNINGS: tuple[Binning, ...] = ("equal-width", "equal-mass")


def table(path: str, *, group: int | None = None, **columns: Any) -> str:
    """Write a Parquet file into the folder of the command; `group` rows make a row group."""
    pq.write_table(pa.table(columns), path, row_group_size=group)
    return path


def document(headeval: Headeval, data: str, *options: object, code: int = 0) -> Any:
    outcome = headeval("report", data, *options, "--format", "json", *FAST)
    assert outcome.code == code, outcome.err
    return json.loads(outcome.out)


# --- scores 9, 9, 5, 5 with labels 1, 0, 1, 0: AUC 0.5, curve through (½, ½), whatever the order


@pytest.mark.parametrize("order", list(itertools.permutations(range(4))))
def test_ties_of_both_classes_are_one_diagonal_step_whatever_the_order(order: tuple[int, ...]) -> None:
    scores, labels = np.array([9.0, 9, 5, 5])[list(order)], np.array([1, 0, 1, 0])[list(order)]
    fpr, tpr, thresholds = roc_curve(scores, labels)
    assert (fpr.tolist(), tpr.tolist(), thresholds.tolist()) == ([0, 0.5, 1], [0, 0.5, 1], [math.inf, 9, 5])
    assert roc_auc(scores, labels) == 0.5


def test_the_command_reports_ties_alike_whatever_the_order_of_the_rows(headeval: Headeval) -> None:
    said = []
    for order in ((0, 1, 2, 3), (3, 1, 0, 2), (1, 3, 2, 0)):
        data = table("t.parquet", s=np.array([9.0, 9, 5, 5])[list(order)], label=np.array([1, 0, 1, 0])[list(order)])
        said.append(document(headeval, data, "--logit", "s"))
    assert said[0]["metrics"]["auc"] == 0.5
    assert said[0] == said[1] == said[2]


# --- scores 1e-7·(0.1, 0.4, 0.35, 0.8): the same AUC as without the factor


@pytest.mark.parametrize("factor", [1.0, 1e-7, 1e-300, 1e7])
def test_a_factor_of_the_scores_changes_no_auc(factor: float) -> None:
    """3 of 4 pairs are won: 0.35 and 0.8 over 0.1, 0.8 over 0.4. Grouping scores that are close would tie them all."""
    assert roc_auc(np.array([0.1, 0.4, 0.35, 0.8]) * factor, [0, 0, 1, 1]) == 0.75


@pytest.mark.parametrize(("factor", "kind"), [(1.0, "prob"), (1e-7, "prob"), (1e-7, "logit"), (1e-300, "logit")])
def test_a_factor_of_the_scores_changes_no_reported_auc(headeval: Headeval, factor: float, kind: str) -> None:
    data = table("t.parquet", s=np.array([0.1, 0.4, 0.35, 0.8]) * factor, label=[0, 0, 1, 1])
    assert document(headeval, data, f"--{kind}", "s")["metrics"]["auc"] == 0.75


# --- 15 float32 logits from 97 to 100, one negative: AUC from the logits, and a note that the probabilities collapse

HIGH = np.linspace(97, 100, 15, dtype=np.float32)
SECOND_IS_NEGATIVE = [1, 0, *[1] * 13]  # 13 of the 14 positives outscore it
COLLAPSED = "the probabilities collapse (float saturation): 15 distinct logits become 1 distinct probability"


def test_probabilities_of_high_logits_are_all_1_and_rank_nothing() -> None:
    assert sigmoid(HIGH.astype(np.float64)).tolist() == [1.0] * 15
    assert roc_auc(sigmoid(HIGH.astype(np.float64)), SECOND_IS_NEGATIVE) == 0.5
    assert roc_auc(HIGH, SECOND_IS_NEGATIVE) == 13 / 14


@pytest.mark.parametrize("weighted", [False, True])
def test_the_auc_is_that_of_the_logits_and_the_collapse_is_noted(weighted: bool) -> None:
    weights = [2.0] * 15 if weighted else None
    found = evaluate(HIGH, SECOND_IS_NEGATIVE, kind="logit", n_resamples=0, weights=weights)
    assert found.auc.value == pytest.approx(13 / 14, abs=ROUNDING)
    assert sum(note.startswith(COLLAPSED) for note in found.notes) == 1
    apart = evaluate(HIGH - 98.5, SECOND_IS_NEGATIVE, kind="logit", n_resamples=0, weights=weights)
    assert not any("collapse" in note for note in apart.notes)


def test_only_some_probabilities_that_collapse_are_counted() -> None:
    """Of 40, 41, 1 and 0 the first two have the probability 1."""
    notes = evaluate([40.0, 41.0, 1.0, 0.0], [1, 1, 0, 0], kind="logit", n_resamples=0).notes
    assert any("4 distinct logits become 3 distinct probabilities" in note for note in notes)


@pytest.mark.parametrize("output_format", ["table", "json", "markdown"])
def test_every_format_of_the_report_says_that_the_probabilities_collapse(
    headeval: Headeval, output_format: str
) -> None:
    data = table("t.parquet", z=HIGH, label=SECOND_IS_NEGATIVE)
    outcome = headeval("report", data, "--logit", "z", "--format", output_format, *FAST)
    assert outcome.code == 0
    text = " ".join(outcome.out.split())
    assert COLLAPSED in text
    assert ("0.9285714285714286" if output_format == "json" else "0.9286") in text


# --- logits −1, 0, 1 read one row at a time: the scale is decided by the caller, not by each block


def test_a_block_of_one_logit_that_could_be_a_probability_is_read_as_the_caller_says(headeval: Headeval) -> None:
    data = table("t.parquet", group=1, z=[-1.0, 0.0, 1.0], label=[0, 1, 1])
    assert pq.ParquetFile(data).num_row_groups == 3
    tail = 1 / (1 + math.e)  # σ(−1) = 1 − σ(1)
    found = document(headeval, data, "--logit", "z")["metrics"]
    assert found["brier"] == pytest.approx((tail**2 + 0.25 + tail**2) / 3, abs=ROUNDING)
    refused = headeval("report", data, "--prob", "z")
    assert refused.code == 3
    assert "column 'z' is no probability in [0, 1] in row 1 ('-1.0')" in refused.err
    assert headeval("report", data).code == 2  # nothing says what z is


def test_scores_are_of_the_kind_that_is_named_and_of_no_other() -> None:
    with pytest.raises(TypeError, match="kind"):
        evaluate([0.0, 1.0], [0, 1])  # type: ignore[call-arg]  # that is the point
    assert evaluate([0.0, 1.0], [0, 1], kind="logit").brier.value == pytest.approx(
        (0.25 + (1 / (1 + math.e)) ** 2) / 2, abs=ROUNDING
    )
    assert evaluate([0.0, 1.0], [0, 1], kind="prob").brier.value == 0.0
    one_by_one = [float(sigmoid(np.array([z]))[0]) for z in (-1.0, 0.0, 1.0)]
    assert one_by_one == sigmoid(np.array([-1.0, 0.0, 1.0])).tolist()


# --- five positives with low scores: average precision 1 is trivial; AUC undefined; a requirement on either fails

LOW = [0.1, 0.2, 0.05, 0.3, 0.15]


def test_average_precision_of_positives_alone_is_1_and_there_is_no_auc() -> None:
    assert average_precision(LOW, [1] * 5) == 1.0
    with pytest.raises(ValueError, match="both classes"):
        roc_auc(LOW, [1] * 5)


@pytest.mark.parametrize("output_format", ["table", "json", "markdown"])
def test_average_precision_of_positives_alone_is_marked_trivial(headeval: Headeval, output_format: str) -> None:
    data = table("t.parquet", p=LOW, label=[1] * 5)
    outcome = headeval("report", data, "--prob", "p", "--format", output_format, *FAST)
    assert outcome.code == 0
    assert "trivial: every row is positive, so it is 1 whatever the scores" in " ".join(outcome.out.split())
    if output_format == "json":
        found = json.loads(outcome.out)
        assert (found["metrics"]["ap"], found["metrics"]["auc"], found["metrics"]["prevalence"]) == (None, None, 1)
        assert set(found["undefined"]) >= {"ap", "auc"}


@pytest.mark.parametrize("required", ["ap>=0.9", "ap<=1", "ap.lower>=0", "auc>=0.5", "auc<0.5", "auc.upper<=1"])
def test_a_requirement_on_a_trivial_or_undefined_ranking_fails(headeval: Headeval, required: str) -> None:
    data = table("t.parquet", p=LOW, label=[1] * 5)
    found = document(headeval, data, "--prob", "p", "--require", required, code=1)
    assert (found["passed"], found["requirements"][0]["verdict"]) == (False, "undecided")


# --- labels 1, 1, 1, 1 with p = 1: Brier 0


def test_positives_with_probability_1_have_a_brier_score_of_0(headeval: Headeval) -> None:
    assert brier_score([1.0] * 4, [1] * 4) == 0.0
    data = table("t.parquet", p=[1.0] * 4, label=[1] * 4)
    found = document(headeval, data, "--prob", "p", "--require", "brier<=0")
    assert (found["metrics"]["brier"], found["metrics"]["log_loss"], found["passed"]) == (0.0, 0.0, True)


# --- p = 0.95, 1.0 with y = 1, 0, and p = 1, 1, 1, 1, 0: bin counts sum to n in every convention

CERTAIN = [([0.95, 1.0], [1, 0]), ([1.0, 1.0, 1.0, 1.0, 0.0], [1, 1, 0, 1, 0])]


@pytest.mark.parametrize(("p", "y"), CERTAIN)
@pytest.mark.parametrize("convention", CONVENTIONS)
@pytest.mark.parametrize("binning", BINNINGS)
def test_no_row_at_the_edge_of_the_scale_is_lost(
    p: list[float], y: list[int], convention: Convention, binning: Binning
) -> None:
    for n_bins in (1, 2, 3, 7, 10, 15, 20):
        found = reliability_table(p, y, convention=convention, n_bins=n_bins, binning=binning)
        assert found.counts.sum() == len(p)
        counts, _, _ = reliability_bins(p, y, n_bins=n_bins)
        assert counts.sum() == len(p)
        assert counts.shape == (n_bins,)


@pytest.mark.parametrize(("p", "y"), CERTAIN)
@pytest.mark.parametrize(("convention", "binning"), list(zip(CONVENTIONS, [*BINNINGS, "equal-mass"], strict=True)))
def test_the_bins_of_a_report_hold_every_row(
    headeval: Headeval, p: list[float], y: list[int], convention: str, binning: str
) -> None:
    data = table("t.parquet", p=p, label=y)
    found = document(headeval, data, "--prob", "p", "--ece-convention", convention, "--binning", binning)
    assert sum(one["count"] for one in found["reliability"]) == len(p)
    assert found["calibration"][0]["convention"] == convention


# --- all p = 0.5 with prevalence 0.9 in equal-mass bins: one bin, ECE 0.4


@pytest.mark.parametrize("convention", CONVENTIONS)
def test_tied_probabilities_are_one_bin_of_equal_mass(headeval: Headeval, convention: Convention) -> None:
    p, y = [0.5] * 10, [1] * 9 + [0]
    of_core = reliability_table(p, y, convention=convention, binning="equal-mass")
    assert of_core.counts.tolist() == [10]
    assert of_core.ece == pytest.approx(0.4, abs=ROUNDING)
    assert ece(p, y) == pytest.approx(0.4, abs=ROUNDING)
    data = table("t.parquet", p=p, label=y)
    found = document(headeval, data, "--prob", "p", "--binning", "equal-mass", "--ece-convention", convention)
    assert found["metrics"]["ece"] == pytest.approx(0.4, abs=ROUNDING)
    assert [each["n_bins"] for each in found["calibration"]] == [1, 1]
    assert [one["count"] for one in found["reliability"]] == [10]
