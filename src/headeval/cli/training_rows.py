"""The rows of a fit, and where they live: in memory, on the disk, or with the workers of a cluster."""

from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Generic, TypeVar

import numpy as np

from headeval.cli.console import progress
from headeval.cli.rows import Columns, read_training_rows, reading
from headeval.errors import FitError, UsageError
from headeval.files.category_rows import CategoryExamples, read_category_examples
from headeval.files.examples import Examples
from headeval.files.sizes import available_memory, embedding_bytes
from headeval.files.tables import Tables
from headeval.files.vector_blocks import embedding_matrices
from headeval.solver.category_sums import CategoryColumns
from headeval.solver.memory import ArraySource
from headeval.solver.rows import RowColumns
from headeval.solver.source import Source
from headeval.solver.stream import StreamSource

if TYPE_CHECKING:
    from headeval.cluster.work import Cluster

# An in-memory fit takes its embeddings and a sample of them, beside what a process takes anyway.
_HELD = 1.5
_ROW_BYTES = 200  # of labels, digests, folds and scores, and of making them
_CATEGORY_BYTES = 60  # of each category's own
_OF_AVAILABLE = 0.7
_SAMPLE_SHARE = 3  # of the budget for a sample of the rows
_LEAST_SAMPLE = 2**24

Read = TypeVar("Read", Examples, CategoryExamples)


@dataclass(frozen=True, slots=True)
class TrainingRows:
    """The rows of a fit.

    Attributes
    ----------
    examples : what is known of them; with the embeddings only where these are in memory.
    source : where the embeddings live.
    how : how they are read, in words, where that is not once into memory.
    on_cluster : whether workers of a cluster hold them.
    """

    examples: Examples
    source: Source
    how: str | None = None
    on_cluster: bool = False

    @property
    def read_before(self) -> int:
        """How many passes over the rows were made before the solver's own."""
        return 0 if self.how is None else 1


@dataclass(frozen=True, slots=True)
class PlacedRows(Generic[Read]):
    """Rows that were read, and what makes a source of them for the solver.

    Attributes
    ----------
    examples, how, on_cluster : as `TrainingRows` has them.
    source : makes it, given what is known of every row beside its embedding.
    """

    examples: Read
    source: Callable[[RowColumns], Source]
    how: str | None = None
    on_cluster: bool = False

    @property
    def read_before(self) -> int:
        """How many passes over the rows were made before the solver's own."""
        return 0 if self.how is None else 1


def read_training(
    tables: Tables, columns: Columns, *, named: bool, memory: int | None, cluster: "Cluster | None", quiet: bool
) -> TrainingRows:
    """Read what is to be fitted on.

    Parameters
    ----------
    named : whether the names of the rows are wanted.
    memory : the bytes that may be used; None for what is free.
    cluster : whose workers read the rows, or None.
    """

    def read(**how: Any) -> Examples:
        return read_training_rows(tables, columns, named=named, quiet=quiet, **how)

    rows = _placed(read, tables, columns, (columns.label,), memory, cluster, quiet=quiet)
    return TrainingRows(rows.examples, rows.source(_columns(rows.examples)), rows.how, rows.on_cluster)


def read_category_training(
    tables: Tables,
    columns: Columns,
    labels: Sequence[str],
    *,
    named: bool,
    memory: int | None,
    cluster: "Cluster | None",
    quiet: bool,
) -> PlacedRows[CategoryExamples]:
    """Read what heads of several categories are to be fitted on, once; parameters as of `read_training`.

    Parameters
    ----------
    labels : the columns of the categories, instead of `columns.label`.
    """
    identifier = columns.id_column(tables) if named else None

    def read(**how: Any) -> CategoryExamples:
        return read_category_examples(
            tables,
            labels=labels,
            positive=columns.positive,
            embedding=columns.embedding,
            weight=columns.weight,
            group=columns.group,
            by=[] if identifier is None else [identifier],
            track=reading(quiet),
            **how,
        )

    return _placed(read, tables, columns, labels, memory, cluster, quiet=quiet)


