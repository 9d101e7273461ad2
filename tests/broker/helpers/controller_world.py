"""Nodes of Ottla with the roles of a cluster of KRaft, as ``ottla serve`` runs them: in one loop, on one network in memory."""

from __future__ import annotations

import random
from collections.abc import AsyncIterator, Callable, Sequence
from contextlib import asynccontextmanager
from typing import Any, TypeVar

import trio

from ottla.base.memory_network import MemoryNetwork
from ottla.base.seams import InlineWorkers, SimulatedClock, Workers
from ottla.broker.config_file import load_config
from ottla.broker.controller_only import ControllerOnlyServer
from ottla.broker.controller_role import ControllerRole
from ottla.broker.directories.format_directories import Formatting, format_folders
from ottla.broker.server import BrokerFailedError, BrokerServer
from ottla.compat_tests.raw.requests import batch, fetch_request, produce_request
from ottla.controller.raft.voters import InitialVoter
from ottla.handlers.services import Services
from ottla.log.memory_disk import MemoryDisk
from ottla.replication.broker_client import BrokerClient
from ottla.wire.messages.access_records import UserScramCredentialRecord
from ottla.wire.messages.create_topics import CreatableTopic, CreateTopicsRequest
from ottla.wire.messages.setting_records import ClientQuotaRecord, EntityData
from ottla.wire.metadata_records import VersionedRecord
from ottla.wire.records import iter_batches
from ottla.wire.schema import Message

CLUSTER_ID = "3Db5QLSqSZieL3rJBUUegA"
SECONDS = 120.0


class _Life:
    """One life of a node."""

    def __init__(self, server: BrokerServer | ControllerOnlyServer) -> None:
        self.server = server
        self.scope = trio.CancelScope()
        self.ready = trio.Event()
        self.over = trio.Event()
        self.failure: BrokerFailedError | None = None


