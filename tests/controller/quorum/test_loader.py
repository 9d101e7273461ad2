"""What is committed is published: at the right time, once, and in transactions all or nothing."""

from __future__ import annotations

import math
from collections.abc import Sequence

import pytest

from ottla.controller.quorum.loader import MetadataLoader
from ottla.controller.quorum.replay import ReplayError
from ottla.controller.raft.metadata_log import CommittedBatch
from ottla.metadata.delta import ClusterDelta
from ottla.metadata.image import ClusterImage
from ottla.metadata.types import LogPosition
from ottla.wire.messages.metadata_log_records import (
    AbortTransactionRecord,
    BeginTransactionRecord,
    EndTransactionRecord,
    NoOpRecord,
)
from ottla.wire.messages.setting_records import FeatureLevelRecord, ProducerIdsRecord
from ottla.wire.schema import Message

from .helpers.images import contents

FEATURE = FeatureLevelRecord(name="metadata.version", feature_level=30)


def ids(next_producer_id: int) -> ProducerIdsRecord:
    return ProducerIdsRecord(next_producer_id=next_producer_id)


class Loading:
    """A loader, what it publishes, and the log that it is given."""

    def __init__(self) -> None:
        self.image = ClusterImage()
        self.published: list[ClusterDelta] = []
        self.loader = MetadataLoader(self._publish)
        self._end = 0

    def _publish(self, delta: ClusterDelta) -> None:
        self.published.append(delta)
        self.image = self.image.apply(delta)

    def batch(self, *records: Message) -> CommittedBatch:
        """The next one of the log; without records one with a control record."""
        self._end += max(1, len(records))
        return CommittedBatch(LogPosition(self._end - 1, 1, self._end), list(records), 100)

    async def commit(self, *batches: Sequence[Message], high_watermark: float = 0) -> None:
        await self.loader.commit([self.batch(*records) for records in batches], high_watermark)
        assert contents(self.image) == contents(self.loader.image)

    @property
    def ids(self) -> list[int | None]:
        return [delta.next_producer_id for delta in self.published]


async def test_what_is_committed_together_is_published_once() -> None:
    loading = Loading()
    await loading.commit([FEATURE], [ids(1)], [ids(2)])
    await loading.commit([ids(3)])
    assert loading.ids == [2, 3]
    assert loading.image.position == LogPosition(3, 1, 4)
    assert loading.loader.loaded_offset == 4


async def test_nothing_is_published_before_all_of_the_high_watermark_is_loaded() -> None:
    loading = Loading()
    await loading.commit([FEATURE], [ids(1)], high_watermark=math.inf)
    await loading.commit([ids(2)], high_watermark=4)
    assert loading.published == []
    await loading.commit([ids(3)], high_watermark=4)
    assert loading.ids == [3]
    await loading.commit([ids(4)], high_watermark=9)
    assert loading.ids == [3, 4]


async def test_no_empty_image_is_published() -> None:
    """A broker that believed one would set all of its logs aside (KAFKA-15389)."""
    loading = Loading()
    await loading.commit([], [], high_watermark=2)
    assert loading.published == []
    await loading.commit([NoOpRecord()], high_watermark=2)
    assert len(loading.published) == 1


async def test_a_transaction_is_published_when_it_ends_and_not_in_part() -> None:
    loading = Loading()
    await loading.commit([FEATURE, ids(1)])
    await loading.commit([ids(2)], [BeginTransactionRecord(), ids(3)])
    assert loading.ids == [1, 2]
    await loading.commit([ids(4)])
    assert loading.ids == [1, 2]
    assert loading.image.position == LogPosition(2, 1, 3)
    await loading.commit([EndTransactionRecord()])
    assert loading.ids == [1, 2, 4]


async def test_an_aborted_transaction_leaves_nothing() -> None:
    loading = Loading()
    await loading.commit([FEATURE, ids(1)])
    await loading.commit([BeginTransactionRecord(), ids(2)], [AbortTransactionRecord()], [ids(3)])
    await loading.commit([BeginTransactionRecord(), ids(4)], [AbortTransactionRecord()])
    assert loading.image.next_producer_id == 3
    assert [delta.next_producer_id for delta in loading.published] == [1, 3, None]


@pytest.mark.parametrize(
    "records",
    [
        [EndTransactionRecord()],
        [AbortTransactionRecord()],
        [BeginTransactionRecord(), BeginTransactionRecord()],
    ],
)
async def test_transactions_that_do_not_fit_are_errors(records: list[Message]) -> None:
    with pytest.raises(ReplayError, match="metadata transaction"):
        await Loading().commit([FEATURE], records)


async def test_a_snapshot_takes_the_place_of_everything_and_publishes_what_differs() -> None:
    loading = Loading()
    await loading.commit([FEATURE, ids(1)], [BeginTransactionRecord()])
    await loading.loader.load_snapshot([[FEATURE], [ids(7)]], LogPosition(99, 2, 5), 100)
    assert loading.loader.loaded_offset == 100
    assert not loading.loader.is_in_transaction
    assert loading.image.next_producer_id == 7
    assert contents(loading.image) == contents(loading.loader.image)


async def test_a_snapshot_at_the_start_waits_for_the_high_watermark() -> None:
    loading = Loading()
    await loading.loader.load_snapshot([[FEATURE, ids(7)]], LogPosition(0, 1, 1), math.inf)
    loading._end = 1
    assert loading.published == []
    await loading.commit([ids(8)], high_watermark=2)
    assert loading.ids == [8]
    assert loading.image.features is not None
