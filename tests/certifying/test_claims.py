"""What a head claims of its threshold: written and read back, believed in no foreign form, and tested on other rows."""

import json
from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.stats import beta

from headeval.certifying.claim_record import Claim, ClaimedRequirement, moved_claim, read_claim
from headeval.certifying.claims import ClaimVerdict, check_claim
from headeval.core.intervals import Interval
from headeval.core.thresholds import ConfusionCounts
from headeval.head_history import RowsUsed
from headeval.render.claim import claim_document, claim_section
from headeval.requirement_parsing import Requirement

FPR = ClaimedRequirement(
    Requirement("fpr", "<=", 0.05),
    400,
    11,
    11,
    0.0275,
    Interval(0.0138, 0.0487, 0.95, "Clopper-Pearson"),
    0.045,
    "exact",
)
RECALL = replace(FPR, requirement=Requirement("recall", ">=", 0.8))


def digests(start: int, stop: int) -> np.ndarray:
    return np.arange(start, stop, dtype=np.uint64) << np.uint64(40)


def claim(*requirements: ClaimedRequirement, rows: tuple[int, int] = (0, 100), threshold: float = 0.3) -> Claim:
    used = RowsUsed(rows[1] - rows[0], 40, f"{rows[1] - rows[0]}:aa", 0, digests(*rows)).document()
    return Claim(threshold, "certified requirements", "largest recall", 0.95, requirements, used)


def checked(counts: ConfusionCounts, *requirements: ClaimedRequirement, **changed: Any) -> Any:
    about = {"threshold": 0.3, "fingerprint": "other", "digests": digests(1000, 1200), "confidence": 0.95} | changed
    return check_claim(claim(*requirements), counts=counts, **about)


def test_a_claim_goes_through_a_file_unchanged() -> None:
    made = replace(claim(FPR, RECALL), in_sample="calibrated", benign={"n": 3, "data_fingerprint": "3:0"})
    assert read_claim(json.loads(json.dumps({"threshold": made.document()}))) == made


JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False) | st.text(max_size=5),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=5), inner, max_size=3),
    max_leaves=8,
)


@given(
    st.dictionaries(st.sampled_from([*claim(FPR).document(), "other"]), JSON),
    st.sampled_from([*FPR.__slots__, "n"]),
    JSON,
)
def test_no_foreign_content_is_believed_or_breaks_anything(changed: dict[str, Any], key: str, value: Any) -> None:
    document = claim(FPR).document() | changed
    read = read_claim({"threshold": document})
    if read is not None:
        assert 0 <= read.threshold <= 1
        check = check_claim(
            read, threshold=0.3, counts=ConfusionCounts(5, 5, 5, 5), fingerprint="x", digests=digests(0, 9)
        )
        claim_section(check)
        json.dumps(claim_document(check), allow_nan=False)
    entry = claim(FPR).document()
    entry["requirements"][0][key] = value
    read_claim({"threshold": entry})


@pytest.mark.parametrize(
    "entry", [None, 0.5, "0.5", [], {}, {"threshold": 0.5}, {"threshold": True, "requirements": []}]
)
def test_what_is_no_claim_is_none(entry: Any) -> None:
    assert read_claim({"threshold": entry}) is None
    assert read_claim({}) is None


def exact(k: int, n: int) -> tuple[float, float]:
    return (beta.ppf(0.025, k, n - k + 1) if k else 0.0, beta.ppf(0.975, k + 1, n - k) if k < n else 1.0)


@pytest.mark.parametrize("false_positives", [0, 2, 20, 25, 30, 40, 60])
def test_kept_and_broken_need_the_whole_exact_interval_on_that_side(false_positives: int) -> None:
    part = checked(ConfusionCounts(50, false_positives, 50, 500 - false_positives), FPR).checks[0]
    lower, upper = exact(false_positives, 500)
    expected = ClaimVerdict.KEPT if upper <= 0.05 else ClaimVerdict.BROKEN if lower > 0.05 else ClaimVerdict.UNDECIDED
    assert part.verdict is expected
    assert (part.n, part.errors, part.value) == (500, false_positives, false_positives / 500)
    assert [part.interval.lower, part.interval.upper] == pytest.approx([lower, upper], abs=1e-9)


