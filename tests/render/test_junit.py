"""JUnit XML: what CI systems read is well-formed, counts rightly, and says why a test fails."""

import dataclasses
import json
import math
import re
from pathlib import Path
from xml.etree import ElementTree

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from headeval.comparison import Comparison
from headeval.core.intervals import Difference, Interval
from headeval.core.thresholds import DecisionChanges
from headeval.evaluation import Evaluation, evaluate
from headeval.head_history import RowsSeen
from headeval.metric import Metric
from headeval.multiclass import CLASS_METRICS, CLASS_RATES, evaluate_classes
from headeval.render.junit import junit_xml
from headeval.report import Report, Slice
from headeval.requirement_parsing import parse_requirement
from headeval.requirements import decide, decide_each

NAUGHTY = json.loads((Path(__file__).parent.parent / "data/hostile/naughty_strings.json").read_text(encoding="utf-8"))
# What XML 1.0 cannot hold, whether written as it is or as a character reference (production [2], Char).
IMPOSSIBLE = "\x00\x01\x08\x0b\x0c\x0e\x1f\ufffe\uffff\ud800\udfff"

EVALUATION = dataclasses.replace(
    evaluate([0.9, 0.6, 0.4, 0.1], [1, 1, 0, 0], kind="prob", n_resamples=0),
    auc=Metric(0.9, interval=Interval(0.84, 0.95, 0.95, "DeLong")),
    recall=Metric(1 / 3, "", Interval(0.2, 0.5, 0.95, "Wilson"), Interval(0.1, 0.6, 0.95, "Clopper-Pearson")),
    precision=Metric(None, "nothing is flagged"),
)


def report(*asked: str, **more: object) -> Report:
    decisions = tuple(decide(parse_requirement(text), EVALUATION) for text in asked)
    return Report({"head": "linear-head.json"}, "held-out", EVALUATION, decisions=decisions, **more)


def parsed(text: str) -> ElementTree.Element:
    return ElementTree.fromstring(text)  # noqa: S314  what was just written, not what somebody sent


def check_shape(suite: ElementTree.Element) -> None:
    """The shape that readers of JUnit XML agree on: one suite, its properties, test cases and output, in that order."""
    assert suite.tag == "testsuite"
    assert suite.attrib.keys() == {"name", "tests", "failures", "errors", "skipped", "time"}
    assert [child.tag for child in suite if child.tag != "testcase"] == ["properties", "system-out"]
    assert suite[0].tag == "properties"
    assert suite[-1].tag == "system-out"
    assert all(entry.tag == "property" and entry.attrib.keys() == {"name", "value"} for entry in suite[0])
    names = [entry.get("name") for entry in suite[0]]
    assert len(names) == len(set(names))
    cases = suite.findall("testcase")
    assert int(suite.get("tests", "")) == len(cases)
    assert int(suite.get("failures", "")) == len(suite.findall("testcase/failure"))
    assert int(suite.get("errors", "")) == len(suite.findall("testcase/error"))
    for case in cases:
        assert case.attrib.keys() == {"name", "classname", "time"}
        assert len(case) == 1
        assert case[0].tag in {"failure", "error", "system-out"}
        if case[0].tag != "system-out":
            assert case[0].attrib.keys() == {"message", "type"}


def properties(suite: ElementTree.Element) -> dict[str, str]:
    return {entry.get("name", ""): entry.get("value", "") for entry in suite.iter("property")}


def test_each_verdict_is_what_ci_takes_it_for() -> None:
    suite = parsed(junit_xml(report("auc>=0.85", "auc>=0.95", "auc.lower>=0.9", "precision>=0")))
    check_shape(suite)
    assert (suite.get("name"), suite.get("tests"), suite.get("failures"), suite.get("errors")) == (
        "headeval",
        "4",
        "1",
        "2",
    )
    met, not_met, straddled, undefined = suite.iter("testcase")
    assert (met.get("name"), met[0].tag, met.get("classname")) == ("auc>=0.85", "system-out", "headeval.require")
    assert (not_met[0].tag, not_met[0].get("type")) == ("failure", "not met")
    assert not_met[0].get("message") == "not met: auc is 0.9 (interval 0.84 to 0.95 by DeLong)"
    assert (straddled[0].tag, straddled[0].get("type")) == ("error", "undecided")
    message = straddled[0].get("message") or ""
    assert message.startswith("undecided: auc.lower is 0.84 (auc 0.9, interval 0.84 to 0.95 by DeLong): too few rows")
    assert undefined[0].get("message") == "undecided: precision is undefined: nothing is flagged"


