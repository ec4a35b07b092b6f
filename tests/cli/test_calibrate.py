"""`headeval calibrate` folds the scaling into the head, or adds calibrated columns, and refuses what does not help."""

import json
import math
import re
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from scipy.optimize import minimize, minimize_scalar

from headeval.files.heads import read_head, write_head

Headeval = Callable[..., Any]


def loss(z: np.ndarray, y: np.ndarray) -> float:
    return float(np.mean(np.logaddexp(0, np.where(y, -z, z))))


def scores_table(
    path: Path, *, n: int = 400, sharpened: float = 3.0, **columns: object
) -> tuple[np.ndarray, np.ndarray]:
    """Logits that are `sharpened` times too large, with their labels."""
    rng = np.random.default_rng(5)
    z = rng.normal(size=n) * 1.5 + 0.4
    y = rng.random(n) < 1 / (1 + np.exp(-z))
    z = z * sharpened
    p = 1 / (1 + np.exp(-np.clip(z, -30, 30)))
    content = {"id": list(range(n)), "z": z, "p": p, "label": y, **columns}
    pq.write_table(pa.table(content), path)
    return z, y


def test_temperature_of_a_head_is_the_minimiser_and_divides_weights_and_intercept(
    headeval: Headeval, fitted: Path, make_table: Callable[..., Path], tmp_path: Path
) -> None:
    data = make_table("calibration.parquet", n=200, seed=7)
    outcome = headeval("calibrate", data, "--head", fitted)
    assert outcome.code == 0, outcome.err
    before, after = (
        json.loads((tmp_path / f"linear-head{s}.json").read_text(encoding="utf-8")) for s in ("", "-calibrated")
    )
    table = pq.read_table(data)
    e = np.array(table["embedding"].to_pylist(), dtype=np.float64)
    z = e / np.linalg.norm(e, axis=1, keepdims=True) @ np.array(before["W"][1]) + before["b"][1]
    y = np.array(table["label"].to_pylist()) == "unsafe"
    best = (
        1 / minimize_scalar(lambda b: loss(b * z, y), bounds=(0.01, 20), method="bounded", options={"xatol": 1e-10}).x
    )
    np.testing.assert_allclose(after["W"][1], np.array(before["W"][1]) / best, rtol=1e-6)
    np.testing.assert_allclose(after["b"][1], before["b"][1] / best, rtol=1e-6)
    record = after["metrics"]["calibrations"][0]
    assert record["method"] == "temperature"
    assert record["temperature"] == pytest.approx(best, rel=1e-6)
    assert record["log_loss_before"] == pytest.approx(loss(z, y), abs=1e-12)
    assert record["log_loss_after"] == pytest.approx(loss(z / best, y), abs=1e-12)
    assert (record["newly_flagged"], record["no_longer_flagged"]) == (0, 0)
    assert "evaluation" not in after["metrics"]  # it described the head before
    assert after["metrics"]["evaluation_before_calibration"] == before["metrics"]["evaluation"]
    assert "decisions changed: 0" in outcome.out
    assert "in-sample" in outcome.out


def test_platt_of_a_head_is_the_minimiser_and_carries_the_threshold_along(
    headeval: Headeval, fitted: Path, make_table: Callable[..., Path], tmp_path: Path
) -> None:
    data = make_table("calibration.parquet", n=200, seed=7)
    outcome = headeval("calibrate", data, "--head", fitted, "--method", "platt", "-o", "platt.json")
    assert outcome.code == 0, outcome.err
    before, after = (
        json.loads((tmp_path / name).read_text(encoding="utf-8")) for name in ("linear-head.json", "platt.json")
    )
    table = pq.read_table(data)
    e = np.array(table["embedding"].to_pylist(), dtype=np.float64)
    u = e / np.linalg.norm(e, axis=1, keepdims=True)
    z = u @ np.array(before["W"][1]) + before["b"][1]
    y = np.array(table["label"].to_pylist()) == "unsafe"
    tight = {"xatol": 1e-9, "fatol": 1e-14}
    a, c = minimize(lambda v: loss(v[0] * z + v[1], y), [1.0, 0.0], method="Nelder-Mead", options=tight).x
    np.testing.assert_allclose(u @ np.array(after["W"][1]) + after["b"][1], a * z + c, atol=1e-5)
    record = after["metrics"]["calibrations"][0]
    assert (record["newly_flagged"], record["no_longer_flagged"]) == (0, 0)
    assert after["threshold"] == pytest.approx(1 / (1 + math.exp(-c)), abs=1e-5)  # what 0.5 has become
    assert (record["threshold_before"], record["threshold_after"]) == (0.5, after["threshold"])
    was = z >= 0
    now = 1 / (1 + np.exp(-(u @ np.array(after["W"][1]) + after["b"][1]))) >= after["threshold"]
    np.testing.assert_array_equal(was, now)
    assert f"0.5 → {after['threshold']!r}, so that the decisions stay" in " ".join(outcome.out.split())


