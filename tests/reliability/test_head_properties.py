"""Every head, however it was fitted, and every way of fitting one has the same properties."""

import dataclasses
from collections.abc import Callable, Iterator
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from headeval.core.checks import UNKNOWN
from headeval.core.class_scaling import fit_class_temperature
from headeval.core.logistic import fit_logistic, logistic_predict_proba, logistic_regression_fit
from headeval.core.multinomial import multinomial_fit
from headeval.core.scaling import fit_platt_scaling, fit_temperature_scaling
from headeval.core.stable import sigmoid
from headeval.core.vectors import unit_vectors
from headeval.head import LinearHead
from headeval.joint_heads import JointHeads
from headeval.solver.categories import train_categories
from headeval.solver.category_sums import CategoryColumns
from headeval.solver.memory import ArraySource
from headeval.solver.optimum import optima
from headeval.solver.problems import problem_of
from headeval.solver.rows import RowColumns
from headeval.solver.softmax import class_optima, class_start
from headeval.solver.stream import StreamSource
from headeval.solver.training import Training
from reliability.property_checks import FIT_CHECKS, HEAD_CHECKS, Array, Fitting, agree, mapped, read_only, scored

D, N = 6, 200


@cache
def embeddings(n: int = N) -> Array:
    """Multiples of 1/64, the same numbers as float16, float32 and float64; no row is zero."""
    e = np.round(np.random.default_rng(0).normal(size=(n, D)) * 64) / 64
    return read_only((e + 1 / 64).astype(np.float32))


@cache
def labels(n_classes: int) -> Array:
    rng = np.random.default_rng(1)
    z = 3 * unit_vectors(embeddings()) @ rng.normal(size=(D, n_classes)) + rng.gumbel(size=(N, n_classes))
    return read_only(z.argmax(axis=1))


# --- ways to a head


def binary(w: Array) -> LinearHead:
    return LinearHead.binary(w[:-1], w[-1], classes=("safe", "unsafe"), embedding_model="m", threshold=0.4)


def softmax(W: Array) -> LinearHead:
    return LinearHead("m", ("a", "b", "c"), W[:, :-1], W[:, -1], 0.4)


