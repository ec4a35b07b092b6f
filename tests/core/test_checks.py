"""Every broken argument of a public function is a ValueError that names it; every sound spelling is accepted."""

from collections.abc import Callable
from functools import partial
from typing import Any

import numpy as np
import pytest

from headeval.core import checks
from headeval.core.calibration import ece, reliability_bins, reliability_table
from headeval.core.logistic import fit_logistic, logistic_predict_proba, logistic_regression_fit
from headeval.core.proper_scores import brier_score, log_loss, log_loss_from_logits
from headeval.core.ranking import average_precision, pr_curve, roc_auc, roc_curve
from headeval.core.scaling import fit_platt_scaling, fit_temperature, fit_temperature_scaling
from headeval.core.thresholds import ConfusionCounts, confusion_counts

X = [[1.0, 0.0], [0.0, 1.0], [1.0, 1.0], [-1.0, 0.5]]
Y = [1, 0, 1, 0]
SCORES = [0.9, 0.2, 0.4, 0.6]
TWO_COLUMNS = [[0.0, 1.0], [0.0, -1.0], [0.0, -0.5], [0.0, 0.5]]

Call = Callable[..., Any]


def fit(X: Any = X, y: Any = Y, l2: Any = 1.0, iters: Any = 5) -> Any:
    return logistic_regression_fit(X, y, l2, iters)


def fit_story(X: Any = X, y: Any = Y, l2: Any = 1.0, iters: Any = 5, **options: Any) -> Any:
    return fit_logistic(X, y, l2=l2, iters=iters, **options)


NAN, INF = float("nan"), float("inf")
FITS: list[Call] = [fit, fit_story]
RANKINGS: list[Call] = [roc_curve, roc_auc]
POSITIVES: list[Call] = [pr_curve, average_precision]
SCORED: list[Call] = [*RANKINGS, *POSITIVES, partial(confusion_counts, threshold=0.5)]
SCALINGS: list[Call] = [fit_temperature_scaling, fit_platt_scaling]
BINNED: list[Call] = [
    ece,
    reliability_bins,
    reliability_table,
    partial(reliability_table, convention="top-label-left"),
    partial(reliability_table, convention="positive-class"),
    partial(reliability_table, binning="equal-mass"),
]
PROBABLE: list[Call] = [*BINNED, brier_score, log_loss]
ON_SCORES: list[Call] = [*SCORED, *PROBABLE, *SCALINGS, log_loss_from_logits]

BAD_LABELS = [
    pytest.param([1, 0, 1, 2], id="2"),
    pytest.param([1, 0, 1, 0.5], id="half"),
    pytest.param([1, 0, 1, -1], id="minus one"),
    pytest.param([1, 0, 1, NAN], id="nan"),
    pytest.param([1, 0, 1, INF], id="inf"),
    pytest.param(["1", "0", "1", "0"], id="strings"),
    pytest.param([1, 0, 1, None], id="none"),
    pytest.param([1, 0, 1, 1j], id="complex"),
    pytest.param([1, 0, 1], id="short"),
    pytest.param([1, 0, 1, 0, 1], id="long"),
    pytest.param([], id="empty"),
    pytest.param([[1], [0], [1], [0]], id="column"),
    pytest.param(1, id="scalar"),
]


def named(function: Call) -> str:
    if isinstance(function, partial):
        return f"{function.func.__name__}-{'-'.join(map(str, function.keywords.values()))}"
    return function.__name__


@pytest.mark.parametrize("labels", BAD_LABELS)
@pytest.mark.parametrize("function", ON_SCORES, ids=named)
def test_labels_that_are_not_zeros_and_ones_of_the_right_length_are_refused(function: Call, labels: Any) -> None:
    with pytest.raises(ValueError, match="labels"):
        function(SCORES, labels)


@pytest.mark.parametrize("labels", BAD_LABELS)
@pytest.mark.parametrize("function", FITS, ids=named)
def test_labels_of_a_fit_are_refused_alike(function: Call, labels: Any) -> None:
    with pytest.raises(ValueError, match="labels"):
        function(y=labels)


@pytest.mark.parametrize("labels", BAD_LABELS[1:])
def test_labels_of_a_temperature_are_refused_alike(labels: Any) -> None:
    three = [[*row, 0.0] for row in TWO_COLUMNS]
    with pytest.raises(ValueError, match="labels"):
        fit_temperature(three, labels)


