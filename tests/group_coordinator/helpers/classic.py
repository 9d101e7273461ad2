"""Members with the classic protocol on a shard driven by hand, as clients of protocol type "consumer" are."""

from __future__ import annotations

from typing import Any

from ottla.base.errors import ErrorCode, KafkaError
from ottla.tests.group_coordinator.helpers.embedded_protocol import Partitions, assigned, read_assigned, subscribed


class Classic:
    """One member; ``member_id`` and ``generation`` are what its last JoinGroup has said."""

    def __init__(self, machine: Any, member_id: str = "", **always: Any) -> None:
        self.machine = machine
        self.member_id = member_id
        self.generation = -1
        self._instance = always.get("instance")
        self._always = always

    def join(
        self, *topics: str, owned: Partitions | None = None, names: tuple[str, ...] = ("range",), **fields: Any
    ) -> Any:
        """JoinGroup, a second one with the id that the first one was answered with: the waiter of the response."""
        metadata = fields.pop("metadata", subscribed(*(topics or ("t",)), owned=owned))
        arguments = self._always | {"protocols": [(name, metadata) for name in names]} | fields
        waiter = self.machine.join(self.member_id, **arguments)
        if waiter.answer is not None and waiter.answer.error_code == ErrorCode.MEMBER_ID_REQUIRED:
            self.member_id = waiter.answer.member_id
            waiter = self.machine.join(self.member_id, **arguments)
        return waiter

    def joined(self, *topics: str, **fields: Any) -> int | ErrorCode:
        """JoinGroup: the generation, or the error."""
        response = self.join(*topics, **fields).answer
        if response.error_code != ErrorCode.NONE:
            return ErrorCode(response.error_code)
        self.member_id, self.generation = response.member_id, response.generation_id
        return self.generation

    def sync(self, generation: int | None = None, **fields: Any) -> dict[str, list[int]] | ErrorCode:
        """SyncGroup: the partitions, or the error."""
        of = self.generation if generation is None else generation
        fields = {"protocol_type": "consumer", "protocol_name": "range", "group_instance_id": self._instance} | fields
        response = self.machine.sync(self.member_id, of, **fields).answer
        return ErrorCode(response.error_code) if response.error_code else read_assigned(response.assignment)[1]

    def beat(self, generation: int | None = None) -> ErrorCode:
        """Heartbeat."""
        of = self.generation if generation is None else generation
        try:
            response = self.machine.heartbeat(self.member_id, of, instance=self._instance)
        except KafkaError as error:
            return error.code
        return ErrorCode(response.error_code)

    def lead_alone(self, **partitions: Any) -> None:
        """It is the only member of a classic group, and has these partitions."""
        assert self.joined() == 1
        assert self.sync(assignments={self.member_id: assigned(**partitions)}) == {
            topic: list(some) for topic, some in partitions.items()
        }
