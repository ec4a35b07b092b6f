"""`headeval threshold` certifies on rows apart from the fit, writes the claim into the head, and never compromises."""

import json
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from scipy.stats import beta, binom

from headeval.certifying.claim_record import read_claim
from headeval.files.heads import read_head, write_head
from headeval.head import LinearHead

Headeval = Callable[..., Any]
MakeTable = Callable[..., Path]

OUT = "linear-head-threshold.json"


@pytest.fixture
def held_out(make_table: MakeTable) -> Path:
    return make_table("held-out.parquet", n=1200, seed=11)


def rows_of(path: Path, head: LinearHead) -> tuple[np.ndarray, np.ndarray]:
    """Probabilities and labels by numpy alone."""
    table = pq.read_table(path)
    e = np.array(table["embedding"].to_pylist(), dtype=np.float64)
    z = e / np.linalg.norm(e, axis=1, keepdims=True) @ (head.W[1] - head.W[0]) + head.b[1] - head.b[0]
    return 1 / (1 + np.exp(-z)), np.array(table["label"].to_pylist()) == "unsafe"


def most_errors(n: int, rate: float, level: float) -> int:
    """Rows that may be missed."""
    return max((k for k in range(n + 1) if binom.cdf(k, n, rate) <= 1 - level), default=-1)


def most_flagged(n: int, rate: float, level: float) -> int:
    """Rows that may be flagged: one more than a binomial test allows, where the worst atom at that one allows it."""
    k = most_errors(n, rate, level)
    once = ((k + 1) * (share := np.linspace(0, 1, 100_001)) * (1 - share) ** k).max()
    return k + int(binom.cdf(k, n, rate) + once * binom.pmf(k + 1, n, rate) <= 1 - level)


def test_the_lowest_certified_threshold_flags_as_many_negatives_as_the_binomial_test_allows(
    headeval: Headeval, fitted: Path, held_out: Path, tmp_path: Path
) -> None:
    outcome = headeval("threshold", held_out, "--head", fitted, "--require", "fpr<=0.1")
    assert outcome.code == 0, outcome.err
    before, after = read_head(fitted), read_head(tmp_path / OUT)
    p, y = rows_of(held_out, before)
    allowed = most_flagged(int((~y).sum()), 0.1, 0.95)
    falling = np.sort(p[~y])[::-1]
    assert allowed == most_errors(int((~y).sum()), 0.1, 0.95) + 1
    assert after.threshold == falling[allowed - 1]  # of that row alone, not of the gap below it
    assert (p[~y] >= after.threshold).sum() == allowed
    assert f"{allowed}/{len(falling)}" in outcome.out
    # Nothing but threshold and claim has changed.
    assert replace(after, threshold=before.threshold, metrics=before.metrics) == before
    assert {key: value for key, value in after.metrics.items() if key != "threshold"} == before.metrics


def test_the_head_decides_these_rows_exactly_as_counted(
    headeval: Headeval, fitted: Path, held_out: Path, tmp_path: Path
) -> None:
    document = json.loads(
        headeval("threshold", held_out, "--head", fitted, "--require", "fpr<=0.1", "--format", "json").out
    )
    head, table = read_head(tmp_path / OUT), pq.read_table(held_out)
    flagged = head.flagged(np.array(table["embedding"].to_pylist(), dtype=np.float32))
    y = np.array(table["label"].to_pylist()) == "unsafe"
    counts = document["after"]["counts"]
    assert (counts["true_positives"], counts["false_positives"]) == ((flagged & y).sum(), (flagged & ~y).sum())
    assert document["threshold"] == head.threshold
    assert document["threshold_before"] == 0.5


def test_recall_alone_takes_the_highest_certified_threshold(
    headeval: Headeval, fitted: Path, held_out: Path, tmp_path: Path
) -> None:
    assert headeval("threshold", held_out, "--head", fitted, "--require", "recall>=0.8").code == 0
    t = read_head(tmp_path / OUT).threshold
    p, y = rows_of(held_out, read_head(fitted))
    allowed = most_errors(int(y.sum()), 0.2, 0.95)
    rising = np.sort(p[y])
    assert p[p < rising[allowed]].max() < t <= rising[allowed]
    assert (p[y] < t).sum() == allowed


