"""Which of the values of a label column is the positive class; it is never guessed."""

from collections.abc import Callable, Collection, Mapping
from dataclasses import dataclass

from headeval.errors import DataError
from headeval.files.categories import canonical_number
from headeval.printable import quoted

# (negative, positive), matched whatever the case.
KNOWN_PAIRS = (("0", "1"), ("false", "true"), ("safe", "unsafe"))
# A boolean is 0 and 1 in one format and false and true in the next, so these name the same. That unsafe is meant where
# true is written nothing says: it may be another column.
_SAME_VALUE = {"false": "0", "true": "1"}
_VALUES_SHOWN = 10
_TWO = "make a column with two, or leave the other rows out"
MANY_CLASSES = f"{_TWO}, or name all classes in their order with --classes, the flagged one last"


@dataclass(frozen=True, slots=True)
class LabelRule:
    """The classes as text, (negative, positive), and the values of the column that stand for the positive one."""

    classes: tuple[str, str]
    positives: frozenset[str]


def resolve_labels(
    counts: Mapping[str, int],
    *,
    where: str,
    positive: str | None = None,
    classes: tuple[str, str] | None = None,
    instead: str = MANY_CLASSES,
    may_name_them: bool = False,
) -> LabelRule:
    """Decide which values are positive.

    Texts that are the same integral number (`1`, `1.0`, `+1`) are one value, unless `classes` tells them apart.

    Parameters
    ----------
    counts : how often each value occurs, by its canonical text (`false`, `true`, integral numbers without decimals).
    where : the file and column, for messages.
    positive : the value that is the positive class; without it only {0, 1}, {false, true} and {safe, unsafe} are known.
    classes : (negative, positive) of a head or a score file. Without `positive`, every value must be one of them: the
        same text or number, of the known pairs in any case, and false/true where they are 0/1 or the other way round.
        The classes returned are then these; with `positive` they are the file's.
    instead : what to do about more than two values, for the message; not where `classes` are given.
    may_name_them : say it there too, as these are of columns of scores, which --classes can name.

    Raises
    ------
    DataError : where the values are more than two or others than `classes`, where `positive` is not among them or is
        the class that is not flagged, or where which is positive is not known.

    Examples
    --------
    >>> resolve_labels({"Unsafe": 3, "Safe": 9}, where="labels").classes
    ('Safe', 'Unsafe')
    >>> resolve_labels({"spam": 1, "ham": 2}, where="labels", positive="spam").classes
    ('ham', 'spam')
    >>> resolve_labels({"1.0": 1, "0": 2, "1": 1}, where="labels").classes
    ('0', '1')
    """
    names = {} if classes is not None and _same_number(classes) else one_a_number(counts)
    if len(set(names.values())) < len(names):
        merged = dict.fromkeys(names.values(), 0)
        for text, name in names.items():
            merged[name] += counts[text]
        rule = resolve_labels(
            merged, where=where, positive=positive, classes=classes, instead=instead, may_name_them=may_name_them
        )
        return LabelRule(rule.classes, frozenset(text for text, name in names.items() if name in rule.positives))
    if positive is not None:
        if classes is not None and _spelling_of(classes)(positive) == _spelling_of(classes)(classes[0]):
            raise DataError(
                f"{where}: --positive {quoted(positive)} is the class that the head does not flag; it flags "
                f"{quoted(classes[1])}"
            )
        return _named(counts, where, positive, classes, instead if classes is None or may_name_them else _TWO)
    if classes is not None:
        return _by_head(counts, where, classes)
    pair = known_pair(counts)
    if pair is None:
        _refuse_more_than_two(counts, where, instead)
        raise DataError(
            f"{where} holds {counted(counts)}: which is the positive class? Name it with --positive, "
            f"the one that is to be flagged: {' or '.join(f'--positive {quoted(text)}' for text in sorted(counts))}"
        )
    return LabelRule((_spelling(counts, pair, 0), _spelling(counts, pair, 1)), _spelled(counts, pair[1]))


def one_a_number(counts: Mapping[str, int]) -> dict[str, str]:
    """Return for each value the one that it is the same number as, as it is most often spelled.

    Examples
    --------
    >>> one_a_number({"1": 1, "1.0": 2, "x": 1})
    {'1': '1.0', '1.0': '1.0', 'x': 'x'}
    """
    name: dict[str, str] = {}
    for text in sorted(counts, key=lambda text: (-counts[text], text)):
        name.setdefault(canonical_number(text), text)
    return {text: name[canonical_number(text)] for text in counts}


def _same_number(classes: Collection[str]) -> bool:
    return len(set(map(canonical_number, classes))) < len(set(classes))


