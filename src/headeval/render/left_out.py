"""How many rows were left out for want of a label, in words."""

from headeval.render.numbers import count

LIKE_THEM = "the numbers hold for rows like those that have one"


def much_left_out(part: int, total: int) -> bool:
    """Whether rows left out are so many, more than a tenth, that it must be said."""
    return 10 * part > total


def part_of(part: int, total: int, rows: str) -> str:
    """Return a part of some rows as text, never rounded to all of them.

    Examples
    --------
    >>> part_of(414, 756, "rows"), part_of(999, 1000, "rows")
    ('414 of 756 rows (55 %)', '999 of 1,000 rows (>99 %)')
    """
    share = f"{100 * part / total:.0f}"
    return f"{count(part)} of {count(total)} {rows} ({'>99' if share == '100' and part < total else share} %)"
