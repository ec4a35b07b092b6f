"""The whole choice, goal and all, keeps its promise in simulated deployments; and the number it returns is short."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.stats import beta, binom, norm

from headeval.certifying.certifiable import Goal, chosen_goal, parse_certifiable
from headeval.certifying.choice import Sample, allowed_thresholds, certifications, choose_threshold
from headeval.core.stable import logit, sigmoid
from headeval.core.thresholds import short_number

DEPLOYMENTS = 600
APART = 2.0  # logits: negatives N(-2, 1), positives N(0, 1)


def most(level: float) -> float:
    """A level of violations that the deployments exceed by chance once in a thousand times."""
    return float(binom.ppf(0.999, DEPLOYMENTS, level)) / DEPLOYMENTS


def chosen(
    rng: np.random.Generator, asked: list[str], goal: Goal, *, n: int = 600, decimals: int | None = None
) -> float | None:
    y = (rng.random(n) < 0.3).astype(np.int64)
    benign = sigmoid(rng.normal(size=1500) - APART)
    p = sigmoid(rng.normal(size=n) - APART * (1 - y))
    if decimals is not None:
        p, benign = np.round(p, decimals), np.round(benign, decimals)
    sample = Sample.of(p, y, benign)
    requirements = parse_certifiable(asked, labelled=True, benign=True)
    return choose_threshold(sample, allowed_thresholds(sample, requirements, confidence=0.9), goal)


def rates_at(t: float) -> dict[str, float]:
    z = float(logit(t))
    fpr, recall = norm.sf(z + APART), norm.sf(z)
    return {"fpr": fpr, "flag_rate": fpr, "specificity": 1 - fpr, "recall": recall,
            "precision": 0.3 * recall / (0.3 * recall + 0.7 * fpr) if fpr else 1.0}  # fmt: skip


@pytest.mark.parametrize(
    ("asked", "goal"),
    [
        pytest.param(["fpr<=0.05"], Goal("recall"), marks=pytest.mark.slow),
        # The best of all certified ones: they must hold all at once.
        pytest.param(["fpr<=0.05"], Goal("f1"), marks=pytest.mark.slow),
        pytest.param(["fpr<=0.05"], Goal(None, 1.0, 20.0), marks=pytest.mark.slow),
        (["recall>=0.7"], Goal("specificity")),
        pytest.param(["recall>=0.7"], Goal("accuracy"), marks=pytest.mark.slow),
        pytest.param(["flag_rate<=0.02"], Goal("recall"), marks=pytest.mark.slow),
        pytest.param(["specificity>=0.85", "recall>=0.7"], Goal("recall"), marks=pytest.mark.slow),
        pytest.param(["specificity>=0.85", "recall>=0.7"], Goal("specificity"), marks=pytest.mark.slow),
        pytest.param(["precision>=0.7"], Goal("recall"), marks=pytest.mark.slow),
    ],
    ids=lambda value: str(value),
)
def test_what_is_chosen_keeps_what_was_required(asked: list[str], goal: Goal) -> None:
    rng, broken, found = np.random.default_rng(17), 0, 0
    requirements = parse_certifiable(asked, labelled=True, benign=True)
    for _ in range(DEPLOYMENTS):
        t = chosen(rng, asked, goal)
        if t is not None:
            found += 1
            rates = rates_at(t)
            broken += any(
                rates[part.metric] > part.bound if part.comparison == "<=" else rates[part.metric] < part.bound
                for part in requirements
            )
    assert found > DEPLOYMENTS / 2
    assert broken / DEPLOYMENTS <= most(0.1)


def test_rounded_scores_keep_it_too() -> None:
    rng, broken = np.random.default_rng(18), 0
    for _ in range(DEPLOYMENTS):
        t = chosen(rng, ["fpr<=0.05"], Goal("recall"), decimals=1)
        if t is None:
            continue
        # of rounded probabilities those from the next tenth on are flagged: from half a tenth below it before rounding
        step = np.ceil(round(t * 10, 9)) / 10
        broken += norm.sf(float(logit(step - 0.05)) + APART) > 0.05
    assert broken / DEPLOYMENTS <= most(0.1)


@given(st.floats(0, 1), st.floats(0, 1))
def test_a_short_number_lies_in_its_gap(a: float, b: float) -> None:
    low, high = min(a, b), max(a, b)
    value = short_number(low, high)
    assert low < value <= high or low == high == value


def test_a_short_number_is_as_short_as_the_gap_allows() -> None:
    assert short_number(0.41, 0.43) == 0.42
    assert short_number(0.2, 0.9) == 0.6  # the middle, 0.55, rounded to one decimal
    assert short_number(0.12341, 0.12349) == 0.12345
    assert short_number(0.0, 5e-324) == 5e-324
    assert short_number(-np.inf, 0.0) == 0.0


def test_the_goal_follows_from_what_is_required() -> None:
    def goal(*asked: str, maximise: str | None = None) -> str | None:
        return chosen_goal(
            parse_certifiable(asked, labelled=True, benign=True), maximise, None, None, labelled=True
        ).maximise

    assert goal("fpr<=0.1") == goal("precision>=0.9") == goal("recall>=0.1", "fpr<=0.1") == "recall"
    assert goal("recall>=0.9") == "specificity"
    assert goal("recall>=0.9", maximise="f1") == "f1"


@pytest.mark.slow
def test_the_bound_that_is_printed_holds_whatever_the_goal() -> None:
    """At the errors found it would be broken in 11 % of samples: F1 picks a threshold where they happen to be few."""
    rng, level, broken = np.random.default_rng(3), 0.95, 0
    requirement = parse_certifiable(["fpr<=0.2"], labelled=True, benign=False)
    for _ in range(400):
        negatives, positives = rng.normal(size=299), rng.normal(1, size=100)
        sample = Sample.of(sigmoid(np.append(negatives, positives)), np.repeat([0, 1], [299, 100]), None)
        allowed = allowed_thresholds(sample, requirement, confidence=level)
        threshold = choose_threshold(sample, allowed, Goal("f1"))
        assert threshold is not None
        (certified,) = certifications(sample, allowed, threshold, confidence=level)
        # 48 of 299 rows are allowed: a number of n and the level alone, and so is the bound
        assert certified.bound == pytest.approx(beta.ppf(level, 49, 251), rel=1e-9)
        assert certified.bound <= 0.2
        broken += norm.sf(np.log(threshold / (1 - threshold))) > certified.bound
    assert broken <= binom.ppf(0.999, 400, 1 - level)


def test_at_a_closed_end_the_bound_allows_for_an_atom_there() -> None:
    """5 of 1,000 negatives, of which one stands at the threshold: worse than 4 above it, better than 5."""
    probs = np.append(np.arange(1, 1001) / 1001, 0.9995)
    sample = Sample.of(probs, np.append(np.zeros(1000, dtype=int), 1), None)
    allowed = allowed_thresholds(sample, parse_certifiable(["fpr<=0.01"], labelled=True, benign=False), confidence=0.95)
    threshold = choose_threshold(sample, allowed, Goal("recall"))
    assert threshold is not None
    (certified,) = certifications(sample, allowed, threshold, confidence=0.95)
    assert (certified.errors, certified.errors_allowed) == (5, 5)
    above, all_of_them = (beta.ppf(0.95, k + 1, 1000 - k) for k in (4, 5))
    assert above < certified.bound < 0.01 < all_of_them
    once = 0.8**4  # how often just one of 5 rows holds an atom, at most
    error = (1 - once) * binom.cdf(4, 1000, certified.bound) + once * binom.cdf(5, 1000, certified.bound)
    assert error == pytest.approx(0.05, rel=1e-6)
