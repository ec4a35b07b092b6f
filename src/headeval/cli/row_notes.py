"""What must be said of the rows: of their labels, of copies among them, and of few of them."""

from collections.abc import Iterable, Mapping
from typing import Any

import numpy as np
from numpy.typing import NDArray

from headeval.cli.sources import Source
from headeval.core.scaling import Scaling
from headeval.files.examples import Examples
from headeval.files.labels import counted
from headeval.files.tables import Tables
from headeval.head import LinearHead
from headeval.head_history import RowsSeen, fit_label_column
from headeval.printable import listed, quoted
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


def spelled_alike(names: Iterable[str]) -> list[list[str]]:
    """Return which names are the same but for upper and lower case and spaces.

    Examples
    --------
    >>> spelled_alike(["safe", "hate", "Hate "])
    [['hate', 'Hate ']]
    """
    alike: dict[str, list[str]] = {}
    for name in names:
        alike.setdefault("".join(name.split()).casefold(), []).append(name)
    return [together for together in alike.values() if len(together) > 1]


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
    alike = [] if named else spelled_alike(counts)
    notes = [f"the classes {listed(names)} differ in case or spaces only: are they one?" for names in alike]
    if few:
        misspelled = "" if named else ": are they meant, or misspelled?"
        notes.append(
            f"classes of fewer than {FEW_OF_A_CLASS} rows, which teach a head little: {counted(few)}{misspelled}"
        )
    return tuple(notes)


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