def test_calibrating_twice_keeps_both_in_the_history(
    headeval: Headeval, fitted: Path, make_table: Callable[..., Path], tmp_path: Path
) -> None:
    data = make_table("calibration.parquet", n=200, seed=7)
    headeval("calibrate", data, "--head", fitted, "-o", "one.json")
    assert headeval("calibrate", data, "--head", "one.json", "-o", "two.json").code == 0
    history = json.loads((tmp_path / "two.json").read_text(encoding="utf-8"))["metrics"]["calibrations"]
    assert len(history) == 2
    assert history[1]["temperature"] == pytest.approx(1.0, abs=1e-9)


@pytest.mark.parametrize("column", ["--logit=z", "--prob=p"])
@pytest.mark.parametrize("method", ["temperature", "platt"])
def test_a_score_file_gets_calibrated_columns_beside_its_own(
    headeval: Headeval, tmp_path: Path, column: str, method: str
) -> None:
    z, y = scores_table(tmp_path / "scores.parquet")
    outcome = headeval("calibrate", "scores.parquet", column, "--method", method)
    assert outcome.code == 0, outcome.err
    table = pq.read_table(tmp_path / "scores-calibrated.parquet")
    assert table.column_names == ["id", "z", "p", "label", "calibrated_logit", "calibrated_prob", "calibrated_flagged"]
    calibrated = table["calibrated_logit"].to_numpy()
    slope, intercept = np.polyfit(z, calibrated, 1)
    np.testing.assert_allclose(calibrated, slope * z + intercept, atol=1e-9)
    # At the optimum the score equations of maximum likelihood hold.
    p = 1 / (1 + np.exp(-calibrated))
    assert float(z @ (p - y)) == pytest.approx(0, abs=1e-6)
    if method == "platt":
        assert p.mean() == pytest.approx(y.mean(), abs=1e-9)
    else:
        assert intercept == pytest.approx(0, abs=1e-9)
    # The threshold has moved along: what was flagged at 0.5 is flagged still.
    np.testing.assert_array_equal(table["calibrated_flagged"].to_numpy(), z >= 0)
    threshold = json.loads(table.schema.metadata[b"headeval_scores"])[0]["threshold"]
    assert threshold == pytest.approx(1 / (1 + math.exp(-intercept)), abs=1e-9)
    np.testing.assert_array_equal(p >= threshold, z >= 0)


def test_a_sharpened_score_comes_back_with_temperature_near_three(headeval: Headeval, tmp_path: Path) -> None:
    scores_table(tmp_path / "scores.parquet", n=4000)
    out = headeval("calibrate", "scores.parquet", "--logit", "z").out
    temperature = float(out.split("T = ")[1].split(" ")[0])
    assert temperature == pytest.approx(3.0, abs=0.3)


