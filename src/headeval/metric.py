"""A metric: one number with how sure it is, or the reason why there is none."""

import dataclasses
from dataclasses import dataclass, field
from typing import Any, Literal

from headeval.core.intervals import Interval

Scale = Literal["share", "positive", "count", "any"]


@dataclass(frozen=True, slots=True)
class Metric:
    """One number with how sure it is, or the reason why there is none.

    Attributes
    ----------
    value : None where undefined; infinite only for a log loss.
    reason : why it is undefined or infinite, else empty.
    interval : what is shown beside the number; None where none was asked for, or there can be none.
    guarantee : of a rate, the exact interval that a gate on a bound is held against.
    """

    value: float | None
    reason: str = ""
    interval: Interval | None = None
    guarantee: Interval | None = None

    @property
    def gate_interval(self) -> Interval | None:
        """The interval that a gate is held against: the exact one where there is one."""
        return self.guarantee or self.interval

    def with_interval(self, interval: Interval | None) -> "Metric":
        """Return the same number with an interval; what is undefined stays without."""
        return self if self.value is None else dataclasses.replace(self, interval=interval)


@dataclass(frozen=True, slots=True)
class MetricInfo:
    """What a metric is called where people read it.

    Attributes
    ----------
    name : the field of `Evaluation`, the key in JSON, the name in a requirement.
    title : the row's heading in a table.
    group : "ranking", "calibration", "decision" or "data".
    what : one phrase that says what the number means.
    has_interval : whether it can have one.
    scale : "share" lies in [0, 1], "positive" in [0, ∞), "count" is a number of rows, "any" may be any number.
    """

    name: str
    title: str
    group: str
    what: str
    has_interval: bool = True
    scale: Scale = "share"

    @property
    def is_share(self) -> bool:
        """Whether the metric lies between 0 and 1."""
        return self.scale == "share"


def described(title: str, group: str, what: str, *, has_interval: bool = True, scale: Scale = "share") -> Any:
    """Return a dataclass field for a metric, described once for every format."""
    description = {"title": title, "group": group, "what": what, "has_interval": has_interval, "scale": scale}
    return field(metadata=description)
