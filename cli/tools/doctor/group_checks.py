"""The checks of groups and transactions: lag that nobody reads, lag that grows, transactions that hold readers back.

Whether lag grows takes two looks: it does if it has risen by 100 records and by a tenth of what came in between, as the
console's rule has it over five minutes (``view.lag_history``).
"""

from __future__ import annotations

import shlex
from collections.abc import Iterable, Mapping, Sequence

from ....base.errors import KafkaError, known_code
from ....base.partitions import TopicPartition
from ....base.wording import counted, plural
from ....view import checks
from ....view.admin_rows import TransactionRow
from ....view.checks import HELD_PROBLEM_MS, GroupChecks, HeldPartition
from ....view.findings import Worst
from ....view.lag_history import LagHistory
from ....view.remote import group_requests, rows, topic_requests
from ....view.remote.administration import ClusterAdministration
from ....view.remote.rows import PartitionOffsets
from ....view.remote.topic_requests import EARLIEST, LATEST, Offset
from ....view.rows import GroupRow
from ....wire.messages.describe_producers import (
    DescribeProducersRequest,
    DescribeProducersResponse,
    ProducerState,
    TopicRequest,
)
from .diagnosis import Area, Diagnosis, note, of_finding, ok, problem, unknown, warning
from .examined import ExaminedCluster

_LEAST_RISE = 100
_SHARE = 10
_LOST = "they read on from the reset point: docs/troubleshooting.md#offset_out_of_range-or-a-consumer-jumps"

Rows = Mapping[str, GroupRow]


async def read_groups(cluster: ExaminedCluster) -> dict[str, GroupRow]:
    """Every group with its lag. Raises OSError, KafkaError."""
    seen = await group_requests.groups(cluster.client, cluster.failed)
    keys = {key for each in seen.values() for key in each.committed}
    leaders = cluster.state.leaders(keys)
    starts = await topic_requests.offsets(cluster.client, leaders, EARLIEST, cluster.failed)
    ends = await topic_requests.offsets(cluster.client, leaders, LATEST, cluster.failed)
    known = {
        key: PartitionOffsets(starts[key].offset if key in starts else None, end.offset, None)
        for key, end in ends.items()
    }
    found = await rows.group_rows(seen.values(), known, cluster.pace())
    return {row.group_id: row for row in found.rows}


def of_groups(before: Rows | None, now: Rows, now_ms: int, seconds: float) -> list[Diagnosis]:
    """The lines of groups as they are; ``before`` is how they were ``seconds`` ago, None if nobody looked."""
    of_all, alone, unread = GroupChecks(LagHistory(), now_ms), Worst(), 0
    for row in now.values():
        of_all.add(row)
        unread += row.unknown
        if row.members == 0 and row.lag:
            alone.add(row.lag, row.group_id)
    _, lost = of_all.outcomes()[0]
    found = [of_finding(Area.GROUPS, each, _LOST) for each in lost]
    if alone.count:
        what = (
            f"{counted(alone.count, 'group')} {plural(alone.count, 'has', 'have')} lag and no member: {_names(alone)}"
        )
        mend = f"start its consumers, or 'ottla groups delete {shlex.quote(alone.names()[0])}' if it is not needed"
        found.append(warning(Area.GROUPS, what, mend))
    if before is not None:
        found += _growing(before, now, seconds)
    if not found:
        has = f"{counted(len(now), 'group')}: none has lag without a member, or has missed records"
        found.append(ok(Area.GROUPS, has if now else "There are no groups"))
    if unread:
        what = f"The ends of {counted(unread, 'partition')} that groups read are not known"
        found.append(unknown(Area.GROUPS, what))
    if before is None and any(row.lag for row in now.values()):
        found.append(note(Area.GROUPS, "Whether lag grows takes two looks", "ottla doctor --watch 60"))
    return found


