"""A linear-head file means the same to every reader, and whatever is not one is refused with its place."""

import json
import math
import os
import socket
import struct
import threading
import urllib.request
from collections.abc import Callable
from contextlib import suppress
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow
import pyarrow.parquet
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st
from jsonschema import Draft202012Validator

from headeval.errors import HeadError, OutputError
from headeval.files import head_rules, heads, schemas
from headeval.files.heads import check_embedding_model, head_document, read_head, write_head
from headeval.files.schemas import load_schema, validator
from headeval.head import LinearHead

EXAMPLES = Path(__file__).parent / "heads"
VALID = sorted((EXAMPLES / "valid").glob("*.json"))
INVALID = sorted((EXAMPLES / "invalid").glob("*.json"))
SCHEMA_FILE = Path(__file__).parents[2] / "schemas" / "linear-head.schema.json"
KEYS = ["embedding_model", "dim", "classes", "W", "b", "threshold", "metrics"]
ROUNDING = 1e-12  # a few hundred additions of numbers near one, each off by 1e-16 at most

EXTREMES = [0.0, -0.0, 5e-324, -5e-324, 2.2250738585072014e-308, 0.1, 1 / 3, 1e16, 1e22, 1e308, -1.7976931348623157e308]


def golden(**changes: Any) -> LinearHead:
    head = LinearHead("model", ("safe", "unsafe"), np.array([[0.0, 0], [1, 2]]), np.array([0.0, -1]), 0.5)
    return replace(head, **changes)


def document(**changes: Any) -> dict[str, Any]:
    fields = {"embedding_model": "m", "dim": 2, "classes": ["a", "b"], "W": [[0, 0], [1, 2]], "b": [0, -1]}
    return fields | {"threshold": 0.5} | changes


def saved(path: Path, content: Any) -> Path:
    path.write_bytes(content if isinstance(content, bytes) else json.dumps(content).encode())
    return path


def message_of(path: Path) -> str:
    with pytest.raises(HeadError) as caught:
        read_head(path)
    return str(caught.value).removeprefix(f"{path}: ")


def bits(values: Any) -> bytes:
    return b"".join(struct.pack("<d", value) for value in np.ravel(values))


# --- examples in the folder


@pytest.mark.parametrize("path", VALID, ids=lambda path: path.stem)
def test_a_valid_file_is_read_as_it_says(path: Path) -> None:
    head, plain = read_head(path), json.loads(path.read_text(encoding="utf-8"))
    assert (head.embedding_model, list(head.classes)) == (plain["embedding_model"], plain["classes"])
    assert (head.dim, head.threshold, head.metrics) == (plain["dim"], plain["threshold"], plain.get("metrics", {}))
    assert bits(head.W) == bits([[float(w) for w in row] for row in plain["W"]])
    assert bits(head.b) == bits([float(b) for b in plain["b"]])


@pytest.mark.parametrize("path", INVALID, ids=lambda path: path.stem)
def test_an_invalid_file_is_refused_with_the_message_beside_it(path: Path) -> None:
    with pytest.raises(HeadError) as caught:
        read_head(path)
    expected = path.with_suffix(".txt").read_text(encoding="utf-8").rstrip("\n")
    assert str(caught.value) == f"{path}: {expected}"
    assert caught.value.exit_code == 4


def test_there_are_examples_and_every_one_has_its_message() -> None:
    assert len(VALID) > 10
    assert len(INVALID) > 50
    assert {path.stem for path in INVALID} == {path.stem for path in (EXAMPLES / "invalid").glob("*.txt")}


# --- the schema


def test_the_schema_is_valid_itself_and_names_no_host() -> None:
    schema = load_schema("linear-head")
    Draft202012Validator.check_schema(schema)
    assert schema["$schema"] == "https://json-schema.org/draft/2020-12/schema"
    assert schema["$id"].startswith("urn:")
    assert SCHEMA_FILE.read_text(encoding="utf-8").count("://") == 1
    assert list(schema["properties"]) == KEYS
    assert schema["required"] == KEYS[:-1]
    assert schema["additionalProperties"] is False
    assert all(rule["title"] and rule["description"] for rule in [schema, *schema["properties"].values()])


