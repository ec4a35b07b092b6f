"""`headeval fit --memory`: rows that do not fit are read anew in every pass, and end in the same head."""

import json
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from sklearn.linear_model import LogisticRegression

from headeval.cli import fit_options, training_rows
from headeval.errors import UsageError
from headeval.solver.stream import StreamSource

Headeval = Callable[..., Any]
SAMPLE = Path(__file__).parents[2] / "sample_data" / "moderation_train.parquet"
# Both ways end where ‖g‖∞ ≤ 1e-9, and with l2 = 1 the weights are no further from the optimum than that, times √d.
HEADS_AGREE = 1e-8
MOST_PASSES = 15
OVER_BUDGET = 400_000_000


@pytest.fixture
def large(monkeypatch: pytest.MonkeyPatch) -> None:
    """Let the embeddings of a few rows count for a hundred thousand times of what they take: 1MB is too little."""
    monkeypatch.setattr(training_rows, "_HELD", 1e5)


def head_of(path: Path) -> dict[str, Any]:
    head: dict[str, Any] = json.loads(path.read_text(encoding="utf-8"))
    return head


def weights_of(head: dict[str, Any]) -> np.ndarray:
    return np.array([*head["W"][1], head["b"][1]])


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("2GB", 2 * 10**9),
        ("2G", 2 * 10**9),
        ("500MB", 5 * 10**8),
        ("1.5 gib", 3 * 2**29),
        ("64 KiB", 2**16),
        ("10000", 10_000),
        ("3k", 3000),
        ("1TB", 10**12),
        (" 7B ", 7),
    ],
)
def test_amounts_of_memory(text: str, expected: int) -> None:
    assert fit_options.memory_bytes(text) == expected


@pytest.mark.parametrize(
    "text", ["", "GB", "0", "0MB", "-1GB", "2XB", "1e9", "two", "2 GB s", "1,5GB", "inf", "nan", "٢GB"]
)
def test_other_amounts_are_refused(text: str) -> None:
    with pytest.raises(UsageError, match="--memory takes an amount such as 2GB"):
        fit_options.memory_bytes(text)


def test_the_command_refuses_them_before_it_reads(headeval: Headeval) -> None:
    outcome = headeval("fit", "nowhere.parquet", "--memory", "plenty")
    assert outcome.code == 2
    assert "--memory" in outcome.err


@pytest.mark.parametrize("l2", ["1", "0.1,1,10"])
def test_a_small_budget_gives_the_head_and_the_metrics_of_memory(headeval: Headeval, tmp_path: Path, l2: str) -> None:
    held = headeval("fit", SAMPLE, "--l2", l2, "--memory", "8GB", "-o", "held.json")
    streamed = headeval("fit", SAMPLE, "--l2", l2, "--memory", "1MB", "-o", "streamed.json")
    assert (held.code, streamed.code) == (0, 0), streamed.err
    a, b = head_of(tmp_path / "held.json"), head_of(tmp_path / "streamed.json")
    np.testing.assert_allclose(weights_of(a), weights_of(b), atol=HEADS_AGREE)
    assert a["metrics"]["fit"]["l2"] == b["metrics"]["fit"]["l2"]
    metrics = [head["metrics"]["evaluation"]["metrics"] for head in (a, b)]
    assert metrics[0]["auc"] == pytest.approx(metrics[1]["auc"], abs=1e-9)
    assert metrics[0]["log_loss"] == pytest.approx(metrics[1]["log_loss"], abs=1e-7)
    assert "read anew in every pass" in " ".join(streamed.out.split())
    assert "read anew" not in held.out


def test_the_head_tells_its_solver_and_passes(headeval: Headeval, tmp_path: Path) -> None:
    assert headeval("fit", SAMPLE, "--memory", "1MB", "-q").code == 0
    story = head_of(tmp_path / "linear-head.json")["metrics"]["fit"]["solver"]
    assert story["method"] == "preconditioned L-BFGS"
    assert story["converged"] is True
    assert story["gradient_norm"] <= 1e-9
    assert 3 <= story["passes"] <= MOST_PASSES


def test_the_number_of_passes_shown_counts_the_first_reading(headeval: Headeval, tmp_path: Path) -> None:
    outcome = headeval("fit", SAMPLE, "--memory", "1MB")
    passes = head_of(tmp_path / "linear-head.json")["metrics"]["fit"]["solver"]["passes"]
    assert f"{passes} passes over them" in " ".join(outcome.out.split())


