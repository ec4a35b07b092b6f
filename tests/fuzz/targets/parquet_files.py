"""Parquet files: examples with finite numbers, or a DataError of a line or two; never a dead process."""

import io

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

from fuzz.promises import check_message, scratch
from headeval.errors import DataError
from headeval.files.examples import read_examples
from headeval.files.tables import open_tables

# Pieces of the footer, which is Thrift: small and huge varints, headers of fields and lists, types and their ends.
# fmt: off
WORDS = (
    b"\x00", b"\x02", b"\x15", b"\x16", b"\x18", b"\x19", b"\x1c", b"\x2c", b"\x3c", b"\x4c", b"\xfc", b"\xff",
    b"\x80", b"\xff" * 4 + b"\x0f", b"\xff" * 9 + b"\x01", b"\xfe" * 4 + b"\x0f", b"\x80\x80\x80\x80\x08", b"\x01",
    b"PAR1", b"\xff\xff\xff\x7f", b"\x00\x00\x00\x80", b"\x7f", b"schema", b"label", b"embedding", b"element",
    b"\xc3\x28", b"\x00\x00\xc0\x7f", b"\x00\x00\x80\xff",
)
# fmt: on


def seeds() -> list[bytes]:
    """Return small files in several shapes, compressed or not, with dictionaries or without."""
    vectors = pa.FixedSizeListArray.from_arrays(pa.array(np.arange(12, dtype=np.float32)), 2)
    lists = vectors.cast(pa.list_(pa.float32()))
    labels = pa.array(["safe", "unsafe"] * 3)
    shapes = (
        ({"embedding": vectors, "label": labels}, {"compression": "none", "use_dictionary": False}),
        ({"embedding": lists, "label": labels.dictionary_encode()}, {"compression": "snappy", "row_group_size": 3}),
        ({"e0": pa.array(range(6)), "e1": pa.array([0.5] * 6), "label": pa.array([0, 1] * 3)}, {"compression": "zstd"}),
        ({"embedding": lists, "label": labels}, {"write_page_checksum": True, "data_page_version": "2.0"}),
    )
    found = []
    for columns, options in shapes:
        stream = io.BytesIO()
        pq.write_table(pa.table(columns), stream, store_schema=False, **options)
        found.append(stream.getvalue())
    return found


def check(data: bytes) -> None:
    """Read `data` as labelled examples."""
    path = scratch() / "table.parquet"
    path.write_bytes(data)
    try:
        examples = read_examples(open_tables([str(path)]), embedding="embedding")
    except DataError as error:
        check_message(str(error), names=path)
        return
    assert examples.embeddings is not None
    assert examples.labels is not None
    assert np.isfinite(examples.embeddings).all()
    assert len(examples.embeddings) == len(examples.labels) > 0
    assert set(np.unique(examples.labels)) <= {0, 1}
