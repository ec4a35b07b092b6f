"""Unlabelled benign traffic, scored by a head block by block: only a few numbers a row are kept."""

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from headeval.core.checks import FloatArray
from headeval.errors import DataError
from headeval.files.arrow_errors import shown
from headeval.files.collecting import usable
from headeval.files.embedded_rows import EmbeddedRows, Keeping
from headeval.files.examples import Track, untracked
from headeval.files.fingerprint import fingerprint
from headeval.files.tables import Tables
from headeval.files.vectors import VectorReader, find_embedding
from headeval.head import LinearHead
from headeval.head_history import RowsSeen, rows_seen


@dataclass(frozen=True, slots=True)
class BenignRows:
    """Scored benign traffic.

    Attributes
    ----------
    probs : (n,) of the flagged class.
    fingerprint : the same for the same rows in any order and any division into files.
    digests : (n,) of each row's embedding.
    seen : how many of them made the head, where that is known.
    """

    probs: FloatArray
    fingerprint: str
    digests: NDArray[np.uint64]
    seen: RowsSeen | None

    @property
    def n(self) -> int:
        """How many rows there are."""
        return int(self.probs.shape[0])


def read_benign(tables: Tables, head: LinearHead, *, embedding: str, track: Track = untracked) -> BenignRows:
    """Score every row with a head; columns other than the embeddings are not read.

    Raises
    ------
    DataError : for embeddings that are missing, cannot be used or are not the head's width, and for no rows at all.
    """
    where = find_embedding(tables, embedding)
    reader = VectorReader(where, dim=head.dim)
    keeping = Keeping(hold=False, project=lambda embeddings: head.probs(embeddings)[:, None])
    embedded = EmbeddedRows(where.dtype, expected=tables.n_rows, keeping=keeping)
    blocks = track(tables.blocks(where.columns), tables.n_rows)
    found = usable(blocks, lambda block, place: reader.read(block.batch, place))
    embedded.gather(embeddings for _, embeddings in found)
    digests, probs = embedded.digests(), embedded.projected()
    if probs is None or not probs.size:
        raise DataError(f"{shown(tables.paths[0])}: has no rows; benign traffic is needed to certify a flag rate")
    text = fingerprint(digests, np.zeros(len(digests), dtype=np.uint8))
    return BenignRows(probs[:, 0], text, digests[:, 0], rows_seen(head.metrics, digests[:, 0]))
