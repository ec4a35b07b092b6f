"""The rows that a baseline decides otherwise, written with both probabilities and decisions."""

from collections.abc import Sequence
from pathlib import Path

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from headeval.errors import DataError
from headeval.files.arrow_errors import shown
from headeval.files.examples import Track, untracked
from headeval.files.output import table_writer
from headeval.files.tables import Tables
from headeval.printable import listed

NAMES = ("new_prob", "new_flagged", "baseline_prob", "baseline_flagged")


def check_free(tables: Tables) -> None:
    """Refuse tables that have a column of the names that are to be added.

    Raises
    ------
    DataError : naming the columns.
    """
    taken = [name for name in NAMES if name in tables.column_names]
    if taken:
        raise DataError(
            f"{shown(tables.paths[0])} already has the columns {listed(taken)}, which --changed adds: rename them"
        )


def write_changed(
    output: Path,
    tables: Tables,
    *,
    kept: NDArray[np.bool_],
    probs: tuple[NDArray[np.float64], NDArray[np.float64]],
    flagged: tuple[NDArray[np.bool_], NDArray[np.bool_]],
    without: Sequence[str],
    force: bool,
    track: Track = untracked,
) -> int:
    """Write the judged rows that only one of the two flags; return how many there are.

    Parameters
    ----------
    kept : which rows of the tables were judged, shape (all rows,).
    probs, flagged : of the judged rows, shape (n,): the new one's, then the baseline's.
    without : columns that are left out.
    force : replace an existing file.

    Raises
    ------
    OutputError : where the file exists or cannot be written.
    """
    position = np.cumsum(kept) - 1
    changed = kept.copy()
    changed[kept] = flagged[0] != flagged[1]
    first = 0
    with table_writer(output, force=force, metadata=tables.metadata) as table:
        for block in track(tables.blocks(tables.column_names), tables.n_rows):
            rows = np.arange(first, first + block.batch.num_rows)
            first += block.batch.num_rows
            wanted = changed[rows]
            batch = block.batch.drop_columns(list(without)) if without else block.batch
            batch, judged = batch.filter(pa.array(wanted)), position[rows[wanted]]
            values = (probs[0][judged], flagged[0][judged], probs[1][judged], flagged[1][judged])
            for name, column in zip(NAMES, values, strict=True):
                batch = batch.append_column(name, pa.array(column))
            table.write(batch)
    return int(np.count_nonzero(changed))
