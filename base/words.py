"""Wording of what people read: numbers with their nouns, errors of the system with what to do about them."""

from __future__ import annotations

import errno

from .system_calls import descriptor_limit


def counted(number: int, noun: str) -> str:
    """``1 member``, ``2 members``."""
    return f"{number} {noun}" if number == 1 else f"{number} {noun}s"


def explained(error: Exception) -> str:
    """The error in words; where the process or the system is out of descriptors, the limit to raise."""
    if isinstance(error, OSError) and error.errno == errno.EMFILE:
        return f"{error.strerror}: this process may have {descriptor_limit()} open; raise its limit (ulimit -n)"
    if isinstance(error, OSError) and error.errno == errno.ENFILE:
        return f"{error.strerror}: raise the system's limit (sysctl fs.file-max)"
    return str(error)
