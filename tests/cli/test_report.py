"""`headeval report` judges, gates with exit codes, and says the same in every format."""

import json
import re
import xml.etree.ElementTree as ET
from collections.abc import Callable
from pathlib import Path
from typing import Any

import jsonschema
import numpy as np
import pyarrow as pa
import pyarrow.csv
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
    assert {entry["value"] for entry in found["slices"]} == {"blue", "green", "red"}
    shortfalls = [entry["shortfall"] for entry in found["slices"]]
    assert shortfalls == sorted(shortfalls, reverse=True)
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
    assert "://" not in re.sub(r"/\*!.*?\*/", "", page, flags=re.DOTALL)  # but in the licence of the charts
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
        (["--logit", "z", "--junit", "j.xml"], 2, "--require or --require-each"),
        (["--logit", "z", "--per-day", "1000"], 2, "--per-day needs --prevalence"),
        (["--logit", "z", "--prevalence", "0.1", "--per-day", "0"], 2, "--per-day"),
        (["--logit", "z", "--prevalence", "1"], 2, "0.1 % is 0.001"),
        (["--logit", "z", "--confidence", "95"], 2, "95 % is 0.95"),
        (["--logit", "z", "--confidence", "0"], 2, "--confidence"),
        (["--logit", "z", "--confidence", "nan"], 2, "--confidence"),
        (["--logit", "z", "--resamples", "-1"], 2, "--resamples"),
        (["--logit", "z", "--seed", "-1"], 2, "--seed"),
        (["--logit", "z", "--min-rows", "0"], 2, "--min-rows"),
        (["--logit", "z", "--weight", "nothing"], 3, "'nothing'"),
        (["--logit", "z", "--group", "nothing"], 3, "'nothing'"),
        (["--logit", "z", "--require-each", "auc>=0.5"], 2, "--require-each needs --by"),
        (["--logit", "z", "--by", "team", "--require-each", "auc.diff>=0"], 2, "use --require"),
        (["--logit", "z", "--require", "auc.diff>=0"], 2, "needs --baseline"),
        (["--logit", "z", "--require", "mce.lower>=0"], 2, "mce has no interval"),
        (["--logit", "z", "--changed", "c.parquet"], 2, "--changed needs a baseline"),
        (["--logit", "z", "--baseline-prob", "p", "--changed", "c.txt"], 6, ".parquet or .csv"),
        (["--logit", "z", "--baseline-prob", "p", "--baseline-logit", "z"], 2, "exclude each other"),
        (["--logit", "z", "--baseline-prob", "z"], 3, "'z'"),
        (["--logit", "z", "--baseline", "absent.json"], 4, "absent.json"),
        (["--logit", "z", "--reference", "absent.parquet"], 3, "absent.parquet"),
        (["--logit", "z", "--html", "a", "--card", "./a"], 6, "named for two outputs"),
        (
            ["--logit", "z", "--junit", "a.csv", "--require", "n>0", "--baseline-prob", "p", "--changed", "a.csv"],
            6,
            "two",
        ),
        (["--logit", "z", "--plots", "scores.parquet"], 6, "no folder"),
        (["--logit", "z", "--card", "scores.parquet", "--force"], 6, "one of the inputs"),
    ],
)
def test_what_cannot_be_done_is_one_or_two_lines_with_its_code(
    headeval: Headeval, scores: Path, arguments: list[str], code: int, words: str
) -> None:
    before = sorted(scores.parent.iterdir())
    outcome = headeval("report", scores, *arguments)
    assert outcome.code == code, outcome.err
    assert words in outcome.err
    assert outcome.out == ""
    assert sorted(scores.parent.iterdir()) == before
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


