"""Small data on which fits and calibrations of others went wrong: the right numbers, or error 5 and no file."""

import json
import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

import mpmath
import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from headeval import logistic_regression_fit
from headeval.core.logistic import fit_logistic
from headeval.core.newton import Reason
from headeval.core.scaling import ScalingError, fit_platt_scaling, fit_temperature_scaling

Headeval = Callable[..., Any]
SOLVED = 1e-9


def parquet(path: str, **columns: Any) -> str:
    pq.write_table(pa.table(columns), path)
    return path


def column(*values: float) -> pa.Array:
    """Embeddings of one dimension."""
    return pa.FixedSizeListArray.from_arrays(pa.array(values), 1)


def refused(outcome: Any, output: str, *words: str) -> None:
    """Error 5, in a line or two, and no file."""
    assert outcome.code == 5, outcome
    assert outcome.out == ""
    assert len(outcome.err.splitlines()) <= 2
    for word in words:
        assert word in outcome.err
    assert not Path(output).exists()


# --- Platt on scores 1e5·y + noise: converges, rank order kept, or a clear error; logits passed as probabilities are
# --- refused because they leave [0, 1]


def far_apart(noise: float) -> tuple[np.ndarray, np.ndarray]:
    """Scores 1e5·y + noise of 300 rows."""
    rng = np.random.default_rng(5)
    y = rng.integers(0, 2, 300)
    return 1e5 * y + noise * rng.normal(size=300), y


def test_platt_on_scores_around_1e5_is_the_maximum_of_the_likelihood_and_keeps_their_order() -> None:
    scores, y = far_apart(1e5)
    found = fit_platt_scaling(scores, y)
    # The likelihood is concave, and both its derivatives vanish at its maximum alone.
    residuals = 1 / (1 + np.exp(-(found.slope * scores + found.intercept))) - y
    assert [residuals.sum(), residuals @ scores / 1e5] == pytest.approx([0, 0], abs=SOLVED)
    assert np.array_equal(np.argsort(found.apply(scores), kind="stable"), np.argsort(scores, kind="stable"))


def test_the_command_calibrates_scores_around_1e5_and_keeps_their_order(headeval: Headeval) -> None:
    scores, y = far_apart(1e5)
    data = parquet("s.parquet", s=scores, label=y)
    outcome = headeval("calibrate", data, "--logit", "s", "--method", "platt", "-o", "out.parquet", "--quiet")
    assert outcome.code == 0, outcome.err
    probs = np.array(pq.read_table("out.parquet")["calibrated_prob"])
    assert np.array_equal(np.argsort(probs, kind="stable"), np.argsort(scores, kind="stable"))
    assert probs.mean() == pytest.approx(y.mean(), abs=SOLVED)  # what an intercept makes of the likelihood


def test_scores_that_1e5_separates_are_refused(headeval: Headeval) -> None:
    scores, y = far_apart(1.0)
    data = parquet("s.parquet", s=scores, label=y)
    with pytest.raises(ScalingError, match="separate the labels perfectly"):
        fit_platt_scaling(scores, y)
    outcome = headeval("calibrate", data, "--logit", "s", "--method", "platt", "-o", "out.parquet")
    refused(outcome, "out.parquet", "the scores separate the labels perfectly")


def test_logits_passed_as_probabilities_are_refused_as_they_leave_0_to_1(headeval: Headeval) -> None:
    data = parquet("s.parquet", s=[0.5, 2.0, -1.0, 1.0], q=[0.5, 0.2, 0.1, 0.9], label=[0, 1, 0, 1])
    for arguments in (
        ("report", data, "--prob", "s"),
        ("report", data, "--prob", "q", "--baseline-prob", "s"),
        ("calibrate", data, "--prob", "s", "-o", "out.parquet"),
    ):
        outcome = headeval(*arguments)
        assert outcome.code == 3
        assert "column 's' is no probability in [0, 1] in rows 2 and 3 ('2.0', '-1.0')" in outcome.err
        assert "if it holds logits" in outcome.err
        assert not Path("out.parquet").exists()


