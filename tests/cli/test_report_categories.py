"""`headeval report` over several categories: each is judged as by itself, gated by name, and shown in every format."""

import dataclasses
import html
import json
import re
import xml.etree.ElementTree as ET
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from sklearn import metrics as sk

from documents import ROOT
from headeval.files.head_folder import head_file_name, write_heads
from headeval.files.heads import write_head
from headeval.files.schemas import validator
from headeval.head import LinearHead

Headeval = Callable[..., Any]
SAMPLE = ROOT / "sample_data" / "moderation_test.parquet"
CATEGORIES = (
    "harassment",
    "hate",
    "hate_threatening",
    "self_harm",
    "sexual",
    "sexual_minors",
    "violence",
    "violence_graphic",
)
NAMES = ("harm", "hate", "spam")
HOSTILE = (
    "[red]x[/red]",
    "<script>alert(1)</script>",
    "\x1b[31mred\x1b]0;title\x07",
    "a|b`c`*d*",
    "../evil",
    "\u202egnissap",
    "10:30",
)


def document(outcome: Any) -> Any:
    found = json.loads(outcome.out)
    validator("categories-report").validate(found)
    return found


def by_name(found: Any) -> dict[str, Any]:
    return {part["name"]: part for part in found["categories"]}


def head(seed: int, **options: Any) -> LinearHead:
    rng = np.random.default_rng(seed)
    w = 4 * rng.normal(size=4)
    return LinearHead.binary(w, rng.normal(), classes=("false", "true"), embedding_model="m", **options)


def rows(n: int = 150, *, names: tuple[str, ...] = NAMES, seed: int = 3) -> dict[str, Any]:
    """Rows whose labels follow the heads of their categories with noise; some are unknown."""
    rng = np.random.default_rng(seed)
    embeddings = rng.normal(size=(n, 4)).astype(np.float32)
    columns: dict[str, Any] = {"embedding": embeddings, "team": np.array(["red", "blue"])[np.arange(n) % 2].tolist()}
    for index, name in enumerate(names):
        labels = rng.random(n) < head(index).probs(embeddings)
        known = rng.random(n) < 0.8
        columns[name] = [bool(label) if there else None for label, there in zip(labels, known, strict=True)]
        columns[f"p_{name}"] = head(index).probs(embeddings)
        columns[f"old_{name}"] = head(index + 50).probs(embeddings)
    return columns


def write(path: Path, columns: dict[str, Any]) -> Path:
    flat = pa.FixedSizeListArray.from_arrays(pa.array(columns["embedding"].ravel()), columns["embedding"].shape[1])
    table = pa.table(columns | {"embedding": flat}).replace_schema_metadata({"embedding_model": "m"})
    pq.write_table(table, path)
    return path


@pytest.fixture
def data(tmp_path: Path) -> Path:
    heads = {name: head(index, threshold=(4 + index) / 10) for index, name in enumerate(NAMES)}
    write_heads(tmp_path / "heads", heads, force=False)
    return write(tmp_path / "rows.parquet", rows())


def report(headeval: Headeval, data: Path, *options: object, code: int = 0) -> Any:
    outcome = headeval("report", data, "--head", "heads", "--resamples", "50", "--format", "json", *options)
    assert outcome.code == code, outcome.err
    assert outcome.err == ""
    return document(outcome)


def alone(headeval: Headeval, data: Path, name: str, *options: object, heads: str = "heads") -> Any:
    """The document of one head on its own label column."""
    one = Path(heads, head_file_name(name))
    outcome = headeval(
        *("report", data, "--head", one, "--label", name, "--drop-unlabelled"),
        *("--resamples", "50", "--format", "json", *options),
    )
    assert outcome.code in {0, 1}, outcome.err
    return json.loads(outcome.out)


# --- the numbers


def test_each_category_of_the_sample_data_is_what_judging_its_head_alone_gives(
    headeval: Headeval, tmp_path: Path
) -> None:
    """Heads that were made without headeval's fit: the difference of the class means in the calibration file."""
    table = pq.read_table(ROOT / "sample_data" / "moderation_calibration.parquet")
    embeddings = np.stack(table["embedding"].to_numpy())
    embeddings /= np.linalg.norm(embeddings, axis=1, keepdims=True)
    heads = {}
    for name in CATEGORIES:
        labels = np.array([np.nan if label is None else float(label) for label in table[name].to_pylist()])
        w = 8 * (embeddings[labels == 1].mean(0) - embeddings[labels == 0].mean(0))
        heads[name] = LinearHead.binary(w, -1.0, classes=("false", "true"), embedding_model="all-MiniLM-L6-v2")
    write_heads(tmp_path / "heads", heads, force=False)
    found = by_name(report(headeval, SAMPLE))
    assert tuple(found) == CATEGORIES
    test = pq.read_table(SAMPLE)
    for name, part in found.items():
        assert part["report"] == alone(headeval, SAMPLE, name)
        labels = test[name].to_pylist()
        known = [row for row, label in enumerate(labels) if label is not None]
        scores = heads[name].logits(np.stack(test["embedding"].to_numpy()))
        y = np.array([labels[row] for row in known])
        assert (part["known"], part["unknown"]) == (len(known), 252 - len(known))
        for metric, value in (("auc", sk.roc_auc_score), ("ap", sk.average_precision_score)):
            assert part["report"]["metrics"][metric] == pytest.approx(value(y, scores[known]), abs=1e-12)


