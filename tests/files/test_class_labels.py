"""Labels of many classes: their order, the values that stand for them, the flagged class, and their scores."""

import csv
import struct
from hashlib import blake2b

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import given
from hypothesis import strategies as st

from headeval.errors import DataError
from headeval.files.class_labels import resolve_classes
from headeval.files.examples import Examples, read_examples, require_both_classes
from headeval.files.tables import open_tables


def parquet(folder, column, **columns):
    pq.write_table(pa.table({"label": column, **columns}), folder / "a.parquet")
    return open_tables([str(folder / "a.parquet")])


def csv_table(folder, rows):
    with (folder / "a.csv").open("w", newline="", encoding="utf-8") as file:
        csv.writer(file).writerows(rows)
    return open_tables([str(folder / "a.csv")])


def told(examples: Examples) -> tuple:
    return examples.class_names, examples.class_codes.tolist(), examples.classes, examples.labels.tolist()


def test_the_order_of_the_classes_is_the_one_given_and_the_last_is_flagged(tmp_path):
    tables = parquet(tmp_path, ["b", "c", "a", "b"])
    expected = (("c", "a", "b"), [2, 0, 1, 2], ("not b", "b"), [1, 0, 0, 1])
    for options in ({"classes": ("c", "a", "b")}, {"classes": ("c", "a", "b"), "many_classes": True}):
        examples = read_examples(tables, **options)
        assert told(examples) == expected
        assert (examples.labels.dtype, examples.class_codes.dtype) == (np.uint8, np.int16)


def test_without_an_order_the_named_class_is_last_and_the_others_stand_in_the_order_of_their_text(tmp_path):
    tables = parquet(tmp_path, ["z", "hate", "a", "m"])
    assert told(read_examples(tables, positive="hate", many_classes=True)) == (
        ("a", "m", "z", "hate"),
        [2, 3, 0, 1],
        ("not hate", "hate"),
        [0, 1, 0, 0],
    )


def test_numbers_stand_in_the_order_of_their_values(tmp_path):
    tables = parquet(tmp_path, [10, 9, -1, 2, 100])
    assert read_examples(tables, positive="9", many_classes=True).class_names == ("-1", "2", "10", "100", "9")
    tables = csv_table(tmp_path, [["label"], ["x"], ["1e3"], ["0.5"], ["10"], ["+7"], ["é"]])
    examples = read_examples(tables, positive="x", many_classes=True)
    assert examples.class_names == ("0.5", "7", "10", "1e3", "é", "x")


@pytest.mark.parametrize(
    "column",
    [
        pa.array([0, 1, 2, 1]),
        pa.array([0, 1, 2, 1], pa.uint8()),
        pa.array([0.0, 1.0, 2.0, 1.0]),
        pa.array([0.0, 1.0, 2.0, 1.0], pa.float16()),
        pa.array(["0", "1", "2", "1"]),
        pa.array(["0", "1", "2", "1"]).dictionary_encode(),
        pa.DictionaryArray.from_arrays(pa.array([3, 1, 2, 1]), pa.array(["9", "1", "2", "0"])),
        pa.array([0, 1, 2, 1]).dictionary_encode(),
    ],
    ids=str,
)
@pytest.mark.parametrize("names", [("2", "0", "1"), ("2.0", "0.0", "1.0")])
def test_a_number_is_one_class_however_it_is_stored_and_spelled(tmp_path, column, names):
    examples = read_examples(parquet(tmp_path, column), classes=names)
    assert told(examples) == (names, [1, 2, 0, 2], (f"not {names[2]}", names[2]), [0, 1, 0, 1])
    learnt = read_examples(parquet(tmp_path, column), positive=names[2], many_classes=True)
    assert told(learnt) == (("0", "2", "1"), [0, 2, 1, 2], ("not 1", "1"), [0, 1, 0, 1])


def test_spellings_of_a_number_in_a_csv_file_are_one_class(tmp_path):
    tables = csv_table(tmp_path, [["label"], ["1.0"], ["1"], ["+1"], ["0"], ["2.00"]])
    assert told(read_examples(tables, positive="1.0", many_classes=True))[:2] == (("0", "2", "1"), [2, 2, 2, 0, 1])


def test_spellings_of_a_number_in_text_are_one_class_named_as_most_rows_spell_it(tmp_path):
    tables = parquet(tmp_path, ["1.0", "1", "1.0", "0", "2"])
    assert told(read_examples(tables, positive="1", many_classes=True))[:2] == (("0", "2", "1.0"), [2, 2, 2, 0, 1])