@pytest.fixture
def rivals(tmp_path: Path) -> Path:
    """Write ten rows of which two classifiers decide three otherwise at one half."""
    new = [0.9, 0.8, 0.7, 0.6, 0.55, 0.4, 0.3, 0.2, 0.1, 0.05]
    old = [0.9, 0.7, 0.4, 0.6, 0.45, 0.6, 0.3, 0.2, 0.1, 0.05]
    columns = {"name": list("abcdefghij"), "new": new, "old": old, "label": [1, 1, 1, 1, 0, 0, 0, 0, 0, 0]}
    pq.write_table(pa.table(columns), tmp_path / "rivals.parquet")
    return tmp_path / "rivals.parquet"


@pytest.mark.parametrize("suffix", [".parquet", ".csv"])
def test_changed_holds_the_rows_that_only_one_flags(
    headeval: Headeval, rivals: Path, tmp_path: Path, suffix: str
) -> None:
    path = tmp_path / f"changed{suffix}"
    outcome = headeval(
        "report", rivals, "--prob", "new", "--baseline-prob", "old", "--changed", path, "--format", "json"
    )
    assert outcome.code == 0, outcome.err
    assert (
        "3 rows that changed side"
        in headeval("report", rivals, "--prob", "new", "--baseline-prob", "old", "--changed", path, "--force").err
    )
    found = (pq.read_table if suffix == ".parquet" else pa.csv.read_csv)(path).to_pylist()
    assert [tuple(row.values()) for row in found] == [
        ("c", 0.7, 0.4, 1, 0.7, True, 0.4, False),
        ("e", 0.55, 0.45, 0, 0.55, True, 0.45, False),
        ("f", 0.4, 0.6, 0, 0.4, False, 0.6, True),
    ]
    assert list(found[0]) == [
        "name", "new", "old", "label", "new_prob", "new_flagged", "baseline_prob", "baseline_flagged",
    ]  # fmt: skip
    comparison = document(outcome)["comparison"]
    changes = ("newly_flagged", "no_longer_flagged", "only_new_right", "only_baseline_right")
    assert [comparison[name] for name in changes] == [2, 1, 2, 1]
    assert comparison["mcnemar_p"] == 1.0  # 2 of 3: no evidence at all
    assert comparison["differences"]["accuracy"]["value"] == pytest.approx(0.1)


def test_changed_never_doubles_a_column(headeval: Headeval, rivals: Path, tmp_path: Path) -> None:
    table = pq.read_table(rivals).append_column("new_flagged", pa.array([True] * 10))
    pq.write_table(table, tmp_path / "twice.parquet")
    outcome = headeval(
        "report", "twice.parquet", "--prob", "new", "--baseline-prob", "old", "--changed", "changed.parquet"
    )
    assert (outcome.code, (tmp_path / "changed.parquet").exists()) == (3, False)
    assert "'new_flagged'" in outcome.err


def test_a_baseline_of_another_pair_of_classes_is_2(
    headeval: Headeval, fitted: Path, make_table: Callable[..., Path]
) -> None:
    other = make_table("other.parquet", label=pa.array(["fine", "hateful"] * 60))
    assert headeval("fit", other, "--positive", "hateful", "--folds", 0, "-o", "other.json").code == 0
    outcome = headeval("report", make_table("new.parquet", seed=3), "--head", fitted, "--baseline", "other.json")
    assert (outcome.code, outcome.out) == (2, "")
    assert "'hateful'" in outcome.err
    assert "cannot be compared" in outcome.err


