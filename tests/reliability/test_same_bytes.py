"""The same input gives the same bytes, in whatever order, pieces, place, locale and process it comes.

Sums in any number of threads and blocks: `solver/test_same_bits.py`, `cli/test_streamed_rows.py`. What a pipe gets,
whatever the terminal: `cli/test_process.py`.
"""

import dataclasses
import json
import os
import re
import subprocess
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from documents import ROOT
from headeval.files.heads import read_head
from reliability.every_command import ALL, SOME, files_of, made, tables, vectors, write

COMMA = "de_DE.UTF-8"
NO_COMMA = "this machine has no definition of the locale de_DE"
LONGEST_RUN = 120  # seconds; a child that hangs must fail, not wait
# What has the rows in the order in which they were given; all other files are of no order.
TABLES = re.compile(r"\.(csv|parquet)$")


@pytest.fixture(scope="module")
def some(tmp_path_factory: pytest.TempPathFactory) -> dict[str, bytes]:
    return made(write(tmp_path_factory.mktemp("some"), tables()), SOME)


@pytest.fixture(scope="module")
def everything(tmp_path_factory: pytest.TempPathFactory) -> dict[str, bytes]:
    return made(write(tmp_path_factory.mktemp("all"), tables()), ALL)


def differing(found: dict[str, bytes], expected: dict[str, bytes]) -> list[str]:
    return sorted(name for name in found.keys() | expected.keys() if found.get(name) != expected.get(name))


# --- the process


@pytest.fixture(scope="module")
def comma(tmp_path_factory: pytest.TempPathFactory) -> dict[str, str]:
    """Variables that make the decimal comma of Germany the one of a process; none where it is not defined here."""
    folder = tmp_path_factory.mktemp("locales")
    command = ["localedef", "-i", "de_DE", "-f", "UTF-8", str(folder / COMMA)]
    try:
        subprocess.run(command, check=True, capture_output=True, timeout=LONGEST_RUN)
    except (OSError, subprocess.CalledProcessError):
        return {}
    return {"LOCPATH": str(folder), "LC_ALL": COMMA, "LC_NUMERIC": COMMA, "LANG": COMMA, "LANGUAGE": "de"}


def made_elsewhere(
    folder: Path, choice: str, *arguments: str, environment: dict[str, str], umask: int = -1
) -> dict[str, bytes]:
    """Run the commands in a process of its own."""
    paths = os.pathsep.join([str(ROOT / "tests"), *filter(None, [os.environ.get("PYTHONPATH")])])
    subprocess.run(
        [sys.executable, "-m", "reliability.every_command", str(folder), choice, *arguments],
        env=os.environ | {"PYTHONPATH": paths} | environment,
        umask=umask,
        check=True,
        timeout=LONGEST_RUN,
    )
    return files_of(folder)


ONE_PLACE = {"TZ": "Pacific/Marquesas", "COLUMNS": "20", "LINES": "5", "PYTHONHASHSEED": "0", "LC_ALL": "C"}
ANOTHER = {"TZ": "Asia/Kolkata", "COLUMNS": "400", "PYTHONHASHSEED": "17", "TERM": "xterm-256color"}
ONE_THREAD = {"OMP_NUM_THREADS": "1", "OPENBLAS_NUM_THREADS": "1"}
MORE_THREADS = {"OMP_NUM_THREADS": "3", "OPENBLAS_NUM_THREADS": "2"}


def test_another_process_in_another_place_changes_no_byte(
    some: dict[str, bytes], comma: dict[str, str], tmp_path: Path
) -> None:
    """Decimal commas, time zone, width, hash seed, umask, threads, and a folder whose name is not plain."""
    folder = write(tmp_path / "ein Ordner, 3,5 € [red]", tables())
    other = ANOTHER | comma | MORE_THREADS
    decimal = "comma" if comma else ""
    assert differing(made_elsewhere(folder, "some", decimal, "1", environment=other, umask=0o077), some) == []
    if not comma:
        pytest.skip(f"all but the decimal comma was tested: {NO_COMMA}")


