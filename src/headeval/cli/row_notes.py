"""What must be said of the rows: of their labels, of copies among them, and of few of them."""

from collections.abc import Mapping
from typing import Any

import numpy as np
from numpy.typing import NDArray

from headeval.cli.sources import Source
from headeval.core.scaling import Scaling
from headeval.files.examples import Examples
from headeval.files.fingerprint import zero_digest
from headeval.files.label_faults import misspelled
from headeval.files.labels import counted
from headeval.files.tables import Tables
from headeval.head import LinearHead
from headeval.head_history import RowsSeen, fit_label_column
from headeval.printable import quoted
from headeval.render.left_out import LIKE_THEM, much_left_out, part_of

FEW_FOR_PLATT, FEW_OF_A_CLASS = 200, 10
MANY_COPIES = 0.01  # of all rows
FEW_OF_A_CLASS_FOR_PLATT = 50

_USED = {"fitted": "used for the fit", "calibrated": "used for a calibration"}


def which_rows(examples: Examples, source: Source, seen: RowsSeen | None) -> str:
    """Say in words which rows are judged; rows that the head has seen are never passed over."""
    rows = f"{len(examples.labels):,} labelled rows"
    scored = "" if source.head else f", scored by {source.columns}"
    if source.seen and examples.unlabelled and source.seen.either:
        return f"{rows}{scored}; of all {source.seen.n:,} rows of the file {source.seen.either:,} made what is judged"
    if seen is None:
        return f"{rows}{scored}; which rows the {'head' if source.head else 'classifier'} was fitted on is not known"
    about = "" if seen.exact else "about "
    if seen.in_sample:
        used, words = getattr(seen, seen.in_sample), _USED[seen.in_sample]
        if 2 * used < seen.n:
            used, words = seen.either, "used for the fit or a calibration"
        which = "all" if used == seen.n else f"{about}{used:,} of"
        return f"IN-SAMPLE: {which} these {rows}{scored} were {words}; judge on other rows"
    parts = [f"{about}{getattr(seen, use):,} of them {words}" for use, words in _USED.items() if getattr(seen, use)]
    checked = (
        "of them"
        if seen.exact
        else f"of {seen.checked:,} rows that could be checked (the head keeps a sample of its own)"
    )
    none = f"none {checked} is recognised as one that made the head"
    return f"{rows}{scored}; {' and '.join(parts) or none}"


def label_column_note(history: Mapping[str, Any], column: str) -> tuple[str, ...]:
    """Ask whether two columns mean the same, where the fit had its labels from another than these rows have.

    Parameters
    ----------
    history : the `metrics` of a head, of whatever program.
    column : of the labels of these rows.
    """
    fitted = fit_label_column(history)
    if fitted in {None, column}:
        return ()
    columns = f"was fitted on labels of column {quoted(fitted)}, these are of column {quoted(column)}"
    return (f"the head {columns}: do they mean the same?",)


def model_note(head: LinearHead | None, tables: Tables, option: str | None) -> tuple[str, ...]:
    """Say that nothing tells whether embeddings are of the head's model, where neither files nor option name one."""
    if head is None or option is not None or tables.embedding_model is not None:
        return ()
    model = quoted(head.embedding_model)
    return (f"the files name no embedding model: nothing tells whether it is the head's, {model}",)


def unlabelled_note(examples: Examples, *, rows: str = "rows") -> tuple[str, ...]:
    """Say how many rows were left out, where they are too many for the others to stand for all.

    Parameters
    ----------
    rows : what to call them.
    """
    left_out, total = examples.unlabelled, examples.unlabelled + len(examples.labels)
    if not much_left_out(left_out, total):
        return ()
    return (f"{part_of(left_out, total, rows)} have no label and are left out: {LIKE_THEM}",)


def class_note(declared: tuple[str, str] | None, classes: tuple[str, str]) -> tuple[str, ...]:
    """Say which label value stands for the class that is flagged, where it has another name."""
    if declared is None or declared == classes:
        return ()
    return (f"{quoted(classes[1])} is taken for the flagged class {quoted(declared[1])}, as --positive says",)


