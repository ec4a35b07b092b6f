"""`headeval calibrate` and `threshold` on a head of several classes; a score file with a column of each class."""

import json
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq
import pytest
from scipy.optimize import minimize_scalar
from scipy.special import log_softmax, softmax
from sklearn.linear_model import LogisticRegression
from sklearn.metrics import brier_score_loss, log_loss

from headeval.certifying.claim_record import read_claim
from headeval.files.heads import read_head, write_head
from headeval.head import LinearHead

Headeval = Callable[..., Any]

CLASSES = ("neither", "offensive", "hateful")
DIM = 5


def rows(path: Path, *, n: int, seed: int) -> Path:
    rng = np.random.default_rng(seed)
    e = rng.normal(size=(n, DIM)).astype(np.float32)
    u = e / np.linalg.norm(e, axis=1, keepdims=True)
    p = softmax(4 * u[:, :3] + [0.5, 0.0, -0.5], axis=1)
    labels = [CLASSES[rng.choice(3, p=row)] for row in p]
    flat = pa.FixedSizeListArray.from_arrays(pa.array(e.ravel()), DIM)
    table = pa.table({"embedding": flat, "label": pa.array(labels)})
    pq.write_table(table.replace_schema_metadata({"embedding_model": "m"}), path, row_group_size=100)
    return path


def embeddings_and_codes(path: Path) -> tuple[np.ndarray, np.ndarray]:
    table = pq.read_table(path)
    e = np.array(table["embedding"].to_pylist(), dtype=np.float64)
    return e / np.linalg.norm(e, axis=1, keepdims=True), np.array(
        [CLASSES.index(c) for c in table["label"].to_pylist()]
    )


@pytest.fixture
def head(tmp_path: Path) -> Path:
    """A softmax head by scikit-learn whose logits are made three times too large."""
    u, y = embeddings_and_codes(rows(tmp_path / "train.parquet", n=500, seed=0))
    model = LogisticRegression(max_iter=1000).fit(u, y)
    path = tmp_path / "soft.json"
    write_head(LinearHead("m", CLASSES, 3 * model.coef_, 3 * model.intercept_, 0.6, {"evaluation": {"auc": 0.5}}), path)
    return path


@pytest.fixture
def data(tmp_path: Path) -> Path:
    return rows(tmp_path / "calibration.parquet", n=600, seed=1)


def best_slope(z: np.ndarray, y: np.ndarray) -> tuple[float, Callable[[float], float]]:
    def loss(beta: float) -> float:
        return -float(np.mean(log_softmax(beta * z, axis=1)[np.arange(len(y)), y]))

    found = minimize_scalar(loss, bounds=(0.01, 20), method="bounded", options={"xatol": 1e-12})
    return float(found.x), loss


def test_temperature_of_all_classes_is_scipys_minimiser_and_divides_the_head(
    headeval: Headeval, head: Path, data: Path, tmp_path: Path
) -> None:
    outcome = headeval("calibrate", data, "--head", head)
    assert outcome.code == 0, outcome.err
    before, after = read_head(head), read_head(tmp_path / "soft-calibrated.json")
    u, y = embeddings_and_codes(data)
    beta, loss = best_slope(u @ before.W.T + before.b, y)
    np.testing.assert_allclose(after.W, before.W * beta, rtol=1e-6)
    np.testing.assert_allclose(after.b, before.b * beta, rtol=1e-6)
    (record,) = after.metrics["calibrations"]
    assert record["temperature"] == pytest.approx(1 / beta, rel=1e-6)
    assert record["log_loss_before"] == pytest.approx(loss(1.0), rel=1e-9)
    assert record["log_loss_after"] == pytest.approx(loss(beta), rel=1e-9)
    assert record["temperature_interval"]["lower"] < 1 / beta < record["temperature_interval"]["upper"]
    assert (record["n"], record["positives"]) == (600, int((y == 2).sum()))
    assert after.metrics["evaluation_before_calibration"] == before.metrics["evaluation"]
    assert f"temperature T = {1 / beta:.4f}" in outcome.out
    assert "All classes before and after" in outcome.out


def test_the_new_threshold_changes_the_fewest_decisions_of_these_rows(
    headeval: Headeval, head: Path, data: Path, tmp_path: Path
) -> None:
    out = headeval("calibrate", data, "--head", head).out
    before, after = read_head(head), read_head(tmp_path / "soft-calibrated.json")
    u, _ = embeddings_and_codes(data)
    was = softmax(u @ before.W.T + before.b, axis=1)[:, 2] >= before.threshold
    now = softmax(u @ after.W.T + after.b, axis=1)[:, 2]
    edges = np.unique(now)
    tried = [0.0, *((edges[1:] + edges[:-1]) / 2), 1.0]
    fewest = min(int((was != (now >= t)).sum()) for t in tried)
    assert 0 < fewest == int((was != (now >= after.threshold)).sum())
    (record,) = after.metrics["calibrations"]
    assert record["newly_flagged"] + record["no_longer_flagged"] == fewest
    assert (record["threshold_before"], record["threshold_after"]) == (0.6, after.threshold)
    assert f"decisions changed: {fewest} " in out
    assert "changes the order of the rows" in " ".join(out.split())