def test_a_baseline_is_judged_at_its_own_threshold(
    headeval: Headeval, make_table: Callable[..., Path], tmp_path: Path
) -> None:
    data = make_table()
    headeval("fit", data, "--folds", 0, "-o", "new.json")
    headeval("fit", data, "--folds", 0, "--threshold", 0.2, "--l2", 30, "-o", "old.json")
    test = make_table("test.parquet", seed=6, guess=pa.array(np.linspace(0.01, 0.99, 120)))
    both = document(headeval("report", test, "--head", "new.json", "--baseline", "old.json", "--format", "json"))
    alone = document(headeval("report", test, "--head", "old.json", "--format", "json"))
    judged = both["comparison"]["baseline_evaluation"]
    assert {key: alone[key] for key in judged} == judged
    assert judged["threshold"] == 0.2
    for name, part in both["comparison"]["differences"].items():
        assert part["value"] == pytest.approx(both["metrics"][name] - alone["metrics"][name], abs=1e-12)
    for new in (("--head", "new.json"), ("--prob", "guess")):
        options = ("--baseline", "old.json", "--threshold", 0.7)
        moved = document(headeval("report", test, *new, *options, "--format", "json"))
        assert (moved["threshold"], moved["comparison"]["baseline_evaluation"]["threshold"]) == (0.7, 0.2)
        assert moved["comparison"]["baseline_evaluation"]["counts"] == alone["counts"]


def test_a_reference_is_compared_with_labels_and_without(
    headeval: Headeval, make_table: Callable[..., Path], fitted: Path
) -> None:
    test = make_table("test.parquet", seed=1)
    with_labels = make_table("with.parquet", n=90, seed=2)
    without = make_table("without.parquet", n=90, seed=2, label=None)
    found = [
        document(headeval("report", test, "--head", fitted, "--reference", path, "--format", "json"))["drift"]
        for path in (with_labels, without)
    ]
    assert [(part["n"], part["reference_n"]) for part in found] == [(120, 90)] * 2
    assert found[0]["ks"] == found[1]["ks"]
    assert found[0]["mean_shift"] == found[1]["mean_shift"]
    here, there = (
        np.mean([label == "unsafe" for label in pq.read_table(path)["label"].to_pylist()])
        for path in (test, with_labels)
    )
    assert found[0]["prevalence"]["difference"] == pytest.approx(here - there, abs=1e-12)
    assert found[1]["prevalence"] is None
    assert "labels" in found[1]["undefined"]["prevalence"]
    text = headeval("report", test, "--head", fitted, "--reference", without.name).out
    assert "Drift" in text
    assert "without.parquet" in text


def test_a_reference_of_scores_needs_the_same_column(headeval: Headeval, scores: Path, tmp_path: Path) -> None:
    pq.write_table(pq.read_table(scores).select(["z"]).slice(0, 150), tmp_path / "unlabelled.parquet")
    found = document(
        headeval("report", scores, "--logit", "z", "--reference", "unlabelled.parquet", "--format", "json")
    )["drift"]
    assert (found["reference_n"], found["leakage"], found["mean_shift"]) == (150, None, None)
    outcome = headeval("report", scores, "--prob", "p", "--reference", "unlabelled.parquet")
    assert (outcome.code, outcome.out) == (3, "")
    assert "'p'" in outcome.err


@pytest.fixture
def teams(tmp_path: Path) -> Path:
    """Write 40 rows of a good team, 40 of a bad one, 10 of a small one and 30 of one without positives."""
    p = [0.9] * 20 + [0.1] * 20 + [0.9] * 10 + [0.1] * 30 + [0.1] * 10 + [0.1] * 30
    label = [1] * 20 + [0] * 20 + [1] * 20 + [0] * 20 + [1] * 5 + [0] * 5 + [0] * 30
    team = ["good"] * 40 + ["bad"] * 40 + ["small"] * 10 + ["benign"] * 30
    pq.write_table(pa.table({"p": p, "label": label, "team": team}), tmp_path / "teams.parquet")
    return tmp_path / "teams.parquet"


