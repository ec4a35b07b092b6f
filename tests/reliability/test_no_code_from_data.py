"""No code from data: what could run code is recognised by its content, refused with a sentence and never loaded."""

import ast
import bz2
import gzip
import io
import lzma
import os
import pickle
import re
import struct
import tarfile
import tomllib
import zipfile
import zlib
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from headeval import LinearHead, write_head
from headeval.files.foreign import foreign_kind
from reliability.limited_children import Case, outcomes

joblib = pytest.importorskip("joblib", reason="comes with scikit-learn, which the extra `test` asks for")

ROOT = Path(__file__).resolve().parents[2]
EXPLODED = "exploded"  # the folder that the code in the data would make
DATA, HEAD = 3, 4
NAMES = ("x.parquet", "x.csv", "x.json", "x")
VECTORS = pa.array([[0.5, 1.0], [1.0, -0.5], [-1.0, 0.25], [0.25, 1.0]], pa.list_(pa.float32(), 2))
LABELS = ["safe", "unsafe"] * 2


class Bomb:
    """Makes a folder where it is unpickled."""

    def __reduce__(self) -> tuple[object, tuple[str]]:
        return os.mkdir, (EXPLODED,)


def joblib_bytes(compress: int | tuple[str, int]) -> bytes:
    stream = io.BytesIO()
    joblib.dump({"model": Bomb(), "weights": np.zeros(3)}, stream, compress=compress)
    return stream.getvalue()


def zipped(names: dict[str, bytes]) -> bytes:
    stream = io.BytesIO()
    with zipfile.ZipFile(stream, "w") as archive:
        for name, content in names.items():
            archive.writestr(name, content)
    return stream.getvalue()


def tarred(content: bytes, *, without_magic: bool = False) -> bytes:
    stream = io.BytesIO()
    with tarfile.open(fileobj=stream, mode="w", format=tarfile.USTAR_FORMAT) as archive:
        entry = tarfile.TarInfo("data.pkl")
        entry.size = len(content)
        archive.addfile(entry, io.BytesIO(content))
    data = stream.getvalue()
    if not without_magic:
        return data
    # The oldest archives have nothing where later ones have a magic word and the owner; the sum is another then.
    header = bytearray(data[:257] + bytes(243) + data[500:512])
    header[148:156] = b" " * 8
    header[148:156] = b"%06o\0 " % sum(header)
    return bytes(header) + data[512:]


def numpy_bytes(array: object) -> bytes:
    stream = io.BytesIO()
    np.save(stream, np.array(array), allow_pickle=True)
    return stream.getvalue()


def safetensors() -> bytes:
    header = b'{"W":{"dtype":"F32","shape":[2],"data_offsets":[0,8]}}'
    return struct.pack("<Q", len(header)) + header + bytes(8)


PICKLED = {f"pickle {number}": pickle.dumps(Bomb(), number) for number in range(6)}
# What torch.save wrote before it wrote archives: pickles one after the other, of which the first is a number.
OLD_TORCH = pickle.dumps(0x1950A86A20F9469CFC6C, 2) + pickle.dumps(1001, 2) + PICKLED["pickle 2"]
FOREIGN = PICKLED | {
    **{f"model {number}": pickle.dumps({"W": np.zeros((2, 3)), "b": [0.0, 1.0]}, number) for number in range(6)},
    "joblib": joblib_bytes(0),
    "joblib zlib": joblib_bytes(("zlib", 3)),
    "joblib zlib 9": joblib_bytes(("zlib", 9)),
    "joblib gzip": joblib_bytes(("gzip", 3)),
    "joblib bz2": joblib_bytes(("bz2", 3)),
    "joblib xz": joblib_bytes(("xz", 3)),
    "joblib lzma": joblib_bytes(("lzma", 3)),
    "torch": zipped({"model/data.pkl": PICKLED["pickle 2"], "model/version": b"3\n"}),
    "torch before 1.6": OLD_TORCH,
    "torch before 0.1.10": tarred(PICKLED["pickle 2"]),
    "tar of old": tarred(b"x", without_magic=True),
    "call by an object": b"(cposix\nmkdir\nS'exploded'\no.",
    "7z": b"7z\xbc\xaf\x27\x1c\0\x04" + bytes(24),
    "rar": b"Rar!\x1a\x07\x01\0" + bytes(24),
    "excel": zipped({"[Content_Types].xml": b"<Types/>", "xl/workbook.xml": b"<workbook/>"}),
    "opendocument": zipped({"mimetype": b"application/vnd.oasis.opendocument.spreadsheet"}),
    "old excel": b"\xd0\xcf\x11\xe0\xa1\xb1\x1a\xe1" + bytes(504),
    "zip": zipped({"train.csv": b"id,label\n"}),
    "orc": b"ORC\n\x0b\0\0" + bytes(20) + b"ORC\x17",
    "avro": b"Obj\x01\x04\x14avro.codec",
    "lfs": b"version https://git-lfs.github.com/spec/v1\noid sha256:0\n",
    "pdf": b"%PDF-1.7\n",
    "html": b"\n<!doctype HTML><title>Sign in</title>",
    "skops": zipped({"schema.json": b"{}", "1.npy": numpy_bytes([1.0])}),
    "npy of objects": numpy_bytes([Bomb(), None]),
    "npy": numpy_bytes([1.0, 2.0]),
    "npz of objects": zipped({"embedding.npy": numpy_bytes([Bomb(), None])}),
    "hdf5": b"\x89HDF\r\n\x1a\n\0\0\0\0\0\x08\x08\0" + bytes(100),
    "safetensors": safetensors(),
    "gguf": b"GGUF\x03\0\0\0" + bytes(40),
    "arrow": b"ARROW1\0\0" + bytes(40),
    **{f"{kind.__name__} of a pickle": kind.compress(PICKLED["pickle 4"]) for kind in (bz2, gzip, lzma, zlib)},
}
SENTENCE = re.compile(r"is (a|an|by its name|compressed)\b")


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    write_head(
        LinearHead.binary([1.0, -2.0], 0.1, classes=("safe", "unsafe"), embedding_model="m"), tmp_path / "good.json"
    )
    pq.write_table(pa.table({"embedding": VECTORS, "label": LABELS, "p": [0.2, 0.9, 0.4, 0.6]}), tmp_path / "good.pq")
    return tmp_path


