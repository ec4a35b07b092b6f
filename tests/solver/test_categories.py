"""Heads of many categories from one set of rows, in which labels may be unknown."""

from collections.abc import Iterable
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray
from sklearn.linear_model import LogisticRegression

from headeval.core.checks import UNKNOWN
from headeval.solver import categories
from headeval.solver.categories import NotTrained, train_categories
from headeval.solver.category_sums import CategoryColumns, CategoryLossAndGradient, OfCategory, OneCategory
from headeval.solver.exact import newton_on
from headeval.solver.memory import ArraySource
from headeval.solver.rows import RowColumns
from headeval.solver.sample import sample_rows
from headeval.solver.stream import StreamSource
from headeval.solver.sums import Hessian, LossAndGradient, Together
from headeval.solver.training import Training, dealt_folds, train

D = 12
MOST_PASSES_OF_A_GRID = 20


def made(n: int = 600, *, seed: int = 0, dtype: Any = np.float32) -> tuple[NDArray[Any], NDArray[np.uint8]]:
    """Embeddings, and labels of three categories: all known, a third unknown, two thirds unknown and few positives."""
    rng = np.random.default_rng(seed)
    X = rng.standard_normal((n, D)).astype(dtype)
    u = X / np.linalg.norm(X, axis=1, keepdims=True)
    shift = np.array([[0.0], [0.5], [2.0]])
    L = (rng.standard_normal((3, D)) @ u.T * 3 + rng.logistic(size=(3, n)) > shift).astype(np.uint8)
    L[1, rng.random(n) < 1 / 3] = UNKNOWN
    L[2, rng.random(n) < 2 / 3] = UNKNOWN
    return X, L


def fitted(X: NDArray[Any], L: NDArray[np.uint8], **options: Any) -> tuple[Training | NotTrained, ...]:
    asked: dict[str, Any] = {"penalties": (1.0,), "n_folds": 4, "identity": np.arange(len(X))} | options
    return train_categories(ArraySource.of(X, CategoryColumns(L, asked.pop("weights", None))), **asked)


def trainings(found: Iterable[Training | NotTrained]) -> list[Training]:
    done = [each for each in found if isinstance(each, Training)]
    assert len(done) == 3
    return done


