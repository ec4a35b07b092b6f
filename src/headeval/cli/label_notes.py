"""What must be said of the labels: of which column they are, and how many rows have none."""

from collections.abc import Mapping
from typing import Any

from headeval.core.scaling import Scaling
from headeval.files.examples import Examples
from headeval.head_history import fit_label_column
from headeval.printable import quoted
from headeval.render.left_out import LIKE_THEM, much_left_out, part_of

FEW_FOR_PLATT = 200
FEW_OF_A_CLASS_FOR_PLATT = 50


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


def few_for_platt(scaling: Scaling, n: int, positives: int) -> tuple[str, ...]:
    """Advise against two parameters where few rows would pay for the second."""
    rarer = min(positives, n - positives)
    if scaling.method != "platt" or (n >= FEW_FOR_PLATT and rarer >= FEW_OF_A_CLASS_FOR_PLATT):
        return ()
    so_few = f"{n:,} rows, {rarer:,} of the rarer class"
    return (f"two parameters on so few rows ({so_few}) can do harm: compare with --method temperature on other rows",)
