"""Score files: columns of logits and probabilities, and the metadata that says which is which."""

import dataclasses
import json
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from headeval.core.checks import FloatArray
from headeval.core.stable import sigmoid
from headeval.errors import DataError, OutputError
from headeval.files.arrow_errors import shown
from headeval.files.collecting import place_of
from headeval.files.examples import Track, untracked
from headeval.files.numeric import read_numbers
from headeval.files.row_faults import RowFaults
from headeval.files.tables import Block, Tables
from headeval.printable import listed, quoted

# Which column is a logit is written into the Parquet metadata under this key, never guessed from the values.
_KEY = "headeval_scores"


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

    def metadata(self) -> dict[str, str]:
        """Return the schema metadata that `declared_scores` reads."""
        return {_KEY: json.dumps(dataclasses.asdict(self))}

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


def declared_scores(tables: Tables) -> DeclaredScores | None:
    """Return what the files' metadata says of their scores; None where it is absent or not of our form."""
    try:
        content = json.loads(tables.metadata.get(_KEY, "null"))
        negative, positive = (str(name) for name in content["classes"])
        threshold = float(content["threshold"])
        names = [str(content[name]) for name in ("logit", "prob", "flagged")]
    except (ValueError, TypeError, KeyError, RecursionError):
        return None
    declared = DeclaredScores(names[0], names[1], names[2], (negative, positive), threshold)
    usable = 0 <= declared.threshold <= 1 and {declared.logit, declared.prob} <= set(tables.column_names)
    return declared if usable else None


def score_blocks(
    tables: Tables, column: str, kind: Literal["logit", "prob"], *, track: Track = untracked
) -> Iterator[tuple[Block, NDArray[np.float64]]]:
    """Return block after block, with all its columns, and its scores, shape (n,).

    Raises
    ------
    DataError : for a missing column, and for rows whose score is no finite number (or no probability).
    """
    faults = RowFaults()
    for block in track(tables.blocks(tables.column_names), tables.n_rows):
        faults.raise_if_any(unless_in=block.path)
        place = place_of(block, faults)
        scores = read_numbers(block.batch.column(column), column, place)
        if scores is not None and kind == "prob":
            outside = (scores < 0) | (scores > 1)
            if outside.any():
                place.fault(outside, f"column {quoted(column)} is no probability in [0, 1]")
        if scores is not None and not faults:
            yield block, scores
    faults.raise_if_any()


def refuse_own_input(output: Path, tables: Tables) -> None:
    """Refuse to replace a table by what is made from it, also with --force: the embeddings would be lost.

    Raises
    ------
    OutputError : where the output is one of the input files.
    """
    for path in tables.paths:
        if output.exists() and output.samefile(path):
            raise OutputError(f"{shown(output)} is one of the inputs: choose another name for the output")
