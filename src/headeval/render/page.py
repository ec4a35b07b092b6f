"""A report as one self-contained HTML page: no script, no network, readable in light, dark and print."""

from importlib import resources

from headeval.errors import UsageError
from headeval.render.sheet import report_sheet
from headeval.report import Report


def render_page(report: Report) -> str:
    """Return a report as an HTML document.

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
        autoescape=True,
        undefined=jinja2.StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
        keep_trailing_newline=True,
    )
    source = resources.files("headeval.render").joinpath("page.html.j2").read_text(encoding="utf-8")
    return environment.from_string(source).render(sheet=report_sheet(report))
