"""Producers and consumers of a topic, from the state of its partitions joined with the open connections.

A partition remembers idempotent and transactional producers; each connection remembers what it wrote last, where, and under
which producer id, and what its last Fetch asked for (``handlers.activity``). A producer without idempotence is therefore seen
as long as its connection is open, and a consumer without a group as long as it fetches.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Iterator

from ...broker.listeners.connection import ClientConnection
from ...group_coordinator.committed_offsets import find_commit
from ...group_coordinator.shard import GroupAndOffsets
from ...handlers.services import Services
from ...log.producer_snapshot import ProducerStateEntry
from ...metadata.image import TopicImage
from ...replication.delayed_fetch import FetchedPartition
from ..inside_rows import AssignedRow, ClientRow, ConsumerRow, WriterRow
from ..pace import Pace
from ..rows import MemberRow
from .groups import member_rows
from .topics import Replicas

_LONGEST_TEXT = 200
_Sent = tuple[ClientRow, int, int]
"""Who, when (ms), and the batch's first offset."""


def client_row(connection: ClientConnection) -> ClientRow:
    """Who a connection is of."""
    context, call = connection.context, connection.call
    return ClientRow(
        context.peer,
        context.host,
        call.client_id[:_LONGEST_TEXT],
        call.client_software_name[:_LONGEST_TEXT],
        call.client_software_version[:_LONGEST_TEXT],
        str(context.principal),
    )


async def writer_rows(
    services: Services, connections: Iterable[ClientConnection], topic: TopicImage, replicas: Replicas, pace: Pace
) -> list[WriterRow]:
    """The producers of a topic, each with the connections it wrote by, and the connections that wrote without a producer id."""
    sent = await _sent(connections, topic, pace)
    names = await transactional_ids(services, pace)
    rows: list[WriterRow] = []
    for number in topic.partitions:
        partition = replicas.get((topic.name, number))
        if partition is None:
            continue
        of_partition = sent.get(number, {})
        for state in partition.log.active_producers():
            by = of_partition.pop(state.producer_id, ())
            rows += _of_producer(number, state, names.get(state.producer_id), by)
            if pace.is_due(1 + len(by)):
                await pace.rest()
        for producer_id, by in of_partition.items():  # without idempotence, or forgotten by the partition since
            rows += [
                WriterRow(number, _known(producer_id), None, None, None, at, start, None, client)
                for client, at, start in by
            ]
            if pace.is_due(len(by)):
                await pace.rest()
    return rows