def test_several_requirements_share_the_confidence(
    headeval: Headeval, fitted: Path, held_out: Path, tmp_path: Path
) -> None:
    asked = ("--require", "specificity>=0.7", "--require", "recall>=0.6")
    outcome = headeval("threshold", held_out, "--head", fitted, *asked)
    assert outcome.code == 0, outcome.err
    claim = read_claim(read_head(tmp_path / OUT).metrics)
    _, y = rows_of(held_out, read_head(fitted))
    assert [part.errors_allowed for part in claim.requirements] == [
        most_flagged(int((~y).sum()), 0.3, 0.975),
        most_errors(int(y.sum()), 0.4, 0.975),
    ]
    assert claim.requirements[0].errors == claim.requirements[0].errors_allowed  # the lowest threshold uses it up
    assert all(part.errors <= part.errors_allowed for part in claim.requirements)


@pytest.mark.parametrize("metric", ["f1", "accuracy", "precision"])
def test_a_goal_is_the_best_of_the_certified_thresholds(
    headeval: Headeval, fitted: Path, held_out: Path, tmp_path: Path, metric: str
) -> None:
    asked = ("--require", "fpr<=0.2", "--maximise", metric)
    assert headeval("threshold", held_out, "--head", fitted, *asked).code == 0
    chosen = read_head(tmp_path / OUT).threshold
    p, y = rows_of(held_out, read_head(fitted))
    allowed = most_errors(int((~y).sum()), 0.2, 0.95)

    def measure(t: float) -> float:
        flagged = p >= t
        tp, fp = (flagged & y).sum(), (flagged & ~y).sum()
        return {
            "f1": 2 * tp / (flagged.sum() + y.sum()),
            "accuracy": (flagged == y).mean(),
            "precision": tp / max(tp + fp, 1),
        }[metric]

    best = max(measure(t) for t in p if ((p >= t) & ~y).sum() <= allowed)
    assert measure(chosen) == pytest.approx(best, abs=1e-12)


def test_costs_choose_the_cheapest_threshold_and_say_that_nothing_is_certified(
    headeval: Headeval, fitted: Path, held_out: Path, tmp_path: Path
) -> None:
    outcome = headeval("threshold", held_out, "--head", fitted, "--cost-fp", 1, "--cost-fn", 5)
    assert outcome.code == 0, outcome.err
    assert "CAUTION: NOTHING IS CERTIFIED" in outcome.out
    head = read_head(tmp_path / OUT)
    p, y = rows_of(held_out, head)

    def cost(t: float) -> int:
        return int(((p >= t) & ~y).sum() + 5 * ((p < t) & y).sum())

    assert cost(head.threshold) == min(cost(t) for t in [*p, 1.1])
    claim = read_claim(head.metrics)
    assert claim.requirements == ()
    assert "nothing is certified" in claim.chosen_by


def test_precision_is_certified_by_its_own_walks(
    headeval: Headeval, fitted: Path, held_out: Path, tmp_path: Path
) -> None:
    outcome = headeval("threshold", held_out, "--head", fitted, "--require", "precision>=0.7")
    assert outcome.code == 0, outcome.err
    head = read_head(tmp_path / OUT)
    p, y = rows_of(held_out, head)

    def passes(step: int) -> bool:
        flagged = p >= step / 1000
        return binom.cdf((flagged & ~y).sum(), flagged.sum(), 0.3) <= 0.05 / 20

    certified = set()
    for start in (990, *range(950, 0, -50)):
        step = start
        while step and passes(step):
            certified.add(step)
            step -= 1
    assert head.threshold == min(certified) / 1000
    assert "share of positives" in outcome.out


def test_the_claim_travels_with_the_head(headeval: Headeval, fitted: Path, held_out: Path, tmp_path: Path) -> None:
    assert headeval("threshold", held_out, "--head", fitted, "--require", "fpr<=0.1").code == 0
    head = read_head(tmp_path / OUT)
    entry = head.metrics["threshold"]
    wanted = {"headeval_version", "threshold", "chosen_by", "goal", "confidence", "requirements", "n", "positives"}
    assert wanted | {"data_fingerprint", "distinct_rows", "row_digests", "in_sample", "benign"} <= entry.keys()
    part = entry["requirements"][0]
    keys = {
        "requirement",
        "metric",
        "comparison",
        "bound",
        "n",
        "errors",
        "errors_allowed",
        "value",
        "interval",
        "rule",
    }
    assert keys <= part.keys()
    assert entry["threshold"] == head.threshold
    assert entry["n"] == 1200
    assert (part["requirement"], part["errors"] / part["n"]) == ("fpr<=0.1", part["value"])
    assert part["exact_bound"] <= 0.1


