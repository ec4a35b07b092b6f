"""Labelled examples as a whole: columns that belong together, fingerprints, memory, progress."""

import struct
import subprocess
import sys
from hashlib import blake2b
from itertools import pairwise

import numpy as np
import pyarrow as pa
import pyarrow.csv
import pyarrow.parquet as pq
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from headeval.errors import DataError
from headeval.files import fingerprint as digesting
from headeval.files.examples import read_examples
from headeval.files.tables import open_tables
from headeval.files.vector_blocks import embedding_blocks

N = 23
ARRAYS = ("labels", "embeddings", "scores", "weights", "groups")


def make_table(seed: int = 0, n: int = N) -> pa.Table:
    rng = np.random.default_rng(seed)
    vectors = rng.standard_normal((n, 3)).astype(np.float32)
    return pa.table(
        {
            "id": pa.array([f"{i:020d}" for i in range(n)]),
            "embedding": pa.FixedSizeListArray.from_arrays(pa.array(vectors.ravel()), 3),
            "label": pa.array([None if i % 7 == 3 else ("unsafe" if i % 3 else "safe") for i in range(n)]),
            "z": pa.array(rng.standard_normal(n)),
            "w": pa.array(rng.integers(0, 4, n)),
            "site": pa.array([f"s{i % 5}" for i in range(n)]).dictionary_encode(),
            "lang": pa.array([None if i % 4 == 0 else f"l{i % 3}" for i in range(n)]),
        }
    )


def everything(data, **options):
    return read_examples(
        open_tables([str(path) for path in data]),
        embedding="embedding",
        score="z",
        weight="w",
        group="site",
        by=["lang"],
        drop_unlabelled=True,
        **options,
    )


def same(a, b) -> bool:
    return (
        all(np.array_equal(getattr(a, name), getattr(b, name)) for name in ARRAYS)
        and a.slices["lang"].tolist() == b.slices["lang"].tolist()
        and (a.classes, a.unlabelled, a.fingerprint) == (b.classes, b.unlabelled, b.fingerprint)
    )


def test_dropped_rows_leave_every_array(tmp_path):
    table = make_table()
    pq.write_table(table, tmp_path / "a.parquet")
    examples = everything([tmp_path / "a.parquet"])
    kept = [row for row in table.to_pylist() if row["label"] is not None]
    assert examples.unlabelled == N - len(kept) == 3
    assert examples.labels.tolist() == [int(row["label"] == "unsafe") for row in kept]
    assert examples.embeddings.tolist() == [row["embedding"] for row in kept]
    assert examples.scores.tolist() == [row["z"] for row in kept]
    assert examples.weights.tolist() == [row["w"] for row in kept]
    assert examples.groups.tolist() == [int(row["site"][1:]) for row in kept]
    assert examples.slices["lang"].tolist() == [row["lang"] or "(null)" for row in kept]
    assert examples.slices["lang"].dtype == object


@settings(max_examples=30)
@given(
    cuts=st.lists(st.integers(1, N - 1), max_size=4),
    group_rows=st.integers(1, N),
    version=st.sampled_from(["1.0", "2.0"]),
)
def test_splitting_into_files_and_row_groups_changes_nothing(tmp_path_factory, cuts, group_rows, version):
    tmp_path = tmp_path_factory.mktemp("split")
    table = make_table()
    pq.write_table(table, tmp_path / "whole.parquet")
    bounds = [0, *sorted(set(cuts)), N]
    paths = []
    for number, (start, stop) in enumerate(pairwise(bounds)):
        paths.append(tmp_path / f"part{number}.parquet")
        part = table.slice(start, stop - start)
        pq.write_table(part, paths[-1], row_group_size=group_rows, data_page_version=version)
    assert same(everything(paths), everything([tmp_path / "whole.parquet"]))


