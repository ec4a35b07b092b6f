"""Drift and leakage as a section, as sentences and as JSON: sizes first, then what chance alone would give."""

import dataclasses
from typing import Any

from headeval.core.intervals import Interval
from headeval.core.near_duplicates import MeanShift
from headeval.core.two_samples import PopulationStability
from headeval.drift import Drift, Leakage, PrevalenceChange
from headeval.printable import LONGEST_SHOWN, printable
from headeval.render.numbers import NOTHING, UNDEFINED, count, exact, number, percent, share, signed
from headeval.render.sections import LONGEST_IN_SENTENCE, Column, Grid, Section

Row = tuple[str, str, str, str]

_TITLES = {
    "psi": "PSI of scores",
    "prevalence": "share of positives",
    "mean_shift": "mean embedding",
}
_TESTS = {1: "one test stands", 2: "two tests stand", 3: "three tests stand"}


def drift_section(drift: Drift) -> Section:
    """Return the sizes of all differences, what chance would give, and the rows that the reference holds as well."""
    rows = [_ks_row(drift), *(_row(name, drift) for name in ("psi", "prevalence", "mean_shift"))]
    columns = (Column("measure"), Column("size", numeric=True), Column("beside it"), Column("p", numeric=True))
    grids = [Grid("differences from the reference", columns, tuple(rows))]
    footnotes = [
        "KS gap: the largest distance of the two cumulative distributions of scores, from 0 to 1",
        "PSI: sum over bins of (here - there) log(here / there), each bin with half a row more",
        "p95: exceeded in 1 of 20 comparisons without drift",
        "p: how often chance alone gives such a size; on many rows it is small for trifles as well",
    ]
    if drift.mean_shift is not None:
        footnotes.append(f"mean embedding: the distance of the mean unit vectors, from 0 to 2{_of_samples(drift)}")
    if drift.leakage is not None:
        grids += _leakage_grids(drift.leakage)
        footnotes += _leakage_footnotes(drift.leakage)
    else:
        footnotes.append(
            f"rows that the reference holds as well are not looked for: {drift.undefined.get('leakage', UNDEFINED)}"
        )
    lead = f"{_rows(drift.n)} beside the {count(drift.m)} of {_name(drift.reference)}"
    return Section("Drift", tuple(grids), lead=lead, footnotes=tuple(footnotes))


def leakage_section(leakage: Leakage, reference: str) -> Section:
    """Return the rows that the reference of this name holds as well, by themselves."""
    lead = f"which of {_rows(leakage.n)} {_name(reference)} holds as well"
    return Section("Leakage", tuple(_leakage_grids(leakage)), lead=lead, footnotes=tuple(_leakage_footnotes(leakage)))


def drift_notes(drift: Drift) -> tuple[str, ...]:
    """Return the findings as sentences; none of them judges whether a difference matters.

    Examples
    --------
    >>> from headeval.drift import drift
    >>> for note in drift_notes(drift([0.1, 0.2], [0.8, 0.9], reference="may.csv"))[:2]:
    ...     print(note)
    scores: at 0.2000 the shares of rows at or below differ most, by 1.0000, more here than in may.csv (p 0.3333)
    scores: PSI 0.5365, while without drift it would average 1.0000 and stay below 3.8415 in 95 %
    """
    name, ks, notes = _name(drift.reference), drift.ks, []
    if ks.statistic:
        side = "more" if ks.sign > 0 else "fewer"
        gap = f"at {number(ks.location)} the shares of rows at or below differ most, by {number(ks.statistic)}"
        notes.append(f"scores: {gap}, {side} here than in {name} (p {number(ks.p_value)})")
    else:
        notes.append(f"scores: distributed exactly as in {name}")
    if drift.psi is not None:
        level = f"average {number(drift.psi.mean_if_same)} and stay below {number(drift.psi.p95_if_same)} in 95 %"
        notes.append(f"scores: PSI {number(drift.psi.value)}, while without drift it would {level}")
    if drift.prevalence is not None:
        notes.append(_prevalence_note(drift.prevalence, name))
    if drift.mean_shift is not None:
        shift = drift.mean_shift
        apart = f"mean directions are {number(shift.distance)} apart, {number(shift.distance_if_same)} without a shift"
        drawn = f"{count(shift.n_permutations)} permutations{_of_samples(drift)}"
        notes.append(f"embeddings: {apart} (p {number(shift.p_value)} from {drawn})")
    if drift.leakage is not None:
        notes.append(leakage_note(drift.leakage, drift.reference))
    tests = 1 + (drift.prevalence is not None) + (drift.mean_shift is not None)
    notes.append(f"{_TESTS[tests]} here; with many rows a small p says little: judge by the sizes")
    return tuple(notes)


