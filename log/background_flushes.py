"""Background flushes of logs on request, and the flush of all logs at shutdown."""

from __future__ import annotations

from collections.abc import Iterable

import trio

from ..base.errors import KafkaError
from .log_directory import Flushable
from .partition_log import PartitionLog

_FLUSHES_AT_ONCE = 8  # file systems commit several syncs together


class BackgroundFlushes:
    """What is to be flushed, each log once however often it asks."""

    def __init__(self) -> None:
        self._wanted: dict[Flushable, bool] = {}
        self._is_wanted = trio.Event()

    def want(self, log: Flushable, inactive_only: bool) -> None:
        """Have a log flushed soon: all of it, or only its inactive segments."""
        self._wanted[log] = inactive_only and self._wanted.get(log, True)
        self._is_wanted.set()

    async def run(self) -> None:
        """Flush what is wanted until cancelled."""
        async with trio.open_nursery() as nursery:
            while True:
                await self._is_wanted.wait()
                self._is_wanted = trio.Event()
                wanted, self._wanted = self._wanted, {}
                for log, inactive_only in wanted.items():
                    nursery.start_soon(_flush, log, inactive_only)


async def _flush(log: Flushable, inactive_only: bool) -> None:
    try:
        await log.flush(inactive_only=inactive_only)
    except KafkaError as error:
        log.folder.log_failed(f"flush of {log.directory} failed", error)


async def flush_for_stop(logs: Iterable[PartitionLog]) -> None:
    """Bring every log to disk; a folder where that does not succeed is offline afterwards."""
    queue = iter(list(logs))

    async def flush_some() -> None:
        for partition_log in queue:
            if not partition_log.folder.is_offline:
                try:
                    await partition_log.flush_for_stop()
                except KafkaError as error:
                    partition_log.folder.fail(f"cannot flush {partition_log.directory}", error)

    async with trio.open_nursery() as nursery:
        for _ in range(_FLUSHES_AT_ONCE):
            nursery.start_soon(flush_some)
