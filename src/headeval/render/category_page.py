"""Several categories as one self-contained HTML page: an overview, and below it the whole page of each, folded away."""

from typing import Any

from headeval.category_report import CategoriesReport
from headeval.evaluation import METRICS
from headeval.render.categories import categories_sheet
from headeval.render.category_parts import named_classes
from headeval.render.numbers import count, metric_value
from headeval.render.page import rendered, report_parts
from headeval.render.sections import in_cell
from headeval.report import Report

_SAID = ("auc", "recall", "fpr")
_ALL_SLICES = "all slices of a category are in its own part of this page"


def render_categories_page(report: CategoriesReport) -> str:
    """Return several categories as an HTML document; charts and slider of each are made once it is opened.

    Raises
    ------
    UsageError
        When jinja2 is not installed.
    """
    sheet = categories_sheet(report, all_slices=_ALL_SLICES)
    overview: dict[str, Any] = {"sheet": sheet, "sections": sheet.sections, "panel": None, "at": "", "level": 2}
    categories = tuple(
        {
            "name": in_cell(name),
            "said": _said(part),
            "parts": report_parts(named_classes(name, part), at=f"c{index}-", level=4),
        }
        for index, (name, part) in enumerate(report.judged)
    )
    drawn = any(part.curves is not None for _, part in report.judged)
    return rendered("page_categories.html.j2", overview | {"categories": categories}, drawn=drawn)


def _said(report: Report) -> str:
    """Return what stands beside the name while the rest is folded away."""
    evaluation = report.evaluation
    numbers = ", ".join(f"{METRICS[name].title} {metric_value(getattr(evaluation, name))}" for name in _SAID)
    return f"{count(evaluation.counts.n)} rows: {numbers}"
