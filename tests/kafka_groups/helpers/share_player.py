"""One broker that a walk of share groups is played on: what ``broker_player`` does not know."""

from __future__ import annotations

import base64
import time
from collections.abc import Sequence
from typing import Any

from ottla.base.errors import ErrorCode
from ottla.compat_tests.raw.transactional import RawProducer
from ottla.compat_tests.session import eventually
from ottla.compat_tests.wire_client import Operator
from ottla.wire.messages import read_share_group_state as read_state
from ottla.wire.messages.describe_configs import DescribeConfigsRequest, DescribeConfigsResource
from ottla.wire.messages.describe_share_group_offsets import (
    DescribeShareGroupOffsetsRequest,
    DescribeShareGroupOffsetsRequestGroup,
)
from ottla.wire.messages.find_coordinator import FindCoordinatorRequest
from ottla.wire.messages.incremental_alter_configs import (
    AlterableConfig,
    AlterConfigsResource,
    IncrementalAlterConfigsRequest,
)
from ottla.wire.messages.share_acknowledge import ShareAcknowledgeRequest
from ottla.wire.records import iter_complete_batches

from . import broker_player
from .broker_player import BrokerPlayer
from .steps import (
    ADMIN,
    LIMITED,
    AwaitInitialized,
    AwaitNoSession,
    AwaitResponse,
    AwaitStored,
    Configure,
    Response,
    Step,
    Transact,
    topic_id,
)

PROPERTIES = {
    **broker_player.PROPERTIES,
    "group.share.assignment.interval.ms": "0",
    "group.share.max.session.timeout.ms": "1800000",
    "group.share.session.timeout.ms": "1800000",
    "group.share.max.record.lock.duration.ms": "3600000",
    "group.share.min.record.lock.duration.ms": "1000",
    "group.share.record.lock.duration.ms": "3600000",
    "group.share.min.partition.max.record.locks": "100",
    "log.retention.ms": "-1",
    "share.coordinator.state.topic.num.partitions": "1",
}
"""Of the broker: no time is up during a walk, apart from the locks that a walk makes short and waits for. Records are old."""
GROUP_RESOURCE = 32
SET, DELETE = range(2)
GROUP_SOURCE = 8
"""Of a setting that a group has of its own."""
SHARE = 2
"""The type of a share coordinator's key."""
NOBODYS_EPOCH = 1 << 30
"""No share session comes to it."""
_UNLIKE_TEXTS = ("ShareFetchResponse", "ShareAcknowledgeResponse", "PartitionData", "ShareGroupHeartbeatResponse")
"""Where Ottla tells people more than Kafka does: texts of errors are not compared."""
APPLIED_S = 0.02
"""Kafka's leader learns so soon after the share coordinator that a state is stored. No response shows when."""


