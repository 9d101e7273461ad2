"""A broker process under a supervisor (``many_brokers``), which stops when the supervisor has ended.

The supervisor gives it the end of a pipe by an environment variable, and keeps the other end as long as it lives.
"""

from __future__ import annotations

import os
from collections.abc import Callable

import trio

LIFELINE = "OTTLA_LIFELINE"
"""The environment variable with the number of the descriptor."""
LABEL = "OTTLA_LOG_LABEL"
"""The environment variable with the prefix of each line of this broker's log."""


async def stop_with_supervisor(stop: Callable[[], None]) -> None:
    """Call ``stop`` when the supervisor has ended. Without one, return at once."""
    descriptor = os.environ.get(LIFELINE)
    if descriptor is not None:
        await trio.lowlevel.wait_readable(int(descriptor))
        stop()
