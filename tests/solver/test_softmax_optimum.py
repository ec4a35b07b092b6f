"""Heads of C classes end at the optimum of the reference, whatever stands for the Hessian, and say so truthfully."""

import itertools
import tracemalloc
from collections.abc import Iterator
from unittest import mock

import numpy as np
import pytest
from scipy import special
from sklearn.linear_model import LogisticRegression

from documents import ROOT
from headeval.core.multinomial import BLOCK_NEWTON, multinomial_fit
from headeval.core.newton import GRADIENT_TOLERANCE, LogisticFit, Reason
from headeval.core.vectors import unit_vectors
from headeval.solver import softmax
from headeval.solver.descent import METHOD
from headeval.solver.memory import ArraySource
from headeval.solver.problems import problem_of
from headeval.solver.rows import RowColumns
from headeval.solver.softmax import ClassStart, class_optima, class_start, form_of
from headeval.solver.softmax_exact import HessianProducts, WholeHessian, class_newton_on
from headeval.solver.softmax_hessians import HessianTimes
from headeval.solver.softmax_plan import Form, class_plan, form_for, form_on_a_disk
from headeval.solver.softmax_preconditioner import curvature_at
from headeval.solver.softmax_sample import class_sample_rows, null_class_weights
from headeval.solver.softmax_sums import SoftmaxLossAndGradient
from headeval.solver.stream import StreamSource

FORMS = [Form.WHOLE, Form.BLOCKS, Form.PRODUCT]
STEPS_OF_ROUNDING = 4  # that float32 in what stands for the Hessian may make of some thirty


@pytest.fixture(autouse=True)
def _as_if_large() -> Iterator[None]:
    """Few rows go straight to the reference; here they take the way of many."""
    with mock.patch.object(softmax, "FEW_PRODUCTS", 0):
        yield


def some_rows(
    n: int = 1200, d: int = 8, C: int = 3, *, sharpness: float = 4.0, seed: int = 0
) -> tuple[np.ndarray, np.ndarray]:
    rng = np.random.default_rng(seed)
    X = (rng.normal(size=(n, d)) * np.exp(-np.arange(d) / d) * rng.uniform(0.1, 9, (n, 1))).astype("f4")
    z = unit_vectors(X) @ rng.normal(size=(d, C)) * sharpness + rng.normal(size=C)
    y = (z + rng.gumbel(size=(n, C))).argmax(axis=1)
    y[:C] = np.arange(C)
    return X, y


def source_of(X: np.ndarray, y: np.ndarray, weights: np.ndarray | None = None) -> ArraySource:
    return ArraySource.of(X, RowColumns(y.astype(np.uint8), weights))


def fitted(X: np.ndarray, y: np.ndarray, C: int, *, l2: float, weights: np.ndarray | None = None) -> LogisticFit:
    source = source_of(X, y, weights)
    return class_optima(source, [problem_of(source.columns, l2, None)], class_start(source, l2, C))[0]


def gradient(X: np.ndarray, y: np.ndarray, W: np.ndarray, l2: float, s: np.ndarray | None = None) -> np.ndarray:
    Xa = np.column_stack([unit_vectors(X), np.ones(len(X))])
    r = special.softmax(Xa @ W.T, axis=1) - np.eye(len(W))[y]
    g: np.ndarray = (r if s is None else r * s[:, None]).T @ Xa
    g[:, :-1] += l2 * W[:, :-1]
    return g


def test_small_data_take_the_reference_itself() -> None:
    X, y = some_rows(60)
    with mock.patch.object(softmax, "FEW_PRODUCTS", 10**7):
        fit = fitted(X, y, 3, l2=1.0)
    assert fit.method == BLOCK_NEWTON
    assert fit.w.tobytes() == multinomial_fit(unit_vectors(X), y, 1.0, n_classes=3).w.tobytes()


