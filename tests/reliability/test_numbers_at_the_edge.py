"""Numbers at the edge of what floats and counters hold give the exact answer, or a clear error; never a warning.

Every command here runs with numpy's overflows, divisions by zero and invalid operations raised. An underflow to zero is
the right answer wherever it happens: it is the exponential of a number far below zero.
"""

import json
import math
import os
import re
import subprocess
import sys
from collections.abc import Callable, Iterator
from fractions import Fraction
from pathlib import Path
from typing import Any

import mpmath
import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from numpy.typing import NDArray
from scipy import special, stats
from sklearn.linear_model import LogisticRegression

from headeval import evaluate, read_head
from headeval.cli import training_rows
from headeval.core.binomial import binomial_cdf
from headeval.core.bins import bins_of_rows
from headeval.core.bootstrap import bootstrap_interval
from headeval.core.calibration import reliability_table
from headeval.core.cells import merged
from headeval.core.delong import ranked_auc_interval
from headeval.core.intervals import clopper_pearson, wilson
from headeval.core.proper_scores import brier_score, log_loss_from_logits
from headeval.core.ranked import RankedCounts, rank_counts, sorted_by_class
from headeval.core.ranking import ranked_auc, ranked_average_precision, roc_auc
from headeval.core.thresholds import confusion_counts
from headeval.multiclass import evaluate_classes

Run = Callable[..., Any]
Floats = NDArray[np.float64]

N = 40
LABELS = np.arange(N) % 2
BASE = np.round(np.random.default_rng(0).normal(size=N) + 1.5 * LABELS, 2)
LARGEST, SMALLEST = float(np.finfo(np.float64).max), 5e-324

LOGITS: dict[str, NDArray[Any]] = {
    "±1e4": 1e4 * np.sign(BASE),
    "±1e308": 1e308 * np.sign(BASE),
    "up to the largest float": BASE / np.abs(BASE).max() * LARGEST,
    "subnormal": np.round(BASE * 5) * SMALLEST,
    "times 1e-300": BASE * 1e-300,
    "zeros of both signs": np.where(BASE > 0, 0.0, -0.0),
    "one of 1e308": np.where(np.arange(N) == 3, 1e308, BASE),
    "one of -1e308": np.where(np.arange(N) == 3, -1e308, BASE),
    "constant": np.full(N, 0.7),
}
PROBS: dict[str, NDArray[Any]] = {
    "0 and 1 only": (BASE > 0.7).astype(np.float64),
    "0, 1 and between": np.clip(BASE, 0, 1),
    "subnormal": np.abs(np.round(BASE * 5)) * SMALLEST,
    "next to 1": 1 - np.abs(np.round(BASE * 5)) * 2.0**-53,
    "zeros of both signs": np.where(BASE > 0, 0.0, -0.0),
}


@pytest.fixture(autouse=True)
def raised() -> Iterator[None]:
    with np.errstate(all="raise", under="ignore"):
        yield


def write(name: str, **columns: Any) -> str:
    given = {key: vectors(value) if np.ndim(value) == 2 else value for key, value in columns.items()}
    pq.write_table(pa.table(given), name)
    return name


def vectors(embeddings: NDArray[Any]) -> pa.Array:
    return pa.FixedSizeListArray.from_arrays(pa.array(embeddings.ravel()), embeddings.shape[1])


def pairs_won(scores: Floats, labels: NDArray[Any]) -> Fraction:
    positives, negatives = scores[labels == 1].tolist(), scores[labels == 0].tolist()
    twice = sum(2 * (p > n) + (p == n) for p in positives for n in negatives)
    return Fraction(twice, 2 * len(positives) * len(negatives))


def exact_log_loss(logits: Floats, labels: NDArray[Any]) -> float:
    """In 800 digits, with log(1 + e^z) = z where e^z is beyond all of them."""
    with mpmath.workdps(800):
        away = [mpmath.mpf(-z if y else z) for z, y in zip(logits.tolist(), labels.tolist(), strict=True)]
        terms = [max(a, mpmath.mpf(0)) if abs(a) > 1e5 else mpmath.log(1 + mpmath.exp(a)) for a in away]
        return float(mpmath.fsum(terms) / len(terms))


