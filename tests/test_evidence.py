"""No interval claims more than the rows allow, and nothing but rows and seed decides its bits."""

import itertools
import math
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.stats import binomtest, norm

from headeval import evidence
from headeval.core import threads
from headeval.evaluation import METRICS, Evaluation, evaluate
from headeval.evidence import AVERAGED, FEWEST_RESAMPLES, MOST_RESAMPLES, RANKED, Resampling
from headeval.metric import Metric
from headeval.rates import rates
from headeval.scored_rows import ScoredRows

RATES = ("prevalence", "accuracy", "precision", "recall", "specificity", "fpr", "f1", "flag_rate")
FEW: dict[str, Any] = {"n_resamples": 40}  # the promises hold for any number that is enough for an interval


def sample(n: int = 120, seed: int = 0) -> tuple[np.ndarray, np.ndarray]:
    rng = np.random.default_rng(seed)
    z = 1.5 * rng.normal(size=n) - 0.5
    return z, (rng.random(n) < 1 / (1 + np.exp(-z))).astype(int)


def everything(evaluation: Evaluation) -> dict[str, Metric]:
    return {info.name: metric for info, metric in evaluation.metrics()}


def check_intervals(evaluation: Evaluation) -> None:
    for info, metric in evaluation.metrics():
        assert info.has_interval or metric.interval is metric.guarantee is None, info.name
        for interval in filter(None, (metric.interval, metric.guarantee)):
            assert metric.value is not None, info.name
            assert interval.lower < interval.upper, info.name
            assert interval.lower <= metric.value <= interval.upper, info.name
            assert interval.confidence == evaluation.confidence
            least, most = {"share": (0, 1), "positive": (0, math.inf)}.get(info.scale, (-math.inf, math.inf))
            assert least <= interval.lower, info.name
            assert interval.upper <= most, info.name
    for interval in filter(None, evaluation.reliability_intervals):
        assert 0 <= interval.lower < interval.upper <= 1


SCORES = {
    "prob": st.sampled_from([0.0, 1e-9, 0.25, 0.5, 0.9, 1.0]),
    "logit": st.sampled_from([-800.0, -1.0, 0.0, 2.5, 40.0]),
}


@settings(max_examples=100, deadline=None)
@given(st.data())
def test_intervals_have_a_width_hold_their_value_and_stay_on_their_scale(data: st.DataObject) -> None:
    """Also of one class, perfect or constant scores, probabilities of 0 and 1, one row, groups, weights of 0."""
    kind = data.draw(st.sampled_from(["prob", "logit"]))
    n = data.draw(st.integers(1, 12))
    lists = {"scores": SCORES[kind], "labels": st.integers(0, 1)}
    also = data.draw(st.sampled_from([(), ("weights",), ("groups",), ("weights", "groups")]))
    lists |= {
        name: {"weights": st.sampled_from([0.0, 0.3, 1.0, 2.5]), "groups": st.integers(0, 3)}[name] for name in also
    }
    rows = {name: data.draw(st.lists(each, min_size=n, max_size=n)) for name, each in lists.items()}
    if not any(rows.get("weights", [1])):
        rows["weights"][0] = 1.0
    evaluation = evaluate(
        **rows, kind=kind, threshold=data.draw(st.sampled_from([0.0, 0.5, 1.0])), confidence=0.8, prevalence=0.01, **FEW
    )
    check_intervals(evaluation)
    for name, metric in everything(evaluation).items():
        assert bool(metric.reason) == (metric.value is None or not math.isfinite(metric.value)), name
        if name in (*RATES, "auc") and metric.value is not None:
            assert metric.interval is not None, name


@pytest.mark.parametrize(
    ("scores", "labels"),
    [
        ([0.9] * 12 + [0.1] * 30, [1] * 12 + [0] * 30),
        ([0.1] * 12 + [0.9] * 30, [1] * 12 + [0] * 30),
        ([0.5] * 20, [0, 1] * 10),
        ([1.0] * 9 + [0.0] * 9, [1] * 9 + [0] * 9),
        ([0.3] * 7, [0] * 7),
        ([0.3], [1]),
    ],
    ids=["perfect", "reversed", "constant", "certain", "one class", "one row"],
)
def test_extreme_samples_keep_the_promises_too(scores: list[float], labels: list[int]) -> None:
    check_intervals(evaluate(scores, labels, kind="prob", **FEW))


