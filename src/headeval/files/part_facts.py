"""What the rows of one part are, gathered where the part is read, and joined to what all rows are."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import NDArray

from headeval.errors import DataError
from headeval.files.coded_columns import Coded
from headeval.files.collecting import Collector, Wanted
from headeval.files.embedded_rows import EmbeddedRows, Keeping
from headeval.files.locations import Location
from headeval.files.parts import TablePart
from headeval.files.row_faults import Place, RowFaults


@dataclass(frozen=True, slots=True)
class PartFacts:
    """What is known of each row of a part beside its embedding; few bytes a row.

    Attributes
    ----------
    labels, groups, slices : the columns of names.
    scores, weights : (n,), or None.
    many_scores : a column of scores a class or category, (n, C), or None.
    kept : which rows of the part have a label and were kept.
    unlabelled : how many were left out.
    width : of the embeddings, or None.
    digests, projected : of the embeddings, shapes (n, 2) and (n, k), or None.
    embeddings : (n, d) where they are wanted beside the part itself, else None.
    faults : the rows that cannot be used, each kind of fault apart, in the order in which they were met.
    error : what ended the reading, or None.
    """

    labels: tuple[Coded, ...]
    groups: Coded | None
    slices: Mapping[str, Coded]
    scores: NDArray[np.float64] | None
    many_scores: NDArray[np.float64] | None
    weights: NDArray[np.float64] | None
    kept: NDArray[np.bool_]
    unlabelled: int
    width: int | None
    digests: NDArray[np.uint64] | None
    projected: NDArray[np.float64] | None
    embeddings: NDArray[Any] | None
    faults: tuple[RowFaults, ...]
    error: str | None


@dataclass(slots=True)
class EveryFault(RowFaults):
    """Notes every kind of fault: which one is the first of the file shows only beside the parts before."""

    kinds: dict[str, RowFaults] = field(default_factory=dict)

    def add(self, path: Location, rows: NDArray[np.int64], problem: str, advice: str, cells: Iterable[object]) -> None:
        """Note that `rows` (numbers from 1) of `path` have `problem`."""
        self.count += len(rows)
        self.kinds.setdefault(problem, RowFaults()).add(path, rows, problem, advice, cells)

    def raise_if_any(self, *, unless_in: Location | None = None) -> None:
        """Raise nothing: they are raised where the parts are joined."""

    def found(self) -> tuple[RowFaults, ...]:
        """Return each kind of fault with its rows."""
        return tuple(fault for fault in self.kinds.values() if fault)


class PartCollector(Collector):
    """Gathers the wanted columns of one part.

    Parameters
    ----------
    part : what to read.
    keeping : what to keep of its embeddings.
    width : of the embeddings, where the rows before have told it.
    """

    def __init__(self, wanted: Wanted, part: TablePart, keeping: Keeping, width: int | None) -> None:
        super().__init__(wanted, part.n_rows, keeping)
        self.faults: EveryFault = EveryFault()
        self._part = part
        self._error: str | None = None
        if self._vectors is not None and width is not None:
            self._vectors.expect(width, part.file.path)

    def gather(self) -> None:
        """Read the part; whatever is wrong with it is among its facts."""
        try:
            self.read(self._part.blocks(self.wanted.columns))
        except DataError as error:
            self._error = str(error)

    def fail(self, error: str) -> None:
        """Take note that the part cannot be read."""
        self._error = error

    def facts(self, *, with_embeddings: bool = False) -> PartFacts:
        """Return what has been gathered."""
        embedded = self.embedded
        return PartFacts(
            labels=self.labels(),
            groups=self.groups(),
            slices=self.slices(),
            scores=self.scores(),
            many_scores=self.many_scores(),
            weights=self.weights(),
            kept=self.kept(),
            unlabelled=self.unlabelled,
            width=None if self._vectors is None else self._vectors.width,
            digests=None if embedded is None else embedded.digests(),
            projected=None if embedded is None else embedded.projected(),
            embeddings=embedded.embeddings() if embedded is not None and with_embeddings else None,
            faults=self.faults.found(),
            error=self._error,
        )


class JoinedParts(Collector):
    """Gathers parts that were read elsewhere, in the order of their rows; what comes of it is what reading gives."""

    def __init__(self, wanted: Wanted, n_rows: int | None, keeping: Keeping) -> None:
        super().__init__(wanted, n_rows, keeping)
        self._last: Location | None = None
        if wanted.embedding is not None:
            self.embedded: _JoinedRows | None = _JoinedRows(wanted.embedding.dtype, expected=n_rows, keeping=keeping)

    def width_of(self, path: Location) -> int | None:
        """Return the width that the first rows of a file have told, or None before they have."""
        return self._vectors.width if self._vectors is not None and path == self._last else None

    def join(self, facts: PartFacts, path: Location) -> None:
        """Take the next part, of the file `path`.

        Raises
        ------
        DataError : for what `Collector.read` raises it.
        """
        self.faults.raise_if_any(unless_in=path)
        for fault in facts.faults:
            self.faults.take(fault, path)
        self.unlabelled += facts.unlabelled
        self._kept.append(facts.kept)
        for column, labels in zip(self._labels, facts.labels, strict=True):
            column.join(labels)
        self._refuse_identifiers(Place(path, np.empty(0, dtype=np.int64), False, self.faults))
        if facts.error is not None:
            raise DataError(facts.error)
        if self._vectors is not None and facts.width is not None:
            if path != self._last:
                self._vectors.expect(facts.width, path)
            self._last = path
        if not self.faults:  # of rows that end in an error nothing else is asked
            self._take_columns(facts)

    def end(self) -> None:
        """Take note that all parts are joined.

        Raises
        ------
        DataError : for the rows of the last file that cannot be used.
        """
        self.faults.raise_if_any()

    def _take_columns(self, facts: PartFacts) -> None:
        if facts.scores is not None:
            self._scores.append(facts.scores)
        if facts.many_scores is not None and len(facts.many_scores):
            self._many_scores.append(facts.many_scores)
        if facts.weights is not None:
            self._weights.append(facts.weights)
        if facts.groups is not None and self._groups is not None:
            self._groups.join(facts.groups)
        for name, coded in facts.slices.items():
            self._slices[name].join(coded)
        if self.embedded is not None:
            self.embedded.join(facts)


class _JoinedRows(EmbeddedRows):
    """Takes what was made of the embeddings elsewhere."""

    def join(self, facts: PartFacts) -> None:
        if facts.digests is None or not len(facts.digests):
            return
        self._digests.append(facts.digests)
        if facts.projected is not None:
            self._projected.append(facts.projected)
        if facts.embeddings is not None:
            for _ in self._held([facts.embeddings]):
                pass
        else:
            self._n += len(facts.digests)
            self.dim = facts.width
