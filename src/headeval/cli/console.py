"""Where commands write: the result to stdout, talk and progress to stderr."""

import os
import sys
from collections.abc import Callable, Iterable, Iterator, Sized
from typing import TYPE_CHECKING, Any, TextIO

from headeval.printable import printable

if TYPE_CHECKING:
    from rich.console import Console, RenderableType

WIDTH_WHEN_PIPED = 100  # the same bytes in every pipe, whatever COLUMNS says
WIDEST = 120


def show(renderable: "RenderableType") -> None:
    """Print the result of a command to stdout."""
    _console(sys.stdout).print(renderable)


def write(text: str) -> None:
    """Write finished text (JSON, Markdown) to stdout as it is."""
    sys.stdout.write(text)


def say(text: str, *, quiet: bool) -> None:
    """Tell the person at the terminal, on stderr, unless asked not to."""
    if not quiet:
        sys.stderr.write(f"{printable(text)}\n")


def progress(
    description: str, *, quiet: bool, size: Callable[[Any], int] = lambda _: 1
) -> Callable[..., Iterator[Any]]:
    """Return a wrapper of iterables that draws a bar on stderr, on a terminal only.

    The wrapper takes the items and, where known, the total of their sizes.
    """

    def track(items: Iterable[Any], total: float | None = None) -> Iterator[Any]:
        if quiet or not sys.stderr.isatty():
            yield from items
            return
        from rich.progress import Progress

        with Progress(console=_console(sys.stderr), transient=True) as bar:
            task = bar.add_task(description, total=len(items) if total is None and isinstance(items, Sized) else total)
            for item in items:
                yield item
                bar.advance(task, size(item))

    return track


def _console(stream: TextIO) -> "Console":
    from rich.console import Console

    # no_color alone would leave bold and dim: NO_COLOR means not one escape code.
    colour = None if os.environ.get("NO_COLOR") else "auto"
    console = Console(file=stream, markup=False, emoji=False, highlight=False, color_system=colour)  # type: ignore[arg-type]
    console.width = min(console.width, WIDEST) if console.is_terminal else WIDTH_WHEN_PIPED
    return console