def test_classes_that_are_the_same_number_are_told_apart_by_their_text():
    rule = resolve_classes({"1": 1, "1.0": 1, "1.": 1, "x": 1}, where="here", classes=("1.0", "x", "1"))
    assert rule.codes == {"1": 2, "1.0": 0, "1.": 2, "x": 1}
    rule = resolve_classes({"1": 1, "1.00": 1}, where="here", classes=("1.0", "x", "1.00"))
    assert rule.codes == {"1": 0, "1.00": 2}


@pytest.mark.parametrize("kind", ["csv", "parquet"])
def test_what_may_be_the_name_of_a_class_among_names_is_a_class(tmp_path, kind):
    values = ["NA", "NC", "NE", "None"]
    tables = csv_table(tmp_path, [["label"], *zip(values)]) if kind == "csv" else parquet(tmp_path, values)
    examples = read_examples(tables, positive="NE", many_classes=True)
    assert examples.class_names == ("NA", "NC", "None", "NE")
    assert examples.class_codes.tolist() == [0, 1, 3, 2]


def test_rows_without_a_label_are_left_out_or_refused(tmp_path):
    tables = parquet(tmp_path, ["a", None, "b", "c"], z=[1.0, 2.0, 3.0, 4.0])
    with pytest.raises(DataError, match=r"no label \(null, NaN or empty\) in row 2"):
        read_examples(tables, classes=("a", "b", "c"))
    examples = read_examples(tables, classes=("a", "b", "c"), drop_unlabelled=True, class_scores=["z", "z", "z"])
    assert examples.class_codes.tolist() == [0, 1, 2]
    assert examples.class_scores.tolist() == [[1.0] * 3, [3.0] * 3, [4.0] * 3]
    assert (examples.unlabelled, examples.kept.tolist()) == (1, [True, False, True, True])


def test_values_that_are_no_class_are_named_with_their_counts(tmp_path):
    tables = parquet(tmp_path, ["a", "q", "b", "q", "\x1b[0m"])
    with pytest.raises(DataError) as error:
        read_examples(tables, classes=("a", "b", "c"))
    assert str(error.value).split("a.parquet': ")[1].splitlines() == [
        "column 'label' holds 'q' (2 rows), '\\x1b[0m' (1 row), none of which is one of the classes 'a', 'b', 'c'",
        (
            "name the column of the labels with --label, the classes of columns of scores with --classes or, of a "
            "column with two values, the one that is flagged with --positive"
        ),
    ]
    with pytest.raises(DataError, match=r"holds 'X' \(1 row\), which is none of the classes 'a', 'b', 'c'\nadd what"):
        resolve_classes({"a": 2, "X": 1}, where="here", classes=("a", "b", "c"), many=True)


def test_a_file_may_lack_classes_of_the_head(tmp_path):
    examples = read_examples(parquet(tmp_path, ["b", "b"]), classes=("c", "b", "a"))
    assert told(examples) == (("c", "b", "a"), [1, 1], ("not a", "a"), [0, 0])
    flagged = read_examples(parquet(tmp_path, ["a"]), classes=("c", "b", "a"))
    assert told(flagged) == (("c", "b", "a"), [2], ("not a", "a"), [1])


def test_files_with_different_classes_are_read_together(tmp_path):
    for number, values in enumerate((["b", "c"], ["a", "b"], ["c"])):
        pq.write_table(pa.table({"label": values}), tmp_path / f"{number}.parquet")
    examples = read_examples(open_tables([str(tmp_path)]), positive="b", many_classes=True)
    assert told(examples)[:2] == (("a", "c", "b"), [2, 1, 0, 2, 1])
    with pytest.raises(DataError, match=r"0\.parquet' and 2 more files: column 'label' holds 'a' \(1 row\)"):
        read_examples(open_tables([str(tmp_path)]), classes=("b", "c", "d"))


def test_without_a_named_class_many_are_refused_with_the_ways_out(tmp_path):
    tables = parquet(tmp_path, ["a", "b", "b", "c"])
    with pytest.raises(DataError) as error:
        read_examples(tables, many_classes=True)
    assert str(error.value).split("a.parquet': ")[1].splitlines() == [
        "column 'label' holds 3 different values: 'b' (2 rows), 'a' (1 row), 'c' (1 row); which is the positive class?",
        "name it with --positive NAME, or all classes in their order, the flagged one last, with --classes a,b,c",
    ]
    with pytest.raises(DataError, match=r"no value 'B' \(--positive\); it holds 'b' \(2 rows\)"):
        read_examples(tables, many_classes=True, positive="B")


