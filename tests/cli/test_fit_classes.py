"""`headeval fit` on more than two classes writes scikit-learn's softmax regression, judged on rows it has not seen."""

import json
import math
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from sklearn import metrics as sk
from sklearn.linear_model import LogisticRegression

from documents import ROOT
from headeval.cli import training_rows
from headeval.files.fingerprint import row_digests
from headeval.solver.folds import stratified_folds

Headeval = Callable[..., Any]
SAMPLE = ROOT / "sample_data"
CLASSES = ("walk", "run", "fly", "crawl")  # the last one is not the last of their texts
SAME_PROBABILITY = 1e-6


def write_table(path: Path, n: int, seed: int, *, without: str = "", **columns: Any) -> Path:
    rng = np.random.default_rng(seed)
    e = rng.normal(size=(n, 5)).astype(np.float32)
    unit = e / np.linalg.norm(e, axis=1, keepdims=True)
    weights = np.random.default_rng(0).normal(size=(len(CLASSES), 5)) * 3
    y = np.argmax(unit @ weights.T + [0.5, 0, 0, -0.5] + rng.gumbel(size=(n, len(CLASSES))), axis=1)
    flat = pa.FixedSizeListArray.from_arrays(pa.array(e.ravel()), 5)
    table = pa.table({"id": pa.array(range(n)), "embedding": flat, "label": pa.array([CLASSES[c] for c in y])})
    for name, values in columns.items():
        table = table.append_column(name, values)
    if without:
        table = table.filter(pa.array([CLASSES[c] != without for c in y]))
    pq.write_table(table.replace_schema_metadata({"embedding_model": "m"}), path)
    return path


@pytest.fixture
def data(tmp_path: Path) -> Path:
    return write_table(tmp_path / "train.parquet", 300, 1)


def units_and_labels(path: Path) -> tuple[np.ndarray, np.ndarray]:
    table = pq.read_table(path)
    flat = table["embedding"].combine_chunks().flatten().to_numpy(zero_copy_only=False)
    e = flat.astype(np.float64).reshape(table.num_rows, -1)
    return e / np.linalg.norm(e, axis=1, keepdims=True), np.array(table["label"].to_pylist())


def evaluated(head: dict[str, Any], embedding: list[float]) -> list[float]:
    """What a gateway makes of the file: plain arithmetic, row by row, nothing of this project."""
    length = math.sqrt(math.fsum(x * x for x in embedding))
    u = [x / length for x in embedding]
    z = [math.fsum(w * x for w, x in zip(row, u, strict=True)) + b for row, b in zip(head["W"], head["b"], strict=True)]
    e = [math.exp(value - max(z)) for value in z]
    return [value / math.fsum(e) for value in e]


def written(path: Path) -> dict[str, Any]:
    content: dict[str, Any] = json.loads(path.read_text(encoding="utf-8"))
    return content


def reference(units: np.ndarray, labels: np.ndarray, l2: float = 1.0, **how: Any) -> Any:
    return LogisticRegression(C=1 / l2, tol=1e-12, max_iter=10_000).fit(units, labels, **how)


def in_order(model: Any, probs: np.ndarray, classes: list[str]) -> np.ndarray:
    return probs[:, [model.classes_.tolist().index(name) for name in classes]]


@pytest.mark.parametrize("classes", [CLASSES, ("crawl", "fly", "walk", "run")], ids=",".join)
def test_the_file_gives_scikit_learns_probabilities_in_the_order_asked(
    headeval: Headeval, data: Path, tmp_path: Path, classes: tuple[str, ...]
) -> None:
    outcome = headeval("fit", data, "--l2", 0.5, "--classes", ",".join(classes), "--threshold", 0.4)
    assert outcome.code == 0, outcome.err
    head = written(tmp_path / "linear-head.json")
    assert head["classes"] == list(classes)
    assert (head["threshold"], head["embedding_model"], head["dim"]) == (0.4, "m", 5)
    units, labels = units_and_labels(data)
    model = reference(units, labels, 0.5)
    expected = in_order(model, model.predict_proba(units), head["classes"])
    raw = pq.read_table(data)["embedding"].to_pylist()
    found = np.array([evaluated(head, row) for row in raw])
    np.testing.assert_allclose(found, expected, rtol=0, atol=SAME_PROBABILITY)