def leakage_note(leakage: Leakage, reference: str) -> str:
    """Return in a sentence how many rows the reference of this name holds as well."""
    found = f"{share(leakage.exact, leakage.n)} rows are in {_name(reference)}"
    if leakage.compared:
        nearly = f"{share(leakage.near, leakage.compared)} of the others nearly"
        found += f", {nearly} (cosine ≥ {exact(leakage.min_cosine)})"
        if leakage.compared < leakage.others:
            found += f", of a random sample of {share(leakage.compared, leakage.others)}"
    if not leakage.exact and not leakage.near:
        return found
    return f"{found}; if those rows made the head, numbers on these flatter it"


def drift_document(drift: Drift) -> dict[str, Any]:
    """Return everything the record says as JSON values: null where it is undefined, with the reason in `undefined`."""
    return {
        "reference": drift.reference,
        "n": drift.n,
        "reference_n": drift.m,
        "ks": dataclasses.asdict(drift.ks),
        "psi": None if drift.psi is None else _psi_document(drift.psi),
        "prevalence": None if drift.prevalence is None else _prevalence_document(drift.prevalence),
        "mean_shift": None if drift.mean_shift is None else _shift_document(drift, drift.mean_shift),
        "leakage": None if drift.leakage is None else leakage_document(drift.leakage),
        "undefined": dict(drift.undefined),
    }


def leakage_document(leakage: Leakage) -> dict[str, Any]:
    """Return the record as JSON values; `near` is null where no embeddings were compared though rows were left."""
    return {
        "n": leakage.n,
        "exact": leakage.exact,
        "near": leakage.near if leakage.compared or not leakage.others else None,
        "min_cosine": leakage.min_cosine,
        "compared": leakage.compared,
        "examples": [
            {"row": row, "reference_row": other, "cosine": cosine, "exact": index < leakage.exact}
            for index, (row, other, cosine) in enumerate(leakage.examples)
        ],
    }


def _shift_document(drift: Drift, shift: MeanShift) -> dict[str, Any]:
    sizes = dict(zip(("n", "reference_n"), drift.shifted or (), strict=True)) if drift.shift_sampled else {}
    return dataclasses.asdict(shift) | sizes


def _psi_document(psi: PopulationStability) -> dict[str, Any]:
    edges = psi.edges.tolist()
    counts = zip(psi.counts.tolist(), psi.reference_counts.tolist(), strict=True)
    return {
        "value": psi.value,
        "mean_if_same": psi.mean_if_same,
        "p95_if_same": psi.p95_if_same,
        "bins": [
            {"above": above, "up_to": up_to, "count": here, "reference_count": there}
            for above, up_to, (here, there) in zip([None, *edges], [*edges, None], counts, strict=True)
        ],
    }


def _prevalence_document(prevalence: PrevalenceChange) -> dict[str, Any]:
    difference = prevalence.difference
    return {
        "positives": prevalence.positives,
        "n": prevalence.n,
        "reference_positives": prevalence.reference_positives,
        "reference_n": prevalence.m,
        "difference": difference.value,
        "interval": None if difference.interval is None else dataclasses.asdict(difference.interval),
        "p_value": difference.p_value,
    }