def test_a_csv_score_file_stays_csv_with_its_cells_untouched(headeval: Headeval, tmp_path: Path) -> None:
    lines = ["id,p,label"] + [
        f"000{i},{0.1 + 0.08 * (i % 10):.2f},{int(i % 10 > 4) ^ int(i % 7 == 0)}" for i in range(70)
    ]
    (tmp_path / "s.csv").write_text("\n".join(lines) + "\n")
    outcome = headeval("calibrate", "s.csv", "--prob", "p", "-o", "c.csv")
    assert outcome.code == 0, outcome.err
    out = (tmp_path / "c.csv").read_text(encoding="utf-8").splitlines()
    assert len(out) == 71
    for before, after in zip(lines[1:], out[1:], strict=True):
        assert [cell.strip('"') for cell in after.split(",")[:3]] == before.split(",")


def test_rows_without_a_label_are_left_out_of_the_fit_and_calibrated_all_the_same(
    headeval: Headeval, tmp_path: Path
) -> None:
    rng = np.random.default_rng(5)
    labels = [None if i % 5 == 0 else bool(rng.random() < 0.5) for i in range(400)]
    scores_table(tmp_path / "scores.parquet", label=pa.array(labels, pa.bool_()))
    assert headeval("calibrate", "scores.parquet", "--logit", "z").code == 3
    outcome = headeval("calibrate", "scores.parquet", "--logit", "z", "--drop-unlabelled", "--method", "platt")
    if outcome.code == 0:
        assert pq.read_metadata(tmp_path / "scores-calibrated.parquet").num_rows == 400
        assert "80" in outcome.out


@pytest.mark.parametrize("method", ["temperature", "platt"])
@pytest.mark.parametrize(
    ("z", "y", "words"),
    [
        ([3.0, 2.0, 1.0, -1.0, -2.0, -3.0], [1, 1, 1, 0, 0, 0], "separate"),
        ([3.0, 2.0, 1.0, -1.0, -2.0, -3.0], [0, 0, 1, 0, 1, 1], ""),
        ([1.0, 1.0, 1.0, 1.0], [1, 0, 1, 0], ""),
    ],
    ids=["separable", "worse than chance", "constant"],
)
def test_scores_that_cannot_be_calibrated_are_5_and_leave_no_file(
    headeval: Headeval, tmp_path: Path, method: str, z: list[float], y: list[int], words: str
) -> None:
    pq.write_table(pa.table({"z": z, "label": y}), tmp_path / "s.parquet")
    outcome = headeval("calibrate", "s.parquet", "--logit", "z", "--method", method, "-o", "c.parquet")
    assert (outcome.code, (tmp_path / "c.parquet").exists()) == (5, False), outcome.err
    assert words in outcome.err
    assert len(outcome.err.splitlines()) <= 2


def test_a_temperature_beyond_its_bounds_is_5_and_says_so(headeval: Headeval, tmp_path: Path) -> None:
    scores_table(tmp_path / "s.parquet", sharpened=1e4)
    outcome = headeval("calibrate", "s.parquet", "--logit", "z", "-o", "c.parquet")
    assert (outcome.code, (tmp_path / "c.parquet").exists()) == (5, False)
    assert "not between 0.01 and 100" in outcome.err


@pytest.mark.parametrize("p", [0.0, 1.0])
def test_a_probability_of_exactly_0_or_1_has_no_logit(headeval: Headeval, tmp_path: Path, p: float) -> None:
    pq.write_table(pa.table({"p": [0.2, 0.7, p, 0.4], "label": [0, 1, 1, 0]}), tmp_path / "s.parquet")
    outcome = headeval("calibrate", "s.parquet", "--prob", "p", "-o", "c.parquet")
    assert outcome.code == 3
    assert "exactly 0 or 1 in 1 row" in outcome.err


