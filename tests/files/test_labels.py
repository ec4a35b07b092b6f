"""Which class is positive: known pairs, --positive, the classes of a head."""

import csv
import io
import json
import re
from decimal import Decimal
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from headeval.errors import DataError
from headeval.files.categories import Categories
from headeval.files.examples import Examples, read_examples, require_both_classes
from headeval.files.labels import resolve_labels
from headeval.files.row_faults import Place, RowFaults
from headeval.files.tables import open_tables

SAMPLE = Path(__file__).resolve().parents[2] / "sample_data"
NAUGHTY = Path(__file__).resolve().parents[1] / "data" / "hostile" / "naughty_strings.json"


def from_parquet(tmp_path, labels, kind=None, **options) -> Examples:
    array = labels if isinstance(labels, pa.Array) else pa.array(labels, kind)
    pq.write_table(pa.table({"label": array}), tmp_path / "a.parquet")
    return read_examples(open_tables([str(tmp_path / "a.parquet")]), **options)


def from_csv(tmp_path, labels, **options) -> Examples:
    text = io.StringIO(newline="")
    csv.writer(text, quoting=csv.QUOTE_ALL).writerows([("label", "n"), *[(label, "1") for label in labels]])
    (tmp_path / "a.csv").write_bytes(text.getvalue().encode())
    return read_examples(open_tables([str(tmp_path / "a.csv")]), **options)


@pytest.mark.parametrize(
    ("values", "kind", "classes"),
    [
        ([True, False, True], pa.bool_(), ("false", "true")),
        ([1, 0, 1], pa.int8(), ("0", "1")),
        ([1, 0, 1], pa.uint64(), ("0", "1")),
        ([1.0, -0.0, 1.0], pa.float64(), ("0", "1")),
        ([np.float16(1), np.float16(0), np.float16(1)], pa.float16(), ("0", "1")),
        (["1", "0", "1"], pa.string(), ("0", "1")),
        (["unsafe", "safe", "unsafe"], pa.string(), ("safe", "unsafe")),
        (["Unsafe", "SAFE", "Unsafe"], pa.large_string(), ("SAFE", "Unsafe")),
        (["TRUE", "False", "TRUE"], pa.string(), ("False", "TRUE")),
        (["unsafe", "safe", "unsafe"], pa.dictionary(pa.int8(), pa.string()), ("safe", "unsafe")),
        ([1, 0, 1], pa.decimal128(5, 2), ("0", "1")),
        ([b"unsafe", b"safe", b"unsafe"], pa.binary(), ("safe", "unsafe")),
    ],
)
def test_known_pairs_in_every_type_need_no_positive(tmp_path, values, kind, classes):
    examples = from_parquet(tmp_path, values, kind)
    assert examples.labels.tolist() == [1, 0, 1]
    assert examples.labels.dtype == np.uint8
    assert examples.classes == classes


def test_string_views_are_labels(tmp_path):
    assert from_parquet(tmp_path, ["unsafe", "safe"], pa.string_view()).labels.tolist() == [1, 0]


@pytest.mark.parametrize(
    "values", [["1", "0", "1"], ["1.0", "0", "1"], ["true", "False", "TRUE"], ["Unsafe", "SAFE", "Unsafe"]]
)
def test_known_pairs_in_csv_need_no_positive(tmp_path, values):
    assert from_csv(tmp_path, values).labels.tolist() == [1, 0, 1]


@pytest.mark.parametrize("read", [from_csv, from_parquet])
@pytest.mark.parametrize("options", [{}, {"positive": "1"}, {"positive": "1.0"}, {"classes": ("0", "1")}])
def test_spellings_of_a_number_in_text_are_one_class_in_csv_and_parquet(tmp_path, read, options):
    examples = read(tmp_path, ["1.0", "0.0", "1", "0"], **options)
    assert (examples.labels.tolist(), examples.classes) == ([1, 0, 1, 0], ("0", "1"))
    assert read(tmp_path, ["2.0", "3", "2", "3."], positive="2").labels.tolist() == [1, 0, 1, 0]


@pytest.mark.parametrize("options", [{}, {"positive": "1.0"}])
def test_a_head_may_tell_two_spellings_of_a_number_apart(tmp_path, options):
    """Both were positive before."""
    examples = from_parquet(tmp_path, ["1", "1.0"], classes=("1", "1.0"), **options)
    assert examples.labels.tolist() == [0, 1]
    with pytest.raises(DataError, match="is the class that the head does not flag"):
        from_parquet(tmp_path, ["1", "1.0"], classes=("1", "1.0"), positive="1")


