"""What is drawn is what was measured: thinned curves lose no corner that could be seen."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from sklearn.metrics import average_precision_score, roc_auc_score
from sklearn.metrics import roc_curve as sklearn_roc_curve

from headeval.core.ranking import pr_curve
from headeval.curves import TOLERANCE, Curve, Curves, _outline, curves, thin

SEEN = 1e-3  # what a drawn curve may be off by


def distances_to_line(x: np.ndarray, y: np.ndarray, corners_x: np.ndarray, corners_y: np.ndarray) -> np.ndarray:
    """Distance of each point from the nearest of all segments between corners, by brute force."""
    start = np.stack([corners_x[:-1], corners_y[:-1]], axis=1)
    way = np.stack([np.diff(corners_x), np.diff(corners_y)], axis=1)
    points = np.stack([x, y], axis=1)[:, None, :] - start
    length = (way**2).sum(axis=1)
    along = np.clip((points * way).sum(axis=2) / np.where(length > 0, length, 1), 0, 1)
    return np.sqrt(((points - along[..., None] * way) ** 2).sum(axis=2)).min(axis=1)


def sample(n: int, *, seed: int = 0) -> tuple[np.ndarray, np.ndarray]:
    """Logits that overlap, rounded so that some are tied."""
    rng = np.random.default_rng(seed)
    labels = (rng.uniform(size=n) < 0.2).astype(int)
    return np.round(rng.normal(size=n) + 2 * labels - 1, 2), labels


def drawn(scores: np.ndarray, labels: np.ndarray, **options: object) -> Curves:
    settings: dict[str, object] = {"kind": "logit", "threshold": 0.5, "confidence": None}
    return curves(scores, labels, **(settings | options))


def both(found: Curves) -> tuple[Curve, Curve]:
    assert found.roc is not None
    assert found.pr is not None
    return found.roc, found.pr


@given(st.lists(st.tuples(st.floats(0, 1), st.floats(0, 1)), min_size=2, max_size=60), st.booleans())
def test_no_dropped_corner_is_further_away_than_can_be_seen(points: list[tuple[float, float]], rising: bool) -> None:
    x = np.sort([point[0] for point in points])
    y = np.array([point[1] for point in points])
    y = np.sort(y) if rising else y
    kept = thin(x, y)
    assert {0, len(x) - 1} <= set(kept.tolist())
    assert distances_to_line(x, y, x[kept], y[kept]).max() <= TOLERANCE + 1e-12 < SEEN


def test_a_straight_line_needs_two_points_and_a_corner_one_more() -> None:
    x = np.linspace(0, 1, 101)
    assert thin(x, 0.3 * x).tolist() == [0, 100]
    assert thin(x, np.abs(x - 0.5)).tolist() == [0, 50, 100]


def test_a_way_that_returns_to_its_start_keeps_its_furthest_point() -> None:
    assert thin(np.zeros(3), np.array([0.5, 0.9, 0.5])).tolist() == [0, 1, 2]


def test_the_roc_of_five_rows_has_its_corners() -> None:
    """(0,0) (0,1/3) (1/2,1/3) (1/2,1) (1,1); (1/2,2/3) lies on the way."""
    roc, _ = both(drawn(np.array([0.9, 0.7, 0.6, 0.4, 0.3]), np.array([1, 0, 1, 1, 0]), kind="prob"))
    assert roc.x.tolist() == [0, 0, 0.5, 0.5, 1]
    assert roc.y.tolist() == pytest.approx([0, 1 / 3, 1 / 3, 1, 1])


def test_precision_is_drawn_as_the_staircase_that_average_precision_sums() -> None:
    """A line from point to point would enclose more."""
    scores, labels = sample(300)
    _, pr = both(drawn(scores, labels))
    assert np.trapezoid(pr.y, pr.x) == pytest.approx(average_precision_score(labels, scores), abs=SEEN)
    assert (pr.x[0], pr.x[-1], pr.y[-1]) == (0, 1, pytest.approx(labels.mean()))


def test_many_rows_make_few_corners_and_the_same_areas() -> None:
    scores, labels = sample(30_000, seed=1)
    scores = scores + np.random.default_rng(2).normal(size=30_000) / 1000  # without ties
    roc, pr = both(drawn(scores, labels))
    assert len(roc.x) < 400
    assert len(pr.x) < 1000
    assert np.trapezoid(roc.y, roc.x) == pytest.approx(roc_auc_score(labels, scores), abs=SEEN)
    assert np.trapezoid(pr.y, pr.x) == pytest.approx(average_precision_score(labels, scores), abs=SEEN)


def test_weighted_curves_are_those_of_the_weighted_rows() -> None:
    scores, labels = sample(400, seed=3)
    weights = np.random.default_rng(4).integers(0, 4, size=400).astype(float)
    roc, pr = both(drawn(scores, labels, weights=weights))
    fpr, tpr, _ = sklearn_roc_curve(labels, scores, sample_weight=weights, drop_intermediate=False)
    assert distances_to_line(fpr, tpr, roc.x, roc.y).max() < SEEN
    expected = average_precision_score(labels, scores, sample_weight=weights)
    assert np.trapezoid(pr.y, pr.x) == pytest.approx(expected, abs=SEEN)


def test_a_band_lies_around_its_curve_and_moves_no_corner() -> None:
    scores, labels = sample(400, seed=5)
    for plain, banded in zip(both(drawn(scores, labels)), both(drawn(scores, labels, confidence=0.9)), strict=True):
        assert plain.lower is plain.upper is None
        assert banded.lower is not None
        assert banded.upper is not None
        assert distances_to_line(plain.x, plain.y, banded.x, banded.y).max() < 1e-12
        assert distances_to_line(banded.x, banded.y, plain.x, plain.y).max() < 1e-12
        assert np.all(np.diff(banded.x) >= 0)
        assert np.all((banded.lower >= 0) & (banded.lower <= banded.upper) & (banded.upper <= 1))
        inside = (banded.lower <= banded.y) & (banded.y <= banded.upper)
        assert inside.mean() > 0.8


def test_bands_depend_on_the_seed_alone() -> None:
    scores, labels = sample(300, seed=6)
    shuffled = np.random.default_rng(7).permutation(300)
    first, again, other = (
        both(drawn(scores[rows], labels[rows], confidence=0.95, seed=seed))[0]
        for rows, seed in ((slice(None), 0), (shuffled, 0), (slice(None), 1))
    )
    assert first.lower is not None
    assert first.lower.tolist() == again.lower.tolist()
    assert first.lower.tolist() != other.lower.tolist()


def test_the_histogram_counts_every_row_once_in_its_class() -> None:
    probs, labels = np.array([0.0, 0.04, 0.05, 0.99, 1.0]), np.array([0, 0, 1, 1, 1])
    histogram = drawn(probs, labels, kind="prob").histogram
    filled = {float(histogram.edges[at]): int(rows) for at, rows in enumerate(histogram.positives) if rows}
    assert filled == {0.05: 1, 0.95: 2}
    assert (histogram.negatives[0], histogram.negatives.sum()) == (2, 2)


@pytest.mark.parametrize("label", [0, 1])
def test_one_class_has_no_curves_but_a_sweep(label: int) -> None:
    found = drawn(np.array([0.2, 0.7]), np.array([label, label]), kind="prob")
    assert found.roc is found.pr is None
    assert found.sweep.outcomes[found.sweep.outcome[found.sweep.in_use]].counts.flagged == 1


def far_from(curve: Curve, x: np.ndarray, y: np.ndarray) -> float:
    return max(
        float(distances_to_line(x[part], y[part], curve.x, curve.y).max())
        for part in np.array_split(np.arange(x.size), max(1, x.size // 2000))
    )


@pytest.mark.parametrize("decimals", [3, 12])
def test_millions_of_corners_are_outlined_before_they_are_thinned_and_none_moves_further_than_can_be_seen(
    decimals: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("headeval.curves._MANY_CORNERS", 500)
    rng = np.random.default_rng(4)
    labels = (rng.random(6000) < 0.1).astype(int)
    scores = np.round(rng.normal(size=6000) + 1.5 * labels, decimals)
    roc, pr = both(drawn(scores, labels))
    fpr, tpr, _ = sklearn_roc_curve(labels, scores, drop_intermediate=False)
    assert far_from(roc, fpr, tpr) < SEEN
    curve = pr_curve(scores, labels)
    stairs = np.append(0.0, np.repeat(curve.recall, 2)[:-1])
    assert far_from(pr, stairs, np.repeat(curve.precision, 2)) < SEEN
    assert roc.x.size < 300
    assert pr.x.size < 2000


@given(st.lists(st.tuples(st.floats(0, 1), st.floats(0, 1)), min_size=3, max_size=60))
def test_an_outline_goes_no_further_from_a_corner_than_a_strip_is_wide(points: list[tuple[float, float]]) -> None:
    x, y = np.sort([point[0] for point in points]), np.array([point[1] for point in points])
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("headeval.curves._OUTLINE", 0.05)
        kept = _outline(x, y)
    assert {0, len(x) - 1} <= set(kept.tolist())
    assert distances_to_line(x, y, x[kept], y[kept]).max() <= 0.05 + 1e-12


@pytest.mark.slow
def test_bands_of_merged_rows_lie_where_those_of_single_rows_do(monkeypatch: pytest.MonkeyPatch) -> None:
    scores, labels = sample(4000, seed=3)
    by_row = both(drawn(scores, labels, confidence=0.95))
    monkeypatch.setattr("headeval.curves.MOST_ROWS_DRAWN", 1000)
    for merged, single in zip(both(drawn(scores, labels, confidence=0.95)), by_row, strict=True):
        assert (merged.x.tolist(), merged.y.tolist()) == (single.x.tolist(), single.y.tolist())
        width = (single.upper - single.lower).max()
        assert np.abs(merged.lower - single.lower).max() < 0.3 * width
        assert np.abs(merged.upper - single.upper).max() < 0.3 * width
        ratio = (merged.upper - merged.lower).sum() / (single.upper - single.lower).sum()
        assert ratio == pytest.approx(1, abs=0.05)