@pytest.mark.parametrize(
    "options",
    [
        ("--by", "team"),
        ("--threshold", 0.2, "--ece-convention", "positive-class", "--bins", 5, "--confidence", 0.9, "--seed", 4),
        ("--group", "team"),
        ("--baseline", "old"),
    ],
)
def test_options_reach_every_category_as_they_reach_one_head(
    headeval: Headeval, data: Path, tmp_path: Path, options: tuple[object, ...]
) -> None:
    write_heads(tmp_path / "old", {name: head(index + 30) for index, name in enumerate(NAMES)}, force=False)
    found = by_name(report(headeval, data, *options))
    for name in NAMES:
        own = [Path("old", head_file_name(name)) if option == "old" else option for option in options]
        assert found[name]["report"] == alone(headeval, data, name, *own)


def test_macro_averages_are_means_over_the_categories_that_have_the_metric(headeval: Headeval, tmp_path: Path) -> None:
    columns = rows()
    columns["spam"] = [None if label is None else False for label in columns["spam"]]  # no AUC, no recall
    heads = {name: head(index) for index, name in enumerate(NAMES)}
    write_heads(tmp_path / "heads", heads, force=False)
    found = report(headeval, write(tmp_path / "rows.parquet", columns))
    metrics = {name: part["report"]["metrics"] for name, part in by_name(found).items()}
    assert metrics["spam"]["auc"] is None
    for name, expected in (("auc", ("harm", "hate")), ("recall", ("harm", "hate")), ("fpr", NAMES), ("brier", NAMES)):
        mean = np.mean([metrics[category][name] for category in expected])
        assert found["averages"][name] == {"value": pytest.approx(mean, abs=1e-15), "categories": len(expected)}
    assert "n" not in found["averages"]


def test_rows_of_unknown_label_change_nothing_but_their_count(headeval: Headeval, data: Path, tmp_path: Path) -> None:
    before = by_name(report(headeval, data))
    columns, more = rows(), rows(40, seed=9)
    for name in NAMES:
        more[name] = [None] * 40 if name != "spam" else more[name]  # known in another category, or in none
    more["spam"][:20] = [None] * 20
    joined = {
        name: np.concatenate([values, more[name]]) if isinstance(values, np.ndarray) else [*values, *more[name]]
        for name, values in columns.items()
    }
    after = by_name(report(headeval, write(tmp_path / "rows.parquet", joined)))
    for name in ("harm", "hate"):
        assert after[name]["unknown"] == before[name]["unknown"] + 40
        counted = {"provenance", "notes"}
        old, new = (
            {key: value for key, value in part[name]["report"].items() if key not in counted}
            for part in (before, after)
        )
        assert new == old
    assert after["spam"]["known"] > before["spam"]["known"]


def test_the_threshold_is_each_heads_own_unless_given(headeval: Headeval, data: Path) -> None:
    own = by_name(report(headeval, data))
    assert [own[name]["report"]["threshold"] for name in NAMES] == [0.4, 0.5, 0.6]
    given = by_name(report(headeval, data, "--threshold", 0.7))
    assert {part["report"]["threshold"] for part in given.values()} == {0.7}
    told = headeval("report", data, "--head", "heads", "--threshold", 0.7, "--resamples", 0).out
    assert "all at the threshold given" in told
    assert "each at its own threshold" in headeval("report", data, "--head", "heads", "--resamples", 0).out
    scores = ("--label", "hate,spam", "--prob", "p_*")
    assert "all at the default threshold" in headeval("report", data, *scores, "--resamples", 0).out


def test_classes_come_from_each_head_never_from_the_values_seen(headeval: Headeval, tmp_path: Path) -> None:
    """Names that no rule knows, a head that flags `false`, and a file in which one class does not occur."""
    columns, heads = rows(), {name: head(index) for index, name in enumerate(NAMES)}
    columns["spam"] = [None if label is None else ["ham", "spam"][label] for label in columns["spam"]]
    columns["harm"] = [None if label is None else False for label in columns["harm"]]
    heads["spam"] = dataclasses.replace(heads["spam"], classes=("ham", "spam"))
    heads["hate"] = dataclasses.replace(heads["hate"], classes=("true", "false"))
    write_heads(tmp_path / "heads", heads, force=False)
    data = write(tmp_path / "rows.parquet", columns)
    found = by_name(report(headeval, data))
    for name in NAMES:
        assert found[name]["report"] == alone(headeval, data, name)
        assert found[name]["report"]["classes"] == list(heads[name].classes)
    assert found["harm"]["report"]["positives"] == 0
    assert found["hate"]["report"]["positives"] == columns["hate"].count(False)
    columns["spam"][5] = "eggs"
    outcome = headeval("report", write(data, columns), "--head", "heads")
    assert outcome.code == 3
    assert "column 'spam'" in outcome.err
    assert "'eggs' (1 row)" in outcome.err


