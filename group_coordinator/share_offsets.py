"""Start offsets of share groups for tools: DescribeShareGroupOffsets, AlterShareGroupOffsets, DeleteShareGroupOffsets (KIP-932).

The share coordinator keeps them. A change needs a group without members. An altered partition is begun anew, at the group's epoch
as its state epoch, and stays initialized meanwhile. A topic whose offsets are deleted is *deleting* until its states are gone;
where one stays, the next attempt takes it up.

Topics go by name here, and the handlers leave out those that the client may not see.
"""

from __future__ import annotations

from typing import NamedTuple

from ..base.errors import ErrorCode, KafkaError
from ..replication.coordinator_log import Flush
from ..replication.coordinator_shards import CoordinatorShards
from ..share_coordinator.state import NOT_BEGUN, UNKNOWN_COUNT, SharePartitionKey
from ..wire.messages.alter_share_group_offsets import (
    AlterShareGroupOffsetsRequest,
    AlterShareGroupOffsetsResponse,
    AlterShareGroupOffsetsResponsePartition,
    AlterShareGroupOffsetsResponseTopic,
)
from ..wire.messages.delete_share_group_offsets import (
    DeleteShareGroupOffsetsRequest,
    DeleteShareGroupOffsetsResponse,
    DeleteShareGroupOffsetsResponseTopic,
)
from .shard import GroupCoordinatorShard
from .share_group import ShareGroup
from .share_state_partitions import NO_PARTITIONS, NamedPartitions, Partitions
from .share_state_requests import ShareStateRequests, keys_of

_NO_LEADER_YET = 0
"""Leader epoch of a state that cannot be read."""
_ABSENT = "The topic has no such partition, or does not exist."
_LOOK = -1
"""Leader epoch of a reader that is no leader."""


class ShareStart(NamedTuple):
    """How far a share group has come in a partition."""

    start_offset: int = NOT_BEGUN
    leader_epoch: int = _NO_LEADER_YET
    delivery_complete_count: int = UNKNOWN_COUNT
    """How many records from the start offset on will not be delivered again."""


class ShareOffsets:
    """Of the share groups of one broker."""

    def __init__(self, shards: CoordinatorShards[GroupCoordinatorShard], requests: ShareStateRequests) -> None:
        self._shards = shards
        self._requests = requests

    # Describe

    async def initialized(
        self, shard: GroupCoordinatorShard, group_id: str, flush: Flush
    ) -> dict[bytes, frozenset[int]]:
        """The partitions that members may be given, by topic id; none where there is no such share group."""
        offset = shard.depends_on(group_id)
        group = shard.share_group(group_id)
        partitions = {}
        if group is not None:
            partitions = {topic_id: topic.partitions for topic_id, topic in group.states.initialized.items()}
        await self._shards.committed(shard, offset, flush)
        return partitions

    async def starts(self, group_id: str, partitions: Partitions) -> dict[SharePartitionKey, ShareStart]:
        """How far the group has come. Where the share coordinator does not say, it has not begun, as in Kafka."""
        store = self._requests.store
        found: dict[SharePartitionKey, ShareStart] = {}

        async def look(key: SharePartitionKey) -> None:
            _, leader_epoch, start_offset, count = await store.summary(key, _LOOK)
            found[key] = ShareStart(start_offset, leader_epoch, count)

        keys = keys_of(group_id, partitions)
        await self._requests.each(keys, look)
        return {key: found.get(key, ShareStart()) for key in keys}

    # Alter

    async def alter(
        self, shard: GroupCoordinatorShard, request: AlterShareGroupOffsetsRequest, flush: Flush
    ) -> AlterShareGroupOffsetsResponse:
        """Begin anew at these offsets. KafkaError GROUP_ID_NOT_FOUND where the group is of another kind, or NON_EMPTY_GROUP."""
        group_id = request.group_id
        async with self._requests.turn(group_id):
            group = shard.groups.get(group_id) or ShareGroup(group_id)
            if not isinstance(group, ShareGroup):
                raise KafkaError(ErrorCode.GROUP_ID_NOT_FOUND, f"Group {group_id} is not a share group.")
            _check_empty(group)
            plan = _Alteration(shard, request)
            if plan.offsets:
                self._requests.write_states(shard, group_id, group.states.with_initializing(plan.waiting))
                await self._shards.committed(shard, shard.depends_on(group_id), flush)
                failures = await self._requests.initialize(plan.offsets, group.epoch)
                self._requests.note_initialized(shard, group_id, plan.offsets, failures)
                for key, error in failures.items():
                    _refuse(plan.answers[key], error)
        await self._shards.committed(shard, shard.depends_on(group_id), flush)
        return plan.response

    # Delete

    async def delete(
        self, shard: GroupCoordinatorShard, request: DeleteShareGroupOffsetsRequest, flush: Flush
    ) -> DeleteShareGroupOffsetsResponse:
        """Forget the offsets of topics. KafkaError GROUP_ID_NOT_FOUND or NON_EMPTY_GROUP."""
        group_id = request.group_id
        response = DeleteShareGroupOffsetsResponse()
        async with self._requests.turn(group_id):
            group = shard.share_group(group_id)
            if group is None:
                what = "Share group {} not found." if group_id not in shard.groups else "Group {} is not a share group."
                raise KafkaError(ErrorCode.GROUP_ID_NOT_FOUND, what.format(group_id))
            _check_empty(group)
            wanted = _topics_to_delete(shard, group, request, response)
            if wanted:
                names = {topic_id: topic.topic_name for topic_id, topic in wanted.items()}
                self._requests.write_states(shard, group_id, group.states.with_deleting(names))
                await self._shards.committed(shard, shard.depends_on(group_id), flush)
                keys = keys_of(group_id, {topic_id: topic.partitions for topic_id, topic in wanted.items()})
                failures = await self._requests.delete(keys)
                errors = {key.topic_id: error for key, error in failures.items()}
                self._forget(shard, group_id, wanted.keys() - errors.keys())
                response.responses += [_deleted(topic_id, names[topic_id], errors.get(topic_id)) for topic_id in wanted]
        await self._shards.committed(shard, shard.depends_on(group_id), flush)
        return response

    def _forget(self, shard: GroupCoordinatorShard, group_id: str, topic_ids: set[bytes]) -> None:
        """Their states are deleted; a topic that members read again since is not forgotten."""
        group = shard.share_group(group_id)
        if group is not None and self._shards.is_current(shard):
            gone = topic_ids & group.states.deleting.keys()
            self._requests.write_states(shard, group_id, group.states.without_topics(gone))


