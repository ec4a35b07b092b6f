"""Gates of commands: what was not measured passes none, and a crash, a signal and wrong usage have other codes."""

import itertools
import json
import os
import re
import signal
import subprocess
import sys
import xml.etree.ElementTree as ET
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from headeval import errors
from headeval.cli import judged_report, main
from headeval.errors import UsageError
from headeval.evaluation import METRICS
from headeval.multiclass import CLASS_METRICS, CLASS_RATES
from headeval.requirement_parsing import parse_requirement

Headeval = Callable[..., Any]
OPERATORS = (">=0", ">0", "<=1", "<1")
# What must change no code, each alone where there is time.
BESIDE = [(), ("--quiet", "--format", "json", "--junit", "gates.xml")]
ALONE = [
    pytest.param(one, marks=pytest.mark.slow) for one in (("--quiet",), ("--format", "json"), ("--junit", "gates.xml"))
]
LATER = [*BESIDE, *ALONE]


def table(**columns: Any) -> str:
    pq.write_table(pa.table(columns), "t.parquet")
    return "t.parquet"


def both_classes() -> str:
    return table(p=[0.9, 0.2, 0.8, 0.1], old=[0.8, 0.3, 0.7, 0.2], label=[1, 0, 1, 0], team=["a", "a", "b", "b"])


def all_forms(names: Any, *, of: str = "", baseline: bool = False) -> list[str]:
    """Every requirement on these names that can be asked, at the ends of the scale, where any number would do."""
    found = []
    for name, end, operator in itertools.product(names, ("", ".lower", ".upper"), OPERATORS):
        text = f"{of}{name}{'.diff' if baseline else ''}{end}{operator}"
        try:
            parse_requirement(text, baseline=baseline, of_parts=True)
        except UsageError:
            continue
        found.append(text)
    return found


def judged(headeval: Headeval, *arguments: object, requirements: list[str], option: str = "--require") -> Any:
    """The JSON of a report and its JUnit file, both of which fail."""
    asked = [word for text in requirements for word in (option, text)]
    outcome = headeval(
        "report", *arguments, *asked, "--format", "json", "--junit", "gates.xml", "--force", "--resamples", "0", "-q"
    )
    assert outcome.code == 1, outcome.err
    found = json.loads(outcome.out)
    assert found["passed"] is False
    suite = ET.parse("gates.xml").getroot()  # noqa: S314 - just written
    assert int(suite.attrib["failures"]) + int(suite.attrib["errors"]) > 0
    return found


# --- nothing measured: every name in every form


@pytest.mark.parametrize(
    ("labels", "threshold", "undefined"),
    [
        ([1, 1, 1], 0.95, {"auc", "ap", "partial_auc", "best_f1", "precision", "specificity", "fpr"}),
        ([0, 0, 0], 0.95, {"auc", "ap", "partial_auc", "best_f1", "precision", "recall", "f1"}),
    ],
)
def test_of_one_class_whatever_is_undefined_meets_no_requirement(
    headeval: Headeval, labels: list[int], threshold: float, undefined: set[str]
) -> None:
    data = table(p=[0.9, 0.6, 0.7], old=[0.8, 0.3, 0.7], label=labels)
    options = ("--prob", "p", "--threshold", threshold, "--baseline-prob", "old")
    forms = all_forms(METRICS) + all_forms(METRICS, baseline=True)
    found = judged(headeval, data, *options, requirements=forms)
    assert undefined <= set(found["undefined"])
    verdicts: dict[str, set[str]] = {}
    for one in found["requirements"]:
        verdicts.setdefault(one["metric"], set()).add(one["verdict"])
        if one["value"] is None:
            assert (one["verdict"], bool(one["reason"])) == ("undecided", True)
    assert {name for name, said in verdicts.items() if said == {"undecided"}} >= undefined


@pytest.mark.parametrize("required", ["recall.lower>=0", "auc<1"])
@pytest.mark.parametrize("extra", [*LATER, ("--format", "markdown")])
def test_one_undefined_metric_is_enough_in_every_format(headeval: Headeval, required: str, extra: Any) -> None:
    data = table(p=[0.9, 0.6, 0.7], label=[0, 0, 0])
    outcome = headeval("report", data, "--prob", "p", "--require", "n>=1", "--require", required, *extra)
    assert outcome.code == 1
    if "json" not in extra:
        assert "UNDECIDED" in outcome.out