@pytest.mark.parametrize(
    ("arguments", "code", "words"),
    [
        ([], 2, "--head HEAD"),
        (["--logit", "z", "--prob", "p"], 2, "exclude each other"),
        (["--logit", "zz"], 3, "zz"),
        (["--prob", "z"], 3, "--logit 'z'"),
        (["--head", "absent.json"], 4, "absent.json"),
        (["--logit", "z", "-o", "scores.parquet", "--force"], 6, "one of the inputs"),
        (["--logit", "z", "-o", "there.parquet"], 6, "--force"),
    ],
)
def test_what_cannot_be_done_leaves_the_files_as_they_were(
    headeval: Headeval, tmp_path: Path, arguments: list[str], code: int, words: str
) -> None:
    scores_table(tmp_path / "scores.parquet")
    (tmp_path / "there.parquet").write_bytes(b"mine")
    before = {path: path.read_bytes() for path in tmp_path.iterdir()}
    outcome = headeval("calibrate", "scores.parquet", *arguments)
    assert outcome.code == code, outcome.err
    assert words in outcome.err
    assert {path: path.read_bytes() for path in tmp_path.iterdir()} == before


def test_calibrating_on_the_rows_of_the_fit_is_called_out(
    headeval: Headeval, fitted: Path, make_table: Callable[..., Path]
) -> None:
    outcome = headeval("calibrate", make_table(), "--head", fitted)
    assert outcome.code == 0
    assert "120 of the rows made what is judged, and flatter it" in " ".join(outcome.out.split())


def test_the_infinity_of_no_logit_never_reaches_a_file(headeval: Headeval, tmp_path: Path) -> None:
    scores_table(tmp_path / "scores.parquet")
    headeval("calibrate", "scores.parquet", "--prob", "p")
    values = pq.read_table(tmp_path / "scores-calibrated.parquet")["calibrated_logit"].to_pylist()
    assert all(math.isfinite(value) for value in values)


def test_no_decision_changes_where_an_intercept_lifts_most_rows_over_a_half(headeval: Headeval, tmp_path: Path) -> None:
    # Negatives sit far below 0 and positives just below it: nothing is flagged at 0.5, and nothing is afterwards.
    z = [-5.0, -4.0, -3.0, -1.2, -1.0, -0.8, -0.6, -0.4]
    pq.write_table(pa.table({"z": z, "label": [0, 0, 1, 0, 1, 1, 1, 1]}), tmp_path / "s.parquet")
    out = headeval("calibrate", "s.parquet", "--logit", "z", "--method", "platt").out
    table = pq.read_table(tmp_path / "s-calibrated.parquet")
    assert max(table["calibrated_prob"].to_pylist()) > 0.5
    assert sum(table["calibrated_flagged"].to_pylist()) == 0
    assert "decisions changed: 0" in out


@pytest.mark.parametrize("threshold", [0.0, 1.0])
def test_a_threshold_that_flags_all_or_nothing_goes_on_doing_so(
    headeval: Headeval, make_table: Callable[..., Path], tmp_path: Path, threshold: float
) -> None:
    assert headeval("fit", make_table(), "--threshold", threshold, "-q").code == 0
    data = make_table("calibration.parquet", n=200, seed=7)
    outcome = headeval("calibrate", data, "--head", "linear-head.json", "--method", "platt")
    assert outcome.code == 0, outcome.err
    after = json.loads((tmp_path / "linear-head-calibrated.json").read_text(encoding="utf-8"))
    if threshold == 0:
        assert after["threshold"] == 0
        assert "0 stays" in outcome.out
    else:  # what flags only probabilities that round to 1 is carried like any other
        assert 1 - 1e-6 < after["threshold"] <= 1
        assert "decisions changed: 0" in outcome.out


def test_before_and_after_are_judged_each_at_its_own_threshold(headeval: Headeval, tmp_path: Path) -> None:
    scores_table(tmp_path / "scores.parquet")
    out = headeval("calibrate", "scores.parquet", "--logit", "z", "--method", "platt").out
    for measure in ("accuracy at the threshold", "recall at the threshold", "FPR at the threshold"):
        before, after = next(line for line in out.splitlines() if measure in line).split()[-2:]
        assert before == after