@pytest.mark.usefixtures("large")
@pytest.mark.parametrize("n", [120, 400])
def test_weights_groups_and_folds_work_without_holding_the_rows(
    headeval: Headeval, make_table: Callable[..., Path], tmp_path: Path, n: int
) -> None:
    data = make_table(n=n, w=pa.array(np.linspace(0.1, 2, n)), talk=pa.array([f"c{i // 3}" for i in range(n)]))
    for memory in ("8GB", "1MB"):
        outcome = headeval(
            "fit", data, "--weight", "w", "--group", "talk", "--folds", 3, "--memory", memory, "-o", f"{memory}.json"
        )
        assert outcome.code == 0, outcome.err
    a, b = head_of(tmp_path / "8GB.json"), head_of(tmp_path / "1MB.json")
    np.testing.assert_allclose(weights_of(a), weights_of(b), atol=HEADS_AGREE)
    aucs = [head["metrics"]["evaluation"]["metrics"]["auc"] for head in (a, b)]
    assert aucs[0] == pytest.approx(aucs[1], abs=1e-9)


@pytest.mark.usefixtures("large")
def test_eval_on_the_rows_of_the_fit_is_found_without_holding_them(
    headeval: Headeval, make_table: Callable[..., Path]
) -> None:
    data = make_table()
    outcome = headeval("fit", data, "--eval", data, "--memory", "1MB")
    assert outcome.code == 0, outcome.err
    assert "IN-SAMPLE" in outcome.out


@pytest.mark.usefixtures("large")
def test_rows_in_csv_and_one_column_a_dimension_stream_as_well(
    headeval: Headeval, make_table: Callable[..., Path], tmp_path: Path
) -> None:
    table = pq.read_table(make_table(n=200))
    e = np.array(table["embedding"].to_pylist())
    wide = pa.table({f"embedding_{i}": pa.array(e[:, i]) for i in range(4)} | {"label": table["label"]})
    pq.write_table(wide, tmp_path / "wide.parquet")
    lines = [f'"{json.dumps(row)}",{label}' for row, label in zip(e.tolist(), table["label"].to_pylist(), strict=True)]
    (tmp_path / "rows.csv").write_text("\n".join(["embedding,label", *lines]) + "\n", encoding="utf-8")
    found = []
    for name in ("train.parquet", "wide.parquet", "rows.csv"):
        outcome = headeval("fit", name, "--memory", "1MB", "-o", f"{name}.json")
        assert outcome.code == 0, outcome.err
        found.append(weights_of(head_of(tmp_path / f"{name}.json")))
    np.testing.assert_allclose(found[1], found[0], atol=HEADS_AGREE)
    np.testing.assert_allclose(found[2], found[0], atol=HEADS_AGREE)


@pytest.mark.usefixtures("large")
def test_unlabelled_rows_are_left_out_of_every_pass(
    headeval: Headeval, make_table: Callable[..., Path], tmp_path: Path
) -> None:
    data = make_table(n=300)
    table = pq.read_table(data)
    labels = table["label"].to_pylist()
    labels[::7] = [None] * len(labels[::7])
    gaps = table.set_column(table.schema.get_field_index("label"), "label", pa.array(labels))
    pq.write_table(gaps, tmp_path / "gaps.parquet")
    for memory in ("8GB", "1MB"):
        outcome = headeval("fit", "gaps.parquet", "--drop-unlabelled", "--memory", memory, "-o", f"{memory}.json")
        assert outcome.code == 0, outcome.err
    np.testing.assert_allclose(
        weights_of(head_of(tmp_path / "8GB.json")), weights_of(head_of(tmp_path / "1MB.json")), atol=HEADS_AGREE
    )


@pytest.mark.usefixtures("large")
def test_where_nothing_is_said_the_free_memory_decides(
    headeval: Headeval, make_table: Callable[..., Path], monkeypatch: pytest.MonkeyPatch
) -> None:
    data = make_table()
    assert "read anew" not in headeval("fit", data).out
    monkeypatch.setattr(training_rows, "available_memory", lambda: 10**6)
    assert "read anew in every pass" in " ".join(headeval("fit", data, "--force").out.split())


