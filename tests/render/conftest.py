"""Reports to render, made from scores and labels that can be counted by hand."""

import numpy as np
import pytest

from headeval.evaluation import Evaluation, evaluate
from headeval.report import Report, Slice
from headeval.requirements import decide, parse_requirement

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
