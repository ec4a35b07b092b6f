"""Folds of more than two classes: every class is divided as evenly as the rows allow."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from headeval.solver.folds import FoldError, stratified_folds


def dealt(y: np.ndarray, n_folds: int, C: int, groups: np.ndarray | None = None, seed: int = 0) -> np.ndarray:
    return stratified_folds(y, n_folds, rng=np.random.default_rng(seed), groups=groups, n_classes=C)


@given(
    sizes=st.lists(st.integers(2, 40), min_size=2, max_size=9),
    n_folds=st.integers(2, 5),
    seed=st.integers(0, 99),
)
@settings(max_examples=60)
def test_each_class_and_all_rows_are_divided_evenly(sizes: list[int], n_folds: int, seed: int) -> None:
    y = np.random.default_rng(seed).permutation(np.repeat(np.arange(len(sizes)), sizes))
    if min(sizes) < n_folds:
        with pytest.raises(FoldError):
            dealt(y, n_folds, len(sizes), seed=seed)
        return
    folds = dealt(y, n_folds, len(sizes), seed=seed)
    table = np.zeros((n_folds, len(sizes)), dtype=int)
    np.add.at(table, (folds, y), 1)
    assert (table.max(axis=0) - table.min(axis=0) <= 1).all()
    assert np.ptp(table.sum(axis=1)) <= 1


def test_groups_stay_whole_and_classes_nearly_even() -> None:
    rng = np.random.default_rng(0)
    groups = rng.integers(0, 200, 2000)
    y = rng.choice(4, 2000, p=[0.5, 0.3, 0.15, 0.05])
    folds = dealt(y, 5, 4, groups)
    for group in range(200):
        assert len(set(folds[groups == group].tolist())) == 1
    table = np.zeros((5, 4))
    np.add.at(table, (folds, y), 1)
    share = table / table.sum(axis=0)
    assert np.abs(share - 0.2).max() < 0.03


def test_the_class_that_has_too_few_rows_is_named_by_its_number() -> None:
    y = np.array([0, 0, 0, 1, 1, 1, 2, 3, 3, 3])
    with pytest.raises(FoldError, match=r"^3 folds need at least 3 rows of each class, class 3 of 4 has 1$") as caught:
        dealt(y, 3, 4)
    assert caught.value.label == 2
    assert caught.value.told("abcd") == "3 folds need at least 3 rows of each class, class 'c' has 1"
    with pytest.raises(FoldError, match="class 5 of 5 has 0"):
        dealt(y, 3, 5)


def test_a_class_whose_rows_are_one_group_is_named() -> None:
    y = np.repeat([0, 1, 2], 6)
    groups = np.where(y == 1, 99, np.arange(18))
    with pytest.raises(FoldError, match="rows of class 2 of 3 all fall into one fold") as caught:
        dealt(y, 3, 3, groups)
    assert caught.value.label == 1
    assert "rows of class 'y' all fall" in caught.value.told("xyz")


def test_two_classes_speak_as_before() -> None:
    with pytest.raises(FoldError, match=r"^3 folds need at least 3 rows of each class, the smaller has 2$") as caught:
        dealt(np.array([0, 0, 0, 0, 1, 1]), 3, 2)
    assert caught.value.told("ab") == str(caught.value)


def test_many_groups_of_two_rows_take_seconds_at_most() -> None:
    """Each takes a look at the folds, not at all other groups."""
    y = np.random.default_rng(0).integers(0, 50, 40_000)
    folds = dealt(y, 5, 50, np.arange(40_000) // 2)
    assert (folds[::2] == folds[1::2]).all()
