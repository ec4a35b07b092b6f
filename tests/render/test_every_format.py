"""One Evaluation says the same numbers in every format, and text from outside stays text in all of them."""

import dataclasses
import html.parser
import io
import json
import math
import re
import unicodedata
from collections.abc import Callable, Iterator
from typing import Any

import pytest
from rich.console import Console

from headeval.evaluation import METRICS, Evaluation, evaluate
from headeval.head_history import RowsSeen
from headeval.metric import Metric
from headeval.printable import printable
from headeval.render.document import report_document, to_json
from headeval.render.markdown import render_markdown
from headeval.render.numbers import UNDEFINED, metric_value, number, signed
from headeval.render.page import render_page
from headeval.render.terminal import render_report
from headeval.report import Report
from headeval.requirement_parsing import parse_requirement
from headeval.requirements import decide, decide_each
from headeval.slicing import judge_slice

Rows = list[list[str]]


class _Cells(html.parser.HTMLParser):
    """The cells of every table row, and term and text of every definition, with tags and references resolved."""

    def __init__(self) -> None:
        super().__init__()
        self.rows: Rows = []
        self._open = False

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        if tag in {"tr", "dt"}:
            self.rows.append([])
        self._open = tag in {"td", "th", "dt", "dd"}
        if self._open:
            self.rows[-1].append("")

    def handle_endtag(self, tag: str) -> None:
        self._open = False

    def handle_data(self, data: str) -> None:
        if self._open:
            self.rows[-1][-1] += data


def terminal(report: Report, width: int = 80) -> str:
    console = Console(file=io.StringIO(), width=width, force_terminal=False, color_system=None)
    console.print(render_report(report))
    return console.file.getvalue()


def terminal_rows(report: Report) -> Rows:
    return [re.split(r" {2,}", line.strip()) for line in terminal(report, 200).splitlines()]


def markdown_rows(report: Report) -> Rows:
    lines = html.unescape(render_markdown(report)).splitlines()
    return [re.split(r" \| |: ", re.sub(r"^[|-] | \|$", "", line)) for line in lines]


def page_rows(report: Report) -> Rows:
    parser = _Cells()
    parser.feed(render_page(report))
    return parser.rows


FORMATS: dict[str, Callable[[Report], Rows]] = {
    "terminal": terminal_rows,
    "markdown": markdown_rows,
    "page": page_rows,
}
ROW_OF = {"n": "rows judged", "ece_corrected": "corrected", "ece_positive_class": "ECE"}

EVALUATIONS = {
    "many rows": None,
    "one class": evaluate([0.1, 0.2, 0.3], [0, 0, 0], kind="prob"),
    "every row positive": evaluate([0.1, 0.2, 0.3], [1, 1, 1], kind="prob"),
    "infinite log loss": evaluate([0.0, 1.0, 0.5], [1, 1, 0], kind="prob"),
    "nearly perfect": evaluate([40.0] * 40 + [-40.0] * 40, [1] * 40 + [0] * 40, kind="logit"),
}


@pytest.fixture(params=EVALUATIONS, ids=lambda name: name.replace(" ", "-"))
def judged(request: pytest.FixtureRequest, evaluation: Evaluation) -> Evaluation:
    return EVALUATIONS[request.param] or evaluation


def shown(name: str, metric: Metric) -> str:
    return metric_value(metric, whole=name == "n")


@pytest.mark.parametrize("rows_of", FORMATS.values(), ids=FORMATS)
def test_every_metric_stands_in_its_row(rows_of: Callable[[Report], Rows], judged: Evaluation) -> None:
    rows = rows_of(Report({}, "held-out", judged))
    for info, metric in judged.metrics():
        title, value = ROW_OF.get(info.name, info.title), shown(info.name, metric)
        found = [row for row in rows if row[0] == title]
        assert any(value in " ".join(row[1:]).split() or value in re.split(r"[ :]", row[1]) for row in found), (
            info.name,
            value,
            found,
        )
        if metric.reason:
            reason = metric.reason.replace(": ", " ")  # at which lines of Markdown are parted
            assert any(reason in " ".join(row).replace(": ", " ") for row in found), (info.name, metric.reason)


