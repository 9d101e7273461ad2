"""Creation and enlargement of topics by the controller.

A topic is written to the store first (its nodes in one transaction where they fit), then the brokers are told:
LeaderAndIsr before UpdateMetadata, so that a partition that a client sees is ready for it.
"""

from __future__ import annotations

import dataclasses
import logging
import random
from collections.abc import Iterable, Mapping, Sequence

import trio

from ....base.errors import ErrorCode, KafkaError
from ....base.partitions import TopicPartition
from ....base.wording import counted
from ....log.settings import LogSettings
from ....metadata.rules.assignment import assign_replicas, check_assignment
from ....metadata.rules.topic_names import check_collision, check_name
from ....metadata.types import ReplicaAssignment, TopicAssignment
from ...configs.topic_configs import check_overrides
from ...new_topics import Charge, CreatedTopic, NewTopic
from ...random_uuids import random_uuid
from ...settings import ControllerSettings
from ..config_store import ConfigStore
from ..nodes import znodes
from ..state.context import ControllerContext, PartitionState, TopicState
from ..state.loading import is_stored, load_topics
from ..state.partition_states import create_partition_operations, fenced_multi, refusal, transactions
from ..store.cluster_store import (
    BadVersionError,
    ClusterStore,
    ConnectionLossError,
    Create,
    NodeExistsError,
    Operation,
    Set,
    StoreError,
)
from .controller_channel_manager import ControllerChannelManager
from .leadership import elected_state
from .state_messages import leader_and_isr_requests, update_metadata_requests

logger = logging.getLogger(__name__)

MAX_PARTITIONS_PER_REQUEST = 10_000
"""As in Kafka's KRaft mode, where one operation makes no more records."""


