"""The rows that a threshold is chosen on: labelled ones, benign traffic, or both, scored by the head."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from headeval.certifying.certifiable import Goal
from headeval.certifying.choice import Certification, Sample
from headeval.certifying.claim_record import CERTIFIED, ON_THE_SAMPLE, Claim, ClaimedRequirement
from headeval.certifying.summary import BenignCounts
from headeval.cli.row_notes import copies, zero_rows, zeros_note
from headeval.cli.rows import Columns, data_provenance, embedding_provenance, read_subject, reading, rows_used
from headeval.cli.sources import check_models, head_source, model_of
from headeval.cli.subject import Subject
from headeval.core.stable import sigmoid
from headeval.drift import EXAMPLES
from headeval.errors import FitError
from headeval.files.benign import BenignRows, read_benign
from headeval.files.heads import read_head
from headeval.files.tables import Tables, open_tables
from headeval.head import LinearHead
from headeval.head_history import RowsSeen, kept_digests
from headeval.printable import quoted
from headeval.render.sections import in_sentence
from headeval.requirement_parsing import Requirement


@dataclass(frozen=True, slots=True)
class ThresholdRows:
    """A head with the rows that its threshold is chosen on.

    Attributes
    ----------
    provenance : what was read; JSON-able values in the order shown.
    subject : labelled rows, or None.
    benign : unlabelled benign traffic, or None; one of the two is there.
    sample : the probabilities of both, as the head compares them with its threshold.
    unread_labels : the column of labels that the benign files have, although none is read; or None.
    in_folder : whether the head is one of a folder, of whose rows a report speaks with more options.
    """

    head: LinearHead
    provenance: dict[str, Any]
    subject: Subject | None
    benign: BenignRows | None
    sample: Sample
    unread_labels: str | None = None
    in_folder: bool = False

    def how(self, *, certified: bool) -> str:
        """Say which rows these are, in words."""
        if self.subject is None:
            return f"{0 if self.benign is None else self.benign.n:,} rows of benign traffic, without labels"
        if not certified:
            return f"NOTHING IS CERTIFIED: chosen on the very rows that measure it; {self.subject.how}"
        seen = self.subject.seen
        if seen is None or not self.calibrated:
            return self.subject.how
        which = "all" if seen.calibrated == seen.n else f"{'' if seen.exact else 'about '}{seen.calibrated:,}"
        return f"{seen.n:,} labelled rows, {which} of which calibrated the head"

    @property
    def calibrated(self) -> bool:
        """Whether most of the rows have calibrated the head."""
        return self.subject is not None and self.subject.seen is not None and self.subject.seen.in_sample is not None

    @property
    def ordered(self) -> bool:
        """Whether a calibration has kept the order of the rows, as it does of two classes and not of more."""
        return len(self.head.classes) == 2

    def refuse_rows_that_flatter(self, requirements: Sequence[Requirement]) -> None:
        """Refuse rows most of which the head was fitted on, and for precision such as have calibrated it.

        A calibration keeps the order of the rows, and so every set that some threshold flags: what is certified by the
        order alone holds as before. Precision is certified at fixed probabilities, which the calibration moves. Of more
        than two classes a temperature changes that order, so that nothing is certified on rows that it was fitted to.

        Raises
        ------
        FitError
            Such rows score better than any others will, so nothing measured on them holds elsewhere.
        """
        for what, seen in self._seen().items():
            if seen is not None and seen.in_sample == "fitted":
                about = "" if seen.exact else "about "
                raise FitError(
                    f"{about}{seen.fitted:,} of these {seen.n:,} {what} were used for the fit: no threshold can be "
                    "certified on rows that the head was fitted on\nchoose it on labelled rows that were kept apart"
                )
        if not self.ordered and self.calibrated and requirements:
            raise FitError(
                f"{requirements[0]} cannot be certified on rows that calibrated the head, as "
                f"{self._calibration_rows()} did: with more than two classes a temperature changes the order of rows\n"
                "give rows that were kept apart"
            )
        asked = next((part for part in requirements if part.metric == "precision"), None)
        if asked is not None and self.calibrated:
            raise FitError(
                f"{asked} cannot be certified on rows that calibrated the head, as {self._calibration_rows()} did: its "
                "tests stand at fixed probabilities, which were fitted to these very rows\n"
                "give rows that were kept apart; fpr, specificity, recall and flag_rate, which go by the order of the "
                "rows alone, can be certified on these"
            )

    def notes(self, requirements: Sequence[Requirement]) -> tuple[str, ...]:
        """Return what a reader must not miss."""
        labels = () if self.subject is None else self.subject.label_notes
        notes = [*self._rows_of_the_fit(), *self._copies(), *labels]
        if self.benign is not None:
            notes += zeros_note(zero_rows(self.benign.digests, self.head.dim), rows="benign rows")
        if self.unread_labels is not None:
            column = quoted(self.unread_labels)
            notes.append(f"the benign files have a column {column}, which is not read: all their rows count as benign")
        precise = any(requirement.metric == "precision" for requirement in requirements)
        if requirements and (precise or not self.ordered) and self.subject is not None:
            if self.subject.seen is not None and self.subject.seen.calibrated:
                what = "precision" if self.ordered else "it"
                few = _flattering(self.subject.seen.calibrated, what)
                notes.append(f"{self._calibration_rows()} calibrated the head, and {few}")
        elif self.calibrated and requirements:
            notes.append("a calibration keeps the order of the rows, so what is certified here is not weakened by it")
        if precise:
            notes.append("precision depends on the share of positives: the promise is for traffic with the same share")
        return tuple(notes)

    def _rows_of_the_fit(self) -> Iterator[str]:
        for what, seen in self._seen().items():
            if seen is not None and seen.fitted and seen.in_sample is None:
                about, was = "" if seen.exact else "about ", "was" if seen.fitted == 1 else "were"
                few = _flattering(seen.fitted, "it")
                yield f"{about}{seen.fitted:,} of the {what} {was} used for the fit, and {few}"
                if what == "rows":  # a report takes labels, which benign traffic has not
                    yield f"`{self._naming_report()}` names up to {EXAMPLES} of the rows of the fit"

    def _naming_report(self) -> str:
        of = "FOLDER/NAME.json --label NAME --drop-unlabelled" if self.in_folder else "HEAD"
        return f"headeval report … --head {of} --reference FIT_DATA"

    def _calibration_rows(self) -> str:
        seen = None if self.subject is None else self.subject.seen
        if seen is None:
            return "some"
        return f"{'' if seen.exact else 'about '}{seen.calibrated:,} of these {seen.n:,} rows"

    def _copies(self) -> Iterator[str]:
        for what, digests in self._digests().items():
            repeated = copies(digests)
            if repeated:
                are = f"{what[:-1]} is a copy" if repeated == 1 else f"{what} are copies"
                yield f"{repeated:,} {are} of another, while a certificate counts on independent rows"

    def _digests(self) -> dict[str, NDArray[np.uint64]]:
        rows = {} if self.subject is None else {"rows": self.subject.examples.digests[:, 0]}
        return rows if self.benign is None else rows | {"benign rows": self.benign.digests}

    def _seen(self) -> dict[str, RowsSeen | None]:
        return {
            "rows": None if self.subject is None else self.subject.seen,
            "benign rows": None if self.benign is None else self.benign.seen,
        }

    def benign_counts(self, threshold: float) -> BenignCounts | None:
        """Return how much of the benign traffic is flagged, before and after."""
        if self.benign is None:
            return None
        before, after = self.sample.flagged_benign(self.head.threshold), self.sample.flagged_benign(threshold)
        return BenignCounts(self.benign.n, before, after)

    def claim(self, threshold: float, goal: Goal, certified: Sequence[Certification], confidence: float) -> Claim:
        """Return what the head is to remember of the choice."""
        rows: dict[str, Any] = {"n": 0, "positives": 0, "data_fingerprint": None, "distinct_rows": 0, "row_digests": ""}
        in_sample = None
        if self.subject is not None:
            rows = rows_used(self.subject.examples).document()
            in_sample = self.subject.seen.in_sample if self.subject.seen else None
        benign = None
        if self.benign is not None:
            flagged = self.sample.flagged_benign(threshold)
            benign = {
                "n": self.benign.n,
                "data_fingerprint": self.benign.fingerprint,
                **kept_digests(self.benign.digests),
                "flagged": flagged,
            }
        return Claim(
            threshold=threshold,
            chosen_by=CERTIFIED if certified else ON_THE_SAMPLE,
            goal=str(goal),
            confidence=confidence,
            requirements=tuple(
                ClaimedRequirement(
                    part.requirement,
                    part.n,
                    part.errors,
                    part.errors_allowed,
                    part.value,
                    part.interval,
                    part.bound,
                    part.rule,
                )
                for part in certified
            ),
            rows=rows,
            in_sample=in_sample,
            benign=benign,
        )


def _flattering(rows: int, what: str) -> str:
    return f"flatters {what}: leave it out" if rows == 1 else f"flatter {what}: leave them out"


def open_both(data: Sequence[str] | None, benign: Sequence[str] | None) -> tuple[Tables | None, Tables | None]:
    """Return labelled rows and benign traffic, opened; None for what is not given."""
    return open_tables(data) if data else None, open_tables(benign) if benign else None


def read_threshold_rows(
    path: Path, tables: Tables | None, traffic: Tables | None, columns: Columns, *, quiet: bool
) -> ThresholdRows:
    """Read the head and score the rows; the embeddings must be of the head's own model."""
    head = read_head(path)
    source = head_source(head, str(path))
    subject = None if tables is None else read_subject(tables, source, columns, hold=False, quiet=quiet)
    benign = None
    if traffic is not None:
        check_models(head, traffic, columns.embedding_model)
        benign = read_benign(traffic, head, embedding=columns.embedding, track=reading(quiet))
    labels_there = traffic is not None and any(columns.label in file.schema.names for file in traffic.files)
    rows = threshold_rows(head, str(path), subject, benign, traffic, columns)
    return replace(rows, unread_labels=columns.label if labels_there else None)