@pytest.mark.parametrize("label", [3, -1])
def test_labels_beyond_the_classes_are_refused(label: int) -> None:
    three = [[*row, 0.0] for row in TWO_COLUMNS]
    with pytest.raises(ValueError, match="from 0 to 2, got"):
        fit_temperature(three, [0, 1, 2, label])
    with pytest.raises(ValueError, match="from 0 to 2, got"):
        ece([[0.2, 0.3, 0.5]] * 4, [0, 1, 2, label])


@pytest.mark.parametrize("labels", [[1, 1, 1, 1], [0, 0, 0, 0]])
@pytest.mark.parametrize("function", [*RANKINGS, *SCALINGS], ids=named)
def test_one_class_is_refused_where_two_are_compared(function: Call, labels: list[int]) -> None:
    with pytest.raises(ValueError, match="both classes"):
        function(SCORES, labels)


@pytest.mark.parametrize("function", POSITIVES, ids=named)
def test_precision_needs_a_positive(function: Call) -> None:
    with pytest.raises(ValueError, match="at least one positive"):
        function(SCORES, [0, 0, 0, 0])


@pytest.mark.parametrize(
    "scores",
    [
        pytest.param([0.9, 0.2, 0.4, NAN], id="nan"),
        pytest.param([0.9, 0.2, 0.4, INF], id="inf"),
        pytest.param([0.9, 0.2, 0.4, -INF], id="minus inf"),
        pytest.param(["0.9", "0.2", "0.4", "0.6"], id="strings"),
        pytest.param([0.9, 0.2, 0.4, None], id="none"),
        pytest.param(0.9, id="scalar"),
        pytest.param(np.zeros((2, 2, 2)), id="3-D"),
    ],
)
@pytest.mark.parametrize("function", ON_SCORES, ids=named)
def test_scores_that_are_not_a_finite_row_of_numbers_are_refused(function: Call, scores: Any) -> None:
    with pytest.raises(ValueError, match=r"scores|probs|logits"):
        function(scores, Y)


@pytest.mark.parametrize("function", [*SCORED, *SCALINGS, log_loss_from_logits, brier_score, log_loss], ids=named)
def test_a_column_of_scores_is_refused(function: Call) -> None:
    with pytest.raises(ValueError, match="must be 1-D"):
        function([[s] for s in SCORES], Y)


@pytest.mark.parametrize(
    "function",
    [f for f in ON_SCORES if named(f) not in {"reliability_table-top-label-left", "confusion_counts-0.5"}],
    ids=named,
)
def test_no_rows_are_refused(function: Call) -> None:
    with pytest.raises(ValueError, match=r"at least one|both classes"):
        function([], [])


@pytest.mark.parametrize("p", [-1e-9, 1 + 1e-9, 2.0, -1.0])
@pytest.mark.parametrize("function", PROBABLE, ids=named)
def test_probabilities_outside_zero_to_one_are_refused(function: Call, p: float) -> None:
    with pytest.raises(ValueError, match=r"probs must lie in \[0, 1\]"):
        function([0.5, 0.5, 0.5, p], Y)


@pytest.mark.parametrize("n_bins", [0, -1, 2.5, 2.0, "2", True, NAN, np.array([1, 2]), np.array(2.0), np.float64(2)])
@pytest.mark.parametrize("function", BINNED, ids=named)
def test_a_number_of_bins_that_is_no_positive_integer_is_refused(function: Call, n_bins: Any) -> None:
    with pytest.raises(ValueError, match="n_bins must be"):
        function(SCORES, Y, n_bins=n_bins)


@pytest.mark.parametrize("convention", ["top-label-left", "positive-class"])
def test_a_column_for_each_class_is_for_top_label_only(convention: Any) -> None:
    with pytest.raises(ValueError, match="must be 1-D"):
        reliability_table([[0.5, 0.5]], [0], convention=convention)


@pytest.mark.parametrize("shape", [(4, 1), (4, 0)])
def test_probabilities_of_fewer_than_two_classes_are_refused(shape: tuple[int, int]) -> None:
    with pytest.raises(ValueError, match="at least 2 classes"):
        ece(np.zeros(shape), [0, 0, 0, 0])


def test_names_of_conventions_are_never_guessed() -> None:
    with pytest.raises(ValueError, match="convention must be one of top-label, top-label-left, positive-class"):
        reliability_table(SCORES, Y, convention="top_label")  # type: ignore[arg-type]  # the slip under test
    with pytest.raises(ValueError, match="binning must be one of equal-width, equal-mass"):
        reliability_table(SCORES, Y, binning="quantile")  # type: ignore[arg-type]  # the slip under test


