"""Which values of the label columns of several categories are positive."""

from collections.abc import Mapping, Sequence

from headeval.errors import DataError
from headeval.files.categories import canonical_number
from headeval.files.label_faults import check_spellings
from headeval.files.labels import LabelRule, counted, known_pair, resolve_labels
from headeval.printable import quoted

_MISSING = {"nan", "na", "n/a", "null", "none", "nil", "unknown", "missing", "?", "-"}


def resolve_categories(
    counts: Mapping[str, Mapping[str, int]],
    *,
    where: str,
    positive: str | None = None,
    classes: Sequence[tuple[str, str] | None] | None = None,
) -> list[LabelRule]:
    """Decide for each category by itself which values are positive, as `resolve_labels` does.

    A column without any value is of the classes ("not NAME", "NAME"). Where `positive` is a value of other columns, a
    column that holds one other value alone has no positive row.

    Parameters
    ----------
    counts : by column, how often each value occurs.
    where : the files, for messages.
    positive : the value that is the positive class in every column whose values are no known pair.
    classes : for each category the classes (negative, positive) of a head, or None.

    Raises
    ------
    DataError : as `resolve_labels` does, for the first column of which no two classes can be made, for one whose
        negative class is text such as "nan", and for a `positive` that none of the columns has as its positive value.

    Examples
    --------
    >>> rules = resolve_categories({"hate": {"true": 1}, "spam": {"no": 3, "yes": 1}}, where="data", positive="yes")
    >>> [rule.classes for rule in rules]
    [('false', 'true'), ('no', 'yes')]
    """
    here = [positive is not None and canonical_number(positive) in map(canonical_number, of) for of in counts.values()]
    _refuse_unused(positive, counts, where)
    rules = []
    for (name, values), of_head, held in zip(counts.items(), classes or [None] * len(counts), here, strict=True):
        named = None if known_pair(values) is not None else positive
        if not values:
            rules.append(LabelRule(of_head or (f"not {name}", name), frozenset()))
        elif named is not None and any(here) and len(values) == 1 and not held:
            rules.append(LabelRule(of_head or (next(iter(values)), named), frozenset()))
        else:
            at = f"{where}: column {quoted(name)}"
            check_spellings(values, where=at, classes=of_head)
            rule = resolve_labels(values, where=at, positive=named, classes=of_head, instead=_by_itself(name))
            _refuse_missing(rule, values, at)
            rules.append(rule)
    return rules


def _refuse_unused(positive: str | None, counts: Mapping[str, Mapping[str, int]], where: str) -> None:
    """Refuse a positive value that would play no part: all columns are of known pairs, and positive in none is it.

    Of other columns `resolve_labels` refuses it, and a column without any value may be the one that is meant.
    """
    pairs = {name: known_pair(values) for name, values in counts.items() if values}
    if positive is None or len(pairs) < len(counts) or None in pairs.values():
        return
    number = canonical_number(positive).casefold()
    ends = {name: pair for name, pair in pairs.items() if pair is not None and number in pair}
    if any(number == pair[1] for pair in ends.values()):
        return
    for name, pair in ends.items():
        raise DataError(
            f"{where}: --positive {quoted(positive)} is the negative value of column {quoted(name)}, in which "
            f"{quoted(pair[1])} is positive; leave --positive out"
        )
    name = next(iter(counts))
    raise DataError(
        f"{where}: no label column has the value {quoted(positive)} (--positive); {quoted(name)} holds "
        f"{counted(counts[name])}"
    )


def _by_itself(name: str) -> str:
    return (
        "in each of several label columns a cell is true or false (or of another pair, with --positive NAME), or "
        "empty, which alone means unknown\nleave this column out of --label; one with several classes goes by itself: "
        f"--label {quoted(name)} --classes A,B,C, the flagged one last"
    )


def _refuse_missing(rule: LabelRule, values: Mapping[str, int], at: str) -> None:
    """Refuse text for a missing label, as other programs write it, as the negative class: unknown is not false."""
    missing = next((text for text in values if text not in rule.positives and text.casefold() in _MISSING), None)
    if missing is not None:
        raise DataError(
            f"{at} holds the text {quoted(missing)} in {values[missing]:,} rows, which would count as negative though "
            "it reads like a missing label\nleave the cells of unknown labels empty (null), or call the negative class "
            "otherwise"
        )
