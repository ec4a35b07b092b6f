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
from headeval.solver.stream import StreamSource
from headeval.solver.sums import Source

if TYPE_CHECKING:
    from headeval.cluster.work import Cluster

# An in-memory fit takes its embeddings, a sample of them, and what a process takes anyway.
_HELD, _PROCESS = 1.5, 300_000_000
_ROW_BYTES = 80  # of labels, digests, folds and scores, which are always held
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
        return TrainingRows(examples, source_on(rows, examples), f"held by the Dask cluster {cluster.where}", True)
    taken = {name for name in (columns.label, columns.weight, columns.group) if name is not None}
    needed = _HELD * embedding_bytes(tables, columns.embedding, taken=taken) + _PROCESS
    budget = int(_OF_AVAILABLE * available_memory()) if memory is None else memory
    if needed <= budget:
        examples = read_training_rows(tables, columns, named=named, quiet=quiet)
        if examples.embeddings is None:  # never: they are held
            raise TypeError("the embeddings were not read")
        return TrainingRows(examples, ArraySource.of(examples.embeddings, _columns(examples)))
    return _streamed(tables, columns, budget, named=named, quiet=quiet)


def _streamed(tables: Tables, columns: Columns, budget: int, *, named: bool, quiet: bool) -> TrainingRows:
    examples = read_training_rows(tables, columns, named=named, quiet=quiet, hold=False)
    if examples.dim is None or examples.embedding_at is None:  # never: there are embeddings
        raise TypeError("the embeddings were not read")
    facts = _ROW_BYTES * len(examples.labels)
    if budget < facts:
        raise UsageError(
            f"--memory is too small: labels, folds and scores of {len(examples.labels):,} rows alone take "
            f"{facts / 1e6:,.0f} MB"
        )

    def matrices(name: str) -> Iterable[Any]:
        track = progress(f"{name}", quiet=quiet, size=lambda block: block.batch.num_rows)
        return embedding_matrices(tables, examples, track=track)

    source = StreamSource(
        matrices,
        _columns(examples),
        examples.dim,
        examples.embedding_at.dtype,
        sample_bytes=max(_LEAST_SAMPLE, (budget - facts) // _SAMPLE_SHARE),
    )
    return TrainingRows(examples, source, "read anew in every pass, as they do not fit into the memory allowed")


def _columns(examples: Examples) -> RowColumns:
    return RowColumns(examples.labels, examples.weights)