def test_a_calibration_carries_threshold_and_claim_along(
    headeval: Headeval, fitted: Path, held_out: Path, make_table: MakeTable, tmp_path: Path
) -> None:
    assert headeval("threshold", held_out, "--head", fitted, "--require", "fpr<=0.1").code == 0
    outcome = headeval("calibrate", make_table("c.parquet", n=300, seed=5), "--head", OUT, "--method", "platt")
    assert outcome.code == 0, outcome.err
    before, after = read_head(tmp_path / OUT), read_head(tmp_path / "linear-head-threshold-calibrated.json")
    assert after.threshold != before.threshold
    assert read_claim(after.metrics) == replace(read_claim(before.metrics), threshold=after.threshold)
    p, _ = rows_of(held_out, before)
    q, _ = rows_of(held_out, after)
    np.testing.assert_array_equal(p >= before.threshold, q >= after.threshold)


def test_rows_of_the_fit_certify_nothing(
    headeval: Headeval, fitted: Path, make_table: MakeTable, tmp_path: Path
) -> None:
    outcome = headeval("threshold", make_table(), "--head", fitted, "--require", "fpr<=0.3")
    assert (outcome.code, (tmp_path / OUT).exists()) == (5, False)
    assert "120 of these 120 rows were used for the fit" in outcome.err
    traffic = headeval("threshold", "--benign", make_table(), "--head", fitted, "--require", "flag_rate<=0.9")
    assert traffic.code == 5
    assert "benign rows were used for the fit" in traffic.err


def test_a_few_rows_of_the_fit_are_counted_and_calibration_rows_cautioned(
    headeval: Headeval, fitted: Path, held_out: Path, make_table: MakeTable, tmp_path: Path
) -> None:
    mixed = headeval("threshold", held_out, make_table(), "--head", fitted, "--require", "fpr<=0.2")
    assert mixed.code == 0, mixed.err
    assert "120 of the rows were used for the fit" in " ".join(mixed.out.split())
    data = make_table("c.parquet", n=300, seed=5)
    headeval("calibrate", data, "--head", fitted)
    by_order = headeval("threshold", data, "--head", "linear-head-calibrated.json", "--require", "fpr<=0.2")
    assert by_order.code == 0, by_order.err
    assert "CAUTION" not in by_order.out  # a calibration keeps the order of the rows
    assert "300 labelled rows, all of which calibrated the head" in by_order.out
    assert "not weakened by it" in " ".join(by_order.out.split())
    chosen = headeval("threshold", data, "--head", "linear-head-calibrated.json", "--maximise", "f1", "--force")
    assert "CAUTION: NOTHING IS CERTIFIED" in chosen.out
    assert "IN-SAMPLE: all these 300 labelled rows were used for a calibration" in " ".join(chosen.out.split())
    both = make_table("both.parquet", n=500, seed=5)  # of which the first 300 are not the same rows
    pq.write_table(pa.concat_tables([pq.read_table(data), pq.read_table(held_out).slice(0, 200)]), both)
    again = ("--head", "linear-head-calibrated.json", "--require", "fpr<=0.2", "--force")
    assert "500 labelled rows, 300 of which calibrated the head" in headeval("threshold", both, *again).out


def test_rows_of_the_fit_are_told_with_the_command_that_names_them(
    headeval: Headeval, fitted: Path, held_out: Path, make_table: MakeTable, tmp_path: Path
) -> None:
    train = make_table()
    for n, words in (
        (1, "1 of the rows was used for the fit, and flatters it: leave it out"),
        (2, "2 of the rows were"),
    ):
        mixed, asked = tmp_path / f"mixed-{n}.parquet", ("--head", fitted, "--require", "fpr<=0.2", "--force")
        pq.write_table(pa.concat_tables([pq.read_table(train).slice(7, n), pq.read_table(held_out)]), mixed)
        notes = " ".join(headeval("threshold", mixed, *asked).out.split())
        assert words in notes
        assert "`headeval report … --head HEAD --reference FIT_DATA` names up to 10 of the rows of the fit" in notes
        named = headeval("report", mixed, "--head", fitted, "--reference", train, "--format", "json")
        found = json.loads(named.out)["drift"]["leakage"]
        assert found["exact"] == n
        assert [row["row"] for row in found["examples"][:n]] == ["7", "8"][:n]
    traffic = make_table("traffic.parquet", n=1201, seed=11, label=None)
    pq.write_table(pa.concat_tables([pq.read_table(t).drop_columns("label") for t in (held_out, train)]), traffic)
    benign = headeval("threshold", "--benign", traffic, "--head", fitted, "--require", "flag_rate<=0.9", "--force")
    assert "120 of the benign rows were used for the fit" in " ".join(benign.out.split())
    assert "headeval report" not in benign.out  # which takes labels