def test_of_a_class_without_rows_no_average_and_no_rate_meets_a_requirement(headeval: Headeval) -> None:
    data = table(a=[0.7, 0.2, 0.6, 0.1], b=[0.2, 0.7, 0.3, 0.8], c=[0.1] * 4, label=["a", "b", "a", "b"])
    forms = all_forms(CLASS_METRICS) + all_forms(CLASS_RATES, of="*:") + all_forms(CLASS_RATES, of="c:")
    found = judged(headeval, data, "--prob", "a,b,c", "--classes", "a,b,c", requirements=forms)
    said = [(re.split("[<>]", one["requirement"])[0], one["verdict"]) for one in found["requirements"]]
    undecided = {name for name, verdict in said if verdict == "undecided"}
    assert {
        "macro_recall",
        "macro_f1",
        "macro_precision",
        "balanced_accuracy",
        "macro_auc",
        "hand_till_auc",
    } <= undecided
    assert {"c:auc", "c:ap", "c:recall", "c:precision", "c:f1"} <= undecided
    for one in found["requirements"]:
        assert one["value"] is not None or one["verdict"] == "undecided"


@pytest.mark.parametrize("of", ["*:", "spam:"])
def test_a_category_that_is_left_out_meets_no_requirement(headeval: Headeval, of: str) -> None:
    unknown = pa.array([None] * 4, pa.int64())
    data = table(hate=[1, 0, 1, 0], spam=unknown, ph=[0.9, 0.1, 0.8, 0.2], ps=[0.5] * 4, team=["a", "b", "a", "b"])
    options = ("--prob", "ph,ps", "--label", "hate,spam")
    found = judged(headeval, data, *options, requirements=all_forms(METRICS, of=of))
    of_spam = [one for one in found["requirements"] if one["requirement"].startswith("spam:")]
    assert len(of_spam) == len(all_forms(METRICS))
    assert {one["verdict"] for one in of_spam} == {"undecided"}
    assert found["categories"][1]["not_judged"]
    slices = ("--by", "team", "--min-rows", "1")
    found = judged(headeval, data, *options, *slices, requirements=[f"{of}n>=0"], option="--require-each")
    assert found["requirements_of_each_slice"][-1]["verdict"] == "undecided"


def test_slices_in_which_nothing_can_be_judged_meet_no_requirement(headeval: Headeval) -> None:
    data = both_classes()
    options = ("--prob", "p", "--by", "team", "--min-rows", "3")
    forms = all_forms(name for name in METRICS if name != "n")
    found = judged(headeval, data, *options, requirements=forms, option="--require-each")
    decided = found["requirements_of_each_slice"]
    assert [(one["verdict"], one["judged"]) for one in decided] == [("undecided", 0)] * len(forms)
    # Of small slices too it is asked how many rows they have.
    found = judged(headeval, data, *options, requirements=["n>=3"], option="--require-each")
    assert [one["slice"] for one in found["requirements_of_each_slice"][0]["failing"]] == ["a", "b"]


def test_a_slice_whose_rows_have_no_weight_is_named_and_not_judged(headeval: Headeval) -> None:
    data = table(p=[0.9, 0.2, 0.8, 0.1], label=[1, 0, 1, 0], w=[1.0, 1, 0, 0], team=["a", "a", "b", "b"])
    options = ("--prob", "p", "--weight", "w", "--by", "team", "--min-rows", "1", "--require-each", "recall<=1")
    outcome = headeval("report", data, *options)
    assert (outcome.code, outcome.out) == (3, "")
    assert "--by 'team': the slice 'b' has no weight" in outcome.err


# --- the codes


def bug(*_: object, **__: object) -> None:
    raise ZeroDivisionError("boom")


def interrupted(*_: object, **__: object) -> None:
    raise KeyboardInterrupt


def closed(*_: object, **__: object) -> None:
    raise BrokenPipeError


ENDINGS: dict[str, tuple[int, tuple[str, ...]]] = {
    "met": (0, ("--prob", "p", "--require", "auc>=1")),
    "unmet": (1, ("--prob", "p", "--require", "auc<1")),
    "undecided": (1, ("--prob", "p", "--threshold", "0.95", "--require", "precision>=0")),
    "no such metric": (2, ("--prob", "p", "--require", "aux>=0.5")),
    "an empty requirement": (2, ("--prob", "p", "--require", "")),
    "no number": (2, ("--prob", "p", "--require", "auc>=nan")),
    "no slices": (2, ("--prob", "p", "--require-each", "auc>=0.5")),
    "no such option": (2, ("--prob", "p", "--require", "auc>=0.5", "--bogus")),
    "no such column": (3, ("--prob", "absent", "--require", "n>=0")),
    "no head": (4, ("--head", "absent.json", "--require", "n>=0")),
    "no place": (6, ("--prob", "p", "--require", "auc>=1", "--card", "absent/card.md")),
    "no place, unmet": (6, ("--prob", "p", "--require", "auc<1", "--card", "absent/card.md")),
}


