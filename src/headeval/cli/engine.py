"""`--engine dask`: the rows of a command read, scored and summed by the workers of a cluster."""

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import partial
from typing import TYPE_CHECKING

from headeval.cli.console import progress
from headeval.errors import UsageError

if TYPE_CHECKING:
    from headeval.cluster.reading import ClusterRows
    from headeval.cluster.source import ClusterSource
    from headeval.cluster.work import Cluster
    from headeval.files.examples import Collect
    from headeval.files.scored_blocks import ScoredBlock
    from headeval.solver.rows import RowColumns


def check_engine(engine: str, scheduler: str | None) -> None:
    """Refuse an address of a scheduler that nothing would connect to.

    Raises
    ------
    UsageError : for --scheduler without --engine dask.
    """
    if scheduler is not None and engine != "dask":
        raise UsageError("--scheduler ADDRESS is for --engine dask: give both, or neither")


@contextmanager
def connected(engine: str, scheduler: str | None) -> "Iterator[Cluster | None]":
    """Yield the cluster while it is needed; None where the rows are to be read in this process."""
    if engine != "dask":
        yield None
        return
    from headeval.cluster.session import cluster_session

    with cluster_session(scheduler) as cluster:
        yield cluster


def rows_on(cluster: "Cluster", *, keep: bool, quiet: bool) -> "ClusterRows":
    """Return what reads rows on the cluster: its `collect` is for `read_training_rows` and `read_subject`.

    Parameters
    ----------
    keep : whether the workers keep the embeddings, so that a head can be fitted on them.
    """
    from headeval.cluster.reading import ClusterRows

    return ClusterRows(cluster, keep=keep, follow=progress("reading", quiet=quiet))


def collect_on(cluster: "Cluster | None", *, quiet: bool) -> "Collect | None":
    """Return what reads the rows of `read_subject` on the cluster, which keeps none of them; None reads them here."""
    return None if cluster is None else rows_on(cluster, keep=False, quiet=quiet).collect


def head_blocks_of(cluster: "Cluster | None") -> "Callable[..., Iterator[ScoredBlock]]":
    """Return `headeval.files.scored_blocks.head_blocks`, or what does the same on the cluster."""
    if cluster is None:
        from headeval.files.scored_blocks import head_blocks

        return head_blocks
    from headeval.cluster.scoring import cluster_blocks

    return partial(cluster_blocks, cluster)


def source_on(rows: "ClusterRows", columns: "RowColumns", dim: int | None) -> "ClusterSource":
    """Return the rows that workers have kept, for the solver.

    Parameters
    ----------
    columns : what is known of every row that `rows.collect` has read.
    dim : the width of the embeddings.
    """
    from headeval.cluster.source import ClusterSource

    if dim is None:
        raise ValueError("the examples were read without embeddings")
    return ClusterSource(rows, columns, dim)
