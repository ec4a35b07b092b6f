"""How much memory rows would take, and how much there is."""

import os
from collections.abc import Collection
from pathlib import Path

from headeval.files.collecting import place_of
from headeval.files.locations import RemoteFile
from headeval.files.row_faults import RowFaults
from headeval.files.tables import Tables
from headeval.files.vectors import VectorReader, find_embedding

# The shortest numbers of a CSV file take about four characters, and eight bytes in memory.
_CSV_GROWTH = 2
_CGROUP = Path("/sys/fs/cgroup")


def embedding_bytes(tables: Tables, embedding: str, *, taken: Collection[str] = ()) -> int:
    """Return about how many bytes the embeddings of all rows take in memory; 0 where the first rows cannot be used.

    Parameters
    ----------
    tables : the opened files.
    embedding, taken : as for `find_embedding`.

    Raises
    ------
    DataError : for columns that are missing or ambiguous, and a damaged file.
    """
    where = find_embedding(tables, embedding, taken=taken)
    if tables.n_rows is None:
        paths = tables.paths
        return _CSV_GROWTH * sum(path.size if isinstance(path, RemoteFile) else path.stat().st_size for path in paths)
    for block in tables.blocks(where.columns):
        first = VectorReader(where).read(block.batch, place_of(block, RowFaults()))
        return 0 if first is None else tables.n_rows * first.shape[1] * first.dtype.itemsize
    return 0


def available_memory() -> int:
    """Return how many bytes this process may still take without pushing others out, as far as the system tells."""
    limits = [_available_of_machine()]
    most, used = _number(_CGROUP / "memory.max"), _number(_CGROUP / "memory.current")
    if most is not None and used is not None:
        limits.append(max(0, most - used))
    return min(limits)


def _available_of_machine() -> int:
    try:
        lines = Path("/proc/meminfo").read_text(encoding="ascii").splitlines()
        return next(int(line.split()[1]) * 1024 for line in lines if line.startswith("MemAvailable:"))
    except (OSError, ValueError, StopIteration):
        # Other systems tell how much there is at all: half of it is a cautious guess.
        return os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE") // 2


def _number(path: Path) -> int | None:
    try:
        return int(path.read_text(encoding="ascii"))
    except (OSError, ValueError):
        return None