def test_numbers_are_properties_in_full_precision_under_the_names_of_requirements() -> None:
    found = properties(parsed(junit_xml(report())))
    assert float(found["recall"]) == 1 / 3
    assert (found["recall.lower"], found["recall.upper"]) == ("0.1", "0.6")  # the exact interval, which gates use
    assert found["auc.lower"] == "0.84"
    assert found["n"] == "4"
    assert found["precision"] == "undefined: nothing is flagged"
    assert found["confidence"] == "0.95"
    assert found["provenance.head"] == "linear-head.json"


@pytest.mark.parametrize(
    ("seen", "told"),
    [(None, "not known"), (RowsSeen(4, 1, 0, 1, 4), "no"), (RowsSeen(4, 4, 0, 4, 4), "fitted")],
)
def test_rows_that_made_the_head_are_told(seen: RowsSeen | None, told: str) -> None:
    assert properties(parsed(junit_xml(report(seen=seen))))["in_sample"] == told


def test_of_several_classes_all_and_each_are_properties_under_the_names_of_requirements() -> None:
    """Counted by hand: of seven rows five are taken for what they are; b is taken for a once and for itself once."""
    probs = np.eye(3)[[0, 0, 1, 1, 2, 0, 0]] * 0.7 + 0.1
    names = ("a", "b", "c\x1b")
    classes = evaluate_classes(probs, [0, 0, 1, 2, 2, 1, 0], kind="prob", classes=names, n_resamples=0)
    wanted = [parse_requirement(text, of_parts=True) for text in ("b:recall>=0.4", "top1_accuracy>=0.8", "recall>=0.1")]
    decisions = tuple(decide(one, EVALUATION, None, classes) for one in wanted)
    suite = parsed(junit_xml(Report({}, "held-out", EVALUATION, decisions=decisions, classes=classes)))
    check_shape(suite)
    told = properties(suite)
    assert told["all_classes"] == "a, b, c\\x1b (flagged)"
    assert (told["top1_accuracy"], told["b:recall"], told["b:precision"]) == (repr(5 / 7), "0.5", "0.5")
    assert (told["b:recall.interval"], told["c\\x1b:recall"]) == ("Clopper-Pearson", "0.5")
    missing = {*CLASS_METRICS, *(f"{one}:{metric}" for one in ("a", "b", "c\\x1b") for metric in CLASS_RATES)}
    assert missing <= told.keys()
    assert told["recall"] == repr(1 / 3)
    of_class, of_all, plain = (case[0].text or "" for case in suite.iter("testcase"))
    assert of_class.splitlines()[1].startswith("b:recall: of the rows of b, those whose likeliest class it is; ")
    assert "without a prefix" not in of_all + plain


def test_where_there_are_two_classes_no_property_is_of_all() -> None:
    told = properties(parsed(junit_xml(report("auc>=0.85"))))
    assert not [name for name in told if ":" in name or name in CLASS_METRICS or name == "all_classes"]


def test_a_comparison_adds_its_differences() -> None:
    differences = {
        "auc": Difference(-1 / 3, Interval(-0.5, 0.1, 0.95, "DeLong"), 0.2),
        "f1": Difference(0.25, None, None),
    }
    comparison = Comparison("old.json", EVALUATION, differences, DecisionChanges(0, 0), 0, 0, 1.0)
    suite = parsed(junit_xml(report(comparison=comparison)))
    check_shape(suite)
    found = properties(suite)
    assert (float(found["auc.diff"]), found["auc.diff.lower"], found["auc.diff.upper"]) == (-1 / 3, "-0.5", "0.1")
    assert (found["f1.diff"], found["baseline"]) == ("0.25", "old.json")
    assert "f1.diff.lower" not in found