async def _sent(
    connections: Iterable[ClientConnection], topic: TopicImage, pace: Pace
) -> dict[int, dict[int, list[_Sent]]]:
    """What the open connections wrote to a topic, by partition and producer id."""
    found: dict[int, dict[int, list[_Sent]]] = defaultdict(lambda: defaultdict(list))
    for connection in connections:
        activity = connection.call.activity
        if activity is None or not activity.produced:
            continue
        produced = activity.produced
        asked = [(topic.name, number) for number in topic.partitions] if len(topic.partitions) < 100 else list(produced)
        client: ClientRow | None = None
        for key in asked:
            last = produced.get(key)
            if last is not None and key[0] == topic.name:
                client = client or client_row(connection)
                at_ms, offset, producer_id = last
                found[key[1]][producer_id].append((client, at_ms, offset))
        if pace.is_due(1 + len(asked) // 8):
            await pace.rest()
    return found


async def transactional_ids(services: Services, pace: Pace) -> dict[int, str]:
    """By producer id, of the transactional ids whose coordinator is this broker."""
    found = {}
    for transaction in services.transactions.transactions():
        found[transaction.producer_id] = transaction.transactional_id
        if pace.is_due():
            await pace.rest()
    return found


def _of_producer(number: int, state: ProducerStateEntry, name: str | None, by: Iterable[_Sent]) -> Iterator[WriterRow]:
    start = state.current_txn_first_offset
    known = number, state.producer_id, state.producer_epoch, name, state.last_sequence
    opened = start if start >= 0 else None
    last = state.batches[-1].first_offset if state.batches else None
    clients = list(by)
    if not clients:
        yield WriterRow(*known, state.last_timestamp, last, opened, None)
    for client, at_ms, offset in clients:
        yield WriterRow(*known, at_ms, offset, opened, client)


def _known(producer_id: int) -> int | None:
    return producer_id if producer_id >= 0 else None


# --- consumers --------------------------------------------------------------------------------------------------------


async def consumer_rows(
    services: Services, connections: Iterable[ClientConnection], topic: TopicImage, replicas: Replicas, pace: Pace
) -> list[ConsumerRow]:
    """The connections whose last Fetch asked for a topic: where each is, and what its group has committed.

    A connection is a group's where the group has a member with its client id and host that was given the partition.
    """
    groups = await _groups_by_member(services, topic.name, pace)
    rows = []
    for connection in connections:
        activity = connection.call.activity
        if activity is None:
            continue
        client: ClientRow | None = None
        fetches = activity.last_fetched()
        for fetched in fetches:
            if not _is_of(fetched, topic):
                continue
            client = client or client_row(connection)
            replica = replicas.get((topic.name, fetched.number))
            end = None if replica is None else replica.log.high_watermark
            lag = None if end is None else max(end - fetched.fetch_offset, 0)
            row = (fetched.number, client, connection.busy, fetched.fetch_offset, end, lag)
            of_client = groups.get((client.client_id, client.host, fetched.number))
            if not of_client:
                rows.append(ConsumerRow(*row, None, None))
            for group, offsets in of_client or ():
                committed = find_commit(offsets, topic.name, fetched.number)
                rows.append(ConsumerRow(*row, group.group_id, None if committed is None else committed.value.offset))
            if pace.is_due(2):
                await pace.rest()
        if pace.is_due(1 + len(fetches) // 8):
            await pace.rest()
    return rows


async def assigned_rows(services: Services, topic: str, pace: Pace) -> list[AssignedRow]:
    """The members that groups of this broker have for partitions of a topic."""
    rows = []
    for (client_id, host, number), groups in (await _groups_by_member(services, topic, pace)).items():
        for group, offsets in groups:
            committed = find_commit(offsets, topic, number)
            offset = None if committed is None else committed.value.offset
            rows.append(AssignedRow(number, client_id, host, group.group_id, offset))
        if pace.is_due(1 + len(groups)):
            await pace.rest()
    return rows


def _is_of(fetched: FetchedPartition, topic: TopicImage) -> bool:
    return fetched.topic_id == topic.topic_id if not fetched.topic else fetched.topic == topic.name


async def _groups_by_member(
    services: Services, topic: str, pace: Pace
) -> dict[tuple[str, str, int], list[GroupAndOffsets]]:
    """The groups that have a member for a partition of a topic, by its client id, its host and the partition."""
    found: dict[tuple[str, str, int], list[GroupAndOffsets]] = defaultdict(list)
    for each in list(services.groups.groups()):
        for member in await member_rows(each.group, services.metadata.topic_name, pace):
            for name, numbers in member.assigned or ():
                if name == topic:
                    for number in numbers:
                        key = (member.client_id[:_LONGEST_TEXT], member.host.lstrip("/"), number)
                        found[key].append(each)
            if pace.is_due(5):
                await pace.rest()
        if pace.is_due():
            await pace.rest()
    return found


async def positions(
    services: Services, connections: Iterable[ClientConnection], members: Iterable[MemberRow], pace: Pace
) -> dict[tuple[str, int], int]:
    """Where the members of a group read now, by topic and partition: what the last Fetch of their connections here asked for."""
    given: dict[tuple[str, str], set[tuple[str, int]]] = defaultdict(set)
    for member in members:
        of_client = given[member.client_id[:_LONGEST_TEXT], member.host.lstrip("/")]
        for topic, numbers in member.assigned or ():
            of_client.update((topic, number) for number in numbers)
        if pace.is_due(5):
            await pace.rest()
    found = {}
    for connection in connections:
        activity, client = connection.call.activity, (connection.call.client_id[:_LONGEST_TEXT], connection.host)
        if activity is not None and client in given:
            fetches = activity.last_fetched()
            for fetched in fetches:
                name = fetched.topic or services.metadata.topic_name(fetched.topic_id) or ""
                if (name, fetched.number) in given[client]:
                    found[name, fetched.number] = fetched.fetch_offset
            if pace.is_due(len(fetches) // 8):
                await pace.rest()
        if pace.is_due():
            await pace.rest()
    return found
