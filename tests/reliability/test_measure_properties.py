"""Every public measure of core has the properties that its kind has; none is in no registry."""

import importlib
import inspect
import pkgutil
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from numpy.typing import ArrayLike

import headeval.core
from headeval.core import binomial, intervals, stable, two_samples
from headeval.core.bootstrap import replicates
from headeval.core.brier import brier_parts
from headeval.core.calibration import binned_rows, ece, reliability_bins, reliability_table
from headeval.core.calibration_evidence import calibration_noise
from headeval.core.certify import certify_few_flagged, certify_few_missed, certify_precision
from headeval.core.class_calibration import classwise_ece
from headeval.core.class_counts import confusion_matrix
from headeval.core.class_scaling import closest_threshold, fit_class_temperature
from headeval.core.cox import cox_calibration
from headeval.core.curve_bands import pr_band, roc_band
from headeval.core.delong import auc_difference, auc_interval, delong_variance, weighted_auc
from headeval.core.intervals import effective_size
from headeval.core.near_duplicates import embedding_pair, mean_shift, near_duplicates
from headeval.core.operating_points import best_f1, partial_auc, recall_at_fpr, recalls_at_fprs
from headeval.core.paired import mcnemar_exact
from headeval.core.proper_scores import brier_score, log_loss, log_loss_from_logits
from headeval.core.ranking import average_precision, pr_curve, roc_auc, roc_curve
from headeval.core.scaling import (
    fit_platt_scaling,
    fit_temperature,
    fit_temperature_scaling,
    usable_temperature,
)
from headeval.core.thresholds import ConfusionCounts, confusion_counts, decision_changes
from headeval.core.vectors import unit_vectors
from headeval.evaluation import METRICS, evaluate
from reliability.property_checks import MEASURE_CHECKS, Measure, Rows

ROUNDING = 1e-13  # of sums that are added in another order
FITTED = 1e-9  # of what is found by steps that end at a tolerance


def rows(n: int = 96, seed: int = 0) -> Rows:
    """Scores that are multiples of 1/64 and tie often, on no edge of a bin; logits alike, and three classes."""
    rng = np.random.default_rng(seed)
    y = (rng.random(n) < 0.45).astype(np.int64)
    y[:6] = [1, 0, 1, 0, 1, 0]
    sixty_fourths = np.delete(np.arange(1, 64), 31)  # not 1/2

    def drawn(pull: float) -> Any:
        place = np.clip(rng.normal(31 + pull * (y - 0.5), 13).astype(int), 0, len(sixty_fourths) - 1)
        return sixty_fourths[place] / 64

    k = rng.integers(0, 3, n)
    k[:6] = [0, 1, 2, 0, 1, 2]
    eighths = rng.multinomial(8, [0.4, 0.3, 0.3], size=n) / 8
    own = np.eye(3)[k]
    return {
        "p": drawn(18),
        "old": drawn(8),
        "z": np.round(rng.normal(1.5 * (2 * y - 1), 2.5) * 16) / 16,
        "old_z": np.round(rng.normal(y - 0.5, 2) * 16) / 16,
        "y": y,
        "k": k,
        "taken": np.where(rng.random(n) < 0.6, k, rng.integers(0, 3, n)),
        "P": (eighths + own) / 2,
        "Z": np.round(rng.normal(1.5 * own, 1.0) * 16) / 16,
        "E": np.round(rng.normal(size=(n, 5)) * 16) / 16 + 1 / 64,
        "other_E": np.round(rng.normal(size=(n, 5)) * 16) / 16 + 1 / 64,
    }


def w(given: Rows) -> Any:
    return given.get("w")


def rng() -> np.random.Generator:
    return np.random.default_rng(7)


def same(result: Any) -> Any:
    return result


def rates(c: ConfusionCounts) -> tuple[Any, ...]:
    return (c.accuracy, c.recall, c.specificity, c.precision, c.fpr, c.f1, c.f_beta(2.0), c.f_beta(0.5))


CONVENTIONS: tuple[Any, ...] = ("top-label", "top-label-left", "positive-class")
BINNINGS: tuple[Any, ...] = ("equal-width", "equal-mass")
share: Callable[..., Measure] = partial(Measure, low=0.0, high=1.0)


