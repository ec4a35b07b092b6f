"""Columns of scores: the numbers that the text says, and an evaluation that holds whatever these numbers are."""

from fractions import Fraction
from pathlib import Path

import numpy as np
import pyarrow as pa

from fuzz.promises import check_message
from headeval.core.stable import sigmoid
from headeval.errors import DataError
from headeval.evaluation import Evaluation, evaluate
from headeval.files.numeric import read_numbers
from headeval.files.row_faults import Place, RowFaults
from headeval.files.schemas import validator
from headeval.files.strict_json import parse_strict
from headeval.render.document import report_document, to_json
from headeval.report import Report

# fmt: off
WORDS = (
    b"\n", b" 0\n", b" 1\n", b"0.5", b"0", b"1", b"-0", b"1e-300", b"5e-324", b"1e308", b"-1e308", b"1e999", b"nan",
    b"0.1", b"0.3", b"0.9999999999999999", b"1e-17", b"1e4", b"-1e4", b"745", b"-746", b"37", b"36.7", b"1,5", b"NaN",
    b"0.5 1\n0.5 0\n", b"0 1\n", b"1 0\n", b"1 1\n", b"+1", b".5", b"5.", b"1_0", b"0x1", "٣".encode(), b"\xc2\xa0",
)
# fmt: on
_FILE = Path("scores.csv")
_MOST_ROWS = 60
_NEAR = 1e-9  # of sums of at most 60 terms in [0, 1]


def seeds() -> list[bytes]:
    """Return a byte for the options and rows of a score and a label."""
    rows = (
        "0.9 1\n0.8 0\n0.3 0\n0.6 1",
        "9 1\n9 0\n5 1\n5 0",
        "0 0\n1 1\n0.5 1\n0.5 0\n1 0",
        "-1e308 0\n1e308 1\n-0 1\n5e-324 0",
        "0.2 1\n0.2 1\n0.2 1",
        "97 1\n98 1\n99 0\n100 1",
        "0.5 1",
        "1,5 1\nnan 0\n 0",
        "1e999 1\n0.5 0",
    )
    return [bytes([options]) + text.encode() for text in rows for options in (0, 1, 3, 7)]


def check(data: bytes) -> None:
    """Read the scores as a column of a CSV file, judge them, and hold what comes out against plain definitions."""
    options, lines = data[0] if data else 0, data[1:].decode("utf-8", "replace").split("\n")[:_MOST_ROWS]
    cells = [line.rpartition(" ")[0] for line in lines]
    labels = [int(line.endswith("1")) for line in lines]
    scores = _read(cells)
    if scores is None:
        return
    kind = "prob" if options & 1 else "logit"
    if kind == "prob" and not all(0 <= score <= 1 for score in scores):
        return
    evaluation = evaluate(
        scores,
        labels,
        kind=kind,  # type: ignore[arg-type]  # one of two texts
        binning="equal-mass" if options & 2 else "equal-width",
        ece_convention="positive-class" if options & 4 else "top-label",
        n_resamples=20 if options & 8 else 0,
    )
    _check_metrics(evaluation)
    probs = scores if kind == "prob" else sigmoid(np.array(scores)).tolist()
    _check_definitions(evaluation, scores, probs, labels)
    document = parse_strict(to_json(report_document(Report({}, "held-out", evaluation))).encode())
    assert not list(validator("report").iter_errors(document)), "the report breaks its own schema"


def _read(cells: list[str]) -> list[float] | None:
    faults = RowFaults()
    place = Place(_FILE, np.arange(1, len(cells) + 1), is_csv=True, faults=faults)
    read = read_numbers(pa.array(cells, pa.string()), "score", place)
    expected = [_number(cell) for cell in cells]
    if read is not None:
        assert [float(score).hex() for score in read] == [None if x is None else x.hex() for x in expected]
        return list(map(float, read))
    assert None in expected, f"refused, though every cell is a finite number: {faults}"
    try:
        faults.raise_if_any()
    except DataError as error:
        check_message(str(error), names=_FILE)
    return None


def _number(cell: str) -> float | None:
    """Return the finite decimal number in a cell."""
    text = cell.strip()
    if {*text} - {*"0123456789+-.eE"}:
        return None
    try:
        number = float(text)
    except ValueError:
        return None
    return number if abs(number) < float("inf") else None


def _check_metrics(evaluation: Evaluation) -> None:
    """Every number is in its range and within its interval, or there is a reason why there is none."""
    for info, metric in evaluation.metrics():
        if metric.value is None:
            assert metric.reason, f"{info.name} is undefined without a reason"
            assert metric.interval is None
            continue
        assert metric.value == metric.value, f"{info.name} is NaN"
        assert abs(metric.value) < float("inf") or info.name == "log_loss"
        for number in (metric.value, *_ends(metric.interval), *_ends(metric.guarantee)):
            assert info.scale != "share" or 0 <= number <= 1, f"{info.name}: {number}"
            assert info.scale == "any" or number >= 0, f"{info.name}: {number}"
        if metric.guarantee is not None:
            assert metric.guarantee.lower <= metric.value <= metric.guarantee.upper, info.name


def _ends(interval: object) -> tuple[float, ...]:
    if interval is None:
        return ()
    lower, upper = interval.lower, interval.upper  # type: ignore[attr-defined]  # an object: all measures have one
    assert lower <= upper
    return (lower, upper)


def _check_definitions(evaluation: Evaluation, scores: list[float], probs: list[float], labels: list[int]) -> None:
    positives = [score for score, label in zip(scores, labels, strict=True) if label]
    negatives = [score for score, label in zip(scores, labels, strict=True) if not label]
    assert (evaluation.counts.n, evaluation.n.value) == (len(labels), len(labels))
    if positives and negatives:
        above = sum(2 * (p > n) + (p == n) for p in positives for n in negatives)
        assert evaluation.auc.value == float(Fraction(above, 2 * len(positives) * len(negatives)))
    else:
        assert evaluation.auc.value is None
    flagged = [label for prob, label in zip(probs, labels, strict=True) if prob >= evaluation.threshold]
    assert evaluation.counts.flagged == len(flagged)
    assert evaluation.recall.value == (sum(flagged) / len(positives) if positives else None)
    assert evaluation.precision.value == (sum(flagged) / len(flagged) if flagged else None)
    squares = sum((Fraction(prob) - label) ** 2 for prob, label in zip(probs, labels, strict=True)) / len(labels)
    assert evaluation.brier.value is not None
    assert abs(evaluation.brier.value - squares) <= _NEAR
    for table in evaluation.calibration:
        assert int(table.counts.sum()) == len(labels)
