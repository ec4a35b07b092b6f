"""`headeval report` judges, gates with exit codes, and says the same in every format."""

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import jsonschema
import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from sklearn import metrics as sk

Headeval = Callable[..., Any]
SCHEMA = json.loads((Path(__file__).parents[2] / "schemas" / "report.schema.json").read_text(encoding="utf-8"))


@pytest.fixture
def scores(tmp_path: Path) -> Path:
    """Write 200 scored rows in which the positives are mostly higher."""
    rng = np.random.default_rng(11)
    z = rng.normal(size=200) * 2
    y = rng.random(200) < 1 / (1 + np.exp(-z))
    team = np.array(["red", "blue", "green", "blue"])[np.arange(200) % 4]
    path = tmp_path / "scores.parquet"
    pq.write_table(pa.table({"z": z, "p": 1 / (1 + np.exp(-z)), "label": y.astype(int), "team": team.tolist()}), path)
    return path


def document(outcome: Any) -> Any:
    found = json.loads(outcome.out)
    jsonschema.Draft202012Validator(SCHEMA).validate(found)
    return found


def test_a_bare_score_file_is_judged_as_scikit_learn_would(headeval: Headeval, scores: Path) -> None:
    table = pq.read_table(scores)
    y, p = table["label"].to_numpy(), table["p"].to_numpy()
    found = document(headeval("report", scores, "--logit", "z", "--threshold", 0.35, "--format", "json"))
    assert found["threshold"] == 0.35
    expected = {
        "auc": sk.roc_auc_score(y, p),
        "ap": sk.average_precision_score(y, p),
        "brier": sk.brier_score_loss(y, p),
        "log_loss": sk.log_loss(y, p),
        "recall": sk.recall_score(y, p >= 0.35),
        "precision": sk.precision_score(y, p >= 0.35),
        "prevalence": y.mean(),
    }
    for name, value in expected.items():
        assert found["metrics"][name] == pytest.approx(value, abs=1e-12), name
    by_probability = document(headeval("report", scores, "--prob", "p", "--threshold", 0.35, "--format", "json"))
    assert by_probability["metrics"]["auc"] == found["metrics"]["auc"]
    assert by_probability["counts"] == found["counts"]


def test_the_threshold_comes_from_the_head_unless_the_option_says_otherwise(
    headeval: Headeval, make_table: Callable[..., Path]
) -> None:
    data = make_table()
    headeval("fit", data, "--threshold", 0.31, "-o", "strict.json")
    test = make_table("test.parquet", seed=1)
    by_head = document(headeval("report", test, "--head", "strict.json", "--format", "json"))
    assert (by_head["threshold"], by_head["provenance"]["threshold_from"]) == (0.31, "head")
    by_option = document(headeval("report", test, "--head", "strict.json", "--threshold", 0.7, "--format", "json"))
    assert (by_option["threshold"], by_option["provenance"]["threshold_from"]) == (0.7, "option")
    assert by_option["counts"]["true_positives"] < by_head["counts"]["true_positives"]


@pytest.mark.parametrize(
    ("requirements", "code"),
    [
        ([], 0),
        (["auc>=0.5"], 0),
        (["auc>=0.999"], 1),
        (["auc>=0.5", "ece<=0.0001"], 1),
        (["auc>=0.5", "n>=200", "fpr<=1"], 0),
    ],
)
def test_exit_code_1_says_that_a_requirement_was_not_met(
    headeval: Headeval, scores: Path, requirements: list[str], code: int
) -> None:
    options = [part for text in requirements for part in ("--require", text)]
    table, markdown = (
        headeval("report", scores, "--logit", "z", *options, "--format", f) for f in ("table", "markdown")
    )
    as_json = headeval("report", scores, "--logit", "z", *options, "--format", "json")
    assert {table.code, markdown.code, as_json.code} == {code}
    assert table.err == markdown.err == as_json.err == ""
    assert document(as_json)["passed"] is (None if not requirements else code == 0)
    assert ("NOT MET" in table.out) == (code == 1)


def test_an_undefined_metric_fails_its_requirement(headeval: Headeval, tmp_path: Path) -> None:
    pq.write_table(pa.table({"p": [0.1, 0.2, 0.9], "label": ["safe"] * 3}), tmp_path / "one.parquet")
    outcome = headeval("report", "one.parquet", "--prob", "p", "--require", "auc>=0", "--format", "json")
    assert outcome.code == 1
    found = document(outcome)
    assert found["requirements"][0]["verdict"] == "undecided"
    assert found["metrics"]["auc"] is None
    assert found["undefined"]["auc"]
    assert headeval("report", "one.parquet", "--prob", "p").code == 0  # without a requirement nothing has failed


def test_slices_are_judged_each_on_its_own_rows(headeval: Headeval, scores: Path) -> None:
    found = document(headeval("report", scores, "--logit", "z", "--by", "team", "--format", "json"))
    table = pq.read_table(scores)
    y, z, team = (table[name].to_numpy(zero_copy_only=False) for name in ("label", "z", "team"))
    assert [entry["value"] for entry in found["slices"]] == ["blue", "green", "red"]
    for entry in found["slices"]:
        rows = team == entry["value"]
        assert entry["n"] == rows.sum()
        assert entry["metrics"]["auc"] == pytest.approx(sk.roc_auc_score(y[rows], z[rows]), abs=1e-12)
    assert "blue" in headeval("report", scores, "--logit", "z", "--by", "team").out


