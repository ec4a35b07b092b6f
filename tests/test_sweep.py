"""Every step of the slider says what `evaluate` says at that threshold, and the steps tell rows apart."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from headeval.evaluation import evaluate
from headeval.scored_rows import ScoredRows
from headeval.sweep import MOST_STEPS, Sweep, sweep, typed_thresholds

GRID = [step / 1000 for step in range(1001)]


def rows(n: int, *, seed: int = 0, grouped: bool = False, weighted: bool = False) -> dict[str, np.ndarray | None]:
    rng = np.random.default_rng(seed)
    labels = (rng.uniform(size=n) < 0.3).astype(int)
    return {
        "scores": rng.normal(size=n) * 2 + 2 * labels - 1,
        "labels": labels,
        "weights": rng.integers(1, 5, size=n).astype(float) if weighted else None,
        "groups": rng.integers(0, n // 4, size=n) if grouped else None,
    }


def swept(data: dict[str, np.ndarray | None], threshold: float, **options: float) -> Sweep:
    scored = ScoredRows.checked(
        data["scores"], data["labels"], kind="logit", weights=data["weights"], groups=data["groups"]
    )
    return sweep(scored.reordered(scored.order()), threshold, confidence=0.95, **options)


@pytest.mark.parametrize(("weighted", "grouped"), [(False, False), (True, False), (False, True), (True, True)])
def test_a_step_is_the_evaluation_at_its_threshold(weighted: bool, grouped: bool) -> None:
    data = rows(80, weighted=weighted, grouped=grouped)
    asked = {"prevalence": 0.02, "per_day": 1e5}
    found = swept(data, 0.5, **asked)
    options = {"kind": "logit", "n_resamples": 0, **asked, **data}
    in_use = evaluate(threshold=0.5, **options)
    for step in (*range(0, len(found.thresholds), 97), found.in_use, len(found.thresholds) - 1):
        there = evaluate(threshold=found.thresholds[step], **options)
        moved = found.at(step, in_use)
        assert (moved.threshold, moved.counts, moved.traffic) == (there.threshold, there.counts, there.traffic)
        for (info, metric), (_, expected) in zip(moved.metrics(), there.metrics(), strict=True):
            assert metric == expected, info.name


@given(
    st.lists(st.tuples(st.sampled_from([0.0, 0.1, 0.25, 0.2500000001, 0.5, 1.0]), st.booleans()), min_size=1),
    st.sampled_from([0.0, 0.3, 0.30000000000000004, 1.0]),
)
def test_counts_are_those_of_comparing_every_row(pairs: list[tuple[float, bool]], threshold: float) -> None:
    probs, labels = np.array([pair[0] for pair in pairs]), np.array([pair[1] for pair in pairs])
    found = sweep(ScoredRows.checked(probs, labels, kind="prob"), threshold, confidence=None)
    assert found.thresholds[found.in_use] == threshold
    for at, outcome in list(zip(found.thresholds, found.outcome, strict=True))[::50]:
        counts, flagged = found.outcomes[outcome].counts, probs >= at
        assert (counts.true_positives, counts.false_positives) == ((flagged & labels).sum(), (flagged & ~labels).sum())
        assert (counts.positives, counts.n) == (labels.sum(), len(labels))


def test_thresholds_are_decimals_as_one_types_them() -> None:
    found = typed_thresholds(np.sort(np.random.default_rng(1).uniform(size=3000)))
    assert set(GRID) <= set(found)
    assert max(len(repr(threshold)) for threshold in found) <= 6
    assert found == sorted(set(found))
    assert len(found) <= MOST_STEPS


def test_crowded_scores_are_told_apart() -> None:
    """All between two steps of the even grid, which would show two outcomes."""
    probs = 1 - np.sort(np.random.default_rng(2).uniform(0, 1e-6, size=300))[::-1]
    found = typed_thresholds(probs)
    assert len(set(np.searchsorted(probs, found).tolist())) > 200


@pytest.mark.parametrize("probs", [[0.5] * 100, [0.0] * 50 + [1.0] * 50, [0.25]])
def test_equal_scores_need_no_finer_steps(probs: list[float]) -> None:
    assert typed_thresholds(np.array(probs)) == GRID


def test_neighbouring_floats_end_the_search() -> None:
    """No decimal of 17 digits need lie between them."""
    found = typed_thresholds(np.array([0.1, np.nextafter(0.1, 1), 0.9]))
    assert len(found) < 1300


@pytest.mark.parametrize("options", [{"weighted": True}, {"grouped": True}])
def test_weighted_or_grouped_rows_in_great_number_get_fewer_steps(
    options: dict[str, bool], monkeypatch: pytest.MonkeyPatch
) -> None:
    """Each step needs all of them again: with 20 times as many rows as here it would take minutes."""
    monkeypatch.setattr("headeval.sweep._ROWS_OF_ALL_STEPS", 50_000)
    found = swept(rows(1000, **options), 0.123456)
    assert 21 <= len(found.thresholds) <= 51
    assert {0.0, 0.1, 0.123456, 1.0} <= set(found.thresholds)
