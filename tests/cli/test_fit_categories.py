"""`headeval fit` of several labels: each head is the one of its label alone, and unknown labels play no part."""

import json
import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq
import pytest
from numpy.typing import NDArray
from sklearn import metrics as sk
from sklearn.linear_model import LogisticRegression

from documents import ROOT
from headeval.cli import fit_categories
from headeval.files.fingerprint import row_digests
from headeval.files.tables import Tables
from headeval.solver.folds import stratified_folds

Headeval = Callable[..., Any]
MakeTable = Callable[..., Path]
TRAIN = ROOT / "sample_data" / "moderation_train.parquet"
TEST = ROOT / "sample_data" / "moderation_test.parquet"
CATEGORIES = (
    "sexual",
    "hate",
    "violence",
    "harassment",
    "self_harm",
    "sexual_minors",
    "hate_threatening",
    "violence_graphic",
)
SAME = 1e-6


def read(path: Path) -> Any:
    return json.loads(path.read_text(encoding="utf-8"))


def known_rows(table: pa.Table, category: str) -> tuple[NDArray[Any], NDArray[np.bool_]]:
    """Embeddings as they are stored, and labels, of the rows whose label is known."""
    some = table.filter(pc.is_valid(table[category]))
    return np.array(some["embedding"].to_pylist(), dtype=np.float32), np.array(some[category].to_pylist())


def units(embeddings: NDArray[Any]) -> NDArray[np.float64]:
    e = embeddings.astype(np.float64)
    unit: NDArray[np.float64] = e / np.linalg.norm(e, axis=1, keepdims=True)
    return unit


def flags(n: int, share: float, unknown: float, seed: int) -> list[bool | None]:
    rng = np.random.default_rng(seed)
    return [None if rng.random() < unknown else bool(rng.random() < share) for _ in range(n)]


@pytest.fixture
def two(make_table: MakeTable) -> Path:
    """120 rows with the categories a (a third unknown) and b (a tenth), weights and groups."""
    rng = np.random.default_rng(5)
    return make_table(
        a=flags(120, 0.4, 0.33, 1),
        b=flags(120, 0.3, 0.1, 2),
        w=rng.random(120) + 0.5,
        g=[f"g{i}" for i in rng.integers(0, 40, 120)],
    )


# --- the numbers


@pytest.mark.slow
def test_auc_and_ap_of_all_eight_categories_are_those_of_a_scikit_learn_cross_validation(
    headeval: Headeval, tmp_path: Path
) -> None:
    outcome = headeval("fit", TRAIN, "--label", ",".join(CATEGORIES))
    assert outcome.code == 0, outcome.err
    table = pq.read_table(TRAIN)
    for category in CATEGORIES:
        embeddings, y = known_rows(table, category)
        identity = np.unique(row_digests(embeddings)[:, 0], return_inverse=True)[1]
        folds = stratified_folds(y.astype(np.int64), 5, rng=np.random.default_rng(0), groups=identity)
        u, z = units(embeddings), np.empty(len(y))
        for fold in range(5):
            model = LogisticRegression(C=1.0, tol=1e-12, max_iter=10000, solver="newton-cholesky")
            z[folds == fold] = model.fit(u[folds != fold], y[folds != fold]).decision_function(u[folds == fold])
        measured = read(tmp_path / "heads" / f"{category}.json")["metrics"]["evaluation"]
        assert measured["n"] == len(y)
        assert measured["metrics"]["auc"] == pytest.approx(sk.roc_auc_score(y, z), abs=SAME)
        assert measured["metrics"]["ap"] == pytest.approx(sk.average_precision_score(y, z), abs=SAME)


