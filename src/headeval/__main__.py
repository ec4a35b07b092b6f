"""`python -m headeval` is the same as `headeval`."""

from headeval.cli.main import main

if __name__ == "__main__":
    main()
