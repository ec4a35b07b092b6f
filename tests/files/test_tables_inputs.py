"""Which files the DATA arguments mean."""

import contextlib
import os
import pickle
import sqlite3
import sys
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from headeval.errors import DataError
from headeval.files.tables import open_tables


def write_parquet(path: Path, values: list[float] | None = None, metadata: dict[bytes, bytes] | None = None) -> Path:
    table = pa.table({"score": pa.array([0.5] if values is None else values, pa.float64())})
    pq.write_table(table.replace_schema_metadata(metadata), path)
    return path


def names(tables_paths) -> list[str]:
    return [path.name for path in tables_paths]


def test_a_folder_stands_for_its_visible_tables_sorted_by_name(tmp_path):
    for name in ("b.parquet", "a.PARQUET", ".hidden.parquet", "c.pq"):
        write_parquet(tmp_path / name)
    (tmp_path / "d.csv").write_text("score\n1\n")
    (tmp_path / "readme.md").write_text("no table")
    (tmp_path / "inner.parquet").mkdir()
    write_parquet(tmp_path / "inner.parquet" / "deep.parquet")
    assert names(open_tables([str(tmp_path)]).paths) == ["a.PARQUET", "b.parquet", "c.pq", "d.csv"]


def test_a_folder_without_tables_is_an_error(tmp_path):
    (tmp_path / "notes.txt").write_text("x")
    with pytest.raises(DataError, match="holds no table"):
        open_tables([str(tmp_path)])


def test_patterns_are_expanded_sorted_and_reach_into_folders(tmp_path):
    (tmp_path / "x").mkdir()
    for name in ("b.parquet", "a.parquet", "x/c.parquet"):
        write_parquet(tmp_path / name)
    assert names(open_tables([str(tmp_path / "*.parquet")]).paths) == ["a.parquet", "b.parquet"]
    assert names(open_tables([str(tmp_path / "[b].parquet")]).paths) == ["b.parquet"]
    assert names(open_tables([str(tmp_path / "**" / "*.parquet")]).paths) == ["a.parquet", "b.parquet", "c.parquet"]


def test_a_pattern_without_a_match_is_an_error(tmp_path):
    with pytest.raises(DataError, match="no file matches"):
        open_tables([str(tmp_path / "*.parquet")])


def test_an_existing_file_is_not_taken_for_a_pattern(tmp_path):
    write_parquet(tmp_path / "a[1].parquet", [1.0, 2.0])
    write_parquet(tmp_path / "a1.parquet")
    tables = open_tables([str(tmp_path / "a[1].parquet")])
    assert names(tables.paths) == ["a[1].parquet"]
    assert tables.n_rows == 2


@pytest.mark.parametrize("way", ["twice", "folder", "symbolic link", "hard link"])
def test_the_same_file_given_twice_is_an_error(tmp_path, way):
    path = write_parquet(tmp_path / "a.parquet")
    second = {"twice": path, "folder": tmp_path}.get(way, tmp_path / "other.parquet")
    if way == "symbolic link":
        second.symlink_to(path)
    elif way == "hard link":
        os.link(path, second)
    with pytest.raises(DataError, match=r"a\.parquet.*twice|twice.*a\.parquet"):
        open_tables([str(path), str(second)])


@pytest.mark.parametrize("name", ["a.parquet", "a.csv", "a/b.parquet", "nul\0l.csv"])
def test_a_missing_file_is_named(tmp_path, name):
    (tmp_path / "a").write_text("a file, not a folder")
    with pytest.raises(DataError, match=r"does not exist|cannot be read"):
        open_tables([str(tmp_path / name)])


@pytest.mark.skipif(not hasattr(os, "geteuid") or os.geteuid() == 0, reason="root may read everything")
def test_an_unreadable_file_is_an_error(tmp_path):
    path = write_parquet(tmp_path / "a.parquet")
    path.chmod(0)
    with pytest.raises(DataError, match="permission denied"):
        open_tables([str(path)])


def test_permission_denied_is_told_in_one_line(tmp_path, monkeypatch):
    """Root may read everything, so the refusal is played."""
    path = write_parquet(tmp_path / "a.parquet")

    def refuse(*_args, **_options):
        raise PermissionError(13, "Permission denied")

    monkeypatch.setattr(Path, "open", refuse)
    with pytest.raises(DataError, match=r"a\.parquet' may not be read: permission denied"):
        open_tables([str(path)])


