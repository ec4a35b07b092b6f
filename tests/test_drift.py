"""Drift and leakage as records: what is compared, what is left out and why, and which rows are named."""

from zlib import crc32

import numpy as np
import pytest
from numpy.typing import NDArray
from scipy import stats

from headeval.core.near_duplicates import RowStream, mean_shift
from headeval.drift import Drift, LeakedRow, drift, leakage

Table = NDArray[np.float64]
Digests = NDArray[np.uint64]


def digests(table: Table) -> Digests:
    """Equal where rows are, and else not, as the caller's are; from the bytes, not from headeval."""
    return np.array([[crc32(row.tobytes()), len(row)] for row in table], dtype=np.uint64)


@pytest.fixture
def tables() -> tuple[Table, Table]:
    """Rows 0 to 2 of the first are rows 7, 7 and 5 of the second; rows 3 and 4 nearly 9 and 8; 7 and 6 are copies."""
    rng = np.random.default_rng(1)
    here, there = rng.normal(size=(30, 16)), rng.normal(size=(40, 16))
    there[6] = there[7]
    here[:3] = there[[7, 7, 5]]
    here[3] = there[9] + 0.05 * rng.normal(size=16)
    here[4] = there[8] * 3 + 1e-6
    return here, there


def test_exact_rows_come_first_and_near_ones_by_falling_cosine(tables: tuple[Table, Table]) -> None:
    here, there = tables
    found = leakage(digests(here), digests(there), here, there)
    assert (found.n, found.exact, found.near, found.compared, found.others) == (30, 3, 2, 27, 27)
    # Rows are counted from 1; of two copies in the reference the first is named.
    assert found.examples[:3] == (LeakedRow(1, 7, 1.0), LeakedRow(2, 7, 1.0), LeakedRow(3, 6, 1.0))
    assert [example[:2] for example in found.examples[3:]] == [(5, 9), (4, 10)]
    cosines = [example.cosine for example in found.examples[3:]]
    expected = [here[i] @ there[j] / np.linalg.norm(here[i]) / np.linalg.norm(there[j]) for i, j in ((4, 8), (3, 9))]
    assert cosines == pytest.approx(expected, rel=1e-13)


def test_ids_name_the_rows(tables: tuple[Table, Table]) -> None:
    here, there = tables
    found = leakage(digests(here), digests(there), here, there, [f"h{i}" for i in range(30)], np.arange(40))
    assert [example[:2] for example in found.examples] == [
        ("h0", "6"),
        ("h1", "6"),
        ("h2", "5"),
        ("h4", "8"),
        ("h3", "9"),
    ]


def test_at_most_ten_rows_are_named(tables: tuple[Table, Table]) -> None:
    there = tables[1]
    found = leakage(digests(there), digests(there), there, there)
    assert (found.exact, found.near, found.compared) == (40, 0, 0)
    assert [example.row for example in found.examples] == list(range(1, 11))


def test_without_embeddings_only_equal_rows_are_found(tables: tuple[Table, Table]) -> None:
    here, there = tables
    found = leakage(digests(here), digests(there), here)
    assert (found.exact, found.near, found.compared) == (3, 0, 0)


def test_of_equal_directions_the_first_row_is_named() -> None:
    """3:4 in six lengths, whose digests differ; the digests are in the opposite order of the rows."""
    there = np.array([[3.0, 4.0]]) * np.array([[3], [5], [7], [9], [11], [13]])
    codes = np.array([[9 - i, 0] for i in range(6)], dtype=np.uint64)
    found = leakage(np.array([[0, 1]], dtype=np.uint64), codes, np.array([[3.0, 4.0]]), there)
    assert (found.exact, found.near) == (0, 1)
    assert found.examples[0].reference_row == 1


def test_both_halves_of_a_digest_count() -> None:
    one = np.array([[1, 2], [3, 4], [2, 1]], dtype=np.uint64)
    other = np.array([[1, 4], [3, 2], [2**64 - 1, 1]], dtype=np.uint64)
    assert leakage(one, other).exact == 0
    assert leakage(one, np.concatenate([other, one[:2]])).exact == 2


def test_row_order_changes_no_count(tables: tuple[Table, Table]) -> None:
    here, there = tables
    order, other_order = np.random.default_rng(5).permutation(30), np.random.default_rng(6).permutation(40)
    shuffled = leakage(digests(here[order]), digests(there[other_order]), here[order], there[other_order])
    assert (shuffled.exact, shuffled.near) == (3, 2)


def compared(tables: tuple[Table, Table], seed: int = 0) -> Drift:
    here, there = tables
    rng = np.random.default_rng(8)
    scores, reference_scores = rng.random(30), rng.random(40) ** 2
    labels, reference_labels = np.arange(30) % 3 == 0, np.arange(40) % 8 == 0
    return drift(
        scores,
        reference_scores,
        labels,
        reference_labels,
        here,
        there,
        digests=digests(here),
        reference_digests=digests(there),
        reference="may",
        confidence=0.9,
        seed=seed,
    )


