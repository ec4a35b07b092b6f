"""`headeval calibrate` for a folder of heads: each becomes what it becomes alone, or is left out with the reason."""

import re
from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from category_folders import CATEGORIES, files_of, moderation, write_folder
from headeval.cli import calibrate_categories
from headeval.cli.calibrating import folded
from headeval.files.heads import read_head, write_head
from headeval.files.tables import Block, Tables
from headeval.head import LinearHead

Headeval = Callable[..., Any]


@pytest.fixture
def heads(tmp_path: Path) -> Path:
    return write_folder(tmp_path / "heads", moderation(tmp_path / "train.parquet", n=400, seed=0))


@pytest.fixture
def data(tmp_path: Path) -> Path:
    return moderation(tmp_path / "calibration.parquet", n=500, seed=1)


@pytest.mark.parametrize("method", ["temperature", "platt"])
def test_each_head_is_written_byte_for_byte_as_by_itself(
    headeval: Headeval, heads: Path, data: Path, tmp_path: Path, method: str
) -> None:
    outcome = headeval("calibrate", data, "--head", heads, "--method", method)
    assert outcome.code == 0, outcome.err
    together = files_of(tmp_path / "heads-calibrated")
    assert set(together) == {f"{name}.json" for name in CATEGORIES}
    for name in CATEGORIES:
        alone = tmp_path / "alone.json"
        options = ("--label", name, "--drop-unlabelled", "--method", method, "-o", alone, "--force")
        assert headeval("calibrate", data, "--head", heads / f"{name}.json", *options).code == 0
        assert alone.read_bytes() == together[f"{name}.json"], name


def test_the_table_says_what_the_heads_remember(headeval: Headeval, heads: Path, data: Path, tmp_path: Path) -> None:
    out = headeval("calibrate", data, "--head", heads).out
    for name in CATEGORIES:
        head, before = read_head(tmp_path / "heads-calibrated" / f"{name}.json"), read_head(heads / f"{name}.json")
        record = head.metrics["calibrations"][0]
        lines = [line for line in out.splitlines() if line.startswith(f"  {name} ")]
        assert len(lines) == 2, out
        known, positive, unknown, T = lines[0].removeprefix(f"  {name}").split()[:4]
        assert (int(known), int(positive), int(unknown)) == (record["n"], record["positives"], 500 - record["n"])
        assert float(T) == pytest.approx(record["temperature"], abs=5e-5)
        numbers = [float(x) for x in re.findall(r"\d\.\d{4}", lines[1])]
        assert numbers[:2] == pytest.approx([record["log_loss_before"], record["log_loss_after"]], abs=5e-5)
        assert numbers[4:] == pytest.approx([before.threshold, head.threshold], abs=5e-5)
        assert lines[1].split()[-1] == "0"
    assert "in-sample" in out


def test_rows_of_unknown_label_change_nothing_but_their_count(
    headeval: Headeval, heads: Path, data: Path, tmp_path: Path
) -> None:
    headeval("calibrate", data, "--head", heads, "--label", "hate")
    table = pq.read_table(data)
    kept = table.filter(pa.array([label is not None for label in table["hate"].to_pylist()]))
    pq.write_table(kept, tmp_path / "known.parquet")
    assert headeval("calibrate", "known.parquet", "--head", heads, "--label", "hate", "-o", "known").code == 0
    whole, part = read_head(tmp_path / "heads-calibrated" / "hate.json"), read_head(tmp_path / "known" / "hate.json")
    assert (whole.W == part.W).all()
    assert whole.threshold == part.threshold
    assert whole.metrics["calibrations"][0] | {"unlabelled_left_out": 0} == part.metrics["calibrations"][0]


@pytest.fixture
def passes(monkeypatch: pytest.MonkeyPatch) -> list[tuple[str, ...]]:
    """Note every pass over a table by its files."""
    made: list[tuple[str, ...]] = []
    original = Tables.blocks

    def blocks(self: Tables, *arguments: Any, **options: Any) -> Iterator[Block]:
        made.append(tuple(str(path) for path in self.paths))
        return original(self, *arguments, **options)

    monkeypatch.setattr(Tables, "blocks", blocks)
    return made


