"""Tables scored by the workers of a cluster, and written here."""

from collections import deque
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import NDArray

from headeval.cluster.reading import AHEAD, away, error_here, missing_file, parts_of
from headeval.cluster.work import Cluster, Future, as_it_is
from headeval.errors import DataError
from headeval.files.collecting import place_of
from headeval.files.fingerprint import row_digests
from headeval.files.part_facts import EveryFault
from headeval.files.parts import TablePart
from headeval.files.row_faults import RowFaults
from headeval.files.scored_blocks import RowCounter, ScoredBlock
from headeval.files.tables import Block, Tables
from headeval.files.vector_blocks import one_table
from headeval.files.vectors import EmbeddingColumns, VectorReader
from headeval.joint_heads import JointHeads


@dataclass(slots=True)
class ScoredPart:
    """The rows of a part without their embeddings, and their logits.

    Attributes
    ----------
    blocks : the rows, block by block.
    digests : of the embeddings of each block, the first halves.
    faults, error : as of `headeval.files.part_facts.PartFacts`.
    """

    blocks: list[ScoredBlock] = field(default_factory=list)
    digests: list[NDArray[np.uint64]] = field(default_factory=list)
    faults: tuple[RowFaults, ...] = ()
    error: str | None = None

    def __sizeof__(self) -> int:
        """Return the bytes, by which Dask decides what is worth moving."""
        digests = sum(part.nbytes for part in self.digests)
        return digests + sum(int(part.block.batch.nbytes) + _logit_bytes(part) for part in self.blocks)


def cluster_blocks(
    cluster: Cluster,
    tables: Tables,
    heads: JointHeads,
    *,
    embedding: str,
    counters: Sequence[RowCounter],
    track: Callable[..., Any],
) -> Iterator[ScoredBlock]:
    """Return block after block, scored by heads; as `headeval.files.scored_blocks.head_blocks`, without the embeddings.

    Parameters
    ----------
    track : wraps `Block`s, to show progress.

    Raises
    ------
    DataError : for what `head_blocks` raises it, or where workers are lost.
    """
    where = one_table(tables, embedding)
    scored = _scored(cluster, tables, heads, where, counters)
    blocks: deque[ScoredBlock] = deque()

    def passing() -> Iterator[Block]:
        for part in scored:
            blocks.append(part)
            yield part.block

    for _ in track(passing(), tables.n_rows):
        yield blocks.popleft()


def scored_part(part: TablePart, columns: tuple[str, ...], where: EmbeddingColumns, heads: JointHeads) -> ScoredPart:
    """Read a part and score it; whatever is wrong with it is told in what is returned."""
    scored, faults, reader = ScoredPart(), EveryFault(), VectorReader(where, dim=heads.dim)
    scored.error = missing_file(part)
    if scored.error is not None:
        return scored
    if not part.begins_file:
        reader.expect(heads.dim, part.file.path)
    try:
        for block in part.blocks(columns):
            embeddings = reader.read(block.batch, place_of(block, faults))
            if embeddings is not None and not faults:
                batch = block.batch.drop_columns(list(where.columns))
                without = Block(block.path, block.first_row, batch, block.is_csv)
                scored.blocks.append(ScoredBlock.of(without, heads, embeddings))
                scored.digests.append(row_digests(embeddings)[:, 0])
    except DataError as error:
        scored.error = str(error)
    scored.faults = faults.found()
    return scored


def _logit_bytes(scored: ScoredBlock) -> int:
    return scored.logits.nbytes + (0 if scored.class_logits is None else scored.class_logits.nbytes)


def _scored(
    cluster: Cluster, tables: Tables, heads: JointHeads, where: EmbeddingColumns, counters: Sequence[RowCounter]
) -> Iterator[ScoredBlock]:
    faults = RowFaults()
    sent = cluster.submit(as_it_is, heads)

    def start(part: TablePart) -> Future:
        return cluster.submit(scored_part, away(part), tables.column_names, where, sent)

    for part, scored in cluster.in_order(start, parts_of(tables), ahead=AHEAD):
        path = part.file.path
        faults.raise_if_any(unless_in=path)
        for fault in scored.faults:
            faults.take(fault, path)
        if scored.error is not None:
            raise DataError(error_here(scored.error, part))
        if not faults:
            for block, digests in zip(scored.blocks, scored.digests, strict=True):
                for counter in counters:
                    counter.add(digests)
                yield block
    faults.raise_if_any()
