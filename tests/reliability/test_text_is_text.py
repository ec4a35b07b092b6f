"""Text is text: what names hold is shown escaped in every place and format, and kept byte for byte in data.

One journey leads a text through every command, in every name that a table, a file, an option or a head can have. It is
held against the same journey with a harmless name: the same exit codes, numbers, columns, elements and tags.
"""

import contextlib
import csv
import html.parser
import io
import json
import os
import pty
import re
import subprocess
import sys
import unicodedata
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any
from urllib.parse import quote
from xml.etree import ElementTree

import numpy as np
import pyarrow as pa
import pyarrow.csv as pa_csv
import pyarrow.parquet as pq
import pytest
from rich.cells import cell_len
from rich.console import Console

from headeval.cli.main import run
from headeval.evaluation import evaluate
from headeval.multiclass import evaluate_classes
from headeval.printable import printable, quoted
from headeval.render.terminal import render_report
from headeval.report import Report

NAUGHTY: list[str] = json.loads(
    (Path(__file__).resolve().parents[1] / "data" / "hostile" / "naughty_strings.json").read_text(encoding="utf-8")
)
HARMLESS = "abc"
TEXTS = {
    "rich markup": "[red]x[/x][link=http://a]l[/link][/]:smile:",
    "control sequences": "\x1b[31mred\x1b[2J\x9b31m\x1b]0;title\x07\x1bP1\x1b\\",
    "line breaks": "a\r\nb\bc\x85d\u2028e\x0bf",
    "bidirectional": "\u202eabc\u2066d\u200b\u200d\ufeff\u00ad",
    "tags and private use": "\U000e0041\U000e0001\ue000\ue001\uffff|~;",
    "formula": "=cmd|' /C calc'!A0",
    "at": '@SUM(1,"2")',
    "minus one": "-1",
    "plus one": "+1",
    "equals one": "=1",
    "markup of pages": "</script><script>alert(1)</script><img src=x onerror=alert(1)>-->'\"",
    "end of CDATA": "]]>&amp;&#60;<!--",
    "markdown": "|a|`b`*c*_d_[l](http://x)~~s~~<br>@all #1\\|",
    "template": "{{ 7*7 }}{% raw %}${x}%s{0}%(a)s",
    "mathematics": "$\\frac{a}{b}$_^$x$",
    "NUL": "a\0b",
    "10,000 characters": "x" * 10_000,
    "3,000 wide characters": "有害" * 1_500,
    "emoji": "😀👩‍👧❤️",
    "marks": "\u0301\u0489e\u0301\u034f\u3164" + "z" + "\u0310" * 40,
    "wide": "有害的内容全角",
    "spaces": " a  b ",
    "list and pattern": 'a,b;c*?[d]"e"',
    "grammar": "a:b>=c<1",
}
# Of each something, for the fast run; the numbers of a text come back in none of the checks.
TOGETHER = "".join(f"{text[:60]}/" for name, text in TEXTS.items() if "list" not in name)

# What could do something of its own by beginning a text, or by being all of it.
ALONE = (
    "formula",
    "minus one",
    "markup of pages",
    "10,000 characters",
    "3,000 wide characters",
    "spaces",
    "list and pattern",
)

# Written by hand: what a person sees of it.
ESCAPED = {
    "\x1b[31mred": r"\x1b[31mred",
    "\x9b31m": r"\x9b31m",
    "\x1b]0;title\x07": r"\x1b]0;title\x07",
    "a\r\n\tb": r"a\x0d\x0a\x09b",
    "a\b\x7f\0": r"a\x08\x7f\x00",
    "\u202egnp\u2066\u200b\ufeff": r"\u202egnp\u2066\u200b\ufeff",
    "\u2028\x85": r"\u2028\x85",
    "\udcff": r"\udcff",
    "\U000e0041\ue000": r"\U000e0041\ue000",
    "a\u3164\u115f\u034fb\ufe0f\U000e0100": r"a\u3164\u115f\u034fb\ufe0f\U000e0100",
    "\u0301e\u0301": "\\u0301e\u0301",
    "\x1b\u0301": r"\x1b\u0301",
    "z" + "\u0310" * 6: "z" + "\u0310" * 4 + r"\u0310\u0310",
    "[red]x[/x]": "[red]x[/x]",
    "=cmd()": "=cmd()",
    "-1": "-1",
    "😀 有害 é": "😀 有害 é",
}
INVISIBLE = re.compile(
    "[\u034f\u115f\u1160\u17b4\u17b5\u180b-\u180f\u2800\u3164\ufe00-\ufe0f\uffa0\U000e0100-\U000e01ef]"
)