def test_every_part_stands_on_the_right_side(tables: tuple[Table, Table]) -> None:
    found = compared(tables)
    rng = np.random.default_rng(8)
    scores, reference_scores = rng.random(30), rng.random(40) ** 2
    expected = stats.ks_2samp(scores, reference_scores, method="exact")
    assert (found.reference, found.n, found.m, dict(found.undefined)) == ("may", 30, 40, {})
    assert (found.ks.statistic, found.ks.p_value) == pytest.approx((expected.statistic, expected.pvalue), rel=1e-9)
    assert found.ks.sign == -1  # squares are smaller: fewer of these rows lie low
    assert found.psi is not None
    assert (found.psi.counts.sum(), found.psi.reference_counts.sum()) == (30, 40)
    assert set(found.psi.reference_counts.tolist()) == {4}
    assert found.prevalence is not None
    assert (found.prevalence.positives, found.prevalence.reference_positives) == (10, 5)
    assert found.prevalence.difference.value == pytest.approx(10 / 30 - 5 / 40, rel=1e-14)
    assert found.prevalence.difference.p_value == pytest.approx(
        stats.fisher_exact([[10, 20], [5, 35]]).pvalue, rel=1e-9
    )
    assert found.prevalence.difference.interval is not None
    assert found.prevalence.difference.interval.confidence == 0.9
    assert found.mean_shift is not None
    assert found.leakage is not None
    assert found.leakage.exact == 3


def test_the_seed_decides_the_permutations_alone(tables: tuple[Table, Table]) -> None:
    first, again, other = compared(tables), compared(tables), compared(tables, seed=1)
    assert first.mean_shift == again.mean_shift
    assert first.mean_shift != other.mean_shift
    assert first.leakage == other.leakage
    assert first.ks == other.ks


def test_what_a_side_lacks_is_left_out_with_a_reason(tables: tuple[Table, Table]) -> None:
    there = tables[1]
    bare = drift([0.1, 0.2], [0.5, 0.5])
    assert (bare.psi, bare.prevalence, bare.mean_shift, bare.leakage) == (None, None, None, None)
    assert set(bare.undefined) == {"psi", "prevalence", "mean_shift", "leakage"}
    assert bare.undefined["prevalence"] == "neither side has labels"
    labelled = drift([0.1, 0.2], [0.5, 0.6], [0, 1])
    assert labelled.undefined["prevalence"] == "the reference has no labels"
    embedded = drift(np.zeros(30), np.arange(40), None, [0, 1] * 20, None, there)
    assert embedded.undefined["prevalence"] == "these rows have no labels"
    assert embedded.undefined["mean_shift"] == "these rows have no embeddings"
    assert "psi" not in embedded.undefined


def test_rows_that_do_not_fit_together_are_refused(tables: tuple[Table, Table]) -> None:
    here, there = tables
    scores, reference_scores = np.arange(30.0), np.arange(40.0)
    with pytest.raises(ValueError, match="labels must be 1-D of length 40"):
        drift(scores, reference_scores, np.zeros(30), np.zeros(30))
    with pytest.raises(ValueError, match="reference_embeddings must be 2-D with 40 rows"):
        drift(scores, reference_scores, embeddings=here, reference_embeddings=here)
    with pytest.raises(ValueError, match="digests must be 2-D with 30 rows"):
        drift(scores, reference_scores, digests=digests(there), reference_digests=digests(there))
    with pytest.raises(ValueError, match="an id for each of 30 rows, got 2"):
        leakage(digests(here), digests(there), ids=["a", "b"])


def test_a_reference_that_is_read_while_it_is_compared_gives_the_same(tables: tuple[Table, Table]) -> None:
    here, there = tables
    stream = RowStream(40, 16, lambda: (there[start : start + 9] for start in range(0, 40, 9)))
    found = leakage(digests(here), digests(there), here, stream)
    assert found == leakage(digests(here), digests(there), here, there)
    assert (found.exact, found.near) == (3, 2)
    with pytest.raises(ValueError, match="40 rows, got 39"):
        leakage(digests(here), digests(there), here, RowStream(39, 16, lambda: [there[:39]]))


def test_of_a_sample_the_rows_are_named_by_their_places_among_all(tables: tuple[Table, Table]) -> None:
    here, there = tables
    rows = np.array([1, 4, 12, 29])
    found = leakage(digests(here), digests(there), here[rows], there, rows=rows)
    assert (found.n, found.exact, found.near, found.compared) == (30, 3, 1, 3)  # row 1 is in the reference as it is
    assert [(row.row, row.reference_row) for row in found.examples] == [(1, 7), (2, 7), (3, 6), (5, 9)]


def test_samples_on_both_sides_are_counted_and_looked_for_in_the_whole_reference(tables: tuple[Table, Table]) -> None:
    here, there = tables
    whole = compared(tables)
    rows, reference_rows = np.array([1, 4, 12, 29]), np.arange(0, 40, 2)
    found = drift(
        np.arange(30.0),
        np.arange(40.0),
        embeddings=here[rows],
        reference_embeddings=there[reference_rows],
        digests=digests(here),
        reference_digests=digests(there),
        rows=rows,
        reference_rows=reference_rows,
        reference_stream=RowStream(40, 16, lambda: [there]),
    )
    assert (found.shifted, found.shift_sampled) == ((4, 20), True)
    assert (whole.shifted, whole.shift_sampled) == ((30, 40), False)
    expected = mean_shift(here[rows], there[reference_rows], rng=np.random.default_rng([0, 0]))
    assert found.mean_shift == expected
    assert found.leakage is not None
    assert (found.leakage.near, found.leakage.compared) == (1, 3)  # row 9 of the reference is not in the sample