@pytest.mark.parametrize("row", range(8))
def test_a_row_that_stands_exactly_at_the_threshold_stays_flagged(
    headeval: Headeval, fitted: Path, make_table: Callable[..., Path], tmp_path: Path, row: int
) -> None:
    """The calibrated head rounds otherwise than the scaled logits do; the threshold is fitted to what the head says."""
    data = make_table("calibration.parquet", n=60, seed=7)
    head, e = read_head(fitted), np.array(pq.read_table(data)["embedding"].to_pylist(), dtype=np.float32)
    edge = replace(head, threshold=float(head.probs(e)[row]))
    write_head(edge, tmp_path / "edge.json")
    assert headeval("calibrate", data, "--head", "edge.json", "--method", "platt").code == 0
    np.testing.assert_array_equal(read_head(tmp_path / "edge-calibrated.json").flagged(e), edge.flagged(e))


def test_a_head_of_one_column_is_not_calibrated_on_another_pair_of_names(
    headeval: Headeval, make_table: Callable[..., Path], tmp_path: Path
) -> None:
    """A head for hate (false/true) was calibrated and certified on safe/unsafe without a word."""
    hate = pa.array([i % 3 == 0 for i in range(120)])
    data = make_table(hate=hate)
    assert headeval("fit", data, "--label", "hate", "-q").code == 0
    for command in (["calibrate"], ["report"], ["threshold", "--require", "fpr<=0.9"]):
        outcome = headeval(*command, data, "--head", "linear-head.json")
        assert (outcome.code, outcome.out) == (3, ""), command
        assert "but the classes of what is judged are 'false' and 'true'" in outcome.err
        assert "--label" in outcome.err
        assert "--positive 'unsafe'" in outcome.err
        assert len(outcome.err.splitlines()) == 2
    assert not (tmp_path / "linear-head-calibrated.json").exists()


def test_a_score_file_of_one_column_is_not_calibrated_on_another_pair(
    headeval: Headeval, make_table: Callable[..., Path]
) -> None:
    data = make_table(hate=pa.array([i % 3 == 0 for i in range(120)]))
    assert headeval("fit", data, "--label", "hate", "-q").code == 0
    assert headeval("score", data, "--head", "linear-head.json", "-o", "scores.parquet", "-q").code == 0
    outcome = headeval("report", "scores.parquet")
    assert outcome.code == 3
    assert "'false' and 'true'" in outcome.err
    assert headeval("report", "scores.parquet", "--label", "hate").code == 0


@pytest.mark.parametrize("command", ["calibrate", "report"])
def test_labels_of_another_column_than_the_fits_are_asked_about(
    headeval: Headeval, make_table: Callable[..., Path], command: str
) -> None:
    data = make_table()
    renamed = pq.read_table(data).rename_columns(["id", "embedding", "verdict"])
    pq.write_table(renamed, data.with_name("renamed.parquet"))
    assert headeval("fit", data, "-q").code == 0
    forced = ["--force"] if command == "calibrate" else []
    same = headeval(command, data, "--head", "linear-head.json")
    other = headeval(command, "renamed.parquet", "--label", "verdict", "--head", "linear-head.json", *forced)
    words = "the head was fitted on labels of column 'label', these are of column 'verdict': do they mean the same?"
    assert (same.code, other.code) == (0, 0), other.err
    assert "do they mean the same" not in " ".join(same.out.split())
    assert words in " ".join(other.out.split())


def test_the_column_of_the_labels_is_shown_and_kept(
    headeval: Headeval, make_table: Callable[..., Path], tmp_path: Path
) -> None:
    hate = pa.array([None if i % 5 == 0 else i % 3 == 0 for i in range(120)])
    assert headeval("fit", make_table(hate=hate), "--label", "hate", "--drop-unlabelled", "-q").code == 0
    outcome = headeval(
        "calibrate", "train.parquet", "--label", "hate", "--drop-unlabelled", "--head", "linear-head.json",
        "--method", "platt",
    )  # fmt: skip
    assert outcome.code == 0, outcome.err
    assert re.search(r"label column +hate", outcome.out)
    history = json.loads((tmp_path / "linear-head-calibrated.json").read_text(encoding="utf-8"))["metrics"]
    assert (history["fit"]["label_column"], history["calibrations"][0]["label_column"]) == ("hate", "hate")


