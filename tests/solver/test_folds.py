"""Folds are stratified, keep groups whole, and every row is scored by a fit that has not seen it."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from sklearn.linear_model import LogisticRegression
from sklearn.metrics import roc_auc_score

from headeval.core.logistic import fit_logistic
from headeval.core.vectors import unit_vectors
from headeval.solver import training
from headeval.solver.folds import FoldError, joined_groups, stratified_folds
from headeval.solver.memory import ArraySource
from headeval.solver.optimum import optima
from headeval.solver.rows import RowColumns
from headeval.solver.training import NotConvergedError, Training

EACH = np.arange  # every row is its own


def train(
    X: np.ndarray,
    y: np.ndarray,
    *,
    l2: float,
    n_folds: int,
    identity: np.ndarray,
    sample_weight: np.ndarray | None = None,
) -> Training:
    source = ArraySource.of(X, RowColumns(y.astype(np.uint8), sample_weight))
    return training.train(source, penalties=(l2,), n_folds=n_folds, identity=identity)


def out_of_fold_logits(
    X: np.ndarray, y: np.ndarray, folds: np.ndarray, *, l2: float, sample_weight: np.ndarray | None = None
) -> tuple[np.ndarray, list]:
    """Each row's logit by the fit on all other folds, and these fits."""
    source = ArraySource.of(X, RowColumns(y.astype(np.uint8), sample_weight))
    source.hold_out(folds.astype(np.int16))
    fits = optima(source, l2=l2, left_out=range(int(folds.max()) + 1))
    return source.logits(np.stack([fit.w for fit in fits])[None])[0], fits


@given(
    positives=st.integers(2, 40),
    negatives=st.integers(2, 40),
    n_folds=st.integers(2, 8),
    seed=st.integers(0, 2**32 - 1),
)
def test_folds_differ_by_at_most_one_row_in_size_and_in_each_class(
    positives: int, negatives: int, n_folds: int, seed: int
) -> None:
    labels = np.array([1] * positives + [0] * negatives)
    if min(positives, negatives) < n_folds:
        with pytest.raises(FoldError, match=f"{n_folds} folds need"):
            stratified_folds(labels, n_folds, rng=np.random.default_rng(seed))
        return
    folds = stratified_folds(labels, n_folds, rng=np.random.default_rng(seed))
    for rows in (labels == 0, labels == 1, labels >= 0):
        sizes = np.bincount(folds[rows], minlength=n_folds)
        assert sizes.max() - sizes.min() <= 1
        assert sizes.sum() == rows.sum()


@given(seed=st.integers(0, 2**32 - 1), n_groups=st.integers(4, 60))
def test_a_group_is_never_divided_between_folds(seed: int, n_groups: int) -> None:
    rng = np.random.default_rng(seed)
    groups = rng.integers(0, n_groups, 200)
    labels = rng.integers(0, 2, 200)
    if n_groups < 6:
        return
    folds = stratified_folds(labels, 3, rng=np.random.default_rng(0), groups=groups)
    for group in np.unique(groups):
        assert np.unique(folds[groups == group]).size == 1


def test_groups_are_spread_so_that_both_classes_stay_even() -> None:
    # 20 groups of 10 rows, a quarter of them all positive: 5 folds can hold exactly one positive group each.
    groups = np.repeat(np.arange(20), 10)
    labels = np.repeat(np.arange(20) % 4 == 0, 10).astype(np.int64)
    folds = stratified_folds(labels, 5, rng=np.random.default_rng(0), groups=groups)
    assert np.bincount(folds[labels == 1]).tolist() == [10] * 5
    assert np.bincount(folds[labels == 0]).tolist() == [30] * 5


def test_groups_that_leave_nothing_to_fit_on_are_refused() -> None:
    labels = np.array([1, 1, 1, 0, 0, 0])
    with pytest.raises(FoldError, match="one class all fall into one fold"):
        stratified_folds(labels, 2, rng=np.random.default_rng(0), groups=np.array([0, 0, 0, 1, 2, 3]))
    with pytest.raises(FoldError, match="fewer groups"):
        stratified_folds(np.tile(labels, 2), 5, rng=np.random.default_rng(0), groups=np.tile([0, 1, 2], 4))


