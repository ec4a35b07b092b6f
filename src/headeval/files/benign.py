"""Unlabelled benign traffic, scored by a head block by block: only a few numbers a row are kept."""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from headeval.core.checks import FloatArray
from headeval.core.stable import sigmoid
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
from headeval.joint_heads import JointHeads


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
    (rows,) = read_benign_of(tables, [head], embedding=embedding, track=track)
    return rows


def read_benign_of(
    tables: Tables, heads: Sequence[LinearHead], *, embedding: str, track: Track = untracked
) -> tuple[BenignRows, ...]:
    """Score every row with several heads of one width, over one reading; errors as of `read_benign`."""
    where, joint = find_embedding(tables, embedding), JointHeads(heads)
    reader = VectorReader(where, dim=joint.dim)
    keeping = Keeping(hold=False, project=lambda embeddings: sigmoid(joint.logits(embeddings)))
    embedded = EmbeddedRows(where.dtype, expected=tables.n_rows, keeping=keeping)
    blocks = track(tables.blocks(where.columns), tables.n_rows)
    found = usable(blocks, lambda block, place: reader.read(block.batch, place))
    embedded.gather(embeddings for _, embeddings in found)
    digests, probs = embedded.digests(), embedded.projected()
    if probs is None or not probs.size:
        raise DataError(f"{shown(tables.paths[0])}: has no rows; benign traffic is needed to certify a flag rate")
    text = fingerprint(digests, np.zeros(len(digests), dtype=np.uint8))
    short = digests[:, 0]
    return tuple(
        BenignRows(probs[:, index].copy(), text, short, rows_seen(head.metrics, short))
        for index, head in enumerate(heads)
    )
