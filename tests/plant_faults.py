"""Make each classic mistake in a copy of the checkout and see that a test of its name fails.

    python tests/plant_faults.py            all of them
    python tests/plant_faults.py 05 10      these

A fault is a piece of source text and what stands there instead. Text that is no longer found exactly once stops the
script: a fault that is not planted would pass for one that is caught. Exit code 1 where a fault was not caught.
"""

import os
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Iterable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path
from queue import SimpleQueue

CHECKOUT = Path(__file__).resolve().parent.parent
COPIED = ("src", "tests", "schemas", "sample_data", "pyproject.toml", "README.md")
PITFALLS = "tests/core/test_pitfalls.py"
AT_ONCE = 2  # copies, each with one fault at a time


@dataclass(frozen=True, slots=True)
class Fault:
    """One mistake: in `file`, `old` becomes `new`; the tests named pitfall_<number> in `tests` must see it."""

    number: str
    mistake: str
    file: str
    old: str
    new: str
    tests: str = PITFALLS


FAULTS = (
    Fault(
        "01",
        "a naive sigmoid that overflows",
        "core/stable.py",
        "p: FloatArray = np.where(z >= 0, 1.0, e) / (1.0 + e)",
        "p: FloatArray = 1.0 / (1.0 + np.exp(-z))",
    ),
    Fault("02", "a penalised intercept", "core/logistic.py", "penalty[-1] = 0.0", "penalty[-1] = penalty[0]"),
    Fault(
        "03",
        "the gradient's sign",
        "core/newton.py",
        "np.where(self.y > 0, -sigmoid(-z), sigmoid(z))",
        "np.where(self.y > 0, sigmoid(-z), -sigmoid(z))",
    ),
    Fault(
        "04",
        "a Hessian without p(1 − p)",
        "core/newton.py",
        "np.sqrt(self.s * sigmoid(z) * sigmoid(-z))",
        "np.sqrt(self.s)",
    ),
    Fault(
        "05",
        "stepping through ties one at a time",
        "core/ranked.py",
        "np.flatnonzero(np.append(scores[1:] != scores[:-1], True))",
        "np.arange(scores.shape[0])",
    ),
    Fault(
        "06",
        "ascending sort",
        "core/ranked.py",
        "    scores, labels = scores[::-1], labels[::-1]\n    last, true",
        "    last, true",
    ),
    Fault(
        "07",
        "a curve that does not start at (0, 0)",
        "core/ranking.py",
        "return fpr, tpr, np.append(np.inf, ranked.thresholds)",
        "return fpr[1:], tpr[1:], ranked.thresholds",
    ),
    Fault(
        "08",
        "an unweighted mean over bins",
        "core/bins.py",
        "ece=float(held @ gap) / total,",
        "ece=float(gap[held > 0].mean()),",
    ),
    Fault(
        "09",
        "confidence p instead of max(p, 1 − p)",
        "core/bins.py",
        "return np.where(predicted, p, 1.0 - p), ",
        "return p, ",
    ),
    Fault(
        "10",
        "[lo, hi) bins by floor",
        "core/bins.py",
        "return np.searchsorted(inner, confidence, side=side)",
        "return np.minimum((confidence * (inner.size + 1)).astype(np.int64), inner.size)",
    ),
    Fault(
        "11",
        "the intercept first",
        "core/logistic.py",
        "np.column_stack([X, np.ones(X.shape[0])])",
        "np.column_stack([np.ones(X.shape[0]), X])",
    ),
    Fault(
        "12",
        "returning β instead of T",
        "core/scaling.py",
        "return unit / _root(z, own, max_iter)",
        "return _root(z, own, max_iter) / unit",
    ),
    Fault(
        "13",
        "the temperature gradient without the label's logit",
        "core/scaling.py",
        "return float(np.mean(mean - own)), ",
        "return float(np.mean(mean)), ",
    ),
    Fault(
        "14",
        "scoring vectors that are not unit length",
        "head.py",
        "unit_vectors(np.ascontiguousarray(block))",
        "block",
    ),
    Fault(
        "14",
        "fitting on vectors that are not unit length",
        "solver/rows.py",
        "return cls(embeddings, 1.0 / norms, columns)",
        "return cls(embeddings, np.ones_like(norms), columns)",
        "tests/solver/test_sums.py",
    ),
    Fault(
        "14",
        "fitting few rows on vectors that are not unit length",
        "solver/optimum.py",
        "np.column_stack([unit_vectors(rows.embeddings), ",
        "np.column_stack([rows.embeddings, ",
        "tests/solver/test_folds.py",
    ),
    Fault(
        "15",
        "weights written at float32 precision",
        "files/heads.py",
        '"W": head.W.tolist(),',
        '"W": head.W.astype(np.float32).tolist(),',
        "tests/files/test_heads.py",
    ),
    Fault(
        "16",
        "precision and recall at 0.5 instead of at the threshold",
        "core/thresholds.py",
        "counted_outcomes(scores >= checks.decision_threshold(threshold), positive)",
        "counted_outcomes(scores >= 0.5, positive)",
    ),
    Fault(
        "17",
        "rows of a group in several folds of a category",
        "solver/categories.py",
        "                groups=None if groups is None else _codes_among(groups, known),\n",
        "                groups=None,\n",
        "tests/solver/test_categories.py",
    ),
    Fault(
        "17",
        "copies of a row in several folds of a softmax head, where there are groups",
        "solver/training.py",
        "groups = identity if groups is None else joined_groups(groups, identity)",
        "groups = identity if groups is None else groups",
        "tests/solver/test_softmax_training.py",
    ),
    Fault(
        "18",
        "a category judged by fits without a fold that have not arrived",
        "solver/categories.py",
        'converged(fold_fit, f"without fold {number}: ")',
        "pass",
        "tests/solver/test_categories.py",
    ),
    Fault(
        "18",
        "a softmax head judged by fits without a fold that have not arrived",
        "solver/softmax_training.py",
        'converged(fold_fit, f"without fold {number}: ")',
        "pass",
        "tests/solver/test_softmax_training.py",
    ),
    Fault(
        "19",
        "copies counted among rows that a category does not know",
        "solver/categories.py",
        "repeated_rows(identity[known])",
        "repeated_rows(identity)",
        "tests/solver/test_categories.py",
    ),
    Fault(
        "20",
        "the penalty of a category of many rows chosen by another rule than asked for",
        "solver/categories.py",
        "partial(trained_with_folds, one, penalties, n_folds, rule=rule, ",
        'partial(trained_with_folds, one, penalties, n_folds, rule="best", ',
        "tests/solver/test_categories.py",
    ),
    Fault(
        "20",
        "the penalty of a category of few rows chosen by another rule than asked for",
        "solver/categories.py",
        "train(**fitting, penalties=penalties, n_folds=n_folds, rule=rule, ",
        'train(**fitting, penalties=penalties, n_folds=n_folds, rule="best", ',
        "tests/solver/test_categories.py",
    ),
    Fault(
        "21",
        "penalties of a softmax head taken as feasible by the largest of them",
        "solver/softmax_training.py",
        "_feasible(source, min(penalties), n_classes)",
        "_feasible(source, max(penalties), n_classes)",
        "tests/solver/test_softmax_training.py",
    ),
)