@dataclass(frozen=True)
class Outcome:
    code: int
    out: str
    err: str


def headeval(*arguments: object, encoding: str = "utf-8") -> Outcome:
    """Run a command in this process, its streams as `main` sets them up."""
    out, err = (io.TextIOWrapper(io.BytesIO(), encoding, "backslashreplace", write_through=True) for _ in "12")
    with contextlib.redirect_stdout(out), contextlib.redirect_stderr(err):
        code = run([str(argument) for argument in arguments])
    told = (stream.detach().getvalue().decode(encoding) for stream in (out, err))
    return Outcome(code, *told)


def rows(text: str, n: int, seed: int) -> pa.Table:
    """Rows in whose names and values the text stands everywhere."""
    rng = np.random.default_rng(seed)
    e = rng.normal(size=(n, 4)).astype(np.float32)
    u = e / np.linalg.norm(e, axis=1, keepdims=True)
    flagged = rng.random(n) < 1 / (1 + np.exp(0.5 - 4 * u[:, 0]))
    classes = np.argmax(3 * u[:, :3] + rng.gumbel(size=(n, 3)), axis=1)
    columns: dict[str, Any] = {
        f"{text}id": [f"{text}{row}" for row in range(n)],
        f"{text}e": pa.FixedSizeListArray.from_arrays(pa.array(e.ravel()), 4),
        f"{text}y": [text if positive else f"n{text}" for positive in flagged],
        f"{text}k": [(f"zero {text}", f"one {text}", text)[value] for value in classes],
        f"{text}b": [text if row % 2 else "other" for row in range(n)],
        f"{text}g": [f"{text}{row // 2}" for row in range(n)],
        f"{text}w": [1.0 + row % 3 for row in range(n)],
    }
    for at, name in enumerate(categories(text)):
        columns[name] = [bool(value) for value in rng.random(n) < 1 / (1 + np.exp(-4 * u[:, at]))]
    return pa.table(columns).replace_schema_metadata({"embedding_model": text})


def categories(text: str) -> tuple[str, str]:
    """Two names of columns that a file of a head can have."""
    while len(quote(text)) > 150:
        text = text[:-1]
    return f"{text}c1", f"{text}c2"


def file_name(text: str) -> str:
    name = text.replace("/", "_").replace("\0", "_")
    return name if len(os.fsencode(name)) <= 180 else os.fsencode(name)[:180].decode(errors="ignore")