def _growing(before: Rows, now: Rows, seconds: float) -> Iterable[Diagnosis]:
    growing = Worst()
    for group_id, row in now.items():
        old = before.get(group_id)
        if old is None or row.lag is None or old.lag is None or not row.members:
            continue
        rise = row.lag - old.lag
        came = rise + (row.committed or 0) - (old.committed or 0)
        if rise >= max(_LEAST_RISE, came / _SHARE):
            growing.add(rise, group_id)
    if growing.count:
        what = f"The lag of {counted(growing.count, 'group')} has grown in {seconds:.0f} s: {_names(growing)}"
        yield warning(Area.GROUPS, what, f"ottla groups describe {shlex.quote(growing.names()[0])}; docs/lag.md")


def _names(worst: Worst) -> str:
    names = worst.names()
    return ", ".join(names) + (", …" if worst.count > len(names) else "")


async def transactions(cluster: ExaminedCluster) -> list[Diagnosis]:
    """Transactions that are open for long, and those that no coordinator will end."""
    administration = ClusterAdministration(cluster.client, cluster.clock, cluster.failed)
    known = await administration.transactions()
    now_ms = cluster.clock.now_ms()
    held = [HeldPartition(*where, row.age_ms or 0) for row in known if row.is_open for where in row.partitions]
    partitions = sum(len(topic.partitions) for topic in cluster.state.topics.values())
    _, findings = checks.held_back(held, now_ms, counted(partitions, "partition"))
    mend = "ottla transactions list; docs/troubleshooting.md#a-consumer-prints-nothing"
    found = [of_finding(Area.TRANSACTIONS, each, mend) for each in findings]
    found += [_hanging(where, start) for where, start in await _hanging_at(cluster, known, now_ms)]
    return found or [ok(Area.TRANSACTIONS, f"No transaction is open for long in {counted(partitions, 'partition')}")]


def _hanging(where: TopicPartition, start: int) -> Diagnosis:
    what = f"A transaction hangs in {where.topic}-{where.partition}, and no coordinator will end it"
    mend = f"ottla transactions abort {where.topic} -p {where.partition} --start-offset {start}"
    return problem(Area.TRANSACTIONS, what, mend)


async def _hanging_at(
    cluster: ExaminedCluster, known: Sequence[TransactionRow], now_ms: int
) -> list[tuple[TopicPartition, int]]:
    """The partitions with the first offsets of transactions that hang, as ``ottla transactions find-hanging`` decides it."""
    keys = [
        TopicPartition(topic.name, number) for topic in cluster.state.topics.values() for number in topic.partitions
    ]
    leaders = cluster.state.leaders(keys)
    stable = await topic_requests.offsets(cluster.client, leaders, LATEST, cluster.failed, is_committed=True)
    ends = await topic_requests.offsets(cluster.client, leaders, LATEST, cluster.failed)
    held = _held(stable, ends)
    ended_by = {(row.producer_id, *where) for row in known if row.is_open for where in row.partitions}
    found = []
    for leader, led in cluster.state.leaders(held).items():
        for topic, number, producer in await _open_producers(cluster, leader, led):
            is_old = producer.last_timestamp < now_ms - HELD_PROBLEM_MS
            if is_old and (producer.producer_id, topic, number) not in ended_by:
                found.append((TopicPartition(topic, number), producer.current_txn_start_offset))
    return found


def _held(stable: Mapping[TopicPartition, Offset], ends: Mapping[TopicPartition, Offset]) -> list[TopicPartition]:
    return [key for key, end in ends.items() if key in stable and stable[key].offset < end.offset]


async def _open_producers(
    cluster: ExaminedCluster, leader: int, led: Sequence[TopicPartition]
) -> list[tuple[str, int, ProducerState]]:
    """The producers with an open transaction. Raises OSError, KafkaError."""
    by_topic: dict[str, list[int]] = {}
    for topic, number in led:
        by_topic.setdefault(topic, []).append(number)
    request = DescribeProducersRequest(
        topics=[TopicRequest(name=name, partition_indexes=numbers) for name, numbers in by_topic.items()]
    )
    response: DescribeProducersResponse = await cluster.client.ask(leader, request)
    for each in (each for topic in response.topics for each in topic.partitions if each.error_code):
        cluster.failed(leader, KafkaError(known_code(each.error_code), each.error_message))
    return [
        (topic.name, each.partition_index, producer)
        for topic in response.topics
        for each in topic.partitions
        for producer in each.active_producers
        if producer.current_txn_start_offset >= 0
    ]
