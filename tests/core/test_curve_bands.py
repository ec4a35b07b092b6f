"""Bands around curves: they hold the curve, are never without width, and are no narrower than Wilson's interval."""

from typing import Any

import numpy as np
import pytest
from scipy import stats
from sklearn import metrics

from headeval.core import curve_bands, weighted
from headeval.core.bootstrap import replicates
from headeval.core.checks import FloatArray, IntArray
from headeval.core.curve_bands import pr_band, roc_band
from headeval.core.intervals import Interval, effective_size

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


def of_the_rows_alone(hits: float, n: float, *, confidence: float) -> Interval:
    """In the place of Wilson's interval: what remains are the percentiles."""
    return Interval(hits / n, hits / n, confidence, "")


@pytest.mark.parametrize("column", ["weights", "groups", "sizes"])
def test_without_wilsons_part_bands_are_percentiles_of_resamples(column: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """Resamples by `replicates` of the rows from the highest score down, and of each the curves by scikit-learn."""
    monkeypatch.setattr(curve_bands, "wilson", of_the_rows_alone)
    scores, y = data("continuous", 40)
    scores, of_rows = np.round(2 * scores), np.random.default_rng(6).integers(1, 20, size=40).astype(float)
    order = np.lexsort((of_rows, y, scores))[::-1]
    scores, y = scores[order], y[order]
    options: dict[str, Any] = {column: of_rows[order]}
    for band, curve in ((roc, recall_at), (pr, lambda *of: precision_at(*of)[0])):
        own = curve(scores, y, None if column == "groups" else of_rows[order])

        def measure(w: FloatArray, curve: Any = curve) -> FloatArray:
            return np.stack([curve(scores, y, row) for row in w])

        drawn = replicates(measure, y, n_resamples=20, rng=np.random.default_rng(1), **options)
        low, high = np.quantile(drawn, [0.1, 0.9], axis=0)
        found = band(scores, y, n_resamples=20, confidence=0.8, **options)
        assert found[0].tolist() == pytest.approx(np.minimum(low, own).tolist(), abs=1e-9)
        assert found[1].tolist() == pytest.approx(np.maximum(high, own).tolist(), abs=1e-9)


def test_fewer_than_twenty_resamples_say_nothing() -> None:
    scores, y = data("continuous")
    expected = [wilson(float(share), n) for share, n in zip(*precision_at(scores, y), strict=True)]
    for n_resamples, alone in ((19, True), (20, False)):
        low, high = pr(scores, y, n_resamples=n_resamples)
        assert low.tolist() == pytest.approx([pair[0] for pair in expected]) or not alone
        assert high.tolist() == pytest.approx([pair[1] for pair in expected]) or not alone
        widened = np.count_nonzero(np.array(expected)[:, 0] - low > 1e-6)
        assert (widened == 0) == alone


def test_resamples_that_lost_a_class_count_for_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    """A quarter of the draws of two groups miss the one with the positives, or with the negatives."""
    monkeypatch.setattr(curve_bands, "wilson", of_the_rows_alone)
    scores, y, groups = np.array([5.0, 3, 1, 3, 0, 3, 2, 1]), np.arange(8) % 4 == 3, np.arange(8) % 2
    for band, labels in ((roc, y), (roc, ~y), (pr, y)):
        low, high = band(scores, labels, groups=groups)
        assert np.isfinite([low, high]).all()
        assert (low < high).any()
        low, high = band(scores, labels, groups=groups, n_resamples=24, seed=2)  # with both classes fewer than 20
        assert low.tolist() == high.tolist()


@pytest.mark.parametrize("band", [roc, pr])
def test_the_unit_of_the_weights_changes_nothing(band: Any) -> None:
    scores, y = data("continuous", 40)
    weights = np.random.default_rng(6).integers(1, 20, size=40).astype(float)
    once = np.stack(band(scores, y, weights=weights, n_resamples=20)).tobytes()
    assert np.stack(band(scores, y, weights=weights * 2.0**-40, n_resamples=20)).tobytes() == once


def wilson_of(share: float, n: float, confidence: float = 0.95) -> list[float]:
    """Also of numbers that are no whole ones, by the formula."""
    z = stats.norm.ppf((1 + confidence) / 2)
    centre, reach = share + z * z / (2 * n), z * np.sqrt(share * (1 - share) / n + z * z / (4 * n * n))
    return [(centre - reach) / (1 + z * z / n), (centre + reach) / (1 + z * z / n)]


def bounds(band: tuple[FloatArray, FloatArray]) -> list[list[float]]:
    return [list(pair) for pair in zip(*(side.tolist() for side in band), strict=True)]


def test_cells_have_wilsons_interval_of_their_rows() -> None:
    """Of constant scores no resample of 30 and 20 rows differs, and of a cell of either class neither."""
    y = np.array([1, 0])
    for scores, recall, precision in (([1.0, 1.0], (0.4, 30), (0.6, 50)), ([2.0, 1.0], (1.0, 30), (1.0, 30))):
        options: dict[str, Any] = {"sizes": [30.0, 20.0], "n_resamples": 30, "confidence": 0.8}
        found = bounds(roc(np.array(scores), y, grid_fpr=[0.4], **options))
        assert found == [pytest.approx(wilson_of(*recall, 0.8))]
        found = bounds(pr(np.array(scores), y, grid_recall=[1.0], **options))
        assert found == [pytest.approx(wilson_of(*precision, 0.8))]


def test_weighted_rows_have_wilsons_interval_of_their_effective_number() -> None:
    """Of constant scores, so that nothing else has a width: the recall is the rate, the precision the weight."""
    y, weights = np.array([1, 0, 1, 0, 1, 1, 0, 1]), np.array([2.0, 9, 5, 1, 1, 4, 1, 3])
    # At a rate of a third the positive of weight 5 of 15 is found; at 0.35 it is still the closest one below.
    size = effective_size([1, 0, 0, 0, 0], weights=[5, 4, 3, 2, 1])
    assert size < 225 / 55  # Kish's, which is the size where all are found or none
    for rate in (1 / 3, 0.35):
        found = bounds(roc(np.zeros(8), y, weights=weights, grid_fpr=[rate]))
        assert found == [pytest.approx(wilson_of(rate, size))]
    size = effective_size(y, weights=weights)
    assert size < 26**2 / (weights @ weights)
    assert bounds(pr(np.zeros(8), y, weights=weights, grid_recall=[0.3])) == [pytest.approx(wilson_of(15 / 26, size))]


def test_at_a_step_the_positives_found_are_those_above_it() -> None:
    """Positives and negatives in turn; one resample says nothing, so that the bounds are Wilson's alone."""
    y, weights = np.arange(24) % 2 == 0, np.random.default_rng(8).uniform(0.5, 2, size=24)
    above = np.append(0, np.cumsum(weights[~y])[:-1]) / weights[~y].sum()
    found = bounds(roc(-np.arange(24.0), y, weights=weights, grid_fpr=above, n_resamples=1))
    for place, pair in enumerate(found):
        hits = np.arange(12) <= place
        share = weights[y][hits].sum() / weights[y].sum()
        assert pair == pytest.approx(wilson_of(share, effective_size(hits, weights=weights[y])))


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
        ({"weights": [1.0, 0.0]}, "both classes"),
        ({"sizes": [2.0]}, "sizes must have length 2"),
        ({"groups": [1]}, "groups"),
        ({"labels": [1, 1]}, "both classes"),
        ({"scores": [0.1, np.nan]}, "finite"),
    ],
)
def test_wrong_arguments_are_refused(options: dict[str, Any], message: str) -> None:
    rows = {"scores": [0.9, 0.1], "labels": [1, 0]} | options
    with pytest.raises(ValueError, match=message):
        roc(rows.pop("scores"), rows.pop("labels"), **rows)
