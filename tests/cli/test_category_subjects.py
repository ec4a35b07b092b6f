"""Several categories read at once are, each by itself, what reading that category alone gives."""

import dataclasses
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from headeval.cli.category_sources import category_sources, chosen_categories, folder_sources
from headeval.cli.category_subjects import read_category_subjects
from headeval.cli.rows import Columns, read_subject
from headeval.cli.sources import Source
from headeval.cli.subject import Subject
from headeval.errors import DataError, HeadevalError, UsageError
from headeval.files.head_folder import write_heads
from headeval.files.tables import Tables, open_tables
from headeval.head import LinearHead
from headeval.joint_heads import JointHeads

NAMES = ("hate", "spam", "harm")
COLUMNS = Columns("label", None, "embedding", None, False)


def head(seed: int, *, threshold: float = 0.5, scale: float = 3.0) -> LinearHead:
    rng = np.random.default_rng(seed)
    classes = ("false", "true")
    return LinearHead.binary(
        scale * rng.normal(size=4), rng.normal(), classes=classes, embedding_model="m", threshold=threshold
    )


@pytest.fixture
def table(tmp_path: Path) -> Path:
    """90 rows of which each category knows other ones; the last ten no category at all."""
    rng = np.random.default_rng(2)
    embeddings = rng.normal(size=(90, 4)).astype(np.float32)
    columns: dict[str, Any] = {
        "embedding": pa.FixedSizeListArray.from_arrays(pa.array(embeddings.ravel()), 4),
        "w": rng.uniform(0.5, 2, 90),
        "g": [f"g{row // 3}" for row in range(90)],
        "team": [["red", "blue"][row % 2] for row in range(90)],
    }
    for index, name in enumerate(NAMES):
        labels = rng.random(90) < 0.4
        known = (rng.random(90) < 0.7) & (np.arange(90) < 80)
        columns[name] = [bool(label) if there else None for label, there in zip(labels, known, strict=True)]
        columns[f"z_{name}"] = head(index).logits(embeddings)
        columns[f"p_{name}"] = head(index).probs(embeddings)
    pq.write_table(pa.table(columns).replace_schema_metadata({"embedding_model": "m"}), tmp_path / "rows.parquet")
    return tmp_path / "rows.parquet"


@pytest.fixture
def sources(tmp_path: Path) -> dict[str, Source]:
    heads = {name: head(index, threshold=0.3 + index / 10) for index, name in enumerate(NAMES)}
    write_heads(tmp_path / "heads", heads, force=False)
    return folder_sources(tmp_path / "heads", "label")


def opened(path: Path) -> Tables:
    return open_tables([str(path)])


def alone(tables: Tables, name: str, source: Source, columns: Columns, **options: Any) -> Subject:
    own = dataclasses.replace(columns, label=name, drop_unlabelled=True)
    return read_subject(tables, source, own, hold=False, quiet=True, **options)


def same(one: object, other: object) -> bool:
    """Whether two values are the same to the last bit."""
    if isinstance(one, np.ndarray):
        return isinstance(other, np.ndarray) and one.dtype == other.dtype and bool((one == other).all())
    if isinstance(one, dict) and isinstance(other, dict):
        return one.keys() == other.keys() and all(same(value, other[key]) for key, value in one.items())
    return one is other or one == other


def differences(one: Subject, other: Subject) -> list[str]:
    """The names of the fields in which two subjects differ; what a projection keeps of other heads is no difference."""
    fields = [field.name for field in dataclasses.fields(Subject) if field.name != "examples"]
    rows = [field.name for field in dataclasses.fields(one.examples) if field.name != "projected"]
    return [
        *(name for name in fields if not same(getattr(one, name), getattr(other, name))),
        *(name for name in rows if not same(getattr(one.examples, name), getattr(other.examples, name))),
    ]


@pytest.mark.parametrize("by", [(), ("team",)])
@pytest.mark.parametrize("columns", [COLUMNS, dataclasses.replace(COLUMNS, weight="w", group="g")])
@pytest.mark.parametrize("threshold", [None, 0.2])
def test_each_subject_is_the_one_that_reading_its_category_alone_gives(
    table: Path, sources: dict[str, Source], columns: Columns, by: tuple[str, ...], threshold: float | None
) -> None:
    tables = opened(table)
    options: dict[str, Any] = {"by": by, "threshold": threshold}
    found = read_category_subjects(tables, sources, columns, quiet=True, **options)
    assert [part.name for part in found] == sorted(NAMES)
    for part in found:
        expected = alone(tables, part.name, sources[part.name], columns, **options)
        assert part.subject is not None
        assert differences(part.subject, expected) == []
        assert part.unknown == 90 - len(expected.labels) > 10


