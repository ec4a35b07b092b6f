"""A report as one self-contained HTML page, readable in light, dark and print, with nothing asked of any network.

Scripts and style stand in the page, and its content security policy names their digests: nothing else can run, and
nothing can be fetched. Without curves there is no script at all.
"""

import base64
import dataclasses
import hashlib
import json
from collections.abc import Mapping
from importlib import resources
from typing import Any

from headeval.curves import Curves
from headeval.errors import UsageError
from headeval.render.classes import about_flagged
from headeval.render.numbers import percent
from headeval.render.page_charts import chart_data, chart_words
from headeval.render.page_panel import MOVING, cost_labels, moving_sections, panel_data
from headeval.render.sections import Section, all_about, in_sentence
from headeval.render.sheet import report_sheet
from headeval.report import Report

_LIBRARY = "vendor/uPlot-1.6.32"
# What would end the element, or be a line terminator in scripts of old; JSON reads each back as it was.
_ESCAPED = {ord(char): f"\\u{ord(char):04x}" for char in "<>&\u2028\u2029"}


def render_page(report: Report) -> str:
    """Return a report as an HTML document; where it has curves, with charts and a slider over the threshold.

    Raises
    ------
    UsageError
        When jinja2 is not installed.
    """
    return rendered("page.html.j2", report_parts(report), drawn=report.curves is not None)


def rendered(template: str, parts: Mapping[str, Any], *, drawn: bool) -> str:
    """Return a template with its parts, its style, and where something is drawn its scripts.

    Raises
    ------
    UsageError
        When jinja2 is not installed.
    """
    try:
        import jinja2
    except ImportError as error:
        raise UsageError("the HTML page needs jinja2: pip install 'headeval[html]'") from error
    environment = jinja2.Environment(
        loader=jinja2.FunctionLoader(_resource),
        autoescape=True,
        undefined=jinja2.StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
        keep_trailing_newline=True,
    )
    style = _resource("page.css") + (_resource(f"{_LIBRARY}/uPlot.min.css") if drawn else "")
    scripts = (_resource(f"{_LIBRARY}/uPlot.iife.min.js"), _resource("page.js")) if drawn else ()
    around = {"style": style, "scripts": scripts, "policy": _policy(style, scripts)}
    around["licence"] = _resource(f"{_LIBRARY}/LICENSE")
    return environment.get_template(template).render({**parts, **around})


def report_parts(report: Report, *, at: str = "", level: int = 2) -> dict[str, Any]:
    """Return what the templates show of a report.

    Parameters
    ----------
    at : what its ids begin with, where a page has several reports.
    level : of its headings.
    """
    sheet = report_sheet(report)
    parts: dict[str, Any] = {"sheet": sheet, "sections": sheet.sections, "panel": None, "at": at, "level": level}
    if report.curves is not None:
        parts["panel"] = _panel(report, report.curves)
        parts["sections"] = tuple(_below(section) for section in sheet.sections if section.title not in MOVING)
    return parts


def _below(section: Section) -> Section:
    """Return a section without the curve in characters: the page draws it."""
    return dataclasses.replace(section, lead="") if section.title == "Ranking" else section


def data_block(document: Any) -> str:
    r"""Return JSON that can stand inside a script element, whatever its texts hold.

    Examples
    --------
    >>> data_block({"class": "</script>"})
    '{"class":"\\u003c/script\\u003e"}'
    """
    return json.dumps(document, separators=(",", ":"), allow_nan=False, ensure_ascii=False).translate(_ESCAPED)


def _panel(report: Report, drawn: Curves) -> dict[str, Any]:
    evaluation = report.evaluation
    about = about_flagged(report.classes)
    sections = all_about(moving_sections(evaluation), about)
    return {
        "data": data_block(panel_data(report, drawn.sweep) | {"charts": chart_data(report, drawn)}),
        "sections": sections,
        "about": f" ({about})" if about else "",
        "followers": ", ".join((*(section.title for section in sections), "charts and costs")).capitalize(),
        "words": chart_words(report, drawn),
        "classes": tuple(in_sentence(name) for name in evaluation.classes),
        "costs": cost_labels(evaluation),
        "ranked": drawn.roc is not None,
        "band": "" if evaluation.confidence is None else percent(evaluation.confidence),
        "before": report.before is not None,
    }


def _policy(style: str, scripts: tuple[str, ...]) -> str:
    allowed = [f"style-src {_digest(style)}"]
    if scripts:
        allowed.append(f"script-src {' '.join(map(_digest, scripts))}")
    return "; ".join(("default-src 'none'", *allowed, "base-uri 'none'", "form-action 'none'"))


def _digest(text: str) -> str:
    return f"'sha256-{base64.b64encode(hashlib.sha256(text.encode()).digest()).decode()}'"


def _resource(name: str) -> str:
    return resources.files("headeval.render").joinpath(*name.split("/")).read_text(encoding="utf-8")
