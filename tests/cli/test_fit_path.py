"""`headeval fit --l2`: one penalty, several, or a grid; what is taken, shown and kept."""

import json
import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

from headeval.cli import fit_options
from headeval.errors import UsageError
from headeval.files.heads import read_head

Headeval = Callable[..., Any]
AUTO_GRID = [0.01, 0.03, 0.1, 0.3, 1, 3, 10, 30, 100]


def head_of(tmp_path: Path, name: str = "linear-head.json") -> dict[str, Any]:
    head: dict[str, Any] = json.loads((tmp_path / name).read_text(encoding="utf-8"))
    return head


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("1", (1.0,)),
        ("0", (0.0,)),
        ("0.1,1,10", (0.1, 1.0, 10.0)),
        (" 1 , 2", (1.0, 2.0)),
        ("AUTO", None),
        ("1e-3", (1e-3,)),
    ],
)
def test_penalties_are_numbers_or_a_grid(text: str, expected: tuple[float, ...] | None) -> None:
    assert fit_options.penalties(text) == expected


@pytest.mark.parametrize(
    "text", ["", "x", "1,", "1,x", "nan", "inf", "-1", "1,-1", "0,1", "1,0", "1,1", "0.1,1e-1", "auto,1"]
)
def test_other_penalties_are_refused(text: str) -> None:
    with pytest.raises(UsageError, match="--l2"):
        fit_options.penalties(text)


@pytest.mark.parametrize("arguments", [("--l2", "0,1"), ("--l2", "1,1"), ("--l2", "one"), ("--l2-rule", "least")])
def test_the_command_refuses_them_before_it_reads(headeval: Headeval, arguments: tuple[str, ...]) -> None:
    outcome = headeval("fit", "nowhere.parquet", *arguments)
    assert outcome.code == 2
    assert arguments[0] in outcome.err


@pytest.mark.parametrize("l2", ["auto", "0.1,1"])
def test_a_choice_needs_folds(headeval: Headeval, make_table: Callable[..., Path], tmp_path: Path, l2: str) -> None:
    outcome = headeval("fit", make_table(), "--l2", l2, "--folds", 0)
    assert (outcome.code, outcome.out) == (2, "")
    assert "--folds" in outcome.err
    assert not (tmp_path / "linear-head.json").exists()


def test_auto_tries_a_grid_and_keeps_the_curve(
    headeval: Headeval, make_table: Callable[..., Path], tmp_path: Path
) -> None:
    outcome = headeval("fit", make_table(n=300), "--l2", "auto")
    assert outcome.code == 0, outcome.err
    story = head_of(tmp_path)["metrics"]["fit"]
    curve = story["l2_path"]
    assert curve["rule"] == "best"
    assert [point["l2"] for point in curve["points"]] == AUTO_GRID
    best = min(curve["points"], key=lambda point: point["log_loss"])
    assert story["l2"] == best["l2"]
    shown = " ".join(outcome.out.split())
    assert f"l2 {best['l2']:g} was taken by the least log loss, out of fold, of 9 penalties" in shown
    taken = [line for line in outcome.out.splitlines() if line.rstrip(" │|").endswith("taken")]
    assert len(taken) == 1
    assert re.search(rf"\b{best['l2']:g}\b", taken[0])
    assert f"{best['log_loss']:.4f}" in taken[0]


def test_the_head_is_that_of_the_penalty_taken(
    headeval: Headeval, make_table: Callable[..., Path], tmp_path: Path
) -> None:
    data = make_table(n=300)
    assert headeval("fit", data, "--l2", "10,0.1,1").code == 0
    chosen = head_of(tmp_path)
    l2 = chosen["metrics"]["fit"]["l2"]
    assert [point["l2"] for point in chosen["metrics"]["fit"]["l2_path"]["points"]] == [0.1, 1, 10]
    assert headeval("fit", data, "--l2", l2, "-o", "alone.json").code == 0
    alone = head_of(tmp_path, "alone.json")
    np.testing.assert_allclose(chosen["W"], alone["W"], atol=1e-7)
    assert "l2_path" not in alone["metrics"]["fit"]
    for name in ("auc", "log_loss"):
        a, b = (head["metrics"]["evaluation"]["metrics"][name] for head in (chosen, alone))
        assert a == pytest.approx(b, abs=1e-6)


