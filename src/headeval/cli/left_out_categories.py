"""Categories that a command leaves out: why, and what is said of them at its end."""

from collections.abc import Sequence

from headeval.category_summaries import LeftOut
from headeval.cli.category_subjects import CategorySubject
from headeval.cli.console import say
from headeval.errors import FitError
from headeval.printable import listed, quoted

_REASONS = 3


def left_out(rows: CategorySubject, why: str) -> LeftOut:
    """Return the record of a category that is left out."""
    subject = rows.subject
    known, positives = (0, 0) if subject is None else (len(subject.labels), int(subject.labels.sum()))
    return LeftOut(rows.name, known, positives, rows.unknown, why)


def n_rows(rows: CategorySubject) -> int:
    """Return how many rows were read, with and without a label of the category."""
    return rows.unknown + (0 if rows.subject is None else len(rows.subject.labels))


def too_few_rows(rows: CategorySubject, least: int) -> str:
    """Say why a category has too few rows of a class; empty where it has enough.

    Parameters
    ----------
    least : rows of each class, ≥ 1.
    """
    if rows.subject is None:
        return rows.why
    known, positives = len(rows.subject.labels), int(rows.subject.labels.sum())
    if positives in {0, known}:
        return f"all {known:,} known rows are {quoted(rows.subject.examples.classes[int(positives > 0)])}"
    for found, what in ((positives, "positives"), (known - positives, "negatives")):
        if found < least:
            return f"{found:,} known {what}, fewer than --min-positives {least:,}"
    return ""


def report_left_out(parts: Sequence[LeftOut], total: int, done: str, *, allow_missing: bool, quiet: bool) -> None:
    """Say at the end of a command which categories it has left out.

    Parameters
    ----------
    total : how many categories there are.
    done : what was to be done with them, such as "calibrated".

    Raises
    ------
    FitError : where that is not allowed, or nothing is left.
    """
    if not parts:
        return
    if len(parts) == total:
        reasons = "; ".join(f"{quoted(part.name)}: {part.why}" for part in parts[:_REASONS])
        more = f"; and {total - _REASONS} more" if total > _REASONS else ""
        which = "the only category" if total == 1 else f"none of the {total} categories"
        could = "could not" if total == 1 else "could"
        raise FitError(f"{which} {could} be {done}, so nothing was written\n{reasons}{more}")
    names = listed(part.name for part in parts)
    text = f"{len(parts)} of {total} categories could not be {done}, and {'is' if len(parts) == 1 else 'are'} left out"
    if not allow_missing:
        raise FitError(f"{text}: {names}\nthe others are written; with --allow-missing that is no error")
    say(f"headeval: {text}: {names}", quiet=quiet)
