"""Malformed tables end in exit 3, within limits of memory and time; what still reads says what its bytes say."""

import csv
import io
import struct
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from numpy.typing import NDArray

from headeval import LinearHead, write_head
from reliability.limited_children import Case, outcomes
from reliability.lying_parquet import LABELS, LIARS, E, N, columns, equal_rows, inflated, lies_about_rows
from reliability.parquet_bytes import (
    parquet,
)

HOSTILE = sorted((Path(__file__).resolve().parents[1] / "data" / "hostile").glob("*.parquet"))
# A column of each, so that what is corrupt is read.
CORRUPT = {
    "ARROW-GH-41317.parquet": "int32",
    "ARROW-GH-43605.parquet": "min_fl",
    "ARROW-RS-GH-6229-LEVELS.parquet": "outer",
    "PARQUET-1481.parquet": "int_col",
}
W, B = np.array([1.0, -2.0]), 0.125
SCORE = "score {} --head h.json -o s.parquet --force"
EVERY = (
    SCORE,
    "score {} --head h.json -o s.csv --force",
    "fit {} -o f.json --force --folds 2",
    "fit {} -o f.json --force --folds 0 --memory 1MB",
    "calibrate {} --head h.json -o c.json --force",
    "threshold {} --head h.json --require fpr<=0.9 -o t.json --force",
    "report {} --head h.json --resamples 0 --reference {}",
    "report {} --prob e0 --resamples 0",
)
MEMORY = 2**29


def parquet_bytes(table: pa.Table, **options: object) -> bytes:
    stream = io.BytesIO()
    pq.write_table(table.replace_schema_metadata({"embedding_model": "m"}), stream, **options)
    return stream.getvalue()


def vectors(kind: pa.DataType) -> pa.Array:
    return pa.array(E.tolist(), kind)


def csv_bytes(header: str, cells: list[str]) -> bytes:
    lines = [header, *(f"{cell},{label},Zoë{i}" for i, (cell, label) in enumerate(zip(cells, LABELS, strict=True)))]
    return ("\n".join(lines) + "\n").encode()


TABLES = {
    "fixed.parquet": parquet_bytes(
        pa.table({"embedding": vectors(pa.list_(pa.float32(), 2)), "label": LABELS}),
        compression="none",
        use_dictionary=False,
        write_statistics=False,
    ),
    "coded.parquet": parquet_bytes(
        pa.table({"embedding": vectors(pa.list_(pa.float64())), "label": pa.array(LABELS).dictionary_encode()}),
        compression="zstd",
        data_page_version="2.0",
    ),
    "wide.parquet": parquet_bytes(
        pa.table({"e0": E[:, 0].astype("f2"), "e1": E[:, 1], "label": pa.array([0, 1, 0, 1], pa.int8())}),
        row_group_size=2,
        write_page_checksum=True,
    ),
    "json.csv": csv_bytes("embedding,label,who", [f'"[{a}, {b}]"' for a, b in E]),
    "wide.csv": csv_bytes("e0,e1,label,who", [f"{a},{b}" for a, b in E]),
}


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    write_head(LinearHead.binary(W, B, classes=("safe", "unsafe"), embedding_model="m"), tmp_path / "h.json")
    return tmp_path


# --- what a file says, read by another reader


def logits(e: NDArray[np.float64]) -> NDArray[np.float64]:
    norms = np.linalg.norm(e, axis=1, keepdims=True)
    u = np.divide(e, norms, out=np.zeros_like(e), where=norms > 0)
    return np.asarray(u @ W + B)


def says(name: str, content: bytes) -> tuple[NDArray[np.float64], dict[str, list[Any]]]:
    """Return the logits of the rows and the columns beside the embeddings, by pyarrow's plainest way or csv's."""
    columns: dict[str, list[Any]]
    if name.endswith(".csv"):
        header, *rows = csv.reader(io.StringIO(content.decode("utf-8-sig"), newline=""))
        columns = {name: [row[i] for row in rows if row] for i, name in enumerate(header)}
    else:
        table = pq.ParquetFile(io.BytesIO(content)).read(use_threads=False)
        columns = {name: table.column(i).to_pylist() for i, name in enumerate(table.column_names)}
    if "embedding" in columns:
        e = [_numbers(cell) for cell in columns.pop("embedding")]
        return logits(np.array(e, dtype=np.float64)), columns
    numbered = [columns.pop(name) for name in sorted(columns) if name[-1:].isdigit()]
    return logits(np.array(numbered, dtype=np.float64).T), columns