def test_label_restricts_the_categories_of_a_folder(headeval: Headeval, data: Path) -> None:
    whole = by_name(report(headeval, data))
    some = by_name(report(headeval, data, "--label", "ha*"))
    assert tuple(some) == ("harm", "hate")
    assert some == {name: whole[name] for name in some}
    assert tuple(by_name(report(headeval, data, "--label", "spam"))) == ("spam",)


def test_the_folder_may_have_a_category_more_than_the_data_where_label_says_so(
    headeval: Headeval, data: Path, tmp_path: Path
) -> None:
    columns = rows()
    del columns["spam"]
    less = write(tmp_path / "less.parquet", columns)
    outcome = headeval("report", less, "--head", "heads")
    assert outcome.code == 3
    assert "less.parquet" in outcome.err
    assert "'spam'" in outcome.err
    assert "judge fewer with --label 'harm,hate'" in outcome.err
    assert tuple(by_name(report(headeval, less, "--label", "harm,hate"))) == ("harm", "hate")


# --- columns of scores


@pytest.mark.parametrize(
    "named", [("--label", "hate,spam", "--prob", "p_hate,p_spam"), ("--label", "hate,spam", "--prob", "p_*")]
)
def test_columns_of_scores_are_judged_pairwise_with_label_columns(
    headeval: Headeval, data: Path, named: tuple[str, ...]
) -> None:
    outcome = headeval("report", data, *named, "--resamples", "50", "--format", "json")
    found = by_name(document(outcome))
    for name in ("hate", "spam"):
        single = ("--label", name, "--drop-unlabelled", "--prob", f"p_{name}", "--resamples", "50")
        assert found[name]["report"] == json.loads(headeval("report", data, *single, "--format", "json").out)


def test_columns_of_scores_are_compared_with_other_columns(headeval: Headeval, data: Path) -> None:
    both = ("--label", "hate,spam", "--prob", "p_hate,p_spam", "--baseline-prob", "old_hate,old_spam")
    required = ("--require", "hate:auc.diff.lower>=0", "--resamples", "50")
    found = by_name(document(headeval("report", data, *both, *required, "--format", "json")))
    single = ("--label", "hate", "--drop-unlabelled", "--prob", "p_hate", "--baseline-prob", "old_hate")
    expected = json.loads(headeval("report", data, *single, "--resamples", "50", "--format", "json").out)
    assert found["hate"]["report"]["comparison"] == expected["comparison"]


def test_the_header_says_which_column_has_the_scores_of_which_label(headeval: Headeval, data: Path) -> None:
    named = ("--label", "spam,hate", "--prob", "p_spam,old_hate", "--baseline-prob", "old_*", "--resamples", "0")
    out = headeval("report", data, *named).out
    assert re.search(r"^probability columns +spam: p_spam, hate: old_hate$", out, flags=re.MULTILINE)
    assert re.search(r"^baseline +spam: old_spam, hate: old_hate$", out, flags=re.MULTILINE)
    provenance = document(headeval("report", data, *named, "--format", "json"))["provenance"]
    assert provenance["probability_columns"] == {"spam": "p_spam", "hate": "old_hate"}


def test_a_file_scored_by_a_folder_needs_no_more_to_be_judged(headeval: Headeval, data: Path) -> None:
    by_heads = by_name(report(headeval, data))
    assert headeval("score", data, "--head", "heads", "-o", "scored.parquet").code == 0
    found = by_name(document(headeval("report", "scored.parquet", "--resamples", "50", "--format", "json")))
    assert tuple(found) == NAMES
    for name in NAMES:
        ours, theirs = found[name]["report"], by_heads[name]["report"]
        for key in ("metrics", "intervals", "counts", "threshold"):
            assert ours[key] == theirs[key]


# --- what is required


