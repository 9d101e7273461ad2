"""A broker that was told of no quorum and no ZooKeeper: it is a quorum by itself."""

from __future__ import annotations

import itertools
import random
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

import pytest
import trio
from trio.testing import MockClock

from ottla.base.config import Config
from ottla.base.errors import ErrorCode
from ottla.base.memory_network import MemoryNetwork
from ottla.base.seams import InlineWorkers, SimulatedClock
from ottla.broker.config_file import load_config
from ottla.broker.directories.format_directories import Formatting, format_folders
from ottla.broker.server import BrokerServer, StartError
from ottla.compat_tests.raw.requests import batch, produce_request
from ottla.controller.new_topics import NewTopic
from ottla.controller.raft.voters import InitialVoter
from ottla.log.checkpoints import read_meta_properties
from ottla.log.disk import Disk
from ottla.log.memory_disk import MemoryDisk
from ottla.replication.broker_client import BrokerClient

from ...helpers.memory_broker import running
from ..helpers.dying_disk import DyingDisk

HOUR_SECONDS = 3600.0
_starts = itertools.count(1)


def server_on(disk: Disk, **properties: str) -> BrokerServer:
    """Broker 1. ``properties`` have _ for the dots."""
    named = {name.replace("_", "."): value for name, value in properties.items()}
    config: Config = load_config({"listeners": "PLAINTEXT://test:9092", "log.dirs": "/data", **named})
    return BrokerServer(
        config,
        network=MemoryNetwork(),
        clock=SimulatedClock(),
        workers=InlineWorkers(),
        disk=disk,
        randomness=random.Random(next(_starts)),
    )


@asynccontextmanager
async def served(disk: Disk, **properties: str) -> AsyncIterator[BrokerServer]:
    async with running(server_on(disk, **properties)) as server:
        yield server


async def create(server: BrokerServer, topic: str) -> None:
    assert server.assembly is not None
    assert await server.assembly.services.cluster.create_missing_topics([NewTopic(topic, 3)]) == {topic: None}


async def produce(server: BrokerServer, topic: str) -> None:
    client = BrokerClient(server._network, "test", 9092, "producer")
    response = await client.send(produce_request(topic, {0: batch(b"v")}, -1), 9)
    assert response.responses[0].partition_responses[0].error_code == ErrorCode.NONE
    client.close()


def topics(server: BrokerServer) -> set[str]:
    assert server.assembly is not None
    return set(server.assembly.services.metadata.topics)


async def test_an_idle_one_writes_nothing(autojump_clock: MockClock) -> None:
    disk = DyingDisk()
    async with served(disk) as server:
        await create(server, "t")
        await trio.sleep(1.5 * HOUR_SECONDS)  # what has changed is summed up in a snapshot within the first hour
        disk.operations = 0
        await trio.sleep(2 * HOUR_SECONDS)
        assert disk.operations == 0


async def test_a_killed_one_is_back_at_once(autojump_clock: MockClock) -> None:
    """The session that it left would keep it waiting; but whoever controls it was killed with it."""
    disk = DyingDisk()
    async with served(disk) as server:
        await create(server, "t")
        disk = disk.copy()
    before = trio.current_time()
    async with served(disk) as server:
        assert topics(server) == {"t"}
    assert trio.current_time() - before < 1, "broker.session.timeout.ms is 9 s"


async def test_a_folder_that_is_added_is_one_of_the_same_node(autojump_clock: MockClock) -> None:
    disk = MemoryDisk()
    async with served(disk) as server:
        await create(server, "t")
    async with served(disk, log_dirs="/data,/more") as server:
        assert topics(server) == {"t"}
    first, second = (read_meta_properties(disk, folder) for folder in ("/data", "/more"))
    assert first is not None and second is not None
    assert (second.cluster_id, second.broker_id) == (first.cluster_id, first.broker_id)
    assert second.directory_id != first.directory_id


async def test_the_folder_with_the_metadata_cannot_be_new_where_others_are_not(autojump_clock: MockClock) -> None:
    disk = MemoryDisk()
    async with served(disk) as server:
        await create(server, "t")
    with pytest.raises(StartError, match="Its disk may be missing"):
        await server_on(disk, log_dirs="/other,/data").serve()
    assert not disk.exists("/other/meta.properties")


async def test_a_listener_of_its_controller_makes_it_reachable(autojump_clock: MockClock) -> None:
    """Other nodes find it where it says, in the records of its voters."""
    disk = MemoryDisk()
    async with served(disk) as server:
        await create(server, "t")
    roles = {
        "process_roles": "broker,controller",
        "node_id": "1",
        "controller_listener_names": "CONTROLLER",
        "controller_quorum_bootstrap_servers": "test:9093",
        "listeners": "PLAINTEXT://test:9092,CONTROLLER://test:9093",
    }
    async with served(disk, **roles) as server:
        assert topics(server) == {"t"}
        assert server.controller is not None
        raft = server.controller.node.driver.node
        assert raft.leader_address == ("test", 9093)
        ((endpoint,),) = (raft.quorum.voters.endpoints(node_id) for node_id in raft.quorum.voters.ids)
        assert (endpoint.host, endpoint.port) == ("test", 9093)


STATIC = {
    "process_roles": "broker,controller",
    "node_id": "1",
    "controller_listener_names": "CONTROLLER",
    "controller_quorum_voters": "1@test:9093",
    "listeners": "PLAINTEXT://test:9092,CONTROLLER://test:9093",
}


async def test_a_folder_that_is_added_where_the_voter_is_a_property(autojump_clock: MockClock) -> None:
    """Its metadata log has no voters, and is its own all the same."""
    disk = MemoryDisk()
    async with served(disk, **STATIC) as server:
        await create(server, "empty")
    async with served(disk, **STATIC, log_dirs="/data,/more") as server:
        assert topics(server) == {"empty"}, "no log tells of it, since nobody has written to it"
    assert not [name for name in disk.names("/data") if name.endswith("-stray")]


async def test_the_folder_of_a_voter_by_a_property_becomes_one_of_a_quorum_by_itself(autojump_clock: MockClock) -> None:
    """As one that Apache Kafka has used by itself: the topics are those whose logs are there."""
    disk = MemoryDisk()
    async with served(disk, **STATIC) as server:
        await create(server, "t")
        await produce(server, "t")
    for _ in range(2):
        async with served(disk, node_id="1") as server:
            assert topics(server) == {"t"}
            await produce(server, "t")


async def test_the_folder_of_a_node_whose_controllers_are_others_is_refused_at_once(autojump_clock: MockClock) -> None:
    disk = MemoryDisk()
    voters = [InitialVoter(2, "elsewhere", 9093, bytes(range(16)))]
    wanted = Formatting(1, "cluster", ["/data"], "/data", "CONTROLLER", is_dynamic=True, voters=voters)
    format_folders(disk, wanted, random.Random(1), 1, lambda line: None)
    with pytest.raises(StartError, match=r"it is started with process\.roles"):
        await server_on(disk).serve()
    assert trio.current_time() < 1, "nobody was waited for"
