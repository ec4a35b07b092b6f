"""Penalties tried on the same folds: each loss is that of separate fits, and the choice follows the rule."""

from typing import Any

import numpy as np
import pytest
from sklearn.linear_model import LogisticRegression
from sklearn.metrics import log_loss

from headeval.core.newton import Reason
from headeval.core.vectors import unit_vectors
from headeval.solver import descent, penalty_path
from headeval.solver.memory import ArraySource
from headeval.solver.penalty_path import AUTO, Path, PathPoint, regularisation_path
from headeval.solver.rows import RowColumns
from headeval.solver.stream import StreamSource
from headeval.solver.training import Training, train

# Fits of a path may leave δ = 1e-5 nats a row of their own loss to gain, so that Δᵀ H Δ ≤ 2δ for a row's share of the
# Hessian. The loss of other rows is off by its slope along Δ, at most √(2δ) √(d/n) for n rows held out: 1e-3 nats.
LOSSES_AGREE = 2e-3


def some_rows(n: int = 1500, d: int = 26, *, seed: int = 0) -> tuple[np.ndarray, np.ndarray]:
    rng = np.random.default_rng(seed)
    X = (rng.normal(size=(n, d)) * np.exp(-np.arange(d) / 20)).astype(np.float32)
    z = unit_vectors(X) @ rng.normal(size=d) * 4
    return X, (z + rng.logistic(size=n) > 0.5).astype(np.uint8)


def source_of(where: str, X: np.ndarray, columns: RowColumns) -> Any:
    if where == "memory":
        return ArraySource.of(X, columns, threads=1)
    return StreamSource(
        lambda name: (X[i : i + 500] for i in range(0, len(X), 500)),
        columns,
        X.shape[1],
        X.dtype,
        sample_bytes=X.nbytes // 3,
        threads=1,
    )


def tried(
    where: str, X: np.ndarray, y: np.ndarray, penalties: tuple[float, ...], **options: Any
) -> tuple[Training, Any]:
    source = source_of(where, X, RowColumns(y, options.pop("weights", None)))
    options = {"n_folds": 5, "identity": np.arange(len(y))} | options
    return train(source, penalties=penalties, **options), source


def separately(
    X: np.ndarray, y: np.ndarray, folds: np.ndarray, l2: float, weights: np.ndarray | None = None
) -> tuple[float, float]:
    """Return the out-of-fold log loss and its standard error over folds, by scikit-learn."""
    units, losses, counts = unit_vectors(X), [], []
    s = np.ones(len(y)) if weights is None else weights
    for fold in np.unique(folds):
        kept = folds != fold
        model = LogisticRegression(C=1 / l2, tol=1e-10, solver="newton-cholesky", max_iter=500)
        model.fit(units[kept], y[kept], sample_weight=s[kept])
        probs = model.predict_proba(units[~kept])[:, 1]
        losses.append(log_loss(y[~kept], probs, sample_weight=s[~kept], labels=[0, 1]))
        counts.append(s[~kept].sum())
    return float(np.average(losses, weights=counts)), float(np.std(losses, ddof=1) / np.sqrt(len(losses)))


@pytest.mark.parametrize("where", ["memory", "disk"])
@pytest.mark.parametrize("weighted", [False, True])
def test_the_losses_are_those_of_separate_fits_on_the_same_folds(where: str, weighted: bool) -> None:
    X, y = some_rows()
    weights = np.random.default_rng(1).uniform(0.2, 3, len(y)) if weighted else None
    grid = (30.0, 0.1, 3.0, 0.01)
    training, source = tried(where, X, y, grid, weights=weights)
    assert training.path is not None
    assert [point.l2 for point in training.path.points] == sorted(grid)
    expected = [separately(X, y, source.columns.folds, l2, weights) for l2 in sorted(grid)]
    for point, (loss, error) in zip(training.path.points, expected, strict=True):
        assert point.log_loss == pytest.approx(loss, rel=LOSSES_AGREE)
        assert point.standard_error == pytest.approx(error, rel=0.05)
    assert training.path.chosen == training.l2 == sorted(grid)[int(np.argmin([loss for loss, _ in expected]))]


