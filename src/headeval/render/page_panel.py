"""The threshold panel of the page: every text of its sections, at every step of the slider.

Python writes the texts, by the same functions as every other format; the page only puts them in place.
"""

from collections.abc import Iterator, Sequence
from typing import Any

from headeval.evaluation import METRICS, Evaluation
from headeval.printable import printable
from headeval.render.evaluation_sections import evaluation_sections, flagging_rule
from headeval.render.numbers import exact, level, percent
from headeval.render.sections import Section
from headeval.report import Report
from headeval.sweep import Sweep

MOVING = ("Decisions", "Traffic")
_SPOKEN = ("recall", "fpr")
# A separator and a sign for an empty text, neither of which occurs in the texts; `printable` leaves no private-use
# character in any text, so that the last two are always free.
_SIGNS = ("|", "~", ";", "\ue000", "\ue001")


def moving_sections(evaluation: Evaluation) -> tuple[Section, ...]:
    """Return the sections that depend on the threshold."""
    return tuple(section for section in evaluation_sections(evaluation) if section.title in MOVING)


def panel_data(report: Report, sweep: Sweep) -> dict[str, Any]:
    """Return what the slider needs: thresholds, the texts that change, and the counts that costs are made of.

    `byOutcome` and `byStep` map the place of a text to its wording at each outcome or step, packed as by `packed`.
    """
    evaluation = report.evaluation
    first = [sweep.outcome.index(outcome) for outcome in range(len(sweep.outcomes))]
    each = [dict(_texts(moving_sections(sweep.at(step, evaluation)))) for step in first]
    rule = flagging_rule(evaluation)  # names the threshold itself, so it changes with every step
    by_outcome, by_step = {}, {}
    for key, text in _texts(moving_sections(evaluation)):
        if text == rule:
            by_step[key] = packed([flagging_rule(sweep.at(step, evaluation)) for step in range(len(sweep.thresholds))])
            continue
        texts = [found.get(key, "") for found in each]
        if len(set(texts)) > 1:
            by_outcome[key] = packed(texts)
    return {
        "steps": [exact(threshold) for threshold in sweep.thresholds],
        "inUse": sweep.in_use,
        "outcome": list(sweep.outcome),
        "byOutcome": by_outcome,
        "byStep": by_step,
        "spoken": _spoken(evaluation),
        "points": _points(report, sweep),
        "costNote": _cost_note(evaluation),
    }


def packed(texts: Sequence[str]) -> dict[str, str]:
    """Return texts in little space: what all begin and end with once, and nothing where a text repeats the one before.

    Examples
    --------
    >>> packed(["p 0.1", "p 0.2", "p 0.2"])
    {'before': 'p 0.', 'after': '', 'by': '|', 'none': '~', 'rest': '1|2|'}
    """
    before = _common_start(texts)
    rest = [text[len(before) :] for text in texts]
    after = _common_start([text[::-1] for text in rest])[::-1]
    rest = [text[: len(text) - len(after)] for text in rest]
    by, none, *_ = (sign for sign in _SIGNS if not any(sign in text for text in rest))
    parts = [
        "" if index and text == rest[index - 1] else text or none  # the first says itself
        for index, text in enumerate(rest)
    ]
    return {"before": before, "after": after, "by": by, "none": none, "rest": by.join(parts)}


def _common_start(texts: Sequence[str]) -> str:
    """The first and the last in order differ no later than any two."""
    first, last = min(texts), max(texts)
    length = next((at for at, (one, other) in enumerate(zip(first, last, strict=False)) if one != other), len(first))
    return first[:length]


def _texts(sections: tuple[Section, ...]) -> Iterator[tuple[str, str]]:
    """Every text with its place: section, then lead, footnote, or grid, row and column."""
    for number, section in enumerate(sections):
        yield f"{number}.lead", section.lead
        for at, note in enumerate(section.footnotes):
            yield f"{number}.note.{at}", note
        for at, grid in enumerate(section.grids):
            for row, cells in enumerate(grid.rows):
                for column, cell in enumerate(cells):
                    yield f"{number}.{at}.{row}.{column}", cell


def _spoken(evaluation: Evaluation) -> list[dict[str, Any]]:
    """Return the places of the few numbers that are said when the threshold moves: value and interval."""
    values = ["value"] if evaluation.confidence is None else ["value", level(evaluation.confidence)]
    found: dict[str, list[str]] = {}
    for at, grid in enumerate(moving_sections(evaluation)[0].grids):
        columns = [index for index, column in enumerate(grid.columns) if column.heading in values]
        for row, cells in enumerate(grid.rows):
            found.setdefault(cells[0], [f"0.{at}.{row}.{column}" for column in columns])
    titles = [METRICS[name].title for name in _SPOKEN]
    return [{"name": title, "keys": found[title]} for title in titles if found.get(title)]


def _points(report: Report, sweep: Sweep) -> dict[str, Any]:
    """Return false positives and missed positives of each outcome: rows, or shares of the weight where there is any."""
    evaluation = report.evaluation
    traffic = evaluation.traffic
    prevalence = evaluation.prevalence.value or 0.0
    if evaluation.weighted:
        positives, negatives = prevalence, 1 - prevalence
        false = [round(negatives * (each.metrics["fpr"].value or 0.0), 9) for each in sweep.outcomes]
        missed = [round(positives * (1 - (each.metrics["recall"].value or 0.0)), 9) for each in sweep.outcomes]
    else:
        positives, negatives = evaluation.counts.positives, evaluation.counts.negatives
        false = [each.counts.false_positives for each in sweep.outcomes]
        missed = [each.counts.false_negatives for each in sweep.outcomes]
    return {
        "falsePositives": false,
        "missed": missed,
        "positives": positives,
        "negatives": negatives,
        "prevalence": prevalence if traffic is None else traffic.prevalence,
    }


def _cost_note(evaluation: Evaluation) -> str:
    if evaluation.traffic is not None:
        return f" at a prevalence of {percent(evaluation.traffic.prevalence)}"
    return ", weighted as the rows are" if evaluation.weighted else ""


def cost_labels(evaluation: Evaluation) -> tuple[str, str]:
    """Return what the two costs are called, by the names of the classes."""
    negative, positive = (printable(name, longest=40) for name in evaluation.classes)
    return f"cost of flagging one {negative} row", f"cost of passing one {positive} row"
