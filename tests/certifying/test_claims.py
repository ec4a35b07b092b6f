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
from headeval.evaluation import evaluate
from headeval.head_history import SKETCH_ROWS, RowsUsed, kept_digests
from headeval.render.claim import claim_document, claim_notes, claim_section
from headeval.requirement_parsing import Requirement
from headeval.scored_rows import ScoredRows

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


def rows(counts: ConfusionCounts, **also: Any) -> ScoredRows:
    """Rows with these outcomes at 0.3: true positives first, then false positives, false and true negatives."""
    outcomes = (counts.true_positives, counts.false_positives, counts.false_negatives, counts.true_negatives)
    return ScoredRows.checked(
        np.repeat([0.9, 0.9, 0.1, 0.1], outcomes), np.repeat([1, 0, 1, 0], outcomes), kind="prob", **also
    )


def checked(
    counts: ConfusionCounts,
    *requirements: ClaimedRequirement,
    of: Claim | None = None,
    also: dict[str, Any] | None = None,
    **changed: Any,
) -> Any:
    made = rows(counts, **also or {})
    about = {"threshold": 0.3, "fingerprint": "other", "digests": digests(1000, 1000 + made.n), "confidence": 0.95}
    return check_claim(of or claim(*requirements), made, **about | changed)


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
            read, rows(ConfusionCounts(5, 5, 5, 5)), threshold=0.3, fingerprint="x", digests=digests(0, 20)
        )
        claim_section(check)
        claim_notes(check)
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
    counts = ConfusionCounts(10, 1, 10, 79)
    for same, words in (
        (checked(counts, FPR, fingerprint="100:aa"), "these are the rows that the threshold was chosen on: no test"),
        (checked(counts, FPR, digests=digests(0, 100)[::-1]), "all of these 100 rows are rows that"),
    ):
        assert words in same.same_rows
        assert same.checks[0].verdict is ClaimVerdict.NOT_TESTED
        assert claim_section(same).lead == same.same_rows


def test_rows_that_it_was_chosen_on_are_left_out_and_counted() -> None:
    """Of 60 false positives among 200 negatives 50 are rows of the choice: 10 in 150 are left, wherever they stand."""
    counts = ConfusionCounts(20, 60, 30, 140)  # rows 20 to 79 are false positives
    where = digests(1000, 1250)
    where[25:75] = digests(0, 50)
    check = checked(counts, FPR, RECALL, digests=where)
    lower, upper = exact(10, 150)
    part = check.checks[0]
    assert (part.n, part.errors, part.value) == (150, 10, 10 / 150)
    assert [part.interval.lower, part.interval.upper] == pytest.approx([lower, upper], abs=1e-9)
    assert part.verdict is ClaimVerdict.UNDECIDED  # all 200 would break it
    assert checked(counts, FPR).checks[0].verdict is ClaimVerdict.BROKEN
    assert (check.checks[1].n, check.checks[1].errors) == (50, 30)  # no positive is left out
    lead = claim_section(check).lead
    assert "tested on the 200 of 250 rows that it was not chosen on" in lead
    assert "other rows" not in lead
    assert claim_document(check)["rows"] == {"n": 250, "recognised": 50, "checked": 250, "unrecognised": 0}


def test_most_rows_may_be_left_out_as_long_as_one_is_not() -> None:
    check = checked(ConfusionCounts(1, 1, 1, 97), FPR, digests=digests(1, 101))  # the last alone is another
    assert (check.same_rows, check.apart.tested, check.checks[0].n) == ("", 1, 1)


def sampled(chosen: np.ndarray) -> Claim:
    return replace(claim(FPR), rows={"n": len(chosen), "data_fingerprint": "?", **kept_digests(chosen)})


def test_where_the_head_keeps_a_sample_the_rest_is_estimated() -> None:
    """Digests in random order, of which the head keeps the smallest thousand: a tenth of 10,000."""
    chosen = np.random.default_rng(3).integers(2**63, size=20_000, dtype=np.uint64)
    of, others = sampled(chosen[:10_000]), chosen[10_000:]
    counts = ConfusionCounts(500, 20, 500, 3980)
    check = checked(counts, of=of, digests=np.concatenate([chosen[:1000], others[:4000]]))
    kept = set(np.sort(chosen[:10_000] >> np.uint64(16))[:SKETCH_ROWS].tolist())
    known = sum(int(digest) >> 16 in kept for digest in chosen[:1000])
    assert check.apart.recognised == known
    assert known + check.apart.unrecognised == pytest.approx(1000, abs=200)  # five standard deviations of a sample
    assert check.apart.checked == pytest.approx(500, abs=100)
    lead = claim_section(check).lead
    assert f"on the {5000 - known:,} of 5,000 rows that are not recognised as ones that it was chosen on" in lead
    assert f"about {check.apart.unrecognised:,} more cannot be recognised" in lead
    assert check.checks[0].verdict is ClaimVerdict.KEPT
    mostly = checked(counts, of=of, digests=chosen[5000:10_000])
    assert "about 5,000 of these 5,000 rows" in mostly.same_rows
    other = checked(counts, of=of, digests=others[:5000])
    assert (other.apart.recognised, other.apart.unrecognised) == (0, 0)
    assert f"as far as the head can tell, by {other.apart.checked:,} of them" in claim_section(other).lead
    # None of these has a digest as small as those that are kept: nothing is known of them.
    silent = checked(ConfusionCounts(1, 1, 1, 47), of=of, digests=np.sort(chosen)[-50:])
    assert "the head cannot tell" in claim_section(silent).lead
    assert "other rows" not in claim_section(silent).lead