def test_slices_that_fail_are_named_in_the_text_of_their_requirement() -> None:
    parts = tuple(
        Slice("language", value, dataclasses.replace(EVALUATION, auc=Metric(auc)))
        for value, auc in (("de", 0.5), ("en", 0.9), ("fr", None))
    )
    each = decide_each([parse_requirement("auc>=0.8", each=True)], parts, 1)
    suite = parsed(junit_xml(report(each=each)))
    check_shape(suite)
    (case,) = suite.iter("testcase")
    assert case.get("classname") == "headeval.require-each"
    assert case[0].get("message") == "not met: 1 of 2 judged slices do not meet it, 1 not judged"
    assert "language=de: not met: auc is 0.5" in (case[0].text or "")
    assert "language=fr: not judged" in (case[0].text or "")
    assert "language=en" not in (case[0].text or "")
    none = decide_each([parse_requirement("auc>=0.8", each=True)], parts, 30)
    (case,) = parsed(junit_xml(report(each=none))).iter("testcase")
    assert (case[0].tag, case[0].get("type")) == ("error", "undecided")
    assert "no slice could be judged" in (case[0].get("message") or "")


def test_the_same_report_gives_the_same_bytes_and_no_time_of_day() -> None:
    first = junit_xml(report("auc>=0.95"))
    assert first == junit_xml(report("auc>=0.95"))
    assert "timestamp" not in first
    assert set(re.findall(r' time="([^"]*)"', first)) == {"0"}


def test_what_is_infinite_is_shown_so() -> None:
    impossible = evaluate([0.0, 1.0], [1, 1], kind="prob", n_resamples=0)
    judged = dataclasses.replace(
        report(), evaluation=impossible, decisions=(decide(parse_requirement("log_loss<=1"), impossible),)
    )
    suite = parsed(junit_xml(judged))
    check_shape(suite)
    assert properties(suite)["log_loss"] == "∞"
    assert (suite.get("failures"), impossible.log_loss.value) == ("1", math.inf)


def hostile(text: str) -> Report:
    """A report in which every text from outside is the same."""
    evaluation: Evaluation = dataclasses.replace(EVALUATION, classes=(text, text), precision=Metric(None, text))
    slices = (Slice(text, text, dataclasses.replace(evaluation, auc=Metric(0.1))),)
    comparison = Comparison(text, evaluation, {}, DecisionChanges(0, 0), 0, 0, 1.0)
    return Report(
        {text: text, "data": [text]},
        text,
        evaluation,
        slices,
        (decide(parse_requirement("precision>=0"), evaluation),),
        each=decide_each([parse_requirement(name) for name in ("auc>=0.9", "precision>=0")], slices, 1),
        comparison=comparison,
    )


def check_hostile(text: str) -> None:
    suite = parsed(junit_xml(hostile(text)))  # expat refuses what XML 1.0 cannot hold
    check_shape(suite)
    assert (suite.get("tests"), suite.get("failures"), suite.get("errors")) == ("3", "1", "2")
    assert not [element.tag for element in suite.iter() if element.tag not in TAGS]


TAGS = {"testsuite", "properties", "property", "testcase", "failure", "error", "system-out"}


def test_names_that_are_naughty_stay_text() -> None:
    for text in NAUGHTY:
        check_hostile(text)


@pytest.mark.parametrize("text", [*IMPOSSIBLE, "]]>", "&#0;", "<![CDATA[", "a\r\nb\tc", "--><x/>", "'\"&<>"], ids=ascii)
def test_what_xml_cannot_hold_is_made_printable(text: str) -> None:
    check_hostile(text)
    assert properties(parsed(junit_xml(hostile(text))))["how"].isprintable()


@given(st.text(st.characters() | st.sampled_from(IMPOSSIBLE + "<>&'\"\r\n\t"), max_size=20))
def test_any_name_gives_well_formed_xml(text: str) -> None:
    check_hostile(text)
