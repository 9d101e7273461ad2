"""A driver in another Python interpreter, since two major versions of a library cannot share a virtualenv."""

from __future__ import annotations

import contextlib
import subprocess
from collections.abc import Callable
from pathlib import Path
from typing import Any, TypeVar, cast

from ottla.compat_tests.clients import model
from ottla.compat_tests.clients.remote_server import read_frame, write_frame
from ottla.compat_tests.clients.security import Security

PACKAGE = Path(__file__).resolve().parents[2]
Role = TypeVar("Role")


def end(process: subprocess.Popen[bytes]) -> None:
    """Have a driver's process end, which it does when its input does."""
    assert process.stdin is not None
    assert process.stdout is not None
    with contextlib.suppress(BrokenPipeError):  # it has ended already
        process.stdin.close()
    try:
        process.wait(timeout=10)
    except subprocess.TimeoutExpired:
        process.kill()
        process.wait()
    process.stdout.close()


class Process:
    """The other interpreter. One call at a time."""

    def __init__(self, python: Path, module: str, bootstrap: str) -> None:
        server = Path(__file__).with_name("remote_server.py")
        self._process = subprocess.Popen(
            [str(python), str(server), str(PACKAGE), module, bootstrap],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
        )

    def call(self, number: int, method: str, args: tuple[Any, ...], kwargs: dict[str, Any]) -> tuple[str, Any]:
        """One call and its answer."""
        assert self._process.stdin is not None
        assert self._process.stdout is not None
        write_frame(cast(Any, self._process.stdin), (number, method, args, kwargs))
        kind, value = read_frame(cast(Any, self._process.stdout))
        if kind == "failure":
            raise model.ClientFailure(*value)
        if kind == "error":
            raise RuntimeError(f"in {self._process.args!r}:\n{value}")
        return kind, value

    def close(self) -> None:
        """End the interpreter."""
        end(self._process)


def proxy(role: type[Role], process: Process, number: int) -> Role:
    """An object of ``role`` whose methods are calls to object ``number`` over there."""

    def forward(method: str) -> Callable[..., Any]:
        def call(_self: object, *args: Any, **kwargs: Any) -> Any:
            return process.call(number, method, args, kwargs)[1]

        return call

    methods = {name: forward(name) for name, member in vars(role).items() if callable(member) and name[0] != "_"}
    return cast(Role, type(f"Remote{role.__name__}", (role,), methods)())


class Client(model.Client):
    """The driver in ``module``, under the interpreter ``python``."""

    def __init__(self, python: Path, module: str, bootstrap: str) -> None:
        self._process = Process(python, module, bootstrap)

    def version(self) -> str:
        return str(self._process.call(0, "version", (), {})[1])

    def secure(self, security: Security) -> None:
        self._process.call(0, "secure", (security,), {})

    def producer(self, settings: model.ProducerSettings) -> model.Producer:
        return proxy(model.Producer, self._process, self._process.call(0, "producer", (settings,), {})[1])  # type: ignore[type-abstract]

    def consumer(self, settings: model.ConsumerSettings) -> model.Consumer:
        return proxy(model.Consumer, self._process, self._process.call(0, "consumer", (settings,), {})[1])  # type: ignore[type-abstract]

    def admin(self) -> model.Admin:
        return proxy(model.Admin, self._process, self._process.call(0, "admin", (), {})[1])  # type: ignore[type-abstract]

    def close(self) -> None:
        self._process.close()