def test_json_holds_what_the_other_formats_round(judged: Evaluation) -> None:
    document = json.loads(to_json(report_document(Report({}, "held-out", judged))))
    assert set(document["metrics"]) == set(METRICS)
    for info, metric in judged.metrics():
        value = document["metrics"][info.name]
        if value is None:
            expected = "∞" if document["undefined"][info.name].startswith("infinite: ") else UNDEFINED
        else:
            expected = f"{value:,}" if info.name == "n" else number(value)
        assert shown(info.name, metric) == expected
        assert metric.value is None or value == metric.value or math.isinf(metric.value)


INTERVAL = re.compile(r"\[[^][, ]+, [^][, ]+\]")


def intervals_of(value: Any) -> Iterator[dict[str, Any]]:
    """Every interval anywhere in a JSON document."""
    if isinstance(value, dict):
        if {"lower", "upper", "method"} <= value.keys():
            yield value
        value = list(value.values())
    if isinstance(value, list):
        for item in value:
            yield from intervals_of(item)


def bracketed(interval: dict[str, Any], show: Callable[[float], str] = number) -> str:
    return f"[{show(interval['lower'])}, {show(interval['upper'])}]"


def rough(value: float) -> str:
    return number(value, 2)


def amount(value: float) -> str:
    return number(value, 1) if value < 10 else f"{value:,.0f}"


def intervals_that_must_be_shown(document: dict[str, Any]) -> list[str]:
    found = [bracketed(interval) for interval in document["intervals"].values()]
    found += [bracketed(part["interval"], signed) for part in document["comparison"]["differences"].values()]
    found += [bracketed(bin_["share_positive_interval"], rough) for bin_ in document["reliability"] if bin_["count"]]
    for part in document["slices"]:
        for name in ("recall", "fpr", "auc", "ap", "ece_positive_class"):
            found.append(f"{rough(part['metrics'][name])} {bracketed(part['intervals'][name], rough)}")
    traffic = {name: part for name, part in document["traffic"].items() if isinstance(part, dict)}
    found += [bracketed(part["interval"], number if name == "precision" else amount) for name, part in traffic.items()]
    found += [bracketed(asked["interval"]) for asked in document["requirements"] if asked["part"] != "value"]
    return [*found, bracketed(document["drift"]["prevalence"]["interval"], signed)]


@pytest.mark.parametrize("rows_of", FORMATS.values(), ids=FORMATS)
def test_every_interval_shown_is_one_of_the_document(rows_of: Callable[[Report], Rows], full_report: Report) -> None:
    document = json.loads(to_json(report_document(full_report)))
    told = "\n".join("  ".join(row) for row in rows_of(full_report))
    missing = [interval for interval in intervals_that_must_be_shown(document) if interval not in told]
    assert not missing
    known = {
        bracketed(interval, show) for interval in intervals_of(document) for show in (number, rough, amount, signed)
    }
    known.add(bracketed(document["reliability"][0], lambda edge: f"{edge:g}"))  # the first bin is closed on both sides
    assert set(INTERVAL.findall(told)) <= known


@pytest.mark.parametrize("rows_of", FORMATS.values(), ids=FORMATS)
def test_each_interval_stands_beside_its_number(rows_of: Callable[[Report], Rows], full_report: Report) -> None:
    rows, evaluation = rows_of(full_report), full_report.evaluation
    for info, metric in evaluation.metrics():
        if metric.interval is None or info.name in {"ece", "ece_positive_class"}:
            continue
        wanted = (metric_value(metric), bracketed(dataclasses.asdict(metric.interval)))
        assert wanted in [tuple(row[1:3]) for row in rows if row[0] == info.title], info.name
    errors = [
        bracketed(dataclasses.asdict(metric.interval)) for metric in (evaluation.ece, evaluation.ece_positive_class)
    ]
    assert [row[1:3] for row in rows if row[0] == "95 % interval"] == [errors]


@pytest.mark.parametrize("render", [terminal, render_markdown, render_page])
def test_without_a_confidence_no_interval_is_shown(render: Callable[[Report], str]) -> None:
    evaluation = evaluate([0.9, 0.2, 0.6, 0.4], [1, 0, 0, 1], kind="prob", confidence=None)
    text = html.unescape(render(Report({}, "held-out", evaluation, (judge_slice("a", "b", evaluation, evaluation),))))
    assert "interval" not in text
    assert set(INTERVAL.findall(text)) == {"[0, 0.1]"}


