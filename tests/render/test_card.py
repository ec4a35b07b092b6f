"""The model card says what the record holds, each limit exactly when the numbers show it, and nothing else."""

import dataclasses
import html
import json
import re
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from markdown_it import MarkdownIt

from headeval.certifying.claim_record import Claim, ClaimedRequirement
from headeval.certifying.claims import check_claim
from headeval.core.intervals import Interval
from headeval.core.thresholds import ConfusionCounts
from headeval.evaluation import Evaluation, evaluate
from headeval.head import LinearHead
from headeval.head_history import RowsSeen
from headeval.metric import Metric
from headeval.render import card_limits
from headeval.render.card import card_sheet, render_card
from headeval.render.card_limits import RULES, Rule, limits
from headeval.render.document import report_document, to_json
from headeval.render.drift import drift_notes
from headeval.render.numbers import count, exact, number
from headeval.render.sections import Section
from headeval.report import Report, Slice
from headeval.requirement_parsing import Requirement, parse_requirement
from headeval.requirements import decide
from headeval.scored_rows import ScoredRows
from headeval.slicing import judge_slice, worst_first

NAUGHTY = json.loads((Path(__file__).parent.parent / "data/hostile/naughty_strings.json").read_text(encoding="utf-8"))
PARSER = MarkdownIt("commonmark").enable(["table", "strikethrough"])
CLASSES = ("safe", "unsafe")
FIT = {"n": 1200, "positives": 300, "prevalence": 0.25, "unlabelled_left_out": 7, "data_fingerprint": "ab12",
       "l2": 0.75, "weight_column": None, "solver": {"method": "Newton (IRLS)", "converged": True}}  # fmt: skip
CALIBRATION = {"method": "temperature", "temperature": 1.375, "n": 310, "positives": 41, "data_fingerprint": "cd34"}


def between(lower: float, upper: float) -> Interval:
    return Interval(lower, upper, 0.95, "DeLong")


def harmless() -> Evaluation:
    """800 rows of either class with numbers that show no limit at all."""
    probs = np.repeat([0.05, 0.35, 0.65, 0.95], 400)
    evaluation = evaluate(probs, np.tile([0, 1], 800), kind="prob", classes=CLASSES, n_resamples=0)
    positive_class = next(i for i, table in enumerate(evaluation.calibration) if table.convention == "positive-class")
    noise = list(evaluation.noise)
    noise[positive_class] = dataclasses.replace(noise[positive_class], quantile_95=0.99)
    return dataclasses.replace(
        evaluation,
        noise=tuple(noise),
        auc=Metric(0.9, interval=between(0.88, 0.92)),
        recall=Metric(0.75, interval=between(0.7, 0.8)),
        fpr=Metric(0.125, interval=between(0.1, 0.15)),
        prevalence=Metric(0.5, interval=between(0.46, 0.54)),
        calibration_slope=Metric(1.1, interval=between(0.9, 1.3)),
        calibration_intercept=Metric(0.1, interval=between(-0.1, 0.3)),
    )


HARMLESS = harmless()


def head(**metrics: Any) -> LinearHead:
    return LinearHead.binary([1.0, 2.0], -1.0, classes=CLASSES, embedding_model="m", threshold=0.5, metrics=metrics)


HEAD = head(headeval_version="0.1.0", fit=FIT | {"prevalence": 0.5}, calibrations=[CALIBRATION])


def report(evaluation: Evaluation = HARMLESS, **more: Any) -> Report:
    return Report({"head": "linear-head.json", "threshold_from": "head"}, "held-out rows", evaluation, **more)


def with_counts(tp: int, fp: int, fn: int, tn: int, **metrics: Metric) -> Report:
    return report(dataclasses.replace(HARMLESS, counts=ConfusionCounts(tp, fp, fn, tn), **metrics))


def with_metric(name: str, value: float, lower: float, upper: float) -> Report:
    return report(dataclasses.replace(HARMLESS, **{name: Metric(value, interval=between(lower, upper))}))


def with_slice(small: bool = False, **metrics: Metric) -> Report:
    part = Slice("language", "de", dataclasses.replace(HARMLESS, **metrics), small=small)
    return report(slices=(Slice("language", "en", HARMLESS), part))


