"""Drift as a section, as sentences and as JSON."""

import io
import json
from typing import Any
from zlib import crc32

import numpy as np
import pytest
from rich.console import Console

from headeval.core.intervals import Difference, Interval
from headeval.core.near_duplicates import MeanShift
from headeval.core.two_samples import KolmogorovSmirnov, PopulationStability
from headeval.drift import Drift, Leakage, LeakedRow, PrevalenceChange, drift
from headeval.render.drift import (
    drift_document,
    drift_notes,
    drift_section,
    leakage_document,
    leakage_note,
    leakage_section,
)
from headeval.render.sections import Section
from headeval.render.sheet import Sheet
from headeval.render.terminal import SheetView

COLUMNS = 80


@pytest.fixture
def full() -> Drift:
    """A record with chosen numbers, so that every text can be read off."""
    change = Difference(-0.02, Interval(-0.05, 0.01, 0.95, "Newcombe"), 0.25)
    counts, reference_counts = np.array([700, 300]), np.array([2500, 2500])
    examples = (LeakedRow("msg-7", 12, 1.0), LeakedRow(1234, "b", 1.0), LeakedRow(5, 6, 0.99996))
    return Drift(
        "data/may.parquet",
        n=1000,
        m=5000,
        ks=KolmogorovSmirnov(0.0312, 0.42, -1, 0.00001, "exact"),
        psi=PopulationStability(0.5, np.array([0.25]), reference_counts, counts, 0.0012, 0.0046),
        prevalence=PrevalenceChange(80, 1000, 500, 5000, change),
        mean_shift=MeanShift(0.12, 0.03, 0.95, 0.001, 999),
        leakage=Leakage(1000, exact=2, near=1, min_cosine=0.99, compared=200, examples=examples),
    )


@pytest.fixture
def bare() -> Drift:
    return drift([0.1, 0.2], [0.5, 0.5], reference="b.csv")


def cells(section: Section) -> list[list[str]]:
    return [list(row) for grid in section.grids for row in grid.rows]


def shown(section: Section, notes: tuple[str, ...] = ()) -> str:
    console = Console(file=io.StringIO(), width=COLUMNS, color_system=None)
    console.print(SheetView(Sheet("title", (), "how", False, (section,), notes)))
    return console.file.getvalue()


def test_sizes_stand_beside_what_chance_gives(full: Drift) -> None:
    assert cells(drift_section(full))[:4] == [
        ["KS gap of scores", "0.0312", "at 0.4200, fewer at or below here", "<0.0001"],
        ["PSI of scores, 2 bins", "0.5000", "no drift: mean 0.0012, p95 0.0046", "–"],
        ["share of positives", "-0.0200", "95 % [-0.0500, +0.0100]", "0.2500"],
        ["mean embedding", "0.1200", "no shift: mean 0.0300", "0.0010"],
    ]


def test_leaked_rows_are_counted_and_named(full: Drift) -> None:
    expected = [
        ["with the same embedding", "2/1,000"],
        ["of the others, with a cosine ≥ 0.99", "1/200"],
        ["msg-7", "row 12", "same"],
        ["row 1,234", "b", "same"],
        ["row 5", "row 6", ">0.9999"],  # nearly is never shown as the same
    ]
    assert cells(drift_section(full))[4:] == expected
    assert full.leakage is not None
    alone = leakage_section(full.leakage, full.reference)
    assert cells(alone) == expected
    assert "of a random sample of 200/998 rows" in alone.footnotes[0]


def test_what_is_undefined_says_why(bare: Drift) -> None:
    section = drift_section(bare)
    assert cells(section)[1:] == [
        ["PSI of scores", "undefined", "the scores of the reference are all the same", "–"],
        ["share of positives", "undefined", "neither side has labels", "–"],
        ["mean embedding", "undefined", "neither side has embeddings", "–"],
    ]
    assert any("not looked for: neither side has embeddings" in note for note in section.footnotes)


def test_near_rows_that_were_not_looked_for_are_not_none() -> None:
    """Nothing found because nothing was compared is not a zero."""
    equal_only = Leakage(10, exact=3, near=0, min_cosine=0.99, compared=0, examples=())
    assert cells(leakage_section(equal_only, "r"))[1][1] == "undefined"
    assert leakage_document(equal_only)["near"] is None
    assert "cosine" not in leakage_note(equal_only, "r")
    all_equal = Leakage(3, exact=3, near=0, min_cosine=0.99, compared=0, examples=())
    assert cells(leakage_section(all_equal, "r"))[1][1] == "0/0"
    assert leakage_document(all_equal)["near"] == 0


