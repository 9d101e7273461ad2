"""One term of a controller: its state from a won election until the next one.

At its beginning it loads the cluster into its context, elects leaders where they are missing, and sends everything to every
broker. Then it follows what happens in the store: brokers that come and go, topics that others make or want deleted
(``topic_changes``), log directories that fail. Each method reads all that its watch is for and applies what is different, so a
call too many does no harm; the watch is set by the same read.

A broker that has lost a log directory leaves a node under ``/log_dir_event_notification``. The controller then asks it by
LeaderAndIsr for all its replicas, and those that it answers with KAFKA_STORAGE_ERROR stop leading (KIP-112). A leader of an
older Kafka, which writes states itself, tells of it under ``/isr_change_notification``.
"""

from __future__ import annotations

import logging
import random
from collections.abc import Collection, Iterable, Mapping, Sequence
from typing import NamedTuple

import trio

from ....base.errors import ErrorCode, KafkaError
from ....base.partitions import NO_LEADER, TopicPartition
from ....base.wording import counted, plural
from ....log.settings import LogSettings
from ....metadata.types import REGISTRATION_VERSION, LeaderState
from ....wire.messages.allocate_producer_ids import AllocateProducerIdsRequest, AllocateProducerIdsResponse
from ....wire.messages.controlled_shutdown import ControlledShutdownRequest, ControlledShutdownResponse
from ...settings import ControllerSettings
from ..config_store import ConfigStore
from ..features import set_up_features
from ..nodes import znodes
from ..nodes.notifications import notifications, read_notifications
from ..producer_ids import BLOCK_SIZE, take_block
from ..state.context import ControllerContext, LiveBroker, PartitionState
from ..state.loading import load_brokers, load_states
from ..state.partition_states import fenced_multi
from ..store.cluster_store import ClusterStore, Delete, OlderBrokerError, Watch
from .admin_nodes import AdminNodes
from .alter_partition import AlterPartitions
from .controlled_shutdown import shut_down
from .controller_channel_manager import Answer, ControllerChannelManager
from .figures import ElectionFigures
from .known_brokers import KnownBrokers
from .partition_state_machine import PartitionStateMachine
from .reassignment import Reassignments
from .replica_elections import ReplicaElections
from .state_messages import leader_and_isr_requests, update_metadata_requests
from .topic_changes import TopicChanges
from .topic_deletions import TopicDeletionManager
from .topics import Topics

logger = logging.getLogger(__name__)


class Watches(NamedTuple):
    """What the store calls when something has changed that the term has read; it is to read that again in its next turn."""

    brokers: Watch
    topics: Watch
    """For the names of all topics."""
    topic: Watch
    """For the node of one topic."""
    deletions: Watch
    log_dir_events: Watch
    isr_changes: Watch
    reassignments: Watch
    elections: Watch