def threshold_rows(
    head: LinearHead,
    name: str,
    subject: Subject | None,
    benign: BenignRows | None,
    traffic: Tables | None,
    columns: Columns,
) -> ThresholdRows:
    """Return scored rows, labelled or benign, that the threshold of a head is chosen on.

    Parameters
    ----------
    name : of the head's file, as shown.
    traffic : that the benign rows are from.
    """
    probs, labels = (np.empty(0), np.empty(0, dtype=np.int64))
    if subject is not None:
        probs, labels = sigmoid(subject.scores), subject.labels
    sample = Sample.of(probs, labels, None if benign is None else benign.probs)
    return ThresholdRows(head, _provenance(name, head, subject, traffic, columns, sample), subject, benign, sample)


def _provenance(
    name: str, head: LinearHead, subject: Subject | None, traffic: Tables | None, columns: Columns, sample: Sample
) -> dict[str, Any]:
    provenance: dict[str, Any] = {}
    if subject is not None:
        data = [str(file) for file in subject.tables.paths]
        provenance |= data_provenance(data, subject.examples) | embedding_provenance(subject.examples, columns)
    if traffic is not None:
        provenance["benign"] = [str(file) for file in traffic.paths]
    tables = [part for part in (None if subject is None else subject.tables, traffic) if part is not None]
    provenance |= {"head": name, "embedding_model": model_of(head, tables, columns.embedding_model)}
    if subject is not None:
        negative, positive = map(in_sentence, subject.examples.classes)
        p, n = sample.positives.size, sample.negatives.size
        provenance["rows"] = f"{p + n:,}: {p:,} {positive} (positive), {n:,} {negative}"
    if sample.benign is not None:
        provenance["benign_rows"] = f"{sample.benign.size:,}"
    return provenance
