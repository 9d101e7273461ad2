"""The log directories of this broker and the free space of their volumes, read every half minute by a worker.

A page shows what was read last: a volume that does not answer holds up the reading, and no page.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

import trio

from ...base.seams import Clock, Workers
from ...handlers.services import Services
from ...log.log_directory import LogDirectory
from ..disk_space import DiskRow, DiskTrends

_EVERY = 30.0
_STALE_MS = 120_000
_UNTIL_STARTED = 0.25


class OwnDisks:
    """``run`` reads them; ``services`` returns None before the broker has started."""

    def __init__(self, services: Callable[[], Services | None], clock: Clock, workers: Workers) -> None:
        self._services = services
        self._clock = clock
        self._workers = workers
        self._trends = DiskTrends()
        self._read: list[DiskRow] = []
        self._read_ms: int | None = None

    async def run(self) -> None:
        """Read until cancelled."""
        while self._services() is None:
            await trio.sleep(_UNTIL_STARTED)
        while True:
            await self.look()
            await trio.sleep(_EVERY)

    async def look(self) -> None:
        """Read them now."""
        services = self._services()
        if services is not None:
            rows = [await self._row(services.node_id, folder) for folder in services.logs.folders]
            self._read_ms = self._clock.now_ms()
            self._read = self._trends.note(self._read_ms, rows)

    async def _row(self, broker_id: int, folder: LogDirectory) -> DiskRow:
        if not folder.is_offline:
            try:
                return DiskRow(broker_id, folder.path, *await self._workers.run(folder.disk.space, folder.path))
            except OSError as error:
                return DiskRow(broker_id, folder.path, None, None, str(error))
        return DiskRow(broker_id, folder.path, None, None, str(folder.failure))

    def rows(self) -> tuple[Sequence[DiskRow], str]:
        """What was read last, with what has failed since; and why that is nothing or old, the end of a sentence."""
        services = self._services()
        failed = {} if services is None else {each.path: each for each in services.logs.folders if each.is_offline}
        rows = [
            DiskRow(row.broker_id, row.path, None, None, str(failed[row.path].failure)) if row.path in failed else row
            for row in self._read
        ]
        if self._read_ms is None:
            return rows, "free space was not read yet"
        is_old = self._clock.now_ms() - self._read_ms > _STALE_MS
        return rows, "a volume does not answer" if is_old else ""
