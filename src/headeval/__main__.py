"""The entry point: `headeval` and `python -m headeval`."""

import os
import signal
import sys
from types import FrameType

# Read by the matrix library under numpy when it is loaded: it must not start threads beside headeval's own, and
# with one thread a call it gives the same bits on any number of processors.
BLAS_THREADS = ("OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS", "VECLIB_MAXIMUM_THREADS", "BLIS_NUM_THREADS")
TERMINATED = 128 + signal.SIGTERM


def main() -> None:
    """Run the command line and leave with its exit code, also when interrupted before it has been loaded."""
    signal.signal(signal.SIGTERM, _terminated)
    for name in BLAS_THREADS:
        os.environ[name] = "1"
    try:
        from headeval.cli.main import main as run

        run()
    except KeyboardInterrupt:
        os._exit(130)  # nothing has begun, and nothing is to be said


def _terminated(number: int, frame: FrameType | None) -> None:  # noqa: ARG001 - the form of a signal handler
    """Leave by an exception, so that unfinished outputs are removed."""
    sys.exit(TERMINATED)


if __name__ == "__main__":
    main()