def test_the_positive_class_must_be_the_last_of_given_classes(tmp_path):
    tables = parquet(tmp_path, ["0", "1", "2"])
    assert read_examples(tables, classes=("0", "1", "2"), positive="2.0").class_codes.tolist() == [0, 1, 2]
    for positive in ("1", "nope"):
        with pytest.raises(DataError, match=rf"--positive '{positive}' is not the flagged one, the last, of .*'2'$"):
            read_examples(tables, classes=("0", "1", "2"), positive=positive)


@pytest.mark.parametrize(
    ("values", "options", "classes", "labels"),
    [
        ([0, 1], {}, ("0", "1"), [0, 1]),
        (["Safe", "UNSAFE"], {}, ("Safe", "UNSAFE"), [0, 1]),
        ([True, False], {}, ("false", "true"), [1, 0]),
        (["x", "y"], {"positive": "x"}, ("y", "x"), [1, 0]),
        (["x", "x"], {"positive": "x"}, ("not x", "x"), [1, 1]),
        (["x", "y"], {"classes": ("y", "x")}, ("y", "x"), [1, 0]),
        ([False, True], {"classes": ("0", "1")}, ("0", "1"), [0, 1]),
        ([False, False], {"classes": ("0", "1")}, ("0", "1"), [0, 0]),
    ],
)
def test_two_classes_are_what_they_were(tmp_path, values, options, classes, labels):
    for many in (False, True):
        examples = read_examples(parquet(tmp_path, values), many_classes=many, **options)
        assert (examples.classes, examples.class_names, examples.labels.tolist()) == (classes, classes, labels)
        assert examples.class_codes is None


def test_two_given_classes_are_all_that_a_fit_takes(tmp_path):
    with pytest.raises(DataError, match=r"holds 'z' \(1 row\), which is none of the classes 'x', 'y'"):
        read_examples(parquet(tmp_path, ["x", "y", "z"]), classes=("x", "y"), many_classes=True)


def test_a_fit_needs_rows_of_every_class(tmp_path):
    tables = parquet(tmp_path, ["a", "b", "a"])
    for classes in (("a", "c", "b"), ("c", "a", "b"), ("b", "a", "c")):
        with pytest.raises(DataError, match=r"a\.parquet': no row is 'c': rows of every class are needed"):
            require_both_classes(read_examples(tables, classes=classes), tables)
    require_both_classes(read_examples(tables, classes=("a", "b")), tables)
    tables = parquet(tmp_path, ["a", "b", "c"])
    require_both_classes(read_examples(tables, classes=("a", "c", "b")), tables)


def test_a_thousand_classes_are_taken_and_identifiers_are_not(tmp_path):
    names = [f"c{number:04}" for number in range(1001)]
    examples = read_examples(parquet(tmp_path, names[:1000]), positive="c0007", many_classes=True)
    assert examples.class_names == (*names[:7], *names[8:1000], "c0007")
    assert examples.class_codes[[0, 7, 8, 999]].tolist() == [0, 999, 7, 998]
    with pytest.raises(DataError, match="more than 1000 different values, too many for classes; name the column"):
        read_examples(parquet(tmp_path, names), positive="c0007", many_classes=True)


def test_fingerprints_tell_the_classes_of_rows_apart(tmp_path):
    z = [0.5, 0.25, 0.125]
    prints = {
        read_examples(parquet(tmp_path, labels, z=z), classes=("a", "b", "c"), score="z").fingerprint
        for labels in (["a", "b", "c"], ["b", "a", "c"], ["a", "c", "b"])
    }
    assert len(prints) == 3
    digests = [int.from_bytes(blake2b(struct.pack("<d", score), digest_size=16).digest(), "big") for score in z]
    assert f"3:{(digests[0] + 3 * digests[1] + 5 * digests[2]) % 2**128:032x}" in prints
    backwards = parquet(tmp_path, ["c", "b", "a"], z=z[::-1])
    assert read_examples(backwards, classes=("a", "b", "c"), score="z").fingerprint in prints


PROBS = {"p_a": [0.5, 0.2, 1 / 3], "p_b": [0.3, 0.2, 1 / 3], "p_c": [0.2, 0.6, 1 / 3]}