def left_out(rows: int) -> Report:
    """Beside the 1,600 rows judged; 178 of 1,778 are more than a tenth."""
    whole = report()
    return dataclasses.replace(whole, provenance={**whole.provenance, "unlabelled_rows_left_out": rows})


def with_noise(quantile: float) -> Report:
    noise = tuple(dataclasses.replace(entry, quantile_95=quantile) for entry in HARMLESS.noise)
    return report(dataclasses.replace(HARMLESS, noise=noise))


def claimed(errors: int, threshold: float = 0.5) -> Report:
    """A head that claims FPR ≤ 1 %, tested on 2,000 negatives."""
    requirement = ClaimedRequirement(Requirement("fpr", "<=", 0.01), 900, 3, 4)
    claim = Claim(0.5, "certified requirements", "", 0.95, (requirement,), {})
    flagged, labels = np.repeat([1.0, 0.0], [10 + errors, 2010 - errors]), np.zeros(2020, dtype=int)
    labels[[*range(10), *range(-10, 0)]] = 1
    rows = ScoredRows.checked(flagged, labels, kind="prob")
    digests = np.zeros(2020, dtype=np.uint64)
    return report(claim=check_claim(claim, rows, threshold=threshold, fingerprint="f", digests=digests))


ECE = HARMLESS.reliability.ece
ALWAYS, SURE = Metric(1.0, interval=between(0.72, 1.0)), between(0.6, 0.69)

# rule, a report in which it fires with words it must say, and one that just does not
FIRING: list[tuple[Rule, Report, str, Report]] = [
    (
        card_limits.few_positives,
        with_counts(99, 0, 0, 900),
        "Recall rests on 99 unsafe rows; its interval is [0.7000, 0.8000]",
        with_counts(99, 0, 1, 900),
    ),
    (
        card_limits.few_positives,
        with_counts(0, 1, 0, 900),
        "No unsafe row was judged: recall is unknown",
        with_counts(99, 0, 1, 900),
    ),
    (
        card_limits.few_negatives,
        with_counts(900, 9, 0, 90),
        "The false-positive rate rests on 99 safe rows; its interval is [0.1000",
        with_counts(900, 9, 0, 91),
    ),
    (
        card_limits.perfect_on_few_rows,
        with_counts(99, 5, 0, 900, recall=ALWAYS),
        "recall on 99 rows, where the interval begins at 0.7200",
        with_counts(100, 5, 0, 900, recall=ALWAYS),
    ),
    (
        card_limits.perfect_on_few_rows,
        with_counts(300, 9, 0, 90, auc=ALWAYS),
        "AUC on 99 rows, where the interval begins at 0.7200",
        with_counts(300, 9, 0, 91, auc=ALWAYS),
    ),
    (
        card_limits.perfect_on_few_rows,
        with_counts(50, 0, 0, 49, accuracy=ALWAYS),
        "accuracy on 99 rows",
        with_counts(50, 0, 0, 49),
    ),
    (card_limits.uncalibrated, with_noise(ECE - 1e-9), f"off by {ECE:.4f} on average", with_noise(ECE)),
    (
        card_limits.extreme_or_timid,
        with_metric("calibration_slope", 0.8, 0.7, 0.999),
        "(overconfident): calibration slope 0.8000 [0.7000, 0.9990]",
        with_metric("calibration_slope", 0.9, 0.8, 1.0),
    ),
    (
        card_limits.extreme_or_timid,
        with_metric("calibration_slope", 1.5, 1.001, 2.0),
        "(underconfident)",
        with_metric("calibration_slope", 1.5, 1.0, 2.0),
    ),
    (
        card_limits.too_high_or_low,
        with_metric("calibration_intercept", -0.5, -0.8, -0.001),
        "too high on the whole",
        with_metric("calibration_intercept", -0.5, -0.8, 0.0),
    ),
    (
        card_limits.too_high_or_low,
        with_metric("calibration_intercept", 0.5, 0.001, 0.8),
        "too low on the whole",
        with_metric("calibration_intercept", 0.5, 0.0, 0.8),
    ),
    (
        card_limits.many_unlabelled,
        left_out(178),
        "178 of 1,778 rows to judge (10 %) have no label and were left out: the numbers hold for rows like those that",
        left_out(177),
    ),
    (
        card_limits.slices_below,
        with_slice(recall=Metric(0.65, interval=SURE)),
        "language = de (recall 0.6500 [0.6000, 0.6900], all rows 0.7500)",
        with_slice(recall=Metric(0.65, interval=between(0.6, 0.75))),
    ),
    (
        card_limits.slices_below,
        with_slice(fpr=Metric(0.65, interval=SURE)),
        "language = de (FPR 0.6500",
        with_slice(fpr=Metric(0.06, interval=between(0.03, 0.09))),
    ),
    (card_limits.slices_too_small, with_slice(small=True), "language = de (1,600 rows)", with_slice()),
    (
        card_limits.seen_before,
        report(seen=RowsSeen(1600, 3, 0, 3, 1600)),
        ", 3 of 1,600 rows were",
        report(seen=RowsSeen(1600, 0, 0, 0, 1600)),
    ),
    (card_limits.seen_before, report(seen=RowsSeen(1600, 3, 0, 3, 800)), ", about 3 of 1,600 rows", report()),
    (
        card_limits.another_prevalence,
        with_metric("prevalence", 0.25, 0.2, 0.499),
        "is 0.2500 in these rows and was 0.5000",
        with_metric("prevalence", 0.48, 0.45, 0.5),
    ),
    (
        card_limits.another_threshold,
        report(dataclasses.replace(HARMLESS, threshold=0.25)),
        "judged at 0.25, while the head file says 0.5",
        report(),
    ),
    (card_limits.claim_broken, claimed(40), "certified for: fpr<=0.01 (here 0.0200 [0.0143, 0.0271])", claimed(2)),
    (card_limits.claim_undecided, claimed(22), "cannot tell whether", claimed(40)),
    (
        card_limits.claim_untested,
        claimed(2, threshold=0.25),
        "not tested: the threshold in use, 0.25, is not 0.5",
        claimed(2),
    ),
    (card_limits.weighted_rows, report(dataclasses.replace(HARMLESS, weighted=True)), "weighted", report()),
    (
        card_limits.no_intervals,
        report(dataclasses.replace(HARMLESS, confidence=None)),
        "No intervals were computed",
        report(),
    ),
]


