"""LinearHead computes what the file format promises, for each embedding alone."""

import math
import pickle
import tracemalloc
from collections.abc import Callable
from dataclasses import FrozenInstanceError, replace
from fractions import Fraction
from typing import Any

import mpmath
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.typing import NDArray
from scipy.special import expit, log_softmax, softmax

from headeval.head import LinearHead

ROUNDING = 1e-12  # a few hundred additions of numbers near one, each off by 1e-16 at most
TWO = ("safe", "unsafe")
Floats = NDArray[np.float64]


def golden() -> LinearHead:
    return LinearHead("model", TWO, W=[[0, 0], [1, 2]], b=[0, -1], threshold=0.5)  # type: ignore[arg-type]


def random_head(seed: int, *, dim: int, n_classes: int) -> LinearHead:
    rng = np.random.default_rng(seed)
    W, b = rng.normal(size=(n_classes, dim)), rng.normal(size=n_classes)
    return LinearHead("model", tuple(f"class {c}" for c in range(n_classes)), W, b, 0.5)


def binary_head(seed: int, *, dim: int, **options: Any) -> LinearHead:
    rng = np.random.default_rng(seed)
    return LinearHead.binary(rng.normal(size=dim), rng.normal(), classes=TWO, embedding_model="model", **options)


def embeddings_of(seed: int, n: int, dim: int) -> Floats:
    return np.random.default_rng(seed).normal(size=(n, dim))


# --- the numbers


@pytest.mark.parametrize("e", [(3, 4), (0.03, 0.04), (300, 400), (3e-200, 4e-200), (3e200, 4e200)])
def test_the_hand_checked_head_scores_1_2_whatever_the_length_of_the_embedding(e: tuple[float, float]) -> None:
    """Pitfall 14: scoring on vectors that are not unit length."""
    head = golden()
    assert head.class_logits([e]) == pytest.approx(np.array([[0.0, 1.2]]), abs=ROUNDING)
    assert head.logits([e]) == pytest.approx([1.2], abs=ROUNDING)
    assert head.probs([e]) == pytest.approx([0.768525], abs=5e-7)
    assert head.probabilities([e]) == pytest.approx(np.array([[1 - 0.768525, 0.768525]]), abs=5e-7)


def test_the_zero_embedding_stays_zero_and_scores_the_intercepts() -> None:
    """Pitfall 14: a zero vector divided by its length would be NaN, and NaN is never flagged."""
    head = golden()
    assert head.class_logits([[0.0, 0.0]]).tolist() == [[0.0, -1.0]]
    assert head.probabilities([[0.0, 0.0]]) == pytest.approx(np.array([[0.731059, 0.268941]]), abs=5e-7)


def test_pitfall_11_the_intercept_is_added_and_is_not_the_first_weight() -> None:
    head = LinearHead.binary([5.0, 7.0], 11.0, classes=TWO, embedding_model="model")
    assert head.W.tolist() == [[0.0, 0.0], [5.0, 7.0]]
    assert head.b.tolist() == [0.0, 11.0]
    assert head.logits([[2.0, 0.0], [0.0, -3.0], [0.0, 0.0]]).tolist() == [16.0, 4.0, 11.0]


def test_a_binary_logit_is_w_u_plus_c_to_the_last_bit() -> None:
    """Exact where every step is exact: u = (0.6, 0.8) has no exact form, but (1, 0) and (0, −1) have."""
    w, c = (0.1, 1 / 3), -0.7
    head = LinearHead.binary(w, c, classes=TWO, embedding_model="model")
    assert head.logits([[123.0, 0.0], [0.0, -0.001]]).tolist() == [w[0] + c, -w[1] + c]


