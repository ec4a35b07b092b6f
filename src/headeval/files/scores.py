"""Score files: columns of logits and probabilities, and the metadata that says which is which."""

import dataclasses
import json
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Self

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from headeval.core.checks import FloatArray
from headeval.core.stable import sigmoid, softmax
from headeval.errors import DataError
from headeval.files.arrow_errors import shown
from headeval.files.output import table_writer
from headeval.files.scored_blocks import ScoredBlock
from headeval.files.scored_blocks import column_blocks as column_blocks
from headeval.files.tables import Tables
from headeval.head import LinearHead
from headeval.head_history import RowsSeen
from headeval.printable import listed

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
    category : which of several categories these are the scores of; empty without.
    class_names : all classes, the positive one last, where there are more than two; else empty.
    class_columns, class_probs : of each of them the column with its logit, and the one with its probability.
    predicted : the column with the name of the most probable class; empty without `class_names`.
    """

    logit: str
    prob: str
    flagged: str
    classes: tuple[str, str]
    threshold: float
    category: str = ""
    class_names: tuple[str, ...] = ()
    class_columns: tuple[str, ...] = ()
    class_probs: tuple[str, ...] = ()
    predicted: str = ""

    @classmethod
    def of_head(cls, head: LinearHead, category: str = "") -> Self:
        """Return what `score` declares of the columns that it adds for a head.

        Examples
        --------
        >>> head = LinearHead.binary([1, 2], -1, classes=("not hate", "hate"), embedding_model="model")
        >>> DeclaredScores.of_head(head, "hate").columns
        ('hate_logit', 'hate_prob', 'hate_flagged')
        """
        names = [f"{category}_{name}" if category else name for name in ("logit", "prob", "flagged")]
        declared = cls(names[0], names[1], names[2], head.decision_classes, head.threshold, category)
        if len(head.classes) == 2:
            return declared
        return dataclasses.replace(
            declared,
            class_names=head.classes,
            class_columns=tuple(f"logit_{name}" for name in head.classes),
            class_probs=tuple(f"prob_{name}" for name in head.classes),
            predicted="predicted",
        )

    @property
    def columns(self) -> tuple[str, ...]:
        """All columns, in the order in which they are added."""
        more = (self.predicted, *self.class_columns, *self.class_probs) if self.class_names else ()
        return (self.logit, self.prob, self.flagged, *more)

    def metadata(self, earlier: Sequence["DeclaredScores"] = ()) -> dict[str, str]:
        """Return the schema metadata that `declared_scores` reads, with what the file declared before."""
        return scores_metadata((self, *earlier))

    def flags(self, logits: FloatArray) -> NDArray[np.bool_]:
        """Return whether the probability of each logit reaches the threshold, bool (n,)."""
        flags: NDArray[np.bool_] = sigmoid(logits) >= self.threshold
        return flags

    def add_to(
        self, batch: pa.RecordBatch, logits: FloatArray, class_logits: FloatArray | None = None
    ) -> pa.RecordBatch:
        """Return the rows with the columns of these logits, shape (n,), behind their own.

        Parameters
        ----------
        class_logits : of all classes, shape (n, C), where `class_names` has them.
        """
        columns = {self.logit: logits, self.prob: sigmoid(logits), self.flagged: self.flags(logits)}
        for name, values in columns.items():
            batch = batch.append_column(name, pa.array(values))
        if not self.class_names or class_logits is None:
            return batch
        first_of_ties = np.argmax(class_logits, axis=1)
        batch = batch.append_column(self.predicted, pa.array(np.array(self.class_names, dtype=object)[first_of_ties]))
        for names, matrix in ((self.class_columns, class_logits), (self.class_probs, softmax(class_logits))):
            for name, values in zip(names, matrix.T, strict=True):
                batch = batch.append_column(name, pa.array(np.ascontiguousarray(values)))
        return batch

    def check_free(self, tables: Tables) -> None:
        """Refuse tables that have one of the columns already.

        Raises
        ------
        DataError : naming the columns.
        """
        check_columns_free((self,), tables)


def check_columns_free(declared: Sequence[DeclaredScores], tables: Tables) -> None:
    """Refuse tables that have a column already which is to be added, and columns that would be added twice.

    Raises
    ------
    DataError : naming the columns.
    """
    names = [name for entry in declared for name in entry.columns]
    taken = [name for name in names if name in tables.column_names]
    if taken:
        raise DataError(
            f"{shown(tables.paths[0])} already has the columns {listed(taken)}, which are to be added: rename them"
        )
    twice = sorted({name for name in names if names.count(name) > 1})
    if twice:
        raise DataError(f"the heads would add the columns {listed(twice)} twice: score with fewer of them")


def scores_metadata(declared: Sequence[DeclaredScores]) -> dict[str, str]:
    """Return the schema metadata that `declared_scores` reads, the newest scores first."""
    return {_KEY: json.dumps([dataclasses.asdict(entry) for entry in declared])}


def declared_scores(tables: Tables) -> tuple[DeclaredScores, ...]:
    """Return what the files' metadata says of their scores, the newest first; empty where it is absent or not ours."""
    return _declared(tables.metadata.get(_KEY, "[]"), tables.column_names)