@pytest.mark.parametrize("misses", [0, 5, 15, 20, 25, 40])
def test_a_lower_bound_is_held_against_the_other_side(misses: int) -> None:
    part = checked(ConfusionCounts(100 - misses, 3, misses, 97), RECALL).checks[0]
    lower, upper = exact(100 - misses, 100)
    expected = ClaimVerdict.KEPT if lower >= 0.8 else ClaimVerdict.BROKEN if upper < 0.8 else ClaimVerdict.UNDECIDED
    assert part.verdict is expected


@pytest.mark.parametrize(
    ("metric", "comparison", "n", "errors"),
    [("specificity", ">=", 120, 20), ("precision", ">=", 50, 20), ("recall", ">", 40, 10), ("fpr", "<", 120, 20)],
)
def test_each_metric_is_about_its_own_rows(metric: str, comparison: str, n: int, errors: int) -> None:
    part = checked(
        ConfusionCounts(30, 20, 10, 100), replace(FPR, requirement=Requirement(metric, comparison, 0.5))
    ).checks[0]
    assert (part.n, part.errors) == (n, errors)


def test_the_rows_it_was_chosen_on_are_no_test_in_whatever_order() -> None:
    counts = ConfusionCounts(50, 1, 50, 499)
    same = checked(counts, FPR, fingerprint="100:aa")
    assert "chosen on: no test" in same.same_rows
    half = checked(counts, FPR, digests=digests(50, 150))  # 50 of these 100
    assert "50 of these 100 rows" in half.same_rows
    less = checked(counts, FPR, digests=digests(51, 151))
    assert not less.same_rows
    assert [check.checks[0].verdict for check in (same, half, less)] == [
        ClaimVerdict.NOT_TESTED,
        ClaimVerdict.NOT_TESTED,
        ClaimVerdict.KEPT,
    ]


def test_a_claim_about_another_threshold_is_void_to_the_last_bit() -> None:
    counts = ConfusionCounts(50, 1, 50, 499)
    void = checked(counts, FPR, threshold=float(np.nextafter(0.3, 1)))
    assert "is not 0.3" in void.void
    assert void.checks[0].verdict is ClaimVerdict.NOT_TESTED
    assert not checked(counts, FPR).void
    assert "nothing was certified" in checked(counts).void


def test_flag_rates_and_missing_rows_are_not_decided() -> None:
    rate = replace(FPR, requirement=Requirement("flag_rate", "<=", 0.001))
    check = checked(ConfusionCounts(5, 0, 5, 0), rate, FPR)
    assert [part.verdict for part in check.checks] == [ClaimVerdict.NOT_TESTED, ClaimVerdict.UNDECIDED]
    assert "benign traffic" in check.checks[0].reason
    assert "no negatives" in check.checks[1].reason


def test_the_claim_follows_its_threshold_and_only_its_own() -> None:
    metrics = {"threshold": claim(FPR).document(), "fit": {"n": 3}}
    moved = moved_claim(metrics, 0.3, 0.7)
    assert read_claim(moved) == replace(claim(FPR), threshold=0.7)
    assert moved["fit"] == {"n": 3}
    assert moved_claim(metrics, 0.4, 0.7) == metrics
    assert moved_claim({"threshold": "ours?"}, 0.4, 0.7) == {"threshold": "ours?"}
    assert metrics["threshold"]["threshold"] == 0.3


def test_a_section_and_a_document_say_the_same() -> None:
    check = checked(ConfusionCounts(50, 60, 50, 440), FPR, RECALL)
    section, document = claim_section(check), claim_document(check)
    cells = [row[-1] for row in section.grids[0].rows]
    assert (
        [cell.lower() for cell in cells]
        == [part["verdict"] for part in document["requirements"]]
        == ["broken", "broken"]
    )
    assert section.grids[0].tones == ("bad", "bad")
    assert document["requirements"][0]["value"] == 0.12
    assert "void" in claim_section(checked(ConfusionCounts(1, 1, 1, 1), FPR, threshold=0.9)).lead
