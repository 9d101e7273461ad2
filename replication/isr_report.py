"""Log lines about the controller's responses to ISR changes: one a second, with counts.

A broker that stops or starts changes every partition that it has, so a line for each would be most of the log. The lines of each
partition are at debug level.
"""

from __future__ import annotations

import logging
from collections.abc import Iterator

import trio

from ..base.errors import ErrorCode
from ..base.wording import counted
from .isr import PendingExpand, PendingIsr, PendingShrink

logger = logging.getLogger(__name__)

SECONDS = 1.0
"""How long answers are collected for one line."""

_MOST_NAMED = 3


class IsrReport:
    """Answers of one broker's controller, each partition once for what became of it."""

    def __init__(self) -> None:
        self._partitions: dict[str, dict[str, None]] = {}
        self._arrived = trio.Event()

    def note(self, name: str, change: PendingIsr, code: ErrorCode) -> None:
        """The controller has answered ``code`` to a change of the partition ``name``."""
        logger.debug("%s: the controller answers %s to %s", name, code.name, list(change.proposed))
        for outcome in _outcomes(change, code):
            self._partitions.setdefault(outcome, {})[name] = None
        self._arrived.set()

    async def run(self) -> None:
        """Write lines until cancelled, and what is left then."""
        try:
            while True:
                await self._arrived.wait()
                await trio.sleep(SECONDS)
                self._write()
        finally:
            self._write()

    def _write(self) -> None:
        noted, self._partitions, self._arrived = self._partitions, {}, trio.Event()
        if noted:
            logger.info("%s", "; ".join(_part(outcome, list(names)) for outcome, names in sorted(noted.items())))


def _outcomes(change: PendingIsr, code: ErrorCode) -> Iterator[str]:
    """What became of a change, for each broker that it is about."""
    if isinstance(change, PendingExpand):
        done = f"may not join ({code.name})" if code else "joined"
        yield f"broker {change.joining} {done} the in-sync replicas of"
    elif isinstance(change, PendingShrink):
        done = f"may not leave ({code.name})" if code else "left"
        for broker in change.leaving:
            yield f"broker {broker} {done} the in-sync replicas of"
    else:
        yield f"not recovered ({code.name}):" if code else "recovered from an unclean election:"


def _part(outcome: str, names: list[str]) -> str:
    more = ", …" if len(names) > _MOST_NAMED else ""
    return f"{outcome} {counted(len(names), 'partition')} ({', '.join(names[:_MOST_NAMED])}{more})"
