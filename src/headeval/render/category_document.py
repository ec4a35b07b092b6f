"""Several categories as JSON: the whole report of each, in the form of categories-report.schema.json."""

from typing import Any

from headeval._version import __version__
from headeval.category_report import Average, CategoriesReport, JudgedCategory
from headeval.render.document import report_document, requirement_document, requirement_of_each_document
from headeval.render.json_values import finite

FORMAT = "headeval-categories-report"
VERSION = 1


def categories_document(report: CategoriesReport) -> dict[str, Any]:
    """Return everything a report of several categories says, as JSON values.

    `passed` is null where no requirement was made: a report that was asked nothing has passed nothing.

    Examples
    --------
    >>> from headeval.evaluation import evaluate
    >>> from headeval.report import Report
    >>> hate = Report({}, "held-out", evaluate([0.9, 0.2], [1, 0], kind="prob"))
    >>> parts = (JudgedCategory("hate", 3, hate), JudgedCategory("spam", 5, None, "no known label"))
    >>> document = categories_document(CategoriesReport({}, parts))
    >>> document["averages"]["auc"], [(part["known"], part["unknown"]) for part in document["categories"]]
    ({'value': 1.0, 'categories': 1}, [(2, 3), (0, 5)])
    """
    return {
        "format": FORMAT,
        "version": VERSION,
        "headeval_version": __version__,
        "provenance": dict(report.provenance),
        "categories": [_category(part) for part in report.parts],
        "averages": {name: _average(average) for name, average in report.averages.items()},
        "in_sample": list(report.in_sample),
        "requirements": [requirement_document(decision) for decision in report.decisions],
        "requirements_of_each_slice": [requirement_of_each_document(decision) for decision in report.each],
        "passed": report.passed if report.verdicts else None,
    }


def _category(part: JudgedCategory) -> dict[str, Any]:
    return {
        "name": part.name,
        "known": part.known,
        "unknown": part.unknown,
        "not_judged": part.why or None,
        "report": None if part.report is None else report_document(part.report),
    }


def _average(average: Average) -> dict[str, Any]:
    return {"value": None if average.value is None else finite(average.value), "categories": average.categories}