def test_one_row_that_calibrated_the_head_is_one(
    headeval: Headeval, fitted: Path, held_out: Path, make_table: MakeTable, tmp_path: Path
) -> None:
    data, mixed = make_table("c.parquet", n=300, seed=5), tmp_path / "mixed.parquet"
    headeval("calibrate", data, "--head", fitted)
    pq.write_table(pa.concat_tables([pq.read_table(data).slice(0, 1), pq.read_table(held_out)]), mixed)
    asked = ("--head", "linear-head-calibrated.json", "--require", "precision>=0.5")
    told = "1 of these 1,201 rows calibrated the head, and flatters precision: leave it out"
    assert told in " ".join(headeval("threshold", mixed, *asked).out.split())


def test_precision_is_refused_on_rows_that_calibrated_the_head(
    headeval: Headeval, fitted: Path, held_out: Path, make_table: MakeTable, tmp_path: Path
) -> None:
    data = make_table("c.parquet", n=300, seed=5)
    headeval("calibrate", data, "--head", fitted)
    asked = ("--head", "linear-head-calibrated.json", "--require", "precision>=0.6")
    outcome = headeval("threshold", data, *asked)
    assert outcome.code == 5
    assert "precision>=0.6 cannot be certified on rows that calibrated the head" in outcome.err
    assert "as 300 of these 300 rows did" in outcome.err
    assert len(outcome.err.splitlines()) <= 2
    assert not (tmp_path / "linear-head-calibrated-threshold.json").exists()
    few = headeval("threshold", data, held_out, *asked)
    assert few.code == 0, few.err
    assert "300 of these 1,500 rows calibrated the head, and flatter precision" in " ".join(few.out.split())
    others = headeval("threshold", held_out, *asked, "--force")
    assert (others.code, "flatter" in others.out) == (0, False)


def test_a_column_of_labels_in_benign_traffic_is_not_read_and_that_is_said(
    headeval: Headeval, fitted: Path, make_table: MakeTable
) -> None:
    asked = ("--head", fitted, "--require", "flag_rate<=0.9", "--force")
    note = "which is not read: all their rows count as benign"
    labelled = make_table("labelled.parquet", n=100, seed=3)
    out = " ".join(headeval("threshold", "--benign", labelled, *asked).out.split())
    assert f"the benign files have a column 'label', {note}" in out
    assert note not in " ".join(headeval("threshold", "--benign", labelled, *asked, "--label", "truth").out.split())
    plain = make_table("plain.parquet", n=100, seed=3, label=None)
    assert note not in " ".join(headeval("threshold", "--benign", plain, *asked).out.split())
    mixed = headeval("threshold", "--benign", plain, "--benign", labelled, *asked)
    assert note in " ".join(mixed.out.split())


def test_copies_of_rows_are_counted(headeval: Headeval, fitted: Path, held_out: Path) -> None:
    out = headeval("threshold", held_out, held_out.rename("h.parquet"), "--head", fitted, "--require", "fpr<=0.1").out
    assert "copies" not in out
    pq.write_table(pa.concat_tables([pq.read_table("h.parquet")] * 2), "twice.parquet")
    out = headeval("threshold", "twice.parquet", "--head", fitted, "--require", "fpr<=0.1", "--force").out
    assert "1,200 rows are copies of another" in " ".join(out.split())


def test_benign_traffic_needs_no_labels_and_no_order(
    headeval: Headeval, fitted: Path, make_table: MakeTable, tmp_path: Path
) -> None:
    traffic = make_table("traffic.parquet", n=900, seed=3, label=None)
    outcome = headeval("threshold", "--benign", traffic, "--head", fitted, "--require", "flag_rate<=0.05")
    assert outcome.code == 0, outcome.err
    head = read_head(tmp_path / OUT)
    e = np.array(pq.read_table(traffic)["embedding"].to_pylist(), dtype=np.float32)
    allowed = most_flagged(900, 0.05, 0.95)
    assert int(head.flagged(e).sum()) == allowed
    entry = head.metrics["threshold"]
    assert (entry["benign"]["n"], entry["benign"]["flagged"], entry["n"]) == (900, allowed, 0)
    table = pq.read_table(traffic)
    parts = [table.slice(500), table.slice(0, 500)]
    for index, part in enumerate(parts):
        pq.write_table(part, tmp_path / f"part{index}.parquet")
    again = ("--benign", "part0.parquet", "--benign", "part1.parquet", "--force")
    assert headeval("threshold", *again, "--head", fitted, "--require", "flag_rate<=0.05").code == 0
    assert read_head(tmp_path / OUT).metrics["threshold"]["benign"] == entry["benign"]


