"""The charts of a report as SVG and PNG files; the numbers are those of its curves."""

import io
import warnings
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np

from headeval.core.calibration import ReliabilityTable
from headeval.curves import Curve, Histogram
from headeval.errors import UsageError
from headeval.render.numbers import exact, interval_text, metric_value, percent
from headeval.render.sections import in_sentence
from headeval.report import Report

FORMATS = ("svg", "png")
# Okabe and Ito's colours, told apart by the colour-blind; every line differs in its dashes as well.
_FIRST, _SECOND, _QUIET, _MARK = "#0072B2", "#D55E00", "#57606a", "#000000"
_SETTINGS = {
    "text.parse_math": False,  # a class named $x$ is text
    "svg.hashsalt": "headeval",  # else every file differs in its ids
    "svg.fonttype": "none",
    "font.family": "DejaVu Sans",  # comes with matplotlib
    "axes.spines.top": False,
    "axes.spines.right": False,
    "axes.grid": True,
    "grid.color": "#d4d9de",
    "legend.frameon": False,
    "legend.fontsize": 9,
}
# Without a date, so that the same report gives the same bytes.
_METADATA: dict[str, dict[str, Any]] = {"svg": {"Date": None}, "png": {}}


def plot_names() -> tuple[str, ...]:
    """Return the names of all files that `plots` can yield."""
    return tuple(f"{name}.{form}" for name in ("roc", "pr", "reliability", "histogram") for form in FORMATS)


def plots(report: Report) -> Iterator[tuple[str, bytes]]:
    """Yield each chart as a file name and its bytes, as SVG and as PNG; without curves there is none.

    ROC and precision–recall are left out where a class is missing.

    Raises
    ------
    UsageError
        When matplotlib is not installed.
    """
    try:
        import matplotlib.figure
        import matplotlib.style
    except ImportError as error:
        raise UsageError("the plots need matplotlib: pip install 'headeval[plots]'") from error
    for name, draw in _charts(report).items():
        for form in FORMATS:
            # Nobody's own settings: they could even have text typeset by an external program.
            with matplotlib.style.context(["default", _SETTINGS], after_reset=True), warnings.catch_warnings():
                warnings.filterwarnings("ignore", message="Glyph .* missing from font")
                figure = matplotlib.figure.Figure(figsize=(5.5, 5.0), layout="constrained")
                draw(figure)
                file = io.BytesIO()
                figure.savefig(file, format=form, dpi=150, metadata=_METADATA[form])
            yield f"{name}.{form}", file.getvalue()


def _charts(report: Report) -> dict[str, Callable[[Any], None]]:
    drawn = report.curves
    if drawn is None:
        return {}
    charts: dict[str, Callable[[Any], None]] = {}
    if drawn.roc is not None and drawn.pr is not None:
        roc, pr = drawn.roc, drawn.pr
        charts["roc"] = lambda figure: _roc(figure, report, roc)
        charts["pr"] = lambda figure: _pr(figure, report, pr)
    charts["reliability"] = lambda figure: _reliability(figure, report)
    charts["histogram"] = lambda figure: _histogram(figure, report, drawn.histogram)
    return charts


def _roc(figure: Any, report: Report, curve: Curve) -> None:
    evaluation = report.evaluation
    axes = _unit_axes(figure, "false-positive rate", "recall", f"ROC, AUC {_said(evaluation.auc)}")
    _draw(axes, curve, evaluation.confidence, "recall")
    axes.plot([0, 1], [0, 1], color=_QUIET, linewidth=1, linestyle="--", label="chance")
    _mark(axes, evaluation.fpr.value, evaluation.recall.value, evaluation.threshold)
    axes.legend(loc="lower right")


def _pr(figure: Any, report: Report, curve: Curve) -> None:
    evaluation = report.evaluation
    axes = _unit_axes(figure, "recall", "precision", f"average precision {_said(evaluation.ap)}")
    _draw(axes, curve, evaluation.confidence, "precision")
    axes.axhline(evaluation.prevalence.value or 0.0, color=_QUIET, linewidth=1, linestyle="--", label="prevalence")
    _mark(axes, evaluation.recall.value, evaluation.precision.value, evaluation.threshold)
    axes.legend(loc="best")


