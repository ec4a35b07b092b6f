"""Rows whose labels play no part: embeddings or scores, what names the rows, and digests that tell equal ones."""

from dataclasses import dataclass
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray

from headeval.errors import DataError
from headeval.files.arrow_errors import shown
from headeval.files.categories import Categories
from headeval.files.collecting import null_text, place_of, read_scores
from headeval.files.examples import Track, untracked
from headeval.files.fingerprint import row_digests
from headeval.files.growing import GrowingArray
from headeval.files.row_faults import RowFaults
from headeval.files.tables import Tables
from headeval.files.vectors import VectorReader, find_embedding


@dataclass(frozen=True, slots=True)
class UnlabelledRows:
    """All rows of some tables, in their order.

    Attributes
    ----------
    embeddings : (n, d), or None.
    scores : (n,) logits or probabilities as the column has them, or None.
    ids : (n,) text, or None.
    digests : (n, 2) of each row's embedding or score; see `headeval.files.fingerprint`.
    """

    embeddings: NDArray[Any] | None
    scores: NDArray[np.float64] | None
    ids: NDArray[np.object_] | None
    digests: NDArray[np.uint64]


def read_unlabelled(
    tables: Tables,
    *,
    embedding: str | None = None,
    score: str | None = None,
    score_kind: Literal["logit", "prob"] = "logit",
    identifier: str | None = None,
    dim: int | None = None,
    track: Track = untracked,
) -> UnlabelledRows:
    """Read embeddings or a column of scores, whichever is named.

    Parameters
    ----------
    tables : the opened files.
    embedding : the column of vectors or the prefix of numbered columns.
    score, score_kind : the column of scores; "prob" demands scores in [0, 1].
    identifier : a column whose values name the rows.
    dim : the width that the embeddings must have.
    track : wraps the blocks while they are read, to show progress.

    Raises
    ------
    DataError : for a missing column, or a row that cannot be used.
    """
    where = None if embedding is None else find_embedding(tables, embedding)
    vectors = None if where is None else VectorReader(where, dim=dim)
    names = None if identifier is None else Categories(identifier, numbers_in_text=False, blank_is_missing=False)
    rows = GrowingArray(np.float64 if where is None else where.dtype, expected=tables.n_rows)
    codes = GrowingArray(np.int32, expected=tables.n_rows)
    faults = RowFaults()
    singles = [name for name in (score, identifier) if name is not None]
    for block in track(tables.blocks([*singles, *(where.columns if where else ())]), tables.n_rows):
        faults.raise_if_any(unless_in=block.path)
        place = place_of(block, faults)
        if vectors is not None:
            values = vectors.read(block.batch, place)
        else:
            values = read_scores(block.batch, str(score), place, is_prob=score_kind == "prob")
        if values is not None:
            rows.append(values)
        if names is not None:
            codes.append(names.codes(block.batch.column(names.name), place))
    faults.raise_if_any()
    found = rows.array()
    if not len(found):
        raise DataError(f"{shown(tables.paths[0])}: has no rows")
    ids = None if names is None else np.array([*names.texts, null_text(names.texts)], dtype=object)[codes.array()]
    return UnlabelledRows(
        found if vectors is not None else None, None if vectors is not None else found, ids, row_digests(found)
    )
