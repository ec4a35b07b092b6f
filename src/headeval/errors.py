"""The errors a user can cause; each class carries the exit code of the command line."""


class HeadevalError(Exception):
    """Something in the user's input, not a bug; `str(error)` is the one or two lines shown."""

    exit_code = 70


class UsageError(HeadevalError):
    """The command line asks for something that does not fit together."""

    exit_code = 2


class DataError(HeadevalError):
    """A table is missing, unreadable or holds what cannot be evaluated."""

    exit_code = 3


class HeadError(HeadevalError):
    """A head file is missing, unreadable, invalid, or made for another embedding model."""

    exit_code = 4


class FitError(HeadevalError):
    """The data allow no usable fit or calibration."""

    exit_code = 5


class OutputError(HeadevalError):
    """An output cannot be written, or exists and may not be replaced."""

    exit_code = 6
