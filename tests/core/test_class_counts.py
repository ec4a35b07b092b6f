"""Confusion matrices and what follows from them, against scikit-learn and by hand."""

from fractions import Fraction

import numpy as np
import pytest
from numpy.typing import ArrayLike
from sklearn import metrics

from headeval.core.class_counts import ClassCounts, confusion_matrix

RNG = np.random.default_rng(7)
N, C = 400, 4
Y = RNG.choice(C, size=N, p=[0.4, 0.3, 0.2, 0.1])
CALLED = np.where(RNG.random(N) < 0.6, Y, RNG.integers(C, size=N))
W = RNG.uniform(0.1, 3, size=N)


def of_matrix(matrix: ArrayLike) -> ClassCounts:
    """The counts of confusion matrices (…, C, C), true classes down."""
    m = np.asarray(matrix, dtype=np.float64)
    return ClassCounts(np.diagonal(m, axis1=-2, axis2=-1), m.sum(axis=-1), m.sum(axis=-2))


@pytest.mark.parametrize("weights", [None, W])
@pytest.mark.parametrize("average", ["macro", "micro", "weighted"])
def test_averages_are_those_of_scikit_learn(average: str, weights: np.ndarray | None) -> None:
    """Weighted and unweighted; catches classes averaged by the wrong margin, or precision taken for recall."""
    found = ClassCounts.of_rows(Y, CALLED, weights, n_classes=C).averages()
    expected = metrics.precision_recall_fscore_support(Y, CALLED, average=average, sample_weight=weights)
    assert [found[f"{average}_{name}"] for name in ("precision", "recall", "f1")] == pytest.approx(expected[:3])
    assert found["accuracy"] == pytest.approx(metrics.accuracy_score(Y, CALLED, sample_weight=weights))
    balanced = metrics.balanced_accuracy_score(Y, CALLED, sample_weight=weights)
    assert found["balanced_accuracy"] == pytest.approx(balanced)


def test_true_classes_are_down_and_predicted_ones_across() -> None:
    found = confusion_matrix(Y, CALLED, n_classes=C)
    assert found.tolist() == metrics.confusion_matrix(Y, CALLED).tolist()
    assert found[0, 1] == sum(y == 0 and called == 1 for y, called in zip(Y.tolist(), CALLED.tolist(), strict=True))


def test_the_unit_of_the_weights_does_not_matter_to_averages() -> None:
    found, other = (ClassCounts.of_rows(Y, CALLED, w, n_classes=C).averages() for w in (W, W / 1e6))
    assert found.keys() == other.keys()
    assert [float(value) for value in other.values()] == pytest.approx([float(value) for value in found.values()])


def test_weighted_recall_is_the_accuracy_to_the_last_bit() -> None:
    """49·(1/49) is not 1 in float64."""
    found = of_matrix([[1, 48], [1, 0]]).averages()
    assert found["weighted_recall"] == found["accuracy"] == 0.02


def test_two_classes_are_enough() -> None:
    found = confusion_matrix([0, 1, 1], [1, 1, 1], n_classes=2)
    assert (str(found.dtype), found.tolist()) == ("int64", [[0, 1], [0, 2]])


def test_a_class_without_rows_keeps_its_row_and_column() -> None:
    assert confusion_matrix([0, 1], [0, 0], n_classes=3).tolist() == [[1, 0, 0], [1, 0, 0], [0, 0, 0]]


def test_many_matrices_are_measured_as_each_by_itself() -> None:
    """The leading axis holds resamples."""
    many = RNG.integers(0, 9, size=(5, C, C)) + 1
    together = of_matrix(many).averages()
    for place, one in enumerate(many):
        alone = of_matrix(one).averages()
        assert {name: float(values[place]) for name, values in together.items()} == pytest.approx(
            {name: float(value) for name, value in alone.items()}
        )


def test_figures_by_hand() -> None:
    """[[5, 1, 0], [2, 3, 1], [0, 1, 7]]: precision 5/7, 3/5, 7/8, recall 5/6, 1/2, 7/8."""
    counts = of_matrix([[5, 1, 0], [2, 3, 1], [0, 1, 7]])
    precision = [Fraction(5, 7), Fraction(3, 5), Fraction(7, 8)]
    recall = [Fraction(5, 6), Fraction(1, 2), Fraction(7, 8)]
    f1 = [2 * p * r / (p + r) for p, r in zip(precision, recall, strict=True)]
    found = counts.averages()
    assert counts.precision.tolist() == pytest.approx([float(part) for part in precision])
    assert counts.f1.tolist() == pytest.approx([float(part) for part in f1])
    assert found["macro_f1"] == pytest.approx(float(sum(f1) / 3))
    assert found["weighted_f1"] == pytest.approx(float((6 * f1[0] + 6 * f1[1] + 8 * f1[2]) / 20))
    assert found["accuracy"] == found["micro_precision"] == found["weighted_recall"] == 15 / 20


def test_undefined_is_undefined_and_spreads_to_the_averages_that_need_it() -> None:
    """No row of class 2, which is predicted once; class 1 is never predicted."""
    counts = of_matrix([[3, 0, 1], [2, 0, 0], [0, 0, 0]])
    assert np.isnan(counts.recall).tolist() == [False, False, True]
    assert np.isnan(counts.precision).tolist() == [False, True, False]
    assert counts.f1.tolist() == [pytest.approx(6 / 9), 0.0, 0.0]
    found = counts.averages()
    undefined = {name for name, value in found.items() if np.isnan(value)}
    assert undefined == {
        "balanced_accuracy",
        "macro_recall",
        "macro_precision",
        "macro_f1",
        "weighted_precision",
    }
    assert found["weighted_f1"] == pytest.approx(4 / 6 * 6 / 9)


@pytest.mark.parametrize(
    ("labels", "predicted", "n_classes"), [([0, 3], [0, 1], 3), ([0, 1], [0], 2), ([0, 0], [0, 0], 1), ([0.5], [0], 2)]
)
def test_what_is_no_class_is_refused(labels: list[float], predicted: list[int], n_classes: int) -> None:
    with pytest.raises(ValueError, match=r"labels must|n_classes must"):
        confusion_matrix(labels, predicted, n_classes=n_classes)
