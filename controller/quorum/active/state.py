"""The state of a controller: the image of all applied records, and the indexes derived from it.

It is a value. Each batch of records makes the next one, at a cost of what the batch changes. So the active controller goes on
with records that are not committed yet, and keeps the states in between; when it loses the leadership, the last committed one
stands (Kafka reverts its timeline structures). One cost grows with what exists: a change of a partition copies the dict of its
topic's partitions, and an older state that is read again copies each dict once (``PersistentDict``).

The records of a metadata transaction (KIP-868) wait until it has ended, and an aborted one leaves nothing.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping, Sequence

from ....metadata.delta import ClusterDelta
from ....metadata.image import ClusterImage
from ....metadata.types import LogPosition
from ....wire.messages.broker_records import RegisterBrokerRecord, UnregisterBrokerRecord
from ....wire.messages.metadata_log_records import (
    AbortTransactionRecord,
    BeginTransactionRecord,
    EndTransactionRecord,
)
from ....wire.schema import Message
from ..registrations import ReplayError
from ..replay import RecordReplay
from .image_index import ImageIndex
from .metadata_counts import MetadataCounts

_NOTHING = ClusterDelta()
_NO_COUNTS = MetadataCounts()
_Held = tuple[tuple[int, Message], ...]
"""Records of a transaction that has not ended, each with its offset."""


@dataclasses.dataclass(frozen=True)
class ControllerState:
    """What a controller knows after a record of the metadata log."""

    image: ClusterImage = dataclasses.field(default_factory=ClusterImage)
    index: ImageIndex = dataclasses.field(default_factory=ImageIndex)
    registration_offsets: Mapping[int, int] = dataclasses.field(default_factory=dict)
    """By broker, the offset of the last record that registered it, at which the broker has caught up with itself. It is above
    the broker epoch if the broker has registered again under the same epoch."""
    transaction: _Held | None = None
    """None outside of a transaction of the metadata log."""
    counts: MetadataCounts = _NO_COUNTS
    delta: ClusterDelta = _NOTHING
    """What the last batch has changed of the image."""

    @classmethod
    def of(cls, image: ClusterImage, counts: MetadataCounts = _NO_COUNTS) -> ControllerState:
        """The state of a node that has loaded ``image`` from a snapshot. It had ``counts``, of which elections go on."""
        epochs = {broker_id: broker.epoch for broker_id, broker in image.quorum_brokers.newest().items()}
        return cls(image, ImageIndex.of(image), epochs, counts=counts.replaced(image))

    def apply(self, records: Sequence[Message], position: LogPosition) -> ControllerState:
        """The state after a batch whose last record is at ``position``. Raises ReplayError, and then nothing has changed."""
        base_offset = position.offset + 1 - len(records)
        ready: list[tuple[int, Message]] = []
        held = None if self.transaction is None else list(self.transaction)
        for offset, record in enumerate(records, base_offset):
            if isinstance(record, BeginTransactionRecord):
                if held is not None:
                    raise ReplayError("a metadata transaction begins in another one")
                held = []
            elif isinstance(record, (EndTransactionRecord, AbortTransactionRecord)):
                if held is None:
                    raise ReplayError("a metadata transaction ends that has not begun")
                ready += [] if isinstance(record, AbortTransactionRecord) else held
                held = None
            else:
                (ready if held is None else held).append((offset, record))
        state = self._replayed(ready, position) if ready else dataclasses.replace(self, delta=_NOTHING)
        return dataclasses.replace(state, transaction=None if held is None else tuple(held))

    def _replayed(self, records: Sequence[tuple[int, Message]], position: LogPosition) -> ControllerState:
        replay = RecordReplay(self.image)
        offsets: dict[int, int | None] = {}
        for offset, record in records:
            replay.replay(record)
            if isinstance(record, RegisterBrokerRecord):
                offsets[record.broker_id] = offset
            elif isinstance(record, UnregisterBrokerRecord):
                offsets[record.broker_id] = None
        delta = replay.delta(position)
        known = self.registration_offsets
        if offsets:
            merged = {**known, **offsets}
            known = {broker_id: offset for broker_id, offset in merged.items() if offset is not None}
        index = self.index.apply(self.image, delta)
        counts = self.counts.apply(self.image, delta)
        return ControllerState(self.image.apply(delta), index, known, counts=counts, delta=delta)