@pytest.mark.parametrize("name", ["a.parquet", "a.csv", "a"])
def test_an_empty_file_is_an_error(tmp_path, name):
    (tmp_path / name).touch()
    with pytest.raises(DataError, match=r"is empty \(0 bytes\)"):
        open_tables([str(tmp_path / name)])


@pytest.mark.skipif(sys.platform == "win32", reason="no named pipes")
def test_a_pipe_is_refused_without_waiting_for_it(tmp_path):
    os.mkfifo(tmp_path / "a.csv")
    with pytest.raises(DataError, match="not a regular file"):
        open_tables([str(tmp_path / "a.csv")])


def test_zero_rows_are_an_error(tmp_path):
    with pytest.raises(DataError, match="holds no rows"):
        open_tables([str(write_parquet(tmp_path / "a.parquet", []))])
    (tmp_path / "a.csv").write_text("a,b\n\n")
    with pytest.raises(DataError, match="header but no rows"):
        open_tables([str(tmp_path / "a.csv")])
    (tmp_path / "b.csv").write_text("a,b")
    with pytest.raises(DataError, match="header but no rows"):
        open_tables([str(tmp_path / "b.csv")])


def test_kind_is_told_by_suffix_in_any_case_else_by_content(tmp_path):
    (tmp_path / "a.CSV").write_text("score\n1\n2\n")
    write_parquet(tmp_path / "b.data")
    assert open_tables([str(tmp_path / "a.CSV")]).n_rows is None
    assert open_tables([str(tmp_path / "b.data")]).n_rows == 1


@pytest.mark.parametrize(
    ("name", "content", "message"),
    [
        (
            "a.pkl",
            pickle.dumps([1]),
            "never loaded, since that can run code: load it where you trust it and write Parquet",
        ),
        ("a.PT", b"whatever", "write Parquet"),
        ("a.joblib", b"x", "write Parquet"),
        ("a.npz", b"PK\x03\x04", "write Parquet"),
        ("array", b"\x93NUMPY\x01\x00", "write Parquet"),
        ("model", b"PK\x03\x04....", "is a zip archive: unpack it"),
        ("data.csv", pickle.dumps({"a": np.zeros(3)}), "write Parquet"),
        ("data.parquet", pickle.dumps({"a": np.zeros(3)}), "is a pickle, .* write Parquet"),
        ("a.csv.gz", b"\x1f\x8b\x08\x00", "decompress"),
        ("a.feather", b"ARROW1\0\0", "is an Arrow file: write it as Parquet"),
        ("a.tsv", b"a\tb\n", "reads Parquet"),
        ("a.json", b"{}", "is JSON"),
        ("a.parquet", b"a,b\n1,2\n", "is no Parquet file, .*separated by commas: rename it to .csv"),
        ("a.parquet", b"\x01\x02", r"it starts with '\\x01\\x02'"),
        ("b.tsv", b"a,b\n", "separated by commas: rename it to .csv"),
        ("b.txt", b"a\tb\n", "separated by tabs: save it with commas"),
        ("a.csv", b'{"id": "a"}\n{"id": "b"}\n', "is JSON, .*write its rows as Parquet or CSV"),
        ("a.parquet", b'[\n {"id": 1}]', "is JSON"),
        ("a.csv", b"\xef\xbb\xbf<!DOCTYPE html>\n<p>Sign in", "is an HTML page: download the file itself"),
        ("b.csv", b"version https://git-lfs.github.com/spec/v1\noid", r"is a Git LFS pointer: .*git lfs pull"),
        ("b.parquet", b"version https://git-lfs.github.com/spec/v1\noid", r"is a Git LFS pointer: .*git lfs pull"),
        ("a.csv", b"%PDF-1.7\n", "is a PDF document: save its table"),
        ("a.parquet", b"ORC\x0a\x0b\x0c\0", "is an ORC file: write it as Parquet"),
        ("a.avro", b"Obj\x01\x04", "is an Avro file"),
        ("a.xls", b"\xd0\xcf\x11\xe0\xa1\xb1\x1a\xe1", r"is a workbook .*: save it as CSV \(UTF-8\) or Parquet"),
        ("a.xlsx", b"PK\x03\x04", r"a workbook: save it as CSV \(UTF-8\) or Parquet"),
        ("a.csv", b"7z\xbc\xaf\x27\x1c", "is a 7z archive: unpack it"),
        ("a.csv", b"Rar!\x1a\x07\x01\0", "is a rar archive: unpack it"),
        ("a.parquet", b"PARE", "is an encrypted Parquet file"),
        ("head.json", b'{"dim": 2, "classes": ["a"]}', "is a linear head, no table: are DATA and --head swapped"),
        ("head.csv", b'{"W": [' + b"1," * 9999 + b'1],\n"b": []}', "is a linear head, no table: are DATA"),
    ],
)
def test_other_kinds_of_files_are_refused_with_what_to_do(tmp_path, name, content, message):
    (tmp_path / name).write_bytes(content)
    with pytest.raises(DataError, match=message) as caught:
        open_tables([str(tmp_path / name)])
    assert len(str(caught.value).replace(str(tmp_path), "")) < 180