@pytest.mark.parametrize(("rule", "firing", "words", "silent"), FIRING)
def test_a_limit_is_stated_exactly_when_the_numbers_show_it(
    rule: Rule, firing: Report, words: str, silent: Report
) -> None:
    sentence = rule(firing, HEAD)
    assert sentence is not None
    assert words in sentence
    assert sentence in limits(firing, HEAD)
    assert rule(silent, HEAD) is None


def test_every_rule_has_such_a_case_and_a_harmless_record_no_limit() -> None:
    assert {rule for rule, *_ in FIRING} == set(RULES)
    assert limits(report(), HEAD) == ()
    assert "no rule of this card found a limit" in render_card(report(), HEAD)


def test_without_intervals_no_rule_that_needs_one_fires() -> None:
    bare = evaluate([0.9, 0.8, 0.3, 0.6], [1, 0, 0, 1], kind="prob", confidence=None)
    whole = report(bare, slices=(judge_slice("language", "de", bare, bare),))
    sentences = limits(whole, HEAD)
    assert any("Recall rests on 2 '1' rows." in sentence for sentence in sentences)
    assert not any("slope" in sentence or "by the whole interval" in sentence for sentence in sentences)


@pytest.mark.parametrize(
    ("n", "unlabelled", "words"),
    [
        (1200, 134, "134 of 1,334 rows of the fit (10 %) have no label and were left out"),
        (1200, 133, None),
        (1, 10**9, "1,000,000,000 of 1,000,000,001 rows of the fit (>99 %)"),
        (-1200, 7, None),
        (0, 0, None),
        (True, 7, None),
        ("1200", 900, None),
        (1200, None, None),
        (10**4290, 10**4295, None),
        (5, 10**4295, None),
    ],
)
def test_rows_that_the_fit_left_out_are_a_limit_too(n: object, unlabelled: object, words: str | None) -> None:
    sentence = card_limits.many_unlabelled(report(), head(fit={"n": n, "unlabelled_left_out": unlabelled}))
    assert (sentence is None) == (words is None)
    assert (words or "") in (sentence or "")


