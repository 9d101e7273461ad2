"""The ``ottla`` command in processes that need not import it: they are forked from one that has imported it.

A short command spends most of its CPU time, 0.3 s, on Python's start and imports, and the tests of this folder run hundreds.
Otherwise a forked command is like any other process: it has its own arguments, environment, folder, pipes, signals and
exit status. :meth:`Command.start` and other folders test that ``python -m ottla`` itself starts.

For each command a JSON object with ``arguments``, ``environment`` and ``folder`` is sent over the socket, together with the
command's three streams; the responses are the process id and, when it has ended, its status, each as a line.
"""

from __future__ import annotations

import importlib
import json
import os
import pkgutil
import socket
import subprocess
import sys
import threading
import time
from collections.abc import Mapping
from contextlib import suppress

_MOST_BYTES = 1 << 20


class Forkserver:
    """Runs commands one at a time; started by the process of the tests, and ends with it."""

    def __init__(self) -> None:
        self._socket, theirs = socket.socketpair()
        with theirs:
            self._process = subprocess.Popen(
                [sys.executable, "-m", __name__, str(theirs.fileno())],
                pass_fds=[theirs.fileno()],
                # A pipe, because Python looks at its streams when it starts.
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                stderr=subprocess.PIPE,
                env=os.environ | {"PYTHONIOENCODING": "utf-8"},
            )
        self._answers = self._socket.makefile("rb")

    def close(self) -> None:
        self._answers.close()
        self._socket.close()
        self._process.communicate()

    def run(
        self, arguments: tuple[str, ...], given: bytes, environment: Mapping[str, str], limit_s: float
    ) -> subprocess.CompletedProcess[bytes]:
        """As ``subprocess.run`` of ``ottla`` with these arguments, its output captured."""
        streams = [os.pipe() for _ in range(3)]
        (to_read, to_write), out, err = streams
        command = {"arguments": arguments, "environment": dict(environment), "folder": os.getcwd()}
        theirs = [to_read, out[1], err[1]]
        socket.send_fds(self._socket, [json.dumps(command).encode()], theirs)
        for descriptor in theirs:
            os.close(descriptor)
        process_id = int(self._answers.readline())
        said: dict[int, bytes] = {}
        threads = [threading.Thread(target=_write, args=(to_write, given))]
        threads += [threading.Thread(target=_read, args=(end, said)) for end in (out[0], err[0])]
        for thread in threads:
            thread.start()
        late = threading.Timer(limit_s, os.kill, (process_id, 9))
        late.start()
        status = int(self._answers.readline())
        late.cancel()
        for thread in threads:
            thread.join()
        return subprocess.CompletedProcess(arguments, status, said[out[0]], said[err[0]])


def _write(descriptor: int, given: bytes) -> None:
    with suppress(BrokenPipeError), open(descriptor, "wb") as stream:
        stream.write(given)


def _read(descriptor: int, said: dict[int, bytes]) -> None:
    with open(descriptor, "rb") as stream:
        said[descriptor] = stream.read()


def serve(asking: socket.socket) -> None:
    """Fork for each command; returns only in the forked processes, which run the commands. Ends with the tests."""
    while True:
        message, streams, _, _ = socket.recv_fds(asking, _MOST_BYTES, 3)
        if not message:
            sys.exit()
        command = json.loads(message)
        process_id = os.fork()
        if process_id == 0:
            asking.close()
            _become(command, streams)
            return
        for stream in streams:
            os.close(stream)
        asking.sendall(b"%d\n" % process_id)
        asking.sendall(b"%d\n" % os.waitstatus_to_exitcode(os.waitpid(process_id, 0)[1]))


def _become(command: dict[str, object], streams: list[int]) -> None:
    for number, stream in enumerate(streams):
        os.dup2(stream, number)
        os.close(stream)
    environment, arguments, folder = command["environment"], command["arguments"], command["folder"]
    assert isinstance(environment, dict) and isinstance(arguments, list) and isinstance(folder, str)
    os.environ.clear()
    os.environ.update(environment)
    time.tzset()
    os.chdir(folder)
    sys.argv = ["ottla", *arguments]


def _import_all(package: str) -> None:
    for module in pkgutil.walk_packages(importlib.import_module(package).__path__, f"{package}."):
        importlib.import_module(module.name)


if __name__ == "__main__":
    from ottla.cli import main

    _import_all("ottla.cli.commands")
    _import_all("ottla.cli.tools")
    serve(socket.socket(fileno=int(sys.argv[1])))
    main()