def _numbers(cell: Any) -> list[float]:
    return [float(x) for x in (cell.strip("[] ").replace(",", " ").split() if isinstance(cell, str) else cell)]


def says_the_same(folder: Path, name: str, content: bytes) -> bool:
    """Whether the scored table holds what the file says; embeddings are read as float32 at the least."""
    expected, columns = says(name, content)
    scored = pq.read_table(folder / "s.parquet")
    kept = {name: scored.column(name).to_pylist() for name in columns}
    close = np.allclose(scored["logit"].to_numpy(), expected, rtol=1e-6, atol=1e-6)
    return close and kept == columns and len(scored) == len(expected)


@dataclass(frozen=True)
class Mutant:
    about: str
    name: str
    content: bytes


def work_through(folder: Path, mutants: list[Mutant], *, lines: tuple[str, ...] = (SCORE,)) -> dict[int, int]:
    """Run lines on all mutants, hold each outcome against the promise, and return how often each code came."""
    return work_off(folder, [(line.replace("{}", mutant.name), mutant) for line in lines for mutant in mutants])


def work_off(folder: Path, work: list[tuple[str, Mutant]]) -> dict[int, int]:
    counts: dict[int, int] = {}
    cases = (Case(line.split(), {mutant.name: mutant.content}) for line, mutant in work)
    for (line, mutant), outcome in zip(work, outcomes(cases, folder, memory=MEMORY), strict=True):
        about = (mutant.about, mutant.name, line, outcome)
        # A name of another embedding model is an error of the head; a fit or a requirement may come out either way.
        other_model = outcome.code == 4 and "the embeddings are from" in outcome.err
        codes = {0, 3} if line.startswith("score") else {0, 1, 3, 5}
        assert outcome.ended_well({4} if other_model else codes), about
        if outcome.code == 0 and "s.parquet" in line:
            assert says_the_same(folder, mutant.name, mutant.content), about
        assert outcome.code is not None
        counts[outcome.code] = counts.get(outcome.code, 0) + 1
    return counts


# --- every truncation, every byte


def mutants_of(name: str, step: int = 1, begin: int = 0) -> Iterator[Mutant]:
    content = TABLES[name]
    for at in range(begin, len(content), step):
        yield Mutant(f"cut at {at}", name, content[:at])
        for flip in (0xFF, 1 << at % 8):
            changed = content[:at] + bytes([content[at] ^ flip]) + content[at + 1 :]
            yield Mutant(f"byte {at} ^ {flip:#04x}", name, changed)


def test_the_tables_are_read_as_they_are(folder: Path) -> None:
    mutants = [Mutant("unchanged", name, content) for name, content in TABLES.items()]
    mutants.append(Mutant("unchanged", "bytes.parquet", parquet(columns(), n_rows=N)))
    assert work_through(folder, mutants) == {0: len(mutants)}


