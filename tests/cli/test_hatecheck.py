"""A head that looks good where it was fitted and fails elsewhere: slices must show where."""

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

ROOT = Path(__file__).parents[2]
HATECHECK = ROOT.parent / "shared" / "data" / "hatecheck_slices.parquet"

pytestmark = pytest.mark.skipif(not HATECHECK.exists(), reason=f"{HATECHECK.name} does not stand beside the checkout")


def test_slices_show_which_functional_tests_a_head_fails(headeval: Callable[..., Any], tmp_path: Path) -> None:
    """Functional tests hold one class each: the hateful ones show in recall, the others in false positives."""
    train = ROOT / "sample_data" / "moderation_train.parquet"
    assert headeval("fit", train, "--label", "hate", "--drop-unlabelled", "-o", "hate.json", "-q").code == 0
    outcome = headeval(
        "report", HATECHECK, "--head", "hate.json", "--positive", "hateful", "--by", "functionality",
        "--require-each", "recall.lower>=0.5", "--format", "json",
    )  # fmt: skip
    assert outcome.code == 1
    report = json.loads(outcome.out)
    assert 0.6 < report["metrics"]["auc"] < 0.7  # where it was fitted it is above 0.9
    slices = {part["value"]: part for part in report["slices"]}
    assert len(slices) == 29
    # Of the 83 hateful slurs hardly one is found; of the negated hate, which is none, nearly a quarter is flagged.
    assert (slices["slur_h"]["worst"], slices["slur_h"]["below"]) == ("recall", True)
    assert slices["slur_h"]["intervals"]["recall"]["upper"] < report["metrics"]["recall"]
    assert (slices["negate_neg_nh"]["worst"], slices["negate_neg_nh"]["below"]) == ("fpr", True)
    shortfalls = [part["shortfall"] for part in report["slices"] if not part["small"]]
    assert shortfalls == sorted(shortfalls, reverse=True)
    assert {part["value"] for part in report["slices"][:4]} >= {"slur_h", "negate_neg_nh"}
    (each,) = report["requirements_of_each_slice"]
    assert each["verdict"] == "not met"
    assert {part["slice"] for part in each["failing"]} >= {"slur_h", "spell_leet_h"}
    assert {part["slice"] for part in each["skipped"]} >= {"negate_neg_nh"}
