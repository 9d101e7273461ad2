"""The task that writes snapshots of the loaded metadata, which save a start from replaying the whole log (KIP-630).

Rules (Kafka's SnapshotGenerator and SnapshotEmitter): a snapshot is due when the log has grown by
``metadata.log.max.record.bytes.between.snapshots`` since the last one, or, when it has grown at all, after
``metadata.log.max.snapshot.interval.ms``. Both count anew from the first image, from a snapshot that was loaded, and from the
beginning of one that is written. A snapshot has what was published: it ends with a batch, and never within a transaction.

A worker makes the records and writes them, batch by batch. A snapshot that cannot be written is given up, and the next one is due
as if it had been.
"""

from __future__ import annotations

import functools
import logging
from collections.abc import Callable, Iterator

import trio

from ...base.errors import KafkaError
from ...base.seams import Clock, Workers
from ...base.wording import explained
from ...log.metadata_snapshots import MetadataSnapshotId, SnapshotFile, encode_snapshot
from ...metadata.image import ClusterImage
from ..raft.metadata_log import MetadataLog
from ..raft.settings import MetadataLogSettings
from .loader import LoaderManifest
from .snapshot_records import UnwritableImageError, snapshot_records

logger = logging.getLogger(__name__)


class SnapshotGenerator:
    """``run`` it in a task of its own; ``on_metadata_update`` is told of every image that is published.

    ``on_written`` is called with each snapshot that has its name, and its size in bytes (``RaftDriver.note_snapshot``).
    """

    def __init__(
        self,
        log: MetadataLog,
        settings: MetadataLogSettings,
        clock: Clock,
        workers: Workers,
        on_written: Callable[[MetadataSnapshotId, int], None],
    ) -> None:
        self._log = log
        self._on_written = on_written
        self._settings = settings
        self._clock = clock
        self._workers = workers
        self._bytes = 0
        self._since = trio.current_time()
        self._due: tuple[ClusterImage, str] | None = None
        self._is_due = trio.Event()

    def on_metadata_update(self, image: ClusterImage, manifest: LoaderManifest) -> None:
        """Count what has come with an image, and have it written if that is enough."""
        if manifest.is_snapshot:
            self._reset()
            return
        self._bytes += manifest.log_bytes
        why = self._reason()
        if why is not None and self._due is None:
            self._due = image, why
            self._is_due.set()

    def _reason(self) -> str | None:
        settings = self._settings
        if self._bytes >= settings.record_bytes_between_snapshots:
            return f"at least {settings.record_bytes_between_snapshots} bytes were loaded"
        interval = settings.snapshot_interval_ms
        if interval and trio.current_time() - self._since >= interval / 1000:
            return f"at least {interval} ms have passed"
        return None

    def _reset(self) -> None:
        self._bytes, self._since = 0, trio.current_time()

    async def run(self) -> None:
        """Write what is due, until cancelled."""
        while True:
            await self._is_due.wait()
            assert self._due is not None
            (image, why), self._due, self._is_due = self._due, None, trio.Event()
            self._reset()
            try:
                await self._write(image, why)
            except (KafkaError, OSError, UnwritableImageError) as error:
                logger.error("A snapshot of the metadata could not be written: %s", explained(error))

    async def _write(self, image: ClusterImage, why: str) -> None:
        """Raises KafkaError, OSError, UnwritableImageError."""
        position = image.position
        assert position is not None, "an image that was published has a position"
        snapshot = MetadataSnapshotId(position.offset + 1, position.epoch)
        file = self._log.create_snapshot(snapshot)
        if file is None:
            logger.info("No snapshot %s is written: there is one, or the log begins after it", snapshot.file_name)
            return
        logger.info("Writing the metadata snapshot %s, because %s", snapshot.file_name, why)
        is_whole = False
        try:
            batches = encode_snapshot(
                self._log.snapshot_head(position),
                snapshot_records(image.detached()),
                epoch=snapshot.epoch,
                now_ms=self._clock.now_ms(),
            )
            del image  # or every version from this one on would be kept until the last batch is written
            while await self._workers.run(functools.partial(_append_next, file, batches)):
                pass
            await self._workers.run(file.freeze)
            is_whole = True
        finally:
            if not is_whole:
                file.drop()
        self._log.add_snapshot(snapshot)
        self._on_written(snapshot, file.size)
        logger.info("Wrote the metadata snapshot %s, %d bytes", snapshot.file_name, file.size)


def _append_next(file: SnapshotFile, batches: Iterator[bytearray]) -> bool:
    """In a worker: make and write the next batch; False where there is none. Raises OSError, UnwritableImageError."""
    batch = next(batches, None)
    if batch is None:
        return False
    file.append(batch)
    return True