@pytest.mark.parametrize(
    ("required", "code", "verdicts"),
    [
        (["hate:auc>=0.5"], 0, ["met"]),
        (["*:auc>=0.5"], 0, ["met", "met", "met"]),
        (["hate:auc>=0.5", "*:auc.lower>=0.9999"], 1, ["met", "not met", "not met", "not met"]),
        (["spam:threshold_free:auc>=0.5"], 2, None),
        (["auc>=0.5"], 2, None),
        (["*:top1_accuracy>=0.5"], 2, None),
        (["top1_accuracy>=0.5"], 2, None),
        (["hte:auc>=0.5"], 2, None),
        (["hate:auc.diff>=0"], 2, None),
        (["*:n>=1", "harm:n>=100000"], 1, ["met", "met", "met", "not met"]),
    ],
)
def test_requirements_name_a_category_or_each(
    headeval: Headeval, data: Path, required: list[str], code: int, verdicts: list[str] | None
) -> None:
    options = [part for text in required for part in ("--require", text)]
    outcome = headeval("report", data, "--head", "heads", "--resamples", "0", "--format", "json", *options)
    assert outcome.code == code, outcome.err
    if verdicts is None:
        assert outcome.out == ""
        assert f"--require '{required[0][:6]}" in outcome.err
        return
    found = document(outcome)
    assert [decision["verdict"] for decision in found["requirements"]] == verdicts
    assert found["passed"] is (code == 0)
    own = [decision for part in found["categories"] for decision in part["report"]["requirements"]]
    assert sorted(map(json.dumps, own)) == sorted(map(json.dumps, found["requirements"]))


def test_requirements_keep_the_order_asked_and_each_is_held_against_its_own_category(
    headeval: Headeval, data: Path
) -> None:
    found = report(headeval, data, "--require", "spam:auc>=0", "--require", "*:recall>=0", "--require", "harm:auc>=0")
    decided = [(one["of"], one["metric"], one["value"]) for one in found["requirements"]]
    metrics = {name: part["report"]["metrics"] for name, part in by_name(found).items()}
    asked = [("spam", "auc"), *((name, "recall") for name in NAMES), ("harm", "auc")]
    assert decided == [(name, metric, metrics[name][metric]) for name, metric in asked]


def test_an_unknown_category_is_told_with_the_closest_one(headeval: Headeval, data: Path) -> None:
    outcome = headeval("report", data, "--head", "heads", "--require", "hte:auc>=0.5")
    assert (outcome.code, outcome.out) == (2, "")
    assert "no category 'hte' (did you mean 'hate'?); the categories are 'harm', 'hate', 'spam'" in outcome.err
    without = headeval("report", data, "--head", "heads", "--require", "auc>=0.5")
    assert "'harm:auc>=0.5' asks it of one, '*:auc>=0.5' of each" in without.err


def test_a_category_of_one_class_leaves_what_it_has_not_undecided(headeval: Headeval, tmp_path: Path) -> None:
    columns = rows()
    columns["hate"] = [None if label is None else False for label in columns["hate"]]
    write_heads(tmp_path / "heads", {name: head(index) for index, name in enumerate(NAMES)}, force=False)
    data = write(tmp_path / "rows.parquet", columns)
    found = report(headeval, data, "--require", "*:auc>=0.1", code=1)
    assert [decision["verdict"] for decision in found["requirements"]] == ["met", "undecided", "met"]


def test_a_category_without_a_known_label_is_shown_and_its_requirements_are_undecided(
    headeval: Headeval, tmp_path: Path
) -> None:
    columns = rows()
    columns["hate"] = pa.nulls(150, pa.bool_())
    write_heads(tmp_path / "heads", {name: head(index) for index, name in enumerate(NAMES)}, force=False)
    data = write(tmp_path / "rows.parquet", columns)
    assert headeval("report", data, "--head", "heads", "--resamples", "0").code == 0
    gates = ("--require", "*:n>=1", "--by", "team", "--require-each", "hate:fpr<=1")
    found = report(headeval, data, *gates, code=1)
    hate = by_name(found)["hate"]
    assert hate == {
        "name": "hate",
        "known": 0,
        "unknown": 150,
        "not_judged": "none of 150 rows has a known label",
        "report": None,
    }
    assert [decision["verdict"] for decision in found["requirements"]] == ["met", "undecided", "met"]
    assert [decision["verdict"] for decision in found["requirements_of_each_slice"]] == ["undecided"]
    assert found["averages"]["auc"]["categories"] == 2
    shown = headeval(
        "report", data, "--head", "heads", "--resamples", "0", *gates, "--junit", "t.xml", "--card", "c.md"
    )
    for text in (shown.out, Path("t.xml").read_text(), Path("c.md").read_text()):
        assert "none of 150 rows has a known label" in text
    assert re.search(r"hate +0 +150 +–", shown.out)


def test_no_category_at_all_with_a_label_is_an_error_of_the_data(headeval: Headeval, tmp_path: Path) -> None:
    columns = rows() | {name: pa.nulls(150, pa.bool_()) for name in NAMES}
    write_heads(tmp_path / "heads", {name: head(index) for index, name in enumerate(NAMES)}, force=False)
    outcome = headeval("report", write(tmp_path / "rows.parquet", columns), "--head", "heads")
    assert outcome.code == 3
    assert "no label in any of 150 rows" in outcome.err