@pytest.fixture(params=["by itself", "together"])
def way(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> str:
    """Both ways of fitting; without the bound for few dimensions, so that the searches themselves run."""
    if request.param == "together":
        monkeypatch.setattr(categories, "FEW_NUMBERS", 0)
        monkeypatch.setattr("headeval.solver.optimum.FEW_DIMENSIONS", 0)
        monkeypatch.setattr("headeval.solver.optimum.FEW_PRODUCTS", 0)
    return str(request.param)


def test_each_category_is_the_fit_of_its_known_rows_alone_bit_for_bit() -> None:
    X, L = made()
    rng = np.random.default_rng(1)
    groups, weights = rng.permutation(600) // 3, rng.random(600) + 0.5
    identity = np.where(rng.random(600) < 0.5, groups, 1000 + np.arange(600))  # some rows of a group are copies
    found = trainings(fitted(X, L, identity=identity, groups=groups, weights=weights))
    for category, training in enumerate(found):
        known = L[category] != UNKNOWN
        alone = train(
            ArraySource.of(X[known], RowColumns(L[category, known], weights[known])),
            penalties=(1.0,),
            n_folds=4,
            identity=np.unique(identity[known], return_inverse=True)[1],
            groups=np.unique(groups[known], return_inverse=True)[1],
        )
        assert training.fit.w.tobytes() == alone.fit.w.tobytes()
        assert training.out_of_fold is not None
        assert alone.out_of_fold is not None
        assert training.out_of_fold.tobytes() == alone.out_of_fold.tobytes()
        assert training.repeated == alone.repeated > 0


@pytest.mark.usefixtures("way")
def test_weights_and_out_of_fold_logits_are_those_of_scikit_learn_on_the_same_folds() -> None:
    X, L = made(dtype=np.float64)
    u = X / np.linalg.norm(X, axis=1, keepdims=True)
    for category, training in enumerate(trainings(fitted(X, L))):
        known = np.flatnonzero(L[category] != UNKNOWN)
        y = L[category, known]
        folds = dealt_folds(y, 4, identity=np.arange(len(known)), groups=None)
        model = LogisticRegression(C=1.0, solver="newton-cholesky", tol=1e-12, max_iter=100)
        expected = np.empty(len(known))
        for fold in range(4):
            rest = folds != fold
            expected[~rest] = model.fit(u[known][rest], y[rest]).decision_function(u[known][~rest])
        assert training.out_of_fold is not None
        np.testing.assert_allclose(training.out_of_fold, expected, atol=1e-5)
        model.fit(u[known], y)
        np.testing.assert_allclose(training.fit.w, np.append(model.coef_, model.intercept_), atol=1e-8)
        assert training.fit.gradient_norm <= 1e-9


@pytest.mark.usefixtures("way")
def test_rows_whose_label_is_unknown_change_nothing() -> None:
    X, L = made()
    rng = np.random.default_rng(2)
    places = np.sort(rng.integers(0, 600, 100))
    more_X = np.insert(X, places, rng.standard_normal((100, D)).astype(np.float32), axis=0)
    more_L = np.insert(L, places, UNKNOWN, axis=1)
    before, after = trainings(fitted(X, L)), trainings(fitted(more_X, more_L))
    for one, other in zip(before, after, strict=True):
        assert one.out_of_fold is not None
        assert other.out_of_fold is not None
        np.testing.assert_allclose(other.fit.w, one.fit.w, atol=1e-9)
        np.testing.assert_allclose(other.out_of_fold, one.out_of_fold, atol=1e-5)
        assert other.out_of_fold.shape == one.out_of_fold.shape


def test_rows_whose_label_is_unknown_change_no_bit_where_rows_are_few() -> None:
    X, L = made()
    more_X, more_L = np.concatenate([X[:77] * 2, X]), np.concatenate([np.full((3, 77), UNKNOWN, np.uint8), L], axis=1)
    for one, other in zip(trainings(fitted(X, L)), trainings(fitted(more_X, more_L)), strict=True):
        assert one.out_of_fold is not None
        assert other.out_of_fold is not None
        assert one.fit.w.tobytes() == other.fit.w.tobytes()
        assert one.out_of_fold.tobytes() == other.out_of_fold.tobytes()


def test_a_category_that_cannot_be_divided_or_separates_leaves_the_others_alone(way: str) -> None:
    X, L = made()
    L[2] = UNKNOWN
    L[2, :40] = 0
    L[2, 40:43] = 1  # fewer positives than folds
    found = fitted(X, L)
    assert [type(each) for each in found] == [Training, Training, NotTrained], way
    assert isinstance(found[2], NotTrained)
    assert found[2].of_folds
    assert "the smaller has 3" in found[2].reason
    L[2, :300] = X[:300, 0] > 0
    found = fitted(X, L, penalties=(0.0,), n_folds=0)
    assert isinstance(found[0], Training)
    assert isinstance(found[2], NotTrained)
    assert "perfectly separated" in found[2].reason


@pytest.mark.usefixtures("way")
def test_of_several_penalties_each_category_gets_its_own() -> None:
    X, L = made()
    found = trainings(fitted(X, L, penalties=(0.01, 1.0, 100.0)))
    for category, training in enumerate(found):
        known = L[category] != UNKNOWN
        alone = train(
            ArraySource.of(X[known], RowColumns(L[category, known])),
            penalties=(0.01, 1.0, 100.0),
            n_folds=4,
            identity=np.arange(int(known.sum())),
        )
        assert training.l2 == alone.l2
        assert training.path is not None
        assert alone.path is not None
        losses = [[point.log_loss for point in path.points] for path in (training.path, alone.path)]
        np.testing.assert_allclose(losses[0], losses[1], rtol=1e-5)
        np.testing.assert_allclose(training.fit.w, alone.fit.w, atol=1e-7)


def streamed(X: NDArray[Any], L: NDArray[np.uint8], block: int, weights: NDArray[Any] | None = None) -> StreamSource:
    def blocks(_: str) -> Iterable[NDArray[Any]]:
        return (X[i : i + block] for i in range(0, len(X), block))

    return StreamSource(blocks, CategoryColumns(L, weights), D, X.dtype, sample_bytes=2**13)


def test_rows_on_a_disk_give_the_same_heads_in_shared_passes() -> None:
    X, L = made(3000)
    weights = np.random.default_rng(5).random(3000) + 0.5
    source = streamed(X, L, 250, weights)
    asked: dict[str, Any] = {"penalties": (1.0,), "n_folds": 4, "identity": np.arange(3000)}
    found, others = trainings(train_categories(source, **asked)), streamed(X, L, 7, weights)
    assert source.passes <= 30  # and not three times as many
    for one, other in zip(found, trainings(fitted(X, L, weights=weights)), strict=True):
        np.testing.assert_allclose(one.fit.w, other.fit.w, atol=1e-9)
        assert one.out_of_fold is not None
        assert other.out_of_fold is not None
        np.testing.assert_allclose(one.out_of_fold, other.out_of_fold, atol=1e-4)
    for one, other in zip(found, trainings(train_categories(others, **asked)), strict=True):
        assert one.fit.w.tobytes() == other.fit.w.tobytes()  # whatever blocks they come in


@pytest.mark.parametrize("weighted", [False, True])
def test_a_sum_of_several_categories_is_that_of_each_on_its_own_rows(weighted: bool) -> None:
    X, L = made(400)
    rng = np.random.default_rng(3)
    weights = rng.random(400) if weighted else None
    folds = rng.integers(0, 3, (3, 400)).astype(np.int16)
    W = rng.standard_normal((4, D + 1))
    which, left_out = (0, 2, 1, 2), (None, 1, 0, None)
    source = ArraySource.of(X, CategoryColumns(L, weights, folds))
    losses, gradients, wrong = source.total(CategoryLossAndGradient(W, left_out, categories=which))
    for i, (category, fold) in enumerate(zip(which, left_out, strict=True)):
        rows = (L[category] != UNKNOWN) & (folds[category] != (-1 if fold is None else fold))
        columns = RowColumns(L[category, rows], None if weights is None else weights[rows])
        expected = ArraySource.of(X[rows], columns).total(LossAndGradient(W[i : i + 1], (None,)))
        for found, value in zip((losses[i], gradients[i], wrong[i]), expected, strict=True):
            np.testing.assert_allclose(found, value[0], rtol=1e-12, atol=1e-12)
        one = OneCategory(source, category).total(LossAndGradient(W[i : i + 1], (fold,)))
        np.testing.assert_allclose(one[1][0], gradients[i], rtol=1e-12, atol=1e-12)


def test_a_row_is_scored_by_the_fit_of_its_fold_in_each_category() -> None:
    X, L = made(200, dtype=np.float64)
    rng = np.random.default_rng(4)
    folds, W = rng.integers(0, 3, (3, 200)).astype(np.int16), rng.standard_normal((3, 3, D + 1))
    source = ArraySource.of(X, CategoryColumns(L, None, folds))
    u = X / np.linalg.norm(X, axis=1, keepdims=True)
    z = source.logits(W)
    for category in range(3):
        w = W[category, folds[category]]
        np.testing.assert_allclose(z[category], (u * w[:, :-1]).sum(axis=1) + w[:, -1], atol=1e-12)
        assert (OneCategory(source, category).logits(W[category][None])[0] == z[category]).all()


@pytest.mark.parametrize("from_disk", [False, True])
def test_pitfall_17_rows_of_a_group_and_copies_share_a_fold_of_every_category(
    from_disk: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(categories, "FEW_NUMBERS", 0)
    X, L = made()
    rng = np.random.default_rng(7)
    groups, identity = rng.integers(0, 200, 600), np.arange(600)
    identity[300:340] = identity[:40]  # copies of rows of other groups, which tie these
    columns = CategoryColumns(L)
    source = streamed(X, L, 100) if from_disk else ArraySource.of(X, columns)
    trainings(train_categories(source, penalties=(1.0,), n_folds=4, identity=identity, groups=groups))
    folds = source.columns.folds
    assert folds is not None
    for category in range(3):
        known = L[category] != UNKNOWN
        for codes in (groups, identity):
            of_code = {code: set(folds[category, known & (codes == code)].tolist()) for code in codes.tolist()}
            assert max(len(found) for found in of_code.values()) == 1
        assert set(folds[category, known].tolist()) == {0, 1, 2, 3}


@pytest.mark.parametrize("from_disk", [False, True])
@pytest.mark.usefixtures("way")
def test_pitfall_18_a_category_is_left_out_where_a_fit_without_a_fold_does_not_arrive(from_disk: bool) -> None:
    """One row keeps the classes apart from being separable; without its fold there is no optimum."""
    X, L = made()
    side = X / np.linalg.norm(X, axis=1, keepdims=True) @ np.linspace(1, 2, D)
    L[1] = side > 0
    odd = int(side.argmax())
    L[1, odd] = 0
    asked: dict[str, Any] = {"penalties": (0.0,), "n_folds": 4, "identity": np.arange(600)}
    source = streamed(X, L, 100) if from_disk else ArraySource.of(X, CategoryColumns(L))
    found = train_categories(source, **asked)
    fold = dealt_folds(L[1], 4, identity=np.arange(600), groups=None)[odd]
    assert isinstance(found[1], NotTrained)
    assert found[1].reason.startswith(f"without fold {fold + 1}: ")
    assert not found[1].of_folds
    assert isinstance(found[0], Training)
    # The fit of all rows is sound.
    assert isinstance(fitted(X, L, penalties=(0.0,), n_folds=0)[1], Training)


@pytest.mark.usefixtures("way")
def test_pitfall_19_only_known_rows_are_counted_as_repeated() -> None:
    X, L = made()
    X[400:500] = X[:100]
    identity = np.concatenate([np.arange(400), np.arange(100), np.arange(500, 600)])
    for category, training in enumerate(trainings(fitted(X, L, identity=identity))):
        known = identity[L[category] != UNKNOWN].tolist()
        assert training.repeated == len(known) - len(set(known)), category
        assert (training.repeated < 100) == (category > 0)
    alone = trainings(fitted(X, L, identity=identity, penalties=(1.0, 2.0)))
    assert [training.repeated for training in alone] == [
        training.repeated for training in trainings(fitted(X, L, identity=identity))
    ]


@pytest.mark.usefixtures("way")
def test_pitfall_20_the_rule_that_is_asked_for_chooses_the_penalty_of_every_category() -> None:
    X, L = made()
    by_rule: dict[str, list[float]] = {}
    for rule in ("best", "one-se"):
        found = trainings(fitted(X, L, penalties=(0.01, 0.1, 1.0, 10.0), rule=rule))
        by_rule[rule] = [training.l2 for training in found]
        for training in found:
            assert training.path is not None
            assert training.path.rule == rule
            best = min(training.path.points, key=lambda point: point.log_loss)
            bound = best.log_loss + (best.standard_error if rule == "one-se" else 0.0)
            assert training.l2 == max(point.l2 for point in training.path.points if point.log_loss <= bound)
    assert by_rule["best"] != by_rule["one-se"]


@pytest.mark.parametrize("judged", [True, False])
def test_each_categorys_passes_are_its_own_whatever_the_order_of_the_columns(judged: bool) -> None:
    X, L = made(3000)
    asked: dict[str, Any] = {"n_folds": 4, "identity": np.arange(3000), "judged": judged}
    source = streamed(X, L, 250)
    passes = [training.passes for training in trainings(train_categories(source, penalties=(0.1, 1.0, 10.0), **asked))]
    assert sum(passes) == source.passes  # penalties and folds share them, categories do not
    assert max(passes) <= MOST_PASSES_OF_A_GRID
    turned = trainings(train_categories(streamed(X, L[::-1], 250), penalties=(0.1, 1.0, 10.0), **asked))
    assert [training.passes for training in turned] == passes[::-1]
    source = streamed(X, L, 250)
    shared = [training.passes for training in trainings(train_categories(source, penalties=(1.0,), **asked))]
    assert shared == [source.passes] * 3


def test_the_samples_of_all_categories_together_fit_into_the_memory_of_one() -> None:
    X, L = made(3000)
    taken: list[int] = []

    class Spied(StreamSource):
        def rows_at(self, positions: Any) -> Any:
            taken.append(len(positions))
            return super().rows_at(positions)

    source = Spied(lambda _: iter([X]), CategoryColumns(L), D, X.dtype, sample_bytes=600 * D * 4)
    trainings(train_categories(source, penalties=(1.0,), n_folds=4, identity=np.arange(3000)))
    assert len(taken) == 1  # one pass for all of them
    assert 300 < taken[0] <= source.most_sampled == 600


def test_without_a_penalty_newtons_method_starts_where_the_sample_or_all_rows_ended(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    starts: list[float] = []

    def counted(view: Any, problem: Any, w: NDArray[Any], *rest: Any) -> Any:
        starts.append(float(np.abs(w[:-1]).max()))
        return newton_on(view, problem, w, *rest)

    X, L = made(3000)
    monkeypatch.setattr(categories, "FEW_NUMBERS", 0)
    monkeypatch.setattr("headeval.solver.optimum.FEW_PRODUCTS", 0)
    monkeypatch.setattr(categories, "newton_on", counted)
    source = ArraySource.of(X, CategoryColumns(L))
    trainings(train_categories(source, penalties=(0.0,), n_folds=4, identity=np.arange(3000)))
    assert len(starts) == 15
    assert min(starts[3:]) > 1.0  # each fold's from the optimum of all rows


def test_a_sum_of_one_category_is_handled_as_the_sum_it_stands_for() -> None:
    hessian = Hessian(np.zeros(D + 1), single=True)
    for what in (hessian, LossAndGradient(np.zeros((1, D + 1)), (None,)), Together((hessian, hessian))):
        one = OfCategory(what, 1)
        assert (one.name, one.large, one.adds_in) == (what.name, what.large, what.adds_in)
        assert one.rows_at_once(D) == what.rows_at_once(D)
    assert OfCategory(hessian, 0).large == 1


def test_a_category_has_the_columns_that_its_source_has_now() -> None:
    X, L = made(200)
    source = ArraySource.of(X, CategoryColumns(L))
    view = OneCategory(source, 1)
    before = view.columns
    assert before.folds is None
    assert view.columns is before  # made once
    folds = np.random.default_rng(0).integers(0, 3, L.shape).astype(np.int16)
    source.hold_out(folds)
    assert np.asarray(view.columns.folds).tolist() == folds[1].tolist()


def test_a_sample_draws_only_rows_that_count_and_stands_for_all_of_them() -> None:
    """Rows whose label is unknown have no weight: drawn, they would take the places of known ones."""
    _, L = made(3000)
    columns = CategoryColumns(L).of(2)
    assert columns.weights is not None
    chosen, s = sample_rows(columns, 200)
    assert (columns.weights[chosen] > 0).all()
    for label in (0, 1):
        there = int(np.count_nonzero((columns.labels == label) & (columns.weights > 0)))
        assert s[columns.labels[chosen] == label].sum() == pytest.approx(there)
