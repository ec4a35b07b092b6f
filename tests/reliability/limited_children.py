"""Many command lines, one after the other, in a process with limited memory and time; on Linux alone.

One child works through the cases of all tests, so that a case costs no start of Python. Where it crashes or hangs, the
case it was at is the one to blame, and a new child takes the next. Nothing is forked: pyarrow's threads would not
survive that. The child refuses every network connection, and reports what it did that no reader of data should do.
"""

import atexit
import contextlib
import functools
import importlib
import io
import json
import os
import select
import subprocess
import sys
import tempfile
import time
import warnings
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, BinaryIO

RUN = "headeval.cli.main:run"
GIB = 2**30
_START_SECONDS = 120.0
_MOST_CHILDREN = 2  # that wait for cases
_WALL = 20  # seconds on the wall, for one of the processor: a loaded machine is slow, and a child may wait for ever
# Python's names of what would be code from data, or a way out (sys.addaudithook).
_NEVER = ("pickle.", "os.system", "os.exec", "os.posix_spawn", "os.fork", "subprocess.", "socket.", "ctypes.", "code.")


@dataclass(frozen=True)
class Case:
    """A command line, and the files that are written into the folder before it runs there."""

    arguments: Sequence[str]
    files: Mapping[str, bytes] = field(default_factory=dict)


@dataclass(frozen=True)
class Outcome:
    """What became of a case: `code` is None where the child was killed by `signal` or did not answer in time.

    `events` are what was done that reading data never needs: unpickling, starting a process, opening a socket.
    """

    code: int | None
    out: str = ""
    err: str = ""
    signal: int | None = None
    timed_out: bool = False
    seconds: float = 0.0
    events: tuple[str, ...] = ()

    def ended_well(self, codes: Iterable[int]) -> bool:
        """Whether the child lived, said no more than an error of a few lines, and gave one of `codes`."""
        quiet = self.code == 0 or ("Traceback" not in self.err and self.err.count("\n") <= 3 and self.err != "")
        return self.code in set(codes) and quiet and not self.events


def outcomes(
    cases: Iterable[Case], folder: Path, *, memory: int = GIB, seconds: float = 20.0, function: str = RUN
) -> Iterator[Outcome]:
    """Yield the outcome of each case as it ends; what it wrote into `folder` is there until the next one is asked for.

    Parameters
    ----------
    folder : where the children run and the files of the cases are written.
    memory : bytes of address space beyond those of a child that has everything imported.
    seconds : how long a case may take, of the processor.
    function : "module:name" of what takes the arguments and returns an exit code.
    """
    if not sys.platform.startswith("linux"):
        import pytest  # not for the child

        pytest.skip("the limits of memory and time are those of Linux")
    for case in cases:
        for name, content in case.files.items():
            (folder / name).write_bytes(content)
        outcome = _child(memory).outcome(case, folder, function, seconds)
        if outcome.code is None:
            _CHILDREN.pop(memory).close()
        yield outcome


class _Child:
    def __init__(self, memory: int) -> None:
        self._said = tempfile.TemporaryFile()  # noqa: SIM115 - closed with the child; a pipe could fill up
        paths = [str(Path(__file__).parents[1]), *filter(None, [os.environ.get("PYTHONPATH")])]
        self._process = subprocess.Popen(
            [sys.executable, "-X", "faulthandler", __file__, str(memory)],
            env=_environment() | {"PYTHONPATH": os.pathsep.join(paths)},
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=self._said,
        )
        assert self._answer(_START_SECONDS / _WALL) is not None, self._last_words()

    def outcome(self, case: Case, folder: Path, function: str, seconds: float) -> Outcome:
        began = time.monotonic()
        asked = {"arguments": list(case.arguments), "folder": str(folder), "function": function}
        stream: Any = self._process.stdin
        with contextlib.suppress(BrokenPipeError):
            stream.write(json.dumps(asked).encode() + b"\n")
            stream.flush()
        answer = self._answer(seconds)
        took = time.monotonic() - began
        if answer is not None:
            return Outcome(answer["code"], answer["out"], answer["err"], None, False, took, tuple(answer["events"]))
        with contextlib.suppress(subprocess.TimeoutExpired):
            self._process.wait(0.0 if took >= seconds else 10.0)
        status = self._process.returncode
        # A child that left without an answer by an exit code of its own counts as killed by signal 0.
        return Outcome(None, "", self._last_words(), None if status is None else max(0, -status), status is None, took)

    def close(self) -> None:
        self._process.kill()
        self._process.communicate()
        self._said.close()

    def _answer(self, seconds: float) -> dict[str, Any] | None:
        stream: Any = self._process.stdout
        begin, end = self._processor(), time.monotonic() + seconds * _WALL
        while not select.select([stream], [], [], 1.0)[0]:
            if self._processor() > begin + seconds or time.monotonic() > end:
                return None
        line = stream.readline()
        return json.loads(line) if line.endswith(b"\n") else None

    def _processor(self) -> float:
        """Return the seconds of the processor that the child has taken."""
        with contextlib.suppress(OSError):
            *_, after = Path(f"/proc/{self._process.pid}/stat").read_text(encoding="ascii").rpartition(")")
            user, system = after.split()[11:13]
            return (int(user) + int(system)) / os.sysconf("SC_CLK_TCK")
        return 0.0

    def _last_words(self) -> str:
        self._said.seek(0)
        return self._said.read().decode("utf-8", "replace")[-4000:]