def test_require_each_works_within_each_category(headeval: Headeval, data: Path) -> None:
    gates = ("--by", "team", "--require-each", "*:recall>=0", "--require-each", "spam:fpr<=0.0001")
    found = report(headeval, data, *gates, code=1)
    decided = [(one["of"], one["metric"], one["judged"]) for one in found["requirements_of_each_slice"]]
    assert decided == [*((name, "recall", 2) for name in NAMES), ("spam", "fpr", 2)]
    failing = {part["slice"] for part in found["requirements_of_each_slice"][-1]["failing"]}
    slices = by_name(found)["spam"]["report"]["slices"]
    assert failing == {part["value"] for part in slices if part["metrics"]["fpr"] > 0.0001}


@pytest.mark.parametrize(
    ("options", "told"),
    [
        (("--require", "hate:ece<=0.9"), "hate:ece: top-label;"),
        (("--require", "hate:mce<=0.9"), "hate:mce: top-label;"),
        (("--require", "*:ece<=0.9"), "harm:ece, hate:ece, spam:ece: top-label;"),
        (("--by", "team", "--require-each", "spam:ece<=0.9"), "spam:ece: top-label;"),
        (("--require", "hate:ece<=0.9", "--ece-convention", "positive-class"), ""),
        (("--require", "hate:ece_positive_class<=0.9", "--require", "hate:auc>=0"), ""),
        ((), ""),
    ],
)
def test_an_ece_that_is_required_is_told_apart_from_the_one_of_the_table(
    headeval: Headeval, data: Path, options: tuple[str, ...], told: str
) -> None:
    """The table shows the positive-class ECE, whatever --ece-convention says."""
    common = ("report", data, "--head", "heads", "--resamples", "0", *options)
    out = headeval(*common, "--html", "page.html", "--card", "card.md").out
    page, card = Path("page.html").read_text(), Path("card.md").read_text()
    for text in (out, re.sub(r"<[^>]*>", " ", page), card):
        words = " ".join(html.unescape(text).replace("\\", "").split())
        assert words.count("which is ece_positive_class") == bool(told)
        if told:
            assert f"{told} the table shows the positive-class ECE, which is ece_positive_class" in words
        assert "ECE pos.: positive-class ECE" in words
        assert re.search(r"category[ |]+ECE pos\.[ |]+threshold", words)


def test_differences_to_a_baseline_are_required_by_category(headeval: Headeval, data: Path, tmp_path: Path) -> None:
    write_heads(tmp_path / "old", {name: head(index + 30) for index, name in enumerate(NAMES)}, force=False)
    found = report(headeval, data, "--baseline", "old", "--require", "*:auc.diff>=-1")
    for decision in found["requirements"]:
        part = by_name(found)[decision["of"]]["report"]
        assert decision["value"] == part["comparison"]["differences"]["auc"]["value"]
    out = headeval("report", data, "--head", "heads", "--baseline", "old", "--resamples", "0").out
    assert "Comparison: difference to the baseline" in out


def test_columns_of_a_baseline_that_do_not_fit_name_the_option_of_the_baseline(headeval: Headeval, data: Path) -> None:
    judged = ("report", data, "--label", "hate,spam", "--prob", "p_hate,p_spam")
    few = headeval(*judged, "--baseline-prob", "old_spam")
    assert (few.code, few.out) == (2, "")
    assert "names 2 columns and --baseline-prob 1" in few.err
    swapped = headeval(*judged, "--baseline-prob", "old_spam,old_hate")
    assert (swapped.code, swapped.out) == (2, "")
    assert "the columns of --baseline-prob are listed in another order than --label" in swapped.err
    wrong = headeval("report", data, "--label", "hate,spam", "--prob", "p_spam,p_hate", "--baseline-prob", "old_*")
    assert "the columns of --prob are listed in another order than --label" in wrong.err


def test_a_baseline_without_one_of_the_categories_is_refused(headeval: Headeval, data: Path, tmp_path: Path) -> None:
    write_heads(tmp_path / "old", {"hate": head(1), "harm": head(2)}, force=False)
    outcome = headeval("report", data, "--head", "heads", "--baseline", "old")
    assert outcome.code == 2
    assert "the baseline 'old' has no head of 'spam'" in outcome.err
    assert "--label 'harm,hate'" in outcome.err
    assert headeval("report", data, "--head", "heads", "--baseline", "old", "--label", "harm,hate").code == 0
    one = headeval("report", data, "--head", "heads", "--baseline", "old/hate.json")
    assert one.code == 2
    assert "several categories are compared with several" in one.err


