"""A fit on the rows that workers keep: the optimum of one machine, whatever happens to the workers."""

import dataclasses
import os
import signal
import threading
from collections.abc import Callable, Iterator
from typing import Any

import dask
import numpy as np
import pytest
from sklearn.linear_model import LogisticRegression

from headeval.cluster import work
from headeval.cluster.reading import ClusterRows
from headeval.cluster.session import cluster_session
from headeval.cluster.source import ClusterSource
from headeval.cluster.work import Cluster
from headeval.errors import DataError
from headeval.files.examples import Examples, read_examples
from headeval.files.tables import open_tables
from headeval.solver.memory import ArraySource
from headeval.solver.optimum import optima
from headeval.solver.rows import RowColumns
from headeval.solver.sums import Hessian, LossAndGradient

# ‖g‖∞ ≤ 1e-9 and a penalty of 1, so that no weight is further than √(d+1)·1e-9 from the optimum; seen are 1e-10.
SAME_OPTIMUM = 1e-9

SAMPLED = 60  # rows, so few that the fit needs many passes over all of them

pytestmark = pytest.mark.usefixtures("small_parts")


def kept_rows(cluster: Cluster, data: list[str], **columns: Any) -> tuple[Examples, ClusterSource]:
    rows = ClusterRows(cluster, keep=True)
    examples = read_examples(open_tables(data), embedding="embedding", hold=False, collect=rows.collect, **columns)
    assert examples.dim is not None
    columns = RowColumns(examples.labels, examples.weights)
    return examples, ClusterSource(rows, columns, examples.dim, sample_bytes=SAMPLED * examples.dim * 8)


def local_source(data: list[str], **columns: Any) -> ArraySource:
    examples = read_examples(open_tables(data), embedding="embedding", **columns)
    assert examples.embeddings is not None
    return ArraySource.of(examples.embeddings, RowColumns(examples.labels, examples.weights))


def five_folds(n: int) -> Any:
    return np.arange(n, dtype=np.int16) % 5


def test_the_optimum_is_that_of_scikit_learn(cluster: Cluster, make_tables: Callable[..., list[str]]) -> None:
    data = make_tables()
    local = read_examples(open_tables(data), embedding="embedding")
    _, source = kept_rows(cluster, data)
    fit = optima(source, l2=1.0)[0]
    assert local.embeddings is not None
    units = local.embeddings.astype(np.float64)
    units /= np.linalg.norm(units, axis=1, keepdims=True)
    oracle = LogisticRegression(C=1.0, solver="newton-cholesky", tol=1e-12).fit(units, local.labels)
    assert fit.converged
    np.testing.assert_allclose(fit.w, [*oracle.coef_[0], *oracle.intercept_], rtol=0, atol=SAME_OPTIMUM)


def test_weights_and_folds_end_where_they_end_on_one_machine(
    cluster: Cluster, make_tables: Callable[..., list[str]]
) -> None:
    data = make_tables()
    examples, source = kept_rows(cluster, data, weight="weight")
    local = local_source(data, weight="weight")
    left_out = (None, *range(5))
    for some in (source, local):
        some.hold_out(five_folds(len(examples.labels)))
    there, here = (optima(some, l2=1.0, left_out=left_out) for some in (source, local))
    for one, other in zip(there, here, strict=True):
        np.testing.assert_allclose(one.w, other.w, rtol=0, atol=SAME_OPTIMUM)
    assert len({fit.w.tobytes() for fit in there}) == len(left_out)
    # The logits of held-out rows depend on the row alone, so they have the very same bits.
    W = np.stack([fit.w for fit in here[1:]])
    assert source.logits(W[None]).tolist() == local.logits(W[None]).tolist()


def test_rows_are_drawn_from_all_parts_in_their_order(cluster: Cluster, make_tables: Callable[..., list[str]]) -> None:
    data = make_tables()
    examples, source = kept_rows(cluster, data, weight="weight")
    positions = np.array([0, 1, 119, 120, 259, 260, 500, 779])
    rows, expected = source.rows_at(positions), local_source(data, weight="weight").rows_at(positions)
    for name in ("embeddings", "inverse_norms"):
        assert getattr(rows, name).tolist() == getattr(expected, name).tolist()
    assert rows.columns.labels.tolist() == examples.labels[positions].tolist()
    assert rows.columns.weights is not None
    assert rows.columns.weights.tolist() == expected.columns.weights.tolist()  # type: ignore[union-attr]  # it has them


def test_every_sum_has_the_same_bits_on_any_cluster(cluster: Cluster, make_tables: Callable[..., list[str]]) -> None:
    """One process that takes the tasks in another order gives the very same bits as two."""
    data = make_tables(n_files=4)
    w = np.random.default_rng(5).normal(size=(6, 31))

    def bits(of: Cluster) -> list[bytes]:
        _, source = kept_rows(of, data)
        source.hold_out(five_folds(source.columns.n))
        sums = [source.total(LossAndGradient(w, (None, *range(5)))), source.total(Hessian(w[0], left_out=2))]
        return [part.tobytes() for parts in sums for part in parts]

    assert bits(cluster) == bits(InProcess())