@pytest.mark.parametrize(
    ("asked", "options", "verdict", "failing", "skipped"),
    [
        ("recall>=0.9", (), "not met", ["bad"], ["benign", "small"]),
        ("recall>=0.5", (), "met", [], ["benign", "small"]),
        ("recall>=0.5", ("--min-rows", 10), "not met", ["small"], ["benign"]),
        ("recall.lower>=0.9", (), "not met", ["bad", "good"], ["benign", "small"]),
        ("recall>=0.5", ("--min-rows", 41), "undecided", [], ["bad", "benign", "good", "small"]),
    ],
)
def test_every_slice_has_to_meet_what_is_required_of_each(
    headeval: Headeval,
    teams: Path,
    asked: str,
    options: tuple[object, ...],
    verdict: str,
    failing: list[str],
    skipped: list[str],
) -> None:
    outcome = headeval(
        "report", teams, "--prob", "p", "--by", "team", "--require-each", asked, *options, "--format", "json"
    )
    assert outcome.code == (0 if verdict == "met" else 1)
    found = document(outcome)
    (part,) = found["requirements_of_each_slice"]
    assert (part["verdict"], found["passed"]) == (verdict, verdict == "met")
    assert sorted(entry["slice"] for entry in part["failing"]) == failing
    assert sorted(entry["slice"] for entry in part["skipped"]) == skipped
    assert all(entry["reason"] for entry in part["skipped"])
    assert part["judged"] + len(skipped) == 4
    table = headeval("report", teams, "--prob", "p", "--by", "team", "--require-each", asked, *options)
    assert table.code == outcome.code
    assert all(f"team={name}" in " ".join(table.out.split()) for name in failing)


def test_a_gate_that_the_data_cannot_decide_fails_and_says_so(headeval: Headeval, teams: Path, tmp_path: Path) -> None:
    # 30 of 45 positives are flagged: 0.667, exactly 0.51 to 0.80.
    gates = ("--require", "recall.lower>=0.6", "--require", "recall>=0.6")
    outcome = headeval("report", teams, "--prob", "p", *gates, "--junit", "gates.xml")
    assert outcome.code == 1
    assert "UNDECIDED" in outcome.out
    assert outcome.out.rstrip().endswith("1 of 2 requirements undecided.")
    cases = list(ET.parse(tmp_path / "gates.xml").getroot().iter("testcase"))  # noqa: S314 - just written
    assert [(case.find("error") is not None, case.find("failure") is not None) for case in cases] == [
        (True, False),  # neither passed nor failed
        (False, False),
    ]
    found = document(headeval("report", teams, "--prob", "p", *gates, "--format", "json"))
    assert [part["verdict"] for part in found["requirements"]] == ["undecided", "met"]
    assert found["passed"] is False
    assert headeval("report", teams, "--prob", "p", "--require", "recall.lower>=0.5").code == 0


def test_every_option_at_once(
    headeval: Headeval, make_table: Callable[..., Path], fitted: Path, tmp_path: Path
) -> None:
    headeval("fit", "train.parquet", "--l2", 50, "--folds", 0, "--threshold", 0.45, "-o", "old.json")
    columns = {
        "w": pa.array(np.linspace(0, 2, 120)),
        "pair": pa.array([f"pair {i // 2}" for i in range(120)]),
        "team": pa.array(["red", "blue", "blue"] * 40),
    }
    test, reference = make_table("test.parquet", seed=1, **columns), make_table("reference.parquet", seed=2)
    options = [test, "--head", fitted, "--baseline", "old.json", "--reference", reference, "--by", "team"]
    options += ["--weight", "w", "--group", "pair", "--prevalence", 0.01, "--per-day", 1000, "--resamples", 50]
    options += ["--require", "auc.lower>=0.1", "--require", "auc.diff.lower>=-1", "--require-each", "fpr<=1"]
    files = ["--html", "p.html", "--card", "c.md", "--junit", "j.xml", "--changed", "d.csv", "--force"]
    found = document(headeval("report", *options, *files, "--format", "json"))
    assert found["passed"] is True
    parts = ("traffic", "slices", "comparison", "drift", "requirements_of_each_slice", "resampling")
    assert all(found[part] for part in parts)
    assert {path.name for path in tmp_path.iterdir()} >= {"p.html", "c.md", "j.xml", "d.csv"}
    for output_format, title in (("table", "{}"), ("markdown", "### {}")):
        outcome = headeval("report", *options, "--format", output_format)
        assert outcome.code == 0, outcome.err
        for name in ("Traffic", "Comparison", "Slices by team", "Drift"):
            assert title.format(name) in outcome.out


