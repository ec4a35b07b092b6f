"""What a shell sees: exit codes, streams, pipes, signals, colours, encodings."""

import json
import os
import pty
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from headeval import errors
from headeval.cli import main as cli

COMMAND = [sys.executable, "-m", "headeval"]


@pytest.fixture
def scores(tmp_path: Path) -> Path:
    pq.write_table(pa.table({"p": [0.1, 0.4, 0.6, 0.9] * 10, "label": [0, 1, 0, 1] * 10}), tmp_path / "s.parquet")
    return tmp_path / "s.parquet"


def clean_environment(**extra: str) -> dict[str, str]:
    dropped = {"NO_COLOR", "FORCE_COLOR", "COLUMNS", "PYTHONIOENCODING"}
    return {key: value for key, value in os.environ.items() if key not in dropped} | extra


def on_a_terminal(arguments: list[str], cwd: Path, command: Sequence[str] = COMMAND, **extra: str) -> str:
    """Run with stdout and stderr on a pseudo-terminal and return all that was written there."""
    ours, theirs = pty.openpty()
    environment = clean_environment(TERM="xterm-256color", **extra)
    process = subprocess.Popen([*command, *arguments], cwd=cwd, stdout=theirs, stderr=theirs, env=environment)
    os.close(theirs)
    chunks = []
    while True:
        try:
            chunk = os.read(ours, 65536)
        except OSError:  # Linux reports the closed terminal this way
            break
        if not chunk:
            break
        chunks.append(chunk)
    process.wait()
    os.close(ours)
    return b"".join(chunks).decode()


def test_colours_on_a_terminal_and_not_one_escape_code_with_no_color_or_json(scores: Path) -> None:
    arguments = ["report", str(scores), "--prob", "p", "--require", "auc>=0.99"]
    assert "\x1b[" in on_a_terminal(arguments, scores.parent)
    assert "\x1b" not in on_a_terminal(arguments, scores.parent, NO_COLOR="1")
    as_json = on_a_terminal([*arguments, "--format", "json"], scores.parent)
    assert "\x1b" not in as_json
    assert json.loads(as_json)["passed"] is False


@pytest.mark.slow
def test_a_pipe_gets_the_same_bytes_whatever_the_terminal_or_locale(scores: Path) -> None:
    environments: list[dict[str, str]] = [
        {},
        {"COLUMNS": "40"},
        {"TERM": "dumb"},
        {"LANG": "de_DE.UTF-8"},
        {"TZ": "Asia/Tokyo"},
        {"PYTHONHASHSEED": "7"},
    ]
    arguments = [*COMMAND, "report", str(scores), "--prob", "p"]
    outputs = {
        subprocess.run(arguments, env=clean_environment(**extra), capture_output=True, check=True).stdout
        for extra in environments
    }
    assert len(outputs) == 1
    assert b"\x1b" not in outputs.pop()


@pytest.mark.parametrize("encoding", ["ascii", "cp1252"])
@pytest.mark.parametrize("output_format", ["table", "json", "markdown"])
def test_a_narrow_encoding_never_costs_the_result(scores: Path, encoding: str, output_format: str) -> None:
    environment = clean_environment(PYTHONIOENCODING=encoding)
    arguments = ["report", str(scores), "--prob", "p", "--format", output_format]
    done = subprocess.run(COMMAND + arguments, env=environment, capture_output=True, check=True)
    text = done.stdout.decode(encoding)
    assert "0.75" in text
    if output_format == "json":
        json.loads(text)


def test_a_closed_pipe_is_141_and_silent(scores: Path) -> None:
    arguments = [*COMMAND, "report", str(scores), "--prob", "p"]
    with subprocess.Popen(arguments, stdout=subprocess.PIPE, stderr=subprocess.PIPE) as process:
        assert process.stdout is not None
        assert process.stderr is not None
        process.stdout.close()
        assert process.stderr.read() == b""
        assert process.wait() == 141


@pytest.mark.parametrize("output_format", ["json", "markdown"])
def test_a_pipe_closed_on_other_formats_is_141_too(scores: Path, output_format: str) -> None:
    shell = f"{' '.join(COMMAND)} report s.parquet --prob p --format {output_format} | true; echo ${{PIPESTATUS[0]}}"
    done = subprocess.run(["bash", "-c", shell], cwd=scores.parent, capture_output=True, check=True, text=True)
    assert (done.stdout, done.stderr) == ("141\n", "")