class ControllerWorld:
    """Nodes 1, 2, … at ``nodeN:9092``, and their controllers at ``nodeN:9093``; ``roles`` of each by its id."""

    def __init__(self, nursery: trio.Nursery, roles: dict[int, str], *, is_static: bool = False) -> None:
        self.network = MemoryNetwork(1 << 20)
        self.roles = roles
        self.is_static = is_static
        self.credentials: Sequence[UserScramCredentialRecord] = ()
        """Those of SCRAM that a cluster begins with."""
        self.workers: dict[int, Workers] = {}
        """What nodes run blocking calls in, where it is not the loop."""
        self.lives: dict[int, _Life] = {}
        self._nursery = nursery
        self._disks = {node_id: MemoryDisk() for node_id in roles}
        self._clients: dict[int, BrokerClient] = {}
        self._starts = 0

    @property
    def controllers(self) -> list[int]:
        """The ids of the nodes with that role."""
        return [node_id for node_id, roles in self.roles.items() if "controller" in roles]

    def disk(self, node_id: int) -> MemoryDisk:
        return self._disks[node_id]

    def empty_disk(self, node_id: int) -> None:
        """Another one, without files, for a node that does not run."""
        self._disks[node_id] = MemoryDisk()

    def format(
        self,
        *node_ids: int,
        voters: Sequence[int] | None = None,
        records: Sequence[VersionedRecord] = (),
        as_kafka: bool = False,
    ) -> None:
        """Format the log directories of these nodes, by default of all, with these first voters, by default all controllers.

        ``as_kafka``: as kafka-storage does, which begins a cluster with features that Ottla lacks.
        """
        first = [] if self.is_static else self.controllers if voters is None else voters
        initial = [InitialVoter(each, f"node{each}", 9093, bytes(15) + bytes([200 + each])) for each in first]
        for node_id in node_ids or self.roles:
            wanted = Formatting(
                node_id,
                CLUSTER_ID,
                ["/data"],
                "/data",
                "CONTROLLER",
                is_dynamic=not self.is_static,
                voters=initial if "controller" in self.roles[node_id] else (),
                credentials=self.credentials,
                is_controller="controller" in self.roles[node_id] and not as_kafka,
                records=records,
            )
            format_folders(self._disks[node_id], wanted, random.Random(node_id), 1, lambda line: None)

    def properties(self, node_id: int, **own: str) -> dict[str, str]:
        """``own`` have _ for the dots."""
        roles = self.roles[node_id]
        listeners = {"broker": f"PLAINTEXT://node{node_id}:9092", "controller": f"CONTROLLER://node{node_id}:9093"}
        quorum = {"controller.quorum.bootstrap.servers": ",".join(f"node{each}:9093" for each in self.controllers)}
        if self.is_static:
            quorum = {"controller.quorum.voters": ",".join(f"{each}@node{each}:9093" for each in self.controllers)}
        return {
            "process.roles": roles,
            "node.id": str(node_id),
            "log.dirs": "/data",
            "listeners": ",".join(listeners[role] for role in roles.split(",")),
            "controller.listener.names": "CONTROLLER",
            "offsets.topic.num.partitions": "3",
            "transaction.state.log.num.partitions": "3",
            **quorum,
            **{name.replace("_", "."): value for name, value in own.items()},
        }

    def make_server(self, node_id: int, **own: str) -> BrokerServer | ControllerOnlyServer:
        self._starts += 1
        config = load_config(self.properties(node_id, **own))
        kind = BrokerServer if "broker" in self.roles[node_id] else ControllerOnlyServer
        return kind(
            config,
            network=self.network,
            clock=SimulatedClock(),
            workers=self.workers.get(node_id, InlineWorkers()),
            disk=self._disks[node_id],
            randomness=random.Random(f"{node_id} {self._starts}"),
        )

    # --- lives --------------------------------------------------------------------------------------------------------

    async def start(self, *node_ids: int, **own: str) -> None:
        """Start nodes, by default all of them, and wait until all are ready."""
        started = [self.start_soon(node_id, **own) for node_id in node_ids or self.roles]
        with trio.fail_after(SECONDS):
            for life in started:
                await life.ready.wait()

    def start_soon(self, node_id: int, **own: str) -> _Life:
        life = self.lives[node_id] = _Life(self.make_server(node_id, **own))
        self._nursery.start_soon(self._serve, life)
        return life

    async def _serve(self, life: _Life) -> None:
        with life.scope:
            try:
                await life.server.serve(life.ready.set)
            except BrokerFailedError as error:
                life.failure = error
        life.over.set()

    async def failure(self, node_id: int) -> BrokerFailedError:
        """What has ended a node, once it has ended by itself."""
        life = self._end(node_id)
        with trio.fail_after(SECONDS):
            await life.over.wait()
        assert life.failure is not None
        return life.failure

    async def stop(self, *node_ids: int) -> None:
        """Stop nodes one after the other, as SIGTERM does."""
        for node_id in node_ids:
            life = self._end(node_id)
            life.server.stop()
            with trio.fail_after(SECONDS):
                await life.over.wait()

    async def kill(self, node_id: int) -> None:
        """End a node as SIGKILL does: what it still does is not seen on its disk."""
        life = self._end(node_id)
        self.abandon_disk(node_id)
        life.scope.cancel()
        await life.over.wait()

    def abandon_disk(self, node_id: int) -> None:
        """From now on nobody sees what is done to the disk by a process that has it now."""
        before = self._disks[node_id]
        before.kill()
        self._disks[node_id] = _copied(before)

    def _end(self, node_id: int) -> _Life:
        self.forget_client(node_id)
        return self.lives.pop(node_id)

    def forget_client(self, node_id: int) -> None:
        """Close the connection of ``ask``."""
        client = self._clients.pop(node_id, None)
        if client is not None:
            client.close()

    # --- what is seen -------------------------------------------------------------------------------------------------

    def role(self, node_id: int) -> ControllerRole:
        """The controller of a node that runs."""
        server = self.lives[node_id].server
        if isinstance(server, ControllerOnlyServer):
            role = server.role
        else:
            role = server.controller
        assert role is not None
        return role

    def services(self, node_id: int) -> Services:
        server = self.lives[node_id].server
        assert isinstance(server, BrokerServer)
        assert server.assembly is not None
        return server.assembly.services

    async def active(self) -> int:
        """The id of the active controller, once there is one."""
        found: list[int] = []

        def is_there() -> bool:
            found[:] = [each for each in self.controllers if each in self.lives and self._is_active(each)]
            return bool(found)

        await until(is_there)
        return found[0]

    def _is_active(self, node_id: int) -> bool:
        return self.lives[node_id].ready.is_set() and self.role(node_id).node.controller.is_active

    # --- a client -----------------------------------------------------------------------------------------------------

    async def ask(self, node_id: int, request: Message, version: int) -> Any:
        client = self._clients.get(node_id)
        if client is None:
            client = self._clients[node_id] = self.make_client(node_id)
        return await client.send(request, version)

    def make_client(self, node_id: int) -> BrokerClient:
        return BrokerClient(self.network, f"node{node_id}", 9092, "client")

    async def create(self, at: int, topic: str, replicas: int = 1, partitions: int = 1) -> None:
        """Have a topic made, and wait until the node at hand has seen it."""
        wanted = CreatableTopic(name=topic, num_partitions=partitions, replication_factor=replicas)
        response = await self.ask(at, CreateTopicsRequest(topics=[wanted], timeout_ms=30_000), 7)
        (result,) = response.topics
        assert (result.error_code, result.error_message) == (0, None)
        await until(lambda: topic in self.services(at).metadata.image.topics)

    def leader(self, at: int, topic: str) -> int:
        """The leader of partition 0, as a broker knows it; -1 where there is none."""
        return self.services(at).metadata.image.topics[topic].partitions[0].leader

    async def in_sync(self, at: int, topic: str, count: int) -> None:
        """Wait until partition 0 has so many replicas in sync, as a broker knows it."""
        topics = self.services(at).metadata
        await until(lambda: len(topics.image.topics[topic].partitions[0].isr) == count)

    async def produce(self, topic: str, value: bytes) -> None:
        """Until it is acknowledged by all replicas in sync."""

        async def try_once() -> bool:
            brokers = [each for each in self.lives if "broker" in self.roles[each] and self.lives[each].ready.is_set()]
            leader = self.leader(brokers[0], topic)
            if leader not in brokers:
                return False
            response = await self.ask(leader, produce_request(topic, {0: batch(value)}, -1), 9)
            return not response.responses[0].partition_responses[0].error_code

        with trio.fail_after(SECONDS):
            while not await try_once():
                await trio.sleep(0.05)

    async def values(self, topic: str, at: int) -> list[bytes]:
        response = await self.ask(self.leader(at, topic), fetch_request(topic, {0: 0}), 12)
        (partition,) = response.responses[0].partitions
        assert not partition.error_code
        return [record.value or b"" for each in iter_batches(partition.records or b"") for record in each.records()]


