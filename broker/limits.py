"""Limits of the process."""

from __future__ import annotations

import contextlib
import logging
import resource

logger = logging.getLogger(__name__)


LOW_DESCRIPTOR_LIMIT = 4096


def raise_descriptor_limit() -> int:
    """Raise the soft limit of open files to the hard one, for a broker holds many segments and sockets; what it is now."""
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    if soft != hard:
        with contextlib.suppress(ValueError, OSError):
            resource.setrlimit(resource.RLIMIT_NOFILE, (hard, hard))
    return resource.getrlimit(resource.RLIMIT_NOFILE)[0]


def warn_of_few_descriptors(limit: int) -> None:
    """Say so in the log when the process may have few files open."""
    if 0 <= limit < LOW_DESCRIPTOR_LIMIT:
        logger.warning(
            "only %d files can be open at a time, half of them segments, and each connection is one: raise ulimit -n",
            limit,
        )
