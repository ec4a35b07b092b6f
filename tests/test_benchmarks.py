"""The benchmarks measure what they say, and run; no timing is asserted."""

import importlib
import json
import subprocess
import sys
from pathlib import Path
from types import ModuleType
from typing import Any

import numpy as np
import pytest

from documents import ROOT

BENCHMARKS = ROOT / "benchmarks"
QUICK = ("startup", "fit", "folds_and_path", "job", "categories", "classes", "metrics", "memory")
# Two optima with gradients up to 1e-9, of a loss with curvature 1 at least.
SAME_OPTIMUM = 1e-8


@pytest.fixture
def module(monkeypatch: pytest.MonkeyPatch) -> Any:
    """Modules of benchmarks/, by name, as its scripts see them."""
    monkeypatch.syspath_prepend(str(BENCHMARKS))

    def load(name: str) -> ModuleType:
        return importlib.import_module(name)

    return load


def test_what_misses_a_goal_by_less_than_is_shown_still_misses_it(module: Any) -> None:
    table = module("table")
    goals = [table.Goal("faster", 6.0, 5.9999, at_least=True), table.Goal("sorts", 4.0, 4.0)]
    lines = table.goals_table(goals).splitlines()
    assert lines[2] == "| faster | at least 6 × | 6.00 × | **missed** |"
    assert lines[3] == "| sorts | at most 4 × | 4.00 × | yes |"


def test_a_bar_in_a_cell_does_not_end_it(module: Any) -> None:
    assert module("table").markdown_table(["a"], [["x|y"]]).splitlines()[-1] == r"| x\|y |"


@pytest.mark.parametrize(
    ("value", "text"), [(0.0, "0.00"), (0.999, "0.999"), (9.996, "10.0"), (100, "100"), (1e6, "1,000,000")]
)
def test_numbers_have_three_digits(module: Any, value: float, text: str) -> None:
    assert module("table").number(value) == text


def test_where_it_ran_names_the_commit_and_every_competitor(module: Any) -> None:
    text = module("table").environment()
    for name in ("commit ", "cores", "load", "numpy 2", "scikit-learn 1", "glum", "pandas"):
        assert name in text


def test_results_go_between_the_marks_of_the_page_and_nowhere_else(module: Any) -> None:
    run_all = module("run_all")
    page = (BENCHMARKS / "README.md").read_text(encoding="utf-8")
    once = run_all.with_results(page, "first")
    again = run_all.with_results(once, "second")
    assert "first" not in again
    assert "second" in again
    before, after = page.split(run_all.BEGIN)[0], page.split(run_all.END)[1]
    assert again.startswith(before)
    assert again.endswith(after)
    with pytest.raises(ValueError, match="there is no place"):
        run_all.with_results("a page without marks", "x")


def test_every_benchmark_is_run_and_told_of(module: Any) -> None:
    scripts = module("run_all").SCRIPTS
    assert set(scripts) == set(QUICK)
    page = (BENCHMARKS / "README.md").read_text(encoding="utf-8")
    for name in scripts:
        assert f"| `{name}.py` |" in page
        assert (BENCHMARKS / f"{name}.py").exists()


def test_embeddings_have_unit_length_and_a_fifth_of_them_is_positive(module: Any) -> None:
    rows, labels = next(module("embeddings").Embeddings(50, decay=1.0).blocks(8192))
    assert rows.dtype == np.float32
    assert np.linalg.norm(rows.astype(float), axis=1) == pytest.approx(1.0, abs=1e-6)
    # Five standard errors of a share of 8,192 rows, and as many of the 8,192 that the intercept was chosen on.
    assert labels.mean() == pytest.approx(0.2, abs=0.03)


def test_the_spectrum_falls_as_it_is_asked_to(module: Any) -> None:
    for decay in (0.0, 1.0):
        rows, _ = next(module("embeddings").Embeddings(50, decay=decay).blocks(8192))
        spread = rows[:, 1:].std(axis=0)
        slope = np.polyfit(np.log(np.arange(2, 51)), np.log(spread), 1)[0]
        assert slope == pytest.approx(-decay, abs=0.05)