def refused(folder: Path, lines: list[tuple[str, bytes, str, int]]) -> None:
    """Run each line on a file of that name with those bytes: one sentence of what it is, and nothing has been run."""
    cases = (Case(line.format(name).split(), {name: content}) for name, content, line, _ in lines)
    for (name, content, line, code), outcome in zip(lines, outcomes(cases, folder), strict=True):
        about = (name, content[:40], line, outcome)
        assert outcome.ended_well({code}), about
        assert name in outcome.err, about
        assert SENTENCE.search(outcome.err), about
    assert not (folder / EXPLODED).exists()


def test_as_a_table_it_is_recognised_by_its_content_whatever_its_name(folder: Path) -> None:
    line = "score {} --head good.json -o out.csv --force"
    refused(folder, [(name, content, line, DATA) for content in FOREIGN.values() for name in NAMES])


def test_as_a_head_it_is_recognised_by_its_content_whatever_its_name(folder: Path) -> None:
    line = "score good.pq --head {} -o out.csv --force"
    refused(folder, [(name, content, line, HEAD) for content in FOREIGN.values() for name in NAMES[:3]])


PLACES = (
    ("fit {} -o h.json", DATA),
    ("fit good.pq --eval {} -o h.json", DATA),
    ("fit {} --memory 1MB -o h.json", DATA),
    ("calibrate {} --head good.json -o h.json", DATA),
    ("calibrate good.pq --head {} -o h.json", HEAD),
    ("threshold {} --head good.json --require fpr<=0.9", DATA),
    ("threshold good.pq --head {} --require fpr<=0.9", HEAD),
    ("threshold good.pq --head good.json --require fpr<=0.9 --benign {}", DATA),
    ("report {} --prob p", DATA),
    ("report good.pq --head {}", HEAD),
    ("report good.pq --head good.json --baseline {}", HEAD),
    ("report good.pq --head good.json --reference {}", DATA),
)


def test_code_is_spoken_of_where_there_can_be_any() -> None:
    """And the next step is one that fits."""
    harmless = {
        "joblib gzip",
        "joblib bz2",
        "joblib xz",
        "joblib lzma",
        "torch before 0.1.10",
        "tar of old",
        "old excel",
    }
    harmless |= {"bz2 of a pickle", "gzip of a pickle", "lzma of a pickle"}  # only packed, and known when unpacked
    harmless |= {"hdf5", "safetensors", "gguf", "arrow", "orc", "avro", "lfs", "pdf", "html", "zip", "7z", "rar"}
    harmless |= {"excel", "opendocument"}
    found = {name: foreign_kind(io.BytesIO(content)) for name, content in FOREIGN.items()}
    assert {name for name, kind in found.items() if kind is None or "can run code" not in kind.kind} == harmless
    advice = {name: kind.advice for name, kind in found.items() if kind is not None}
    assert advice["excel"] == advice["old excel"] == advice["opendocument"] == "save it as CSV (UTF-8) or Parquet"
    assert advice["zip"] == advice["7z"] == advice["rar"] == advice["tar of old"] == "unpack it"
    assert advice["torch"] == advice["pickle 0"] == advice["npy"] == "load it where you trust it and write Parquet"
    assert advice["lfs"] == "fetch the file itself (git lfs pull)"


def test_every_argument_that_takes_a_file_refuses_it(folder: Path) -> None:
    kinds = ("pickle 0", "pickle 5", "torch")
    refused(folder, [("x.csv", FOREIGN[kind], line, code) for kind in kinds for line, code in PLACES])


