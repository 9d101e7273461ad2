"""The controller: the one broker that decides about topics, replicas and leaders, and tells the others.

Every broker has one, which stands for election (see ``candidate``); the one that wins begins a ``Term``, the others watch
``/controller``. Here are the requests that it answers: each is an event that has its turn, and is refused with NOT_CONTROLLER
where this broker is not the controller.
"""

from __future__ import annotations

import random
from collections.abc import Iterable, Mapping, Sequence

from ....base.errors import ErrorCode, KafkaError
from ....base.partitions import TopicPartition
from ....base.seams import Clock
from ....log.settings import LogSettings
from ....metadata.rules.election import ElectionType
from ....metadata.types import ReplicaAssignment
from ....wire.messages.allocate_producer_ids import AllocateProducerIdsRequest, AllocateProducerIdsResponse
from ....wire.messages.alter_partition import AlterPartitionRequest, AlterPartitionResponse
from ....wire.messages.controlled_shutdown import ControlledShutdownRequest, ControlledShutdownResponse
from ...new_topics import Charge, CreatedTopic, NewTopic
from ...settings import ControllerSettings
from ..config_store import ConfigStore
from ..store.cluster_store import ClusterStore
from .alter_partition_queue import AlterPartitionQueue
from .candidate import Candidate
from .channels import Connect
from .term import Term


class Controller(Candidate):
    """One broker's controller: what it answers when it is elected."""

    def __init__(
        self,
        broker_id: int,
        store: ClusterStore,
        configs: ConfigStore,
        connect: Connect,
        settings: ControllerSettings,
        log_settings: LogSettings,
        clock: Clock,
        randomness: random.Random,
        inter_broker_listener: str,
    ) -> None:
        super().__init__(
            broker_id, store, configs, connect, settings, log_settings, clock, randomness, inter_broker_listener
        )
        self._alterations = AlterPartitionQueue(lambda turn: self._ask(lambda term: turn(term.alter_partitions)))

    # --- requests of administrators -----------------------------------------------------------------------------------

    async def create_topics(
        self, topics: Iterable[NewTopic], *, validate_only: bool = False, charge: Charge | None = None
    ) -> dict[str, CreatedTopic | KafkaError]:
        """The outcome by topic name; see ``Topics.create``. Raises KafkaError when nothing can be done at all."""

        async def create(term: Term) -> dict[str, CreatedTopic | KafkaError]:
            results = await term.topics.create(topics, validate_only=validate_only, charge=charge)
            if any(isinstance(r, KafkaError) and r.code is ErrorCode.NOT_CONTROLLER for r in results.values()):
                await self._stand_down(term)
            return results

        return await self._request(create)

    async def create_partitions(
        self,
        topic: str,
        count: int,
        assignments: Sequence[Sequence[int]] | None = None,
        *,
        validate_only: bool = False,
        charge: Charge | None = None,
    ) -> None:
        """Enlarge a topic to ``count`` partitions. Raises KafkaError."""
        await self._request(
            lambda term: term.topics.add_partitions(
                topic, count, assignments, validate_only=validate_only, charge=charge
            )
        )

    async def delete_topics(self, names: Iterable[str]) -> dict[str, KafkaError | None]:
        """The outcome by name; a topic with a replica on a dead broker is deleted when that is back. Raises KafkaError."""
        return await self._request(lambda term: term.deletions.begin(names))

    async def elect_again(self, key: TopicPartition, leader: int | None = None) -> int:
        """Elect a partition's leader again, under a new leader epoch, which is returned. Raises KafkaError.

        ``leader`` names another in-sync replica to elect.
        """
        return await self._request(lambda term: term.elect_again(key, leader))

    async def elect_leaders(
        self, kind: ElectionType, keys: Iterable[TopicPartition] | None
    ) -> dict[TopicPartition, KafkaError | None]:
        """Elect preferred replicas, or where none is in sync another one; the outcome by partition. Raises KafkaError.

        ``keys`` None stands for all partitions.
        """
        return await self._request(lambda term: term.elections.elect(kind, keys))

    async def reassign(
        self, wanted: Mapping[TopicPartition, Sequence[int] | None], *, factor_may_change: bool = True
    ) -> dict[TopicPartition, KafkaError | None]:
        """Begin to move partitions to other replicas, or with None cancel a move; see ``reassignment``.

        The outcome by partition: None if it has begun, or why not. Raises KafkaError when nothing can be done at all.
        """
        return await self._request(lambda term: term.reassign(wanted, factor_may_change=factor_may_change))

    def reassignments(self) -> list[tuple[TopicPartition, ReplicaAssignment]]:
        """The partitions whose replicas are being moved. Raises KafkaError."""
        return self._active_term().reassignments.under_way()

    # --- requests of brokers ------------------------------------------------------------------------------------------

    async def alter_partition(self, request: AlterPartitionRequest, version: int) -> AlterPartitionResponse:
        """Change in-sync replicas as a leader asks. Requests that wait at the same time are written together."""
        try:
            answer = await self._alterations.answer(request, version)
        except KafkaError as error:
            return AlterPartitionResponse(error_code=error.code)
        if self._term is not None and self._term.reassignments.is_any_ready:
            self._events.put(self._finish_reassignments)
        return answer

    async def controlled_shutdown(self, request: ControlledShutdownRequest) -> ControlledShutdownResponse:
        """Move leaders away from a broker that is about to stop; the answer has the partitions that it leads still."""
        try:
            answer = await self._ask(lambda term: term.shut_down(request))
            if request.broker_id == self._broker_id:
                await self._senders.wait_answered()  # this controller ends with its broker; the next one tells the rest
            return answer
        except KafkaError as error:
            return ControlledShutdownResponse(error_code=error.code)

    async def allocate_producer_ids(self, request: AllocateProducerIdsRequest) -> AllocateProducerIdsResponse:
        """A block of producer ids that no broker had before (KIP-730)."""
        try:
            return await self._ask(lambda term: term.allocate_producer_ids(request))
        except KafkaError as error:
            return AllocateProducerIdsResponse(error_code=error.code)
