"""What a folder of heads, and one head beside it, refuse: other models, other widths, options without a meaning."""

from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from category_folders import CATEGORIES, DIM, moderation, write_folder
from headeval.files.heads import read_head, write_head
from headeval.head import LinearHead

Headeval = Callable[..., Any]


@pytest.fixture
def data(tmp_path: Path) -> Path:
    return moderation(tmp_path / "rows.parquet", n=400, seed=0)


@pytest.fixture
def heads(tmp_path: Path, data: Path) -> Path:
    return write_folder(tmp_path / "heads", data)


def of_model(data: Path, name: str | None) -> Path:
    """The same rows, whose metadata name another model, or none."""
    table = pq.read_table(data).replace_schema_metadata(None if name is None else {"embedding_model": name})
    pq.write_table(table, data)
    return data


# --- embeddings of another model


@pytest.mark.parametrize("by_option", [True, False])
@pytest.mark.parametrize(
    ("command", "options"),
    [
        (("report",), ("--resamples", "0")),
        (("calibrate",), ()),
        (("threshold",), ("--require", "fpr<=0.5")),
        (("threshold", "--benign"), ("--require", "flag_rate<=0.9")),
    ],
)
def test_embeddings_of_another_model_are_refused_whichever_head_of_the_folder_names_its_own(
    headeval: Headeval,
    heads: Path,
    data: Path,
    tmp_path: Path,
    command: tuple[str, ...],
    options: tuple[str, ...],
    by_option: bool,
) -> None:
    first = heads / "hate.json"
    write_head(replace(read_head(first), embedding_model="unspecified"), first, force=True)
    there = set(tmp_path.iterdir())
    named = ("--embedding-model", "other") if by_option else ()
    outcome = headeval(*command, of_model(data, None if by_option else "other"), "--head", heads, *options, *named)
    assert (outcome.code, outcome.out) == (4, "")
    assert "'other'" in outcome.err
    assert "'m'" in outcome.err
    assert set(tmp_path.iterdir()) == there
    right = ("--embedding-model", "m") if by_option else ()
    assert headeval(*command, of_model(data, None if by_option else "m"), "--head", heads, *options, *right).code == 0


# --- a baseline of another width, scores that are no probabilities


def test_a_baseline_folder_for_embeddings_of_another_width_is_refused_in_a_line(
    headeval: Headeval, heads: Path, data: Path, tmp_path: Path
) -> None:
    (tmp_path / "old").mkdir()
    w = np.ones(DIM + 1)
    for name in CATEGORIES:
        old = LinearHead.binary(w, 0.0, classes=("false", "true"), embedding_model="m", threshold=0.5)
        write_head(old, tmp_path / "old" / f"{name}.json")
    outcome = headeval("report", data, "--head", heads, "--baseline", "old", "--resamples", "0")
    assert (outcome.code, outcome.out) == (3, "")
    assert f"embeddings have {DIM} numbers, the baseline 'old' expects {DIM + 1}" in outcome.err
    assert outcome.err.count("\n") <= 2


def test_scores_of_categories_named_with_prob_have_to_be_probabilities(headeval: Headeval, tmp_path: Path) -> None:
    """As logits they would be of use."""
    columns = {"a": [True, False, None, True], "b": [False, True, True, None]}
    scores = {"z_a": [0.5, 0.2, 0.1, 0.9], "z_b": [0.1, 0.7, 1.25, 0.5]}
    pq.write_table(pa.table(columns | scores), tmp_path / "scored.parquet")
    named = ("--label", "a,b", "--resamples", "0")
    outcome = headeval("report", "scored.parquet", "--prob", "z_a,z_b", *named)
    assert (outcome.code, outcome.out) == (3, "")
    assert "column 'z_b' is no probability in [0, 1]" in outcome.err
    assert "row 3" in outcome.err
    assert headeval("report", "scored.parquet", "--logit", "z_a,z_b", *named).code == 0


# --- options that would play no part


@pytest.mark.parametrize(
    ("command", "options", "several"),
    [
        ("fit", ("--min-positives", "5000"), "several labels"),
        ("fit", ("--allow-missing",), "several labels"),
        ("calibrate", ("--head", "heads/hate.json", "--min-positives", "5000"), "a folder of heads"),
        ("calibrate", ("--head", "heads/hate.json", "--allow-missing"), "a folder of heads"),
        ("calibrate", ("--logit", "z", "--allow-missing"), "a folder of heads"),
        ("threshold", ("--head", "heads/hate.json", "--maximise", "f1", "--allow-missing"), "a folder of heads"),
    ],
)
def test_of_a_single_head_or_label_nothing_can_be_left_out(
    headeval: Headeval, heads: Path, tmp_path: Path, command: str, options: tuple[str, ...], several: str
) -> None:
    assert heads
    data = moderation(tmp_path / "one.parquet", n=400, seed=0, z=np.random.default_rng(0).normal(size=400))
    there = set(tmp_path.iterdir())
    outcome = headeval(command, data, "--label", "hate", "--drop-unlabelled", *options)
    assert (outcome.code, outcome.out) == (2, "")
    option = "--allow-missing" if "--allow-missing" in options else "--min-positives"
    assert f"{option} is for {several}" in outcome.err
    assert set(tmp_path.iterdir()) == there


@pytest.mark.parametrize(
    ("command", "options"),
    [
        ("report", ("--head", "heads")),
        ("calibrate", ("--head", "heads")),
        ("threshold", ("--head", "heads", "--maximise", "f1")),
        ("fit", ("--label", "hate,violence", "-o", "new")),
    ],
)
@pytest.mark.parametrize(
    ("positive", "said"),
    [
        ("nonsense", "no label column has the value 'nonsense' (--positive); 'hate' holds 'false' ("),
        ("false", "--positive 'false' is the negative value of column 'hate', in which 'true' is positive"),
    ],
)
def test_a_positive_value_that_no_category_has_is_refused(
    headeval: Headeval, heads: Path, data: Path, command: str, options: tuple[str, ...], positive: str, said: str
) -> None:
    """Of true and false the first is positive whatever is said: to name the other would be ignored."""
    assert heads
    outcome = headeval(command, data, *options, "--positive", positive)
    assert (outcome.code, outcome.out) == (3, "")
    assert said in outcome.err
    assert headeval(command, data, *options, "--positive", "True").code == 0
