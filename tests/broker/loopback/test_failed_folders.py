"""Brokers with two log directories each, of which one fails, moves or is replaced while they replicate."""

from __future__ import annotations

import errno

import trio.testing

from ottla.base.errors import ErrorCode
from ottla.log.partition_log import PartitionLog
from ottla.metadata.types import PartitionRegistration
from ottla.wire.messages.alter_replica_log_dirs import (
    AlterReplicaLogDir,
    AlterReplicaLogDirsRequest,
    AlterReplicaLogDirTopic,
)

from ...helpers.memory_cluster import MemoryCluster, running, until

FOLDERS = ("/first", "/second")
ON_TWO_FOLDERS = {"log_dirs": ",".join(FOLDERS), "auto_leader_rebalance_enable": "false"}
EIO = OSError(errno.EIO, "gone")


def log_of(cluster: MemoryCluster, broker_id: int, number: int) -> PartitionLog:
    return cluster.services(broker_id).replicas.partition("t", number).log


def told(cluster: MemoryCluster, broker_id: int, number: int) -> PartitionRegistration:
    """What a broker tells clients of a partition."""
    state = cluster.services(broker_id).metadata.partition("t", number)
    assert state is not None
    return state


def fail_folder_of(cluster: MemoryCluster, broker_id: int, number: int) -> int:
    """The folder with that partition fails on a broker; the partition that was spared."""
    folder = log_of(cluster, broker_id, number).folder
    (spared,) = (other for other in range(2) if log_of(cluster, broker_id, other).folder is not folder)
    folder.fail("a test", EIO)
    return spared


async def in_sync_everywhere(cluster: MemoryCluster, number: int, leader: int) -> None:
    await until(lambda: told(cluster, leader, number).leader == leader)
    await until(lambda: set(cluster.services(leader).replicas.partition("t", number).isr) == {1, 2, 3})


async def test_what_was_led_in_a_failed_folder_is_led_elsewhere(autojump_clock: trio.testing.MockClock) -> None:
    async with running(1, 2, 3, **ON_TWO_FOLDERS) as cluster:
        await cluster.create("t", (1, 2, 3), (1, 3, 2), min_insync_replicas="2")
        for number in range(2):
            assert await cluster.produce(1, "t", number, b"before") == ErrorCode.NONE
        spared = fail_folder_of(cluster, 1, 0)
        await until(lambda: told(cluster, 1, 0).leader == 2)
        assert sorted(told(cluster, 2, 0).isr) == [2, 3]
        await until(lambda: told(cluster, 3, 0).offline == (1,))
        assert await cluster.produce(1, "t", 0, b"here") == ErrorCode.KAFKA_STORAGE_ERROR
        assert await cluster.produce(2, "t", 0, b"after") == ErrorCode.NONE
        assert await cluster.produce(1, "t", spared, b"after") == ErrorCode.NONE
        assert await cluster.values(2, "t", 0) == [b"before", b"after"]
        # The other folder is in sync as before.
        assert sorted(told(cluster, 2, spared).isr) == [1, 2, 3]


async def test_a_follower_with_a_failed_folder_leaves_the_replicas_in_sync(
    autojump_clock: trio.testing.MockClock,
) -> None:
    async with running(1, 2, 3, **ON_TWO_FOLDERS) as cluster:
        await cluster.create("t", (1, 2, 3), (1, 3, 2), min_insync_replicas="2")
        spared = fail_folder_of(cluster, 2, 0)
        await until(lambda: sorted(told(cluster, 1, 0).isr) == [1, 3])
        assert told(cluster, 1, 0).offline == (2,)
        for number in range(2):
            assert await cluster.produce(1, "t", number, b"x") == ErrorCode.NONE
        await until(lambda: log_of(cluster, 2, spared).high_watermark == 1)
        # It leads nothing in that folder, however few replicas are left.
        await cluster.stop(1, 3)
        await until(lambda: told(cluster, 2, spared).leader == 2)
        await until(lambda: told(cluster, 2, 0).leader == -1)


async def test_a_failed_write_of_what_a_leader_sent_fails_the_folder(autojump_clock: trio.testing.MockClock) -> None:
    async with running(1, 2, 3, **ON_TWO_FOLDERS) as cluster:
        await cluster.create("t", (1, 2, 3), (1, 3, 2), min_insync_replicas="2")
        failed = log_of(cluster, 3, 0).folder.path
        spared = next(number for number in range(2) if log_of(cluster, 3, number).folder.path != failed)
        cluster.disk(3).fail("write", where=lambda path: path.startswith(failed))
        # Waits for broker 3, which is in sync, until the controller has taken it out.
        assert await cluster.produce(1, "t", 0, b"x") == ErrorCode.NONE
        assert sorted(told(cluster, 1, 0).isr) == [1, 2]
        assert await cluster.produce(1, "t", spared, b"x") == ErrorCode.NONE
        assert sorted(told(cluster, 1, spared).isr) == [1, 2, 3]
        await until(lambda: told(cluster, 2, 0).offline == (3,))