def test_another_head_of_each_category_scores_the_same_rows(table: Path, sources: dict[str, Source]) -> None:
    tables, also = opened(table), {"hate": head(7), "harm": head(8)}
    for part in read_category_subjects(tables, sources, COLUMNS, also=also, quiet=True):
        expected = alone(tables, part.name, sources[part.name], COLUMNS, also=also.get(part.name))
        assert part.subject is not None
        assert differences(part.subject, expected) == []
        assert (part.subject.also is None) == (part.name == "spam")


@pytest.mark.parametrize(("option", "start"), [("logit", "z"), ("prob", "p")])
@pytest.mark.parametrize("as_pattern", [False, True])
def test_columns_of_scores_are_read_as_each_alone(table: Path, option: str, start: str, as_pattern: bool) -> None:
    tables = opened(table)
    label = "spam,hate,harm"
    spec = f"{start}_*" if as_pattern else f"{start}_spam,{start}_hate,{start}_harm"
    named: dict[str, Any] = {"head": None, "logit": None, "prob": None, option: spec}
    found = category_sources(tables, label=label, **named)
    assert found is not None
    assert {name: source.name for name, source in found.items()} == {name: f"{start}_{name}" for name in NAMES}
    for part in read_category_subjects(tables, found, COLUMNS, quiet=True):
        assert part.subject is not None
        assert differences(part.subject, alone(tables, part.name, found[part.name], COLUMNS)) == []


def test_a_category_without_a_known_row_has_no_subject(table: Path, sources: dict[str, Source], tmp_path: Path) -> None:
    content = pq.read_table(table)
    at = content.schema.names.index("spam")
    content = content.set_column(at, "spam", pa.nulls(90, pa.bool_()))
    pq.write_table(content, tmp_path / "none.parquet")
    tables = opened(tmp_path / "none.parquet")
    found = {part.name: part for part in read_category_subjects(tables, sources, COLUMNS, quiet=True)}
    assert (found["spam"].subject, found["spam"].unknown) == (None, 90)
    assert found["spam"].why == "none of 90 rows has a known label"
    expected = alone(tables, "hate", sources["hate"], COLUMNS)
    assert found["hate"].subject is not None
    assert differences(found["hate"].subject, expected) == []


def test_a_category_whose_known_rows_all_have_weight_0_has_no_subject(
    table: Path, sources: dict[str, Source], tmp_path: Path
) -> None:
    content = pq.read_table(table)
    known = np.array([label is not None for label in content["spam"].to_pylist()])
    content = content.append_column("v", pa.array(np.where(known, 0.0, 1.0)))
    pq.write_table(content, tmp_path / "light.parquet")
    tables, columns = opened(tmp_path / "light.parquet"), dataclasses.replace(COLUMNS, weight="v")
    found = {part.name: part for part in read_category_subjects(tables, sources, columns, quiet=True)}
    assert found["spam"].subject is None
    assert "weight 0" in found["spam"].why
    assert found["hate"].subject is not None


def test_a_missing_label_column_is_named_with_what_to_do(table: Path, sources: dict[str, Source]) -> None:
    content = pq.read_table(table).drop_columns(["spam"])
    pq.write_table(content, table)
    with pytest.raises(DataError, match=r"no column 'spam'.*judge fewer with --label 'harm,hate'"):
        read_category_subjects(opened(table), sources, COLUMNS, quiet=True)


def test_rows_are_read_by_what_collects_them(table: Path, sources: dict[str, Source]) -> None:
    class AskedError(Exception):
        pass

    def collect(*_: Any) -> Any:
        raise AskedError

    with pytest.raises(AskedError):
        read_category_subjects(opened(table), sources, COLUMNS, collect=collect, quiet=True)


@pytest.mark.parametrize("scale", [1e-300, 1.0, 1e300])
def test_joint_logits_have_the_bits_of_each_heads_own(scale: float) -> None:
    """Also beside heads whose weights are so large that they are divided before they are summed."""
    heads = [head(seed, scale=scale if seed % 2 else 1.0) for seed in range(5)]
    softmax = LinearHead("m", ("a", "b", "c"), np.arange(12.0).reshape(3, 4), np.zeros(3), 0.5)
    embeddings = np.random.default_rng(0).normal(size=(300, 4))
    found = JointHeads([*heads, softmax]).logits(embeddings)
    assert found.shape == (300, 6)
    for column, each in zip(found.T, [*heads, softmax], strict=True):
        assert column.tobytes() == each.logits(embeddings).tobytes()