def table_of(given: Rows, convention: Any, binning: Any) -> Any:
    return reliability_table(given["p"], given["y"], convention=convention, binning=binning, weights=w(given))


def errors_of(given: Rows, convention: Any, binning: Any) -> tuple[float, float]:
    table = table_of(given, convention, binning)
    return table.ece, table.mce


RANKING = {
    "roc_auc": share(lambda r: roc_auc(r["p"], r["y"]), "ranking.roc_auc", doubled=0.0, mirror=same, ranks=True),
    "roc_curve": share(lambda r: roc_curve(r["p"], r["y"])[:2], "ranking.roc_curve", doubled=0.0, ranks=True),
    "pr_curve": share(
        lambda r: (pr_curve(r["p"], r["y"]).precision, pr_curve(r["p"], r["y"]).recall),
        "ranking.pr_curve",
        doubled=0.0,
        ranks=True,
    ),
    "average_precision": share(
        lambda r: average_precision(r["p"], r["y"]), "ranking.average_precision", doubled=ROUNDING, ranks=True
    ),
    "weighted_auc": share(
        lambda r: weighted_auc(r["p"], r["y"], w(r)),
        "delong.weighted_auc",
        doubled=0.0,
        weights=ROUNDING,
        mirror=same,
        ranks=True,
    ),
    "partial_auc": share(
        lambda r: partial_auc(r["p"], r["y"], max_fpr=0.2, weights=w(r)),
        "operating_points.partial_auc",
        doubled=ROUNDING,
        weights=ROUNDING,
        ranks=True,
    ),
    "recall_at_fpr": share(
        lambda r: recall_at_fpr(r["p"], r["y"], max_fpr=0.137, weights=w(r)),
        "operating_points.recall_at_fpr",
        doubled=0.0,
        weights=ROUNDING,
        ranks=True,
    ),
    "recalls_at_fprs": share(
        lambda r: recalls_at_fprs(r["p"], r["y"], max_fprs=[0.0, 0.137, 1.0], weights=w(r)),
        "operating_points.recalls_at_fprs",
        doubled=0.0,
        weights=ROUNDING,
        ranks=True,
    ),
    "best_f1": share(
        lambda r: best_f1(r["p"], r["y"], weights=w(r)).f1,
        "operating_points.best_f1",
        doubled=ROUNDING,
        weights=ROUNDING,
        ranks=True,
    ),
    "auc_interval": share(
        lambda r: (lambda i: (i.lower, i.upper))(auc_interval(r["p"], r["y"], weights=w(r))),
        "delong.auc_interval",
        weights=ROUNDING,
        ranks=True,
    ),
    "delong_variance": share(
        lambda r: delong_variance(r["p"], r["y"], weights=w(r)),
        "delong.delong_variance",
        order=ROUNDING,
        weights=ROUNDING,
        mirror=same,
        ranks=True,
    ),
    "auc_difference": Measure(
        lambda r: auc_difference(r["p"], r["old"], r["y"], weights=w(r)),
        "delong.auc_difference",
        weights=1e-11,
        mirror=same,
        ranks=True,
        low=-1.0,
        high=1.0,
    ),
    "roc_band": share(
        lambda r: roc_band(
            r["p"], r["y"], grid_fpr=[0.0, 0.3, 1.0], n_resamples=25, rng=rng(), confidence=0.9, weights=w(r)
        ),
        "curve_bands.roc_band",
        ranks=True,
    ),
    "pr_band": share(
        lambda r: pr_band(
            r["p"], r["y"], grid_recall=[0.1, 0.5, 1.0], n_resamples=25, rng=rng(), confidence=0.9, weights=w(r)
        ),
        "curve_bands.pr_band",
        ranks=True,
    ),
}
CALIBRATION = {
    "ece": share(lambda r: ece(r["p"], r["y"]), "calibration.ece", doubled=ROUNDING, mirror=same),
    "ece of classes": share(lambda r: ece(r["P"], r["k"]), "calibration.ece", doubled=ROUNDING),
    "reliability_bins": Measure(
        lambda r: reliability_bins(r["p"], r["y"])[1:], "calibration.reliability_bins", doubled=ROUNDING
    ),
    "brier_parts": Measure(
        lambda r: brier_parts(r["p"], r["y"], table_of(r, "positive-class", "equal-width"), weights=w(r)),
        "brier.brier_parts",
        doubled=ROUNDING,
        weights=ROUNDING,
        mirror=same,
    ),
    "binned_rows": Measure(
        lambda r: binned_rows(r["p"], r["y"], table_of(r, "top-label", "equal-width")),
        "calibration.binned_rows",
        order=None,
    ),
    "calibration_noise": share(
        lambda r: calibration_noise(
            r["p"], r["y"], table_of(r, "top-label", "equal-width"), rng=rng(), n_simulations=50, weights=w(r)
        ),
        "calibration_evidence.calibration_noise",
        order=None,
    ),
    "brier_score": share(
        lambda r: brier_score(r["p"], r["y"]),
        "proper_scores.brier_score",
        order=ROUNDING,
        doubled=ROUNDING,
        mirror=same,
    ),
    "log_loss": Measure(
        lambda r: log_loss(r["p"], r["y"]), "proper_scores.log_loss", ROUNDING, doubled=ROUNDING, mirror=same, low=0
    ),
    "log_loss_from_logits": Measure(
        lambda r: log_loss_from_logits(r["z"], r["y"]),
        "proper_scores.log_loss_from_logits",
        order=ROUNDING,
        doubled=ROUNDING,
        mirror=same,
        low=0,
    ),
    "cox_calibration": Measure(
        lambda r: cox_calibration(r["z"], r["y"], weights=w(r)), "cox.cox_calibration", order=FITTED
    ),
    "classwise_ece": share(
        lambda r: classwise_ece(r["P"], r["k"], weights=w(r)),
        "class_calibration.classwise_ece",
        doubled=ROUNDING,
        weights=ROUNDING,
    ),
} | {
    f"{convention} {binning}": share(
        partial(errors_of, convention=convention, binning=binning),
        "calibration.reliability_table",
        # Bins of equally many rows are of other rows where there are twice as many, or some weigh nothing.
        doubled=ROUNDING if binning == "equal-width" else None,
        weights=ROUNDING,
        absent=binning == "equal-width",
        mirror=same if binning == "equal-width" else None,
    )
    for convention in CONVENTIONS
    for binning in BINNINGS
}
DECISIONS = {
    "confusion_counts": share(
        lambda r: rates(confusion_counts(r["p"], r["y"], threshold=0.5)),
        "thresholds.confusion_counts",
        doubled=0.0,
    ),
    "recall and specificity": share(
        lambda r: rates(confusion_counts(r["p"], r["y"], threshold=0.5))[:3],
        "thresholds.confusion_counts",
        doubled=0.0,
        mirror=lambda said: (said[0], said[2], said[1]),
    ),
    "decision_changes": Measure(
        lambda r: decision_changes(r["old"], r["p"], threshold=0.5, threshold_after=0.5), "thresholds.decision_changes"
    ),
    "effective_size": Measure(
        lambda r: effective_size(r["y"], weights=w(r)), "intervals.effective_size", ROUNDING, weights=ROUNDING, low=1
    ),
    "confusion_matrix": Measure(
        lambda r: confusion_matrix(r["k"], r["taken"], n_classes=3), "class_counts.confusion_matrix"
    ),
    "certify_few_flagged": Measure(
        lambda r: certify_few_flagged(r["p"], 0.2, confidence=0.9), "certify.certify_few_flagged"
    ),
    "certify_few_missed": Measure(
        lambda r: certify_few_missed(r["p"], 0.2, confidence=0.9), "certify.certify_few_missed"
    ),
    "certify_precision": Measure(
        lambda r: certify_precision(r["p"], r["y"], 0.5, confidence=0.9), "certify.certify_precision"
    ),
    "closest_threshold": share(lambda r: closest_threshold(0.5, r["old"], r["p"]), "class_scaling.closest_threshold"),
    "replicates": Measure(
        lambda r: replicates(lambda weights: weights[:, :3], r["y"], n_resamples=9, rng=rng(), weights=w(r)),
        "bootstrap.replicates",
        order=None,
        weights=None,
    ),
}
SCALINGS = {
    "fit_temperature": Measure(
        lambda r: fit_temperature(r["Z"], r["k"]), "scaling.fit_temperature", FITTED, doubled=FITTED, low=0
    ),
    "usable_temperature": Measure(
        lambda r: usable_temperature(r["Z"], r["k"]), "scaling.usable_temperature", FITTED, doubled=FITTED, low=0
    ),
    "fit_temperature_scaling": Measure(
        lambda r: (lambda s: (s.slope, s.log_loss_before, s.log_loss_after))(fit_temperature_scaling(r["z"], r["y"])),
        "scaling.fit_temperature_scaling",
        doubled=FITTED,
        mirror=same,
        low=0,
    ),
    "fit_platt_scaling": Measure(
        lambda r: (lambda s: (s.slope, s.intercept))(fit_platt_scaling(r["z"], r["y"])),
        "scaling.fit_platt_scaling",
        doubled=FITTED,
    ),
    "fit_class_temperature": Measure(
        lambda r: (lambda s: (s.slope, s.log_loss_before, s.log_loss_after))(fit_class_temperature(r["Z"], r["k"])),
        "class_scaling.fit_class_temperature",
        doubled=FITTED,
        low=0,
    ),
}
SAMPLES = {
    "ks_two_sample": Measure(
        lambda r: two_samples.ks_two_sample(r["p"], r["old"]).statistic,
        "two_samples.ks_two_sample",
        doubled=ROUNDING,
        ranks=True,
        low=0,
        high=1,
    ),
    "population_stability_index": Measure(
        lambda r: getattr(two_samples.population_stability_index(r["p"], r["old"]), "psi", None),
        "two_samples.population_stability_index",
        low=0,
    ),
    "near_duplicates": Measure(
        lambda r: near_duplicates(r["E"], r["other_E"], rng=rng()), "near_duplicates.near_duplicates", order=None
    ),
    "mean_shift": Measure(
        lambda r: mean_shift(r["E"], r["other_E"], rng=rng(), n_permutations=19),
        "near_duplicates.mean_shift",
        order=None,
    ),
    "embedding_pair": Measure(
        lambda r: [part.astype("f8") for part in embedding_pair(r["E"], r["other_E"])],
        "near_duplicates.embedding_pair",
        order=None,
    ),
    "unit_vectors": Measure(lambda r: unit_vectors(r["E"]), "vectors.unit_vectors", order=None, low=-1, high=1),
}
EVALUATIONS = {
    f"evaluate {kind}": Measure(
        lambda r, kind=kind: [  # type: ignore[misc]  # the default is of no declared type
            getattr(evaluate(r["p" if kind == "prob" else "z"], r["y"], kind=kind, confidence=None), name).value
            for name in METRICS
        ],
        "evaluation.evaluate",
    )
    for kind in ("prob", "logit")
}
MEASURES = RANKING | CALIBRATION | DECISIONS | SCALINGS | SAMPLES