def counted(counts: Mapping[str, int]) -> str:
    """Return the values with their counts as text, the most frequent first.

    Examples
    --------
    >>> counted({"ham": 2, "spam": 11})
    "'spam' (11 rows), 'ham' (2 rows)"
    """
    ordered = sorted(counts.items(), key=lambda item: (-item[1], item[0]))
    texts = [f"{quoted(text)} ({number} row{'' if number == 1 else 's'})" for text, number in ordered]
    more = f" and {len(texts) - _VALUES_SHOWN} more" if len(texts) > _VALUES_SHOWN else ""
    return ", ".join(texts[:_VALUES_SHOWN]) + more


def _named(
    counts: Mapping[str, int], where: str, positive: str, classes: tuple[str, str] | None, instead: str
) -> LabelRule:
    pair = None if classes is not None and _same_number(classes) else known_pair(counts)
    if pair is None:
        _refuse_more_than_two(counts, where, instead)
    positives = _matching(counts, positive, pair)
    if not positives:
        raise DataError(f"{where} has no value {quoted(positive)} (--positive); it holds {counted(counts)}")
    name = min(positives, key=lambda text: (-counts[text], text))
    others = sorted(set(counts) - positives, key=lambda text: (-counts[text], text))
    if others:
        return LabelRule((others[0], name), positives)
    if pair is not None:
        other = pair[0] if _folded(name) == pair[1] else pair[1]
        return LabelRule((_in_case_of(name, other), name), positives)
    if classes is not None and name == classes[1]:
        return LabelRule(classes, positives)
    return LabelRule((f"not {name}", name), positives)


def _matching(counts: Mapping[str, int], positive: str, pair: tuple[str, str] | None) -> frozenset[str]:
    """Return the values that `positive` names: itself, the same number, or in a known pair another spelling."""
    if pair is not None:
        return _spelled(counts, _folded(positive))
    if positive in counts:
        return frozenset({positive})
    return frozenset(text for text in counts if canonical_number(text) == canonical_number(positive))


def _by_head(counts: Mapping[str, int], where: str, classes: tuple[str, str]) -> LabelRule:
    alike = _spelling_of(classes)
    negative, positive = map(alike, classes)
    pair = known_pair(counts)
    mixed = pair is None and alike is _value  # 0 in one row and true in the next are no one column
    if not mixed and {alike(text) for text in counts} <= {negative, positive}:
        return LabelRule(classes, frozenset(text for text in counts if alike(text) == positive))
    _refuse_more_than_two(counts, where)
    example = "NAME" if pair is None else quoted(_spelling(counts, pair, 1))
    raise DataError(
        f"{where} holds {counted(counts)}, but the classes of what is judged are {quoted(classes[0])} and "
        f"{quoted(classes[1])}\nname the column of its labels with --label, or, where this one means the same, "
        f"its positive value with --positive {example}"
    )


def spelled_alike(classes: Collection[str]) -> Callable[[str], str]:
    """Return what maps all spellings of one of the classes to the same text."""
    known = {name.casefold() for name in classes} in map(set, KNOWN_PAIRS)
    return _value if known else canonical_number


def _spelling_of(classes: Collection[str]) -> Callable[[str], str]:
    """Return the same of two classes, whose texts alone count where both are one number."""
    return str if _same_number(classes) else spelled_alike(classes)


def _value(text: str) -> str:
    return _SAME_VALUE.get(_folded(text), _folded(text))


def _folded(text: str) -> str:
    return canonical_number(text).casefold()


def known_pair(counts: Collection[str]) -> tuple[str, str] | None:
    """Return which of the known pairs all values belong to, or None."""
    folded = set(map(_folded, counts))
    return next((pair for pair in KNOWN_PAIRS if folded <= set(pair)), None)


def _spelled(counts: Mapping[str, int], name: str) -> frozenset[str]:
    return frozenset(text for text in counts if _folded(text) == name)


def _spelling(counts: Mapping[str, int], pair: tuple[str, str], index: int) -> str:
    """Return the class name as the column most often spells it, else in the manner of its partner."""
    seen = _spelled(counts, pair[index])
    if seen:
        return min(seen, key=lambda text: (-counts[text], text))
    partner = _spelling(counts, pair, 1 - index)
    return _in_case_of(partner, pair[index])


def _in_case_of(model: str, name: str) -> str:
    return name.upper() if model.isupper() else name.title() if model.istitle() else name


def _refuse_more_than_two(counts: Mapping[str, int], where: str, instead: str = _TWO) -> None:
    if len(counts) > 2:
        raise DataError(f"{where} holds {len(counts)} different values, a label has two: {counted(counts)}; {instead}")
