"""``bootstrap.checkpoint``: what is written is read, and a file that no cluster can begin with is refused."""

from __future__ import annotations

import pytest

from ottla.controller.quorum.bootstrap import bootstrap_records, read_bootstrap, write_bootstrap
from ottla.controller.quorum.metadata_version import FEATURE
from ottla.log.checkpoints import CorruptFileError
from ottla.log.memory_disk import MemoryDisk
from ottla.wire.messages.topic_records import PartitionRecord, TopicRecord
from ottla.wire.metadata_records import VersionedRecord

TOPIC_ID = bytes(range(16))


def test_each_record_keeps_the_version_that_it_was_written_in() -> None:
    disk = MemoryDisk()
    disk.make_dir("/data")
    partitions: list[VersionedRecord] = [
        (PartitionRecord(partition_id=number, topic_id=TOPIC_ID, replicas=[1], isr=[1], directories=[TOPIC_ID]), 2)
        for number in range(30_000)
    ]
    topic: VersionedRecord = (TopicRecord(name="t", topic_id=TOPIC_ID), 0)
    records = [*bootstrap_records({FEATURE: 30}, []), topic, *partitions]
    write_bootstrap(disk, "/data", records, 1)
    assert read_bootstrap(disk, "/data") == records


def test_a_cluster_cannot_begin_without_a_metadata_version() -> None:
    disk = MemoryDisk()
    disk.make_dir("/data")
    write_bootstrap(disk, "/data", [(TopicRecord(name="t", topic_id=TOPIC_ID), 0)], 1)
    with pytest.raises(CorruptFileError, match="there is no level of metadata"):
        read_bootstrap(disk, "/data")
