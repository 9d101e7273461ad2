"""Automatic creation of topics directly in ZooKeeper, which any broker may do for its clients.

Only its nodes are written, the topic's and that of its configs. The controller watches the folder of topics, gives the
partitions their leaders and tells every broker (Kafka: AutoTopicCreationManager ``createTopicsInZk``, AdminZkClient).
"""

from __future__ import annotations

import logging
import random
from collections.abc import Iterable, Mapping

from ...base.config import Config
from ...base.errors import ErrorCode, KafkaError
from ...log.settings import LogSettings
from ...metadata.rules.assignment import assign_replicas
from ...metadata.rules.topic_names import check_collision, check_name
from ...metadata.types import ReplicaAssignment, TopicAssignment
from ..configs.topic_configs import check_overrides
from ..new_topics import Charge, NewTopic
from ..random_uuids import random_uuid
from ..settings import ControllerSettings
from .active.topics import MAX_PARTITIONS_PER_REQUEST, check_room, create_topic_operations
from .nodes import znodes
from .state.loading import is_stored, load_brokers
from .state.partition_states import refusal
from .store.cluster_store import ClusterStore, ConnectionLossError, NodeExistsError, StoreError

logger = logging.getLogger(__name__)


class TopicWriter:
    """Makes topics of which the number of partitions and replicas is given, or the broker's default."""

    def __init__(self, store: ClusterStore, config: Config, randomness: random.Random) -> None:
        self._store = store
        self._config = config
        self._randomness = randomness

    async def create(self, topics: Iterable[NewTopic], charge: Charge | None = None) -> dict[str, KafkaError | None]:
        """The outcome by name; one topic's failure does not touch the others. Raises KafkaError when the store is gone.

        ``charge`` is asked for each that can be made.
        """
        outcomes: dict[str, KafkaError | None] = {}
        try:
            racks = {i: broker.registration.rack for i, broker in (await load_brokers(self._store)).items()}
            existing = await self._store.children(znodes.TOPICS)
            for new in topics:
                outcomes[new.name] = await self._create(new, existing, racks, charge)
                existing.append(new.name)
        except StoreError as error:
            raise refusal(error) from error
        return outcomes

    async def _create(
        self, new: NewTopic, existing: Iterable[str], racks: Mapping[int, str | None], charge: Charge | None
    ) -> KafkaError | None:
        assert new.assignment is None, "clients that name a topic say nothing of its replicas"
        count, factor = new.numbers(self._config.settings(ControllerSettings))
        try:
            check_name(new.name)
            if new.name in existing:
                raise _exists(new.name)
            check_collision(new.name, existing)
            check_room(count, MAX_PARTITIONS_PER_REQUEST)
            assignment = assign_replicas(racks, count, factor, self._randomness)
            overrides = check_overrides(self._config.settings(LogSettings), new.configs)
            if charge is not None:
                charge(count)
            await self._write(new.name, assignment, overrides)
        except KafkaError as error:
            return error
        return None

    async def _write(self, name: str, assignment: Mapping[int, Iterable[int]], overrides: Mapping[str, str]) -> None:
        """Raises KafkaError TOPIC_ALREADY_EXISTS when another broker was faster."""
        partitions = {number: ReplicaAssignment(tuple(replicas)) for number, replicas in assignment.items()}
        topic = TopicAssignment(random_uuid(self._randomness), partitions)
        is_made: bool | None = None
        while is_made is None:
            operations = await create_topic_operations(self._store, name, topic, overrides)
            try:
                await self._store.multi(operations)
                is_made = True
            except NodeExistsError:
                is_made = False
            except ConnectionLossError:
                is_made = await is_stored(self._store, name, topic.topic_id)
        if not is_made:
            raise _exists(name)
        logger.info("Created topic %s in the store; the controller elects its leaders", name)


def _exists(name: str) -> KafkaError:
    return KafkaError(ErrorCode.TOPIC_ALREADY_EXISTS, f"Topic '{name}' already exists.")