class _Alteration:
    """The partitions of a request to alter offsets, and a response in which those are refused that do not exist."""

    def __init__(self, shard: GroupCoordinatorShard, request: AlterShareGroupOffsetsRequest) -> None:
        self.response = AlterShareGroupOffsetsResponse()
        self.offsets: dict[SharePartitionKey, int] = {}
        self.waiting: dict[bytes, NamedPartitions] = {}
        self.answers: dict[SharePartitionKey, AlterShareGroupOffsetsResponsePartition] = {}
        for topic in request.topics:
            size = shard.context.topics.find(topic.topic_name)
            answers = AlterShareGroupOffsetsResponseTopic(topic_name=topic.topic_name)
            self.response.responses.append(answers)
            if size is not None:
                answers.topic_id = size.topic_id
            for partition in topic.partitions:
                index = partition.partition_index
                answer = AlterShareGroupOffsetsResponsePartition(partition_index=index)
                answers.partitions.append(answer)
                if size is None or not 0 <= index < size.partition_count:
                    _refuse(answer, KafkaError(ErrorCode.UNKNOWN_TOPIC_OR_PARTITION, _ABSENT))
                    continue
                key = SharePartitionKey(request.group_id, size.topic_id, index)
                self.offsets[key], self.answers[key] = partition.start_offset, answer
                known = self.waiting.get(size.topic_id, NamedPartitions(topic.topic_name, NO_PARTITIONS))
                self.waiting[size.topic_id] = known._replace(partitions=known.partitions | {index})


def _check_empty(group: ShareGroup) -> None:
    if not group.is_empty:
        raise KafkaError(ErrorCode.NON_EMPTY_GROUP, "The group is not empty.")


def _topics_to_delete(
    shard: GroupCoordinatorShard,
    group: ShareGroup,
    request: DeleteShareGroupOffsetsRequest,
    response: DeleteShareGroupOffsetsResponse,
) -> dict[bytes, NamedPartitions]:
    """The partitions whose states are to be deleted, by topic id; topics without any are refused in the response."""
    wanted: dict[bytes, NamedPartitions] = {}
    for topic in request.topics:
        name = topic.topic_name
        size = shard.context.topics.find(name)
        if size is None:
            error = KafkaError(ErrorCode.UNKNOWN_TOPIC_OR_PARTITION, _ABSENT)
        elif (partitions := group.states.of(size.topic_id)) or size.topic_id in group.states.deleting:
            wanted[size.topic_id] = NamedPartitions(name, partitions or frozenset(range(size.partition_count)))
            continue
        else:
            error = KafkaError(ErrorCode.UNKNOWN_TOPIC_OR_PARTITION, "There is no offset information to delete.")
        response.responses.append(
            DeleteShareGroupOffsetsResponseTopic(topic_name=name, error_code=error.code, error_message=error.message)
        )
    return wanted


def _deleted(topic_id: bytes, name: str, error: KafkaError | None) -> DeleteShareGroupOffsetsResponseTopic:
    topic = DeleteShareGroupOffsetsResponseTopic(topic_name=name, topic_id=topic_id)
    if error is not None:
        topic.error_code, topic.error_message = error.code, error.message
    return topic


def _refuse(answer: AlterShareGroupOffsetsResponsePartition, error: KafkaError) -> None:
    answer.error_code, answer.error_message = error.code, error.message