class Topics:
    """Makes and enlarges topics for the controller; its methods are called one at a time."""

    def __init__(
        self,
        store: ClusterStore,
        context: ControllerContext,
        configs: ConfigStore,
        senders: ControllerChannelManager,
        settings: ControllerSettings,
        log_settings: LogSettings,
        randomness: random.Random,
    ) -> None:
        self._store = store
        self._context = context
        self._configs = configs
        self._senders = senders
        self._settings = settings
        self.log_settings = log_settings
        self._randomness = randomness

    async def create(
        self, new_topics: Iterable[NewTopic], *, validate_only: bool, charge: Charge | None = None
    ) -> dict[str, CreatedTopic | KafkaError]:
        """The outcome by name; one topic's failure does not touch the others. ``charge`` is asked for each that can be made."""
        results: dict[str, CreatedTopic | KafkaError] = {}
        planned: dict[str, tuple[TopicState, dict[str, str]]] = {}
        room = MAX_PARTITIONS_PER_REQUEST
        for new in new_topics:
            try:
                topic, overrides = self._plan(new, planned, room)
                if charge is not None and not validate_only:
                    charge(len(topic.partitions))
            except KafkaError as error:
                results[new.name] = error
                continue
            planned[new.name] = (topic, overrides)
            room -= len(topic.partitions)
            results[new.name] = CreatedTopic(topic.topic_id, len(topic.partitions), topic.replication_factor, overrides)
        if not validate_only and planned:
            async with trio.open_nursery() as nursery:
                for topic, overrides in planned.values():
                    nursery.start_soon(self._write, topic, overrides, results)
            made = [name for name in planned if name in self._context.topics]
            for name in made:
                topic, overrides = planned[name]
                logger.info("Created topic %s with %s%s", name, _partitions(topic), _with_settings(overrides))
            self._announce(self._keys(made))
        return results

    def _plan(self, new: NewTopic, planned: Iterable[str], room: int) -> tuple[TopicState, dict[str, str]]:
        check_name(new.name)
        if new.name in self._context.deleting:
            raise KafkaError(ErrorCode.TOPIC_ALREADY_EXISTS, f"Topic '{new.name}' is marked for deletion.")
        if new.name in self._context.topics:
            raise KafkaError(ErrorCode.TOPIC_ALREADY_EXISTS, f"Topic '{new.name}' already exists.")
        check_collision(new.name, [*self._context.topics, *planned])
        assignment = self._assign(new, room)
        overrides = check_overrides(self.log_settings, new.configs)
        return TopicState(new.name, random_uuid(self._randomness), self._new_partitions(assignment)), overrides

    def _assign(self, new: NewTopic, room: int) -> Mapping[int, Sequence[int]]:
        racks = self._context.racks()
        if new.assignment:
            if new.partition_count != -1 or new.replication_factor != -1:
                raise KafkaError(
                    ErrorCode.INVALID_REQUEST,
                    "A manual partition assignment was specified, but numPartitions or replicationFactor was not set to -1.",
                )
            check_room(len(new.assignment), room)
            check_assignment(new.assignment, racks)
            return new.assignment
        count, factor = new.numbers(self._settings)
        check_room(count, room)
        return assign_replicas(racks, count, factor, self._randomness)

    def _new_partitions(self, assignment: Mapping[int, Sequence[int]]) -> dict[int, PartitionState]:
        context = self._context
        partitions = {}
        for number, replicas in sorted(assignment.items()):
            eligible = context.brokers.keys() - context.shutting_down
            partition = PartitionState(ReplicaAssignment(tuple(replicas)))
            partition.state = elected_state(partition, eligible, eligible, context.epoch, unclean_allowed=False)
            partitions[number] = partition
        return partitions

    async def _write(
        self, topic: TopicState, overrides: Mapping[str, str], results: dict[str, CreatedTopic | KafkaError]
    ) -> None:
        """Make a planned topic's nodes; several of these share a sync of the store."""
        name = topic.name
        try:
            is_made = await self._try_write(topic, overrides)
        except StoreError as error:
            results[name] = refusal(error)
            return
        if not is_made:
            results[name] = KafkaError(ErrorCode.TOPIC_ALREADY_EXISTS, f"Topic '{name}' already exists.")
            return
        self._context.topics[name] = topic
        self._configs.put(name, overrides)

    async def _try_write(self, topic: TopicState, overrides: Mapping[str, str]) -> bool:
        """False when there is another topic of this name. Raises StoreError.

        If the connection is lost a read tells whether the topic was made. One that takes several transactions is left to
        ``TopicChanges``, which finds it in the store, complete or not.
        """
        name = topic.name
        while True:
            operations = [
                *await create_topic_operations(self._store, name, topic.assignment(), overrides),
                Create(znodes.partitions_path(name)),
                *create_partition_operations(name, topic.partitions),
            ]
            try:
                await fenced_multi(self._store, self._context, operations)
                return True
            except NodeExistsError:
                return False
            except ConnectionLossError:
                found = await is_stored(self._store, name, topic.topic_id)
                if len(list(transactions(operations))) > 1:
                    raise  # some of them may have been carried out, so to begin again would find the topic half made
                if found is not None:
                    return found

    async def add_partitions(
        self,
        name: str,
        count: int,
        assignments: Sequence[Sequence[int]] | None,
        *,
        validate_only: bool,
        charge: Charge | None = None,
    ) -> None:
        """Enlarge a topic to ``count`` partitions; ``assignments`` are the replicas of the new ones in order.

        Raises KafkaError, StoreError.
        """
        topic = self._context.topics.get(name)
        if topic is None or name in self._context.deleting:
            raise KafkaError(ErrorCode.UNKNOWN_TOPIC_OR_PARTITION, f"The topic '{name}' does not exist.")
        if self._context.is_moving(name):
            why = f"A partition reassignment is in progress for the topic '{name}'."
            raise KafkaError(ErrorCode.REASSIGNMENT_IN_PROGRESS, why)
        planned = self._plan_partitions(topic, count, assignments)
        if validate_only:
            return
        if charge is not None:
            charge(len(planned))
        new = self._new_partitions(planned)
        grown = dataclasses.replace(topic, partitions={**topic.partitions, **new}, version=topic.version + 1)
        try:
            await fenced_multi(
                self._store,
                self._context,
                [
                    Set(znodes.topic_path(name), znodes.encode_topic(grown.assignment()), topic.version),
                    *create_partition_operations(name, new),
                ],
            )
        except (BadVersionError, ConnectionLossError):  # another writer was faster, or the answer was lost
            self._context.topics.pop(name)
            self._context.topics |= await load_topics(self._store, [name])
            stored = self._context.topics.get(name)
            # Where the new partitions are there, the write was carried out and only its result was lost.
            if stored is None or not _has(stored, new):
                return await self.add_partitions(name, count, assignments, validate_only=validate_only)
            grown = stored
        self._context.topics[name] = grown
        logger.info("Topic %s has %s now", name, _partitions(grown))
        self._announce([TopicPartition(name, number) for number in new])

    def _plan_partitions(
        self, topic: TopicState, count: int, assignments: Sequence[Sequence[int]] | None
    ) -> Mapping[int, Sequence[int]]:
        have = len(topic.partitions)
        if count == have:
            raise KafkaError(ErrorCode.INVALID_PARTITIONS, f"Topic already has {have} partition(s).")
        if count < have:
            raise KafkaError(
                ErrorCode.INVALID_PARTITIONS,
                f"The topic {topic.name} currently has {have} partition(s); {count} would not be an increase.",
            )
        more = count - have
        check_room(more, MAX_PARTITIONS_PER_REQUEST)
        racks = self._context.racks()
        if assignments is None:
            first_leader = topic.partitions[0].assignment.replicas[0]
            start = next((i for i, broker in enumerate(sorted(racks)) if broker >= first_leader), 0)
            return assign_replicas(
                racks, more, topic.replication_factor, self._randomness, start_index=start, first_partition=have
            )
        if len(assignments) != more:
            raise KafkaError(
                ErrorCode.INVALID_REPLICA_ASSIGNMENT,
                f"Attempted to add {more} additional partition(s), but only {len(assignments)} assignment(s) were specified.",
            )
        planned = dict(enumerate(assignments, have))
        check_assignment(planned, racks, have)
        if len(assignments[0]) != topic.replication_factor:
            raise KafkaError(
                ErrorCode.INVALID_REPLICA_ASSIGNMENT,
                f"The topic has {topic.replication_factor} replica(s) per partition, the assignment {len(assignments[0])}.",
            )
        return planned

    def _keys(self, names: Iterable[str]) -> list[TopicPartition]:
        topics = self._context.topics
        return [TopicPartition(name, number) for name in names if name in topics for number in topics[name].partitions]

    def _announce(self, keys: Sequence[TopicPartition]) -> None:
        lead = leader_and_isr_requests(self._context, keys, is_new=True)
        self._senders.send(lead, update_metadata_requests(self._context, keys), {})