# --- calibration data on which the head is worse than chance, or which it separates perfectly: error 5, no file


@pytest.fixture
def head(tmp_path: Path, headeval: Headeval) -> str:
    """A head whose logit is 4·u₁, for embeddings of two numbers."""
    content = {"embedding_model": "m", "dim": 2, "classes": ["0", "1"], "W": [[0, 0], [4, 0]], "b": [0, 0]}
    (tmp_path / "head.json").write_text(json.dumps(content | {"threshold": 0.5}))
    return "head.json"


def circle(labels: Callable[[np.ndarray, np.random.Generator], Any], *, n: int = 60) -> dict[str, Any]:
    """Unit vectors all around the circle, labelled by their first coordinate."""
    rng = np.random.default_rng(2)
    angles = (np.arange(n) + 0.5) * 2 * np.pi / n
    u = np.column_stack([np.cos(angles), np.sin(angles)])
    flat = pa.FixedSizeListArray.from_arrays(pa.array(u.ravel()), 2)
    return {"embedding": flat, "label": labels(u[:, 0], rng).astype(int), "s": 4 * u[:, 0]}


def worse_than_chance(first: np.ndarray, rng: np.random.Generator) -> Any:
    return rng.random(len(first)) < 1 / (1 + np.exp(3 * first))


def separated(first: np.ndarray, rng: np.random.Generator) -> Any:
    return first > 0


def separated_the_wrong_way(first: np.ndarray, rng: np.random.Generator) -> Any:
    return first < 0


@pytest.mark.parametrize("method", ["temperature", "platt"])
@pytest.mark.parametrize(
    ("labels", "said"),
    [
        (worse_than_chance, "rank no better than chance"),
        (separated, "separate the labels perfectly"),
        (separated_the_wrong_way, "rank no better than chance|every positive scores below every negative"),
    ],
)
def test_no_calibration_is_made_of_what_ranks_worse_than_chance_or_perfectly(
    headeval: Headeval, head: str, method: str, labels: Any, said: str
) -> None:
    columns = circle(labels)
    with pytest.raises(ScalingError, match=said):
        (fit_platt_scaling if method == "platt" else fit_temperature_scaling)(columns["s"], columns["label"])
    data = parquet("c.parquet", **columns)
    for source in (("--head", head), ("--logit", "s")):
        output = "out.json" if source[0] == "--head" else "out.parquet"
        outcome = headeval("calibrate", data, *source, "--method", method, "-o", output)
        refused(outcome, output, f"no {method} scaling was written")
        assert re.search(said, outcome.err)
        Path(output).write_bytes(b"an older calibration")
        assert headeval("calibrate", data, *source, "--method", method, "-o", output, "--force").code == 5
        assert Path(output).read_bytes() == b"an older calibration"
        Path(output).unlink()


# --- two rows, one feature, 0 and 1e100: an answer or a clear error within a second


def test_two_rows_of_0_and_1e100_have_a_head(headeval: Headeval) -> None:
    """As unit vectors they are 0 and 1: σ(b) + σ(w + b) = 1 gives b = −w/2, and then w = σ(−w/2)."""
    w = float(mpmath.findroot(lambda x: x - 1 / (1 + mpmath.exp(x / 2)), 0.4))
    data = parquet("two.parquet", embedding=column(0.0, 1e100), label=[0, 1])
    outcome = headeval("fit", data, "--folds", "0", "-o", "h.json", "--quiet")
    assert outcome.code == 0, outcome.err
    found = json.loads(Path("h.json").read_text())
    assert found["W"][1][0] - found["W"][0][0] == pytest.approx(w, abs=SOLVED)
    assert found["b"][1] - found["b"][0] == pytest.approx(-w / 2, abs=SOLVED)