class SharePlayer(BrokerPlayer):
    """Plays the steps of walks of share groups."""

    def __init__(self, bootstrap: str) -> None:
        super().__init__(bootstrap)
        self._operator_of_ends = Operator(bootstrap)
        key = f"group:{base64.urlsafe_b64encode(self._ids[topic_id('t0')]).rstrip(b'=').decode()}:0"
        request = FindCoordinatorRequest(key_type=SHARE, coordinator_keys=[key])

        def is_found() -> bool:
            (found,) = self._connection(ADMIN).call(request, 6).coordinators
            return bool(found.error_code == ErrorCode.NONE)

        eventually(is_found)
        self._producer: RawProducer | None = None

    def play(self, step: Step) -> dict[str, Any]:
        if isinstance(step, AwaitResponse):
            return {step.who: self.wait(step.who)} if step.who in self._waiting else {}
        if isinstance(step, Configure):
            self._configure(step)
        elif isinstance(step, AwaitInitialized):
            eventually(lambda: self._is_initialized(step))
        elif isinstance(step, AwaitNoSession):
            eventually(lambda: self._has_no_session(step))
        elif isinstance(step, AwaitStored):
            eventually(lambda: self._is_stored(step))
            time.sleep(APPLIED_S)
        elif isinstance(step, Transact):
            self._transact(step)
        else:
            return super().play(step)
        return {}

    def _configure(self, step: Configure) -> None:
        changes = [
            AlterableConfig(name=f"share.{name}", config_operation=DELETE if value is None else SET, value=value)
            for name, value in step.values
        ]
        resource = AlterConfigsResource(resource_type=GROUP_RESOURCE, resource_name=step.group_id, configs=changes)
        request = IncrementalAlterConfigsRequest(resources=[resource])
        (result,) = self._connection(ADMIN).call(request, 1).responses
        assert result.error_code == ErrorCode.NONE, result
        eventually(lambda: self._is_configured(step))

    def _is_configured(self, step: Configure) -> bool:
        resource = DescribeConfigsResource(
            resource_type=GROUP_RESOURCE, resource_name=step.group_id, configuration_keys=None
        )
        (result,) = self._connection(ADMIN).call(DescribeConfigsRequest(resources=[resource]), 4).results
        own = {each.name: each.value for each in result.configs if each.config_source == GROUP_SOURCE}
        return all(own.get(f"share.{name}") == value for name, value in step.values)

    def _is_initialized(self, step: AwaitInitialized) -> bool:
        group = DescribeShareGroupOffsetsRequestGroup(group_id=step.group_id, topics=None)
        request = DescribeShareGroupOffsetsRequest(groups=[group])
        (found,) = self._connection(ADMIN).call(request, 1).groups
        counts = {self._named.get(each.topic_name): len(each.partitions) for each in found.topics}
        return all(counts.get(name, 0) == count for name, count in step.partitions)

    def _has_no_session(self, step: AwaitNoSession) -> bool:
        request = ShareAcknowledgeRequest(
            group_id=step.group_id, member_id=step.member_id, share_session_epoch=NOBODYS_EPOCH
        )
        answer = self._connection(ADMIN).call(request, 1)
        return bool(answer.error_code == ErrorCode.SHARE_SESSION_NOT_FOUND)

    def _is_stored(self, step: AwaitStored) -> bool:
        partition = read_state.PartitionData(partition=step.partition, leader_epoch=-1)
        topic = read_state.ReadStateData(topic_id=self._ids[topic_id(step.topic)], partitions=[partition])
        request = read_state.ReadShareGroupStateRequest(group_id=step.group_id, topics=[topic])
        (result,) = self._connection(ADMIN).call(request, 0).results
        (found,) = result.partitions
        return found.start_offset > step.offset or any(
            each.first_offset <= step.offset <= each.last_offset and each.delivery_count >= step.delivery_count
            for each in found.state_batches
        )

    def _transact(self, step: Transact) -> None:
        if self._producer is None:
            self._producer = RawProducer(self._connection("producer"), "walk").start()
        producer, topic = self._producer, self._actual[step.topic]
        producer.begin(topic, step.partition)
        values = tuple(b"%d" % number for number in range(step.size))
        assert producer.send(topic, *values, partition=step.partition) == ErrorCode.NONE
        producer.retried(lambda: producer.end(commit=step.is_committed))
        self._operator_of_ends.wait_until_ended(topic, step.partition + 1)

    def _canonical(self, value: Any, field: str = "", owner: str = "") -> Any:
        if field == "records":
            return [[each.base_offset, each.last_offset] for each in iter_complete_batches(value or b"")]
        if field.endswith("error_message") and owner in _UNLIKE_TEXTS:
            return None
        if field == "assignment":
            return None  # Kafka's assignor goes through hash tables
        return super()._canonical(value, field, owner)

    def in_walks_names(self, who: str, response: Any) -> Response:
        """Without the partitions that a fetch has nothing to say of: Kafka names some of them."""
        found = super().in_walks_names(who, response)
        kind = type(response).__name__
        if kind == "ShareFetchResponse":
            topics = [
                {**topic, "partitions": [each for each in topic["partitions"] if _says_something(each)]}
                for topic in found["responses"]
            ]
            found["responses"] = [topic for topic in topics if topic["partitions"]]
            if who.startswith(LIMITED):
                _join(found["responses"], "acquired_records")
        elif kind == "ReadShareGroupStateResponse":
            # Ottla joins all neighbours that are alike, Kafka those that it happens to compare.
            _join(found["results"], "state_batches")
        return found


def _join(topics: Sequence[Response], field: str) -> None:
    """Ranges that follow each other, and are alike, as one."""
    for topic in topics:
        for partition in topic["partitions"]:
            joined: list[Response] = []
            for each in sorted(partition[field], key=lambda batch: int(batch["first_offset"])):
                before = joined[-1] if joined else None
                offsets = {"first_offset": before["first_offset"], "last_offset": each["last_offset"]} if before else {}
                if (
                    before
                    and before["last_offset"] + 1 == each["first_offset"]
                    and {**each, **offsets} == {**before, **offsets}
                ):
                    joined[-1] = {**before, **offsets}
                else:
                    joined.append(each)
            partition[field] = joined


def _says_something(partition: Response) -> bool:
    return bool(partition["error_code"] or partition["acknowledge_error_code"] or partition["acquired_records"])
