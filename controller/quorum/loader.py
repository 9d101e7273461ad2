"""The metadata loader, which turns the committed metadata log into deltas for this broker's publishers.

Batches and snapshots go into a ``RecordReplay``; at the end of what was committed together its delta is published, once. Within a
metadata transaction (KIP-868) nothing is: its records wait until it ends, and an aborted one leaves nothing.

Nothing is published before the loader has caught up with the high watermark that the quorum told it of at the start, and has seen
a record of metadata: a broker that believed an empty image would set all of its logs aside (KAFKA-15389).

Model: Kafka's MetadataLoader and MetadataBatchLoader.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from typing import NamedTuple

import trio

from ...metadata.delta import ClusterDelta
from ...metadata.difference import delta_between
from ...metadata.image import ClusterImage
from ...metadata.types import LogPosition
from ...wire.messages.metadata_log_records import (
    AbortTransactionRecord,
    BeginTransactionRecord,
    EndTransactionRecord,
)
from ...wire.schema import Message
from ..raft.metadata_log import CommittedBatch
from .metadata_version import finalized_level
from .registrations import ReplayError
from .replay import RecordReplay

_TURN_SECONDS = 0.002


class LoaderManifest(NamedTuple):
    """What has made an image of the one before it."""

    is_snapshot: bool
    """True of the first image as well, which counts as what the node has begun with."""
    log_bytes: int
    """The size of the batches of the log."""


class MetadataLoader:
    """Replays what is committed. ``publish`` is called with each delta of the image that was published before."""

    def __init__(self, publish: Callable[[ClusterDelta], None]) -> None:
        self._publish = publish
        self.on_image: Callable[[ClusterImage, LoaderManifest], None] = lambda image, manifest: None
        """Called with each image, after its delta was published."""
        self.on_load: Callable[[], None] = lambda: None
        """Called when batches have moved ``loaded_offset``."""
        self.image = ClusterImage()
        """The image that was published last."""
        self.loaded_offset = 0
        """The offset up to which everything was replayed."""
        self.has_caught_up = False
        self.is_held = False
        """While it is set, nothing is published."""
        self.snapshots_loaded = 0
        # What the replay began with: the published image, or a snapshot that was loaded and is not published yet.
        self._base = self.image
        self._replay = RecordReplay(self._base)
        self._position: LogPosition | None = None
        # The records of a metadata transaction that has not ended; None outside of one.
        self._transaction: list[Message] | None = None
        self._has_seen_record = False
        self._log_bytes = 0

    @property
    def is_in_transaction(self) -> bool:
        return self._transaction is not None

    async def commit(self, batches: Iterable[CommittedBatch], high_watermark: float) -> None:
        """Take batches that lie in a row, and publish what they change. Raises ReplayError."""
        turn_ends = trio.current_time() + _TURN_SECONDS
        for batch in batches:
            for index, record in enumerate(batch.records):
                if isinstance(record, BeginTransactionRecord) and not index:
                    self.publish_changes(high_watermark)  # or they would wait for the transaction to end
                self._take(record)
                if trio.current_time() > turn_ends:
                    await trio.lowlevel.checkpoint()
                    turn_ends = trio.current_time() + _TURN_SECONDS
            self._position = batch.position
            self.loaded_offset = batch.position.offset + 1
            self._log_bytes += batch.size
            self._has_seen_record = self._has_seen_record or bool(batch.records)
        self.publish_changes(high_watermark)
        self.on_load()

    def _take(self, record: Message) -> None:
        if isinstance(record, BeginTransactionRecord):
            if self._transaction is not None:
                raise ReplayError("a metadata transaction begins in another one")
            self._transaction = []
        elif isinstance(record, EndTransactionRecord):
            for waiting in self._end_transaction("ends"):
                self._replay.replay(waiting)
        elif isinstance(record, AbortTransactionRecord):
            self._end_transaction("is aborted")
        elif self._transaction is not None:
            self._transaction.append(record)
        else:
            self._replay.replay(record)

    def _end_transaction(self, how: str) -> list[Message]:
        if self._transaction is None:
            raise ReplayError(f"a metadata transaction {how} that has not begun")
        records, self._transaction = self._transaction, None
        return records

    async def load_snapshot(
        self, batches: Iterable[Sequence[Message]], position: LogPosition, high_watermark: float
    ) -> None:
        """Replace everything by a snapshot that ends with ``position``. Raises ReplayError, CorruptFileError."""
        loaded = await snapshot_image(batches, position)
        self.snapshots_loaded += 1
        self._has_seen_record = self._has_seen_record or finalized_level(loaded.features) > 0
        self._transaction = None
        self._position = position
        self.loaded_offset = position.offset + 1
        self._base = loaded
        self._replay = RecordReplay(loaded)
        self.publish_changes(high_watermark)

    def publish_changes(self, high_watermark: float) -> None:
        """Publish what was loaded, if it is enough by now."""
        if self._position is None or self._position == self.image.position or self.is_in_transaction:
            return
        if self._may_publish(high_watermark) and not self.is_held:
            self._publish_now()

    def _may_publish(self, high_watermark: float) -> bool:
        """Whether enough is known; once it is, that stays so."""
        if not self.has_caught_up and self._has_seen_record:
            self.has_caught_up = self.loaded_offset >= high_watermark
        return self.has_caught_up

    def _publish_now(self) -> None:
        assert self._position is not None
        delta = self._replay.delta(self._position)
        replaces = self._base is not self.image
        if replaces:
            delta = delta_between(self.image, self._base.apply(delta))
        manifest = LoaderManifest(replaces or self.image.position is None, self._log_bytes)
        self.image = self._base = self.image.apply(delta)
        self._replay = RecordReplay(self._base)
        self._log_bytes = 0
        self._publish(delta)
        self.on_image(self.image, manifest)

    def release(self) -> None:
        """Publish again, beginning with what has changed since ``is_held`` was set."""
        self.is_held = False
        self.publish_changes(0)


async def snapshot_image(batches: Iterable[Sequence[Message]], position: LogPosition) -> ClusterImage:
    """The image that a snapshot holds, which ends with ``position``. Raises ReplayError, CorruptFileError."""
    replay = RecordReplay(ClusterImage())
    for records in batches:
        replay.replay_all(records)
        await trio.lowlevel.checkpoint()
    return ClusterImage().apply(replay.delta(position))