def test_files_of_different_label_types_are_read_together(tmp_path):
    pq.write_table(pa.table({"label": [True, False]}), tmp_path / "a.parquet")
    (tmp_path / "b.csv").write_text("label,x\nTRUE,1\nfalse,1\n")
    examples = read_examples(open_tables([str(tmp_path)]))
    assert examples.labels.tolist() == [1, 0, 1, 0]


@pytest.mark.parametrize(
    "values", [["spam", "ham"], ["a", "b"], ["yes", "no"], ["positive", "negative"], [" safe", "unsafe"], ["0", "true"]]
)
def test_the_positive_class_is_never_guessed(tmp_path, values):
    with pytest.raises(DataError, match="--positive") as caught:
        from_parquet(tmp_path, values)
    assert all(f"'{value}' (1 row)" in str(caught.value) for value in values)


def test_numbers_other_than_0_and_1_need_a_positive(tmp_path):
    with pytest.raises(DataError, match=r"'1' \(1 row\), '2' \(1 row\).*--positive"):
        from_parquet(tmp_path, [1, 2])
    assert from_parquet(tmp_path, [1, 2], positive="1").labels.tolist() == [1, 0]
    assert from_parquet(tmp_path, [1.0, 2.0], positive="1.0").labels.tolist() == [1, 0]


def test_positive_names_the_value_and_orders_the_classes(tmp_path):
    examples = from_parquet(tmp_path, ["spam", "ham", "spam"], positive="spam")
    assert (examples.labels.tolist(), examples.classes) == ([1, 0, 1], ("ham", "spam"))
    examples = from_parquet(tmp_path, ["unsafe", "safe"], positive="safe")
    assert (examples.labels.tolist(), examples.classes) == ([0, 1], ("unsafe", "safe"))


def test_positive_is_matched_exactly_but_for_known_pairs(tmp_path):
    with pytest.raises(DataError, match="no value 'Spam'"):
        from_parquet(tmp_path, ["spam", "ham"], positive="Spam")
    assert from_parquet(tmp_path, ["UNSAFE", "SAFE"], positive="unsafe").labels.tolist() == [1, 0]
    assert from_parquet(tmp_path, [True, False], positive="True").labels.tolist() == [1, 0]


def test_positive_that_does_not_occur_is_an_error_listing_the_values(tmp_path):
    with pytest.raises(DataError, match=r"no value 'x' \(--positive\); it holds 'ham' \(2 rows\), 'spam' \(1 row\)"):
        from_parquet(tmp_path, ["spam", "ham", "ham"], positive="x")


@pytest.mark.parametrize(
    "options", [{}, {"positive": "b"}, {"classes": ("a", "b")}, {"classes": ("a", "b"), "positive": "b"}]
)
def test_more_than_two_values_are_an_error_with_or_without_positive(tmp_path, options):
    with pytest.raises(DataError, match=r"3 different values.*'b' \(2 rows\), 'a' \(1 row\), 'c' \(1 row\)"):
        from_parquet(tmp_path, ["a", "b", "c", "b"], **options)


def test_many_values_are_counted_after_ten(tmp_path):
    with pytest.raises(DataError, match=r"25 different values.* and 15 more; make a column with two"):
        from_parquet(tmp_path, [f"v{i}" for i in range(25)])


def test_a_column_of_identifiers_is_refused_before_it_is_read_to_its_end(tmp_path):
    with pytest.raises(DataError, match="more than 1000 different values"):
        from_parquet(tmp_path, list(range(5000)))


def test_values_of_a_dictionary_that_no_row_has_do_not_count(tmp_path):
    labels = pa.DictionaryArray.from_arrays(pa.array([1, 0, 1]), pa.array(["safe", "unsafe", "unknown", "other"]))
    pq.write_table(pa.table({"label": labels}), tmp_path / "a.parquet")
    assert read_examples(open_tables([str(tmp_path / "a.parquet")])).labels.tolist() == [1, 0, 1]