def test_labelled_rows_and_benign_traffic_are_certified_together(
    headeval: Headeval, fitted: Path, held_out: Path, make_table: MakeTable, tmp_path: Path
) -> None:
    traffic = make_table("traffic.parquet", n=2000, seed=3, label=None)
    asked = ("--require", "flag_rate<=0.2", "--require", "recall>=0.2")
    outcome = headeval("threshold", held_out, "--benign", traffic, "--head", fitted, *asked)
    assert outcome.code == 0, outcome.err
    claim = read_claim(read_head(tmp_path / OUT).metrics)
    assert claim.requirements[0].errors == most_flagged(2000, 0.2, 0.975)
    part = claim.requirements[0].interval
    row = next(line for line in outcome.out.splitlines() if "benign traffic flagged" in line)
    assert row.endswith(f"[{part.lower:.4f}, {part.upper:.4f}]")
    said = " ".join(outcome.out.split())
    assert "each at 97.5 %, its share of the 95 % for all 2 together" in said
    assert "it can reach beyond what is required, as the certificate is one-sided" in said
    alone = headeval("threshold", held_out, "--benign", traffic, "--head", fitted, "--require", "fpr<=0.2", "--force")
    document = json.loads(
        headeval("threshold", held_out, "--benign", traffic, "--head", fitted, "--require", "fpr<=0.2",
                 "--force", "--format", "json").out
    )  # fmt: skip
    benign = document["benign_rows"]
    lower, upper = beta.ppf(
        [0.025, 0.975], benign["after"] + np.array([0, 1]), 2000 - benign["after"] + np.array([1, 0])
    )
    assert [benign["interval"]["lower"], benign["interval"]["upper"]] == pytest.approx([lower, upper], abs=1e-9)
    assert f"[{lower:.4f}, {upper:.4f}]" in alone.out
    assert "its share of" not in " ".join(alone.out.split())
    assert "row_digests" not in json.dumps(document)


@pytest.mark.parametrize(
    ("asked", "words"),
    [
        (["fpr<=0.001"], ["even if none of them were flagged", "it takes at least 2,995, with none flagged: "]),
        (["recall>=0.999"], ["even if none of them were missed", "it takes at least 2,995, with no miss: "]),
        (
            ["fpr<=0.02", "recall>=0.95"],
            ["fpr<=0.02 allows", "recall there 0.", "recall>=0.95 allows up to", "fpr there 0."],
        ),
        (
            ["precision>=0.999"],
            ["precision>=0.999 cannot be certified", "flagged rows are positive", "more flagged rows"],
        ),
    ],
)
def test_what_cannot_be_certified_is_5_with_what_it_would_take(
    headeval: Headeval, fitted: Path, held_out: Path, tmp_path: Path, asked: list[str], words: list[str]
) -> None:
    outcome = headeval("threshold", held_out, "--head", fitted, *(x for text in asked for x in ("--require", text)))
    assert (outcome.code, (tmp_path / OUT).exists()) == (5, False), outcome.err
    assert len(outcome.err.splitlines()) <= 2
    for part in words:
        assert part in outcome.err


def test_no_negatives_are_too_few(headeval: Headeval, fitted: Path, make_table: MakeTable) -> None:
    data = make_table("unsafe.parquet", n=50, seed=3, label=pa.array(["unsafe"] * 50))
    outcome = headeval("threshold", data, "--head", fitted, "--require", "fpr<=0.1")
    assert outcome.code == 5
    assert "on 0 negatives" in outcome.err
    assert "29 more" in outcome.err


def test_saturated_probabilities_are_not_passed_by_any_threshold(
    headeval: Headeval, fitted: Path, held_out: Path, tmp_path: Path
) -> None:
    head = read_head(fitted)
    write_head(replace(head, W=head.W * 1e4, b=head.b * 1e4), tmp_path / "sharp.json")
    outcome = headeval("threshold", held_out, "--head", "sharp.json", "--require", "fpr<=0.05")
    assert outcome.code == 5
    assert "probability of 1" in outcome.err