class Journey:
    """What every command said and wrote, all its names holding one text."""

    def __init__(self, text: str, folder: Path) -> None:
        self.text, self.folder, self.prefix = text, folder, file_name(text)
        self.said: dict[str, Outcome] = {}
        self.rows = rows(text, 90, 2)
        for name, table in {"train": rows(text, 90, 0), "more": rows(text, 120, 1), "test": self.rows}.items():
            pq.write_table(table, self.path(f"{name}.parquet"))
        self.one_head()
        self.classes()
        self.categories()
        self.errors()

    def path(self, name: str) -> Path:
        return self.folder / f"{self.prefix}{name}"

    def go(self, what: str, command: str, data: str, *arguments: object) -> None:
        self.said[what] = headeval(command, self.path(data), *arguments)

    def one_head(self) -> None:
        text, path = self.text, self.path
        labels = ("--label", f"{text}y", f"--positive={text}")
        embedded = ("--embedding", f"{text}e")
        head, moved = path("head.json"), path("moved.json")
        grouped = ("--group", f"{text}g", "--weight", f"{text}w")
        self.go("fit", "fit", "train.parquet", *labels, *embedded, *grouped, "--folds", 2, "-o", head)
        self.go("calibrate", "calibrate", "more.parquet", "--head", head, *labels, *embedded, "-o", path("cal.json"))
        kept = ("--require", "fpr<=0.5", "--head", head, *labels, *embedded)
        self.go("threshold", "threshold", "more.parquet", *kept, "-o", moved)
        self.go("threshold, no", "threshold", "more.parquet", *kept, "--require", "fpr<=0.0001", "-o", path("no.json"))
        for form in ("csv", "parquet"):
            self.go(f"score {form}", "score", "test.parquet", "--head", head, *embedded, "-o", path(f"scored.{form}"))
        by = ("--by", f"{text}b", "--group", f"{text}g", "--id", f"{text}id", "--resamples", 20)
        asked = ("--require", "auc>=0.5", "--require", "recall>=0.9999", "--require-each", "recall>=0.99")
        beside = ("--baseline", head, "--reference", path("train.parquet"), "--changed", path("changed.csv"))
        files = ("--html", path("page.html"), "--card", path("card.md"), "--junit", path("cases.xml"))
        judge = ("report", "test.parquet", "--head", moved, *labels, *embedded, *by, *asked)
        self.go("report", *judge, *beside, *files, "--min-rows", 5)
        for form in ("markdown", "json"):
            self.go(f"report {form}", *judge, "--format", form, "--min-rows", 5)
        self.go("report scores", "report", "scored.csv", *labels, "--logit", "logit", *by)
        self.go("calibrate scores", "calibrate", "scored.csv", *labels, "--prob", "prob", "-o", path("again.csv"))

    def classes(self) -> None:
        path, labels = self.path, ("--label", f"{self.text}k", "--embedding", f"{self.text}e")
        head = path("soft.json")
        positive = f"--positive={self.text}"
        self.go("fit classes", "fit", "train.parquet", *labels, positive, "--folds", 2, "-o", head)
        self.go("calibrate classes", "calibrate", "more.parquet", *labels, "--head", head, "-o", path("softer.json"))
        embedded = ("--embedding", f"{self.text}e")
        self.go("score classes", "score", "test.parquet", *embedded, "--head", head, "-o", path("classes.csv"))
        files = ("--html", path("page3.html"), "--card", path("card3.md"), "--junit", path("cases3.xml"))
        asked = ("--require", "auc>=0.1", "--resamples", 20, "--by", f"{self.text}b")
        self.go("report classes", "report", "test.parquet", *labels, "--head", head, *asked, *files)

    def categories(self) -> None:
        path, embedded = self.path, ("--embedding", f"{self.text}e")
        labels = ("--label", ",".join(categories(self.text)), *embedded)
        heads = path("heads")
        self.go("fit categories", "fit", "train.parquet", *labels, "--folds", 2, "-o", heads)
        self.go("calibrate categories", "calibrate", "more.parquet", *labels, "--head", heads, "-o", path("cooler"))
        kept = ("--require", "fpr<=0.5", "--head", heads, "-o", path("kept"), "--allow-missing")
        self.go("threshold categories", "threshold", "more.parquet", *labels, *kept)
        self.go("score categories", "score", "test.parquet", *embedded, "--head", heads, "-o", path("several.csv"))
        files = ("--html", path("page2.html"), "--card", path("card2.md"), "--junit", path("cases2.xml"))
        asked = ("--require", "*:auc>=0.9999", "--resamples", 20, "--by", f"{self.text}b")
        judge = ("report", "test.parquet", *labels, "--head", heads, *asked, "--baseline", path("cooler"))
        self.go("report categories", *judge, *files)
        self.go("report categories markdown", *judge, "--format", "markdown")

    def errors(self) -> None:
        """Every option and file that an error names."""
        text, path = self.text, self.path
        labels = ("--label", f"{text}y", f"--positive={text}", "--embedding", f"{text}e")
        head, out = ("--head", path("head.json")), ("-o", path("out.csv"))
        judge = ("report", "test.parquet", *head, *labels)
        fit = ("fit", "train.parquet")
        for arguments in (
            ("report", "none.parquet", "--prob", "p"),
            (*fit, "--label", f"{text}q", "--embedding", f"{text}e"),
            (*fit, *labels, "--embedding", f"{text}q"),
            (*fit, "--label", f"{text}y", "--embedding", f"{text}e"),
            (*fit, *labels, f"--positive={text}q"),
            (*fit, *labels, "--embedding", f"{text}b"),
            (*fit, *labels, "--label", f"{text}e"),
            (*fit, *labels, "--weight", f"{text}b"),
            (*fit, "--label", f"{text}k", "--embedding", f"{text}e", f"--classes={text},a,b"),
            (*fit, *labels, f"--l2={text}"),
            (*fit, f"--folds={text}"),
            (*fit, *labels, f"--memory={text}q"),
            (*judge, "--by", f"{text}q"),
            (*judge, f"--require={text}"),
            (*judge, f"--require={text}:auc>=0.5"),
            (*judge, f"--require=auc>={text}z"),
            (*judge, f"--format={text}"),
            (*judge, f"--threshold={text}z"),
            (*judge, f"--no-such-option{text}"),
            (*judge, f"--no\nheadeval: such-option{text}"),
            ("threshold", "more.parquet", *head, *labels, f"--require={text}:auc>=0.5"),
            ("score", "test.parquet", "--head", path("none.json"), *out),
            ("score", "test.parquet", "--head", path("test.parquet"), *out),
            ("score", "test.parquet", *head, "-o", path("scored.csv"), "--embedding", f"{text}e"),
            ("score", "test.parquet", *head, "-o", path("none") / "x.csv", "--embedding", f"{text}e"),
            ("score", "test.parquet", *head, *out, "--embedding", f"{text}e", "--embedding-model", f"{text}x"),
            ("report", "test.parquet", *labels, "--prob", f"{text}b"),
            ("report", "test.parquet", *labels, "--prob", f"{text}w"),
            ("report", "test.parquet", *labels, "--head", path("heads")),
            (f"command{text}", "train.parquet"),
        ):
            self.go(f"error {len(self.said)}", *arguments)

    def read(self, name: str) -> str:
        return self.path(name).read_text(encoding="utf-8")


