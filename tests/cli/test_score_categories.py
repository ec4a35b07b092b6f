"""`headeval score` with a folder of heads, and with a head of more than two classes."""

import json
import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from numpy.typing import NDArray
from scipy.special import softmax

from headeval.files.scores import declared_scores
from headeval.files.tables import open_tables

Headeval = Callable[..., Any]
MakeTable = Callable[..., Path]
CLASSES = ("neither", "offensive", "hate")


def units(path: Path) -> NDArray[np.float64]:
    e = np.array(pq.read_table(path)["embedding"].to_pylist(), dtype=np.float64)
    unit: NDArray[np.float64] = e / np.linalg.norm(e, axis=1, keepdims=True)
    return unit


def document(seed: int, classes: tuple[str, ...], *, threshold: float = 0.5, **keys: object) -> dict[str, Any]:
    """A head as another program writes it: no class is the reference."""
    rng = np.random.default_rng(seed)
    return {
        "embedding_model": "m",
        "dim": 4,
        "classes": list(classes),
        "W": rng.normal(size=(len(classes), 4)).tolist(),
        "b": rng.normal(size=len(classes)).tolist(),
        "threshold": threshold,
        **keys,
    }


def write(path: Path, head: dict[str, Any]) -> Path:
    path.parent.mkdir(exist_ok=True)
    path.write_text(json.dumps(head), encoding="utf-8")
    return path


@pytest.fixture
def heads(tmp_path: Path) -> Path:
    """A folder of two heads with thresholds of their own."""
    write(tmp_path / "heads" / "hate.json", document(1, ("no", "yes"), threshold=0.5))
    write(tmp_path / "heads" / "a%2Fb.json", document(2, ("no", "yes"), threshold=0.25))
    return tmp_path / "heads"


@pytest.fixture
def three(tmp_path: Path) -> Path:
    """A head of three classes."""
    return write(tmp_path / "three.json", document(3, CLASSES, threshold=0.4))


# --- a folder of heads


def test_each_head_adds_its_columns_with_the_bits_that_it_has_by_itself(
    headeval: Headeval, make_table: MakeTable, heads: Path, tmp_path: Path
) -> None:
    data = make_table(n=300)
    outcome = headeval("score", data, "--head", heads, "-o", "all.parquet")
    assert outcome.code == 0, outcome.err
    together = pq.read_table(tmp_path / "all.parquet")
    added = [f"{name}_{kind}" for name in ("a/b", "hate") for kind in ("logit", "prob", "flagged")]
    assert together.column_names == ["id", "label", *added]
    for name, file in (("a/b", "a%2Fb.json"), ("hate", "hate.json")):
        assert headeval("score", data, "--head", heads / file, "-o", "one.parquet", "--force").code == 0
        alone = pq.read_table(tmp_path / "one.parquet")
        for kind in ("logit", "prob", "flagged"):
            assert together[f"{name}_{kind}"].equals(alone[kind])


def test_the_columns_are_what_another_program_computes_from_the_files(
    headeval: Headeval, make_table: MakeTable, heads: Path, tmp_path: Path
) -> None:
    data = make_table()
    assert headeval("score", data, "--head", heads, "-o", "all.csv").code == 0
    assert headeval("score", data, "--head", heads, "-o", "all.parquet").code == 0
    table = pq.read_table(tmp_path / "all.parquet")
    for name, file in (("a/b", "a%2Fb.json"), ("hate", "hate.json")):
        head = json.loads((heads / file).read_text(encoding="utf-8"))
        probs = softmax(units(data) @ np.array(head["W"]).T + np.array(head["b"]), axis=1)[:, 1]
        np.testing.assert_allclose(table[f"{name}_prob"].to_numpy(), probs, rtol=1e-12)
        np.testing.assert_allclose(table[f"{name}_logit"].to_numpy(), np.log(probs / (1 - probs)), atol=1e-12)
        assert table[f"{name}_flagged"].to_pylist() == (probs >= head["threshold"]).tolist()


def test_one_line_says_how_many_rows_each_head_flags_and_at_which_threshold(
    headeval: Headeval, make_table: MakeTable, heads: Path, tmp_path: Path
) -> None:
    outcome = headeval("score", make_table(), "--head", heads, "-o", "all.parquet")
    table = pq.read_table(tmp_path / "all.parquet")
    a, hate = (sum(table[f"{name}_flagged"].to_pylist()) for name in ("a/b", "hate"))
    assert outcome.out == ""
    said = f"120 rows scored by the heads of {heads}, flagged: a/b {a} (at 0.25), hate {hate} (at 0.5): written to"
    assert outcome.err == f"{said} all.parquet\n"
    write(heads / "a%2Fb.json", document(2, ("no", "yes")))
    outcome = headeval("score", make_table(), "--head", heads, "-o", "same.parquet")
    assert re.search(r", flagged at 0\.5: a/b \d+, hate \d+: written", outcome.err)


