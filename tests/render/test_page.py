"""The HTML page is whole in itself, well formed, accessible by its structure, and runs nothing."""

import html.parser
import re
import subprocess
import sys

import pytest

from headeval.errors import UsageError
from headeval.evaluation import evaluate
from headeval.printable import printable
from headeval.render.page import render_page
from headeval.report import Report

VOID = {"meta", "rect", "line", "br", "img", "link", "input"}


class _Structure(html.parser.HTMLParser):
    """Collects elements and attributes and checks that every element is closed in its place."""

    def __init__(self, text: str) -> None:
        super().__init__()
        self.elements: list[tuple[str, dict[str, str | None]]] = []
        self.text = ""
        self._open: list[str] = []
        self.feed(text)
        self.close()
        assert not self._open

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.elements.append((tag, dict(attrs)))
        if tag not in VOID:
            self._open.append(tag)

    def handle_endtag(self, tag: str) -> None:
        if tag not in VOID:
            assert self._open.pop() == tag

    def handle_startendtag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.elements.append((tag, dict(attrs)))

    def handle_data(self, data: str) -> None:
        self.text += data

    def named(self, tag: str) -> list[dict[str, str | None]]:
        return [attributes for name, attributes in self.elements if name == tag]


def test_a_hostile_report_has_the_elements_of_a_tame_one(hostile_report: Report, hostile: str) -> None:
    tame = Report(
        {"a": "b", "data": ["c", "d"]},
        "e",
        hostile_report.evaluation,
        hostile_report.slices,
        hostile_report.decisions,
        ("f",),
    )
    page, plain = _Structure(render_page(hostile_report)), _Structure(render_page(tame))
    assert [tag for tag, _ in page.elements] == [tag for tag, _ in plain.elements]
    assert printable(hostile) in page.text
    assert not page.named("script")
    assert not [name for _, attributes in page.elements for name in attributes if name.startswith("on")]


def test_the_page_asks_for_nothing_from_anywhere(report: Report) -> None:
    page = render_page(report)
    structure = _Structure(page)
    assert not {"script", "link", "img", "iframe", "object", "a"} & {tag for tag, _ in structure.elements}
    assert not re.search(r"https?:|url\(|@import|src=|href=", page)
    policies = [meta["content"] for meta in structure.named("meta") if "http-equiv" in meta]
    assert policies == ["default-src 'none'; style-src 'unsafe-inline'"]


def test_tables_can_be_read_aloud(report: Report) -> None:
    structure = _Structure(render_page(report))
    assert len(structure.named("table")) == len(structure.named("caption")) > 4
    assert {header["scope"] for header in structure.named("th")} == {"col", "row"}
    assert structure.named("html") == [{"lang": "en"}]
    assert [tag for tag, _ in structure.elements if tag in {"h1", "main"}] == ["main", "h1"]
    assert all(attributes.get("aria-label") for attributes in structure.named("div"))


def test_bars_are_as_long_as_the_share_and_marked_at_the_mean() -> None:
    """Two rows at 0.05, none positive; four at 0.95, three positive: bars of 0 and 75 %."""
    evaluation = evaluate([0.05] * 2 + [0.95] * 4, [0, 0, 1, 1, 1, 0], kind="prob")
    structure = _Structure(render_page(Report({}, "held-out", evaluation)))
    bars = [rect["width"] for rect in structure.named("rect") if rect["class"] == "bar"]
    marks = [line["x1"] for line in structure.named("line")]
    assert (bars, marks) == (["0.00", "75.00"], ["5.00", "95.00"])


def test_the_verdict_is_title_and_heading(report: Report) -> None:
    page = render_page(report)
    assert "<title>headeval: 1 of 3 requirements not met</title>" in page
    assert '<h1 class="bad">headeval: 1 of 3 requirements not met</h1>' in page


def test_without_jinja2_the_message_says_what_to_install(report: Report, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "jinja2", None)
    with pytest.raises(UsageError, match=re.escape("pip install 'headeval[html]'")):
        render_page(report)


def test_the_other_formats_do_not_load_jinja2() -> None:
    rooms = ", ".join(f"headeval.render.{name}" for name in ("terminal", "markdown", "document", "page"))
    code = f"import sys, {rooms}; sys.exit('jinja2' in sys.modules)"
    assert subprocess.run([sys.executable, "-c", code], check=False).returncode == 0