@given(st.integers(0, 10**6), st.sampled_from([1, 2, 5, 40]), st.integers(2, 6))
@settings(max_examples=40)
def test_logits_and_probabilities_agree_with_exact_arithmetic(seed: int, dim: int, n_classes: int) -> None:
    head = random_head(seed, dim=dim, n_classes=n_classes)
    (e,) = embeddings_of(seed + 1, 1, dim)
    with mpmath.workdps(50):
        norm = mpmath.sqrt(mpmath.fsum(mpmath.mpf(x) ** 2 for x in e))
        z = [mpmath.fsum([mpmath.mpf(w) * x / norm for w, x in zip(row, e, strict=True)] + [b])
             for row, b in zip(head.W.tolist(), head.b.tolist(), strict=True)]  # fmt: skip
        p = [mpmath.exp(value) for value in z]
        total = mpmath.fsum(p)
        odds = mpmath.log(p[-1] / (total - p[-1]))
    assert head.class_logits([e])[0] == pytest.approx(np.array(z, dtype=float), abs=ROUNDING)
    assert head.probabilities([e])[0] == pytest.approx(np.array([float(x / total) for x in p]), abs=ROUNDING)
    assert head.logits([e]) == pytest.approx([float(odds)], abs=ROUNDING)
    assert head.probs([e]) == pytest.approx([float(p[-1] / total)], abs=ROUNDING)


@pytest.mark.parametrize("n_classes", [2, 3, 7])
def test_probabilities_are_a_softmax_and_the_last_column_is_the_sigmoid_of_the_logit(n_classes: int) -> None:
    head = random_head(1, dim=16, n_classes=n_classes)
    e = embeddings_of(2, 50, 16)
    u = e / np.linalg.norm(e, axis=1, keepdims=True)
    z = u @ head.W.T + head.b
    assert head.probabilities(e) == pytest.approx(softmax(z, axis=1), abs=ROUNDING)
    assert head.probs(e) == pytest.approx(softmax(z, axis=1)[:, -1], abs=ROUNDING)
    assert head.probs(e) == pytest.approx(expit(head.logits(e)), abs=ROUNDING)
    log_p = log_softmax(z, axis=1)
    others = np.log(np.exp(log_p[:, :-1]).sum(axis=1))
    assert head.logits(e) == pytest.approx(log_p[:, -1] - others, abs=ROUNDING)


def test_the_last_class_is_the_flagged_one_and_equality_flags() -> None:
    head = LinearHead("m", ("a", "b", "c"), np.zeros((3, 2)), np.array([9.0, 0.0, 0.0]), 0.5)
    assert head.flagged([[1.0, 0.0]]).tolist() == [False]
    for threshold, flagged in [(0.5, True), (math.nextafter(0.5, 1), False), (0.0, True), (1.0, False)]:
        even = LinearHead.binary([0.0, 1.0], 0.0, classes=TWO, embedding_model="m", threshold=threshold)
        assert even.flagged([[1.0, 0.0]]).tolist() == [flagged]  # p = sigmoid(0) = 0.5 exactly
    assert even.flagged([[1.0, 0.0]]).dtype == np.bool_


def test_saturated_probabilities_still_have_their_own_logits() -> None:
    head = LinearHead.binary([800.0, 900.0], 0.0, classes=TWO, embedding_model="m")
    e = [[1.0, 0.0], [0.0, 1.0], [-1.0, 0.0]]
    assert head.probs(e).tolist() == [1.0, 1.0, 0.0]
    assert head.logits(e).tolist() == [800.0, 900.0, -800.0]
    shifted = LinearHead("m", ("a", "b", "c"), np.zeros((3, 1)), np.array([-1000.0, -1001.0, 0.0]), 0.5)
    assert shifted.logits([[1.0]]) == pytest.approx([1000.0 - math.log1p(math.exp(-1.0))], abs=ROUNDING)


@pytest.mark.parametrize("n_classes", [2, 3])
def test_weights_at_the_edge_of_float64_never_score_nan(n_classes: int) -> None:
    """A NaN would compare as "below the threshold": such an input would pass unflagged."""
    largest = np.finfo(np.float64).max
    W = np.full((n_classes, 64), largest)
    W[0], W[1, ::2] = -largest, -largest
    W[1, 0] = largest
    head = LinearHead("m", tuple(map(str, range(n_classes))), W, np.full(n_classes, largest), 0.5)
    e = np.vstack([np.ones(64), -np.ones(64), np.eye(64)[:3], np.zeros(64), embeddings_of(0, 20, 64)])
    for values in (head.class_logits(e), head.logits(e), head.probs(e), head.probabilities(e)):
        assert np.isfinite(values).all()
    # Cancellation to a moderate logit survives: w·u = largest·(0.6 − 0.6) with partial sums far beyond the range.
    cancelling = LinearHead.binary([largest, largest, -largest, -largest], 1.0, classes=TWO, embedding_model="m")
    assert cancelling.logits([[1.0, 1.0, 1.0, 1.0]]).tolist() == [1.0]


