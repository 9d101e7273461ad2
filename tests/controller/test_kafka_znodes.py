"""What Ottla's controller makes of a real ZooKeeper is what Apache Kafka 3.9.2 made of one, node for node and byte for byte.

``kafka-3.9.2-znodes.txt`` is what three Kafka brokers left there. The same is done here, at the same times and with the same
random topic ids, so nothing but a node of Ottla's own is left out of the comparison: paths, versions, which nodes are
ephemeral, and all data. In which order nodes are written, and how many of them at once, is not compared. Nor is the order of
the keys of a Scala or Java map with more than a few entries, which is a hash's in Kafka and ascending here: no topic of the
file has so many partitions.
"""

from __future__ import annotations

import random
from collections.abc import AsyncIterator, Iterable, Mapping
from contextlib import AsyncExitStack, asynccontextmanager
from pathlib import Path

import pytest
import trio

from ottla.base.partitions import TopicPartition
from ottla.compat_tests.zookeeper import ZooKeeperProcess
from ottla.controller.new_topics import CreatedTopic, NewTopic
from ottla.controller.settings import ControllerSettings
from ottla.controller.zookeeper.active.controller import ZooKeeperController
from ottla.controller.zookeeper.config_store import ConfigStore
from ottla.controller.zookeeper.nodes import znodes
from ottla.controller.zookeeper.registration import ensure_cluster, register_broker
from ottla.controller.zookeeper.store.cluster_store import ClusterStore, Create, Operation, Set
from ottla.controller.zookeeper.store.session import BrokerSession
from ottla.controller.zookeeper.store.zookeeper import ZooKeeper
from ottla.log.settings import LogSettings
from ottla.metadata.rules.election import ElectionType
from ottla.metadata.types import AdvertisedListener, BrokerRegistration
from ottla.replication.metadata_cache import MetadataCache
from ottla.security.entities import DEFAULT, Entity
from ottla.tests.controller.helpers.cluster import RecordingBroker, until
from ottla.wire.messages.allocate_producer_ids import AllocateProducerIdsRequest
from ottla.wire.messages.alter_partition import (
    AlterPartitionRequest,
    BrokerState,
    PartitionData,
    TopicData,
)
from ottla.wire.schema import uuid_from_text

from .helpers.store_place import PATIENCE
from .helpers.zookeeper_place import new_path, zookeeper_at

pytestmark = pytest.mark.slow

CAPTURED = Path(__file__).with_name("kafka-3.9.2-znodes.txt")
TOPIC_IDS = {"t2": "ITfn8P4ySKuqlF_K3yw_PQ", "gone": "FrlREbLaQ-C4RxOR_so6gA"}

Tree = dict[str, tuple[str, str]]
"""Flags and data by path."""


def trees(captured: Path = CAPTURED) -> dict[str, Tree]:
    """What Kafka had after each step."""
    found: dict[str, Tree] = {}
    tree: Tree = {}
    for line in captured.read_text().splitlines():
        if line.startswith("= "):
            tree = dict(tree)
            found[line[2:]] = tree
        elif line.startswith("-"):
            del tree[line[1:]]
        elif line.startswith("/"):
            path, flags, data = line.split("\t")
            tree[path] = (flags, data)
    return found


async def read_tree(store: ClusterStore, folder: str = "") -> Tree:
    """Every node below ``folder`` but Ottla's own."""
    tree: Tree = {}
    for name in await store.children(folder or "/"):
        path = f"{folder}/{name}"
        if path == znodes.KNOWN_BROKERS:
            continue
        node = await store.get(path)
        flags = "ephemeral " if node.stat.ephemeral_owner else ""
        tree[path] = (f"[{flags}version={node.stat.version}]", node.data.decode())
        tree |= await read_tree(store, path)
    return tree


async def fill(store: ClusterStore, tree: Tree) -> None:
    """Have all but the ephemeral nodes in the store, with their versions."""
    operations: list[Operation] = []
    for path, (flags, data) in sorted(tree.items()):
        if "ephemeral" not in flags:
            operations.append(Create(path, data.encode()))
            operations += [Set(path, data.encode())] * int(flags.rstrip("]").rpartition("=")[2])
    await store.multi(operations)


