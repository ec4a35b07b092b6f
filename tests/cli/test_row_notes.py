"""Notes on the rows: each stands where its numbers call for it, and nowhere else."""

import numpy as np
import pytest

from headeval.cli.row_notes import classes_note, copies, copies_note, few_rows
from headeval.core.scaling import Scaling

FEW = "classes of fewer than 10 rows, which teach a head little"
TEMPERATURE, PLATT = (Scaling(method, 1.0, 0.0, 0.5, 0.4) for method in ("temperature", "platt"))


@pytest.mark.parametrize(
    ("scaling", "n", "positives", "words"),
    [
        (TEMPERATURE, 52, 2, "rests on 2 rows"),
        (TEMPERATURE, 52, 50, "rests on 2 rows"),
        (TEMPERATURE, 100, 10, None),
        (PLATT, 1000, 9, "rests on 9 rows"),
        (PLATT, 150, 60, "two parameters"),
        (PLATT, 1000, 100, None),
    ],
)
def test_a_scaling_on_few_rows_is_called_so(scaling: Scaling, n: int, positives: int, words: str | None) -> None:
    notes = few_rows(scaling, n, positives)
    assert len(notes) == (words is not None)
    assert words is None or words in notes[0]


@pytest.mark.parametrize(("repeated", "told"), [(0, False), (1, False), (3, True)])
def test_more_than_a_hundredth_of_copies_is_told(repeated: int, told: bool) -> None:
    digests = np.append(np.arange(200 - repeated), np.zeros(repeated)).astype(np.uint64)
    assert copies(digests) == repeated
    assert bool(copies_note(digests)) == told


@pytest.mark.parametrize(
    ("counts", "named", "notes"),
    [
        ({"safe": 90, "rude": 10, "hate": 10}, False, []),
        ({"hate ": 9, "Hate": 90}, False, []),  # of two classes nothing is said
        (
            {"safe": 179, "unsafe": 197, "unsfe": 24},
            False,
            ["CAUTION: 'unsfe' (24 rows) looks like 'unsafe': misspelled?"],
        ),
        (
            {"safe": 90, "spam": 2, "rude": 9, "hate": 30},
            False,
            [f"{FEW}: 'rude' (9 rows), 'spam' (2 rows): are they meant, or misspelled?"],
        ),
        (
            {"hate": 9, "safe": 90, "Hate": 12},
            True,
            [f"{FEW}: 'hate' (9 rows)"],
        ),
    ],
)
def test_a_class_that_may_be_a_misspelling_is_asked_about(
    counts: dict[str, int], named: bool, notes: list[str]
) -> None:
    assert list(classes_note(counts, named=named)) == notes