def _has(topic: TopicState, partitions: Mapping[int, PartitionState]) -> bool:
    return all(
        number in topic.partitions and topic.partitions[number].assignment == partition.assignment
        for number, partition in partitions.items()
    )


async def create_topic_operations(
    store: ClusterStore, name: str, topic: TopicAssignment, overrides: Mapping[str, str]
) -> list[Operation]:
    """What makes the nodes that every new topic has. An earlier topic of that name may have left its configs behind."""
    path, config = znodes.topic_config_path(name), znodes.encode_config(overrides)
    has_config = await store.exists(path) is not None
    return [
        Set(path, config) if has_config else Create(path, config),
        Create(znodes.topic_path(name), znodes.encode_topic(topic)),
    ]


def check_room(partition_count: int, room: int) -> None:
    """Raises KafkaError POLICY_VIOLATION when one request makes too many partitions."""
    if partition_count > room:
        raise KafkaError(
            ErrorCode.POLICY_VIOLATION,
            f"Excessively large number of partitions per request: more than {MAX_PARTITIONS_PER_REQUEST}.",
        )


def _partitions(topic: TopicState) -> str:
    return counted(len(topic.partitions), "partition")


def _with_settings(overrides: Mapping[str, str]) -> str:
    return "".join(f", {name}={value}" for name, value in sorted(overrides.items()))