@pytest.mark.parametrize(("unlabelled", "said"), [(40, False), (41, True)])
@pytest.mark.parametrize("command", ["calibrate", "report"])
def test_more_than_a_tenth_without_a_label_is_said(
    headeval: Headeval, tmp_path: Path, command: str, unlabelled: int, said: bool
) -> None:
    _, y = scores_table(tmp_path / "scores.parquet")
    labels = [None if i < unlabelled else bool(value) for i, value in enumerate(y)]
    scores_table(tmp_path / "scores.parquet", label=pa.array(labels, pa.bool_()))
    outcome = headeval(command, "scores.parquet", "--logit", "z", "--drop-unlabelled")
    assert outcome.code == 0, outcome.err
    words = "41 of 400 rows (10 %) have no label and are left out: the numbers hold for rows like those that have one"
    assert (words in " ".join(outcome.out.split())) == said
    assert ("numbers hold for rows like" in " ".join(outcome.out.split())) == said


def test_a_temperature_is_shown_with_its_interval_and_kept_with_it(
    headeval: Headeval, fitted: Path, make_table: Callable[..., Path], tmp_path: Path
) -> None:
    data = make_table("calibration.parquet", n=200, seed=7)
    out = " ".join(headeval("calibrate", data, "--head", fitted).out.split())
    record = json.loads((tmp_path / "linear-head-calibrated.json").read_text(encoding="utf-8"))["metrics"]
    entry = record["calibrations"][0]
    bounds = entry["temperature_interval"]
    assert entry["label_column"] == "label"
    assert f"T = {entry['temperature']:.4f} [{bounds['lower']:.4f}, {bounds['upper']:.4f}]" in out
    assert bounds["lower"] < entry["temperature"] < bounds["upper"]
    assert bounds["upper"] == pytest.approx(1 / entry["slope_interval"]["lower"])


@pytest.mark.parametrize(
    ("n", "positives", "method", "said"),
    [
        (199, 80, "platt", True),
        (200, 80, "platt", False),
        (300, 49, "platt", True),
        (300, 251, "platt", True),
        (300, 50, "platt", False),
        (100, 40, "temperature", False),
    ],
)
def test_platt_on_few_rows_comes_with_advice(
    headeval: Headeval, tmp_path: Path, n: int, positives: int, method: str, said: bool
) -> None:
    z = np.linspace(-1.0, 1.0, n)
    order = np.argsort(-(z + 2 * np.random.default_rng(1).normal(size=n)))
    y = np.isin(np.arange(n), order[:positives])
    pq.write_table(pa.table({"z": z, "label": y}), tmp_path / "s.parquet")
    outcome = headeval("calibrate", "s.parquet", "--logit", "z", "--method", method)
    assert outcome.code == 0, outcome.err
    rows = f"({n} rows, {min(positives, n - positives)} of the rarer class)"
    words = f"two parameters on so few rows {rows} can do harm: compare with --method temperature on other rows"
    assert (words in " ".join(outcome.out.split())) == said


@pytest.mark.parametrize(
    ("named", "example"),
    [
        (("--label", "hate,spam", "--prob", "p_hate,p_spam"), "(--label 'hate' --prob 'p_hate')"),
        (("--label", "[hs]*", "--logit", "p_*"), "(--label 'hate' --logit 'p_hate')"),
        (("--label", "hate,spam"), "(--label 'hate')"),
        (("--label", "hate,spam", "--prob", "p_hate"), "(--label 'hate')"),
    ],
)
def test_several_label_columns_are_categories_and_calibrated_one_after_the_other(
    headeval: Headeval, tmp_path: Path, named: tuple[str, ...], example: str
) -> None:
    values = {"hate": [True, False], "p_hate": [0.5, 0.25], "spam": [False, True], "p_spam": [0.5, 0.75]}
    pq.write_table(pa.table(values), tmp_path / "s.parquet")
    outcome = headeval("calibrate", "s.parquet", *named)
    assert outcome.code == 2
    assert f"names 2 columns, which are categories: calibrate one after the other {example}" in outcome.err
    assert "--head FOLDER" in outcome.err
