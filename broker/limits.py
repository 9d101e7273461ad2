"""Limits of the process."""

from __future__ import annotations

import contextlib
import resource


def raise_descriptor_limit() -> None:
    """Raise the soft limit of open files to the hard one; a broker holds many segments and sockets."""
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    if soft != hard:
        with contextlib.suppress(ValueError, OSError):
            resource.setrlimit(resource.RLIMIT_NOFILE, (hard, hard))
