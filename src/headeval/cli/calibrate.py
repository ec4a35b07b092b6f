"""`headeval calibrate`: labelled rows → temperature or Platt scaling, folded into the head or added to the scores."""

from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

from headeval.cli import options
from headeval.cli.console import show
from headeval.errors import UsageError
from headeval.printable import quoted

if TYPE_CHECKING:
    from headeval.cli.calibrating import Calibrated
    from headeval.cli.rows import Columns
    from headeval.cli.sources import Source
    from headeval.cli.subject import Subject
    from headeval.files.scores import DeclaredScores
    from headeval.files.tables import Tables


def calibrate(
    data: options.Data,
    head: options.Head = None,
    logit: options.Logit = None,
    prob: options.Prob = None,
    method: options.Method = "temperature",
    label: options.Label = "label",
    positive: options.Positive = None,
    classes: options.Classes = None,
    embedding: options.Embedding = "embedding",
    embedding_model: options.EmbeddingModel = None,
    drop_unlabelled: options.DropUnlabelled = False,
    min_positives: options.MinPositives = options.MIN_POSITIVES,
    allow_missing: options.AllowMissing = False,
    output: options.CalibratedOutput = None,
    force: options.Force = False,
    quiet: options.Quiet = False,
    _version: options.Version = False,
) -> None:
    """Calibrate a head or scores on labelled rows.

    Needs one of --head, --logit and --prob, unless DATA was written by `headeval score`. Given a head, writes a head
    with the scaling folded in; given a folder of heads, one a category, a folder of such; given a column of scores,
    writes DATA with calibrated columns (of several categories one after the other). The threshold moves along, so that
    the decisions stay. The numbers shown are in-sample for the scaling: judge it on other rows with `headeval report`.
    """
    from headeval.files.tables import open_tables

    tables = open_tables(data)
    # Only now what is made of numpy and pyarrow: so far, whatever is wrong is told at once.
    from headeval.cli.rows import Columns
    from headeval.files.head_folder import is_head_folder

    columns = Columns(label, positive, embedding, embedding_model, drop_unlabelled)
    if head is not None and logit is None and prob is None and is_head_folder(head):
        from headeval.cli.calibrate_categories import CategoryOptions, calibrate_categories

        if classes is not None:
            raise UsageError("--classes names the columns of --logit or --prob: heads have their own classes")
        wanted = CategoryOptions(method, min_positives, allow_missing, output, force, quiet)
        calibrate_categories(tables, head, columns, wanted, data)
        return
    from headeval.cli.sources import choose_source

    if head is None and logit is None and prob is None:
        _refuse_categories(tables)
    _refuse_several_labels(tables, label, {"--logit": logit, "--prob": prob})
    source = choose_source(
        tables,
        head=head,
        logit=logit,
        prob=prob,
        classes=options.class_names(classes, positive),
        positive=positive,
    )
    options.refuse_for_one("a folder of heads, --head FOLDER", min_positives=min_positives, allow_missing=allow_missing)
    _check_method(source, method)
    target = _target(output, head, tables, force=force)
    _calibrate_one(tables, source, columns, method, data, target, force=force, quiet=quiet)


def _calibrate_one(
    tables: "Tables",
    source: "Source",
    columns: "Columns",
    method: str,
    data: list[str],
    target: Path,
    *,
    force: bool,
    quiet: bool,
) -> None:
    from headeval.cli.calibrating import (
        calibrated_head,
        calibrated_scores,
        calibration_summary,
        fit_scaling,
        folded,
        head_to_write,
        logits_again,
        require_classes,
    )
    from headeval.cli.rows import read_subject
    from headeval.files.heads import write_head
    from headeval.render.terminal import render_calibration

    subject = read_subject(tables, source, columns, hold=False, quiet=quiet)
    require_classes(subject)
    scaling = fit_scaling(subject, method)
    if source.head is None:
        calibrated = calibrated_scores(subject, scaling)
        summary = calibration_summary(subject, calibrated, data, str(target))
        _write_scores(subject, calibrated, target, force=force, quiet=quiet)
    else:
        head = folded(source.head, scaling)
        calibrated = calibrated_head(subject, scaling, head, *logits_again(subject, head, quiet=quiet))
        summary = calibration_summary(subject, calibrated, data, str(target))
        write_head(head_to_write(subject, calibrated, summary), target, force=force)
    show(render_calibration(summary))