@pytest.mark.parametrize(
    ("arguments", "code", "words"),
    [
        (["--require", "fpr<=0.1"], 2, "give DATA"),
        ([], 2, "nothing says which threshold"),
        (["DATA"], 2, "nothing says which threshold"),
        (["DATA", "--require", "auc>=0.9"], 2, "for these it can: fpr, specificity, recall, precision, flag_rate"),
        (["DATA", "--require", "fprr<=0.9"], 2, "did you mean fpr?"),
        (["DATA", "--require", "fpr.lower<=0.9"], 2, "did you mean fpr?"),
        (["DATA", "--require", "fpr.upper<=0.05"], 2, "the upper bound is what is certified anyway: write 'fpr<=0.05'"),
        (["DATA", "--require", "Recall.lower >= .9 "], 2, "certified anyway: write 'recall>= .9'"),
        (["DATA", "--require", "recall.upper>=0.9"], 2, "did you mean recall?"),
        (["DATA", "--require", "TPR>=0.9"], 2, "did you mean recall?"),
        (["DATA", "--require", "sensitivity>=0.9"], 2, "did you mean recall?"),
        (["DATA", "--require", "fnr<=0.1"], 2, "did you mean recall, which is 1 - fnr?"),
        (["DATA", "--require", "tnr>=0.9"], 2, "did you mean specificity?"),
        (["DATA", "--require", "ppv.lower>=0.9"], 2, "did you mean precision?"),
        (["DATA", "--require", "fpr=0.1"], 2, "is not METRIC>=NUMBER"),
        (["DATA", "--require", "fpr>=0.1"], 2, "from the other side only, such as 'fpr<=0.01'"),
        (["DATA", "--require", "recall<=0.1"], 2, "from the other side only, such as 'recall>=0.9'"),
        (["DATA", "--require", "fpr<=0"], 2, "no number of rows"),
        (["DATA", "--require", "recall>=1"], 2, "no number of rows"),
        (["DATA", "--require", "fpr<=1"], 2, "always met"),
        (["DATA", "--require", "recall>=0"], 2, "always met"),
        (["DATA", "--require", "flag_rate<=0.1"], 2, "--benign"),
        (["--benign", "DATA", "--require", "fpr<=0.1"], 2, "needs labelled rows"),
        (
            ["--benign", "DATA", "--require", "flag_rate<=0.1", "--maximise", "f1"],
            2,
            "--maximise f1 needs labelled rows",
        ),
        (["DATA", "--maximise", "recall"], 2, "flags every row"),
        (["DATA", "--maximise", "specificity"], 2, "flags no row"),
        (["DATA", "--cost-fp", "1"], 2, "belong together"),
        (["DATA", "--cost-fp", "1", "--cost-fn", "2", "--maximise", "f1"], 2, "one goal"),
        (["DATA", "--cost-fp", "0", "--cost-fn", "2"], 2, "--cost-fp must be"),
        (["DATA", "--require", "fpr<=0.1", "--confidence", "95"], 2, "95 % is 0.95"),
        (["absent.parquet", "--require", "fpr<=0.1"], 3, "absent.parquet"),
        (["DATA", "--require", "fpr<=0.1", "--head", "absent.json"], 4, "absent.json"),
        (["DATA", "--require", "fpr<=0.1", "-o", "there.json"], 6, "--force"),
        (["DATA", "--require", "fpr<=0.1", "-o", "held-out.parquet", "--force"], 6, "one of the inputs"),
        (["--plan", "--require", "fpr<=1e-15"], 2, "looser bound"),
    ],
)
def test_what_cannot_be_done_leaves_the_files_as_they_were(
    headeval: Headeval, fitted: Path, held_out: Path, tmp_path: Path, arguments: list[str], code: int, words: str
) -> None:
    (tmp_path / "there.json").write_bytes(b"mine")
    before = {path: path.read_bytes() for path in tmp_path.iterdir()}
    given = [held_out.name if argument == "DATA" else argument for argument in arguments]
    outcome = headeval("threshold", *given, *([] if "--head" in given else ["--head", fitted]))
    assert outcome.code == code, outcome.err
    assert words in outcome.err
    assert len(outcome.err.splitlines()) <= 2
    assert {path: path.read_bytes() for path in tmp_path.iterdir()} == before