def classes_note(counts: Mapping[str, int], *, named: bool) -> tuple[str, ...]:
    """Ask whether classes that were read from a column are misspelled: a slip of the pen there is one class more.

    Parameters
    ----------
    counts : rows of each class; of two classes nothing is said.
    named : whether --classes names them, which nobody does by mistake.
    """
    if len(counts) <= 2:
        return ()
    few = {name: rows for name, rows in counts.items() if rows < FEW_OF_A_CLASS}
    alike = [] if named else misspelled(counts)
    notes = [f"CAUTION: {_rows_of(counts, rare)} looks like {quoted(common)}: misspelled?" for rare, common in alike]
    if few:
        doubt = "" if named else ": are they meant, or misspelled?"
        notes.append(f"classes of fewer than {FEW_OF_A_CLASS} rows, which teach a head little: {counted(few)}{doubt}")
    return tuple(notes)


def _rows_of(counts: Mapping[str, int], name: str) -> str:
    return counted({name: counts[name]})


def copies(digests: NDArray[np.uint64]) -> int:
    """Return how many rows repeat another one; digests (n,)."""
    return int(digests.shape[0] - np.unique(digests).shape[0])


def copies_note(digests: NDArray[np.uint64]) -> tuple[str, ...]:
    """Say how many rows are copies, where they are many: intervals take rows for independent of each other."""
    repeated = copies(digests)
    if repeated <= MANY_COPIES * digests.shape[0]:
        return ()
    of = f"{repeated:,} of {digests.shape[0]:,} rows are copies of another (the same embedding)"
    return (f"{of}; intervals and gates take each for independent evidence: leave copies out, or name them by --group",)


def zero_rows(digests: NDArray[np.uint64], dim: int | None) -> int:
    """Return how many embeddings are all zero; digests (n,), the first halves."""
    return 0 if dim is None else int(np.count_nonzero(digests == zero_digest(dim)))


def zeros_note(n: int, *, rows: str = "rows") -> tuple[str, ...]:
    """Say how many rows have an embedding of zeros, which is what a job that failed leaves behind.

    Parameters
    ----------
    n : how many; of none nothing is said.
    rows : what to call them.
    """
    if not n:
        return ()
    if n == 1:
        return (f"1 {rows[:-1]} has an embedding of zeros: its score says nothing of it",)
    return (f"{n:,} {rows} have an embedding of zeros: they all get the same score",)


class ZeroRows:
    """Counts, block by block, the rows whose embedding is all zero.

    Parameters
    ----------
    dim : the width of the embeddings.
    """

    def __init__(self, dim: int) -> None:
        self._dim = dim
        self.n = 0

    def add(self, digests: NDArray[np.uint64]) -> None:
        """Count the rows with these digests, shape (n,)."""
        self.n += zero_rows(digests, self._dim)


def few_rows(scaling: Scaling, n: int, positives: int) -> tuple[str, ...]:
    """Warn of a scaling that rests on a handful of rows of a class, and advise against two parameters on few."""
    rarer = min(positives, n - positives)
    if rarer < FEW_OF_A_CLASS:
        return (f"the scaling rests on {rarer:,} rows of the rarer class: take it for a guess",)
    return few_for_platt(scaling, n, positives)


def few_for_platt(scaling: Scaling, n: int, positives: int) -> tuple[str, ...]:
    """Advise against two parameters where few rows would pay for the second."""
    rarer = min(positives, n - positives)
    if scaling.method != "platt" or (n >= FEW_FOR_PLATT and rarer >= FEW_OF_A_CLASS_FOR_PLATT):
        return ()
    so_few = f"{n:,} rows, {rarer:,} of the rarer class"
    return (f"two parameters on so few rows ({so_few}) can do harm: compare with --method temperature on other rows",)