def test_a_baseline_with_a_category_more_is_refused_unless_label_says_which(
    headeval: Headeval, data: Path, tmp_path: Path
) -> None:
    write_heads(tmp_path / "new", {name: head(index) for index, name in enumerate(("harm", "hate"))}, force=False)
    common = ("report", data, "--head", "new", "--baseline", "heads", "--resamples", "0")
    for every in ((), ("--label", "*")):
        outcome = headeval(*common, *every)
        assert (outcome.code, outcome.out) == (2, "")
        assert "the baseline 'heads' has a head of 'spam', which is not judged" in outcome.err
        assert "--label 'harm,hate'" in outcome.err
    for some in ("harm,hate", "ha*", "hate"):
        assert headeval(*common, "--label", some).code == 0


def test_a_comparison_names_its_baseline_its_thresholds_and_its_confidence(
    headeval: Headeval, data: Path, tmp_path: Path
) -> None:
    old = {name: head(index + 50, threshold=0.25) for index, name in enumerate(NAMES)}
    write_heads(tmp_path / "old", old, force=False)
    common = ("report", data, "--head", "heads", "--baseline", "old", "--resamples", "50", "--confidence", "0.9")
    out = headeval(*common, "--card", "card.md", "--html", "page.html").out
    assert re.search(r"^baseline +old$", out, flags=re.MULTILINE)
    assert "difference to the baseline old on the same rows" in out
    assert "below each difference its 90 % interval" in out
    found = document(headeval(*common, "--format", "json"))
    assert found["provenance"]["baseline"] == "old"
    columns = pq.read_table(data)
    embeddings = rows()["embedding"]
    for index, name in enumerate(NAMES):
        known = np.array([label is not None for label in columns[name].to_pylist()])
        now = head(index).probs(embeddings)[known] >= (4 + index) / 10
        was = head(index + 50).probs(embeddings)[known] >= 0.25
        flagged, passed = np.count_nonzero(now & ~was), np.count_nonzero(was & ~now)
        line = rf"^  {name} +0\.2500 → {(4 + index) / 10:.4f} +{flagged} +{passed}$"
        assert re.search(line, out, flags=re.MULTILINE)
    for text in (Path("card.md").read_text(), html.unescape(Path("page.html").read_text())):
        assert "difference to the baseline old on the same rows" in text
    pairs = ("--label", "hate", "--prob", "p_hate", "--baseline-prob", "old_hate", "--drop-unlabelled")
    assert headeval("report", data, *pairs, "--card", "one.md", "--require", "auc.diff>=-1").code == 0
    assert "difference to the baseline old_hate on the same rows" in html.unescape(Path("one.md").read_text())


def test_a_baseline_that_decides_between_other_classes_is_refused(
    headeval: Headeval, data: Path, tmp_path: Path
) -> None:
    others = {name: head(index) for index, name in enumerate(NAMES)}
    others["spam"] = dataclasses.replace(others["spam"], classes=("ham", "spam"))
    write_heads(tmp_path / "old", others, force=False)
    outcome = headeval("report", data, "--head", "heads", "--baseline", "old")
    assert outcome.code == 2
    assert "the baseline old/spam.json has the classes 'ham', 'spam'" in outcome.err


def test_rows_that_made_a_head_are_a_caution_and_let_its_requirements_pass_nothing(
    headeval: Headeval, data: Path
) -> None:
    fitted = headeval("fit", data, "--label", "hate", "--drop-unlabelled", "-o", "heads/hate.json", "--force")
    assert fitted.code == 0, fitted.err
    gates = ("--require", "hate:auc>=0", "--require", "spam:auc>=0")
    outcome = headeval("report", data, "--head", "heads", "--resamples", "0", *gates)
    assert outcome.code == 1
    assert "CAUTION: IN-SAMPLE: most of the rows of hate made what is judged" in " ".join(outcome.out.split())
    found = report(headeval, data, *gates, code=1)
    assert found["in_sample"] == ["hate"]
    assert [decision["verdict"] for decision in found["requirements"]] == ["undecided", "met"]


def test_classes_of_one_label_are_required_by_their_names(headeval: Headeval, tmp_path: Path) -> None:
    """Three columns of probabilities of one label column are classes, not categories."""
    rng = np.random.default_rng(6)
    names, codes = np.array(["safe", "rude", "hate"]), rng.integers(0, 3, 200)
    probs = 0.7 * rng.dirichlet([1, 1, 1], 200) + 0.3 * np.eye(3)[codes]
    columns = {f"p_{name}": probs[:, index] for index, name in enumerate(names)}
    pq.write_table(pa.table(columns | {"label": names[codes].tolist()}), tmp_path / "three.parquet")
    common = ("report", "three.parquet", "--prob", "p_safe,p_rude,p_hate", "--classes", "safe,rude,hate")
    recall = sk.recall_score(codes, probs.argmax(1), average=None)[1]
    gates = (
        "--require",
        f"rude:recall>={recall - 1e-9}",
        "--require",
        "rude:recall>=0.9999999",
        "--require",
        "auc>=0.5",
    )
    more = ("--require", f"macro_f1>={sk.f1_score(codes, probs.argmax(1), average='macro') - 1e-9}")
    outcome = headeval(*common, *gates, *more, "--resamples", "0", "--format", "json")
    found = json.loads(outcome.out)
    validator("report").validate(found)
    assert outcome.code == 1
    assert [one["verdict"] for one in found["requirements"]] == ["met", "not met", "met", "met"]
    assert [one.get("of") for one in found["requirements"]] == ["rude", "rude", None, None]
    wrong = headeval(*common, "--require", "rde:recall>=0.5")
    assert wrong.code == 2
    assert "no class 'rde' (did you mean 'rude'?)" in wrong.err


