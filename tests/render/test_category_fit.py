"""Fitted categories as one table, for the width there is."""

import io

import numpy as np
import pytest
from rich.console import Console

from headeval.category_fit import CategoryFit, CategoryFits
from headeval.category_summaries import LeftOut
from headeval.core.logistic import fit_logistic
from headeval.core.newton import LogisticFit
from headeval.drift import Leakage
from headeval.evaluation import Evaluation, evaluate
from headeval.head_history import RowsSeen
from headeval.render.category_fit import render_category_fits
from headeval.report import HeldOut

STORY: LogisticFit = fit_logistic([[0.0]], [1], l2=1.0, fit_intercept=False)


def evaluation(n: int, positives: int, seed: int, *, flip: bool = False) -> Evaluation:
    rng = np.random.default_rng(seed)
    labels = np.arange(n) < positives
    return evaluate(rng.normal(size=n) + 2 * (labels != flip), labels, kind="logit", n_resamples=200)


def fitted(name: str, n: int = 200, positives: int = 60, seed: int = 0) -> CategoryFit:
    held_out = HeldOut("out-of-fold", evaluation(n, positives, seed))
    return CategoryFit(name, n, positives, 1000 - n, 1.0, STORY, held_out)


def summary(*fits: CategoryFit, left_out: tuple[LeftOut, ...] = (), leakage: Leakage | None = None) -> CategoryFits:
    return CategoryFits({"data": ["train.parquet"]}, "out-of-fold: 5 folds", 0.5, fits, left_out, (), leakage)


def shown(summary: CategoryFits, width: int, *, encoding: str = "utf-8") -> str:
    binary = io.BytesIO()
    file = io.TextIOWrapper(binary, encoding=encoding, write_through=True)
    console = Console(file=file, width=width, color_system=None, markup=False, emoji=False, highlight=False)
    console.print(render_category_fits(summary))
    return binary.getvalue().decode(encoding)


REAL = (
    fitted("sexual", 424, 106, 1),
    fitted("hate_threatening", 336, 19, 2),
    fitted("violence_graphic", 666, 120, 3),
)


@pytest.mark.parametrize("width", [80, 100, 120])
def test_a_page_holds_the_table_without_a_folded_number(width: int) -> None:
    text = shown(summary(*REAL), width)
    lines = text.splitlines()
    assert max(map(len, lines)) <= width
    for fit in REAL:
        (at,) = [place for place, line in enumerate(lines) if line.startswith(f"  {fit.name} ")]
        judged = fit.held_out.evaluation
        assert judged is not None
        for key in ("auc", "ap", "ece_positive_class", "recall", "fpr"):
            metric = getattr(judged, key)
            assert f"{metric.value:.2f}" in lines[at]
            assert f"{metric.interval.lower:.2f}" in lines[at + 1]
            assert f"{metric.interval.upper:.2f}" in lines[at + 1]
        block = " ".join(lines[at : at + 3])
        assert str(fit.known) in block
        assert str(fit.positives) in block
        assert str(fit.unknown) in block
        assert f"{fit.positives / fit.known:.2f}" in block


def test_there_is_one_table_whose_intervals_stand_in_brackets_where_there_is_room() -> None:
    assert "[0." in shown(summary(*REAL), 120)
    assert "[0." not in shown(summary(*REAL), 100)
    assert shown(summary(*REAL), 80).count(" AUC ") == 1
    assert "332 unknown" not in shown(summary(*REAL), 120)
    assert f"{REAL[0].positives} of {REAL[0].known} (0.25)" in shown(summary(*REAL), 80)


def test_the_macro_average_is_over_the_categories_where_a_number_is_defined() -> None:
    one, other = (
        fitted("a", seed=1),
        CategoryFit("b", 50, 0, 10, 1.0, STORY, HeldOut("other rows", evaluation(50, 0, 2))),
    )
    text = shown(summary(fitted("c", seed=3), one, other), 120)
    judged = [fit.held_out.evaluation for fit in (fitted("c", seed=3), one)]
    mean = sum(each.auc.value or 0.0 for each in judged if each is not None) / 2
    (macro,) = [line for line in text.splitlines() if "macro average" in line]
    assert f"{mean:.2f}" in macro.split()
    below = text.splitlines()[text.splitlines().index(macro) + 1]
    assert "of 3 categories" in below
    assert "of 2" in below
    assert "– AUC of b undefined:" in text
    assert "[" not in macro + below  # no interval: the categories share rows


def test_one_category_has_no_average() -> None:
    assert "macro" not in shown(summary(fitted("a")), 100)


def test_what_was_left_out_stands_below_with_its_reason() -> None:
    left_out = (LeftOut("rare", 666, 3, 90, "3 known positives, fewer than --min-positives 10"),)
    text = shown(summary(fitted("a"), left_out=left_out), 100)
    assert "Left out" in text
    assert "3 known positives, fewer than --min-positives 10" in text
    assert "rare" in text


def test_heads_that_were_not_judged_are_a_caution_and_have_their_counts() -> None:
    fits = [CategoryFit(name, 20, 10, 5, 1.0, STORY, HeldOut("not judged", None)) for name in ("a", "b")]
    text = shown(summary(*fits), 80)
    assert "CAUTION" in text
    assert "AUC" not in text
    assert "macro" not in text
    assert "0.50" in text


def test_in_sample_categories_are_a_caution_by_name() -> None:
    seen = RowsSeen(200, 150, 0, 150, 200)
    fit = CategoryFit("a", 200, 60, 5, 1.0, STORY, HeldOut("--eval", evaluation(200, 60, 1), seen=seen))
    assert "CAUTION: IN-SAMPLE for a," in shown(summary(fit, fitted("b")), 100)
    assert "CAUTION" not in shown(summary(fitted("b")), 100)


def test_leakage_is_shown_once_where_there_is_any() -> None:
    assert "Leakage" in shown(summary(fitted("a"), leakage=Leakage(10, 2, 0, 0.99, 8, ())), 100)
    assert "Leakage" not in shown(summary(fitted("a"), leakage=Leakage(10, 0, 0, 0.99, 8, ())), 100)


def test_names_from_outside_and_an_ascii_console_are_safe() -> None:
    text = shown(summary(fitted("x\x1b[31m\u202e"), fitted("[bold]y")), 100)
    assert "\x1b" not in text
    assert "\u202e" not in text
    assert "[bold]y" in text
    assert shown(summary(*REAL), 80, encoding="ascii").isascii()
