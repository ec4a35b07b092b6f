"""What `report` writes beside stdout: a page, plots, a card, JUnit test cases, and the rows that changed side."""

from collections.abc import Iterable, Iterator, Sequence
from contextlib import ExitStack, contextmanager, suppress
from dataclasses import dataclass
from os.path import exists, isdir, realpath
from pathlib import Path

from headeval.cli.console import say
from headeval.cli.rows import reading
from headeval.cli.subject import Subject
from headeval.errors import OutputError
from headeval.files.atomic import atomic_file, check_output, make_folder, refuse_remote
from headeval.files.changed import check_free, write_changed
from headeval.files.head_folder import is_head_folder
from headeval.files.output import check_table_output
from headeval.files.tables import Tables
from headeval.printable import quoted
from headeval.report import Report
from headeval.scored_rows import ScoredRows

Document = tuple[Path, str, bytes]  # where it goes, what it is called, and what it holds


@dataclass(frozen=True, slots=True)
class ReportFiles:
    """The files that were asked for; None where one was not."""

    html: Path | None
    plots: Path | None
    card: Path | None
    junit: Path | None
    changed: Path | None
    force: bool

    @property
    def drawn(self) -> bool:
        """Whether something has curves."""
        return self.html is not None or self.plots is not None

    def check(self, tables: Tables, heads: Sequence[Path]) -> None:
        """Refuse what could not be written, before any long work is done for it.

        Raises
        ------
        OutputError : where a file exists and must stay, cannot be written, or is named twice.
        DataError : where the tables have a column that the rows that changed side would get.
        """
        inputs = (
            *tables.paths,
            *heads,
            *(file for path in heads if is_head_folder(path) for file in path.glob("*.json")),
        )
        documents = [path for path in (self.html, self.card, self.junit) if path is not None]
        named = [path for path in (*documents, self.changed, self.plots) if path is not None]
        places = [realpath(path) for path in named]
        twice = next((path for path, place in zip(named, places, strict=True) if places.count(place) > 1), None)
        if twice is not None:
            raise OutputError(f"{quoted(twice)} is named for two outputs: give each its own file")
        for path in documents:
            check_output(path, force=self.force, inputs=inputs)
        if self.changed is not None:
            check_table_output(self.changed, force=self.force, inputs=inputs)
            check_free(tables)
        if self.plots is not None:
            from headeval.render.plots import plot_names

            refuse_remote(self.plots)
            if exists(self.plots) and not isdir(self.plots):  # noqa: PTH110, PTH112 - which raise nothing
                raise OutputError(f"{quoted(self.plots)} is no folder: --plots writes several files into one")
            for name in plot_names() if isdir(self.plots) else ():  # noqa: PTH112 - as above
                check_output(self.plots / name, force=self.force)

    def write(self, report: Report, subject: Subject, baseline: Subject | None, *, quiet: bool) -> None:
        """Write them all, and say where.

        Raises
        ------
        UsageError : where a package that one of them needs is not installed.
        OutputError : where one cannot be written.
        """
        # All is rendered before anything is written, so that what fails leaves nothing behind.
        documents, drawn = list(self._rendered(report, subject)), list(self._drawn(report))
        if self.changed is not None and baseline is not None:
            self._write_changed(subject, baseline, self.changed, quiet=quiet)
        with _folder_made(self.plots):
            self.write_documents(documents, drawn, quiet=quiet)
        if self.plots is not None:
            say(f"{len(drawn)} plots written to {self.plots}", quiet=quiet)

    def write_documents(
        self, documents: Iterable[Document], drawn: Iterable[tuple[Path, bytes]] = (), *, quiet: bool
    ) -> None:
        """Write documents and plots, and say where the documents are.

        All are rendered before the first is written, and all are written before the first gets its name.

        Raises
        ------
        OutputError : where one cannot be written.
        """
        documents = list(documents)
        contents = [*((path, content) for path, _, content in documents), *drawn]
        with ExitStack() as files:
            for path, content in reversed(contents):  # the names are given in the order of the options
                file = files.enter_context(atomic_file(path, force=self.force))
                file.write(content)
                file.flush()
        for path, what, _ in documents:
            say(f"{what} written to {path}", quiet=quiet)

    def _rendered(self, report: Report, subject: Subject) -> Iterator[Document]:
        """Render each document that was asked for; what renders another is not even loaded."""
        if self.html is not None:
            from headeval.render.page import render_page

            yield self.html, "page", render_page(report).encode()
        if self.card is not None:
            from headeval.render.card import render_card

            yield self.card, "card", render_card(report, subject.source.head).encode()
        if self.junit is not None:
            from headeval.render.junit import junit_xml

            yield self.junit, "test cases", junit_xml(report).encode()

    def _drawn(self, report: Report) -> Iterator[tuple[Path, bytes]]:
        if self.plots is not None:
            from headeval.render.plots import plots

            yield from ((self.plots / name, content) for name, content in plots(report))

    def _write_changed(self, subject: Subject, baseline: Subject, output: Path, *, quiet: bool) -> None:
        both: tuple[ScoredRows, ScoredRows] = (subject.scored_rows(), baseline.scored_rows())
        rows = write_changed(
            output,
            subject.tables,
            kept=subject.examples.kept,
            probs=(both[0].p, both[1].p),
            flagged=(both[0].p >= subject.threshold, both[1].p >= baseline.threshold),
            without=subject.examples.embedding_columns,
            force=self.force,
            track=reading(quiet),
        )
        say(f"{rows:,} rows that changed side written to {output}", quiet=quiet)


@contextmanager
def _folder_made(folder: Path | None) -> Iterator[None]:
    """Make a folder, and those above it, for the files that are written meanwhile; without them it goes away."""
    above = () if folder is None else (folder, *folder.parents)
    made = [path for path in above if not exists(path)]  # noqa: PTH110 - Path.exists may raise
    try:
        if made and folder is not None:
            make_folder(folder)
        yield
    except BaseException:  # an interrupt too: the error goes on
        for path in made:
            with suppress(OSError):  # it is not empty
                path.rmdir()
        raise
