"""Which values of a label column are which of many classes, and in which order the classes stand."""

import re
from collections.abc import Mapping
from dataclasses import dataclass

from headeval.errors import DataError
from headeval.files.categories import canonical_number
from headeval.files.label_faults import check_values
from headeval.files.labels import LabelRule, counted, known_pair, one_a_number, resolve_labels, spelled_alike
from headeval.printable import listed, quoted

_NUMBER = re.compile(r"[+-]?(?:[0-9]+\.?[0-9]*|\.[0-9]+)(?:[eE][+-]?[0-9]+)?")
_CLASSES_SHOWN = 10
_LEARN_THEM = "add what is missing to --classes, or leave these rows out"
_OTHER_LABELS = (
    "name the column of the labels with --label, the classes of columns of scores with --classes or, of a column with "
    "two values, the one that is flagged with --positive"
)


@dataclass(frozen=True, slots=True)
class ClassRule:
    """More than two classes, of which the last is flagged, and which of them each value of the column is."""

    names: tuple[str, ...]
    codes: Mapping[str, int]

    @property
    def classes(self) -> tuple[str, str]:
        """The flagged class against the rest: (negative, positive)."""
        return f"not {self.names[-1]}", self.names[-1]


def resolve_classes(
    counts: Mapping[str, int],
    *,
    where: str,
    positive: str | None = None,
    classes: tuple[str, ...] | None = None,
    many: bool = False,
    may_name_them: bool = False,
) -> LabelRule | ClassRule:
    """Decide which value is which class; two classes are what `resolve_labels` says.

    Parameters
    ----------
    counts : how often each value occurs, by its canonical text.
    where : the file and column, for messages.
    positive : the class that is flagged.
    classes : the classes in their order, the last of which is flagged: every value must be one of them, the same text
        or the same number. Not every class needs a row.
    many : whether more than two values are classes where `classes` does not name them. Then `positive` is the last, and
        the others stand before it in the order of their numbers and then of their texts.
    may_name_them : as for `resolve_labels`.

    Raises
    ------
    DataError : for text that reads like a missing label, values that differ in case or spaces only, and those that are
        none of the classes, where `positive` is not among them or not the last, and where
        nothing tells the flagged class.

    Examples
    --------
    >>> resolve_classes({"c": 1, "10": 2, "9": 3, "b": 1}, where="labels", positive="b", many=True).names
    ('9', '10', 'c', 'b')
    """
    check_values(counts, where=where, classes=classes, positive=positive)
    if classes is None:
        merged = one_a_number(counts)
        if many and len(set(merged.values())) > 2 and known_pair(counts) is None:
            return _learnt(counts, merged, where, positive)
        return resolve_labels(counts, where=where, positive=positive)
    if len(classes) == 2 and not many:
        pair = (classes[0], classes[1])
        return resolve_labels(counts, where=where, positive=positive, classes=pair, may_name_them=may_name_them)
    return _given(counts, where, positive, classes, learnt=many)


def _learnt(counts: Mapping[str, int], merged: Mapping[str, str], where: str, positive: str | None) -> ClassRule:
    if positive is None:
        raise DataError(
            f"{where} holds {len(set(merged.values()))} different values: {counted(counts)}; which is the positive "
            "class?\nname it with --positive NAME, or all classes in their order, the flagged one last, with "
            "--classes a,b,c"
        )
    flagged = merged.get(positive, merged.get(canonical_number(positive)))
    if flagged is None:
        raise DataError(f"{where} has no value {quoted(positive)} (--positive); it holds {counted(counts)}")
    others = sorted(set(merged.values()) - {flagged}, key=_by_number)
    code = {name: index for index, name in enumerate((*others, flagged))}
    return ClassRule((*others, flagged), {text: code[name] for text, name in merged.items()})


def _given(
    counts: Mapping[str, int], where: str, positive: str | None, classes: tuple[str, ...], *, learnt: bool
) -> LabelRule | ClassRule:
    alike = spelled_alike(classes)
    code = {alike(name): index for index, name in reversed(list(enumerate(classes)))}
    code.update((name, index) for index, name in enumerate(classes))
    if positive is not None and code.get(positive, code.get(alike(positive))) != len(classes) - 1:
        raise DataError(
            f"{where}: --positive {quoted(positive)} is not the flagged one, the last, of the classes "
            f"{listed(classes, longest=_CLASSES_SHOWN)}"
        )
    codes = {text: code.get(text, code.get(alike(text), -1)) for text in counts}
    unknown = {text: counts[text] for text, index in codes.items() if index < 0}
    if unknown:
        one = len(unknown) == 1
        raise DataError(
            f"{where} holds {counted(unknown)}, {'which is none' if one else 'none of which is one'} of the classes "
            f"{listed(classes, longest=_CLASSES_SHOWN)}\n" + (_LEARN_THEM if learnt else _OTHER_LABELS)
        )
    if len(classes) == 2:
        return LabelRule((classes[0], classes[1]), frozenset(text for text, index in codes.items() if index))
    return ClassRule(classes, codes)


def _by_number(text: str) -> tuple[bool, float, str]:
    """Return what sorts numbers by their value before other texts."""
    number = _NUMBER.fullmatch(text) is not None
    return not number, float(text) if number else 0.0, text