def declarations_differ(tables: Tables) -> bool:
    """Whether the files declare their scores, but not all of them the same."""
    return _KEY not in tables.metadata and any(_KEY in file.metadata for file in tables.files)


def _declared(text: str, columns: Sequence[str]) -> tuple[DeclaredScores, ...]:
    try:
        found = [_entry(content) for content in json.loads(text)]
    except (ValueError, TypeError, KeyError, OverflowError, RecursionError):
        return ()
    named = ({entry.logit, entry.prob, *entry.class_columns, *entry.class_probs} for entry in found)
    usable = all(0 <= entry.threshold <= 1 for entry in found) and all(names <= set(columns) for names in named)
    return tuple(found) if usable else ()


def _entry(content: Mapping[str, Any]) -> DeclaredScores:
    """Return one declaration; files that were written before there were categories and many classes say less."""
    negative, positive = (str(name) for name in content["classes"])
    entry = DeclaredScores(
        logit=str(content["logit"]),
        prob=str(content["prob"]),
        flagged=str(content["flagged"]),
        classes=(negative, positive),
        threshold=float(content["threshold"]),
        category=str(content.get("category", "")),
        class_names=tuple(map(str, content.get("class_names", ()))),
        class_columns=tuple(map(str, content.get("class_columns", ()))),
        class_probs=tuple(map(str, content.get("class_probs", ()))),
        predicted=str(content.get("predicted", "")),
    )
    if not len(entry.class_names) == len(entry.class_columns) == len(entry.class_probs):
        raise ValueError("each class has a logit and a probability")
    return entry


def declared_seen(tables: Tables, category: str = "") -> RowsSeen | None:
    """Return how many rows of all files together had been seen; None where one does not say, or has changed since.

    Parameters
    ----------
    category : by the head of which of several categories.
    """
    total = RowsSeen(0, 0, 0, 0, 0)
    for file in tables.files:
        try:
            content = json.loads(file.metadata.get(_seen_key(category), "null"))
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


def write_scored(
    output: Path,
    scored: Iterable[ScoredBlock],
    declared: DeclaredScores | Sequence[DeclaredScores],
    *,
    without: Sequence[str] = (),
    metadata: Mapping[str, str],
    earlier: Sequence[DeclaredScores] = (),
    seen: Callable[[], RowsSeen | Mapping[str, RowsSeen | None] | None],
    force: bool,
) -> tuple[int, tuple[int, ...]]:
    """Write the rows with the declared columns of their logits; return how many there are and how many are flagged.

    Parameters
    ----------
    declared : of the one thing that scored the rows, or of each, in the order of the logits; each flags its own rows.
    without : columns that are left out, where they have not been already.
    metadata : text for the schema metadata of a Parquet file; what is declared, and what was seen, is added.
    earlier : what the table declared before of columns that stay.
    seen : asked at the end how many of the rows had been seen; of categories, by each.

    Raises
    ------
    OutputError : where the file exists or cannot be written.
    """
    several = (declared,) if isinstance(declared, DeclaredScores) else tuple(declared)
    rows, flagged = 0, np.zeros(len(several), dtype=np.int64)
    kept = {key: value for key, value in metadata.items() if not key.startswith(_SEEN_KEY)}  # of other columns
    with table_writer(output, force=force, metadata={**kept, **scores_metadata((*several, *earlier))}) as table:
        for part in scored:
            batch, logits = part.block.batch, part.logits if part.logits.ndim == 2 else part.logits[:, None]
            left_out = [name for name in without if name in batch.schema.names]
            batch = batch.drop_columns(left_out) if left_out else batch
            for number, entry in enumerate(several):
                z = np.ascontiguousarray(logits[:, number])
                batch = entry.add_to(batch, z, part.class_logits)
                flagged[number] += np.count_nonzero(entry.flags(z))
            table.write(batch)
            rows += len(logits)
        known = _seen_metadata(seen())
        if known:
            table.add_metadata(known)
    return rows, tuple(flagged.tolist())


def _seen_metadata(seen: RowsSeen | Mapping[str, RowsSeen | None] | None) -> dict[str, str]:
    each = seen if isinstance(seen, Mapping) else {"": seen}
    return {
        _seen_key(category): json.dumps(dataclasses.asdict(total))
        for category, total in each.items()
        if total is not None
    }


def _seen_key(category: str) -> str:
    return f"{_SEEN_KEY}:{category}" if category else _SEEN_KEY