def test_benign_rows_that_it_was_chosen_on_are_left_out_too() -> None:
    counts = ConfusionCounts(10, 5, 10, 75)
    benign = {"n": 60, "data_fingerprint": "60:bb", **kept_digests(digests(500, 560))}
    of = replace(claim(FPR), benign=benign)
    assert checked(counts, of=of, digests=np.concatenate([digests(500, 560), digests(0, 40)])).apart.tested == 0
    part = checked(counts, of=of, digests=digests(540, 640))
    assert (part.apart.recognised, part.checks[0].n) == (20, 75)
    assert "benign rows that the threshold was chosen on" in checked(counts, of=of, fingerprint="60:bb").same_rows
    alone = Claim(0.3, "", "", 0.95, (FPR,), {"n": 0, "row_digests": "", "distinct_rows": 0}, benign=benign)
    assert checked(counts, of=alone).apart.checked == 100  # no labelled row is needed to tell of the benign ones


def test_rows_that_one_list_recognises_are_not_estimated_once_more_for_the_other() -> None:
    """400 labelled rows of the choice are all known; the sample of the benign ones can tell of a tenth of the rows."""
    drawn = np.random.default_rng(4).integers(2**63, size=11_000, dtype=np.uint64)
    labelled, others, traffic = drawn[:400], drawn[400:1000], drawn[1000:]
    of = replace(claim(FPR), rows={"n": 400, **kept_digests(labelled)}, benign={"n": 10_000, **kept_digests(traffic)})
    apart = checked(ConfusionCounts(50, 10, 50, 890), of=of, digests=np.concatenate([labelled, others])).apart
    assert apart.recognised == 400
    assert apart.checked < 200
    assert apart.unrecognised < 150  # by the share among those checked, three standard deviations


def test_a_promise_about_benign_traffic_alone_is_judged_by_no_labelled_row() -> None:
    rate = replace(FPR, requirement=Requirement("flag_rate", "<=", 0.001))
    lead = claim_section(checked(ConfusionCounts(5, 1, 5, 89), rate)).lead
    assert lead.endswith("for unlabelled benign traffic, and labelled rows are no test of that")
    assert "judge" not in lead
    assert "judge" in claim_section(checked(ConfusionCounts(5, 1, 5, 89), rate, FPR)).lead


def test_groups_and_weights_test_a_claim_as_they_test_a_gate() -> None:
    """Twenty rows a group, all alike: one group of 50 tells as much as one row of about 50, and not of 1,000."""
    counts = ConfusionCounts(0, 20, 0, 980)
    groups = np.arange(1000) // 20
    part = checked(counts, FPR, also={"groups": groups}).checks[0]
    lower, upper = exact(1, 50)
    assert part.verdict is ClaimVerdict.UNDECIDED
    assert "rows or groups are too few" in part.reason
    assert [part.interval.lower, part.interval.upper] == pytest.approx([lower, upper], rel=0.1)
    made = rows(counts)
    gate = evaluate(made.s, made.y, kind="prob", threshold=0.3, groups=groups).fpr.guarantee
    assert part.interval == gate
    assert checked(counts, FPR).checks[0].verdict is ClaimVerdict.KEPT
    weights = np.where(np.arange(1000) < 20, 10.0, 1.0)
    weighed = checked(counts, FPR, also={"weights": weights})
    assert weighed.checks[0].value == pytest.approx(200 / 1180)
    assert weighed.checks[0].verdict is ClaimVerdict.BROKEN
    assert claim_section(weighed).grids[0].rows[0][2] == "0.1695"  # a weighted rate is no share of rows


def test_a_broken_promise_is_a_note_and_no_other_is() -> None:
    lower, upper = exact(60, 500)
    check = checked(ConfusionCounts(90, 60, 10, 440), FPR, RECALL)
    assert claim_notes(check) == (
        f"the threshold's promise fpr<=0.05 is BROKEN on these rows: 0.1200, [{lower:.4f}, {upper:.4f}]",
    )
    assert claim_notes(checked(ConfusionCounts(90, 25, 10, 475), FPR)) == ()
    assert claim_notes(checked(ConfusionCounts(90, 60, 10, 440), FPR, threshold=0.5)) == ()
    assert claim_notes(None) == ()


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
    assert (
        "nothing is flagged"
        in checked(ConfusionCounts(0, 0, 5, 5), replace(RECALL, requirement=Requirement("precision", ">=", 0.5)))
        .checks[0]
        .reason
    )
    assert checked(ConfusionCounts(5, 0, 5, 0), FPR).checks[0].reason == "no row is negative"


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