@pytest.mark.parametrize(
    "features",
    [
        pytest.param([1.0, 2.0, 3.0, 4.0], id="1-D"),
        pytest.param(np.zeros((4, 2, 1)), id="3-D"),
        pytest.param([[1.0], [2.0], [3.0], [NAN]], id="nan"),
        pytest.param([[1.0], [2.0], [3.0], [INF]], id="inf"),
        pytest.param([["a"], ["b"], ["c"], ["d"]], id="strings"),
        pytest.param([[1.0], [2.0], [3.0], [None]], id="none"),
        pytest.param([[1.0], [2.0], [3.0], [1e200]], id="beyond squares"),
        pytest.param([[1.0], [2.0], [3.0], [-1e200]], id="beyond squares below"),
    ],
)
@pytest.mark.parametrize("function", FITS, ids=named)
def test_features_that_are_not_a_finite_table_are_refused(function: Call, features: Any) -> None:
    with pytest.raises(ValueError, match=r"\bX must"):
        function(X=features)


@pytest.mark.parametrize("function", FITS, ids=named)
def test_ragged_or_missing_rows_are_refused(function: Call) -> None:
    with pytest.raises(ValueError):
        function(X=[[1.0], [2.0, 3.0], [1.0], [1.0]])
    with pytest.raises(ValueError, match="at least one row"):
        function(X=np.empty((0, 2)), y=[])


@pytest.mark.parametrize("l2", [-1e-300, -1.0, NAN, INF, -INF, None, "much", [1.0, 2.0], 10**400, 1j])
@pytest.mark.parametrize("function", FITS, ids=named)
def test_a_penalty_that_is_not_finite_and_non_negative_is_refused(function: Call, l2: Any) -> None:
    with pytest.raises(ValueError, match="l2 must be"):
        function(l2=l2)


@pytest.mark.parametrize("iters", [0, -3, 1.5, 5.0, NAN, "5", None, True, np.bool_(True), np.array([1, 2])])
@pytest.mark.parametrize("function", FITS, ids=named)
def test_a_number_of_steps_that_is_no_positive_integer_is_refused(function: Call, iters: Any) -> None:
    with pytest.raises(ValueError, match="iters must be"):
        function(iters=iters)


@pytest.mark.parametrize("count", [np.int64(5), np.uint8(5), np.array(5)])
def test_integers_of_any_kind_are_accepted(count: Any) -> None:
    assert fit(iters=count).tolist() == fit(iters=5).tolist()
    assert ece(SCORES, Y, n_bins=count) == ece(SCORES, Y, n_bins=5)
    assert fit_temperature(TWO_COLUMNS, Y, max_iter=count) == fit_temperature(TWO_COLUMNS, Y)


@pytest.mark.parametrize(
    "weights",
    [
        [1.0] * 3,
        [1.0] * 5,
        [1.0, 1.0, 1.0, -1.0],
        [0.0] * 4,
        [1.0, 1.0, 1.0, NAN],
        [1.0, 1.0, 1.0, INF],
        1.0,
        ["a"] * 4,
    ],
)
def test_row_weights_that_cannot_weigh_are_refused(weights: Any) -> None:
    with pytest.raises(ValueError, match="sample_weight must"):
        fit_story(sample_weight=weights)


@pytest.mark.parametrize(
    ("w", "fit_intercept"),
    [([1.0, 2.0], True), ([1.0] * 4, True), ([1.0] * 3, False), ([], False), ([[1.0, 2.0, 3.0]], True), (1.0, True)],
)
def test_weights_of_the_wrong_length_are_refused(w: Any, fit_intercept: bool) -> None:
    with pytest.raises(ValueError, match=r"\bw must"):
        logistic_predict_proba(X, w, fit_intercept=fit_intercept)


@pytest.mark.parametrize("bad", [NAN, INF])
def test_weights_and_features_of_a_prediction_must_be_finite(bad: float) -> None:
    with pytest.raises(ValueError, match="w must be finite, got 1 NaN or infinite"):
        logistic_predict_proba(X, [1.0, bad, 0.0])
    with pytest.raises(ValueError, match="X must be finite, got 1 NaN or infinite"):
        logistic_predict_proba([[bad, 1.0]], [1.0, 1.0, 0.0])