@pytest.mark.parametrize("where", ["memory", "disk"])
def test_the_head_is_the_exact_optimum_of_the_penalty_taken(where: str) -> None:
    X, y = some_rows()
    training, _ = tried(where, X, y, (0.1, 1.0, 10.0))
    alone, _ = tried(where, X, y, (training.l2,))
    np.testing.assert_allclose(training.fit.w, alone.fit.w, atol=1e-7)
    np.testing.assert_allclose(training.out_of_fold, alone.out_of_fold, atol=1e-5)
    assert training.fit.gradient_norm <= 1e-9


CURVE = (
    PathPoint(0.1, 0.50, 0.02),
    PathPoint(1.0, 0.40, 0.03),
    PathPoint(10.0, 0.42, 0.01),
    PathPoint(30.0, 0.43, 0.01),  # 0.40 + 0.03 exactly: within
    PathPoint(100.0, 0.44, 0.50),
)


def test_the_rules_by_hand() -> None:
    assert penalty_path._chosen(CURVE, "best") == 1.0
    # the error of the best, 0.03, and none of the others counts
    assert penalty_path._chosen(CURVE, "one-se") == 30.0
    assert penalty_path._chosen(CURVE[:1], "one-se") == 0.1
    # a smaller penalty within the error is never taken
    assert penalty_path._chosen((PathPoint(0.1, 0.41, 0.1), PathPoint(1.0, 0.40, 0.1)), "one-se") == 1.0


@pytest.mark.parametrize(
    ("points", "at_edge"),
    [
        (CURVE, False),
        (CURVE[:1], False),  # of one there is nothing to choose
        (CURVE[1:], True),
        (CURVE[:2], True),
    ],
)
def test_a_least_loss_at_an_end_is_told(points: tuple[PathPoint, ...], at_edge: bool) -> None:
    assert Path(points, "best", 1.0).at_edge is at_edge
    # whatever the rule has taken
    assert Path(points, "one-se", points[-1].l2).at_edge is at_edge


def test_one_se_takes_a_penalty_at_least_as_large() -> None:
    X, y = some_rows(150)
    best, _ = tried("memory", X, y, AUTO, auto=True)
    cautious, _ = tried("memory", X, y, AUTO, auto=True, rule="one-se")
    assert best.path is not None
    assert cautious.path is not None
    assert best.path.points == cautious.path.points
    least = min(best.path.points, key=lambda point: point.log_loss)
    within = [p.l2 for p in best.path.points if p.log_loss <= least.log_loss + least.standard_error]
    assert (best.l2, cautious.l2) == (least.l2, max(within))
    assert cautious.l2 > best.l2


def test_copies_and_groups_stay_in_one_fold_while_penalties_are_tried() -> None:
    """Random labels cannot be predicted; with copies in other folds the weakest penalty would seem the best."""
    rng = np.random.default_rng(5)
    X = np.repeat(rng.normal(size=(100, 60)).astype(np.float32), 4, axis=0)
    y = np.repeat(rng.integers(0, 2, 100), 4).astype(np.uint8)
    kinds = np.repeat(np.arange(100), 4)
    grid = (0.01, 0.1, 1.0, 10.0, 100.0)
    for options in ({"identity": kinds}, {"identity": np.arange(400), "groups": kinds}):
        training, source = tried("memory", X, y, grid, **options)
        assert training.l2 == 100.0
        assert all(np.unique(source.columns.folds[kinds == kind]).size == 1 for kind in range(100))
    careless, _ = tried("memory", X, y, grid)
    assert careless.l2 < 1.0