@pytest.mark.parametrize("ending", ENDINGS)
@pytest.mark.parametrize("extra", LATER)
def test_every_ending_has_its_code_whatever_is_asked_for_beside(headeval: Headeval, ending: str, extra: Any) -> None:
    code, arguments = ENDINGS[ending]
    outcome = headeval("report", both_classes(), *arguments, *extra)
    assert outcome.code == code, outcome.err
    assert (outcome.out == "") is (code > 1)
    assert Path("gates.xml").exists() is (code <= 1 and "--junit" in extra)
    if "json" in extra and code <= 1:
        assert json.loads(outcome.out)["passed"] is (code == 0)


@pytest.mark.parametrize(("raised", "code"), [(bug, 70), (interrupted, 130), (closed, 141)])
@pytest.mark.parametrize("extra", LATER)
def test_a_crash_and_an_interrupt_are_neither_met_nor_unmet(
    headeval: Headeval, monkeypatch: pytest.MonkeyPatch, raised: Any, code: int, extra: Any
) -> None:
    monkeypatch.setattr(judged_report, "judged_report", raised)
    outcome = headeval("report", both_classes(), "--prob", "p", "--require", "auc>=1", *extra)
    assert (outcome.code, outcome.out, Path("gates.xml").exists()) == (code, "", False)


@pytest.mark.parametrize("extra", LATER)
@pytest.mark.parametrize("kind", ["no row", "a header alone", "0 bytes", "no known label", "an empty folder"])
def test_data_of_no_rows_is_error_3_and_never_met(headeval: Headeval, kind: str, extra: Any) -> None:
    data = "t.csv"
    if kind == "no row":
        data = table(p=pa.array([], pa.float64()), label=pa.array([], pa.int64()))
    elif kind == "no known label":
        data = table(p=[0.5, 0.6], label=pa.array([None, None], pa.int64()))
        extra = (*extra, "--drop-unlabelled")
    elif kind == "an empty folder":
        Path("t.csv").mkdir()
    else:
        Path("t.csv").write_text("p,label\n" if kind == "a header alone" else "")
    outcome = headeval("report", data, "--prob", "p", "--require", "n>=0", *extra)
    assert (outcome.code, outcome.out, Path("gates.xml").exists()) == (3, "", False)


@pytest.mark.parametrize("place", ["absent/gates.xml", "there.xml", "folder"])
@pytest.mark.parametrize("required", ["auc>=1", "auc<1"])
def test_test_cases_that_cannot_be_written_are_error_6_met_or_not(
    headeval: Headeval, place: str, required: str
) -> None:
    Path("there.xml").write_bytes(b"of an earlier run")
    Path("folder").mkdir()
    outcome = headeval("report", both_classes(), "--prob", "p", "--require", required, "--junit", place)
    assert (outcome.code, outcome.out) == (6, "")
    assert Path("there.xml").read_bytes() == b"of an earlier run"


def test_the_codes_of_all_endings_differ() -> None:
    kinds = [error.exit_code for error in errors.HeadevalError.__subclasses__()]
    codes = [0, 1, *kinds, main.BUG, main.INTERRUPTED, main.CLOSED_PIPE, 128 + signal.SIGTERM, 128 + signal.SIGKILL]
    assert sorted(codes) == [0, 1, 2, 3, 4, 5, 6, 70, 130, 137, 141, 143]
    assert errors.HeadevalError.exit_code == main.BUG


@pytest.mark.slow
def test_a_killed_report_is_neither_met_nor_unmet(tmp_path: Path) -> None:
    """The shell says 128 + 9, and so does a process that is waited for, as −9."""
    pq.write_table(pa.table({"p": [0.9, 0.1], "label": [1, 0]}), tmp_path / "t.parquet")
    program = (
        "import os, signal, headeval.__main__ as entry\n"
        "from headeval.cli import console, report\n"
        "report.write = lambda text: os.kill(os.getpid(), signal.SIGKILL)\n"
        "entry.main()\n"
    )
    arguments = ("report", "t.parquet", "--prob", "p", "--require", "auc>=0.5", "--format", "json", "--resamples", "0")
    command = [sys.executable, "-c", program, *arguments]
    done = subprocess.run(command, cwd=tmp_path, capture_output=True, check=False, env=dict(os.environ), timeout=120)
    assert (done.returncode, done.stdout) == (-signal.SIGKILL, b"")