def test_three_classes_of_real_half_precision_embeddings(headeval: Headeval, tmp_path: Path) -> None:
    """Rows that the fit has not seen, scored from the file alone, are as scikit-learn scores them."""
    outcome = headeval("fit", SAMPLE / "tweets_train.parquet", "--classes", "neither,offensive,hate", "--folds", 0)
    assert outcome.code == 0, outcome.err
    head = written(tmp_path / "linear-head.json")
    exact = LogisticRegression(solver="newton-cg", tol=1e-8)  # lbfgs gives up with probabilities off by 1e-6
    model = exact.fit(*units_and_labels(SAMPLE / "tweets_train.parquet"))
    test = pq.read_table(SAMPLE / "tweets_test.parquet").slice(0, 300)
    raw = np.array(test["embedding"].to_pylist(), dtype=np.float64)
    units = raw / np.linalg.norm(raw, axis=1, keepdims=True)
    expected = in_order(model, model.predict_proba(units), head["classes"])
    found = np.array([evaluated(head, row) for row in raw.tolist()])
    np.testing.assert_allclose(found, expected, rtol=0, atol=SAME_PROBABILITY)
    assert head["metrics"]["fit"]["rows_of_each_class"] == {"neither": 271, "offensive": 1242, "hate": 87}


def test_weights_are_those_of_the_symmetric_parametrisation_which_is_recorded(
    headeval: Headeval, data: Path, tmp_path: Path
) -> None:
    outcome = headeval("fit", data, "--positive", "crawl")
    head = written(tmp_path / "linear-head.json")
    assert head["classes"] == ["fly", "run", "walk", "crawl"]  # the others in the order of their texts
    np.testing.assert_allclose(np.sum(head["W"], axis=0), 0, atol=1e-9)
    assert sum(head["b"]) == pytest.approx(0, abs=1e-9)
    assert head["metrics"]["fit"]["parametrisation"].startswith("symmetric")
    assert "symmetric" in outcome.out
    units, labels = units_and_labels(data)
    model = reference(units, labels)
    coefficients = in_order(model, model.coef_.T, head["classes"]).T
    np.testing.assert_allclose(head["W"], coefficients, rtol=0, atol=1e-6)
    fit = head["metrics"]["fit"]
    assert fit["rows_of_each_class"] == {name: int(np.sum(labels == name)) for name in head["classes"]}
    assert (fit["n"], fit["positives"]) == (300, int(np.sum(labels == "crawl")))
    assert fit["solver"]["converged"]
    assert fit["solver"]["gradient_norm"] <= 1e-9


def test_the_metrics_of_all_classes_and_of_the_flagged_one_are_out_of_fold(
    headeval: Headeval, data: Path, tmp_path: Path
) -> None:
    assert headeval("fit", data, "--classes", ",".join(CLASSES)).code == 0
    evaluation = written(tmp_path / "linear-head.json")["metrics"]["evaluation"]
    units, labels = units_and_labels(data)
    y = np.array([CLASSES.index(name) for name in labels])
    embeddings = np.array(pq.read_table(data)["embedding"].to_pylist(), dtype=np.float32)
    identity = np.unique(row_digests(embeddings)[:, 0], return_inverse=True)[1]
    folds = stratified_folds(y, 5, rng=np.random.default_rng(0), groups=identity, n_classes=4)
    p = np.empty((len(y), len(CLASSES)))
    for fold in range(5):
        p[folds == fold] = reference(units[folds != fold], y[folds != fold]).predict_proba(units[folds == fold])
    every = evaluation["all_classes"]
    assert every["classes"] == list(CLASSES)
    assert every["confusion"]["counts"] == sk.confusion_matrix(y, p.argmax(axis=1)).tolist()
    assert every["metrics"]["multiclass_log_loss"] == pytest.approx(sk.log_loss(y, p), abs=1e-7)
    assert every["metrics"]["hand_till_auc"] == pytest.approx(sk.roc_auc_score(y, p, multi_class="ovo"), abs=1e-9)
    assert evaluation["classes"] == ["not crawl", "crawl"]
    assert evaluation["metrics"]["auc"] == pytest.approx(sk.roc_auc_score(y == 3, p[:, 3]), abs=1e-9)
    assert evaluation["metrics"]["log_loss"] == pytest.approx(sk.log_loss(y == 3, p[:, 3]), abs=1e-7)
    in_sample = sk.log_loss(y, reference(units, y).predict_proba(units))
    assert in_sample < every["metrics"]["multiclass_log_loss"] - 0.01


def test_eval_judges_all_classes_on_the_other_file_which_may_lack_one(
    headeval: Headeval, data: Path, tmp_path: Path
) -> None:
    other = write_table(tmp_path / "other.parquet", 200, 9, without="run")
    outcome = headeval("fit", data, "--positive", "crawl", "--eval", other)
    assert outcome.code == 0, outcome.err
    head = written(tmp_path / "linear-head.json")
    units, labels = units_and_labels(other)
    z = units @ np.array(head["W"]).T + head["b"]
    taken = np.array(head["classes"])[z.argmax(axis=1)]
    every = head["metrics"]["evaluation"]["all_classes"]
    assert every["confusion"]["counts"] == sk.confusion_matrix(labels, taken, labels=head["classes"]).tolist()
    assert every["metrics"]["macro_recall"] is None
    assert "run" in every["undefined"]["macro_recall"]


