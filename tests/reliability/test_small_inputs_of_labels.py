"""Labels and groups as people and programs write them: equal values are one, and what is no class is none."""

import json
from collections.abc import Callable
from datetime import UTC, date, datetime, timedelta, timezone
from decimal import Decimal
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.csv
import pyarrow.parquet as pq
import pytest

from headeval.errors import DataError
from headeval.files.category_rows import read_category_examples
from headeval.files.examples import read_examples
from headeval.files.tables import open_tables

Headeval = Callable[..., Any]
HEAD = {
    "embedding_model": "m", "dim": 2, "classes": ["safe", "unsafe"], "W": [[0, 0], [1, 2]], "b": [0, -1],
    "threshold": 0.5,
}  # fmt: skip
DAY = timedelta(days=1)
START = datetime(2024, 1, 1)
GROUPS, PER_GROUP = 60, 6


def vectors(matrix: np.ndarray) -> pa.Array:
    flat = pa.array(np.asarray(matrix, dtype=np.float32).ravel())
    return pa.FixedSizeListArray.from_arrays(flat, matrix.shape[1])


def write(path: Path, **columns: Any) -> Path:
    """Write a table, as CSV without its embeddings."""
    table = pa.table(columns)
    if path.suffix == ".csv":
        pyarrow.csv.write_csv(table, path)
    else:
        pq.write_table(table, path)
    return path


def examples_of(*paths: Path, **options: Any) -> Any:
    return read_examples(open_tables([str(path) for path in paths]), **options)


def times(unit: str, zone: str | None = None) -> Callable[[np.ndarray], pa.Array]:
    """Days since the start, in the zone's own way of writing the same instants."""
    kind = pa.timestamp(unit, zone)
    return lambda n: pa.array([START.replace(tzinfo=UTC if zone else None) + int(k) * DAY for k in n], kind)


def text(form: str) -> Callable[[np.ndarray], pa.Array]:
    return lambda n: pa.array([form % k for k in n])


BIG = 123456789000
EQUAL = {
    "timestamps of two resolutions": (times("ms"), times("ns")),
    "one instant in two zones": (times("us", "UTC"), times("us", "Asia/Tokyo")),
    "integers and text of decimals": (lambda n: pa.array(n, pa.int64()), text("%d.0")),
    "integers and floats beyond a billion": (
        lambda n: pa.array(n + BIG, pa.int64()),
        lambda n: pa.array(n + float(BIG)),
    ),
    "decimals and text": (lambda n: pa.array([Decimal(int(k)) for k in n], pa.decimal128(9, 3)), text("%d")),
    "dates and text of dates": (
        lambda n: pa.array([(START + int(k) * DAY).date() for k in n]),
        lambda n: pa.array([(START + int(k) * DAY).date().isoformat() for k in n]),
    ),
    "times of day": (
        lambda n: pa.array((n * 1000).astype(np.int32), pa.time32("ms")),
        lambda n: pa.array(n * 10**9, pa.time64("ns")),
    ),
}


@pytest.mark.parametrize("name", ["timestamps of two resolutions", "integers and text of decimals"])
def test_a_group_stored_differently_in_two_files_stays_one_group_and_does_not_leak(
    headeval: Headeval, tmp_path: Path, name: str
) -> None:
    """Labels are drawn by group, and nothing but the group tells them: an AUC far from 0.5 is a leak."""
    rng = np.random.default_rng(3)
    number = np.repeat(np.arange(1, GROUPS + 1), PER_GROUP)
    labels = rng.permutation(np.arange(GROUPS) % 2)[number - 1]
    rows = rng.normal(size=(GROUPS, 40))[number - 1] + 0.01 * rng.normal(size=(len(number), 40))
    first = np.arange(len(number)) % 2 == 0
    found = {}
    for case, (one, other) in {"alike": EQUAL[name][:1] * 2, "differently": EQUAL[name]}.items():
        (tmp_path / case).mkdir()
        for part, mask, column in (("a", first, one), ("b", ~first, other)):
            write(
                tmp_path / case / f"{part}.parquet",
                label=labels[mask],
                embedding=vectors(rows[mask]),
                g=column(number[mask]),
            )
        outcome = headeval("fit", case, "--group", "g", "-o", f"{case}.json", "--quiet")
        assert outcome.code == 0, outcome
        found[case] = json.loads(Path(f"{case}.json").read_text())
    auc = found["differently"]["metrics"]["evaluation"]["metrics"]["auc"]
    assert auc < 0.65
    assert found["alike"] == found["differently"]