def test_scores_of_all_classes_are_columns_in_the_order_named(tmp_path):
    tables = parquet(tmp_path, ["a", "b", "c"], **PROBS)
    examples = read_examples(
        tables, classes=("c", "a", "b"), class_scores=["p_c", "p_a", "p_b"], score_kind="prob", score="p_b"
    )
    assert examples.class_scores.tolist() == np.transpose([PROBS["p_c"], PROBS["p_a"], PROBS["p_b"]]).tolist()
    assert examples.scores.tolist() == PROBS["p_b"]
    assert read_examples(tables, classes=("a", "b", "c")).class_scores is None


def test_probabilities_of_a_row_must_add_up_to_1(tmp_path):
    tables = parquet(tmp_path, ["a", "b", "c"], **(PROBS | {"p_c": [0.2, 0.7, 0.9]}))
    options = {"classes": ("a", "b", "c"), "class_scores": ["p_a", "p_b", "p_c"]}
    with pytest.raises(
        DataError,
        match=r"columns 'p_a', 'p_b', 'p_c' do not add up to 1 in rows 2 and 3 \('1.1', '1.56667'\); are these "
        "independent categories",
    ):
        read_examples(tables, **options, score_kind="prob")
    assert read_examples(tables, **options, score_kind="logit").class_scores[1].tolist() == [0.2, 0.2, 0.7]


@pytest.mark.parametrize(
    ("p", "taken"),
    [
        ((0.33, 0.33, 0.33), True),  # thirds
        ((0.34, 0.34, 0.34), False),  # 1.02 is more than three halves of a hundredth
        ((0.333, 0.333, 0.333), True),
        ((0.337, 0.333, 0.334), False),
        ((0.33, 0.33, 0.325), False),  # three decimals
        ((0.3 + 0.0149, 0.3, 0.4), False),
        ((0.3 + 0.0015, 0.3, 0.4), True),  # as float16 would have it
        (tuple(np.float16([0.33, 0.33, 0.33]).tolist()), True),
    ],
)
def test_a_row_misses_1_by_no_more_than_its_decimals_allow(tmp_path, p, taken):
    tables = parquet(tmp_path, ["a"], p_a=[p[0]], p_b=[p[1]], p_c=[p[2]])
    options = {"classes": ("a", "b", "c"), "class_scores": ["p_a", "p_b", "p_c"], "score_kind": "prob"}
    if taken:
        assert read_examples(tables, **options).class_scores.shape == (1, 3)
    else:
        with pytest.raises(DataError, match="do not add up to 1 in row 1"):
            read_examples(tables, **options)


@pytest.mark.parametrize(
    ("value", "message"),
    [(None, "column 'p_b' is null in row 2"), (1.5, r"column 'p_b' is no probability in \[0, 1\] in row 2 \('1.5'\)")],
)
def test_a_score_that_cannot_be_used_is_named(tmp_path, value, message):
    tables = parquet(tmp_path, ["a", "b", "c"], **(PROBS | {"p_b": [0.3, value, 1 / 3]}))
    with pytest.raises(DataError, match=message):
        read_examples(tables, classes=("a", "b", "c"), class_scores=["p_a", "p_b", "p_c"], score_kind="prob")


def test_a_missing_column_of_scores_is_named(tmp_path):
    with pytest.raises(DataError, match=r"has no column 'p_d' \(did you mean"):
        read_examples(parquet(tmp_path, ["a"], **{k: v[:1] for k, v in PROBS.items()}), class_scores=["p_d"])


WORDS = st.text(st.characters(exclude_categories=["Cs", "Zs", "Cc", "Zl", "Zp"]), min_size=1, max_size=3)
MISSING = {"na", "nan", "n/a", "nat", "nil", "?", "-", "."}


@given(
    st.lists(WORDS.filter(lambda text: text.casefold() not in MISSING), min_size=3, unique_by=str.casefold), st.data()
)
def test_every_value_keeps_its_class_whatever_the_order_of_rows(texts, data):
    """The classes learnt are those found again when they are given, in any order of the values."""
    positive = data.draw(st.sampled_from(texts))
    learnt = resolve_classes(dict.fromkeys(texts, 1), where="here", positive=positive, many=True)
    if not hasattr(learnt, "names"):  # numbers that are the same leave two classes
        return
    shuffled = dict.fromkeys(data.draw(st.permutations(texts)), 1)
    again = resolve_classes(shuffled, where="here", positive=positive, many=True)
    given_back = resolve_classes(shuffled, where="here", classes=learnt.names)
    assert (again.names, again.codes) == (learnt.names, learnt.codes)
    assert given_back.codes == learnt.codes
    assert learnt.codes[positive] == len(learnt.names) - 1
