"""Penalties that were tried, as a section, and what must be said of the choice."""

from headeval.render.numbers import exact, number
from headeval.render.sections import Column, Grid, Section
from headeval.solver.path import Path

_RULES = {
    "best": "the least log loss",
    "one-se": "the largest penalty within one standard error of the least log loss",
}


def path_section(path: Path) -> Section:
    """Return the out-of-fold log loss of each penalty, the one taken marked."""
    rows = tuple(
        (
            exact(point.l2),
            number(point.log_loss),
            number(point.standard_error),
            "taken" if point.l2 == path.chosen else "",
        )
        for point in path.points
    )
    columns = (Column("l2", True), Column("log loss", True), Column("standard error", True), Column(""))
    return Section("Penalties, out of fold", (Grid("Out-of-fold log loss of each penalty", columns, rows),))


def path_notes(path: Path, *, judged: bool) -> list[str]:
    """Return what a reader of a choice among penalties must not miss."""
    notes = [f"l2 {exact(path.chosen)} was taken by {_RULES[path.rule]}, out of fold, of {len(path.points)} penalties"]
    if judged:
        notes.append(
            "the metrics above are on the very folds that chose the penalty, which flatters them a little: judge the "
            "head with `headeval report` on other rows"
        )
    if path.at_edge:
        notes.append("the least log loss stands at the end of the penalties tried: try others beyond it with --l2")
    return notes
