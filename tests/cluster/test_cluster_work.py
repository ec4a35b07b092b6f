"""What is given to workers comes back, in order, and little of it waits there."""

from collections.abc import Callable, Iterator
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

from headeval.cluster import work
from headeval.cluster.reading import AHEAD, ClusterRows, facts_at_once, facts_of, kept_part, parts_of
from headeval.cluster.scoring import scored_part
from headeval.cluster.work import Cluster
from headeval.core import threads as shared_threads
from headeval.files import embedded_rows
from headeval.files.collecting import Wanted
from headeval.files.examples import read_examples
from headeval.files.parts import TablePart
from headeval.files.tables import open_tables
from headeval.files.vectors import find_embedding
from headeval.head import LinearHead
from headeval.joint_heads import JointHeads

pytestmark = pytest.mark.usefixtures("small_parts")


class Reluctant(Cluster):
    """Takes the place of a cluster of one thread: a function is called when its result is taken."""

    def __init__(self) -> None:
        super().__init__(None, "of this process")
        self.waiting: set[int] = set()
        self.most_waiting = 0

    def submit(self, function: Any, *arguments: Any, near: Any = ()) -> Any:
        future = SimpleNamespace(function=function, arguments=arguments)
        if function is not work.as_it_is:
            self.waiting.add(id(future))
            self.most_waiting = max(self.most_waiting, len(self.waiting))
        return future

    def threads(self) -> list[str]:
        return ["here"]

    def result(self, future: Any) -> Any:
        self.waiting.discard(id(future))
        arguments = (self.result(item) if isinstance(item, SimpleNamespace) else item for item in future.arguments)
        return future.function(*arguments)


def test_a_result_that_takes_longer_to_send_than_a_look_comes(
    cluster: Cluster, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It is computed when its sending is not yet at an end, many looks long."""
    monkeypatch.setattr(work, "_LOOK_SECONDS", 1e-4)
    assert cluster.result(cluster.submit(np.ones, 10**6)).sum() == 10**6


def test_a_timeout_of_the_function_itself_is_raised(cluster: Cluster) -> None:
    with pytest.raises(TimeoutError, match="of its own"):
        cluster.result(cluster.submit(exec, "raise TimeoutError('of its own')"))


@pytest.mark.parametrize(("ahead", "most"), [(3, 4), (None, 20)])
def test_pieces_come_in_order_and_few_of_them_wait(ahead: int | None, most: int) -> None:
    workers = Reluctant()
    found = workers.in_order(lambda piece: workers.submit(abs, -piece), range(20), ahead=ahead)
    assert list(found) == [(piece, piece) for piece in range(20)]
    assert workers.most_waiting == most


def test_embeddings_that_are_not_kept_do_not_pile_up(make_tables: Callable[..., list[str]]) -> None:
    tables = open_tables(make_tables())
    assert len(parts_of(tables)) > AHEAD + 1
    workers, rows = Reluctant(), []
    read_examples(
        tables,
        embedding="embedding",
        hold=False,
        collect=ClusterRows(workers, keep=False).collect,
        on_block=lambda _, embeddings: rows.append(len(embeddings)),
    )
    assert sum(rows) == 780
    assert workers.most_waiting == AHEAD + 1


def first_part(paths: list[str]) -> tuple[TablePart, Wanted]:
    tables = open_tables(paths)
    where = find_embedding(tables, "embedding")
    wanted = Wanted(
        labels=("label",),
        embedding=where,
        score=None,
        is_prob=False,
        weight=None,
        group=None,
        by=(),
        drop_unlabelled=False,
        dim=None,
    )
    return parts_of(tables)[0], wanted


def test_dask_sees_how_large_a_part_is(make_tables: Callable[..., list[str]]) -> None:
    sizeof = pytest.importorskip("dask.sizeof", reason="this test needs Dask: pip install 'headeval[dask]'").sizeof
    part, wanted = first_part(make_tables())
    assert part.n_rows is not None
    kept = kept_part(part, wanted, None)
    least = part.n_rows * (30 * 4 + 2 * 8)  # embeddings of 30 float32, digests of two uint64
    for sent in (facts_at_once(part, wanted, None, True, None), facts_of(kept, None, True), kept):
        assert least < sizeof(sent) < 2 * least
    without = part.n_rows * 2 * 8
    assert without < sizeof(facts_at_once(part, wanted, None, False, None)) < 3 * without


@pytest.mark.parametrize("n_classes", [2, 60])
def test_dask_sees_how_large_a_scored_part_is(make_tables: Callable[..., list[str]], n_classes: int) -> None:
    """Of many classes nearly all of it is their logits."""
    sizeof = pytest.importorskip("dask.sizeof", reason="this test needs Dask: pip install 'headeval[dask]'").sizeof
    part, wanted = first_part(make_tables())
    assert part.n_rows is not None
    assert wanted.embedding is not None
    head = LinearHead("m", tuple(map(str, range(n_classes))), np.ones((n_classes, 30)), np.zeros(n_classes), 0.5)
    scored = scored_part(part, ("embedding", "weight"), wanted.embedding, JointHeads([head]))
    held = part.n_rows * 8 * (3 + (n_classes if n_classes > 2 else 0))  # weight, logit, digest, logits of classes
    assert held <= sizeof(scored) < 1.5 * held


def test_a_task_of_a_worker_takes_one_thread(
    make_tables: Callable[..., list[str]], monkeypatch: pytest.MonkeyPatch
) -> None:
    """A machine runs as many workers as it has processors."""
    part, wanted = first_part(make_tables())
    asked: list[int] = []
    in_order = shared_threads.in_order

    def asking(function: Any, pieces: Any, *, threads: int) -> Iterator[Any]:
        asked.append(threads)
        return in_order(function, pieces, threads=1)

    monkeypatch.setattr(embedded_rows, "in_order", asking)
    monkeypatch.setattr(embedded_rows, "thread_count", lambda: 7)
    kept_part(part, wanted, None)
    facts_at_once(part, wanted, None, True, None)
    assert asked == [1, 1]
    # Elsewhere all processors are used.
    read_examples(open_tables([str(part.file.path)]), embedding="embedding")
    assert asked == [1, 1, 7]
