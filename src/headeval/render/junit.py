"""Requirements as JUnit XML, which CI systems show as tests: a test case a requirement."""

import math
from collections.abc import Iterator, Sequence
from xml.etree.ElementTree import Element, SubElement, indent, tostring

from headeval.category_report import CategoriesReport
from headeval.core.intervals import Interval
from headeval.metric import Metric
from headeval.multiclass import CLASS_RATES, ClassEvaluation
from headeval.printable import printable
from headeval.render.numbers import exact
from headeval.render.requirements import meant_of_classes
from headeval.render.sheet import provenance_lines
from headeval.report import Report
from headeval.requirements import Decision, EachDecision, Verdict

_SUITE = "headeval"
_COUNTED = {Verdict.NOT_MET: "failures", Verdict.UNDECIDED: "errors"}
_ELEMENT = {Verdict.NOT_MET: "failure", Verdict.UNDECIDED: "error"}


def junit_xml(report: Report) -> str:
    """Return the requirements of a report as JUnit XML, one test suite with a test case a requirement.

    What is not met is a failure, what could not be decided an error, so that neither passes. The measured numbers
    are properties of the suite under the names that `--require` knows, in full precision. There are no times: the
    same report gives the same bytes.

    Examples
    --------
    >>> from headeval.evaluation import evaluate
    >>> print(junit_xml(Report({}, "held-out", evaluate([0.9, 0.2], [1, 0], kind="prob"))).splitlines()[1])
    <testsuite name="headeval" tests="0" failures="0" errors="0" skipped="0" time="0">
    """
    suite = Element("testsuite")
    _fill(suite, _SUITE, (*report.decisions, *report.each), list(_properties(report)), report.classes)
    return _xml(suite)


def categories_junit_xml(report: CategoriesReport) -> str:
    """Return the requirements of several categories as JUnit XML: a test suite a category, as `junit_xml` has it."""
    suites = Element("testsuites")
    decisions: tuple[Decision | EachDecision, ...] = (*report.decisions, *report.each)
    _count(suites, _SUITE, decisions)
    for part in report.parts:
        own = tuple(decision for decision in decisions if decision.requirement.of == part.name)
        rows = [("category", printable(part.name)), ("known", str(part.known)), ("unknown", str(part.unknown))]
        more = [("not_judged", printable(part.why))] if part.report is None else list(_properties(part.report))
        _fill(SubElement(suites, "testsuite"), f"{_SUITE}.{printable(part.name)}", own, [*rows, *more])
    return _xml(suites)


def _fill(
    suite: Element,
    name: str,
    decisions: Sequence[Decision | EachDecision],
    properties: Sequence[tuple[str, str]],
    classes: ClassEvaluation | None = None,
) -> None:
    _count(suite, name, decisions)
    element = SubElement(suite, "properties")
    for key, value in properties:
        SubElement(element, "property", {"name": key, "value": value})
    for decision in decisions:
        _add_case(suite, decision, meant_of_classes([decision.requirement], classes))
    _add_text(SubElement(suite, "system-out"), [f"{key}: {value}" for key, value in properties])


def _count(suite: Element, name: str, decisions: Sequence[Decision | EachDecision]) -> None:
    suite.set("name", name)
    suite.set("tests", str(len(decisions)))
    for verdict, counted in _COUNTED.items():
        suite.set(counted, str(sum(decision.verdict is verdict for decision in decisions)))
    suite.set("skipped", "0")
    suite.set("time", "0")  # readers of the format take it as given


def _xml(root: Element) -> str:
    indent(root)
    return f'<?xml version="1.0" encoding="UTF-8"?>\n{tostring(root, encoding="unicode")}\n'


def _add_case(suite: Element, decision: Decision | EachDecision, meant: tuple[str, ...]) -> None:
    each = isinstance(decision, EachDecision)
    case = SubElement(
        suite,
        "testcase",
        {
            "name": printable(str(decision.requirement)),
            "classname": f"{_SUITE}.{'require-each' if each else 'require'}",
            "time": "0",
        },
    )
    lines = [*(_lines_of_slices(decision) if isinstance(decision, EachDecision) else _lines(decision)), *meant]
    if decision.verdict is Verdict.MET:
        _add_text(SubElement(case, "system-out"), lines)
        return
    verdict = decision.verdict.value
    outcome = SubElement(case, _ELEMENT[decision.verdict], {"message": f"{verdict}: {lines[0]}", "type": verdict})
    _add_text(outcome, lines)


