"""The rows of some tables, gathered in this process or elsewhere, and the fields that they have in common."""

from collections.abc import Callable, Iterable, Sequence
from dataclasses import replace
from typing import Any

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from headeval.errors import DataError
from headeval.files.arrow_errors import shown
from headeval.files.coded_columns import Coded
from headeval.files.collecting import Collector, Wanted
from headeval.files.embedded_rows import Keeping
from headeval.files.one_value import check_comparable, one_value_each
from headeval.files.tables import Block, Tables
from headeval.files.vectors import find_embedding

Track = Callable[[Iterable[Block], int | None], Iterable[Block]]
Collect = Callable[[Tables, Wanted, Keeping, Track], Collector]


def untracked(blocks: Iterable[Block], n_rows: int | None) -> Iterable[Block]:  # noqa: ARG001 - the form of a Track
    """Return the blocks as they are."""
    return blocks


def check_columns(
    tables: Tables,
    labels: Sequence[str],
    *,
    weight: str | None,
    group: str | None,
    by: Sequence[str],
    scores: Sequence[str] = (),
) -> None:
    """Refuse names of which a file has not just one column, or of which two files cannot be compared.

    Raises
    ------
    DataError : for the first of them, naming the option.
    """
    named: dict[str | None, str] = dict.fromkeys(labels, "--label")
    named |= {weight: "--weight", group: "--group"} | dict.fromkeys(by, "--by")
    for file in tables.files:
        for column, option in [*named.items(), *((name, "") for name in scores)]:
            if column is not None:
                file.field(column, option=option)
    check_comparable(tables, [name for name in (group, *by) if name is not None], labels=labels)


def groups_and_slices(tables: Tables, rows: Collector) -> tuple[Coded | None, dict[str, Coded]]:
    """Return the columns of groups and of slices, in which equal values of all files are one.

    Raises
    ------
    DataError : for values of one file that cannot be compared with those of another.
    """
    groups, name = rows.groups(), rows.wanted.group
    slices = {by: one_value_each(tables, by, column) for by, column in rows.slices().items()}
    return groups if groups is None or name is None else one_value_each(tables, name, groups), slices


def gathered(
    tables: Tables, wanted: Wanted, embedding: str | None, keeping: Keeping, *, track: Track, collect: Collect | None
) -> Collector:
    """Read the wanted columns of all rows, where `embedding` is named with the embeddings.

    Raises
    ------
    DataError : for a missing column, or a row that cannot be used.
    """
    if embedding is not None:
        wanted = replace(wanted, embedding=find_embedding(tables, embedding, taken=set(wanted.singles)))
    return (collect or _collected)(tables, wanted, keeping, track)


def embedded_fields(rows: Collector) -> dict[str, Any]:
    """Return what is kept of the embeddings, by the names that the records of rows have for it."""
    embedded = rows.embedded
    if embedded is None:
        return dict.fromkeys(("embedding_at", "dim", "embeddings", "projected", "embedding_digests"))
    return {
        "embedding_at": rows.wanted.embedding,
        "dim": embedded.dim,
        "embeddings": embedded.embeddings(),
        "projected": embedded.projected(),
        "embedding_digests": embedded.digests(),
    }


def usable_weights(weights: NDArray[np.float64] | None, *, where: str) -> NDArray[np.float64] | None:
    """Return the weights.

    Raises
    ------
    DataError : where all are zero.
    """
    if weights is not None and not weights.any():
        raise DataError(f"{where}: all weights are 0")
    return weights


def file_names(tables: Tables) -> str:
    """Return the first file and how many more there are, for a message."""
    more = len(tables.paths) - 1
    return shown(tables.paths[0]) + ("" if more == 0 else f" and {more} more file{'' if more == 1 else 's'}")


def _collected(tables: Tables, wanted: Wanted, keeping: Keeping, track: Track) -> Collector:
    collector = Collector(wanted, tables.n_rows, keeping)
    try:
        collector.read(track(tables.blocks(wanted.columns), tables.n_rows))
    except MemoryError as error:
        raise DataError(f"{file_names(tables)}: the rows do not fit into memory; use fewer of them") from error
    pa.default_memory_pool().release_unused()  # what decoding took, and nothing will take again
    return collector
