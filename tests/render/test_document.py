"""The JSON document keeps its schema for every evaluation, full precision, and nothing a terminal obeys."""

import copy
import json
import math
import unicodedata
from collections.abc import Callable
from pathlib import Path
from typing import Any

import jsonschema
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import stats

from headeval.evaluation import METRICS, Evaluation, evaluate
from headeval.render.document import VERSION, evaluation_document, report_document, to_json
from headeval.report import Report, Slice
from headeval.requirement_parsing import parse_requirement
from headeval.requirements import decide

ROOT = Path(__file__).parents[2]
EXAMPLES = sorted((ROOT / "tests" / "report_examples").glob("*.json"))
OLD_SCHEMAS = {1: "report-1.schema.json"}


def schema_of(version: int) -> Any:
    name = OLD_SCHEMAS.get(version, "report.schema.json")
    return json.loads((ROOT / "schemas" / name).read_text(encoding="utf-8"))


SCHEMA = schema_of(VERSION)
VALIDATOR = jsonschema.Draft202012Validator(SCHEMA)

MAY_BE_EMPTY = {"in_sample", "undefined"}

Document = dict[str, Any]
scored_rows = st.lists(st.tuples(st.sampled_from([0.0, 1.0, 0.5]) | st.floats(0, 1), st.integers(0, 1)), min_size=1)


def written(report: Report) -> Document:
    """The document as another program reads it."""
    document: Document = json.loads(to_json(report_document(report)))
    return document


def report_of(evaluation: Evaluation, *asked: str) -> Report:
    decisions = tuple(decide(parse_requirement(text), evaluation) for text in asked)
    return Report({"data": ["a.csv"]}, "held-out", evaluation, (Slice("lang", "en", evaluation),), decisions, ("note",))


@pytest.mark.parametrize("version", [*OLD_SCHEMAS, VERSION])
def test_each_schema_is_a_schema_of_its_version(version: int) -> None:
    schema = schema_of(version)
    jsonschema.Draft202012Validator.check_schema(schema)
    assert schema["properties"]["version"]["const"] == version


def test_the_schema_requires_every_metric_there_is() -> None:
    assert set(SCHEMA["$defs"]["metrics"]["required"]) == set(METRICS)
    assert set(SCHEMA["$defs"]["metrics"]["properties"]) == set(METRICS)


@pytest.mark.parametrize("path", EXAMPLES, ids=lambda path: path.name)
def test_documents_written_earlier_stay_valid(path: Path) -> None:
    document = json.loads(path.read_text(encoding="utf-8"))
    jsonschema.Draft202012Validator(schema_of(document["version"])).validate(document)


def test_there_is_an_example_of_every_old_version() -> None:
    assert {json.loads(path.read_text(encoding="utf-8"))["version"] for path in EXAMPLES} >= set(OLD_SCHEMAS)


