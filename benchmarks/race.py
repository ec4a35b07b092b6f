"""Programs that run beside each other, one at a time and in turn, and what each took.

Every contestant is a process of its own, with its own threads and its own peak of memory. It loads the data, says that
it is ready, and then runs once for every line it is sent; `headeval` and scikit-learn never share a process.
"""

import json
import os
import statistics
import subprocess
import sys
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

HERE = Path(__file__).resolve().parent
THREADS = ("OPENBLAS_NUM_THREADS", "OMP_NUM_THREADS", "MKL_NUM_THREADS", "BLIS_NUM_THREADS", "VECLIB_MAXIMUM_THREADS")
ONE_THREAD = {"OPENBLAS_NUM_THREADS": "1", "MKL_NUM_THREADS": "1"}  # headeval runs threads of its own
RUN, END = "run", "end"
RSS_UNIT = 1 if sys.platform == "darwin" else 1024  # of what the system calls ru_maxrss


@dataclass(slots=True)
class Result:
    """What a contestant's runs took, in seconds by the clock and of its processors, and what it told at the end."""

    name: str
    seconds: list[float] = field(default_factory=list)
    cpu: list[float] = field(default_factory=list)
    facts: dict[str, Any] = field(default_factory=dict)
    peak: int = 0

    @property
    def best(self) -> float:
        """The shortest run."""
        return min(self.seconds)

    @property
    def median(self) -> float:
        """The run in the middle."""
        return statistics.median(self.seconds)


def environ(extra: Mapping[str, str] | None = None) -> dict[str, str]:
    """Return the environment without anybody's settings of threads, so that each library takes its own."""
    return {name: value for name, value in os.environ.items() if name not in THREADS} | dict(extra or {})


class Contestant:
    """A process that has loaded its data and waits.

    Parameters
    ----------
    name : as the table shows it.
    command : the script below benchmarks/ and its arguments.
    own : whether it is headeval's, whose BLAS gets one thread.
    threads : for all libraries; None for what each takes by itself.
    """

    def __init__(self, name: str, command: Sequence[str], *, own: bool = False, threads: int | None = None) -> None:
        self.result = Result(name)
        held = dict.fromkeys(THREADS, str(threads)) if threads else ONE_THREAD if own else {}
        self._process = subprocess.Popen(  # noqa: S603 - a script of this folder
            [sys.executable, str(HERE / command[0]), *command[1:]],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
            env=environ(held),
        )
        self._answer()

    def run(self) -> None:
        """Let it run once."""
        self._ask(RUN)
        answer = self._answer()
        self.result.seconds.append(answer["seconds"])
        self.result.cpu.append(answer["cpu"])

    def end(self) -> Result:
        """Let it tell what it found, and leave."""
        self._ask(END)
        self.result.facts = self._answer()
        self.result.peak = int(self.result.facts.pop("peak"))
        self._process.communicate()
        return self.result

    def stop(self) -> None:
        """End the process, whatever it does."""
        if self._process.poll() is None:
            self._process.kill()
        self._process.communicate()

    def _ask(self, word: str) -> None:
        if self._process.stdin is not None:
            self._process.stdin.write(f"{word}\n")
            self._process.stdin.flush()

    def _answer(self) -> dict[str, Any]:
        line = self._process.stdout.readline() if self._process.stdout is not None else ""
        if not line:
            self._process.communicate()
            raise SystemExit(f"{self.result.name}: ended with code {self._process.returncode}")
        answer: dict[str, Any] = json.loads(line)
        return answer


def race(contestants: Sequence[Contestant], *, rounds: int, patience: float) -> dict[str, Result]:
    """Run all in turn and return their results by name.

    Parameters
    ----------
    rounds : how often each runs, unless it has taken more than `patience` seconds by then.
    """
    try:
        for number in range(rounds):
            for one in contestants:
                if number == 0 or sum(one.result.seconds) < patience:
                    one.run()
        return {one.result.name: one.end() for one in contestants}
    finally:
        for one in contestants:
            one.stop()


def timed_commands(result: Result, commands: Sequence[Sequence[str]], *, cwd: Path, own: bool = False) -> None:
    """Run whole programs one after the other, and note their time together and the largest peak of memory."""
    seconds = cpu = 0.0
    for command in commands:
        with (cwd / "printed.txt").open("w+") as printed:
            begun = time.perf_counter()
            process = subprocess.Popen(  # noqa: S603 - commands of the benchmarks
                command, cwd=cwd, stdout=printed, stderr=subprocess.STDOUT, env=environ(ONE_THREAD if own else None)
            )
            _, status, usage = os.wait4(process.pid, 0)
            seconds += time.perf_counter() - begun
            cpu += usage.ru_utime + usage.ru_stime
            process.returncode = os.waitstatus_to_exitcode(status)
            if process.returncode:
                printed.seek(0)
                raise SystemExit(f"{' '.join(command)}: exit code {process.returncode}\n{printed.read()}")
        result.peak = max(result.peak, usage.ru_maxrss * RSS_UNIT)
    result.seconds.append(seconds)
    result.cpu.append(cpu)


def script(name: str, *arguments: object) -> None:
    """Run a script of this folder to its end."""
    command = [sys.executable, str(HERE / name), *map(str, arguments)]
    subprocess.run(command, check=True, env=environ())  # noqa: S603 - a script of this folder


def output_of(name: str, *arguments: object) -> str:
    """Return what a script of this folder prints."""
    command = [sys.executable, str(HERE / name), *map(str, arguments)]
    return subprocess.run(command, check=True, env=environ(), stdout=subprocess.PIPE, text=True).stdout  # noqa: S603


def told(text: str) -> None:
    """Say on stderr what is going on, as a run takes minutes."""
    print(text, file=sys.stderr, flush=True)
