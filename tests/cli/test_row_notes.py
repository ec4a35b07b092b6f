"""Notes on the rows: each stands where its numbers call for it, and nowhere else."""

import numpy as np
import pytest

from headeval.cli.row_notes import copies, copies_note, few_rows
from headeval.core.scaling import Scaling

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