# --- which categories


@pytest.mark.parametrize(
    ("label", "expected"),
    [
        ("label", ("hate", "hate_speech", "spam")),
        ("spam,hate", ("spam", "hate")),
        ("hate*", ("hate", "hate_speech")),
        ("spam,hate_*", ("spam", "hate_speech")),
        ("spam", ("spam",)),
    ],
)
def test_label_restricts_the_categories(label: str, expected: tuple[str, ...]) -> None:
    assert chosen_categories(("hate", "hate_speech", "spam"), label, "heads") == expected


def test_a_category_whose_whole_name_is_the_option_is_meant() -> None:
    assert chosen_categories(("a", "a,b", "b", "label"), "a,b", "heads") == ("a,b",)
    assert chosen_categories(("a", "label"), "label", "heads") == ("a", "label")  # the default of the option: all


@pytest.mark.parametrize(
    ("label", "message"),
    [
        (
            "hat",
            r"--label 'hat' is no category of 'heads' \(did you mean 'hate'\?\).*'hate', 'spam'(.|\n)*--head 'heads/",
        ),
        ("hate,x*", r"--label 'x\*' is no category"),
        ("hate,hate", "names the category 'hate' twice"),
        ("hate,h*", "names the category 'hate' twice"),
        ("hate,", "a name is missing beside a comma"),
    ],
)
def test_a_label_that_is_no_category_is_a_usage_error(label: str, message: str) -> None:
    with pytest.raises(UsageError, match=message):
        chosen_categories(("hate", "spam"), label, "heads")


@pytest.mark.parametrize(
    ("options", "error", "message"),
    [
        ({"label": "hate,spam", "prob": "p_hate,p_spam,p_harm"}, UsageError, "names 2 columns and --prob 3"),
        ({"label": "hate,spam", "prob": "p_hate"}, UsageError, "names 2 columns and --prob 1"),
        ({"label": "hate,team", "prob": "p_*"}, UsageError, "'team' have no column of scores of their name"),
        ({"label": "hate,nix", "prob": "p_*"}, DataError, "'nix'"),
        ({"label": "hate,spam", "logit": "z_hate,nix"}, DataError, "'nix'.*--logit"),
    ],
)
def test_label_columns_and_scores_that_do_not_pair_are_refused(
    table: Path, options: dict[str, str], error: type[HeadevalError], message: str
) -> None:
    named: dict[str, Any] = {"head": None, "logit": None, "prob": None} | options
    with pytest.raises(error, match=message):
        category_sources(opened(table), **named)


@pytest.mark.parametrize(
    ("options", "error", "message"),
    [
        ({"prob": "p_spam"}, UsageError, "names 2 columns and --baseline-prob 1:"),
        ({"logit": "z_hate,z_spam,z_harm"}, UsageError, "names 2 columns and --baseline-logit 3:"),
        ({"prob": "nix_*"}, DataError, "--baseline-prob"),
        ({"label": "hate,team", "prob": "p_*"}, UsageError, "--label a,b --baseline-prob x,y"),
        ({"logit": "z_hate,nix"}, DataError, "'nix'.*--baseline-logit"),
        (
            {"prob": "p_spam,p_hate"},
            UsageError,
            "columns of --baseline-prob .* another order .* 'hate' would be compared with column 'p_spam'",
        ),
    ],
)
def test_what_is_wrong_with_the_columns_of_a_baseline_is_said_of_its_own_option(
    table: Path, options: dict[str, str], error: type[HeadevalError], message: str
) -> None:
    named: dict[str, Any] = {"head": None, "logit": None, "prob": None, "label": "hate,spam"} | options
    with pytest.raises(error, match=message):
        category_sources(opened(table), **named, baseline=True)


def test_one_head_is_not_judged_on_several_label_columns(
    table: Path, tmp_path: Path, sources: dict[str, Source]
) -> None:
    assert sources
    one = tmp_path / "heads" / "hate.json"
    with pytest.raises(UsageError, match="is one head: give the folder"):
        category_sources(opened(table), head=one, logit=None, prob=None, label="hate,spam")


