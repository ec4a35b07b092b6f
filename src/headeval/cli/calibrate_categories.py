"""`headeval calibrate` for a folder of heads: each calibrated on the rows whose label of its category is known."""

import dataclasses
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np

from headeval.category_summaries import CategoryCalibration, CategoryCalibrations, LeftOut
from headeval.cli.calibrating import calibrated_head, calibration_summary, fit_scaling, folded, head_to_write
from headeval.cli.category_sources import folder_sources
from headeval.cli.category_subjects import CategorySubject, read_category_subjects
from headeval.cli.console import show
from headeval.cli.left_out_categories import left_out, n_rows, report_left_out, too_few_rows
from headeval.cli.row_notes import unlabelled_note
from headeval.cli.rows import Columns
from headeval.cli.sources import Source
from headeval.cli.subject import Subject
from headeval.core.checks import FloatArray
from headeval.core.scaling import Scaling
from headeval.errors import DataError, FitError
from headeval.files.examples import file_names
from headeval.files.head_folder import check_heads_output, write_heads
from headeval.files.locations import masked_uri
from headeval.files.tables import Tables
from headeval.head import LinearHead
from headeval.render.category_calibration import category_calibration_sheet
from headeval.render.terminal import SheetView
from headeval.report import CalibrationSummary


@dataclasses.dataclass(frozen=True, slots=True)
class CategoryOptions:
    """What the command line says beside data and columns."""

    method: str
    min_positives: int
    allow_missing: bool
    output: Path | None
    force: bool
    quiet: bool


@dataclasses.dataclass(frozen=True, slots=True)
class _Scaled:
    """A category with its scaling, and the head that has it folded in."""

    rows: CategorySubject
    subject: Subject
    scaling: Scaling
    head: LinearHead


def calibrate_categories(
    tables: Tables, folder: Path, columns: Columns, wanted: CategoryOptions, data: list[str]
) -> None:
    """Calibrate every head of a folder on its own rows, over one reading, and a second one of the calibrated heads.

    Raises
    ------
    FitError : at the end, where categories were left out and that was not allowed, or all were.
    """
    sources = folder_sources(folder, columns.label)
    target = wanted.output or output_folder(folder, "calibrated")
    check_heads_output(target, sources, force=wanted.force, inputs=tables.paths)
    rows = read_category_subjects(tables, sources, columns, quiet=wanted.quiet)
    scaled, without = _scaled(rows, wanted)
    if scaled:  # a head of a category that is left out may stand there: better told now than after the work
        check_heads_output(target, [part.rows.name for part in scaled], force=wanted.force, inputs=tables.paths)
    logits = _logits_again(tables, sources, columns, scaled, quiet=wanted.quiet)
    heads, found = {}, []
    for part, after in zip(scaled, logits, strict=True):
        subject = part.subject
        calibrated = calibrated_head(subject, part.scaling, part.head, after)
        summary = _without_unknown(calibration_summary(subject, calibrated, data, str(target)), subject)
        heads[part.rows.name] = head_to_write(subject, calibrated, summary)
        found.append(CategoryCalibration(part.rows.name, part.rows.unknown, summary))
    if heads:
        write_heads(target, heads, force=wanted.force)
    provenance = _provenance(folder, rows, data, target if heads else None)
    show(
        SheetView(
            category_calibration_sheet(CategoryCalibrations(provenance, wanted.method, tuple(found), tuple(without)))
        )
    )
    report_left_out(without, len(rows), "calibrated", allow_missing=wanted.allow_missing, quiet=wanted.quiet)


def output_folder(folder: Path, suffix: str) -> Path:
    """Return the folder of that name with a suffix, in the current one."""
    return Path(f"{folder.resolve().name}-{suffix}")


def _scaled(rows: tuple[CategorySubject, ...], wanted: CategoryOptions) -> tuple[list[_Scaled], list[LeftOut]]:
    """Return the categories that can be calibrated, and the others with the reason."""
    found, without = [], []
    for part in rows:
        why, subject = too_few_rows(part, wanted.min_positives), part.subject
        if not why and subject is not None and subject.source.head is not None:
            try:
                scaling = fit_scaling(subject, wanted.method)
                found.append(_Scaled(part, subject, scaling, folded(subject.source.head, scaling)))
            except FitError as error:
                why = str(error.__cause__ or error)
        if why:
            without.append(left_out(part, why))
    return found, without


def _logits_again(
    tables: Tables, sources: Mapping[str, Source], columns: Columns, scaled: list[_Scaled], *, quiet: bool
) -> list[FloatArray]:
    """Return of each category the logits (n,) of its new head on the same rows, which are read once more for all."""
    if not scaled:
        return []
    renewed = {part.rows.name: dataclasses.replace(sources[part.rows.name], head=part.head) for part in scaled}
    again = read_category_subjects(tables, renewed, columns, quiet=quiet)
    logits = []
    for part, other in zip(scaled, again, strict=True):
        after = other.subject
        if after is None or not _same_rows(part.subject, after):
            raise DataError(f"{file_names(tables)}: the rows have changed while they were read; run it again")
        logits.append(after.scores)
    return logits


def _same_rows(before: Subject, after: Subject) -> bool:
    return np.array_equal(before.labels, after.labels) and np.array_equal(
        before.examples.digests, after.examples.digests
    )


def _without_unknown(summary: CalibrationSummary, subject: Subject) -> CalibrationSummary:
    """Rows without a label are many where categories are; the table counts them, so that no note need."""
    said = unlabelled_note(subject.examples)
    return dataclasses.replace(summary, notes=tuple(note for note in summary.notes if note not in said))


def _provenance(
    folder: Path, rows: tuple[CategorySubject, ...], data: list[str], target: Path | None
) -> dict[str, Any]:
    return {
        "data": [masked_uri(argument) for argument in data],
        "rows": f"{n_rows(rows[0]):,}",
        "heads": f"{folder}: {len(rows)} categories",
        **({} if target is None else {"written_to": str(target)}),
    }