def test_two_rows_of_0_and_1e100_without_a_penalty_or_with_folds_are_clear_errors(headeval: Headeval) -> None:
    data = parquet("two.parquet", embedding=column(0.0, 1e100), label=[0, 1])
    refused(headeval("fit", data, "--folds", "0", "--l2", "0", "-o", "h.json"), "h.json", "perfectly separated")
    outcome = headeval("fit", data, "-o", "h.json")
    assert (outcome.code, Path("h.json").exists()) == (3, False)
    assert "5 folds need at least 5 rows of each class, the smaller has 1" in outcome.err


def test_the_function_takes_a_feature_of_1e100_as_it_is() -> None:
    """It decides both rows rightly, whatever the number of its steps."""
    for l2 in (0.0, 1.0):
        w = logistic_regression_fit([[0.0], [1e100]], [0, 1], l2, 50)
        assert np.isfinite(w).all()
        assert w[1] < 0 < w[0] * 1e100 + w[1]


# --- one column that splits the classes with l2 = 0: refused as separable; with l2 > 0 fine

SPLIT = np.array([-3.0, -1.0, -0.5, 0.25, 2.0, 7.0] * 5)
SIDES = [0, 0, 0, 1, 1, 1] * 5


def beside(other: np.ndarray) -> pa.Array:
    """The column that splits the classes, and another beside it."""
    return pa.FixedSizeListArray.from_arrays(pa.array(np.column_stack([SPLIT, other]).ravel()), 2)


@pytest.mark.parametrize("way", [("--l2", "0"), ("--l2", "0", "--memory", "1MB"), ("--l2", "1e-300")])
def test_a_column_that_splits_the_classes_is_refused_without_a_penalty(headeval: Headeval, way: Any) -> None:
    said = ("the classes are perfectly separated and l2 is 0", "use a larger l2")
    data = parquet("alone.parquet", embedding=column(*SPLIT), label=SIDES)
    refused(headeval("fit", data, *way, "--folds", "0", "-o", "h.json"), "h.json", *said)
    other = np.random.default_rng(1).normal(size=SPLIT.size)
    data = parquet("beside.parquet", embedding=beside(other), label=SIDES)
    refused(headeval("fit", data, *way, "-o", "h.json"), "h.json", *said)


def test_the_fit_of_a_column_that_splits_the_classes_knows_that_it_has_not_converged() -> None:
    found = fit_logistic(SPLIT[:, None], SIDES, l2=0.0, iters=200)
    assert (found.converged, found.reason) == (False, Reason.SEPARABLE)
    assert fit_logistic(SPLIT[:, None], SIDES, l2=1.0, iters=200).converged


@pytest.mark.parametrize("way", [(), ("--memory", "1MB")])
def test_a_column_that_splits_the_classes_has_a_head_with_a_penalty(headeval: Headeval, way: Any) -> None:
    """As unit vectors the rows are −1 and 1: the intercept is 0, and 30·σ(−w) = l2·w."""
    data = parquet("split.parquet", embedding=column(*SPLIT), label=SIDES)
    for l2, near in ((1.0, 3.0), (1e-6, 14.0)):
        w = float(mpmath.findroot(lambda x, l2=l2: 30 / (1 + mpmath.exp(x)) - l2 * x, near))
        outcome = headeval("fit", data, "--l2", l2, "--folds", "0", "-o", "h.json", "--force", "--quiet", *way)
        assert outcome.code == 0, outcome.err
        found = json.loads(Path("h.json").read_text())
        assert found["W"][1][0] - found["W"][0][0] == pytest.approx(w, rel=1e-6)
        assert found["b"][1] - found["b"][0] == pytest.approx(0.0, abs=1e-6)


def test_one_column_of_unit_vectors_has_too_few_different_rows_for_folds(headeval: Headeval) -> None:
    data = parquet("split.parquet", embedding=column(*SPLIT), label=SIDES)
    outcome = headeval("fit", data, "-o", "h.json")
    assert (outcome.code, Path("h.json").exists()) == (3, False)
    assert "there are fewer groups than the 5 folds: 4, as rows with the same embedding are one" in outcome.err
