"""Log directories whose broker had its metadata elsewhere: their topics are those of a new cluster."""

from __future__ import annotations

import random

import pytest

from ottla.base.seams import InlineWorkers, SimulatedClock
from ottla.broker.config_file import load_config
from ottla.broker.directories.take_over import TakeOver
from ottla.log.checkpoints import read_meta_properties, read_topic_id, write_offsets, write_topic_id
from ottla.log.disk import Disk
from ottla.log.log_directories import LogStartError
from ottla.log.log_manager import LogManager
from ottla.log.metadata_snapshots import SnapshotHead, encode_snapshot
from ottla.log.settings import LogManagerSettings, LogSettings
from ottla.metadata.types import UNASSIGNED_DIRECTORY
from ottla.security.entities import TOPICS
from ottla.wire.coordinator_records import encode_coordinator_record
from ottla.wire.messages.transaction_state import TransactionLogKey, TransactionLogValue
from ottla.wire.records import Record, build_batch

from ...controller.helpers.old_state import topic_id
from ..helpers.dying_disk import DiedError, DyingDisk
from ..helpers.old_directories import DIRECTORIES, check_formatted, formatting, image_of, own

NOW_MS = 1_700_000_000_000
TRANSACTIONS = "__transaction_state"
Directories = tuple[str, ...]
RECORD = Record(key=b"k", value=b"v", timestamp=NOW_MS)


def make_manager(disk: Disk, directories: Directories = DIRECTORIES) -> LogManager:
    clock, settings = SimulatedClock(NOW_MS), LogSettings()
    return LogManager(disk, directories, settings, LogManagerSettings(), clock, InlineWorkers(), random.Random(1))


async def filled_disk(directories: Directories = DIRECTORIES) -> DyingDisk:
    """Topics with records of some epochs and of producers, as a broker has left them that was stopped."""
    disk = DyingDisk()
    own(disk, *directories)
    logs = make_manager(disk, directories)
    logs.take(None)
    await logs.load()
    for number, (topic, partition, epochs) in enumerate(
        [("plain", 0, (0, 4)), ("plain", 2, (3,)), ("compacted", 0, (0,)), ("nameless", 0, (1,)), ("unnamed", 0, (1,))]
    ):
        log = logs.get_or_create(topic, partition, topic_id(len(topic)))
        for epoch in epochs:
            batch = build_batch([RECORD], producer_id=5000 + number, producer_epoch=epoch, base_sequence=0)
            log.append_as_leader(batch, epoch, NOW_MS)
    log = logs.get_or_create(TRANSACTIONS, 3, topic_id(99))
    key = encode_coordinator_record(TransactionLogKey(transactional_id="t"), 0)
    value = encode_coordinator_record(TransactionLogValue(producer_id=7001), 0)
    log.append_as_leader(build_batch([Record(key=key, value=value, timestamp=NOW_MS)]), 0, NOW_MS, internal=True)
    await logs.stop()
    for directory in directories:
        if disk.is_dir(f"{directory}/compacted-0"):
            write_offsets(disk, f"{directory}/cleaner-offset-checkpoint", {("compacted", 0): 1})  # type: ignore[dict-item]
        for nameless in ("nameless-0", "unnamed-0"):
            disk.remove(f"{directory}/{nameless}/partition.metadata")
    disk.settle()
    return disk


async def adopt(disk: Disk, seed: int = 0, directories: Directories = DIRECTORIES) -> LogManager:
    """As a start does it: the logs are opened first, because nothing else says what there is."""
    logs = make_manager(disk, directories)
    logs.take(None)
    plan = TakeOver(disk, load_config({}), directories, directories[0])
    if plan.is_due:
        if plan.needs_logs:
            await logs.load()
        plan.run(formatting(directories), random.Random(seed), NOW_MS, logs.logs())
    return logs


