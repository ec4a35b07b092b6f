"""Penalties that were tried, as a section, and what must be said of the choice."""

from headeval.render.numbers import exact, number
from headeval.render.sections import Column, Grid, Section
from headeval.solver.penalty_path import Path

_CURVE = "log loss: to about three digits, from fits that end early; the measures below are of fits to the end"
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
    grid = Grid("Out-of-fold log loss of each penalty", columns, rows)
    return Section("Penalties, out of fold", (grid,), footnotes=(_CURVE,) if path.rough else ())


def path_notes(path: Path, *, judged: bool) -> list[str]:
    """Return what a reader of a choice among penalties must not miss."""
    notes = [f"l2 {exact(path.chosen)} was taken by {_RULES[path.rule]}, out of fold, of {len(path.points)} penalties"]
    if judged:
        notes.append(
            "the metrics above are on the very folds that chose the penalty, which flatters them a little: judge the "
            "head with `headeval report` on other rows"
        )
    if path.left_out:
        these = ", ".join(map(exact, path.left_out))
        notes.append(f"penalties left out, as their fits would have taken many passes: {these}; --l2 LIST tries them")
    if path.at_edge:
        notes.append("the least log loss stands at the end of the penalties tried: try others beyond it with --l2")
    return notes