@pytest.mark.parametrize(
    "options",
    [{"label": "hate", "prob": "p_hate"}, {"label": "hate", "prob": "p_*"}, {"label": "hate"}],
)
def test_one_label_column_is_no_list_of_categories(table: Path, options: dict[str, str]) -> None:
    """Several columns of scores of one label column are classes."""
    named: dict[str, Any] = {"head": None, "logit": None, "prob": None} | options
    assert category_sources(opened(table), **named) is None


@pytest.mark.parametrize(
    ("labels", "scores", "wrong"),
    [
        ("violence,hate", "hate_prob,violence_prob", "'violence' would be judged on column 'hate_prob'"),
        ("violence,spam,hate", "P.Hate,spam,P.Violence", "'violence' would be judged on column 'P.Hate'"),
        ("hate,hate_threatening", "hate_threatening_p,hate_p", "'hate' would be judged on column 'hate_threatening_p'"),
        ("cat_a,cat_b", "b_score,a_score", "'cat_a' would be judged on column 'b_score'"),
        ("violence,hate", "violence_prob,hate_prob", ""),
        ("hate,hate_threatening", "hate_p,hate_threatening_p", ""),
        ("cat_a,cat_b", "a_score,b_score", ""),
        ("violence,hate", "hate_violence_1,hate_violence_2", ""),
        ("violence,hate", "hate_old,hate_new", ""),
        ("violence,hate", "score_1,score_2", ""),
        ("hat,hate", "phate,phat", ""),
    ],
)
def test_lists_in_different_orders_are_refused_where_the_names_tell(
    tmp_path: Path, labels: str, scores: str, wrong: str
) -> None:
    names, columns = labels.split(","), scores.split(",")
    values: dict[str, Any] = {name: [True, False] for name in names} | {name: [0.5, 0.25] for name in columns}
    pq.write_table(pa.table(values), tmp_path / "named.parquet")
    asked: dict[str, Any] = {"head": None, "logit": None, "prob": scores, "label": labels}
    if wrong:
        with pytest.raises(UsageError, match=wrong):
            category_sources(open_tables([str(tmp_path / "named.parquet")]), **asked)
        return
    found = category_sources(open_tables([str(tmp_path / "named.parquet")]), **asked)
    assert found is not None
    assert {name: source.name for name, source in found.items()} == dict(zip(names, columns, strict=True))


Headeval = Callable[..., Any]


def test_scores_that_a_file_declares_to_be_of_another_category_are_refused(
    table: Path, sources: dict[str, Source], headeval: Headeval
) -> None:
    assert sources
    assert headeval("score", table, "--head", "heads", "-o", "scored.parquet").code == 0
    declared = category_sources(open_tables(["scored.parquet"]), head=None, logit=None, prob=None, label="label")
    assert declared is not None
    assert {name: source.name for name, source in declared.items()} == {name: f"{name}_logit" for name in NAMES}
    swapped: dict[str, Any] = {"label": "hate,spam", "logit": "spam_logit,hate_logit", "head": None, "prob": None}
    with pytest.raises(
        UsageError, match="itself says that column 'spam_logit' has the scores of 'spam', not of 'hate'"
    ):
        category_sources(open_tables(["scored.parquet"]), **swapped)


@pytest.mark.parametrize(
    ("label", "chosen"),
    [
        ("label", ("label", "hate", "a:b", "x,y")),  # the option's default, which a category of that name does not hide
        ("hate, x,y", ("hate", "x,y")),
        ("a:b,x,y", ("a:b", "x,y")),
        ("x,y", ("x,y",)),
        ("h*,label", ("hate", "label")),
    ],
)
def test_categories_are_chosen_as_columns_are(label: str, chosen: tuple[str, ...]) -> None:
    assert chosen_categories(("label", "hate", "a:b", "x,y"), label, "heads") == chosen


def test_names_that_look_like_patterns_are_paired_in_their_order(tmp_path: Path) -> None:
    columns = {"what?": [1, 0], "b": [0, 1], "what?_logit": [1.0, -1.0], "b_logit": [-2.0, 2.0]}
    pq.write_table(pa.table(columns), tmp_path / "scores.parquet")
    tables = open_tables([str(tmp_path / "scores.parquet")])
    sources = category_sources(tables, head=None, logit="what?_logit,b_logit", prob=None, label="what?,b")
    assert sources is not None
    assert {name: source.name for name, source in sources.items()} == {"what?": "what?_logit", "b": "b_logit"}