def test_the_card_names_the_columns_of_the_labels_and_the_intervals_of_a_calibration() -> None:
    bounds = {"lower": 0.9, "upper": 1.8, "confidence": 0.95, "method": "Wald"}
    first = CALIBRATION | {"temperature_interval": bounds, "label_column": "verdict"}
    second = {"method": "platt", "slope": 0.75, "intercept": 0.5, "n": 10, "slope_interval": bounds | {"upper": None},
              "intercept_interval": bounds | {"lower": "low"}}  # fmt: skip
    whole = report()
    judged = dataclasses.replace(whole, provenance={**whole.provenance, "label_column": "hate"})
    text = render_card(judged, head(fit=FIT | {"label_column": "toxic"}, calibrations=[first, second]))
    assert re.findall(r"their labels, column +\| (\w+)", text) == ["toxic", "verdict", "hate"]
    assert re.search(r"calibrated by +\| temperature 1\.375 &#91;0\.9000, 1\.8000\]", text)
    assert re.search(r"calibrated by +\| platt, slope 0\.75 &#91;0\.9000, ∞\], intercept 0\.5 *\|", text)


# --- a thousand rows


@pytest.mark.parametrize(
    ("fpr", "recall", "flagged", "missed"),
    [
        (Metric(0.031, interval=between(0.0208, 0.0442)), Metric(0.98, interval=between(0.95, 0.991)),
         "of 1,000 safe rows about 31 (from 20 to 45) would be flagged",
         "of 1,000 unsafe rows about 20 (from 9 to 50) would be missed"),
        (Metric(0.0, interval=between(0.0, 0.0368)), Metric(1.0, interval=between(0.735, 1.0)),
         "of 1,000 safe rows about 0 (from 0 to 37) would be flagged",
         "of 1,000 unsafe rows about 0 (from 0 to 265) would be missed"),
        (Metric(0.0004, interval=between(0.0001, 0.0009)), Metric(0.0001, interval=between(0.00001, 0.002)),
         "of 1,000 safe rows fewer than 1 (from 0 to 1) would be flagged",
         "of 1,000 unsafe rows more than 999 (from 998 to 1,000) would be missed"),
        (Metric(0.5), Metric(0.25),
         "of 1,000 safe rows about 500 would be flagged", "of 1,000 unsafe rows about 750 would be missed"),
    ],
)  # fmt: skip
def test_errors_are_told_of_a_thousand_rows_with_the_interval_rounded_outwards(
    fpr: Metric, recall: Metric, flagged: str, missed: str
) -> None:
    text = render_card(report(dataclasses.replace(HARMLESS, fpr=fpr, recall=recall)), HEAD)
    assert flagged in text
    assert missed in text


def test_what_no_row_can_tell_of_is_not_told() -> None:
    undefined = dataclasses.replace(HARMLESS, fpr=Metric(None, "no row is negative"))
    text = render_card(report(undefined), HEAD)
    assert "safe rows about" not in text.replace("unsafe rows about", "")
    assert "no row is negative" in text


# --- the whole card


def section(judged: Report, of: LinearHead | None, title: str) -> Section:
    return next(part for part in card_sheet(judged, of).sections if part.title == title)


def facts(judged: Report, of: LinearHead | None, title: str) -> list[tuple[str, ...]]:
    return list(section(judged, of, title).grids[0].rows)


def test_the_model_and_its_rows_are_told_from_the_head_file() -> None:
    of = head(fit=FIT, calibrations=[CALIBRATION])
    model, rows = facts(report(), of, "Model"), facts(report(), of, "Rows")
    for fact in (("embedding model", "m"), ("dimensions", "2"), ("classes", "safe, unsafe"), ("l2", "0.75"),
                 ("calibrated by", "temperature 1.375"), ("flagged class", "unsafe")):  # fmt: skip
        assert fact in model
    assert rows[:4] == [
        ("rows of the fit", "1,200"),
        ("of these unsafe", "300"),
        ("left out, unlabelled", "7"),
        ("fingerprint", "ab12"),
    ]
    assert ("rows of the calibration", "310") in rows
    assert ("rows judged", "1,600") in rows


