"""Commands of a test to the controller, without a client: create and delete topics, move leaders, add users.

Everything here is called in the loop of the node whose controller it is.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from ..base.errors import ErrorCode, KafkaError
from ..controller.quorum import metadata_version
from ..controller.quorum.active.context import OperationContext
from ..controller.quorum.active.controller import Operation
from ..controller.quorum.active.node import ControllerNode
from ..controller.quorum.active.request_source import RequestSource
from ..controller.quorum.active.result import ControllerResult
from ..controller.quorum.snapshot_records import credential_record
from ..metadata.types import LogPosition
from ..replication.metadata_cache import MetadataCache
from ..security.scram import ScramMechanism, new_credential
from ..wire.messages.create_topics import CreatableTopic, CreatableTopicConfig, CreateTopicsRequest
from ..wire.messages.delete_topics import DeleteTopicsRequest, DeleteTopicState
from ..wire.messages.topic_records import PartitionChangeRecord
from ..wire.schema import Message

_BEFORE_ALL = LogPosition(-1, -1, -1)


class ControllerCommands:
    """The active controller's. Each returns once the change is committed, and raises KafkaError where it is refused."""

    def __init__(self, controller: ControllerNode) -> None:
        self._controller = controller

    async def create_topic(
        self, name: str, partitions: int, configs: Mapping[str, str] | None, replication_factor: int = -1
    ) -> None:
        topic = CreatableTopic(
            name=name,
            num_partitions=partitions,
            replication_factor=replication_factor,
            configs=[CreatableTopicConfig(name=key, value=value) for key, value in (configs or {}).items()],
        )
        response = await self._ask(CreateTopicsRequest(topics=[topic]))
        _check(response.topics[0].error_code, response.topics[0].error_message)

    async def delete_topic(self, name: str) -> None:
        response = await self._ask(DeleteTopicsRequest(topics=[DeleteTopicState(name=name)]))
        _check(response.responses[0].error_code, response.responses[0].error_message)

    async def lead(self, topic: str, partition: int, leader: int) -> int:
        """Have an in-sync replica lead a partition, under the next leader epoch, which is returned."""
        return await self._controller.carry_out(_led_by(topic, partition, leader))

    async def add_users(self, users: Mapping[str, str]) -> None:
        """Add SCRAM credentials for users, given as names with passwords."""
        records = [
            (credential_record(name, mechanism, new_credential(mechanism, password)), 0)
            for name, password in users.items()
            for mechanism in ScramMechanism
        ]
        if records:
            await self._controller.carry_out(lambda context: ControllerResult(records, response=True))

    async def _ask(self, request: Message) -> Any:
        node = self._controller
        source = RequestSource(type(request).valid_versions.stop - 1)
        return await node.ask(request, source, node.driver.node.quorum.listener)


def _led_by(name: str, number: int, leader: int) -> Operation[int]:
    """The operation of ``ControllerCommands.lead``. Kafka has none: its controller elects the first replica or none."""

    def operation(context: OperationContext) -> ControllerResult[int]:
        topic = context.topic_named(name)
        partition = None if topic is None else topic.partitions.get(number)
        if topic is None or partition is None:
            raise KafkaError(ErrorCode.UNKNOWN_TOPIC_OR_PARTITION, f"{name}-{number} does not exist")
        if leader not in partition.isr or not context.is_active(leader):
            raise KafkaError(
                ErrorCode.ELIGIBLE_LEADERS_NOT_AVAILABLE,
                f"broker {leader} is not an in-sync replica of {name}-{number}",
            )
        record = PartitionChangeRecord(topic_id=topic.topic_id, partition_id=number, leader=leader)
        version = metadata_version.partition_record_version(context.level)
        return ControllerResult([(record, version)], response=partition.leader_epoch + 1)

    return operation


def _check(code: int, message: str | None) -> None:
    if code:
        raise KafkaError(ErrorCode(code), message or "")


async def wait_applied(controller: ControllerNode, metadata: MetadataCache) -> None:
    """Return once a broker of the same process knows all that its controller knows to be committed."""
    position = controller.controller.committed_state.image.position
    assert position is not None, "a controller that has done something has begun its log"
    await metadata.wait_until(lambda: (metadata.image.position or _BEFORE_ALL) >= position)