@pytest.fixture(scope="module")
def harmless(tmp_path_factory: pytest.TempPathFactory) -> Journey:
    return Journey(HARMLESS, tmp_path_factory.mktemp("harmless"))


@pytest.fixture(
    params=[
        pytest.param(TOGETHER, id="together"),
        *(pytest.param(TEXTS[name], id=name.replace(" ", "-"), marks=pytest.mark.slow) for name in ALONE),
    ],
    scope="module",
)
def led(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Journey:
    return Journey(request.param, tmp_path_factory.mktemp("led"))


def seen(text: str) -> set[str]:
    """What a terminal could obey, or nobody can see."""
    unsafe = {"Cc", "Cf", "Cs", "Co", "Cn", "Zl", "Zp"}
    return {char for char in text if unicodedata.category(char) in unsafe or INVISIBLE.match(char)}


@pytest.mark.parametrize(("text", "shown"), ESCAPED.items(), ids=ascii)
def test_what_is_not_to_be_seen_is_escaped_and_the_rest_stays(text: str, shown: str) -> None:
    assert printable(text) == shown
    assert printable(printable(text)) == shown
    assert quoted(text) == f"'{shown}'"


@pytest.mark.slow
def test_every_character_is_shown_as_itself_or_as_ascii() -> None:
    for code in range(0x110000):
        char = chr(code)
        shown = printable(f"a{char}")[1:]
        assert shown == char or (shown.isascii() and shown.startswith("\\")), ascii(char)
        assert not seen(shown), ascii(char)


def test_no_command_says_what_a_terminal_obeys(led: Journey) -> None:
    for what, outcome in led.said.items():
        assert seen(outcome.out + outcome.err) <= {"\n"}, what


# Where an option reads the text: names of classes must differ, and one with a line break stands in quotes.
TAKEN_AT_ITS_WORD = {"error 29": {2, 3}}


def test_every_command_ends_as_with_a_harmless_name(led: Journey, harmless: Journey) -> None:
    """The text decides no exit code, but where an option takes it for what it says: a number, a name of a class."""
    expected = harmless.said
    for what, outcome in led.said.items():
        lines = [len(each.err.splitlines()) for each in (outcome, expected[what])]
        if what not in TAKEN_AT_ITS_WORD:
            assert (outcome.code, lines[0]) == (expected[what].code, lines[1]), (what, outcome.err)
        assert outcome.code in {expected[what].code, *TAKEN_AT_ITS_WORD.get(what, ())}, (what, outcome.err)
        if outcome.code in {2, 3, 4, 5, 6}:
            first, *more = outcome.err.splitlines()[-3:]
            assert "headeval: " in outcome.err, what
            assert len(outcome.err.strip().splitlines()) <= 3, (what, first, more)
            assert not any(line.startswith("headeval") for line in outcome.err.splitlines()[1:]), what
            assert len(outcome.err) < 12_000, what


NUMBER = re.compile(r"(?<![\d.])\d\.\d{4}(?!\d)")


def test_every_table_shows_the_same_numbers_whatever_the_names(led: Journey, harmless: Journey) -> None:
    for what, outcome in led.said.items():
        if outcome.out and "json" not in what:
            plain = harmless.said[what].out
            assert Counter(NUMBER.findall(outcome.out)) == Counter(NUMBER.findall(plain)), what
            if "markdown" not in what:
                assert len(outcome.out.splitlines()) < 3 * len(plain.splitlines()), what
                assert max(map(cell_len, outcome.out.splitlines())) <= 100, what


class Skeleton(html.parser.HTMLParser):
    """The tags of a page with the names of their attributes, and the contents of its scripts."""

    def __init__(self, page: str) -> None:
        super().__init__()
        self.tags: list[Any] = []
        self.scripts: list[str] = []
        self.feed(page)
        self.close()

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags.append((tag, *(name for name, _ in attrs)))
        if tag == "script":
            self.scripts.append("")

    def handle_endtag(self, tag: str) -> None:
        self.tags.append(f"/{tag}")

    def handle_comment(self, data: str) -> None:
        self.tags.append(("comment", data))

    def handle_data(self, data: str) -> None:
        if self.tags and self.tags[-1][0] == "script":
            self.scripts[-1] += data


@pytest.mark.parametrize("name", ["page.html", "page3.html", "page2.html"])
def test_a_page_has_the_tags_of_a_harmless_one_and_its_scripts_hold_data(
    led: Journey, harmless: Journey, name: str
) -> None:
    page, plain = Skeleton(led.read(name)), Skeleton(harmless.read(name))
    assert page.tags == plain.tags
    *data, library, own = page.scripts
    assert [library, own] == plain.scripts[-2:]
    for block in data:
        assert json.loads(block)
        assert not set("<>&") & set(block)
    assert seen(led.read(name)) <= {"\n", "\t"} | seen(harmless.read(name))


def markdown_shape(text: str) -> list[Any]:
    """Each line's kind with the characters that can mean something in Markdown."""
    kinds = (re.findall(r"^(?:#+ |[|>-] ?)", line) for line in text.splitlines())
    return [(*kind, *map(line.count, "|<[`*~@$\\")) for kind, line in zip(kinds, text.splitlines(), strict=True)]


@pytest.mark.parametrize("name", ["report markdown", "report categories markdown", "card.md", "card3.md", "card2.md"])
def test_markdown_has_the_structure_of_a_harmless_one(led: Journey, harmless: Journey, name: str) -> None:
    texts = [each.read(name) if "." in name else each.said[name].out for each in (led, harmless)]
    shape, plain = map(markdown_shape, texts)
    assert shape == plain
    assert seen(texts[0]) <= {"\n"}


@pytest.mark.parametrize("name", ["cases.xml", "cases3.xml", "cases2.xml"])
def test_junit_is_well_formed_has_the_same_elements_and_gives_the_names_back_escaped(
    led: Journey, harmless: Journey, name: str
) -> None:
    document, plain = (ElementTree.fromstring(each.read(name)) for each in (led, harmless))  # noqa: S314 - just written
    assert [(each.tag, *each.attrib) for each in document.iter()] == [(each.tag, *each.attrib) for each in plain.iter()]
    assert seen("".join(value for each in document.iter() for value in (*each.attrib.values(), each.text or ""))) <= {
        "\n"
    }
    if name == "cases2.xml":
        names = [case.get("name") for case in document.iter("testcase")]
        assert names == [f"{printable(category)}:auc>=0.9999" for category in categories(led.text)]
    elif name == "cases.xml":
        told = "".join(document.itertext())
        assert f"{printable(led.text + 'b')}={printable(led.text)}: not met" in told


def test_json_gives_every_name_back_exactly(led: Journey) -> None:
    text, out = led.text, led.said["report json"].out
    assert out.isascii()
    document = json.loads(out)
    assert document["classes"][-1] == text or document["classes"]["positive"] == text
    assert {(part["column"], part["value"]) for part in document["slices"]} == {
        (f"{text}b", text),
        (f"{text}b", "other"),
    }
    for name, last in (("head.json", text), ("soft.json", text)):
        head = json.loads(led.path(name).read_bytes())
        assert (head["classes"][-1], head["embedding_model"]) == (last, text)


def csv_rows(path: Path) -> list[list[str]]:
    with path.open(encoding="utf-8", newline="") as file:
        return list(csv.reader(file))


@pytest.mark.parametrize("name", ["scored.csv", "classes.csv", "several.csv", "again.csv"])
def test_csv_keeps_every_text_byte_for_byte(led: Journey, name: str) -> None:
    header, *found = csv_rows(led.path(name))
    kept = [column for column in led.rows.column_names if column != f"{led.text}e"]
    assert header[: len(kept)] == kept
    for column in kept:
        values = led.rows[column].to_pylist()
        if isinstance(values[0], str):
            assert [row[header.index(column)] for row in found] == values, column
    new = header[len(kept) :]
    if name == "several.csv":
        assert {f"{category}_logit" for category in categories(led.text)} <= set(new)
    if name == "classes.csv":
        assert {row[header.index("predicted")] for row in found} <= {f"zero {led.text}", f"one {led.text}", led.text}
        assert {f"logit_{led.text}", f"prob_one {led.text}"} <= set(new)


def test_csv_never_turns_a_negative_number_into_text(led: Journey) -> None:
    header, *found = csv_rows(led.path("scored.csv"))
    logits = pq.read_table(led.path("scored.parquet"))["logit"].to_pylist()
    assert [row[header.index("logit")] for row in found] == [repr(value).removesuffix(".0") for value in logits]
    raw = led.path("scored.csv").read_bytes()
    assert any(
        b"," + row[header.index("logit")].encode() + b"," in raw
        for row in found
        if row[header.index("logit")][0] == "-"
    )


def test_parquet_keeps_every_text(led: Journey) -> None:
    scored = pq.read_table(led.path("scored.parquet"))
    for column in led.rows.column_names:
        if column != f"{led.text}e":
            assert scored[column].to_pylist() == led.rows[column].to_pylist(), column


def test_changed_rows_have_their_ids_as_they_are(led: Journey) -> None:
    header, *found = csv_rows(led.path("changed.csv"))
    ids = [row[header.index(f"{led.text}id")] for row in found]
    assert ids
    assert set(ids) <= {f"{led.text}{row}" for row in range(90)}


# The public list, in every role that a text can have.


def unique(strings: list[str]) -> list[str]:
    return [text for text in dict.fromkeys(strings) if text.strip()]


def scored(tmp_path: Path, columns: dict[str, Any], n: int) -> Path:
    rng = np.random.default_rng(3)
    probs = rng.random(n)
    table = pa.table({"p score": probs, "y label": (rng.random(n) < probs).astype(int), **columns})
    pq.write_table(table, tmp_path / "s.parquet")
    return tmp_path / "s.parquet"


@pytest.mark.parametrize("every", [pytest.param(3, marks=pytest.mark.slow), 40])
def test_naughty_strings_are_columns_slices_and_groups(tmp_path: Path, every: int) -> None:
    """Each is the name of a column of slices, and a slice of another; JSON gives all of them back."""
    names = unique(NAUGHTY)[::every]
    n = 2 * len(names)
    columns = {name: ["a", name] * len(names) for name in names}
    slices = [names[at : at + 500] for at in range(0, len(names), 500)]  # no more are judged of one column
    as_slices = {f"as slices {at}": (part * n)[:n] for at, part in enumerate(slices)}
    data = scored(tmp_path, {**columns, **as_slices}, n)
    by = [option for name in names for option in ("--by", name)]
    scores = ("--prob", "p score", "--label", "y label")
    few = (*scores, "--resamples", 0, "--group", names[-1])
    page = ("--html", tmp_path / "p.html") if every == 40 else ()  # with a thousand slices a page takes its time
    told = headeval("report", data, *by, *few, *page)
    document = headeval("report", data, *by, *few, "--format", "json")
    assert (told.code, document.code) == (0, 0), told.err
    assert seen(told.out + told.err + document.out) <= {"\n"}
    assert {(part["column"], part["value"]) for part in json.loads(document.out)["slices"]} == {
        (name, each) for name in names for each in ("a", name)
    }
    told = headeval("report", data, *(option for name in as_slices for option in ("--by", name)), *few)
    assert (told.code, seen(told.out + told.err)) == (0, {"\n"})
    if every == 40:
        tame = scored(tmp_path, {**{f"c{at}": ["a", "b"] * len(names) for at in range(len(names))}}, n)
        by = [option for at in range(len(names)) for option in ("--by", f"c{at}")]
        hostile = (tmp_path / "p.html").read_text(encoding="utf-8")
        assert headeval("report", tame, *by, *scores, "--resamples", 0, "--group", "c1", *page, "--force").code == 0
        assert Skeleton(hostile).tags == Skeleton((tmp_path / "p.html").read_text(encoding="utf-8")).tags


@pytest.mark.parametrize("every", [pytest.param(8, marks=pytest.mark.slow), 60])
def test_naughty_strings_are_classes_labels_and_columns_of_scores(tmp_path: Path, every: int) -> None:
    names = unique(NAUGHTY)[::every]
    rng = np.random.default_rng(5)
    labels = [names[at % len(names)] for at in range(12 * len(names))]
    e = pa.FixedSizeListArray.from_arrays(pa.array(rng.normal(size=len(labels) * 3)), 3)
    pq.write_table(pa.table({"embedding": e, names[0]: labels}), tmp_path / "t.parquet")
    label = ("--label", names[0], f"--positive={names[-1]}")
    fitted = headeval("fit", tmp_path / "t.parquet", *label, "--folds", 0, "-o", tmp_path / "h.json")
    assert fitted.code == 0, fitted.err
    out = headeval("score", tmp_path / "t.parquet", "--head", tmp_path / "h.json", "-o", tmp_path / "s.csv")
    assert out.code == 0, out.err
    assert sorted(json.loads((tmp_path / "h.json").read_bytes())["classes"]) == sorted(names)
    header, *found = csv_rows(tmp_path / "s.csv")
    assert {f"prob_{name}" for name in names} <= set(header)
    assert [row[0] for row in found] == labels
    told = headeval(
        "report", tmp_path / "t.parquet", "--head", tmp_path / "h.json", "--label", names[0], "--resamples", 0
    )
    assert told.code == 0, told.err
    assert seen(fitted.out + fitted.err + out.err + told.out + told.err) <= {"\n"}


# Streams of narrow encodings, paths of no encoding, terminals of every kind.

NOT_UTF8 = os.fsdecode(b"caf\xe9\x9b31m\xff")
COMMAND = [sys.executable, "-m", "headeval"]
STREAMS = {
    "C locale": {"LC_ALL": "C", "PYTHONUTF8": "0", "PYTHONCOERCECLOCALE": "0"},
    "strict ASCII": {"PYTHONIOENCODING": "ascii:strict"},
    "cp1252": {"PYTHONIOENCODING": "cp1252"},
    "latin-1": {"PYTHONIOENCODING": "latin-1:strict", "LC_ALL": "C", "PYTHONUTF8": "0"},
    "UTF-16": {"PYTHONIOENCODING": "utf-16"},
}


def environment(**extra: str) -> dict[str, str]:
    dropped = {"NO_COLOR", "FORCE_COLOR", "COLUMNS", "PYTHONIOENCODING", "LC_ALL", "LANG", "PYTHONUTF8"}
    return {key: value for key, value in os.environ.items() if key not in dropped} | extra


WIDE = "有é😀\x9b"


@pytest.fixture
def not_utf8(tmp_path: Path) -> Path:
    """A folder and a table whose names are not UTF-8; the table has values beyond any narrow encoding."""
    folder = tmp_path / NOT_UTF8
    folder.mkdir()
    table = rows(WIDE, 60, 0).rename_columns(["id", "embedding", "y", "k", "by", "g", "w", "c1", "c2"])
    with (folder / f"{NOT_UTF8}.parquet").open("wb") as file:
        pq.write_table(table, file)
    return folder


def commands(folder: Path) -> Iterator[list[str]]:
    """Names of columns in ASCII: what is typed must be text of the locale. The requirement is undecided: in-sample."""
    data, head = str(folder / f"{NOT_UTF8}.parquet"), str(folder / f"head{NOT_UTF8}.json")
    labels, by = ["--label", "c1"], ["--by", "by", "--id", "id", "--resamples", "20"]
    files = ["--html", f"{head}.html", "--card", f"{head}.md", "--junit", f"{head}.xml", "--require", "auc>=0"]
    yield ["fit", data, "-o", head, "--folds", "2", *labels]
    yield ["report", data, "--head", head, *labels, *by, *files]
    yield ["score", data, "--head", head, "-o", f"{head}.csv"]
    yield ["calibrate", data, "--head", head, "-o", f"{head}.cal.json", *labels]


@pytest.mark.parametrize(
    "stream", [pytest.param(name, marks=() if name == "C locale" else pytest.mark.slow) for name in STREAMS]
)
def test_a_narrow_encoding_or_a_path_of_none_crashes_no_command(not_utf8: Path, stream: str) -> None:
    """The second `score` finds its output there: an error that names the path."""
    fit, report, score, calibrate = commands(not_utf8)
    more = [] if stream == "C locale" else [(report, 1), (score, 0), (calibrate, 0)]
    encoding = STREAMS[stream].get("PYTHONIOENCODING", "ascii").partition(":")[0]
    for arguments, code in ((fit, 0), *more, (score, 0 if not more else 6)):
        env = environment(**STREAMS[stream])
        done = subprocess.run([*COMMAND, *arguments], env=env, capture_output=True, timeout=60)
        out, err = done.stdout.decode(encoding), done.stderr.decode(encoding)
        assert done.returncode == code, err
        assert seen(out + err) <= {"\n"}
        assert r"caf\udce9\udc9b31m\udcff" in out + err
    assert any(path.suffix == ".csv" for path in not_utf8.iterdir())


@pytest.mark.slow
@pytest.mark.parametrize("term", ["dumb", "xterm-256color"])
def test_a_terminal_gets_no_sequence_but_colours(not_utf8: Path, term: str) -> None:
    for arguments in commands(not_utf8):
        ours, theirs = pty.openpty()
        env = environment(TERM=term, LC_ALL="C", PYTHONUTF8="0", PYTHONCOERCECLOCALE="0")
        process = subprocess.Popen([*COMMAND, *arguments], stdout=theirs, stderr=theirs, env=env)
        os.close(theirs)
        told = b""
        with contextlib.suppress(OSError):  # so Linux reports the closed terminal
            while chunk := os.read(ours, 65536):
                told += chunk
        os.close(ours)
        text = told.decode("ascii").replace("\r\n", "\n")
        assert process.wait(60) == (arguments[0] == "report"), text
        assert seen(re.sub(r"\x1b\[[\d;]*m", "", text)) <= {"\n"}
        assert not (term == "dumb" and "\x1b" in text)


# Wide characters, and their escapes where a stream cannot show them.

CLASS_NAMES = {
    "wide": tuple(f"有害的内容测试{at}" for at in range(3)),
    "wide and long": ("有害的内容测试有害", "安全安全安全安全安", "x"),
    "accents": ("é" * 14, "ü" * 14, "ö" * 12),
    "emoji": ("😀" * 6, "🙈" * 6, "x"),
    "controls": ("\x1b[1m", "\u202ea", "\0\0"),
    "endless": ("x" * 10_000, "有" * 10_000, "\x9b" * 10_000),
}


@pytest.mark.parametrize("encoding", ["utf-8", "ascii", "cp1252"])
@pytest.mark.parametrize("width", [80, 100])
@pytest.mark.parametrize("names", CLASS_NAMES.values(), ids=CLASS_NAMES)
def test_no_name_hides_a_number_of_the_confusion_matrix(names: tuple[str, ...], width: int, encoding: str) -> None:
    cells = np.array([[11, 12, 13], [14, 15, 16], [17, 18, 19]])
    pairs = [(true, taken) for (true, taken), n in np.ndenumerate(cells) for _ in range(n)]
    probs = np.full((len(pairs), 3), 0.15)
    probs[np.arange(len(pairs)), [taken for _, taken in pairs]] = 0.7
    true = [true for true, _ in pairs]
    classes = evaluate_classes(probs, true, kind="prob", classes=names, n_resamples=0)
    evaluation = evaluate([0.9, 0.2, 0.6, 0.4], [1, 0, 0, 1], kind="prob", classes=("not", names[-1]), n_resamples=0)
    file = io.TextIOWrapper(io.BytesIO(), encoding=encoding)
    Console(file=file, width=width, force_terminal=False, color_system=None).print(
        render_report(Report({}, "held-out", evaluation, classes=classes))
    )
    file.flush()
    text = file.buffer.getvalue().decode(encoding)
    assert max(map(cell_len, text.splitlines())) <= width
    matrix = text[text.index("Confusion matrix") : text.index("Ranking")]
    body = [line.split() for line in matrix.splitlines()]
    for row in cells:
        wanted = [*map(str, row), str(row.sum())]
        assert any(line[-4:] == wanted for line in body), (wanted, matrix)


def test_arrow_reads_the_text_of_a_csv_as_python_does(led: Journey) -> None:
    """Two readers that share no code agree on every name and value."""
    header, *found = csv_rows(led.path("scored.csv"))
    options = pa_csv.ParseOptions(newlines_in_values=True)
    text = dict.fromkeys(header, pa.string())
    table = pa_csv.read_csv(
        led.path("scored.csv"),
        parse_options=options,
        convert_options=pa_csv.ConvertOptions(column_types=text, strings_can_be_null=False),
        read_options=pa_csv.ReadOptions(block_size=1 << 24),
    )
    assert table.column_names == header
    assert [table[name].to_pylist() for name in header] == [list(column) for column in zip(*found, strict=True)]