def _add_text(element: Element, lines: list[str]) -> None:
    element.text = "\n".join(lines)


def _lines(decision: Decision) -> Iterator[str]:
    """One line: the number held against the bound, what it belongs to, and the reason; printable."""
    wanted = decision.requirement
    name, reason = printable(wanted.name), f": {printable(decision.reason)}" if decision.reason else ""
    if decision.value is None:
        yield f"{name} is undefined{reason}"
        return
    about = [f"interval {_range(decision.interval)}"] if decision.interval else []
    if wanted.part != "value" and decision.measured is not None:
        about.insert(0, f"{name.removesuffix(f'.{wanted.part}')} {exact(decision.measured)}")
    beside = f" ({', '.join(about)})" if about else ""
    yield f"{name} is {exact(decision.value)}{beside}{reason}"


def _lines_of_slices(decision: EachDecision) -> Iterator[str]:
    """A line on all slices, then one a failing and one a skipped slice; printable."""
    failing, skipped = len(decision.failing), len(decision.skipped)
    reason = f"; {decision.reason}" if decision.reason else ""
    yield f"{failing:,} of {decision.judged:,} judged slices do not meet it, {skipped:,} not judged{reason}"
    for column, value, of_slice in decision.failing:
        for line in _lines(of_slice):
            yield f"{printable(column)}={printable(value)}: {of_slice.verdict.value}: {line}"
    for column, value, why in decision.skipped:
        yield f"{printable(column)}={printable(value)}: not judged: {printable(why)}"


def _range(interval: Interval) -> str:
    return f"{exact(interval.lower)} to {exact(interval.upper)} by {printable(interval.method)}"


def _properties(report: Report) -> Iterator[tuple[str, str]]:
    """Where the numbers come from, then every metric under the name that `--require` gives it; printable."""
    evaluation = report.evaluation
    for key, value in provenance_lines(report.provenance):
        yield f"provenance.{key.replace(' ', '_')}", value
    yield "how", printable(report.how)
    yield "in_sample", "not known" if report.seen is None else report.in_sample or "no"
    negative, positive = (printable(name) for name in evaluation.classes)
    yield "classes", f"{negative}, {positive} (flagged)"
    yield "positives", str(evaluation.counts.positives)
    yield "threshold", repr(evaluation.threshold)
    yield "confidence", "none" if evaluation.confidence is None else repr(evaluation.confidence)
    for info, metric in evaluation.metrics():
        if info.scale == "count" and metric.value is not None:
            yield info.name, str(int(metric.value))
        else:
            yield from _measured(info.name, metric)
    if report.classes:
        yield from _of_classes(report.classes)
    if report.comparison:
        yield "baseline", printable(report.comparison.name)
        for name, difference in report.comparison.differences.items():
            yield from _precise(f"{name}.diff", difference.value, difference.interval)


def _of_classes(classes: ClassEvaluation) -> Iterator[tuple[str, str]]:
    """Of all classes together, then of each."""
    *others, flagged = (printable(name) for name in classes.classes)
    yield "all_classes", ", ".join((*others, f"{flagged} (flagged)"))
    for info, metric in classes.metrics():
        yield from _measured(info.name, metric)
    for part in classes.per_class:
        for name in CLASS_RATES:
            yield from _measured(f"{printable(part.name)}:{name}", getattr(part, name))


def _measured(name: str, metric: Metric) -> Iterator[tuple[str, str]]:
    if metric.value is None:
        yield name, f"undefined: {printable(metric.reason)}"
    else:
        yield from _precise(name, metric.value, metric.gate_interval)


def _precise(name: str, value: float, interval: Interval | None) -> Iterator[tuple[str, str]]:
    yield name, repr(float(value)) if math.isfinite(value) else exact(value)
    if interval:
        yield f"{name}.lower", repr(float(interval.lower))
        yield f"{name}.upper", repr(float(interval.upper))
        yield f"{name}.interval", interval.method