def metrics_of(outcome: Any) -> dict[str, Any]:
    """The metrics, after a look at what else was said."""
    assert outcome.code in {0, 1}, outcome.err
    assert "Warning" not in outcome.err
    found: dict[str, Any] = json.loads(outcome.out)["metrics"]
    return found


# --- scores


@pytest.mark.parametrize("case", LOGITS)
def test_reports_of_logits_are_exact_however_large_or_small_these_are(headeval: Run, case: str) -> None:
    """The area, the loss and the decisions; with a second score beside it, whose difference can overflow."""
    z = LOGITS[case]
    data = write("s.parquet", z=z, old=np.roll(z, 7), label=LABELS)
    found = metrics_of(headeval("report", data, "--logit", "z", "--baseline-logit", "old", "--format", "json"))
    assert found["auc"] == float(pairs_won(z, LABELS)) == roc_auc(z, LABELS)
    expected = exact_log_loss(z, LABELS)
    assert found["log_loss"] == pytest.approx(expected, rel=1e-14)
    assert log_loss_from_logits(z, LABELS) == pytest.approx(expected, rel=1e-14)
    # What is flagged goes by the probability, which of a logit below about 1e-17 is one half.
    assert found["accuracy"] == np.mean((special.expit(z) >= 0.5) == LABELS)


