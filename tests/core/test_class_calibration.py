"""Class-wise calibration errors bin by bin in fractions, and what chance shows against labels drawn one by one."""

from fractions import Fraction

import numpy as np
import pytest
from sklearn.calibration import calibration_curve

from headeval.core import class_calibration
from headeval.core.batch_resamples import batches, drawn_batches
from headeval.core.calibration import reliability_table
from headeval.core.checks import FloatArray
from headeval.core.class_calibration import SimulatedLabels, class_bins, classwise_ece, resampled_gaps
from headeval.core.class_scores import class_probabilities

RNG = np.random.default_rng(2)
P = class_probabilities(1.5 * RNG.normal(size=(500, 3)))
Y = (P.cumsum(axis=1) < RNG.random((500, 1))).sum(axis=1)


def test_by_hand_in_fractions() -> None:
    """Four rows, two bins: class 0 has p = 3/4, 1/4, 1/2 | labels 0, 1, 0; ½ is in the lower bin (0, ½]."""
    p = [[0.75, 0.25, 0.0], [0.25, 0.25, 0.5], [0.5, 0.0, 0.5], [0.0, 0.25, 0.75]]
    y = [0, 1, 0, 2]
    quarter = Fraction(1, 4)
    # class 0: low {1/4, 1/2, 0}: one of the class, Σp = 3/4 → 1/4; high {3/4}: one → 1/4.
    # class 1: all low, one of the class, Σp = 3/4 → 1/4.
    # class 2: low {0, 1/2, 1/2}: none, Σp = 1 → 1; high {3/4}: one → 1/4.
    each = [(quarter + quarter) / 4, quarter / 4, (1 + quarter) / 4]
    assert classwise_ece(p, y, n_bins=2) == pytest.approx(float(sum(each) / 3), abs=1e-15)


def test_each_class_is_its_positive_class_error() -> None:
    """By the curve of scikit-learn for each class, weighted by the rows in its bins."""
    errors = []
    for c in range(3):
        edges = np.arange(16) / 15
        share, mean = calibration_curve(c == Y, P[:, c], n_bins=15)
        counts = np.histogram(P[:, c], bins=edges)[0]
        errors.append((counts[counts > 0] / 500) @ np.abs(share - mean))
    assert classwise_ece(P, Y) == pytest.approx(np.mean(errors))


def test_two_classes_have_one_error_twice() -> None:
    """Bins that are closed on the other side hold the same rows where no probability is on an edge."""
    p = np.stack([1 - P[:, 0], P[:, 0]], axis=1)
    one = reliability_table(P[:, 0], Y == 0, convention="positive-class", n_bins=15).ece
    assert classwise_ece(p, Y == 0) == pytest.approx(one, abs=1e-12)


def test_equal_mass_bins_are_made_class_by_class() -> None:
    """Five bins of a hundred rows each, sorted by the class's own probability."""
    errors = []
    for c in range(3):
        rows = np.argsort(P[:, c]).reshape(5, 100)
        errors.append(np.abs((c == Y)[rows].mean(axis=1) - P[rows, c].mean(axis=1)).mean())
    assert classwise_ece(P, Y, n_bins=5, binning="equal-mass") == pytest.approx(np.mean(errors))


def test_weights_count_rows_as_often() -> None:
    times = RNG.integers(1, 4, size=500)
    again = np.repeat(np.arange(500), times)
    assert classwise_ece(P, Y, weights=times) == pytest.approx(classwise_ece(P[again], Y[again]))


@pytest.mark.parametrize("weighted", [False, True])
def test_a_resample_is_measured_as_rows_that_are_there_as_often(weighted: bool) -> None:
    weights = RNG.uniform(1, 1.9, size=500) if weighted else np.ones(500)
    bins = class_bins(P, Y, weights if weighted else None, 1, n_bins=15, binning="equal-width")
    batch = batches(500, None, np.random.default_rng(0))
    draws = drawn_batches(500, 3, np.random.default_rng(1))
    gaps = resampled_gaps(bins, batch, draws)
    for w, found in zip(draws, gaps, strict=True):
        again = np.repeat(np.arange(500), w.astype(int))
        table = reliability_table(
            P[again, 1], Y[again] == 1, convention="positive-class", n_bins=15, weights=weights[again]
        )
        assert np.abs(found).sum() / weights[again].sum() == pytest.approx(table.ece)


