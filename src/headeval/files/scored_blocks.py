"""Rows with their scores, block after block: what heads make of embeddings, or a calibration of a column."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any, Protocol, Self

import numpy as np
from numpy.typing import NDArray

from headeval.core.checks import FloatArray
from headeval.core.class_scores import log_odds
from headeval.core.scaling import Scaling
from headeval.core.stable import logit
from headeval.core.threads import in_order, thread_count
from headeval.files.collecting import place_of
from headeval.files.examples import Track, untracked
from headeval.files.fingerprint import row_digests
from headeval.files.numeric import read_numbers
from headeval.files.row_faults import RowFaults
from headeval.files.tables import Block, Tables
from headeval.files.vector_blocks import embedding_blocks
from headeval.joint_heads import JointHeads
from headeval.printable import quoted
from headeval.scored_rows import ScoreKind


class RowCounter(Protocol):
    """What counts rows by their digests, block by block."""

    def add(self, digests: NDArray[np.uint64]) -> None:
        """Count the rows with these digests, shape (n,)."""


@dataclass(frozen=True, slots=True)
class ScoredBlock:
    """Rows with their logits.

    Attributes
    ----------
    logits : shape (n,), or (n, k) of k heads.
    class_logits : shape (n, C), of one head of more than two classes; else None.
    """

    block: Block
    logits: FloatArray
    class_logits: FloatArray | None = None

    @classmethod
    def of(cls, block: Block, heads: JointHeads, embeddings: NDArray[Any]) -> Self:
        """Return the rows of a block with what heads make of their embeddings, shape (n, dim)."""
        each = heads.class_logits(embeddings)
        logits = np.stack([log_odds(z) for z in each], axis=1)
        return cls(block, logits, each[0] if len(each) == 1 and each[0].shape[1] > 2 else None)


def head_blocks(
    tables: Tables,
    heads: JointHeads,
    *,
    embedding: str,
    counters: Sequence[RowCounter],
    track: Track = untracked,
) -> Iterator[ScoredBlock]:
    """Return block after block, with all its columns, scored by heads; `counters` count the rows they have seen.

    Raises
    ------
    DataError : for embeddings that are missing, or not the heads' width.
    """

    def scored(part: tuple[Block, NDArray[Any]]) -> tuple[ScoredBlock, NDArray[np.uint64]]:
        block, embeddings = part
        return ScoredBlock.of(block, heads, embeddings), row_digests(embeddings)[:, 0]

    blocks = embedding_blocks(tables, embedding=embedding, dim=heads.dim, track=track)
    for part, digests in in_order(scored, blocks, threads=thread_count()):
        for counter in counters:
            counter.add(digests)
        yield part


def column_blocks(
    tables: Tables, column: str, kind: ScoreKind, scaling: Scaling, *, track: Track = untracked
) -> Iterator[ScoredBlock]:
    """Return block after block, with all its columns, and the calibrated logits of a column of scores.

    Raises
    ------
    DataError : for a missing column, and for rows whose score is no finite number or, where it is a probability, not
        between 0 and 1, both excluded: their logits would be infinite.
    """
    faults = RowFaults()
    for block in track(tables.blocks(tables.column_names), tables.n_rows):
        faults.raise_if_any(unless_in=block.path)
        place = place_of(block, faults)
        scores = read_numbers(block.batch.column(column), column, place)
        certain = None if scores is None or kind == "logit" else (scores <= 0) | (scores >= 1)
        if scores is not None and certain is not None and certain.any():
            place.fault(
                certain,
                f"column {quoted(column)} is not between 0 and 1, so that its logit is not finite",
                advice="calibrate logits (--logit COL), or take these rows out",
                cells=scores[certain].tolist(),
            )
        if scores is not None and not faults:
            yield ScoredBlock(block, scaling.apply(scores if kind == "logit" else logit(scores)))
    faults.raise_if_any()
