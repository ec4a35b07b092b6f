"""Requirements of categories and classes: whose metric is meant, what is refused, and what each is held against."""

import numpy as np
import pytest

from headeval.category_report import CategoriesReport, JudgedCategory, macro_average
from headeval.core.stable import softmax
from headeval.errors import UsageError
from headeval.evaluation import Evaluation, evaluate
from headeval.multiclass import CLASS_METRICS, ClassEvaluation, evaluate_classes
from headeval.report import Report
from headeval.requirement_parsing import Requirement, parse_requirement
from headeval.requirement_scope import of_categories, of_classifier
from headeval.requirements import Verdict, decide

CLASSES = ("safe", "rude", "hate")


def parsed(text: str, *, each: bool = False) -> Requirement:
    return parse_requirement(text, each=each, of_parts=True)


@pytest.fixture(scope="module")
def scored() -> tuple[Evaluation, ClassEvaluation]:
    """300 rows of three classes, with the evaluation of the last one against the rest."""
    rng = np.random.default_rng(4)
    labels = rng.integers(0, 3, 300)
    logits = rng.normal(size=(300, 3)) + 1.5 * np.eye(3)[labels]
    probs = softmax(logits)
    flagged = evaluate(probs[:, 2], labels == 2, kind="prob", n_resamples=0, classes=("not hate", "hate"))
    return flagged, evaluate_classes(logits, labels, kind="logit", classes=CLASSES, n_resamples=0)


# --- reading


@pytest.mark.parametrize(
    ("text", "of", "metric"),
    [
        ("hate:auc.lower>=0.8", "hate", "auc"),
        ("*:auc>=0.8", "*", "auc"),
        ("a:b:auc >= 0.8", "a:b", "auc"),
        (" hate :auc>=0.8", "hate", "auc"),
        ("hate>=0.5:auc>=0.8", "hate>=0.5", "auc"),
        ("auc>=0.8", "", "auc"),
        ("macro_f1.lower>=0.5", "", "macro_f1"),
    ],
)
def test_what_stands_before_the_last_colon_is_the_category_or_class(text: str, of: str, metric: str) -> None:
    found = parsed(text)
    assert (found.of, found.metric) == (of, metric)
    assert parsed(str(found)) == found


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("hate:", "is not METRIC>=NUMBER"),
        ("hate:oauc>=0.8", r"unknown metric 'oauc' \(did you mean auc\?\)"),
        ("hate:macro_f1>=0.8", "macro_f1 is of all classes together: write 'macro_f1>=0.8'"),
        ("macro_f2>=0.5", r"did you mean macro_f1\?"),
        ("top_label_mce.lower>=0.5", "top_label_mce has no interval"),
        ("macro_f1.diff>=0", "macro_f1 is not compared with a baseline"),
        ("macro_f1>=-1", "is always met"),
        ("hate:auc<=5", "is always met"),
    ],
)
def test_what_makes_no_sense_is_refused(text: str, message: str) -> None:
    with pytest.raises(UsageError, match=message):
        parsed(text)


@pytest.mark.parametrize(
    ("text", "each", "known"),
    [
        ("oauc>=0.8", False, "flag_rate; with several classes, of them all: top1_accuracy, balanced_accuracy, "),
        (
            "hate:oauc>=0.8",
            False,
            "flag_rate; of one of several classes: prevalence, auc, ap, ece, precision, recall, f1$",
        ),
        ("oauc>=0.8", True, "flag_rate$"),
    ],
)
def test_an_unknown_metric_is_told_all_that_could_stand_there(text: str, each: bool, known: str) -> None:
    """Of slices there are no metrics of all classes, and before these stands no class."""
    with pytest.raises(UsageError, match=f"; known: n, prevalence, .*{known}"):
        parsed(text, each=each)


@pytest.mark.parametrize("text", ["hate:fpr<=0.01", "macro_f1>=0.5"])
def test_other_commands_know_neither(text: str) -> None:
    with pytest.raises(UsageError):
        parse_requirement(text)


# --- whose


def test_a_star_asks_it_of_each_category_in_their_order() -> None:
    asked = [parsed("spam:auc>=0.5"), parsed("*:recall.lower>=0.1")]
    found = of_categories(asked, ["hate", "spam"])
    assert [str(one) for one in found] == ["spam:auc>=0.5", "hate:recall.lower>=0.1", "spam:recall.lower>=0.1"]


@pytest.mark.parametrize(
    ("text", "each", "message"),
    [
        ("auc>=0.5", False, r"--require 'auc>=0.5': of which category\? 'hate:auc>=0.5' asks it of one"),
        ("recall>=0.5", True, "--require-each 'recall>=0.5': of which category"),
        ("Hate:auc>=0.5", False, r"no category 'Hate' \(did you mean 'hate'\?\); the categories are 'hate', 'spam'"),
        ("HATE:auc>=0.5", False, r"no category 'HATE' \(did you mean 'hate'\?\)"),
        ("\x1b[31m:auc>=0.5", False, r"no category '\\x1b\[31m'"),
        ("macro_f1>=0.5", False, "macro_f1 is of more than two classes; a category has two"),
    ],
)
def test_categories_have_to_be_named_rightly(text: str, each: bool, message: str) -> None:
    with pytest.raises(UsageError, match=message):
        of_categories([parsed(text)], ["hate", "spam"], each=each)


def test_of_more_than_two_classes_each_may_be_required_and_all_together() -> None:
    asked = [parsed(text) for text in ("rude:recall>=0.5", "macro_f1>=0.5", "auc>=0.5", "hate:auc.lower>=0.5")]
    assert of_classifier(asked, [parsed("recall>=0.5", each=True)], CLASSES) == tuple(asked)


