"""What the rates mean in traffic with another share of positives."""

from headeval.core.traffic import Projected, Traffic
from headeval.render.numbers import NOTHING, count, level, number, percent
from headeval.render.sections import Column, Grid, Section


def traffic_section(traffic: Traffic, confidence: float | None) -> Section:
    """Return what the rates mean in traffic with another share of positives."""
    rows = [
        ("alerts", traffic.alerts, "flagged a day"),
        ("true alerts", traffic.true_alerts, "positives among them"),
        ("false alerts", traffic.false_alerts, "negatives among them"),
        ("misses", traffic.misses, "positives a day that pass"),
    ]
    shown = [(name, *_projected(what, rounded=True), meaning) for name, what, meaning in rows if what.value is not None]
    shown.append(("precision", *_projected(traffic.precision), "of the flagged, truly positive"))
    columns = [Column("measure"), Column("value", numeric=True), Column("meaning")]
    cells: list[tuple[str, ...]] = [(name, value, meaning) for name, value, _, meaning in shown]
    if confidence is not None:
        columns.insert(2, Column(level(confidence), numeric=True))
        cells = [*shown]
    size = "" if traffic.per_day is None else f" and {count(traffic.per_day)} rows a day"
    return Section(
        "Traffic",
        (Grid("traffic", tuple(columns), tuple(cells), headed=confidence is not None),),
        lead=f"expected at a prevalence of {percent(traffic.prevalence)}{size}",
        footnotes=(
            "from recall and FPR and their exact intervals: it holds only where each class looks as it does here",
            *_jointly(traffic),
        ),
    )


def _jointly(traffic: Traffic) -> tuple[str, ...]:
    if traffic.precision.interval is None:
        return ()
    return ("alerts and precision depend on both rates: their intervals hold for both together, and are wider",)


def _projected(what: Projected, *, rounded: bool = False) -> tuple[str, str]:
    if what.value is None:
        return (NOTHING, "")
    show = _amount if rounded else number
    bounds = what.interval
    return (show(what.value), "" if bounds is None else f"[{show(bounds.lower)}, {show(bounds.upper)}]")


def _amount(value: float) -> str:
    """Return an expected number of rows, without decimals unless it is small."""
    return number(value, 1) if value < 10 else count(round(value))