@pytest.mark.parametrize("rows", [1, 2, 7])
def test_the_size_of_blocks_changes_nothing(tmp_path, monkeypatch, rows):
    pq.write_table(make_table(), tmp_path / "a.parquet")
    whole = everything([tmp_path / "a.parquet"])
    monkeypatch.setattr("headeval.files.parquet_rows.MOST_ROWS", rows)
    assert same(everything([tmp_path / "a.parquet"]), whole)


def test_csv_gives_what_parquet_gives(tmp_path):
    table = make_table()
    pq.write_table(table, tmp_path / "a.parquet")
    texts = pa.array([str([float(x) for x in vector]) for vector in table["embedding"].to_pylist()])
    columns = table.set_column(1, "embedding", texts)
    columns = columns.set_column(6, "lang", pa.array([text or "(null)" for text in table["lang"].to_pylist()]))
    pyarrow.csv.write_csv(columns, tmp_path / "a.csv")
    assert same(everything([tmp_path / "a.csv"]), everything([tmp_path / "a.parquet"]))


def fingerprint(matrix: np.ndarray, labels: np.ndarray) -> str:
    return digesting.fingerprint(digesting.row_digests(matrix), labels)


def reference_fingerprint(rows: list[tuple[bytes, int]]) -> str:
    digests = [(int.from_bytes(blake2b(row, digest_size=16).digest(), "big"), label) for row, label in rows]
    return f"{len(rows)}:{sum(digest * (1 + 2 * label) for digest, label in digests) % 2**128:032x}"


def test_fingerprints_are_sums_of_digests_of_rows():
    matrix, labels = np.array([[3.0, -4.0], [-0.0, 2.0**-170]]), np.array([1, 0], dtype=np.uint8)
    rows = [(struct.pack("<ff", 0.375, -0.5), 1), (struct.pack("<ff", 0.0, 0.5), 0)]
    assert fingerprint(matrix, labels) == reference_fingerprint(rows)
    rows = [(struct.pack("<d", 0.1), 1), (struct.pack("<d", 0.0), 0)]
    assert fingerprint(np.array([0.1, -0.0]), labels) == reference_fingerprint(rows)


def test_the_digest_of_a_row_does_not_depend_on_the_rows_around_it():
    matrix = np.random.default_rng(4).standard_normal((5000, 200)).astype(np.float32)  # more than one chunk
    digests = digesting.row_digests(matrix)
    assert digests.shape == (5000, 2)
    for row in (0, 1, 2620, 4999):
        assert digesting.row_digests(matrix[row : row + 1]).tolist() == digests[row : row + 1].tolist()


@pytest.mark.parametrize("factor", [2.0, 0.25, 2.0**130, 2.0**-170])
def test_embeddings_of_any_magnitude_are_told_apart_and_known_by_their_digits(factor):
    matrix = np.random.default_rng(4).standard_normal((50, 8))
    digests = digesting.row_digests(matrix)
    assert digesting.row_digests(matrix * factor).tolist() == digests.tolist()
    assert len(set(digests[:, 0].tolist())) == 50


def test_a_row_is_known_as_float32_float64_or_shortest_decimals():
    stored = np.random.default_rng(6).standard_normal((40, 384)).astype(np.float32)
    decimals = np.array([[float(str(number)) for number in row] for row in stored])
    assert (decimals != stored.astype(np.float64)).any()  # as float64 the decimals are other numbers
    expected = digesting.row_digests(stored).tolist()
    assert digesting.row_digests(decimals).tolist() == expected
    assert digesting.row_digests(stored.astype(np.float64)).tolist() == expected


@given(st.permutations(range(6)))
def test_fingerprints_do_not_depend_on_the_order_of_rows_or_the_precision_of_storage(order):
    matrix = np.random.default_rng(3).standard_normal((6, 4)).astype(np.float16)
    labels = np.array([0, 1, 1, 0, 1, 0], dtype=np.uint8)
    first = fingerprint(matrix, labels)
    assert fingerprint(matrix[list(order)].astype(np.float64), labels[list(order)]) == first
    assert fingerprint(matrix[list(order)].astype(np.float32), labels[list(order)]) == first


