"""Score files: columns of logits and probabilities, and the metadata that says which is which."""

import dataclasses
import json
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from headeval.core.checks import FloatArray
from headeval.core.scaling import Scaling
from headeval.core.stable import logit, sigmoid
from headeval.core.threads import in_order, thread_count
from headeval.errors import DataError
from headeval.files.arrow_errors import shown
from headeval.files.collecting import place_of
from headeval.files.examples import Track, untracked
from headeval.files.fingerprint import row_digests
from headeval.files.numeric import read_numbers
from headeval.files.output import table_writer
from headeval.files.row_faults import RowFaults
from headeval.files.tables import Block, Tables
from headeval.files.vector_blocks import embedding_blocks
from headeval.head import LinearHead
from headeval.head_history import RowsSeen, SeenCounter
from headeval.printable import listed, quoted
from headeval.scored_rows import ScoreKind

# Which column is a logit is written into the Parquet metadata under this key, never guessed from the values.
_KEY = "headeval_scores"
_SEEN_KEY = "headeval_rows_seen"


@dataclass(frozen=True, slots=True)
class DeclaredScores:
    """What a score file says about its own columns.

    Attributes
    ----------
    logit, prob, flagged : column names.
    classes : (negative, positive).
    threshold : a row was flagged when its probability was at least this.
    """

    logit: str
    prob: str
    flagged: str
    classes: tuple[str, str]
    threshold: float

    def metadata(self, earlier: Sequence["DeclaredScores"] = ()) -> dict[str, str]:
        """Return the schema metadata that `declared_scores` reads, with what the file declared before."""
        return {_KEY: json.dumps([dataclasses.asdict(entry) for entry in (self, *earlier)])}

    def flags(self, logits: FloatArray) -> NDArray[np.bool_]:
        """Return whether the probability of each logit reaches the threshold, bool (n,)."""
        flags: NDArray[np.bool_] = sigmoid(logits) >= self.threshold
        return flags

    def add_to(self, batch: pa.RecordBatch, logits: FloatArray) -> pa.RecordBatch:
        """Return the rows with the three columns of these logits, shape (n,), behind their own."""
        columns = {self.logit: logits, self.prob: sigmoid(logits), self.flagged: self.flags(logits)}
        for name, values in columns.items():
            batch = batch.append_column(name, pa.array(values))
        return batch

    def check_free(self, tables: Tables) -> None:
        """Refuse tables that have one of the three columns already.

        Raises
        ------
        DataError : naming the columns.
        """
        taken = [name for name in (self.logit, self.prob, self.flagged) if name in tables.column_names]
        if taken:
            raise DataError(
                f"{shown(tables.paths[0])} already has the columns {listed(taken)}, which are to be added: rename them"
            )


def declared_scores(tables: Tables) -> tuple[DeclaredScores, ...]:
    """Return what the files' metadata says of their scores, the newest first; empty where it is absent or not ours."""
    return _declared(tables.metadata.get(_KEY, "[]"), tables.column_names)


def declarations_differ(tables: Tables) -> bool:
    """Whether the files declare their scores, but not all of them the same."""
    return _KEY not in tables.metadata and any(_KEY in file.metadata for file in tables.files)


def _declared(text: str, columns: Sequence[str]) -> tuple[DeclaredScores, ...]:
    found = []
    try:
        for content in json.loads(text):
            negative, positive = (str(name) for name in content["classes"])
            names = [str(content[name]) for name in ("logit", "prob", "flagged")]
            found.append(
                DeclaredScores(names[0], names[1], names[2], (negative, positive), float(content["threshold"]))
            )
    except (ValueError, TypeError, KeyError, OverflowError, RecursionError):
        return ()
    usable = (0 <= entry.threshold <= 1 and {entry.logit, entry.prob} <= set(columns) for entry in found)
    return tuple(found) if all(usable) else ()


def declared_seen(tables: Tables) -> RowsSeen | None:
    """Return how many rows of all files together had been seen; None where one does not say, or has changed since."""
    total = RowsSeen(0, 0, 0, 0, 0)
    for file in tables.files:
        try:
            content = json.loads(file.metadata.get(_SEEN_KEY, "null"))
            counts = [content[field.name] for field in dataclasses.fields(RowsSeen)]
        except (ValueError, TypeError, KeyError, RecursionError):
            return None
        n, fitted, *others = counts
        usable = all(type(count) is int and 0 <= count <= n for count in (n, *others, 0 if fitted is None else fitted))
        if not usable or n != file.n_rows:
            return None
        total += RowsSeen(*counts)
    return total


def seen_after_calibration(before: RowsSeen | None, labelled: int, unlabelled: int) -> RowsSeen:
    """Return what to say of a score file whose labelled rows a calibration has used, after what was said before."""
    n = labelled + unlabelled
    if before is None:
        return RowsSeen(n, None, labelled, labelled, n)
    return RowsSeen(n, before.fitted, labelled, min(n, max(labelled, before.either)), before.checked)


@dataclass(frozen=True, slots=True)
class ScoredBlock:
    """Rows with their logits, shape (n,)."""

    block: Block
    logits: FloatArray


def head_blocks(
    tables: Tables, head: LinearHead, *, embedding: str, counter: SeenCounter, track: Track = untracked
) -> Iterator[ScoredBlock]:
    """Return block after block, with all its columns, scored by a head; `counter` counts the rows it has seen.

    Raises
    ------
    DataError : for embeddings that are missing, or not the head's width.
    """

    def scored(part: tuple[Block, NDArray[Any]]) -> tuple[ScoredBlock, NDArray[np.uint64]]:
        block, embeddings = part
        return ScoredBlock(block, head.logits(embeddings)), row_digests(embeddings)[:, 0]

    blocks = embedding_blocks(tables, embedding=embedding, dim=head.dim, track=track)
    for part, digests in in_order(scored, blocks, threads=thread_count()):
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


def write_scored(
    output: Path,
    scored: Iterable[ScoredBlock],
    declared: DeclaredScores,
    *,
    without: Sequence[str] = (),
    metadata: Mapping[str, str],
    earlier: Sequence[DeclaredScores] = (),
    seen: Callable[[], RowsSeen | None],
    force: bool,
) -> tuple[int, int]:
    """Write the rows with the declared columns of their logits; return how many there are and how many are flagged.

    Parameters
    ----------
    without : columns that are left out, where they have not been already.
    metadata : text for the schema metadata of a Parquet file; what is declared, and what was seen, is added.
    earlier : what the table declared before of columns that stay.
    seen : asked at the end how many of the rows had been seen.

    Raises
    ------
    OutputError : where the file exists or cannot be written.
    """
    rows = flagged = 0
    kept = {key: value for key, value in metadata.items() if key != _SEEN_KEY}  # it spoke of other columns
    with table_writer(output, force=force, metadata={**kept, **declared.metadata(earlier)}) as table:
        for part in scored:
            batch = part.block.batch
            left_out = [name for name in without if name in batch.schema.names]
            table.write(declared.add_to(batch.drop_columns(left_out) if left_out else batch, part.logits))
            rows += len(part.logits)
            flagged += int(np.count_nonzero(declared.flags(part.logits)))
        total = seen()
        if total is not None:
            table.add_metadata({_SEEN_KEY: json.dumps(dataclasses.asdict(total))})
    return rows, flagged
