"""Tables read by the workers of a cluster: each part by one of them, which keeps its embeddings."""

import dataclasses
import socket
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from hashlib import blake2b
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from headeval.cluster.work import Cluster, Future, as_it_is
from headeval.core.checks import FloatArray
from headeval.files.arrow_errors import shown
from headeval.files.collecting import Wanted
from headeval.files.embedded_rows import Keeping
from headeval.files.examples import Track
from headeval.files.part_facts import JoinedParts, PartCollector, PartFacts
from headeval.files.parts import TablePart
from headeval.files.tables import Tables
from headeval.printable import quoted
from headeval.solver.rows import RowColumns, Rows

# What a part takes: enough that Dask's own millisecond a task does not show, few enough that every worker has some.
# It depends on the tables alone, so that the sums have the same bits on any cluster.
_PARTS, _SMALLEST_PART, _LARGEST_PART = 32, 2**24, 2**28
AHEAD = 2  # parts for each thread that may wait to be taken: enough to keep all busy, few enough to hold

Following = Callable[[Iterable[PartFacts], int], Iterable[PartFacts]]


@dataclass(frozen=True, slots=True)
class KeptPart:
    """A part as a worker keeps it.

    Attributes
    ----------
    embeddings, inverse_norms : of the rows that were kept, as `headeval.solver.rows.Rows` has them.
    mark : tells these rows from others, should the part ever be read again.
    facts : what is known of the rows beside.
    """

    embeddings: NDArray[Any]
    inverse_norms: FloatArray
    mark: bytes
    facts: PartFacts

    def __sizeof__(self) -> int:
        """Return the bytes, by which Dask decides what is worth moving, and when memory is short."""
        return self.embeddings.nbytes + self.inverse_norms.nbytes + _bytes_of(self.facts)


@dataclass(frozen=True, slots=True)
class SentFacts:
    """What is known of the rows of a part, on its way to the client."""

    facts: PartFacts

    def __sizeof__(self) -> int:
        """Return the bytes, as of `KeptPart`; with the embeddings, where they are sent, too."""
        return _bytes_of(self.facts)


@dataclass(frozen=True, slots=True)
class Held:
    """A part that is kept by some worker, as the client knows it.

    Attributes
    ----------
    future : stands for the `KeptPart`.
    n : how many rows it has.
    mark : which they are.
    file : their file, as shown in messages.
    """

    future: Future
    n: int
    mark: bytes
    file: str


