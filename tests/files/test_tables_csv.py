"""CSV files: everything is text until a number is needed."""

import contextlib
import csv
import io

import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from headeval.errors import DataError
from headeval.files import csv_text
from headeval.files.examples import read_examples
from headeval.files.tables import open_tables


def write(tmp_path, content: str | bytes, name: str = "a.csv") -> str:
    (tmp_path / name).write_bytes(content.encode() if isinstance(content, str) else content)
    return str(tmp_path / name)


def cells(path: str) -> dict[str, list[str]]:
    columns: dict[str, list[str]] = {}
    for block in open_tables([path]).blocks():
        for name in block.batch.schema.names:
            columns.setdefault(name, []).extend(block.batch[name].to_pylist())
    return columns


def test_a_character_cut_in_two_by_a_quote_is_no_text(tmp_path):
    """Without the quote, which Arrow takes away, it would be an emoji."""
    path = write(tmp_path, b'a,b\nx,"\xf0\x9f"\x98\x80\n')
    with pytest.raises(DataError, match="is not UTF-8 text: save it as UTF-8"):
        cells(path)


def test_every_cell_is_text_and_no_word_means_null(tmp_path):
    content = "id,x\n12345678901234567890,NA\n007,None\n1.50,null\n,nan\n"
    assert cells(write(tmp_path, content)) == {
        "id": ["12345678901234567890", "007", "1.50", ""],
        "x": ["NA", "None", "null", "nan"],
    }


@pytest.mark.parametrize("start", ["", "\ufeff", "\ufeff\n", "\r\n\r\n"])
@pytest.mark.parametrize("line_break", ["\n", "\r\n", "\r"])
@pytest.mark.parametrize("end", ["", "\n"])
def test_byte_order_mark_line_breaks_and_a_missing_last_one_change_nothing(tmp_path, start, line_break, end):
    content = start + line_break.join(['"a",b', "1,2", '"x,""y""\nz",3']) + end.replace("\n", line_break)
    assert cells(write(tmp_path, content)) == {"a": ["1", 'x,"y"\nz'], "b": ["2", "3"]}


def test_a_header_may_be_quoted_hold_line_breaks_and_be_empty(tmp_path):
    assert cells(write(tmp_path, '"a\nb","c,""d""",\n1,2,3\n')) == {"a\nb": ["1"], 'c,"d"': ["2"], "": ["3"]}


@pytest.mark.parametrize("header", ['size 5",label,prob', '5" x,label,prob', 'a"b""c,label,"prob"', 'a, "b,c"'])
@pytest.mark.parametrize("last", ['6"', '"6"'])
def test_a_quote_inside_a_name_is_text(tmp_path, header, last):
    """A quote opens a quoted cell only where the cell begins; elsewhere it once swallowed rows into the header."""
    content = f"{header}\n" + "1,0,2\n" * 5 + f"{last},0,2\n"
    names, *rows = csv.reader(io.StringIO(content, newline=""))
    read = cells(write(tmp_path, content))
    assert list(read) == names
    assert list(zip(*read.values(), strict=True)) == [tuple(row) for row in rows]


RAW_CELL = st.one_of(st.text('a" ', max_size=4), st.text('a" ,\n\r', max_size=4).map('"{}"'.format))


def python_rows(content: str, *, strict: bool) -> list[list[str]]:
    return [row for row in csv.reader(io.StringIO(content, newline=""), strict=strict) if row]


@settings(max_examples=150)
@given(header=st.lists(RAW_CELL, min_size=1, max_size=4), count=st.integers(1, 4), cell=st.sampled_from(["1", '5"']))
def test_rows_are_counted_as_python_counts_them_whatever_quotes_the_header_has(tmp_path_factory, header, count, cell):
    text = ",".join(header) + "\n"
    width = len(next(iter(python_rows(text, strict=False)), []))
    content = text + (",".join([cell] * width) + "\n") * count
    path = write(tmp_path_factory.mktemp("csv"), content)
    try:
        blocks = list(open_tables([path]).blocks())
    except DataError:
        with contextlib.suppress(csv.Error):  # no CSV for Python either; else a file without rows or with ragged ones
            names, *rows = python_rows(content, strict=True) or [[]]
            assert not rows or any(len(row) != len(names) for row in rows)
        return
    names, *rows = python_rows(content, strict=False)
    assert blocks[0].batch.schema.names == names
    read = [column.to_pylist() for column in pa.Table.from_batches([block.batch for block in blocks]).columns]
    assert [list(row) for row in zip(*read, strict=True)] == rows


@settings(max_examples=40)
@given(rows=st.lists(st.tuples(st.text(max_size=8), st.text(max_size=8)), min_size=1, max_size=12))
def test_what_python_writes_is_read_back(tmp_path_factory, rows):
    folder = tmp_path_factory.mktemp("csv")
    text = io.StringIO(newline="")
    csv.writer(text, quoting=csv.QUOTE_ALL).writerows([("a", "b"), *rows])
    assert cells(write(folder, text.getvalue())) == {"a": [a for a, _ in rows], "b": [b for _, b in rows]}