def test_all_categories_take_one_reading_and_one_more(
    headeval: Headeval, heads: Path, data: Path, passes: list[tuple[str, ...]]
) -> None:
    assert headeval("calibrate", data, "--head", heads).code == 0
    assert len(passes) == 2


def test_a_threshold_at_the_very_score_of_a_row_still_decides_it_as_before(headeval: Headeval, tmp_path: Path) -> None:
    """The new head's own logits, read once more, decide: the scaled old ones differ from them in the last bits."""
    names = [f"c{place}" for place in range(24)]
    path = moderation(tmp_path / "rows.parquet", n=200, seed=8)
    table = pq.read_table(path)
    for name in names:
        table = table.append_column(name, table["violence"])
    pq.write_table(table, path)
    e = np.array(table["embedding"].to_pylist(), dtype=np.float32)
    folder = write_folder(tmp_path / "heads", path, names=tuple(names))
    for place, name in enumerate(names):
        head = read_head(folder / f"{name}.json")
        at_a_row = float(head.probs(e[place : place + 1])[0])
        write_head(replace(head, threshold=at_a_row), folder / f"{name}.json", force=True)
    assert headeval("calibrate", path, "--head", folder).code == 0
    for name in names:
        before, after = read_head(folder / f"{name}.json"), read_head(tmp_path / "heads-calibrated" / f"{name}.json")
        np.testing.assert_array_equal(before.flagged(e), after.flagged(e))


def with_rare(path: Path, *, n: int = 300, **labels: list[bool | None]) -> Path:
    return moderation(path, n=n, seed=2, **{name: pa.array(values, pa.bool_()) for name, values in labels.items()})


@pytest.fixture
def more_heads(tmp_path: Path) -> Path:
    """Heads of categories that the rows of `rare` say little of, beside one that is fine."""
    truth = [row % 3 == 0 for row in range(400)]
    train = moderation(tmp_path / "train.parquet", n=400, seed=0, few=truth, one=truth, none=truth)
    return write_folder(tmp_path / "heads", train, names=("few", "hate", "none", "one"))


@pytest.fixture
def rare(tmp_path: Path) -> Path:
    few = [row < 9 if row % 2 else None for row in range(300)]
    return with_rare(tmp_path / "rare.parquet", few=few, one=[False] * 300, none=[None] * 300)


def test_categories_that_cannot_be_calibrated_are_left_out_with_the_reason(
    headeval: Headeval, more_heads: Path, rare: Path, tmp_path: Path
) -> None:
    outcome = headeval("calibrate", rare, "--head", more_heads)
    assert outcome.code == 5
    assert set(files_of(tmp_path / "heads-calibrated")) == {"hate.json"}
    shown = " ".join(outcome.out.split())
    assert "4 known positives, fewer than --min-positives 10" in shown
    assert "all 300 known rows are 'false'" in shown
    assert "none of 300 rows has a known label" in shown
    assert "3 of 4 categories could not be calibrated, and are left out: 'few', 'none', 'one'" in outcome.err
    assert outcome.err.count("\n") == 2


def test_allowed_to_be_missing_they_are_but_a_note(headeval: Headeval, more_heads: Path, rare: Path) -> None:
    outcome = headeval("calibrate", rare, "--head", more_heads, "--allow-missing")
    assert outcome.code == 0
    assert "left out: 'few', 'none', 'one'" in outcome.err
    quiet = headeval("calibrate", rare, "--head", more_heads, "--allow-missing", "--force", "--quiet")
    assert (quiet.code, quiet.err) == (0, "")


def test_fewer_positives_are_enough_where_that_is_said(
    headeval: Headeval, more_heads: Path, rare: Path, tmp_path: Path
) -> None:
    headeval("calibrate", rare, "--head", more_heads, "--min-positives", "4", "--allow-missing")
    written = files_of(tmp_path / "heads-calibrated")
    assert "hate.json" in written
    # Of four positives there may be no temperature, but then the reason is another one.
    out = headeval("calibrate", rare, "--head", more_heads, "--min-positives", "4", "-o", "other").out
    assert "fewer than --min-positives" not in out


