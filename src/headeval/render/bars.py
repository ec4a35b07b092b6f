"""A bar of a reliability diagram, and a curve in one line, in characters."""

from collections.abc import Sequence

FULL = "█"
EIGHTHS = " ▏▎▍▌▋▊▉"
HEIGHTS = "▁▂▃▄▅▆▇█"
MARK = "│"
ASCII_FULL, ASCII_MARK, ASCII_HEIGHTS = "#", "|", "_.:-=+*#"


def bar_text(share: float, mean: float, *, width: int, ascii_only: bool) -> str:
    """Return a bar of length `share` with a mark at `mean`, padded to `width` characters.

    Parameters
    ----------
    share, mean : in [0, 1].

    Examples
    --------
    >>> bar_text(0.5, 0.9, width=8, ascii_only=True)
    '####   |'
    >>> bar_text(0.3125, 0.0, width=8, ascii_only=False)
    '│█▌     '
    """
    filled, eighths = divmod(round(share * width * 8), 8)
    if ascii_only:
        cells = list((ASCII_FULL * round(share * width)).ljust(width))
    else:
        cells = list((FULL * filled + (EIGHTHS[eighths] if eighths else "")).ljust(width))
    cells[min(int(mean * width), width - 1)] = ASCII_MARK if ascii_only else MARK
    return "".join(cells)


def sparkline(shares: Sequence[float]) -> str:
    """Return one character for each share in [0, 1], the higher the fuller; only an exact 1 is full.

    Examples
    --------
    >>> sparkline([0.0, 0.5, 0.99, 1.0])
    '▁▄▇█'
    """
    return "".join(HEIGHTS[int(share * (len(HEIGHTS) - 1))] for share in shares)
