"""The entry point: `headeval` and `python -m headeval`."""

import os

# Read by the matrix library under numpy when it is loaded: it must not start threads beside headeval's own, and
# with one thread a call it gives the same bits on any number of processors.
BLAS_THREADS = ("OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS", "VECLIB_MAXIMUM_THREADS", "BLIS_NUM_THREADS")


def main() -> None:
    """Run the command line and leave with its exit code, also when interrupted before it has been loaded."""
    try:
        from headeval.cli import signals  # first and tiny: until then Python answers Ctrl-C, by a traceback

        signals.install()
    except (KeyboardInterrupt, RuntimeError):  # the latter is what a class becomes that is interrupted in its making
        os._exit(130)
    for name in BLAS_THREADS:
        os.environ[name] = "1"
    from headeval.cli.main import main as run

    run()


if __name__ == "__main__":
    main()
