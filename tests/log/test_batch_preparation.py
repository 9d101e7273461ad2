"""Large batches that are checked and prepared in workers."""

from __future__ import annotations

import pytest

from ottla.base.errors import ErrorCode, KafkaError
from ottla.base.seams import InlineWorkers
from ottla.log.batch_preparation import BatchPreparation
from ottla.log.settings import LogSettings
from ottla.wire.compression import GZIP, NONE
from ottla.wire.records import Record, RecordBatch, build_batch

NOW_MS = 1_700_000_000_000


@pytest.mark.parametrize("codec", [NONE, GZIP], ids=["plain", "compressed"])
async def test_only_the_topic_limits_how_large_a_batch_of_many_records_may_be(codec: int) -> None:
    """6 MB in 20,000 records: more than the first lane takes."""
    settings = LogSettings().with_topic_overrides({"max.message.bytes": str(20 << 20)})
    records = [Record(key=b"k", value=bytes(300), timestamp=NOW_MS) for _ in range(20_000)]
    batch = RecordBatch(memoryview(build_batch(records, compression=codec)))
    prepared = await BatchPreparation(InlineWorkers()).run(batch, settings, "orders", NOW_MS)
    assert prepared.record_count == 20_000


async def test_what_the_topic_does_not_allow_is_refused() -> None:
    settings = LogSettings().with_topic_overrides(
        {"max.message.bytes": str(1 << 20), "compression.type": "uncompressed"}
    )
    records = [Record(key=b"k", value=bytes(300), timestamp=NOW_MS) for _ in range(20_000)]
    batch = RecordBatch(memoryview(build_batch(records, compression=GZIP)))
    with pytest.raises(KafkaError) as refused:
        await BatchPreparation(InlineWorkers()).run(batch, settings, "orders", NOW_MS)
    assert refused.value.code is ErrorCode.MESSAGE_TOO_LARGE