def test_large_but_ordinary_weights_are_not_rescaled_inexactly() -> None:
    w = [2.0**901 * 1.1, 2.0**-1000]
    head = LinearHead.binary(w, 0.0, classes=TWO, embedding_model="m")
    assert head.logits([[1.0, 0.0], [-1.0, 0.0]]).tolist() == [w[0], -w[0]]


# --- each row alone


@pytest.mark.parametrize("dim", [1, 2, 7, 8, 9, 100, 384, 768, 1000])
@pytest.mark.parametrize("n_classes", [2, 3])
def test_a_row_scores_the_same_bits_alone_in_chunks_and_in_a_batch(dim: int, n_classes: int) -> None:
    """A matrix product fails this: BLAS adds up a single row in another order than many."""
    head = random_head(dim, dim=dim, n_classes=n_classes)
    n = 2 * (2**17 // 1000) + 3  # more than one block at the larger dims
    e = embeddings_of(dim + 1, n, dim)
    functions: list[Callable[[Floats], Floats]] = [head.class_logits, head.logits, head.probs, head.probabilities]
    for function in functions:
        whole = function(e)
        assert np.array_equal(np.concatenate([function(e[i : i + 1]) for i in range(n)]), whole)
        assert np.array_equal(np.concatenate([function(e[i : i + 10]) for i in range(0, n, 10)]), whole)


def test_the_memory_layout_of_the_embeddings_changes_no_bit() -> None:
    head = binary_head(3, dim=96)
    e = embeddings_of(4, 500, 96).astype(np.float32)
    expected = head.logits(e)
    double = e.astype(np.float64)
    wide = np.zeros((500, 192))
    wide[:, ::2] = double
    for same in (double, np.asfortranarray(double), wide[:, ::2], double[::-1][::-1], e.tolist()):
        assert np.array_equal(head.logits(same), expected)
    assert np.array_equal(head.logits(double[::-1]), expected[::-1])


def test_memory_stays_bounded_however_many_rows_there_are() -> None:
    head = binary_head(5, dim=256)
    e = np.ones((40_000, 256), dtype=np.float32)  # 82 MB as float64
    tracemalloc.start()
    try:
        head.logits(e)
        _, peak = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    assert peak < 16_000_000


@pytest.mark.parametrize("n_classes", [2, 4])
def test_no_rows_give_empty_results_of_the_right_shape(n_classes: int) -> None:
    head = random_head(0, dim=3, n_classes=n_classes)
    none = np.empty((0, 3))
    assert head.class_logits(none).shape == head.probabilities(none).shape == (0, n_classes)
    assert head.logits(none).shape == head.probs(none).shape == head.flagged(none).shape == (0,)


@pytest.mark.parametrize(
    "embeddings",
    [
        [1.0, 2.0],
        [[1.0, 2.0, 3.0]],
        [[1.0]],
        [[[1.0, 2.0]]],
        [[1.0, math.nan]],
        [[math.inf, 0.0]],
        [[1.0, 2.0]] * 70_000 + [[math.nan, 0.0]],
        [["1", "2"]],
    ],
    ids=["one row", "too wide", "too narrow", "3-D", "NaN", "infinite", "NaN in a later block", "text"],
)
def test_embeddings_that_do_not_fit_are_refused_and_never_scored(embeddings: Any) -> None:
    with pytest.raises(ValueError, match="embeddings must"):
        golden().probs(embeddings)


# --- calibration folded in


def test_a_temperature_divides_the_logits() -> None:
    head = replace(random_head(6, dim=20, n_classes=3), metrics={"auc": 0.9}, threshold=0.25)
    e = embeddings_of(7, 30, 20)
    calibrated = head.with_temperature(2.5)
    assert calibrated.class_logits(e) == pytest.approx(head.class_logits(e) / 2.5, abs=ROUNDING)
    assert calibrated.W.tolist() == [[w / 2.5 for w in row] for row in head.W.tolist()]
    assert (calibrated.threshold, calibrated.metrics) == (0.25, {"auc": 0.9})
    assert head.with_temperature(1.0) == head


def test_platt_scaling_is_affine_in_the_logit() -> None:
    """Also for a head whose class 0 is not the zero reference; the result has the zero reference."""
    rng = np.random.default_rng(8)
    head = LinearHead("m", TWO, rng.normal(size=(2, 12)), rng.normal(size=2), 0.25, {"auc": 0.9})
    e = embeddings_of(9, 30, 12)
    calibrated = head.with_platt(1.5, 0.75)
    assert calibrated.logits(e) == pytest.approx(1.5 * head.logits(e) + 0.75, abs=ROUNDING)
    assert not calibrated.W[0].any()
    assert calibrated.b[0] == 0.0
    assert (calibrated.threshold, calibrated.metrics) == (0.25, {"auc": 0.9})


def test_platt_scaling_of_a_binary_head_by_hand() -> None:
    head = golden().with_platt(2.0, 0.5)
    assert head.W.tolist() == [[0.0, 0.0], [2.0, 4.0]]
    assert head.b.tolist() == [0.0, -1.5]  # 2·(−1) + 0.5


@pytest.mark.parametrize("temperature", [0.0, -1.0, math.nan, math.inf, 1e-320, "x"])
def test_an_impossible_temperature_is_refused(temperature: Any) -> None:
    with pytest.raises(ValueError, match=r"temperature|W must be finite"):
        golden().with_temperature(temperature)


def test_impossible_platt_parameters_are_refused() -> None:
    for slope, intercept in [(math.nan, 0.0), (math.inf, 0.0), (1.0, math.nan), (1.0, -math.inf), (1e308, 0.0)]:
        with pytest.raises(ValueError, match="must be"):
            golden().with_platt(slope, intercept)
    with pytest.raises(ValueError, match="exactly two classes, the head has 3"):
        random_head(0, dim=2, n_classes=3).with_platt(1.0, 0.0)


# --- the value


def test_arrays_are_copied_float64_and_read_only() -> None:
    W, b = np.ones((2, 3), dtype=np.float32, order="F"), np.zeros(2)
    head = LinearHead("m", TWO, W, b, 0.5)  # type: ignore[arg-type]
    W[0, 0], b[0] = 9.0, 9.0
    assert head.W[0, 0] == 1.0
    assert head.b[0] == 0.0
    assert head.W.dtype == head.b.dtype == np.float64
    assert b.flags.writeable
    for array in (head.W, head.b):
        with pytest.raises(ValueError, match="read-only"):
            array[0] = 1.0
    with pytest.raises(FrozenInstanceError):
        head.threshold = 0.9  # type: ignore[misc]


def test_metrics_are_copied_deeply() -> None:
    metrics = {"runs": [1, 2]}
    head = replace(golden(), metrics=metrics)
    metrics["runs"].append(3)
    assert head.metrics == {"runs": [1, 2]}
    assert golden().metrics == {}


BROKEN: dict[str, dict[str, Any]] = {
    "empty model": {"embedding_model": ""},
    "model is no string": {"embedding_model": None},
    "model is no Unicode": {"embedding_model": "a\ud800"},
    "one class": {"classes": ("unsafe",), "W": [[1, 2]], "b": [1]},
    "same class twice": {"classes": ("unsafe", "unsafe")},
    "empty class": {"classes": ("", "unsafe")},
    "class is no string": {"classes": (0, 1)},
    "class is no Unicode": {"classes": ("a", "\udfff")},
    "classes are one string": {"classes": "ab"},
    "flat W": {"W": [1, 2]},
    "ragged W": {"W": [[0, 0], [1]]},
    "W without columns": {"W": [[], []]},
    "W with a row too many": {"W": [[0, 0], [1, 2], [3, 4]]},
    "W not finite": {"W": [[0, 0], [1, math.nan]]},
    "W is text": {"W": [["0", "0"], ["1", "2"]]},
    "W is complex": {"W": [[0, 0], [1, 2j]]},
    "b too long": {"b": [0, 0, -1]},
    "b in a column": {"b": [[0], [-1]]},
    "b not finite": {"b": [0, math.inf]},
    "threshold below 0": {"threshold": -1e-9},
    "threshold above 1": {"threshold": 1.0000001},
    "threshold NaN": {"threshold": math.nan},
    "threshold is a bool": {"threshold": True},
    "threshold is None": {"threshold": None},
    "metrics are a list": {"metrics": [1]},
}


@pytest.mark.parametrize("change", BROKEN.values(), ids=BROKEN.keys())
def test_a_broken_contract_is_a_value_error(change: dict[str, Any]) -> None:
    fields: dict[str, Any] = {
        "embedding_model": "m", "classes": TWO, "W": [[0, 0], [1, 2]], "b": [0, -1], "threshold": 0.5,
    }  # fmt: skip
    LinearHead(**fields)
    with pytest.raises(ValueError):
        LinearHead(**fields | change)


def test_a_binary_head_needs_two_classes_and_flat_weights() -> None:
    with pytest.raises(ValueError, match="w must be 1-D"):
        LinearHead.binary([[1.0, 2.0]], 0.0, classes=TWO, embedding_model="m")
    with pytest.raises(ValueError, match="W must have shape"):
        LinearHead.binary([1.0, 2.0], 0.0, classes=("a", "b", "c"), embedding_model="m")  # type: ignore[arg-type]


def test_binary_hands_threshold_and_metrics_through() -> None:
    head = binary_head(0, dim=3, threshold=0.125, metrics={"n": 7})
    assert (head.threshold, head.metrics, head.dim, head.classes) == (0.125, {"n": 7}, 3, TWO)
    assert binary_head(0, dim=3).threshold == 0.5


CHANGES: dict[str, dict[str, Any]] = {
    "model": {"embedding_model": "other"},
    "classes": {"classes": ("unsafe", "safe")},
    "one bit of W": {"W": [[0, 0], [1, math.nextafter(2, 3)]]},
    "the sign of a zero in W": {"W": [[-0.0, 0], [1, 2]]},
    "the sign of a zero in b": {"b": [-0.0, -1]},
    "shape": {"W": [[0], [1]]},
    "threshold": {"threshold": 0.25},
    "a metric": {"metrics": {"auc": 0.5}},
    "the type of a metric": {"metrics": {"auc": 1}},
    "a bool for a metric": {"metrics": {"auc": True}},
    "more metrics": {"metrics": {"auc": 1.0, "n": 3}},
    "no metrics": {"metrics": {}},
}


@pytest.mark.parametrize("change", CHANGES.values(), ids=CHANGES.keys())
def test_heads_are_equal_only_when_every_bit_is(change: dict[str, Any]) -> None:
    head, twin = (replace(golden(), metrics={"auc": 1.0}) for _ in range(2))
    assert head == twin
    assert hash(head) == hash(twin)
    assert replace(head, **change) != head
    assert head != "a head"


def test_equality_looks_into_nested_metrics() -> None:
    def with_metrics(value: Any) -> LinearHead:
        return replace(golden(), metrics={"a": [{"b": value}, math.nan]})

    assert with_metrics(0.0) == with_metrics(0.0)
    assert with_metrics(0.0) != with_metrics(-0.0)
    assert with_metrics([1, 2]) != with_metrics([1])
    assert with_metrics([1, 2]) != with_metrics([2, 1])


def test_the_repr_names_the_head_without_its_numbers() -> None:
    head = binary_head(0, dim=384, metrics={"n": 10, "auc": 0.9})
    assert repr(head) == (
        "LinearHead(embedding_model='model', classes=('safe', 'unsafe'), dim=384, threshold=0.5, metrics=['auc', 'n'])"
    )


def test_a_head_survives_pickling() -> None:
    head = binary_head(0, dim=3, metrics={"n": 10})
    assert pickle.loads(pickle.dumps(head)) == head  # noqa: S301 - its own output


def test_exact_fractions_confirm_the_sum_of_a_row() -> None:
    """Entries that are dyadic on a unit vector (±0.5 four times) make w·u + c exact in any order."""
    w, c = [1.25, -3.5, 0.75, 8.0], 0.125
    u = [Fraction(1, 2), Fraction(-1, 2), Fraction(1, 2), Fraction(1, 2)]
    expected = sum((Fraction(x) * y for x, y in zip(w, u, strict=True)), Fraction(c))
    head = LinearHead.binary(w, c, classes=TWO, embedding_model="m")
    assert Fraction(head.logits([[7.0, -7.0, 7.0, 7.0]])[0]) == expected