@pytest.mark.parametrize("allowed", [(), ("--allow-missing",)])
def test_where_nothing_can_be_calibrated_nothing_is_written(
    headeval: Headeval, more_heads: Path, rare: Path, tmp_path: Path, allowed: tuple[str, ...]
) -> None:
    outcome = headeval("calibrate", rare, "--head", more_heads, "--label", "few,one", *allowed)
    assert outcome.code == 5
    assert not (tmp_path / "heads-calibrated").exists()
    assert "none of the 2 categories could be calibrated, so nothing was written" in outcome.err
    assert "'one': all 300 known rows are 'false'" in outcome.err


def test_a_scaling_that_is_of_no_use_leaves_the_category_out(
    headeval: Headeval, heads: Path, data: Path, tmp_path: Path
) -> None:
    """A head that ranks backwards has no positive temperature."""
    head = read_head(heads / "hate.json")
    turned = LinearHead("m", head.classes, -head.W, -head.b, head.threshold)
    write_head(turned, heads / "hate.json", force=True)
    outcome = headeval("calibrate", data, "--head", heads)
    assert outcome.code == 5
    assert set(files_of(tmp_path / "heads-calibrated")) == {"self harm.json", "violence.json"}
    assert "rank no better than chance" in " ".join(outcome.out.split())


def test_an_output_that_exists_is_told_before_anything_is_read(
    headeval: Headeval, heads: Path, data: Path, passes: list[tuple[str, ...]]
) -> None:
    assert headeval("calibrate", data, "--head", heads).code == 0
    passes.clear()
    outcome = headeval("calibrate", data, "--head", heads)
    assert outcome.code == 6
    assert "already exists" in outcome.err
    assert not passes


def test_heads_may_replace_themselves_only_by_force(headeval: Headeval, heads: Path, data: Path) -> None:
    before = files_of(heads)
    assert headeval("calibrate", data, "--head", heads, "-o", heads).code == 6
    assert files_of(heads) == before
    assert headeval("calibrate", data, "--head", heads, "-o", heads, "--force").code == 0
    assert all("calibrations" in read_head(path).metrics for path in heads.iterdir())


def test_a_head_that_is_left_out_may_not_stay_beside_the_new_ones(
    headeval: Headeval, more_heads: Path, rare: Path
) -> None:
    """The folder would be taken for one of calibrated heads."""
    before = files_of(more_heads)
    outcome = headeval("calibrate", rare, "--head", more_heads, "-o", more_heads, "--force", "--allow-missing")
    assert outcome.code == 6
    assert "few.json" in outcome.err
    assert files_of(more_heads) == before


@pytest.mark.parametrize("method", ["temperature", "platt"])
def test_the_tables_fit_into_eighty_columns(headeval: Headeval, heads: Path, data: Path, method: str) -> None:
    out = headeval("calibrate", data, "--head", heads, "--method", method).out
    rows = [line for line in out.splitlines() if line.startswith("  ") and re.search(r"\d\.\d{4}", line)]
    assert rows
    assert max(map(len, rows)) <= 80


def test_the_claim_of_each_threshold_moves_along(headeval: Headeval, heads: Path, data: Path, tmp_path: Path) -> None:
    more = moderation(tmp_path / "more.parquet", n=900, seed=9)
    assert headeval("threshold", more, "--head", heads, "--require", "fpr<=0.2").code == 0
    assert headeval("calibrate", data, "--head", tmp_path / "heads-threshold", "-o", "moved").code == 0
    for name in CATEGORIES:
        head = read_head(tmp_path / "moved" / f"{name}.json")
        assert head.metrics["threshold"]["threshold"] == head.threshold


def test_a_missing_label_column_says_how_to_go_on(headeval: Headeval, heads: Path, data: Path) -> None:
    pq.write_table(pq.read_table(data).drop_columns(["violence"]), data)
    outcome = headeval("calibrate", data, "--head", heads)
    assert outcome.code == 3
    assert "violence" in outcome.err
    assert "--label" in outcome.err


def test_rows_that_change_between_the_readings_are_noticed(
    headeval: Headeval, heads: Path, data: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The new heads' decisions would be counted on other rows than those that the scaling was fitted to."""

    def folded_late(*arguments: Any) -> LinearHead:
        moderation(data, n=500, seed=99)
        return folded(*arguments)

    monkeypatch.setattr(calibrate_categories, "folded", folded_late)
    outcome = headeval("calibrate", data, "--head", heads)
    assert outcome.code == 3
    assert "the rows have changed while they were read" in outcome.err
    assert not (tmp_path / "heads-calibrated").exists()