def test_a_pass_sends_sums_and_not_rows(cluster: Cluster, make_tables: Callable[..., list[str]]) -> None:
    """All tasks of a pass run where their part is kept, and parts stay there."""
    _, source = kept_rows(cluster, make_tables(n_files=4))
    before = source._homes()
    assert {len(home) for home in before} == {1}
    assert len({tuple(home) for home in before}) == 2
    for _ in range(3):
        source.total(LossAndGradient(np.zeros((1, source.d + 1)), (None,)))
    assert source._homes() == before


@pytest.mark.slow
def test_a_worker_that_dies_in_the_middle_of_a_fit_is_survived(
    by_hand: Callable[[int], Any], make_tables: Callable[..., list[str]], monkeypatch: pytest.MonkeyPatch
) -> None:
    """And when all of them are gone, that is an error, and soon."""
    data = make_tables(n_files=4)
    started = by_hand(2)
    with cluster_session(started.address) as cluster:
        _, source = kept_rows(cluster, data)
        first = source.total(LossAndGradient(np.zeros((1, source.d + 1)), (None,)))
        total, passes_before = source.total, source.passes

        def dying(what: Any) -> Any:
            if source.passes != passes_before + 2:
                return total(what)
            killing = threading.Timer(0.005, started.workers[0].kill)
            killing.start()
            sums = total(what)
            killing.join()
            return sums

        monkeypatch.setattr(source, "total", dying)
        fit = optima(source, l2=1.0)[0]
        assert source.passes > passes_before + 3
        assert started.workers[0].wait(timeout=10) == -signal.SIGKILL
        np.testing.assert_allclose(fit.w, optima(local_source(data), l2=1.0)[0].w, rtol=0, atol=SAME_OPTIMUM)
        # All parts are on the worker that is left, and their sums have the bits that they had on two.
        assert len({tuple(home) for home in source._homes()}) == 1
        again = total(LossAndGradient(np.zeros((1, source.d + 1)), (None,)))
        assert [part.tobytes() for part in again] == [part.tobytes() for part in first]

        monkeypatch.setattr(work, "WORKERLESS_SECONDS", 1)
        started.workers[1].kill()
        with pytest.raises(DataError, match=r"all workers of the cluster at 'tcp://.*' are lost"):
            total(LossAndGradient(np.zeros((1, source.d + 1)), (None,)))


def test_a_scheduler_that_dies_ends_the_fit(
    by_hand: Callable[[int], Any], make_tables: Callable[..., list[str]], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(dask.config.config["distributed"]["comm"]["timeouts"], "connect", "1s")
    started = by_hand(1)
    with cluster_session(started.address) as cluster:
        _, source = kept_rows(cluster, make_tables())
        started.scheduler.kill()
        with pytest.raises(DataError, match=r"the scheduler of the cluster at 'tcp://.*' is lost"):
            source.total(LossAndGradient(np.zeros((1, source.d + 1)), (None,)))


def test_a_part_too_large_for_a_worker_is_an_error(cluster: Cluster) -> None:
    with pytest.raises(DataError, match="the rows do not fit into the memory of the workers of the cluster"):
        cluster.result(cluster.submit(exec, "raise MemoryError"))


@pytest.mark.slow
def test_a_part_that_ends_every_worker_is_given_up() -> None:
    """As one does that does not fit, where the system ends the process; Dask starts the worker anew each time."""
    with (
        cluster_session(n_workers=1) as cluster,
        pytest.raises(DataError, match="one part of them has ended 4 workers, which may have too little memory"),
    ):
        cluster.result(cluster.submit(os._exit, 1))


def test_a_part_that_is_read_again_must_hold_the_same_rows(
    cluster: Cluster, make_tables: Callable[..., list[str]]
) -> None:
    _, source = kept_rows(cluster, make_tables())
    source._held = [dataclasses.replace(source._held[0], mark=b"another"), *source._held[1:]]
    source._columns = source._sent_columns()
    with pytest.raises(DataError, match=r"part-0\.parquet': the rows have changed while they were read"):
        source.total(LossAndGradient(np.zeros((1, source.d + 1)), (None,)))


class InProcess(Cluster):
    """Takes the place of a cluster: every function is called here, those of a graph from the last to the first."""

    def __init__(self) -> None:
        super().__init__(None, "of this process")

    def submit(self, function: Any, *arguments: Any, near: Any = ()) -> Any:
        return Done(function(*(getattr(argument, "value", argument) for argument in arguments)))

    def threads(self) -> list[str]:
        return ["here"]

    def homes(self, futures: Any) -> list[Any]:
        return [["here"] for _ in futures]

    def result(self, future: Any) -> Any:
        return future.value

    def run(self, graph: Any, keys: Any, homes: Any) -> Iterator[Any]:
        results: dict[Any, Any] = {}

        def value(item: Any) -> Any:
            return results[item] if isinstance(item, tuple) and item in graph else getattr(item, "value", item)

        waiting = list(graph)[::-1]
        while waiting:
            for key in list(waiting):
                function, *arguments = graph[key]
                if not any(isinstance(item, tuple) and item in waiting for item in arguments):
                    results[key] = function(*map(value, arguments))
                    waiting.remove(key)
        yield from (results[key] for key in keys)


@dataclasses.dataclass
class Done:
    value: Any
