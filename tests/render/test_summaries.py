"""A scaling in words: what it corrects only where the rows can tell."""

import math

import pytest

from headeval.core.intervals import Interval
from headeval.core.scaling import Scaling
from headeval.render.summaries import scaling_story


def between(lower: float, upper: float) -> Interval:
    return Interval(lower, upper, 0.95, "Wald")


RIGHT = ": the logits fit as they are, as far as these rows tell"


@pytest.mark.parametrize(
    ("scaling", "story"),
    [
        (Scaling("temperature", 0.5, 0.0, 0.4, 0.3, between(0.4, 0.625), None, False),
         "temperature T = 2.0000 [1.6000, 2.5000]: the logits were overconfident"),
        (Scaling("temperature", 2.0, 0.0, 0.4, 0.3, between(1.25, 2.5), None, False),
         "temperature T = 0.5000 [0.4000, 0.8000]: the logits were underconfident"),
        (Scaling("temperature", 1.25, 0.0, 0.4, 0.3, between(0.5, 2.0), None, True),
         "temperature T = 0.8000 [0.5000, 2.0000]" + RIGHT),
        (Scaling("temperature", 0.5, 0.0, 0.4, 0.3, between(-0.5, 1.6), None, True),
         "temperature T = 2.0000 [0.6250, ∞]" + RIGHT),
        (Scaling("temperature", 1.00001, 0.0, 0.4, 0.4, between(0.8, 1.25), None, True),
         "temperature T = 1.0000 [0.8000, 1.2500]: there is nothing to correct"),
        (Scaling("temperature", 0.5, 0.0, 0.4, 0.3), "temperature T = 2.0000: the logits were overconfident"),
        (Scaling("platt", 0.5, 0.25, 0.4, 0.3, between(0.25, 0.75), between(0.0, 0.5), False),
         "platt: slope 0.5000 [0.2500, 0.7500], intercept 0.2500 [0.0000, 0.5000]: the logits were overconfident"),
        (Scaling("platt", 1.5, 0.25, 0.4, 0.3, between(1.25, 1.75), between(0.0, 0.5), False),
         "platt: slope 1.5000 [1.2500, 1.7500], intercept 0.2500 [0.0000, 0.5000]: the logits were underconfident"),
        (Scaling("platt", 1.25, -0.25, 0.4, 0.3, between(0.5, 2.0), between(-1.0, 0.5), True),
         "platt: slope 1.2500 [0.5000, 2.0000], intercept -0.2500 [-1.0000, 0.5000]" + RIGHT),
        (Scaling("platt", 1.25, -0.25, 0.4, 0.3, between(0.5, 2.0), between(-1.0, -0.125), False),
         "platt: slope 1.2500 [0.5000, 2.0000], intercept -0.2500 [-1.0000, -0.1250]"),
        (Scaling("platt", 1.25, -0.25, 0.4, 0.3), "platt: slope 1.2500, intercept -0.2500"),
    ],
)  # fmt: skip
def test_a_scaling_is_told_with_its_intervals_and_corrects_nothing_that_chance_explains(
    scaling: Scaling, story: str
) -> None:
    assert scaling_story(scaling) == story


def test_a_temperature_has_an_end_only_where_the_slope_stays_above_0() -> None:
    bounds = Scaling("temperature", 0.5, 0.0, 0.4, 0.3, between(0.0, 1.0)).temperature_interval
    assert bounds is not None
    assert bounds.upper == math.inf