class At:
    """A clock that stands still."""

    def __init__(self, now_ms: int) -> None:
        self._now_ms = now_ms

    def now_ms(self) -> int:
        return self._now_ms

    def elapsed(self) -> float:
        return trio.current_time()


class Ids(random.Random):
    """Draws the topic ids that Kafka drew."""

    def __init__(self, ids: Iterable[str]) -> None:
        super().__init__(7)
        self._ids = [uuid_from_text(text) for text in ids]

    def randbytes(self, n: int) -> bytes:
        return self._ids.pop(0) if n == 16 else super().randbytes(n)


class Brokers:
    """Three brokers at a ZooKeeper; what their controllers tell them they note."""

    def __init__(self, zookeeper: ZooKeeper, tasks: trio.Nursery, looking: ClusterStore, ids: Ids) -> None:
        self.zookeeper = zookeeper
        self.looking = looking
        """A session of no broker's."""
        self.recording = {broker_id: RecordingBroker() for broker_id in (1, 2, 3)}
        self.sessions: dict[int, BrokerSession] = {}
        self.epochs: dict[int, int] = {}
        self._tasks = tasks
        self._ids = ids

    async def register(self, broker_id: int, now_ms: int, port: int | None = None) -> None:
        session = self.sessions[broker_id] = BrokerSession(self.zookeeper.connect, await self.zookeeper.connect())
        endpoint = AdvertisedListener("PLAINTEXT", "127.0.0.1", port or 29391 + broker_id)
        registration = BrokerRegistration(broker_id, (endpoint,))
        self.epochs[broker_id] = await register_broker(session, registration, At(now_ms))

    async def controller(self, broker_id: int, now_ms: int) -> tuple[ZooKeeperController, ConfigStore]:
        """A broker's controller, which stands for election at once."""
        session = self.sessions[broker_id]
        configs = ConfigStore(session, At(now_ms), MetadataCache())
        await configs.start()
        controller = ZooKeeperController(
            broker_id,
            session,
            configs,
            lambda broker: self.recording[broker.registration.broker_id],
            ControllerSettings.from_properties({"auto.leader.rebalance.enable": "false"}),
            LogSettings(),
            At(now_ms),
            self._ids,
            "PLAINTEXT",
        )
        await controller.start()
        self._tasks.start_soon(controller.run)
        return controller, configs

    async def until_tree(self, expected: Tree) -> None:
        """Return once ZooKeeper has exactly this. Raises AssertionError with what is different."""
        tree: Tree = {}
        with trio.move_on_after(PATIENCE):
            while (tree := await read_tree(self.looking)) != expected:
                await trio.sleep(0.05)
        assert tree == expected


@asynccontextmanager
async def brokers(server: ZooKeeperProcess, topic_ids: Iterable[str] = TOPIC_IDS.values()) -> AsyncIterator[Brokers]:
    zookeeper = zookeeper_at(server.address + new_path())
    async with AsyncExitStack() as stack:
        stack.callback(zookeeper.close)
        tasks = await stack.enter_async_context(trio.open_nursery())
        found = Brokers(zookeeper, tasks, await zookeeper.connect(), Ids(topic_ids))
        yield found
        tasks.cancel_scope.cancel()
        for session in (*found.sessions.values(), found.looking):
            await session.close()


async def create(
    controller: ZooKeeperController, name: str, assignment: Mapping[int, list[int]], **configs: str
) -> None:
    named = {key.replace("_", "."): value for key, value in configs.items()}
    [result] = (await controller.create_topics([NewTopic(name, assignment=assignment, configs=named)])).values()
    assert isinstance(result, CreatedTopic), result


def in_sync(epoch: int, partition: int, leader_epoch: int, version: int, isr: list[int]) -> AlterPartitionRequest:
    """A leader's wish."""
    data = PartitionData(
        partition_index=partition,
        leader_epoch=leader_epoch,
        new_isr_with_epochs=[BrokerState(broker_id=broker_id, broker_epoch=-1) for broker_id in isr],
        leader_recovery_state=0,
        partition_epoch=version,
    )
    topic = TopicData(topic_id=uuid_from_text(TOPIC_IDS["t2"]), partitions=[data])
    return AlterPartitionRequest(broker_id={0: 3, 1: 2}[partition], broker_epoch=epoch, topics=[topic])