def test_each_row_is_scored_by_a_fit_on_the_other_folds_only() -> None:
    rng = np.random.default_rng(1)
    X = rng.normal(size=(90, 4))
    y = (X[:, 0] + rng.normal(size=90) > 0).astype(np.int64)
    units = unit_vectors(X)
    folds = stratified_folds(y, 3, rng=np.random.default_rng(0))
    logits, fits = out_of_fold_logits(units, y, folds, l2=0.5)
    assert len(fits) == 3
    for fold in range(3):
        model = LogisticRegression(C=2.0, tol=1e-12, solver="newton-cholesky").fit(
            units[folds != fold], y[folds != fold]
        )
        np.testing.assert_allclose(logits[folds == fold], model.decision_function(units[folds == fold]), atol=1e-7)
    # Changing a row's own label must not move its own out-of-fold logit: that would be a leak.
    flipped = y.copy()
    flipped[5] = 1 - flipped[5]
    moved, _ = out_of_fold_logits(units, flipped, folds, l2=0.5)
    # (the search for the optimum may begin elsewhere, and ends within its tolerance)
    assert moved[5] == pytest.approx(logits[5], abs=1e-9)
    assert (moved[folds != folds[5]] != logits[folds != folds[5]]).any()


def test_pitfall_14_training_brings_vectors_to_unit_length() -> None:
    rng = np.random.default_rng(2)
    X = rng.normal(size=(60, 3))
    y = (X[:, 0] > 0).astype(np.int64)
    y[:6] = 1 - y[:6]
    lengths = rng.uniform(0.01, 100.0, size=(60, 1))
    plain, scaled = (
        train(X, y, l2=1.0, n_folds=3, identity=EACH(60)),
        train(X * lengths, y, l2=1.0, n_folds=3, identity=EACH(60)),
    )
    np.testing.assert_allclose(plain.fit.w, scaled.fit.w, atol=1e-10)
    np.testing.assert_allclose(plain.out_of_fold, scaled.out_of_fold, atol=1e-10)
    by_hand = fit_logistic(X / np.linalg.norm(X, axis=1, keepdims=True), y, l2=1.0)
    np.testing.assert_allclose(plain.fit.w, by_hand.w, atol=1e-10)


def test_weights_count_like_repeated_rows() -> None:
    rng = np.random.default_rng(3)
    X = rng.normal(size=(40, 3))
    y = rng.integers(0, 2, 40)
    weights = rng.integers(1, 4, 40)
    weighted = train(X, y, l2=1.0, n_folds=0, identity=EACH(40), sample_weight=weights.astype(np.float64))
    many = int(weights.sum())
    repeated = train(np.repeat(X, weights, axis=0), np.repeat(y, weights), l2=1.0, n_folds=0, identity=EACH(many))
    np.testing.assert_allclose(weighted.fit.w, repeated.fit.w, atol=1e-9)
    assert weighted.out_of_fold is None


def test_separable_rows_without_a_penalty_are_refused_with_the_reason() -> None:
    X = np.array([[1.0, 0.1], [1.0, 0.2], [-1.0, 0.1], [-1.0, 0.3]])
    with pytest.raises(NotConvergedError, match="perfectly separated"):
        train(X, np.array([1, 1, 0, 0]), l2=0.0, n_folds=0, identity=EACH(4))
    assert train(X, np.array([1, 1, 0, 0]), l2=0.1, n_folds=0, identity=EACH(4)).fit.converged


def test_training_twice_gives_the_same_bits() -> None:
    rng = np.random.default_rng(4)
    X, y = rng.normal(size=(50, 4)), rng.integers(0, 2, 50)
    first, second = (train(data, y.copy(), l2=1.0, n_folds=5, identity=EACH(50)) for data in (X, X.copy()))
    assert first.fit.w.tobytes() == second.fit.w.tobytes()
    assert first.out_of_fold is not None
    assert second.out_of_fold is not None
    assert first.out_of_fold.tobytes() == second.out_of_fold.tobytes()