@pytest.mark.parametrize("name", EQUAL)
def test_a_slice_stored_differently_in_two_files_is_one_slice(headeval: Headeval, tmp_path: Path, name: str) -> None:
    number, labels = np.tile([1, 2], 20), np.arange(40) // 2 % 2
    p = np.linspace(0.1, 0.9, 40)
    documents = []
    for kinds in (EQUAL[name][:1] * 2, EQUAL[name]):
        for part, column in zip("ab", kinds, strict=True):
            mask = slice(0, 20) if part == "a" else slice(20, 40)
            write(tmp_path / f"{part}.parquet", label=labels[mask], p=p[mask], g=column(number[mask]))
        asked = ("--by", "g", "--group", "g", "--format", "json", "--resamples", 2)
        documents.append(headeval("report", "a.parquet", "b.parquet", "--prob", "p", *asked).out)
    assert documents[0] == documents[1]
    assert [part["n"] for part in json.loads(documents[0])["slices"]] == [20, 20]


def test_true_in_text_and_a_boolean_are_one_slice(tmp_path: Path) -> None:
    a = write(tmp_path / "a.parquet", label=[0, 1], g=[True, False])
    b = write(tmp_path / "b.parquet", label=[0, 1, 1], g=["True", "False", "TRUE"])
    assert examples_of(a, b, by=["g"]).slices["g"].tolist() == ["true", "false", "true", "false", "true"]
    assert examples_of(b, by=["g"]).slices["g"].tolist() == ["True", "False", "TRUE"]


NOT_COMPARABLE = {
    "naive and zone-aware": (times("us"), times("us", "UTC"), "'timestamp[us]'", "'timestamp[us, tz=UTC]'"),
    "timestamps and text": (times("us"), text("2024-01-%02d 00:00:00"), "'timestamp[us]'", "'string'"),
    "dates and timestamps": (lambda n: pa.array([date(2024, 1, int(k)) for k in n]), times("s"), "date32", "'time"),
    "booleans and numbers": (lambda n: pa.array(n == 1), lambda n: pa.array(n), "'bool'", "'int64'"),
    "booleans and other text": (lambda n: pa.array(n == 1), text("%d"), "'bool'", "such as '1'"),
    "dates and other text": (lambda n: pa.array([date(2024, 1, int(k)) for k in n]), text("day %d"), "date32", "day 1"),
}


@pytest.mark.parametrize("name", NOT_COMPARABLE)
@pytest.mark.parametrize("option", ["--group", "--by"])
def test_what_cannot_be_compared_is_refused_with_both_files_and_types(
    headeval: Headeval, tmp_path: Path, name: str, option: str
) -> None:
    one, other, *words = NOT_COMPARABLE[name]
    for path, column in (("a.parquet", one), ("b.parquet", other)):
        write(tmp_path / path, label=[0, 1] * 4, p=[0.1, 0.9] * 4, g=column(np.repeat([1, 2], 4)))
    outcome = headeval("report", "a.parquet", "b.parquet", "--prob", "p", option, "g")
    assert outcome.code == 3
    assert len(outcome.err.splitlines()) == 2
    for word in ("column 'g'", "'a.parquet'", "'b.parquet'", *words):
        assert word in outcome.err


def test_a_column_of_nulls_is_compared_with_nothing(tmp_path: Path) -> None:
    a = write(tmp_path / "a.parquet", label=[0, 1], g=times("s")(np.array([1, 2])))
    b = write(tmp_path / "b.parquet", label=[1], g=pa.array([None], pa.null()))
    expected = ["2024-01-02 00:00:00", "2024-01-03 00:00:00", "(null)"]
    assert examples_of(a, b, by=["g"]).slices["g"].tolist() == expected


