"""Which columns an option names: one, a list of them, or a pattern that several match."""

from collections import Counter
from collections.abc import Collection, Iterable, Sequence
from fnmatch import fnmatchcase

from headeval.errors import DataError
from headeval.files.arrow_errors import shown
from headeval.files.table_file import TableFile, families
from headeval.files.tables import Tables
from headeval.printable import listed, quoted

_WILD = "*?["


def label_columns(
    tables: Tables, spec: str, *, option: str = "--label", taken: Collection[str] = ()
) -> tuple[str, ...]:
    r"""Return the columns that `spec` names.

    Parameters
    ----------
    tables : the opened files; each must have every column.
    spec : a name; names with commas between them, which are returned in this order; a pattern with `*`, `?` or `[…]`,
        whose matches are returned in the order in which the files have them; or a list of names and patterns. What is
        the whole name of a column is that column, whatever commas and stars it holds.
    option : what the specification was given to, for messages.
    taken : columns with another meaning, which no pattern matches. It never matches embeddings either: columns of
        lists, and what reading would take for the embeddings by itself.

    Raises
    ------
    DataError : for a column that is missing or is there twice, a pattern that nothing matches, and a column that is
        named more than once.

    Examples
    --------
    >>> from pathlib import Path
    >>> from tempfile import TemporaryDirectory
    >>> from headeval.files.tables import open_tables
    >>> with TemporaryDirectory() as folder:
    ...     _ = Path(folder, "a.csv").write_text("id,cat_b,cat_a\n1,0,1\n")
    ...     tables = open_tables([folder])
    ...     label_columns(tables, "cat_a,cat_b"), label_columns(tables, "cat_*"), label_columns(tables, "id")
    (('cat_a', 'cat_b'), ('cat_b', 'cat_a'), ('id',))
    """
    names = dict.fromkeys(name for file in tables.files for name in file.schema.names)
    columns = [
        column
        for item in listed_names(spec, names, option=option)
        for column in (_matches(tables, item, names, option, taken) if is_pattern(item, names) else [item])
    ]
    for column in columns:
        for file in tables.files:
            file.field(column, option=option)
    twice = [column for column, times in Counter(columns).items() if times > 1]
    if twice:
        raise DataError(f"{option} {quoted(spec)} names {listed(twice)} more than once: name each column once")
    return tuple(columns)


def label_names(columns: Sequence[str], spec: str) -> tuple[str, ...]:
    """Return a short name for each column: of a pattern with one star what the star stands for, else the column.

    Parameters
    ----------
    columns : what `label_columns` returned for `spec`.

    Examples
    --------
    >>> label_names(["p_hate", "p_spam"], "p_*"), label_names(["p_hate", "p_spam"], "p_hate,p_spam")
    (('hate', 'spam'), ('p_hate', 'p_spam'))
    """
    before, star, after = spec.partition("*")
    plain = not any(mark in before + after for mark in f"{_WILD},")
    fits = all(column.startswith(before) and column.endswith(after) for column in columns)
    if not (star and plain and fits) or tuple(columns) == (spec,):
        return tuple(columns)
    names = tuple(column[len(before) : len(column) - len(after)] for column in columns)
    return names if all(names) else tuple(columns)


def listed_names(spec: str, names: Collection[str], *, option: str = "--label") -> Iterable[str]:
    """Return the names and patterns of a list; of commas inside the names of columns as few as possible divide.

    Raises
    ------
    DataError : where nothing stands beside a comma.
    """
    parts = spec.split(",")
    if len(parts) == 1:
        return [spec]
    items, start = [], 0
    while start < len(parts):
        stop, item = next(
            (stop, joined)
            for stop in range(len(parts), start, -1)
            for joined in _spellings(",".join(parts[start:stop]))
            if joined in names or (stop == start + 1 and joined == parts[start].strip())
        )
        if not item:
            raise DataError(f"{option} {quoted(spec)}: a name is missing beside a comma; write it as a,b,c")
        items.append(item)
        start = stop
    return items


def _spellings(text: str) -> tuple[str, str]:
    return text, text.strip()


def is_pattern(item: str, names: Collection[str]) -> bool:
    """Whether an item of a list is a pattern, and not the name of a column that holds such a character."""
    return item not in names and any(mark in item for mark in _WILD)


def _matches(tables: Tables, pattern: str, names: Iterable[str], option: str, taken: Collection[str]) -> list[str]:
    matching = [name for name in names if fnmatchcase(name, pattern)]
    if not matching:
        has = families(tables.files[0].schema.names)
        raise DataError(
            f"{shown(tables.paths[0])}: no column matches {option} {quoted(pattern)}; its columns are {has}"
        )
    # Scores of numbered classes look like numbered embeddings, but a pattern for scores does not mean those.
    embeddings = _embeddings(tables, pattern) if option == "--label" else _list_columns(tables)
    labels = [name for name in matching if name not in embeddings and name not in taken]
    if not labels:
        raise DataError(
            f"{shown(tables.paths[0])}: {option} {quoted(pattern)} matches only columns of another meaning: "
            f"{families(matching)}"
        )
    return labels


def _embeddings(tables: Tables, pattern: str) -> set[str]:
    """Return the columns of embeddings that a pattern may match without naming them."""
    from headeval.files.vectors import DEFAULT_NAME, find_embedding

    columns = _list_columns(tables)
    try:
        where = find_embedding(tables, DEFAULT_NAME)
    except DataError:
        return columns
    named = pattern[: min(pattern.find(mark) for mark in _WILD if mark in pattern)]
    # Categories may be numbered, too: 'cat_*' means cat_1 and cat_2, '*' does not mean e0 and e1.
    if where.wide and where.columns[0].rstrip("0123456789") == named:
        return columns
    return columns.union(where.columns)


def _list_columns(tables: Tables) -> set[str]:
    return {name for file in tables.files for name in _lists(file)}


def _lists(file: TableFile) -> list[str]:
    import pyarrow as pa

    from headeval.files.numeric import plain_type

    return [field.name for field in file.schema if pa.types.is_nested(plain_type(field.type))]
