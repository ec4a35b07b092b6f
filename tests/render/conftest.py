"""Reports to render, made from scores and labels that can be counted by hand."""

from typing import Any

import numpy as np
import pytest

from headeval.certifying.claim_record import Claim
from headeval.certifying.claims import check_claim
from headeval.comparison import compare
from headeval.drift import drift
from headeval.evaluation import Evaluation, evaluate
from headeval.head_history import RowsSeen, RowsUsed
from headeval.report import Report, Slice
from headeval.requirement_parsing import parse_requirement
from headeval.requirements import decide, decide_each
from headeval.scored_rows import ScoredRows
from headeval.slicing import judge_slice, worst_first

# What a table, a head file or a file name can hold: markup, controls, HTML, Markdown, bidirectional text, length.
HOSTILE = (
    "[red]x[/red]",
    "[/]",
    ":smile:",
    "\x1b[31mred\x1b]0;title\x07",
    "<script>alert(1)</script>",
    '"><img src=x onerror=alert(1)>',
    "a|b`c`*d*_e_~~f~~$g$",
    "[link](javascript:alert(1))",
    "{{ 7 * 7 }}{% raw %}",
    "line\nbreak\r\ttab",
    "\u202egnissap\u200b",
    "\udcff\x9b31m",
    "x" * 200,
    "有害的内容",
    "- [ ] # 1. @all &amp; &#60;",
)


@pytest.fixture(params=HOSTILE, ids=ascii)
def hostile(request: pytest.FixtureRequest) -> str:
    return str(request.param)


@pytest.fixture(scope="session")
def evaluation() -> Evaluation:
    """1,200 rows whose positives grow with the score; several bins stay empty."""
    rng = np.random.default_rng(5)
    probs = np.concatenate([rng.uniform(0, 0.3, 1000), rng.uniform(0.71, 1, 200)])
    labels = rng.uniform(size=1200) < probs * 0.8
    return evaluate(probs, labels, kind="prob", classes=("safe", "unsafe"), threshold=0.25)


@pytest.fixture
def report(evaluation: Evaluation) -> Report:
    asked = ("auc>=0.5", "recall>0.999", "n>=1000")
    return Report(
        provenance={"head": "linear-head.json", "data": ["a.parquet", "b.parquet"], "embedding_model": "m"},
        how="held-out rows of a.parquet, b.parquet",
        evaluation=evaluation,
        decisions=tuple(decide(parse_requirement(text), evaluation) for text in asked),
    )


@pytest.fixture
def hostile_report(hostile: str) -> Report:
    """A report in which every text from outside is hostile."""
    evaluation = evaluate([0.9, 0.2, 0.6, 0.4], [1, 0, 0, 1], kind="prob", classes=("safe", hostile))
    return Report(
        provenance={hostile: hostile, "data": [hostile, hostile]},
        how=hostile,
        evaluation=evaluation,
        slices=(Slice(hostile, hostile, evaluation),),
        decisions=(decide(parse_requirement("auc>=0.5"), evaluation),),
        notes=(hostile,),
    )


def report_with_every_part(*, weighted: bool) -> Report:
    """400 rows beside a noisier baseline and a reference, in slices of which one is small, held against every gate."""
    rng = np.random.default_rng(8)
    z = rng.normal(size=400) * 2 - 1
    y = (rng.random(400) < 1 / (1 + np.exp(-z))).astype(int)
    rows: dict[str, Any] = {"kind": "logit"}
    if weighted:
        rows |= {"weights": rng.uniform(0.5, 2, 400), "groups": np.arange(400) // 2}
    options: dict[str, Any] = {"threshold": 0.4, "classes": ("safe", "unsafe"), "n_resamples": 60, "seed": 3}
    before = z + rng.normal(size=400)
    whole = evaluate(z, y, prevalence=0.01, per_day=50_000, **options, **rows)
    comparison = compare(
        whole,
        evaluate(before, y, **options, **rows),
        ScoredRows.checked(z, y, **rows),
        ScoredRows.checked(before, y, **rows),
        name="old.json",
        resampling=whole.resampling,
    )
    team = np.where(np.arange(400) < 12, "few", np.array(["blue", "red"])[np.arange(400) % 2])
    slices = []
    for name in ("blue", "few", "red"):
        own = {key: value[team == name] for key, value in rows.items() if key != "kind"}
        part = evaluate(z[team == name], y[team == name], kind="logit", **options, **own)
        slices.append(judge_slice("team", name, part, whole))
    asked = ("auc>=0.5", "recall.lower>=0.2", "fpr.upper<=0.1", "auc.diff.lower>=-0.9", "accuracy.diff>=0.5")
    each = [parse_requirement(text, each=True) for text in ("recall.lower>=0.7", "fpr<=1")]
    digests = rng.integers(0, 2**64, (400, 2), dtype=np.uint64)
    embeddings = rng.normal(size=(400, 4))
    used = RowsUsed(9, 4, "9:aa", 0, digests[:9, 0])
    return Report(
        {"data": ["new.parquet"]},
        "400 labelled rows",
        whole,
        worst_first(slices),
        tuple(decide(parse_requirement(text), whole, comparison) for text in asked),
        ("a note",),
        RowsSeen(400, 12, 0, 12, 400),
        decide_each(each, slices, 30),
        comparison,
        drift(
            z,
            before[:300] + 0.5,
            y,
            y[:300],
            embeddings,
            embeddings[50:350] + 0.1,
            digests=digests,
            reference_digests=digests[100:],
            reference="old.parquet",
        ),
        check_claim(
            Claim(0.4, "certified requirements", "largest recall", 0.95, (), used.document()),
            ScoredRows.checked(z, y, **rows),
            threshold=0.4,
            fingerprint="400:bb",
            digests=digests[:, 0],
            confidence=0.95,
        ),
    )


@pytest.fixture(params=[False, True], ids=["plain", "weighted"], scope="session")
def full_report(request: pytest.FixtureRequest) -> Report:
    return report_with_every_part(weighted=request.param)