@pytest.mark.parametrize("form", FORMS)
@pytest.mark.parametrize("l2", [0.01, 1.0, 100.0])
@pytest.mark.parametrize("weighted", [False, True])
def test_the_optimum_is_that_of_the_reference(form: Form, l2: float, weighted: bool) -> None:
    X, y = some_rows()
    weights = np.random.default_rng(2).uniform(0, 3, len(y)) if weighted else None
    with mock.patch.object(softmax, "form_of", return_value=form):
        fit = fitted(X, y, 3, l2=l2, weights=weights)
    expected = multinomial_fit(unit_vectors(X), y, l2, n_classes=3, sample_weight=weights)
    assert fit.converged
    assert fit.reason is Reason.CONVERGED
    assert fit.method in {METHOD, BLOCK_NEWTON}
    assert np.abs(gradient(X, y, fit.w, l2, weights)).max() <= 1.1 * GRADIENT_TOLERANCE
    assert fit.gradient_norm <= GRADIENT_TOLERANCE
    assert fit.loss == pytest.approx(expected.loss, rel=1e-12)
    # two points where ‖g‖₂ ≤ √27·1e-9 are apart by that over the least curvature, which is l2 or more
    np.testing.assert_allclose(fit.w, expected.w, rtol=0, atol=max(1e-8, 2 * 6e-9 / l2))
    np.testing.assert_allclose(fit.w.sum(axis=0), 0.0, rtol=0, atol=1e-10)


@pytest.mark.parametrize("form", FORMS)
def test_the_quick_way_arrives_without_newtons_help(form: Form) -> None:
    X, y = some_rows(3000, 20, 5)
    with (
        mock.patch.object(softmax, "form_of", return_value=form),
        mock.patch.object(softmax, "class_newton_on", side_effect=AssertionError),
    ):
        assert fitted(X, y, 5, l2=1.0).method == METHOD


def test_probabilities_are_those_of_scikit_learn() -> None:
    X, y = some_rows(2000, 20, 4)
    fit = fitted(X, y, 4, l2=0.5)
    U = unit_vectors(X)
    expected = LogisticRegression(C=2.0, solver="newton-cg", tol=1e-12, max_iter=10_000).fit(U, y)
    p = special.softmax(U @ fit.w[:, :-1].T + fit.w[:, -1], axis=1)
    np.testing.assert_allclose(p, expected.predict_proba(U), rtol=0, atol=1e-9)


def test_real_tweets_of_three_classes_end_at_scikit_learns_optimum_in_few_passes() -> None:
    import pyarrow.parquet as pq

    table = pq.read_table(ROOT / "sample_data" / "tweets_train.parquet")
    X = np.array(table["embedding"].combine_chunks().flatten().to_numpy(zero_copy_only=False), dtype="f4")
    X = X.reshape(len(table), -1)
    names, y = np.unique(table["label"].to_pylist(), return_inverse=True)
    source = source_of(X, y)
    start = class_start(source, 1.0, len(names))
    source.passes = 0
    fit = class_optima(source, [problem_of(source.columns, 1.0, None)], start)[0]
    assert fit.converged
    assert source.passes <= 25
    U = unit_vectors(X)
    expected = LogisticRegression(C=1.0, solver="newton-cg", tol=1e-10, max_iter=1000).fit(U, y)
    p = special.softmax(U @ fit.w[:, :-1].T + fit.w[:, -1], axis=1)
    np.testing.assert_allclose(p, expected.predict_proba(U), rtol=0, atol=1e-6)


@pytest.mark.parametrize("whole", [True, False])
@pytest.mark.parametrize("l2", [0.01, 1.0])
def test_newtons_method_arrives_from_anywhere_with_and_without_the_whole_hessian(whole: bool, l2: float) -> None:
    X, y = some_rows(500, 6)
    source = source_of(X, y)
    far = np.random.default_rng(0).normal(size=(3, 7)) * 3
    form = Form.WHOLE if whole else Form.BLOCKS
    with mock.patch("headeval.solver.softmax_exact.form_for", return_value=form):
        fit = class_newton_on(source, problem_of(source.columns, l2, None), far - far.mean(axis=0))
    assert fit.converged
    assert np.abs(gradient(X, y, fit.w.reshape(3, 7), l2)).max() <= 1.1 * GRADIENT_TOLERANCE


@pytest.mark.parametrize("form", [Form.WHOLE, Form.PRODUCT])
@pytest.mark.parametrize("l2", [0.1, 10.0])
def test_where_features_have_no_weight_what_stands_for_the_hessian_is_it(form: Form, l2: float) -> None:
    """There it is a product exactly, and its inverse undoes it to the digits of float32."""
    X, y = some_rows(800, 7, 4)
    X[:, 0] += 2.0  # so that features have a mean
    source = source_of(X, y, np.random.default_rng(2).uniform(0, 3, 800))
    W = null_class_weights(source.columns, 7, 4)
    g = np.random.default_rng(1).normal(size=(4, 8))
    g -= g.mean(axis=0)
    solve = curvature_at(source, W, form).solver(l2)
    assert solve is not None
    step = solve(g.ravel()).reshape(g.shape)
    (product,) = source.total(HessianTimes(W, step))
    product[:, :-1] += l2 * step[:, :-1]
    np.testing.assert_allclose(product, g, rtol=0, atol=2e-4)
    np.testing.assert_allclose(step.sum(axis=0), 0.0, rtol=0, atol=1e-6)