def test_perfection_on_twelve_positives_has_a_lower_bound_below_one() -> None:
    """(0.025)^(1/12), what twelve successes in twelve allow, whether counted or ranked; Wilson's for what is shown."""
    evaluation = evaluate([0.9] * 12 + [0.1] * 88, [1] * 12 + [0] * 88, kind="prob", **FEW)
    exact = 0.025 ** (1 / 12)
    for name in ("auc", "recall", "ap", "partial_auc"):
        metric = getattr(evaluation, name)
        assert metric.value == 1
        assert metric.gate_interval.lower == pytest.approx(exact, rel=1e-9), name
        assert metric.gate_interval.upper == 1
    z = norm.ppf(0.975)
    assert evaluation.recall.interval is not None
    assert evaluation.recall.interval.lower == pytest.approx(12 / (12 + z * z), rel=1e-9)


def test_recall_where_no_threshold_of_the_sample_has_the_fpr_begins_at_zero() -> None:
    """88 negatives cannot show a false-positive rate of 0.1 % or 1 %."""
    evaluation = evaluate([0.9] * 12 + [0.1] * 88, [1] * 12 + [0] * 88, kind="prob", **FEW)
    for metric in (evaluation.recall_at_1pct_fpr, evaluation.recall_at_0_1pct_fpr):
        assert metric.interval is not None
        assert (metric.value, metric.interval.lower) == (1, 0)


@settings(max_examples=12, deadline=None)
@given(st.randoms(use_true_random=False), st.sampled_from([(), ("weights",), ("groups",), ("weights", "groups")]))
def test_row_order_changes_no_bit_of_anything(random: Any, also: tuple[str, ...]) -> None:
    z, y = sample(60)
    z = np.round(z, 1)  # ties, which only the other columns tell apart
    columns: dict[str, Any] = {"weights": np.arange(60) % 4 + 0.1, "groups": np.arange(60) % 7}
    columns = {name: columns[name] for name in also}
    order = list(range(60))
    random.shuffle(order)
    shown = [
        evaluate(z[rows], y[rows], kind="logit", **{name: column[rows] for name, column in columns.items()}, **FEW)
        for rows in (slice(None), order)
    ]
    assert everything(shown[0]) == everything(shown[1])
    for name in ("counts", "noise", "brier_parts", "reliability_intervals", "recall_by_fpr", "notes", "resampling"):
        assert getattr(shown[0], name) == getattr(shown[1], name), name


def test_the_same_seed_gives_the_same_bits_and_another_seed_others() -> None:
    z, y = sample()
    first, again, other = (everything(evaluate(z, y, kind="logit", seed=seed, **FEW)) for seed in (3, 3, 4))
    assert first == again
    changed = {name for name, metric in first.items() if metric.interval != other[name].interval}
    assert changed == {"ap", "partial_auc", "recall_at_1pct_fpr", "brier", "log_loss", "ece", "ece_positive_class"} | (
        changed & {"recall_at_0_1pct_fpr"}
    )
    assert {name: metric.value for name, metric in first.items()} == {name: m.value for name, m in other.items()}


def test_without_confidence_there_is_no_interval_and_every_value() -> None:
    z, y = sample()
    plain, none = evaluate(z, y, kind="logit", **FEW), evaluate(z, y, kind="logit", confidence=None, **FEW)
    assert (none.confidence, none.resampling) == (None, None)
    assert set(none.reliability_intervals) == {None}
    for name, metric in everything(none).items():
        assert metric.interval is metric.guarantee is None, name
        assert metric.value == getattr(plain, name).value
    assert plain.resampling == Resampling(40, 0, grouped=False)


def test_without_resamples_only_intervals_that_have_a_formula_are_left() -> None:
    z, y = sample()
    evaluation = evaluate(z, y, kind="logit", n_resamples=0)
    assert evaluation.resampling is None
    methods = {name: m.interval.method for name, m in everything(evaluation).items() if m.interval is not None}
    assert methods == {
        "auc": "DeLong",
        **dict.fromkeys(RATES, "Wilson"),
        **dict.fromkeys(("calibration_slope", "calibration_intercept"), "Wald"),
    }
    resampled = everything(evaluate(z, y, kind="logit", **FEW))
    assert {name for name, m in resampled.items() if m.interval is not None} - set(methods) == {*RANKED, *AVERAGED}


