"""The rows of a fit, and where they live: in memory, on the disk, or with the workers of a cluster."""

from collections.abc import Iterable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from headeval.cli.console import progress
from headeval.cli.rows import Columns, read_training_rows
from headeval.errors import UsageError
from headeval.files.examples import Examples
from headeval.files.sizes import available_memory, embedding_bytes
from headeval.files.tables import Tables
from headeval.files.vector_blocks import embedding_matrices
from headeval.solver.memory import ArraySource
from headeval.solver.rows import RowColumns
from headeval.solver.source import Source
from headeval.solver.stream import StreamSource

if TYPE_CHECKING:
    from headeval.cluster.work import Cluster

# An in-memory fit takes its embeddings and a sample of them, beside what a process takes anyway.
_HELD = 1.5
_ROW_BYTES = 200  # of labels, digests, folds and scores, and of making them
_OF_AVAILABLE = 0.7
_SAMPLE_SHARE = 3  # of the budget for a sample of the rows
_LEAST_SAMPLE = 2**24


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
    if cluster is not None:
        from headeval.cli.engine import rows_on, source_on

        rows = rows_on(cluster, keep=True, quiet=quiet)
        examples = read_training_rows(tables, columns, named=named, quiet=quiet, hold=False, collect=rows.collect)
        how = f"held by the Dask cluster {cluster.where}"
        return TrainingRows(examples, source_on(rows, examples), how, on_cluster=True)
    taken = {name for name in (columns.label, columns.weight, columns.group) if name is not None}
    needed = _HELD * embedding_bytes(tables, columns.embedding, taken=taken)
    budget = int(_OF_AVAILABLE * available_memory()) if memory is None else memory
    if needed > budget:
        return _streamed(tables, columns, budget, named=named, quiet=quiet)
    examples = read_training_rows(tables, columns, named=named, quiet=quiet)
    if examples.embeddings is None:  # never: they are held
        raise TypeError("the embeddings were not read")

    def track(name: str) -> Any:
        return progress(name, quiet=quiet, size=lambda rows: rows.n)

    return TrainingRows(examples, ArraySource.of(examples.embeddings, _columns(examples), track=track))


def _streamed(tables: Tables, columns: Columns, budget: int, *, named: bool, quiet: bool) -> TrainingRows:
    _check_budget(budget, tables.n_rows or 0)
    examples = read_training_rows(tables, columns, named=named, quiet=quiet, hold=False)
    if examples.dim is None or examples.embedding_at is None:  # never: there are embeddings
        raise TypeError("the embeddings were not read")
    n = len(examples.labels)
    _check_budget(budget, n)

    def matrices(name: str) -> Iterable[Any]:
        track = progress(name, quiet=quiet, size=lambda block: block.batch.num_rows)
        return embedding_matrices(tables, examples, track=track)

    source = StreamSource(
        matrices,
        _columns(examples),
        examples.dim,
        examples.embedding_at.dtype,
        sample_bytes=max(_LEAST_SAMPLE, (budget - _ROW_BYTES * n) // _SAMPLE_SHARE),
    )
    return TrainingRows(examples, source, "read anew in every pass, as they do not fit into the memory allowed")


def _check_budget(budget: int, n: int) -> None:
    if budget < _ROW_BYTES * n:
        raise UsageError(
            f"--memory allows {budget / 1e6:,.3g} MB, but labels, folds and scores of {n:,} rows alone take "
            f"{_ROW_BYTES * n / 1e6:,.3g} MB: give more, such as --memory 1GB"
        )


def _columns(examples: Examples) -> RowColumns:
    return RowColumns(examples.labels, examples.weights)