@pytest.mark.parametrize(
    "options",
    [
        [],
        ["--weight", "w"],
        ["--group", "g"],
        ["--l2", "0.3,1,3"],
        ["--l2", "auto", "--l2-rule", "one-se"],
        ["--threshold", 0.3, "--folds", 3],
        ["--folds", 0],
        ["--eval", "eval.parquet"],
        ["--embedding-model", "named"],
    ],
    ids=lambda options: " ".join(map(str, options)) or "plain",
)
def test_each_head_is_byte_for_byte_the_one_that_a_fit_of_its_label_alone_writes(
    options: list[object], headeval: Headeval, two: Path, make_table: MakeTable, tmp_path: Path
) -> None:
    make_table("eval.parquet", n=80, seed=7, model=None, a=flags(80, 0.4, 0.2, 3), b=flags(80, 0.4, 0.2, 4))
    outcome = headeval("fit", two, "--label", "a,b", *options)
    assert outcome.code == 0, outcome.err
    for category in ("a", "b"):
        alone = headeval("fit", two, "--label", category, "--drop-unlabelled", *options, "--force")
        assert alone.code == 0, alone.err
        written = (tmp_path / "heads" / f"{category}.json").read_bytes()
        assert written == (tmp_path / "linear-head.json").read_bytes()
        assert read(tmp_path / "heads" / f"{category}.json")["metrics"]["fit"]["label_column"] == category


def test_rows_whose_label_is_unknown_change_nothing_but_their_own_count(
    headeval: Headeval, make_table: MakeTable, tmp_path: Path
) -> None:
    a, b = flags(120, 0.4, 0.2, 1), flags(120, 0.3, 0.2, 2)
    assert headeval("fit", make_table(a=a, b=b), "--label", "a,b").code == 0
    before = (tmp_path / "heads" / "a.json").read_text(encoding="utf-8")
    # Other rows first and last, some of them known in b and some in neither, with the smallest and largest digests.
    table = pq.read_table(tmp_path / "train.parquet")
    more = make_table("more.parquet", n=60, seed=9, a=pa.nulls(60, pa.bool_()), b=flags(60, 0.5, 0.3, 3))
    others = pq.read_table(more)
    pq.write_table(pa.concat_tables([others.slice(0, 25), table, others.slice(25)]), tmp_path / "all.parquet")
    assert headeval("fit", tmp_path / "all.parquet", "--label", "a,b", "-o", "again").code == 0
    after = (tmp_path / "again" / "a.json").read_text(encoding="utf-8")
    unknown = a.count(None)
    assert before != after
    assert before.replace(f'"unlabelled_left_out": {unknown}', f'"unlabelled_left_out": {unknown + 60}') == after
    assert read(tmp_path / "heads" / "b.json")["W"] != read(tmp_path / "again" / "b.json")["W"]


def test_eval_judges_each_head_on_the_known_rows_of_the_other_file(
    headeval: Headeval, two: Path, make_table: MakeTable, tmp_path: Path
) -> None:
    other = make_table("other.parquet", n=150, seed=8, a=flags(150, 0.4, 0.3, 6), b=flags(150, 0.4, 0.5, 7))
    outcome = headeval("fit", two, "--label", "a,b", "--eval", other)
    assert outcome.code == 0, outcome.err
    assert "each category on the rows whose label of it is known (--eval" in outcome.out
    for category in ("a", "b"):
        head = read(tmp_path / "heads" / f"{category}.json")
        embeddings, y = known_rows(pq.read_table(other), category)
        z = units(embeddings) @ np.array(head["W"][1]) + head["b"][1]
        measured = head["metrics"]["evaluation"]["metrics"]
        assert measured["n"] == len(y)
        assert measured["auc"] == pytest.approx(sk.roc_auc_score(y, z), abs=1e-12)
        assert measured["log_loss"] == pytest.approx(sk.log_loss(y, 1 / (1 + np.exp(-z))), abs=1e-12)