def test_every_metric_that_is_said_to_have_bounds_has_them() -> None:
    z, y = sample()
    found = everything(evaluate(z, y, kind="logit", **FEW))
    assert {name for name, m in found.items() if m.interval is not None} == {
        i.name for i in METRICS.values() if i.has_interval
    }


@settings(max_examples=25, deadline=None)
@given(st.integers(0, 10**6), st.sampled_from([(), ("weights",), ("groups",)]))
def test_more_confidence_never_makes_an_interval_narrower(seed: int, also: tuple[str, ...]) -> None:
    z, y = sample(30, seed)
    columns = {"weights": np.arange(30) % 3 + 0.5, "groups": np.arange(30) % 8}
    found = [
        everything(evaluate(z, y, kind="logit", confidence=confidence, n_resamples=0, **{n: columns[n] for n in also}))
        for confidence in (0.5, 0.8, 0.95, 0.999)
    ]
    for less, more in itertools.pairwise(found):
        for name in (*RATES, "auc"):
            for which in ("interval", "guarantee"):
                narrow, wide = getattr(less[name], which), getattr(more[name], which)
                if narrow is not None:
                    assert wide.lower <= narrow.lower < narrow.upper <= wide.upper, (name, which)


def test_intervals_of_bins_are_wilsons_of_the_rows_in_them() -> None:
    p, y = [0.0, 0.05, 0.1, 0.15, 0.95, 1.0], [0, 1, 0, 1, 1, 1]
    evaluation = evaluate(p, y, kind="prob", **FEW)
    expected = {0: (1, 3), 1: (1, 1), 9: (2, 2)}  # (lo, hi], the first bin from 0 on
    for index, interval in enumerate(evaluation.reliability_intervals):
        assert (interval is None) == (index not in expected)
        if interval is not None:
            wilson = binomtest(*expected[index]).proportion_ci(method="wilson")
            assert (interval.lower, interval.upper) == pytest.approx(tuple(wilson), rel=1e-9, abs=1e-12)


def test_a_probability_of_zero_belongs_to_the_first_bin_of_grouped_rows_too() -> None:
    """One group of two rows that agree, whose bins are those of one row: Wilson's of one in one."""
    evaluation = evaluate([0.0, 0.0, 0.95], [1, 1, 0], kind="prob", groups=[0, 0, 1], **FEW)
    interval = evaluation.reliability_intervals[0]
    assert interval is not None
    expected = tuple(binomtest(1, 1).proportion_ci(method="wilson"))
    assert (interval.lower, interval.upper) == pytest.approx(expected, rel=1e-9)


def test_a_bin_whose_rows_have_no_weight_has_no_interval() -> None:
    evaluation = evaluate([0.05, 0.95], [0, 1], kind="prob", weights=[1.0, 0.0], **FEW)
    assert [index for index, interval in enumerate(evaluation.reliability_intervals) if interval] == [0]
    assert evaluation.reliability.counts[9] == 1


def test_all_rows_of_one_group_widen_what_one_row_would() -> None:
    z, y = sample(40)
    one = evaluate(z, y, kind="logit", groups=np.zeros(40), **FEW)
    expected = rates(one.counts, confidence=0.95)
    for name in RATES:
        interval = getattr(one, name).interval
        assert interval.upper - interval.lower > 0.8, name
        assert expected[name].interval is not None
        assert expected[name].interval.upper - expected[name].interval.lower < 0.7


def test_repeated_rows_of_one_group_do_not_narrow_what_is_bootstrapped() -> None:
    z, y = sample(80)
    once = evaluate(z, y, kind="logit", n_resamples=400)
    grouped = evaluate(np.tile(z, 4), np.tile(y, 4), kind="logit", groups=np.tile(np.arange(80), 4), n_resamples=400)
    for name in ("ap", "brier", "log_loss", "partial_auc"):
        first, second = getattr(once, name).interval, getattr(grouped, name).interval
        # 400 resamples fix a percentile to about a twentieth of the width on either side.
        assert (second.upper - second.lower) / (first.upper - first.lower) == pytest.approx(1, abs=0.25), name
    assert grouped.resampling == Resampling(400, 0, grouped=True)


