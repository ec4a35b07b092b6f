"""Scored rows: checked at the door, in an order of their contents alone, and counted in units that are independent."""

import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from headeval.scored_rows import ScoredRows


@pytest.mark.parametrize(
    ("scores", "labels", "options", "message"),
    [
        ([0.5, 1.5], [0, 1], {"kind": "prob"}, r"lie in \[0, 1\]"),
        ([0.5, math.inf], [0, 1], {"kind": "logit"}, "finite"),
        ([], [], {"kind": "prob"}, "at least one row"),
        ([0.5], [0, 1], {"kind": "prob"}, "length 1"),
        ([0.5], [0.5], {"kind": "prob"}, "from 0 to 1"),
        ([0.5], [1], {"kind": "probability"}, "kind must be one of logit, prob"),
        ([0.5, 0.6], [0, 1], {"kind": "prob", "weights": [1.0]}, "length 2"),
        ([0.5, 0.6], [0, 1], {"kind": "prob", "weights": [1.0, -1.0]}, "not be negative"),
        ([0.5, 0.6], [0, 1], {"kind": "prob", "weights": [0.0, 0.0]}, "not all zero"),
        ([0.5, 0.6], [0, 1], {"kind": "prob", "groups": [1]}, "2"),
    ],
)
def test_a_broken_contract_is_a_value_error(
    scores: list[float], labels: list[float], options: dict[str, object], message: str
) -> None:
    with pytest.raises(ValueError, match=message):
        ScoredRows.checked(scores, labels, **options)


ROWS = st.lists(
    st.tuples(st.integers(-2, 2), st.integers(0, 1), st.integers(1, 3), st.integers(0, 2), st.integers(0, 2)),
    min_size=1,
    max_size=10,
)


@given(ROWS, st.randoms(use_true_random=False))
def test_the_order_is_one_of_the_contents_alone(rows: list[tuple[int, ...]], random: object) -> None:
    """Every column takes part, a second score too: a tie that remains is of rows that are equal in all."""
    shuffled = list(rows)
    random.shuffle(shuffled)
    ordered = []
    for each in (rows, shuffled):
        s, y, w, g, also = map(np.array, zip(*each, strict=True))
        scored = ScoredRows.checked(s, y, kind="logit", weights=w, groups=g)
        order = scored.order(also.astype(np.float64))
        new = scored.reordered(order)
        assert new.weights is not None
        assert new.groups is not None
        ordered.append(list(zip(new.s, new.y, new.weights, g[order], also[order], strict=True)))
        assert (np.diff(new.s) >= 0).all()
        assert np.array_equal(new.p, scored.p[order])
    assert ordered[0] == ordered[1]


def test_losses_are_those_of_the_true_class_and_survive_any_logit() -> None:
    logits = ScoredRows.checked([0.0, math.log(3), -1000.0, 1000.0], [1, 0, 1, 1], kind="logit")
    assert logits.losses() == pytest.approx([math.log(2), math.log(4), 1000.0, 0.0])
    probs = ScoredRows.checked([0.25, 0.25, 0.0, 1.0, 0.0], [1, 0, 0, 1, 1], kind="prob")
    assert probs.losses() == pytest.approx([math.log(4), math.log(4 / 3), 0.0, 0.0, math.inf])


def test_log_odds_are_kept_or_computed_and_none_where_one_is_infinite() -> None:
    logits = ScoredRows.checked([-800.0, 2.0], [0, 1], kind="logit")
    assert logits.logits() is logits.s
    assert ScoredRows.checked([0.5, 0.75], [0, 1], kind="prob").logits() == pytest.approx([0, math.log(3)])
    for extreme in (0.0, 1.0):
        assert ScoredRows.checked([0.5, extreme], [0, 1], kind="prob").logits() is None


def test_units_are_rows_or_groups_and_never_rows_of_no_weight() -> None:
    y = [1, 1, 1, 0, 0, 0, 0]
    s = np.arange(7.0)
    plain = ScoredRows.checked(s, y, kind="logit")
    assert (plain.independent, plain.units(), plain.smaller_class()) == (True, 7, 3)
    grouped = ScoredRows.checked(s, y, kind="logit", groups=["a", "a", "b", "c", "d", "e", "a"])
    assert (grouped.independent, grouped.units(), grouped.smaller_class()) == (False, 5, 2)
    weighted = ScoredRows.checked(s, y, kind="logit", weights=[1, 1, 0, 1, 1, 1, 1])
    assert (weighted.independent, weighted.units(), weighted.smaller_class()) == (False, 6, 2)
    both = ScoredRows.checked(s, y, kind="logit", weights=[1, 1, 0, 1, 1, 1, 1], groups=list("aabcdea"))
    assert both.smaller_class() == 1  # group b has no weight
    assert ScoredRows.checked(s, np.ones(7), kind="logit").smaller_class() == 0


def test_a_row_that_outweighs_all_others_is_one_unit() -> None:
    """Kish's (Σw)²/Σw²: 4 equal weights are 4 rows whatever their unit, 1 and three of a millionth are 1."""
    for unit in (1.0, 0.1, 1e-200, 1e90):
        rows = ScoredRows.checked(np.arange(4.0), [1] * 4, kind="logit", weights=np.full(4, unit))
        assert rows.units() == 4
    assert ScoredRows.checked(np.arange(4.0), [1] * 4, kind="logit", weights=[1, 1e-6, 1e-6, 1e-6]).units() == 1


def test_the_effective_size_is_that_of_the_rows_of_the_mask_and_none_where_they_have_no_weight() -> None:
    rows = ScoredRows.checked(np.arange(4.0), [1, 1, 0, 0], kind="logit", weights=[2, 2, 0, 0])
    right = np.array([True, True, False, True])
    assert rows.effective_size(right, rows.y == 1) == 2
    assert rows.effective_size(right, rows.y == 0) == 0
    assert rows.effective_size(right, np.zeros(4, bool)) == 0