_CHILDREN: dict[int, _Child] = {}  # by their memory, the one used last at the end


def _child(memory: int) -> _Child:
    """Return the child with this limit, which is started if it does not wait yet."""
    found = _CHILDREN.pop(memory, None) or _Child(memory)
    _CHILDREN[memory] = found
    if len(_CHILDREN) > _MOST_CHILDREN:
        _CHILDREN.pop(next(iter(_CHILDREN))).close()
    return found


@atexit.register
def _close_all() -> None:
    for child in _CHILDREN.values():
        child.close()


def _environment() -> dict[str, str]:
    kept = {name: value for name, value in os.environ.items() if name not in {"HEADEVAL_DEBUG", "COLUMNS"}}
    # One arena and no threads of the matrix library: the address space is then what was asked for.
    return kept | {"OPENBLAS_NUM_THREADS": "1", "MALLOC_ARENA_MAX": "1", "PYTHONIOENCODING": "utf-8", "COLUMNS": "100"}


def _serve(memory: int) -> None:
    """Answer one line of JSON on stdin by one on what was stdout, until there is no more."""
    answers = os.fdopen(os.dup(1), "wb", buffering=0)
    os.dup2(2, 1)  # whatever C++ prints is kept apart from the answers
    sys.meta_path.insert(0, _WithoutPandas())
    _import_all()
    events: list[str] = []
    sys.addaudithook(lambda event, _: events.append(event) if event.startswith(_NEVER) else None)
    warnings.simplefilter("error")
    _limit(memory)
    _send(answers, {})
    for line in sys.stdin:
        asked = json.loads(line)
        os.chdir(asked["folder"])
        module, _, name = asked["function"].partition(":")
        call = getattr(importlib.import_module(module), name)
        events.clear()
        _send(answers, _answered(call, asked["arguments"]) | {"events": sorted(set(events))})


class _WithoutPandas:
    """Keeps pyarrow from importing pandas, as the command line does: it takes long, and room."""

    def find_spec(self, name: str, *_: object) -> None:
        if name == "pandas":
            raise ModuleNotFoundError("no pandas here", name=name)


def _answered(call: Callable[[list[str]], int], arguments: list[str]) -> dict[str, object]:
    out, err = (io.TextIOWrapper(io.BytesIO(), "utf-8", "backslashreplace", write_through=True) for _ in range(2))
    with contextlib.redirect_stdout(out), contextlib.redirect_stderr(err):
        code = call(arguments)
    said = (stream.buffer.getvalue().decode() for stream in (out, err))
    return {"code": int(code), "out": next(said), "err": next(said)}


def _import_all() -> None:
    """Import and start what commands import late: it is no part of the memory that a case takes."""
    import numpy as np
    import pyarrow as pa
    import pyarrow.compute as pc
    import pyarrow.csv
    import pyarrow.parquet
    import typer.main

    import headeval.files.schemas as schemas

    for name in ("headeval.cli.main", "reliability.independent_heads"):  # all that is called
        importlib.import_module(name)

    # The options are the same for every case: looking them up anew would be half of the time.
    typer.main.get_command = functools.cache(typer.main.get_command)
    schemas.validator("linear-head")
    pc.sum(pa.chunked_array([np.arange(1000.0)] * 64)).as_py()
    table = pa.table({str(column): np.arange(1000.0) for column in range(64)})
    stream = io.BytesIO()
    pyarrow.parquet.write_table(table, stream)
    pyarrow.parquet.read_table(stream)  # starts the threads, each of which reserves its stack


def _limit(memory: int) -> None:
    import resource

    with open("/proc/self/statm", encoding="ascii") as file:  # noqa: PTH123 - what is taken by now
        taken = int(file.read().split()[0]) * resource.getpagesize()
    resource.setrlimit(resource.RLIMIT_AS, (taken + memory, taken + memory))
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))


def _send(answers: BinaryIO, value: Mapping[str, object]) -> None:
    answers.write(json.dumps(value).encode() + b"\n")


if __name__ == "__main__":
    _serve(int(sys.argv[1]))