# Public functions of core that take arrays and are no measures of rows; what they promise is tested at these places.
ELSEWHERE = {
    "checks.*": "core/test_checks.py",
    "stable.*": "elementwise, below",
    "bins.unit_weights": "core/test_calibration.py",
    "bootstrap.bootstrap_interval": "core/test_bootstrap.py: values on resamples, not rows",
    "bootstrap.ece_interval": "core/test_bootstrap.py: values on resamples, not rows",
    "class_scores.class_log_odds": "core/test_class_scores.py",
    "logistic.*": "test_head_properties.py",
    "multinomial.multinomial_fit": "test_head_properties.py",
}


@pytest.mark.parametrize("name", MEASURES)
def test_a_measure_has_the_properties_of_its_kind(name: str, tmp_path: Path) -> None:
    for check in MEASURE_CHECKS.values():
        check(name, MEASURES[name], rows(), tmp_path)


@pytest.mark.slow
@pytest.mark.parametrize("name", EVALUATIONS)
def test_an_evaluation_has_the_properties_of_its_measures(name: str, tmp_path: Path) -> None:
    for check in MEASURE_CHECKS.values():
        check(name, EVALUATIONS[name], rows(), tmp_path)


def public_doors() -> list[str]:
    """Functions of core that anybody's arrays enter by: those whose arguments are array-like."""
    found = []
    for module in pkgutil.iter_modules(headeval.core.__path__):
        for name, function in vars(importlib.import_module(f"headeval.core.{module.name}")).items():
            own = inspect.isfunction(function) and function.__module__ == f"headeval.core.{module.name}"
            if own and not name.startswith("_"):
                kinds = [argument.annotation for argument in inspect.signature(function).parameters.values()]
                if any(kind in (ArrayLike, ArrayLike | None) for kind in kinds):
                    found.append(f"{module.name}.{name}")
    return found