@pytest.mark.parametrize(
    ("content", "message"),
    [
        ("a,b\n1,2\n3\n", "row 2 has 1 cells, the header 2"),
        ("a,b\n1,2\n3,4,5\n", "row 2 has 3 cells, the header 2"),
        ("a,b\n" + "1,2\n" * 5000 + "3\n", "row 5001 has 1 cells, the header 2"),
        (b"a,b\n1,2\n3,\xff\n", "row 2, column 'b' is not UTF-8"),
        (b"a,\xff\n1,2\n", "header is not UTF-8"),
        (b"\xff\xfea\x00,\x00b\x00\n\x00", "UTF-16"),
        ('a,b\n1,2\n3,"4\n5,6\n', "opens in row 2 is never closed"),
        ('a,b\n1,"2', "opens in row 1 is never closed"),
        ('a,b\n1,2\n"3,4\n5,6\n', "row 2 has 1 cells"),
        ('a,"b\n1,2\n', "never closed|header"),
        ("a;b\n1;2\n", "semicolons"),
        ("a\tb\n1\t2\n", "tabs"),
    ],
)
def test_malformed_files_are_refused_with_the_place(tmp_path, content, message):
    with pytest.raises(DataError, match=message) as caught:
        cells(write(tmp_path, content))
    assert "a.csv" in str(caught.value)


def test_an_open_quote_that_swallows_more_than_a_block_is_refused(tmp_path, monkeypatch):
    monkeypatch.setattr(csv_text, "BLOCK_BYTES", 2**16)
    with pytest.raises(DataError, match="a quote in it may not be closed"):
        cells(write(tmp_path, 'a,b\n1,"2\n' + "3,4\n" * 50_000))


@pytest.mark.parametrize("size", [2**10, 2**12, 2**16])
def test_block_size_changes_nothing(tmp_path, monkeypatch, size):
    monkeypatch.setattr(csv_text, "BLOCK_BYTES", size)
    rows = [f'{i},"text ""{i}""\n{"x" * (i % 300)}"' for i in range(700)]
    read = cells(write(tmp_path, "a,b\n" + "\n".join(rows)))
    assert read["a"] == [str(i) for i in range(700)]
    assert read["b"] == [f'text "{i}"\n{"x" * (i % 300)}' for i in range(700)]


def test_a_cell_may_hold_a_vector_of_4096_numbers(tmp_path):
    vector = [-1.2345678901234567e-05 * (i + 1) for i in range(4096)]
    text = io.StringIO(newline="")
    csv.writer(text).writerows([("embedding", "label"), *[(str(vector), i % 2) for i in range(30)]])
    examples = read_examples(open_tables([write(tmp_path, text.getvalue())]), embedding="embedding")
    assert examples.embeddings.shape == (30, 4096)
    assert examples.embeddings[29].tolist() == vector


@pytest.mark.parametrize(
    ("cell", "message"),
    [
        ("abc", r"not a number in row 2 \('abc'\)"),
        ('"0,5"', r"not a number in row 2 \('0,5'\); write decimals with a point"),
        ("", "is empty in row 2"),
        (" ", "is empty in row 2"),
        ("nan", r"NaN or infinite in row 2 \('nan'\)"),
        ("-Infinity", "NaN or infinite in row 2"),
        ("1e999", "NaN or infinite in row 2"),
        ("1_000", "not a number in row 2"),
        ("0x10", "not a number in row 2"),
        ("１", "not a number in row 2"),
        ("NA", r"not a number in row 2 \('NA'\)"),
    ],
)
def test_cells_that_are_no_finite_number_are_named(tmp_path, cell, message):
    path = write(tmp_path, f"label,z\n0,1\n1,{cell}\n0,2\n")
    with pytest.raises(DataError, match=message):
        read_examples(open_tables([path]), score="z")


def test_numbers_are_read_as_python_reads_them(tmp_path):
    texts = ["1", "+1.5", " -2 ", ".5", "5.", "1e-3", "1E5", "0.1", "123456789.123456789", "1e-400", "-0.0", "007"]
    path = write(tmp_path, "label,z\n" + "".join(f"0,{text}\n" for text in texts))
    assert read_examples(open_tables([path]), score="z").scores.tolist() == [float(text) for text in texts]


def test_faults_are_counted_over_the_whole_file_and_five_are_named(tmp_path, monkeypatch):
    monkeypatch.setattr(csv_text, "BLOCK_BYTES", 2**12)
    path = write(tmp_path, "label,z\n" + "0,1.25\n0,x\n" * 3000)
    with pytest.raises(DataError, match=r"3000 rows, the first 2, 4, 6, 8 and 10 \('x', 'x', 'x', 'x', 'x'\)"):
        read_examples(open_tables([path]), score="z")