@pytest.mark.parametrize(("times", "n_bins"), [(1, 15), (10, 4)])
@pytest.mark.parametrize("many", [False, True])
def test_chance_alone_shows_what_drawn_labels_do(
    many: bool, times: int, n_bins: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Every row is of the class with its probability; in many rows counts are drawn instead, few as whole numbers."""
    probs, labels = np.repeat(P, times, axis=0), np.repeat(Y, times)
    monkeypatch.setattr(class_calibration, "_DRAWS", 1 if many else 10**8)
    monkeypatch.setattr(class_calibration, "_FEWEST_SIMULATIONS", 1000)
    bins = class_bins(probs, labels, None, 2, n_bins=n_bins, binning="equal-width")
    hits = np.random.default_rng(9).random((600, labels.size)) < probs[:, 2]
    gaps = [np.bincount(bins.index, hit - probs[:, 2], n_bins) for hit in hits]
    expected = np.abs(gaps).sum(axis=1)
    simulated = SimulatedLabels.drawn(probs, np.random.default_rng(0))
    assert (simulated.cells is None) == many
    found = simulated.errors(bins, 2, np.random.default_rng(1))
    assert found.shape == (1000,)
    assert found.mean() == pytest.approx(expected.mean(), rel=0.05)
    assert np.quantile(found, 0.95) == pytest.approx(np.quantile(expected, 0.95), rel=0.06)


def test_drawn_labels_are_as_frequent_as_the_probabilities_say() -> None:
    simulated = SimulatedLabels.drawn(np.tile([0.2, 0.0, 0.8], (50, 1)), np.random.default_rng(0))
    sizes = np.diff(simulated.ends) / (50 * simulated.n_simulations)
    assert sizes == pytest.approx([0.2, 0.0, 0.8], abs=0.006)
    assert simulated.cells is not None
    assert sorted(simulated.cells.tolist()) == list(range(50 * simulated.n_simulations))


@pytest.mark.parametrize(
    ("rows", "simulations", "listed"),
    [(1, 1000, True), (4, 1000, True), (5, 800, True), (20, 200, True), (21, 200, False)],
)
def test_fewer_simulations_are_made_of_more_rows_and_of_too_many_only_counts(
    rows: int, simulations: int, listed: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(class_calibration, "_DRAWS", 4000)
    simulated = SimulatedLabels.drawn(P[:rows], np.random.default_rng(0))
    assert (simulated.n_simulations, simulated.cells is not None) == (simulations, listed)
    assert simulated.ends.shape == (4,)


@pytest.mark.parametrize("weighted", [False, True])
def test_errors_are_those_of_the_labels_that_were_drawn(weighted: bool) -> None:
    """A label is the class whose share of the cumulated probabilities holds the number drawn."""
    p = 0.999 * P[:30]  # as sums of rounded numbers are
    weights: FloatArray = RNG.uniform(0.1, 1.9, size=30) if weighted else np.ones(30)
    simulated = SimulatedLabels.drawn(p, np.random.default_rng(5))
    drawn = np.random.default_rng(5).random((1000, 30))
    labels = (p.cumsum(axis=1) / p.sum(axis=1, keepdims=True) <= drawn[:, :, None]).sum(axis=2)
    for c in range(3):
        bins = class_bins(p, Y[:30], weights if weighted else None, c, n_bins=4, binning="equal-width")
        place = np.clip(np.ceil(p[:, c] * 4) - 1, 0, 3)
        gaps = weights * ((labels == c) - p[:, c])
        expected = sum(np.abs(gaps[:, place == b].sum(axis=1)) for b in range(4))
        found = simulated.errors(bins, c, np.random.default_rng(0))
        np.testing.assert_allclose(found, expected, rtol=0, atol=1e-12)


class Numbers(np.random.Generator):
    """Draws the same number for every row."""

    def __init__(self, number: float) -> None:
        super().__init__(np.random.PCG64(0))
        self.number = number

    def random(self, size: tuple[int, ...]) -> np.ndarray:  # type: ignore[override]
        return np.full(size, self.number)


@pytest.mark.parametrize(("number", "label"), [(0.0, 1), (0.5, 2), (1 - 2**-53, 2)])
def test_no_number_draws_a_class_without_probability_or_one_of_another_row(number: float, label: int) -> None:
    """The largest number below 1 is rounded up beside the number of a row."""
    probs = np.tile([0.0, 0.5, 0.5, 0.0], (9, 1))[:, : 4 if number < 1 - 1e-9 else 3]
    ends = SimulatedLabels.drawn(probs, Numbers(number)).ends
    assert ends.shape == (probs.shape[1] + 1,)
    assert np.flatnonzero(np.diff(ends)).tolist() == [label]


@pytest.mark.parametrize("weighted", [False, True])
def test_counts_of_many_rows_vary_as_sums_of_independent_labels(weighted: bool) -> None:
    """Σ w²·p·(1 − p) of a bin; a variance below 20 is of few events, and drawn as their whole number."""
    p = np.concatenate([np.full(80, 0.5), np.full(79, 0.25), np.full(400, 0.75), np.full(4, 0.875)])
    w = np.where((np.arange(p.size) % 2 == 1) & weighted, 2.0, 1.0)
    probs = np.column_stack([p, 1 - p])
    bins = class_bins(probs, np.zeros(p.size, dtype=int), w if weighted else None, 0, n_bins=4, binning="equal-width")
    found = SimulatedLabels(50, None, np.zeros(3, dtype=int)).errors(bins, 0, np.random.default_rng(8))
    variance = [sum(w[p == value] ** 2 * value * (1 - value)) for value in (0.25, 0.5, 0.75, 0.875)]
    assert variance[1] == (50.0 if weighted else 20.0)
    rng, few = np.random.default_rng(8), [variance[0], variance[3]]
    drawn = np.sqrt(variance) * rng.standard_normal((50, 4))
    if not weighted:
        drawn[:, [0, 3]] = rng.poisson(few, (50, 2)) - few
    np.testing.assert_allclose(found, np.abs(drawn).sum(axis=1), rtol=1e-12)


def test_what_is_no_table_of_probabilities_is_refused() -> None:
    for probs in ([[1.2, -0.2]], np.empty((0, 2)), [[1.0]], [0.5, 0.5]):
        with pytest.raises(ValueError, match="probs must"):
            classwise_ece(probs, [0] * len(probs))
