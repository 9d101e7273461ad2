"""One term of a controller: from the election it won to the next one. What it knows and decides goes with it.

At its begin it loads the cluster into its context, sets the leaders right, and sends everything to every broker. Then it
follows what happens: brokers that come and go, and data folders that fail.

A broker that has lost a data folder leaves a node under ``/log_dir_event_notification``. The controller then asks it by
LeaderAndIsr for all its replicas, and those it answers KAFKA_STORAGE_ERROR for lead no longer (KIP-112).
"""

from __future__ import annotations

import logging
import random
from collections.abc import Collection, Iterable, Mapping, Sequence

from ..base.errors import ErrorCode, KafkaError
from ..base.partitions import TopicPartition
from ..base.wording import counted
from ..log.settings import LogSettings
from . import znodes
from .config_store import ConfigStore
from .context import ControllerContext, LiveBroker
from .deletion import Deletions
from .leadership import next_state
from .loading import load_brokers, load_context
from .partition_states import fenced_multi, write_states
from .sender import Answer, Senders
from .settings import ControllerSettings
from .state_messages import leader_and_isr_requests, update_metadata_requests
from .store import ClusterStore, Delete, Watch
from .topics import Topics
from .znodes import LeaderState

logger = logging.getLogger(__name__)


class Term:
    """``take_over`` once; then the rest, one at a time. Every method raises StoreError."""

    def __init__(
        self,
        store: ClusterStore,
        context: ControllerContext,
        configs: ConfigStore,
        senders: Senders,
        settings: ControllerSettings,
        log_settings: LogSettings,
        randomness: random.Random,
    ) -> None:
        self._store = store
        self.context = context
        self._configs = configs
        self._senders = senders
        self._log_settings = log_settings
        self.topics = Topics(store, context, configs, senders, settings, log_settings, randomness)
        self.deletions = Deletions(store, context, configs, senders)

    def update_log_settings(self, settings: LogSettings) -> None:
        """The defaults of topics changed; among them whether a replica that is not in sync may lead."""
        self._log_settings = self.topics.log_settings = settings

    async def take_over(self, on_brokers: Watch, on_folders: Watch) -> None:
        """Load the cluster, set leaders right, and tell every broker everything.

        The watches hear of the next broker that comes or goes, and of the next folder that fails.
        """
        context = self.context
        await load_context(self._store, context, on_brokers)
        await self._forget_events(await self._store.children(znodes.LOG_DIR_EVENTS, on_folders))
        self._senders.follow(context.brokers)
        await self._set_leaders()
        keys = [key for key, _ in context.partitions()]
        self._tell(keys)
        await self.deletions.resume()
        logger.info(
            "Controller with epoch %d: %s, %s, %s",
            context.epoch,
            counted(len(context.brokers), "broker"),
            counted(len(context.topics), "topic"),
            counted(len(keys), "partition"),
        )

    async def follow_brokers(self, watch: Watch) -> None:
        """Take over which brokers are alive, move leaders, and tell those that are new everything."""
        context = self.context
        before = context.brokers
        context.brokers = await load_brokers(self._store, watch)
        if before == context.brokers:
            return
        new = [broker_id for broker_id, broker in context.brokers.items() if _is_new(before, broker_id, broker)]
        away = {*new, *(before.keys() - context.brokers.keys())}
        for broker_id in away:
            context.offline_replicas.pop(broker_id, None)
        self._senders.follow(context.brokers)
        self.deletions.forget_answers(away)
        changed = await self._set_leaders()
        everything = [key for key, _ in context.partitions()]
        others = [broker_id for broker_id in context.brokers if broker_id not in new]
        to_new = update_metadata_requests(context, everything, new)
        to_others = update_metadata_requests(context, sorted(changed), others)
        lead = leader_and_isr_requests(context, self._concerned(changed, new))
        self._senders.send(lead, {**to_new, **to_others}, {})
        await self.deletions.resume()

    async def follow_folders(self, watch: Watch) -> None:
        """Ask which replicas were in data folders that have failed."""
        context = self.context
        names = await self._store.children(znodes.LOG_DIR_EVENTS, watch)
        if not names:
            return
        nodes = await self._store.get_many([f"{znodes.LOG_DIR_EVENTS}/{name}" for name in names])
        brokers = {znodes.decode_log_dir_event(node.data) for node in nodes if node is not None}
        self._senders.send(leader_and_isr_requests(context, self._concerned((), list(brokers))), {}, {})
        await self._forget_events(names)

    async def elect_again(self, key: TopicPartition) -> int:
        """Let a partition's leader go on as after an election that it won: the new leader epoch. Raises KafkaError, too."""
        context = self.context
        topic = context.topics.get(key.topic)
        if topic is None or key.partition not in topic.partitions:
            raise KafkaError(ErrorCode.UNKNOWN_TOPIC_OR_PARTITION, f"{key.topic}-{key.partition} does not exist")
        while True:
            state = context.partition(key).state
            if state is None or state.leader not in context.brokers:
                raise KafkaError(ErrorCode.LEADER_NOT_AVAILABLE, f"nobody leads {key.topic}-{key.partition}")
            elected = state._replace(leader_epoch=state.leader_epoch + 1, controller_epoch=context.epoch)
            if await write_states(self._store, context, {key: elected}):
                break
        self._tell([key])
        return elected.leader_epoch

    async def take_answer(self, answer: Answer) -> None:
        """A broker has answered: replicas in failed folders do not lead any more, deletions go on."""
        broker = self.context.brokers.get(answer.broker_id)
        if broker is None or broker.epoch != answer.broker_epoch:
            return
        if answer.is_stop_replica:
            await self.deletions.take_answer(answer.broker_id, answer.codes)
        elif lost := self.context.note_answers({answer.broker_id: answer.codes}):
            self._tell({*lost, *await self._set_leaders()})

    async def _forget_events(self, names: Sequence[str]) -> None:
        operations = [Delete(f"{znodes.LOG_DIR_EVENTS}/{name}") for name in names]
        await fenced_multi(self._store, self.context, operations)

    def _tell(self, keys: Iterable[TopicPartition]) -> None:
        """Have the replicas told who leads, and then every broker."""
        told = sorted(keys)
        lead = leader_and_isr_requests(self.context, told)
        self._senders.send(lead, update_metadata_requests(self.context, told), {})

    async def _set_leaders(self) -> set[TopicPartition]:
        """Write the states that are not right for the brokers there are; those that changed, by this or another writer."""
        changed: set[TopicPartition] = set()
        while True:
            decided = self._decide()
            changed.update(decided)
            if await write_states(self._store, self.context, decided):
                return changed

    def _decide(self) -> dict[TopicPartition, LeaderState]:
        """The partitions whose state is not right for the brokers there are, with their new state."""
        context = self.context
        unclean: dict[str, bool] = {}
        decided = {}
        for key, partition in context.partitions():
            topic = key.topic
            if topic in context.deleting:
                continue
            if topic not in unclean:
                overrides = self._configs.topic_overrides(topic)
                settings = self._log_settings.with_topic_overrides(overrides) if overrides else self._log_settings
                unclean[topic] = settings.unclean_leader_election_enable
            state = next_state(partition, context.brokers_for(key), context.epoch, unclean_allowed=unclean[topic])
            if state is not None:
                decided[key] = state
        return decided

    def _concerned(self, decided: Collection[TopicPartition], new: Sequence[int]) -> list[TopicPartition]:
        """The partitions that changed, and those with a replica on a broker of ``new``."""
        return [
            key
            for key, partition in self.context.partitions()
            if key in decided or any(broker_id in new for broker_id in partition.assignment.replicas)
        ]


def _is_new(before: Mapping[int, LiveBroker], broker_id: int, broker: LiveBroker) -> bool:
    return broker_id not in before or before[broker_id].epoch != broker.epoch
