"""The metrics of very many scores, beside one sort of them and the scikit-learn calls for the same numbers.

    python benchmarks/metrics.py [--rows 10000000] [--rounds 3] [--seed 0] [--quick]

Everything runs in one process on the same arrays: probabilities and labels of a classifier that is somewhat
overconfident. Times are the best of all rounds, by the clock and by the processor, which on a machine that others use
tells more; ratios are of times of the same kind. Two columns of the goals: within 4 times one sort, and at least 6
times faster than scikit-learn.
"""

import argparse
import math
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from sklearn import metrics
from sklearn.calibration import calibration_curve
from table import Goal, environment, goals_table, markdown_table, number

from headeval.core.ranked import rank_counts
from headeval.core.ranking import ranked_pr_curve, ranked_roc_curve
from headeval.evaluation import Evaluation, evaluate

THRESHOLD = 0.5
WITHIN_SORTS, TIMES_FASTER = 4.0, 6.0


@dataclass(frozen=True, slots=True)
class Timed:
    """What a call gave, the best of its times in seconds, and the bytes it took at most beside what there was."""

    result: Any
    wall: float
    cpu: float
    peak: int = 0


def timed(call: Callable[[], Any], rounds: int) -> Timed:
    """Run a call several times."""
    times = []
    before = _resident("VmRSS", forget=True)
    for _ in range(rounds):
        wall, cpu = time.perf_counter(), time.process_time()
        result = call()
        times.append((time.perf_counter() - wall, time.process_time() - cpu))
    peak = _resident("VmHWM") - before
    return Timed(result, min(wall for wall, _ in times), min(cpu for _, cpu in times), peak)


def _resident(name: str, *, forget: bool = False) -> int:
    """Return bytes of memory now (VmRSS) or at most (VmHWM), which Linux forgets when told so; elsewhere 0."""
    try:
        if forget:
            Path("/proc/self/clear_refs").write_text("5")
        lines = Path("/proc/self/status").read_text().splitlines()
    except OSError:
        return 0
    return next((1024 * int(line.split()[1]) for line in lines if line.startswith(f"{name}:")), 0)


def rows_of(n: int, seed: int) -> tuple[np.ndarray, np.ndarray]:
    """Return probabilities and labels."""
    rng = np.random.default_rng(seed)
    z = 2 * rng.standard_normal(n) - 1
    labels = (rng.random(n) < 1 / (1 + np.exp(-0.8 * z))).astype(np.int64)
    return 1 / (1 + np.exp(-z)), labels


def scikit_learn_calls(p: np.ndarray, y: np.ndarray) -> dict[str, Callable[[], Any]]:
    """Return the calls for the numbers that an evaluation holds."""
    return {
        "roc_curve": lambda: metrics.roc_curve(y, p, drop_intermediate=False),
        "roc_auc_score": lambda: metrics.roc_auc_score(y, p),
        "precision_recall_curve": lambda: metrics.precision_recall_curve(y, p),
        "average_precision_score": lambda: metrics.average_precision_score(y, p),
        "confusion_matrix": lambda: metrics.confusion_matrix(y, p >= THRESHOLD),
        "calibration_curve": lambda: calibration_curve(y, p, n_bins=10),
        "brier_score_loss": lambda: metrics.brier_score_loss(y, p),
        "log_loss": lambda: metrics.log_loss(y, p),
    }


def differences(found: Evaluation, curves: tuple[Any, Any], theirs: Mapping[str, Timed]) -> dict[str, float]:
    """Return the largest difference of headeval's numbers from each call's."""
    (fpr, tpr, _), pr = curves
    table = found.reliability
    held = table.counts > 0
    counts = found.counts
    ours = [[counts.true_negatives, counts.false_positives], [counts.false_negatives, counts.true_positives]]
    precision, recall, _ = theirs["precision_recall_curve"].result  # the lowest threshold first, and a point (1, 0)
    return {
        "roc_curve": _most(np.stack([fpr, tpr]), np.stack(theirs["roc_curve"].result[:2])),
        "roc_auc_score": _most(found.auc.value, theirs["roc_auc_score"].result),
        "precision_recall_curve": _most(
            np.stack([pr.precision, pr.recall]), np.stack([precision[-2::-1], recall[-2::-1]])
        ),
        "average_precision_score": _most(found.ap.value, theirs["average_precision_score"].result),
        "confusion_matrix": _most(ours, theirs["confusion_matrix"].result),
        "calibration_curve": _most(
            np.stack([table.accuracy[held], table.confidence[held]]), np.stack(theirs["calibration_curve"].result)
        ),
        "brier_score_loss": _most(found.brier.value, theirs["brier_score_loss"].result),
        "log_loss": _most(found.log_loss.value, theirs["log_loss"].result),
    }


