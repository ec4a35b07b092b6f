"""What every target promises in the same way: a folder to work in, and messages that can be shown."""

import atexit
import shutil
import tempfile
import unicodedata
from functools import cache
from pathlib import Path

LONGEST_MESSAGE = 2_000


@cache
def scratch() -> Path:
    """Return a folder of this process, which is gone at its end."""
    folder = tempfile.mkdtemp(prefix="headeval-fuzz-")
    atexit.register(shutil.rmtree, folder, ignore_errors=True)
    return Path(folder)


def check_message(message: str, *, names: Path | None = None) -> None:
    """See that an error says its say in one or two lines of text that no terminal takes for a command."""
    lines = message.split("\n")
    assert message.strip(), "an error without words"
    assert len(lines) <= 2, f"an error of {len(lines)} lines: {message!r}"
    assert len(message) <= LONGEST_MESSAGE, f"an error of {len(message)} characters: {message!r}"
    controls = [char for line in lines for char in line if unicodedata.category(char) in {"Cc", "Cf", "Cs", "Zl", "Zp"}]
    assert not controls, f"an error with control characters: {message!r}"
    assert names is None or str(names) in message, f"an error that does not name the file: {message!r}"
