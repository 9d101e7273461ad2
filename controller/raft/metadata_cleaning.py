"""The task that deletes old snapshots of the metadata log, and the log before the oldest one left.

Rules (Kafka's KafkaRaftLog.maybeClean), once a minute: while the log and its snapshots are larger than
``metadata.max.retention.bytes``, and while the oldest snapshot is older than ``metadata.max.retention.ms``, that snapshot is
deleted, and the log begins at the end of the next one: whole segments below go. The newest snapshot always stays, and so does
what no snapshot stands for. One that cannot be read ends the cleaning: nothing is deleted on its account.
"""

from __future__ import annotations

import itertools
import logging
from collections.abc import Callable, Mapping

import trio

from ...base.errors import KafkaError
from ...base.seams import Clock, Workers
from ...base.wording import explained
from ...log.metadata_snapshots import MetadataSnapshotId
from .metadata_log import MetadataLog, SnapshotFacts
from .settings import MetadataLogSettings

logger = logging.getLogger(__name__)

_INTERVAL_SECONDS = 60.0


class MetadataLogCleaner:
    """``run`` it in a task of its own.

    ``delete_before`` lets the log begin at the end of a snapshot, and deletes older ones; False where it cannot
    (``RaftDriver.clean``).
    """

    def __init__(
        self,
        log: MetadataLog,
        settings: MetadataLogSettings,
        clock: Clock,
        workers: Workers,
        delete_before: Callable[[MetadataSnapshotId], bool],
    ) -> None:
        self._log = log
        self._delete_before = delete_before
        self._settings = settings
        self._clock = clock
        self._workers = workers

    async def run(self) -> None:
        """Clean at intervals, until cancelled."""
        while True:
            await trio.sleep(_INTERVAL_SECONDS)
            try:
                await self._clean()
            except (KafkaError, OSError) as error:
                logger.error("Old snapshots of the metadata cannot be deleted: %s", explained(error))

    async def _clean(self) -> None:
        """Raises KafkaError, OSError."""
        log, settings = self._log, self._settings
        if len(log.snapshots) < 2:
            return
        facts = {}
        for snapshot in list(log.snapshots):
            found = await self._workers.run(log.snapshot_facts, snapshot)
            if found is not None:
                facts[snapshot] = found
        total = sum(each.size for each in facts.values())

        def is_too_much(snapshot: MetadataSnapshotId) -> bool:
            nonlocal total
            if log.size + total <= settings.retention_bytes:
                return False
            total -= facts[snapshot].size
            return True

        if settings.retention_bytes >= 0:
            self._delete_while(is_too_much, facts, "the log and its snapshots are too large")
        newest_to_go = self._clock.now_ms() - settings.retention_ms
        if settings.retention_ms >= 0:
            self._delete_while(lambda each: facts[each].last_contained_ms < newest_to_go, facts, "it is too old")
        await log.remove_deleted_snapshots()

    def _delete_while(
        self,
        is_to_go: Callable[[MetadataSnapshotId], bool],
        facts: Mapping[MetadataSnapshotId, SnapshotFacts],
        why: str,
    ) -> None:
        """Delete one snapshot after the other, while there is one behind it."""
        for snapshot, following in itertools.pairwise(list(self._log.snapshots)):
            if snapshot not in facts or following not in facts or not is_to_go(snapshot):
                return
            if not self._delete_before(following):
                return
            logger.info("Deleted the metadata snapshot %s, because %s", snapshot.file_name, why)