@contextmanager
def room_to_fit(dim: int | None, heads: int = 1) -> Iterator[None]:
    """Refuse to begin a fit that memory cannot hold, and say so where that shows only on the way.

    Parameters
    ----------
    dim : the width of the embeddings; None where it is not known.
    heads : how many are fitted in shared passes, and have their matrices at the same time.

    Raises
    ------
    FitError : where the matrices of the fit do not fit into memory.
    """
    side = (dim or 0) + 1
    # A Hessian in float32, and its factors for each head: the least that any way takes.
    needed, free = 4 * side**2 * (1 + heads), available_memory()
    if needed > free:
        raise FitError(
            f"no head was written: a fit on {dim or 0:,} dimensions takes {1 + heads} matrices of {side:,} × {side:,} "
            f"numbers, {needed / 1e9:,.3g} GB, and {free / 1e9:,.3g} GB of memory are free; use shorter embeddings"
        )
    try:
        yield
    except MemoryError as error:
        raise FitError(
            f"no head was written: memory ran out in the fit, on {dim or 0:,} dimensions; {free / 1e9:,.3g} GB were "
            "free before; use shorter embeddings or fewer rows"
        ) from error


def category_columns(examples: CategoryExamples, categories: Sequence[int]) -> CategoryColumns:
    """Return what the solver takes of some of the categories."""
    return CategoryColumns(examples.labels[list(categories)], examples.weights)


def _placed(
    read: Callable[..., Read],
    tables: Tables,
    columns: Columns,
    labels: Sequence[str],
    memory: int | None,
    cluster: "Cluster | None",
    *,
    quiet: bool,
) -> PlacedRows[Read]:
    """Read the rows to where there is room for them."""
    if cluster is not None:
        from headeval.cli.engine import rows_on, source_on

        rows = rows_on(cluster, keep=True, quiet=quiet)
        examples = read(hold=False, collect=rows.collect)
        how = f"held by the Dask cluster {cluster.where}"
        return PlacedRows(examples, lambda known: source_on(rows, known, examples.dim), how, on_cluster=True)
    taken = {name for name in (*labels, columns.weight, columns.group) if name is not None}
    needed = _HELD * embedding_bytes(tables, columns.embedding, taken=taken)
    budget = int(_OF_AVAILABLE * available_memory()) if memory is None else memory
    if needed > budget:
        return _streamed(read, tables, budget, _ROW_BYTES + _CATEGORY_BYTES * (len(labels) - 1), quiet=quiet)
    examples = read()
    embeddings = examples.embeddings
    if embeddings is None:  # never: they are held
        raise TypeError("the embeddings were not read")

    def track(name: str) -> Any:
        return progress(name, quiet=quiet, size=lambda rows: rows.n)

    return PlacedRows(examples, lambda known: ArraySource.of(embeddings, known, track=track))


def _streamed(
    read: Callable[..., Read], tables: Tables, budget: int, row_bytes: int, *, quiet: bool
) -> PlacedRows[Read]:
    _check_budget(budget, tables.n_rows or 0, row_bytes)
    examples = read(hold=False)
    dim, embedding_at = examples.dim, examples.embedding_at
    if dim is None or embedding_at is None:  # never: there are embeddings
        raise TypeError("the embeddings were not read")
    n = int(np.count_nonzero(examples.kept))
    _check_budget(budget, n, row_bytes)

    def matrices(name: str) -> Iterable[Any]:
        track = progress(name, quiet=quiet, size=lambda block: block.batch.num_rows)
        return embedding_matrices(tables, examples, track=track)

    def source(known: RowColumns) -> Source:
        sample_bytes = max(_LEAST_SAMPLE, (budget - row_bytes * n) // _SAMPLE_SHARE)
        return StreamSource(matrices, known, dim, embedding_at.dtype, sample_bytes=sample_bytes)

    return PlacedRows(examples, source, "read anew in every pass, as they do not fit into the memory allowed")


def _check_budget(budget: int, n: int, row_bytes: int) -> None:
    if budget < row_bytes * n:
        raise UsageError(
            f"--memory allows {budget / 1e6:,.3g} MB, but labels, folds and scores of {n:,} rows alone take "
            f"{row_bytes * n / 1e6:,.3g} MB: give more, such as --memory 1GB"
        )


def _columns(examples: Examples) -> RowColumns:
    """Return what the solver takes of every row beside its embedding; of more than two classes the labels are codes."""
    codes = examples.class_codes
    if codes is None:
        return RowColumns(examples.labels, examples.weights)
    few = len(examples.class_names) <= np.iinfo(np.uint8).max
    labels: Any = codes.astype(np.uint8) if few else codes
    return RowColumns(labels, examples.weights)