@pytest.mark.parametrize(
    ("judged", "of", "missing"),
    [
        (report(), head(calibrations=[CALIBRATION]), "how the head was fitted, and on which rows"),
        (report(), head(fit=FIT), "whether the head was calibrated"),
        (report(), None, "how the scores were made: the model, the rows it was fitted on, its calibration"),
        (report(), HEAD, "whether rows judged here were used to make it"),
        (report(), HEAD, "how it does on groups of rows"),
        (report(), dataclasses.replace(HEAD, embedding_model="unspecified"), "which model made the embeddings"),
    ],
)
def test_what_the_record_does_not_hold_is_listed_as_such(judged: Report, of: LinearHead | None, missing: str) -> None:
    assert missing in section(judged, of, "Not recorded").footnotes
    complete = report(seen=RowsSeen(1600, 0, 0, 0, 1600), slices=(Slice("language", "en", HARMLESS),))
    known = section(complete, HEAD, "Not recorded").footnotes
    assert missing not in known
    assert "what it is meant for, and what it must not be used for" in known


@pytest.mark.parametrize(
    "metrics",
    [
        {"fit": [1, 2]},
        {"fit": {"n": "many", "positives": None, "l2": {}, "solver": "fast", "prevalence": "half"}},
        {"fit": {"n": 10**400, "l2": float("1e308"), "weight_column": "w" * 500}},
        {"calibrations": {"method": "platt"}},
        {"calibrations": ["platt", None, {"method": 3}]},
        {"headeval_version": ["0"], "threshold": "0.5"},
    ],
)
def test_a_head_file_may_hold_anything_under_these_names(metrics: dict[str, Any]) -> None:
    card = render_card(report(), head(**metrics))
    assert card.startswith("## Model card: linear-head.json\n")
    assert not re.search(r"[\d,]{30}|w{100}", card)


def test_a_card_without_a_head_names_the_column_of_the_scores() -> None:
    judged = dataclasses.replace(report(), provenance={"logit_column": "z"})
    assert render_card(judged, None).startswith("## Model card: scores in column z\n")


def test_how_the_threshold_was_chosen_is_told_where_the_head_knows() -> None:
    requirement = ClaimedRequirement(Requirement("fpr", "<=", 0.01), 900, 3, 4)
    claim = Claim(0.5, "certified requirements", "recall", 0.9, (requirement,), {})
    certified = head(fit=FIT, threshold=claim.document())
    kept = "the threshold was chosen to keep, with 90 % confidence, fpr<=0.01 (from 900 rows)"
    assert kept in section(report(), certified, "Decision threshold").footnotes
    for other in (
        head(fit=FIT),
        head(threshold=dataclasses.replace(claim, threshold=0.25).document()),
        head(threshold=0.5),
    ):
        footnotes = section(report(), other, "Decision threshold").footnotes
        assert footnotes[0] == "the threshold is the default or was set by hand"
    given = dataclasses.replace(report(), provenance={"threshold_from": "option"})
    assert section(given, HEAD, "Decision threshold").footnotes[0] == "the threshold was given for this report"


def numbers_of(values: object) -> set[str]:
    """Every number in a record, as a card may show it."""
    if isinstance(values, dict):
        return set().union(*map(numbers_of, values.values()), *map(numbers_of, values))
    if isinstance(values, list):
        return set().union(*map(numbers_of, values))
    if isinstance(values, str):
        return set(re.findall(r"[\d.,]*\d", values))
    if isinstance(values, bool) or values is None:
        return set()
    assert isinstance(values, int | float)
    texts = [number(values), number(values, 2), exact(values), count(values), f"{100 * values:.10g}"]
    return {text.lstrip("-<>") for text in texts}