def test_one_se_takes_a_larger_penalty_and_says_so(
    headeval: Headeval, make_table: Callable[..., Path], tmp_path: Path
) -> None:
    data = make_table(n=150)
    assert headeval("fit", data, "--l2", "auto", "-o", "best.json").code == 0
    outcome = headeval("fit", data, "--l2", "auto", "--l2-rule", "one-se", "-o", "one-se.json")
    assert "within one standard error" in " ".join(outcome.out.split())
    best, cautious = (head_of(tmp_path, name)["metrics"]["fit"] for name in ("best.json", "one-se.json"))
    assert best["l2_path"]["points"] == cautious["l2_path"]["points"]
    least = min(best["l2_path"]["points"], key=lambda point: point["log_loss"])
    limit = least["log_loss"] + least["standard_error"]
    assert cautious["l2"] == max(p["l2"] for p in best["l2_path"]["points"] if p["log_loss"] <= limit) > best["l2"]


def test_a_least_loss_at_the_end_of_the_list_is_told(headeval: Headeval, make_table: Callable[..., Path]) -> None:
    data = make_table(n=300)
    edge = headeval("fit", data, "--l2", "50,100")
    assert "try others beyond it" in " ".join(edge.out.split())
    inside = headeval("fit", data, "--l2", "1e-4,1,1e4", "-o", "b.json")
    assert "try others beyond it" not in " ".join(inside.out.split())


def test_with_eval_the_folds_only_choose(headeval: Headeval, make_table: Callable[..., Path], tmp_path: Path) -> None:
    train, other = make_table(), make_table("other.parquet", n=200, seed=9)
    outcome = headeval("fit", train, "--l2", "auto", "--eval", other)
    assert outcome.code == 0, outcome.err
    head = head_of(tmp_path)
    assert len(head["metrics"]["fit"]["l2_path"]["points"]) == len(AUTO_GRID)
    shown = " ".join(outcome.out.split())
    assert "200 labelled rows" in shown
    assert "on the very folds that chose the penalty" not in shown
    assert "on the very folds that chose the penalty" in " ".join(
        headeval("fit", train, "--l2", "auto", "-o", "b.json").out.split()
    )


def test_groups_stay_together_while_penalties_are_tried(
    headeval: Headeval, make_table: Callable[..., Path], tmp_path: Path
) -> None:
    # Every conversation says one thing with one random label: only a leak makes a weak penalty the best.
    rng = np.random.default_rng(0)
    e = np.repeat(rng.normal(size=(40, 30)), 5, axis=0) + 0.01 * rng.normal(size=(200, 30))
    flat = pa.FixedSizeListArray.from_arrays(pa.array(e.astype(np.float32).ravel()), 30)
    labels = pa.array(np.repeat(np.where(rng.permutation(40) < 20, "safe", "unsafe"), 5).tolist())
    data = make_table(n=200, embedding=flat, label=labels, talk=pa.array(np.repeat(np.arange(40), 5)))
    chosen = {}
    for name, arguments in (("grouped", ("--group", "talk")), ("alone", ())):
        outcome = headeval("fit", data, "--l2", "auto", *arguments, "-o", f"{name}.json")
        assert outcome.code == 0, outcome.err
        chosen[name] = head_of(tmp_path, f"{name}.json")["metrics"]["fit"]["l2"]
    assert chosen["grouped"] == 100
    assert chosen["alone"] < 1


def test_a_head_with_its_path_reads_and_scores(
    headeval: Headeval, make_table: Callable[..., Path], tmp_path: Path
) -> None:
    data = make_table()
    assert headeval("fit", data, "--l2", "0.1,1", "-q").code == 0
    assert read_head(tmp_path / "linear-head.json").dim == 4
    outcome = headeval("report", make_table("test.parquet", seed=3), "--head", "linear-head.json")
    assert outcome.code == 0, outcome.err
