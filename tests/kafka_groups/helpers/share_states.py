"""Requests to the share coordinator for states of groups that do not exist, as leaders and group coordinators send them."""

from __future__ import annotations

import random

from ottla.wire.messages import delete_share_group_state as delete
from ottla.wire.messages import initialize_share_group_state as initialize
from ottla.wire.messages import read_share_group_state as read
from ottla.wire.messages import read_share_group_state_summary as summary
from ottla.wire.messages import write_share_group_state as write
from ottla.wire.schema import Message

from .steps import ADMIN, OF_TRANSACTIONS, Ask, topic_id

NAMES = ("states-0", "states-1")
PARTITIONS = 2


class States:
    """The states of some partitions of a topic, in groups of which only the share coordinator knows."""

    def __init__(self, chance: random.Random) -> None:
        self._chance = chance
        self._topic_id = topic_id(OF_TRANSACTIONS)
        self._start = 0

    def next_step(self) -> Ask:
        """Some request."""
        chance = self._chance
        kind = chance.random()
        if kind < 0.15:
            return self._initialize()
        if kind < 0.6:
            return self._write()
        if kind < 0.65:
            data = delete.DeleteStateData(
                topic_id=self._topic_id, partitions=[delete.PartitionData(partition=self._partition())]
            )
            return self._ask(delete.DeleteShareGroupStateRequest(group_id=self._name(), topics=[data]), 0)
        if kind < 0.85:
            wanted = read.PartitionData(partition=self._partition(), leader_epoch=self._epoch())
            topic = read.ReadStateData(topic_id=self._topic_id, partitions=[wanted])
            return self._ask(read.ReadShareGroupStateRequest(group_id=self._name(), topics=[topic]), 0)
        looked_at = summary.PartitionData(partition=self._partition(), leader_epoch=self._epoch())
        states = summary.ReadStateSummaryData(topic_id=self._topic_id, partitions=[looked_at])
        request = summary.ReadShareGroupStateSummaryRequest(group_id=self._name(), topics=[states])
        return self._ask(request, chance.choice([0, 1]))

    def _initialize(self) -> Ask:
        start = self._start = self._chance.choice([-1, 0, 0, 10])
        partition = initialize.PartitionData(
            partition=self._partition(), state_epoch=self._chance.choice([0, 1, 1, 2, 3]), start_offset=start
        )
        data = initialize.InitializeStateData(topic_id=self._topic_id, partitions=[partition])
        return self._ask(initialize.InitializeShareGroupStateRequest(group_id=self._name(), topics=[data]), 0)

    def _write(self) -> Ask:
        chance = self._chance
        self._start += chance.choice([0, 0, 0, 1, 4])
        batches, first = [], max(self._start, 0) + chance.choice([0, 0, 1, 5])
        for _ in range(chance.choice([0, 1, 1, 2, 3])):
            last = first + chance.randrange(6)
            batches.append(
                write.StateBatch(
                    first_offset=first,
                    last_offset=last,
                    delivery_state=chance.choice([0, 2, 4]),
                    delivery_count=chance.randrange(1, 4),
                )
            )
            first = last + chance.choice([1, 1, 3])
        partition = write.PartitionData(
            partition=self._partition(),
            state_epoch=chance.choice([0, 1, 2, 3, 3]),
            leader_epoch=self._epoch(),
            start_offset=chance.choice([self._start, self._start, -1]),
            delivery_complete_count=chance.choice([-1, 0, 3]),
            state_batches=batches,
        )
        data = write.WriteStateData(topic_id=self._topic_id, partitions=[partition])
        request = write.WriteShareGroupStateRequest(group_id=self._name(), topics=[data])
        return self._ask(request, chance.choice([0, 1]))

    def _ask(self, request: Message, version: int) -> Ask:
        return Ask(ADMIN, request, version)

    def _name(self) -> str:
        return self._chance.choice(NAMES)

    def _partition(self) -> int:
        return self._chance.randrange(PARTITIONS)

    def _epoch(self) -> int:
        return self._chance.choice([-1, -1, 0, 0, 0, 1])
