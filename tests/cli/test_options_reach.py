"""Every option reaches the number it is about, in the file written and in what is shown."""

import json
import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from numpy.typing import NDArray
from scipy.optimize import minimize_scalar
from scipy.stats import binomtest, ks_2samp
from sklearn import metrics as sk
from sklearn.linear_model import LogisticRegression

from headeval.files.fingerprint import row_digests
from headeval.solver.folds import stratified_folds

Headeval = Callable[..., Any]
MakeTable = Callable[..., Path]
Floats = NDArray[np.float64]
Flags = NDArray[np.bool_]
SHOWN = 6e-5  # four decimals are shown


def units_and_labels(path: Path) -> tuple[Floats, Flags]:
    table = pq.read_table(path)
    e = np.array(table["embedding"].to_pylist(), dtype=np.float64)
    return e / np.linalg.norm(e, axis=1, keepdims=True), np.array(table["label"].to_pylist()) == "unsafe"


def optimum(units: Floats, y: Flags, weights: Floats | None = None) -> LogisticRegression:
    return LogisticRegression(C=1.0, tol=1e-12, solver="newton-cholesky").fit(units, y, sample_weight=weights)


def out_of_fold(units: Floats, y: Flags, folds: NDArray[np.int64], weights: Floats | None = None) -> Floats:
    z = np.empty(len(y))
    for fold in np.unique(folds):
        rest = folds != fold
        model = optimum(units[rest], y[rest], None if weights is None else weights[rest])
        z[~rest] = model.decision_function(units[~rest])
    return z


def shuffled_folds(path: Path, y: Flags) -> NDArray[np.int64]:
    """The folds of the command, which are dealt to the distinct embeddings in the order of their digests."""
    embeddings = np.array(pq.read_table(path)["embedding"].to_pylist(), dtype=np.float32)
    identity = np.unique(row_digests(embeddings)[:, 0], return_inverse=True)[1]
    return stratified_folds(y.astype(np.int64), 5, rng=np.random.default_rng(0), groups=identity)


def sigmoid(z: Floats) -> Floats:
    p: Floats = 1 / (1 + np.exp(-z))
    return p


def rates(y: Flags, p: Floats, threshold: float) -> dict[str, float]:
    tn, fp, fn, tp = (int(count) for count in sk.confusion_matrix(y, p >= threshold).ravel())
    return {"tp": tp, "fp": fp, "fn": fn, "tn": tn, "recall": tp / (tp + fn), "fpr": fp / (fp + tn)}


def read(path: Path) -> Any:
    return json.loads(path.read_text(encoding="utf-8"))


def shown(title: str, out: str) -> list[float]:
    """The numbers in the row of a table that begins with `title`, less those in brackets."""
    (line,) = re.findall(rf"^ +{title} {{2,}}(.*)$", re.sub(r"\[.*?\]", "", out), flags=re.MULTILINE)
    return [float(text) for text in re.findall(r"(?<![\d/.])\d+\.\d+", line)]


def report(headeval: Headeval, *arguments: object) -> Any:
    outcome = headeval("report", *arguments, "--format", "json")
    assert outcome.code == 0, outcome.err
    return json.loads(outcome.out)


def test_the_threshold_of_a_fit_judges_its_out_of_fold_rows(
    headeval: Headeval, make_table: MakeTable, tmp_path: Path
) -> None:
    data = make_table()
    out = headeval("fit", data, "--threshold", 0.3).out
    found = read(tmp_path / "linear-head.json")["metrics"]["evaluation"]
    units, y = units_and_labels(data)
    p = sigmoid(out_of_fold(units, y, shuffled_folds(data, y)))
    expected = rates(y, p, 0.3)
    assert expected != rates(y, p, 0.5)
    assert found["threshold"] == 0.3
    assert found["counts"] == {
        "true_positives": expected["tp"],
        "false_positives": expected["fp"],
        "false_negatives": expected["fn"],
        "true_negatives": expected["tn"],
    }
    assert found["metrics"]["recall"] == pytest.approx(expected["recall"], abs=1e-15)
    assert found["metrics"]["fpr"] == pytest.approx(expected["fpr"], abs=1e-15)
    assert "P(unsafe) ≥ 0.3\n" in out
    assert shown("recall", out) == [pytest.approx(expected["recall"], abs=SHOWN)]
    assert shown("FPR", out) == [pytest.approx(expected["fpr"], abs=SHOWN)]