@settings(max_examples=60)
@given(
    rows=scored_rows,
    convention=st.sampled_from(["top-label", "top-label-left", "positive-class"]),
    binning=st.sampled_from(["equal-width", "equal-mass"]),
    n_bins=st.none() | st.integers(1, 20),
    threshold=st.floats(0, 1),
    asked=st.fixed_dictionaries(
        {"confidence": st.none() | st.sampled_from([0.5, 0.95, 0.999]), "n_resamples": st.sampled_from([0, 20])},
        optional={"prevalence": st.floats(0.001, 0.999), "weights": st.just(True), "groups": st.just(True)},
    ),
)
def test_every_evaluation_of_probabilities_is_valid(rows, convention, binning, n_bins, threshold, asked) -> None:
    scores, labels = zip(*rows, strict=True)
    asked |= {"weights": np.linspace(0, 2, len(rows) + 1)[1:]} if "weights" in asked else {}
    asked |= {"groups": np.arange(len(rows)) // 2} if "groups" in asked else {}
    how = {"ece_convention": convention, "n_bins": n_bins, "binning": binning}
    evaluation = evaluate(scores, labels, kind="prob", threshold=threshold, **how, **asked)
    document = written(report_of(evaluation, "auc>=0.5", "log_loss<=1", "precision>0.2"))
    VALIDATOR.validate(document)
    missing = {name for name, value in document["metrics"].items() if value is None}
    assert missing == set(document["undefined"])


@settings(max_examples=60)
@given(st.lists(st.tuples(st.floats(-1e6, 1e6), st.integers(0, 1)), min_size=1))
def test_every_evaluation_of_logits_is_valid(rows: list[tuple[float, int]]) -> None:
    scores, labels = zip(*rows, strict=True)
    VALIDATOR.validate(written(report_of(evaluate(scores, labels, kind="logit", n_resamples=20))))


def test_a_report_with_every_part_is_valid(full_report: Report) -> None:
    document = written(full_report)
    VALIDATOR.validate(document)
    assert not [key for key, value in document.items() if value in (None, [], {}) and key not in MAY_BE_EMPTY]
    assert document["weighted"] is (document["comparison"]["mcnemar_p"] is None)
    assert document["resampling"]["grouped"] is document["weighted"]
    assert document["passed"] is False
    for part in (document, document["comparison"]["baseline_evaluation"], *document["slices"]):
        assert part["intervals"].keys() >= part["guarantees"].keys() > {"recall", "fpr"}


def test_intervals_have_full_precision(full_report: Report) -> None:
    document, evaluation = written(full_report), full_report.evaluation
    for info, metric in evaluation.metrics():
        for key, interval in (("intervals", metric.interval), ("guarantees", metric.guarantee)):
            told = document[key].get(info.name)
            assert told == (
                None
                if interval is None
                else {"lower": interval.lower, "upper": interval.upper, "method": interval.method}
            )
    assert document["confidence"] == 0.95


def test_hostile_text_keeps_the_document_valid_and_comes_back_unchanged(hostile_report: Report, hostile: str) -> None:
    text = to_json(report_document(hostile_report))
    document = json.loads(text)
    VALIDATOR.validate(document)
    assert document["classes"][1] == document["how"] == document["slices"][0]["value"] == hostile
    assert document["provenance"][hostile] == hostile
    obeyed = {"Cc", "Cf", "Cs", "Zl", "Zp"}
    assert not [char for char in text if char != "\n" and unicodedata.category(char) in obeyed]


def test_json_is_ascii_so_that_no_encoding_of_stdout_changes_it() -> None:
    assert to_json({"class": "schädlich 有害"}) == '{\n  "class": "sch\\u00e4dlich \\u6709\\u5bb3"\n}\n'


@given(st.text(st.characters(), max_size=20))
def test_any_text_survives_json(text: str) -> None:
    assert json.loads(to_json([text])) == [text]


def test_a_number_that_json_cannot_say_is_refused() -> None:
    with pytest.raises(ValueError, match="not JSON compliant"):
        to_json({"loss": math.nan})


def test_metrics_have_full_precision_and_keep_their_order(report: Report) -> None:
    document = written(report)
    expected = {info.name: metric.value for info, metric in report.evaluation.metrics()}
    assert document["metrics"] == expected
    assert list(document["metrics"]) == list(METRICS)
    assert isinstance(document["metrics"]["n"], int)


def test_undefined_is_null_with_a_reason() -> None:
    document = evaluation_document(evaluate([0.1, 0.2], [0, 0], kind="prob"))
    assert (document["metrics"]["auc"], document["undefined"]["auc"]) == (None, "no row is positive")
    assert (document["metrics"]["fpr"], document["undefined"].get("fpr")) == (0.0, None)


def test_an_infinite_log_loss_is_null_and_called_infinite() -> None:
    document = written(report_of(evaluate([0.0, 0.9], [1, 0], kind="prob"), "log_loss<=1"))
    assert document["metrics"]["log_loss"] is None
    assert document["undefined"]["log_loss"].startswith("infinite: ")
    (requirement,) = document["requirements"]
    assert (requirement["value"], requirement["verdict"]) == (None, "not met")
    assert requirement["reason"].startswith("infinite: ")


def test_empty_bins_have_no_confidence() -> None:
    # Wilson of 0 of 1 row: 0 to z²/(1 + z²); of 1 of 1 row the mirror image.
    z2 = stats.norm.ppf(0.975) ** 2
    document = evaluation_document(evaluate([0.95, 0.05], [1, 0], kind="prob", n_bins=2))
    intervals = [entry.pop("share_positive_interval") for entry in document["reliability"]]
    assert document["reliability"] == [
        {"lower": 0.0, "upper": 0.5, "count": 1, "mean_prob": 0.05, "share_positive": 0.0},
        {"lower": 0.5, "upper": 1.0, "count": 1, "mean_prob": 0.95, "share_positive": 1.0},
    ]
    assert [(entry["lower"], entry["upper"]) for entry in intervals] == [
        (0.0, pytest.approx(z2 / (1 + z2))),
        (pytest.approx(1 / (1 + z2)), 1.0),
    ]
    document = evaluation_document(evaluate([0.95], [1], kind="prob", n_bins=2))
    assert document["reliability"][0] == {
        "lower": 0.0,
        "upper": 0.5,
        "count": 0,
        "mean_prob": None,
        "share_positive": None,
        "share_positive_interval": None,
    }


@pytest.mark.parametrize(
    ("asked", "passed"),
    [((), None), (("n>=2",), True), (("n>=2", "n>2"), False), (("n>=2", "precision>=0"), False)],
)
def test_passed_is_true_only_when_all_was_met(asked: tuple[str, ...], passed: bool | None) -> None:
    document = written(report_of(evaluate([0.1, 0.2], [1, 0], kind="prob"), *asked))
    assert document["passed"] is passed
    VALIDATOR.validate(document)


def test_the_closed_side_is_that_of_the_convention() -> None:
    tables = evaluation_document(evaluate([0.1, 0.9], [0, 1], kind="prob", ece_convention="top-label-left"))
    assert [(table["convention"], table["closed"]) for table in tables["calibration"]] == [
        ("top-label-left", "left"),
        ("positive-class", "right"),
    ]


def _set(*path: str | int, value: object) -> Callable[[Document], None]:
    def change(document: Document) -> None:
        target: Any = document
        for key in path[:-1]:
            target = target[key]
        target[path[-1]] = value

    return change


WRONG: dict[str, Callable[[Document], None]] = {
    "another format": _set("format", value="linear-head"),
    "another version": _set("version", value=VERSION + 1),
    "an unknown key": _set("extra", value=1),
    "an unknown key of a slice": _set("slices", 0, "extra", value=1),
    "no metrics": lambda document: document.pop("metrics"),
    "a metric missing": lambda document: document["metrics"].pop("auc"),
    "a metric as text": _set("metrics", "auc", value="0.9"),
    "an AUC above 1": _set("metrics", "auc", value=1.5),
    "a negative log loss": _set("metrics", "log_loss", value=-1),
    "a count with a fraction": _set("counts", "true_positives", value=1.5),
    "three classes": _set("classes", value=["a", "b", "c"]),
    "a threshold above 1": _set("threshold", value=50),
    "no row": _set("n", value=0),
    "no calibration": _set("calibration", value=[]),
    "an unknown convention": _set("calibration", 0, "convention", value="classwise"),
    "an empty bin with a confidence": _set("reliability", 0, "count", value=0),
    "a full bin without an accuracy": _set("reliability", 0, "accuracy", value=None),
    "an unknown verdict": _set("requirements", 0, "verdict", value="passed"),
    "passed though a requirement was not met": _set("passed", value=True),
    "passed left open": _set("passed", value=None),
    "passed though nothing was required": _set("requirements", value=[]),
    "a note that is no text": _set("notes", value=[1]),
}


@pytest.mark.parametrize("change", WRONG.values(), ids=WRONG)
def test_a_wrong_document_is_refused(change: Callable[[Document], object]) -> None:
    right = written(report_of(evaluate([0.9, 0.02], [1, 0], kind="prob"), "n>=2", "n>2"))
    VALIDATOR.validate(right)
    wrong = copy.deepcopy(right)
    change(wrong)
    with pytest.raises(jsonschema.ValidationError):
        VALIDATOR.validate(wrong)


def test_new_metrics_and_any_provenance_are_allowed() -> None:
    document = written(report_of(evaluate([0.9, 0.2], [1, 0], kind="prob")))
    document["metrics"]["matthews"] = None
    document["provenance"]["solver"] = {"steps": 6}
    VALIDATOR.validate(document)
