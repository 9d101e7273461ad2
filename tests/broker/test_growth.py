"""A broker that was alone is started with a ZooKeeper, here a store in memory: its cluster goes on there, and others join.

A crash is put after each step of the move, in the store and on the disk; whatever it leaves, the next start goes on.
"""

from __future__ import annotations

import functools
from collections.abc import AsyncIterator, Callable, Sequence
from contextlib import asynccontextmanager
from typing import Any

import pytest
import trio

from ottla.base.errors import ErrorCode, KafkaError
from ottla.base.seams import InlineWorkers, SystemClock
from ottla.broker.server import StartError
from ottla.controller.zookeeper import partition_states, znodes
from ottla.controller.zookeeper.growth import Growth, has_state
from ottla.controller.zookeeper.registration import ensure_cluster
from ottla.controller.zookeeper.state_move import moved_nodes
from ottla.controller.zookeeper.store.cluster_home import STATE_FOLDER, ClusterHome, EmbeddedHome
from ottla.controller.zookeeper.store.cluster_store import (
    Create,
    Delete,
    Operation,
    Result,
    Set,
    StoreError,
    ensure_paths,
)
from ottla.controller.zookeeper.store.embedded_store import EmbeddedStore
from ottla.controller.zookeeper.store.state_files import DiskStateFiles
from ottla.log.checkpoints import MetaProperties, read_meta_properties, write_meta_properties
from ottla.log.memory_disk import MemoryDisk
from ottla.metadata.types import LeaderState, ReplicaAssignment, TopicAssignment
from ottla.wire.messages.describe_configs import DescribeConfigsRequest, DescribeConfigsResource
from ottla.wire.messages.init_producer_id import InitProducerIdRequest

from ..memory_cluster import MemoryCluster, SharedZooKeeper

DATA = "/data"
CLUSTER = "5PFQQV4rS9CcOzxExgYs7g"


class GrowingCluster(MemoryCluster):
    """Brokers with homes of their own choice; the ZooKeeper is ``store``."""

    alone = False

    def home(self, broker_id: int) -> ClusterHome:
        if self.alone:
            return EmbeddedHome(self.disk(broker_id), SystemClock(), InlineWorkers())
        return SharedZooKeeper(self.store)


@asynccontextmanager
async def first_broker(*, alone: bool) -> AsyncIterator[GrowingCluster]:
    """A cluster in which broker 1 runs."""
    async with trio.open_nursery() as nursery:
        cluster = GrowingCluster(nursery)
        await cluster.store.open()
        cluster.alone = alone
        await cluster.start(1)
        yield cluster


async def start_refused(cluster: MemoryCluster, broker_id: int) -> str:
    """Why the broker does not start."""
    with pytest.raises(StartError) as caught:
        await cluster.make_server(broker_id).serve()
    return str(caught.value)


async def producer_id(cluster: MemoryCluster, broker_id: int) -> int:
    """One that the broker has not given out before; it gets them from the controller, and says so until they are there."""
    request = InitProducerIdRequest(transactional_id=None, transaction_timeout_ms=1000)
    while (answer := await cluster.ask(broker_id, request, 4)).error_code == ErrorCode.COORDINATOR_LOAD_IN_PROGRESS:
        await trio.sleep(0.005)
    assert answer.error_code == ErrorCode.NONE
    given: int = answer.producer_id
    return given


async def test_one_broker_grows_to_three() -> None:
    async with first_broker(alone=True) as cluster:
        topic_id = await cluster.create("t", [1], retention_ms="12345")
        assert await cluster.produce(1, "t", 0, b"before") == 0
        first_id = await producer_id(cluster, 1)
        cluster_id = cluster.services(1).cluster_id
        await cluster.stop(1)

        cluster.alone = False
        await cluster.start(1, 2, 3)
        assert {cluster.services(b).cluster_id for b in (1, 2, 3)} == {cluster_id}
        described = (await cluster.metadata(2, "t")).topics[0]
        assert described.topic_id == topic_id
        assert await cluster.produce(1, "t", 0, b"after") == 0
        assert await cluster.values(1, "t", 0) == [b"before", b"after"]
        resource = DescribeConfigsResource(resource_type=2, resource_name="t", configuration_keys=["retention.ms"])
        (result,) = (await cluster.ask(3, DescribeConfigsRequest(resources=[resource]), 4)).results
        assert result.configs[0].value == "12345"
        assert await producer_id(cluster, 2) > first_id
        await cluster.create("wide", [1, 2, 3])
        assert await cluster.produce(1, "wide", 0, b"x") == 0
        assert sorted((await cluster.metadata(3, "wide")).topics[0].partitions[0].isr_nodes) == [1, 2, 3]
        assert "before-zookeeper.journal" in cluster.disk(1).names(DATA)

        await cluster.stop(3, 2, 1)
        cluster.alone = True
        why = await start_refused(cluster, 1)
        assert "belongs to broker 1 of a cluster whose state is in the ZooKeeper zookeeper:2181/kafka" in why
        assert "in the ZooKeeper" in await start_refused(cluster, 2)


