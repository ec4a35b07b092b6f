"""headeval: fit, calibrate and judge the linear head of a safety classifier.

The names below are loaded on first use, so that `import headeval` (and `headeval --help`) costs no numpy.
"""

from headeval._version import __version__

# Not from typing, whose import would be most of the time in which Python still answers Ctrl-C by a traceback.
TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

    from headeval.core.calibration import ece, reliability_bins
    from headeval.core.logistic import logistic_predict_proba, logistic_regression_fit
    from headeval.core.ranking import roc_auc, roc_curve
    from headeval.core.scaling import fit_temperature
    from headeval.evaluation import Evaluation, evaluate
    from headeval.files.heads import read_head, write_head
    from headeval.head import LinearHead

__all__ = [
    "Evaluation",
    "LinearHead",
    "__version__",
    "ece",
    "evaluate",
    "fit_temperature",
    "logistic_predict_proba",
    "logistic_regression_fit",
    "read_head",
    "reliability_bins",
    "roc_auc",
    "roc_curve",
    "write_head",
]

_ROOMS = {
    "Evaluation": "evaluation",
    "LinearHead": "head",
    "ece": "core.calibration",
    "evaluate": "evaluation",
    "fit_temperature": "core.scaling",
    "logistic_predict_proba": "core.logistic",
    "logistic_regression_fit": "core.logistic",
    "read_head": "files.heads",
    "reliability_bins": "core.calibration",
    "roc_auc": "core.ranking",
    "roc_curve": "core.ranking",
    "write_head": "files.heads",
}


def __getattr__(name: str) -> "Any":
    if name not in _ROOMS:
        raise AttributeError(f"module 'headeval' has no attribute {name!r}")
    import importlib

    return getattr(importlib.import_module(f"headeval.{_ROOMS[name]}"), name)


def __dir__() -> list[str]:
    return __all__
