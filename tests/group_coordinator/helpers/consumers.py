"""Members of consumer groups on a shard driven by hand: heartbeats in short, and the records that they write."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

import pytest

from ottla.base.errors import ErrorCode, KafkaError
from ottla.group_coordinator import consumer_membership
from ottla.group_coordinator.client import Client
from ottla.group_coordinator.heartbeat_request import check_heartbeat, member_report
from ottla.group_coordinator.records import CoordinatorRecord, read_batch
from ottla.group_coordinator.topics import TopicSize
from ottla.replication.coordinator_loading import SkippedRecords
from ottla.wire.messages.consumer_group_heartbeat import (
    ConsumerGroupHeartbeatRequest,
    ConsumerGroupHeartbeatResponse,
    TopicPartitions,
)
from ottla.wire.records import RecordBatch

Owned = Mapping[str, Iterable[int]]
EPOCHS = {3: "epoch", 6: "assignment_epoch", 8: "member_epoch"}


def topic_id(name: str) -> bytes:
    return name.encode().ljust(16, b".")


class Consumers:
    """The members of one group. ``machine`` is the shard and its time."""

    def __init__(self, machine: Any, group: str = "g", **topics: int) -> None:
        self.machine = machine
        self.group_id = group
        self._seen = 0
        for name, count in (topics or {"t": 4}).items():
            self.topic(name, count)

    def topic(self, name: str, count: int | None) -> None:
        """Make a topic, enlarge it, or with None delete it."""
        self.machine.topics.put(name, None if count is None else TopicSize(topic_id(name), count))

    def __call__(
        self,
        member_id: str,
        epoch: int,
        owned: Owned | None = None,
        names: Iterable[str] | None = None,
        *,
        instance: str | None = None,
        rebalance_timeout: int | None = None,
        version: int = 1,
        **fields: Any,
    ) -> tuple[int, dict[str, list[int]] | None]:
        """A heartbeat: the epoch of the response, and the assignment if it has one. One that joins reads ``t`` by default."""
        if epoch == 0:
            owned = {} if owned is None else owned
            rebalance_timeout = rebalance_timeout or 60_000
            names = ["t"] if names is None and "subscribed_topic_regex" not in fields else names
        request = ConsumerGroupHeartbeatRequest(
            group_id=self.group_id,
            member_id=member_id,
            member_epoch=epoch,
            instance_id=instance,
            rebalance_timeout_ms=-1 if rebalance_timeout is None else rebalance_timeout,
            subscribed_topic_names=None if names is None else list(names),
            topic_partitions=None
            if owned is None
            else [TopicPartitions(topic_id=topic_id(name), partitions=list(part)) for name, part in owned.items()],
            **fields,
        )
        response = self.send(request, version)
        if response.assignment is None:
            return response.member_epoch, None
        assigned = {each.topic_id: sorted(each.partitions) for each in response.assignment.topic_partitions}
        return response.member_epoch, {key.rstrip(b".").decode(): part for key, part in assigned.items()}

    def send(self, request: ConsumerGroupHeartbeatRequest, version: int = 1) -> ConsumerGroupHeartbeatResponse:
        machine = self.machine
        shard, now = machine.shard, machine.now
        check_heartbeat(request, version, shard.context.settings.assignors)
        if request.member_epoch < 0:
            return consumer_membership.leave(shard, request, now)
        report = member_report(request, request.member_id, Client("client", "/127.0.0.1", version))
        heartbeat = consumer_membership.begin_heartbeat(shard, report, request.member_epoch, now)
        if consumer_membership.is_target_due(shard, heartbeat, now):
            consumer_membership.make_target(shard, heartbeat, now)
        return consumer_membership.complete_heartbeat(shard, heartbeat, request.member_epoch, now)

    def refused(self, *arguments: Any, **fields: Any) -> ErrorCode:
        """The error code of a heartbeat."""
        with pytest.raises(KafkaError) as refused:
            self(*arguments, **fields)
        return refused.value.code

    def written(self) -> str:
        """The records since the last call, in short: type, member, epoch; "t" for a tombstone."""
        batches = self.machine.log.partitions.get(0, [])
        fresh, self._seen = batches[self._seen :], len(batches)
        records = [record for raw in fresh for _, record in read_batch(RecordBatch(bytearray(raw)), SkippedRecords())]
        return " ".join(map(_in_short, records))

    @property
    def group(self) -> Any:
        return self.machine.shard.groups[self.group_id]


def _in_short(record: CoordinatorRecord | None) -> str:
    assert record is not None
    value, kind = record.value, record.key.api_key
    word = f"{'t' if value is None else ''}{kind}{getattr(record.key, 'member_id', '')}"
    if value is not None and kind in EPOCHS:
        word += f"({getattr(value, EPOCHS[kind])})"
    return word