def test_labels_that_do_not_tell_the_classes_leave_their_requirements_undecided(
    headeval: Headeval, data: Path, tmp_path: Path
) -> None:
    W = np.stack([np.zeros(4), np.ones(4), 4 * np.random.default_rng(1).normal(size=4)])
    softmax = LinearHead("m", ("safe", "rude", "hateful"), W, np.zeros(3), 0.5)
    write_head(softmax, tmp_path / "softmax.json", force=False)
    common = (
        "--head",
        "softmax.json",
        "--label",
        "hate",
        "--positive",
        "true",
        "--drop-unlabelled",
        "--resamples",
        "0",
    )
    gates = ("--require", "rude:recall>=0", "--require", "macro_f1>=0", "--require", "auc>=0.1")
    outcome = headeval("report", data, *common, *gates, "--format", "json")
    assert outcome.code == 1, outcome.err
    decided = json.loads(outcome.out)["requirements"]
    assert [one["verdict"] for one in decided] == ["undecided", "undecided", "met"]
    assert "only tell the flagged class from the rest" in decided[0]["reason"]


# --- what makes no sense over categories


@pytest.mark.parametrize(
    "options",
    [
        ("--changed", "c.csv", "--baseline", "heads"),
        ("--reference", "rows.parquet"),
        ("--plots", "plots"),
        ("--prevalence", "0.1"),
        ("--prevalence", "0.1", "--per-day", "100"),
        ("--id", "team"),
    ],
)
def test_options_of_one_head_are_refused_with_the_way_to_it(
    headeval: Headeval, data: Path, options: tuple[str, ...]
) -> None:
    outcome = headeval("report", data, "--head", "heads", *options)
    assert (outcome.code, outcome.out) == (2, "")
    assert f"{options[0]} is for one category" in outcome.err
    assert "--head 'heads/NAME.json' --label NAME --drop-unlabelled" in outcome.err


def test_names_before_a_metric_are_refused_where_there_is_one_label(headeval: Headeval, data: Path) -> None:
    one = ("--head", "heads/hate.json", "--label", "hate", "--drop-unlabelled")
    outcome = headeval("report", data, *one, "--require", "hate:auc>=0.5")
    assert outcome.code == 2
    assert "has one label of two classes: ask 'auc>=0.5'" in outcome.err
    outcome = headeval("report", data, *one, "--require", "macro_f1>=0.5")
    assert outcome.code == 2
    assert "macro_f1 is of more than two classes" in outcome.err


def test_no_output_replaces_a_head_of_the_folder(headeval: Headeval, data: Path) -> None:
    before = Path("heads/hate.json").read_bytes()
    outcome = headeval("report", data, "--head", "heads", "--card", "heads/hate.json", "--force")
    assert outcome.code == 6
    assert Path("heads/hate.json").read_bytes() == before


# --- every format


def test_a_category_that_is_not_judged_is_a_caution_and_what_is_said_of_another_keeps_its_name(
    headeval: Headeval, data: Path, tmp_path: Path
) -> None:
    holes = write(tmp_path / "holes.parquet", rows() | {"hate": pa.nulls(150, pa.bool_())})
    common = ("report", holes, "--head", "heads", "--label", "spam,hate", "--resamples", "0")
    outcome = headeval(*common, "--card", "card.md", "--html", "page.html")
    assert outcome.code == 0
    words = " ".join(outcome.out.split())
    assert "CAUTION: NOT JUDGED: hate (none of 150 rows has a known label); spam: " in words
    assert re.search(r"^label columns +spam, hate$", outcome.out, flags=re.MULTILINE)
    assert not re.search(r"^label column ", outcome.out, flags=re.MULTILINE)
    assert re.search(r"^- spam: \d+ of 150 rows .* have no label", outcome.out, flags=re.MULTILINE)
    assert "Caution:</strong> NOT JUDGED: hate" in Path("page.html").read_text()
    card = html.unescape(Path("card.md").read_text())
    assert "NOT JUDGED: hate" in card
    assert "- spam: whom its errors harm" in card
    assert card.index("### Category spam") < card.index("| embedding model | m |")
    assert "CAUTION" not in headeval("report", data, "--head", "heads", "--resamples", "0").out