@pytest.mark.parametrize(
    "text",
    [
        "category,label\ncat,1\nThis ends with a full stop.",
        "lq,d0,p0\n1,2,3.",
        "(Kelvin),label\n1,0\n2,1.",
        "cos,sin,label\nx\n(1",
        "x^2,label\n1,0\n",
        "]q,}q\n1,2.",
        "query,text\nq,is a pickle.",
        "GUF,label\n",
        "(Idle\nx\n",
        "(Safe),label,note\n0.5,1,bad.",
        "(Value),label\n1,2.",
        "(Load),label\n1,2.",
        "(Fast),label\n1,2.",
        "FEA1,FEA2,label\n1,2,0\n",
        "ARROW1,label\n1,0\n",
        "ORC,label\n1,ORC\n",
        "BZh,label\n1,0\n",
        "BZh9,label\n1,0\n",
        "GGUF,label\n1,0\n",
        '{"W": [[1.0]]}.',
    ],
)
def test_text_that_begins_or_ends_much_like_one_is_text(text: str) -> None:
    assert foreign_kind(io.BytesIO(text.encode())) is None


def extended(name: bytes) -> bytes:
    """Return a Parquet file whose vectors are of an extension type, which is told by a pickle that makes a folder."""
    about = {b"ARROW:extension:name": name, b"ARROW:extension:metadata": PICKLED["pickle 4"]}
    schema = pa.schema([pa.field("embedding", VECTORS.type, metadata=about), pa.field("label", pa.string())])
    stream = io.BytesIO()
    pq.write_table(pa.table([VECTORS, pa.array(LABELS)], schema=schema), stream)
    assert b"ARROW:schema" in stream.getvalue()
    return stream.getvalue()


def test_extension_types_are_read_as_what_they_store_or_refused(folder: Path) -> None:
    """CVE-2023-47248: pyarrow before 14.0.1 unpickled what a schema holds under the first of these names."""
    names = (b"arrow.py_extension_type", b"pandas.extension", b"arrow.opaque", b"arrow.json")
    lines = ("fit x.parquet -o h.json --folds 0 --force", "score x.parquet --head good.json -o s.parquet --force")
    cases = [Case(line.split(), {"x.parquet": extended(name)}) for name in names for line in lines]
    found = list(outcomes(cases, folder))
    assert all(outcome.ended_well({0, DATA}) for outcome in found), found
    assert [outcome.code for outcome in found[:2]] == [0, 0]
    assert not (folder / EXPLODED).exists()


def test_the_lowest_pyarrow_allowed_is_above_its_known_vulnerability() -> None:
    dependencies = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]["dependencies"]
    (floor,) = (match[1] for text in dependencies if (match := re.fullmatch(r"pyarrow>=([0-9.]+)", text)))
    assert [int(part) for part in floor.split(".")] > [14, 0, 1]
    assert [int(part) for part in pa.__version__.split(".")[:3]] > [14, 0, 1]


CODE_FROM_BYTES = frozenset(
    (
        "pickle",
        "_pickle",
        "cPickle",
        "shelve",
        "marshal",
        "joblib",
        "dill",
        "cloudpickle",
        "torch",
        "code",
        "runpy",
        "yaml",
    )
)
RUNS_CODE = frozenset({"eval", "exec", "compile", "__import__"})
UNPICKLES = frozenset({"numpy.load", "np.load", "pandas.read_pickle", "pd.read_pickle"})


def runs_data(tree: ast.AST) -> list[str]:
    """Return what in a module could run code from data, as it is written there."""
    found = []
    for node in ast.walk(tree):
        match node:
            case ast.Import(names=names):
                found += [name.name for name in names if _root(name.name) in CODE_FROM_BYTES]
            case ast.ImportFrom(module=str(name)) if _root(name) in CODE_FROM_BYTES:
                found.append(name)
            case ast.Call(func=ast.Name(id=name)) if name in RUNS_CODE:
                found.append(name)
            case ast.Call(func=ast.Name(id="import_module") | ast.Attribute(attr="import_module"), args=[of, *_]):
                # A name that is put together must begin with what belongs to the project.
                text = ast.unparse(of)
                own = isinstance(of, ast.Constant) and _root(str(of.value)) not in CODE_FROM_BYTES
                found += [] if own or text.startswith("f'headeval.") else [text]
            case ast.Attribute(attr="load" | "read_pickle") if ast.unparse(node) in UNPICKLES:
                found.append(ast.unparse(node))
            case ast.keyword(arg="allow_pickle"):
                found.append("allow_pickle")
    return found


def _root(module: str) -> str:
    return module.split(".")[0]


def test_nothing_in_the_package_imports_pickle_or_runs_data() -> None:
    modules = sorted((ROOT / "src" / "headeval").rglob("*.py"))
    assert len(modules) > 100
    found = {path.name: names for path in modules if (names := runs_data(ast.parse(path.read_text(encoding="utf-8"))))}
    assert found == {}


@pytest.mark.parametrize(
    "line",
    [
        "import pickle",
        "import os, shelve as s",
        "from joblib import load",
        "from marshal import loads",
        "eval(text)",
        "exec(text)",
        "x = np.load(path)",
        "load = numpy.load",
        "f(a, allow_pickle=True)",
        "importlib.import_module('dill')",
        "import_module(name)",
        "import_module(f'{name}.x')",
    ],
)
def test_what_the_rule_above_looks_for_is_found(line: str) -> None:
    assert runs_data(ast.parse(f"def f():\n    {line}"))
