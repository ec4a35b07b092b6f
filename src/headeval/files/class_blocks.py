"""A score file of many classes, block after block, with what a calibration makes of them."""

from collections.abc import Iterator, Sequence

import numpy as np

from headeval.core.class_scores import log_odds
from headeval.core.scaling import Scaling
from headeval.files.collecting import place_of
from headeval.files.examples import Track, untracked
from headeval.files.number_columns import read_class_scores
from headeval.files.row_faults import RowFaults
from headeval.files.scored_blocks import ScoredBlock
from headeval.files.tables import Tables
from headeval.printable import listed
from headeval.scored_rows import ScoreKind


def class_column_blocks(
    tables: Tables, columns: Sequence[str], kind: ScoreKind, scaling: Scaling, *, track: Track = untracked
) -> Iterator[ScoredBlock]:
    """Return block after block, with all its columns, and the calibrated logits of all classes.

    Parameters
    ----------
    columns : of the classes, in their order, the flagged one last; more than two.
    kind : of these columns; the logits of probabilities are their logs.
    scaling : a temperature.

    Raises
    ------
    DataError : for a missing column, and for rows whose scores cannot be used, or are a probability of exactly 0.
    """
    faults = RowFaults()
    for block in track(tables.blocks(tables.column_names), tables.n_rows):
        faults.raise_if_any(unless_in=block.path)
        place = place_of(block, faults)
        scores = read_class_scores(block.batch, columns, place, is_prob=kind == "prob")
        if scores is None:
            continue
        never = (scores == 0).any(axis=1) if kind == "prob" else np.zeros(len(scores), dtype=np.bool_)
        if never.any():
            place.fault(
                never,
                f"columns {listed(columns, longest=4)} hold a probability of exactly 0, whose logit is not finite",
                advice="calibrate logits (--logit COLS), or take these rows out",
            )
        if not faults:
            z = scaling.apply(scores if kind == "logit" else np.log(scores))
            yield ScoredBlock(block, log_odds(z), z)
    faults.raise_if_any()
