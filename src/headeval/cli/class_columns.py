"""A bare score file of several classes: which column is of which class, and which class is flagged."""

from collections.abc import Iterable
from itertools import takewhile

from headeval.errors import UsageError
from headeval.files.label_columns import label_columns, label_names
from headeval.files.tables import Tables
from headeval.printable import listed, quoted
from headeval.scored_rows import ScoreKind

_PATTERN = "*?["


def names_several(tables: Tables, spec: str) -> bool:
    """Whether an option may name several columns: a list or a pattern that is no column's own name."""
    return any(char in spec for char in f",{_PATTERN}") and spec not in tables.column_names


def class_columns(
    tables: Tables, spec: str, kind: ScoreKind, classes: tuple[str, ...] | None, positive: str | None
) -> tuple[tuple[str, ...], tuple[str, ...]]:
    """Return the columns of --logit or --prob and the names of their classes, the flagged one last.

    Columns that are listed are of the classes in the order given; those of a pattern have the names that its star
    stands for, and the order of a pattern says nothing.

    Raises
    ------
    DataError : for columns that are missing.
    UsageError : where columns and names do not fit together, or nothing says which class of a pattern is flagged.
    """
    option = f"--{kind} {quoted(spec)}"
    columns = label_columns(tables, spec, option=f"--{kind}")
    names = label_names(columns, spec)
    pattern = any(char in spec for char in _PATTERN)
    if len(columns) == 1:
        return columns, names
    if classes is not None:
        return (_by_name if pattern else _in_order)(columns, names, classes, option), classes
    if positive is not None and positive in names:
        at = names.index(positive)
        order = [*(index for index in range(len(names)) if index != at), at]
        return tuple(columns[index] for index in order), tuple(names[index] for index in order)
    if positive is not None and not pattern:
        _refuse_part_of_a_name(columns, positive, option)
    if pattern:
        said = "which one is flagged" if positive is None else f"{quoted(positive)}, which is to be flagged"
        raise UsageError(
            f"{option} names the classes {listed(names)}, but not {said}: --positive NAME says it, or --classes with "
            "these names in an order whose last is flagged"
        )
    return columns, names


def _by_name(
    columns: tuple[str, ...], names: tuple[str, ...], classes: tuple[str, ...], option: str
) -> tuple[str, ...]:
    """A pattern gives no order that anybody has seen: its columns are told by their names."""
    if sorted(names) != sorted(classes):
        raise UsageError(
            f"{option} names {listed(names)}, but --classes {listed(classes)}: give the same names in the order "
            "wanted, or list the columns in the order of the classes"
        )
    return tuple(columns[names.index(name)] for name in classes)


def _in_order(
    columns: tuple[str, ...], names: tuple[str, ...], classes: tuple[str, ...], option: str
) -> tuple[str, ...]:
    if len(columns) != len(classes):
        raise UsageError(f"{option} names {len(columns)} columns, --classes {len(classes)} classes")
    for name, column, own in zip(classes * 2, columns * 2, names + _distinct_parts(columns), strict=True):
        if name != own and own in classes:
            raise UsageError(
                f"{option} lists the columns in another order than --classes, so that the class {quoted(name)} would "
                f"get the scores of column {quoted(column)}: list both in the same order"
            )
    return columns


def _refuse_part_of_a_name(columns: tuple[str, ...], positive: str, option: str) -> None:
    """Listed columns are named by --classes; a --positive that is none of them would be taken for a value of labels."""
    parts = _distinct_parts(columns)
    if positive not in parts:
        return
    order = sorted(range(len(columns)), key=lambda index: parts[index] == positive)
    wanted, classes = ([names[index] for index in order] for names in (columns, parts))
    given = option.partition(" ")[0]
    raise UsageError(
        f"{option} lists columns, and {quoted(positive)} is the name of none: name the classes in the order of the "
        f"columns, the flagged one last: {given} {quoted(','.join(wanted))} --classes {quoted(','.join(classes))}\n"
        f"where labels tell {quoted(positive)} from the rest only, judge its own column: {given} {quoted(wanted[-1])}"
    )


def _distinct_parts(columns: tuple[str, ...]) -> tuple[str, ...]:
    """Return the names without what all of them begin or end with: hate and spam of p_hate and p_spam."""
    before = _common_start(columns)
    after = _common_start(column[before:][::-1] for column in columns)
    return tuple(column[before : len(column) - after] for column in columns)


def _common_start(texts: Iterable[str]) -> int:
    """How many characters all begin with."""
    return sum(1 for _ in takewhile(lambda chars: len(set(chars)) == 1, zip(*texts, strict=False)))
