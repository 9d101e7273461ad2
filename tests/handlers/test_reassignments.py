"""AlterPartitionReassignments and ListPartitionReassignments on the only broker of a cluster, at every version."""

from __future__ import annotations

from collections.abc import Iterable

import pytest

from ottla.base.errors import ErrorCode
from ottla.handlers.table import SERVED
from ottla.wire.api_keys import ApiKey
from ottla.wire.messages.alter_partition_reassignments import (
    AlterPartitionReassignmentsRequest,
    ReassignablePartition,
    ReassignableTopic,
)
from ottla.wire.messages.incremental_alter_configs import (
    AlterableConfig,
    AlterConfigsResource,
    IncrementalAlterConfigsRequest,
)
from ottla.wire.messages.list_partition_reassignments import (
    ListPartitionReassignmentsRequest,
    ListPartitionReassignmentsTopics,
)

from ..helpers.zookeeper_broker import QUORUM, on_both_kinds

__all__ = ["on_both_kinds"]

ALTER = SERVED.by_key[ApiKey.ALTER_PARTITION_REASSIGNMENTS]
BROKER, SET, DELETE = 4, 0, 1


@pytest.mark.parametrize("version", range(ALTER.lowest, ALTER.highest + 1))
def test_alter(send, make_topic, cluster_kind, version) -> None:
    topic, _ = make_topic()

    def ask(wanted: Iterable[tuple[int, list[int] | None]]) -> list[int]:
        partitions = [ReassignablePartition(partition_index=number, replicas=to) for number, to in wanted]
        asked = [ReassignableTopic(name=topic, partitions=partitions)]
        response = send(AlterPartitionReassignmentsRequest(topics=asked), version)
        (answer,) = response.responses
        assert (response.error_code, answer.name) == (0, topic)
        return [partition.error_code for partition in answer.partitions]

    unknown, invalid = ErrorCode.UNKNOWN_TOPIC_OR_PARTITION, ErrorCode.INVALID_REPLICA_ASSIGNMENT
    nothing = ErrorCode.NO_REASSIGNMENT_IN_PROGRESS
    absent = unknown if cluster_kind == QUORUM else nothing
    assert ask([(0, [1]), (1, [1]), (2, None)]) == [ErrorCode.NONE, unknown, absent]
    for replicas, code in (([], invalid), ([1, 1], invalid), ([2], invalid), ([-1], invalid), (None, nothing)):
        assert ask([(0, replicas)]) == [code]
    one_by_one, only_the_last = [invalid, ErrorCode.NONE], [ErrorCode.NONE]
    assert ask([(0, [2]), (0, [1])]) == (one_by_one if cluster_kind == QUORUM else only_the_last)


def test_list(send, make_topic) -> None:
    topic, _ = make_topic()
    named = [ListPartitionReassignmentsTopics(name=topic, partition_indexes=[0, 7])]
    for topics in (None, named):
        response = send(ListPartitionReassignmentsRequest(topics=topics), 0)
        assert (response.error_code, response.topics) == (0, [])


def test_throttles_that_are_not_set_can_be_cleared(send) -> None:
    def change(name: str, operation: int) -> int:
        config = AlterableConfig(name=name, config_operation=operation, value=None if operation == DELETE else "1")
        resource = AlterConfigsResource(resource_type=BROKER, resource_name="1", configs=[config])
        (answer,) = send(IncrementalAlterConfigsRequest(resources=[resource]), 1).responses
        return answer.error_code

    assert change("replica.alter.log.dirs.io.max.bytes.per.second", DELETE) == ErrorCode.NONE
    assert change("replica.alter.log.dirs.io.max.bytes.per.second", SET) == ErrorCode.NONE
    assert change("replica.alter.log.dirs.io.max.bytes.per.second", DELETE) == ErrorCode.NONE
    assert change("log.dirs", DELETE) == ErrorCode.NONE  # Kafka looks at what is left, and nothing is