def test_categories_of_true_and_false_are_called_by_their_names_and_stay_so_in_json(
    headeval: Headeval, data: Path
) -> None:
    common = ("report", data, "--head", "heads", "--resamples", "20", "--by", "team")
    found = document(headeval(*common, "--format", "json", "--html", "page.html", "--card", "card.md"))
    assert {tuple(part["report"]["classes"]) for part in found["categories"]} == {("false", "true")}
    for text in (html.unescape(Path("page.html").read_text()), html.unescape(Path("card.md").read_text())):
        assert "P(true)" not in text
        for name in NAMES:
            assert f"flagged when P({name}) ≥" in text
            assert f"not {name}" in text
    card = Path("card.md").read_text()
    assert "| classes | false, true |" in card  # what the file holds
    assert "| flagged class | true |" in card
    assert not re.search(r"^\| (of these )?(true|false) \|", card, flags=re.MULTILINE)


def test_every_format_shows_every_category_with_its_numbers(headeval: Headeval, data: Path) -> None:
    common = ("report", data, "--head", "heads", "--resamples", "50", "--require", "*:auc>=0.1", "--by", "team")
    found = by_name(document(headeval(*common, "--format", "json")))
    table = headeval(*common, "--html", "page.html", "--card", "card.md", "--junit", "tests.xml").out
    markdown = headeval(*common, "--format", "markdown").out
    page, card = Path("page.html").read_text(), Path("card.md").read_text()
    for name, part in found.items():
        metrics = part["report"]["metrics"]
        for text in (table, html.unescape(markdown), html.unescape(page), html.unescape(card)):
            assert name in text
            for metric in ("auc", "ap", "recall", "fpr", "ece_positive_class"):
                assert f"{metrics[metric]:.4f}" in text
            assert f"{name}:auc >= 0.1" in text
    suites = {suite.get("name"): suite for suite in ET.parse("tests.xml").getroot()}  # noqa: S314 - just written
    assert list(suites) == [f"headeval.{name}" for name in NAMES]
    for name, part in found.items():
        suite = suites[f"headeval.{name}"]
        properties = {item.get("name"): item.get("value") for item in suite.iter("property")}
        assert float(properties["auc"] or "") == part["report"]["metrics"]["auc"]
        assert [case.get("name") for case in suite.iter("testcase")] == [f"{name}:auc>=0.1"]


def test_the_table_fits_80_columns(
    headeval: Headeval, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    names = ("sexual_minors", "violence_graphic")
    write_heads(tmp_path / "heads", {name: head(index) for index, name in enumerate(names)}, force=False)
    data = write(tmp_path / "rows.parquet", rows(5000, names=names))
    monkeypatch.setattr("headeval.cli.console.WIDTH_WHEN_PIPED", 80)
    out = headeval("report", data, "--head", "heads", "--resamples", "20", "--require", "*:auc.lower>=0.5").out
    assert capsys.readouterr().out == ""
    assert max(map(len, out.splitlines())) <= 80
    assert all(re.search(rf"^  {name} ", out, flags=re.MULTILINE) for name in names)  # whole names


def test_a_note_of_many_categories_is_told_once(headeval: Headeval, data: Path) -> None:
    out = " ".join(headeval("report", data, "--head", "heads", "--resamples", "0").out.split())
    assert out.count("have no label and are left out") <= 1
    assert out.count("rates on so few rows are rough") <= 1


@pytest.mark.parametrize("name", HOSTILE, ids=ascii)
def test_hostile_names_of_categories_stay_text_in_every_format(headeval: Headeval, tmp_path: Path, name: str) -> None:
    names = ("hate", name)
    write_heads(tmp_path / "heads", {each: head(index) for index, each in enumerate(names)}, force=False)
    data = write(tmp_path / "rows.parquet", rows(names=names))
    gate = f"{name}:auc>=0.1"
    files = ("--html", "page.html", "--card", "card.md", "--junit", "tests.xml")
    outcome = headeval("report", data, "--head", "heads", "--resamples", "0", "--require", gate, *files)
    assert outcome.code == 0, outcome.err
    shown = "".join(f"\\x{ord(char):02x}" if ord(char) < 32 else char for char in name).replace("\u202e", "\\u202e")
    assert shown in re.sub(r"\n\s*", "", outcome.out)
    for text in (outcome.out, outcome.err):
        assert not re.search(r"[\x00-\x09\x0b-\x1f\x7f-\x9f\u202e]", text)
    page, card = Path("page.html").read_text(), Path("card.md").read_text()
    assert "<script>alert" not in page
    assert shown in html.unescape(page)
    assert shown in html.unescape(card)
    assert not [line for line in card.splitlines() if line.startswith("| a|b")]
    cases = [case.get("name") for case in ET.parse("tests.xml").getroot().iter("testcase")]  # noqa: S314 - just written
    assert cases == [gate.replace(name, shown)]
    found = document(headeval("report", data, "--head", "heads", "--resamples", "0", "--format", "json"))
    assert {part["name"] for part in found["categories"]} == set(names)