def _ks_row(drift: Drift) -> Row:
    ks = drift.ks
    side = "more" if ks.sign > 0 else "fewer"
    beside = f"at {number(ks.location)}, {side} at or below here" if ks.statistic else NOTHING
    return ("KS gap of scores", number(ks.statistic), beside, number(ks.p_value))


def _row(name: str, drift: Drift) -> Row:
    title = _TITLES[name]
    if name in drift.undefined:
        return (title, UNDEFINED, printable(drift.undefined[name]), NOTHING)
    if name == "psi" and drift.psi is not None:
        psi = drift.psi
        beside = f"no drift: mean {number(psi.mean_if_same)}, p95 {number(psi.p95_if_same)}"
        return (f"{title}, {count(len(psi.counts))} bins", number(psi.value), beside, NOTHING)
    if name == "prevalence" and drift.prevalence is not None:
        difference = drift.prevalence.difference
        return (title, signed(difference.value), _interval(difference.interval), _p(difference.p_value))
    if drift.mean_shift is not None:
        shift = drift.mean_shift
        return (title, number(shift.distance), f"no shift: mean {number(shift.distance_if_same)}", _p(shift.p_value))
    return (title, UNDEFINED, NOTHING, NOTHING)


def _of_samples(drift: Drift) -> str:
    """Say which rows the mean shift is of, where these are not all."""
    if not drift.shift_sampled:
        return ""
    here, there = drift.shifted or (drift.n, drift.m)
    of = f"{share(here, drift.n)} rows here and {share(there, drift.m)} of the reference"
    return f", of random samples: {of}"


def _leakage_grids(leakage: Leakage) -> list[Grid]:
    looked_for = leakage.compared or not leakage.others
    nearly = share(leakage.near, leakage.compared) if looked_for else UNDEFINED
    rows = (
        ("with the same embedding", share(leakage.exact, leakage.n)),
        (f"of the others, with a cosine ≥ {exact(leakage.min_cosine)}", nearly),
    )
    columns = (Column("rows also in the reference"), Column("rows", numeric=True))
    grids = [Grid("rows also in the reference", columns, rows)]
    if leakage.examples:
        examples = tuple(
            (_id(row), _id(other), "same" if index < leakage.exact else number(cosine))
            for index, (row, other, cosine) in enumerate(leakage.examples)
        )
        headings = (Column("for example"), Column("in the reference"), Column("cosine", numeric=True))
        grids.append(Grid("examples of such rows", headings, examples))
    return grids


def _leakage_footnotes(leakage: Leakage) -> list[str]:
    if not leakage.others:
        return []
    if not leakage.compared:
        return ["without embeddings of both sides, rows that are nearly the same are not looked for"]
    if leakage.compared < leakage.others:
        return [f"cosines: of a random sample of {share(leakage.compared, leakage.others)} rows"]
    return []


def _prevalence_note(prevalence: PrevalenceChange, reference: str) -> str:
    difference = prevalence.difference
    here = f"{number(prevalence.positives / prevalence.n)} here ({share(prevalence.positives, prevalence.n)})"
    counts = share(prevalence.reference_positives, prevalence.m)
    there = f"{number(prevalence.reference_positives / prevalence.m)} in {reference} ({counts})"
    change = f"{signed(difference.value)}, {_interval(difference.interval)} (p {_p(difference.p_value)})"
    return f"share of positives: {here}, {there}: {change}"


def _interval(interval: Interval | None) -> str:
    if interval is None:
        return NOTHING
    return f"{percent(interval.confidence)} [{signed(interval.lower)}, {signed(interval.upper)}]"


def _p(value: float | None) -> str:
    return NOTHING if value is None else number(value)


def _rows(n: int) -> str:
    return "1 row" if n == 1 else f"{count(n)} rows"


def _name(reference: str) -> str:
    return printable(reference, longest=LONGEST_IN_SENTENCE)


def _id(row: str | int) -> str:
    return f"row {count(row)}" if isinstance(row, int) else printable(row, longest=LONGEST_SHOWN)