@pytest.mark.slow
def test_no_place_changes_a_byte_of_any_command(everything: dict[str, bytes], tmp_path: Path) -> None:
    folder = write(tmp_path / "a", tables())
    other = ONE_PLACE | ONE_THREAD | {"PYTHONOPTIMIZE": "2"}
    assert differing(made_elsewhere(folder, "all", "", "3", environment=other), everything) == []


@pytest.mark.slow
def test_a_decimal_comma_changes_no_byte_of_any_command(
    everything: dict[str, bytes], comma: dict[str, str], tmp_path: Path
) -> None:
    if not comma:
        pytest.skip(NO_COMMA)
    folder = write(tmp_path / "a", tables())
    found = made_elsewhere(folder, "all", "comma", "1", environment=ANOTHER | comma | MORE_THREADS)
    assert differing(found, everything) == []


# --- the files


def float64_copies(given: dict[str, pa.Table]) -> dict[str, pa.Table]:
    at = given["train"].column_names.index("embedding")
    kind = pa.list_(pa.float64(), 8)
    return {name: table.set_column(at, "embedding", table["embedding"].cast(kind)) for name, table in given.items()}


def same_values(found: bytes, expected: bytes) -> None:
    """Rows of the same values and metadata, whatever the types of the columns."""
    ours, theirs = (pq.read_table(pa.BufferReader(each)) for each in (found, expected))
    assert ours.to_pylist() == theirs.to_pylist()
    assert ours.schema.metadata == theirs.schema.metadata


def without_files(outputs: dict[str, bytes]) -> dict[str, bytes]:
    """`threshold` shows which files a folder has."""
    listed = rb'"?(train|test|benign)/[^\s,"]+"?(,\s*"?\1/[^\s,"]+"?)*'
    return {name: re.sub(listed, rb"\1", text) if name.endswith(".out") else text for name, text in outputs.items()}


def test_files_row_groups_and_precision_change_no_byte(some: dict[str, bytes], tmp_path: Path) -> None:
    """Three files for one, row groups of 11 rows, and float64 copies of the same embeddings."""
    pieces = write(tmp_path / "pieces", float64_copies(tables()), cuts=(0.31, 0.55), group_rows=11)
    found = made(pieces, SOME)
    expected = {name: some[name] for name in found}
    assert set(differing(without_files(found), without_files(expected))) == {"pt.parquet"}
    same_values(found["pt.parquet"], some["pt.parquet"])


@pytest.mark.slow
def test_files_and_row_groups_change_no_byte_of_any_command(everything: dict[str, bytes], tmp_path: Path) -> None:
    found = made(write(tmp_path / "pieces", tables(), cuts=(0.2, 0.21, 0.9), group_rows=7), ALL)
    assert differing(without_files(found), without_files(everything)) == []