class ClusterRows:
    """Reads tables on a cluster.

    Parameters
    ----------
    cluster : the workers.
    keep : whether workers keep the embeddings that they read.
    follow : wraps what comes back of the parts, to show progress.

    Attributes
    ----------
    held : the parts that are kept, in the order of their rows.
    """

    def __init__(self, cluster: Cluster, *, keep: bool, follow: Following | None = None) -> None:
        self.cluster = cluster
        self.held: list[Held] = []
        self._keep = keep
        self._follow = follow

    def collect(self, tables: Tables, wanted: Wanted, keeping: Keeping, track: Track) -> JoinedParts:  # noqa: ARG002 - a `Collect`; no blocks come by here
        """Read all rows; a `headeval.files.examples.Collect`.

        Raises
        ------
        DataError : for what reading them in this process raises it, or where workers are lost.
        """
        parts = parts_of(tables)
        joined = JoinedParts(wanted, tables.n_rows, keeping)
        coming = self._come(parts, joined, wanted, keeping)
        for _ in coming if self._follow is None else self._follow(coming, len(parts)):
            pass
        joined.end()
        return joined

    def _come(
        self, parts: Sequence[TablePart], joined: JoinedParts, wanted: Wanted, keeping: Keeping
    ) -> Iterator[PartFacts]:
        """Join what comes back of the parts, in their order."""
        start = self._start(parts, wanted, keeping)
        begun: dict[int, Future] = {}

        def begin(number: int) -> Future:
            begun[number], coming = start(number, None if parts[number].begins_file else wanted.dim)
            return coming

        # What is not kept must not pile up; of what is, the facts take little beside the embeddings.
        ahead = None if self._keep else AHEAD
        for number, sent in self.cluster.in_order(begin, range(len(parts)), ahead=ahead):
            part, kept, facts = parts[number], begun.pop(number), sent.facts
            path = part.file.path
            width = joined.width_of(path)
            if width is not None and facts.width not in (None, width):
                # Its own first rows have told what it takes for the width, but those of the file decide.
                kept, coming = start(number, width)
                facts = self.cluster.result(coming).facts
                del coming  # else workers would hold what has come
            if facts.error is not None:
                facts = dataclasses.replace(facts, error=error_here(facts.error, part))
            joined.join(facts, path)
            if kept is not None and facts.digests is not None and len(facts.digests):
                self.held.append(Held(kept, len(facts.digests), _mark(facts.digests), shown(path)))
            yield facts

    def _start(
        self, parts: Sequence[TablePart], wanted: Wanted, keeping: Keeping
    ) -> Callable[[int, int | None], tuple[Future, Future]]:
        """Return what starts reading a part: one future for the part, if it is kept, and one for its facts."""
        cluster, with_embeddings = self.cluster, keeping.hold or keeping.on_block is not None
        project = None if keeping.project is None else cluster.submit(as_it_is, keeping.project)
        # Neighbours go to one worker, so that most sums are added where they are made.
        threads = cluster.threads() if self._keep else []
        homes = [threads[number * len(threads) // len(parts)] for number in range(len(parts))] if threads else []

        def start(number: int, width: int | None) -> tuple[Future, Future]:
            sent = (away(parts[number]), wanted)
            if not self._keep:
                return None, cluster.submit(facts_at_once, *sent, project, with_embeddings, width)
            kept = cluster.submit(kept_part, *sent, width, near=homes[number : number + 1])
            return kept, cluster.submit(facts_of, kept, project, with_embeddings)

        return start


def parts_of(tables: Tables) -> list[TablePart]:
    """Cut the tables into parts, each of which one worker reads."""
    return tables.parts(rows_each(tables))


def rows_each(tables: Tables) -> int:
    """Return how many rows a part should have."""
    groups = [group for file in tables.files for group in file.row_groups]
    rows, size = sum(rows for rows, _ in groups), sum(size for _, size in groups)
    part = min(max(size // _PARTS, _SMALLEST_PART), _LARGEST_PART)
    return max(1, part * rows // max(size, 1))


def kept_part(part: TablePart, wanted: Wanted, width: int | None) -> KeptPart:
    """Read a part and keep all of it."""
    collector = _gathered(part, wanted, Keeping(hold=True, threads=1), width)
    facts = collector.facts()
    embeddings = None if collector.embedded is None else collector.embedded.embeddings()
    if embeddings is None or not len(embeddings) or facts.faults or facts.error:
        nothing = np.empty((0, facts.width or 0))
        return KeptPart(nothing, np.empty(0), b"", facts)
    labels = np.zeros(len(embeddings), dtype=np.uint8)  # which the client alone knows
    rows = Rows.prepared(embeddings, RowColumns(labels))
    mark = b"" if facts.digests is None else _mark(facts.digests)
    return KeptPart(rows.embeddings, rows.inverse_norms, mark, facts)


def facts_of(kept: KeptPart, project: Any, with_embeddings: bool) -> SentFacts:
    """Return what is known of a part that is kept."""
    facts = dataclasses.replace(
        kept.facts,
        projected=None if project is None else project(kept.embeddings),
        embeddings=kept.embeddings if with_embeddings else None,
    )
    return SentFacts(facts)


def facts_at_once(part: TablePart, wanted: Wanted, project: Any, with_embeddings: bool, width: int | None) -> SentFacts:
    """Return what is known of a part, and keep nothing."""
    collector = _gathered(part, wanted, Keeping(with_embeddings, project, threads=1), width)
    return SentFacts(collector.facts(with_embeddings=with_embeddings))


def away(part: TablePart) -> TablePart:
    """Return the part as another process finds it, which may run in another folder."""
    path = part.file.path
    if not isinstance(path, Path):
        return part
    return dataclasses.replace(part, file=dataclasses.replace(part.file, path=path.absolute()))


def error_here(error: str, part: TablePart) -> str:
    """Return an error of another process with the file called as it is here."""
    return error.replace(shown(away(part).file.path), shown(part.file.path))


def missing_file(part: TablePart) -> str | None:
    """Return what to say where this process does not find the file of a part."""
    path = part.file.path
    try:
        if not isinstance(path, Path) or path.exists():
            return None
    except OSError:  # a folder that may not be looked into
        pass
    return (
        f"{shown(path)} does not exist on the worker on {quoted(socket.gethostname())}; all workers must find the "
        "files in the same place, or in a store such as s3://"
    )


def _gathered(part: TablePart, wanted: Wanted, keeping: Keeping, width: int | None) -> PartCollector:
    collector, missing = PartCollector(wanted, part, keeping, width), missing_file(part)
    if missing is not None:
        collector.fail(missing)
    else:
        collector.gather()
    return collector


def _bytes_of(facts: PartFacts) -> int:
    """Return the bytes of the arrays, beside which the distinct names of a part are few."""
    coded = (*facts.labels, facts.groups, *facts.slices.values())
    columns = (
        facts.scores,
        facts.many_scores,
        facts.weights,
        facts.kept,
        facts.digests,
        facts.projected,
        facts.embeddings,
    )
    arrays = (*(column.codes for column in coded if column is not None), *columns)
    return sum(array.nbytes for array in arrays if array is not None)


def _mark(digests: NDArray[np.uint64]) -> bytes:
    return blake2b(np.ascontiguousarray(digests).data, digest_size=16).digest()