def test_instants_keep_their_full_precision(tmp_path: Path) -> None:
    """A nanosecond apart are two groups; python's own datetime, in another zone, says which instant it is."""
    at = datetime(2024, 10, 27, 2, 30, tzinfo=timezone(timedelta(hours=2)))
    nanoseconds = int(at.timestamp()) * 10**9
    column = pa.array([nanoseconds, nanoseconds + 1, nanoseconds], pa.timestamp("ns", "Europe/Berlin"))
    path = write(tmp_path / "a.parquet", label=[0, 1, 1], g=column)
    found = examples_of(path, by=["g"], group="g")
    assert found.groups[0] == found.groups[2] != found.groups[1]
    first = at.astimezone(UTC).strftime("%Y-%m-%d %H:%M:%S")
    assert found.slices["g"].tolist() == [f"{first}Z", f"{first}.000000001Z", f"{first}Z"]


MISSING_NUMBER = ["nan", "NaN", "null", "none", "None", "na", "NA", "n/a", "empty", "<NA>", " "]


@pytest.mark.parametrize(
    ("values", "positive", "bad"),
    [
        *[(["1", text], "1", text) for text in MISSING_NUMBER],
        *[(["1", "0", text], "1", text) for text in ("nan", "none")],
        (["True", "None"], "True", "None"),
        *[(["spam", "ham", text], "spam", text) for text in ("nan", "NaN", "null", "<NA>")],
    ],
)
def test_text_that_reads_like_a_missing_label_lets_no_gate_pass(
    headeval: Headeval, tmp_path: Path, values: list[str], positive: str, bad: str
) -> None:
    labels = [values[k % len(values)] for k in range(40)]
    for path in ("t.csv", "t.parquet"):
        write(tmp_path / path, label=labels, p=[0.9 if label == positive else 0.1 for label in labels])
        outcome = headeval("report", path, "--prob", "p", "--positive", positive, "--require", "auc>=0.9")
        assert outcome.code == 3
        assert f"column 'label' holds the text '{bad}' ({labels.count(bad)} rows), which reads like" in outcome.err
        assert "--drop-unlabelled" in outcome.err


def test_names_that_are_classes_among_names_stay_classes(tmp_path: Path) -> None:
    values = ["NA", "NC", "NE", "None", "none of these", "unknown"]
    found = examples_of(write(tmp_path / "t.csv", label=values), positive="NE", many_classes=True)
    assert found.class_names == ("NA", "NC", "None", "none of these", "unknown", "NE")
    named = examples_of(write(tmp_path / "u.csv", label=["nan", "1"]), classes=("nan", "1"))
    assert named.labels.tolist() == [0, 1]


VARIANTS = {
    "case": (["safe", "unsafe", "Unsafe"], ["unsafe", "Unsafe"]),
    "case alone": (["Unsafe", "unsafe"], ["Unsafe", "unsafe"]),
    "space": (["safe", "unsafe", "unsafe "], ["unsafe", "unsafe "]),
    "names": (["Spam", "spam", "ham"], ["Spam", "spam"]),
    "spaces within": (["not spam", "not  spam", "unsafe"], ["not spam", "not  spam"]),
}


@pytest.mark.parametrize("name", VARIANTS)
@pytest.mark.parametrize("command", ["fit", "report", "calibrate"])
@pytest.mark.parametrize("positive", [True, False])
def test_values_that_differ_in_case_or_spaces_only_are_refused_before_anything_else_is_advised(
    headeval: Headeval, tmp_path: Path, name: str, command: str, positive: bool
) -> None:
    values, alike = VARIANTS[name]
    labels = values * 6
    write(
        tmp_path / "t.parquet",
        label=labels,
        p=np.linspace(0.1, 0.9, len(labels)),
        embedding=vectors(np.random.default_rng(0).normal(size=(len(labels), 3))),
    )
    scores = () if command == "fit" else ("--prob", "p")
    asked = ("--positive", values[-1]) if positive else ()
    outcome = headeval(command, "t.parquet", *scores, *asked)
    assert outcome.code == 3
    assert "which differ in case or spaces only" in outcome.err
    assert "--positive" not in outcome.err
    assert all(f"'{text}' (6 rows)" in outcome.err for text in alike)


