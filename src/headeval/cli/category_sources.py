"""Which categories a command is about: the heads of a folder, or as many columns of scores as label columns."""

import dataclasses
import difflib
import re
from collections.abc import Iterator, Mapping, Sequence
from fnmatch import fnmatchcase
from pathlib import Path

from headeval.cli.class_columns import names_several
from headeval.cli.sources import Source, column_source, head_source
from headeval.errors import DataError, UsageError
from headeval.files.head_folder import head_path, is_head_folder, read_heads
from headeval.files.label_columns import is_pattern, label_columns, label_names, listed_names
from headeval.files.scores import DeclaredScores, declared_scores, declared_seen
from headeval.files.tables import Tables
from headeval.printable import listed, quoted
from headeval.scored_rows import ScoreKind

ALL = "label"  # the default of --label, which stands for every category there is
_PATTERN = "*?["


def category_sources(
    tables: Tables, *, head: Path | None, logit: str | None, prob: str | None, label: str, baseline: bool = False
) -> dict[str, Source] | None:
    """Return what gives the scores of each category, by its name, which is its label column.

    None where the options name one thing that is judged on one label column.

    Parameters
    ----------
    baseline : whether the options are those of the baseline, for messages.

    Raises
    ------
    UsageError : where several label columns are named, but not as many things to judge.
    """
    several = names_several(tables, label)
    if head is not None and logit is None and prob is None:
        if is_head_folder(head):
            return folder_sources(head, label)
        if several:
            raise UsageError(
                f"--label {quoted(label)} names several columns, but --head {quoted(head)} is one head: "
                "give the folder of their heads, or one column"
            )
    elif head is None and (logit is None) != (prob is None):
        spec, kind = (logit, "logit") if logit is not None else (prob or "", "prob")
        if several:
            return _paired(tables, spec, "logit" if kind == "logit" else "prob", label, baseline=baseline)
    elif head is None and logit is None:
        return _declared(tables, label)
    return None


def folder_sources(folder: Path, label: str) -> dict[str, Source]:
    """Return the heads of a folder as sources by their categories, in the order of the folder.

    Parameters
    ----------
    label : as of --label: `label` for all, else names with commas between them, or a pattern.

    Raises
    ------
    UsageError : where --label names something that is no category of the folder.
    HeadError : where the folder has no heads that can be read.
    """
    heads = read_heads(folder)
    chosen = chosen_categories(tuple(heads), label, folder)
    return {name: head_source(heads[name], str(head_path(folder, name))) for name in chosen}


def chosen_categories(known: Sequence[str], label: str, where: object) -> tuple[str, ...]:
    """Return which of the known categories --label names: all, or those of a list or pattern.

    Parameters
    ----------
    where : they are known from, for messages.

    Raises
    ------
    UsageError : where a name is not known, is named twice, or a pattern matches nothing.

    Examples
    --------
    >>> chosen_categories(("hate", "harm", "spam"), "ha*", "heads"), chosen_categories(("a", "b"), "label", "heads")
    (('hate', 'harm'), ('a', 'b'))
    """
    if label == ALL:  # a category of that name does not hide the others
        return tuple(known)
    chosen: list[str] = []
    for part in (label,) if label in known else _listed(label, known):
        found = [name for name in known if name == part] or [name for name in known if _matches(name, part)]
        if not found:
            close = difflib.get_close_matches(part, known, n=1)
            hint = f" (did you mean {quoted(close[0])}?)" if close else ""
            raise UsageError(
                f"--label {quoted(part)} is no category of {quoted(where)}{hint}; its categories are "
                f"{listed(known, longest=12)}\nto judge one head on another column: "
                f"--head {quoted(f'{where}/NAME.json')} --label {quoted(part)}"
            )
        chosen += found
    twice = next((name for name in chosen if chosen.count(name) > 1), None)
    if twice is not None:
        raise UsageError(f"--label {quoted(label)} names the category {quoted(twice)} twice")
    return tuple(chosen)


def _listed(label: str, known: Sequence[str]) -> tuple[str, ...]:
    try:
        return tuple(listed_names(label, known))
    except DataError as error:  # here they are names of categories, and no columns
        raise UsageError(str(error)) from error


def _matches(name: str, part: str) -> bool:
    return any(char in part for char in _PATTERN) and fnmatchcase(name, part)