@pytest.mark.parametrize("path", VALID, ids=lambda path: path.stem)
def test_the_schema_accepts_every_valid_example(path: Path) -> None:
    plain = json.loads(path.read_text(encoding="utf-8"))
    Draft202012Validator(json.loads(SCHEMA_FILE.read_text(encoding="utf-8"))).validate(plain)


scalars: st.SearchStrategy[Any] = st.sampled_from([0, 1, -2.5, True, False, None, "1", [], {}, [1], 10**30])
number_lists = st.one_of(scalars, st.lists(scalars, max_size=4))
weight_lists = st.one_of(number_lists, st.lists(number_lists, max_size=4))
class_lists = st.one_of(scalars, st.lists(st.one_of(st.sampled_from(["a", "b", "c", ""]), scalars), max_size=4))


@given(W=weight_lists, b=number_lists, classes=class_lists)
@example(W=[[1, True], [1.5, "x"]], b=[None, 0], classes=["a", "b"])
@settings(max_examples=300)
def test_the_fast_check_of_the_arrays_agrees_with_the_schema(W: Any, b: Any, classes: Any) -> None:
    changed = document(W=W, b=b, classes=classes)
    schema_says = Draft202012Validator(load_schema("linear-head")).is_valid(changed)
    assert (not list(head_rules.schema_problems(changed))) == schema_says


@given(W=weight_lists, b=number_lists)
@settings(max_examples=200)
def test_the_fast_check_finds_as_many_problems_as_the_schema(W: Any, b: Any) -> None:
    changed = document(W=W, b=b)
    errors = list(Draft202012Validator(load_schema("linear-head")).iter_errors(changed))
    problems = list(head_rules.schema_problems(changed))
    assert len(problems) == len(errors)
    places = {"$" + "".join(f"[{s}]" if isinstance(s, int) else f".{s}" for s in error.path) for error in errors}
    assert {problem.split(":")[0] for problem in problems} == places


@given(
    changes=st.dictionaries(st.sampled_from([*KEYS, "l2"]), st.one_of(scalars, class_lists), max_size=3),
    missing=st.sets(st.sampled_from(KEYS), max_size=2),
)
@settings(max_examples=200)
def test_nothing_that_the_schema_refuses_is_read(
    changes: dict[str, Any], missing: set[str], tmp_path_factory: pytest.TempPathFactory
) -> None:
    changed = {key: value for key, value in document(**changes).items() if key not in missing}
    valid = Draft202012Validator(load_schema("linear-head")).is_valid(changed)
    path = saved(tmp_path_factory.getbasetemp() / "changed.json", changed)
    try:
        read_head(path)
    except HeadError as error:
        assert not valid or "expected dim =" in str(error) or "one for each class" in str(error)  # noqa: PT017
    else:
        assert valid