def test_rows_do_not_depend_on_how_many_there_are(module: Any) -> None:
    source = module("embeddings").Embeddings(5)
    few = [np.concatenate(part) for part in zip(*source.blocks(8192), strict=True)]
    many = [np.concatenate(part) for part in zip(*source.blocks(10_000), strict=True)]
    np.testing.assert_array_equal(few[0], many[0][:8192])
    np.testing.assert_array_equal(few[1], many[1][:8192])
    later, _ = next(source.blocks(1808, skip=1))
    np.testing.assert_array_equal(later, many[0][8192:])


def test_files_and_arrays_hold_the_same_rows(module: Any, tmp_path: Path) -> None:
    embeddings, gradient = module("embeddings"), module("gradient")
    source = embeddings.Embeddings(5)
    embeddings.write_arrays(tmp_path, source, 9000)
    embeddings.write_parquet(tmp_path / "rows.parquet", source, 9000)
    rows, labels = embeddings.read_arrays(tmp_path)
    blocks = list(gradient.parquet_blocks(tmp_path / "rows.parquet"))
    np.testing.assert_array_equal(np.concatenate([block for block, _ in blocks]), rows)
    np.testing.assert_array_equal(np.concatenate([y for _, y in blocks]), labels)


def test_the_gradient_is_the_slope_of_the_loss(module: Any) -> None:
    rng = np.random.default_rng(0)
    rows, labels = rng.standard_normal((40, 3)).astype(np.float32), (np.arange(40) % 3 == 0).astype(np.uint8)
    unit = rows.astype(float) / np.linalg.norm(rows.astype(float), axis=1, keepdims=True)
    w, l2, step = np.array([0.5, -1.0, 2.0, 0.3]), 0.7, 1e-6

    def loss(w: np.ndarray) -> float:
        z = unit @ w[:-1] + w[-1]
        return float((np.logaddexp(0, z) - labels * z).sum() + l2 / 2 * (w[:-1] @ w[:-1]))

    slopes = [(loss(w + e) - loss(w - e)) / (2 * step) for e in step * np.eye(4)]
    found = module("gradient").gradient_norm(rows, labels, w, l2=l2)
    assert found == pytest.approx(np.abs(slopes).max(), rel=1e-6)


def test_the_two_forms_of_a_head_are_read_as_the_same_weights(module: Any) -> None:
    head_weights = module("gradient").head_weights
    ours = {"W": [[1.0, 0.0], [3.0, -2.0]], "b": [0.5, 1.0]}
    script = {"weights": [[2.0, -2.0]], "bias": [0.5]}
    np.testing.assert_array_equal(head_weights(ours), [2.0, -2.0, 0.5])
    np.testing.assert_array_equal(head_weights(script), [2.0, -2.0, 0.5])


@pytest.mark.parametrize("name", ["newton-cholesky", "irls", "glum"])
def test_all_that_go_to_the_end_minimise_the_same_loss(module: Any, name: str) -> None:
    if name == "glum":
        pytest.importorskip("glum")
    solvers = module("solvers")
    rows, labels = next(module("embeddings").Embeddings(30).blocks(500))
    task = solvers.Task(rows, labels, 2.0)
    found, ours = solvers.SOLVERS[name](task)(), solvers.SOLVERS["headeval"](task)()
    np.testing.assert_allclose(found.w, ours.w, atol=SAME_OPTIMUM)
    for one in (found, ours):
        assert module("gradient").gradient_norm(rows, labels, one.w, l2=2.0) <= 1e-9


def test_a_process_that_ends_early_is_told_of_by_name(module: Any, tmp_path: Path) -> None:
    race = module("race")
    with pytest.raises(SystemExit, match="the slow one: ended with code"):
        race.Contestant("the slow one", ["gradient.py", str(tmp_path / "absent"), str(tmp_path / "absent")])


def test_commands_are_timed_together_and_a_failure_shows_what_was_printed(module: Any, tmp_path: Path) -> None:
    race = module("race")
    result = race.Result("two")
    race.timed_commands(result, [[sys.executable, "-c", "pass"]] * 2, cwd=tmp_path)
    assert len(result.seconds) == 1
    assert result.peak > 1_000_000
    with pytest.raises(SystemExit, match="exit code 3\nso it goes"):
        race.timed_commands(
            result, [[sys.executable, "-c", "import sys; print('so it goes'); sys.exit(3)"]], cwd=tmp_path
        )