class ControllerTerm:
    """``take_over`` once; then the rest, one at a time. Every method raises StoreError."""

    def __init__(
        self,
        store: ClusterStore,
        context: ControllerContext,
        configs: ConfigStore,
        senders: ControllerChannelManager,
        settings: ControllerSettings,
        log_settings: LogSettings,
        randomness: random.Random,
        watches: Watches,
        figures: ElectionFigures,
    ) -> None:
        self._store = store
        self.context = context
        self._senders = senders
        self._settings = settings
        self._watches = watches
        self._figures = figures
        self._leaders = PartitionStateMachine(store, context, configs, senders, log_settings, figures)
        self.topics = Topics(store, context, configs, senders, settings, log_settings, randomness)
        self.deletions = TopicDeletionManager(store, context, configs, senders)
        self._topic_changes = TopicChanges(
            store, context, configs, self._leaders, watches.topics, watches.topic, randomness
        )
        self.reassignments = Reassignments(store, context, self._leaders)
        self.alter_partitions = AlterPartitions(context, self._leaders, self.reassignments.note_in_sync)
        self.elections = ReplicaElections(context, self._leaders)
        self._admin_nodes = AdminNodes(
            store, context, self.reassignments, self.elections, watches.reassignments, watches.elections
        )
        self._known_brokers = KnownBrokers(store, context)

    def update_log_settings(self, settings: LogSettings) -> None:
        """The defaults of topics have changed, perhaps whether a replica that is not in sync may lead."""
        self._leaders.log_settings = self.topics.log_settings = settings

    async def take_over(self) -> None:
        """Load the cluster, elect leaders, and tell every broker everything, in the order of Kafka's failover."""
        context = self.context
        await set_up_features(self._store, context)
        context.brokers = await self._load_brokers()
        # Before the states: what these tell is in the states that are read below. What comes after this read calls the watch.
        await self._remove(await notifications(self._store, znodes.LOG_DIR_EVENTS, self._watches.log_dir_events))
        await self._remove(await notifications(self._store, znodes.ISR_CHANGES, self._watches.isr_changes))
        await self._topic_changes.load()
        marked = await self._store.children(znodes.DELETE_TOPICS, self._watches.deletions)
        await self.deletions.load(marked, is_allowed=self._settings.delete_topic_enable)
        self._senders.follow(context.brokers)
        self._leaders.send_update_metadata(())  # they have to know each other before they replicate
        await self._known_brokers.load()
        # Before the first state is written: from then on states do not tell any more which brokers were away.
        await self._known_brokers.begin()
        await self._leaders.fail_over(self._known_brokers.stayed)
        keys = [key for key, _ in context.undeleted_partitions()]
        self._leaders.tell(keys)
        # Not before: a controller that dies halfway leaves it to the next one to fail over from these registrations.
        await self._known_brokers.save()
        await self.reassignments.resume()
        await self.follow_reassignment_node()
        # After the moves, whose ends let the deletion of their topics begin.
        await self.deletions.resume()
        await self.follow_election_node()
        logger.info(
            "Controller with epoch %d: %s, %s, %s",
            context.epoch,
            counted(len(context.brokers), "broker"),
            counted(len(context.topics), "topic"),
            counted(len(keys), "partition"),
        )

    # --- brokers ------------------------------------------------------------------------------------------------------

    async def _load_brokers(self) -> dict[int, LiveBroker]:
        """Raises OlderBrokerError, too: a broker of Kafka before 2.7 does not understand the requests of this controller."""
        brokers = await load_brokers(self._store, self._watches.brokers)
        for broker_id, broker in brokers.items():
            version = broker.registration.version
            if version < REGISTRATION_VERSION:
                why = (
                    f"a broker of Kafka before 2.7 is registered (version {version}), whose controller Ottla cannot be"
                )
                raise OlderBrokerError(znodes.broker_path(broker_id), why)
        return brokers

    async def follow_brokers(self) -> None:
        """Note which brokers are alive. One that was restarted between two looks counts as failed, and then as started."""
        began = trio.current_time()
        await self._take_over_brokers()
        self._figures.times.note((trio.current_time() - began) * 1000)

    async def _take_over_brokers(self) -> None:
        context = self.context
        found = await self._load_brokers()
        known = context.brokers
        dead = known.keys() - found.keys()
        bounced = {b for b in known.keys() & found.keys() if found[b].epoch != known[b].epoch}
        changed = {b for b in known.keys() & found.keys() if b not in bounced and found[b] != known[b]}
        # In Kafka's order: new brokers come before those that are gone, and so can lead what these have led.
        if changed:
            context.brokers = {**known, **{broker_id: found[broker_id] for broker_id in changed}}
            self._leaders.send_update_metadata(())
        await self._brokers_started({b: broker for b, broker in found.items() if b not in known})
        await self._brokers_failed(bounced)
        await self._brokers_started({b: found[b] for b in bounced})
        await self._brokers_failed(dead)
        await self._known_brokers.save()

    async def _brokers_failed(self, gone: Collection[int]) -> None:
        if not gone:
            return
        context = self.context
        announced = context.shutting_down.intersection(gone)
        self._take_brokers({b: broker for b, broker in context.brokers.items() if b not in gone}, gone)
        changed = await self._leaders.replicas_lost()
        self._log_lost_brokers(gone, announced, changed)
        if changed:
            self._leaders.tell(changed)
        else:
            self._leaders.send_update_metadata(())

    def _log_lost_brokers(
        self, gone: Collection[int], announced: Collection[int], changed: Collection[TopicPartition]
    ) -> None:
        leaderless = sum(
            p.state is not None and p.state.leader == NO_LEADER for _, p in self.context.undeleted_partitions()
        )
        logger.log(
            logging.WARNING if leaderless or (changed and len(announced) < len(gone)) else logging.INFO,
            "%s gone: %s changed, %d without a leader",
            _names(gone),
            counted(len(changed), "partition"),
            leaderless,
        )

    async def _brokers_started(self, started: dict[int, LiveBroker]) -> None:
        """Tell the others of the new brokers, and the new ones everything; elect leaders where that is possible again."""
        if not started:
            return
        context = self.context
        existing = list(context.brokers)
        self._take_brokers(dict(sorted({**context.brokers, **started}.items())), started)
        self._leaders.send_update_metadata((), existing)
        self._leaders.send_update_metadata([key for key, _ in context.undeleted_partitions()], started)
        self._send_leader_and_isr(started)
        elected = await self._leaders.elect()
        self._leaders.tell(elected)
        logger.info(
            "%s in the cluster: %s led again",
            _names(started),
            counted(len(elected), "partition"),
        )
        await self.reassignments.resume(started)
        await self._admin_nodes.forget_reassignments()
        await self.deletions.resume(started)

    def _take_brokers(self, brokers: dict[int, LiveBroker], changed: Iterable[int]) -> None:
        context = self.context
        context.brokers = brokers
        for broker_id in changed:
            context.offline_replicas.pop(broker_id, None)
            context.shutting_down.discard(broker_id)
        self._senders.follow(brokers)

    def _send_leader_and_isr(self, brokers: Collection[int]) -> None:
        """Tell these brokers who leads the partitions of which they have replicas."""
        keys = [
            key
            for key, partition in self.context.undeleted_partitions()
            if any(broker_id in brokers for broker_id in partition.assignment.replicas)
        ]
        requests = leader_and_isr_requests(self.context, keys)
        lead = {broker_id: request for broker_id, request in requests.items() if broker_id in brokers}
        self._senders.send(lead, update_metadata_requests(self.context, keys) if keys else {}, {})

    async def process_response(self, answer: Answer) -> None:
        """A broker has responded: replicas in failed log directories do not lead any more, deletions go on."""
        broker = self.context.brokers.get(answer.broker_id)
        if broker is None or broker.epoch != answer.broker_epoch:
            return
        if answer.is_stop_replica:
            await self.deletions.process_response(answer.broker_id, answer.codes)
        elif lost := self.context.update_offline_replicas({answer.broker_id: answer.codes}):
            changed = await self._leaders.replicas_lost()
            self._leaders.tell({*changed, *(key for key in lost if self.context.find(key) is not None)})

    async def shut_down(self, request: ControlledShutdownRequest) -> ControlledShutdownResponse:
        return await shut_down(self.context, self._leaders, request)

    async def allocate_producer_ids(self, request: AllocateProducerIdsRequest) -> AllocateProducerIdsResponse:
        """A block for a broker that is registered under the epoch it names."""
        broker = self.context.brokers.get(request.broker_id)
        if broker is None:
            return AllocateProducerIdsResponse(error_code=ErrorCode.BROKER_ID_NOT_REGISTERED)
        if broker.epoch != request.broker_epoch:
            return AllocateProducerIdsResponse(error_code=ErrorCode.STALE_BROKER_EPOCH)
        first = await take_block(self._store, request.broker_id)
        return AllocateProducerIdsResponse(producer_id_start=first, producer_id_len=BLOCK_SIZE)

    # --- what others leave in the store -------------------------------------------------------------------------------

    async def follow_topics(self) -> None:
        """Note topics that others have made or removed."""
        await self._topic_changes.follow()

    def note_changed_topic(self, path: str) -> None:
        """A topic's node has changed: ``follow_changed_topics`` is to read it."""
        self._topic_changes.note_changed(path)

    async def follow_changed_topics(self) -> None:
        """Note the new partitions of topics that others have enlarged."""
        await self._topic_changes.follow_changed()

    def forget_topic_watches(self) -> None:
        """Watches are lost: ``follow_topics`` is to read every topic."""
        self._topic_changes.forget_watches()

    async def follow_deletions(self) -> None:
        """Begin with the deletions that another broker has marked."""
        names = await self._store.children(znodes.DELETE_TOPICS, self._watches.deletions)
        await self.deletions.follow(names, is_allowed=self._settings.delete_topic_enable)

    async def follow_log_dir_events(self) -> None:
        """Send LeaderAndIsr to brokers with a failed log directory: their responses tell which replicas were in it."""
        events = await read_notifications(
            self._store, znodes.LOG_DIR_EVENTS, znodes.decode_log_dir_event, self._watches.log_dir_events
        )
        self._send_leader_and_isr({broker_id for broker_id in events.values() if broker_id is not None})
        await self._remove(events)

    async def follow_isr_changes(self) -> None:
        """Read the states that leaders of an older Kafka have written, and tell every broker."""
        events = await read_notifications(
            self._store, znodes.ISR_CHANGES, znodes.decode_isr_change, self._watches.isr_changes
        )
        written = {TopicPartition(*key) for keys in events.values() if keys is not None for key in keys}
        found = {key: partition for key in written if (partition := self.context.find(key)) is not None}
        if found:
            await load_states(self._store, found)
            self._leaders.send_update_metadata(found)
            self.reassignments.note_in_sync(found)
            await self.finish_reassignments()
        # Last: where this controller dies before, the next one finds them, and reads the states.
        await self._remove(events)

    async def follow_reassignment_node(self) -> None:
        """Begin with the moves of replicas that an old tool has left."""
        await self._admin_nodes.follow_reassignments()

    async def follow_election_node(self) -> None:
        """Hold the elections that an old tool asks for."""
        await self._admin_nodes.follow_elections()

    async def _remove(self, paths: Iterable[str]) -> None:
        await fenced_multi(self._store, self.context, [Delete(path) for path in paths])

    # --- requests of administrators -----------------------------------------------------------------------------------

    async def elect_again(self, key: TopicPartition, leader: int | None) -> int:
        """Elect the leader again, or the in-sync replica ``leader``; returns the new epoch. Raises KafkaError, too."""
        context = self.context
        if context.find(key) is None:
            raise KafkaError(ErrorCode.UNKNOWN_TOPIC_OR_PARTITION, f"{key} does not exist")

        def decide(key: TopicPartition, partition: PartitionState) -> LeaderState | None:
            state = partition.state
            if state is None or state.leader not in context.brokers:
                raise KafkaError(ErrorCode.LEADER_NOT_AVAILABLE, f"{key} has no leader")
            winner = state.leader if leader is None else leader
            if winner not in state.isr or winner not in context.eligible(key):
                raise KafkaError(
                    ErrorCode.ELIGIBLE_LEADERS_NOT_AVAILABLE, f"{winner} is not an in-sync replica of {key}"
                )
            return state._replace(leader=winner, leader_epoch=state.leader_epoch + 1, controller_epoch=context.epoch)

        self._leaders.tell(await self._leaders.change([key], decide))
        elected = context.partition(key).state
        assert elected is not None
        return elected.leader_epoch

    async def reassign(
        self, wanted: Mapping[TopicPartition, Sequence[int] | None], *, factor_may_change: bool
    ) -> dict[TopicPartition, KafkaError | None]:
        """Begin to move replicas, or cancel that: the outcome by partition."""
        results = await self.reassignments.alter(wanted, factor_may_change=factor_may_change)
        await self._admin_nodes.forget_reassignments()
        return results

    async def finish_reassignments(self) -> None:
        """End the moves of replicas that can end now, and begin with the deletions that have waited for that."""
        await self.reassignments.finish()
        await self._admin_nodes.forget_reassignments()
        await self.deletions.resume()

    async def elect_leaders(self) -> None:
        """Elect leaders where that is possible now: whether a replica that is not in sync may lead has changed."""
        self._leaders.tell(await self._leaders.elect())

    async def balance_leaders(self) -> None:
        await self.elections.balance(self._settings.leader_imbalance_per_broker_percentage)


def _names(brokers: Collection[int]) -> str:
    return (
        f"{plural(len(brokers), 'Broker')} {', '.join(map(str, sorted(brokers)))} {plural(len(brokers), 'is', 'are')}"
    )
