"""Plots are the same bytes for the same report, show its numbers, and take text as text."""

import re
import struct
import sys
import warnings
import xml.etree.ElementTree as ET
from dataclasses import replace
from itertools import islice
from typing import Any

import numpy as np
import pytest

from headeval.curves import curves
from headeval.errors import UsageError
from headeval.evaluation import evaluate
from headeval.printable import printable
from headeval.render.plots import plots
from headeval.report import Report

ALL = ["roc", "pr", "reliability", "histogram"]


def drawn(scores: Any, labels: Any, *, classes: tuple[str, str] = ("safe", "unsafe")) -> Report:
    evaluation = evaluate(scores, labels, kind="prob", threshold=0.25, classes=classes, n_resamples=0)
    return Report({}, "held-out", evaluation, curves=curves(scores, labels, kind="prob", threshold=0.25))


# The full list of hostile names would take minutes here; these are the kinds that drawing could misread.
NAMES = ("$x^2$", "<script>alert(1)</script>", "\udcff\x9b31m", "有害的内容")


@pytest.fixture(scope="module")
def files(report: Report) -> dict[str, bytes]:
    return dict(plots(report))


@pytest.fixture(scope="module")
def report() -> Report:
    rng = np.random.default_rng(0)
    probs = rng.uniform(size=200)
    return drawn(probs, (rng.uniform(size=200) < probs).astype(int))


def texts(svg: bytes) -> list[str]:
    """Every text of an SVG document, as a viewer shows it."""
    found = ET.fromstring(svg).iter("{http://www.w3.org/2000/svg}text")  # noqa: S314 - made here
    return ["".join(text.itertext()) for text in found]


def test_each_chart_comes_as_svg_and_as_png(files: dict[str, bytes]) -> None:
    assert list(files) == [f"{name}.{form}" for name in ALL for form in ("svg", "png")]
    for name in ALL:
        assert texts(files[f"{name}.svg"])
        png = files[f"{name}.png"]
        assert png.startswith(b"\x89PNG\r\n\x1a\n")
        assert struct.unpack(">II", png[16:24]) == (825, 750)


def test_the_same_report_gives_the_same_bytes(report: Report, files: dict[str, bytes]) -> None:
    assert dict(plots(report)) == files
    assert not [name for name, content in files.items() if re.search(rb"<dc:date>|\d{4}-\d\d-\d\dT", content)]


def test_the_numbers_are_those_of_the_report(report: Report, files: dict[str, bytes]) -> None:
    evaluation = report.evaluation
    assert any(f"{evaluation.auc.value:.4f}" in text for text in texts(files["roc.svg"]))
    assert any(f"{evaluation.ap.value:.4f}" in text for text in texts(files["pr.svg"]))
    assert all("threshold 0.25" in texts(files[f"{name}.svg"]) for name in ("roc", "pr", "histogram"))


@pytest.mark.parametrize("name", NAMES, ids=ascii)
def test_names_from_outside_are_shown_as_they_are(name: str) -> None:
    """No mathematics, no markup, no hidden label, and no warning about characters that a font lacks."""
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        files = dict(plots(drawn([0.2, 0.7], [1, 1], classes=("_safe", name))))
    shown = texts(files["histogram.svg"])
    assert "truly '_safe'" in shown
    assert any(text.startswith("truly ") and printable(name) in text for text in shown)


def test_a_calibration_is_drawn_with_what_was_before(report: Report, files: dict[str, bytes]) -> None:
    before = evaluate([0.3, 0.4], [0, 1], kind="prob", n_resamples=0).reliability
    with_it = dict(plots(replace(report, before=before)))
    assert "before calibration" in texts(with_it["reliability.svg"])
    assert "before calibration" not in texts(files["reliability.svg"])


def test_rows_of_one_class_have_no_roc() -> None:
    names = [name for name, _ in plots(drawn([0.2, 0.7], [0, 0]))]
    assert names == ["reliability.svg", "reliability.png", "histogram.svg", "histogram.png"]


def test_without_curves_there_is_nothing_to_draw(report: Report) -> None:
    assert list(plots(replace(report, curves=None))) == []


def test_nobodys_own_settings_change_a_plot(report: Report, files: dict[str, bytes]) -> None:
    import matplotlib as mpl

    with mpl.rc_context({"text.usetex": True, "lines.linewidth": 9, "axes.facecolor": "red", "savefig.dpi": 10}):
        found = dict(islice(plots(report), 2))
    assert list(found) == ["roc.svg", "roc.png"]
    assert all(files[name] == content for name, content in found.items())


def test_without_matplotlib_the_message_says_what_to_install(report: Report, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "matplotlib.figure", None)
    with pytest.raises(UsageError, match=re.escape("pip install 'headeval[plots]'")):
        list(plots(report))