def check_adopted(disk: Disk) -> None:
    image = image_of(disk, "/a")
    assert {name: list(topic.partitions) for name, topic in image.topics.items()} == {
        "plain": [0, 1, 2],
        "compacted": [0],
        "nameless": [0],
        "unnamed": [0],
        TRANSACTIONS: [0, 1, 2, 3],
    }
    assert [each.leader_epoch for each in image.topics["plain"].partitions.values()] == [4, 0, 3]
    assert image.topics["plain"].partitions[1].directories == (UNASSIGNED_DIRECTORY,)
    assert image.topics["plain"].topic_id == topic_id(5)
    assert image.next_producer_id == 8000, "above those of producers, and of transactional ids"
    configs = {str(entity.name): values for entity, values in image.configs.items() if entity.kind is TOPICS}
    assert configs["plain"] == configs["nameless"] == {"retention.ms": "-1"}
    assert configs["compacted"] == {"cleanup.policy": "compact"}
    assert configs[TRANSACTIONS]["cleanup.policy"] == "compact"
    check_formatted(disk)
    for topic in image.topics.values():
        for number in topic.partitions:
            for directory in DIRECTORIES:
                folder = f"{directory}/{topic.name}-{number}"
                if disk.is_dir(folder):
                    assert read_topic_id(disk, f"{folder}/partition.metadata") == topic.topic_id


async def test_topics_are_those_of_the_logs() -> None:
    disk = await filled_disk()
    logs = await adopt(disk)
    check_adopted(disk)
    ids = {topic.name: topic.topic_id for topic in image_of(disk, "/a").topics.values()}
    assert {log.topic: log.topic_id for log in logs.logs()} == ids, "a log that is open knows its topic, too"
    disk.restart(random.Random(1))
    await adopt(disk, seed=1)
    assert {topic.name: topic.topic_id for topic in image_of(disk, "/a").topics.values()} == ids, "once"


@pytest.mark.parametrize("mode", ["killed", *range(2)], ids=lambda mode: mode if mode == "killed" else f"power {mode}")
async def test_a_crash_at_each_operation_loses_nothing(mode: int | str) -> None:
    whole = await filled_disk()
    counted = whole.copy()
    await adopt(counted)
    for number in range(counted.operations):
        disk = whole.copy()
        disk.dies_at = number
        try:
            await adopt(disk, seed=number)
        except* DiedError:
            pass
        assert disk.operations == number
        disk.restart(random.Random(f"{number} {mode}") if mode != "killed" else None)
        logs = await adopt(disk, seed=number + 1)
        check_adopted(disk)
        if logs.is_loaded:
            assert {log.log_end_offset for log in logs.logs()} == {1, 2}


async def test_a_node_of_apache_kafka_whose_voters_are_a_property() -> None:
    """Its metadata log is set aside: this node is no voter by it."""
    disk = await filled_disk()
    own(disk, "/a", version=1, directory_id=topic_id(50))
    own(disk, "/b", version=1, directory_id=topic_id(51))
    disk.make_dir("/a/__cluster_metadata-0")
    disk.write_file("/a/__cluster_metadata-0/00000000000000000000.log", b"of Kafka")
    head = b"".join(encode_snapshot(SnapshotHead(0), (), epoch=1, now_ms=1))
    disk.write_file("/a/__cluster_metadata-0/00000000000000000005-0000000001.checkpoint", head)
    disk.settle()
    whole = disk.copy()
    await adopt(disk)
    operations = disk.operations
    check_adopted(disk)
    assert disk.names("/a/__cluster_metadata-0") == ["00000000000000000000-0000000000.checkpoint"]
    for number in range(operations):
        disk = whole.copy()
        disk.dies_at = number
        try:
            await adopt(disk, seed=number)
        except* DiedError:
            pass
        disk.restart(random.Random(number))
        await adopt(disk, seed=number + 1)
        check_adopted(disk)
        (aside,) = (name for name in disk.names("/a") if name.startswith("__cluster_metadata-0."))
        assert disk.read_file(f"/a/{aside}/00000000000000000000.log") == b"of Kafka"


async def test_partitions_of_different_topics_are_left_as_they_are() -> None:
    """It cannot be said which one is meant, and the other would be set aside."""
    disk = await filled_disk()
    path = next(f"{each}/plain-2" for each in DIRECTORIES if disk.is_dir(f"{each}/plain-2"))
    write_topic_id(disk, f"{path}/partition.metadata", topic_id(1234))
    with pytest.raises(LogStartError, match="the partitions of topic plain belong to 2 different topics"):
        await adopt(disk)
    assert not disk.exists("/a/bootstrap.checkpoint")


async def test_a_single_directory_has_the_partitions_that_have_no_log() -> None:
    """A broker with one makes a log when it is written to first."""
    disk = await filled_disk(("/a",))
    await adopt(disk, directories=("/a",))
    meta = read_meta_properties(disk, "/a")
    assert meta is not None
    partitions = [each for topic in image_of(disk, "/a").topics.values() for each in topic.partitions.values()]
    assert {each.directories for each in partitions} == {(meta.directory_id,)}