def plant(fault: Fault, copy: Path) -> str:
    """Write the fault into the copy and return the text that was there."""
    path = copy / "src" / "headeval" / fault.file
    text = path.read_text(encoding="utf-8")
    if text.count(fault.old) != 1:
        sys.exit(f"pitfall {fault.number}: {fault.file} holds {text.count(fault.old)} times, not once: {fault.old}")
    path.write_text(text.replace(fault.old, fault.new), encoding="utf-8")
    return text


def run_tests(pitfalls: str, files: Iterable[str], copy: Path) -> int:
    """Run the tests of these names against the copy's own sources; return pytest's exit code."""
    command = [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", "-k", pitfalls, *files]
    environment = {**os.environ, "PYTHONPATH": str(copy / "src"), "PYTHONDONTWRITEBYTECODE": "1"}
    done = subprocess.run(command, cwd=copy, env=environment, capture_output=True, text=True, check=False)
    # 0 passed and 1 failed are answers; no test of this name, or tests that cannot be imported, are not.
    if done.returncode not in {0, 1}:
        sys.exit(f"{pitfalls}: the tests did not run\n{done.stdout}{done.stderr}")
    return done.returncode


def caught(fault: Fault, copy: Path) -> bool:
    """Say whether the tests, which pass on the sound source, fail on the planted fault."""
    sound = plant(fault, copy)
    try:
        return run_tests(f"pitfall_{fault.number}", [fault.tests], copy) == 1
    finally:
        (copy / "src" / "headeval" / fault.file).write_text(sound, encoding="utf-8")


def copied(copy: Path) -> Path:
    """Copy what the tests need of the checkout into a new folder."""
    for name in COPIED:
        source = CHECKOUT / name
        if source.is_dir():
            shutil.copytree(source, copy / name, ignore=shutil.ignore_patterns("__pycache__"))
        elif source.exists():
            copy.mkdir(exist_ok=True)
            shutil.copy(source, copy / name)
    return copy


def check_sources(copy: Path) -> None:
    """Stop unless tests in the copy import the copy, not an installed headeval."""
    program = "import headeval; print(headeval.__file__)"
    environment = {**os.environ, "PYTHONPATH": str(copy / "src")}
    done = subprocess.run(
        [sys.executable, "-c", program], cwd=copy, env=environment, capture_output=True, text=True, check=True
    )
    if not Path(done.stdout.strip()).resolve().is_relative_to(copy.resolve()):
        sys.exit(f"headeval is imported from {done.stdout.strip()}, not from the copy")


def main(numbers: list[str]) -> int:
    """Plant the faults of these numbers, or all, and print what became of each."""
    unknown = set(numbers) - {fault.number for fault in FAULTS}
    if unknown:
        sys.exit(f"no pitfall has the number {', '.join(sorted(unknown))}; they run from 01 to {FAULTS[-1].number}")
    chosen = [fault for fault in FAULTS if not numbers or fault.number in numbers]
    missed = 0
    with tempfile.TemporaryDirectory() as folder, ThreadPoolExecutor(AT_ONCE) as threads:
        copies: SimpleQueue[Path] = SimpleQueue()
        for number in range(AT_ONCE):
            copies.put(copied(Path(folder) / str(number)))
        copy = copies.get()
        check_sources(copy)
        if run_tests("pitfall_", sorted({fault.tests for fault in chosen}), copy) != 0:
            sys.exit("tests named after pitfalls fail without any fault too")
        copies.put(copy)

        def seen(fault: Fault) -> bool:
            mine = copies.get()
            try:
                return caught(fault, mine)
            finally:
                copies.put(mine)

        for fault, found in zip(chosen, threads.map(seen, chosen), strict=True):
            missed += not found
            print(f"{fault.number} {'caught' if found else 'NOT CAUGHT'}: {fault.mistake}", flush=True)
    return 1 if missed else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