def _paired(tables: Tables, spec: str, kind: ScoreKind, label: str, *, baseline: bool) -> dict[str, Source] | None:
    """Return each label column with its column of scores; None where several columns are the classes of one label."""
    option = f"--baseline-{kind}" if baseline else f"--{kind}"
    labels, columns = label_columns(tables, label), label_columns(tables, spec, option=option)
    if len(labels) == 1 < len(columns):
        return None
    if _has_pattern(label, tables) or _has_pattern(spec, tables):
        pairs = _by_name(dict(_named(labels, label)), dict(_named(columns, spec)), option)
    elif len(labels) != len(columns):
        raise UsageError(
            f"--label names {len(labels)} columns and {option} {len(columns)}: each label column needs its own scores"
        )
    else:
        pairs = dict(zip(labels, columns, strict=True))
    declared = declared_scores(tables)
    for name, column in pairs.items():
        _refuse_of_another(declared, name, column, option)
    _refuse_swapped(pairs, option, baseline=baseline)
    return {name: column_source(tables, column, kind, declared) for name, column in pairs.items()}


def _has_pattern(spec: str, tables: Tables) -> bool:
    names = tables.column_names
    return spec not in names and any(is_pattern(item, names) for item in listed_names(spec, names))


def _refuse_swapped(pairs: Mapping[str, str], option: str, *, baseline: bool) -> None:
    """Refuse lists in different orders, where the columns of scores have the names of each other's labels."""
    named = {label: _names_in(column, tuple(pairs)) for label, column in pairs.items()}
    for label, found in named.items():
        other = found[0] if len(found) == 1 else label
        if other != label and len(named[other]) == 1 and named[other] != [other]:
            use = "compared with" if baseline else "judged on"
            raise UsageError(
                f"the columns of {option} are listed in another order than --label, so that {quoted(label)} would be "
                f"{use} column {quoted(pairs[label])}: list both in the same order"
            )


def _names_in(column: str, labels: Sequence[str]) -> list[str]:
    """Return the labels whose names are in that of a column as whole words; not hate, where it is hate_threatening."""
    words = {label: _words(label) for label in labels}
    everywhere = set.intersection(*map(set, words.values()))  # such as the first word of cat_hate and cat_spam
    told = {label: [word for word in found if word not in everywhere] for label, found in words.items()}
    text = f" {' '.join(_words(column))} "
    own = {label: f" {' '.join(found)} " for label, found in (told if all(told.values()) else words).items()}
    found = [label for label in labels if own[label].strip() and own[label] in text]
    return [label for label in found if not any(own[label] in own[other] != own[label] for other in found)]


def _words(name: str) -> list[str]:
    return re.findall(r"[^\W_]+", name.casefold())


def _refuse_of_another(declared: Sequence[DeclaredScores], label: str, column: str, option: str) -> None:
    entry = next((entry for entry in declared if column in {entry.logit, entry.prob}), None)
    if entry is not None and entry.category not in {"", label}:
        raise UsageError(
            f"the file itself says that column {quoted(column)} has the scores of {quoted(entry.category)}, not of "
            f"{quoted(label)}: list --label and {option} in the same order"
        )


def _named(columns: tuple[str, ...], spec: str) -> Iterator[tuple[str, str]]:
    yield from zip(label_names(columns, spec), columns, strict=True)


def _by_name(labels: Mapping[str, str], scores: Mapping[str, str], option: str) -> dict[str, str]:
    """Return label columns with the columns of scores whose short names are the same."""
    missing = [labels[name] for name in labels if name not in scores]
    if missing:
        raise UsageError(
            f"the label columns {listed(missing)} have no column of scores of their name among "
            f"{listed(scores.values())}: name both lists in the same order, --label a,b {option} x,y"
        )
    return {column: scores[name] for name, column in labels.items()}


def _declared(tables: Tables, label: str) -> dict[str, Source] | None:
    """Return the categories that the files themselves declare, the newest scores of each; None where they do not."""
    declared = declared_scores(tables)
    if not declared or not declared[0].category:
        return None
    newest = {entry.category: entry for entry in reversed(declared) if entry.category}
    known = list(dict.fromkeys(entry.category for entry in declared if entry.category))
    chosen = chosen_categories(known, label, tables.paths[0])
    sources = {name: column_source(tables, newest[name].logit, "logit", declared) for name in chosen}
    return {name: dataclasses.replace(source, seen=declared_seen(tables, name)) for name, source in sources.items()}