def test_groups_of_one_row_are_dealt_like_rows() -> None:
    # Groups of one row or two of one class: no fold may stay empty while another holds rows of both.
    for n_folds in (2, 3):
        folds = stratified_folds(
            np.array([0, 0, 0, 1, 1, 1]), n_folds, rng=np.random.default_rng(0), groups=np.arange(6)
        )
        assert np.unique(folds).size == n_folds
    pairs = stratified_folds(np.repeat([0, 1], 6), 6, rng=np.random.default_rng(0), groups=np.arange(12) // 2)
    assert np.bincount(pairs).tolist() == [2] * 6


@given(seed=st.integers(0, 2**32 - 1), pairs=st.integers(0, 10), n_folds=st.integers(2, 6))
def test_a_few_pairs_leave_the_folds_as_even_as_rows(seed: int, pairs: int, n_folds: int) -> None:
    rng = np.random.default_rng(seed)
    labels = rng.permutation(np.repeat([0, 1], [60, 40]))
    groups = np.arange(100)
    groups[:pairs] = groups[50 : 50 + pairs]
    folds = stratified_folds(labels, n_folds, rng=np.random.default_rng(1), groups=groups)
    for value in (0, 1):
        sizes = np.bincount(folds[labels == value], minlength=n_folds)
        assert sizes.max() - sizes.min() <= 1


def test_grouping_joins_whatever_is_connected() -> None:
    # a-b by the first, b-c by the second, d alone.
    assert joined_groups(np.array([5, 5, 7, 9]), np.array([0, 1, 1, 2])).tolist() == [0, 0, 0, 1]
    chain = np.arange(50)
    assert np.unique(joined_groups(chain // 2, (chain + 1) // 2)).size == 1


def test_copies_of_a_row_tie_exactly_out_of_fold() -> None:
    rng = np.random.default_rng(8)
    units = np.repeat(unit_vectors(rng.normal(size=(51, 30))), 2, axis=0)
    y = np.tile([0, 1], 51)  # every embedding once with each label: nothing can be ranked
    folds = stratified_folds(y, 3, rng=np.random.default_rng(0), groups=np.repeat(np.arange(51), 2))
    logits, _ = out_of_fold_logits(units, y, folds, l2=0.1)
    assert (logits[::2] == logits[1::2]).all()
    assert roc_auc_score(y, logits) == 0.5


def test_copies_of_a_row_never_give_it_away_out_of_fold() -> None:
    """Random labels cannot be predicted; with copies in other folds they could be looked up."""
    rng = np.random.default_rng(5)
    X = np.repeat(rng.normal(size=(60, 30)), 5, axis=0)
    y = np.repeat(rng.integers(0, 2, 60), 5)
    honest = train(X, y, l2=0.01, n_folds=5, identity=np.repeat(np.arange(60), 5))
    careless = train(X, y, l2=0.01, n_folds=5, identity=EACH(300))
    assert honest.repeated == 240
    assert honest.out_of_fold is not None
    assert careless.out_of_fold is not None
    assert 0.25 < roc_auc_score(y, honest.out_of_fold) < 0.75
    assert roc_auc_score(y, careless.out_of_fold) > 0.75


def test_weights_count_in_every_fold() -> None:
    rng = np.random.default_rng(6)
    units = unit_vectors(rng.normal(size=(60, 3)))
    y = rng.integers(0, 2, 60)
    weights = rng.uniform(0.1, 5.0, 60)
    folds = stratified_folds(y, 3, rng=np.random.default_rng(0))
    logits, _ = out_of_fold_logits(units, y, folds, l2=1.0, sample_weight=weights)
    for fold in range(3):
        rest = folds != fold
        model = LogisticRegression(C=1.0, tol=1e-12, solver="newton-cholesky")
        model.fit(units[rest], y[rest], sample_weight=weights[rest])
        np.testing.assert_allclose(logits[~rest], model.decision_function(units[~rest]), atol=1e-7)