@pytest.mark.parametrize(("number", "code"), [(signal.SIGINT, 130), (signal.SIGTERM, 143)])
def test_an_interrupt_has_its_code_leaves_no_file_and_says_nothing(tmp_path: Path, number: int, code: int) -> None:
    rng = np.random.default_rng(0)
    e = pa.FixedSizeListArray.from_arrays(pa.array(rng.normal(size=400)), 4)
    pq.write_table(pa.table({"embedding": e, "label": [0, 1] * 50}), tmp_path / "t.parquet")
    # The command waits in the middle of writing its output, and says so in a file.
    program = (
        "import os, time, headeval.__main__ as entry\n"
        "from headeval.files import atomic\n"
        "def waiting(*_, **__):\n"
        "    open('reached', 'w').close()\n"
        "    time.sleep(60)\n"
        "atomic._publish = waiting\n"
        "entry.main()\n"
    )
    arguments = [sys.executable, "-c", program, "fit", "t.parquet", "--folds", "0"]
    with subprocess.Popen(arguments, cwd=tmp_path, stdout=subprocess.PIPE, stderr=subprocess.PIPE) as process:
        patience = time.monotonic() + 60
        while not (tmp_path / "reached").exists():
            assert process.poll() is None
            assert time.monotonic() < patience
            time.sleep(0.05)
        process.send_signal(number)
        out, err = process.communicate(timeout=30)
    assert (process.returncode, out, err) == (code, b"", b"")
    assert sorted(path.name for path in tmp_path.iterdir()) == ["reached", "t.parquet"]


def test_a_closed_stdout_is_6_and_a_closed_stderr_changes_no_code(scores: Path) -> None:
    def code(redirected: str, arguments: str = "report s.parquet --prob p") -> tuple[int, bytes]:
        shell = f"{' '.join(COMMAND)} {arguments} {redirected}"
        done = subprocess.run(["bash", "-c", shell], cwd=scores.parent, capture_output=True, check=False)
        return done.returncode, done.stderr

    for arguments in ("report s.parquet --prob p", "--version", "--help"):
        ended, said = code(">&-", arguments)
        assert (ended, len(said.splitlines())) == (6, 1)
        assert b"stdout is closed" in said
    assert code("2>/dev/full") == (0, b"")
    assert code("2>/dev/full", "report absent.parquet --prob p") == (3, b"")
    assert code("2>/dev/full", "report --bogus") == (2, b"")
    assert code("2>&-") == (0, b"")
    assert code("2>&-", "report absent.parquet --prob p") == (3, b"")


@pytest.mark.slow
@pytest.mark.parametrize("unbuffered", ["", "1"])
@pytest.mark.parametrize(
    "arguments", ["report s.parquet --prob p", "report s.parquet --prob p --format json", "--version", "fit --help"]
)
def test_a_result_that_stdout_cannot_take_whole_is_6(scores: Path, unbuffered: str, arguments: str) -> None:
    environment = clean_environment(PYTHONUNBUFFERED=unbuffered)
    shell = f"{' '.join(COMMAND)} {arguments} > /dev/full"
    done = subprocess.run(["bash", "-c", shell], cwd=scores.parent, capture_output=True, env=environment, check=False)
    assert done.returncode == 6
    assert done.stderr.decode().splitlines() == ["headeval: stdout: cannot be written: No space left on device"]


def test_a_file_limit_that_cuts_the_result_is_6(scores: Path) -> None:
    environment = clean_environment(PYTHONUNBUFFERED="1")
    shell = f"ulimit -f 1; trap '' XFSZ; {' '.join(COMMAND)} report s.parquet --prob p --format json > r.json"
    done = subprocess.run(["bash", "-c", shell], cwd=scores.parent, capture_output=True, env=environment, check=False)
    assert done.returncode == 6
    assert done.stderr.decode().startswith("headeval: stdout: cannot be written")
    assert len(done.stderr.splitlines()) == 1


