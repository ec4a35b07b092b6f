"""What stands beside the evaluation of a report: here, the reliability before the last calibration."""

from pathlib import Path

import numpy as np
import pytest

from headeval.cli.judging import before_calibration
from headeval.cli.main import run
from headeval.cli.rows import Columns, read_subject
from headeval.cli.sources import choose_source
from headeval.cli.subject import Subject
from headeval.files.tables import open_tables

SAMPLES = Path(__file__).parents[2] / "sample_data"
COLUMNS = Columns("label", None, "embedding", None, False)


def subject(head: str) -> Subject:
    tables = open_tables([str(SAMPLES / "moderation_test.parquet")])
    source = choose_source(tables, head=Path(head), logit=None, prob=None)
    return read_subject(tables, source, COLUMNS, quiet=True)


@pytest.mark.parametrize("method", ["temperature", "platt"])
def test_before_is_what_the_head_was_before_its_last_calibration(
    method: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    assert run(["fit", str(SAMPLES / "moderation_train.parquet"), "--folds", "0", "-q"]) == 0
    calibration = str(SAMPLES / "moderation_calibration.parquet")
    assert run(["calibrate", calibration, "--head", "linear-head.json", "--method", method, "-q"]) == 0
    original, calibrated = subject("linear-head.json"), subject("linear-head-calibrated.json")
    table = original.evaluate(confidence=None).reliability
    before = before_calibration(calibrated, table)
    assert before is not None
    np.testing.assert_array_equal(before.counts, table.counts)
    np.testing.assert_allclose(before.confidence, table.confidence, rtol=1e-9)
    assert not np.array_equal(calibrated.evaluate(confidence=None).reliability.counts, table.counts)
    assert before_calibration(original, table) is None  # which never was calibrated
