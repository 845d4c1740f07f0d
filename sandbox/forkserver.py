"""The fork server's process, small and with one thread: ``python -m autotest_env.sandbox.forkserver FOLDER FORBIDDEN``.

Standard input is a Unix socket; one request (an `Allowance` and two descriptors) at a time, one answer each, until it
closes. Where there are PID namespaces it is two processes; the outer one only waits, so it imports next to nothing.
"""

import os
import socket
import sys
from importlib import import_module
from pathlib import Path

from autotest_env.sandbox import namespaces


def main(folder: Path, forbidden: Path) -> None:
    """Enter namespaces, then serve until the socket on standard input closes."""
    spaces = namespaces.enter()
    with socket.socket(fileno=os.dup(0)) as control:
        devnull = os.open(os.devnull, os.O_RDWR)
        os.dup2(devnull, 0)
        os.close(devnull)
        import_module("autotest_env.sandbox.serving").serve(control, folder, forbidden, spaces)


if __name__ == "__main__":
    main(Path(sys.argv[1]), Path(sys.argv[2]))