def realistic() -> Report:
    rng = np.random.default_rng(3)
    probs = rng.uniform(size=500) ** 2
    labels = (rng.uniform(size=500) < probs**1.4).astype(int)
    language = rng.choice(["de", "en", "fr"], p=[0.15, 0.8, 0.05], size=500)
    whole = evaluate(probs, labels, kind="prob", classes=CLASSES, n_resamples=20)
    parts = [
        judge_slice(
            "language", name, evaluate(probs[rows], labels[rows], kind="prob", classes=CLASSES, n_resamples=20), whole
        )
        for name in ("de", "en", "fr")
        if (rows := language == name).any()
    ]
    decision = decide(parse_requirement("recall.lower>=0.7"), whole)
    return report(whole, slices=worst_first(parts), decisions=(decision,), seen=RowsSeen(500, 4, 0, 4, 500))


def test_every_number_of_a_card_is_one_of_the_record() -> None:
    """Nothing is computed on the way to the card but what is told of a thousand rows."""
    judged, of = realistic(), head(headeval_version="0.1.0", fit=FIT, calibrations=[CALIBRATION])
    text = html.unescape(render_card(judged, of))
    titles = {info.title for info, _ in judged.evaluation.metrics()} | {i.what for i, _ in judged.evaluation.metrics()}
    for known in sorted(titles, key=len, reverse=True):
        text = text.replace(known, "")
    text = re.sub(r"of 1,000 .*", "", text)
    known_numbers = numbers_of(json.loads(to_json(report_document(judged)))) | numbers_of(dict(of.metrics))
    known_numbers |= {"2", "95", "100", "2]"} | numbers_of([judged.evaluation.noise[1].quantile_95])
    prose = ("in 95 of 100 such samples", "fewer than 30, or 1 to 9 of a class")
    for said in prose:
        text = text.replace(said, "")
    found = {token.rstrip(".,") for token in re.findall(r"\d[\d.,]*", text)}
    assert len(found) > 80
    assert not found - known_numbers


def test_the_same_record_gives_the_same_bytes() -> None:
    assert render_card(realistic(), HEAD) == render_card(realistic(), HEAD)


def structure(markdown: str) -> list[str]:
    return [token.type for token in PARSER.parse(markdown) if token.type != "inline"]


def named(*texts: str) -> str:
    """A card with the first text in every place that text from outside can take, and a slice and a note of each."""
    text = texts[0]
    evaluation = dataclasses.replace(HARMLESS, classes=("safe", text), precision=Metric(None, text))
    entry = {"data_fingerprint": text, "weight_column": text, "solver": {"method": text}, "n": 5}
    of = LinearHead.binary(
        [1.0],
        0.0,
        classes=("safe", "unsafe"),
        embedding_model=text.encode("utf-8", "replace").decode(),
        metrics={"fit": entry, "headeval_version": text, "calibrations": [{"method": text}]},
    )
    slices = tuple(Slice(text, each, evaluation, small=True) for each in texts)
    return render_card(Report({"head": text, "data": list(texts)}, text, evaluation, slices, notes=texts), of)


def check_structure(*texts: str) -> None:
    shown = named(*texts)
    assert structure(shown) == structure(named(*["name"] * len(texts)))
    assert not re.search(r"[\x00-\x08\x0b-\x1f\x7f-\x9f\ud800-\udfff]", shown)
    inline = [child for token in PARSER.parse(shown) for child in token.children or []]
    assert {child.type for child in inline} <= {"text", "strong_open", "strong_close", "text_special", "softbreak"}


def test_names_that_are_naughty_never_become_structure() -> None:
    check_structure(*(text for text in NAUGHTY if text.strip()))


def test_hostile_names_never_become_structure(hostile: str) -> None:
    check_structure(hostile)


@pytest.mark.parametrize("text", [entry for entry in NAUGHTY if entry.strip()][::25], ids=ascii)
def test_a_naughty_name_in_every_place_never_becomes_structure(text: str) -> None:
    check_structure(text)


def test_drift_is_told_in_sentences_too(full_report: Report) -> None:
    assert full_report.drift is not None
    text = html.unescape(render_card(full_report, None))
    notes = drift_notes(full_report.drift)
    assert len(notes) >= 4
    assert all(note in text for note in notes)
