"""One target hunted in this process: inputs are made from others, and the first that breaks a promise is kept."""

import hashlib
import importlib
import mmap
import os
import pkgutil
import random
import struct
import tempfile
import time
import traceback
from collections.abc import Callable, Iterable, Sequence
from pathlib import Path
from typing import Protocol

FINDINGS = Path(__file__).parent / "findings"
LONGEST = 4096  # bytes of an input
_LONGEST_WORD = 64  # of a dictionary of libFuzzer
_SECONDS_TO_MINIMISE = 20
_HEADER = struct.Struct("<QI")


class Target(Protocol):
    """What a module of `targets` provides."""

    WORDS: Sequence[bytes]

    def seeds(self) -> list[bytes]:
        """Return inputs to begin with."""

    def check(self, data: bytes) -> None:
        """Raise where `data` breaks a promise."""


class Current:
    """The input being tried and a counter, in a file that the parent sees too: it is left when the process dies."""

    def __init__(self, path: Path) -> None:
        path.write_bytes(bytes(_HEADER.size + LONGEST))
        with path.open("r+b") as file:
            self._map = mmap.mmap(file.fileno(), 0)
        self._count = 0

    def note(self, data: bytes) -> None:
        self._count += 1
        self._map[_HEADER.size : _HEADER.size + len(data)] = data
        self._map[: _HEADER.size] = _HEADER.pack(self._count, len(data))

    @staticmethod
    def read(path: Path) -> tuple[int, bytes]:
        """Return how many inputs were tried and the last of them."""
        content = path.read_bytes() if path.exists() else b""
        if len(content) < _HEADER.size:
            return 0, b""
        count, length = _HEADER.unpack_from(content)
        return count, content[_HEADER.size : _HEADER.size + length]


def names() -> list[str]:
    """Return the names of all targets."""
    return sorted(module.name for module in pkgutil.iter_modules([str(Path(__file__).parent / "targets")]))


def load(name: str) -> Target:
    """Import a target, and with it what it tests."""
    target: Target = importlib.import_module(f"fuzz.targets.{name}")
    return target


def kept(name: str) -> list[Path]:
    """Return the findings of a target, of this run and of earlier ones."""
    return sorted(path for path in (FINDINGS / name).glob("*") if path.is_file())


def mutated(rng: random.Random, corpus: Sequence[bytes], words: Sequence[bytes]) -> bytes:
    """Return an input of the corpus, changed in a few places."""
    data = bytearray(rng.choice(corpus))
    for _ in range(rng.randint(1, 4)):
        at, length = rng.randint(0, len(data)), rng.choice((0, 0, 1, 2, 8, 30))
        other = rng.choice(corpus)
        begin = rng.randint(0, len(other))
        piece = rng.choice((rng.choice(words), rng.randbytes(1), b"", other[begin : begin + rng.randint(1, 40)]))
        data[at : at + length] = piece
    return bytes(data[:LONGEST])


def hunt(name: str, *, seconds: float, seed: int, engine: str, current: Current) -> int:
    """Try inputs for some time; return 1 when a finding was kept, else 0."""
    if engine == "atheris":
        return _hunt_guided(name, seconds, seed, current)
    target, rng = load(name), random.Random(seed)
    corpus = [*target.seeds(), *(path.read_bytes() for path in kept(name))]
    end = time.monotonic() + seconds
    tries: Iterable[bytes] = corpus
    while time.monotonic() < end:
        for data in tries:
            current.note(data[:LONGEST])
            if _fails(target.check, data):
                return keep(name, data, target.check)
        tries = [mutated(rng, corpus, target.WORDS)]
    return 0


def _hunt_guided(name: str, seconds: float, seed: int, current: Current) -> int:
    """Let libFuzzer choose the inputs, by the lines of headeval that they reach."""
    import atheris  # type: ignore[import-untyped, unused-ignore]  # without types, or not installed

    with atheris.instrument_imports(include=["headeval"], enable_loader_override=False):
        target = load(name)
        for module in pkgutil.walk_packages(importlib.import_module("headeval").__path__, "headeval."):
            if not module.name.startswith(("headeval.cluster", "headeval.__main__")):
                importlib.import_module(module.name)

    def one(data: bytes) -> None:
        current.note(data)
        if _fails(target.check, data):
            os._exit(keep(name, data, target.check))

    with tempfile.TemporaryDirectory() as folder:
        corpus = Path(folder, "corpus")
        corpus.mkdir()
        for data in (*target.seeds(), *(path.read_bytes() for path in kept(name))):
            (corpus / hashlib.sha256(data).hexdigest()).write_bytes(data)
        words = Path(folder, "words")
        short = [word for word in target.WORDS if len(word) <= _LONGEST_WORD]
        words.write_text("".join(f'"{_escaped(word)}"\n' for word in short), encoding="ascii")
        # Hanging and memory are the parent's business, who keeps the input.
        options = {"max_total_time": int(seconds), "seed": seed or 1, "max_len": LONGEST, "dict": words}
        options |= {"timeout": 10**6, "rss_limit_mb": 0, "verbosity": 0, "artifact_prefix": f"{folder}/"}
        atheris.Setup(["fuzz", *(f"-{key}={value}" for key, value in options.items()), str(corpus)], one)
        atheris.Fuzz()  # ends the process
    return 0


def _escaped(word: bytes) -> str:
    return "".join(f"\\x{byte:02x}" for byte in word)


def _fails(check: Callable[[bytes], None], data: bytes) -> tuple[object, ...]:
    """Return what tells one failure from another: the error and where it was raised; nothing where all is well."""
    try:
        check(data)
    except Exception as error:  # whatever it is, it is a finding
        frames = traceback.extract_tb(error.__traceback__)
        return (type(error), *((frame.filename, frame.lineno) for frame in frames[-1:]))
    return ()


def keep(name: str, data: bytes, check: Callable[[bytes], None] | None = None) -> int:
    """Write a finding, as short as it can be made, and say how to see it again; returns 1."""
    if check is not None:
        data = minimised(data, check)
    path = FINDINGS / name / hashlib.sha256(data).hexdigest()[:12]
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(data)
    print(f"{name}: a promise is broken. To see it again: python tests/fuzz/run.py --replay {_shown(path)}", flush=True)
    return 1


def minimised(data: bytes, check: Callable[[bytes], None]) -> bytes:
    """Return the shortest input found that fails in the same place, by leaving out pieces."""
    failure, end = _fails(check, data), time.monotonic() + _SECONDS_TO_MINIMISE
    size = len(data)
    while size:
        at = 0
        while at < len(data) and time.monotonic() < end:
            shorter = data[:at] + data[at + size :]
            if _fails(check, shorter) == failure:
                data = shorter
            else:
                at += size
        size = min(size, len(data)) // 2
    return data


def _shown(path: Path) -> Path:
    return path.relative_to(Path.cwd()) if path.is_relative_to(Path.cwd()) else path
