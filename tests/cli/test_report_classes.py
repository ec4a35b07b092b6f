"""`headeval report` on more than two classes: all as scikit-learn measures them, and the flagged one as ever."""

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import jsonschema
import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from sklearn import metrics as sk

from headeval.cli.judging import before_calibration
from headeval.cli.rows import Columns, read_subject
from headeval.cli.sources import head_source
from headeval.files.tables import open_tables
from headeval.head import LinearHead

Headeval = Callable[..., Any]
ROOT = Path(__file__).parents[2]
CLASSES = ("offensive", "neither", "hate")  # not the order of their texts, and hate is not the last of these
SAME = 1e-9
FEW = ("--resamples", 20)  # intervals are not what most of these tests are about
W = np.array([[3.0, 0.5, 0, 1], [-2.0, 2, 1, 0], [0.5, -3, 1, -1]])
B = np.array([0.8, 0.1, -0.9])


def rows(n: int, seed: int) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Embeddings of 4 dimensions, the class logits of the head below, and noisy labels."""
    rng = np.random.default_rng(seed)
    e = rng.normal(size=(n, 4)).astype(np.float32)
    unit = e.astype(np.float64) / np.linalg.norm(e.astype(np.float64), axis=1, keepdims=True)
    z = unit @ W.T + B
    y = np.argmax(z + rng.gumbel(size=z.shape), axis=1)
    return e, z, y


def probabilities(z: np.ndarray) -> np.ndarray:
    exponentials = np.exp(z)
    return exponentials / exponentials.sum(axis=1, keepdims=True)


def write_table(path: Path, e: np.ndarray, names: list[Any], **columns: Any) -> Path:
    flat = pa.FixedSizeListArray.from_arrays(pa.array(e.ravel()), e.shape[1])
    table = pa.table({"embedding": flat, "label": pa.array(names).dictionary_encode(), **columns})
    pq.write_table(table.replace_schema_metadata({"embedding_model": "m"}), path)
    return path


@pytest.fixture
def head(tmp_path: Path) -> Path:
    path = tmp_path / "head.json"
    content = {"embedding_model": "m", "dim": 4, "classes": CLASSES, "W": W.tolist(), "b": B.tolist(), "threshold": 0.3}
    path.write_text(json.dumps(content), encoding="utf-8")
    return path


@pytest.fixture
def data(tmp_path: Path) -> Path:
    e, z, y = rows(500, 1)
    p = probabilities(z)
    scores = {f"p_{name}": p[:, c] for c, name in enumerate(CLASSES)}
    scores |= {f"z_{name}": z[:, c] + 3 for c, name in enumerate(CLASSES)}  # a number added to all changes nothing
    return write_table(tmp_path / "test.parquet", e, [CLASSES[c] for c in y], **scores, team=pa.array(["a", "b"] * 250))


def document(outcome: Any) -> dict[str, Any]:
    assert outcome.code == 0, outcome.err
    content: dict[str, Any] = json.loads(outcome.out)
    schema = json.loads((ROOT / "schemas" / "report.schema.json").read_text(encoding="utf-8"))
    jsonschema.Draft202012Validator(schema).validate(content)
    return content


def test_all_classes_are_measured_as_scikit_learn_does(headeval: Headeval, head: Path, data: Path) -> None:
    found = document(headeval("report", data, *FEW, "--head", head, "--format", "json"))["all_classes"]
    _, z, y = rows(500, 1)
    p, taken = probabilities(z), z.argmax(axis=1)
    assert found["classes"] == list(CLASSES)
    assert found["confusion"] == {
        "rows": "true",
        "columns": "predicted",
        "counts": sk.confusion_matrix(y, taken).tolist(),
    }
    measured = found["metrics"]
    for average in ("macro", "micro", "weighted"):
        for name, value in zip(
            ("precision", "recall", "f1"), sk.precision_recall_fscore_support(y, taken, average=average), strict=False
        ):
            assert measured[f"{average}_{name}"] == pytest.approx(value, abs=SAME)
    assert measured["top1_accuracy"] == pytest.approx(sk.accuracy_score(y, taken), abs=SAME)
    assert measured["balanced_accuracy"] == pytest.approx(sk.balanced_accuracy_score(y, taken), abs=SAME)
    assert measured["multiclass_log_loss"] == pytest.approx(sk.log_loss(y, p), abs=SAME)
    assert measured["hand_till_auc"] == pytest.approx(sk.roc_auc_score(y, p, multi_class="ovo"), abs=SAME)
    one_hot = np.eye(3)[y]
    assert measured["multiclass_brier"] == pytest.approx(np.square(p - one_hot).sum(axis=1).mean(), abs=SAME)
    odds = np.log(p) - np.log1p(-p)
    precision, recall, f1, support = sk.precision_recall_fscore_support(y, taken)
    for c, part in enumerate(found["per_class"]):
        assert (part["name"], part["n"], part["predicted"]) == (CLASSES[c], support[c], int(np.sum(taken == c)))
        expected = {
            "precision": precision[c],
            "recall": recall[c],
            "f1": f1[c],
            "auc": sk.roc_auc_score(y == c, odds[:, c]),
            "ap": sk.average_precision_score(y == c, odds[:, c]),
        }
        assert {name: part["metrics"][name] for name in expected} == pytest.approx(expected, abs=SAME)


def test_everything_else_is_about_the_flagged_class_at_the_threshold_of_the_head(
    headeval: Headeval, head: Path, data: Path
) -> None:
    found = document(headeval("report", data, *FEW, "--head", head, "--format", "json", "--by", "team"))
    _, z, y = rows(500, 1)
    p = probabilities(z)[:, 2]
    assert found["classes"] == ["not hate", "hate"]
    assert (found["threshold"], found["provenance"]["threshold_from"]) == (0.3, "head")
    assert found["counts"]["true_positives"] == int(np.sum((p >= 0.3) & (y == 2)))
    assert found["counts"]["false_positives"] == int(np.sum((p >= 0.3) & (y != 2)))
    assert found["metrics"]["auc"] == pytest.approx(sk.roc_auc_score(y == 2, p), abs=SAME)
    assert found["metrics"]["accuracy"] == pytest.approx(np.mean((p >= 0.3) == (y == 2)), abs=SAME)
    assert found["metrics"]["accuracy"] != found["all_classes"]["metrics"]["top1_accuracy"]
    assert found["metrics"]["log_loss"] == pytest.approx(sk.log_loss(y == 2, p), abs=SAME)
    assert [part["metrics"]["auc"] for part in sorted(found["slices"], key=lambda part: part["value"])] == [
        pytest.approx(sk.roc_auc_score(y[first::2] == 2, p[first::2]), abs=SAME) for first in (0, 1)
    ]


def test_the_file_changes_neither_the_classes_nor_their_order(headeval: Headeval, head: Path, tmp_path: Path) -> None:
    """A file that lacks a class has all rows and columns of the matrix, and what cannot be known is undefined."""
    e, z, y = rows(300, 2)
    kept = y != 0
    data = write_table(tmp_path / "two.parquet", e[kept], [CLASSES[c] for c in y[kept]])
    found = document(headeval("report", data, *FEW, "--head", head, "--format", "json"))["all_classes"]
    assert found["classes"] == list(CLASSES)
    expected = sk.confusion_matrix(y[kept], z[kept].argmax(axis=1), labels=[0, 1, 2])
    assert found["confusion"]["counts"] == expected.tolist()
    first = found["per_class"][0]
    assert (first["name"], first["n"], first["metrics"]["recall"]) == ("offensive", 0, None)
    assert first["undefined"]["recall"] == "no row is of the class"
    assert "offensive" in found["undefined"]["macro_recall"]


def test_a_class_that_the_head_does_not_know_is_named(headeval: Headeval, head: Path, tmp_path: Path) -> None:
    e, _, y = rows(60, 3)
    names = ["spam" if row in {5, 9} else CLASSES[c] for row, c in enumerate(y)]
    outcome = headeval("report", write_table(tmp_path / "more.parquet", e, names), "--head", head)
    assert outcome.code == 3
    assert "'spam' (2 rows)" in outcome.err
    assert "'offensive', 'neither', 'hate'" in outcome.err


def test_a_column_of_two_values_is_judged_where_it_is_said_which_means_the_flagged_class(
    headeval: Headeval, head: Path, tmp_path: Path
) -> None:
    e, z, y = rows(200, 4)
    data = write_table(tmp_path / "binary.parquet", e, ["hateful" if c == 2 else "fine" for c in y])
    assert headeval("report", data, *FEW, "--head", head).code == 3
    found = document(headeval("report", data, *FEW, "--head", head, "--positive", "hateful", "--format", "json"))
    assert "all_classes" not in found
    assert found["metrics"]["auc"] == pytest.approx(sk.roc_auc_score(y == 2, probabilities(z)[:, 2]), abs=SAME)
    assert any("'hateful' is taken for the flagged class 'hate'" in note for note in found["notes"])


@pytest.mark.parametrize(
    "arguments",
    [
        ("--prob", "p_*", "--classes", "offensive,neither,hate"),
        ("--prob", "p_*", "--positive", "hate"),
        ("--prob", "p_offensive,p_neither,p_hate", "--classes", "offensive,neither,hate"),
        ("--logit", "z_*", "--classes", "neither,offensive,hate"),
        ("--logit", "z_neither,z_offensive,z_hate", "--classes", "neither,offensive,hate"),
    ],
    ids=" ".join,
)
def test_a_bare_score_file_says_what_the_head_says(
    headeval: Headeval, head: Path, data: Path, arguments: tuple[str, ...]
) -> None:
    """Whatever the order in which the columns are given: a probability is of the class that its column is named for."""
    asked = ("report", data, *FEW, "--threshold", 0.3, "--format", "json")
    expected, found = document(headeval(*asked, "--head", head)), document(headeval(*asked, *arguments))
    names = found["all_classes"]["classes"]
    assert set(names[:2]) == {"offensive", "neither"}
    assert names[2] == "hate"
    order = [CLASSES.index(name) for name in names]
    matrix = np.array(expected["all_classes"]["confusion"]["counts"])[np.ix_(order, order)]
    assert found["all_classes"]["confusion"]["counts"] == matrix.tolist()
    assert found["all_classes"]["metrics"] == pytest.approx(expected["all_classes"]["metrics"], abs=SAME)
    assert found["metrics"] == pytest.approx(expected["metrics"], abs=1e-7)  # Cox's fit ends at its own tolerance
    assert found["counts"] == expected["counts"]


def test_of_a_list_the_last_column_is_flagged(headeval: Headeval, tmp_path: Path) -> None:
    (tmp_path / "s.csv").write_text("label,b,c,a\nb,0.5,0.25,0.25\nc,0.25,0.5,0.25\na,0.25,0.25,0.5\nc,0.3,0.3,0.4\n")
    found = document(headeval("report", "s.csv", *FEW, "--prob", "b,c,a", "--format", "json"))
    assert found["all_classes"]["classes"] == ["b", "c", "a"]
    assert found["classes"] == ["not a", "a"]
    assert found["all_classes"]["confusion"]["counts"] == [[1, 0, 0], [0, 1, 1], [0, 0, 1]]
    two = document(headeval("report", "s.csv", *FEW, "--prob", "b,c,a", "--positive", "b", "--format", "json"))
    assert two["all_classes"]["classes"] == ["c", "a", "b"]


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (("--prob", "p_*"), "not which one is flagged"),
        (("--prob", "p_*", "--positive", "spam"), "but not 'spam', which is to be flagged"),
        (("--prob", "p_*", "--classes", "offensive,neither,spam"), "'offensive', 'neither', 'spam'"),
        (("--prob", "p_neither,p_offensive,p_hate", "--classes", "offensive,neither,hate"), "in another order"),
        (("--prob", "p_neither,p_offensive,p_hate", "--classes", "neither,hate"), "3 columns, --classes 2 classes"),
        (
            ("--prob", "p_hate,p_neither,p_offensive", "--positive", "hate"),
            "--prob 'p_neither,p_offensive,p_hate' --classes 'neither,offensive,hate'",
        ),
        (("--prob", "p_neither,p_offensive,p_hate", "--positive", "hate"), "judge its own column: --prob 'p_hate'"),
        (("--prob", "p_*", "--classes", "hate"), "at least two different names"),
        (("--prob", "p_*", "--classes", "hate,hate"), "at least two different names"),
        (("--prob", "p_*", "--classes", "a,b", "--positive", "b"), "exclude each other"),
        (("--head", "head.json", "--classes", "neither,offensive,hate"), "the head says which classes there are"),
        (("--head", "head.json", "--positive", "neither"), "it flags 'hate'"),
    ],
    ids=lambda value: " ".join(value) if isinstance(value, tuple) else "",
)
@pytest.mark.usefixtures("head")
def test_what_does_not_fit_together_is_said(
    headeval: Headeval, data: Path, arguments: tuple[str, ...], said: str
) -> None:
    outcome = headeval("report", data, *FEW, *arguments)
    assert (outcome.code, outcome.out) == (2, "")
    assert said in outcome.err


def test_where_positive_names_none_of_the_columns_the_classes_can_still_be_named(
    headeval: Headeval, head: Path, tmp_path: Path
) -> None:
    """A head says itself which classes there are, so that --classes would be refused beside it."""
    (tmp_path / "s.csv").write_text("label,s1,s2,s3\nx,0.5,0.25,0.25\ny,0.25,0.5,0.25\nz,0.25,0.25,0.5\n")
    outcome = headeval("report", "s.csv", *FEW, "--prob", "s1,s2,s3", "--positive", "z")
    assert outcome.code == 3
    assert "name all classes in their order with --classes, the flagged one last" in outcome.err
    assert headeval("report", "s.csv", *FEW, "--prob", "s1,s2,s3", "--classes", "x,y,z").code == 0
    e = rows(3, 9)[0]
    of_head = headeval(
        "report", write_table(tmp_path / "t.parquet", e, ["x", "y", "z"]), "--head", head, "--positive", "z"
    )
    assert of_head.code == 3
    assert "--classes" not in of_head.err


def test_requirements_of_classes_say_in_every_format_what_they_are(headeval: Headeval, head: Path, data: Path) -> None:
    """`*` asks each class; beside the verdict stands that hate:recall is another number than recall."""
    asked = ("report", data, *FEW, "--head", head, "--require", "*:recall>=0.01", "--require", "recall>=0.01")
    told = "of the rows of the class, those whose likeliest class it is; without a prefix: of hate, flagged"
    text = headeval(*asked, "--html", "r.html", "--card", "c.md", "--junit", "j.xml").out
    assert told in " ".join(text.split())
    assert told in headeval(*asked, "--format", "markdown").out
    for path in ("r.html", "c.md"):
        assert told in Path(path).read_text(encoding="utf-8")
    alone = "hate:recall: of the rows of hate, those whose likeliest class it is; without a prefix: flagged at the"
    assert alone in Path("j.xml").read_text(encoding="utf-8")
    found = document(headeval(*asked, "--format", "json"))
    *each, plain = found["requirements"]
    assert [one["requirement"] for one in each] == [f"{name}:recall>=0.01" for name in CLASSES]
    assert each[2]["meant"].startswith(alone)
    assert "meant" not in plain
    _, z, y = rows(500, 1)
    p = probabilities(z)
    assert each[2]["value"] == pytest.approx(sk.recall_score(y == 2, p.argmax(axis=1) == 2), abs=SAME)
    assert plain["value"] == pytest.approx(sk.recall_score(y == 2, p[:, 2] >= 0.3), abs=SAME)


def test_probabilities_that_do_not_add_up_are_named(headeval: Headeval, tmp_path: Path) -> None:
    (tmp_path / "s.csv").write_text("label,a,b,c\na,0.5,0.25,0.25\nb,0.9,0.5,0.1\nc,0.2,0.2,0.6\n")
    outcome = headeval("report", "s.csv", *FEW, "--prob", "a,b,c")
    assert outcome.code == 3
    assert "do not add up to 1" in outcome.err
    assert "2" in outcome.err
    rounded = "label,a,b,c\na,0.33,0.33,0.33\nb,0.34,0.33,0.33\nc,0.17,0.17,0.67\n"
    (tmp_path / "r.csv").write_text(rounded)
    assert headeval("report", "r.csv", "--prob", "a,b,c").code == 0


def test_one_column_judges_the_flagged_class_where_all_classes_are_named(headeval: Headeval, data: Path) -> None:
    asked = ("report", data, *FEW, "--prob", "p_hate")
    assert headeval(*asked).code == 3
    found = document(headeval(*asked, "--classes", "neither,offensive,hate", "--format", "json"))
    assert "all_classes" not in found
    _, z, y = rows(500, 1)
    assert found["metrics"]["auc"] == pytest.approx(sk.roc_auc_score(y == 2, probabilities(z)[:, 2]), abs=SAME)


def test_a_scored_file_needs_no_options(headeval: Headeval, head: Path, data: Path) -> None:
    assert headeval("score", data, "--head", head, "-o", "scored.parquet").code == 0
    expected = document(headeval("report", data, *FEW, "--head", head, "--format", "json"))
    found = document(headeval("report", "scored.parquet", *FEW, "--format", "json"))
    assert found["all_classes"] == expected["all_classes"]
    assert {key: found[key] for key in ("metrics", "intervals", "counts", "threshold", "classes")} == {
        key: expected[key] for key in ("metrics", "intervals", "counts", "threshold", "classes")
    }
    by_prob = document(headeval("report", "scored.parquet", *FEW, "--prob", "prob", "--format", "json"))
    assert by_prob["all_classes"]["confusion"] == expected["all_classes"]["confusion"]
    of_classes = document(headeval("report", "scored.parquet", *FEW, "--logit", "logit_*", "--format", "json"))
    assert {**of_classes, "provenance": {}} == {**found, "provenance": {}}  # threshold, order and rows seen included
    wrong = headeval("report", "scored.parquet", "--logit", "prob_*", "--positive", "hate")
    assert wrong.code == 2
    assert "use --prob" in wrong.err
    other = document(
        headeval("report", "scored.parquet", *FEW, "--prob", "prob_*", "--positive", "neither", "--format", "json")
    )
    assert (other["classes"], other["threshold"]) == (["not neither", "neither"], 0.5)


def test_a_column_of_the_flagged_class_is_a_baseline(headeval: Headeval, head: Path, data: Path) -> None:
    outcome = headeval(
        "report", data, *FEW, "--head", head, "--baseline-prob", "p_hate", "--threshold", 0.3, "--format", "json"
    )
    comparison = document(outcome)["comparison"]
    assert comparison["differences"]["auc"]["value"] == pytest.approx(0.0, abs=SAME)
    assert (comparison["newly_flagged"], comparison["no_longer_flagged"]) == (0, 0)


def test_weights_groups_seed_and_bins_reach_the_numbers_of_all_classes(
    headeval: Headeval, head: Path, tmp_path: Path
) -> None:
    e, z, y = rows(200, 5)
    weight = np.where(y == 1, 3.0, 1.0)
    data = write_table(
        tmp_path / "w.parquet",
        e,
        [CLASSES[c] for c in y],
        weight=pa.array(weight),
        group=pa.array([f"g{row // 4}" for row in range(200)]),
    )
    asked = ("report", data, "--head", head, "--format", "json", "--weight", "weight", "--group", "group")
    found = document(headeval(*asked, "--seed", 7, "--resamples", 50, "--bins", 4, "--confidence", 0.8))["all_classes"]
    expected = sk.accuracy_score(y, z.argmax(axis=1), sample_weight=weight)
    assert found["metrics"]["top1_accuracy"] == pytest.approx(expected, abs=SAME)
    assert found["confusion"]["counts"] == sk.confusion_matrix(y, z.argmax(axis=1)).tolist()
    assert (found["weighted"], found["confidence"], found["top_label"]["n_bins"]) == (True, 0.8, 4)
    assert found["resampling"] == {"n_resamples": 50, "seed": 7, "grouped": True}


def test_accuracy_of_all_classes_is_not_mistaken_for_that_of_the_decisions(
    headeval: Headeval, head: Path, data: Path
) -> None:
    text = headeval("report", data, *FEW, "--head", head).out
    assert "All 3 classes: " in text
    for title in ("Ranking", "Calibration", "Decisions", "Reliability"):
        assert f"\n{title} (hate against the rest)" in text
    assert "accuracy under Decisions: of hate or not, at the threshold" in " ".join(text.split())
    markdown = headeval("report", data, *FEW, "--head", head, "--format", "markdown").out
    assert "### All 3 classes\n" in markdown
    assert "### Decisions (hate against the rest)\n" in markdown
    assert "### Decisions\n" not in markdown


def test_page_card_and_test_cases_tell_the_classes_apart(headeval: Headeval, head: Path, data: Path) -> None:
    outcome = headeval(
        "report",
        data,
        *FEW,
        "--head",
        head,
        "--html",
        "r.html",
        "--card",
        "c.md",
        "--junit",
        "j.xml",
        "--require",
        "auc>=0.5",
    )
    assert outcome.code == 0, outcome.err
    page, card = Path("r.html").read_text(encoding="utf-8"), Path("c.md").read_text(encoding="utf-8")
    for heading in ("All 3 classes", "Confusion matrix", "Decisions (hate against the rest)"):
        assert f">{heading}</h2>" in page
    assert "Charts (hate against the rest)" in page
    assert "Threshold (hate against the rest)" in page
    assert "| classes | offensive, neither, hate |" in card
    assert "### Confusion matrix" in card
    assert "### Measures (hate against the rest)" in card
    assert 'value="not hate, hate (flagged)"' in Path("j.xml").read_text(encoding="utf-8")


def test_reliability_before_a_calibration_undoes_the_temperature_of_all_classes(data: Path, tmp_path: Path) -> None:
    """A temperature divides the logits of all classes; dividing the log-odds of the flagged one is another map."""
    slope = 2.0
    calibrated = LinearHead(
        "m", CLASSES, slope * W, slope * B, 0.5, {"calibrations": [{"slope": slope, "intercept": 0.0}]}
    )
    columns = Columns("label", None, "embedding", None, drop_unlabelled=False)
    subject = read_subject(open_tables([str(data)]), head_source(calibrated, "head"), columns, hold=False, quiet=True)
    table = before_calibration(subject, subject.evaluate(n_resamples=0).reliability)
    assert table is not None
    _, z, y = rows(500, 1)
    p = probabilities(z)[:, 2]
    expected = np.histogram(p, bins=np.arange(11) / 10)[0]
    assert table.counts.tolist() == expected.tolist()
    filled = expected > 0
    shares = np.histogram(p[y == 2], bins=np.arange(11) / 10)[0][filled] / expected[filled]
    np.testing.assert_allclose(table.accuracy[filled], shares, atol=1e-12)


def test_rows_of_a_reference_are_compared_by_the_flagged_class(headeval: Headeval, data: Path, tmp_path: Path) -> None:
    table = pq.read_table(data)
    pq.write_table(table.drop_columns(["label", "embedding"]), tmp_path / "reference.parquet")
    asked = ("report", data, *FEW, "--positive", "hate", "--reference", "reference.parquet", "--format", "json")
    drift = document(headeval(*asked, "--prob", "p_*"))["drift"]
    assert drift["ks"]["statistic"] == 0.0  # the same rows, whose other columns differ
    outcome = headeval(*asked, "--logit", "z_*")
    assert outcome.code == 2
    assert "give probabilities (--prob), or a reference with labels" in outcome.err
