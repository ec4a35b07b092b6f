"""Measures of weighted rows against the unweighted ones on replicated rows, scikit-learn and loops over thresholds."""

import math
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from numpy.typing import NDArray
from sklearn import metrics

from headeval.core import weighted
from headeval.core.calibration import Binning, Convention, reliability_table
from headeval.core.checks import FloatArray, IntArray
from headeval.core.proper_scores import brier_score, log_loss
from headeval.core.ranking import average_precision, roc_auc
from headeval.core.weighted import SortedRows

KINDS = ["continuous", "tied", "heavily tied", "constant", "perfect", "reversed"]
# Sums of a few hundred terms in another order differ by less than this.
ROUNDING = 1e-14
CONVENTIONS: tuple[Convention, ...] = ("top-label", "top-label-left", "positive-class")
TABLES: list[tuple[Convention, Binning]] = [
    (name, binning) for name in CONVENTIONS for binning in ("equal-width", "equal-mass")
]


def data(kind: str, n: int = 240, seed: int = 5) -> tuple[FloatArray, IntArray]:
    """Probabilities and labels; the last two of KINDS are ranked without and with nothing but errors."""
    rng = np.random.default_rng(seed)
    y = (rng.random(n) < 0.3).astype(np.int64)
    p = 1 / (1 + np.exp(-rng.normal(size=n) - 1.5 * y + 1))
    return {
        "continuous": p,
        "tied": np.clip(np.round(p, 1), 0.02, 0.98),
        "heavily tied": np.where(p > 0.5, 0.8, 0.25),
        "constant": np.full(n, 0.25),
        "perfect": 0.4 * p + 0.5 * y,
        "reversed": 0.4 * p + 0.5 * (1 - y),
    }[kind], y


def losses(p: FloatArray, y: IntArray) -> FloatArray:
    with np.errstate(divide="ignore"):
        return -np.where(y == 1, np.log(p), np.log1p(-p))


def prepared(p: FloatArray, y: IntArray, *, scores: FloatArray | None = None) -> SortedRows:
    tables = {f"{c} {b}": reliability_table(p, y, convention=c, binning=b, n_bins=7) for c, b in TABLES}
    return SortedRows.prepare(p if scores is None else scores, y, p, losses(p, y), tables)


def named(rows: SortedRows, weights: FloatArray) -> dict[str, float]:
    return dict(zip(rows.names, rows.measures(weights).tolist(), strict=True))


def test_names_are_in_the_promised_order() -> None:
    p, y = data("continuous")
    rows = SortedRows.prepare(p, y, p, losses(p, y), {"ece": reliability_table(p, y)})
    ranking = ("auc", "ap", "partial_auc", "recall_at_1pct_fpr", "recall_at_0_1pct_fpr", "best_f1")
    assert rows.names == (*ranking, "brier", "log_loss", "ece")


@pytest.mark.parametrize("kind", KINDS)
def test_unit_weights_give_the_unweighted_measures(kind: str) -> None:
    p, y = data(kind)
    found = named(prepared(p, y), np.ones(y.size))
    assert found["auc"] == pytest.approx(roc_auc(p, y), abs=ROUNDING)
    assert found["ap"] == pytest.approx(average_precision(p, y), abs=ROUNDING)
    assert found["brier"] == pytest.approx(brier_score(p, y), abs=ROUNDING)
    assert found["log_loss"] == pytest.approx(log_loss(p, y), abs=ROUNDING)
    for convention, binning in TABLES:
        table = reliability_table(p, y, convention=convention, binning=binning, n_bins=7)
        assert found[f"{convention} {binning}"] == pytest.approx(table.ece, abs=ROUNDING)


@pytest.mark.parametrize("kind", KINDS)
def test_a_row_weighted_m_counts_as_m_rows(kind: str) -> None:
    p, y = data(kind)
    m = np.random.default_rng(1).integers(0, 4, size=y.size)
    found, many, outcomes = named(prepared(p, y), m.astype(float)), np.repeat(p, m), np.repeat(y, m)
    assert found["auc"] == pytest.approx(roc_auc(many, outcomes), abs=ROUNDING)
    assert found["ap"] == pytest.approx(average_precision(many, outcomes), abs=ROUNDING)
    assert found["brier"] == pytest.approx(brier_score(many, outcomes), abs=ROUNDING)
    assert found["log_loss"] == pytest.approx(log_loss(many, outcomes), abs=ROUNDING)
    for convention in CONVENTIONS:
        expected = reliability_table(many, outcomes, convention=convention, n_bins=7).ece
        assert found[f"{convention} equal-width"] == pytest.approx(expected, abs=ROUNDING)


