"""The controller: the one broker that decides about topics, replicas and leaders, and tells the others.

Every broker runs one. It tries to make the ephemeral node ``/controller``; the one that succeeds raises
``/controller_epoch``, loads the cluster into its context, sets the leaders right, and sends everything to every broker.
The others watch the node. Each write to the store checks the epoch, so a controller that was replaced can do no harm.

One lock puts changes in a row, as Kafka's single controller thread does; a change that has begun is finished even if its
caller is cancelled, because store, context and brokers have to stay together.

A broker that has lost a data folder leaves a node under ``/log_dir_event_notification``. The controller then asks it by
LeaderAndIsr for all its replicas, and those it answers KAFKA_STORAGE_ERROR for lead no longer (KIP-112).
"""

from __future__ import annotations

import logging
import random
from collections.abc import Iterable, Mapping, Sequence

import trio

from ..base.errors import ErrorCode, KafkaError
from ..base.seams import Clock
from ..base.wording import counted
from ..log.settings import LogSettings
from . import znodes
from .channels import BrokerChannel, Channels
from .config_store import ConfigStore
from .context import ControllerContext, LiveBroker, TopicPartition
from .leadership import next_state
from .loading import load_brokers, load_context
from .partition_states import fenced_multi, refusal, write_states
from .reassignment import check_reassignment, is_under_way
from .settings import ControllerSettings
from .state_messages import leader_and_isr_requests, update_metadata_requests
from .store import (
    BadVersionError,
    ClusterStore,
    Create,
    Delete,
    NodeExistsError,
    NoNodeError,
    Set,
    Stat,
    StoreError,
    StoreFailedError,
    WatchEvent,
    create,
)
from .topics import CreatedTopic, NewTopic, Topics
from .znodes import LeaderState, ReplicaAssignment

logger = logging.getLogger(__name__)


