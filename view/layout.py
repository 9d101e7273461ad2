"""The cluster's layout for balance plans: the replicas, their sizes in bytes, and the moves under way.

Brokers tell of their disks by DescribeLogDirs, in parts: a response about thousands of partitions would hold up a loop.
"""

from __future__ import annotations

import logging
from collections.abc import Awaitable, Callable, Iterator, Mapping, Sequence
from typing import Any, NamedTuple

import trio

from ..balance.answers import BrokerLogDirs, ReportedPartition, on_disk
from ..balance.model import Key
from ..base.errors import KafkaError
from ..base.partitions import NO_LEADER
from ..handlers import describe_log_dirs
from ..handlers.services import Services
from ..log.settings import LogSettings
from ..metadata.image import TopicImage
from ..replication.peers import Peers
from ..wire.messages.describe_log_dirs import DescribableLogDirTopic, DescribeLogDirsRequest
from ..wire.messages.list_partition_reassignments import ListPartitionReassignmentsRequest
from ..wire.schema import Message
from .admin_rows import MoveRow
from .pace import Pace

logger = logging.getLogger(__name__)

Ask = Callable[[int, Message], Awaitable[Any]]
"""One broker's response. Raises OSError, KafkaError."""

_RESPONSE_SECONDS = 10.0
_CONFIG_SECONDS = 5.0
_AT_ONCE = 500
_REASSIGNMENT_MS = 5000
_MIN_ISR = "min.insync.replicas"


class ReplicaLayout(NamedTuple):
    """Where the replicas of a cluster are."""

    racks: Mapping[int, str | None]
    """Of the live brokers."""
    partitions: Mapping[Key, ReportedPartition]
    disks: Mapping[int, BrokerLogDirs]
    """Of those brokers that have reported their disks."""


def asked_by(peers: Peers) -> Ask:
    """By the way that brokers take among themselves."""

    async def ask(broker_id: int, request: Message) -> Any:
        client = peers.client(broker_id, "layout", timeout=_RESPONSE_SECONDS)
        return await client.send(request, await client.negotiate(type(request)))

    return ask


async def moves_under_way(ask: Ask, controller_id: int) -> tuple[MoveRow, ...] | None:
    """None where the controller cannot be asked."""
    request = ListPartitionReassignmentsRequest(timeout_ms=_REASSIGNMENT_MS, topics=None)
    try:
        response = await ask(controller_id, request)
    except (OSError, KafkaError):
        return None
    if response.error_code:
        return None
    return tuple(
        MoveRow(
            topic.name,
            each.partition_index,
            tuple(each.replicas),
            tuple(each.adding_replicas),
            tuple(each.removing_replicas),
        )
        for topic in response.topics
        for each in topic.partitions
    )


async def layout_of(
    ask: Ask, racks: Mapping[int, str | None], partitions: Mapping[Key, ReportedPartition]
) -> ReplicaLayout:
    """With the disks of all brokers that answer, each asked about its own replicas."""
    here: dict[int, list[Key]] = {broker_id: [] for broker_id in racks}
    for key, known in partitions.items():
        for broker_id in {*known.present, *known.replicas} & here.keys():
            here[broker_id].append(key)
    disks: dict[int, BrokerLogDirs] = {}

    async def look(broker_id: int) -> None:
        try:
            disks[broker_id] = await _disk(ask, broker_id, here[broker_id])
        except (OSError, KafkaError) as error:
            logger.debug("broker %d does not report its disks: %s", broker_id, error)

    async with trio.open_nursery() as nursery:
        for broker_id in racks:
            nursery.start_soon(look, broker_id)
    return ReplicaLayout(racks, partitions, disks)


async def _disk(ask: Ask, broker_id: int, keys: Sequence[Key]) -> BrokerLogDirs:
    """Raises OSError, KafkaError."""
    found = BrokerLogDirs((), {})
    replicas: dict[Key, tuple[str, int]] = {}
    for part in _parts(keys):
        topics: dict[str, DescribableLogDirTopic] = {}
        for name, number in part:
            topics.setdefault(name, DescribableLogDirTopic(topic=name, partitions=[])).partitions.append(number)
        found = on_disk(await ask(broker_id, DescribeLogDirsRequest(topics=list(topics.values()))))
        replicas |= found.replicas
    return found._replace(replicas=replicas)


def _parts(keys: Sequence[Key]) -> Iterator[Sequence[Key]]:
    """One at least: a broker without a replica has log directories as well."""
    for start in range(0, max(len(keys), 1), _AT_ONCE):
        yield keys[start : start + _AT_ONCE]


async def broker_layout(services: Services, ask: Ask, pace: Pace) -> ReplicaLayout:
    """As this broker knows the cluster."""
    moves = await known_moves(services, ask) or ()
    targets = {(move.topic, move.number): target_of(move) for move in moves}
    min_isr = await _min_isr(services, pace)
    partitions: dict[Key, ReportedPartition] = {}
    for topic in list(services.metadata.topics.values()):
        for number, state in topic.partitions.items():
            present = tuple(state.replicas)
            partitions[topic.name, number] = ReportedPartition(
                targets.get((topic.name, number), present),
                present,
                None if state.leader == NO_LEADER else state.leader,
                state.isr,
                min_isr.get(topic.name, 1),
            )
            if pace.is_due():
                await pace.rest()
    racks = {broker.broker_id: broker.rack for broker in services.metadata.brokers()}

    async def ask_any(broker_id: int, request: Message) -> Any:
        if broker_id != services.node_id:
            return await ask(broker_id, request)
        assert isinstance(request, DescribeLogDirsRequest)
        await trio.lowlevel.checkpoint()
        return describe_log_dirs.answer(services.logs, request)

    return await layout_of(ask_any, racks, partitions)


async def known_moves(services: Services, ask: Ask) -> tuple[MoveRow, ...] | None:
    """The moves under way, which the controller knows, and in a cluster of KRaft every broker; None where it cannot be asked."""
    if services.own_commands is None:
        return tuple(_moves_in(services.metadata.topics))
    if not services.cluster.is_controller:
        return await moves_under_way(ask, services.metadata.controller_id)
    return tuple(
        MoveRow(key.topic, key.partition, assignment.replicas, assignment.adding, assignment.removing)
        for key, assignment in services.commands.reassignments()
    )


def _moves_in(topics: Mapping[str, TopicImage]) -> Iterator[MoveRow]:
    for name, topic in topics.items():
        for number, partition in topic.partitions.items():
            if partition.adding or partition.removing:
                yield MoveRow(name, number, partition.replicas, partition.adding, partition.removing)


def target_of(move: MoveRow) -> tuple[int, ...]:
    """What a partition that moves is to have."""
    return tuple(each for each in move.replicas if each not in move.removing)


async def _min_isr(services: Services, pace: Pace) -> dict[str, int]:
    """By topic. Where the store does not answer in time, as it was last known."""
    names = [topic.name for topic in services.metadata.topics.values()]
    for start in range(0, len(names), _AT_ONCE):
        await services.cluster.refresh_topic_configs(names[start : start + _AT_ONCE])
    default = services.config.settings(LogSettings).min_insync_replicas
    found = {}
    for name in names:
        found[name] = _whole(services.metadata.image.topic_config(name).get(_MIN_ISR), default)
        if pace.is_due():
            await pace.rest()
    return found


def _whole(text: str | None, default: int) -> int:
    return int(text) if text is not None and text.strip().isdecimal() else default
