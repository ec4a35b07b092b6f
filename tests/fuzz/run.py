"""Hunt for inputs that break a promise of headeval; `make fuzz` runs this.

    python tests/fuzz/run.py                          every target, 60 seconds each
    python tests/fuzz/run.py --seconds 600 heads      one target for ten minutes
    python tests/fuzz/run.py --replay FILE            one finding again, with its traceback

With atheris (`pip install -e '.[fuzz]'`) the inputs are chosen by the lines they reach, without it at random. A finding
is made as short as it gets and written to tests/fuzz/findings/TARGET/, where every test run tries it again: put the
mistake right, give the file a name that says what it was, and commit both. Exit code 1 where there is a finding.
"""

import argparse
import importlib.util
import os
import resource
import subprocess
import sys
import tempfile
import time
import warnings
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

from fuzz import hunting

_LONGEST_TRY = 60  # seconds for one input before it counts as hanging
_MOST_BYTES = 8 * 2**30  # of address space for a target
_LINES_SHOWN = 20  # of what a process said before it died
_SHARED_MEMORY = Path("/dev/shm")  # noqa: S108 - much is written, and nothing is kept


def main() -> int:
    """Run what the command line asks for; returns the exit code."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("targets", nargs="*", metavar="target", help=f"of {', '.join(hunting.names())}; all of them")
    parser.add_argument("--seconds", type=float, default=60, help="for each target (60)")
    parser.add_argument("--seed", type=int, default=int(time.time()), help="of the choices (the time)")
    parser.add_argument("--engine", choices=("atheris", "random"), help="atheris where it is installed")
    parser.add_argument("--replay", type=Path, metavar="FILE", help="a finding, in the folder of its target")
    parser.add_argument("--child", type=Path, help=argparse.SUPPRESS)
    asked = parser.parse_args()
    if unknown := {*asked.targets} - {*hunting.names()}:
        parser.error(f"no target {', '.join(sorted(unknown))}; there are {', '.join(hunting.names())}")
    warnings.simplefilter("error")
    if asked.replay is not None:
        hunting.load(asked.replay.resolve().parent.name).check(asked.replay.read_bytes())
        print("every promise is kept")
        return 0
    engine = asked.engine or ("atheris" if importlib.util.find_spec("atheris") else "random")
    if asked.child is not None:
        resource.setrlimit(resource.RLIMIT_AS, (_MOST_BYTES, _MOST_BYTES))
        current = hunting.Current(asked.child)
        return hunting.hunt(asked.targets[0], seconds=asked.seconds, seed=asked.seed, engine=engine, current=current)
    print(f"engine {engine}, seed {asked.seed}, {asked.seconds:g} s for each target", flush=True)
    found = [_watch(name, asked.seconds, asked.seed, engine) for name in asked.targets or hunting.names()]
    return int(any(found))


def _watch(name: str, seconds: float, seed: int, engine: str) -> bool:
    """Hunt a target in a process of its own, which may hang or die; returns whether there is a finding."""
    with tempfile.TemporaryDirectory(dir=_SHARED_MEMORY if _SHARED_MEMORY.is_dir() else None) as folder:
        current, log = Path(folder, "current"), Path(folder, "log")
        command = [sys.executable, __file__, name, "--seconds", str(seconds), "--seed", str(seed), "--engine", engine]
        with log.open("wb") as stderr:
            # The child may end without tidying up: all that it writes is in this folder.
            environment = {**os.environ, "TMPDIR": folder}
            child = subprocess.Popen([*command, "--child", str(current)], stderr=stderr, env=environment)
            hanging = _hangs(child, current)
        tried, last = hunting.Current.read(current)
        if child.returncode not in (0, 1) or hanging or not tried:
            lines = log.read_text(encoding="utf-8", errors="backslashreplace").splitlines()
            print("\n".join(lines[-_LINES_SHOWN:]))
            print(f"{name}: {f'no answer in {_LONGEST_TRY} s' if hanging else f'ended with {child.returncode}'}")
            hunting.keep(name, last)
            return True
    print(f"{name}: {tried:,} inputs tried{', one finding' if child.returncode else ''}", flush=True)
    return child.returncode == 1


def _hangs(child: subprocess.Popen[bytes], current: Path) -> bool:
    """Wait for the end; where the same input is tried for too long, end it and return True."""
    count, since = 0, time.monotonic()
    while True:
        try:
            child.wait(timeout=1)
        except subprocess.TimeoutExpired:
            now = hunting.Current.read(current)[0]
            if now != count or now == 0:
                count, since = now, time.monotonic()
            elif time.monotonic() - since > _LONGEST_TRY:
                child.kill()
                child.wait()
                return True
        else:
            return False


if __name__ == "__main__":
    sys.exit(main())