@pytest.mark.parametrize("where", ["memory", "disk"])
def test_a_penalty_that_takes_many_passes_is_passed_over_by_auto_and_fitted_from_a_list(
    where: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    X, y = some_rows(1200)
    original = descent.run

    def slow(source: Any, ways: Any, **options: Any) -> None:
        for way in ways:
            if way.problem.l2 == 0.1 and way.problem.left_out is not None and way.problem.close_enough > 1e-3:
                way.reason = Reason.STEP_LIMIT
        original(source, ways, **options)

    with monkeypatch.context() as patched:
        patched.setattr(descent, "run", slow)
        auto, _ = tried(where, X, y, (0.1, 1.0, 10.0), auto=True)
        listed, source = tried(where, X, y, (0.1, 1.0, 10.0))
    assert auto.path is not None
    assert listed.path is not None
    assert [point.l2 for point in auto.path.points] == [1.0, 10.0]
    assert [point.l2 for point in listed.path.points] == [0.1, 1.0, 10.0]
    loss, _ = separately(X, y, source.columns.folds, 0.1)
    assert listed.path.points[0].log_loss == pytest.approx(loss, rel=LOSSES_AGREE)


@pytest.mark.parametrize("where", ["memory", "disk"])
def test_where_none_arrives_auto_fits_all_the_same(where: str, monkeypatch: pytest.MonkeyPatch) -> None:
    X, y = some_rows(300, 6)

    def never(source: Any, ways: Any, **options: Any) -> None:
        for way in ways:
            way.reason = Reason.STEP_LIMIT

    source = source_of(where, X, RowColumns(y))
    source.hold_out((np.arange(300) % 3).astype(np.int16))
    monkeypatch.setattr(descent, "run", never)
    found = regularisation_path(source, (0.1, 1.0), n_folds=3, rule="best", all_of_them=False)
    assert [point.l2 for point in found.path.points] == [0.1, 1.0]
    loss, _ = separately(X, y, source.columns.folds, 1.0)
    assert found.path.points[1].log_loss == pytest.approx(loss, rel=LOSSES_AGREE)


def test_folds_without_weight_count_for_no_loss() -> None:
    X, y = some_rows(300, 6)
    folds = (np.arange(300) % 3).astype(np.int16)
    weights = np.where(folds == 2, 0.0, 1.0)
    source = ArraySource.of(X, RowColumns(y, weights), threads=1)
    source.hold_out(folds)
    found = regularisation_path(source, (0.1, 1.0), n_folds=3, rule="best")
    losses = []
    for fold in (0, 1):
        kept = (folds != fold) & (folds != 2)
        model = LogisticRegression(C=1.0, tol=1e-10, solver="newton-cholesky").fit(unit_vectors(X[kept]), y[kept])
        probs = model.predict_proba(unit_vectors(X[folds == fold]))[:, 1]
        losses.append(log_loss(y[folds == fold], probs))
    point = found.path.points[1]
    # (of 100 rows each the fits are near enough at 5e-5 nats a row)
    assert point.log_loss == pytest.approx(np.mean(losses), rel=2 * LOSSES_AGREE)
    assert point.standard_error == pytest.approx(np.std(losses, ddof=1) / np.sqrt(2), rel=0.1)


def test_folds_that_only_choose_the_penalty_score_no_rows() -> None:
    X, y = some_rows(600)
    training, _ = tried("memory", X, y, (0.1, 1.0), judged=False)
    judged, _ = tried("memory", X, y, (0.1, 1.0))
    assert training.out_of_fold is None
    assert training.path == judged.path
    np.testing.assert_allclose(training.fit.w, judged.fit.w, atol=1e-7)


def test_the_path_is_written_as_plain_values() -> None:
    assert Path(CURVE[:2], "one-se", 1.0).document() == {
        "rule": "one-se",
        "points": [
            {"l2": 0.1, "log_loss": 0.50, "standard_error": 0.02},
            {"l2": 1.0, "log_loss": 0.40, "standard_error": 0.03},
        ],
    }


@pytest.mark.parametrize("unit", [1e-6, 1e3])
def test_the_unit_of_the_weights_changes_neither_losses_nor_choice(unit: float) -> None:
    """Weights times c and penalties times c are the same problem, so what counts as near must follow the weights."""
    rng = np.random.default_rng(3)
    X = rng.normal(size=(1500, 30)).astype(np.float32)
    y = (rng.random(1500) < 1 / (1 + np.exp(-2 * X[:, 0]))).astype(np.uint8)
    grid = (0.1, 10.0, 1000.0)

    def tried(c: float) -> Path:
        source = ArraySource.of(X, RowColumns(y, np.full(1500, c)))
        identity = np.arange(1500)
        path = train(source, penalties=[c * l2 for l2 in grid], n_folds=5, identity=identity).path
        assert path is not None
        return path

    plain, scaled = tried(1.0), tried(unit)
    assert scaled.chosen == pytest.approx(unit * plain.chosen)
    losses = [point.log_loss for point in scaled.points]
    assert losses == pytest.approx([point.log_loss for point in plain.points], abs=1e-5)
