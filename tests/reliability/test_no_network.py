"""headeval works without a network, and never asks for one: no command on local files opens a socket."""

import json
import os
import re
import shutil
import signal
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from headeval.files.schemas import load_schema, validator
from reliability.every_command import INPUTS, tables, write
from reliability.no_network_child import STOPPED

TESTS = Path(__file__).parents[1]
SCHEMAS = sorted((TESTS.parent / "schemas").glob("*.json"))
SECONDS = 300
# Namespaces, which nobody fetches; the home of the page's charts in the comment that has their licence, and that of
# the program that drew the plots.
NAMES = (
    "http://www.w3.org/",
    "http://purl.org/dc/",
    "http://creativecommons.org/ns#",
    "https://json-schema.org/draft/2020-12/schema",
    "https://github.com/leeoniya/uPlot",
    "https://matplotlib.org/",
)
WITHOUT_INTERFACE = ("unshare", "-rn")


def child(what: str, choice: str, *before: str) -> subprocess.CompletedProcess[str]:
    """Run a process that cannot open sockets."""
    environment = os.environ | {"PYTHONPATH": str(TESTS), "OPENBLAS_NUM_THREADS": "1", "MPLBACKEND": "agg"}
    command = [*before, sys.executable, "-m", "reliability.no_network_child", what, choice]
    return subprocess.run(command, env=environment, capture_output=True, text=True, check=False, timeout=SECONDS)


@pytest.fixture(scope="module")
def namespace() -> tuple[str, ...]:
    """What starts a process in a network of its own, that has no interface; empty where the system forbids it."""
    if shutil.which("unshare") is None:
        return ()
    done = subprocess.run([*WITHOUT_INTERFACE, "true"], capture_output=True, check=False, timeout=SECONDS)
    return WITHOUT_INTERFACE if done.returncode == 0 else ()


def test_a_socket_of_python_ends_the_child() -> None:
    """Else a child that ends well would say nothing."""
    done = child("python", "few")
    assert done.returncode == STOPPED
    assert done.stderr.startswith("socket.__new__")


def test_a_socket_of_a_library_kills_the_child() -> None:
    done = child("library", "few")
    if "watched by Python alone" in done.stdout:
        pytest.skip("this system does not let a process forbid itself sockets")
    assert done.returncode == -signal.SIGSYS


def addresses(folder: Path) -> Iterator[tuple[str, str]]:
    """Yield the file and the address of whatever a browser or a reader could be led to by an output."""
    for path in sorted(folder.rglob("*")):
        if path.is_file() and path.relative_to(folder).parts[0] not in INPUTS:
            if path.suffix in {".parquet", ".png"}:
                continue  # no text that anybody is led by; a picture names the program that drew it
            text = path.read_bytes().decode("utf-8", "replace")
            for found in re.findall(r"""(?:https?:|wss?:|ftp:)?//[\w-]+\.[\w.-]+[^\s"'<>)]*""", text):
                yield path.name, found


def without_network(folder: Path, choice: str, namespace: tuple[str, ...]) -> str:
    """Run commands and look at what they wrote; returns what watched over them beside Python, for the report."""
    write(folder, tables())
    done = child(str(folder), choice, *namespace)
    assert done.returncode == 0, done.stderr[-2000:]
    led_to = [(name, address) for name, address in addresses(folder) if not address.startswith(NAMES)]
    assert led_to == []
    killed = "killed by the kernel" in done.stdout
    assert killed or "watched by Python alone" in done.stdout
    guards = ["a filter of system calls"] * killed + ["a network without any interface"] * bool(namespace)
    return " and ".join(guards)


def note(guards: str, record_property: Callable[[str, object], None]) -> None:
    """Keep what the test was watched by in the report; by Python alone is not enough to have passed."""
    record_property("guards", guards or "Python alone")
    if not guards:
        pytest.skip("no socket of Python was opened; those of libraries cannot be watched on this system")


def test_commands_open_no_socket_and_lead_nowhere(
    tmp_path: Path, namespace: tuple[str, ...], record_property: Callable[[str, object], None]
) -> None:
    """Under an audit hook and a filter of system calls or without any interface, or both where the system has both."""
    note(without_network(tmp_path, "few", namespace), record_property)


@pytest.mark.slow
def test_every_command_opens_no_socket_and_leads_nowhere(
    tmp_path: Path, namespace: tuple[str, ...], record_property: Callable[[str, object], None]
) -> None:
    """Softmax heads, folders of heads, streamed fits and plots, too."""
    note(without_network(tmp_path, "all", namespace), record_property)


def references(schema: object) -> Iterator[str]:
    if isinstance(schema, dict):
        yield from (value for key, value in schema.items() if key in {"$ref", "$dynamicRef", "$id"})
        for value in schema.values():
            yield from references(value)
    elif isinstance(schema, list):
        for value in schema:
            yield from references(value)


@pytest.mark.parametrize("path", SCHEMAS, ids=lambda path: path.name)
def test_a_schema_refers_to_its_own_parts_and_to_schemas_that_are_here(path: Path) -> None:
    """A validator needs none from elsewhere, whichever it is: names are URNs, which no program can fetch."""
    schema = json.loads(path.read_bytes())
    here = {json.loads(other.read_bytes())["$id"] for other in SCHEMAS}
    assert schema["$id"].startswith("urn:")
    for reference in references(schema):
        name, _, _ = reference.partition("#")
        assert name in {"", *here}, reference


@pytest.mark.parametrize("name", [path.name.removesuffix(".schema.json") for path in SCHEMAS])
def test_a_validator_resolves_everything_without_a_socket(name: str) -> None:
    """The whole suite runs with sockets refused (tests/conftest.py)."""
    found = list(validator(name).iter_errors(dict.fromkeys(load_schema(name)["properties"])))
    assert found


GUARDED = {
    "tests/core/test_calm.py": "def test_calm():\n    import socket\n    for one in socket.socketpair(): one.close()\n",
    "tests/core/test_socket.py": (
        "def test_socket():\n    import socket\n    try: socket.socket()\n    except OSError: pass\n"
    ),
    "tests/core/test_name.py": (
        "def test_name():\n    import socket\n    try: socket.getaddrinfo('a.invalid', 80)\n    except OSError: pass\n"
    ),
    "tests/cluster/test_local.py": (
        "def test_local():\n    import socket\n    with socket.socket() as one: one.bind(('127.0.0.1', 0))\n"
        "    socket.getaddrinfo('127.0.0.1', 80)\n"
    ),
    "tests/cluster/test_away.py": (
        "def test_away():\n    import socket\n    with socket.socket(type=socket.SOCK_DGRAM) as one:\n"
        "        try: one.sendto(b'', ('192.0.2.1', 9))\n        except OSError: pass\n"
    ),
}


def test_the_suite_itself_is_guarded(tmp_path: Path) -> None:
    """Those tests fail that use the network, or a socket where none is needed, although they hide the error."""
    for name, content in GUARDED.items():
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / name).write_text(content)
    shutil.copy(TESTS / "conftest.py", tmp_path / "tests")
    command = [sys.executable, "-m", "pytest", "-q", "--import-mode=importlib", "-p", "no:cacheprovider", "tests"]
    done = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, check=False, timeout=SECONDS)
    failed = re.findall(r"^ERROR (\S+)::", done.stdout, re.MULTILINE)
    assert sorted(failed) == ["tests/cluster/test_away.py", "tests/core/test_name.py", "tests/core/test_socket.py"]
    assert "5 passed, 3 errors" in done.stdout