def test_a_calibration_is_judged_before_and_after_at_the_threshold_of_each_head(
    headeval: Headeval, make_table: MakeTable, tmp_path: Path
) -> None:
    train, data = make_table(), make_table("calibration.parquet", n=200, seed=7)
    headeval("fit", train, "--threshold", 0.3)
    out = headeval("calibrate", data, "--head", "linear-head.json").out
    units, y = units_and_labels(data)
    z = optimum(*units_and_labels(train)).decision_function(units)

    def loss(slope: float) -> float:
        return float(np.mean(np.logaddexp(0, np.where(y, -slope * z, slope * z))))

    slope = minimize_scalar(loss, bounds=(0.01, 20), method="bounded", options={"xatol": 1e-10}).x
    moved = float(sigmoid(np.array(slope * np.log(0.3 / 0.7))))
    assert abs(moved - 0.3) > 0.01
    assert read(tmp_path / "linear-head-calibrated.json")["threshold"] == pytest.approx(moved, abs=1e-6)
    for title, name in (("recall", "recall"), ("FPR", "fpr")):
        expected = rates(y, sigmoid(z), 0.3)[name]
        assert shown(f"{title} at the threshold", out) == pytest.approx([expected, expected], abs=SHOWN)
        assert expected != pytest.approx(rates(y, sigmoid(z), 0.5)[name], abs=2 * SHOWN)
        assert expected != pytest.approx(rates(y, sigmoid(slope * z), 0.3)[name], abs=2 * SHOWN)
    assert "decisions changed: 0 (0 newly flagged, 0 no longer)" in out


def test_weights_count_in_the_fit_of_every_fold(headeval: Headeval, make_table: MakeTable, tmp_path: Path) -> None:
    weights = np.where(np.arange(120) % 3 == 0, 8.0, 0.5)
    data = make_table(importance=pa.array(weights))
    assert headeval("fit", data, "--weight", "importance").code == 0
    found = read(tmp_path / "linear-head.json")["metrics"]["evaluation"]["metrics"]["log_loss"]
    units, y = units_and_labels(data)
    weighted, plain = (
        sk.log_loss(y, sigmoid(out_of_fold(units, y, shuffled_folds(data, y), w))) for w in (weights, None)
    )
    assert found == pytest.approx(weighted, abs=1e-7)
    assert abs(weighted - plain) > 1e-3


def test_groups_are_dealt_so_that_both_classes_stay_even(
    headeval: Headeval, make_table: MakeTable, tmp_path: Path
) -> None:
    # Dealt by size alone, the largest first, the groups of 40 and 30 would meet, and those of 39 and 31: each fold
    # would hold one class. By class the groups of 40 and 31 share a fold, and those of 39 and 30.
    groups = np.repeat(["p40", "n39", "n31", "p30"], [40, 39, 31, 30])
    labels = np.where(np.char.startswith(groups, "p"), "unsafe", "safe")
    data = make_table(n=140, label=pa.array(labels.tolist()), conversation=pa.array(groups.tolist()))
    outcome = headeval("fit", data, "--group", "conversation", "--folds", 2)
    assert outcome.code == 0, outcome.err
    units, y = units_and_labels(data)
    z = out_of_fold(units, y, np.isin(groups, ["n39", "p30"]).astype(np.int64))
    found = read(tmp_path / "linear-head.json")["metrics"]["evaluation"]["metrics"]
    assert found["log_loss"] == pytest.approx(sk.log_loss(y, sigmoid(z)), abs=1e-7)