def _copied(disk: MemoryDisk) -> MemoryDisk:
    """A disk with the same files, which nobody has open."""
    copy = MemoryDisk()

    def take(path: str) -> None:
        for name in disk.names(path):
            below = f"{path}/{name}"
            if disk.is_dir(below):
                copy.make_dir(below)
                take(below)
            else:
                copy.write_file(below, disk.read_file(below))

    copy.make_dir("/data")
    take("/data")
    return copy


def quota_records(count: int) -> list[VersionedRecord]:
    """A quota each of many users."""
    return [
        (
            ClientQuotaRecord(
                entity=[EntityData(entity_type="user", entity_name=f"u{n}")], key="producer_byte_rate", value=1e9
            ),
            0,
        )
        for n in range(count)
    ]


async def until(condition: Any) -> None:
    """Return once it holds."""
    with trio.fail_after(SECONDS):
        while not condition():
            await trio.sleep(0.01)


World = TypeVar("World", bound=ControllerWorld)


@asynccontextmanager
async def formed(kind: Callable[..., World], roles: dict[int, str], *, is_static: bool = False) -> AsyncIterator[World]:
    """A world of this kind, whose cluster was formatted and runs."""
    async with trio.open_nursery() as nursery:
        world = kind(nursery, roles, is_static=is_static)
        world.format()
        await world.start()
        await world.active()
        yield world
        nursery.cancel_scope.cancel()