def test_truncations_and_flips_of_some_bytes_end_in_exit_3_or_say_what_their_bytes_say(folder: Path) -> None:
    mutants = [mutant for name, content in TABLES.items() for mutant in mutants_of(name, len(content) // 12, 3)]
    counts = work_through(folder, mutants)
    assert counts[3] > len(mutants) // 3
    assert counts[0] > len(mutants) // 20


def test_a_flip_inside_a_page_that_has_a_checksum_is_noticed(folder: Path) -> None:
    content = TABLES["wide.parquet"]
    begin = content.index(struct.pack("<2d", *E[:2, 1]))
    flips = [(at, bit) for at in range(begin, begin + 16) for bit in (1, 0x80)]
    changed = [content[:at] + bytes([content[at] ^ bit]) + content[at + 1 :] for at, bit in flips]
    mutants = [Mutant(str(at), "wide.parquet", other) for at, other in zip(flips, changed, strict=True)]
    assert work_through(folder, mutants) == {3: len(flips)}


@pytest.mark.slow
@pytest.mark.parametrize("name", ["fixed.parquet", "json.csv", "wide.csv"])
def test_every_truncation_and_every_flip_ends_in_exit_3_or_says_what_its_bytes_say(folder: Path, name: str) -> None:
    counts = work_through(folder, list(mutants_of(name)))
    assert set(counts) <= {0, 3, 4}
    assert counts[3] > len(TABLES[name]) // 2


@pytest.mark.slow
@pytest.mark.parametrize("name", ["coded.parquet", "wide.parquet"])
def test_so_does_every_eleventh_byte_of_tables_stored_otherwise(folder: Path, name: str) -> None:
    assert set(work_through(folder, list(mutants_of(name, 11)))) <= {0, 3, 4}


@pytest.mark.slow
def test_damage_ends_well_in_every_command(folder: Path) -> None:
    mutants = [mutant for name, content in TABLES.items() for mutant in mutants_of(name, len(content) // 5, 7)]
    assert set(work_through(folder, mutants, lines=EVERY)) <= {0, 1, 3, 4, 5}


def test_the_corrupt_files_of_parquet_testing_end_in_exit_3_in_every_command(folder: Path) -> None:
    assert set(CORRUPT) == {path.name for path in HOSTILE}
    mutants = [Mutant("corrupt", path.name, path.read_bytes()) for path in HOSTILE]
    work = []
    for mutant in mutants:
        lines = [line.replace("{}", mutant.name) for line in EVERY]
        # As it is, it has no columns of the usual names; then one of its own is named, and read.
        lines += [f"{line} --embedding {CORRUPT[mutant.name]}" for line in lines[:6]]
        lines += [f"{line} --label {CORRUPT[mutant.name]}" for line in lines[2:8]]
        work += [(line, mutant) for line in lines]
    assert work_off(folder, work) == {3: len(work)}


# --- sizes that a file announces


def lies() -> list[Mutant]:
    return [Mutant(about, "lie.parquet", content) for maker in LIARS for about, content in maker()]


def test_sizes_that_a_file_announces_are_not_believed(folder: Path) -> None:
    """Row, value and list counts, lengths and depths of up to 2^62 in files of some hundred bytes, under 512 MB."""
    everything = lies()
    counts = work_through(folder, everything)
    assert counts[3] > 100
    # What is not needed to read the rows may be wrong; all such rows say what their bytes say.
    assert counts[0] < len(everything) // 2


@pytest.mark.slow
def test_nor_are_they_in_any_other_command(folder: Path) -> None:
    work_through(folder, lies()[::5], lines=EVERY[2:])


def test_more_rows_than_there_can_be_are_counted_before_they_are_believed(folder: Path) -> None:
    """A fit would otherwise ask for memory for them, as if the caller had given too little."""
    mutants = [Mutant(about, "lie.parquet", content) for about, content in lies_about_rows() if "group" in about]
    lines = ("fit {} -o f.json --force --memory 1MB --folds 0", "fit {} -o f.json --force --folds 0")
    assert work_through(folder, mutants, lines=lines) == {3: len(mutants) * len(lines)}


# --- small files of large contents


def test_rows_and_pages_that_do_not_fit_into_memory_are_an_error_of_the_data(folder: Path) -> None:
    assert pq.read_table(io.BytesIO(equal_rows(1000)))["label"].to_pylist()[998:] == ["safe", "unsafe"]
    bombs = {"rows.parquet": equal_rows(2**24), "page.parquet": inflated(2**27)}
    assert all(len(content) < 2**16 for content in bombs.values())
    cases = [Case(["report", name, "--prob", "e0", "--resamples", "0"], {name: bombs[name]}) for name in bombs]
    found = list(outcomes(cases, folder, memory=2**27, seconds=60))
    assert all(outcome.ended_well({3}) and "memory" in outcome.err for outcome in found), found


LARGE = {
    "a cell of 100 MB": (b'embedding,label\n"' + b"x" * 100_000_000 + b'",safe\n', "longer than 8 MiB"),
    "a header of 50 MB": (b"x" * 50_000_000, "header line does not end"),
    "an open quote": (b'embedding,label\n"' + b"x,y\n" * 5_000_000, "longer than 8 MiB"),
    "100,000 columns": (b"," * 100_000 + b"\n" + b"," * 100_000 + b"\n", "has no column 'embedding'"),
    "20,000 dimensions": (
        ",".join(f"e{i}" for i in range(20_000)).encode() + b"\n" + b"1," * 19_999 + b"1\n",
        "have 20000 numbers, the head expects 2",
    ),
    "empty lines": (b"a,b\n" + b"\n" * 20_000_000, "has no column 'embedding'"),
    "a vector of 3,000,000": (
        b'embedding,label\n"[' + b"1," * 3_000_000 + b'1]",safe\n',
        "have 3000001 numbers, the head expects 2",
    ),
}


@pytest.mark.slow
def test_very_long_cells_headers_and_rows_of_csv_are_refused(folder: Path) -> None:
    cases = (Case(SCORE.format("large.csv").split(), {"large.csv": content}) for content, _ in LARGE.values())
    for (_, reason), outcome in zip(LARGE.values(), outcomes(cases, folder, memory=2**30), strict=True):
        assert outcome.ended_well({3}), outcome
        assert reason in outcome.err, outcome