@pytest.mark.parametrize(
    ("values", "kind"),
    [
        ([1, None, 0, None], pa.int8()),
        ([1.0, float("nan"), 0.0, None], pa.float64()),
        (["1", None, "0", None], None),
        (["1", "", "0", None], pa.string()),
        (["1", "", "0", ""], pa.dictionary(pa.int8(), pa.string())),
    ],
)
def test_missing_labels_are_named_or_dropped(tmp_path, values, kind):
    with pytest.raises(DataError, match=r"no label.*in rows 2 and 4; --drop-unlabelled"):
        from_parquet(tmp_path, values, kind)
    examples = from_parquet(tmp_path, values, kind, drop_unlabelled=True)
    assert (examples.labels.tolist(), examples.unlabelled) == ([1, 0], 2)


def test_empty_labels_of_csv_are_missing_but_words_are_not(tmp_path):
    with pytest.raises(DataError, match=r"no label.*in row 2; --drop-unlabelled"):
        from_csv(tmp_path, ["1", "", "0"])
    assert from_csv(tmp_path, ["1", "", "0"], drop_unlabelled=True).unlabelled == 1
    assert from_csv(tmp_path, ["NA", "None"], positive="NA").classes == ("None", "NA")


def test_an_empty_text_is_never_a_class(tmp_path):
    """A head cannot keep a class without a name."""
    for read in (from_parquet, from_csv):
        with pytest.raises(DataError, match="no value ''"):
            read(tmp_path, ["", "a"], positive="", drop_unlabelled=True)
    with pytest.raises(DataError, match=r"column 'label' has no label \(null, NaN or empty\) in row 1; --drop"):
        from_parquet(tmp_path, ["", "a"], positive="a")
    with pytest.raises(DataError, match="no label in any of its 2 rows"):
        from_parquet(tmp_path, ["", None], drop_unlabelled=True)


@pytest.mark.parametrize("scale", [-2, 0, 2, 7, 18])
@pytest.mark.parametrize("kind", [pa.decimal128, pa.decimal256])
def test_decimals_of_every_scale_are_the_same_values(tmp_path, kind, scale):
    """Arrow writes zero as 0E-18, and 100 as 1E+2."""
    values = pa.array([Decimal(100), Decimal(0), Decimal(-300)], kind(30, scale))
    batch = pa.RecordBatch.from_arrays([values], names=["c"])
    categories = Categories("c", numbers_in_text=False, blank_is_missing=False)
    categories.codes(batch.column(0), Place(tmp_path / "a", np.arange(1, 4), False, RowFaults()))
    assert categories.texts == ["100", "0", "-300"]


@pytest.mark.parametrize(
    "kind", [pa.decimal32(9, 8), pa.decimal64(18, 9), pa.decimal128(38, 18), pa.decimal256(50, 30)]
)
def test_decimal_labels_need_no_positive(tmp_path, kind):
    values = [Decimal(1), Decimal(0), None]
    examples = from_parquet(tmp_path, values, kind, drop_unlabelled=True)
    assert (examples.labels.tolist(), examples.classes) == ([1, 0], ("0", "1"))


def test_broken_decimals_are_shown_without_closing_zeros(tmp_path):
    values = [Decimal("0.50"), Decimal("12345678901234567890.000000000000000001")]
    examples = from_parquet(tmp_path, pa.array(values, pa.decimal128(38, 18)), positive="0.5")
    assert examples.classes == ("12345678901234567890.000000000000000001", "0.5")


def test_a_table_without_any_label_is_an_error(tmp_path):
    for values, kind in (([None, None], pa.string()), ([None, None], pa.null())):
        with pytest.raises(DataError, match="no label in any of its 2 rows"):
            from_parquet(tmp_path, values, kind, drop_unlabelled=True)


@pytest.mark.parametrize("kind", [pa.list_(pa.int8()), pa.struct([("a", pa.int8())])])
def test_nested_labels_are_refused(tmp_path, kind):
    value = [1] if pa.types.is_list(kind) else {"a": 1}
    with pytest.raises(DataError, match="one value a row"):
        from_parquet(tmp_path, [value, value], kind)


