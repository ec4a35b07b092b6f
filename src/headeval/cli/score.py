"""`headeval score`: a head and embeddings → the table with logit, probability and decision of each row."""

from pathlib import Path

from headeval.cli import options
from headeval.cli.console import say
from headeval.cli.engine import check_engine, connected, head_blocks_of


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

    Writes a .parquet or .csv file with all columns of DATA but the embeddings.
    """
    from headeval.files.heads import read_head
    from headeval.files.tables import open_tables

    check_engine(engine, scheduler)
    linear_head = read_head(head)
    tables = open_tables(data)
    # Only now what is made of pyarrow: so far, whatever is wrong is told at once.
    from headeval.cli.rows import reading
    from headeval.cli.sources import check_models
    from headeval.files.output import check_table_output
    from headeval.files.scores import DeclaredScores, declared_scores, write_scored
    from headeval.files.vector_blocks import embedding_columns
    from headeval.head_history import SeenCounter

    check_table_output(output, force=force, inputs=(*tables.paths, head))
    check_models(linear_head, tables, embedding_model)
    declared = DeclaredScores("logit", "prob", "flagged", linear_head.decision_classes, linear_head.threshold)
    declared.check_free(tables)
    counter = SeenCounter(linear_head.metrics)
    with connected(engine, scheduler) as cluster:
        rows, flagged = write_scored(
            output,
            head_blocks_of(cluster)(tables, linear_head, embedding=embedding, counter=counter, track=reading(quiet)),
            declared,
            earlier=declared_scores(tables),
            seen=counter.total,
            without=embedding_columns(tables, embedding),
            metadata={**tables.metadata, "embedding_model": linear_head.embedding_model},
            force=force,
        )
    decided = f"{rows:,} rows scored by {head}, {flagged:,} flagged at {linear_head.threshold}"
    say(f"{decided}: written to {output}", quiet=quiet)
