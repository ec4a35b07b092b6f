"""The command line: any list of arguments ends in a documented code, says at most one error, leaves no stray file."""

import contextlib
import io
import os
import re
import warnings
from collections.abc import Iterator

from fuzz.prepared import Contents, contents, originals, tidy, workplace
from fuzz.promises import check_message
from headeval.cli.main import run
from headeval.files.heads import read_head
from headeval.files.strict_json import parse_strict

_COMMANDS = ("fit", "score", "calibrate", "threshold", "report")
# fmt: off
_OPTIONS = (
    "--l2", "--l2-rule", "--label", "--positive", "--classes", "--embedding", "--embedding-model", "--threshold",
    "--weight", "--group", "--folds", "--eval", "--drop-unlabelled", "--memory", "--min-positives", "--allow-missing",
    "--output", "-o", "--force", "--quiet", "-q", "--version", "--help", "--head", "--logit", "--prob", "--method",
    "--require", "--maximise", "--cost-fp", "--cost-fn", "--confidence", "--benign", "--plan", "--format", "--by",
    "--require-each", "--min-rows", "--baseline", "--baseline-logit", "--baseline-prob", "--changed", "--reference",
    "--id", "--prevalence", "--per-day", "--resamples", "--seed", "--ece-convention", "--bins", "--binning", "--html",
    "--card", "--junit", "--", "-",
)
_VALUES = (
    "rows.parquet", "rows.csv", "scores.csv", "broken.csv", "broken.parquet", "broken.json", "linear-head.json",
    "three.json", "heads", ".", "*.csv", "nothing.csv", "out.json", "out.csv", "out.parquet", "out", "out.html",
    "label", "three", "cat_a,cat_b", "cat_*", "e", "embedding", "logit", "prob", "weight", "group", "id", "",
    "unsafe", "safe", "hate", "fine,rude,hate", "m", "other", "0", "1", "0.5", "-1", "nan", "inf", "1e308", "1e-308",
    "1,10", "auto", "one-se", "best", "platt", "temperature", "json", "markdown", "table", "1MB", "10", "2", "0.9",
    "auc>=0.5", "fpr<=0.5", "recall>=0.1", "recall.lower>=0.5", "auc.diff>=0", "hate:recall>=0.1", "*:auc>=0.1",
    "cat_a:auc>=0.5", "flag_rate<=0.9", "precision>=0.5", "specificity>=0.1", "f1", "top-label-left", "positive-class",
    "equal-mass", "--label=three", "--label=cat_*", "--format=json", "--resamples=20", "--head=heads",
)
# fmt: on
_ODD = (b"\xff", b"\x1b[31m", "\u202e".encode(), b"[red]", b"=cmd()", b"\r", "😀".encode(), b"a" * 300)
WORDS = tuple(b"\n" + word for word in (*map(str.encode, (*_COMMANDS, *_OPTIONS, *_VALUES)), *_ODD))
CODES = {0, 1, 2, 3, 4, 5, 6}
_BEFORE_ANY_WORK = {2, 3, 4}
# A place outside the folder, in a store, or on a cluster: nothing for a run that writes what chance says.
_ELSEWHERE = re.compile(r"(?s)/|\.\.|~|dask|--sch|--plots|--engine")
_MANY = re.compile(
    r"[0-9][0-9_]{3,}|[0-9]\.?[0-9]*[eE]\+?[0-9]|[0-9] *[gGtT][iI]?[bB]"
)  # bins or resamples that take minutes
_MADE_BY_DEFAULT = {"linear-head.json", "linear-head-calibrated.json", "linear-head-threshold.json", "heads"}