def test_blocks_are_undone_one_by_one() -> None:
    X, y = some_rows(800, 7, 4)
    source, W = source_of(X, y), np.random.default_rng(0).normal(size=(4, 8))
    solve = curvature_at(source, W, Form.BLOCKS).solver(0.5)
    assert solve is not None
    g = np.random.default_rng(1).normal(size=(4, 8))
    Xa = np.column_stack([unit_vectors(X), np.ones(800)])
    p = special.softmax(Xa @ W.T, axis=1)
    penalty = np.diag([0.5] * 7 + [0.0])
    step = np.stack([np.linalg.solve((Xa.T * q * (1 - q)) @ Xa + penalty, row) for q, row in zip(p.T, g, strict=True)])
    np.testing.assert_allclose(solve(g.ravel()).reshape(4, 8), step - step.mean(axis=0), rtol=0, atol=1e-4)


def test_without_a_penalty_the_optimum_is_found_or_that_there_is_none() -> None:
    X, y = some_rows(600, 6)
    fit, expected = fitted(X, y, 3, l2=0.0), multinomial_fit(unit_vectors(X), y, 0.0, n_classes=3)
    assert fit.converged
    np.testing.assert_allclose(fit.w, expected.w, rtol=0, atol=1e-8)
    np.testing.assert_allclose(fit.w.sum(axis=0), 0.0, rtol=0, atol=1e-12)
    separated = (unit_vectors(X) @ np.random.default_rng(9).normal(size=(6, 3))).argmax(axis=1)
    fit = fitted(X, separated, 3, l2=0.0)
    assert not fit.converged
    assert fit.reason is Reason.SEPARABLE


def test_a_class_whose_rows_are_left_out_or_weigh_nothing_has_no_optimum() -> None:
    X, y = some_rows(600, 6)
    assert fitted(X, y, 4, l2=1.0).reason is Reason.SEPARABLE
    assert fitted(X, y, 3, l2=1.0, weights=(y != 2) * 1.0).reason is Reason.SEPARABLE


def test_columns_that_depend_on_each_other_and_constant_ones_are_no_hindrance() -> None:
    X, y = some_rows(800, 6)
    X = np.column_stack([X, X[:, :2], np.zeros((800, 1)), np.full((800, 1), 3.0)])
    fit = fitted(X, y, 3, l2=0.1)
    assert fit.converged
    assert np.abs(gradient(X, y, fit.w, 0.1)).max() <= 1.1 * GRADIENT_TOLERANCE


def test_the_order_of_the_classes_only_orders_the_weights() -> None:
    X, y = some_rows(1500, 12, 5)
    order = np.array([3, 1, 4, 0, 2])
    fit, other = fitted(X, y, 5, l2=1.0), fitted(X, order[y], 5, l2=1.0)
    np.testing.assert_allclose(other.w[order], fit.w, rtol=0, atol=1e-8)


def test_a_weight_of_two_is_the_row_twice() -> None:
    X, y = some_rows(900)
    twice = np.arange(900) % 4 == 0
    fit = fitted(X, y, 3, l2=1.0, weights=1.0 + twice)
    repeated = fitted(np.concatenate([X, X[twice]]), np.concatenate([y, y[twice]]), 3, l2=1.0)
    np.testing.assert_allclose(fit.w, repeated.w, rtol=0, atol=1e-8)


def test_a_hundred_classes_are_fitted_without_a_matrix_of_all_their_weights() -> None:
    C, d = 100, 220  # C·d = 22,000; its square in float32 would take two gigabytes
    X, y = some_rows(3000, d, C, sharpness=8.0)
    y = np.where(np.bincount(y, minlength=C)[y] > 1, y, 0)
    y[:C] = np.arange(C)
    assert form_for(d, C) is Form.BLOCKS
    tracemalloc.start()
    fit = fitted(X, y, C, l2=1.0)
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert fit.converged
    assert np.abs(gradient(X, y, fit.w, 1.0)).max() <= 1.1 * GRADIENT_TOLERANCE
    assert peak < 2**28  # two copies of a hundred blocks, 40 MB, and what gradients need
    assert peak < (C * d) ** 2


