"""A process in which no socket can be opened: not by Python, not by a library in C++.

Run by itself (`python -m reliability.no_network_child FOLDER few|all`) it is the child of a test: every command on the
tables in the folder. In place of the folder, `python` and `library` open a socket, to see that it ends the process.
"""

import ctypes
import os
import platform
import struct
import sys
from pathlib import Path

# Each command once, and every kind of document.
FEW = (
    "fit train -o h.json --embedding-model m",
    "score test --head h.json -o s.parquet",
    "calibrate test --head h.json -o c.json",
    "threshold test --head h.json -o t.json --require fpr<=0.9",
    "report test --head c.json --baseline h.json --resamples 9 --html p.html --card p.md --junit p.xml --require n>1",
)
STOPPED = 99  # the exit code where Python opened a socket; a library that does dies by the signal SIGSYS
# Of the processors: the number of the system call `socket`, and what the kernel calls them.
_MACHINES = {"x86_64": (41, 0xC000003E), "aarch64": (198, 0xC00000B7)}
_LOAD, _JUMP_IF_EQUAL, _RETURN = 0x20, 0x15, 0x06
_ALLOW, _KILL_PROCESS = 0x7FFF0000, 0x80000000
_NO_NEW_PRIVILEGES, _SET_FILTER, _FILTER = 38, 22, 2


class _Program(ctypes.Structure):
    _fields_ = (("length", ctypes.c_ushort), ("filter", ctypes.c_char_p))


def stop_sockets_of_python() -> None:
    """End the process at the first socket, or name looked up, by the interpreter; nothing can catch that."""

    def stop(event: str, arguments: tuple[object, ...]) -> None:
        if event.startswith("socket."):
            os.write(2, f"{event} {arguments[1:]}\n".encode())
            os._exit(STOPPED)

    sys.addaudithook(stop)


def kill_at_socket() -> bool:
    """Let the kernel kill the process at the system call `socket`; whether it can be asked to."""
    call, machine = _MACHINES.get(platform.machine(), (0, 0))
    if not sys.platform.startswith("linux") or not call:
        return False
    instructions = [  # load the machine; another one is let alone; load the call; only `socket` kills
        (_LOAD, 0, 0, 4),
        (_JUMP_IF_EQUAL, 0, 3, machine),
        (_LOAD, 0, 0, 0),
        (_JUMP_IF_EQUAL, 0, 1, call),
        (_RETURN, 0, 0, _KILL_PROCESS),
        (_RETURN, 0, 0, _ALLOW),
    ]
    code = b"".join(struct.pack("=HBBI", *instruction) for instruction in instructions)
    program = _Program(len(instructions), code)
    library = ctypes.CDLL(None, use_errno=True)
    if library.prctl(_NO_NEW_PRIVILEGES, 1, 0, 0, 0):
        return False
    return bool(library.prctl(_SET_FILTER, _FILTER, ctypes.byref(program), 0, 0) == 0)


def main() -> None:
    what, choice = sys.argv[1:]
    stop_sockets_of_python()
    print("killed by the kernel" if kill_at_socket() else "watched by Python alone", flush=True)
    if what == "python":
        import socket

        socket.socket()
    elif what == "library":
        ctypes.CDLL(None).socket(2, 1, 0)
    else:
        # Only now: nothing that is imported may open a socket either.
        from reliability import every_command

        plots = "report test --head h.json --embedding-model m --resamples 0 --plots plots"
        every_command.made(Path(what), FEW if choice == "few" else (*every_command.ALL, plots))


if __name__ == "__main__":
    main()