def test_no_reference_of_a_schema_is_ever_fetched(monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(*_: Any, **__: Any) -> None:
        pytest.fail("a connection was attempted")

    monkeypatch.setattr(schemas, "load_schema", lambda _: {"$ref": "https://schema.invalid/x.json"})
    monkeypatch.setattr(socket.socket, "connect", refuse)
    monkeypatch.setattr(urllib.request, "urlopen", refuse)
    with pytest.raises(Exception, match="Unresolvable"):
        validator.__wrapped__("linear-head").validate({})


def test_the_copy_in_an_installed_package_comes_first(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "schemas").mkdir()
    saved(tmp_path / "schemas" / "linear-head.schema.json", {"title": "the packaged copy"})
    monkeypatch.setattr("importlib.resources.files", lambda package: tmp_path if package == "headeval" else None)
    assert load_schema("linear-head") == {"title": "the packaged copy"}


@pytest.mark.parametrize("name", ["linear", "", "../pyproject", "../schemas/linear-head", "/etc/passwd"])
def test_an_unknown_schema_is_a_lookup_error(name: str) -> None:
    with pytest.raises(LookupError, match="no schema file named"):
        load_schema(name)


def test_a_schema_that_is_changed_by_its_reader_stays_as_it_is_for_others() -> None:
    load_schema("linear-head").clear()
    assert load_schema("linear-head")["title"] == "Linear head"
    assert validator("linear-head") is validator("linear-head")


# --- files that cannot be read at all


def test_a_missing_file_a_folder_and_a_file_in_the_place_of_a_folder_are_told_apart(tmp_path: Path) -> None:
    assert message_of(tmp_path / "no.json") == "does not exist; expected a linear-head file"
    assert message_of(tmp_path) == "is a folder, expected a linear-head file"
    assert message_of(saved(tmp_path / "head.json", {}) / "x") == "cannot be read: Not a directory"


def test_a_file_without_read_permission_is_a_head_error(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def denied(*_: Any, **__: Any) -> None:
        raise PermissionError(13, "Permission denied")

    path = saved(tmp_path / "head.json", document())
    monkeypatch.setattr(Path, "open", denied)
    assert message_of(path) == "cannot be read: Permission denied"


@pytest.mark.parametrize(
    ("old", "new", "said"),
    [
        ("0.5", "0^,5", "is not valid JSON: a comma too many? (numbers are written with a point)"),
        ('"dim": 2,', '"dim": 2,^,', "is not valid JSON: a comma too many?"),
        ("[0, -1]", "[0, -1^,]", "is not valid JSON: a comma too many?"),
        ('"dim": 2', '"dim": 2 ^// of the model', "is not valid JSON: Expecting ',' delimiter"),
        ('"dim": 2,', '"dim": 2, ^// of the model', "is not valid JSON: Expecting property name"),
        ('"threshold"', '"Threshold"', "$: has no key 'threshold', and an unknown one 'Threshold': did you mean it?"),
        ('"threshold": 0.5', '"scale": 1, "bias": 2', "$: has no key 'threshold', and an unknown one 'scale', 'bias'"),
    ],
)
def test_a_slip_of_the_hand_is_named(tmp_path: Path, old: str, new: str, said: str) -> None:
    """And the place, which stands behind the mark."""
    before, mark, after = json.dumps(document()).replace(old, new).partition("^")
    path = tmp_path / "head.json"
    path.write_text(before + after, encoding="utf-8")
    place = f"line 1, column {len(before) + 1}: " if mark else ""
    assert message_of(path).startswith(place + said)
    assert "more problem" not in message_of(path)


@pytest.mark.parametrize("name", ["/dev/null", "/dev/zero"])
def test_a_device_is_refused_unread(name: str) -> None:
    """The zeros would be read up to the limit of a pipe."""
    if not Path(name).is_char_device():
        pytest.skip("no such device here")
    assert message_of(Path(name)) == "is a device, expected a linear-head file"


def test_a_table_as_head_asks_whether_the_arguments_are_swapped(tmp_path: Path) -> None:
    path = tmp_path / "head.json"
    pyarrow.parquet.write_table(pyarrow.table({"a": [1]}), path)
    assert message_of(path) == "is a Parquet table, no head: are DATA and --head swapped?"
    path = tmp_path / "rows.csv"
    path.write_text("id,e0\n1,2\n")
    assert message_of(path).endswith("; are DATA and --head swapped?")


def test_a_failing_disk_is_a_head_error(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def failing(*_: Any) -> None:
        raise OSError(5, "Input/output error")

    path = saved(tmp_path / "head.json", document())
    with monkeypatch.context() as patch:
        patch.setattr(os, "fstat", failing)
        message = message_of(path)
    assert message == "cannot be read: Input/output error"


def test_a_huge_file_is_refused_before_it_is_read(tmp_path: Path) -> None:
    path = tmp_path / "head.json"
    with path.open("wb") as file:
        file.truncate(2**40)  # a terabyte of nothing
    assert message_of(path) == "is larger than 512 MB, which no linear head is"


@pytest.mark.parametrize("content", [b"", json.dumps(document()).encode(), b" " * 3 * 2**20])
def test_a_head_can_come_through_a_pipe_which_is_limited_too(
    tmp_path: Path, content: bytes, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(heads, "_MOST_BYTES", 2**21)
    path = tmp_path / "pipe"
    os.mkfifo(path)

    def feed() -> None:
        with suppress(BrokenPipeError):
            path.write_bytes(content)

    writer = threading.Thread(target=feed)
    writer.start()
    try:
        if content.startswith(b"{"):
            assert read_head(path).dim == 2
        else:
            assert message_of(path) == ("is larger than 2 MB, which no linear head is" if content else "is empty")
    finally:
        writer.join()


def test_a_file_name_is_shown_without_its_controls(tmp_path: Path) -> None:
    with pytest.raises(HeadError) as caught:
        read_head(tmp_path / "\x1b[2Jhead\n.json")
    assert str(caught.value).startswith(f"{tmp_path}/\\x1b[2Jhead\\x0a.json: does not exist")


# --- hostile and huge documents


@pytest.mark.parametrize(
    "content",
    [
        b"[" * 100_000 + b"]" * 100_000,
        b"[" * 100_000,
        b'{"metrics":' * 100_000 + b"1" + b"}" * 100_000,
        b'{"metrics": {"a\\"": "\\\\", "b": ' + b"[" * 100_000,
    ],
    ids=["closed", "open", "objects", "after strings"],
)
def test_100_000_levels_are_refused_at_once(tmp_path: Path, content: bytes) -> None:
    assert message_of(saved(tmp_path / "head.json", content)) == "is nested more than 32 levels deep"


@pytest.mark.parametrize("end", [b"", b"\\", b'"', b'\\"'], ids=["open", "open escape", "closed", "escaped quote"])
def test_a_long_string_full_of_quotes_takes_no_quadratic_time(tmp_path: Path, end: bytes) -> None:
    message_of(saved(tmp_path / "head.json", b'"' + b'\\"[' * 200_000 + end))


def test_a_depth_is_counted_across_the_blocks_of_the_scan(tmp_path: Path) -> None:
    """2²⁰ brackets are looked at together; a nest across the border of two blocks is as deep as any other."""
    flat = b"[]" * (2**19 - 10)
    for border in (20, 19, 21):
        content = b"[" + flat + b"[" * border + b"[" * 20
        assert message_of(saved(tmp_path / "head.json", content)) == "is nested more than 32 levels deep"


def test_a_large_head_is_read_and_its_first_violation_named(tmp_path: Path) -> None:
    W = np.random.default_rng(0).normal(size=(10, 4096)).tolist()
    fields = document(dim=4096, classes=list("abcdefghij"), b=[0.0] * 10)
    read_head(saved(tmp_path / "small.json", document()))  # the validator is built once
    variants: list[list[Any]] = [W, [["x"] * 4096] * 10, [[[]] * 4096] * 10, [[1.0] * 4095] * 10]
    for changed in variants:
        path = saved(tmp_path / "head.json", fields | {"W": changed})
        if changed is W:
            assert read_head(path).W.tolist() == W
        else:
            assert "more problems)" in message_of(path)


def test_a_hundred_thousand_mixed_classes_are_refused(tmp_path: Path) -> None:
    path = saved(tmp_path / "head.json", document(classes=[i if i % 2 else str(i) for i in range(100_000)]))
    assert message_of(path) == "$.classes[1]: is the number 1, expected a string (and 49999 more problems)"


def test_a_row_that_is_too_short_is_named_in_the_agreed_style(tmp_path: Path) -> None:
    path = saved(tmp_path / "head.json", document(dim=384, W=[[0.0] * 384, [0.5] * 383]))
    assert message_of(path) == "$.W[1]: has 383 numbers, expected dim = 384"


def test_a_long_integer_that_no_float_can_hold_is_never_converted(tmp_path: Path) -> None:
    """Python refuses to convert more than 4,300 digits with an error of its own, and needs quadratic time."""
    for content in (b"9" * 5_000, b"-" + b"9" * 2_000_000, b"1" + b"0" * 309):
        raw = json.dumps(document()).encode().replace(b"0.5", content)
        assert message_of(saved(tmp_path / "head.json", raw)) == "$.threshold: is not a finite number"


def test_the_numbers_of_integer_metrics_stay_integers(tmp_path: Path) -> None:
    metrics = {"seed": 2**127 - 1, "n": 3, "negative": -(10**307)}
    head = read_head(saved(tmp_path / "head.json", document(metrics=metrics)))
    assert head.metrics == metrics
    assert all(type(value) is int for value in head.metrics.values())


# --- writing


def test_the_layout_is_one_key_a_line_and_one_row_a_line(tmp_path: Path) -> None:
    write_head(golden(metrics={"auc": 0.97, "solver": {"steps": 4, "text": "a\nb"}}), tmp_path / "head.json")
    assert (tmp_path / "head.json").read_bytes().decode("utf-8") == (
        "{\n"
        '  "embedding_model": "model",\n'
        '  "dim": 2,\n'
        '  "classes": ["safe", "unsafe"],\n'
        '  "W": [\n'
        "    [0.0, 0.0],\n"
        "    [1.0, 2.0]\n"
        "  ],\n"
        '  "b": [0.0, -1.0],\n'
        '  "threshold": 0.5,\n'
        '  "metrics": {\n'
        '    "auc": 0.97,\n'
        '    "solver": {\n'
        '      "steps": 4,\n'
        '      "text": "a\\nb"\n'
        "    }\n"
        "  }\n"
        "}\n"
    )


def test_a_head_without_metrics_is_written_without_the_key() -> None:
    assert list(head_document(golden())) == KEYS[:-1]
    assert list(head_document(golden(metrics={"n": 1}))) == KEYS


def test_the_document_holds_plain_values_only() -> None:
    metrics = {"auc": np.float64(0.5), "bins": (1, 2), "nested": {"ok": True, "none": None}}
    plain = head_document(golden(metrics=metrics))
    assert plain["metrics"] == {"auc": 0.5, "bins": [1, 2], "nested": {"ok": True, "none": None}}
    assert type(plain["metrics"]["auc"]) is float
    assert type(plain["W"][0][0]) is type(plain["threshold"]) is float
    assert json.loads(json.dumps(plain)) == plain


def test_an_existing_file_is_replaced_only_with_force(tmp_path: Path) -> None:
    path = tmp_path / "head.json"
    write_head(golden(), path)
    with pytest.raises(OutputError, match="use --force"):
        write_head(golden(threshold=0.25), path)
    assert read_head(path).threshold == 0.5
    write_head(golden(threshold=0.25), str(path), force=True)
    assert read_head(str(path)).threshold == 0.25


cyclic: dict[str, Any] = {}
cyclic["self"] = cyclic
NOT_JSON: dict[str, Any] = {
    "NaN": math.nan,
    "infinite": [1.0, {"a": -math.inf}],
    "array": np.zeros(2),
    "numpy integer": np.int64(3),
    "set": {1},
    "bytes": b"x",
    "integer key": {1: 2},
    "mixed keys": {"1": 1, 1: 2},
    "half a surrogate": "a\ud800",
    "half a surrogate in a key": {"\udfff": 1},
    "too long an integer": 10**308,
    "5,000 digits": 10**5000,
    "too deep": json.loads("[" * 31 + "]" * 31),
    "itself": cyclic,
}


@pytest.mark.parametrize("value", NOT_JSON.values(), ids=NOT_JSON.keys())
def test_metrics_that_no_strict_reader_takes_are_a_value_error_and_nothing_is_written(
    tmp_path: Path, value: Any
) -> None:
    with pytest.raises(ValueError, match=r"metrics|digits|nested"):
        write_head(golden(metrics={"value": value}), tmp_path / "head.json")
    assert list(tmp_path.iterdir()) == []


def test_metrics_may_be_as_deep_as_the_reader_allows(tmp_path: Path) -> None:
    head = golden(metrics={"deep": json.loads("[" * 30 + "]" * 30)})
    write_head(head, tmp_path / "head.json")
    assert read_head(tmp_path / "head.json") == head


def test_a_head_that_would_read_back_differently_is_not_written(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Pitfall 15: weights written at float32 precision never reach the disk."""

    def at_float32_precision(document: dict[str, Any]) -> bytes:
        return json.dumps(document | {"W": np.float32(document["W"]).tolist()}).encode()

    monkeypatch.setattr(heads, "_encoded", at_float32_precision)
    head = LinearHead.binary([0.1, 0.2], 0.3, classes=("a", "b"), embedding_model="m")
    with pytest.raises(ValueError, match="would not read back the same"):
        write_head(head, tmp_path / "head.json")
    assert list(tmp_path.iterdir()) == []


finite = st.one_of(st.sampled_from(EXTREMES), st.floats(allow_nan=False, allow_infinity=False))
names = st.text(st.characters(exclude_categories=["Cs"]), min_size=1, max_size=12)
json_values = st.recursive(
    st.one_of(st.none(), st.booleans(), st.integers(), finite, names),
    lambda inner: st.one_of(st.lists(inner, max_size=3), st.dictionaries(names, inner, max_size=3)),
    max_leaves=8,
)


@st.composite
def any_head(draw: Callable[[Any], Any]) -> LinearHead:
    classes, dim = draw(st.lists(names, min_size=2, max_size=4, unique=True)), draw(st.integers(1, 5))
    rows = st.lists(finite, min_size=dim, max_size=dim)
    return LinearHead(
        draw(names),
        tuple(classes),
        np.array([draw(rows) for _ in classes]),
        np.array([draw(finite) for _ in classes]),
        draw(st.floats(0, 1)),
        draw(st.dictionaries(names, json_values, max_size=3)),
    )


@given(head=any_head())
@settings(max_examples=150)
def test_what_is_written_reads_back_bit_for_bit(head: LinearHead, tmp_path_factory: pytest.TempPathFactory) -> None:
    path = tmp_path_factory.getbasetemp() / "round-trip.json"
    again = path.with_name("again.json")
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(os, "fsync", lambda _: None)  # 300 waits for the disk would be most of this test
        write_head(head, path, force=True)
        assert read_head(path) == head  # equality of heads is bit for bit, see test_head.py
        write_head(read_head(path), again, force=True)
    assert again.read_bytes() == path.read_bytes()
    plain = json.loads(path.read_text(encoding="utf-8"), parse_constant=pytest.fail)
    assert bits(plain["W"]) == bits(head.W)
    assert bits(plain["b"]) == bits(head.b)
    Draft202012Validator(load_schema("linear-head")).validate(plain)


def test_pitfall_15_every_number_is_the_shortest_decimal_of_the_same_float64(tmp_path: Path) -> None:
    """Weights at float32 precision would read back as 0.10000000149011612 for 0.1."""
    W = np.array([EXTREMES, EXTREMES[::-1]])
    write_head(golden(W=W), tmp_path / "head.json")
    text = (tmp_path / "head.json").read_text(encoding="utf-8")
    assert (
        "\n    [0.0, -0.0, 5e-324, -5e-324, 2.2250738585072014e-308, 0.1, 0.3333333333333333, "
        "1e+16, 1e+22, 1e+308, -1.7976931348623157e+308],\n"
    ) in text
    assert bits(read_head(tmp_path / "head.json").W) == bits(W)


# --- another program's reader


class Gateway:
    """What a gateway in another language does: parse, normalise, multiply, softmax; written from the format alone."""

    def __init__(self, path: Path) -> None:
        self.head = json.loads(path.read_text(encoding="utf-8"))

    def class_logits(self, embedding: list[float]) -> list[float]:
        length = math.sqrt(math.fsum(x * x for x in embedding))
        u = [x / length for x in embedding] if length > 0 else embedding
        rows = zip(self.head["W"], self.head["b"], strict=True)
        return [math.fsum(w * x for w, x in zip(row, u, strict=True)) + b for row, b in rows]

    def probabilities(self, embedding: list[float]) -> list[float]:
        z = self.class_logits(embedding)
        e = [math.exp(value - max(z)) for value in z]
        return [value / math.fsum(e) for value in e]

    def flagged(self, embedding: list[float]) -> bool:
        return bool(self.probabilities(embedding)[-1] >= self.head["threshold"])


@pytest.mark.parametrize(
    ("calibration", "n_classes"), [("none", 2), ("none", 3), ("temperature", 2), ("temperature", 3), ("platt", 2)]
)
def test_a_foreign_gateway_scores_a_written_head_the_same(tmp_path: Path, n_classes: int, calibration: str) -> None:
    """Pitfalls 11 and 14: intercept in b, not among the weights; vectors of any length scored at unit length."""
    rng = np.random.default_rng(n_classes)
    head = LinearHead(
        "m", ("a", "b", "c")[-n_classes:], rng.normal(size=(n_classes, 384)), rng.normal(size=n_classes), 0.4
    )
    if calibration == "temperature":
        head = head.with_temperature(1.7)
    elif calibration == "platt":
        head = head.with_platt(0.8, -0.3)
    write_head(head, tmp_path / "head.json")
    gateway = Gateway(tmp_path / "head.json")
    embeddings = np.vstack([rng.normal(size=(20, 384)) * rng.uniform(0.01, 100, size=(20, 1)), np.zeros(384)])
    for e, logits, p, flagged in zip(
        embeddings.tolist(),
        head.class_logits(embeddings),
        head.probabilities(embeddings),
        head.flagged(embeddings),
        strict=True,
    ):
        assert gateway.class_logits(e) == pytest.approx(logits, abs=ROUNDING)
        assert gateway.probabilities(e) == pytest.approx(p, abs=ROUNDING)
        assert gateway.flagged(e) == flagged
    assert len(set(head.flagged(embeddings).tolist())) == 2 or n_classes > 2  # both answers were compared


def test_a_foreign_gateway_scores_the_hand_checked_head(tmp_path: Path) -> None:
    """e = (3, 4), u = (0.6, 0.8), logits (0, 1.2), p = 0.768525; the same at any length; zero stays zero."""
    write_head(golden(), tmp_path / "head.json")
    for path in (tmp_path / "head.json", EXAMPLES / "valid" / "golden.json"):
        gateway, head = Gateway(path), read_head(path)
        for e in ([3.0, 4.0], [0.03, 0.04], [300.0, 400.0]):
            assert gateway.probabilities(e)[1] == pytest.approx(0.768525, abs=5e-7)
            assert head.probs([e]) == pytest.approx([0.768525], abs=5e-7)
        assert gateway.probabilities([0.0, 0.0]) == pytest.approx([0.731059, 0.268941], abs=5e-7)
        assert head.probs([[0.0, 0.0]]) == pytest.approx([0.268941], abs=5e-7)


# --- another embedding model


def test_another_embedding_model_is_an_error_with_both_names() -> None:
    with pytest.raises(HeadError) as caught:
        check_embedding_model(golden(), name="model-v2", source="test.parquet")
    assert str(caught.value) == (
        "test.parquet: the embeddings are from 'model-v2', the head was fitted on 'model'; "
        "weights and thresholds do not transfer between embedding models"
    )
    assert caught.value.exit_code == 4


@pytest.mark.parametrize("name", [None, "", "unspecified", "model"])
def test_an_unknown_or_the_same_embedding_model_is_no_error(name: str | None) -> None:
    check_embedding_model(golden(), name=name, source="test.parquet")
    check_embedding_model(golden(embedding_model="unspecified"), name="whatever", source="test.parquet")


def test_names_of_models_are_compared_exactly_and_shown_harmlessly() -> None:
    with pytest.raises(HeadError, match=r"^a\\x1b: the embeddings are from 'Model', the head was fitted on 'model'"):
        check_embedding_model(golden(), name="Model", source="a\x1b")