@pytest.mark.parametrize("role", ["label", "by", "group"])
@pytest.mark.parametrize(
    ("column", "kind"),
    [
        (pa.array([b"\xff", b"a"], pa.binary()), "binary"),
        (pa.array([b"\xff", b"a"], pa.large_binary()), "large_binary"),
        (pa.array([b"\xff", b"a"], pa.binary()).dictionary_encode(), "dictionary"),
        (pa.array([b"ab", b"cd"], pa.binary(2)), "fixed_size_binary"),
        (pa.array([b"a" * 16, b"b" * 16], pa.uuid()), "uuid|fixed_size_binary"),
    ],
)
def test_bytes_that_are_no_text_are_refused_with_column_and_type(tmp_path, column, kind, role):
    pq.write_table(pa.table({"label": [0, 1], "c": column}), tmp_path / "a.parquet")
    options = {"by": ["c"]} if role == "by" else {role: "c"}
    with pytest.raises(DataError) as caught:
        read_examples(open_tables([str(tmp_path / "a.parquet")]), **options)
    assert re.search(rf"a\.parquet': column 'c' holds binary data \(type '.*({kind})", str(caught.value))
    assert "a column of text or numbers is needed" in str(caught.value)


def test_types_that_have_no_text_are_refused_with_column_and_type(tmp_path):
    column = pa.array([pa.MonthDayNano([1, 2, 3])])
    categories = Categories("c", numbers_in_text=False, blank_is_missing=False)
    with pytest.raises(DataError, match=r"column 'c' cannot be read as text \(type 'month_day_nano_interval'\)"):
        categories.codes(column, Place(tmp_path / "a", np.arange(1, 2), False, RowFaults()))


ANSWERS = [[1, 0], [1.0, -0.0], ["1", "0"], [True, False], ["TRUE", "False"]]
SAFETY = [["unsafe", "safe"], ["UNSAFE", "Safe"]]
HEADS = {("0", "1"): ANSWERS, ("false", "true"): ANSWERS, ("False", "TRUE"): ANSWERS,
         ("safe", "unsafe"): SAFETY, ("Safe", "UNSAFE"): SAFETY}  # fmt: skip


@pytest.mark.parametrize("head", HEADS)
@pytest.mark.parametrize("values", [*ANSWERS, *SAFETY])
def test_a_head_takes_its_own_classes_in_any_spelling_and_no_other_pair(tmp_path, head, values):
    """A head for true/false of one column was judged on safe/unsafe of another without a word."""
    for classes, labels in ((head, [1, 0]), (head[::-1], [0, 1])):
        if values in HEADS[head]:
            examples = from_parquet(tmp_path, values, classes=classes)
            assert (examples.labels.tolist(), examples.classes) == (labels, classes)
            assert from_parquet(tmp_path, values[:1], classes=classes).labels.tolist() == labels[:1]
            continue
        for some in (values, values[:1]):
            with pytest.raises(DataError) as caught:
                from_parquet(tmp_path, some, classes=classes)
            lines = str(caught.value).splitlines()
            assert len(lines) == 2
            assert all(f"'{name}'" in lines[0] for name in head)
            assert re.search(r"column 'label' holds '\w+' \(1 row\)", lines[0])
            assert "--label" in lines[1]
            assert re.search(r"--positive '(1|true|TRUE|unsafe|UNSAFE)'$", lines[1])
        positive = str(values[0])
        assert from_parquet(tmp_path, values, classes=classes, positive=positive).labels.tolist() == [1, 0]


def test_a_score_file_of_another_column_is_refused_and_so_is_what_was_safe_called_positive(tmp_path):
    with pytest.raises(DataError, match=r"'safe' \(2 rows\), 'unsafe' \(1 row\), but .* 'false' and 'true'"):
        from_csv(tmp_path, ["safe", "unsafe", "safe"], classes=("false", "true"))
    for positive, head in (("SAFE", ("safe", "unsafe")), ("false", ("0", "1")), ("0", ("False", "True"))):
        with pytest.raises(DataError, match="is the class that the head does not flag"):
            from_csv(tmp_path, ["0", "1"], classes=head, positive=positive)


def test_classes_that_differ_by_case_alone_stay_two(tmp_path):
    examples = from_parquet(tmp_path, ["safe", "SAFE"], classes=("safe", "SAFE"))
    assert examples.labels.tolist() == [0, 1]


def test_other_heads_take_their_own_classes_only(tmp_path):
    head = ("non-hateful", "hateful")
    assert from_parquet(tmp_path, ["hateful", "non-hateful"], classes=head).labels.tolist() == [1, 0]
    assert from_parquet(tmp_path, ["non-hateful"], classes=head).labels.tolist() == [0]
    for values in (["Hateful", "non-hateful"], [1, 0], ["hateful", "ok"]):
        with pytest.raises(DataError, match=r"(?s)(differs from the class|what is judged are).*--positive"):
            from_parquet(tmp_path, values, classes=head)