def test_slices_are_measured_as_the_whole_is(headeval: Headeval, tmp_path: Path) -> None:
    rng = np.random.default_rng(4)
    p, team = rng.random(300), np.array(["red", "blue", "blue"] * 100)
    y = rng.random(300) < p**2
    pq.write_table(pa.table({"p": p, "label": y, "team": team.tolist()}), tmp_path / "s.parquet")
    options = ("--by", "team", "--bins", 7, "--ece-convention", "positive-class", "--binning", "equal-mass")
    found = report(headeval, "s.parquet", "--prob", "p", *options)
    assert {part["value"] for part in found["slices"]} == {"blue", "red"}
    for part in found["slices"]:
        rows = np.flatnonzero(team == part["value"])
        first, beside = part["calibration"]
        assert (first["convention"], beside["convention"]) == ("positive-class", "top-label")
        assert {(table["binning"], table["n_bins"]) for table in (first, beside)} == {("equal-mass", 7)}
        ordered = rows[np.argsort(p[rows])]
        bins = np.split(ordered, [k * len(rows) // 7 for k in range(1, 7)])
        expected = sum(abs(float(y[b].sum() - p[b].sum())) for b in bins) / len(rows)
        assert part["metrics"]["ece"] == first["ece"] == pytest.approx(expected, abs=1e-12)
        assert [entry["count"] for entry in part["reliability"]] == [len(b) for b in bins]


def test_the_penalty_given_is_the_penalty_named(headeval: Headeval, make_table: MakeTable, tmp_path: Path) -> None:
    out = headeval("fit", make_table(), "--l2", 0.37).out
    assert read(tmp_path / "linear-head.json")["metrics"]["fit"]["l2"] == 0.37
    assert re.search(r"^l2 +0\.37$", out, flags=re.MULTILINE)


@pytest.mark.parametrize(("threshold", "trusted"), [(0.25, True), (1.5, False), (-0.25, False), (float("nan"), False)])
def test_a_declared_threshold_that_is_no_probability_is_not_trusted(
    headeval: Headeval, tmp_path: Path, threshold: float, trusted: bool
) -> None:
    columns = {"logit": "z", "prob": "p", "flagged": "f"}
    declared = json.dumps([{**columns, "classes": ["safe", "unsafe"], "threshold": threshold}])
    z = np.linspace(-2, 2, 20)
    table = pa.table({"z": z, "p": sigmoid(z), "f": z >= 0, "label": ["safe", "unsafe"] * 10})
    pq.write_table(table.replace_schema_metadata({"headeval_scores": declared}), tmp_path / "s.parquet")
    outcome = headeval("report", "s.parquet", "--format", "json")
    named = report(headeval, "s.parquet", "--logit", "z")
    told = (named["threshold"], named["provenance"]["threshold_from"])
    if trusted:
        assert (outcome.code, json.loads(outcome.out)["threshold"], told) == (0, threshold, (threshold, "score file"))
    else:
        assert (outcome.code, outcome.out, told) == (2, "", (0.5, "default"))
        assert "--logit COL or --prob COL" in outcome.err
        assert headeval("calibrate", "s.parquet").code == 2


@pytest.mark.parametrize(("taken_for", "column"), [("--logit", "prob"), ("--prob", "logit")])
def test_a_column_is_not_taken_for_what_its_file_says_it_is_not(
    headeval: Headeval, fitted: Path, make_table: MakeTable, taken_for: str, column: str
) -> None:
    headeval("score", make_table("new.parquet", seed=3), "--head", fitted, "-o", "s.parquet")
    for command in ("report", "calibrate"):
        outcome = headeval(command, "s.parquet", taken_for, column)
        assert (outcome.code, outcome.out) == (2, "")
        assert f"--{column} '{column}'" in outcome.err
    assert headeval("report", "s.parquet", f"--{column}", column).code == 0


def test_the_class_that_a_head_passes_cannot_be_called_positive(
    headeval: Headeval, fitted: Path, make_table: MakeTable
) -> None:
    data = make_table("new.parquet", seed=3)
    outcome = headeval("report", data, "--head", fitted, "--positive", "safe")
    assert (outcome.code, outcome.out) == (3, "")
    assert "'unsafe'" in outcome.err
    assert headeval("report", data, "--head", fitted, "--positive", "unsafe").code == 0


def seen(headeval: Headeval, *arguments: object) -> tuple[str | None, dict[str, Any] | None]:
    """`in_sample` and `rows_seen` of a report, after a look at the words of its table."""
    found = report(headeval, *arguments)
    table = headeval("report", *arguments).out
    assert ("CAUTION: IN-SAMPLE" in table) == (found["in_sample"] is not None)
    assert ("IN-SAMPLE" in found["how"]) == (found["in_sample"] is not None)
    return found["in_sample"], found["rows_seen"]


def counted(n: int, fitted: int, calibrated: int = 0) -> dict[str, Any]:
    return {
        "n": n,
        "fitted": fitted,
        "calibrated": calibrated,
        "either": max(fitted, calibrated),
        "checked": n,
        "exact": True,
    }


@pytest.mark.parametrize(
    ("old", "new", "in_sample"),
    [(120, 0, "fitted"), (119, 0, "fitted"), (1, 0, "fitted"), (60, 60, "fitted"), (59, 61, None), (0, 80, None)],
)
def test_rows_of_the_fit_are_counted_among_others(
    headeval: Headeval, fitted: Path, make_table: MakeTable, tmp_path: Path, old: int, new: int, in_sample: str | None
) -> None:
    train, other = (
        pq.read_table(make_table(name, seed=seed)) for name, seed in (("train.parquet", 0), ("n.parquet", 5))
    )
    pq.write_table(pa.concat_tables([other.slice(0, new), train.slice(120 - old)]), tmp_path / "mixed.parquet")
    assert seen(headeval, "mixed.parquet", "--head", fitted) == (in_sample, counted(old + new, old))


def test_rows_are_known_in_another_order_and_with_other_labels(
    headeval: Headeval, fitted: Path, tmp_path: Path
) -> None:
    order = np.random.default_rng(1).permutation(120)
    table = pq.read_table(tmp_path / "train.parquet").take(pa.array(order))
    swapped = ["safe" if label == "unsafe" else "unsafe" for label in table["label"].to_pylist()]
    table = table.set_column(table.column_names.index("label"), "label", pa.array(swapped))
    pq.write_table(table, tmp_path / "relabelled.parquet")
    assert seen(headeval, "relabelled.parquet", "--head", fitted) == ("fitted", counted(120, 120))


def test_a_score_file_says_whether_its_rows_made_the_head(
    headeval: Headeval, fitted: Path, make_table: MakeTable, tmp_path: Path
) -> None:
    make_table("new.parquet", n=80, seed=5)
    headeval("score", "train.parquet", "--head", fitted, "-o", "old-scores.parquet")
    headeval("score", "new.parquet", "--head", fitted, "-o", "new-scores.parquet")
    assert seen(headeval, "old-scores.parquet") == ("fitted", counted(120, 120))
    assert seen(headeval, "new-scores.parquet") == (None, counted(80, 0))
    assert seen(headeval, "new-scores.parquet", "old-scores.parquet") == ("fitted", counted(200, 120))


def test_a_calibrated_score_file_says_what_its_rows_were_used_for(
    headeval: Headeval, fitted: Path, make_table: MakeTable
) -> None:
    make_table("new.parquet", n=80, seed=5)
    for name in ("train", "new"):
        headeval("score", f"{name}.parquet", "--head", fitted, "-o", f"{name}-scores.parquet")
        assert headeval("calibrate", f"{name}-scores.parquet", "--method", "platt").code == 0
    assert seen(headeval, "new-scores-calibrated.parquet") == ("calibrated", counted(80, 0, 80))
    assert seen(headeval, "train-scores-calibrated.parquet") == ("fitted", counted(120, 120, 120))


def test_a_calibrated_head_knows_the_rows_of_its_calibration(
    headeval: Headeval, fitted: Path, make_table: MakeTable
) -> None:
    data = make_table("calibration.parquet", n=200, seed=7)
    headeval("calibrate", data, "--head", fitted, "-o", "calibrated.json")
    assert seen(headeval, data, "--head", "calibrated.json") == ("calibrated", counted(200, 0, 200))
    assert seen(headeval, "train.parquet", "--head", "calibrated.json") == ("fitted", counted(120, 120))


@pytest.mark.parametrize(("old", "new", "in_sample"), [(3000, 0, "fitted"), (1500, 4500, None), (0, 800, None)])
def test_of_many_rows_a_sample_tells_about_how_many_were_seen(
    headeval: Headeval, make_table: MakeTable, tmp_path: Path, old: int, new: int, in_sample: str | None
) -> None:
    train = pq.read_table(make_table(n=3000))
    assert headeval("fit", "train.parquet", "--folds", 0).code == 0
    other = pq.read_table(make_table("new.parquet", n=5000, seed=5))
    pq.write_table(pa.concat_tables([other.slice(0, new), train.slice(0, old)]), tmp_path / "mixed.parquet")
    found, rows = seen(headeval, "mixed.parquet", "--head", "linear-head.json")
    assert rows is not None
    assert (found, rows["n"], rows["exact"]) == (in_sample, old + new, False)
    assert rows["fitted"] == pytest.approx(old, rel=0.1)  # 1,000 kept of 3,000: the standard error is 3 % of 1,500


def test_eval_on_some_rows_of_the_fit_is_called_in_sample(
    headeval: Headeval, make_table: MakeTable, tmp_path: Path
) -> None:
    data = make_table()
    pq.write_table(pq.read_table(data).slice(30, 70), tmp_path / "some.parquet")
    assert "CAUTION: IN-SAMPLE" in headeval("fit", data, "--eval", "some.parquet", "-o", "a.json").out
    new = make_table("new.parquet", seed=5)
    assert "IN-SAMPLE" not in headeval("fit", data, "--eval", new, "-o", "b.json").out


def report_json(headeval: Headeval, *arguments: object) -> dict[str, Any]:
    outcome = headeval("report", *arguments, "--format", "json")
    assert outcome.code == 0, outcome.err
    found: dict[str, Any] = json.loads(outcome.out)
    return found


def test_what_a_score_file_says_of_all_its_rows_is_not_said_of_some(
    headeval: Headeval, make_table: MakeTable, tmp_path: Path
) -> None:
    # 120 rows of the fit without a label, and 40 new ones with: the labelled ones have not been seen.
    headeval("fit", make_table())
    old, new = pq.read_table(tmp_path / "train.parquet"), pq.read_table(make_table("new.parquet", n=40, seed=8))
    nameless = old.set_column(2, "label", pa.nulls(120, pa.string()))
    pq.write_table(pa.concat_tables([nameless, new]), tmp_path / "mixed.parquet")
    headeval("score", "mixed.parquet", "-o", "mixed-scores.parquet")
    assert headeval("report", "mixed-scores.parquet").code == 3
    found = report_json(headeval, "mixed-scores.parquet", "--drop-unlabelled")
    assert (found["in_sample"], found["rows_seen"], found["n"]) == (None, None, 40)
    assert (
        report_json(headeval, "mixed.parquet", "--head", "linear-head.json", "--drop-unlabelled")["rows_seen"]["fitted"]
        == 0
    )


def test_a_column_that_the_file_does_not_declare_has_its_own_history(
    headeval: Headeval, make_table: MakeTable, tmp_path: Path
) -> None:
    headeval("fit", make_table(rival=pa.array(np.linspace(0.01, 0.99, 120))), "--threshold", 0.3)
    headeval("score", "train.parquet", "-o", "scores.parquet")
    assert report_json(headeval, "scores.parquet")["in_sample"] == "fitted"
    assert report_json(headeval, "scores.parquet", "--prob", "rival")["rows_seen"] is None
    headeval("calibrate", "scores.parquet", "--logit", "logit", "-o", "calibrated.parquet")
    assert report_json(headeval, "calibrated.parquet")["rows_seen"]["calibrated"] == 120
    before = report_json(headeval, "calibrated.parquet", "--logit", "logit")
    assert before["rows_seen"] is None
    assert before["threshold"] == 0.3  # as the head that gave the logits has it, also after the calibration
    assert before["provenance"]["threshold_from"] == "score file"


def test_scoring_again_forgets_what_was_said_of_other_columns(
    headeval: Headeval, make_table: MakeTable, tmp_path: Path
) -> None:
    rng = np.random.default_rng(4)
    headeval("fit", make_table(s=pa.array(rng.normal(size=120))))
    head = json.loads((tmp_path / "linear-head.json").read_text(encoding="utf-8"))
    del head["metrics"]
    (tmp_path / "stranger.json").write_text(json.dumps(head), encoding="utf-8")
    labels = pq.read_table(tmp_path / "train.parquet")["label"].to_pylist()
    noisy = np.where(np.array(labels) == "unsafe", 1.0, -1.0) + rng.normal(size=120) * 2
    make_table(s=pa.array(noisy))
    assert headeval("calibrate", "train.parquet", "--logit", "s", "-o", "c.parquet", "--method", "platt").code == 0
    assert headeval("score", "c.parquet", "--head", "stranger.json", "-o", "d.parquet").code == 0
    assert report_json(headeval, "d.parquet")["rows_seen"] is None


def test_numbered_columns_that_are_labels_or_weights_are_no_second_embedding(
    headeval: Headeval, tmp_path: Path
) -> None:
    rng = np.random.default_rng(2)
    content: dict[str, Any] = {f"e{i}": rng.normal(size=80) for i in range(4)}
    content |= {"y1": rng.integers(0, 2, 80), "y2": rng.uniform(1, 2, 80)}
    pq.write_table(pa.table(content), tmp_path / "wide.parquet")
    outcome = headeval("fit", "wide.parquet", "--label", "y1", "--weight", "y2")
    assert outcome.code == 0, outcome.err
    assert "e0 … e3" in outcome.out


@pytest.mark.parametrize(
    "arguments",
    [
        ["fit", "train.parquet", "-o", "train.parquet"],
        ["fit", "train.parquet", "--eval", "other.parquet", "-o", "other.parquet"],
        ["calibrate", "train.parquet", "--head", "linear-head.json", "-o", "train.parquet"],
        ["score", "train.parquet", "-o", "train.parquet"],
        ["report", "train.parquet", "--head", "linear-head.json", "--html", "train.parquet"],
        ["report", "train.parquet", "--head", "linear-head.json", "--html", "linear-head.json"],
    ],
)
def test_no_command_replaces_its_own_input_even_with_force(
    headeval: Headeval, make_table: MakeTable, tmp_path: Path, arguments: list[str]
) -> None:
    headeval("fit", make_table())
    make_table("other.parquet", seed=5)
    before = {path: path.read_bytes() for path in tmp_path.iterdir()}
    outcome = headeval(*arguments, "--force")
    assert outcome.code == 6
    assert "one of the inputs" in outcome.err
    assert {path: path.read_bytes() for path in tmp_path.iterdir()} == before


def test_a_calibrated_head_may_replace_its_head_with_force(headeval: Headeval, make_table: MakeTable) -> None:
    headeval("fit", make_table())
    data = make_table("calibration.parquet", seed=6, n=200)
    arguments = ("calibrate", data, "--head", "linear-head.json", "-o", "linear-head.json")
    assert headeval(*arguments).code == 6
    assert headeval(*arguments, "--force").code == 0


def test_score_files_that_disagree_are_told_apart_from_files_that_say_nothing(
    headeval: Headeval, make_table: MakeTable, tmp_path: Path
) -> None:
    data = make_table()
    for threshold in ("0.3", "0.6"):
        headeval("fit", data, "--threshold", threshold, "-o", f"{threshold}.json")
        headeval("score", data, "--head", f"{threshold}.json", "-o", f"s{threshold}.parquet")
    outcome = headeval("report", "s0.3.parquet", "s0.6.parquet")
    assert outcome.code == 2
    assert "declare different scores" in outcome.err


def test_rows_of_the_fit_are_recognised_in_a_csv_copy(headeval: Headeval) -> None:
    sample = Path(__file__).parents[2] / "sample_data"
    headeval("fit", sample / "moderation_train.parquet", "--folds", 0)
    found = report_json(headeval, sample / "moderation_small.csv", "--head", "linear-head.json")
    assert found["in_sample"] == "fitted"
    assert found["rows_seen"]["fitted"] == found["n"] == 120  # they are its first rows


def test_a_score_file_that_was_cut_since_is_not_believed(
    headeval: Headeval, make_table: MakeTable, tmp_path: Path
) -> None:
    # Another program keeps the metadata, which counted 120 rows, and 30 of the rows.
    headeval("fit", make_table())
    headeval("score", "train.parquet", "-o", "scores.parquet")
    whole = pq.read_table(tmp_path / "scores.parquet")
    kept = pq.ParquetFile(tmp_path / "scores.parquet").metadata.metadata
    cut = whole.slice(0, 30).replace_schema_metadata({key: kept[key] for key in kept if key != b"ARROW:schema"})
    pq.write_table(cut, tmp_path / "cut.parquet")
    assert report_json(headeval, "scores.parquet")["rows_seen"]["n"] == 120
    assert report_json(headeval, "cut.parquet")["rows_seen"] is None


# --- the options of `report` on how sure its numbers are, and on what stands beside them


@pytest.fixture
def judged(tmp_path: Path) -> tuple[Path, Floats, Floats, Flags]:
    """240 rows with the logits of two classifiers, weights, groups of two, names and two places."""
    rng = np.random.default_rng(21)
    z = rng.normal(size=240) * 2
    y = rng.random(240) < sigmoid(z)
    old = z + rng.normal(size=240)
    columns = {
        "z": z,
        "old": old,
        "old_p": sigmoid(old),
        "label": y.astype(int),
        "w": rng.uniform(0.1, 3, 240),
        "pair": np.arange(240) // 2,
        "place": ["here", "there", "there"] * 80,
        "name": [f"row {i}" for i in range(240)],
    }
    pq.write_table(pa.table(columns), tmp_path / "judged.parquet")
    return tmp_path / "judged.parquet", z, old, y


Judged = tuple[Path, Floats, Floats, Flags]


def ends(interval: dict[str, float]) -> tuple[float, float]:
    return interval["lower"], interval["upper"]


def test_the_confidence_is_that_of_every_interval(headeval: Headeval, judged: Judged) -> None:
    data, z, _, y = judged
    options = ("--logit", "z", "--baseline-logit", "old", "--prevalence", 0.1)
    wide = report(headeval, data, *options)
    found = report(headeval, data, *options, "--confidence", 0.6)
    hits, n = int((y & (z >= 0)).sum()), int(y.sum())
    for key, method in (("intervals", "wilson"), ("guarantees", "exact")):
        expected = binomtest(hits, n).proportion_ci(0.6, method=method)
        assert ends(found[key]["recall"]) == pytest.approx((expected.low, expected.high), abs=1e-9)
    for part in (found, found["comparison"]["baseline_evaluation"]):
        assert part["confidence"] == 0.6
    assert wide["confidence"] == 0.95
    pairs = [(found["intervals"][name], wide["intervals"][name]) for name in wide["intervals"]]
    pairs += [(found["traffic"]["precision"]["interval"], wide["traffic"]["precision"]["interval"])]
    differences = [part["comparison"]["differences"] for part in (found, wide)]
    pairs += [(differences[0][name]["interval"], differences[1][name]["interval"]) for name in differences[1]]
    for narrow, broad in pairs:
        assert narrow["upper"] - narrow["lower"] < broad["upper"] - broad["lower"]
    assert "60 % interval" in headeval("report", data, *options, "--confidence", 0.6).out


def test_resamples_and_seed_draw_the_bootstrap(headeval: Headeval, judged: Judged) -> None:
    def drawn(*options: object) -> Any:
        return report(headeval, judged[0], "--logit", "z", "--baseline-logit", "old", *options)

    assert drawn()["resampling"] == {"n_resamples": 1000, "seed": 0, "grouped": False}
    first, again, other = drawn("--resamples", 50), drawn("--resamples", 50), drawn("--resamples", 50, "--seed", 7)
    assert first == again
    for part in (other, other["comparison"]["baseline_evaluation"]):
        assert part["resampling"] == {"n_resamples": 50, "seed": 7, "grouped": False}
    assert first["metrics"] == {**other["metrics"], "ece_corrected": first["metrics"]["ece_corrected"]}
    for pick in (
        lambda part: part["intervals"]["ap"],
        lambda part: part["intervals"]["ece"],
        lambda part: part["comparison"]["differences"]["brier"]["interval"],
        lambda part: part["calibration"][0]["ece_if_calibrated"],
    ):
        assert pick(first) != pick(other)
    none = drawn("--resamples", 0)
    assert none["resampling"] is None
    assert "ap" not in none["intervals"]
    assert none["comparison"]["differences"]["brier"]["interval"] is None
    assert none["intervals"]["auc"] == first["intervals"]["auc"]


def test_weights_count_in_every_measure_of_a_report(headeval: Headeval, judged: Judged) -> None:
    data, z, old, y = judged
    w = pq.read_table(data)["w"].to_numpy()
    options = ("--logit", "z", "--weight", "w", "--baseline-logit", "old", "--by", "place")
    found = report(headeval, data, *options)
    assert (found["weighted"], found["provenance"]["weights"], found["n"]) == (True, "w", 240)

    def expected(rows: Any, scores: Floats) -> dict[str, float]:
        truth, weights, p = y[rows], w[rows], sigmoid(scores[rows])
        return {
            "auc": sk.roc_auc_score(truth, p, sample_weight=weights),
            "ap": sk.average_precision_score(truth, p, sample_weight=weights),
            "brier": sk.brier_score_loss(truth, p, sample_weight=weights),
            "log_loss": sk.log_loss(truth, p, sample_weight=weights),
            "recall": sk.recall_score(truth, p >= 0.5, sample_weight=weights),
            "precision": sk.precision_score(truth, p >= 0.5, sample_weight=weights),
        }

    parts = [(found, slice(None), z), (found["comparison"]["baseline_evaluation"], slice(None), old)]
    places = np.array(pq.read_table(data)["place"].to_pylist())
    parts += [(part, places == part["value"], z) for part in found["slices"]]
    for part, rows, scores in parts:
        assert {name: part["metrics"][name] for name in expected(rows, scores)} == pytest.approx(
            expected(rows, scores), abs=1e-12
        )
    plain = report(headeval, data, "--logit", "z")
    assert plain["metrics"]["auc"] != pytest.approx(found["metrics"]["auc"], abs=1e-4)
    assert "rates are weighted, the counts are rows" in headeval("report", data, *options).out


def test_groups_widen_the_intervals_and_change_no_measure(headeval: Headeval, judged: Judged, tmp_path: Path) -> None:
    table = pq.read_table(judged[0])
    pq.write_table(pa.concat_tables([table] * 3), tmp_path / "copies.parquet")
    options = ("copies.parquet", "--logit", "z", "--baseline-logit", "old")
    plain, grouped = report(headeval, *options), report(headeval, *options, "--group", "name")
    assert grouped["provenance"]["groups"] == "name"
    assert (plain["resampling"]["grouped"], grouped["resampling"]["grouped"]) == (False, True)
    assert {**plain["metrics"], "ece_corrected": 0} == {**grouped["metrics"], "ece_corrected": 0}
    pairs = [(part["intervals"][name], name) for name in ("auc", "ap", "recall", "fpr") for part in (plain, grouped)]
    pairs += [(part["comparison"]["differences"]["auc"]["interval"], "difference") for part in (plain, grouped)]
    for (narrow, name), (wide, _) in zip(pairs[::2], pairs[1::2], strict=True):
        # The square root of three copies is 1.73.
        assert wide["upper"] - wide["lower"] > 1.4 * (narrow["upper"] - narrow["lower"]), name
    assert grouped["comparison"]["mcnemar_p"] is None


def test_prevalence_and_rows_a_day_are_projected(headeval: Headeval, judged: Judged) -> None:
    data, z, _, y = judged
    counted = rates(y, sigmoid(z), 0.5)
    found = report(headeval, data, "--logit", "z", "--prevalence", 0.002, "--per-day", 50_000)["traffic"]
    alerts = 100 * counted["recall"] + 49_900 * counted["fpr"]
    assert found["alerts"]["value"] == pytest.approx(alerts)
    assert found["misses"]["value"] == pytest.approx(100 * (1 - counted["recall"]))
    assert found["precision"]["value"] == pytest.approx(100 * counted["recall"] / alerts)
    alone = report(headeval, data, "--logit", "z", "--prevalence", 0.002)["traffic"]
    assert (alone["precision"], alone["alerts"]["value"], alone["per_day"]) == (found["precision"], None, None)
    assert report(headeval, data, "--logit", "z")["traffic"] is None
    out = headeval("report", data, "--logit", "z", "--prevalence", 0.002, "--per-day", 50_000).out
    assert "at a prevalence of 0.2 % and 50,000 rows a day" in out
    assert re.search(rf"^ +alerts +{alerts:,.0f} ", out, flags=re.MULTILINE)


@pytest.mark.parametrize(("option", "column"), [("--baseline-logit", "old"), ("--baseline-prob", "old_p")])
def test_a_baseline_column_is_compared_row_by_row(headeval: Headeval, judged: Judged, option: str, column: str) -> None:
    data, z, old, y = judged
    found = report(headeval, data, "--logit", "z", option, column, "--threshold", 0.6)["comparison"]
    assert found["baseline"] == column
    assert found["baseline_evaluation"]["threshold"] == 0.6
    p, q = sigmoid(z), sigmoid(old)
    differences = {name: part["value"] for name, part in found["differences"].items()}
    assert differences["auc"] == pytest.approx(sk.roc_auc_score(y, p) - sk.roc_auc_score(y, q), abs=1e-12)
    assert differences["brier"] == pytest.approx(sk.brier_score_loss(y, p) - sk.brier_score_loss(y, q), abs=1e-12)
    new, was = (values >= 0.6 for values in (p, q))
    assert differences["fpr"] == pytest.approx(new[~y].mean() - was[~y].mean(), abs=1e-12)
    assert (found["newly_flagged"], found["no_longer_flagged"]) == ((new & ~was).sum(), (was & ~new).sum())
    right, wrong = int(((new == y) & (was != y)).sum()), int(((new != y) & (was == y)).sum())
    assert (found["only_new_right"], found["only_baseline_right"]) == (right, wrong)
    assert found["mcnemar_p"] == pytest.approx(binomtest(right, right + wrong).pvalue, abs=1e-12)


def test_a_requirement_on_a_difference_is_held_against_the_baseline(headeval: Headeval, judged: Judged) -> None:
    data, z, old, y = judged
    gain = float(sk.roc_auc_score(y, z) - sk.roc_auc_score(y, old))
    for bound, code in ((gain - 1e-9, 0), (gain + 1e-9, 1)):
        asked = ("--baseline-logit", "old", "--require", f"auc.diff>={bound!r}")
        assert headeval("report", data, "--logit", "z", *asked).code == code


def test_a_requirement_on_a_bound_is_held_against_the_exact_interval(headeval: Headeval, judged: Judged) -> None:
    data, z, _, y = judged
    flagged = binomtest(int((y & (z >= 0)).sum()), int(y.sum()))
    exact, wilson = (float(flagged.proportion_ci(0.95, method=method).low) for method in ("exact", "wilson"))
    assert exact < wilson - 1e-4
    for bound, code in ((exact - 1e-9, 0), (exact + 1e-9, 1), (wilson - 1e-9, 1)):
        assert headeval("report", data, "--logit", "z", "--require", f"recall.lower>={bound!r}").code == code


def test_the_reference_is_what_scores_are_compared_with(headeval: Headeval, judged: Judged, tmp_path: Path) -> None:
    data, z, _, y = judged
    other = np.random.default_rng(5).normal(size=300)
    pq.write_table(pa.table({"z": other, "label": [0, 1] * 150}), tmp_path / "reference.parquet")
    found = report(headeval, data, "--logit", "z", "--reference", "reference.parquet")["drift"]
    expected = ks_2samp(z, other)
    assert found["ks"]["statistic"] == pytest.approx(expected.statistic, abs=1e-12)
    assert found["ks"]["location"] == expected.statistic_location
    assert found["prevalence"]["difference"] == pytest.approx(y.mean() - 0.5, abs=1e-12)
    assert found["prevalence"]["interval"]["confidence"] == 0.95
    options = ("--reference", "reference.parquet", "--confidence", 0.6)
    assert report(headeval, data, "--logit", "z", *options)["drift"]["prevalence"]["interval"]["confidence"] == 0.6
    both = report(headeval, data, "--logit", "z", "--reference", "reference.parquet", "--reference", data)["drift"]
    assert both["reference_n"] == 540
    assert report(headeval, data, "--logit", "z")["drift"] is None


@pytest.mark.parametrize(("options", "named"), [((), ["100", "101"]), (("--id", "key"), ["k0", "k1"])])
def test_rows_that_the_reference_holds_are_named_by_their_id(
    headeval: Headeval, fitted: Path, make_table: MakeTable, tmp_path: Path, options: tuple[str, ...], named: list[str]
) -> None:
    test = pq.read_table(make_table("test.parquet", seed=1, id=pa.array(range(100, 220))))
    test = test.append_column("key", pa.array([f"k{i}" for i in range(120)]))
    pq.write_table(test, tmp_path / "test.parquet")
    pq.write_table(test.slice(0, 2), tmp_path / "few.parquet")
    found = report(headeval, "test.parquet", "--head", fitted, "--reference", "few.parquet", *options)["drift"]
    assert found["leakage"]["exact"] == 2
    exact = [example for example in found["leakage"]["examples"] if example["exact"]]
    assert [example["row"] for example in exact] == [example["reference_row"] for example in exact] == named


def test_files_beside_stdout_show_the_same_numbers(headeval: Headeval, judged: Judged, tmp_path: Path) -> None:
    data, z, _, y = judged
    files = ("--html", "page.html", "--card", "card.md", "--junit", "gates.xml", "--plots", "charts")
    outcome = headeval("report", data, "--logit", "z", "--require", "auc>=0.5", *files, "--format", "json")
    assert outcome.code == 0, outcome.err
    auc = json.loads(outcome.out)["metrics"]["auc"]
    assert auc == pytest.approx(sk.roc_auc_score(y, z), abs=1e-12)
    for name, shown_there in (("page.html", f"{auc:.4f}"), ("card.md", f"{auc:.4f}"), ("gates.xml", repr(auc))):
        assert shown_there in (tmp_path / name).read_text(encoding="utf-8"), name
    charts = {path.name for path in (tmp_path / "charts").iterdir()}
    assert charts == {f"{name}.{form}" for name in ("roc", "pr", "reliability", "histogram") for form in ("svg", "png")}
    again = headeval("report", data, "--logit", "z", "--plots", "charts")
    assert (again.code, "--force" in again.err) == (6, True)
