"""Columns of scores and of weights."""

from collections.abc import Sequence

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from headeval.core.class_scores import sums_are_off
from headeval.files.arrow_errors import reading
from headeval.files.numeric import read_numbers
from headeval.files.row_faults import Place
from headeval.printable import listed, quoted

# With larger ones, products of weights and their sums would leave the range of float64.
_HEAVIEST = 1e100


def read_scores(batch: pa.RecordBatch, name: str, place: Place, *, is_prob: bool) -> NDArray[np.float64] | None:
    """Return a column of scores, shape (n,); None, its faults noted, where a row is no number or no probability."""
    scores = read_numbers(batch.column(name), name, place)
    if scores is None or not is_prob:
        return scores
    outside = (scores < 0) | (scores > 1)
    if outside.any():
        label = f"column {quoted(name)} is no probability in [0, 1]"
        percent = scores.min() >= 0 and scores.max() <= 100
        advice = "if it holds per cent, divide by 100; " if percent else ""
        advice += f"if it holds logits, use --logit {quoted(name)}"
        place.fault(outside, label, advice=advice, cells=scores[outside].tolist())
    return scores


def read_class_scores(
    batch: pa.RecordBatch, names: Sequence[str], place: Place, *, is_prob: bool
) -> NDArray[np.float64] | None:
    """Return the scores of all classes, shape (n, C); None, its faults noted, where a row cannot be used.

    The probabilities of a row add up to 1; where all of them are rounded to a few decimals they may miss it by half a
    unit of the last one a class.
    """
    columns = [read_scores(batch, name, place, is_prob=is_prob) for name in names]
    whole = [column for column in columns if column is not None]
    if len(whole) < len(names):
        return None
    scores = np.stack(whole, axis=1)
    odd = sums_are_off(scores) if is_prob else np.zeros(len(scores), dtype=bool)
    if odd.any():
        place.fault(
            odd,
            f"the probabilities in columns {listed(names, longest=4)} do not add up to 1",
            advice="are these independent categories? then name as many label columns",
            cells=[f"{total:.6g}" for total in scores[odd][:8].sum(axis=1)],
        )
    return scores


def read_known_scores(
    batch: pa.RecordBatch, names: Sequence[str], known: Sequence[NDArray[np.bool_]], place: Place, *, is_prob: bool
) -> NDArray[np.float64] | None:
    """Return a column of scores for each category, shape (n, K), NaN in rows where its label is not known.

    Such rows play no part in the category, so that nothing is asked of their score either. None where another row
    cannot be used, which is noted.
    """
    scores, whole = np.full((batch.num_rows, len(names)), np.nan), True
    for index, (name, rows) in enumerate(zip(names, known, strict=True)):
        with reading(place.path):
            part = batch.select([name]).filter(pa.array(rows))
        column = read_scores(part, name, place.of(rows), is_prob=is_prob) if part.num_rows else np.empty(0)
        if column is None:
            whole = False
        else:
            scores[rows, index] = column
    return scores if whole else None


def read_weights(batch: pa.RecordBatch, name: str, place: Place) -> NDArray[np.float64] | None:
    """Return a column of weights, shape (n,); None, its faults noted, where a row is no number."""
    weights = read_numbers(batch.column(name), name, place)
    if weights is None:
        return None
    negative, heavy = weights < 0, weights > _HEAVIEST
    if negative.any():
        place.fault(negative, f"column {quoted(name)} is a negative weight", cells=weights[negative].tolist())
    if heavy.any():
        label = f"column {quoted(name)} is a weight above {_HEAVIEST:g}"
        place.fault(heavy, label, advice="divide all weights by a large number", cells=weights[heavy].tolist())
    return weights
