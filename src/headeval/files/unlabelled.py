"""Rows whose labels play no part: embeddings or scores, what names the rows, and digests that tell equal ones."""

from collections.abc import Iterable
from dataclasses import dataclass
from functools import cached_property
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray

from headeval.errors import DataError
from headeval.files.arrow_errors import shown
from headeval.files.categories import Categories
from headeval.files.coded_columns import null_text
from headeval.files.collecting import usable
from headeval.files.embedded_rows import EmbeddedRows, Keeping
from headeval.files.examples import Track, untracked
from headeval.files.fingerprint import row_digests
from headeval.files.growing import GrowingArray
from headeval.files.number_columns import read_scores
from headeval.files.row_faults import Place
from headeval.files.tables import Block, Tables
from headeval.files.vectors import EmbeddingColumns, VectorReader, find_embedding


@dataclass(frozen=True)
class UnlabelledRows:
    """All rows of some tables, in their order.

    Attributes
    ----------
    n : how many there are.
    embedding_at, dim : the columns of the embeddings and their width, or None.
    embeddings : (n, d); None where none were read, or they are not held.
    projected : what was made of each row's embedding, shape (n, k), or None.
    scores : (n,) logits or probabilities as the column has them, or None.
    ids : (n,) text, or None.
    embedding_digests : (n, 2) of each row's embedding, or None.
    """

    n: int
    embedding_at: EmbeddingColumns | None
    dim: int | None
    embeddings: NDArray[Any] | None
    projected: NDArray[np.float64] | None
    scores: NDArray[np.float64] | None
    ids: NDArray[np.object_] | None
    embedding_digests: NDArray[np.uint64] | None

    @cached_property
    def digests(self) -> NDArray[np.uint64]:
        """Of each row's embedding or score, shape (n, 2); see `headeval.files.fingerprint`."""
        if self.embedding_digests is not None:
            return self.embedding_digests
        return row_digests(np.zeros(self.n) if self.scores is None else self.scores)

    @property
    def kept(self) -> NDArray[np.bool_]:
        """Which rows of the files these are: all of them."""
        return np.ones(self.n, dtype=np.bool_)


def read_unlabelled(
    tables: Tables,
    *,
    embedding: str | None = None,
    score: str | None = None,
    score_kind: Literal["logit", "prob"] = "logit",
    identifier: str | None = None,
    dim: int | None = None,
    keeping: Keeping | None = None,
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
    keeping : what to keep of the embeddings; None holds them.
    track : wraps the blocks while they are read, to show progress.

    Raises
    ------
    DataError : for a missing column, or a row that cannot be used.
    """
    where = None if embedding is None else find_embedding(tables, embedding)
    reader = None if where is None else VectorReader(where, dim=dim)
    names = None if identifier is None else Categories(identifier, numbers_in_text=False, blank_is_missing=False)
    codes = GrowingArray(np.int32, expected=tables.n_rows)

    def read(block: Block, place: Place) -> NDArray[Any] | None:
        if names is not None:
            codes.append(names.codes(block.batch.column(names.name), place))
        if reader is not None:
            return reader.read(block.batch, place)
        return read_scores(block.batch, str(score), place, is_prob=score_kind == "prob")

    columns = [name for name in (score, identifier) if name is not None] + list(where.columns if where else ())
    blocks = track(tables.blocks(columns), tables.n_rows)
    kept = _gathered(
        (values for _, values in usable(blocks, read)), where, keeping or Keeping(), expected=tables.n_rows
    )
    if not kept["n"]:
        raise DataError(f"{shown(tables.paths[0])}: has no rows")
    return UnlabelledRows(**kept, embedding_at=where, ids=None if names is None else _texts(names)[codes.array()])


def _gathered(
    values: Iterable[NDArray[Any]], where: EmbeddingColumns | None, keeping: Keeping, *, expected: int | None
) -> dict[str, Any]:
    """Return what is kept of the embeddings, or of the scores where there are no embeddings."""
    if where is None:
        scores = GrowingArray(np.float64, expected=expected)
        for part in values:
            scores.append(part)
        without = dict.fromkeys(("dim", "embeddings", "projected", "embedding_digests"))
        return {"n": len(scores.array()), "scores": scores.array(), **without}
    embedded = EmbeddedRows(where.dtype, expected=expected, keeping=keeping)
    embedded.gather(values)
    digests = embedded.digests()
    return {
        "n": len(digests),
        "dim": embedded.dim,
        "embeddings": embedded.embeddings(),
        "projected": embedded.projected(),
        "scores": None,
        "embedding_digests": digests,
    }


def _texts(names: Categories) -> NDArray[np.object_]:
    """Return the text of each code; the last is for a null."""
    return np.array([*names.texts, null_text(names.texts)], dtype=object)