@pytest.mark.parametrize("command", ["report", "calibrate", "threshold"])
def test_a_head_takes_its_known_classes_in_any_case_and_spaces_are_no_case(
    headeval: Headeval, tmp_path: Path, command: str
) -> None:
    (tmp_path / "h.json").write_text(json.dumps(HEAD))
    matrix = vectors(np.random.default_rng(0).normal(size=(40, 2)))
    require = ("--require", "fpr<=0.9") if command == "threshold" else ()
    write(tmp_path / "t.parquet", embedding=matrix, label=["safe", "UNSAFE", "SAFE", "unsafe"] * 10)
    assert headeval(command, "t.parquet", "--head", "h.json", *require).code in {0, 5}
    require = (*require, "--force") if command != "report" else require
    for labels in (["SAFE ", "safe", "UNSAFE ", "unsafe"], ["SAFE ", "unsafe"]):
        write(tmp_path / "t.parquet", embedding=matrix, label=labels * (40 // len(labels)))
        outcome = headeval(command, "t.parquet", "--head", "h.json", *require)
        assert outcome.code == 3
        assert "'SAFE '" in outcome.err
        assert "in case or spaces only" in outcome.err


@pytest.mark.parametrize("positive", [None, "true", "True"])
def test_booleans_of_files_and_text_are_two_classes_of_a_fit(tmp_path: Path, positive: str | None) -> None:
    a = write(tmp_path / "a.parquet", label=[True, False])
    b = write(tmp_path / "b.csv", label=["True", "False", "TRUE"])
    found = examples_of(a, b, positive=positive, many_classes=True)
    assert (found.labels.tolist(), found.class_codes) == ([1, 0, 1, 0, 1], None)
    c = write(tmp_path / "c.csv", label=["maybe"])
    with pytest.raises(DataError, match="differ in case or spaces only"):
        examples_of(a, b, c, positive=positive, many_classes=True)


def test_a_group_is_one_in_several_categories_too(tmp_path: Path) -> None:
    a = write(tmp_path / "a.parquet", hate=[0, 1], spam=[1, 0], g=[1, 2])
    b = write(tmp_path / "b.parquet", hate=[0, 1], spam=[1, 0], g=["1.0", "2.0"])
    tables = open_tables([str(a), str(b)])
    found = read_category_examples(tables, labels=["hate", "spam"], group="g", by=["g"])
    assert found.groups is not None
    assert found.groups.tolist() == [0, 1, 0, 1]
    assert found.slices["g"].tolist() == ["1", "2", "1", "2"]
    for labels in (["Yes", "yes", "no"], ["yes ", "yes", "no"]):
        write(a, hate=labels, spam=[1, 0, 1])
        with pytest.raises(DataError, match="differ in case or spaces only"):
            read_category_examples(open_tables([str(a)]), labels=["hate", "spam"], positive="yes")


def test_classes_that_are_named_are_two_although_they_differ_in_case_only(tmp_path: Path) -> None:
    path = write(tmp_path / "t.csv", label=["safe", "unsafe", "Unsafe"])
    found = examples_of(path, classes=("safe", "unsafe", "Unsafe"), many_classes=True)
    assert found.class_codes.tolist() == [0, 1, 2]
    assert examples_of(path, classes=("safe", "unsafe"), many_classes=True).labels.tolist() == [0, 1, 1]
    names = write(tmp_path / "u.csv", label=["ham", "spam", "Spam"])
    assert examples_of(names, classes=("ham", "spam", "Spam"), many_classes=True).class_codes.tolist() == [0, 1, 2]


@pytest.mark.parametrize(
    ("counts", "told"),
    [
        ({"unsafe": 30, "safe": 24, "unsfe": 6}, "CAUTION: 'unsfe' (6 rows) looks like 'unsafe'"),
        ({"unsafe": 30, "safe": 24, "unasfe": 6}, "CAUTION: 'unasfe' (6 rows) looks like 'unsafe'"),
        ({"unsafe": 30, "safe": 6, "category 1": 24, "category 2": 6}, None),
        ({"unsafe": 30, "offensive": 24, "inoffensive": 6}, None),
    ],
)
def test_a_slip_of_the_pen_in_a_label_is_told_by_the_fit(
    headeval: Headeval, tmp_path: Path, counts: dict[str, int], told: str | None
) -> None:
    labels = [name for name, rows in counts.items() for _ in range(rows)]
    matrix = np.random.default_rng(0).normal(size=(len(labels), 3))
    write(tmp_path / "t.parquet", label=labels, embedding=vectors(matrix))
    outcome = headeval("fit", "t.parquet", "--positive", "unsafe", "--folds", 0)
    assert outcome.code == 0
    shown = " ".join(outcome.out.split())
    assert told in shown if told else "looks like" not in shown


def test_every_command_counts_the_rows_whose_embedding_is_all_zero(headeval: Headeval, tmp_path: Path) -> None:
    (tmp_path / "h.json").write_text(json.dumps(HEAD))
    matrix = np.random.default_rng(0).normal(size=(60, 2))
    matrix[5:17] = 0
    matrix[17] = [-0.0, 1e-30]  # tiny, but a direction
    write(tmp_path / "t.parquet", embedding=vectors(matrix), label=["safe", "unsafe"] * 30)
    told = "12 rows have an embedding of zeros: they all get the same score"
    with_head = ("t.parquet", "--head", "h.json")
    assert headeval("score", *with_head, "-o", "s.parquet").err.splitlines()[1] == told
    assert told not in headeval("score", *with_head, "-o", "q.parquet", "--quiet").err
    commands = [
        ("fit", "t.parquet", "-o", "f.json"),
        ("calibrate", *with_head, "--method", "platt"),
        ("threshold", *with_head, "--maximise", "f1"),
        *[("report", *with_head, "--format", form, "--resamples", 0) for form in ("table", "json", "markdown")],
    ]
    for command in commands:
        outcome = headeval(*command)
        assert outcome.code == 0, outcome
        assert told in " ".join(outcome.out.split()), command
    write(tmp_path / "t.parquet", embedding=vectors(matrix[17:]), label=["safe"] * 20 + ["unsafe"] * 23)
    assert "zeros" not in headeval("report", *with_head, "--resamples", 0).out


def test_a_slice_without_weight_is_data_that_cannot_be_judged(headeval: Headeval, tmp_path: Path) -> None:
    write(tmp_path / "t.csv", label=[0, 1] * 4, p=[0.1, 0.9] * 4, g=["a"] * 4 + ["b"] * 4, w=[0] * 4 + [1] * 4)
    asked = ("--by", "g", "--weight", "w", "--require-each", "auc>=0.5")
    outcome = headeval("report", "t.csv", "--prob", "p", *asked)
    assert (outcome.code, "the slice 'a' has no weight" in outcome.err) == (3, True)


def test_another_embedding_model_is_named_as_the_likely_cause_and_one_model_may_have_two_names(
    headeval: Headeval, tmp_path: Path
) -> None:
    (tmp_path / "h.json").write_text(json.dumps(HEAD))
    labels = ["safe", "unsafe"] * 5
    matrix = np.random.default_rng(0).normal(size=(10, 2))
    write(tmp_path / "wide.parquet", embedding=vectors(np.ones((10, 3))), label=labels)
    wide = headeval("report", "wide.parquet", "--head", "h.json")
    assert (wide.code, "the head expects 2: are they of another embedding model?" in wide.err) == (3, True)
    for model, same in (("org/M", True), ("other", False)):
        table = pa.table({"embedding": vectors(matrix), "label": labels})
        pq.write_table(table.replace_schema_metadata({"embedding_model": model}), tmp_path / "t.parquet")
        asked = ("report", "t.parquet", "--head", "h.json", "--resamples", 0)
        refused = headeval(*asked)
        assert (refused.code, "--embedding-model 'm'" in refused.err) == (4, same)
        assert headeval(*asked, "--embedding-model", "m").code == (0 if same else 4)
        assert headeval(*asked, "--embedding-model", "other").code == 4


@pytest.mark.parametrize(
    ("metadata", "option", "shown"),
    [
        ({}, (), "m (of the head; the files name none)"),
        ({"embedding_model": "m"}, (), "m"),
        ({}, ("--embedding-model", "m"), "m"),
    ],
)
def test_the_model_of_a_report_is_a_fact_only_where_files_or_caller_name_it(
    headeval: Headeval, tmp_path: Path, metadata: dict[str, str], option: tuple[str, ...], shown: str
) -> None:
    (tmp_path / "h.json").write_text(json.dumps(HEAD))
    matrix = np.random.default_rng(0).normal(size=(10, 2))
    table = pa.table({"embedding": vectors(matrix), "label": ["safe", "unsafe"] * 5})
    pq.write_table(table.replace_schema_metadata(metadata), tmp_path / "t.parquet")
    outcome = headeval("report", "t.parquet", "--head", "h.json", "--resamples", 0, "--format", "json", *option)
    assert json.loads(outcome.out)["provenance"]["embedding_model"] == shown
