"""All classes before and after a calibration, beside what is said of the flagged one."""

from headeval.multiclass import ClassEvaluation
from headeval.render.evaluation_sections import chance
from headeval.render.numbers import metric_value
from headeval.render.sections import Column, Grid, Section

_SHOWN = ("multiclass_log_loss", "multiclass_brier", "top_label_ece", "classwise_ece", "top1_accuracy", "macro_auc")


def class_calibration_section(before: ClassEvaluation, after: ClassEvaluation) -> Section:
    """Return what a temperature changes for all classes: the loss that it makes small, and not the likeliest class."""
    was = {info.name: metric for info, metric in before.metrics()}
    now = {info.name: (info, metric) for info, metric in after.metrics()}
    rows = tuple(
        (now[name][0].title, metric_value(was[name]), metric_value(now[name][1])) for name in _SHOWN if name in now
    )
    reasons = dict.fromkeys(
        f"{now[name][0].title}: {now[name][1].reason}" for name in _SHOWN if name in now and now[name][1].reason
    )
    columns = (Column("measure"), Column("before", numeric=True), Column("after", numeric=True))
    return Section(
        "All classes before and after, on the rows the calibration was fitted on",
        (Grid("all classes before and after calibration", columns, rows),),
        footnotes=(
            "one temperature for all classes: it makes the log loss of all small, and the likeliest class stays",
            f"top-label ECE of perfectly calibrated classes on such rows by chance: {chance(after.noise)}",
            *reasons,
        ),
    )