@pytest.mark.parametrize(("others", "flagged", "losses"), [(0.3, 1, 2), (0.3, 0.3, 1), (3, 3, 0)])
def test_a_flagged_class_that_loses_by_the_temperature_of_all_is_told(
    headeval: Headeval, data: Path, tmp_path: Path, others: float, flagged: float, losses: int
) -> None:
    """Where the others are told apart too timidly, the temperature overdoes the flagged class, which was right."""
    W, b = np.zeros((3, DIM)), np.array([0.5, 0.0, -0.5])
    W[0, 0] = W[1, 1] = 4 * others
    W[2, 2] = 4 * flagged
    write_head(LinearHead("m", CLASSES, W, b, 0.6, {}), tmp_path / "own.json")
    outcome = headeval("calibrate", data, "--head", "own.json")
    assert outcome.code == 0, outcome.err
    u, y = embeddings_and_codes(data)
    heads = [read_head(tmp_path / name) for name in ("own.json", "own-calibrated.json")]
    before, after = (softmax(u @ head.W.T + head.b, axis=1)[:, 2] for head in heads)
    larger: list[str] = []
    for title, score in (("log loss", log_loss), ("Brier score", brier_score_loss)):
        was, now = (score(y == 2, p) for p in (before, after))
        if now > was:
            larger.append(f"the {title}{'' if larger else ' becomes larger'}, {was:.4f} → {now:.4f}")
    shown = " ".join(outcome.out.split())
    assert (len(larger), "becomes larger" in shown) == (losses, losses > 0)
    told = f"of hateful against the rest {', and '.join(larger)}: the temperature is that of all classes together"
    assert (told in shown) == bool(larger)


def test_platt_scaling_is_refused_for_more_than_two_classes(headeval: Headeval, head: Path, data: Path) -> None:
    outcome = headeval("calibrate", data, "--head", head, "--method", "platt")
    assert outcome.code == 2
    assert "is for two classes" in outcome.err
    assert "--method temperature" in outcome.err


def test_labels_that_name_one_class_alone_are_no_temperature_of_all(headeval: Headeval, head: Path, data: Path) -> None:
    table = pq.read_table(data)
    flags = pa.array([label == "hateful" for label in table["label"].to_pylist()])
    pq.write_table(table.set_column(1, "label", flags), data)
    outcome = headeval("calibrate", data, "--head", head, "--positive", "true")
    assert outcome.code == 3
    assert "takes labels of all 3 classes" in outcome.err


def test_rows_of_one_class_calibrate_nothing(headeval: Headeval, head: Path, data: Path, tmp_path: Path) -> None:
    table = pq.read_table(data)
    pq.write_table(table.filter(pc.equal(table["label"], "neither")), tmp_path / "one.parquet")
    outcome = headeval("calibrate", "one.parquet", "--head", head)
    assert outcome.code == 3
    assert "'neither'" in outcome.err


def test_rows_without_one_class_still_calibrate(headeval: Headeval, head: Path, data: Path, tmp_path: Path) -> None:
    table = pq.read_table(data)
    pq.write_table(table.filter(pc.not_equal(table["label"], "neither")), tmp_path / "two.parquet")
    assert headeval("calibrate", "two.parquet", "--head", head).code == 0
    u, y = embeddings_and_codes(tmp_path / "two.parquet")
    before = read_head(head)
    beta, _ = best_slope(u @ before.W.T + before.b, y)
    (record,) = read_head(tmp_path / "soft-calibrated.json").metrics["calibrations"]
    assert record["slope"] == pytest.approx(beta, rel=1e-6)


def test_a_threshold_is_certified_for_the_flagged_class_against_the_rest(
    headeval: Headeval, head: Path, data: Path, tmp_path: Path
) -> None:
    outcome = headeval("threshold", data, "--head", head, "--require", "fpr<=0.1")
    assert outcome.code == 0, outcome.err
    chosen = read_head(tmp_path / "soft-threshold.json")
    u, y = embeddings_and_codes(data)
    p = softmax(u @ chosen.W.T + chosen.b, axis=1)[:, 2]
    (part,) = chosen.metrics["threshold"]["requirements"]
    assert part["n"] == int((y != 2).sum())
    assert part["errors"] == int((p[y != 2] >= chosen.threshold - 1e-12).sum())
    assert replace(chosen, threshold=0.6, metrics=read_head(head).metrics) == read_head(head)


def test_a_calibration_that_changes_the_order_drops_the_claim(
    headeval: Headeval, head: Path, data: Path, tmp_path: Path
) -> None:
    """Of two classes the claim moves along; here other rows are flagged, so that nothing is certified any more."""
    more = rows(tmp_path / "more.parquet", n=600, seed=2)
    assert headeval("threshold", more, "--head", head, "--require", "fpr<=0.1").code == 0
    assert headeval("calibrate", data, "--head", "soft-threshold.json", "-o", "calibrated.json").code == 0
    metrics = read_head(tmp_path / "calibrated.json").metrics
    assert read_claim(metrics) is None
    assert metrics["threshold_before_calibration"] == read_head(tmp_path / "soft-threshold.json").metrics["threshold"]


