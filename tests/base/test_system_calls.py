"""What macOS' kernel answers, played to the module that stands between it and the rest."""

from __future__ import annotations

import errno
import fcntl
import importlib.util
import os
import resource
import socket
from collections.abc import Callable
from pathlib import Path
from types import ModuleType

import pytest

from ottla.base import system_calls

F_FULLFSYNC = 51
OPEN_MAX = 10_240


def as_on_macos(monkeypatch: pytest.MonkeyPatch) -> ModuleType:
    """The module as it is when it is imported where there is F_FULLFSYNC, and no fdatasync."""
    monkeypatch.setattr(fcntl, "F_FULLFSYNC", F_FULLFSYNC, raising=False)
    monkeypatch.delattr(os, "fdatasync", raising=False)
    assert system_calls.__file__ is not None
    spec = importlib.util.spec_from_file_location("system_calls_as_on_macos", system_calls.__file__)
    assert spec is not None and spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


class Syncs:
    """``fcntl`` and ``fsync`` of a system; ``failure`` is what F_FULLFSYNC raises."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch, failure: int | None = None) -> None:
        self.made: list[str] = []
        self._failure = failure
        monkeypatch.setattr(fcntl, "fcntl", self._fcntl)
        monkeypatch.setattr(os, "fsync", lambda descriptor: self.made.append("fsync"))

    def _fcntl(self, descriptor: int, command: int) -> int:
        assert command == F_FULLFSYNC
        self.made.append("F_FULLFSYNC")
        if self._failure is not None:
            raise OSError(self._failure, os.strerror(self._failure))
        return 0


@pytest.mark.parametrize("name", ["sync_data", "sync_all"])
def test_macos_flushes_the_cache_of_the_drive_too(monkeypatch: pytest.MonkeyPatch, name: str) -> None:
    syncs = Syncs(monkeypatch)
    getattr(as_on_macos(monkeypatch), name)(7)
    assert syncs.made == ["F_FULLFSYNC"]


@pytest.mark.parametrize("failure", [errno.ENOTSUP, errno.ENOTTY, errno.EINVAL])
def test_a_file_system_without_it_gets_an_fsync(monkeypatch: pytest.MonkeyPatch, failure: int) -> None:
    syncs = Syncs(monkeypatch, failure)
    as_on_macos(monkeypatch).sync_data(7)
    assert syncs.made == ["F_FULLFSYNC", "fsync"]


def test_a_flush_that_fails_is_not_repeated(monkeypatch: pytest.MonkeyPatch) -> None:
    """The second one could succeed, although the bytes are lost."""
    syncs = Syncs(monkeypatch, errno.EIO)
    with pytest.raises(OSError, match=os.strerror(errno.EIO)):
        as_on_macos(monkeypatch).sync_data(7)
    assert syncs.made == ["F_FULLFSYNC"]


@pytest.mark.skipif(not hasattr(os, "fdatasync"), reason="the system has no fdatasync")
def test_linux_syncs_without_a_call_between() -> None:
    assert system_calls.sync_data is os.fdatasync
    assert system_calls.sync_all is os.fsync


@pytest.mark.parametrize("read", [system_calls._pread_into, system_calls.read_into], ids=["as on PyPy", "here"])
def test_bytes_are_read_into_what_is_given(tmp_path: Path, read: Callable[[int, memoryview, int], int]) -> None:
    (tmp_path / "file").write_bytes(b"0123456789")
    room = bytearray(b"----")
    with (tmp_path / "file").open("rb") as file:
        assert read(file.fileno(), memoryview(room), 3) == 4
        assert room == b"3456"
        assert read(file.fileno(), memoryview(room), 8) == 2
        assert room == b"8956"
        assert read(file.fileno(), memoryview(room), 10) == 0
        assert read(file.fileno(), memoryview(room)[:0], 0) == 0
    assert room == b"8956"


@pytest.mark.parametrize("infinity", [-1, (1 << 63) - 1])
@pytest.mark.parametrize(
    ("soft", "hard", "largest", "raised"),
    [
        (1024, 4096, 1 << 20, 4096),
        (4096, 4096, 1 << 20, 4096),
        (256, None, 1 << 20, OPEN_MAX),
        (256, 65_536, 61_440, OPEN_MAX),
        (61_440, None, 61_440, 61_440),
        (61_440, 65_536, 61_440, 61_440),
        (256, None, 512, 256),
        (None, None, 61_440, OPEN_MAX),
    ],
)
def test_as_many_files_may_be_open_as_the_kernel_lets(
    monkeypatch: pytest.MonkeyPatch,
    infinity: int,
    soft: int | None,
    hard: int | None,
    largest: int,
    raised: int,
) -> None:
    """None is infinite: -1 on Linux, the largest number on macOS. ``largest`` is the kernel's own limit."""
    limits = [infinity if limit is None else limit for limit in (soft, hard)]

    def setrlimit(which: int, wanted: tuple[int, int]) -> None:
        if not 0 <= wanted[0] <= largest or wanted[0] > (hard or largest):
            raise ValueError("current limit exceeds maximum limit")
        limits[:] = wanted

    monkeypatch.setattr(resource, "RLIM_INFINITY", infinity)
    monkeypatch.setattr(resource, "getrlimit", lambda which: tuple(limits))
    monkeypatch.setattr(resource, "setrlimit", setrlimit)
    system_calls.raise_descriptor_limit()
    assert system_calls.descriptor_limit() == raised
    assert limits[1] == (infinity if hard is None else hard)


class Refusing(socket.socket):
    """A socket of a system that refuses buffers above 1 MiB."""

    def setsockopt(self, level, option, value, *length):
        if value > 1 << 20:
            raise OSError(errno.ENOBUFS, os.strerror(errno.ENOBUFS))
        super().setsockopt(level, option, value, *length)


def test_a_buffer_that_is_refused_becomes_a_smaller_one() -> None:
    with Refusing() as refusing, socket.socket() as expected:
        system_calls.set_buffer_size(refusing, socket.SO_RCVBUF, 3 << 20)
        expected.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 3 << 18)
        sizes = [each.getsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF) for each in (refusing, expected)]
    assert sizes[0] == sizes[1]


def test_other_failures_of_a_buffer_are_raised() -> None:
    closed = socket.socket()
    closed.close()
    with pytest.raises(OSError, match=os.strerror(errno.EBADF)):
        system_calls.set_buffer_size(closed, socket.SO_RCVBUF, 1 << 20)
