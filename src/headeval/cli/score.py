"""`headeval score`: a head and embeddings → the table with logit, probability and decision of each row."""

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from headeval.cli import options
from headeval.cli.console import say
from headeval.cli.engine import check_engine, connected, head_blocks_of

if TYPE_CHECKING:
    from headeval.head import LinearHead

UNSPECIFIED = "unspecified"


def score(
    data: options.Data,
    output: options.Output,
    head: options.HeadWithDefault = Path("linear-head.json"),
    embedding: options.Embedding = "embedding",
    embedding_model: options.EmbeddingModel = None,
    engine: options.Engine = "local",
    scheduler: options.Scheduler = None,
    force: options.Force = False,
    quiet: options.Quiet = False,
    _version: options.Version = False,
) -> None:
    """Add logit, prob and flagged to each row of DATA.

    Writes a .parquet or .csv file with all columns of DATA but the embeddings. A folder of heads adds its columns for
    each category, CATEGORY_logit and so on; a head of more than two classes adds the logit and prob of each, and the
    class predicted.
    """
    from headeval.files.head_folder import is_head_folder
    from headeval.files.heads import read_head
    from headeval.files.tables import open_tables

    check_engine(engine, scheduler)
    by_category = is_head_folder(head)
    heads = _folder(head) if by_category else {"": read_head(head)}
    tables = open_tables(data)
    # Only now what is made of pyarrow: so far, whatever is wrong is told at once.
    from headeval.cli.row_notes import ZeroRows, zeros_note
    from headeval.cli.rows import reading
    from headeval.cli.sources import check_models
    from headeval.files.output import check_table_output
    from headeval.files.scores import DeclaredScores, check_columns_free, declared_scores, write_scored
    from headeval.files.vector_blocks import embedding_columns
    from headeval.head_history import SeenCounter
    from headeval.joint_heads import JointHeads

    check_table_output(output, force=force, inputs=(*tables.paths, head))
    for one in heads.values():
        check_models(one, tables, embedding_model)
    declared = [DeclaredScores.of_head(one, category) for category, one in heads.items()]
    check_columns_free(declared, tables)
    counters = {category: SeenCounter(one.metrics) for category, one in heads.items()}
    zeros = ZeroRows(next(iter(heads.values())).dim)
    joint, model = JointHeads(list(heads.values())), _embedding_model(heads)
    with connected(engine, scheduler) as cluster:
        blocks_of, track = head_blocks_of(cluster), reading(quiet)
        rows, flagged = write_scored(
            output,
            blocks_of(tables, joint, embedding=embedding, counters=[*counters.values(), zeros], track=track),
            declared,
            earlier=declared_scores(tables),
            seen=lambda: {category: counter.total() for category, counter in counters.items()},
            without=embedding_columns(tables, embedding),
            metadata={**tables.metadata, "embedding_model": model},
            force=force,
        )
    decided = _decided(heads, flagged)
    by = f"the heads of {head}" if by_category else str(head)
    say(f"{rows:,} rows scored by {by}, {decided}: written to {output}", quiet=quiet)
    for note in zeros_note(zeros.n):
        say(note, quiet=quiet)


def _folder(folder: Path) -> "dict[str, LinearHead]":
    from headeval.files.head_folder import read_heads

    return read_heads(folder)


def _embedding_model(heads: "Mapping[str, LinearHead]") -> str:
    """Return the embedding model of heads that are made for the same one, where any of them names it."""
    names = [head.embedding_model for head in heads.values()]
    return next((name for name in names if name != UNSPECIFIED), UNSPECIFIED)


def _decided(heads: "Mapping[str, LinearHead]", flagged: Sequence[int]) -> str:
    """Return how many rows were flagged, by whom, and at which threshold."""
    thresholds = [head.threshold for head in heads.values()]
    if len(heads) == 1 and "" in heads:
        return f"{flagged[0]:,} flagged at {thresholds[0]}"
    if len(set(thresholds)) == 1:
        each = ", ".join(f"{category} {count:,}" for category, count in zip(heads, flagged, strict=True))
        return f"flagged at {thresholds[0]}: {each}"
    parts = zip(heads, flagged, thresholds, strict=True)
    return "flagged: " + ", ".join(f"{category} {count:,} (at {threshold:.4g})" for category, count, threshold in parts)
