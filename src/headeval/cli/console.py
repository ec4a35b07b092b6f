"""Where commands write: the result to stdout, talk and progress to stderr."""

import os
import sys
import time
from collections.abc import Callable, Iterable, Iterator, Sized
from contextlib import ExitStack, contextmanager, suppress
from typing import TYPE_CHECKING, Any, TextIO

from headeval.errors import OutputError
from headeval.printable import printable

if TYPE_CHECKING:
    from rich.console import Console, RenderableType

WIDTH_WHEN_PIPED = 100  # the same bytes in every pipe, whatever COLUMNS says
WIDEST = 120
PATIENCE = 0.5  # seconds before the first progress bar appears: short work needs none
SHORT = 0.2  # seconds that a later one waits, so that quick passes do not flicker


def show(renderable: "RenderableType") -> None:
    """Print the result of a command to stdout; errors as of `write`."""
    console = _console(sys.stdout)
    # Captured first: rich would end the process by itself where the pipe is closed.
    with _stdout_errors(), console.capture() as captured:
        console.print(renderable)
    text = captured.get()
    if console.color_system is None:
        text = "".join(f"{line.rstrip()}\n" for line in text.splitlines())
    write(text)


def write(text: str) -> None:
    """Write finished text to stdout, all of it or with an error: an unbuffered stream may take only a part.

    Raises
    ------
    OutputError
        When stdout cannot take it; a closed pipe is a BrokenPipeError.
    """
    stream = sys.stdout
    data = memoryview(text.encode(stream.encoding, errors="backslashreplace"))
    with _stdout_errors():
        stream.flush()
        while data:
            data = data[stream.buffer.write(data) :]
        stream.buffer.flush()


@contextmanager
def _stdout_errors() -> Iterator[None]:
    try:
        yield
    except BrokenPipeError:
        raise
    except OSError as error:
        raise OutputError(f"stdout: cannot be written: {error.strerror or error}") from error


def say(text: str, *, quiet: bool) -> None:
    """Tell the person at the terminal, on stderr, unless asked not to."""
    if not quiet:
        with suppress(OSError):  # what cannot be said must not change the exit code
            sys.stderr.write(f"{printable(text)}\n")
            sys.stderr.flush()


_first: list[float] = []  # when bars were first wanted


def progress(
    description: str, *, quiet: bool, size: Callable[[Any], int] = lambda _: 1
) -> Callable[..., Iterator[Any]]:
    """Return a wrapper of iterables that draws a bar on stderr, on a terminal only.

    The wrapper takes the items and, where known, the total of their sizes.
    """

    def track(items: Iterable[Any], total: float | None = None) -> Iterator[Any]:
        if quiet or _no_colour() or not sys.stderr.isatty():
            yield from items
            return
        from rich.progress import Progress

        if total is None and isinstance(items, Sized):
            total = len(items)
        begun = time.monotonic()
        _first.append(begun)
        done, bar, task = 0, None, None
        with ExitStack() as stack:
            for item in items:
                yield item
                done += size(item)
                now = time.monotonic()
                if bar is None and now - _first[0] >= PATIENCE and now - begun >= SHORT:
                    bar = stack.enter_context(Progress(console=_console(sys.stderr), transient=True))
                    task = bar.add_task(description, total=total)
                if bar is not None and task is not None:
                    bar.update(task, completed=done, refresh=True)

    return track


def _console(stream: TextIO) -> "Console":
    from rich.console import Console

    # no_color alone would leave bold and dim: NO_COLOR means not one escape code. And FORCE_COLOR would make rich
    # take a pipe for a terminal, of whatever width COLUMNS says.
    console = Console(
        file=stream,
        force_terminal=stream.isatty(),
        color_system=None if _no_colour() else "auto",
        markup=False,
        emoji=False,
        highlight=False,
    )
    console.width = min(console.width, WIDEST) if console.is_terminal else WIDTH_WHEN_PIPED
    return console


def _no_colour() -> bool:
    return bool(os.environ.get("NO_COLOR"))
