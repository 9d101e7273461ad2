"""The producers and consumers of a topic, at all brokers of the cluster.

Of a producer each replica remembers something. What its partition's leader knows is told, and where that does not answer, what
the replica of this broker remembers. A consumer is connected to a leader or a follower, and its group's coordinator may be a
third broker: the two are brought together by the member's client id, host and partition.
"""

from __future__ import annotations

import dataclasses
from collections import defaultdict
from typing import TYPE_CHECKING

from ..inside_rows import AssignedRow, ConsumerRow, WriterRow
from .all_brokers import BrokersRows
from .told_rows import ASSIGNED, CONSUMERS, WRITERS

if TYPE_CHECKING:
    from .broker_view import BrokerView


async def producers_of(view: BrokerView, topic: str) -> BrokersRows:
    """``WriterRow`` of each. Raises NotFoundError."""
    told, own = await view.all_brokers.rows(WRITERS, topic), await view.details.writers(topic)
    if not told.several:
        return told.with_rows(own)
    led, silent = view.leaders(topic), {broker for broker, _ in told.silent}
    left = {number for number, leader in led.items() if leader < 0 or leader in silent}
    remembered = [dataclasses.replace(row, broker=told.own) for row in own if row.partition in left]
    names, pace = await view.details.transactional_ids(), view.pace()
    names.update({row.producer_id: row.transactional_id for row in told.rows if row.transactional_id})
    rows: list[WriterRow] = []
    for row in (*told.rows, *remembered):
        name = names.get(row.producer_id)
        is_named = name is None or row.transactional_id is not None
        rows.append(row if is_named else dataclasses.replace(row, transactional_id=name))
        if pace.is_due():
            await pace.rest()
    return told.with_rows(rows)


async def consumers_of(view: BrokerView, topic: str) -> BrokersRows:
    """``ConsumerRow`` of each. Raises NotFoundError."""
    told = await view.all_brokers.rows(CONSUMERS, topic)
    if not told.several:
        return told
    assigned, pace = await view.all_brokers.rows(ASSIGNED, topic), view.pace()
    members: dict[tuple[str, str, int], list[AssignedRow]] = defaultdict(list)
    for member in assigned.rows:
        members[member.client_id, member.host, member.partition].append(member)
        if pace.is_due():
            await pace.rest()
    rows: list[ConsumerRow] = []
    for row in told.rows:
        found = members.get((row.client.client_id, row.client.host, row.partition), ())
        if row.group_id is not None or not found:
            rows.append(row)
        else:
            rows += [dataclasses.replace(row, group_id=each.group_id, committed=each.committed) for each in found]
        if pace.is_due(1 + len(found)):
            await pace.rest()
    return told.with_rows(rows).and_also(assigned)