def test_what_is_formed_depends_on_what_fits_into_memory() -> None:
    for d, C in [(384, 3), (384, 10), (768, 5), (384, 100), (384, 2000), (4096, 30), (20, 150)]:
        form = form_for(d, C)
        numbers = {Form.WHOLE: ((C - 1) * (d + 1)) ** 2, Form.BLOCKS: C * (d + 1) ** 2, Form.PRODUCT: d * d + C * C}
        assert numbers[form] * 4 <= 2**28
        assert C * d <= 20_000 or form is not Form.WHOLE


def test_a_rare_class_gives_enough_rows_to_a_sample_and_all_count_as_often_as_they_stand_for() -> None:
    rng = np.random.default_rng(0)
    y = rng.choice(4, 50_000, p=[0.7, 0.2, 0.098, 0.002]).astype(np.uint8)
    columns = RowColumns(y)
    chosen, s = class_sample_rows(columns, 4000, 4)
    assert (np.diff(chosen) > 0).all()
    assert len(chosen) <= 4000
    of_class = np.bincount(y[chosen], minlength=4)
    assert of_class[3] == np.count_nonzero(y == 3)
    assert of_class.min() >= min(500, of_class[3])
    np.testing.assert_allclose(np.bincount(y[chosen], weights=s), np.bincount(y), rtol=1e-12)
    weights = rng.integers(0, 3, 50_000).astype(float)
    chosen, s = class_sample_rows(RowColumns(y, weights), 4000, 4)
    for label in range(4):
        there, drawn = np.count_nonzero((y == label) & (weights > 0)), y[chosen] == label
        np.testing.assert_allclose(s[drawn], weights[chosen][drawn] * there / np.count_nonzero(drawn), rtol=1e-12)
    assert (s > 0).all()


def test_weights_without_features_are_the_logarithms_of_the_shares() -> None:
    W = null_class_weights(RowColumns(np.array([0, 0, 1, 2], dtype=np.uint8)), 1, 3)
    np.testing.assert_allclose(W, [[0, np.log(2) * 2 / 3], [0, -np.log(2) / 3], [0, -np.log(2) / 3]], atol=1e-15)


def loss_of(source: ArraySource, W: np.ndarray, l2: float) -> float:
    return float(source.total(SoftmaxLossAndGradient(W[None], (None,)))[0][0]) + 0.5 * l2 * float(
        (W[:, :-1] ** 2).sum()
    )


@pytest.mark.parametrize("form", FORMS)
def test_a_fit_starts_near_its_end(form: Form) -> None:
    """The sample's optimum leaves a small part of what there is to gain from weights without features."""
    X, y = some_rows(4000, 12, 4)
    source = source_of(X, y)
    with mock.patch.object(softmax, "form_of", return_value=form):
        start = class_start(source, 1.0, 4)
    least = multinomial_fit(unit_vectors(X), y, 1.0, n_classes=4).loss
    null = loss_of(source, null_class_weights(source.columns, 12, 4), 1.0)
    assert loss_of(source, start.W, 1.0) - least < 0.1 * (null - least)


@pytest.mark.parametrize("form", FORMS)
def test_the_hessian_of_all_rows_serves_a_share_of_them_as_well(form: Form) -> None:
    """Of every row there are four, of which the fit takes one: its way is that of all four."""
    X, y = some_rows(600)
    source = source_of(np.tile(X, (4, 1)), np.tile(y, 4))
    source.hold_out((np.arange(2400) >= 600).astype(np.int16))
    W = null_class_weights(source.columns, 8, 3)
    start = ClassStart(W, curvature_at(source, W, form), patience=100)
    steps = [class_optima(source, [problem_of(source.columns, 1e-3, fold)], start)[0].steps for fold in (None, 1)]
    assert steps[0] > 10
    assert abs(steps[1] - steps[0]) <= STEPS_OF_ROUNDING


def test_a_search_that_is_late_is_given_another_preconditioner() -> None:
    """That of where it began takes more passes than it has altogether."""
    X, y = some_rows(2400, 8, 3, sharpness=8.0)
    source = source_of(X, y)
    W = null_class_weights(source.columns, 8, 3)
    start = ClassStart(W, curvature_at(source, W, Form.WHOLE), patience=6)
    with mock.patch.object(softmax, "class_newton_on", side_effect=AssertionError):
        fit = class_optima(source, [problem_of(source.columns, 1e-2, None)], start)[0]
    assert fit.converged
    assert fit.steps > start.patience