def seeds() -> list[bytes]:
    """Return command lines, one argument a line, that do every kind of work."""
    lines = (
        *("", "--help", "fit\n--help", "fit\n--nope", "fit\nnothing.csv", "report\nrows.parquet\n--head\nbroken.json"),
        "fit\nrows.parquet\n-o\nout.json\n--l2\n0.1,1",
        "fit\nrows.csv\n--label\nthree\n--classes\nfine,rude,hate\n--folds\n2\n-o\nout.json",
        "fit\nrows.parquet\n--label\ncat_*\n-o\nout\n--min-positives\n2\n--allow-missing",
        "score\nrows.parquet\n-o\nout.csv",
        "score\nrows.csv\n--head\nheads\n-o\nout.parquet\n--force",
        "calibrate\nscores.csv\n--logit\nlogit\n-o\nout.csv\n--method\nplatt",
        "calibrate\nrows.parquet\n--head\nlinear-head.json",
        "threshold\nrows.parquet\n--head\nlinear-head.json\n--require\nrecall>=0.1\n--format\njson",
        "threshold\n--head\nlinear-head.json\n--plan\n--require\nfpr<=0.01",
        "report\nscores.csv\n--prob\nprob\n--format\njson\n--resamples\n20\n--require\nauc>=0.5",
        "report\nrows.parquet\n--head\nthree.json\n--label\nthree\n--require\nhate:recall>=0.1\n--resamples\n20",
        "report\nrows.parquet\n--head\nheads\n--label\ncat_*\n--by\ngroup\n--min-rows\n1\n--resamples\n20",
        "report\nrows.csv\n--head\nlinear-head.json\n--baseline-logit\nlogit\n--changed\nout.csv\n--resamples\n20",
        "report\nscores.csv\n--logit\nlogit\n--html\nout.html\n--card\nout.md\n--junit\nout.xml\n--resamples\n20",
    )
    return [line.encode() for line in lines]


def check(data: bytes) -> None:
    """Run the arguments, one a line, in a folder of small files and see what is said, left and returned."""
    arguments = data.decode("utf-8", "surrogateescape").split("\n") if data else []
    if any(_ELSEWHERE.search(argument) or "\0" in argument for argument in arguments):
        return
    if any(_MANY.search(argument) for argument in arguments if "1e308" not in argument) or len(arguments) > 40:
        return
    folder = workplace()
    code, out, err = _run(arguments)
    left = contents(folder)
    try:
        _check_said(code, out, err)
        _check_left(arguments, code, left)
    finally:
        if left != originals():
            tidy(folder)


def _check_said(code: int, out: str, err: str) -> None:
    assert code in CODES, f"exit code {code}: {err}"
    assert "Traceback" not in out + err
    errors = err[err.find("headeval: ") :] if err.startswith("headeval: ") or "\nheadeval: " in err else ""
    assert err == "" or err.endswith("\n")
    if code >= 2:
        assert errors or out.startswith("Usage:"), f"exit code {code} without a word"
    if code in _BEFORE_ANY_WORK and errors:
        check_message(errors.removeprefix("headeval: ").rstrip("\n"))
        assert out == "" or out.startswith("Usage:"), "an error after a result"
    if code < 2:
        assert not errors, f"an error with exit code {code}: {errors}"
        if out.startswith("{"):
            parse_strict(out.encode())
    for line in err.splitlines():
        assert line.isprintable(), f"control characters on stderr: {line!r}"


def _check_left(arguments: list[str], code: int, left: Contents) -> None:
    before = originals()
    changed = {name for name in {*before, *left} if before.get(name) != left.get(name)}
    assert code not in _BEFORE_ANY_WORK or not changed, f"exit code {code} has changed {changed}"
    forced = "--force" in arguments
    for name in changed:
        assert forced or name not in before, f"{name} is replaced or gone without --force"
        top = name.partition("/")[0]
        assert top in _MADE_BY_DEFAULT or any(top in argument for argument in arguments) or "-calibrated" in top, (
            f"{name} is left, which nobody asked for"
        )
        if name.endswith(".json") and left.get(name, b"").startswith(b'{\n  "embedding_model"'):
            read_head(workplace() / name)


def _run(arguments: list[str]) -> tuple[int, str, str]:
    streams = [io.TextIOWrapper(io.BytesIO(), encoding="utf-8", errors="backslashreplace") for _ in range(2)]
    with _inside(), contextlib.redirect_stdout(streams[0]), contextlib.redirect_stderr(streams[1]):
        code = run(arguments)
    for stream in streams:
        stream.flush()
    out, err = (stream.buffer.getvalue().decode() for stream in streams)
    return code, out, err


@contextlib.contextmanager
def _inside() -> Iterator[None]:
    """Work in the folder, without settings of the terminal, and with every warning an error."""
    here = os.getcwd()  # noqa: PTH109 - as it is, without looking where links lead
    os.chdir(workplace())
    kept = {name: os.environ.pop(name) for name in ("COLUMNS", "FORCE_COLOR", "HEADEVAL_DEBUG") if name in os.environ}
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("error")
            yield
    finally:
        os.environ.update(kept)
        os.chdir(here)