def test_a_database_is_named_as_one(tmp_path):
    with contextlib.closing(sqlite3.connect(tmp_path / "a.csv")) as base:
        base.execute("create table a (b)")
    with pytest.raises(DataError, match="is an SQLite database: export the table"):
        open_tables([str(tmp_path / "a.csv")])


def test_a_pickle_is_never_loaded(tmp_path):
    class Bomb:
        def __reduce__(self):
            return (os.mkdir, (str(tmp_path / "exploded"),))

    for name in ("a.pkl", "a.csv", "a.parquet", "a"):
        (tmp_path / name).write_bytes(pickle.dumps(Bomb()))
        with pytest.raises(DataError):
            open_tables([str(tmp_path / name)])
    assert not (tmp_path / "exploded").exists()


def test_parquet_named_csv_is_refused(tmp_path):
    write_parquet(tmp_path / "a.csv")
    with pytest.raises(DataError, match="holds Parquet"):
        open_tables([str(tmp_path / "a.csv")])


@pytest.mark.parametrize("argument", ["", " ", "\t\n"])
def test_an_empty_argument_is_not_the_current_folder(tmp_path, monkeypatch, argument):
    write_parquet(tmp_path / "a.parquet")
    monkeypatch.chdir(tmp_path)
    with pytest.raises(DataError, match="an argument for DATA is empty: is a shell variable unset"):
        open_tables(["a.parquet", argument])
    assert open_tables(["."]).n_rows == 1


def test_no_data_at_all_is_an_error():
    with pytest.raises(DataError, match="no data file"):
        open_tables([])


@pytest.mark.skipif(sys.platform in ("win32", "darwin"), reason="file names are Unicode there")
def test_file_names_that_are_no_text_are_read_and_shown_escaped(tmp_path):
    name = os.fsdecode(b"a\xff\x1b[31m.parquet")
    write_parquet(tmp_path / "plain.parquet")
    (tmp_path / "plain.parquet").rename(tmp_path / name)
    tables = open_tables([str(tmp_path / name)])
    assert sum(block.batch.num_rows for block in tables.blocks()) == 1
    with pytest.raises(DataError, match="has no column") as caught:
        tables.blocks(["x"])
    assert str(caught.value).isprintable()


def test_metadata_is_what_all_files_agree_on_and_models_must_not_differ(tmp_path):
    shared = {b"source": b"here", b"embedding_model": b"m1"}
    a = write_parquet(tmp_path / "a.parquet", metadata={**shared, b"part": b"1", b"bad\xff": b"x", b"k": b"\xff"})
    b = write_parquet(tmp_path / "b.parquet", metadata={**shared, b"part": b"2"})
    tables = open_tables([str(a), str(b)])
    assert dict(tables.metadata) == {"source": "here", "embedding_model": "m1"}
    assert tables.embedding_model == "m1"
    assert tables.n_rows == 2
    c = write_parquet(tmp_path / "c.parquet", metadata={b"embedding_model": b"m2"})
    with pytest.raises(DataError, match=r"a\.parquet' of 'm1'.*c\.parquet' of 'm2'"):
        open_tables([str(a), str(c)])


def test_a_file_that_names_no_model_does_not_contradict_one_that_does(tmp_path):
    a = write_parquet(tmp_path / "a.parquet")
    b = write_parquet(tmp_path / "b.parquet", metadata={b"embedding_model": b"m1"})
    assert open_tables([str(a), str(b)]).embedding_model == "m1"
    assert open_tables([str(a)]).embedding_model is None
