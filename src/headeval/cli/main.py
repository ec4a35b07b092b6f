"""The app, and the one place where what went wrong becomes a line on stderr and an exit code."""

import contextlib
import errno
import os
import sys
import traceback
from collections.abc import Sequence
from importlib.machinery import ModuleSpec

import typer

from headeval.cli import signals
from headeval.cli.calibrate import calibrate
from headeval.cli.fit import fit
from headeval.cli.options import Version
from headeval.cli.report import report
from headeval.cli.score import score
from headeval.cli.threshold import threshold
from headeval.errors import DataError, HeadevalError, OutputError, UsageError
from headeval.printable import printable

BUG, INTERRUPTED, CLOSED_PIPE = 70, 130, 141
LONGEST_OF_TYPER = 500
_NO_THREAD = "can't start new thread"  # a RuntimeError, where there is no memory for one
_NO_ROOM = {errno.ENOSPC, errno.EDQUOT, errno.EFBIG, errno.EIO}

# A paragraph that begins with the character \b keeps its lines.
HELP = """Fit, calibrate and judge the linear head of a safety classifier.

\b
headeval fit train.parquet --l2 1.0
headeval calibrate calibration.parquet --head linear-head.json
headeval threshold holdout.parquet --head linear-head-calibrated.json --require 'fpr<=0.01'
headeval report test.parquet --head linear-head-calibrated-threshold.json --require 'auc>=0.9'

Exit codes: 0 done, 1 a requirement not met, 2 usage, 3 data, 4 head file, 5 no usable fit or calibration,
6 output not written, 70 a bug, 130 interrupted, 141 closed pipe, 143 terminated."""

app = typer.Typer(
    add_completion=False,
    rich_markup_mode=None,  # plain help: no markup in text from outside, no escape codes, a fast start
    pretty_exceptions_enable=False,
    context_settings={"help_option_names": ["-h", "--help"]},
)
for command in (fit, score, calibrate, threshold, report):
    app.command()(command)


@app.callback(help=HELP)
def headeval(_version: Version = False) -> None:
    """Hold the options that stand before a command."""


def main() -> None:
    """Run the command line and leave with its exit code."""
    sys.meta_path.insert(0, _WithoutPandas())
    _open_closed_streams()
    for stream in (sys.stdout, sys.stderr):
        if hasattr(stream, "reconfigure"):
            stream.reconfigure(errors="backslashreplace")  # a narrow encoding must not lose a finished result
    try:
        signals.leave_at_once(False)
        code = run(sys.argv[1:])
        signals.leave_at_once(True)
    except KeyboardInterrupt:  # it came just before `run` or just after it, and another one comes to nothing so soon
        signals.leave_at_once(True)
        code = INTERRUPTED
    code = signals.code_of_signal() or code  # also where a library has swallowed it, or made an error of it
    if code not in {CLOSED_PIPE, OutputError.exit_code}:
        code = _flushed(code)
    if code in {CLOSED_PIPE, OutputError.exit_code}:
        # Python flushes stdout once more at exit: give it somewhere to go, so that nothing else is said.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
    sys.exit(code)


class _WithoutPandas:
    """Tells pyarrow that there is no pandas: it asks at the first array, and a fifth of a command would be its import.

    Only in the process of the command line, which has no use for pandas; whoever imports headeval keeps theirs.
    """

    def find_spec(self, name: str, *_: object) -> ModuleSpec | None:
        if name == "pandas":
            raise ModuleNotFoundError("the command line of headeval works without pandas", name=name)
        return None


def _flushed(code: int) -> int:
    """Return `code`, or what became of it where stdout, which still holds the help text, cannot be written."""
    try:
        sys.stdout.flush()
    except BrokenPipeError:
        return CLOSED_PIPE
    except OSError as error:
        _say(f"stdout: cannot be written: {error.strerror or error}")
        return OutputError.exit_code
    return code


def _open_closed_streams() -> None:
    """Let what is said go nowhere where stderr is closed; a closed stdout would lose the result: refuse it."""
    if sys.stderr is None:
        sys.stderr = open(os.devnull, "w", encoding="utf-8")  # noqa: PTH123, SIM115 - lives until the process ends
    if sys.stdout is None:
        _say("stdout is closed, so there is no place for the result: give it a file or /dev/null")
        sys.exit(OutputError.exit_code)


def run(arguments: Sequence[str]) -> int:
    """Run one command line and return its exit code; nothing is raised."""
    try:
        return _invoke(arguments)
    except HeadevalError as error:
        _say(str(error))
        return error.exit_code
    except typer.TyperException as error:
        context = getattr(error, "ctx", None)
        # What was typed stands in the message as it is: its line breaks are none of ours, and it may be endless.
        message = printable(error.format_message().replace("Value error, ", ""), longest=LONGEST_OF_TYPER)
        _say(f"{message} (see '{context.command_path if context else 'headeval'} --help')")
        return UsageError.exit_code
    except (KeyboardInterrupt, typer.Abort):
        return INTERRUPTED
    except BrokenPipeError:
        return CLOSED_PIPE
    except OSError as error:
        return _stdout_full(error) if error.errno in _NO_ROOM else _bug(error)
    except MemoryError:
        return _memory_ran_out()
    except RuntimeError as error:
        return _memory_ran_out() if str(error) == _NO_THREAD else _bug(error)
    except (Exception, SystemExit) as error:  # the one last resort; nor may a library choose the exit code
        return _bug(error)


def _stdout_full(error: OSError) -> int:
    """Files report their own errors; what is left is the help text that stdout cannot take."""
    _say(f"stdout: cannot be written: {error.strerror}")
    return OutputError.exit_code


def _memory_ran_out() -> int:
    _say("memory ran out: use fewer or shorter rows, or more memory (fit reads rows anew with --memory SIZE)")
    return DataError.exit_code


def _bug(error: BaseException) -> int:
    if os.environ.get("HEADEVAL_DEBUG"):
        traceback.print_exception(error)
    _say(f"a bug in headeval: {type(error).__name__}: {error} (HEADEVAL_DEBUG=1 shows the traceback)")
    return BUG


def _invoke(arguments: Sequence[str]) -> int:
    """Parse and run; typer's own `main` would turn a closed pipe into exit code 1."""
    command = typer.main.get_command(app)
    try:
        with command.make_context("headeval", list(arguments) or ["--help"]) as context:
            command.invoke(context)
    except typer.Exit as leave:
        # Nothing to do is not "done": a script whose variables were empty must not pass.
        return leave.exit_code if arguments else UsageError.exit_code
    return 0


def _say(message: str) -> None:
    if signals.code_of_signal() is not None:  # who has interrupted knows why it ends
        return
    text = "\n  ".join(printable(line) for line in message.splitlines())
    with contextlib.suppress(OSError):  # what cannot be said must not change the exit code
        sys.stderr.write(f"headeval: {text}\n")
        sys.stderr.flush()