def test_counts_beside_the_metrics_are_of_the_rows_judged_and_those_of_the_fit_stand_apart(
    headeval: Headeval, two: Path, make_table: MakeTable
) -> None:
    other = make_table("other.parquet", n=150, seed=8, a=flags(150, 0.4, 0.3, 6), b=flags(150, 0.4, 0.0, 7))
    out = headeval("fit", two, "--label", "a,b", "--eval", other).out
    overview, fitted = out.split("Fitted on\n")
    for category in ("a", "b"):
        judged, used = (pq.read_table(path)[category].to_pylist() for path in (other, two))
        first, below = re.search(rf"^  {category} +(.*)\n +(.*)\n", overview, flags=re.MULTILINE).groups()  # type: ignore[union-attr]  # no row, no test
        known = len(judged) - judged.count(None)
        assert first.split()[:2] == [str(known), str(judged.count(True))]
        assert below.split()[:2] == [str(judged.count(None)), f"{judged.count(True) / known:.2f}"]
        counts = (len(used) - used.count(None), used.count(True), used.count(None))
        assert re.search(rf"^  {category} +{counts[0]} +{counts[1]} +{counts[2]}$", fitted, flags=re.MULTILINE)
    words = " ".join(out.split())
    assert "more than a tenth of the rows of --eval have no known label of 'a':" in words  # not of b, known in all rows
    assert "Fitted on" not in headeval("fit", two, "--label", "a,b", "-o", "again").out


def test_penalties_that_differ_are_shown_of_each_head(headeval: Headeval, tmp_path: Path) -> None:
    out = headeval("fit", TRAIN, "--label", "sexual,hate", "--l2", "0.1,0.3,1", "--folds", 3).out
    heads = {name: read(tmp_path / "heads" / f"{name}.json")["metrics"]["fit"]["l2"] for name in ("sexual", "hate")}
    assert len(set(heads.values())) == 2  # else these rows show nothing
    shown = out.split("Penalties\n")[1]
    for name, l2 in heads.items():
        assert re.search(rf"^  {name} +{l2:g}$", shown, flags=re.MULTILINE)
    assert "Penalties" not in headeval("fit", TRAIN, "--label", "sexual,hate", "-o", "one").out


def test_a_column_of_several_classes_among_categories_is_told_how_each_is_meant(
    headeval: Headeval, make_table: MakeTable
) -> None:
    data = make_table(cat_a=flags(120, 0.4, 0.1, 1), cat_kind=["ad", "news", "spam"] * 40)
    outcome = headeval("fit", data, "--label", "cat_*")
    assert (outcome.code, outcome.out) == (3, "")
    assert "column 'cat_kind' holds 3 different values" in outcome.err
    assert "or empty, which alone means unknown" in outcome.err
    assert "goes by itself: --label 'cat_kind' --classes A,B,C" in outcome.err


def test_eval_rows_that_the_fit_has_had_are_found_and_in_sample_is_a_caution(
    headeval: Headeval, two: Path, tmp_path: Path
) -> None:
    outcome = headeval("fit", two, "--label", "a,b", "--eval", two)
    assert outcome.code == 0, outcome.err
    assert "CAUTION: IN-SAMPLE for a, b" in outcome.out
    assert re.search(r"with the same embedding +(\d+)/\1\n", outcome.out)


def test_a_category_without_a_known_row_in_eval_is_fitted_but_not_judged(
    headeval: Headeval, two: Path, make_table: MakeTable, tmp_path: Path
) -> None:
    other = make_table("other.parquet", seed=8, a=pa.nulls(120, pa.bool_()), b=flags(120, 0.4, 0.5, 7))
    outcome = headeval("fit", two, "--label", "a,b", "--eval", other)
    assert outcome.code == 0, outcome.err
    assert "no row of --eval has a known label of 'a'" in outcome.out
    assert "evaluation" not in read(tmp_path / "heads" / "a.json")["metrics"]
    assert "evaluation" in read(tmp_path / "heads" / "b.json")["metrics"]
    without = make_table("without.parquet", a=[True] * 120)
    outcome = headeval("fit", two, "--label", "a,b", "--eval", without, "-o", "none")
    assert outcome.code == 3
    assert "'b'" in outcome.err
    assert not (tmp_path / "none").exists()