def test_rows_that_calibrated_many_classes_certify_nothing(headeval: Headeval, data: Path, tmp_path: Path) -> None:
    """Of two classes they do, since a calibration keeps their order."""
    train = rows(tmp_path / "train.parquet", n=500, seed=0)
    assert headeval("fit", train, "--classes", ",".join(CLASSES), "--folds", "0").code == 0
    assert headeval("calibrate", data, "--head", "linear-head.json").code == 0
    outcome = headeval("threshold", data, "--head", "linear-head-calibrated.json", "--require", "fpr<=0.1")
    assert outcome.code == 5
    assert "changes the order of rows" in outcome.err


def scores(path: Path, head: Path, data: Path) -> tuple[np.ndarray, np.ndarray]:
    """A score file with a probability and a logit of each class."""
    u, y = embeddings_and_codes(data)
    z = u @ read_head(head).W.T + read_head(head).b
    p = softmax(z, axis=1)
    columns: dict[str, Any] = {"label": pq.read_table(data)["label"]}
    for place, name in enumerate(CLASSES):
        columns |= {f"p_{name}": p[:, place], f"z_{name}": z[:, place] + 7.0}  # a shift of a row changes nothing
    pq.write_table(pa.table(columns), path)
    return z, y


@pytest.mark.parametrize(
    "options",
    [
        ("--prob", "p_neither,p_offensive,p_hateful", "--classes", "neither,offensive,hateful"),
        ("--prob", "p_*", "--positive", "hateful"),
        ("--logit", "z_neither,z_offensive,z_hateful", "--classes", "neither,offensive,hateful"),
    ],
)
def test_a_score_file_of_classes_gets_calibrated_columns_of_each(
    headeval: Headeval, head: Path, data: Path, tmp_path: Path, options: tuple[str, ...]
) -> None:
    z, y = scores(tmp_path / "scores.parquet", head, data)
    outcome = headeval("calibrate", "scores.parquet", *options)
    assert outcome.code == 0, outcome.err
    table = pq.read_table(tmp_path / "scores-calibrated.parquet")
    beta, _ = best_slope(z, y)
    found = np.column_stack([table[f"calibrated_prob_{name}"].to_numpy() for name in CLASSES])
    np.testing.assert_allclose(found, softmax(beta * z, axis=1), atol=1e-7)
    assert table["calibrated_predicted"].to_pylist() == [CLASSES[place] for place in z.argmax(axis=1)]
    np.testing.assert_allclose(table["calibrated_prob"].to_numpy(), found[:, 2], atol=1e-12)
    declared = json.loads(table.schema.metadata[b"headeval_scores"])[0]
    assert declared["class_names"] == list(CLASSES)
    flagged = table["calibrated_prob"].to_numpy() >= declared["threshold"]
    np.testing.assert_array_equal(table["calibrated_flagged"].to_numpy(), flagged)


def test_a_calibrated_score_file_is_judged_without_a_further_word(
    headeval: Headeval, head: Path, data: Path, tmp_path: Path
) -> None:
    scores(tmp_path / "scores.parquet", head, data)
    headeval("calibrate", "scores.parquet", "--prob", "p_*", "--positive", "hateful")
    outcome = headeval("report", "scores-calibrated.parquet", "--format", "json")
    assert outcome.code == 0, outcome.err
    document = json.loads(outcome.out)
    assert document["in_sample"] == "calibrated"


def test_a_probability_of_exactly_zero_has_no_logit(headeval: Headeval, head: Path, data: Path, tmp_path: Path) -> None:
    scores(tmp_path / "scores.parquet", head, data)
    table = pq.read_table(tmp_path / "scores.parquet")
    zero, one = table["p_neither"].to_numpy().copy(), table["p_hateful"].to_numpy().copy()
    one[[3, 8]] += zero[[3, 8]]
    zero[[3, 8]] = 0.0
    at = table.schema.get_field_index
    table = table.set_column(at("p_neither"), "p_neither", pa.array(zero))
    table = table.set_column(at("p_hateful"), "p_hateful", pa.array(one))
    pq.write_table(table, tmp_path / "scores.parquet")
    outcome = headeval(
        "calibrate", "scores.parquet", "--prob", "p_neither,p_offensive,p_hateful", "--classes", ",".join(CLASSES)
    )
    assert outcome.code == 3
    assert "exactly 0 in 2 rows" in outcome.err
    assert not (tmp_path / "scores-calibrated.parquet").exists()


def test_both_columns_of_two_classes_are_one_too_many(headeval: Headeval, tmp_path: Path) -> None:
    pq.write_table(pa.table({"a": [0.4, 0.2], "b": [0.6, 0.8], "label": ["a", "b"]}), tmp_path / "two.parquet")
    outcome = headeval("calibrate", "two.parquet", "--prob", "a,b")
    assert outcome.code == 2
    assert "one column of the flagged class" in outcome.err
