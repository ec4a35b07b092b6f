"""Whose metric a requirement is about: that of a category or a class, of each of them, or of the one classifier."""

import dataclasses
import difflib
from collections.abc import Sequence

from headeval.errors import UsageError
from headeval.evaluation import METRICS
from headeval.multiclass import CLASS_RATES
from headeval.printable import listed, quoted
from headeval.requirement_parsing import Requirement

EVERY = "*"


def of_categories(
    requirements: Sequence[Requirement], categories: Sequence[str], *, each: bool = False
) -> tuple[Requirement, ...]:
    """Return requirements of one category each: what `*` stands before is asked of every category.

    Parameters
    ----------
    each : whether they are of --require-each, for messages.

    Raises
    ------
    UsageError : where a requirement names no category, one that is not judged, or a metric that categories do not have.

    Examples
    --------
    >>> [str(one) for one in of_categories([Requirement("auc", ">=", 0.8, of="*")], ["hate", "spam"])]
    ['hate:auc>=0.8', 'spam:auc>=0.8']
    """
    expanded: list[Requirement] = []
    for requirement in requirements:
        given, of = _given(requirement, each), requirement.of
        if requirement.metric not in METRICS:
            raise UsageError(f"{given}: {requirement.metric} is of more than two classes; a category has two")
        if not of:
            raise UsageError(
                f"{given}: of which category? {quoted(f'{categories[0]}:{requirement}')} asks it of one, "
                f"{quoted(f'*:{requirement}')} of each"
            )
        if of != EVERY and of not in categories:
            raise UsageError(
                f"{given}: no category {quoted(of)}{_hint(of, categories)}; the categories are "
                f"{listed(categories, longest=12)}"
            )
        named = categories if of == EVERY else (of,)
        expanded += [dataclasses.replace(requirement, of=name) for name in named]
    return tuple(expanded)


def of_classifier(
    requirements: Sequence[Requirement], of_each: Sequence[Requirement], classes: Sequence[str] | None
) -> tuple[Requirement, ...]:
    """Return requirements of the one classifier: what `*` stands before is asked of every class.

    Parameters
    ----------
    of_each : of each slice, which are only checked.
    classes : all classes where there are more than two; else None.

    Raises
    ------
    UsageError : for what the classifier does not have, naming the requirement and what there is.

    Examples
    --------
    >>> [str(one) for one in of_classifier([Requirement("recall", ">=", 0.5, of="*")], [], ["safe", "rude", "hate"])]
    ['safe:recall>=0.5', 'rude:recall>=0.5', 'hate:recall>=0.5']
    """
    for asked, each in ((requirements, False), (of_each, True)):
        if classes is None:
            _check_two_classes(asked, each=each)
        else:
            _check_classes(asked, classes, each=each)
    return tuple(
        dataclasses.replace(requirement, of=name)
        for requirement in requirements
        for name in ((classes or ()) if requirement.of == EVERY else (requirement.of,))
    )


def of_classes(requirement: Requirement) -> bool:
    """Whether a requirement is about one class among several, or about all of them together."""
    return bool(requirement.of) or requirement.metric not in METRICS


def _check_classes(requirements: Sequence[Requirement], classes: Sequence[str], *, each: bool) -> None:
    for requirement in requirements:
        given, of = _given(requirement, each), requirement.of
        if each and (of or requirement.metric not in METRICS):
            raise UsageError(f"{given}: slices are judged by the flagged class alone: name one of its metrics")
        if not of:
            continue
        if of != EVERY and of not in classes:
            raise UsageError(
                f"{given}: no class {quoted(of)}{_hint(of, classes)}; the classes are {listed(classes, longest=12)}"
            )
        if requirement.metric not in CLASS_RATES or requirement.difference:
            asked = f"{requirement.metric}.diff" if requirement.difference else requirement.metric
            plain = dataclasses.replace(requirement, of="")
            of_flagged = f"; of the flagged class there is {quoted(plain)}" if of == classes[-1] else ""
            raise UsageError(
                f"{given}: {asked} is not measured of each class; measured are: {', '.join(CLASS_RATES)}{of_flagged}"
            )


def _check_two_classes(requirements: Sequence[Requirement], *, each: bool) -> None:
    for requirement in requirements:
        if requirement.of:
            plain = dataclasses.replace(requirement, of="")
            raise UsageError(
                f"{_given(requirement, each)}: what is judged has one label of two classes: ask {quoted(plain)}, or "
                "judge several categories (--head FOLDER) or classes"
            )
        if requirement.metric not in METRICS:
            raise UsageError(
                f"{_given(requirement, each)}: {requirement.metric} is of more than two classes; "
                f"of two there are: {', '.join(METRICS)}"
            )


def _given(requirement: Requirement, each: bool) -> str:
    return f"{'--require-each' if each else '--require'} {quoted(requirement)}"


def _hint(name: str, known: Sequence[str]) -> str:
    close = difflib.get_close_matches(name, known, n=1) or [one for one in known if one.casefold() == name.casefold()]
    return f" (did you mean {quoted(close[0])}?)" if close else ""