async def test_a_replaced_folder_is_filled_anew(autojump_clock: trio.testing.MockClock) -> None:
    async with running(1, 2, 3, **ON_TWO_FOLDERS) as cluster:
        await cluster.create("t", (1, 2, 3), (1, 3, 2), min_insync_replicas="2")
        for number in range(2):
            assert await cluster.produce(1, "t", number, b"a", b"b") == ErrorCode.NONE
        failed = log_of(cluster, 2, 0).folder.path
        fail_folder_of(cluster, 2, 0)
        await until(lambda: sorted(told(cluster, 1, 0).isr) == [1, 3])
        await cluster.stop(2)
        cluster.disk(2).remove_dir(failed)
        await cluster.start(2)
        for number in range(2):
            await in_sync_everywhere(cluster, number, 1)
            assert log_of(cluster, 2, number).log_end_offset == 2
        assert log_of(cluster, 2, 0).folder.path == failed
        await until(lambda: told(cluster, 3, 0).offline == ())
        await cluster.stop(1)
        await until(lambda: told(cluster, 2, 0).leader == 2)
        assert await cluster.values(2, "t", 0) == [b"a", b"b"]


async def test_a_broker_that_starts_without_one_of_its_folders(autojump_clock: trio.testing.MockClock) -> None:
    async with running(1, 2, 3, **ON_TWO_FOLDERS) as cluster:
        await cluster.create("t", (1, 2, 3), (1, 3, 2), min_insync_replicas="2")
        failed = log_of(cluster, 2, 0).folder.path
        await cluster.stop(2)
        cluster.disk(2).fail("open", where=lambda path: path.startswith(failed))
        await cluster.start(2)
        # It says KAFKA_STORAGE_ERROR to the controller's first LeaderAndIsr, and makes no log in the other folder.
        await until(lambda: told(cluster, 1, 0).offline == (2,))
        await in_sync_everywhere(cluster, 1, 1)
        assert cluster.services(2).replicas.offline_count == 1


async def test_a_follower_moves_to_another_folder_while_it_replicates(autojump_clock: trio.testing.MockClock) -> None:
    async with running(1, 2, 3, **ON_TWO_FOLDERS) as cluster:
        await cluster.create("t", (1, 2, 3), min_insync_replicas="2")
        target = next(path for path in FOLDERS if path != log_of(cluster, 2, 0).folder.path)
        written: list[bytes] = []

        async def write(count: int) -> None:
            for _ in range(count):
                value = b"%d" % len(written)
                assert await cluster.produce(1, "t", 0, value) == ErrorCode.NONE
                written.append(value)

        await write(5)
        topic = AlterReplicaLogDirTopic(name="t", partitions=[0])
        request = AlterReplicaLogDirsRequest(dirs=[AlterReplicaLogDir(path=target, topics=[topic])])
        (answer,) = (await cluster.ask(2, request, 2)).results[0].partitions
        assert answer.error_code == ErrorCode.NONE
        while log_of(cluster, 2, 0).folder.path != target:
            await write(1)
        await write(5)
        assert sorted(told(cluster, 1, 0).isr) == [1, 2, 3]
        await cluster.stop(1)
        await until(lambda: told(cluster, 2, 0).leader == 2)
        await until(lambda: log_of(cluster, 2, 0).high_watermark == len(written))
        assert await cluster.values(2, "t", 0) == written


async def test_preferred_leaders_lead_again_after_a_restart(autojump_clock: trio.testing.MockClock) -> None:
    every = {"leader_imbalance_check_interval_seconds": "30"}
    async with running(1, 2, 3, **every) as cluster:
        await cluster.create("t", (2, 1, 3), (3, 2, 1), min_insync_replicas="2")
        await trio.sleep(10)  # the first look, 5 s after the election of the controller, finds nothing to do
        await cluster.stop(2)
        assert told(cluster, 1, 0).leader in (1, 3)
        await cluster.start(2)
        await until(lambda: 2 in told(cluster, 1, 0).isr)
        assert told(cluster, 1, 0).leader in (1, 3)
        with trio.fail_after(60):
            while told(cluster, 1, 0).leader != 2:
                await trio.sleep(1)
        assert sorted(told(cluster, 1, 0).isr) == [1, 2, 3]
        assert told(cluster, 1, 1).leader == 3
        assert await cluster.produce(2, "t", 0, b"x") == ErrorCode.NONE
