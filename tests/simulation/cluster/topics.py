"""An administrator who makes topics and deletes them again, while brokers die and come back."""

from __future__ import annotations

import trio

from ottla.base.errors import ErrorCode
from ottla.wire.messages.create_topics import CreatableTopic, CreateTopicsRequest
from ottla.wire.messages.delete_topics import DeleteTopicsRequest, DeleteTopicState

from ..clients import Actor
from ..network import Lost

_UNKNOWN = frozenset({ErrorCode.UNKNOWN_TOPIC_OR_PARTITION})


class PassingTopics(Actor):
    """Has one topic at a time, called ``passing``; in the end there is none."""

    async def run(self, until: trio.Event) -> None:
        while not until.is_set():
            await trio.sleep(self.rng.uniform(0.2, 2))
            await self._create()
            await trio.sleep(self.rng.uniform(0.1, 2))
            await self._delete()

    async def _create(self) -> None:
        """Once: whether there is a topic now shows when it is to be deleted."""
        topic = CreatableTopic(name="passing", num_partitions=2, replication_factor=self.world.replication_factor)
        try:
            answer = await self.client.call(CreateTopicsRequest(topics=[topic], timeout_ms=5000), 7)
            self.log(f"CreateTopics: {ErrorCode(answer.topics[0].error_code).name}")
        except Lost as error:
            self.log(f"CreateTopics lost: {error}")

    async def _delete(self) -> None:
        request = DeleteTopicsRequest(topics=[DeleteTopicState(name="passing")], timeout_ms=5000)
        answer = await self.insist(request, 6, lambda a: [topic.error_code for topic in a.responses], _UNKNOWN)
        self.log(f"DeleteTopics: {ErrorCode(answer.responses[0].error_code).name}")


__all__ = ["PassingTopics"]
