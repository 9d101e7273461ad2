"""A warning at the start when the process may open only few files."""

from __future__ import annotations

import logging

from ..base.system_calls import descriptor_limit

logger = logging.getLogger(__name__)

LOW_DESCRIPTOR_LIMIT = 4096


def warn_of_few_descriptors() -> None:
    """Say so in the log when the process may have few files open."""
    limit = descriptor_limit()
    if limit < LOW_DESCRIPTOR_LIMIT:
        logger.warning(
            "only %d files can be open at a time, half of them segments, and each connection is one: raise ulimit -n",
            limit,
        )
