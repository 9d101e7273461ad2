"""Leader changes by the controller: decided by pure rules, written to ZooKeeper, and sent to the brokers.

Each partition is decided by itself; if another writer was faster, it is decided again, by what that one wrote.
Brokers are told once a whole set of decisions was written: replicas by LeaderAndIsr, then every broker by UpdateMetadata.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence

from ....base.partitions import NO_LEADER, TopicPartition
from ....base.settings import SettingError
from ....log.settings import LogSettings
from ....metadata.types import LeaderState
from ....wire.messages.stop_replica import StopReplicaRequest
from ..config_store import ConfigStore
from ..state.context import ControllerContext, PartitionState
from ..state.partition_states import write_states
from ..store.cluster_store import ClusterStore
from .controller_channel_manager import ControllerChannelManager
from .figures import ElectionFigures
from .leadership import elected_state, failed_over_state, shut_down_state, state_without
from .state_messages import leader_and_isr_requests, stop_replica_requests, update_metadata_requests

logger = logging.getLogger(__name__)

Decision = Callable[[TopicPartition, PartitionState], LeaderState | None]
"""The state that a partition should change to, None when it is right as it is."""


class PartitionStateMachine:
    """Changes partition states for the controller; its methods are called one at a time. Those that write raise StoreError."""

    def __init__(
        self,
        store: ClusterStore,
        context: ControllerContext,
        configs: ConfigStore,
        senders: ControllerChannelManager,
        log_settings: LogSettings,
        figures: ElectionFigures,
    ) -> None:
        self._store = store
        self._context = context
        self._configs = configs
        self._senders = senders
        self.log_settings = log_settings
        self._figures = figures

    # --- brokers that come and go -------------------------------------------------------------------------------------

    async def fail_over(self, stayed: Callable[[PartitionState], Collection[int]]) -> None:
        """Apply what happened while there was no controller; as in Kafka first which replicas are gone, and then who leads.

        ``stayed`` are the brokers that are alive and have not been away, as far as a partition is concerned.
        """
        context = self._context

        def decide(key: TopicPartition, partition: PartitionState) -> LeaderState | None:
            state = partition.state
            return state and failed_over_state(state, context.brokers, stayed(partition), context.epoch)

        await self._change(context.undeleted_partitions(), decide)
        await self._elect_in(context.undeleted_partitions())

    async def elect(self) -> set[TopicPartition]:
        """Elect a leader for every partition that has none and can have one; returns those that changed."""
        return await self._elect_in(self._context.undeleted_partitions())

    async def elect_first(self, keys: Iterable[TopicPartition]) -> None:
        """New partitions get their first leader, and all brokers hear of them."""
        keys = list(keys)
        await self._change([(key, self._context.partition(key)) for key in keys], self._elected)
        self.tell(keys, is_new=True)

    async def replicas_lost(self) -> set[TopicPartition]:
        """Replicas went offline: elect other leaders, and drop them from the in-sync replicas; returns those that changed."""
        context = self._context

        def decide(key: TopicPartition, partition: PartitionState) -> LeaderState | None:
            elected = self._elected(key, partition)
            if elected is not None or partition.state is None:
                return elected
            gone = set(partition.assignment.replicas).difference(context.online(key))
            return state_without(partition.state, gone, context.epoch)

        await self._read_unclean(context.undeleted_partitions())
        return await self._change(context.undeleted_partitions(), decide)

    async def _elect_in(self, partitions: Iterable[tuple[TopicPartition, PartitionState]]) -> set[TopicPartition]:
        found = list(partitions)
        await self._read_unclean(found)
        return await self._change(found, self._elected)

    async def _read_unclean(self, partitions: Iterable[tuple[TopicPartition, PartitionState]]) -> None:
        """Read the stored configs of topics where only a replica that is not in sync could lead.

        This broker may not know them: it is told of a new topic's configs only if it has a replica of it, and of changes a
        moment late. Kafka reads them at this point, too (PartitionStateMachine.collectUncleanLeaderElectionState).
        """
        stranded = {
            key.topic: None
            for key, partition in partitions
            if partition.state is not None and not set(self._context.eligible(key)).intersection(partition.state.isr)
        }
        if stranded:
            await self._configs.load(stranded)

    def _elected(self, key: TopicPartition, partition: PartitionState) -> LeaderState | None:
        state, context = partition.state, self._context
        online = context.online(key)
        if state is not None and state.leader in online:
            return None
        return elected_state(
            partition, online, context.eligible(key), context.epoch, unclean_allowed=self._unclean_allowed(key.topic)
        )

    def _unclean_allowed(self, topic: str) -> bool:
        overrides = self._configs.metadata.image.topic_config(topic)
        try:
            settings = self.log_settings.with_topic_overrides(overrides) if overrides else self.log_settings
        except SettingError as error:
            logger.error(
                "Topic %s uses the defaults of all settings, because one of its settings is not understood: %s",
                topic,
                error,
            )
            settings = self.log_settings
        return settings.unclean_leader_election_enable

    # --- a broker that is about to stop -------------------------------------------------------------------------------

    async def move_leaders_off(self, broker_id: int) -> None:
        """Let other in-sync replicas lead what a broker leads, and take it out of the in-sync replicas where there are others.

        Partitions with one replica stay as they are. The broker stops following before it leaves the in-sync replicas, or
        its fetches would bring it back (KafkaController.doControlledShutdown).
        """
        context = self._context
        held = [
            (key, partition)
            for key, partition in context.undeleted_partitions()
            if broker_id in partition.assignment.replicas and partition.state is not None
        ]
        led = [(key, p) for key, p in held if p.state is not None and p.state.leader == broker_id]
        followed = [(key, p) for key, p in held if p.state is not None and p.state.leader != broker_id]

        def decide(key: TopicPartition, partition: PartitionState) -> LeaderState | None:
            if partition.state is None or partition.state.leader != broker_id:
                return partition.state and state_without(partition.state, (broker_id,), context.epoch)
            return shut_down_state(partition, context.eligible(key), context.shutting_down, context.epoch)

        self.tell(await self._change(led, decide))
        self._senders.send({}, {}, self._stop(followed, broker_id))
        self.tell(await self._change(followed, decide), but=broker_id)
        # Another broker that stops must not wait for this one to take over its leadership.
        self.send_update_metadata([key for key, partition in held if partition.state is not None])

    def _stop(
        self, partitions: Iterable[tuple[TopicPartition, PartitionState]], broker_id: int
    ) -> Mapping[int, StopReplicaRequest]:
        requests = stop_replica_requests(self._context, [key for key, _ in partitions], delete=False)
        return {broker_id: requests[broker_id]} if broker_id in requests else {}

    # --- one by one ---------------------------------------------------------------------------------------------------

    async def change(self, keys: Iterable[TopicPartition], decide: Decision) -> set[TopicPartition]:
        """Write what ``decide`` says of some partitions; returns those that changed, by this or another writer."""
        return await self._change([(key, self._context.partition(key)) for key in keys], decide)

    async def _change(
        self, partitions: Iterable[tuple[TopicPartition, PartitionState]], decide: Decision
    ) -> set[TopicPartition]:
        """Write what ``decide`` says; returns the partitions that changed, by this or another writer."""
        changed: set[TopicPartition] = set()
        while True:
            decided = {key: state for key, partition in partitions if (state := decide(key, partition)) is not None}
            changed.update(decided)
            unclean = {key for key, state in decided.items() if self._is_unclean(key, state)}
            conflicts = await write_states(self._store, self._context, decided)
            self._figures.unclean += len(unclean - conflicts)
            if not conflicts:
                return changed
            logger.info("Decided again, because another writer was faster: %s", ", ".join(map(str, conflicts)))
            partitions = [(key, self._context.partition(key)) for key in sorted(conflicts)]

    def _is_unclean(self, key: TopicPartition, state: LeaderState) -> bool:
        """Whether the state has a leader who was not in sync in the one before it."""
        before = self._context.partition(key).state
        return before is not None and state.leader != NO_LEADER and state.leader not in before.isr

    def tell(self, keys: Collection[TopicPartition], *, is_new: bool = False, but: int | None = None) -> None:
        """Tell the replicas who leads, except for those on broker ``but``, and then every broker."""
        if keys:
            told = sorted(keys)
            lead = leader_and_isr_requests(self._context, told, is_new=is_new)
            if but is not None:
                lead.pop(but, None)
            self._senders.send(lead, update_metadata_requests(self._context, told), {})

    def send_reassignment(
        self, keys: Iterable[TopicPartition], removed: Mapping[TopicPartition, Sequence[int]]
    ) -> None:
        """Tell the replicas of the new assignment, then every broker; those that were ``removed`` are to delete their logs."""
        told = sorted(keys)
        lead = leader_and_isr_requests(self._context, told, adding_are_new=True)
        stop = stop_replica_requests(self._context, sorted(removed), delete=True, removed=removed)
        self._senders.send(lead, update_metadata_requests(self._context, told), stop)

    def send_update_metadata(self, keys: Iterable[TopicPartition], brokers: Collection[int] | None = None) -> None:
        """Tell brokers (those of ``brokers``, else all) which are alive, and the state of some partitions."""
        self._senders.send({}, update_metadata_requests(self._context, sorted(keys), brokers), {})
