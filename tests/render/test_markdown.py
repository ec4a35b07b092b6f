"""The Markdown reads well, and what a name contains never becomes structure; a Markdown parser is the judge."""

import html
import re

import pytest
from hypothesis import example, given
from hypothesis import strategies as st
from markdown_it import MarkdownIt

from headeval.head_history import RowsSeen
from headeval.printable import printable
from headeval.render.markdown import escape, render_markdown
from headeval.report import Report

PARSER = MarkdownIt("commonmark").enable(["table", "strikethrough"])

lines = st.text(
    st.sampled_from("ab1 .)-+=>#*_`~[]()!<>&;|\\$:@{}\"'/") | st.characters(exclude_categories=["Cs"]), max_size=30
).map(printable)


def plain(markup: str) -> str:
    return html.unescape(re.sub(r"<[^>]*>", "", markup))


@given(lines)
@example("- - -")
@example("12) x")
@example("    code")
@example("[ ] task")
def test_escaped_text_is_shown_as_it_is_in_a_paragraph(text: str) -> None:
    shown = PARSER.render(f"{escape(text)}\n")
    assert shown == "" if not text else re.fullmatch(r"<p>[^<]*</p>\n", shown)
    assert plain(shown).strip() == text.strip()


@given(lines)
@example("---")
@example("> quote")
def test_escaped_text_is_shown_as_it_is_in_a_list(text: str) -> None:
    shown = PARSER.render(f"- {escape(text)}\n- next\n")
    assert re.fullmatch(r"<ul>\n<li>[^<]*</li>\n<li>next</li>\n</ul>\n", shown)
    assert plain(shown).split("\nnext")[0].strip() == text.strip()


@given(lines, lines)
@example("a|b", "c\\")
def test_escaped_text_is_shown_as_it_is_in_a_table(first: str, second: str) -> None:
    shown = PARSER.render(f"| h | i |\n| :--- | ---: |\n| {escape(first)} | {escape(second)} |\n")
    cells = re.findall(r"<td[^>]*>([^<]*)</td>", shown)
    assert [html.unescape(cell).strip() for cell in cells] == [first.strip(), second.strip()]


@given(lines)
def test_escaped_text_is_shown_as_it_is_in_a_heading(text: str) -> None:
    shown = PARSER.render(f"## {escape(text)}\n")
    assert re.fullmatch(r"<h2>[^<]*</h2>\n", shown)
    assert plain(shown).strip() == text.strip()


@pytest.mark.parametrize(
    "text", ["@team", "#12", ":smile:", "https://example.com", "www.example.com", "$x$", "~x~", "user@example.com"]
)
def test_what_github_adds_to_markdown_is_escaped_too(text: str) -> None:
    assert escape(text) != text
    assert html.unescape(escape(text)) == text


@pytest.mark.parametrize("text", ["moderation_test.parquet", "-0.0123", "+0.0123", "(0.1, 0.2]", "a: b", "auc >= 0.9"])
def test_ordinary_text_stays_readable_in_the_source(text: str) -> None:
    assert escape(text) == text


def test_the_verdict_comes_first(report: Report) -> None:
    text = render_markdown(report)
    assert text.startswith("## headeval: 1 of 3 requirements not met\n\n| requirement |")
    assert text.endswith("\n")
    assert not text.endswith("\n\n")


def test_without_requirements_the_heading_claims_nothing(report: Report) -> None:
    assert render_markdown(Report({}, "held-out", report.evaluation)).startswith("## headeval report\n")


def test_seen_rows_are_an_alert(report: Report) -> None:
    text = render_markdown(Report({}, "IN-SAMPLE: fitted on these", report.evaluation, seen=RowsSeen(2, 2, 0, 2, 2)))
    assert "> [!CAUTION]\n> IN-SAMPLE: fitted on these\n" in text


def test_a_hostile_report_has_the_structure_of_a_tame_one(hostile_report: Report) -> None:
    """Every table, heading and list item stays, and nothing is added: no link, image, emphasis or HTML."""
    tame = Report(
        {"a": "b", "data": ["c", "d"]},
        "e",
        hostile_report.evaluation,
        hostile_report.slices,
        hostile_report.decisions,
        ("f",),
    )
    shapes = [
        re.findall(r"<[^>]*>", PARSER.render(render_markdown(subject).replace("\n> e\n", "\n")))
        for subject in (hostile_report, tame)
    ]
    assert shapes[0] == shapes[1]
    assert not {"<a", "<img", "<em", "<code", "<script", "<del"} & {tag.split()[0].rstrip(">") for tag in shapes[0]}