class Controller:
    """One broker's controller, active or waiting. ``start`` once, then ``run`` in a task of its own."""

    def __init__(
        self,
        broker_id: int,
        store: ClusterStore,
        configs: ConfigStore,
        channels: Mapping[int, BrokerChannel],
        settings: ControllerSettings,
        log_settings: LogSettings,
        clock: Clock,
        random: random.Random,
    ) -> None:
        self._store = store
        self._configs = configs
        self._channels = Channels(channels)
        self._log_settings = log_settings
        self._clock = clock
        self._context = ControllerContext(broker_id)
        self._topics = Topics(store, self._context, configs, self._channels, settings, log_settings, random)
        self._lock = trio.Lock()
        self._changed = trio.Event()
        self.is_active = False

    async def start(self) -> None:
        """Try to become the controller. Raises StoreError."""
        async with self._lock:
            await self._elect()

    async def run(self) -> None:
        """Follow what happens in the cluster: brokers that come and go, and the loss of the active controller.

        Ends when the store has failed; changes are refused then.
        """
        try:
            while True:
                await self._changed.wait()
                self._changed = trio.Event()
                async with self._lock:
                    await self._follow()
        except StoreFailedError as error:
            logger.error("The cluster is not followed any more: %s", error)

    async def create_topics(
        self, topics: Iterable[NewTopic], *, validate_only: bool = False
    ) -> dict[str, CreatedTopic | KafkaError]:
        """The outcome by topic name. Raises KafkaError when nothing can be done at all."""
        async with self._lock:
            self._check_active()
            with trio.CancelScope(shield=True):
                results = await self._topics.create(topics, validate_only=validate_only)
            return results

    async def create_partitions(
        self, topic: str, count: int, assignments: Sequence[Sequence[int]] | None = None, *, validate_only: bool = False
    ) -> None:
        """Enlarge a topic to ``count`` partitions. Raises KafkaError."""
        async with self._lock:
            self._check_active()
            with trio.CancelScope(shield=True):
                try:
                    await self._topics.add_partitions(topic, count, assignments, validate_only=validate_only)
                except StoreError as error:
                    raise refusal(error) from error

    async def delete_topics(self, names: Iterable[str]) -> dict[str, KafkaError | None]:
        """The outcome by name; a topic with a replica on a dead broker goes when that broker is back. Raises KafkaError."""
        async with self._lock:
            self._check_active()
            known = self._context.topics
            results: dict[str, KafkaError | None] = {}
            for name in names:
                unknown = KafkaError(ErrorCode.UNKNOWN_TOPIC_OR_PARTITION, f"The topic '{name}' does not exist.")
                results[name] = None if name in known else unknown
            with trio.CancelScope(shield=True):
                try:
                    await self._topics.delete([name for name, error in results.items() if error is None])
                except StoreError as error:
                    raise refusal(error) from error
            return results

    async def elect_again(self, key: TopicPartition) -> int:
        """Let a partition's leader go on as after an election that it won: the new leader epoch. Raises KafkaError."""
        async with self._lock:
            self._check_active()
            topic = self._context.topics.get(key.topic)
            if topic is None or key.partition not in topic.partitions:
                raise KafkaError(ErrorCode.UNKNOWN_TOPIC_OR_PARTITION, f"{key.topic}-{key.partition} does not exist")
            state = topic.partitions[key.partition].state
            if state is None or state.leader not in self._context.brokers:
                raise KafkaError(ErrorCode.LEADER_NOT_AVAILABLE, f"nobody leads {key.topic}-{key.partition}")
            elected = state._replace(leader_epoch=state.leader_epoch + 1, controller_epoch=self._context.epoch)
            with trio.CancelScope(shield=True):
                try:
                    await write_states(self._store, self._context, {key: elected})
                except StoreError as error:
                    raise refusal(error) from error
                changed = {key, *await self._lead([key])}
                await self._channels.update_metadata(update_metadata_requests(self._context, sorted(changed)))
            return elected.leader_epoch

    def reassign(self, key: TopicPartition, replicas: Sequence[int] | None) -> None:
        """Let a partition have these replicas; see ``reassignment``. Raises KafkaError."""
        self._check_active()
        topic = self._context.topics.get(key.topic)
        if topic is None or key.partition not in topic.partitions:
            raise KafkaError(
                ErrorCode.UNKNOWN_TOPIC_OR_PARTITION, "The partition does not exist, or its topic is being deleted."
            )
        check_reassignment(topic.partitions[key.partition], replicas, self._context.brokers)

    def reassignments(self) -> list[tuple[TopicPartition, ReplicaAssignment]]:
        """The partitions whose replicas are being moved. Raises KafkaError."""
        self._check_active()
        return [(key, found.assignment) for key, found in self._context.partitions() if is_under_way(found)]

    def _check_active(self) -> None:
        if not self.is_active:
            raise KafkaError(ErrorCode.NOT_CONTROLLER, "This is not the correct controller for this cluster.")

    def _on_change(self, event: WatchEvent) -> None:
        self._changed.set()

    async def _follow(self) -> None:
        if self.is_active and not await self._is_still_controller():
            logger.warning("Another broker became controller")
            self.is_active = False
        if self.is_active:
            await self._follow_brokers()
            await self._follow_folders()
        else:
            await self._elect()

    async def _elect(self) -> None:
        """Become controller, or watch the one there is."""
        while await self._store.exists(znodes.CONTROLLER, self._on_change) is None:
            epoch_version = await self._win()
            if epoch_version is not None:
                self._context.epoch_version = epoch_version
                self.is_active = True
                await self._take_over()
                return

    async def _is_still_controller(self) -> bool:
        try:
            node = await self._store.get(znodes.CONTROLLER, self._on_change)
        except NoNodeError:
            return False
        return znodes.decode_controller(node.data) == self._context.controller_id

    async def _win(self) -> int | None:
        """Make ``/controller`` and raise the epoch; the epoch node's version, None when another broker was faster."""
        try:
            node = await self._store.get(znodes.CONTROLLER_EPOCH)
        except NoNodeError:
            try:
                await create(self._store, znodes.CONTROLLER_EPOCH, b"0")
            except NodeExistsError:
                pass
            return None
        epoch = int(node.data) + 1
        data = znodes.encode_controller(self._context.controller_id, self._clock.now_ms())
        try:
            _, stat = await self._store.multi(
                [
                    Create(znodes.CONTROLLER, data, ephemeral=True),
                    Set(znodes.CONTROLLER_EPOCH, str(epoch).encode(), node.stat.version),
                ]
            )
        except (NodeExistsError, BadVersionError):
            return None
        assert isinstance(stat, Stat)
        self._context.epoch = epoch
        return stat.version

    async def _take_over(self) -> None:
        """Load the cluster, set leaders right, and tell every broker everything."""
        context = self._context
        await self._store.exists(znodes.CONTROLLER, self._on_change)
        await load_context(self._store, context, self._on_change)
        await self._forget_events(await self._store.children(znodes.LOG_DIR_EVENTS, self._on_change))
        await write_states(self._store, context, self._decide())
        keys = [key for key, _ in context.partitions()]
        await self._lead(keys)
        await self._channels.update_metadata(update_metadata_requests(context, keys))
        await self._topics.resume_deletions()
        logger.info(
            "Controller with epoch %d: %s, %s, %s",
            context.epoch,
            counted(len(context.brokers), "broker"),
            counted(len(context.topics), "topic"),
            counted(len(keys), "partition"),
        )

    async def _follow_brokers(self) -> None:
        """Take over which brokers are alive, move leaders, and tell those that are new everything."""
        context = self._context
        before = context.brokers
        context.brokers = await load_brokers(self._store, self._on_change)
        if before == context.brokers:
            return
        with trio.CancelScope(shield=True):
            new = [broker_id for broker_id, broker in context.brokers.items() if _is_new(before, broker_id, broker)]
            for broker_id in {*new, *(before.keys() - context.brokers.keys())}:
                context.offline_replicas.pop(broker_id, None)
            decided = self._decide()
            await write_states(self._store, context, decided)
            changed = {*decided, *await self._lead(self._concerned(decided, new))}
            everything = [key for key, _ in context.partitions()]
            others = [broker_id for broker_id in context.brokers if broker_id not in new]
            await self._channels.update_metadata(update_metadata_requests(context, everything, new))
            await self._channels.update_metadata(update_metadata_requests(context, sorted(changed), others))
            await self._topics.resume_deletions()

    async def _follow_folders(self) -> None:
        """Find out which replicas were in data folders that have failed, and move leaders."""
        context = self._context
        names = await self._store.children(znodes.LOG_DIR_EVENTS, self._on_change)
        if not names:
            return
        nodes = await self._store.get_many([f"{znodes.LOG_DIR_EVENTS}/{name}" for name in names])
        brokers = {znodes.decode_log_dir_event(node.data) for node in nodes if node is not None}
        with trio.CancelScope(shield=True):
            changed = await self._lead(self._concerned({}, list(brokers)))
            await self._channels.update_metadata(update_metadata_requests(context, sorted(changed)))
            await self._forget_events(names)

    async def _forget_events(self, names: Sequence[str]) -> None:
        operations = [Delete(f"{znodes.LOG_DIR_EVENTS}/{name}") for name in names]
        await fenced_multi(self._store, self._context, operations)

    async def _lead(self, keys: Iterable[TopicPartition]) -> set[TopicPartition]:
        """Tell the replicas who leads. Those that turn out to be in failed folders cannot; the partitions of these."""
        context = self._context
        changed: set[TopicPartition] = set()
        while requests := leader_and_isr_requests(context, keys):
            lost = context.note_answers(await self._channels.leader_and_isr(requests))
            if not lost:
                break
            decided = self._decide()
            await write_states(self._store, context, decided)
            keys = list(decided)
            changed.update(lost, keys)
        return changed

    def update_log_settings(self, settings: LogSettings) -> None:
        """The defaults of topics changed; among them whether a replica that is not in sync may lead."""
        self._log_settings = self._topics.log_settings = settings

    def _decide(self) -> dict[TopicPartition, LeaderState]:
        """The partitions whose state is not right for the brokers there are, with their new state."""
        context = self._context
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

    def _concerned(self, decided: Mapping[TopicPartition, LeaderState], new: Sequence[int]) -> list[TopicPartition]:
        """The partitions that changed, and those with a replica on a broker of ``new``."""
        return [
            key
            for key, partition in self._context.partitions()
            if key in decided or any(broker_id in new for broker_id in partition.assignment.replicas)
        ]


def _is_new(before: Mapping[int, LiveBroker], broker_id: int, broker: LiveBroker) -> bool:
    return broker_id not in before or before[broker_id].epoch != broker.epoch
