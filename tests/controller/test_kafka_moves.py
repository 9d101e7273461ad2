"""What Ottla's controller leaves in a real ZooKeeper while replicas move is what Apache Kafka 3.9.2 left there.

``kafka-3.9.2-moves.txt`` has it before, in the middle and at the end of a move that adds a replica and of one that replaces a
leader, and of one that is cancelled in the middle; ``capture_moves.py`` made it. Everything is compared as in
``test_kafka_znodes``; where Ottla gets to the same data with fewer writes, the test says so.
"""

from __future__ import annotations

import json
import random
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest

from ottla.base.partitions import TopicPartition
from ottla.compat_tests.zookeeper import ZooKeeperProcess
from ottla.controller.zookeeper.active.controller import ZooKeeperController
from ottla.controller.zookeeper.nodes import znodes
from ottla.controller.zookeeper.registration import ensure_cluster
from ottla.wire.messages.alter_partition import AlterPartitionRequest, BrokerState, PartitionData, TopicData
from ottla.wire.schema import uuid_from_text

from .helpers import capture_moves as steps
from .helpers.capture_moves import REPLICAS, TOPIC
from .test_kafka_znodes import Brokers, Tree, brokers, create, trees

pytestmark = pytest.mark.slow

CAPTURED = Path(__file__).with_name("kafka-3.9.2-moves.txt")


def fields(tree: Tree, path: str) -> Any:
    return json.loads(tree[path][1])


def fewer_writes(tree: Tree) -> Tree:
    """What Ottla has at the end.

    When a leader goes, Kafka has another broker lead first, and then takes the one that goes out of the in-sync replicas; here it
    is one step. What a cancelled move leaves Kafka writes twice, for its end is written whether or not it is there already.
    """
    state, topic = znodes.state_path(TOPIC, 1), znodes.topic_path(TOPIC)
    flags, data = tree[state]
    found = {**tree, state: (lower(flags), data.replace('"leader_epoch":3', '"leader_epoch":2'))}
    if tree[topic][0] == "[version=7]":
        found[topic] = (lower(tree[topic][0]), tree[topic][1])
    return found


def lower(flags: str) -> str:
    """A version less by one."""
    version = int(flags.removeprefix("[version=").removesuffix("]"))
    return f"[version={version - 1}]"


async def join(cluster: Brokers, controller: ZooKeeperController, partition: int, isr: Sequence[int]) -> None:
    """The leader asks for these in-sync replicas."""
    node = await cluster.looking.get(znodes.state_path(TOPIC, partition))
    state = znodes.decode_state(node.data)
    data = PartitionData(
        partition_index=partition,
        leader_epoch=state.leader_epoch,
        new_isr_with_epochs=[BrokerState(broker_id=broker_id, broker_epoch=-1) for broker_id in isr],
        leader_recovery_state=0,
        partition_epoch=node.stat.version,
    )
    topic_id = fields(trees(CAPTURED)[steps.MADE], znodes.topic_path(TOPIC))["topic_id"]
    topic = TopicData(topic_id=uuid_from_text(topic_id), partitions=[data])
    request = AlterPartitionRequest(broker_id=state.leader, broker_epoch=cluster.epochs[state.leader], topics=[topic])
    await controller.alter_partition(request, 3)


async def test_moves_leave_what_kafkas_leave(zookeeper_server: ZooKeeperProcess) -> None:
    kafka = trees(CAPTURED)
    started, made = kafka[steps.STARTED], kafka[steps.MADE]
    async with brokers(zookeeper_server, [fields(made, znodes.topic_path(TOPIC))["topic_id"]]) as cluster:
        await ensure_cluster(cluster.looking, random.Random(7), fields(started, "/cluster/id")["id"])
        for broker_id in (1, 2, 3):
            node = fields(started, znodes.broker_path(broker_id))
            await cluster.register(broker_id, int(node["timestamp"]), node["port"])
        controller, _ = await cluster.controller(1, int(fields(started, "/controller")["timestamp"]))
        await cluster.until_tree(started)
        await create(controller, TOPIC, dict(enumerate(REPLICAS)))
        await cluster.until_tree(made)

        await controller.reassign({TopicPartition(TOPIC, 0): (1, 2, 3)})
        await cluster.until_tree(kafka[steps.ADDING])
        await join(cluster, controller, 0, [1, 2, 3])
        await cluster.until_tree(kafka[steps.ADDED])

        await controller.reassign({TopicPartition(TOPIC, 1): (3, 1)})
        await cluster.until_tree(kafka[steps.REPLACING])
        await join(cluster, controller, 1, [2, 1, 3])
        await cluster.until_tree(fewer_writes(kafka[steps.REPLACED]))

        await controller.reassign({TopicPartition(TOPIC, 2): (1, 3)})
        await cluster.until_tree(fewer_writes(kafka[steps.TAKEN]))
        await controller.reassign({TopicPartition(TOPIC, 2): None})
        await cluster.until_tree(fewer_writes(kafka[steps.CANCELLED]))