def test_a_column_of_identifiers_is_no_slice(headeval: Headeval, tmp_path: Path) -> None:
    n = 700
    pq.write_table(pa.table({"id": range(n), "p": [0.5] * n, "label": [0, 1] * (n // 2)}), tmp_path / "s.parquet")
    outcome = headeval("report", "s.parquet", "--prob", "p", "--by", "id")
    assert outcome.code == 2
    assert "700" in outcome.err


@pytest.mark.parametrize("convention", ["top-label", "top-label-left", "positive-class"])
def test_the_gate_is_on_the_convention_that_was_named(headeval: Headeval, scores: Path, convention: str) -> None:
    found = document(
        headeval("report", scores, "--prob", "p", "--ece-convention", convention, "--bins", 7, "--format", "json")
    )
    assert found["calibration"][0]["convention"] == convention
    assert {entry["n_bins"] for entry in found["calibration"]} == {7}
    assert found["metrics"]["ece"] == found["calibration"][0]["ece"]
    assert len(found["reliability"]) == 7


def test_positive_names_the_class_of_a_file_with_other_labels_than_the_head(
    headeval: Headeval, fitted: Path, make_table: Callable[..., Path]
) -> None:
    names = pa.array(["hateful" if i % 3 else "fine" for i in range(120)])
    data = make_table("other.parquet", label=names)
    refused = headeval("report", data, "--head", fitted)
    assert refused.code == 3
    assert "--positive" in refused.err
    found = document(headeval("report", data, "--head", fitted, "--positive", "hateful", "--format", "json"))
    assert found["positives"] == 80


def test_one_class_in_the_file_takes_its_meaning_from_the_head(
    headeval: Headeval, fitted: Path, make_table: Callable[..., Path]
) -> None:
    data = make_table("benign.parquet", label=pa.array(["safe"] * 120))
    found = document(headeval("report", data, "--head", fitted, "--format", "json"))
    assert (found["n"], found["positives"]) == (120, 0)
    assert found["metrics"]["fpr"] is not None
    assert found["metrics"]["recall"] is None


def test_the_rows_of_the_fit_are_called_in_sample_in_every_format(
    headeval: Headeval, fitted: Path, make_table: Callable[..., Path]
) -> None:
    data = make_table()
    for output_format in ("table", "json", "markdown"):
        out = headeval("report", data, "--head", fitted, "--format", output_format).out
        assert "IN-SAMPLE" in out, output_format
    assert "IN-SAMPLE" not in headeval("report", make_table("new.parquet", seed=2), "--head", fitted).out


def test_html_is_one_page_with_the_same_numbers(headeval: Headeval, scores: Path, tmp_path: Path) -> None:
    outcome = headeval("report", scores, "--logit", "z", "--html", "page.html")
    assert outcome.code == 0, outcome.err
    page = (tmp_path / "page.html").read_text(encoding="utf-8")
    auc = f"{sk.roc_auc_score(*(pq.read_table(scores)[name].to_numpy() for name in ('label', 'z'))):.4f}"
    assert auc in page
    assert auc in outcome.out
    assert "://" not in page
    refused = headeval("report", scores, "--logit", "z", "--html", "page.html")
    assert (refused.code, refused.out, (tmp_path / "page.html").read_text(encoding="utf-8")) == (6, "", page)


@pytest.mark.parametrize(
    ("arguments", "code", "words"),
    [
        ([], 2, "--logit COL"),
        (["--logit", "z", "--prob", "p"], 2, "exclude each other"),
        (["--prob", "z"], 3, "--logit 'z'"),
        (["--prob", "team"], 3, "'team'"),
        (["--logit", "y"], 3, "no column 'y'"),
        (["--logit", "z", "--label", "team"], 3, "3 different values"),
        (["--logit", "z", "--require", "acu>=1"], 2, "did you mean auc"),
        (["--logit", "z", "--require", "auc"], 2, "METRIC>=NUMBER"),
        (["--logit", "z", "--threshold", "-0.1"], 2, "between 0 and 1"),
        (["--logit", "z", "--bins", "0"], 2, "--bins"),
        (["--logit", "z", "--format", "xml"], 2, "'xml'"),
        (["--logit", "z", "--ece-convention", "best"], 2, "'best'"),
        (["--logit", "z", "--by", "nothing"], 3, "'nothing'"),
        (["--logit", "z", "--html", "no/folder/page.html"], 6, "no/folder"),
        (["--head", "absent.json"], 4, "absent.json"),
    ],
)
def test_what_cannot_be_done_is_one_or_two_lines_with_its_code(
    headeval: Headeval, scores: Path, arguments: list[str], code: int, words: str
) -> None:
    outcome = headeval("report", scores, *arguments)
    assert outcome.code == code, outcome.err
    assert words in outcome.err
    assert outcome.out == ""
    assert 1 <= len(outcome.err.splitlines()) <= 2


def test_a_broken_head_is_4(headeval: Headeval, make_table: Callable[..., Path], tmp_path: Path) -> None:
    (tmp_path / "bad.json").write_text('{"W": [[NaN]]}')
    outcome = headeval("report", make_table(), "--head", "bad.json")
    assert outcome.code == 4
    assert outcome.err.startswith("headeval: bad.json")


def test_names_from_outside_are_shown_and_never_interpreted(headeval: Headeval, tmp_path: Path) -> None:
    hostile = ["[red]x[/red]", "\x1b[31mred\x1b[0m"]
    labels = hostile * 20
    pq.write_table(pa.table({"p": np.linspace(0.01, 0.99, 40), "label": labels}), tmp_path / "s.parquet")
    for output_format in ("table", "markdown", "json"):
        out = headeval("report", "s.parquet", "--prob", "p", "--positive", hostile[1], "--format", output_format).out
        assert "\x1b" not in out
    assert "[red]x[/red]" in headeval("report", "s.parquet", "--prob", "p", "--positive", hostile[1]).out
