"""The base of all clients: requests are repeated until there is a final response; the errors after which they are repeated."""

from __future__ import annotations

import random
from collections.abc import Callable, Iterable
from typing import Any

import trio

from ottla.base.errors import ErrorCode
from ottla.wire.messages.create_topics import CreatableTopic, CreatableTopicConfig, CreateTopicsRequest
from ottla.wire.messages.delete_records import DeleteRecordsPartition, DeleteRecordsRequest, DeleteRecordsTopic
from ottla.wire.messages.elect_leaders import ElectLeadersRequest
from ottla.wire.messages.find_coordinator import FindCoordinatorRequest
from ottla.wire.schema import Message

from .history import History, TopicPartition
from .network import Client, Lost
from .world import Violation, World

PATIENCE_SECONDS = 300.0
RETRIABLE = frozenset(
    {
        ErrorCode.NOT_LEADER_OR_FOLLOWER,
        ErrorCode.LEADER_NOT_AVAILABLE,
        ErrorCode.KAFKA_STORAGE_ERROR,
        ErrorCode.NOT_ENOUGH_REPLICAS,
        ErrorCode.NOT_ENOUGH_REPLICAS_AFTER_APPEND,
        ErrorCode.REQUEST_TIMED_OUT,
        ErrorCode.COORDINATOR_NOT_AVAILABLE,
        ErrorCode.COORDINATOR_LOAD_IN_PROGRESS,
        ErrorCode.NOT_COORDINATOR,
        ErrorCode.CONCURRENT_TRANSACTIONS,
        ErrorCode.UNSTABLE_OFFSET_COMMIT,
    }
)

TOPICS: dict[str, tuple[int, dict[str, str]]] = {
    "plain": (3, {"segment.bytes": "1500", "retention.ms": "-1"}),
    "aged": (1, {"segment.bytes": "800", "retention.bytes": "2500", "retention.ms": "-1"}),
    "compact": (
        2,
        {
            "segment.bytes": "900",
            "cleanup.policy": "compact",
            "min.cleanable.dirty.ratio": "0.1",
            "delete.retention.ms": "1500",
        },
    ),
}
PARTITIONS: list[TopicPartition] = [(topic, number) for topic, (count, _) in TOPICS.items() for number in range(count)]
SHRINKING: TopicPartition = ("plain", 2)
"""The only partition whose records are deleted by DeleteRecords."""


class Actor:
    """A client with a connection, its own random generator, and a name in the log."""

    def __init__(self, world: World, history: History, name: str) -> None:
        self.world = world
        self.history = history
        self.name = name
        self.rng: random.Random = world.random_for(name)
        self.client: Client = world.client(name)

    def log(self, what: str) -> None:
        self.world.log(self.name, what)

    async def insist(
        self,
        request: Message,
        version: int,
        codes_of: Callable[[Any], Iterable[int]],
        fatal: frozenset[ErrorCode] = frozenset(),
    ) -> Any:
        """Repeat a request until its response has no retriable error, except for those in ``fatal``.

        Raises Violation when that takes too long.
        """
        retriable = (RETRIABLE | self.world.retriable) - fatal
        deadline = trio.current_time() + PATIENCE_SECONDS
        what = f"{type(request).__name__} {version}"
        while trio.current_time() < deadline:
            try:
                answer = await self.client.call(request, version)
            except Lost as error:
                self.log(f"{what} lost: {error}")
                continue
            codes = [ErrorCode(code) for code in codes_of(answer) if code]
            if not codes:
                return answer
            self.log(f"{what}: {' '.join(sorted({code.name for code in codes}))}")
            if not retriable.issuperset(codes):
                return answer
            await trio.sleep(self.rng.choice((0.01, 0.1, 0.4)))
        raise Violation(f"{self.name}: {what} is not answered for {PATIENCE_SECONDS} s")


class Administrator(Actor):
    """Creates topics, at times deletes records at the beginning of one partition, and has leaders elected."""

    async def create_topics(self) -> None:
        topics = [
            CreatableTopic(
                name=name,
                num_partitions=count,
                replication_factor=self.world.replication_factor,
                configs=[
                    CreatableTopicConfig(name=key, value=value)
                    for key, value in {**configs, **self.world.topic_configs}.items()
                ],
            )
            for name, (count, configs) in TOPICS.items()
        ]
        await self.insist(CreateTopicsRequest(topics=topics, timeout_ms=5000), 7, lambda a: _unknown_codes(a.topics))
        for key_type, key in ((0, "group"), (1, "transaction")):
            request = FindCoordinatorRequest(key_type=key_type, coordinator_keys=[key])
            await self.insist(request, 4, lambda answer: [answer.coordinators[0].error_code])

    async def elect_preferred(self) -> None:
        """Elect the preferred leader of every partition."""

        def codes(answer: Any) -> list[int]:
            return [
                answer.error_code,
                *(p.error_code for t in answer.replica_election_results for p in t.partition_result),
            ]

        await self.insist(ElectLeadersRequest(topic_partitions=None, timeout_ms=5000), 2, codes)

    async def delete_records(self) -> None:
        """Delete records up to a random offset below the highest that a client knows."""
        topic, number = SHRINKING
        highest = max((s.offset or 0 for s in self.history.sent.values() if s.partition == SHRINKING), default=0)
        if highest == 0:
            return
        offset = self.rng.randint(0, highest // 2)
        known = self.history.deleted_up_to
        known[SHRINKING] = max(known.get(SHRINKING, 0), offset)
        part = DeleteRecordsPartition(partition_index=number, offset=offset)
        request = DeleteRecordsRequest(topics=[DeleteRecordsTopic(name=topic, partitions=[part])], timeout_ms=5000)
        answer = await self.insist(request, 2, lambda a: [a.topics[0].partitions[0].error_code])
        (result,) = answer.topics[0].partitions
        if result.error_code == ErrorCode.NONE and result.low_watermark < offset:
            self.world.violate(f"records below {offset} were deleted, and {SHRINKING} begins at {result.low_watermark}")
        self.log(f"DeleteRecords up to {offset}")


def _unknown_codes(topics: Iterable[Any]) -> list[int]:
    """The errors of CreateTopics, except for that caused by an earlier attempt whose response was lost."""
    return [topic.error_code for topic in topics if topic.error_code != ErrorCode.TOPIC_ALREADY_EXISTS]