def test_row_groups_of_an_output_end_by_its_rows_alone(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Also where a row group is full in the middle of a block, and long rows fill it before many rows do."""
    monkeypatch.setattr("headeval.files.row_groups.MOST_ROWS", 40)
    monkeypatch.setattr("headeval.files.row_groups.MOST_BYTES", 5000)
    found = []
    for place, rows in enumerate((3, 64, 1000)):
        folder = write(tmp_path / str(place), {"test": tables()["test"]}, group_rows=rows)
        found.append(made(folder, ("calibrate test --prob p -o pt.parquet",)))
    assert differing(found[1], found[0]) == differing(found[2], found[0]) == []
    file = pq.ParquetFile(pa.BufferReader(found[0]["pt.parquet"]))
    sizes = [file.metadata.row_group(k).num_rows for k in range(file.num_row_groups)]
    assert sum(sizes) == 110
    assert max(sizes) < 40  # bytes decide
    assert len(set(sizes)) > 1
    assert file.read()["text"].to_pylist() == tables()["test"]["text"].to_pylist()
    assert file.read()["team"].to_pylist() == tables()["test"]["team"].to_pylist()


# What has the columns of the rows, which are text in a CSV file.
HOLD_COLUMNS = {"s.csv", "s.parquet", "pt.parquet"}


def test_csv_says_what_parquet_says(some: dict[str, bytes], tmp_path: Path) -> None:
    """Other columns of a CSV file are text, and stay it; all else is the same."""
    found = made(write(tmp_path / "text", tables(), kind="csv", cuts=(0.4,)), SOME)
    expected = {name: some[name] for name in found}
    assert set(differing(without_files(found), without_files(expected))) == HOLD_COLUMNS
    for name in ("s.parquet", "pt.parquet"):
        ours, theirs = (pq.read_table(pa.BufferReader(each[name])) for each in (found, some))
        new = [column for column in theirs.column_names if re.search(r"logit|prob|flagged", column)]
        assert new
        assert ours.select(new).equals(theirs.select(new))
        assert ours["id"].to_pylist() == theirs["id"].to_pylist()


@pytest.mark.slow
@pytest.mark.parametrize("size", [2**10])
def test_the_blocks_of_a_csv_file_change_no_byte(size: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    whole = made(write(tmp_path / "whole", tables(), kind="csv"), SOME)
    monkeypatch.setattr("headeval.files.csv_text.BLOCK_BYTES", size)
    assert differing(made(write(tmp_path / "blocks", tables(), kind="csv"), SOME), whole) == []


# --- the rows


def shuffled(table: pa.Table, seed: int) -> pa.Table:
    return table.take(np.random.default_rng(seed).permutation(len(table)))


def written_by_row(found: dict[str, bytes], expected: dict[str, bytes], names: tuple[str, ...]) -> None:
    """Tables hold the same rows, each with its own scores."""
    for name in names:
        if name.endswith(".csv"):
            assert sorted(found[name].splitlines()) == sorted(expected[name].splitlines())
        else:
            tables_read = [pq.read_table(pa.BufferReader(each[name])).sort_by("id") for each in (found, expected)]
            assert tables_read[0].to_pylist() == tables_read[1].to_pylist()


def test_the_order_of_rows_changes_no_byte_but_where_rows_are_written(some: dict[str, bytes], tmp_path: Path) -> None:
    """Of score files that are judged or calibrated, and of rows that a head scores; the head stays."""
    given = tables() | {"test": shuffled(tables()["test"], 7)}
    found = made(write(tmp_path / "shuffled", given), SOME)
    names = ("s.csv", "s.parquet", "pt.parquet")
    assert set(differing(found, {name: some[name] for name in found})) == set(names)
    written_by_row(found, some, names)


@pytest.mark.slow
def test_the_order_of_rows_changes_no_number_of_any_command_but_a_drawn_one(
    everything: dict[str, bytes], tmp_path: Path
) -> None:
    """Whether a mean of embeddings has shifted is told by random divisions of the rows, drawn by position."""
    given = tables() | {"test": shuffled(tables()["test"], 7)}
    found = made(write(tmp_path / "shuffled", given), ALL)
    drawn, *others = (name for name in differing(found, everything) if not TABLES.search(name))
    assert others == []
    ours, theirs = (json.loads(each[drawn]) for each in (found, everything))
    shifts = [each["drift"].pop("mean_shift") for each in (ours, theirs)]
    assert ours == theirs
    for name in ("distance", "cosine"):
        assert shifts[0][name] == pytest.approx(shifts[1][name], rel=1e-12)
    written = tuple(name for name in differing(found, everything) if TABLES.search(name))
    assert len(written) > 5
    written_by_row(found, everything, written)


def tied(order: list[int]) -> pa.Table:
    """Blocks of tied scores, their labels in another order."""
    table = tables()["test"].drop_columns(["embedding"])
    p = np.repeat([0.2, 0.4, 0.7, 0.9, 0.95], 22)
    y = np.array([k % 22 < 4 * (1 + k // 22) for k in range(110)])
    at = np.concatenate([22 * block + np.random.default_rng(order).permutation(22) for block in range(5)])
    columns = table.select(["w", "g"]).append_column("p", pa.array(p)).append_column("label", pa.array(y))
    return columns.take(at if order else np.arange(110))


@pytest.mark.parametrize("command", [SOME[7].replace(" --weight w --group g", ""), SOME[4], SOME[7]])
def test_rows_that_tie_may_stand_in_any_order(command: str, tmp_path: Path) -> None:
    """Only rows of equal scores change places, which a stable sort would leave as they come."""
    found = [made(write(tmp_path / str(k), {"test": tied([k] if k else [])}), (command,)) for k in range(3)]
    for one in found[1:]:
        assert [name for name in differing(one, found[0]) if not TABLES.search(name)] == []


SAME_HEAD = 1e-12
"""Of the largest weight, for the same rows in another order: sums are added in another order and round otherwise."""


def test_a_head_from_rows_in_another_order_is_the_same_but_for_rounding(some: dict[str, bytes], tmp_path: Path) -> None:
    given = tables() | {"train": shuffled(tables()["train"], 3)}
    found = made(write(tmp_path / "shuffled", given), SOME[:1])
    (tmp_path / "a.json").write_bytes(found["h.json"])
    (tmp_path / "b.json").write_bytes(some["h.json"])
    ours, theirs = read_head(tmp_path / "a.json"), read_head(tmp_path / "b.json")
    scale = float(np.abs(theirs.W).max())
    np.testing.assert_allclose(ours.W, theirs.W, atol=SAME_HEAD * scale, rtol=0)
    np.testing.assert_allclose(ours.b, theirs.b, atol=SAME_HEAD * scale, rtol=0)
    assert dataclasses.replace(ours, W=theirs.W, b=theirs.b, metrics={}) == dataclasses.replace(theirs, metrics={})


# --- float32 and float64


def copies(tmp_path: Path, dtypes: tuple[str, ...]) -> list[dict[str, bytes]]:
    """Embeddings that are no short fractions, stored as they are in these types."""
    rng = np.random.default_rng(5)
    e = rng.normal(size=(400, 24))
    label = rng.random(400) < 1 / (1 + np.exp(-8 * e[:, 0] / np.linalg.norm(e, axis=1)))
    found = []
    for place, dtype in enumerate(dtypes):
        numbers = e
        for step in dtype.split(">"):
            numbers = numbers.astype(step)
        given = {"train": pa.table({"embedding": vectors(numbers), "label": label})}
        commands = ("fit train -o h.json --folds 0", "score train --head h.json -o s.parquet")
        found.append(made(write(tmp_path / str(place), given), commands))
    return found


def logits_of(outputs: dict[str, bytes]) -> Any:
    return pq.read_table(pa.BufferReader(outputs["s.parquet"]))["logit"].to_numpy()


FITTED_AS_FLOAT32 = 1e-9
"""Of a logit: sums over float32 rows are exact enough to end within this of the optimum."""
ROUNDED_TO_FLOAT32 = 1e-5
"""Of a logit: rows rounded to 24 bits (6e-8 of a number) are other rows, and move the optimum and the scores."""


def test_float64_copies_of_float32_rows_score_alike_to_1e_9_and_rows_rounded_to_float32_to_1e_5(tmp_path: Path) -> None:
    single, copy, exact = map(logits_of, copies(tmp_path, ("f4", "f4>f8", "f8")))
    np.testing.assert_allclose(copy, single, atol=FITTED_AS_FLOAT32, rtol=0)
    np.testing.assert_allclose(single, exact, atol=ROUNDED_TO_FLOAT32, rtol=0)
    assert not np.array_equal(single, exact)


# --- once more


@pytest.mark.slow
def test_a_second_run_over_the_first_ones_outputs_gives_the_same_bytes(
    everything: dict[str, bytes], tmp_path: Path
) -> None:
    """No time of day, no name of a temporary file, and nothing of what stood there before."""
    folder = write(tmp_path / "twice", tables())
    made(folder, ALL)
    for path in folder.iterdir():
        if path.is_file():
            os.utime(path, (1e9, 1e9))
    found = made(folder, tuple(f"{command} --force" for command in ALL))
    assert differing(found, {name: everything[name] for name in found}) == []