def test_a_head_is_needed_and_may_replace_itself_with_force(headeval: Headeval, fitted: Path, held_out: Path) -> None:
    without = headeval("threshold", held_out, "--require", "fpr<=0.1")
    assert (without.code, "--head HEAD is needed" in without.err) == (2, True)
    assert headeval("threshold", held_out, "--head", fitted, "--require", "fpr<=0.1", "-o", fitted).code == 6
    assert headeval("threshold", held_out, "--head", fitted, "--require", "fpr<=0.1", "-o", fitted, "--force").code == 0
    assert read_claim(read_head(fitted).metrics) is not None


def test_a_plan_needs_no_data_and_counts_what_the_binomial_test_takes(headeval: Headeval) -> None:
    table = headeval("threshold", "--plan")
    assert table.code == 0
    assert "2,995" in table.out
    plan = json.loads(headeval("threshold", "--plan", "--require", "fpr<=0.001", "--format", "json").out)
    for errors, rows in zip(plan["errors"], plan["plan"][0]["rows"], strict=True):
        assert binom.cdf(errors, rows, 0.001) <= 0.05 < binom.cdf(errors, rows - 1, 0.001)
    asked = ("--require", "fpr<=0.01", "--require", "recall>=0.9", "--require", "precision>=0.8", "--confidence", "0.9")
    plan = json.loads(headeval("threshold", "--plan", *asked, "--format", "json").out)
    levels = [1 - 0.1 / 3, 1 - 0.1 / 3, 1 - 0.1 / 60]
    for line, rate, level in zip(plan["plan"], [0.01, 0.1, 0.2], levels, strict=True):
        assert line["level"] == pytest.approx(level)
        rows = line["rows"][2]
        assert binom.cdf(2, rows, rate) <= 1 - level < binom.cdf(2, rows - 1, rate)


def test_a_report_leaves_out_the_rows_of_the_choice_and_puts_a_broken_promise_on_top(
    headeval: Headeval, fitted: Path, held_out: Path, make_table: MakeTable, tmp_path: Path
) -> None:
    """700 rows that are all flagged break the promise; 400 rows of the choice among them change nothing."""
    assert headeval("threshold", held_out, "--head", fitted, "--require", "fpr<=0.1").code == 0
    worse = pq.read_table(make_table("worse.parquet", n=700, seed=21, label=pa.array(["safe"] * 700)))
    pq.write_table(pa.concat_tables([pq.read_table(held_out).slice(0, 400), worse]), "mixed.parquet")
    found = json.loads(headeval("report", "mixed.parquet", "--head", OUT, "--format", "json").out)
    part, head = found["claim"]["requirements"][0], read_head(tmp_path / OUT)
    flagged = head.flagged(np.array(worse["embedding"].to_pylist(), dtype=np.float32))
    entry = head.metrics["threshold"]
    assert entry["distinct_rows"] == 1200  # more than are kept, so that some are not recognised
    counts = found["claim"]["rows"]
    assert counts["n"] == 1100
    assert counts["recognised"] + counts["unrecognised"] == pytest.approx(400, abs=60)
    assert part["n"] < 700 + 400 - counts["recognised"]
    assert part["errors"] >= flagged.sum()
    assert part["verdict"] == "broken"
    note = f"the threshold's promise fpr<=0.1 is BROKEN on these rows: {part['value']:.4f}"
    assert found["notes"][0].startswith(note)
    assert note in " ".join(headeval("report", "mixed.parquet", "--head", OUT).out.split())
    same = headeval("report", held_out, "--head", OUT).out
    assert "chosen on: no test" in " ".join(same.split())
    assert "BROKEN" not in same


def test_a_report_on_the_benign_rows_of_the_choice_is_no_test(
    headeval: Headeval, fitted: Path, held_out: Path, make_table: MakeTable
) -> None:
    traffic = make_table("traffic.parquet", n=900, seed=3)
    asked = ("--require", "flag_rate<=0.5", "--require", "recall>=0.2")
    outcome = headeval("threshold", held_out, "--benign", traffic, "--head", fitted, *asked)
    assert outcome.code == 0, outcome.err
    claim = json.loads(headeval("report", traffic, "--head", OUT, "--format", "json").out)["claim"]
    assert "all of these 900 rows are rows that the threshold was chosen on" in claim["same_rows"]
    assert {part["verdict"] for part in claim["requirements"]} == {"not tested"}
    alone = ("--require", "flag_rate<=0.5", "--force")
    assert headeval("threshold", "--benign", traffic, "--head", fitted, *alone).code == 0
    out = " ".join(headeval("report", make_table("new.parquet", seed=8), "--head", OUT).out.split())
    assert "for unlabelled benign traffic, and labelled rows are no test of that" in out
    assert "these rows judge" not in out