async def test_a_broker_that_was_alone_is_refused_by_the_zookeeper_of_another_cluster() -> None:
    async with first_broker(alone=True) as cluster:
        await cluster.create("t", [1])
        own = cluster.services(1).cluster_id
        await cluster.stop(1)
        cluster.alone = False
        await cluster.start(2)
        assert f"it has cluster {cluster.services(2).cluster_id}, and this is broker 1 of cluster {own}" in (
            await start_refused(cluster, 1)
        )
        cluster.alone = True
        await cluster.start(1)  # nothing was lost
        assert (await cluster.metadata(1, "t")).topics[0].error_code == 0
        await cluster.stop(1, 2)


async def test_a_broker_of_a_cluster_is_refused_by_an_empty_zookeeper() -> None:
    """Where the path in zookeeper.connect is mistyped: it would find none of its topics."""
    async with first_broker(alone=False) as cluster:
        await cluster.stop(1)
        cluster.store = EmbeddedStore(SystemClock())
        await cluster.store.open()
        assert "has no cluster: zookeeper.connect may be wrong" in await start_refused(cluster, 1)
        assert await cluster.store.session().exists(znodes.CLUSTER_ID) is None


# --- a crash after each step ------------------------------------------------------------------------------------------


class Crash(Exception):
    """The process ends."""


class Fuse:
    """Blows before or after the step with the number ``at``."""

    def __init__(self, at: int, *, is_done: bool) -> None:
        self._left = at
        self._is_done = is_done

    def step(self, action: Callable[[], Any]) -> Any:
        self._left -= 1
        if self._left == 0 and not self._is_done:
            raise Crash
        result = action()
        if self._left == 0:
            raise Crash
        return result

    async def async_step(self, action: Callable[[], Any]) -> Any:
        self._left -= 1
        if self._left == 0 and not self._is_done:
            raise Crash
        result = await action()
        if self._left == 0:
            raise Crash
        return result


class CrashingStore:
    """A session whose writes are steps."""

    def __init__(self, session: Any, fuse: Fuse) -> None:
        self._session = session
        self._fuse = fuse

    def __getattr__(self, name: str) -> Any:
        return getattr(self._session, name)

    async def multi(self, operations: Sequence[Operation]) -> list[Result]:
        return await self._fuse.async_step(functools.partial(self._session.multi, operations))  # type: ignore[no-any-return]


class CrashingDisk:
    """A disk whose changes are steps."""

    def __init__(self, disk: MemoryDisk, fuse: Fuse) -> None:
        self._disk = disk
        self._fuse = fuse

    def __getattr__(self, name: str) -> Any:
        found = getattr(self._disk, name)
        if name in ("rename", "write_file", "remove_dir"):
            return lambda *arguments, **named: self._fuse.step(functools.partial(found, *arguments, **named))
        return found


@pytest.fixture
def small_transactions(monkeypatch: pytest.MonkeyPatch) -> None:
    """So small that a ``state`` takes several."""
    monkeypatch.setattr(partition_states, "MAX_OPERATIONS", 100)


def state() -> list[Operation]:
    """The nodes of a cluster of one."""
    operations: list[Operation] = [
        Create(znodes.CLUSTER_ID, znodes.encode_cluster_id(CLUSTER)),
        Create(znodes.CONTROLLER_EPOCH, b"7"),
        Create(znodes.CONTROLLER, znodes.encode_controller(1, 0), ephemeral=True),
        Create(znodes.config_path("brokers", "<default>"), znodes.encode_config({"log.cleaner.threads": "2"})),
        Create(znodes.CONFIG_CHANGE_PREFIX, znodes.encode_config_change("brokers/<default>"), sequence=True),
        Create(znodes.delete_topic_path("t3")),
        Set(znodes.PRODUCER_ID_BLOCK, znodes.encode_producer_id_block(1, 3000, 3999)),
    ]
    for name in ("t1", "t2", "t3"):
        assignment = TopicAssignment(name.encode() * 8, {p: ReplicaAssignment((1,)) for p in range(40)})
        operations.append(Create(znodes.topic_path(name), znodes.encode_topic(assignment)))
        operations.append(Create(znodes.topic_config_path(name), znodes.encode_config({"retention.ms": "1"})))
        operations.append(Create(znodes.partitions_path(name)))
        for number in range(40):
            operations.append(Create(znodes.partition_path(name, number)))
            leader = LeaderState(1, number, (1,), 7)
            operations.append(Create(znodes.state_path(name, number), znodes.encode_state(leader)))
    return operations