def test_the_file_says_of_each_category_what_its_columns_are(
    headeval: Headeval, make_table: MakeTable, heads: Path, tmp_path: Path
) -> None:
    assert headeval("score", make_table(), "--head", heads, "-o", "all.parquet").code == 0
    declared = declared_scores(open_tables([str(tmp_path / "all.parquet")]))
    assert [(entry.category, entry.logit, entry.prob, entry.threshold) for entry in declared] == [
        ("a/b", "a/b_logit", "a/b_prob", 0.25),
        ("hate", "hate_logit", "hate_prob", 0.5),
    ]
    assert {entry.classes for entry in declared} == {("no", "yes")}


def test_scores_of_one_head_and_of_a_folder_stand_beside_each_other(
    headeval: Headeval, make_table: MakeTable, heads: Path, tmp_path: Path
) -> None:
    data = make_table()
    table = pq.read_table(data)
    assert headeval("score", data, "--head", heads / "hate.json", "-o", "one.parquet").code == 0
    scored = pq.read_table(tmp_path / "one.parquet")
    with_embeddings = scored.append_column("embedding", table["embedding"]).replace_schema_metadata(
        pq.ParquetFile(tmp_path / "one.parquet").metadata.metadata
    )
    pq.write_table(with_embeddings, tmp_path / "again.parquet")
    assert headeval("score", tmp_path / "again.parquet", "--head", heads, "-o", "both.parquet").code == 0
    declared = declared_scores(open_tables([str(tmp_path / "both.parquet")]))
    assert [entry.category for entry in declared] == ["a/b", "hate", ""]


def test_rows_that_made_a_head_are_counted_for_each(headeval: Headeval, make_table: MakeTable, tmp_path: Path) -> None:
    known = [True, False] * 30 + [None] * 60
    data = make_table(a=known, b=[False, True] * 60)
    assert headeval("fit", data, "--label", "a,b").code == 0
    assert headeval("score", data, "--head", "heads", "-o", "scored.parquet").code == 0
    metadata = pq.ParquetFile(tmp_path / "scored.parquet").metadata.metadata
    fitted = {name: json.loads(metadata[f"headeval_rows_seen:{name}".encode()])["fitted"] for name in "ab"}
    assert fitted == {"a": 60, "b": 120}


@pytest.mark.parametrize("taken", ["hate_logit", "hate_prob", "a/b_flagged"])
def test_a_column_that_is_in_the_way_is_an_error_before_any_work(
    taken: str, headeval: Headeval, make_table: MakeTable, heads: Path, tmp_path: Path
) -> None:
    data = make_table(**{taken: pa.nulls(120)})
    outcome = headeval("score", data, "--head", heads, "-o", "all.parquet")
    assert outcome.code == 3
    assert f"'{taken}', which are to be added" in outcome.err
    assert not (tmp_path / "all.parquet").exists()


@pytest.mark.parametrize(
    ("file", "content", "said"),
    [
        ("hate.json", "{", r"heads/hate\.json: "),
        ("other.json", json.dumps(document(4, ("no", "yes"), embedding_model="o")), r"heads/other\.json: .*'o'"),
        ("wide.json", json.dumps(document(4, CLASSES)), r"heads/wide\.json: has 3 classes"),
    ],
)
def test_a_head_that_cannot_be_used_is_named_and_nothing_is_written(
    file: str, content: str, said: str, headeval: Headeval, make_table: MakeTable, heads: Path, tmp_path: Path
) -> None:
    (heads / file).write_text(content, encoding="utf-8")
    outcome = headeval("score", make_table(), "--head", heads, "-o", "all.parquet")
    assert outcome.code == 4
    assert re.search(said, outcome.err)
    assert not (tmp_path / "all.parquet").exists()


def test_an_empty_folder_and_embeddings_of_another_model_are_error_4(
    headeval: Headeval, make_table: MakeTable, heads: Path, tmp_path: Path
) -> None:
    (tmp_path / "empty").mkdir()
    assert headeval("score", make_table(), "--head", "empty", "-o", "all.parquet").code == 4
    outcome = headeval("score", make_table(model="another"), "--head", heads, "-o", "all.parquet")
    assert outcome.code == 4
    assert "'another'" in outcome.err


# --- a head of more than two classes