def test_fingerprints_tell_labels_values_and_repeated_rows_apart():
    matrix, labels = np.array([[1.0, 2.0], [2.0, 1.0]]), np.array([0, 1], dtype=np.uint8)
    others = [
        fingerprint(matrix, labels[::-1].copy()),
        fingerprint(matrix + 1, labels),
        fingerprint(np.repeat(matrix, 2, axis=0), np.repeat(labels, 2)),
    ]
    assert len({fingerprint(matrix, labels), *others}) == 4


def scored(tmp_path, column: pa.Array, **options):
    n = len(column)
    pq.write_table(pa.table({"z": column, "label": [i % 2 for i in range(n)]}), tmp_path / "a.parquet")
    return read_examples(open_tables([str(tmp_path)]), **options)


@pytest.mark.parametrize("kind", ["int8", "uint64", "float16", "float32", "float64"])
def test_scores_of_every_number_type_are_read_as_they_are(tmp_path, kind):
    column = pa.array(np.array([0, 1, 2], dtype=kind))
    scores = scored(tmp_path, column, score="z", score_kind="logit").scores
    assert (scores.tolist(), scores.dtype) == ([0, 1, 2], np.float64)


@pytest.mark.parametrize("column", [pa.array([True, False]), pa.array(["0.5", "0.1"]), pa.array([[0.5], [0.1]])])
@pytest.mark.parametrize("role", ["score", "weight"])
def test_other_types_are_no_numbers(tmp_path, column, role):
    with pytest.raises(DataError, match="column 'z' must hold numbers, but it is of type"):
        scored(tmp_path, column, **{role: "z"})


@pytest.mark.parametrize(
    ("value", "message"),
    [
        (None, "null in row 2"),
        (float("nan"), r"NaN or infinite in row 2 \('nan'\)"),
        (float("inf"), "infinite in row 2"),
    ],
)
@pytest.mark.parametrize("role", ["score", "weight"])
def test_missing_and_infinite_numbers_are_named(tmp_path, value, message, role):
    with pytest.raises(DataError, match=f"column 'z' is .*{message}"):
        scored(tmp_path, pa.array([0.5, value, 0.5]), **{role: "z"})


def test_probabilities_outside_0_and_1_are_named_with_a_hint_at_logits(tmp_path):
    column = pa.array([0.0, 1.0, 1.5, -0.25])
    with pytest.raises(DataError, match=r"rows 3 and 4 \('1.5', '-0.25'\); if it holds logits, use --logit 'z'"):
        scored(tmp_path, column, score="z", score_kind="prob")
    assert scored(tmp_path, column, score="z", score_kind="logit").scores.tolist() == [0, 1, 1.5, -0.25]


def test_weights_are_not_negative_and_not_all_zero(tmp_path):
    assert scored(tmp_path, pa.array([0, 2, 0]), weight="z").weights.tolist() == [0, 2, 0]
    with pytest.raises(DataError, match=r"column 'z' is a negative weight in row 2 \('-1.0'\)"):
        scored(tmp_path, pa.array([1, -1, 0]), weight="z")
    with pytest.raises(DataError, match=r"a\.parquet': column 'z': all weights are 0"):
        scored(tmp_path, pa.array([0.0, 0.0]), weight="z")


def test_weights_of_dropped_rows_do_not_count(tmp_path):
    pq.write_table(pa.table({"w": [1, 0, 0], "label": [None, 0, 1]}), tmp_path / "a.parquet")
    with pytest.raises(DataError, match="all weights are 0"):
        read_examples(open_tables([str(tmp_path)]), weight="w", drop_unlabelled=True)


