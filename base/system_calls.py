"""System calls that differ between Linux and macOS or that PyPy lacks, chosen at import by availability.

They are looked up by their own names, not by the name of the system, so that type checkers accept the module on both. The
comments say what macOS or PyPy lacks.
"""

from __future__ import annotations

import contextlib
import errno
import fcntl
import os
import resource
import socket
from collections.abc import Callable

# Flag of a send that another one follows at once; without it (macOS) the first bytes may be sent in a packet of their own.
MSG_MORE: int = getattr(socket, "MSG_MORE", 0)
# Flag of ``preadv``: read only what is in the page cache. 0 where there is no such flag (macOS, PyPy).
RWF_NOWAIT: int = getattr(os, "RWF_NOWAIT", 0)
# Option that reads Linux' struct tcp_info, or None (macOS, whose TCP_CONNECTION_INFO is another struct).
TCP_INFO: int | None = getattr(socket, "TCP_INFO", None)

_F_FULLFSYNC: int | None = getattr(fcntl, "F_FULLFSYNC", None)
_HAS_NO_FULL_SYNC = (errno.ENOTSUP, errno.ENOTTY, errno.EINVAL)
_OPEN_MAX = 10_240


def _full_sync(descriptor: int) -> None:
    """Write a file's bytes through the drive's cache to the medium, on macOS. Raises OSError.

    There ``fsync`` ends when the drive has the bytes, which may be in its volatile cache, and be written in any order;
    F_FULLFSYNC has the drive empty that cache, too (fsync(2), fcntl(2) there). File systems that do not support it, such as some
    network file systems, return an error, and then ``fsync`` is called. The JVM does the same (FileChannel.force, JDK-8080589),
    so Ottla loses no more than Apache Kafka on the same machine.
    """
    assert _F_FULLFSYNC is not None
    try:
        fcntl.fcntl(descriptor, _F_FULLFSYNC)
    except OSError as error:
        if error.errno not in _HAS_NO_FULL_SYNC:
            raise
        os.fsync(descriptor)


# Returns once the file's bytes, or the folder's names, are on stable storage. Raises OSError.
sync_all: Callable[[int], None] = os.fsync if _F_FULLFSYNC is None else _full_sync
# The same without times and other attributes that are not needed for reading the bytes.
sync_data: Callable[[int], None] = getattr(os, "fdatasync", os.fsync) if _F_FULLFSYNC is None else _full_sync


def _preadv_into(descriptor: int, room: memoryview, position: int) -> int:
    return os.preadv(descriptor, (room,), position)


def _pread_into(descriptor: int, room: memoryview, position: int) -> int:
    data = os.pread(descriptor, len(room), position)
    room[: len(data)] = data
    return len(data)


# Reads the bytes of a file at a position, as many as there are or fit, and returns their number. Raises OSError. PyPy has no
# ``preadv``.
read_into: Callable[[int, memoryview, int], int] = _preadv_into if hasattr(os, "preadv") else _pread_into


def set_buffer_size(connected: socket.socket, option: int, nbytes: int) -> None:
    """Set SO_SNDBUF or SO_RCVBUF, or as much of it as the system allows. Raises OSError.

    Linux takes its maximum for a larger size. macOS refuses such a size (ENOBUFS above about kern.ipc.maxsockbuf), and then half
    of it is tried.
    """
    while True:
        try:
            connected.setsockopt(socket.SOL_SOCKET, option, nbytes)
            return
        except OSError as error:
            if error.errno != errno.ENOBUFS or nbytes <= 1:
                raise
            nbytes //= 2


def descriptor_limit() -> int:
    """How many files and sockets the process may have open at once.

    An infinite limit, which macOS can have, is not the real one: the kernel's own (kern.maxfilesperproc) is lower. Then it is
    OPEN_MAX, which setrlimit(2) names there and which is below that.
    """
    soft, _ = resource.getrlimit(resource.RLIMIT_NOFILE)
    return _OPEN_MAX if soft == resource.RLIM_INFINITY else soft


def raise_descriptor_limit() -> None:
    """Raise the soft limit of open files to the hard one; a broker holds many segments and sockets.

    Where the hard limit is infinite or refused, as on macOS, raise it to OPEN_MAX. A limit that is already higher stays.
    """
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    if soft == resource.RLIM_INFINITY:
        return
    for limit in (_OPEN_MAX,) if hard == resource.RLIM_INFINITY else (hard, min(hard, _OPEN_MAX)):
        if limit > soft:
            with contextlib.suppress(ValueError, OSError):
                resource.setrlimit(resource.RLIMIT_NOFILE, (limit, hard))
                return