def test_no_public_measure_of_core_is_in_no_registry() -> None:
    doors = public_doors()
    assert len(doors) > 40
    covered = {measure.covers for measure in MEASURES.values()}
    missing = [
        door for door in doors if door not in covered | ELSEWHERE.keys() and f"{door.split('.')[0]}.*" not in ELSEWHERE
    ]
    assert missing == [], "add it to a registry of this file, with the properties it has"
    assert covered <= set(doors)


# --- numbers of rows in, no rows


COUNTED: dict[str, Callable[..., Any]] = {
    "wilson": intervals.wilson,
    "clopper_pearson": intervals.clopper_pearson,
}


@pytest.mark.parametrize("name", COUNTED)
def test_an_interval_of_a_rate_mirrors_grows_with_the_rate_and_shrinks_with_the_rows(name: str) -> None:
    interval = COUNTED[name]
    for n in (1, 7, 40):
        before = None
        for k in range(n + 1):
            found, other = interval(k, n), interval(n - k, n)
            np.testing.assert_allclose([found.lower, found.upper], [1 - other.upper, 1 - other.lower], atol=1e-12)
            assert 0 <= found.lower <= k / n <= found.upper <= 1
            assert before is None or (found.lower >= before.lower and found.upper >= before.upper)
            wider, narrower = interval(k, n, confidence=0.99), interval(4 * k, 4 * n)
            assert wider.lower <= found.lower <= found.upper <= wider.upper
            assert narrower.upper - narrower.lower < found.upper - found.lower
            assert interval(np.int64(k), np.int32(n)) == interval(float(k), float(n)) == found
            before = found