@pytest.mark.parametrize("kind", [WholeHessian(3), HessianProducts(3)])
@pytest.mark.parametrize("left_out", [None, 1])
def test_a_newton_step_is_that_of_the_rows_and_the_penalty_that_count(kind: WholeHessian, left_out: int | None) -> None:
    X, y = some_rows(400, 6)
    folds = (np.arange(400) % 2).astype(np.int16)
    source, l2 = ArraySource.of(X, RowColumns(y.astype(np.uint8), None, folds)), 50.0
    W = np.random.default_rng(3).normal(size=(3, 7))
    W -= W.mean(axis=0)
    inside = folds != (-1 if left_out is None else left_out)
    Xa, penalty = np.column_stack([unit_vectors(X), np.ones(400)])[inside], np.tile([l2] * 6 + [0.0], 3)
    p = special.softmax(Xa @ W.T, axis=1)
    A = np.einsum("nc,ce->nce", p, np.eye(3)) - np.einsum("nc,ne->nce", p, p)
    H = np.einsum("nce,nj,nk->cjek", A, Xa, Xa).reshape(21, 21) + np.diag(penalty)
    g = np.random.default_rng(4).normal(size=(3, 7)) * 1e-7  # so small that products are followed to four digits
    g -= g.mean(axis=0)
    step = kind.step(source, problem_of(source.columns, l2, left_out), W.ravel(), g.ravel())
    assert step is not None
    expected = np.linalg.pinv(H) @ g.ravel()
    np.testing.assert_allclose(step, expected, rtol=0, atol=2e-3 * np.abs(expected).max())


def test_a_class_that_no_row_is_likely_of_leaves_what_stands_for_the_hessian_finite() -> None:
    X, y = some_rows(300, 5)
    source = source_of(X, y)
    W = np.zeros((3, 6))
    W[:, -1] = [0.0, 0.0, -900.0]
    solve = curvature_at(source, W, Form.PRODUCT).solver(1.0)
    assert solve is not None
    step = solve(np.random.default_rng(0).normal(size=18))
    assert np.isfinite(step).all()
    assert np.abs(step).max() < 1e9  # a ten-millionth of the largest curvature is taken for the least
    empty = source_of(X, y, np.zeros(300))
    solve = curvature_at(empty, np.zeros((3, 6)), Form.PRODUCT).solver(1.0)
    assert solve is not None
    assert np.isfinite(solve(np.ones(18))).all()


def test_on_a_disk_the_whole_hessian_is_formed_only_while_it_is_quickly_formed() -> None:
    assert [form_on_a_disk(d, C) for d, C in [(384, 3), (384, 6), (384, 7), (384, 10)]] == [
        Form.WHOLE,  # (C − 1)(d + 1) = 770
        Form.WHOLE,  # 1,925
        Form.BLOCKS,  # 2,310
        Form.BLOCKS,  # 3,465
    ]
    assert form_for(384, 10) is Form.WHOLE
    assert [form_on_a_disk(384, C) for C in (100, 1000)] == [Form.BLOCKS, Form.PRODUCT]
    for n, C, in_memory, on_a_disk in [(10**6, 10, Form.WHOLE, Form.BLOCKS), (100, 3, Form.BLOCKS, Form.WHOLE)]:
        columns = RowColumns(np.zeros(n, dtype=np.uint8))
        source = StreamSource(lambda _: iter(()), columns, 384, np.float32, sample_bytes=10**6)
        assert class_plan(n, 384, C).form is in_memory
        assert form_of(source, C) is on_a_disk


def test_a_sample_takes_a_quarter_of_the_rows_or_little_memory() -> None:
    for n, d, C in itertools.product([10**3, 10**4, 10**5, 10**6, 10**7], [8, 64, 384, 1024, 4096], [3, 10, 100]):
        rows = class_plan(n, d, C).rows
        assert rows == n or rows <= min(n // 2, max(n // 4, 2**27 // (4 * d))), (n, d, C)


def test_where_rows_are_on_a_disk_the_sample_is_followed_to_its_end() -> None:
    """A sample of all rows shows it: about its own optimum is left, to a tenth of a nat for each dimension."""
    X, y = some_rows(4000, 12, 4)
    far = StreamSource(lambda _: iter([X]), RowColumns(y.astype(np.uint8)), 12, X.dtype, sample_bytes=2 * X.nbytes)
    least = multinomial_fit(unit_vectors(X), y, 1.0, n_classes=4).loss
    start = class_start(far, 1.0, 4)
    assert far.passes == 1
    assert loss_of(source_of(X, y), start.W, 1.0) - least < 0.1 * 12