@pytest.mark.parametrize("kind", KINDS)
def test_fractional_weights_are_scikit_learns(kind: str) -> None:
    p, y = data(kind)
    w = np.random.default_rng(2).exponential(size=y.size)
    w[::7] = 0
    found = named(prepared(p, y), w)
    assert found["auc"] == pytest.approx(metrics.roc_auc_score(y, p, sample_weight=w), abs=ROUNDING)
    assert found["ap"] == pytest.approx(metrics.average_precision_score(y, p, sample_weight=w), abs=ROUNDING)
    expected = metrics.roc_auc_score(y, p, sample_weight=w, max_fpr=0.1)
    assert found["partial_auc"] == pytest.approx(expected, abs=10 * ROUNDING)  # divides by a tenth of the area
    assert found["brier"] == pytest.approx(metrics.brier_score_loss(y, p, sample_weight=w), abs=ROUNDING)
    assert found["log_loss"] == pytest.approx(metrics.log_loss(y, p, sample_weight=w), abs=ROUNDING)


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("n", [240, 3000])
def test_recalls_and_best_f1_are_those_of_the_thresholds(kind: str, n: int) -> None:
    p, y = data(kind, n)
    w = np.random.default_rng(3).integers(0, 3, size=n).astype(float)
    found = named(prepared(p, y), w)
    fpr, tpr, _ = metrics.roc_curve(y, p, sample_weight=w, drop_intermediate=False)
    assert found["recall_at_1pct_fpr"] == pytest.approx(tpr[fpr <= 0.01].max(), abs=ROUNDING)
    assert found["recall_at_0_1pct_fpr"] == pytest.approx(tpr[fpr <= 0.001].max(), abs=ROUNDING)
    f1 = [metrics.f1_score(y, p >= t, sample_weight=w) for t in np.unique(p)[:: max(1, n // 240)]]
    if n == 240:
        assert found["best_f1"] == pytest.approx(max(f1), abs=ROUNDING)
    assert found["best_f1"] >= max(f1) - ROUNDING


@pytest.mark.parametrize("convention", CONVENTIONS)
def test_weighted_ece_is_the_sum_over_bins(convention: Convention) -> None:
    """The bins hold whichever rows their edges say, also where the ranking scores are unrelated to p."""
    p, y = data("tied")
    rng = np.random.default_rng(4)
    w = rng.exponential(size=y.size)
    rows = prepared(p, y, scores=rng.normal(size=y.size))
    total = 0.0
    for b in range(7):
        error = 0.0
        for prob, label, weight in zip(p.tolist(), y.tolist(), w.tolist(), strict=True):
            predicted = prob > 0.5 if convention == "top-label-left" else prob >= 0.5
            if convention == "positive-class":
                predicted = True
            confidence, right = (prob, label) if predicted else (1 - prob, 1 - label)
            low, high = b / 7, (b + 1) / 7
            inside = low <= confidence < high if convention == "top-label-left" else low < confidence <= high
            error += weight * (right - confidence) * inside
        total += abs(error)
    assert named(rows, w)[f"{convention} equal-width"] == pytest.approx(total / w.sum(), abs=ROUNDING)


def test_recall_is_that_of_the_last_corner_within_the_rate() -> None:
    """With 100 negatives one may be flagged at 1 %, with 99 none; nothing between the corners counts."""
    for negatives, expected in ((100, 0.5), (99, 0.25)):
        y = np.array([1, 0, 1, 0, 1, 1] + [0] * (negatives - 2))
        p = np.linspace(0.9, 0.1, y.size)
        rows = prepared(p, y)
        assert named(rows, np.ones(y.size))["recall_at_1pct_fpr"] == expected
        # Sums of 0.1 round: a hundred of them must still be ten, and one of them a hundredth of that.
        assert named(rows, np.full(y.size, 0.1))["recall_at_1pct_fpr"] == pytest.approx(expected, abs=ROUNDING)


def test_a_tie_at_the_rate_enters_whole_or_not_at_all() -> None:
    y = np.array([1] * 2 + [0] * 2 + [0] * 98)
    p = np.append([0.9, 0.8, 0.8, 0.8], np.full(98, 0.1))
    assert named(prepared(p, y), np.ones(y.size))["recall_at_1pct_fpr"] == 0.5


@given(st.integers(1, 30), st.integers(1, 30), st.integers(0, 10**6))
def test_a_perfect_ranking_is_exactly_one(positives: int, negatives: int, seed: int) -> None:
    rng = np.random.default_rng(seed)
    y = np.repeat([1, 0], [positives, negatives])
    p = np.where(y == 1, 0.6, 0.1) + 0.3 * rng.random(y.size)
    assert prepared(p, y).measures(rng.random(y.size) + 1e-3)[:6].tolist() == [1.0] * 6


@given(st.data())
def test_each_weight_vector_has_its_own_bits(draw: st.DataObject) -> None:
    kind, r = draw.draw(st.sampled_from(KINDS)), draw.draw(st.integers(1, 9))
    p, y = data(kind, n=draw.draw(st.integers(20, 90)))
    w = np.random.default_rng(draw.draw(st.integers(0, 1000))).exponential(size=(r, y.size))
    rows = prepared(p, y)
    together = rows.measures(w)
    assert together.shape == (r, len(rows.names))
    assert together.tobytes() == np.stack([rows.measures(one) for one in w]).tobytes()


@pytest.mark.parametrize("block", [1, 1000, 10**6])
def test_blocks_change_no_bit(block: int, monkeypatch: pytest.MonkeyPatch) -> None:
    p, y = data("tied")
    w = np.random.default_rng(6).exponential(size=(50, y.size))
    expected = prepared(p, y).measures(w)
    monkeypatch.setattr(weighted, "BLOCK", block)
    assert prepared(p, y).measures(w).tobytes() == expected.tobytes()


@pytest.mark.parametrize("kind", KINDS)
def test_row_order_changes_no_bit(kind: str) -> None:
    p, y = data(kind)
    w = np.random.default_rng(7).integers(1, 3, size=10)[(p * 9).astype(int)].astype(float)  # equal rows, equal weights
    expected = prepared(p, y).measures(w)
    order = np.lexsort((y, p))
    ready = prepared(p[order], y[order])
    assert ready.order is None  # and nothing is gathered again
    assert ready.measures(w[order]).tobytes() == expected.tobytes()
    for _ in range(3):
        order = np.random.default_rng(8).permutation(y.size)
        assert prepared(p[order], y[order]).measures(w[order]).tobytes() == expected.tobytes()


def test_a_scale_of_the_weights_changes_nothing() -> None:
    p, y = data("tied")
    w = np.random.default_rng(9).exponential(size=y.size)
    for scale in (2.0**-60, 2.0**60):
        assert prepared(p, y).measures(scale * w).tolist() == pytest.approx(
            prepared(p, y).measures(w).tolist(), rel=1e-14
        )


def test_a_class_without_weight_leaves_the_ranking_undefined() -> None:
    p, y = data("continuous")
    w = np.stack([y == 1, y == 0, np.zeros(y.size), np.ones(y.size)]).astype(float)
    undefined = np.isnan(prepared(p, y).measures(w))
    assert undefined[:2, :6].all()
    assert not undefined[:2, 6:].any()
    assert undefined[2].all()
    assert not undefined[3].any()


def test_an_infinite_loss_counts_where_its_row_has_weight() -> None:
    p, y = np.array([0.0, 0.2, 0.7, 0.9]), np.array([1, 0, 0, 1])
    found = prepared(p, y).measures([[1, 1, 1, 1], [0, 1, 1, 1]])[:, 7]
    assert found[0] == math.inf
    assert found[1] == pytest.approx(metrics.log_loss(y[1:], p[1:]), abs=ROUNDING)


@pytest.mark.parametrize("ordered", [True, False])
def test_ranking_and_calibration_alone_are_the_same_measures(ordered: bool) -> None:
    p, y = data("tied")
    if ordered:
        order = np.lexsort((y, p))
        p, y = p[order], y[order]
    rows, w = prepared(p, y), np.random.default_rng(12).exponential(size=(3, y.size))
    together = rows.measures(w)
    assert rows.ranking_measures(w).tobytes() == together[:, :6].tobytes()
    assert rows.calibration_measures(w).tobytes() == together[:, 6:].tobytes()
    assert rows.ranking_measures(w[0]).tobytes() == together[:1, :6].tobytes()
    assert rows.calibration_measures(w[0]).tobytes() == together[:1, 6:].tobytes()


@pytest.mark.parametrize("kind", [bool, np.int8, np.float32])
def test_weights_of_any_type_count_as_float64(kind: type) -> None:
    p, y = data("tied")
    w: NDArray[Any] = np.random.default_rng(13).exponential(100, size=(2, y.size)).clip(0, 127).astype(kind)
    rows, plain = prepared(p, y), w.astype(np.float64)
    assert rows.measures(w).tobytes() == rows.measures(plain).tobytes()
    assert rows.ranking_measures(w).tobytes() == rows.ranking_measures(plain).tobytes()
    assert rows.calibration_measures(w).tobytes() == rows.calibration_measures(plain).tobytes()


def test_one_row_of_each_class_is_enough() -> None:
    assert prepared(np.array([0.9, 0.1]), np.array([1, 0])).measures([1, 1])[:6].tolist() == [1.0] * 6
    worst = prepared(np.array([0.1, 0.9]), np.array([1, 0])).measures([1, 1])[:6].tolist()
    # Everything flagged is half right; the partial area of 0 stands ½·0.1² below that of chance.
    assert worst == pytest.approx([0, 0.5, 0.5 - 0.5 * 0.005 / 0.095, 0, 0, 2 / 3], rel=1e-15)


def test_a_positive_tied_with_rows_of_no_weight_is_tied_with_none() -> None:
    p, y, w = np.array([0.8, 0.8, 0.3, 0.1]), np.array([1, 0, 1, 0]), np.array([1.0, 0, 2, 3])
    assert prepared(p, y).measures(w)[:6].tolist() == [1.0] * 6


def test_no_measure_is_rounded_above_1() -> None:
    """Positives of nearly no weight part the negatives: areas of 1 − 1e-20 that are summed from four rounded steps."""
    p, y = np.linspace(0.9, 0.1, 8), (np.arange(8) % 2 == 0).astype(np.int64)
    w = np.random.default_rng(0).random((2000, 8))
    w[:, [2, 4, 6]] = 1e-20
    found = prepared(p, y).measures(w)[:, :6]
    assert found.max() == 1.0
    assert found.min() >= 1.0 - ROUNDING


def test_a_single_loss_keeps_every_digit() -> None:
    """Also those that are scaled, so that their sum does not overflow."""
    for loss in [0.0, 5e-324, 0.1, 1e300, *np.linspace(1e305, 1.7e308, 100).tolist()]:
        assert named(SortedRows.prepare([0.1], [1], [0.1], [loss], {}), np.ones(1))["log_loss"] == loss


def test_losses_near_the_largest_float_do_not_overflow() -> None:
    rows = SortedRows.prepare([0.1, 0.2], [1, 0], [0.1, 0.2], [1.5e308, 1.7e308], {})
    assert named(rows, np.ones(2))["log_loss"] == pytest.approx(1.6e308, rel=1e-15)


@pytest.mark.parametrize(
    ("weights", "message"),
    [
        ([1.0], "shape"),
        ([[[1.0, 1.0]]], "shape"),
        ([1.0, -1.0], "not negative"),
        ([1.0, math.nan], "finite"),
        ([1.0, math.inf], "finite"),
    ],
)
def test_wrong_weights_are_refused(weights: list[float], message: str) -> None:
    rows = SortedRows.prepare([0.1, 0.2], [1, 0], [0.1, 0.2], [1.0, 1.0], {})
    with pytest.raises(ValueError, match=message):
        rows.measures(weights)


def test_wrong_rows_are_refused() -> None:
    with pytest.raises(ValueError, match="at least one row"):
        SortedRows.prepare([], [], [], [], {})
    for probs, loss in (([0.5], [1.0, 1.0]), ([0.5, 0.5], [1.0]), ([0.5, 0.5], [1.0, math.nan]), ([0.5, 0.5], [1, -1])):
        with pytest.raises(ValueError, match="probs and losses"):
            SortedRows.prepare([0.1, 0.2], [1, 0], probs, loss, {})