def test_a_mean_over_all_rows_varies_with_the_share_of_positives() -> None:
    """A Brier score that is 0.01 of each negative and 0.81 of each positive has the spread of that share, which
    resamples with a fixed number of positives would not show at all: the width is that of the normal interval."""
    y = np.arange(1000) % 5 == 0
    evaluation = evaluate(np.full(1000, 0.1), y.astype(int), kind="prob", n_resamples=500)
    assert evaluation.brier.interval is not None
    assert evaluation.log_loss.interval is not None
    spread = 2 * 1.96 * math.sqrt(0.2 * 0.8 / 1000)
    width = evaluation.brier.interval.upper - evaluation.brier.interval.lower
    assert width == pytest.approx(0.8 * spread, rel=0.25)
    width = evaluation.log_loss.interval.upper - evaluation.log_loss.interval.lower
    assert width == pytest.approx(math.log(9) * spread, rel=0.25)


def test_one_class_alone_still_has_intervals_of_its_mean_scores() -> None:
    evaluation = evaluate(np.linspace(0.1, 0.6, 50), np.zeros(50), kind="prob", n_resamples=200)
    squares = np.linspace(0.1, 0.6, 50) ** 2
    assert evaluation.brier.interval is not None
    assert evaluation.log_loss.interval is not None
    width = evaluation.brier.interval.upper - evaluation.brier.interval.lower
    assert width >= 2 * 1.96 * squares.std() / math.sqrt(50) * 0.8


@pytest.mark.parametrize(("n", "expected"), [(10, 1000), (100_000, 1000), (200_000, 500), (10**6, 200)])
def test_as_many_resamples_as_fit_the_rows(n: int, expected: int) -> None:
    rows = ScoredRows.checked(np.zeros(n), np.zeros(n), kind="logit")
    assert Resampling.planned(rows, None, 5) == Resampling(expected, 5, grouped=False)
    assert FEWEST_RESAMPLES <= expected <= MOST_RESAMPLES


@pytest.mark.parametrize("options", [{"n_resamples": -1}, {"seed": -1}, {"n_resamples": 1.5}, {"confidence": 1.0}])
def test_a_broken_contract_is_a_value_error(options: dict[str, Any]) -> None:
    with pytest.raises(ValueError, match=r"n_resamples|seed|confidence"):
        evaluate([0.1, 0.9], [0, 1], kind="prob", **options)


def test_an_infinite_loss_has_no_interval_and_its_row_may_have_no_weight() -> None:
    p, y = [0.0, 0.2, 0.7, 0.4, 0.6, 0.3], [1, 0, 1, 1, 1, 0]
    assert evaluate(p, y, kind="prob", **FEW).log_loss.interval is None
    spared = evaluate(p, y, kind="prob", weights=[0.0, 1, 1, 1, 1, 1], **FEW).log_loss
    assert spared.value == pytest.approx(-np.log([0.8, 0.7, 0.4, 0.6, 0.7]).mean())
    assert spared.interval is not None


def test_bins_that_share_an_edge_of_zero_keep_their_own_rows_in_their_intervals() -> None:
    """Equal-mass bins over tied zeros have the lower edges 0, 0, ...: rows of p = 0 belong to the first alone."""
    p = np.concatenate([np.zeros(100), np.linspace(0.01, 0.99, 100)])
    y = np.concatenate([np.zeros(100), np.arange(100) % 2]).astype(int)
    found = evaluate(
        p,
        y,
        kind="prob",
        ece_convention="positive-class",
        n_bins=4,
        binning="equal-mass",
        n_resamples=0,
        groups=np.arange(200),
    )
    table = found.reliability
    assert table.lower[:2].tolist() == [0, 0]
    for n, share, interval in zip(table.counts, table.accuracy, found.reliability_intervals, strict=True):
        assert interval is not None
        exact = binomtest(round(share * n), int(n)).proportion_ci(0.95, method="wilson")
        assert (interval.lower, interval.upper) == pytest.approx((exact.low, exact.high), abs=0.02)


def many(n: int, seed: int, *, offset: float = -1.0) -> tuple[np.ndarray, np.ndarray]:
    rng = np.random.default_rng(seed)
    z = 1.8 * rng.normal(size=n) + offset
    return z, (rng.random(n) < 1 / (1 + np.exp(-1.2 * z))).astype(int)