@pytest.mark.usefixtures("large")
def test_a_budget_below_what_is_always_held_says_how_much_that_is(
    headeval: Headeval, make_table: Callable[..., Path], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(training_rows, "_ROW_BYTES", 100_000)
    outcome = headeval("fit", make_table(), "--memory", "1MB")
    assert outcome.code == 2
    assert "120 rows alone take 12 MB" in " ".join(outcome.err.split())
    assert not (tmp_path / "linear-head.json").exists()


@pytest.mark.usefixtures("large")
@pytest.mark.parametrize("change", ["fewer", "more", "gone", "damaged", "width", "others"])
def test_a_file_that_changes_between_passes_is_an_error_and_no_head(
    headeval: Headeval,
    make_table: Callable[..., Path],
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    change: str,
) -> None:
    data = make_table(n=300)
    changed = make_table("changed.parquet", n={"fewer": 200, "more": 400}.get(change, 300), seed=5)
    if change == "width":
        flat = pa.FixedSizeListArray.from_arrays(pa.array(np.ones(1500, dtype=np.float32)), 5)
        changed = make_table("changed.parquet", n=300, embedding=flat)
    original = StreamSource.total

    def total(self: StreamSource, what: Any) -> Any:
        sums = original(self, what)
        if self.passes == 3:
            if change == "gone":
                data.unlink()
            elif change == "damaged":
                data.write_bytes(data.read_bytes()[:2000])
            else:
                changed.replace(data)
        return sums

    monkeypatch.setattr(StreamSource, "total", total)
    outcome = headeval("fit", data, "--memory", "1MB")
    assert outcome.code == 3, outcome.out
    assert "train.parquet" in outcome.err
    assert "Traceback" not in outcome.err
    assert not (tmp_path / "linear-head.json").exists()


def write_large(path: Path, n: int, d: int, *, wide: bool = False, block: int = 10_000) -> None:
    """Write noisy, linearly related embeddings; a few MB of them in memory at a time."""
    rng = np.random.default_rng(0)
    truth = rng.normal(size=d) * 6
    writer = None
    for first in range(0, n, block):
        rows = min(block, n - first)
        X = (rng.normal(size=(rows, d)) * np.exp(-np.arange(d) / d)).astype(np.float32)
        z = (X / np.linalg.norm(X, axis=1, keepdims=True)) @ truth
        label = pa.array((z + rng.logistic(size=rows) > 0.5).astype(np.int64))
        if wide:
            table = pa.table({f"embedding_{i}": pa.array(X[:, i]) for i in range(d)} | {"label": label})
        else:
            table = pa.table({"embedding": pa.FixedSizeListArray.from_arrays(pa.array(X.ravel()), d), "label": label})
        writer = writer or pq.ParquetWriter(path, table.schema, compression="NONE", use_dictionary=False)
        writer.write_table(table)
    if writer:
        writer.close()


def peak_of_fit(folder: Path, data: Path, *arguments: str) -> int:
    """Run the command in a process of its own; return its largest resident memory in bytes."""
    program = (
        "import resource, subprocess, sys\n"
        "code = subprocess.run(sys.argv[1:], check=False).returncode\n"
        "print(resource.getrusage(resource.RUSAGE_CHILDREN).ru_maxrss, file=open('peak', 'w'))\n"
        "sys.exit(code)\n"
    )
    command = [sys.executable, "-m", "headeval", "fit", str(data), *arguments]
    outcome = subprocess.run(
        [sys.executable, "-c", program, *command], cwd=folder, capture_output=True, text=True, check=False
    )
    assert outcome.returncode == 0, outcome.stderr
    unit = 1 if sys.platform == "darwin" else 1024
    return int((folder / "peak").read_text(encoding="ascii")) * unit


@pytest.mark.slow
@pytest.mark.parametrize(
    ("n", "d", "wide", "memory"),
    [(60_000, 768, False, 70), (300_000, 64, False, 80), (60_000, 256, True, 50)],
    ids=["180 MB of 768 dimensions", "64 dimensions", "one column a dimension"],
)
def test_files_larger_than_the_budget_are_fitted_within_it(
    tmp_path: Path, n: int, d: int, wide: bool, memory: int
) -> None:
    data = tmp_path / "large.parquet"
    write_large(data, n, d, wide=wide)
    peak = peak_of_fit(tmp_path, data, "--memory", f"{memory}MB", "--quiet")
    assert peak <= memory * 10**6 + OVER_BUDGET
    head = head_of(tmp_path / "linear-head.json")
    assert head["metrics"]["fit"]["solver"]["passes"] <= MOST_PASSES
    table = pq.read_table(data)
    y = table["label"].to_numpy()
    if wide:
        X = np.column_stack([table[f"embedding_{i}"].to_numpy() for i in range(d)])
    else:
        X = table["embedding"].combine_chunks().flatten().to_numpy().reshape(n, d)
    units = X.astype(np.float64)
    units /= np.linalg.norm(units, axis=1, keepdims=True)
    model = LogisticRegression(C=1.0, tol=1e-14, solver="newton-cholesky", max_iter=100).fit(units, y)
    np.testing.assert_allclose(weights_of(head), np.append(model.coef_[0], model.intercept_), atol=HEADS_AGREE)
