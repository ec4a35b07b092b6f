"""Print the lowest version that pyproject.toml allows of each run-time dependency, as pip constraints."""

import re
import sys
import tomllib
from pathlib import Path

PYPROJECT = Path(__file__).resolve().parent.parent / "pyproject.toml"


def lowest(requirement: str) -> str:
    """Return `name==version` for `name>=version`; what has no lower bound cannot be tested and is an error."""
    found = re.fullmatch(r"([A-Za-z0-9._-]+)\s*>=\s*([0-9][0-9a-z.]*)(\s*,.*)?", requirement)
    if found is None:
        sys.exit(f"pyproject.toml: dependency {requirement!r} has no lower bound; expected name>=version")
    return f"{found[1]}=={found[2]}"


if __name__ == "__main__":
    with PYPROJECT.open("rb") as file:
        dependencies = tomllib.load(file)["project"]["dependencies"]
    print("\n".join(lowest(requirement) for requirement in dependencies))