def streamed(e: Array, columns: RowColumns) -> StreamSource:
    """Rows that are read anew in every pass, in blocks of 70."""
    blocks = np.split(e, range(70, len(e), 70))
    return StreamSource(lambda name: iter(blocks), columns, e.shape[1], e.dtype, sample_bytes=e.nbytes // 3)


def columns_of(y: Array) -> RowColumns:
    return RowColumns(y.astype(np.uint8))


def in_memory(e: Array, y: Array) -> LinearHead:
    return binary(optima(ArraySource.of(e, columns_of(y)), l2=1.0)[0].w)


def from_a_stream(e: Array, y: Array) -> LinearHead:
    return binary(optima(streamed(e, columns_of(y)), l2=1.0)[0].w)


def of_classes(source: Any) -> LinearHead:
    (fit,) = class_optima(source, [problem_of(source.columns, 1.0, None)], class_start(source, 1.0, 3))
    return softmax(fit.w.reshape(3, -1))


def of_a_category(e: Array, y: Array) -> LinearHead:
    """One of two categories; of the other, some labels are unknown."""
    other = np.where(e[:, 0] > e[:, 1], 1, np.where(e[:, 2] > 1, UNKNOWN, 0))
    both = np.stack([y, other]).astype(np.uint8)
    identity = np.arange(len(e))
    trained = train_categories(ArraySource.of(e, CategoryColumns(both)), penalties=(1.0,), n_folds=0, identity=identity)
    assert isinstance(trained[0], Training)
    return binary(trained[0].fit.w)


def calibrated(e: Array, y: Array, *, platt: bool) -> LinearHead:
    head = in_memory(e, y)
    if platt:
        found = fit_platt_scaling(head.logits(e), y)
        return head.with_platt(found.slope, found.intercept)
    return head.with_temperature(fit_temperature_scaling(head.logits(e), y).temperature)


def classes_calibrated(e: Array, y: Array) -> LinearHead:
    head = of_classes(ArraySource.of(e, columns_of(y)))
    return head.with_temperature(fit_class_temperature(head.class_logits(e), y).temperature)


NEWTON = 1e-10  # the last step was below 1e-12
SEARCHED = 2e-7  # the gradient is below 1e-9, of a loss whose curvature is at least l2 = 1, times √n of rounding
SCALED = 2e-6  # slope and intercept of nearly the same logits
WAYS: dict[str, Fitting] = {
    "contract": Fitting(lambda e, y: binary(logistic_regression_fit(unit_vectors(e), y, 1.0, 50)), NEWTON),
    "Newton": Fitting(lambda e, y: binary(fit_logistic(unit_vectors(e), y, l2=1.0, iters=50).w), NEWTON),
    "in memory": Fitting(in_memory, SEARCHED),
    "streamed": Fitting(from_a_stream, SEARCHED),
    "of a category": Fitting(of_a_category, SEARCHED),
    "temperature": Fitting(lambda e, y: calibrated(e, y, platt=False), SCALED),
    "Platt": Fitting(lambda e, y: calibrated(e, y, platt=True), SCALED),
}
CLASS_WAYS: dict[str, Fitting] = {
    "softmax Newton": Fitting(
        lambda e, y: softmax(multinomial_fit(unit_vectors(e), y, l2=1.0, n_classes=3, iters=50).w.reshape(3, -1)),
        NEWTON,
    ),
    "softmax": Fitting(lambda e, y: of_classes(ArraySource.of(e, columns_of(y))), SEARCHED),
    "softmax streamed": Fitting(lambda e, y: of_classes(streamed(e, columns_of(y))), SEARCHED),
    "softmax temperature": Fitting(classes_calibrated, SCALED),
}
ALL_WAYS = WAYS | CLASS_WAYS


def labels_for(name: str) -> Array:
    return labels(3 if name in CLASS_WAYS else 2)


@pytest.fixture
def as_if_many(monkeypatch: pytest.MonkeyPatch) -> None:
    """Few rows are fitted by Newton's method; here they take the way of many."""
    for name in ("optimum.FEW_DIMENSIONS", "optimum.FEW_PRODUCTS", "softmax.FEW_PRODUCTS", "categories.FEW_NUMBERS"):
        monkeypatch.setattr(f"headeval.solver.{name}", 0)
    monkeypatch.setattr("headeval.solver.memory._CACHED", 0)  # nor are they copied


@pytest.mark.parametrize("name", ALL_WAYS)
def test_a_way_of_fitting_has_the_properties_of_all(name: str, tmp_path: Path) -> None:
    for check in FIT_CHECKS.values():
        check(name, ALL_WAYS[name], embeddings(), labels_for(name), tmp_path)


@pytest.mark.usefixtures("as_if_many")
@pytest.mark.parametrize("name", [name for name in ALL_WAYS if "ewton" not in name and name != "contract"])
def test_the_way_of_many_rows_has_them_too(name: str, tmp_path: Path) -> None:
    for check in FIT_CHECKS.values():
        check(name, ALL_WAYS[name], embeddings(), labels_for(name), tmp_path)


def test_all_ways_with_the_same_loss_lead_to_the_same_head() -> None:
    for names in (("contract", "Newton", "in memory", "streamed", "of a category"), tuple(CLASS_WAYS)[:3]):
        found = [scored(ALL_WAYS[name].fit(embeddings(), labels_for(name)), embeddings())[2] for name in names]
        for probabilities in found[1:]:
            np.testing.assert_allclose(probabilities, found[0], atol=1e-7)


# --- heads


def heads() -> dict[str, LinearHead]:
    fitted = {name: way.fit(embeddings(), labels_for(name)) for name, way in ALL_WAYS.items()}
    rng = np.random.default_rng(5)
    whole = LinearHead("m", ("a", "b"), rng.normal(size=(2, D)), rng.normal(size=2), 0.0)
    return fitted | {
        "two free classes": whole,
        "huge": dataclasses.replace(whole, W=whole.W * 1e300, threshold=1.0),
        "tiny": dataclasses.replace(whole, W=whole.W * 1e-300, b=whole.b * 0),
        "zero": dataclasses.replace(whole, W=whole.W * 0),
    }


@pytest.fixture(scope="module")
def every_head() -> dict[str, LinearHead]:
    return heads()


@pytest.mark.parametrize("check", HEAD_CHECKS)
def test_a_head_has_the_properties_of_all(check: str, every_head: dict[str, LinearHead], tmp_path: Path) -> None:
    for number, (name, head) in enumerate(every_head.items()):
        (tmp_path / str(number)).mkdir()
        HEAD_CHECKS[check](name, head, embeddings()[:24], tmp_path / str(number))


def test_heads_that_score_together_have_them_too(every_head: dict[str, LinearHead], tmp_path: Path) -> None:
    joint, e = JointHeads(list(every_head.values())), embeddings()[:24]
    logits, each = joint.logits(e), joint.class_logits(e)
    for place, head in enumerate(every_head.values()):
        agree([logits[:, place], each[place]], [head.logits(e), head.class_logits(e)], 0, list(every_head)[place])
    agree(np.concatenate([joint.logits(e[k : k + 1]) for k in range(24)]), logits, 0, "row by row")
    for same in (mapped(e, tmp_path), np.asfortranarray(e), e[::-1][::-1], e.astype(">f8"), e.astype("f2"), e.tolist()):
        agree(joint.logits(same), logits, 0, "another form")
    agree(joint.logits(np.ldexp(e, 40)), logits, 0, "another length")


REFUSED: dict[str, Callable[[Array], Any]] = {
    "objects": lambda e: e.astype(object),
    "text": lambda e: e.astype(str),
    "complex": lambda e: e.astype(complex),
    "dates": lambda e: e.astype("i8").astype("M8[s]"),
    "NaN": lambda e: np.where(e == e[3, 2], np.nan, e),
    "infinite": lambda e: np.where(e == e[3, 2], np.inf, e),
    "one row": lambda e: e[0],
    "one column too few": lambda e: e[:, 1:],
    "one axis too many": lambda e: e[None],
}


@pytest.mark.parametrize("what", REFUSED)
def test_what_is_no_table_of_numbers_is_refused_in_a_sentence(what: str) -> None:
    head = in_memory(embeddings(), labels(2))
    for function in (head.logits, head.class_logits, head.probs, head.probabilities, head.flagged):
        with pytest.raises(ValueError, match="embeddings must "):
            function(REFUSED[what](embeddings()))
    with pytest.raises(ValueError, match="embeddings must "):
        JointHeads([head, head]).logits(REFUSED[what](embeddings()))


# --- the two functions of the contract, whose features are no unit vectors


def test_features_of_another_scale_give_weights_of_the_other_one() -> None:
    """With the penalty in the same unit; powers of two change no bit, others only round."""
    X, y = embeddings().astype("f8"), labels(2)
    w = logistic_regression_fit(X, y, 1.0, 50)
    for scale, tolerance in ((2.0**20, 1e-9), (2.0**-20, 1e-9), (1000.0, 1e-9)):
        scaled = logistic_regression_fit(X * scale, y, scale**2, 50)
        np.testing.assert_allclose(scaled[:-1] * scale, w[:-1], rtol=tolerance, atol=tolerance)
        np.testing.assert_allclose(scaled[-1], w[-1], rtol=tolerance, atol=tolerance)


def forms(array: Array, folder: Path, number: int) -> Iterator[Any]:
    yield from (read_only(array), mapped(array, folder, number), array[::-1].copy()[::-1], array.astype(">f8"))
    yield from (np.asfortranarray(array), array.tolist())


def test_the_functions_of_the_contract_take_arrays_of_any_form(tmp_path: Path) -> None:
    X, y = embeddings(), labels(2).astype("f4")
    w = logistic_regression_fit(X, y, 1.0, 50)
    p = logistic_predict_proba(X, w)
    for features, outcomes in zip(forms(X, tmp_path, 0), forms(y, tmp_path, 1), strict=True):
        found = logistic_regression_fit(features, outcomes, 1.0, 50)
        np.testing.assert_allclose(
            found, w, rtol=1e-12, atol=1e-12
        )  # BLAS adds in another order where columns come first
        np.testing.assert_allclose(logistic_predict_proba(features, w), p, rtol=1e-14)
    assert logistic_regression_fit(X, y, 1.0, 50).tobytes() == w.tobytes()


def test_its_probability_rises_with_the_logit_and_is_that_of_each_row() -> None:
    X = embeddings()
    w = logistic_regression_fit(X, labels(2), 1.0, 50)
    p = logistic_predict_proba(X, w)
    z = X.astype("f8") @ w[:-1] + w[-1]
    assert (np.diff(p[np.argsort(z)]) >= -1e-15).all()
    alone = np.concatenate([logistic_predict_proba(X[k : k + 1], w) for k in range(len(X))])
    np.testing.assert_allclose(alone, p, rtol=1e-14)
    np.testing.assert_allclose(p, sigmoid(z), rtol=1e-14)