@pytest.mark.parametrize(
    ("raised", "code"),
    [
        (KeyboardInterrupt(), 130),
        (BrokenPipeError(), 141),
        (ZeroDivisionError("boom"), 70),
        (RuntimeError("boom"), 70),
        (MemoryError(), 3),
        (RuntimeError("can't start new thread"), 3),
        (errors.UsageError("x"), 2),
        (errors.DataError("x"), 3),
        (errors.HeadError("x"), 4),
        (errors.FitError("x"), 5),
        (errors.OutputError("x"), 6),
    ],
)
def test_every_ending_has_its_exit_code(
    raised: BaseException, code: int, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    def fail(_: Any) -> int:
        raise raised

    monkeypatch.setattr(cli, "_invoke", fail)
    monkeypatch.delenv("HEADEVAL_DEBUG", raising=False)
    assert cli.run(["fit"]) == code
    err = capsys.readouterr().err
    assert len(err.splitlines()) == (0 if code > 100 else 1)
    assert "Traceback" not in err


def test_a_bug_is_one_line_and_the_traceback_only_on_request(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    def fail(_: Any) -> int:
        raise ZeroDivisionError("boom\x1b[31m")

    monkeypatch.setattr(cli, "_invoke", fail)
    monkeypatch.setenv("HEADEVAL_DEBUG", "1")
    assert cli.run(["fit"]) == 70
    err = capsys.readouterr().err
    assert "Traceback" in err
    assert err.splitlines()[-1].startswith("headeval: a bug in headeval: ZeroDivisionError: boom")
    assert "\x1b" not in err.splitlines()[-1]


@pytest.mark.parametrize("command", ["fit", "score", "calibrate", "report", "threshold"])
def test_version_help_and_quiet_are_common_to_all(headeval: Callable[..., Any], command: str) -> None:
    assert headeval(command, "--version").out.startswith("headeval 0.")
    for flag in ("--help", "-h"):
        shown = headeval(command, flag)
        assert shown.code == 0
        assert "--quiet" in shown.out
    assert headeval("--version").code == 0


def test_nothing_to_do_is_not_success(headeval: Callable[..., Any]) -> None:
    # A script whose variables were empty must not pass.
    outcome = headeval()
    assert outcome.code == 2
    assert "Commands:" in outcome.out


@pytest.mark.parametrize("arguments", [["fitt"], ["fit"], ["fit", "--nope"], ["report", "x", "--format"]])
def test_usage_errors_are_one_line_and_point_to_help(headeval: Callable[..., Any], arguments: list[str]) -> None:
    outcome = headeval(*arguments)
    assert outcome.code == 2
    assert len(outcome.err.splitlines()) == 1
    assert "--help" in outcome.err


def test_quiet_says_nothing_on_stderr(
    headeval: Callable[..., Any], fitted: Path, make_table: Callable[..., Path]
) -> None:
    data = make_table("new.parquet")
    assert "scored" in headeval("score", data, "-o", "a.parquet").err
    assert headeval("score", data, "-o", "b.parquet", "--quiet").err == ""


def test_progress_is_drawn_on_a_terminal_only(fitted: Path, make_table: Callable[..., Path], tmp_path: Path) -> None:
    make_table("new.parquet")
    at_once = "from headeval.cli import console, main, training_rows; console.PATIENCE = console.SHORT = 0; "
    impatient = [sys.executable, "-c", f"{at_once}training_rows._HELD = 1e6; main.main()"]
    drawn = on_a_terminal(["fit", "new.parquet", "-o", "x.json"], tmp_path, impatient)
    assert "reading" in drawn
    streamed = ["fit", "new.parquet", "-o", "z.json", "--memory", "1MB"]
    assert "pass 1: sampling rows" in on_a_terminal(streamed, tmp_path, impatient)
    for extra in ({"NO_COLOR": "1"}, {}):
        quiet = [] if extra else ["--quiet"]
        silent = on_a_terminal(["fit", "new.parquet", "-o", "y.json", "--force", *quiet], tmp_path, impatient, **extra)
        assert "reading" not in silent
    assert "\x1b" not in on_a_terminal(
        ["report", "new.parquet", "--head", "x.json", "--format", "json"], tmp_path, impatient
    )
