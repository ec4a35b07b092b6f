"""Bands around curves: they hold the curve, are never without width, and are no narrower than Wilson's interval."""

from typing import Any

import numpy as np
import pytest
from scipy import stats
from sklearn import metrics

from headeval.core import weighted
from headeval.core.checks import FloatArray, IntArray
from headeval.core.curve_bands import pr_band, roc_band

GRID = np.linspace(0, 1, 41)


def data(kind: str, n: int = 200) -> tuple[FloatArray, IntArray]:
    rng = np.random.default_rng(3)
    y = (rng.random(n) < 0.3).astype(np.int64)
    scores = rng.normal(size=n) + 1.5 * y
    return {
        "continuous": scores,
        "tied": np.round(scores),
        "constant": np.zeros(n),
        "perfect": scores + 99 * y,
        "reversed": scores - 99 * y,
    }[kind], y


KINDS = ["continuous", "tied", "constant", "perfect", "reversed"]


def roc(scores: FloatArray, y: IntArray, *, seed: int = 1, **options: Any) -> tuple[FloatArray, FloatArray]:
    arguments: dict[str, Any] = {"grid_fpr": GRID, "n_resamples": 200, "confidence": 0.95} | options
    return roc_band(scores, y, rng=np.random.default_rng(seed), **arguments)


def pr(scores: FloatArray, y: IntArray, *, seed: int = 1, **options: Any) -> tuple[FloatArray, FloatArray]:
    arguments: dict[str, Any] = {"grid_recall": GRID, "n_resamples": 200, "confidence": 0.95} | options
    return pr_band(scores, y, rng=np.random.default_rng(seed), **arguments)


def recall_at(scores: FloatArray, y: IntArray, weights: FloatArray | None = None) -> FloatArray:
    """The curve on GRID, by scikit-learn; where it rises at a rate, its top."""
    fpr, tpr, _ = metrics.roc_curve(y, scores, sample_weight=weights, drop_intermediate=False)
    top = np.array([tpr[fpr == x].max() for x in np.unique(fpr)])
    bottom = np.array([tpr[fpr == x].min() for x in np.unique(fpr)])
    found = []
    for x in GRID:
        right = int(np.searchsorted(np.unique(fpr), x + 1e-12, side="right"))
        if right == top.size:
            found.append(1.0)
            continue
        a, b = np.unique(fpr)[right - 1 : right + 1]
        found.append(top[right - 1] + (bottom[right] - top[right - 1]) * max(x - a, 0) / (b - a))
    return np.array(found)


def precision_at(scores: FloatArray, y: IntArray, weights: FloatArray | None = None) -> tuple[FloatArray, list[int]]:
    """The precision of the first threshold that reaches each recall of GRID, and how many rows it flags."""
    w = np.ones(y.size) if weights is None else weights
    found, sizes = [], []
    for r in GRID:
        for t in np.unique(scores)[::-1]:
            flagged = scores >= t
            hit = w[flagged & (y == 1)].sum()
            if hit > 0 and hit >= r * w[y == 1].sum() - 1e-12:
                found.append(hit / w[flagged].sum())
                sizes.append(int(flagged.sum()))
                break
    return np.array(found), sizes


def wilson(share: float, n: int) -> tuple[float, float]:
    interval = stats.binomtest(round(share * n), n).proportion_ci(method="wilson")
    return interval.low, interval.high


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("weights", [None, "fractional"])
def test_the_curve_lies_in_a_band_with_a_width(kind: str, weights: str | None) -> None:
    scores, y = data(kind)
    w = None if weights is None else np.random.default_rng(4).exponential(size=y.size)
    for (low, high), curve in (
        (roc(scores, y, weights=w), recall_at(scores, y, w)),
        (pr(scores, y, weights=w), precision_at(scores, y, w)[0]),
    ):
        assert (low < high).all()
        assert (low <= curve + 1e-9).all()
        assert (curve - 1e-9 <= high).all()
        assert low.min() >= 0
        assert high.max() <= 1