@pytest.mark.parametrize(
    ("column", "codes"),
    [
        (pa.array(["b", "a", "b"]), [1, 0, 1]),
        (pa.array(["b", "a", "b"]).dictionary_encode(), [1, 0, 1]),
        (pa.array([20, 10, 20]), [1, 0, 1]),
        (pa.array([True, False, True]), [1, 0, 1]),
        (pa.array([0.5, 0.25, 0.5]), [1, 0, 1]),
        (pa.array([2**62 + 1, 2**62, 2**62 + 1]), [1, 0, 1]),
        (pa.array([3, 1, 3], pa.timestamp("s")), [1, 0, 1]),
    ],
)
def test_groups_of_every_type_are_numbered_in_the_order_of_their_text(tmp_path, column, codes):
    groups = scored(tmp_path, column, group="z").groups
    assert (groups.tolist(), groups.dtype) == (codes, np.int64)


def test_rows_without_a_group_are_named(tmp_path):
    with pytest.raises(DataError, match=r"column 'z' has no group.* in row 2"):
        scored(tmp_path, pa.array(["a", None]), group="z")
    (tmp_path / "b.csv").write_text("label,g\n0,a\n1,\n")
    with pytest.raises(DataError, match=r"column 'g' has no group.* in row 2"):
        read_examples(open_tables([str(tmp_path / "b.csv")]), group="g")


@pytest.mark.parametrize(
    ("column", "texts"),
    [
        (pa.array(["", None, "NA"]), ["", "(null)", "NA"]),
        (pa.array([1, None, 3]), ["1", "(null)", "3"]),
        (pa.array([1.0, 0.1, None], pa.float32()), ["1", "0.1", "(null)"]),
        (pa.array([True, None, False]), ["true", "(null)", "false"]),
        (pa.array([None, None, None]), ["(null)"] * 3),
    ],
)
def test_slices_are_text(tmp_path, column, texts):
    assert scored(tmp_path, column, by=["z"]).slices["z"].tolist() == texts


def test_the_same_column_may_play_two_parts(tmp_path):
    examples = scored(tmp_path, pa.array([0.5, 0.25]), score="z", weight="z", by=["label", "z"])
    assert examples.scores.tolist() == examples.weights.tolist() == [0.5, 0.25]
    assert examples.slices["label"].tolist() == ["0", "1"]


def test_what_was_not_asked_for_is_none(tmp_path):
    examples = scored(tmp_path, pa.array([0.5, 0.25]))
    assert (examples.embeddings, examples.scores, examples.weights, examples.groups) == (None,) * 4
    assert dict(examples.slices) == {}


def test_progress_sees_every_block_and_the_number_of_rows(tmp_path):
    pq.write_table(make_table(), tmp_path / "a.parquet")
    seen = []

    def track(blocks, n_rows):
        for block in blocks:
            seen.append((block.batch.num_rows, n_rows))
            yield block

    everything([tmp_path], track=track)
    list(embedding_blocks(open_tables([str(tmp_path)]), embedding="embedding", track=track))
    assert seen == [(N, N), (N, N)]


def test_blocks_for_scoring_keep_every_column_untouched(tmp_path):
    pyarrow.csv.write_csv(make_table().drop_columns(["embedding"]), tmp_path / "a.csv")
    path = tmp_path / "b.csv"
    path.write_text('id,embedding,x\n00123456789012345678,"[1, 2]",1.50\n', encoding="utf-8")
    ((block, embeddings),) = embedding_blocks(open_tables([str(path)]), embedding="embedding")
    assert block.batch.to_pylist() == [{"id": "00123456789012345678", "embedding": "[1, 2]", "x": "1.50"}]
    assert embeddings.tolist() == [[1, 2]]


@pytest.mark.parametrize(
    ("second", "message"),
    [
        ("embedding,id\n[1],7\n", None),
        ("embedding,id,x\n[1],7,1\n", "different columns: 'x'"),
        ("embedding,x\n[1],7\n", "different columns: 'id', 'x'"),
        ("embedding,id,id\n[1],7,7\n", "2 columns 'id'"),
    ],
)
def test_files_to_be_scored_have_the_same_columns_in_any_order(tmp_path, second, message):
    (tmp_path / "a.csv").write_text("id,embedding\n1,[1]\n")
    (tmp_path / "b.csv").write_text(second)
    tables = open_tables([str(tmp_path)])
    if message is None:
        names = [block.batch.schema.names for block, _ in embedding_blocks(tables, embedding="embedding")]
        assert names == [["id", "embedding"]] * 2
    else:
        with pytest.raises(DataError, match=message):
            embedding_blocks(tables, embedding="embedding")