@pytest.mark.parametrize(
    "logits",
    [
        pytest.param(SCORES, id="1-D"),
        pytest.param([[1.0]] * 4, id="one column"),
        pytest.param(np.empty((4, 0)), id="no column"),
        pytest.param(np.zeros((4, 2, 2)), id="3-D"),
        pytest.param([[0.0, NAN]] * 4, id="nan"),
        pytest.param([[0.0, INF]] * 4, id="inf"),
        pytest.param([["a", "b"]] * 4, id="strings"),
    ],
)
def test_logits_of_a_temperature_must_be_a_finite_table_of_classes(logits: Any) -> None:
    with pytest.raises(ValueError, match="logits must"):
        fit_temperature(logits, Y)


def test_a_temperature_needs_rows() -> None:
    with pytest.raises(ValueError, match="at least 1 row"):
        fit_temperature(np.empty((0, 2)), [])


@pytest.mark.parametrize("max_iter", [0, 1.5, True, "9", None])
def test_a_temperature_needs_a_positive_number_of_steps(max_iter: Any) -> None:
    with pytest.raises(ValueError, match="max_iter must be"):
        fit_temperature(TWO_COLUMNS, Y, max_iter=max_iter)


@pytest.mark.parametrize("beta", [-1.0, NAN, INF, None, "one"])
def test_f_beta_needs_a_finite_weight(beta: Any) -> None:
    with pytest.raises(ValueError, match="beta must be"):
        ConfusionCounts(1, 1, 1, 1).f_beta(beta)


def test_a_threshold_that_is_nan_is_refused() -> None:
    with pytest.raises(ValueError, match="threshold must be a number"):
        confusion_counts(SCORES, Y, threshold=NAN)


def test_limits_are_named() -> None:
    with pytest.raises(ValueError, match=r"t must be finite and between 0 and 1, got 1\.5"):
        checks.real_number("t", 1.5, minimum=0.0, maximum=1.0)
    with pytest.raises(ValueError, match=r"^t must be finite and at least 0, got -1$"):
        checks.real_number("t", -1, minimum=0.0)
    assert checks.real_number("t", np.float32(0.5), minimum=0.0, maximum=1.0) == 0.5


@pytest.mark.parametrize("kind", [np.bool_, np.uint8, np.int32, np.float32, np.float64])
def test_labels_become_64_bit_integers_whatever_they_were(kind: Any) -> None:
    found = checks.class_labels(np.array(Y).astype(kind), n=4, n_classes=2)
    assert (str(found.dtype), found.tolist()) == ("int64", Y)


@pytest.mark.parametrize("function", ON_SCORES, ids=named)
def test_the_spelling_of_the_arguments_changes_nothing(function: Call) -> None:
    """Lists, read-only arrays, float32, strided views; labels as bool, small integers or floats."""
    scores = np.array([0.875, 0.25, 0.375, 0.5])  # exact in float32
    expected = repr(function(scores.copy(), np.array(Y)))
    scores.flags.writeable = False
    spread_out = np.repeat(scores, 2)[::2]
    for spelling in (scores, scores.tolist(), tuple(scores), scores.astype(np.float32), spread_out):
        for kind in (np.bool_, np.int8, np.uint64, np.float32, np.float64):
            labels = np.array(Y).astype(kind)
            labels.flags.writeable = False
            assert repr(function(spelling, labels)) == expected
    assert scores.tolist() == [0.875, 0.25, 0.375, 0.5]


@pytest.mark.parametrize("function", [roc_curve, roc_auc, average_precision, ece, brier_score], ids=named)
def test_scores_may_be_integers_or_booleans(function: Call) -> None:
    expected = repr(function([1.0, 0.0, 0.0, 1.0], Y))
    assert repr(function([1, 0, 0, 1], Y)) == expected
    assert repr(function([True, False, False, True], Y)) == expected


def test_the_spelling_of_a_fit_changes_nothing() -> None:
    features = np.array(X)
    features.flags.writeable = False
    expected = fit(features).tobytes()
    for spelling in (X, features.astype(np.float32), np.asfortranarray(features), features[::-1][::-1]):
        for kind in (np.bool_, np.int8, np.float64):
            assert fit(spelling, np.array(Y).astype(kind)).tobytes() == expected
    assert features.tolist() == X
    table = np.array(TWO_COLUMNS)
    table.flags.writeable = False
    assert fit_temperature(table, np.array(Y, dtype=np.bool_)) == fit_temperature(TWO_COLUMNS, Y)
    assert table.tolist() == TWO_COLUMNS
