"""Unlabelled benign traffic, scored by a head block by block: only two numbers a row are kept."""

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from headeval.core.checks import FloatArray
from headeval.errors import DataError
from headeval.files.arrow_errors import shown
from headeval.files.collecting import place_of
from headeval.files.examples import Track, untracked
from headeval.files.fingerprint import fingerprint, row_digests
from headeval.files.growing import GrowingArray
from headeval.files.row_faults import RowFaults
from headeval.files.tables import Tables
from headeval.files.vectors import VectorReader, find_embedding
from headeval.head import LinearHead
from headeval.head_history import RowsSeen, SeenCounter


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
    where, faults, counter = find_embedding(tables, embedding), RowFaults(), SeenCounter(head.metrics)
    reader, total = VectorReader(where, dim=head.dim), 0
    probs, kept = (GrowingArray(dtype, expected=tables.n_rows) for dtype in (np.float64, np.uint64))
    for block in track(tables.blocks(where.columns), tables.n_rows):
        faults.raise_if_any(unless_in=block.path)
        embeddings = reader.read(block.batch, place_of(block, faults))
        if embeddings is None or faults:
            continue
        digests = row_digests(embeddings)
        counter.add(digests[:, 0])
        # Fingerprints of parts add up, modulo 2**128, to that of the whole.
        total += int(fingerprint(digests, np.zeros(len(digests), dtype=np.uint8)).partition(":")[2], 16)
        probs.append(head.probs(embeddings))
        kept.append(digests[:, 0])
    faults.raise_if_any()
    scored: FloatArray = probs.array()
    if not scored.size:
        raise DataError(f"{shown(tables.paths[0])}: has no rows; benign traffic is needed to certify a flag rate")
    return BenignRows(scored, f"{scored.size}:{total % 2**128:032x}", kept.array(), counter.total())
