"""Brokers that have not responded lately, for pages to name, since their data is missing there."""

from __future__ import annotations

from collections.abc import Container

import trio

SECONDS = 60


class SilentBrokers:
    """The brokers that lately did not respond: ``note`` each response that did not come."""

    def __init__(self) -> None:
        self._noted: dict[int, tuple[float, str]] = {}

    def note(self, broker_id: int, error: Exception) -> None:
        """A broker has not answered just now, and why."""
        self._noted[broker_id] = trio.current_time(), str(error)

    def silent(self, known: Container[int]) -> dict[int, str]:
        """The brokers that are ``known`` to be there and were silent in the last ``SECONDS``, each with why."""
        now = trio.current_time()
        return {
            broker_id: why
            for broker_id, (at, why) in sorted(self._noted.items())
            if now - at < SECONDS and broker_id in known
        }
