"""Topics created, enlarged or deleted in ZooKeeper by any broker, as the controller picks them up.

A topic's node names its replicas; the controller gives its partitions their first leaders (KafkaController
``processTopicChange``, ``processPartitionModifications``). The folder of all topics is watched, and each topic's node.
"""

from __future__ import annotations

import logging
import random
from collections.abc import Iterable

from ....base.partitions import TopicPartition
from ....wire.schema import ZERO_UUID
from ...random_uuids import random_uuid
from ..config_store import ConfigStore
from ..nodes import znodes
from ..state.context import ControllerContext, TopicState
from ..state.loading import load_assignments, load_states, load_topics
from ..state.partition_states import fenced_multi
from ..store.cluster_store import BadVersionError, ClusterStore, NoNodeError, Set, Stat, Watch
from .partition_state_machine import PartitionStateMachine

logger = logging.getLogger(__name__)


class TopicChanges:
    """For the controller's term; its methods are called one at a time. Async methods raise StoreError."""

    def __init__(
        self,
        store: ClusterStore,
        context: ControllerContext,
        configs: ConfigStore,
        leaders: PartitionStateMachine,
        on_topics: Watch,
        on_topic: Watch,
        randomness: random.Random,
    ) -> None:
        self._store = store
        self._context = context
        self._configs = configs
        self._leaders = leaders
        self._on_topics = on_topics
        self._on_topic = on_topic
        self._randomness = randomness
        self._watched: set[str] = set()
        self._changed: set[str] = set()

    async def load(self) -> None:
        """Every topic, into the context."""
        self._watched = set(await self._store.children(znodes.TOPICS, self._on_topics))
        topics = await load_topics(self._store, self._watched, self._on_topic)
        self._context.topics = topics
        await self._give_ids(topics.values())

    def note_changed(self, path: str) -> None:
        """The watch of a topic's node was called: ``follow_changed`` is to look at it."""
        self._changed.add(path.rpartition("/")[2])

    def forget_watches(self) -> None:
        """Watches are lost: ``follow`` is to look at every topic."""
        self._watched.clear()

    async def follow(self) -> None:
        """Note topics that came and went."""
        context = self._context
        names = set(await self._store.children(znodes.TOPICS, self._on_topics))
        for name in context.topics.keys() - names:
            logger.warning("Topic %s was removed from the store by another program", name)
            del context.topics[name]
        unseen = names - self._watched
        self._watched &= names
        await self._look_at(unseen)

    async def follow_changed(self) -> None:
        """Note the new partitions of the topics whose nodes have changed."""
        changed, self._changed = self._changed & self._watched, set()
        await self._look_at(changed)

    async def _look_at(self, names: Iterable[str]) -> None:
        """Put these topics into the context, with their new partitions; each is watched from now on."""
        asked = sorted(names)
        found = await load_assignments(self._store, asked, self._on_topic)
        self._watched.update(asked)
        made = [name for name, topic in found.items() if self._is_other(topic)]
        keys = [key for topic in found.values() for key in self._take_over(topic)]
        lost = await load_states(self._store, {key: self._context.partition(key) for key in keys})
        for name in {key.topic for key in lost}:
            del self._context.topics[name]
        await self._give_ids([topic for name, topic in found.items() if name in self._context.topics])
        await self._configs.load(made)
        new = [key for key in keys if key.topic in self._context.topics]
        if new:
            logger.info("New in the store: %s", ", ".join(map(str, new)))
            await self._leaders.elect_first(new)

    def _is_other(self, topic: TopicState) -> bool:
        """Whether this is not the topic that the context has under this name."""
        known = self._context.topics.get(topic.name)
        return known is None or topic.topic_id not in (known.topic_id, ZERO_UUID)

    def _take_over(self, topic: TopicState) -> list[TopicPartition]:
        """Bring the context's topic to what the store has; returns its new partitions, whose states are not read yet.

        Those without a state are new, too: they never had a leader.
        """
        topics = self._context.topics
        known = topics.get(topic.name)
        if known is None or self._is_other(topic):
            topics[topic.name] = topic
            return [TopicPartition(topic.name, number) for number in topic.partitions]
        added = {
            number: partition
            for number, partition in topic.partitions.items()
            if number not in known.partitions or known.partitions[number].state is None
        }
        if added and topic.name in self._context.deleting:
            logger.warning("Topic %s was enlarged in the store while it is being deleted", topic.name)
            return []
        known.version = topic.version
        known.partitions = dict(sorted({**known.partitions, **added}.items()))
        return [TopicPartition(topic.name, number) for number in added]

    async def _give_ids(self, topics: Iterable[TopicState]) -> None:
        """Topics made before Kafka 2.8 have none; the first controller that has ids gives them one (KIP-516)."""
        for topic in topics:
            if topic.topic_id == ZERO_UUID:
                topic.topic_id = random_uuid(self._randomness)
                operation = Set(znodes.topic_path(topic.name), znodes.encode_topic(topic.assignment()), topic.version)
                try:
                    (result,) = await fenced_multi(self._store, self._context, [operation])
                except (BadVersionError, NoNodeError):  # it has changed; its watch will tell
                    topic.topic_id = ZERO_UUID
                    continue
                assert isinstance(result, Stat)
                topic.version = result.version