def test_the_same_head_comes_from_rows_that_do_not_stay_in_memory(
    headeval: Headeval, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    data = write_table(tmp_path / "train.parquet", 2000, 2, group=pa.array([f"g{row // 2}" for row in range(2000)]))
    asked = ("fit", data, "--classes", ",".join(CLASSES), "--group", "group")
    assert headeval(*asked, "-o", "held.json").code == 0
    monkeypatch.setattr(training_rows, "_HELD", 1e5)  # these few count for very many
    outcome = headeval(*asked, "-o", "streamed.json", "--memory", "1MB")
    assert outcome.code == 0, outcome.err
    assert "read anew in every pass" in " ".join(outcome.out.split())
    held, streamed = written(tmp_path / "held.json"), written(tmp_path / "streamed.json")
    np.testing.assert_allclose(streamed["W"], held["W"], rtol=0, atol=1e-8)
    both = [head["metrics"]["evaluation"]["all_classes"] for head in (held, streamed)]
    assert both[0]["confusion"] == both[1]["confusion"]
    assert both[0]["resampling"]["grouped"] is True


def test_weights_change_the_fit(headeval: Headeval, tmp_path: Path) -> None:
    weights = np.where(np.arange(300) < 100, 4.0, 1.0)
    data = write_table(tmp_path / "train.parquet", 300, 1, importance=pa.array(weights))
    outcome = headeval("fit", data, "--classes", ",".join(CLASSES), "--weight", "importance", "--folds", 0)
    assert "the metrics count every row once" in " ".join(outcome.out.split()), outcome.err
    head = written(tmp_path / "linear-head.json")
    units, labels = units_and_labels(data)
    model = reference(units, labels, sample_weight=weights)
    np.testing.assert_allclose(head["W"], in_order(model, model.coef_.T, list(CLASSES)).T, rtol=0, atol=1e-6)


def test_of_several_penalties_the_best_out_of_fold_is_taken_and_all_are_recorded(
    headeval: Headeval, data: Path, tmp_path: Path
) -> None:
    outcome = headeval("fit", data, "--classes", ",".join(CLASSES), "--l2", "0.01,1,500")
    assert outcome.code == 0, outcome.err
    fit = written(tmp_path / "linear-head.json")["metrics"]["fit"]
    assert len(fit["l2_path"]["points"]) == 3
    units, labels = units_and_labels(data)
    y = np.array([CLASSES.index(name) for name in labels])
    embeddings = np.array(pq.read_table(data)["embedding"].to_pylist(), dtype=np.float32)
    identity = np.unique(row_digests(embeddings)[:, 0], return_inverse=True)[1]
    folds = stratified_folds(y, 5, rng=np.random.default_rng(0), groups=identity, n_classes=4)
    losses = []
    for l2 in (0.01, 1.0, 500.0):
        p = np.empty((len(y), 4))
        for fold in range(5):
            model = reference(units[folds != fold], y[folds != fold], l2)
            p[folds == fold] = model.predict_proba(units[folds == fold])
        losses.append(sk.log_loss(y, p))
    assert fit["l2"] == (0.01, 1.0, 500.0)[int(np.argmin(losses))]


def test_two_classes_named_in_order_are_an_ordinary_head(headeval: Headeval, tmp_path: Path) -> None:
    data = write_table(tmp_path / "train.parquet", 400, 3)
    table = pq.read_table(data)
    kept = table.filter(pa.array([name in {"walk", "run"} for name in table["label"].to_pylist()]))
    pq.write_table(kept, data)
    assert headeval("fit", data, "--classes", "walk,run", "-o", "a.json").code == 0
    assert headeval("fit", data, "--positive", "run", "-o", "b.json").code == 0
    assert (tmp_path / "a.json").read_bytes() == (tmp_path / "b.json").read_bytes()
    assert headeval("fit", data, "--classes", "run,walk", "-o", "c.json").code == 0
    first, other = written(tmp_path / "a.json"), written(tmp_path / "c.json")
    assert other["classes"] == ["run", "walk"]
    assert other["W"][0] == [0.0] * 5
    np.testing.assert_allclose(other["W"][1], -np.array(first["W"][1]), atol=1e-8)
    assert "all_classes" not in first["metrics"]["evaluation"]


@pytest.mark.parametrize(
    ("arguments", "code", "said"),
    [
        ((), 3, ("holds 4 different values", "--positive NAME", "--classes a,b,c")),
        (("--classes", "walk,run,fly"), 3, ("'crawl' (", "'walk', 'run', 'fly'")),
        (("--classes", "walk,run,fly,crawl,swim"), 3, ("no row is 'swim'",)),
        (("--positive", "swim"), 3, ("no value 'swim'", "'walk' (")),
        (("--classes", "walk,run,fly,crawl", "--positive", "crawl"), 2, ("exclude each other",)),
        (("--classes", "walk"), 2, ("at least two different names",)),
        (("--classes", "walk,,run"), 2, ("at least two different names",)),
    ],
    ids=lambda value: " ".join(map(str, value)) if isinstance(value, tuple) else "",
)
def test_what_cannot_be_fitted_is_said_and_nothing_is_written(
    headeval: Headeval, data: Path, tmp_path: Path, arguments: tuple[str, ...], code: int, said: tuple[str, ...]
) -> None:
    outcome = headeval("fit", data, *arguments)
    assert outcome.code == code, outcome.err
    for text in said:
        assert text in outcome.err
    assert len(outcome.err.splitlines()) <= 2
    assert not (tmp_path / "linear-head.json").exists()


def test_a_class_too_rare_for_the_folds_is_named(headeval: Headeval, tmp_path: Path) -> None:
    e = np.random.default_rng(0).normal(size=(83, 5)).astype(np.float32)
    flat = pa.FixedSizeListArray.from_arrays(pa.array(e.ravel()), 5)
    table = pa.table({"embedding": flat, "label": pa.array(["a"] * 40 + ["rare"] * 3 + ["c"] * 40)})
    pq.write_table(table, tmp_path / "t.parquet")
    outcome = headeval("fit", "t.parquet", "--positive", "c")
    assert outcome.code == 3
    assert "at least 5 rows of each class, class 'rare' has 3; choose fewer --folds" in outcome.err
    fitted = headeval("fit", "t.parquet", "--positive", "c", "--folds", 3)
    assert fitted.code == 0
    assert "'rare' (3 rows): are they meant, or misspelled?" in " ".join(fitted.out.split())


def test_a_misspelled_class_is_named_beside_the_one_it_is_meant_for(headeval: Headeval, tmp_path: Path) -> None:
    e = np.random.default_rng(0).normal(size=(121, 5)).astype(np.float32)
    flat = pa.FixedSizeListArray.from_arrays(pa.array(e.ravel()), 5)
    table = pa.table({"embedding": flat, "label": pa.array(["a"] * 40 + ["C"] + ["c"] * 40 + ["d"] * 40)})
    pq.write_table(table, tmp_path / "t.parquet")
    outcome = headeval("fit", "t.parquet", "--positive", "c", "--folds", 0)
    assert outcome.code == 3
    assert "holds 'c' (40 rows), 'C' (1 row), which differ in case or spaces only" in outcome.err
    named = headeval("fit", "t.parquet", "--classes", "a,C,d,c")
    assert named.code == 3
    assert "class 'C' has 1 ('C', 'c' differ in case or spaces only)" in named.err
    assert headeval("fit", "t.parquet", "--classes", "a,C,d,c", "--folds", 0).code == 0


def test_separated_classes_without_a_penalty_are_no_bug(headeval: Headeval, tmp_path: Path) -> None:
    e = np.repeat(np.eye(5, dtype=np.float32)[:3], 20, axis=0)
    flat = pa.FixedSizeListArray.from_arrays(pa.array(e.ravel()), 5)
    table = pa.table({"embedding": flat, "label": pa.array(["a"] * 20 + ["b"] * 20 + ["c"] * 20)})
    pq.write_table(table, tmp_path / "t.parquet")
    outcome = headeval("fit", "t.parquet", "--positive", "c", "--l2", 0, "--folds", 0)
    assert outcome.code == 5
    assert "no head was written" in outcome.err


def test_a_head_judged_on_its_own_rows_is_called_in_sample(headeval: Headeval, data: Path) -> None:
    assert headeval("fit", data, "--positive", "crawl").code == 0
    outcome = headeval("report", data, "--head", "linear-head.json")
    assert "CAUTION: IN-SAMPLE: all these 300 labelled rows were used for the fit" in " ".join(outcome.out.split())


def test_the_card_tells_parametrisation_and_rows_of_each_class(headeval: Headeval, data: Path, tmp_path: Path) -> None:
    assert headeval("fit", data, "--positive", "crawl").code == 0
    other = write_table(tmp_path / "other.parquet", 200, 9)
    outcome = headeval("report", other, "--head", "linear-head.json", "--card", "c.md")
    assert outcome.code == 0, outcome.err
    card = (tmp_path / "c.md").read_text(encoding="utf-8")
    assert "| parametrisation | symmetric: the rows of W sum to zero, and so does b |" in card
    _, labels = units_and_labels(data)
    assert f"| of each class | 300 rows: {np.sum(labels == 'crawl')} crawl (flagged)" in card
