"""`headeval score`: a head and embeddings → the table with logit, probability and decision of each row."""

from pathlib import Path

from headeval.cli import options
from headeval.cli.console import say


def score(
    data: options.Data,
    output: options.Output,
    head: options.HeadWithDefault = Path("linear-head.json"),
    embedding: options.Embedding = "embedding",
    embedding_model: options.EmbeddingModel = None,
    force: options.Force = False,
    quiet: options.Quiet = False,
    _version: options.Version = False,
) -> None:
    """Add logit, prob and flagged to each row of DATA.

    Writes a .parquet or .csv file with all columns of DATA but the embeddings.
    """
    from headeval.cli.rows import check_models, reading
    from headeval.files.atomic import check_output
    from headeval.files.examples import embedding_blocks, embedding_columns
    from headeval.files.heads import read_head
    from headeval.files.output import table_writer
    from headeval.files.scores import DeclaredScores, refuse_own_input
    from headeval.files.tables import open_tables

    linear_head = read_head(head)
    tables = open_tables(data)
    refuse_own_input(output, tables)
    check_output(output, force=force)
    check_models(linear_head, tables, embedding_model)
    classes = (linear_head.classes[0], linear_head.classes[-1])
    scores = DeclaredScores("logit", "prob", "flagged", classes, linear_head.threshold)
    scores.check_free(tables)
    vectors = list(embedding_columns(tables, embedding))
    metadata = {**tables.metadata, **scores.metadata(), "embedding_model": linear_head.embedding_model}
    rows = flagged = 0
    blocks = embedding_blocks(tables, embedding=embedding, dim=linear_head.dim, track=reading(quiet))
    with table_writer(output, force=force, metadata=metadata) as table:
        for block, embeddings in blocks:
            logits = linear_head.logits(embeddings)
            table.write(scores.add_to(block.batch.drop_columns(vectors), logits))
            rows += len(logits)
            flagged += int(scores.flags(logits).sum())
    decided = f"{rows:,} rows scored by {head}, {flagged:,} flagged at {linear_head.threshold}"
    say(f"{decided}: written to {output}", quiet=quiet)
