"""Brokers on a quorum of Ottla's own controllers: their life, topics, and what happens when a controller is gone."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

import pytest
import trio
from trio.testing import MockClock

from ottla.base.memory_network import MemoryNetwork
from ottla.base.seams import SimulatedClock
from ottla.controller.quorum.active.request_source import RequestSource
from ottla.controller.raft.settings import MetadataLogSettings
from ottla.log.memory_disk import MemoryDisk
from ottla.tests.controller.quorum.active.helpers.controller_server import LEVELS, LISTENER, ControllerQuorum, until
from ottla.wire.messages.alter_client_quotas import AlterClientQuotasRequest, EntityData, EntryData, OpData
from ottla.wire.messages.broker_heartbeat import BrokerHeartbeatRequest
from ottla.wire.messages.broker_registration import BrokerRegistrationRequest, Feature
from ottla.wire.messages.create_topics import CreatableTopic, CreateTopicsRequest
from ottla.wire.messages.fetch import FetchPartition, FetchRequest, FetchTopic
from ottla.wire.messages.metadata import MetadataRequest, MetadataRequestTopic
from ottla.wire.messages.produce import PartitionProduceData, ProduceRequest, TopicProduceData
from ottla.wire.record_codec import Record
from ottla.wire.records import RecordBatch, build_batch

from ..helpers.quorum_world import CLUSTER_ID, HOST, Broker, QuorumWorld


class _Ids:
    """What a ``QuorumWorld`` has to know of controllers."""

    def __init__(self, ids: list[int]) -> None:
        self.ids = ids


class World(QuorumWorld):
    """Three controllers, which run, and brokers as they are started."""

    def __init__(self, folder: Path, nursery: trio.Nursery, log_settings: MetadataLogSettings) -> None:
        self.folder = folder
        self.network = MemoryNetwork(1 << 20)
        self.quorum = ControllerQuorum(CLUSTER_ID, settings={"session_timeout_ms": 3000}, log_settings=log_settings)
        for node_id in (1, 2, 3):
            self.quorum.add(node_id, HOST, node_id, self.network, MemoryDisk(), "data", SimulatedClock())
        self.quorum.format()
        self.controller = _Ids([1, 2, 3])  # type: ignore[assignment]
        self._nursery = nursery

    async def start(self, *ids: int) -> None:
        for node_id in ids:
            await self._nursery.start(self.quorum.servers[node_id].live)


@asynccontextmanager
async def world_of(folder: Path, log_settings: MetadataLogSettings | None = None) -> AsyncIterator[World]:
    async with trio.open_nursery() as nursery:
        world = World(folder, nursery, log_settings or MetadataLogSettings())
        await world.start(1, 2, 3)
        yield world
        nursery.cancel_scope.cancel()


async def create(broker: Broker, name: str, partitions: int = 1, replicas: int = 1) -> None:
    topic = CreatableTopic(name=name, num_partitions=partitions, replication_factor=replicas)
    response = await broker.ask(CreateTopicsRequest(topics=[topic], timeout_ms=30_000), 7)
    (result,) = response.topics
    assert (result.error_code, result.error_message) == (0, None)


async def produce(broker: Broker, topic: str, value: bytes, partition: int = 0) -> int:
    """The error, with acks=all."""
    batch = build_batch([Record(0, 1, None, value, ())])
    data = PartitionProduceData(index=partition, records=batch)
    request = ProduceRequest(
        acks=-1, timeout_ms=10_000, topic_data=[TopicProduceData(name=topic, partition_data=[data])]
    )
    response = await broker.ask(request, 9)
    error: int = response.responses[0].partition_responses[0].error_code
    return error


async def read(broker: Broker, topic: str, partition: int = 0) -> list[bytes]:
    asked = FetchPartition(partition=partition, fetch_offset=0, partition_max_bytes=1 << 20)
    request = FetchRequest(
        max_wait_ms=0, min_bytes=0, max_bytes=1 << 20, topics=[FetchTopic(topic=topic, partitions=[asked])]
    )
    response = await broker.ask(request, 11)
    data = memoryview(response.responses[0].partitions[0].records or b"")
    found = []
    while data:
        batch = RecordBatch(data)
        found += [record.value or b"" for record in batch.records()]
        data = data[batch.size :]
    return found


async def leader_of(broker: Broker, topic: str) -> int:
    response = await broker.ask(MetadataRequest(topics=[MetadataRequestTopic(name=topic)]), 8)
    leader: int = response.topics[0].partitions[0].leader_id
    return leader


async def test_a_broker_registers_and_serves_a_topic(tmp_path: Path, autojump_clock: MockClock) -> None:
    async with world_of(tmp_path) as world, world.running(11) as broker:
        await create(broker, "t")
        await broker.sees("t")
        assert await produce(broker, "t", b"a") == 0
        assert await read(broker, "t") == [b"a"]


async def test_a_broker_that_stops_hands_its_partitions_over_and_gets_them_back(
    tmp_path: Path, autojump_clock: MockClock
) -> None:
    async with world_of(tmp_path) as world, world.running(11) as first:
        async with world.running(12) as second:
            await create(first, "t", replicas=2)
            for broker in (first, second):
                await broker.sees("t")
            led = {11: first, 12: second}[await leader_of(first, "t")]
            assert await produce(led, "t", b"a") == 0
            stopped = 12
        with trio.fail_after(60):
            while await leader_of(first, "t") != 11:
                await trio.sleep(0.1)
        assert await produce(first, "t", b"b") == 0
        async with world.running(stopped) as second:
            await second.sees("t")
            with trio.fail_after(60):
                while len(second.services.metadata.image.topics["t"].partitions[0].isr) < 2:
                    await trio.sleep(0.1)
            assert await read(first, "t") == [b"a", b"b"]


async def test_a_client_that_the_controller_holds_up_waits_at_its_broker(
    tmp_path: Path, autojump_clock: MockClock
) -> None:
    async with world_of(tmp_path) as world, world.running(11) as broker:
        ops = [OpData(key="controller_mutation_rate", value=1.0, remove=False)]
        entry = EntryData(entity=[EntityData(entity_type="user", entity_name="ANONYMOUS")], ops=ops)
        (result,) = (await broker.ask(AlterClientQuotasRequest(entries=[entry]), 1)).entries
        assert result.error_code == 0
        topic = CreatableTopic(name="t", num_partitions=20, replication_factor=1)
        response = await broker.ask(CreateTopicsRequest(topics=[topic], timeout_ms=10_000), 5)
        assert response.topics[0].error_code == 0
        assert response.throttle_time_ms > 1000
        held_up_at = trio.current_time()
        await broker.ask(MetadataRequest(topics=[]), 8)
        assert trio.current_time() - held_up_at == pytest.approx(response.throttle_time_ms / 1000, abs=0.5)


async def test_a_lone_broker_that_falls_silent_is_fenced(tmp_path: Path, autojump_clock: MockClock) -> None:
    """At its first heartbeat no other session is there whose end the controller waits for."""
    async with world_of(tmp_path) as world:
        node = (await world.quorum.active()).node
        registration = BrokerRegistrationRequest(
            broker_id=11,
            cluster_id=CLUSTER_ID,
            incarnation_id=b"incarnation 11 a",
            features=[
                Feature(name=name, min_supported_version=0, max_supported_version=level)
                for name, level in {**LEVELS, "kraft.version": 1}.items()
            ],
            log_dirs=[b"directory of 11 "],
        )
        epoch = (await node.ask(registration, RequestSource(4), LISTENER)).broker_epoch
        beat = BrokerHeartbeatRequest(broker_id=11, broker_epoch=epoch, current_metadata_offset=epoch)
        assert not (await node.ask(beat, RequestSource(1), LISTENER)).is_fenced
        await trio.sleep(2.9)
        assert not node.controller.state.image.quorum_brokers[11].is_fenced
        await trio.sleep(0.2)
        assert node.controller.state.image.quorum_brokers[11].is_fenced


async def test_any_controller_may_be_gone(tmp_path: Path, autojump_clock: MockClock) -> None:
    async with world_of(tmp_path) as world, world.running(11) as broker:
        for turn in range(4):
            active = await world.quorum.active()
            await active.kill()
            await world.quorum.active()
            await create(broker, f"t{turn}")
            await broker.sees(f"t{turn}")
            assert await produce(broker, f"t{turn}", b"a") == 0
            await world.start(active.node_id)
        states = [server.node.controller for server in world.quorum.servers.values()]
        await until(lambda: all(set(each.state.image.topics) == {"t0", "t1", "t2", "t3"} for each in states))


async def test_an_idle_quorum_writes_nothing(tmp_path: Path, autojump_clock: MockClock) -> None:
    async with world_of(tmp_path) as world, world.running(11):
        active = await world.quorum.active()
        await trio.sleep(5)
        end = active.node.driver.node.quorum.log.end_offset
        await trio.sleep(120)
        assert active.node.driver.node.quorum.log.end_offset == end
        assert active.is_active


async def test_controllers_register_in_each_life(tmp_path: Path, autojump_clock: MockClock) -> None:
    """Without that no feature could be upgraded: it must be known what each of them supports."""
    async with world_of(tmp_path) as world:
        servers = world.quorum.servers

        def registered() -> dict[int, bytes]:
            known = next(each for each in servers.values() if each.is_active).node.controller.state.image
            return {node_id: each.incarnation_id for node_id, each in known.quorum_controllers.items()}

        active = await world.quorum.active()
        await until(lambda: set(registered()) == {1, 2, 3})
        before = registered()
        await active.kill()
        await world.quorum.active()
        await world.start(active.node_id)
        await until(lambda: registered()[active.node_id] != before[active.node_id])
        others = {node_id: each for node_id, each in before.items() if node_id != active.node_id}
        assert {node_id: each for node_id, each in registered().items() if node_id != active.node_id} == others


async def test_controllers_sum_their_log_up_in_snapshots(tmp_path: Path, autojump_clock: MockClock) -> None:
    """And delete what these stand for. One that was away meanwhile, and a new broker, begin with a snapshot."""
    settings = MetadataLogSettings({"record_bytes_between_snapshots": 2000, "retention_bytes": 4000})
    async with world_of(tmp_path, settings) as world, world.running(11) as broker:
        servers = world.quorum.servers
        await world.quorum.active()
        away = next(server for server in servers.values() if not server.is_active)
        await away.kill()
        for number in range(40):
            await create(broker, f"t{number}")
        await trio.sleep(130)  # two rounds of the cleaner
        others = [server for server in servers.values() if server is not away]
        assert all(server.node.driver.node.quorum.log.start_offset > 0 for server in others)
        await world.start(away.node_id)
        topics = {f"t{number}" for number in range(40)}
        await until(lambda: all(set(each.node.controller.state.image.topics) == topics for each in servers.values()))
        assert away.node.driver.node.quorum.log.start_offset > 0
        active = await world.quorum.active()
        await active.kill()
        await world.quorum.active()
        async with world.running(12) as second:
            await until(lambda: set(second.services.metadata.image.topics) == topics)