def test_groups_of_rows_test_a_promise_by_the_interval_of_the_gate(
    headeval: Headeval, fitted: Path, held_out: Path, make_table: MakeTable
) -> None:
    assert headeval("threshold", held_out, "--head", fitted, "--require", "fpr<=0.1").code == 0
    new = make_table(
        "new.parquet", n=600, seed=8, team=pa.array(np.arange(600) // 6), w=pa.array(np.arange(600) % 3 + 1.0)
    )
    for option in (["--group", "team"], ["--weight", "w"]):
        found = json.loads(headeval("report", new, "--head", OUT, *option, "--format", "json").out)
        part = found["claim"]["requirements"][0]
        assert part["interval"]["method"] == "Clopper-Pearson, effective size"
        gate = found["guarantees"]["fpr"]
        assert {name: part["interval"][name] for name in gate} == gate
        assert part["value"] == found["metrics"]["fpr"]


def test_json_is_strict_and_alone_on_stdout(headeval: Headeval, fitted: Path, held_out: Path) -> None:
    outcome = headeval("threshold", held_out, "--head", fitted, "--require", "fpr<=0.1", "--format", "json")
    assert outcome.err == ""
    assert outcome.out.isascii()
    document = json.loads(outcome.out)
    assert (document["format"], document["version"]) == ("headeval-threshold", 1)
    assert "row_digests" not in document
    assert document["requirements"][0]["metric"] == "fpr"


@pytest.mark.parametrize("bound", ["fpr<=1e-300", "recall>=0.9999999999999", "precision>=0.9999999999999"])
def test_bounds_that_take_more_rows_than_there_are_are_2(
    headeval: Headeval, fitted: Path, held_out: Path, bound: str
) -> None:
    outcome = headeval("threshold", held_out, "--head", fitted, "--require", bound)
    assert (outcome.code, outcome.out) == (2, "")
    assert "more rows than anybody has" in outcome.err


def test_only_the_ratio_of_the_costs_decides(headeval: Headeval, fitted: Path, held_out: Path, tmp_path: Path) -> None:
    found = []
    for scale in ("1e308", "1", "1e-300"):
        costs = ("--cost-fp", scale, "--cost-fn", scale)
        assert headeval("threshold", held_out, "--head", fitted, *costs, "--force").code == 0
        found.append(read_head(tmp_path / OUT).threshold)
    assert len(set(found)) == 1
    assert 0 < found[0] < 1


@pytest.mark.parametrize("goal", [("--maximise", "f1"), ("--cost-fp", 1, "--cost-fn", 1)])
def test_a_goal_that_weighs_two_classes_needs_both(
    headeval: Headeval, fitted: Path, held_out: Path, goal: tuple[object, ...]
) -> None:
    table = pq.read_table(held_out)
    pq.write_table(table.filter(pa.compute.equal(table["label"], "safe")), "safe.parquet")
    outcome = headeval("threshold", "safe.parquet", "--head", fitted, *goal)
    assert outcome.code == 3
    assert "rows of both classes are needed" in outcome.err


def test_a_plan_takes_no_data(headeval: Headeval, fitted: Path, held_out: Path) -> None:
    assert headeval("threshold", "--plan", "--require", "fpr<=0.01").code == 0
    for other in ((held_out,), ("--head", fitted), ("--maximise", "f1"), ("--benign", held_out), ("-o", "x.json")):
        outcome = headeval("threshold", "--plan", *other)
        assert (outcome.code, outcome.out) == (2, ""), other


def test_labels_of_another_column_than_the_fits_are_asked_about(
    headeval: Headeval, fitted: Path, held_out: Path
) -> None:
    table = pq.read_table(held_out)
    pq.write_table(table.rename_columns(["truth" if n == "label" else n for n in table.column_names]), "t.parquet")
    outcome = headeval("threshold", "t.parquet", "--label", "truth", "--head", fitted, "--require", "fpr<=0.2")
    assert outcome.code == 0, outcome.err
    assert "'label'" in outcome.out
    assert "'truth'" in outcome.out