def _reliability(figure: Any, report: Report) -> None:
    evaluation = report.evaluation
    table, positive = evaluation.reliability, in_sentence(evaluation.classes[1])
    above, below = figure.subplots(2, 1, sharex=True, height_ratios=[4, 1])
    _limit(above, "", f"share that is {positive}")
    above.set_title(f"Reliability, ECE positive-class {_said(evaluation.ece_positive_class)}", fontsize=10)
    above.plot([0, 1], [0, 1], color=_QUIET, linewidth=1, linestyle="--", label="as p says")
    if report.before is not None:
        _bins(above, report.before, color=_SECOND, linestyle=":", markerfacecolor="white", label="before calibration")
    for mean, sure in zip(table.confidence.tolist(), evaluation.reliability_intervals, strict=True):
        if sure is not None:
            above.vlines(mean, sure.lower, sure.upper, color=_FIRST, linewidth=1.2)
    sure_label = "" if evaluation.confidence is None else f", {percent(evaluation.confidence)} intervals"
    _bins(above, table, color=_FIRST, linestyle="-", label=f"share{sure_label}")
    above.legend(loc="upper left")
    below.stairs(table.counts, np.append(table.lower, table.upper[-1]), fill=True, color=_FIRST, alpha=0.4)
    below.set_xlabel("predicted probability (above: mean p of a bin)")
    below.set_ylabel("rows")


def _histogram(figure: Any, report: Report, histogram: Histogram) -> None:
    evaluation = report.evaluation
    axes = figure.subplots()
    for name, rows, color, dashes in (
        (evaluation.classes[0], histogram.negatives, _FIRST, "--"),
        (evaluation.classes[1], histogram.positives, _SECOND, "-"),
    ):
        shares = rows / max(1, int(rows.sum()))
        label = f"truly {in_sentence(name)}"
        axes.stairs(shares, histogram.edges, fill=True, color=color, alpha=0.2)
        axes.stairs(shares, histogram.edges, color=color, linestyle=dashes, linewidth=1.5, label=label)
    label = f"threshold {exact(evaluation.threshold)}"
    axes.axvline(evaluation.threshold, color=_MARK, linewidth=1.5, label=label)
    axes.set_yscale("function", functions=(np.sqrt, np.square))  # rare harm would vanish on a linear scale
    axes.set_xlim(0, 1)
    axes.set_ylim(bottom=0)
    axes.set_xlabel("predicted probability")
    axes.set_ylabel("share of the class (square-root scale)")
    axes.set_title("Scores by class", fontsize=10)
    figure.legend(loc="outside lower center", ncols=3)


def _unit_axes(figure: Any, x: str, y: str, title: str) -> Any:
    axes = figure.subplots()
    _limit(axes, x, y)
    axes.set_title(title, fontsize=10)
    return axes


def _limit(axes: Any, x: str, y: str) -> None:
    axes.set_xlim(-0.015, 1.015)
    axes.set_ylim(-0.015, 1.015)
    axes.set_xlabel(x)
    axes.set_ylabel(y)


def _draw(axes: Any, curve: Curve, confidence: float | None, label: str) -> None:
    if curve.lower is not None and confidence is not None:
        axes.fill_between(
            curve.x, curve.lower, curve.upper, color=_FIRST, alpha=0.2, linewidth=0, label=f"{percent(confidence)} band"
        )
    axes.plot(curve.x, curve.y, color=_FIRST, linewidth=1.6, label=label)


def _bins(axes: Any, table: ReliabilityTable, **style: Any) -> None:
    filled = table.counts > 0
    axes.plot(table.confidence[filled], table.accuracy[filled], marker="o", markersize=5, **style)


def _mark(axes: Any, x: float | None, y: float | None, threshold: float) -> None:
    if x is not None and y is not None:
        axes.plot([x], [y], color=_MARK, marker="D", linestyle="none", label=f"threshold {exact(threshold)}")


def _said(metric: Any) -> str:
    return metric_value(metric) + ("" if metric.interval is None else f" {interval_text(metric.interval)}")