def merged_and_by_row(
    monkeypatch: pytest.MonkeyPatch, z: np.ndarray, y: np.ndarray, n_resamples: int
) -> tuple[Evaluation, Evaluation]:
    by_row = evaluate(z, y, kind="logit", n_resamples=n_resamples)
    monkeypatch.setattr(evidence, "MOST_ROWS_DRAWN", 1000)
    return evaluate(z, y, kind="logit", n_resamples=n_resamples), by_row


@pytest.mark.parametrize("offset", [-1.0, -4.0])
def test_intervals_from_merged_rows_end_where_those_from_single_rows_do(
    offset: float, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Two bootstraps of 1,000 differ by chance in each end by about 3 % of the width (standard deviation)."""
    merged, by_row = merged_and_by_row(monkeypatch, *many(12_000, 1, offset=offset), 1000)
    for name in (*RANKED, *AVERAGED):
        one, other = getattr(merged, name), getattr(by_row, name)
        assert one.value == other.value, name  # the numbers themselves come from every row
        width = other.interval.upper - other.interval.lower
        assert abs(one.interval.lower - other.interval.lower) < 0.12 * width, name
        assert abs(one.interval.upper - other.interval.upper) < 0.12 * width, name


def test_merged_rows_give_means_the_standard_errors_of_statistics(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(evidence, "MOST_ROWS_DRAWN", 1000)
    z, y = many(30_000, 2)
    found = evaluate(z, y, kind="logit", n_resamples=2000)
    squares = np.square(1 / (1 + np.exp(-z)) - y)
    losses = np.logaddexp(0, np.where(y == 1, -z, z))
    for metric, values in ((found.brier, squares), (found.log_loss, losses)):
        error = values.std() / math.sqrt(y.size)
        assert metric.value == pytest.approx(values.mean(), rel=1e-12)
        assert metric.interval is not None
        assert (metric.interval.upper - metric.interval.lower) / (2 * 1.96) == pytest.approx(error, rel=0.1)


def test_merged_rows_draw_the_same_whatever_their_order_and_threads(monkeypatch: pytest.MonkeyPatch) -> None:
    z, y = many(5000, 3)
    monkeypatch.setattr(evidence, "MOST_ROWS_DRAWN", 1000)
    z = np.round(z, 2)
    one = evaluate(z, y, kind="logit", n_resamples=60)
    mixed = np.random.default_rng(0).permutation(5000)
    monkeypatch.setattr(threads, "MANY", 0)
    other = evaluate(z[mixed], y[mixed], kind="logit", n_resamples=60)
    assert everything(one) == everything(other)
    assert repr(one) == repr(other)


def test_rows_with_weights_or_groups_are_never_merged(monkeypatch: pytest.MonkeyPatch) -> None:
    z, y = many(400, 4)
    for also in ({"groups": np.arange(400) // 2}, {"weights": np.linspace(1, 2, 400)}):
        one = evaluate(z, y, kind="logit", n_resamples=50, **also)
        with monkeypatch.context() as patch:
            patch.setattr(evidence, "MOST_ROWS_DRAWN", 10)
            assert repr(evaluate(z, y, kind="logit", n_resamples=50, **also)) == repr(one)


def test_up_to_100_000_rows_are_drawn_one_by_one() -> None:
    assert evidence.MOST_ROWS_DRAWN == 100_000


@pytest.mark.parametrize("label", [0, 1])
def test_merged_rows_of_one_class_have_intervals_of_their_mean_scores(
    label: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(evidence, "MOST_ROWS_DRAWN", 1000)
    p = np.linspace(0.1, 0.6, 3000)
    found = evaluate(p, np.full(3000, label), kind="prob", n_resamples=400)
    error = np.square(p - label).std() / math.sqrt(3000)
    assert found.ap.interval is None
    assert found.brier.interval is not None
    assert (found.brier.interval.upper - found.brier.interval.lower) / 3.92 == pytest.approx(error, rel=0.25)


def test_merged_rows_with_an_infinite_loss_have_no_interval_of_it(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(evidence, "MOST_ROWS_DRAWN", 100)
    p, y = np.round(np.linspace(0.0, 1.0, 2000), 3), 1 - np.arange(2000) % 2
    found = evaluate(p, y, kind="prob", n_resamples=100)
    assert found.log_loss.value == math.inf
    assert found.log_loss.interval is None
    assert found.brier.interval is not None
    check_intervals(found)