def test_competitors_are_given_nobodys_settings_of_threads(module: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("OPENBLAS_NUM_THREADS", "1")
    monkeypatch.setenv("OMP_NUM_THREADS", "1")
    assert not [name for name in module("race").environ() if name.endswith("_NUM_THREADS")]


def test_a_fit_is_held_against_the_right_times(module: Any) -> None:
    fit = module("fit")

    def reached(shape: str, **seconds: float) -> dict[str, bool]:
        names = {"newton": fit.NEWTON, "lbfgs": fit.LBFGS, "one": fit.LBFGS + fit.ONE, "product": fit.PRODUCT}
        results = {names[key]: module("race").Result(names[key], [99.0, value]) for key, value in seconds.items()}
        results[fit.HEADEVAL] = module("race").Result(fit.HEADEVAL, [2.0, 1.0, 3.0], facts={"gradient": 9e-10})
        return {goal.what.partition(": ")[2]: goal.reached for goal in fit.goals(shape, 0.5, results)}

    gradient, one = {"‖g‖∞ in 10⁻⁹": True}, "time of default lbfgs, 1 thread"
    assert reached("50000x768", newton=6.1, lbfgs=1.1, one=0.9, product=0.24) == gradient | {
        "faster than newton-cholesky": True,
        "time of default lbfgs": True,
        one: False,
        "products XᵀX": False,
    }
    assert reached("20000x3072", newton=5.9, one=0.6) == gradient | {"faster than newton-cholesky": False, one: True}


def test_folds_and_penalties_are_counted_in_fits(module: Any) -> None:
    folds = module("folds_and_path")
    times = {folds.FIT: 1.0, folds.FOLDS: 2.0, folds.AUTO: 5.0}
    results = {name: module("race").Result(name, [seconds]) for name, seconds in times.items()}
    found = folds.goals("here", results)
    assert [goal.found for goal in found] == [2.0, 5.0, 2.5]
    assert [goal.reached for goal in found] == [True, False, True]


def test_penalties_tried_are_those_of_auto(module: Any) -> None:
    from headeval.solver.penalty_path import AUTO

    assert module("trainings").PENALTIES == AUTO


@pytest.mark.parametrize(("text", "nbytes"), [("8GB", 8 * 10**9), ("1.5mb", 1_500_000), ("2kb", 2000)])
def test_amounts_are_read_as_headeval_reads_them(module: Any, text: str, nbytes: int) -> None:
    from headeval.cli.fit_options import memory_bytes

    assert module("memory").amount(text) == nbytes == memory_bytes(text)


@pytest.mark.slow
@pytest.mark.parametrize("name", QUICK)
def test_each_benchmark_runs_and_prints_its_goals(name: str) -> None:
    for package in ("glum", "pandas", "threadpoolctl"):
        pytest.importorskip(package)
    command = [sys.executable, str(BENCHMARKS / f"{name}.py"), "--quick"]
    done = subprocess.run(command, check=True, capture_output=True, text=True)
    assert done.stdout.startswith("## ")
    table = done.stdout.partition("### Goals")[2].strip().splitlines()
    assert table[0] == "| goal | to reach | reached |  |"
    assert len(table) > 2


@pytest.mark.slow
def test_the_script_that_people_write_fits_the_head_that_headeval_fits(module: Any, tmp_path: Path) -> None:
    pytest.importorskip("pandas")
    data, head = tmp_path / "rows.parquet", tmp_path / "head.json"
    embeddings, gradient = module("embeddings"), module("gradient")
    embeddings.write_parquet(data, embeddings.Embeddings(20), 600)
    command = [str(BENCHMARKS / "sklearn_job.py"), str(data), str(head), "--test", str(data)]
    done = subprocess.run(
        [sys.executable, *command, "--solver", "newton-cholesky"], check=True, capture_output=True, text=True
    )
    assert "ROC AUC 0." in done.stdout
    w = gradient.head_weights(json.loads(head.read_text()))
    assert gradient.gradient_norms(gradient.parquet_blocks(data), w[None], l2=1.0)[0] <= 1e-9
