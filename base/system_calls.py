"""The calls that Linux and macOS do not have in common, each bound at import to what this system has.

They are looked up by name and not by the name of the system, so that type checkers accept the module for either one.
What macOS lacks is said at each; everything else that Ottla asks of the system, both have.
"""

from __future__ import annotations

import contextlib
import errno
import fcntl
import os
import resource
import socket
from collections.abc import Callable

# Flag of a send that is followed by more at once; without it (macOS) the beginning may travel in a packet of its own.
MSG_MORE: int = getattr(socket, "MSG_MORE", 0)
# Flag of ``preadv``: only what is in memory. 0 (macOS) where one cannot ask.
RWF_NOWAIT: int = getattr(os, "RWF_NOWAIT", 0)
# Option that reads Linux' struct tcp_info, or None (macOS, whose TCP_CONNECTION_INFO is another struct).
TCP_INFO: int | None = getattr(socket, "TCP_INFO", None)

_F_FULLFSYNC: int | None = getattr(fcntl, "F_FULLFSYNC", None)
_HAS_NO_FULL_SYNC = (errno.ENOTSUP, errno.ENOTTY, errno.EINVAL)
_OPEN_MAX = 10_240


def _full_sync(descriptor: int) -> None:
    """``fsync`` as far as the medium.

    On macOS ``fsync`` ends when the drive has the bytes, which may be in its volatile cache, and be written in any order;
    F_FULLFSYNC has the drive empty that cache too (fsync(2), fcntl(2) there). A file system that does not have it, such as
    some of the network, says so, and then ``fsync`` is all there is. The JVM does the same (FileChannel.force,
    JDK-8080589), so Ottla loses no more than Apache Kafka on the same machine. Raises OSError.
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
# The same, except for times and other attributes that reading the bytes does not need.
sync_data: Callable[[int], None] = getattr(os, "fdatasync", os.fsync) if _F_FULLFSYNC is None else _full_sync


def set_buffer_size(connected: socket.socket, option: int, nbytes: int) -> None:
    """Set SO_SNDBUF or SO_RCVBUF, or as much of it as the system allows. Raises OSError.

    Linux takes its maximum for a larger size. macOS refuses that (ENOBUFS above about kern.ipc.maxsockbuf), and then half
    is asked for.
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

    A limit that is infinite, as macOS can have it, says nothing: the kernel's own (kern.maxfilesperproc) is lower. OPEN_MAX,
    which setrlimit(2) names there, is below that.
    """
    soft, _ = resource.getrlimit(resource.RLIMIT_NOFILE)
    return _OPEN_MAX if soft == resource.RLIM_INFINITY else soft


def raise_descriptor_limit() -> None:
    """Raise the soft limit of open files to the hard one; a broker holds many segments and sockets.

    Where the hard one is infinite or refused, as on macOS, to OPEN_MAX. A limit that is higher already stays.
    """
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    if soft == resource.RLIM_INFINITY:
        return
    for limit in (_OPEN_MAX,) if hard == resource.RLIM_INFINITY else (hard, min(hard, _OPEN_MAX)):
        if limit > soft:
            with contextlib.suppress(ValueError, OSError):
                resource.setrlimit(resource.RLIMIT_NOFILE, (limit, hard))
                return