def test_a_head_of_three_classes_adds_the_logit_and_the_probability_of_each_and_the_class_predicted(
    headeval: Headeval, make_table: MakeTable, three: Path, tmp_path: Path
) -> None:
    data = make_table(n=300)
    outcome = headeval("score", data, "--head", three, "-o", "scored.parquet")
    assert outcome.code == 0, outcome.err
    table, head = pq.read_table(tmp_path / "scored.parquet"), json.loads(three.read_text(encoding="utf-8"))
    assert table.column_names == [
        *("id", "label", "logit", "prob", "flagged", "predicted"),
        *(f"{kind}_{name}" for kind in ("logit", "prob") for name in CLASSES),
    ]
    z = units(data) @ np.array(head["W"]).T + np.array(head["b"])
    probs = softmax(z, axis=1)
    for place, name in enumerate(CLASSES):
        np.testing.assert_allclose(table[f"logit_{name}"].to_numpy(), z[:, place], atol=1e-12)
        np.testing.assert_allclose(table[f"prob_{name}"].to_numpy(), probs[:, place], rtol=1e-12)
    assert table["predicted"].to_pylist() == [CLASSES[place] for place in probs.argmax(axis=1)]
    assert len(set(table["predicted"].to_pylist())) == 3
    np.testing.assert_allclose(table["prob"].to_numpy(), probs[:, 2], rtol=1e-12)
    np.testing.assert_allclose(table["logit"].to_numpy(), np.log(probs[:, 2] / (1 - probs[:, 2])), atol=1e-12)
    assert table["flagged"].to_pylist() == (probs[:, 2] >= 0.4).tolist()


def test_the_first_of_classes_that_tie_is_predicted(headeval: Headeval, make_table: MakeTable, tmp_path: Path) -> None:
    tied = {**document(3, CLASSES), "W": [[0.0] * 4] * 3, "b": [-1.0, 0.0, 0.0]}
    head = write(tmp_path / "tied.json", tied)
    assert headeval("score", make_table(), "--head", head, "-o", "scored.parquet").code == 0
    assert set(pq.read_table(tmp_path / "scored.parquet")["predicted"].to_pylist()) == {"offensive"}


def test_the_file_says_which_columns_are_of_which_class(
    headeval: Headeval, make_table: MakeTable, three: Path, tmp_path: Path
) -> None:
    assert headeval("score", make_table(), "--head", three, "-o", "scored.parquet").code == 0
    (entry,) = declared_scores(open_tables([str(tmp_path / "scored.parquet")]))
    assert entry.class_names == CLASSES
    assert entry.class_columns == tuple(f"logit_{name}" for name in CLASSES)
    assert entry.class_probs == tuple(f"prob_{name}" for name in CLASSES)
    assert (entry.logit, entry.predicted, entry.classes) == ("logit", "predicted", ("not hate", "hate"))


@pytest.mark.parametrize("taken", ["predicted", "logit_neither", "prob_hate", "flagged"])
def test_a_column_in_the_way_of_any_class_is_an_error(
    taken: str, headeval: Headeval, make_table: MakeTable, three: Path
) -> None:
    outcome = headeval("score", make_table(**{taken: pa.nulls(120)}), "--head", three, "-o", "scored.parquet")
    assert outcome.code == 3
    assert f"'{taken}', which are to be added" in outcome.err


# --- files that were scored before there were categories


def test_what_older_score_files_declare_is_still_read(make_table: MakeTable) -> None:
    older = {"logit": "z", "prob": "p", "flagged": "f", "classes": ["safe", "unsafe"], "threshold": 0.3}
    path = make_table(z=[0.0] * 120, p=[0.5] * 120, f=[True] * 120)
    table = pq.read_table(path).replace_schema_metadata({"headeval_scores": json.dumps([older])})
    pq.write_table(table, path)
    (entry,) = declared_scores(open_tables([str(path)]))
    assert (entry.logit, entry.threshold, entry.category, entry.class_names) == ("z", 0.3, "", ())


@pytest.mark.parametrize(
    "change",
    [
        {"class_names": ["a", "b", "c"], "class_columns": ["z", "z"], "class_probs": ["p", "p", "p"]},
        {"class_names": ["a"], "class_columns": ["absent"], "class_probs": ["p"]},
        {"class_names": 3},
        {"class_columns": None},
    ],
)
def test_a_declaration_that_does_not_hold_is_none(change: dict[str, object], make_table: MakeTable) -> None:
    entry = {"logit": "z", "prob": "p", "flagged": "f", "classes": ["safe", "unsafe"], "threshold": 0.3, **change}
    path = make_table(z=[0.0] * 120, p=[0.5] * 120, f=[True] * 120)
    pq.write_table(pq.read_table(path).replace_schema_metadata({"headeval_scores": json.dumps([entry])}), path)
    assert declared_scores(open_tables([str(path)])) == ()