def _most(ours: Any, theirs: Any) -> float:
    one, other = np.asarray(ours, dtype=np.float64), np.asarray(theirs, dtype=np.float64)
    return float(np.abs(one - other).max()) if one.shape == other.shape else math.nan


def report(n: int, rounds: int, seed: int) -> tuple[str, list[Goal]]:
    """Run everything on n rows and return the tables and what they are held to."""
    p, y = rows_of(n, seed)
    sort = timed(lambda: np.sort(p), rounds + 1)
    ours = timed(lambda: evaluate(p, y, kind="prob", threshold=THRESHOLD, n_resamples=0), rounds)
    ranked = rank_counts(p, y)
    curves = timed(lambda: (ranked_roc_curve(ranked), ranked_pr_curve(ranked)), rounds)
    default = timed(lambda: evaluate(p, y, kind="prob", threshold=THRESHOLD), 1)
    theirs = {name: timed(call, 1) for name, call in scikit_learn_calls(p, y).items()}
    apart = differences(ours.result, curves.result, theirs)

    whole, calls = _together([ours, curves]), _together(list(theirs.values()))
    summary = [
        ("one np.sort", sort),
        ("headeval: evaluation without resamples", ours),
        ("headeval: the points of both curves, from its ranking", curves),
        ("**headeval: both together**", whole),
        ("**scikit-learn: the eight calls**", calls),
        ("headeval: evaluation with bootstrap intervals", default),
    ]
    lines = [
        [name, *map(number, (t.wall, t.cpu, t.wall / sort.wall, calls.wall / t.wall)), f"{t.peak / 1e6:,.0f}"]
        for name, t in summary
    ]
    each = [
        [name, number(t.wall), number(t.cpu), f"{t.peak / 1e6:,.0f}", f"{apart[name]:.1e}"]
        for name, t in theirs.items()
    ]
    parts = [
        f"### {n:,} scores",
        markdown_table(["", "s", "CPU s", "np.sorts", "times faster than scikit-learn", "peak (MB)"], lines),
        markdown_table(["scikit-learn", "s", "CPU s", "peak (MB)", "largest difference from headeval"], each),
    ]
    goals = [
        Goal(f"{n:,} scores: in sorts", WITHIN_SORTS, whole.wall / sort.wall),
        Goal(f"{n:,} scores: faster than scikit-learn", TIMES_FASTER, calls.wall / whole.wall, at_least=True),
    ]
    return "\n\n".join(parts), goals


def _together(calls: Sequence[Timed]) -> Timed:
    """Return the time of calls one after the other."""
    return Timed(None, sum(t.wall for t in calls), sum(t.cpu for t in calls), max(t.peak for t in calls))


def main() -> None:
    """Print the tables."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--rows", type=int, nargs="+", default=[100_000, 1_000_000, 10_000_000])
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--quick", action="store_true", help="few rows, once: does it run at all?")
    asked = parser.parse_args()
    if asked.quick:
        asked.rows, asked.rounds = [2000], 1
    goals: list[Goal] = []
    print(f"## Metrics of very many scores\n\n{environment()}")
    for n in asked.rows:
        text, goals = report(n, asked.rounds, asked.seed)
        print(f"\n{text}", flush=True)
    # Those of the most scores: on few, the interpreter's own time is what is measured.
    print(f"\n### Goals\n\n{goals_table(goals)}")


if __name__ == "__main__":
    main()