def _refuse_categories(tables: "Tables") -> None:
    """Refuse scores of several categories, of which nothing says the one that is meant."""
    from headeval.files.scores import declared_scores

    declared = declared_scores(tables)
    if declared and declared[0].category:
        first = declared[0]
        raise UsageError(
            f"the files hold the scores of several categories: calibrate their heads (--head FOLDER), or one with "
            f"--logit {quoted(first.logit)} --label {quoted(first.category)}"
        )


def _refuse_several_labels(tables: "Tables", label: str, scores: dict[str, str | None]) -> None:
    """Refuse several label columns, which are categories and not the classes of one."""
    from headeval.cli.class_columns import names_several
    from headeval.files.label_columns import label_columns

    if not names_several(tables, label):
        return
    columns = label_columns(tables, label)
    example = f"--label {quoted(columns[0])}"
    for option, spec in scores.items():
        own = () if spec is None else label_columns(tables, spec, option=option)
        example += f" {option} {quoted(own[0])}" if len(own) == len(columns) else ""
    raise UsageError(
        f"--label {quoted(label)} names {len(columns)} columns, which are categories: calibrate one after the other "
        f"({example}), or a folder of their heads (--head FOLDER)"
    )


def _check_method(source: "Source", method: str) -> None:
    """Refuse what many classes do not have."""
    if len(source.class_columns) == 2:
        raise UsageError(
            f"--{source.kind} {quoted(source.name)} names both of two classes: name the one column of the flagged class"
        )
    if source.class_names is not None and method == "platt":
        raise UsageError(
            f"--method platt is for two classes, and {quoted(source.name)} has {len(source.class_names)}: a slope and "
            "an intercept for the flagged class would leave the others without probabilities; use --method temperature"
        )


def _target(output: Path | None, head: Path | None, tables: "Tables", *, force: bool) -> Path:
    """Return where the result goes, by default named after the head or the scores, once it is clear that it may.

    A calibrated head holds all that the head held, so it may replace it with --force; a table is never replaced.
    """
    from headeval.files.atomic import check_output
    from headeval.files.output import check_table_output

    judged = head or tables.paths[0]
    tabular = judged.suffix.lower() in {".parquet", ".pq", ".csv"}
    suffix = ".json" if head else judged.suffix if tabular else ".parquet"
    target = output or Path(f"{judged.stem}-calibrated{suffix}")
    (check_output if head else check_table_output)(target, force=force, inputs=tables.paths)
    return target


def _write_scores(subject: "Subject", calibrated: "Calibrated", target: Path, *, force: bool, quiet: bool) -> None:
    from headeval.cli.rows import reading
    from headeval.files.class_blocks import class_column_blocks
    from headeval.files.scores import (
        column_blocks,
        declared_scores,
        seen_after_calibration,
        write_scored,
    )

    tables, source = subject.tables, subject.source
    declared = _declared(subject, calibrated)
    declared.check_free(tables)
    seen = seen_after_calibration(source.seen, len(subject.labels), subject.examples.unlabelled)
    if source.class_columns:
        blocks = class_column_blocks(
            tables, source.class_columns, source.kind, calibrated.scaling, track=reading(quiet)
        )
    else:
        blocks = column_blocks(tables, source.name, source.kind, calibrated.scaling, track=reading(quiet))
    write_scored(
        target,
        blocks,
        declared,
        metadata=tables.metadata,
        earlier=declared_scores(tables),
        seen=lambda: seen,
        force=force,
    )


def _declared(subject: "Subject", calibrated: "Calibrated") -> "DeclaredScores":
    """Return the columns that are added, and what is said of them."""
    from headeval.files.scores import DeclaredScores

    own = ("calibrated_logit", "calibrated_prob", "calibrated_flagged")
    declared = DeclaredScores(*own, subject.examples.classes, calibrated.threshold)
    names = subject.source.class_names
    if names is None:
        return declared
    return replace(
        declared,
        class_names=names,
        class_columns=tuple(f"calibrated_logit_{name}" for name in names),
        class_probs=tuple(f"calibrated_prob_{name}" for name in names),
        predicted="calibrated_predicted",
    )