@pytest.mark.parametrize("case", PROBS)
def test_reports_of_probabilities_are_exact_at_both_ends(headeval: Run, case: str) -> None:
    p = PROBS[case]
    data = write("s.parquet", p=p, label=LABELS, g=np.arange(N) // 4)
    outcome = headeval("report", data, "--prob", "p", "--group", "g", "--format", "json")
    found = metrics_of(outcome)
    squares = [(Fraction(v) - y) ** 2 for v, y in zip(p.tolist(), LABELS.tolist(), strict=True)]
    assert found["auc"] == float(pairs_won(p, LABELS))
    assert found["brier"] == brier_score(p, LABELS) == pytest.approx(float(sum(squares) / N), rel=1e-14)
    impossible = int(np.count_nonzero(np.where(LABELS == 1, p == 0, p == 1)))
    reason = json.loads(outcome.out)["undefined"].get("log_loss", "")
    assert (found["log_loss"] is None) == (impossible > 0)
    assert (
        not impossible
        or reason == f"infinite: the true class was given probability 0 in {impossible} row{'s' * (impossible > 1)}"
    )


def test_a_zero_is_a_zero_whatever_its_sign(headeval: Run) -> None:
    """Rows of −0.0 and 0.0 tie, in a ranking, in a bin and at a threshold of 0."""
    signs = np.where(LABELS == 1, 0.0, -0.0)
    data = write("s.parquet", z=signs, label=LABELS)
    found = metrics_of(headeval("report", data, "--logit", "z", "--format", "json"))
    assert (found["auc"], found["ap"], found["recall"], found["fpr"]) == (0.5, 0.5, 1.0, 1.0)
    assert reliability_table(signs, LABELS, convention="positive-class").counts.tolist()[:2] == [N, 0]
    assert confusion_counts(signs, LABELS, threshold=0.0).flagged == N


@pytest.mark.parametrize("kind", ["few rows", "many rows"])
def test_a_difference_of_huge_losses_has_the_interval_of_the_same_losses_scaled(kind: str) -> None:
    """No square and no sum leaves the range of float64 on the way; powers of two are without rounding."""
    values = np.random.default_rng(1).normal(size=30 if kind == "few rows" else 1000)
    plain = bootstrap_interval(values, 0.1, smaller=9, lower=-math.inf, upper=math.inf)
    huge = bootstrap_interval(np.ldexp(values, 1021), 0.1 * 2.0**1021, smaller=9, lower=-math.inf, upper=math.inf)
    assert plain is not None
    assert huge is not None
    assert (math.ldexp(huge.lower, -1021), math.ldexp(huge.upper, -1021)) == (plain.lower, plain.upper)


def test_neighbours_with_huge_losses_are_merged_into_their_mean() -> None:
    """What very many rows are resampled from: the sum of their losses would overflow, their mean does not."""
    z, y = sorted_by_class(np.repeat([-1e308, 1e308], 3000), np.tile([0, 1], 3000))
    p = (z > 0).astype(np.float64)
    losses = np.where(y == 1, -z, z).clip(0)
    bins = [bins_of_rows(p, y, None, convention="positive-class")]
    cells = merged(y, p, losses, ranked=rank_counts(z, y), bins=bins)
    assert cells.sizes.tolist() == [1500.0] * 4
    assert cells.losses == pytest.approx([0.0, 1e308, 1e308, 0.0], rel=1e-14)


@pytest.mark.parametrize(
    "scale", [8e307, *(pytest.param(x, marks=pytest.mark.slow) for x in (1e4, 1e-300, SMALLEST, 0))]
)
def test_classes_at_the_edge_have_the_loss_of_exact_arithmetic(headeval: Run, scale: float) -> None:
    rng, label = np.random.default_rng(2), np.arange(60) % 3
    Z = np.sign(rng.normal(size=(60, 3)) + np.eye(3)[label]) * scale
    columns = {f"z_{name}": column for name, column in zip("abc", Z.T, strict=True)}
    data = write("s.parquet", label=np.array(list("abc"))[label], g=np.arange(60) // 30, **columns)
    outcome = headeval("report", data, "--logit", "z_*", "--classes", "a,b,c", "--group", "g", "--format", "json")
    assert outcome.code == 0, outcome.err
    with mpmath.workdps(400):
        # e^(z − top) of a gap of a thousand or more is beyond all digits: as good as 0.
        gaps = [[mpmath.mpf(v) - mpmath.mpf(max(row)) for v in row] for row in Z.tolist()]
        sums = [mpmath.log(mpmath.fsum(mpmath.exp(max(g, -2000)) for g in row)) for row in gaps]
        terms = [total - row[k] for total, row, k in zip(sums, gaps, label.tolist(), strict=True)]
        expected = float(mpmath.fsum(terms) / 60)
    loss = evaluate_classes(Z, label, kind="logit", classes=("a", "b", "c"), n_resamples=0).multiclass_log_loss.value
    assert loss == pytest.approx(expected, rel=1e-13)
    assert f'"multiclass_log_loss": {json.dumps(loss)}' in outcome.out


# --- an impossible event


@pytest.mark.parametrize("rows", [pytest.param(1, marks=pytest.mark.slow), 3])
def test_an_infinite_log_loss_is_shown_as_such_with_the_rows_behind_it_in_every_format(
    headeval: Run, rows: int
) -> None:
    p = np.array([0.5] * 5 + [0.2, 0.9] + [0.0] * rows)
    data = write("s.parquet", p=p, label=[1, 1, 0, 0, 0, 0, 1] + [1] * rows)
    reason = f"the true class was given probability 0 in {rows} row{'s' if rows > 1 else ''}"
    outputs = ("--html", "p.html", "--card", "c.md", "--junit", "j.xml", "--require", "log_loss<=1e308", "--force")
    for shown in ("table", "markdown", "json"):
        outcome = headeval("report", data, "--prob", "p", "--format", shown, *outputs)
        assert outcome.code == 1, outcome.err
        text = re.sub(r"\s+", " ", outcome.out)
        if shown == "json":
            document = json.loads(outcome.out)
            assert document["metrics"]["log_loss"] is None
            assert document["undefined"]["log_loss"] == f"infinite: {reason}"
        else:
            assert re.search(r"log loss \W*∞", text)
            assert f"log_loss <= 1e+308: {reason}" in text.replace("&#60;", "<").replace("&#43;", "+")
    for written in ("p.html", "c.md", "j.xml"):
        assert "∞" in Path(written).read_text()
        assert reason in Path(written).read_text()


def test_a_row_of_weight_0_rules_nothing_out(headeval: Run) -> None:
    """Neither does it make the loss infinite, nor is it counted among those that do."""
    p, y = np.array([0.0, 0.0, 0.5, 0.5, 0.25]), [1, 1, 1, 0, 0]
    data = write("s.parquet", p=p, label=y, without=[0, 0, 1, 1, 2], with_one=[0.0, 3, 1, 1, 1])
    finite = metrics_of(headeval("report", data, "--prob", "p", "--weight", "without", "--format", "json"))
    assert finite["log_loss"] == pytest.approx((2 * math.log(2) + 2 * math.log(4 / 3)) / 4, rel=1e-14)
    outcome = headeval("report", data, "--prob", "p", "--weight", "with_one", "--format", "json")
    assert json.loads(outcome.out)["undefined"]["log_loss"].endswith("in 1 row")


# --- counters


@pytest.mark.parametrize(("P", "N_"), [(2**31, 2**31), (4 * 10**9, 4 * 10**9), (2**40, 2**40), (7, 2**61)])
def test_pairs_beyond_the_range_of_int64_are_counted(P: int, N_: int) -> None:
    tp, fp = np.array([P // 2, P // 2 + 1, P]), np.array([N_ // 4, N_ // 4, N_])
    ranked, twice, was = RankedCounts(np.array([3.0, 2.0, 1.0]), tp, fp), 0, (0, 0)
    precision = Fraction(0)
    for here in zip(tp.tolist(), fp.tolist(), strict=True):
        twice += (here[0] - was[0]) * (2 * N_ - here[1] - was[1])
        precision += Fraction(here[0] - was[0], P) * Fraction(here[0], sum(here))
        was = here
    assert ranked_auc(ranked) == float(Fraction(twice, 2 * P * N_))
    assert ranked_average_precision(ranked) == pytest.approx(float(precision), rel=1e-15)
    bounds = ranked_auc_interval(ranked, confidence=0.95)
    assert 0 < bounds.lower < ranked_auc(ranked) < bounds.upper < 1


def test_counters_are_int64_whatever_the_labels_are() -> None:
    """A sum of 300 bytes is not 44, and one of 2^31 rows would not be negative."""
    scores, labels = np.repeat([0.25, 0.75], 150), np.ones(300, dtype=np.uint8)
    labels[0] = 0
    table = reliability_table(scores, labels, convention="positive-class")
    ranked = rank_counts(scores, labels.astype(np.int64))
    assert table.counts.dtype == ranked.true_positives.dtype == ranked.false_positives.dtype == np.int64
    assert (table.counts.sum(), ranked.true_positives[-1], ranked.false_positives[-1]) == (300, 299, 1)
    assert confusion_counts(scores, labels, threshold=0.5).true_positives == 150
    assert roc_auc(scores, labels) == float(pairs_won(scores, labels))


@pytest.mark.parametrize("n", [2**31, 2**40])
@pytest.mark.parametrize("share", ["none", "one", "some", "half", "all"])
def test_intervals_of_rates_are_scipys_at_billions_of_rows(n: int, share: str) -> None:
    k = {"none": 0, "one": 1, "some": n // 10**6, "half": n // 2, "all": n}[share]
    exact, score = clopper_pearson(k, n), wilson(k, n)
    assert exact.lower == pytest.approx(stats.beta.ppf(0.025, k, n - k + 1) if k else 0.0, rel=1e-9, abs=0)
    assert exact.upper == pytest.approx(stats.beta.ppf(0.975, k + 1, n - k) if k < n else 1.0, rel=1e-9, abs=0)
    with mpmath.workdps(60):
        z, p = mpmath.mpf(stats.norm.ppf(0.975)), mpmath.mpf(k) / n
        half = z * mpmath.sqrt(p * (1 - p) / n + z**2 / (4 * mpmath.mpf(n) ** 2))
        lower, upper = ((p + z**2 / (2 * n) + sign * half) / (1 + z**2 / n) for sign in (-1, 1))
    assert score.lower == pytest.approx(float(lower), rel=1e-12, abs=0 if k else 1e-30)
    assert score.upper == pytest.approx(float(upper), rel=1e-12)
    assert 0 <= exact.lower < exact.upper <= 1
    assert 0 <= score.lower < score.upper <= 1


def test_the_binomial_of_2_to_the_31_rows_with_a_prevalence_of_a_millionth() -> None:
    for k in (2000, 2147, 2300):
        assert binomial_cdf(k, 2**31, 1e-6) == pytest.approx(stats.binom.cdf(k, 2**31, 1e-6), rel=1e-9)


def test_one_positive_in_a_million_rows() -> None:
    """The area is the share of negatives below it, and no interval pretends to know more than one row tells."""
    rows = 1_000_000
    scores, labels = np.random.default_rng(4).permutation(rows) / rows, np.zeros(rows, dtype=np.int8)
    labels[77] = 1
    found = evaluate(scores, labels, kind="prob", n_resamples=0)
    below = int(np.count_nonzero(scores < scores[77]))
    assert found.auc.value == below / (rows - 1)
    assert found.ap.value == 1 / (rows - below)
    assert found.prevalence.value == 1e-6
    assert found.prevalence.interval is not None
    assert found.prevalence.interval.lower < 1e-6 < found.prevalence.interval.upper
    assert found.recall.interval is not None
    assert found.recall.interval.upper - found.recall.interval.lower > 0.7


# --- one row, one class, one feature, few rows, dependent columns


@pytest.mark.parametrize("label", [0, 1])
@pytest.mark.parametrize("kind", ["logit", "prob"])
def test_one_row_is_reported_and_its_ranking_undefined(headeval: Run, label: int, kind: str) -> None:
    data = write("s.parquet", s=[0.25], label=[label])
    outcome = headeval("report", data, f"--{kind}", "s", "--format", "json", "--html", "p.html", "--card", "c.md")
    found = metrics_of(outcome)
    assert (found["auc"], found["ap"], found["n"]) == (None, None, 1)
    p = 0.25 if kind == "prob" else 1 / (1 + math.exp(-0.25))
    assert found["brier"] == pytest.approx((p - label) ** 2, rel=1e-14)
    assert headeval("report", data, f"--{kind}", "s", "--require", "auc>=0").code == 1
    for command in (("calibrate", data, f"--{kind}", "s", "-o", "c.parquet"), ("fit", data, "-o", "h.json")):
        assert headeval(*command).code == 3
    assert not Path("c.parquet").exists()
    assert not Path("h.json").exists()


def shapes() -> dict[str, Floats]:
    rng = np.random.default_rng(5)
    plain = rng.normal(size=(30, 3))
    return {
        "n < d": rng.normal(size=(30, 200)),
        "one feature": rng.normal(size=(30, 1)),
        "a constant column": np.c_[plain, np.ones(30)],
        "a duplicated column": np.c_[plain, plain[:, 0]],
        "a column of zeros": np.c_[plain, np.zeros(30)],
        "subnormal entries": np.c_[plain, np.full(30, SMALLEST)],
        "scaled by 1e-300": plain * 1e-300,
        "scaled by 1e300": plain * 1e300,
    }


@pytest.mark.parametrize("streamed", [False, pytest.param(True, marks=pytest.mark.slow)], ids=["in memory", "streamed"])
@pytest.mark.parametrize("case", shapes())
def test_heads_of_odd_shapes_are_scikit_learns(headeval: Run, case: str, streamed: bool) -> None:
    E = shapes()[case]
    y = (np.random.default_rng(6).random(len(E)) < 0.5).astype(np.int64)
    data = write("e.parquet", embedding=E, label=y)
    memory = ("--memory", "30KB") if streamed else ()
    outcome = headeval("fit", data, "-o", "h.json", "--folds", "2", *memory)
    assert outcome.code == 0, outcome.err
    head = read_head("h.json")
    big = np.abs(E).max(axis=1, keepdims=True)
    u = E / big / np.linalg.norm(E / big, axis=1, keepdims=True)
    with np.errstate(all="warn", under="ignore"):
        expected = LogisticRegression(C=1.0, tol=1e-12, max_iter=10_000).fit(u, y)
    assert head.W[1] == pytest.approx(expected.coef_[0], abs=1e-5)
    residual = 1 / (1 + np.exp(-(u @ head.W[1] + head.b[1]))) - y
    assert np.abs(u.T @ residual + head.W[1]).max() <= 1e-9
    assert abs(residual.sum()) <= 1e-9
    assert headeval("score", data, "--head", "h.json", "-o", "s.parquet").code == 0
    logits = pq.read_table("s.parquet")["logit"].to_numpy()
    assert logits == pytest.approx(u @ head.W[1] + head.b[1], rel=1e-12, abs=1e-14)
    without = headeval("fit", data, "-o", "no.json", "--folds", "0", "--l2", "0", *memory)
    # A column that was constant is none among unit vectors.
    refused = case in {"n < d", "a duplicated column", "a column of zeros", "subnormal entries"}
    assert without.code == (5 if refused else 0), without.err


def test_one_class_is_no_fit_in_any_command(headeval: Run) -> None:
    data = write("e.parquet", embedding=np.eye(4), label=[1, 1, 1, 1], other=[0, 1, 0, 1])
    outcome = headeval("fit", data, "-o", "h.json")
    assert outcome.code == 3
    assert "rows of both classes are needed" in outcome.err
    folder = headeval("fit", data, "--label", "label,other", "--min-positives", "1", "--folds", "0", "-o", "heads")
    assert folder.code == 5
    assert "could not be fitted, and is left out: 'label'" in folder.err
    assert "all 4 known rows are '1'" in re.sub(r"\s+", " ", folder.out)


# --- heads with numbers at the edge


def head_file(path: str, W: list[list[float]], b: list[float], **more: Any) -> str:
    document = {"embedding_model": "m", "dim": len(W[0]), "classes": ["0", "1"], "W": W, "b": b, "threshold": 0.5}
    Path(path).write_text(json.dumps(document | more))
    return path


@pytest.mark.parametrize("size", [1e308, SMALLEST, *(pytest.param(x, marks=pytest.mark.slow) for x in (1e4, 1e-300))])
def test_heads_of_any_size_score_as_exact_arithmetic_does(headeval: Run, size: float) -> None:
    """Also zero vectors, and embeddings whose squares leave the range of float64."""
    E = np.array([[3.0, 4.0], [0.0, -0.0], [3e300, -4e300], [-3e-320, 4e-320], [1e308, 1e308], [-1.0, 1e-300]])
    data = write("e.parquet", embedding=E, label=[1, 0, 1, 0, 1, 0])
    head = head_file("h.json", [[0.0, 0.0], [size, -size]], [0.0, 0.0])
    assert headeval("score", data, "--head", head, "-o", "s.parquet", "--embedding-model", "m").code == 0
    found = pq.read_table("s.parquet")
    for place, (row, logit) in enumerate(zip(E.tolist(), found["logit"].to_pylist(), strict=True)):
        with mpmath.workdps(700):
            a, b = map(mpmath.mpf, row)
            exact = float(size * (a - b) / (mpmath.sqrt(a * a + b * b) or 1))
        exact = max(min(exact, LARGEST / 4), -LARGEST / 4)  # so far, differences of two logits are numbers
        assert logit == pytest.approx(exact, rel=1e-15 if size > 1e-310 else 1, abs=SMALLEST), place
        assert found["prob"][place].as_py() == (0.5 if abs(exact) < 1e-17 else float(exact > 0))
    for command in ("report", "calibrate", "threshold"):
        options = ("--require", "fpr<=0.9") if command == "threshold" else ()
        written = () if command == "report" else ("-o", f"{command}.json")
        outcome = headeval(command, data, "--head", head, "--embedding-model", "m", *options, *written)
        assert outcome.code in {0, 5}, outcome.err


def test_a_calibration_whose_weights_would_overflow_is_refused(headeval: Run) -> None:
    E = np.random.default_rng(7).normal(size=(60, 2))
    y = (E[:, 0] + np.random.default_rng(8).normal(size=60) > 0).astype(np.int64)
    head = head_file("h.json", [[-1e308, -1e308], [1e308, 1e308]], [0.0, -1e308])
    data = write("e.parquet", embedding=E, label=y)
    for method in ("platt", "temperature"):
        options = ("--method", method, "-o", "c.json", "--embedding-model", "m")
        outcome = headeval("calibrate", data, "--head", head, *options)
        assert outcome.code == 5
        assert f"no {method} scaling was written" in outcome.err
        assert not Path("c.json").exists()


# --- weights of 0


@pytest.mark.parametrize("memory", [(), ("--memory", "30KB")], ids=["in memory", "streamed"])
def test_rows_of_weight_0_count_nowhere_in_a_fit(headeval: Run, memory: tuple[str, ...]) -> None:
    """The head is that of the other rows, which all count alike; in a folder of heads, too."""
    rng = np.random.default_rng(9)
    E, y, w = rng.normal(size=(80, 4)), np.arange(80) % 2, np.arange(80) % 4 // 2
    E[w == 0] *= -50  # and would be missed
    every = write("all.parquet", embedding=E, label=y, other=1 - y, w=w * 2.0)
    some = write("some.parquet", embedding=E[w > 0], label=y[w > 0], other=1 - y[w > 0])
    for labels, suffix in (("label", ".json"), ("label,other", "")):
        options = ("--label", labels, "--folds", "0", *memory)
        weighted = headeval("fit", every, "--weight", "w", "--l2", "2", *options, "-o", "w" + suffix)
        assert weighted.code == 0, weighted.err
        assert headeval("fit", some, *options, "-o", "s" + suffix).code == 0
    for weighted, plain in (("w.json", "s.json"), ("w/label.json", "s/label.json"), ("w/other.json", "s/other.json")):
        one, other = read_head(weighted), read_head(plain)
        assert np.append(one.W[1], one.b[1]) == pytest.approx(np.append(other.W[1], other.b[1]), abs=1e-10)


def test_all_weights_0_is_an_error_in_every_command_that_takes_weights(headeval: Run) -> None:
    data = write("e.parquet", embedding=np.eye(4), label=[0, 1, 0, 1], p=[0.1, 0.9, 0.2, 0.8], w=np.zeros(4))
    head = head_file("h.json", np.eye(4)[:2].tolist(), [0.0, 0.0])
    commands = (
        ("fit", data, "-o", "x.json"),
        ("fit", data, "-o", "x.json", "--memory", "30KB"),
        ("report", data, "--prob", "p"),
        ("report", data, "--head", head, "--embedding-model", "m"),
    )
    for command in commands:
        outcome = headeval(*command, "--weight", "w")
        assert (outcome.code, outcome.out) == (3, "")
        assert "column 'w': all weights are 0" in outcome.err
    assert not Path("x.json").exists()
    with pytest.raises(ValueError, match="not all zero"):
        evaluate([0.1, 0.9], [0, 1], kind="prob", weights=[0, 0])


# --- long vectors


def test_a_fit_that_memory_cannot_hold_is_refused_before_it_begins(
    headeval: Run, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Of vectors of 2^22 numbers the Hessian would have 140 terabytes in float64."""
    monkeypatch.setattr(training_rows, "available_memory", lambda: 10**9)
    data = write("e.parquet", embedding=np.ones((2, 2**15), dtype=np.float32) * [[1], [-1]], label=[0, 1], b=[1, 0])
    for options in (("-o", "h.json"), ("--label", "label,b", "--min-positives", "1", "-o", "heads")):
        outcome = headeval("fit", data, "--folds", "0", *options)
        assert outcome.code == 5
        assert "on 32,768 dimensions takes" in outcome.err
        assert "matrices of 32,769 × 32,769 numbers" in outcome.err
        assert "1 GB of memory are free; use shorter embeddings" in outcome.err
        assert not Path(options[-1]).exists()


def test_memory_that_runs_out_on_the_way_is_no_bug(headeval: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    def without_room(*_: object, **__: object) -> None:
        raise MemoryError

    monkeypatch.setattr("headeval.solver.training.train", without_room)
    data = write("e.parquet", embedding=np.eye(4), label=[0, 1, 0, 1])
    outcome = headeval("fit", data, "--folds", "0", "-o", "h.json")
    assert outcome.code == 5
    assert "memory ran out in the fit, on " in outcome.err
    assert "or fewer rows" in outcome.err
    assert not Path("h.json").exists()


@pytest.mark.slow
def test_vectors_of_16_mb_are_scored_and_judged_in_bounded_memory_and_refused_by_a_fit(tmp_path: Path) -> None:
    """Six rows of 2^22 numbers in one row group: 100 MB of data, in a process that may have 3 GB."""
    d = 2**22
    E = np.random.default_rng(0).standard_normal((6, d), dtype=np.float32)
    w = np.random.default_rng(1).integers(-9, 10, d)
    pq.write_table(pa.table({"embedding": vectors(E), "label": [0, 1] * 3}), tmp_path / "e.parquet", row_group_size=6)
    document = {"embedding_model": "m", "dim": d, "classes": ["0", "1"], "W": [[0] * d, w.tolist()], "b": [0, 0.5]}
    (tmp_path / "h.json").write_text(json.dumps(document | {"threshold": 0.5}))

    def limited(*arguments: str) -> subprocess.CompletedProcess[str]:
        code = "import resource, sys; resource.setrlimit(resource.RLIMIT_AS, (3 << 30,) * 2); from headeval.__main__ "
        command = [sys.executable, "-W", "error", "-c", f"{code}import main; main()", *arguments]
        environment = os.environ | {"OPENBLAS_NUM_THREADS": "1"}
        return subprocess.run(
            command, cwd=tmp_path, capture_output=True, text=True, timeout=300, env=environment, check=False
        )

    scored = limited("score", "e.parquet", "--head", "h.json", "-o", "s.parquet", "--embedding-model", "m")
    assert scored.returncode == 0, scored.stderr
    e = E.astype(np.float64)
    expected = (e @ w) / np.sqrt(np.square(e).sum(axis=1)) + 0.5
    assert pq.read_table(tmp_path / "s.parquet")["logit"].to_numpy() == pytest.approx(expected, rel=1e-9)
    judged = limited("report", "e.parquet", "--head", "h.json", "--embedding-model", "m", "--format", "json")
    assert judged.returncode == 0, judged.stderr
    assert json.loads(judged.stdout)["metrics"]["auc"] == float(pairs_won(expected, np.array([0, 1] * 3)))
    fitted = limited("fit", "e.parquet", "--folds", "0", "-o", "f.json")
    assert fitted.returncode == 5, fitted.stderr
    assert "on 4,194,304 dimensions takes 2 matrices of 4,194,305 × 4,194,305 numbers" in fitted.stderr
    assert not (tmp_path / "f.json").exists()


# --- warnings


def test_a_process_of_its_own_warns_of_nothing_at_the_edge(tmp_path: Path) -> None:
    """Warnings of Python and numpy are errors there, too, and stderr stays empty."""
    z = LOGITS["up to the largest float"]
    pq.write_table(pa.table({"z": z, "old": -z, "label": LABELS}), tmp_path / "s.parquet")
    command = [sys.executable, "-W", "error", "-m", "headeval", "report", "s.parquet", "--logit", "z", "--quiet"]
    done = subprocess.run(
        [*command, "--baseline-logit", "old"], cwd=tmp_path, capture_output=True, text=True, timeout=120, check=False
    )
    assert (done.returncode, done.stderr) == (0, "")


def test_the_test_suite_takes_warnings_as_errors(pytestconfig: pytest.Config) -> None:
    assert pytestconfig.getini("filterwarnings") == ["error"]
    with np.errstate(over="warn"), pytest.raises(RuntimeWarning, match="overflow"):
        np.array([1e308]) * 10