@pytest.mark.parametrize("render", [terminal, render_markdown, render_page])
def test_every_requirement_has_its_verdict_in_words(render: Callable[[Report], str]) -> None:
    evaluation = evaluate([0.3, 0.2, 0.1], [1, 0, 0], kind="prob")
    asked = ("auc>=0.5", "recall>=0.9", "precision>=0.5")
    report = Report({}, "held-out", evaluation, (), tuple(decide(parse_requirement(a), evaluation) for a in asked))
    text = html.unescape(render(report))
    for word in (
        "auc >= 0.5",
        "met",
        "recall >= 0.9",
        "NOT MET",
        "precision >= 0.5",
        "UNDECIDED",
        "nothing is flagged",
    ):
        assert word in text
    assert "1 of 3 requirements not met, 1 undecided" in text


@pytest.mark.parametrize("render", [lambda report: terminal(report, 200), render_markdown, render_page])
def test_every_format_says_why_a_gate_is_undecided_and_which_slices_fail(render: Callable[[Report], str]) -> None:
    evaluation = evaluate([0.9, 0.8, 0.3, 0.1], [1, 1, 1, 0], kind="prob")
    slices = (judge_slice("lang", "de", evaluation, evaluation),)
    decisions = (decide(parse_requirement("recall.lower>=0.5"), evaluation),)
    each = decide_each([parse_requirement("recall>=0.9", each=True)], slices, 1)
    text = html.unescape(render(Report({}, "held-out", evaluation, slices, decisions, each=each)))
    assert "recall.lower >= 0.5: too few rows: the interval" in text
    assert "recall >= 0.9 is not met in lang=de 0.6667" in text


@pytest.mark.parametrize("render", [terminal, render_markdown, render_page])
def test_a_value_that_rounds_to_its_bound_shows_why_it_failed(render: Callable[[Report], str]) -> None:
    labels = [1] * 22_499 + [0] * 2501
    evaluation = evaluate([0.5] * 25_000, labels, kind="prob", n_resamples=0)
    report = Report({}, "held-out", evaluation, (), (decide(parse_requirement("accuracy>=0.9"), evaluation),))
    assert "0.89996" in render(report)


@pytest.mark.parametrize("render", [terminal, render_markdown, render_page])
def test_numbers_on_seen_rows_carry_a_caution(render: Callable[[Report], str], report: Report) -> None:
    seen = Report(
        report.provenance,
        "in-sample: the head was fitted on these rows",
        report.evaluation,
        seen=RowsSeen(2, 2, 0, 2, 2),
    )
    assert "caution" in render(seen).casefold()
    assert "caution" not in render(report).replace('class="caution"', "").replace(".caution", "").casefold()


@pytest.mark.parametrize("render", [terminal, render_markdown, render_page])
def test_few_rows_are_called_rough(render: Callable[[Report], str]) -> None:
    few = evaluate([0.9] * 29 + [0.1] * 100, [1] * 29 + [0] * 100, kind="prob")
    assert "29 positive, 100 negative" in render(Report({}, "held-out", few))
    enough = evaluate([0.9] * 30 + [0.1] * 30, [1] * 30 + [0] * 30, kind="prob")
    assert "rough" not in render(Report({}, "held-out", enough))


@pytest.mark.parametrize("render", [terminal, render_markdown, render_page])
def test_a_threshold_is_never_rounded(render: Callable[[Report], str]) -> None:
    evaluation = evaluate([0.9, 0.1], [1, 0], kind="prob", threshold=0.30000000000000004, classes=("safe", "unsafe"))
    assert "flagged when P(unsafe) ≥ 0.30000000000000004" in render(Report({}, "held-out", evaluation))


@pytest.mark.parametrize(
    "render",
    [terminal, render_markdown, render_page, lambda report: to_json(report_document(report))],
    ids=["terminal", "markdown", "page", "json"],
)
def test_no_format_passes_on_what_a_terminal_obeys(render: Callable[[Report], str], hostile_report: Report) -> None:
    obeyed = {"Cc", "Cf", "Cs", "Co", "Zl", "Zp"}
    assert {char for char in render(hostile_report) if unicodedata.category(char) in obeyed} <= {"\n"}


@pytest.mark.parametrize("rows_of", [markdown_rows, page_rows])
def test_hostile_text_stays_one_cell_of_text(
    rows_of: Callable[[Report], Rows], hostile_report: Report, hostile: str
) -> None:
    """References are resolved after the structure is read, so a `|` in a name opens no further cell."""
    text = printable(hostile)
    joined = [" | ".join(row) for row in rows_of(hostile_report)]
    assert any(row.startswith(text) for row in joined)
