"""How much memory rows would take, and how much there is."""

import itertools
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
_WIDENED = 4  # float16 is read as float32, a list of bytes as float64
_BLOCKS = 16  # that are looked at for a row that can be used
_UNKNOWN = 4_000_000_000
_CGROUP = Path("/sys/fs/cgroup")


def embedding_bytes(tables: Tables, embedding: str, *, taken: Collection[str] = ()) -> int:
    """Return about how many bytes the embeddings of all rows take in memory.

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
    for block in itertools.islice(tables.blocks(where.columns), _BLOCKS):
        first = VectorReader(where).read(block.batch, place_of(block, RowFaults()))
        if first is not None:
            return int(tables.n_rows * first.shape[1] * first.dtype.itemsize)
    # Rows that will be left out, or are at fault, stand first: then what is stored, all columns, at its widest.
    return _WIDENED * sum(size for file in tables.files for _, size in file.row_groups)


def available_memory() -> int:
    """Return how many bytes this process may still take without pushing others out, as far as the system tells."""
    limits = [_available_of_machine()]
    most, used = _number(_CGROUP / "memory.max"), _number(_CGROUP / "memory.current")
    if most is not None and used is not None:
        limits.append(max(0, most - used + _cached()))
    return min(limits)


def _cached() -> int:
    """Return how much of what a control group uses are files that the system would forget for a process."""
    try:
        lines = (_CGROUP / "memory.stat").read_text(encoding="ascii").splitlines()
        return next(int(line.split()[1]) for line in lines if line.startswith("inactive_file "))
    except (OSError, ValueError, StopIteration):
        return 0


def _available_of_machine() -> int:
    try:
        lines = Path("/proc/meminfo").read_text(encoding="ascii").splitlines()
        return next(int(line.split()[1]) * 1024 for line in lines if line.startswith("MemAvailable:"))
    except (OSError, ValueError, StopIteration):
        # Other systems tell how much there is at all, if that: half of it is a cautious guess.
        if not hasattr(os, "sysconf"):
            return _UNKNOWN
        return os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE") // 2


def _number(path: Path) -> int | None:
    try:
        return int(path.read_text(encoding="ascii"))
    except (OSError, ValueError):
        return None
