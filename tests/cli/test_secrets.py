"""What an address holds beside the place, keys and tokens, is never shown."""

from headeval.cli.rows import data_provenance
from headeval.files.examples import Examples


def test_the_data_in_every_output_is_named_without_its_secrets() -> None:
    """All outputs name their data by this one record."""
    examples = Examples.__new__(Examples)
    object.__setattr__(examples, "unlabelled", 0)
    named = data_provenance(["s3://AKIAKEY:TOPSECRET@bucket/w.parquet?session_token=TOKEN", "plain.parquet"], examples)
    assert "bucket/w.parquet" in named["data"][0]
    assert "TOPSECRET" not in str(named)
    assert "TOKEN" not in str(named)
    assert named["data"][1] == "plain.parquet"