@pytest.mark.parametrize("penalty", ["1.0", "0.3,3"])
def test_rows_that_are_read_anew_in_every_pass_give_the_same_heads(
    penalty: str, headeval: Headeval, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    labels, readings, blocks = "hate,sexual,violence", list[bool](), Tables.blocks

    def counted_blocks(self: Tables, *arguments: Any) -> Any:
        readings.append(True)
        return blocks(self, *arguments)

    assert headeval("fit", TRAIN, "--label", labels, "--l2", penalty).code == 0
    monkeypatch.setattr(Tables, "blocks", counted_blocks)
    outcome = headeval("fit", TRAIN, "--label", labels, "--l2", penalty, "--memory", "1MB", "-o", "streamed")
    assert outcome.code == 0, outcome.err
    assert "read anew in every pass" in outcome.out
    for category in labels.split(","):
        one, other = (read(tmp_path / folder / f"{category}.json") for folder in ("heads", "streamed"))
        np.testing.assert_allclose(one["W"], other["W"], atol=1e-7)
        for name in ("auc", "ap", "log_loss"):
            measured = [head["metrics"]["evaluation"]["metrics"][name] for head in (one, other)]
            assert measured[0] == pytest.approx(measured[1], abs=SAME)
        assert one["metrics"]["fit"]["data_fingerprint"] == other["metrics"]["fit"]["data_fingerprint"]
    counted = [read(path)["metrics"]["fit"]["solver"]["passes"] for path in (tmp_path / "streamed").iterdir()]
    passes = len(readings) - 1  # a look at the first rows tells how much memory all would take
    assert f"{passes} passes" in " ".join(outcome.out.split())
    # Shared with one penalty; with several each category has its own, beside the first reading, which all share.
    assert max(counted) == passes if "," not in penalty else sum(counted) - len(counted) + 1 == passes


def test_little_memory_is_told_with_what_all_categories_take(headeval: Headeval, two: Path) -> None:
    outcome = headeval("fit", two, "--label", "a,b", "--memory", "2KB")
    assert outcome.code == 2
    assert "120 rows alone take 0.0312 MB" in outcome.err  # 200 and 60 bytes a row


# --- what is left out


@pytest.fixture
def holey(make_table: MakeTable) -> Path:
    """Beside two categories with enough rows: rare, of one class, without a label, and nearly always true."""
    rare = [True] * 9 + [False] * 111
    return make_table(
        a=flags(120, 0.4, 0.33, 1),
        rare=rare,
        never=[False] * 100 + [None] * 20,
        empty=pa.nulls(120, pa.bool_()),
        often=[not flag for flag in rare],
        b=flags(120, 0.3, 0.1, 2),
    )


def test_categories_with_too_few_rows_are_left_out_the_others_written_and_the_code_is_5(
    headeval: Headeval, holey: Path, tmp_path: Path
) -> None:
    outcome = headeval("fit", holey, "--label", "a,rare,never,empty,often,b")
    assert outcome.code == 5
    assert sorted(path.name for path in (tmp_path / "heads").iterdir()) == ["a.json", "b.json"]
    assert re.search(r"rare +120 +9 +0 +9 known positives, fewer than --min-positives 10\n", outcome.out)
    assert re.search(r"never +100 +0 +20 +all 100 known rows are 'false'\n", outcome.out)
    assert re.search(r"empty +0 +0 +120 +no row has a known label\n", outcome.out)
    assert re.search(r"often +120 +111 +0 +9 known negatives, fewer than --min-positives 10\n", outcome.out)
    assert outcome.err.startswith("headeval: 4 of 6 categories could not be fitted, and are left out: 'rare', 'never'")
    assert "--allow-missing" in outcome.err


def test_allow_missing_makes_it_a_note_and_the_code_0(headeval: Headeval, holey: Path, tmp_path: Path) -> None:
    outcome = headeval("fit", holey, "--label", "a,rare,b", "--allow-missing")
    assert outcome.code == 0
    assert "1 of 3 categories could not be fitted, and is left out: 'rare'" in outcome.err
    assert headeval("fit", holey, "--label", "a,rare", "--allow-missing", "-q", "-o", "quiet").err == ""


def test_min_positives_counts_known_rows_of_each_class(headeval: Headeval, holey: Path, tmp_path: Path) -> None:
    outcome = headeval("fit", holey, "--label", "rare,often", "--min-positives", 9)
    assert outcome.code == 0, outcome.err
    assert sorted(path.name for path in (tmp_path / "heads").iterdir()) == ["often.json", "rare.json"]
    assert headeval("fit", holey, "--label", "rare,often", "--min-positives", 10, "-o", "x").code == 5


@pytest.mark.parametrize("allowed", [[], ["--allow-missing"]])
def test_where_nothing_is_left_nothing_is_written(
    allowed: list[str], headeval: Headeval, holey: Path, tmp_path: Path
) -> None:
    outcome = headeval("fit", holey, "--label", "rare,empty", *allowed)
    assert outcome.code == 5
    assert "none of the 2 categories could be fitted, so nothing was written" in outcome.err
    assert "nothing was fitted" in outcome.out
    assert "written to" not in outcome.out
    assert not (tmp_path / "heads").exists()


def test_folds_that_the_groups_of_a_category_do_not_allow_leave_it_out(
    headeval: Headeval, make_table: MakeTable, tmp_path: Path
) -> None:
    groups = ["one"] * 40 + ["two"] * 40 + [f"g{i}" for i in range(40)]
    known_in_two_groups = [i % 3 == 0 for i in range(80)] + [None] * 40
    data = make_table(a=flags(120, 0.4, 0.1, 1), b=known_in_two_groups, g=groups)
    outcome = headeval("fit", data, "--label", "a,b", "--group", "g")
    assert outcome.code == 5
    assert "--folds 0" in outcome.out
    assert [path.name for path in (tmp_path / "heads").iterdir()] == ["a.json"]


def test_a_category_whose_positives_all_have_weight_0_is_left_out(
    headeval: Headeval, make_table: MakeTable, tmp_path: Path
) -> None:
    a, b = flags(120, 0.4, 0.1, 1), flags(120, 0.4, 0.1, 2)
    weights = [0.0 if b[i] else 1.0 for i in range(120)]
    outcome = headeval("fit", make_table(a=a, b=b, w=weights), "--label", "a,b", "--weight", "w")
    assert outcome.code == 5
    assert "all positive rows have weight 0" in outcome.out
    assert [path.name for path in (tmp_path / "heads").iterdir()] == ["a.json"]


# --- which columns, and where the heads go


def test_a_pattern_names_categories_and_one_match_is_still_a_folder(
    headeval: Headeval, make_table: MakeTable, tmp_path: Path
) -> None:
    data = make_table(cat_b=flags(120, 0.4, 0.1, 1), cat_a=flags(120, 0.4, 0.1, 2), dog=flags(120, 0.4, 0.1, 3))
    assert headeval("fit", data, "--label", "cat_*").code == 0
    assert sorted(path.name for path in (tmp_path / "heads").iterdir()) == ["cat_a.json", "cat_b.json"]
    assert headeval("fit", data, "--label", "d*", "-o", "dogs").code == 0
    assert [path.name for path in (tmp_path / "dogs").iterdir()] == ["dog.json"]


def test_a_pattern_does_not_match_the_column_of_weights_or_of_groups(
    headeval: Headeval, make_table: MakeTable, tmp_path: Path
) -> None:
    groups = [i // 2 for i in range(120)]
    data = make_table(cat_a=flags(120, 0.4, 0.1, 1), cat_b=flags(120, 0.4, 0.1, 2), cat_w=[1.0] * 120, cat_g=groups)
    outcome = headeval("fit", data, "--label", "cat_*", "--weight", "cat_w", "--group", "cat_g")
    assert outcome.code == 0, outcome.err
    assert sorted(path.name for path in (tmp_path / "heads").iterdir()) == ["cat_a.json", "cat_b.json"]


def test_a_column_whose_own_name_has_a_comma_is_one_label(
    headeval: Headeval, make_table: MakeTable, tmp_path: Path
) -> None:
    data = make_table(**{"a,b": flags(120, 0.4, 0, 1)})
    assert headeval("fit", data, "--label", "a,b").code == 0
    assert [path.name for path in tmp_path.glob("*.json")] == ["linear-head.json"]


def test_positive_names_the_class_of_every_column_of_other_values(
    headeval: Headeval, make_table: MakeTable, tmp_path: Path
) -> None:
    words = ["yes" if flag else "no" for flag in flags(120, 0.4, 0, 1)]
    data = make_table(a=words, b=flags(120, 0.4, 0, 2))
    assert headeval("fit", data, "--label", "a,b").code == 3
    assert headeval("fit", data, "--label", "a,b", "--positive", "yes").code == 0
    assert read(tmp_path / "heads" / "a.json")["classes"] == ["no", "yes"]
    assert read(tmp_path / "heads" / "b.json")["classes"] == ["false", "true"]


EVIL = ("../evil", "a/b", "con", "x\n\x1b[2J", ".hidden", "\u202egpj", "..")


def test_categories_of_any_name_stay_in_the_folder(headeval: Headeval, make_table: MakeTable, tmp_path: Path) -> None:
    home = tmp_path / "deep" / "er"
    home.mkdir(parents=True)
    data = make_table(**{name: flags(120, 0.4, 0.1, seed) for seed, name in enumerate(EVIL)})
    before = sorted(tmp_path.rglob("*"))
    outcome = headeval("fit", data, "--label", ",".join(EVIL), "-o", home / "heads")
    assert outcome.code == 0, outcome.err
    made = [path for path in sorted(tmp_path.rglob("*")) if path not in before]
    assert len(made) == 1 + len(EVIL)
    assert all(path == home / "heads" or path.parent == home / "heads" for path in made)
    assert not any(char in outcome.out for char in "\x1b\u202e")
    scored = headeval("score", data, "--head", home / "heads", "-o", "scored.parquet")
    assert scored.code == 0, scored.err
    assert not any(char in scored.err for char in "\x1b\u202e")
    assert {f"{name}_logit" for name in EVIL} <= set(pq.read_schema(tmp_path / "scored.parquet").names)


def test_names_that_collide_are_told_before_a_row_is_read(
    headeval: Headeval, make_table: MakeTable, tmp_path: Path
) -> None:
    data = make_table(Hate=["neither"] * 120, hate=[True] * 120)  # labels that reading would refuse
    outcome = headeval("fit", data, "--label", "Hate,hate")
    assert outcome.code == 6
    assert "'Hate' and 'hate' would share one file" in outcome.err
    assert [path.name for path in tmp_path.iterdir()] == ["train.parquet"]


def test_an_old_folder_is_replaced_only_with_force_and_never_half(
    headeval: Headeval, holey: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert headeval("fit", holey, "--label", "a,b").code == 0
    before = {path.name: path.read_bytes() for path in (tmp_path / "heads").iterdir()}
    again = headeval("fit", holey, "--label", "a,b", "--l2", 2)
    assert again.code == 6
    assert "use --force" in again.err
    assert headeval("fit", holey, "--label", "a,rare", "--l2", 2, "--force").code == 6  # b would be stale
    monkeypatch.delattr(fit_categories, "train_categories")  # it is told before that work
    left_out = headeval("fit", holey, "--label", "a,b", "--l2", 2, "--force", "--min-positives", 38)
    assert left_out.code == 6  # a, of 36 positives, is left out now, and its old head would be taken for a new one
    assert "'a.json'" in left_out.err
    monkeypatch.undo()
    monkeypatch.chdir(tmp_path)
    assert {path.name: path.read_bytes() for path in (tmp_path / "heads").iterdir()} == before
    assert headeval("fit", holey, "--label", "a,b", "--l2", 2, "--force").code == 0
    assert read(tmp_path / "heads" / "a.json")["metrics"]["fit"]["l2"] == 2


@pytest.mark.parametrize(
    ("arguments", "code", "said"),
    [
        (["--label", "a,b", "--classes", "x,y"], 2, "--classes"),
        (["--label", "a", "--min-positives", 5, "--drop-unlabelled"], 2, "--min-positives is for several labels"),
        (["--label", "a,b", "--min-positives", 0], 2, "at least 1"),
        (["--label", "a,nope"], 3, "'nope'"),
        (["--label", "nope_*"], 3, "no column matches"),
        (["--label", "a,a"], 3, "more than once"),
        (["--label", "a,b", "--output", "train.parquet", "--force"], 6, "is a file"),
        (["--label", "a,b", "--output", "no/heads"], 6, "create it first"),
        (["--label", "a,b", "--folds", 1], 2, "--folds"),
    ],
)
def test_what_does_not_fit_together_is_told_in_a_line_or_two(
    arguments: list[object], code: int, said: str, headeval: Headeval, two: Path, tmp_path: Path
) -> None:
    outcome = headeval("fit", two, *arguments)
    assert (outcome.code, outcome.out) == (code, "")
    assert said in outcome.err
    assert outcome.err.count("\n") <= 2
    assert [path.name for path in tmp_path.iterdir()] == ["train.parquet"]


def test_drop_unlabelled_changes_nothing_since_unknown_labels_are_always_left_out(
    headeval: Headeval, two: Path, tmp_path: Path
) -> None:
    assert headeval("fit", two, "--label", "a,b").code == 0
    assert headeval("fit", two, "--label", "a,b", "--drop-unlabelled", "-o", "other").code == 0
    for name in ("a.json", "b.json"):
        assert (tmp_path / "heads" / name).read_bytes() == (tmp_path / "other" / name).read_bytes()


# --- what is shown


def test_one_row_a_category_with_its_counts_its_numbers_and_their_intervals(
    headeval: Headeval, two: Path, tmp_path: Path
) -> None:
    outcome = headeval("fit", two, "--label", "a,b", "--threshold", 0.4)
    rows = {}
    lines = outcome.out.splitlines()
    for place, line in enumerate(lines):
        if re.match(r"  [ab]  ", line):
            rows[line.split()[0]] = (line.split(), re.findall(r"\S+", lines[place + 1]))
    for category in ("a", "b"):
        measured = read(tmp_path / "heads" / f"{category}.json")["metrics"]["evaluation"]
        first, second = rows[category]
        assert first[1:3] == [str(measured["n"]), str(measured["positives"])]
        assert second[0] == str(120 - measured["n"])
        keys = ("auc", "ap", "ece_positive_class", "recall", "fpr")
        assert [float(text) for text in first[3:]] == pytest.approx(
            [measured["metrics"][key] for key in keys], abs=0.00501
        )
        lower, upper = re.findall(r"[\d.]+", second[2])
        assert float(lower) == pytest.approx(measured["intervals"]["auc"]["lower"], abs=0.00501)
        assert float(upper) == pytest.approx(measured["intervals"]["auc"]["upper"], abs=0.00501)
    assert "recall and FPR at the threshold 0.4" in outcome.out
    assert "written to       heads: 2 of 2 heads" in outcome.out
    assert "\x1b" not in outcome.out


def test_the_macro_average_is_the_plain_mean_and_says_of_how_many(
    headeval: Headeval, two: Path, tmp_path: Path
) -> None:
    outcome = headeval("fit", two, "--label", "a,b")
    auc = [read(tmp_path / "heads" / f"{name}.json")["metrics"]["evaluation"]["metrics"]["auc"] for name in "ab"]
    (line,) = re.findall(r"macro average +([\d.]+)", outcome.out)
    assert float(line) == pytest.approx(sum(auc) / 2, abs=0.00501)
    assert "of 2 categories" in outcome.out