@pytest.mark.parametrize(("values", "head"), [(["safe", "1"], ("safe", "unsafe")), (["0", "true"], ("0", "1"))])
def test_a_mixture_of_pairs_is_not_taken_for_one(tmp_path, values, head):
    with pytest.raises(DataError, match="but the classes of what is judged are"):
        from_parquet(tmp_path, values, classes=head)


def test_positive_overrules_the_classes_of_a_head(tmp_path):
    examples = from_parquet(tmp_path, ["spam", "ham"], classes=("safe", "unsafe"), positive="spam")
    assert (examples.labels.tolist(), examples.classes) == ([1, 0], ("ham", "spam"))


@pytest.mark.parametrize(
    ("value", "options", "label", "classes"),
    [
        ("safe", {}, 0, ("safe", "unsafe")),
        ("UNSAFE", {}, 1, ("SAFE", "UNSAFE")),
        ("True", {}, 1, ("False", "True")),
        ("0", {}, 0, ("0", "1")),
        ("spam", {"positive": "spam"}, 1, ("not spam", "spam")),
        ("safe", {"positive": "safe"}, 1, ("unsafe", "safe")),
        ("spam", {"positive": "spam", "classes": ("ham", "spam")}, 1, ("ham", "spam")),
    ],
)
def test_one_class_alone_is_read_but_not_fitted(tmp_path, value, options, label, classes):
    examples = from_parquet(tmp_path, [value] * 3, **options)
    assert (examples.labels.tolist(), examples.classes) == ([label] * 3, classes)
    with pytest.raises(DataError, match=rf"a\.parquet': all 3 rows are '{value}'"):
        require_both_classes(examples, open_tables([str(tmp_path / "a.parquet")]))


def test_both_classes_are_let_through(tmp_path):
    examples = from_parquet(tmp_path, [0, 1])
    require_both_classes(examples, open_tables([str(tmp_path / "a.parquet")]))


def test_one_unknown_value_needs_a_positive(tmp_path):
    with pytest.raises(DataError, match="--positive"):
        from_parquet(tmp_path, ["spam"])


def test_naughty_strings_are_labels(tmp_path):
    """Every string is a class of its own, in Parquet and CSV, and is shown escaped."""
    strings = [text for text in json.loads(NAUGHTY.read_text(encoding="utf-8")) if text and text != "plain"]
    for text in dict.fromkeys(strings):
        rule = resolve_labels({text: 1, "plain": 2}, where="here", positive=text)
        assert rule.classes == ("plain", text)
        assert rule.positives == {text}
    for text in strings[::25]:
        for read in (from_parquet, from_csv):
            assert read(tmp_path, [text, "plain", text], positive=text).labels.tolist() == [1, 0, 1]
            with pytest.raises(DataError) as caught:
                read(tmp_path, [text, "plain", text])
            assert "\n" not in str(caught.value)
            assert "\x1b" not in str(caught.value)


def test_real_files_follow_the_rules():
    tweets = open_tables([str(SAMPLE / "tweets_train.parquet")])
    with pytest.raises(DataError, match=r"3 different values.*'hate'"):
        read_examples(tweets, positive="hate")
    hatecheck = open_tables([str(SAMPLE / "hatecheck_slices.parquet")])
    with pytest.raises(DataError, match="--positive"):
        read_examples(hatecheck)
    examples = read_examples(hatecheck, positive="hateful", embedding="embedding", by=["target"])
    table = pq.read_table(SAMPLE / "hatecheck_slices.parquet")
    assert examples.labels.tolist() == [int(text == "hateful") for text in table["label"].to_pylist()]
    assert examples.embeddings.tolist() == table["embedding"].to_pylist()
    assert examples.slices["target"].tolist() == [text or "(null)" for text in table["target"].to_pylist()]
    moderation = open_tables([str(SAMPLE / "moderation_train.parquet")])
    with pytest.raises(DataError, match="--drop-unlabelled"):
        read_examples(moderation, label="hate")
    column = pq.read_table(SAMPLE / "moderation_train.parquet")["hate"].to_pylist()
    examples = read_examples(moderation, label="hate", drop_unlabelled=True, embedding="embedding")
    assert examples.labels.tolist() == [int(value) for value in column if value is not None]
    assert examples.unlabelled == column.count(None)