def test_files_to_be_scored_have_the_same_types(tmp_path):
    vectors = pa.array([[1.0]])
    pq.write_table(pa.table({"embedding": vectors, "id": [1]}), tmp_path / "a.parquet")
    pq.write_table(pa.table({"embedding": vectors.cast(pa.list_(pa.float32())), "id": ["1"]}), tmp_path / "b.parquet")
    with pytest.raises(DataError, match=r"'id' is of type 'int64' in .*a\.parquet' and 'string' in .*b\.parquet"):
        embedding_blocks(open_tables([str(tmp_path)]), embedding="embedding")


def test_no_block_is_handed_out_from_the_first_fault_on(tmp_path, monkeypatch):
    monkeypatch.setattr("headeval.files.parquet_rows.MOST_ROWS", 2)
    vectors = pa.FixedSizeListArray.from_arrays(pa.array([1.0] * 3 + [np.nan] + [1.0] * 6), 1)
    pq.write_table(pa.table({"embedding": vectors}), tmp_path / "a.parquet")
    handed = []
    with pytest.raises(DataError, match="NaN or an infinity in row 4"):
        handed.extend(embedding_blocks(open_tables([str(tmp_path)]), embedding="embedding"))
    assert [block.first_row for block, _ in handed] == [0]


def test_rows_are_counted_in_the_file_also_after_others_were_dropped(tmp_path):
    table = pa.table({"label": [None, None, 0, 1], "z": [0.5, 0.5, 0.5, None]})
    pq.write_table(table, tmp_path / "a.parquet")
    with pytest.raises(DataError, match="'z' is null in row 4"):
        read_examples(open_tables([str(tmp_path)]), score="z", drop_unlabelled=True)


def test_slices_and_groups_of_csv_are_text_but_a_whole_number_is_one_value(tmp_path):
    (tmp_path / "a.csv").write_text("label,g\n1.0,1.0\n0,1\n1,\n0,007\n")
    tables = open_tables([str(tmp_path)])
    assert read_examples(tables, by=["g"]).slices["g"].tolist() == ["1", "1", "", "007"]
    (tmp_path / "a.csv").write_text("label,g\n1.0,1.0\n0,1\n0,007\n")
    assert read_examples(open_tables([str(tmp_path)]), group="g").groups.tolist() == [1, 1, 0]


@pytest.mark.slow
@pytest.mark.skipif(sys.platform != "linux", reason="ru_maxrss is counted in other units elsewhere")
def test_reading_needs_little_more_than_the_array(tmp_path):
    """The peak stays under 1.5 times the array and the constant that pyarrow takes for a few blocks."""
    n, width = 100_000, 256
    values = np.random.default_rng(0).standard_normal(n * width).astype(np.float32)
    table = pa.table({
        "embedding": pa.FixedSizeListArray.from_arrays(pa.array(values), width), "label": np.arange(n) % 2,
    })  # fmt: skip
    pq.write_table(table, tmp_path / "a.parquet", compression="none", use_dictionary=False)
    code = (
        "import resource, sys\n"
        "from headeval.files.examples import read_examples\n"
        "from headeval.files.tables import open_tables\n"
        "tables = open_tables([sys.argv[1]])\n"
        "before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss\n"
        "examples = read_examples(tables, embedding='embedding')\n"
        "print((resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before) * 1024, examples.embeddings.nbytes)\n"
    )
    result = subprocess.run(
        [sys.executable, "-c", code, str(tmp_path / "a.parquet")], capture_output=True, text=True, check=True
    )
    peak, size = map(int, result.stdout.split())
    assert size == values.nbytes
    assert peak < 1.5 * size + 2**26
