"""An administrator who creates topics and deletes them again, while brokers die and come back."""

from __future__ import annotations

import itertools

import trio

from ottla.base.errors import ErrorCode
from ottla.wire.messages.create_topics import CreatableTopic, CreateTopicsRequest
from ottla.wire.messages.delete_topics import DeleteTopicsRequest, DeleteTopicState

from ..clients import Actor
from ..network import Lost

_UNKNOWN = frozenset({ErrorCode.UNKNOWN_TOPIC_OR_PARTITION})


class PassingTopics(Actor):
    """Has one topic at a time, each with another name; at the end there is none.

    The names differ, because remains of a deleted topic would go away with the next topic of the same name.
    """

    async def run(self, until: trio.Event) -> None:
        for count in itertools.count(1):
            if until.is_set():
                return
            name = f"passing{count}"
            await trio.sleep(self.rng.uniform(0.2, 2))
            await self._create(name)
            await trio.sleep(self.rng.choice((0.1, 1, 4, 8)))  # enough for a session to expire
            await self._delete(name)

    async def _create(self, name: str) -> None:
        """Try once; whether the topic exists is seen when it is deleted."""
        topic = CreatableTopic(name=name, num_partitions=2, replication_factor=self.world.replication_factor)
        try:
            answer = await self.client.call(CreateTopicsRequest(topics=[topic], timeout_ms=5000), 7)
            self.log(f"CreateTopics: {ErrorCode(answer.topics[0].error_code).name}")
        except Lost as error:
            self.log(f"CreateTopics lost: {error}")

    async def _delete(self, name: str) -> None:
        request = DeleteTopicsRequest(topics=[DeleteTopicState(name=name)], timeout_ms=5000)
        answer = await self.insist(request, 6, lambda a: [topic.error_code for topic in a.responses], _UNKNOWN)
        self.log(f"DeleteTopics: {ErrorCode(answer.responses[0].error_code).name}")


__all__ = ["PassingTopics"]