@pytest.mark.parametrize("kind", KINDS)
def test_no_bound_is_closer_than_wilsons(kind: str) -> None:
    scores, y = data(kind)
    low, high = pr(scores, y)
    for place, (share, n) in enumerate(zip(*precision_at(scores, y), strict=True)):
        expected = wilson(float(share), n)
        assert low[place] <= expected[0] + 1e-9
        assert high[place] >= expected[1] - 1e-9
    positives = int(y.sum())
    low, high = roc(scores, y)
    for place, share in enumerate(recall_at(scores, y)):
        if abs(share * positives - round(share * positives)) < 1e-9:
            expected = wilson(float(share), positives)
            assert low[place] <= expected[0] + 1e-9
            assert high[place] >= expected[1] - 1e-9


def test_a_perfect_curve_has_wilsons_band() -> None:
    """No resample differs, so that only the number of positives speaks."""
    scores, y = data("perfect")
    low, high = roc(scores, y)
    assert low.tolist() == pytest.approx([wilson(1.0, int(y.sum()))[0]] * GRID.size)
    assert high.tolist() == [1.0] * GRID.size


def test_resampling_widens_where_the_threshold_is_uncertain() -> None:
    """At an FPR of 0.05 the threshold varies too, which the interval of a rate at a fixed threshold does not know."""
    scores, y = data("continuous")
    low, high = roc(scores, y, n_resamples=1000)
    share = float(recall_at(scores, y)[2])
    expected = wilson(share, int(y.sum()))
    assert high[2] - low[2] > 1.2 * (expected[1] - expected[0])


def test_bands_hold_the_percentiles_of_a_bootstrap_done_by_hand() -> None:
    """Rows of each class drawn with replacement, curves by scikit-learn: percentiles agree within their own error."""
    scores, y = data("continuous")
    rng = np.random.default_rng(9)
    positive, negative = np.flatnonzero(y == 1), np.flatnonzero(y == 0)
    drawn = []
    for _ in range(400):
        rows = np.append(rng.choice(positive, positive.size), rng.choice(negative, negative.size))
        drawn.append(recall_at(scores[rows], y[rows])[2:6])
    low, high = roc(scores, y, n_resamples=2000)
    expected = np.quantile(drawn, [0.025, 0.975], axis=0)
    # A percentile of 400 varies by about √(0.025·0.975/400)/density, here 0.02; Wilson's is further in at these rates.
    assert low[2:6].tolist() == pytest.approx(expected[0].tolist(), abs=0.06)
    assert high[2:6].tolist() == pytest.approx(expected[1].tolist(), abs=0.06)


@pytest.mark.parametrize("band", [roc, pr])
def test_seed_blocks_and_row_order(band: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    scores, y = data("tied")
    rng = np.random.default_rng(5)
    options = {"weights": rng.integers(1, 4, size=y.size) / 4, "groups": rng.integers(0, 60, size=y.size)}
    expected = np.stack(band(scores, y, **options)).tobytes()
    assert np.stack(band(scores, y, seed=2, **options)).tobytes() != expected
    order = rng.permutation(y.size)
    shuffled = {name: column[order] for name, column in options.items()}
    assert np.stack(band(scores[order], y[order], **shuffled)).tobytes() == expected
    monkeypatch.setattr(weighted, "BLOCK", 1)
    assert np.stack(band(scores, y, **options)).tobytes() == expected


@pytest.mark.parametrize("band", [roc, pr])
def test_rows_that_repeat_each_other_widen_the_band(band: Any) -> None:
    scores, y = data("continuous", 60)
    many, outcomes, groups = np.repeat(scores, 4), np.repeat(y, 4), np.repeat(np.arange(60), 4)
    alone, grouped, apart = band(scores, y), band(many, outcomes, groups=groups), band(many, outcomes)
    widths = [float((high - low).mean()) for low, high in (alone, grouped, apart)]
    assert widths[1] == pytest.approx(widths[0], rel=0.1)
    assert widths[2] < 0.7 * widths[0]


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"grid_fpr": [1.5]}, "grid_fpr"),
        ({"weights": [0.0, 1.0]}, "both classes"),
        ({"groups": [1]}, "groups"),
        ({"labels": [1, 1]}, "both classes"),
        ({"scores": [0.1, np.nan]}, "finite"),
    ],
)
def test_wrong_arguments_are_refused(options: dict[str, Any], message: str) -> None:
    rows = {"scores": [0.9, 0.1], "labels": [1, 0]} | options
    with pytest.raises(ValueError, match=message):
        roc(rows.pop("scores"), rows.pop("labels"), **rows)