async def write_state(disk: MemoryDisk, *operations: Operation) -> dict[str, bytes]:
    """What the broker does while it is alone; the nodes that would be moved then."""
    store = EmbeddedStore(SystemClock(), InlineWorkers(), DiskStateFiles(disk, f"{DATA}/{STATE_FOLDER}"))
    await store.open()
    session = store.session()
    await ensure_paths(session, znodes.PERSISTENT_PATHS)
    await session.multi(operations)
    return moved_nodes(store.tree)


async def grow(disk: Any, session: Any) -> None:
    async def identify(cluster_id: str) -> None:
        write_meta_properties(disk, DATA, MetaProperties(1, cluster_id, 0, SharedZooKeeper.zookeeper))

    meta = read_meta_properties(disk, DATA)
    growth = Growth(session, disk, InlineWorkers(), DATA, 1, identify)
    await growth.run(None if meta is None else meta.cluster_id)


async def check_moved(disk: MemoryDisk, store: EmbeddedStore, expected: dict[str, bytes]) -> None:
    assert moved_nodes(store.tree) == expected
    session = store.session()
    assert await ensure_cluster(session, None) == CLUSTER  # type: ignore[arg-type]
    assert await session.children(znodes.CONFIG_CHANGES) == await session.children(znodes.BROKER_IDS) == []
    assert sorted(disk.names(DATA)) == ["before-zookeeper.journal", "meta.properties"]


@pytest.mark.usefixtures("small_transactions")
@pytest.mark.parametrize("is_done", [False, True])
async def test_a_move_that_a_crash_ends_goes_on_at_the_next_start(is_done: bool) -> None:
    at = 0
    while True:
        at += 1
        disk, store = MemoryDisk(), EmbeddedStore(SystemClock())
        disk.make_dir(DATA)
        await store.open()
        nodes = await write_state(disk, *state())
        fuse = Fuse(at, is_done=is_done)
        try:
            await grow(CrashingDisk(disk, fuse), CrashingStore(store.session(), fuse))
        except Crash:
            meta = read_meta_properties(disk, DATA)
            if meta is None:
                assert has_state(disk, DATA), "the broker can go on alone"
            else:
                assert moved_nodes(store.tree) == nodes
            if await store.session().exists(znodes.CLUSTER_ID) is not None:
                await check_that_others_wait(store, nodes)
            await grow(disk, store.session())
        else:
            assert at > 8
            return
        await check_moved(disk, store, nodes)


async def check_that_others_wait(store: EmbeddedStore, nodes: dict[str, bytes]) -> None:
    """No other broker joins a cluster that is not whole."""
    try:
        await ensure_cluster(store.session(), None)  # type: ignore[arg-type]
    except StoreError as error:
        assert "broker 1 has begun to move the state of its cluster into this ZooKeeper" in str(error)
    else:
        assert moved_nodes(store.tree) == nodes


@pytest.mark.usefixtures("small_transactions")
async def test_a_broker_that_ran_alone_after_half_a_move_moves_what_it_did_then() -> None:
    disk, store = MemoryDisk(), EmbeddedStore(SystemClock())
    disk.make_dir(DATA)
    await store.open()
    await write_state(disk, *state())
    fuse = Fuse(5, is_done=True)
    with pytest.raises(Crash):
        await grow(disk, CrashingStore(store.session(), fuse))
    nodes = await write_state(
        disk,
        Delete(znodes.delete_topic_path("t3")),
        Set(znodes.topic_config_path("t1"), znodes.encode_config({})),
        Set(znodes.CONTROLLER_EPOCH, b"8"),
    )
    await grow(disk, store.session())
    await check_moved(disk, store, nodes)


@pytest.mark.parametrize("path", [znodes.topic_path("theirs"), znodes.broker_path(9), "/config/users/alice"])
async def test_a_zookeeper_with_anything_in_it_is_left_as_it_is(path: str) -> None:
    disk, store = MemoryDisk(), EmbeddedStore(SystemClock())
    disk.make_dir(DATA)
    await store.open()
    session = store.session()
    await ensure_paths(session, [*znodes.PERSISTENT_PATHS, path])
    await write_state(disk, *state())
    before = {path: node.data for path, node in store.tree.entries()}
    with pytest.raises(KafkaError, match=f"there is something in {path.rpartition('/')[0]} already"):
        await grow(disk, store.session())
    assert {path: node.data for path, node in store.tree.entries()} == before
    assert has_state(disk, DATA)


async def test_a_copy_of_a_folder_that_has_grown_is_refused() -> None:
    """What it knows may be older than the cluster, or newer: only people can say."""
    disk, copy, store = MemoryDisk(), MemoryDisk(), EmbeddedStore(SystemClock())
    await store.open()
    for each in (disk, copy):
        each.make_dir(DATA)
        await write_state(each, *state())
    await grow(disk, store.session())
    with pytest.raises(KafkaError, match=f"cluster {CLUSTER} is there already, and not from this data folder"):
        await grow(copy, store.session())
    assert has_state(copy, DATA)
