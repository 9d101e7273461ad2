"""Runs the ``ottla`` command on Linux as on macOS: a script with the command's arguments.

Before ottla is imported, names that only Linux has are removed from the standard library (``mypy --platform darwin`` knows
them), F_FULLFSYNC is added, and limits and options are refused as on macOS.
"""

from __future__ import annotations

import errno
import fcntl
import os
import resource
import socket
import sys
from typing import Any

_LACKING = {
    os: "copy_file_range eventfd eventfd_read eventfd_write fdatasync getrandom memfd_create pidfd_open pipe2 posix_fadvise "
    "posix_fallocate sched_getaffinity sched_setaffinity splice O_DIRECT O_NOATIME O_PATH O_TMPFILE RWF_APPEND RWF_DSYNC "
    "RWF_HIPRI RWF_NOWAIT RWF_SYNC preadv pwritev",  # the last two came with macOS 11
    socket: "MSG_CMSG_CLOEXEC MSG_CONFIRM MSG_ERRQUEUE MSG_FASTOPEN MSG_MORE SOCK_CLOEXEC SOCK_NONBLOCK SO_DOMAIN "
    "SO_INCOMING_CPU SO_MARK SO_PASSCRED SO_PEERCRED SO_PRIORITY SO_PROTOCOL TCP_CONGESTION TCP_CORK TCP_DEFER_ACCEPT "
    "TCP_INFO TCP_KEEPIDLE TCP_LINGER2 TCP_QUICKACK TCP_SYNCNT TCP_USER_TIMEOUT TCP_WINDOW_CLAMP",
    fcntl: "F_GETPIPE_SZ F_SETPIPE_SZ F_NOTIFY F_ADD_SEALS",
    resource: "RLIMIT_NICE RLIMIT_OFILE RLIMIT_RTPRIO RUSAGE_THREAD prlimit",
}
_F_FULLFSYNC = 51
_INFINITY = (1 << 63) - 1
_OPEN_MAX = 10_240
_MAX_SOCKET_BUFFER = 8 << 20

_real_fcntl = fcntl.fcntl
_real_setsockopt = socket.socket.setsockopt
_real_setrlimit = resource.setrlimit
_descriptors = [256, _INFINITY]


def _fcntl(descriptor: int, command: int, argument: int = 0) -> Any:
    if command != _F_FULLFSYNC:
        return _real_fcntl(descriptor, command, argument)
    os.fsync(descriptor)
    return 0


def _setsockopt(connected: socket.socket, level: int, option: int, value: Any, *length: int) -> None:
    if level == socket.SOL_SOCKET and option in (socket.SO_SNDBUF, socket.SO_RCVBUF) and value > _MAX_SOCKET_BUFFER:
        raise OSError(errno.ENOBUFS, os.strerror(errno.ENOBUFS))
    _real_setsockopt(connected, level, option, value, *length)


def _getrlimit(which: int) -> tuple[int, ...]:
    assert which == resource.RLIMIT_NOFILE
    return tuple(_descriptors)


def _setrlimit(which: int, limits: tuple[int, int]) -> None:
    assert which == resource.RLIMIT_NOFILE
    if limits[0] > _OPEN_MAX:
        raise ValueError("current limit exceeds maximum limit")
    _descriptors[:] = limits


def main() -> None:
    _real_setrlimit(resource.RLIMIT_NOFILE, (256, resource.getrlimit(resource.RLIMIT_NOFILE)[1]))
    for module, names in _LACKING.items():
        for name in names.split():
            if hasattr(module, name):
                delattr(module, name)
                if name in getattr(module, "__all__", ()):
                    module.__all__.remove(name)
    fcntl.F_FULLFSYNC = _F_FULLFSYNC
    fcntl.fcntl = _fcntl
    socket.socket.setsockopt = _setsockopt
    resource.RLIM_INFINITY = _INFINITY
    resource.getrlimit = _getrlimit
    resource.setrlimit = _setrlimit
    from ottla.cli import main as ottla

    ottla()


if __name__ == "__main__":
    sys.argv[0] = "ottla"
    main()