def test_a_star_asks_it_of_each_class_in_their_order() -> None:
    found = of_classifier([parsed("macro_f1>=0.5"), parsed("*:recall.lower>=0.1"), parsed("auc>=0.5")], [], CLASSES)
    each = ["safe:recall.lower>=0.1", "rude:recall.lower>=0.1", "hate:recall.lower>=0.1"]
    assert [str(one) for one in found] == ["macro_f1>=0.5", *each, "auc>=0.5"]


@pytest.mark.parametrize(
    ("text", "each", "classes", "message"),
    [
        ("rde:recall>=0.5", False, CLASSES, r"no class 'rde' \(did you mean 'rude'\?\); the classes are 'safe'"),
        ("*:brier<=0.5", False, CLASSES, r"--require '\*:brier<=0.5': brier is not measured of each class"),
        ("*:recall>=0.5", True, CLASSES, "slices are judged by the flagged class alone"),
        ("*:recall>=0.5", False, None, "has one label of two classes: ask 'recall>=0.5'"),
        ("hate:fpr<=0.5", False, CLASSES, "recall, f1; of the flagged class there is 'fpr<=0.5'$"),
        ("rude:fpr<=0.5", False, CLASSES, "recall, f1$"),
        ("rude:brier<=0.5", False, CLASSES, "brier is not measured of each class; measured are: prevalence"),
        ("rude:recall.diff>=0", False, CLASSES, "recall.diff is not measured of each class"),
        ("rude:recall>=0.5", True, CLASSES, "slices are judged by the flagged class alone"),
        ("macro_f1>=0.5", True, CLASSES, "slices are judged by the flagged class alone"),
        ("hate:auc>=0.5", False, None, "has one label of two classes: ask 'auc>=0.5'"),
        ("macro_f1>=0.5", False, None, "macro_f1 is of more than two classes; of two there are: n, prevalence"),
        ("hate:recall>=0.5", True, None, "--require-each 'hate:recall>=0.5': what is judged has one label"),
    ],
)
def test_what_the_one_classifier_does_not_have_is_refused(
    text: str, each: bool, classes: tuple[str, ...] | None, message: str
) -> None:
    requirement = parsed(text, each=each and ".diff" not in text)
    with pytest.raises(UsageError, match=message):
        of_classifier([] if each else [requirement], [requirement] if each else [], classes)


# --- held against


@pytest.mark.parametrize("name", CLASSES)
@pytest.mark.parametrize("metric", ["recall", "precision", "auc", "f1"])
def test_a_class_is_held_against_its_own_rates(
    scored: tuple[Evaluation, ClassEvaluation], name: str, metric: str
) -> None:
    evaluation, classes = scored
    own = getattr(next(part for part in classes.per_class if part.name == name), metric).value
    found = decide(parsed(f"{name}:{metric}>={own!r}"), evaluation, None, classes)
    assert (found.value, found.verdict) == (own, Verdict.MET)
    above = float(np.nextafter(own, 2))
    assert decide(parsed(f"{name}:{metric}>={above!r}"), evaluation, None, classes).verdict is Verdict.NOT_MET


def test_metrics_of_all_classes_and_of_the_flagged_one_stand_beside_each_other(
    scored: tuple[Evaluation, ClassEvaluation],
) -> None:
    evaluation, classes = scored
    for name in CLASS_METRICS:
        found = decide(parsed(f"{name}>=0"), evaluation, None, classes) if name != "multiclass_brier" else None
        assert found is None or found.value == getattr(classes, name).value
    plain = decide(parsed("recall>=0"), evaluation, None, classes)
    assert plain.value == evaluation.recall.value


def test_a_bound_of_a_class_is_held_against_the_exact_interval(scored: tuple[Evaluation, ClassEvaluation]) -> None:
    evaluation, classes = scored
    rude = classes.per_class[1].recall
    assert rude.guarantee is not None
    found = decide(parsed("rude:recall.lower>=0.01"), evaluation, None, classes)
    assert (found.value, found.interval) == (rude.guarantee.lower, rude.guarantee)


# --- averages


def test_a_macro_average_counts_each_category_the_same_whatever_its_rows() -> None:
    small = evaluate([0.9, 0.2], [1, 0], kind="prob")
    large = evaluate(np.tile([0.9, 0.2, 0.1, 0.8], 50), np.tile([0, 1, 0, 1], 50), kind="prob")
    one_class = evaluate([0.9, 0.2], [0, 0], kind="prob")
    parts = [JudgedCategory(name, 0, Report({}, "", each)) for name, each in (("a", small), ("b", large))]
    parts += [JudgedCategory("c", 0, Report({}, "", one_class)), JudgedCategory("d", 9, None, "no label")]
    report = CategoriesReport({}, tuple(parts))
    # Of b's four kinds of pairs 0.2 and 0.8 against 0.1 are won, against 0.9 lost.
    assert report.averages["auc"].value == (1.0 + 0.5) / 2
    assert report.averages["auc"].categories == 2
    assert report.averages["fpr"].value == pytest.approx((0 + 0.5 + 0.5) / 3, abs=1e-15)
    assert [part.known for part in report.parts] == [2, 200, 2, 0]


def test_an_infinite_value_is_not_averaged_away() -> None:
    assert macro_average([0.5, float("inf")]).value == float("inf")
    assert macro_average([0.5, float("nan")]) == macro_average([0.5])