def test_sentences_give_sizes_and_do_not_judge(full: Drift, bare: Drift) -> None:
    assert "\n".join(drift_notes(full)) == (
        "scores: at 0.4200 the shares of rows at or below differ most, by 0.0312, fewer here than in data/may.parquet"
        " (p <0.0001)\n"
        "scores: PSI 0.5000, while without drift it would average 0.0012 and stay below 0.0046 in 95 %\n"
        "share of positives: 0.0800 here (80/1,000), 0.1000 in data/may.parquet (500/5,000):"
        " -0.0200, 95 % [-0.0500, +0.0100] (p 0.2500)\n"
        "embeddings: mean directions are 0.1200 apart, 0.0300 without a shift (p 0.0010 from 999 permutations)\n"
        "2/1,000 rows are in data/may.parquet, 1/200 of the others nearly (cosine ≥ 0.99),"
        " of a random sample of 200/998; if those rows made the head, numbers on these flatter it\n"
        "three tests stand here; with many rows a small p says little: judge by the sizes"
    )
    assert drift_notes(bare)[-1].startswith("one test stands here")


def test_equal_samples_are_said_to_be_equal() -> None:
    same = drift([0.1, 0.2], [0.2, 0.1], reference="b.csv")
    assert drift_notes(same)[0] == "scores: distributed exactly as in b.csv"
    assert cells(drift_section(same))[0][1:] == ["0.0000", "–", "1.0000"]


def test_nothing_found_makes_no_reproach() -> None:
    assert (
        leakage_note(Leakage(5, 0, 0, 0.99, 5, ()), "r")
        == "0/5 rows are in r, 0/5 of the others nearly (cosine ≥ 0.99)"
    )


def test_it_fits_80_columns(full: Drift, bare: Drift) -> None:
    for record in (full, bare):
        lines = shown(drift_section(record), drift_notes(record)).splitlines()
        assert max(map(len, lines)) <= COLUMNS
    # Each measure keeps to one line where it has a value.
    rows = [line for line in shown(drift_section(full)).splitlines() if "0.0046" in line or "0.4200" in line]
    assert [line.split()[-1] for line in rows] == ["<0.0001", "–"]


def test_text_from_outside_is_made_printable(hostile: str, full: Drift) -> None:
    leaked = Leakage(1, 1, 0, 0.99, 0, (LeakedRow(hostile, hostile, 1.0),))
    record = Drift(hostile, 1, 1, full.ks, leakage=leaked, undefined={"psi": hostile, "prevalence": hostile})
    for section in (drift_section(record), leakage_section(leaked, hostile)):
        texts = [section.lead, *section.footnotes, *(cell for row in cells(section) for cell in row)]
        assert all(text.isprintable() for text in (*texts, *drift_notes(record)))
        assert max(map(len, shown(section).splitlines())) <= COLUMNS


def test_the_document_has_everything(full: Drift) -> None:
    document = json.loads(json.dumps(drift_document(full), allow_nan=False))
    assert document == {
        "reference": "data/may.parquet",
        "n": 1000,
        "reference_n": 5000,
        "ks": {"statistic": 0.0312, "location": 0.42, "sign": -1, "p_value": 0.00001, "method": "exact"},
        "psi": {
            "value": 0.5,
            "mean_if_same": 0.0012,
            "p95_if_same": 0.0046,
            "bins": [
                {"above": None, "up_to": 0.25, "count": 700, "reference_count": 2500},
                {"above": 0.25, "up_to": None, "count": 300, "reference_count": 2500},
            ],
        },
        "prevalence": {
            "positives": 80,
            "n": 1000,
            "reference_positives": 500,
            "reference_n": 5000,
            "difference": -0.02,
            "interval": {"lower": -0.05, "upper": 0.01, "confidence": 0.95, "method": "Newcombe"},
            "p_value": 0.25,
        },
        "mean_shift": {
            "distance": 0.12,
            "distance_if_same": 0.03,
            "cosine": 0.95,
            "p_value": 0.001,
            "n_permutations": 999,
        },
        "leakage": {
            "n": 1000,
            "exact": 2,
            "near": 1,
            "min_cosine": 0.99,
            "compared": 200,
            "examples": [
                {"row": "msg-7", "reference_row": 12, "cosine": 1.0, "exact": True},
                {"row": 1234, "reference_row": "b", "cosine": 1.0, "exact": True},
                {"row": 5, "reference_row": 6, "cosine": 0.99996, "exact": False},
            ],
        },
        "undefined": {},
    }


def test_computed_records_are_plain_json() -> None:
    """No numpy number reaches the document."""
    rng = np.random.default_rng(0)
    here, there = rng.normal(size=(30, 4)), rng.normal(size=(50, 4))
    here[:3] = there[:3]
    digests = [np.array([[crc32(row.tobytes()), 0] for row in table], dtype=np.uint64) for table in (here, there)]
    record = drift(
        rng.random(30),
        rng.random(50),
        rng.integers(0, 2, 30),
        rng.integers(0, 2, 50),
        here,
        there,
        None,
        np.arange(50),
        *digests,
    )
    kinds: set[type] = set()

    def walk(value: Any) -> None:
        kinds.add(type(value))
        for item in value.values() if isinstance(value, dict) else value if isinstance(value, list) else ():
            walk(item)

    walk(drift_document(record))
    assert kinds <= {dict, list, str, int, float, bool, type(None)}


def test_undefined_parts_are_null(bare: Drift) -> None:
    document = drift_document(bare)
    missing = {name for name, value in document.items() if value is None}
    assert missing == set(document["undefined"]) == {"psi", "prevalence", "mean_shift", "leakage"}