def test_rows_of_the_fit_let_no_gate_pass(headeval: Headeval, make_table: Callable[..., Path]) -> None:
    data = make_table()
    headeval("fit", data, "--folds", 0, "-q")
    outcome = headeval("report", data, "--head", "linear-head.json", "--require", "auc>=0.5", "--format", "json")
    assert outcome.code == 1
    (requirement,) = document(outcome)["requirements"]
    assert (requirement["verdict"], document(outcome)["passed"]) == ("undecided", False)
    assert "used for the fit" in requirement["reason"]
    each = headeval(
        "report", data, "--head", "linear-head.json", "--by", "label", "--require-each", "n>=1", "--format", "json"
    )
    assert document(each)["requirements_of_each_slice"][0]["verdict"] == "undecided"
    failed = headeval("report", data, "--head", "linear-head.json", "--require", "auc>=1.1")
    assert "NOT MET" in failed.out  # what fails, fails


def test_rows_that_the_threshold_was_chosen_on_let_no_gate_pass(
    headeval: Headeval, fitted: Path, make_table: Callable[..., Path]
) -> None:
    chosen_on, other = make_table("held.parquet", n=400, seed=5), make_table("other.parquet", n=400, seed=6)
    assert headeval("threshold", chosen_on, "--head", fitted, "--require", "fpr<=0.2", "-o", "h.json").code == 0
    for data, code in ((chosen_on, 1), (other, 0)):
        outcome = headeval("report", data, "--head", "h.json", "--require", "fpr<=0.5", "--format", "json")
        assert outcome.code == code
    outcome = headeval("report", chosen_on, "--head", "h.json", "--require", "fpr<=0.5")
    assert "UNDECIDED" in outcome.out
    assert "the threshold was chosen on 400 of these rows" in " ".join(outcome.out.split())


def test_copies_of_rows_are_told_unless_groups_say_so(
    headeval: Headeval, fitted: Path, make_table: Callable[..., Path]
) -> None:
    table = pq.read_table(make_table("once.parquet", n=100, seed=8))
    table = table.append_column("row", pa.array(range(100)))
    pq.write_table(pa.concat_tables([table] * 5), "five.parquet")
    told = "400 of 500 rows are copies of another"
    assert told in " ".join(headeval("report", "five.parquet", "--head", fitted).out.split())
    assert told not in " ".join(headeval("report", "five.parquet", "--head", fitted, "--group", "row").out.split())
    assert "rows are copies" not in headeval("report", "once.parquet", "--head", fitted).out


def test_another_name_of_the_flagged_class_and_an_unnamed_model_are_told(
    headeval: Headeval, fitted: Path, make_table: Callable[..., Path]
) -> None:
    data = make_table("no.parquet", label=pa.array(["no", "yes"] * 60))
    named = " ".join(headeval("report", data, "--head", fitted, "--positive", "yes").out.split())
    assert "'yes' is taken for the flagged class 'unsafe'" in named
    assert "name no embedding model" not in named
    pq.write_table(pq.read_table(data).replace_schema_metadata(None), "unnamed.parquet")
    unnamed = " ".join(headeval("report", "unnamed.parquet", "--head", fitted, "--positive", "yes").out.split())
    assert "the files name no embedding model: nothing tells whether it is the head's, 'm'" in unnamed


def test_a_folder_of_plots_is_no_other_output_as_well(headeval: Headeval, rivals: Path, tmp_path: Path) -> None:
    outcome = headeval("report", rivals, "--prob", "new", "--html", "a", "--plots", "a")
    assert (outcome.code, outcome.out) == (6, "")
    assert "named for two outputs" in outcome.err
    assert not (tmp_path / "a").exists()