def test_tests_of_counts_mirror() -> None:
    for one, other in ((0, 0), (3, 1), (12, 5)):
        assert mcnemar_exact(one, other) == mcnemar_exact(other, one)
    here, there = (two_samples.proportion_difference(*counts) for counts in ((3, 10, 7, 12), (7, 12, 3, 10)))
    assert here.value == -there.value
    assert here.interval is not None
    assert there.interval is not None
    bounds = [here.interval.lower, here.interval.upper]
    np.testing.assert_allclose(bounds, [-there.interval.upper, -there.interval.lower], atol=1e-12)
    for k in range(6):
        np.testing.assert_allclose(
            binomial.binomial_cdf(k, 6, 0.3), 1 - binomial.binomial_cdf(5 - k, 6, 0.7), atol=1e-12
        )


# --- number by number


@pytest.mark.parametrize("function", [stable.sigmoid, stable.logit, stable.softplus])
def test_an_elementwise_function_takes_any_array_and_each_number_by_itself(function: Callable[[Any], Any]) -> None:
    p = rows()["p"].reshape(8, 12)
    expected = function(p)
    assert expected.shape == p.shape
    for same_numbers in (p.astype("f4"), p.astype("f2"), p.astype(">f8"), np.asfortranarray(p), p.tolist()):
        assert function(same_numbers).tobytes() == expected.tobytes()
    assert [float(function(number)) for number in p.flat] == expected.ravel().tolist()
    assert (np.diff(function(np.unique(p))) > 0).all()  # and rises


@pytest.mark.parametrize("function", [stable.logsumexp, stable.softmax])
def test_a_function_of_rows_takes_each_row_by_itself(function: Callable[[Any], Any]) -> None:
    z = rows()["Z"]
    expected = function(z)
    for same_numbers in (z.astype("f4"), z.astype(">f8"), np.asfortranarray(z), z.tolist()):
        np.testing.assert_allclose(function(same_numbers), expected, rtol=1e-15)
    assert np.array([function(row) for row in z]).tobytes() == expected.tobytes()
