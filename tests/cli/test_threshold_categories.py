"""`headeval threshold` for a folder of heads: each gets the threshold it gets alone, or it is said what that takes."""

import json
import re
from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from scipy.stats import binom

from category_folders import CATEGORIES, files_of, moderation, write_folder
from headeval.cli.threshold_categories import few_of_a_class, idle_threshold_note
from headeval.core.thresholds import ConfusionCounts
from headeval.files.head_folder import read_heads, write_heads
from headeval.files.heads import read_head, write_head
from headeval.files.tables import Block, Tables

Headeval = Callable[..., Any]
OUT = "heads-threshold"


@pytest.fixture
def heads(tmp_path: Path) -> Path:
    return write_folder(tmp_path / "heads", moderation(tmp_path / "train.parquet", n=400, seed=0))


@pytest.fixture
def data(tmp_path: Path) -> Path:
    return moderation(tmp_path / "held-out.parquet", n=900, seed=1)


@pytest.fixture
def traffic(tmp_path: Path) -> Path:
    table = pq.read_table(moderation(tmp_path / "traffic.parquet", n=700, seed=3))
    pq.write_table(table.drop_columns(list(CATEGORIES)), tmp_path / "traffic.parquet")
    return tmp_path / "traffic.parquet"


@pytest.fixture
def passes(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """Note every pass over a table by its first file."""
    made: list[str] = []
    original = Tables.blocks

    def blocks(self: Tables, *arguments: Any, **options: Any) -> Iterator[Block]:
        made.append(Path(str(self.paths[0])).name)
        return original(self, *arguments, **options)

    monkeypatch.setattr(Tables, "blocks", blocks)
    return made


@pytest.mark.parametrize(
    "asked",
    [
        ("--require", "fpr<=0.1"),
        ("--require", "*:fpr<=0.2", "--require", "recall>=0.3"),
        ("--maximise", "f1"),
        ("--cost-fp", "1", "--cost-fn", "3"),
        ("--require", "precision>=0.6", "--confidence", "0.9"),
    ],
)
def test_each_head_is_written_byte_for_byte_as_by_itself(
    headeval: Headeval, heads: Path, data: Path, tmp_path: Path, asked: tuple[str, ...]
) -> None:
    outcome = headeval("threshold", data, "--head", heads, *asked)
    assert outcome.code == 0, outcome.err
    together = files_of(tmp_path / OUT)
    assert set(together) == {f"{name}.json" for name in CATEGORIES}
    for name in CATEGORIES:
        alone = tmp_path / "alone.json"
        plain = [part.removeprefix("*:") for part in asked]
        options = ("--label", name, "--drop-unlabelled", "-o", alone, "--force", *plain)
        assert headeval("threshold", data, "--head", heads / f"{name}.json", *options).code == 0
        assert alone.read_bytes() == together[f"{name}.json"], name


def test_benign_traffic_is_read_once_for_all_and_certifies_as_for_one(
    headeval: Headeval, heads: Path, data: Path, traffic: Path, tmp_path: Path, passes: list[str]
) -> None:
    asked = ("--benign", traffic, "--require", "flag_rate<=0.2", "--require", "recall>=0.2")
    outcome = headeval("threshold", data, "--head", heads, *asked)
    assert outcome.code == 0, outcome.err
    assert sorted(passes) == ["held-out.parquet", "traffic.parquet"]
    for name in CATEGORIES:
        options = ("--label", name, "--drop-unlabelled", "-o", "alone.json", "--force", *asked)
        assert headeval("threshold", data, "--head", heads / f"{name}.json", *options).code == 0
        assert (tmp_path / "alone.json").read_bytes() == (tmp_path / OUT / f"{name}.json").read_bytes()


def test_benign_traffic_alone_will_do(headeval: Headeval, heads: Path, traffic: Path, tmp_path: Path) -> None:
    outcome = headeval("threshold", "--head", heads, "--benign", traffic, "--require", "flag_rate<=0.05")
    assert outcome.code == 0, outcome.err
    for name in CATEGORIES:
        options = ("--benign", traffic, "--require", "flag_rate<=0.05", "-o", "alone.json", "--force")
        assert headeval("threshold", "--head", heads / f"{name}.json", *options).code == 0
        assert (tmp_path / "alone.json").read_bytes() == (tmp_path / OUT / f"{name}.json").read_bytes()


def test_a_requirement_of_one_category_is_asked_of_that_one(
    headeval: Headeval, heads: Path, data: Path, tmp_path: Path
) -> None:
    asked = ("--require", "fpr<=0.2", "--require", "self harm:recall>=0.3")
    assert headeval("threshold", data, "--head", heads, *asked).code == 0
    claimed = {
        name: [
            part["requirement"]
            for part in read_head(tmp_path / OUT / f"{name}.json").metrics["threshold"]["requirements"]
        ]
        for name in CATEGORIES
    }
    assert claimed == {
        "hate": ["fpr<=0.2"],
        "self harm": ["fpr<=0.2", "recall>=0.3"],
        "violence": ["fpr<=0.2"],
    }


@pytest.mark.parametrize(
    ("asked", "said"),
    [
        (("hte:fpr<=0.1",), "did you mean 'hate'"),
        (("hate:fpr<=0.1",), "nothing is required of 'self harm', 'violence'"),
        ((":fpr<=0.1",), "no category stands before the colon"),
        (("*:ece<=0.1",), "cannot be certified"),
        (("hate:fpr>=0.1",), "from the other side only"),
        ((), "nothing says which threshold"),
    ],
)
def test_requirements_that_make_no_sense_are_told_at_once(
    headeval: Headeval, heads: Path, data: Path, passes: list[str], asked: tuple[str, ...], said: str
) -> None:
    outcome = headeval("threshold", data, "--head", heads, *(f"--require={text}" for text in asked))
    assert outcome.code == 2
    assert said in outcome.err
    assert not passes


def test_a_category_has_no_place_where_there_are_none(headeval: Headeval, heads: Path, data: Path) -> None:
    one = ("--head", heads / "hate.json", "--label", "hate", "--drop-unlabelled")
    for options, why in (((data, *one), "is that of its flagged class"), (("--plan",), "a plan needs no prefix")):
        outcome = headeval("threshold", *options, "--require", "hate:fpr<=0.1")
        assert outcome.code == 2
        assert why in outcome.err
        assert "write 'fpr<=0.1'" in outcome.err
        assert ("--head FOLDER" in outcome.err) == ("--plan" not in options)


@pytest.fixture
def few(tmp_path: Path) -> Path:
    """Of violence so few negatives are known that nothing can be certified of them."""
    table = pq.read_table(moderation(tmp_path / "few.parquet", n=900, seed=4))
    labels = [label if label or row < 60 else None for row, label in enumerate(table["violence"].to_pylist())]
    at = table.schema.get_field_index("violence")
    pq.write_table(table.set_column(at, "violence", pa.array(labels, pa.bool_())), tmp_path / "few.parquet")
    return tmp_path / "few.parquet"


def fewest(rate: float, level: float) -> int:
    return next(n for n in range(1, 10_000) if binom.cdf(0, n, rate) <= 1 - level)


def test_what_cannot_be_certified_is_left_out_with_what_it_takes(
    headeval: Headeval, heads: Path, few: Path, tmp_path: Path
) -> None:
    outcome = headeval("threshold", few, "--head", heads, "--require", "fpr<=0.02", "--format", "json")
    assert outcome.code == 5
    assert set(files_of(tmp_path / OUT)) == {"hate.json", "self harm.json"}
    document = json.loads(outcome.out)
    (missing,) = document["left_out"]
    negatives = missing["known"] - missing["positives"]
    needed = fewest(0.02, 0.95)
    assert missing["category"] == "violence"
    assert (
        missing["why"] == f"fpr<=0.02 takes at least {needed} negatives, with none flagged: {needed - negatives} more"
    )
    assert "1 of 3 categories could not be given a threshold, and is left out: 'violence'" in outcome.err
    allowed = headeval("threshold", few, "--head", heads, "--require", "fpr<=0.02", "--allow-missing", "--force")
    assert allowed.code == 0
    shown = " ".join(allowed.out.split())
    assert missing["why"] in shown


def test_the_confidence_that_requirements_share_is_told_once(headeval: Headeval, heads: Path, few: Path) -> None:
    """Of violence alone a third thing is asked, so that each is tested at a level of its own."""
    asked = [x for text in ("fpr<=0.02", "recall>=0.1", "violence:flag_rate<=0.9") for x in ("--require", text)]
    two = headeval("threshold", few, "--head", heads, *asked[:4], "--format", "json")
    document = json.loads(two.out)
    needed = fewest(0.02, 0.975)
    (missing,) = (part for part in document["left_out"] if part["category"] == "violence")
    assert missing["why"].startswith(f"fpr<=0.02 takes at least {needed} negatives")
    shares = "the requirements of a category share its confidence: of 2 each is tested at 97.5 %"
    assert [note for note in document["notes"] if "share" in note] == [
        f"{shares}, so that they hold together with 95 %"
    ]
    three = headeval("threshold", few, "--benign", few, "--head", heads, *asked, "-o", "three", "--confidence", "0.94")
    shown = " ".join(three.out.split())
    assert shown.count("share its confidence") == 1
    assert "of 2 each is tested at 97 %, of 3 each is tested at 98 %, so that they hold together with 94 %" in shown
    one = headeval("threshold", few, "--head", heads, *asked[:2], "-o", "one")
    assert "share its confidence" not in one.out


def test_rates_on_few_rows_are_called_rough_and_what_a_threshold_only_costs_is_told(
    headeval: Headeval, heads: Path, data: Path, tmp_path: Path
) -> None:
    """Three positives of violence are above the old threshold, so that a lower one finds none."""
    old, columns = read_head(heads / "violence.json"), pq.read_table(data)
    e = np.array(columns["embedding"].to_pylist())
    p = 1 / (1 + np.exp(-(e / np.linalg.norm(e, axis=1, keepdims=True) @ (old.W[1] - old.W[0]) + old.b[1] - old.b[0])))
    positive = np.isin(np.arange(p.size), np.argsort(-p)[:3])
    assert (p[positive] >= old.threshold).all()
    at = columns.schema.get_field_index("violence")
    pq.write_table(columns.set_column(at, "violence", pa.array(positive)), data)
    write_head(replace(old, threshold=0.999 * float(p[positive].min())), heads / "violence.json", force=True)
    document = json.loads(headeval("threshold", data, "--head", heads, "--require", "fpr<=0.1", "--format", "json").out)
    notes = {entry["category"]: entry["notes"] for entry in document["categories"]}
    new = read_head(tmp_path / OUT / "violence.json").threshold
    more = int((p[~positive] >= new).sum() - (p[~positive] >= 0.999 * p[positive].min()).sum())
    assert notes["violence"] == [
        "rates on so few rows are rough: 3 positive, 897 negative",
        f"on these rows the new threshold finds no positive more and flags {more} negatives more",
    ]
    unknown = columns["hate"].null_count
    (hate,) = notes["hate"]
    assert hate.startswith(f"{unknown} of 900 rows ({100 * unknown / 900:.0f} %) have no label and are left out")
    shown = " ".join(headeval("threshold", data, "--head", heads, "--require", "fpr<=0.1", "--force").out.split())
    assert f"violence: {notes['violence'][0]} - violence: {notes['violence'][1]}" in shown
    assert (
        "left out: the numbers hold for rows like those that have one; likewise, with its own numbers, self harm"
        in (shown)
    )


@pytest.mark.parametrize("allowed", [(), ("--allow-missing",)])
def test_where_nothing_can_be_certified_nothing_is_written(
    headeval: Headeval, heads: Path, data: Path, tmp_path: Path, allowed: tuple[str, ...]
) -> None:
    outcome = headeval("threshold", data, "--head", heads, "--require", "fpr<=0.0001", *allowed)
    assert outcome.code == 5
    assert not (tmp_path / OUT).exists()
    assert "none of the 3 categories could be given a threshold, so nothing was written" in outcome.err
    assert "fpr<=0.0001 takes at least 29,956 negatives, with none flagged: " in outcome.err


def test_requirements_that_exclude_each_other_say_what_one_leaves(
    headeval: Headeval, heads: Path, data: Path, tmp_path: Path
) -> None:
    asked = ("--require", "fpr<=0.1", "--require", "hate:recall>=0.97")
    outcome = headeval("threshold", data, "--head", heads, *asked)
    assert outcome.code == 5
    assert set(files_of(tmp_path / OUT)) == {"self harm.json", "violence.json"}
    assert "no threshold keeps both: fpr<=0.1 allows" in " ".join(outcome.out.split())


def test_the_footnote_says_what_holds_together(headeval: Headeval, heads: Path, data: Path) -> None:
    shown = " ".join(headeval("threshold", data, "--head", heads, "--require", "fpr<=0.1").out.split())
    assert "with 95 % confidence by itself" in shown
    assert "all 3 hold together with at least 85 % (Bonferroni)" in shown
    level = float(re.findall(r"--confidence ([0-9.]+) makes it 95 %", shown)[0])
    assert 1 - 3 * (1 - level) == pytest.approx(0.95, abs=1e-5)
    wide = headeval(
        "threshold", data, "--head", heads, "--require", "fpr<=0.1", "--confidence", "0.6", "-o", "wide"
    ).out
    assert "that all 3 hold together, nothing is said (Bonferroni)" in " ".join(wide.split())


def test_the_table_and_the_document_say_what_the_heads_keep(
    headeval: Headeval, heads: Path, data: Path, tmp_path: Path
) -> None:
    asked = ("threshold", data, "--head", heads, "--require", "fpr<=0.1")
    out = headeval(*asked).out
    document = json.loads(headeval(*asked, "--force", "--format", "json").out)
    assert (document["certified"], document["left_out"]) == (3, [])
    assert document["confidence_together"] == pytest.approx(0.85)
    for entry in document["categories"]:
        name = entry["category"]
        head = read_head(tmp_path / OUT / f"{name}.json")
        lines = [line for line in out.splitlines() if line.startswith(f"  {name} ")]
        (part,) = entry["requirements"]
        assert entry["threshold"] == head.threshold
        assert entry["unknown"] == 900 - entry["n"]
        shown = [float(x) for x in re.findall(r"\d\.\d{4}", lines[0])]
        rates = entry["after"]["rates"]
        bound, recall, fpr = shown[-3:]
        assert shown[:2] == pytest.approx([entry["threshold_before"], head.threshold], abs=5e-5)
        assert (bound, recall, fpr) == pytest.approx([part["exact_bound"], rates["recall"], rates["fpr"]], abs=5e-5)
        assert f"{part['errors']}/{part['n']}" in lines[1]
        assert max(map(len, lines)) <= 80


def test_without_requirements_nothing_is_called_certified(headeval: Headeval, heads: Path, data: Path) -> None:
    outcome = headeval("threshold", data, "--head", heads, "--maximise", "f1")
    assert outcome.code == 0
    assert "CAUTION: NOTHING IS CERTIFIED" in outcome.out
    assert "confidence" not in outcome.out
    mixed = headeval(
        "threshold", data, "--head", heads, "--maximise", "f1", "--require", "hate:fpr<=0.1", "-o", "mixed"
    )
    assert "CAUTION: NOT CERTIFIED: self harm, violence" in mixed.out


def test_rows_of_the_fit_certify_nothing(headeval: Headeval, tmp_path: Path) -> None:
    """Each head tells of its own rows: here two were fitted on these, and one was not."""
    train, other = moderation(tmp_path / "a.parquet", n=300, seed=5), moderation(tmp_path / "b.parquet", n=300, seed=6)
    (tmp_path / "own").mkdir()
    for name, rows in (("hate", train), ("self harm", train), ("violence", other)):
        fit = ("--label", name, "--drop-unlabelled", "--folds", "0", "-o", f"own/{name}.json")
        assert headeval("fit", rows, *fit).code == 0
    outcome = headeval("threshold", train, "--head", "own", "--require", "fpr<=0.2")
    assert outcome.code == 5
    assert set(files_of(tmp_path / "own-threshold")) == {"violence.json"}
    assert "were used for the fit" in " ".join(outcome.out.split())


def test_rows_of_the_fit_are_told_with_the_command_that_names_them_of_one_head(
    headeval: Headeval, data: Path, tmp_path: Path
) -> None:
    """A folder takes no reference: each head is judged by itself."""
    train, mixed = moderation(tmp_path / "a.parquet", n=300, seed=5), tmp_path / "mixed.parquet"
    assert headeval("fit", train, "--label", "violence,hate", "--folds", "0", "-o", "own").code == 0
    pq.write_table(pa.concat_tables([pq.read_table(train).slice(0, 20), pq.read_table(data)]), mixed)
    shown = " ".join(headeval("threshold", mixed, "--head", "own", "--require", "fpr<=0.3").out.split())
    fit = "of the rows were used for the fit, and flatter it: leave them out"
    assert f"{fit}; likewise, with its own numbers, violence" in shown
    folder = "--head FOLDER/NAME.json --label NAME --drop-unlabelled --reference FIT_DATA"
    assert f"`headeval report … {folder}` names up to 10 of the rows of the fit" in shown
    one = ("--head", "own/violence.json", "--label", "violence", "--drop-unlabelled")
    assert "same embedding 20/920" in " ".join(headeval("report", mixed, *one, "--reference", train).out.split())


def test_labels_in_benign_files_are_told_once(headeval: Headeval, heads: Path, data: Path) -> None:
    out = headeval("threshold", "--head", heads, "--benign", data, "--require", "flag_rate<=0.1").out
    assert "the benign files have columns 'hate', 'self harm', 'violence', which are not read" in " ".join(out.split())


def test_an_output_that_exists_is_told_before_anything_is_read(
    headeval: Headeval, heads: Path, data: Path, passes: list[str]
) -> None:
    assert headeval("threshold", data, "--head", heads, "--require", "fpr<=0.1").code == 0
    passes.clear()
    assert headeval("threshold", data, "--head", heads, "--require", "fpr<=0.1").code == 6
    assert not passes


def test_names_of_categories_are_shown_as_text(headeval: Headeval, tmp_path: Path) -> None:
    """Neither markup nor a terminal control, in both commands, their errors and the names of files."""
    name = "[red]a/b\x1b[31m: c"
    for seed, file in enumerate(("train", "rows")):
        path = moderation(tmp_path / f"{file}.parquet", n=500, seed=seed)
        table = pq.read_table(path)
        pq.write_table(table.append_column(name, table["hate"]).append_column("all", pa.array([True] * 500)), path)
    fit = headeval("fit", tmp_path / "train.parquet", "--label", "violence,hate", "-o", "heads")
    assert fit.code == 0, fit.err
    heads = {"violence": read_head(tmp_path / "heads/violence.json"), name: read_head(tmp_path / "heads/hate.json")}
    write_heads(tmp_path / "odd", {**heads, "all": heads[name]}, force=False)
    outcome = headeval("calibrate", "rows.parquet", "--head", "odd")
    assert outcome.code == 5  # of `all` every row is positive
    assert "\x1b" not in outcome.out + outcome.err
    assert "[red]a/b\\x1b[31m: c" in outcome.out
    assert set(read_heads(tmp_path / "odd-calibrated")) == {"violence", name}
    asked = ("--require", "fpr<=0.3", "--require", f"{name}:recall>=0.1", "-o", "chosen")
    outcome = headeval("threshold", "rows.parquet", "--head", "odd-calibrated", *asked)
    assert outcome.code == 0, outcome.err
    assert "\x1b" not in outcome.out
    assert set(read_heads(tmp_path / "chosen")) == {"violence", name}


@pytest.mark.parametrize(
    ("before", "after", "told"),
    [  # (true positives, false positives) of 3 positives and 212 negatives
        ((1, 9), (1, 14), "no positive more and flags 5 negatives more"),
        ((1, 9), (1, 10), "no positive more and flags 1 negative more"),
        ((1, 9), (2, 14), None),
        ((1, 9), (1, 9), None),
        ((1, 9), (0, 4), None),
    ],
)
def test_a_threshold_that_only_costs_is_told(before: tuple[int, int], after: tuple[int, int], told: str | None) -> None:
    was, now = (ConfusionCounts(tp, fp, 3 - tp, 212 - fp) for tp, fp in (before, after))
    notes = idle_threshold_note(was, now)
    assert len(notes) == (told is not None)
    assert told is None or told in notes[0]
    assert idle_threshold_note(None, None) == ()


@pytest.mark.parametrize(
    ("positives", "negatives", "told"), [(29, 900, True), (900, 29, True), (30, 30, False), (0, 900, False)]
)
def test_fewer_than_thirty_rows_of_a_class_make_rates_rough(positives: int, negatives: int, told: bool) -> None:
    notes = few_of_a_class(ConfusionCounts(0, 0, positives, negatives))
    assert bool(notes) == told
    assert not told or notes[0].endswith(f"rough: {positives} positive, {negatives} negative")