async def test_a_cluster_leaves_what_kafka_leaves(zookeeper_server: ZooKeeperProcess) -> None:
    kafka = trees()
    async with brokers(zookeeper_server) as cluster:
        await ensure_cluster(cluster.looking, random.Random(7), "5PFQQV4rS9CcOzxExgYs7g")
        for broker_id, now_ms in ((1, 1795207623743), (2, 1795207624171), (3, 1795207624185)):
            await cluster.register(broker_id, now_ms)
        first, configs = await cluster.controller(1, 1795207624232)
        await cluster.until_tree(kafka["three brokers have started"])

        await create(first, "t2", {0: [1, 3, 2], 1: [2, 1, 3]}, min_insync_replicas="2", retention_ms="86400000")
        await cluster.until_tree(kafka["topic t2 is made, with two partitions and two settings"])

        expected = kafka["settings of a topic, a broker, all brokers and a client are changed"]
        scram = znodes.decode_config(expected["/config/users/alice"][1].encode())
        for kind, name, new in (
            ("topics", "t2", {"cleanup.policy": "compact"}),
            ("brokers", "1", {"log.cleaner.threads": "2"}),
            ("brokers", DEFAULT, {"log.cleaner.threads": "1"}),
            ("users", "alice", scram),
            ("clients", "app", {"producer_byte_rate": "1048576"}),
        ):
            await configs.change(Entity(kind, name), lambda before, new=new: {**new, **before})  # type: ignore[misc]
        await cluster.until_tree(expected)

        await first.allocate_producer_ids(AllocateProducerIdsRequest(broker_id=3, broker_epoch=cluster.epochs[3]))
        await cluster.until_tree(kafka["broker 3 takes a block of producer ids"])

        await first.resign()
        await cluster.sessions[1].close()
        second, _ = await cluster.controller(3, 1795207670851)
        await cluster.until_tree(kafka["broker 1, the controller, is killed"])

        await cluster.register(1, 1795207696495)
        await until(lambda: cluster.recording[3].metadata.is_alive(1))
        for request in (
            in_sync(cluster.epochs[3], 0, 2, 2, [3, 2, 1]),
            in_sync(cluster.epochs[2], 1, 1, 1, [2, 3, 1]),
        ):
            await second.alter_partition(request, 3)
        await cluster.until_tree(kafka["broker 1 is back, and in sync"])

        await second.elect_leaders(ElectionType.PREFERRED, None)
        await cluster.until_tree(kafka["preferred leaders are elected"])

        await second.reassign({TopicPartition("t2", 0): (2, 3)})
        moved = dict(kafka["partition 0 has moved to brokers 2 and 3"])
        state = "/brokers/topics/t2/partitions/0/state"
        # Kafka has another broker lead first, and then takes the one that goes out of the in-sync replicas; here it is one step.
        assert moved[state][0] == "[version=6]"
        moved[state] = ("[version=5]", moved[state][1].replace('"leader_epoch":5', '"leader_epoch":4'))
        await cluster.until_tree(moved)


async def test_a_controller_goes_on_where_one_of_kafkas_has_ended(zookeeper_server: ZooKeeperProcess) -> None:
    kafka = trees()
    async with brokers(zookeeper_server) as cluster:
        before = dict(kafka["partition 0 has moved to brokers 2 and 3"])
        before["/controller_epoch"] = ("[version=1]", "1")  # the epoch that is raised is Kafka's
        topics = {path: node for path, node in before.items() if path.startswith("/brokers/topics/")}
        await fill(cluster.looking, {path: node for path, node in before.items() if path not in topics})
        for broker_id, now_ms in ((1, 1795207696495), (2, 1795207624171), (3, 1795207624185)):
            await cluster.register(broker_id, now_ms)
        await fill(cluster.looking, topics)  # since the brokers are there, or they would have been away
        controller, _ = await cluster.controller(3, 1795207670851)
        await cluster.until_tree(kafka["partition 0 has moved to brokers 2 and 3"])

        await controller.create_partitions("t2", 3, [[1, 3]], validate_only=False)
        await cluster.until_tree(kafka["a partition is added"])

        cluster._ids._ids.reverse()
        await create(controller, "gone", {0: [1, 3, 2]})
        await cluster.until_tree(kafka["topic gone is made"])
        await controller.delete_topics(["gone"])
        await cluster.until_tree(kafka["topic gone is deleted"])
