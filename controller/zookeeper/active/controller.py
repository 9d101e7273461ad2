"""A broker's ZooKeeper controller: once elected, it decides on topics, replicas and leaders, and notifies the other brokers.

Every broker has one, which stands for election. The winner begins a ``ControllerTerm``; the others watch ``/controller``, and
refuse requests with NOT_CONTROLLER.

- Everything is an event, handled one at a time as Kafka's controller thread does: changes in the store, responses of brokers,
  and requests. No event waits for a broker: see ``controller_channel_manager``.
- A change that has begun is finished even if its caller is cancelled, because store, context and brokers have to stay
  consistent.
- Writes to the store check the controller epoch, so a controller that was replaced can do no harm. When such a check fails,
  the controller resigns, forgets what it knew, and stands for election again. One write checks no epoch: a block of producer
  ids is taken under the version of its own node, which any broker may write (``producer_ids``).
- A broker's session decides when its controller acts: see ``membership``.
"""

from __future__ import annotations

import contextlib
import dataclasses
import enum
import functools
import logging
import random
from collections.abc import Awaitable, Callable, Iterable, Mapping, Sequence
from typing import TypeVar

import trio

from ....base.errors import ErrorCode, KafkaError
from ....base.partitions import TopicPartition
from ....base.seams import Clock
from ....log.settings import LogSettings
from ....metadata.delta import ClusterDelta
from ....metadata.image import ClusterImage
from ....metadata.rules.election import ElectionType
from ....metadata.types import ReplicaAssignment
from ....security.entities import TOPICS
from ....wire.messages.allocate_producer_ids import AllocateProducerIdsRequest, AllocateProducerIdsResponse
from ....wire.messages.alter_partition import AlterPartitionRequest, AlterPartitionResponse
from ....wire.messages.controlled_shutdown import ControlledShutdownRequest, ControlledShutdownResponse
from ...new_topics import Charge, CreatedTopic, NewTopic
from ...settings import ControllerSettings
from ..config_store import ConfigStore
from ..state.context import ControllerContext
from ..state.partition_states import refusal
from ..store.cluster_store import (
    ClusterStore,
    ControllerMovedError,
    OlderBrokerError,
    SessionExpiredError,
    StoreError,
    StoreFailedError,
    WatchEvent,
)
from .alter_partition_queue import AlterPartitionQueue, Turn
from .channels import Connect
from .controller_channel_manager import Answer, ControllerChannelManager
from .controller_node import is_controller, stand_for_election, withdraw
from .controller_term import ControllerTerm, Watches
from .events import EventQueue
from .figures import ControllerFigures

logger = logging.getLogger(__name__)

T = TypeVar("T")
Look = Callable[[ControllerTerm], Awaitable[None]]

RETRY_SECONDS = 0.1
"""Before an election that failed halfway is tried again."""
UNCLEAN_LEADER_ELECTION = "unclean.leader.election.enable"
FIRST_BALANCE_SECONDS = 5.0
"""After an election, before leadership first goes back to the preferred replicas, as in Kafka."""
OWN_RESPONSE_SECONDS = 30.0
"""How long a request waits at most for the controller's own broker, the only one that any request waits for."""


class Candidacy(enum.Enum):
    """Whether a broker would become the controller, if there is none."""

    NONE = enum.auto()
    """Its session has ended, so it has to register first; its own controller would take it for dead."""
    STANDING = enum.auto()
    """It stands for election whenever there is no controller."""
    RESTING = enum.auto()
    """Its election has just failed, and is tried again soon; its own changes of ``/controller`` would do so at once."""
    HELD_BACK = enum.auto()
    """A broker of an older Kafka is in the cluster; it stands again when other brokers are registered."""


@dataclasses.dataclass(frozen=True, slots=True)
class TermEvent:
    """The event in which the present term looks at something new. Equal ones are the same look, so only one of them waits."""

    follow: Callable[[Look], Awaitable[None]]
    look: Look

    async def __call__(self) -> None:
        await self.follow(self.look)


class ZooKeeperController:
    """One broker's controller, active or waiting. ``start`` once, then ``run`` in a task of its own.

    ``connect`` gives the channel to a broker that is registered, this one among them.
    """

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
        self._broker_id = broker_id
        self._inter_broker_listener = inter_broker_listener
        self._store = store
        self._configs = configs
        self._senders = ControllerChannelManager(connect, self._answered)
        self._settings = settings
        self._log_settings = log_settings
        self._clock = clock
        self._randomness = randomness
        self._events = EventQueue()
        self._alterations = AlterPartitionQueue(self._alter_partitions)
        self.figures = ControllerFigures(self._events, self._senders)
        """For metrics."""
        self._term: ControllerTerm | None = None
        self._term_changed = trio.Event()
        self._watches = self._make_watches()
        configs.metadata.publishers.append(self._elect_if_allowed)
        self._nursery: trio.Nursery | None = None
        self._candidacy = Candidacy.NONE
        self._is_suspended = False
        self._last_loss = ""

    @property
    def is_active(self) -> bool:
        """Whether this broker is the controller, and may act as such."""
        return self._term is not None and not self._is_suspended

    async def start(self) -> None:
        """Stand for election for the first time, before ``run``; return once this broker knows the outcome. Raises StoreError."""
        failure: StoreError | None = None
        async with trio.open_nursery() as nursery:
            nursery.start_soon(self.run)
            try:
                await self.elect()
                with trio.move_on_after(OWN_RESPONSE_SECONDS):
                    while self._senders.unanswered(self._broker_id) is not None or not self._events.is_idle:
                        await self._wait_own_responses()
            except StoreError as error:
                failure = error
            nursery.cancel_scope.cancel()
        if failure is not None:
            raise failure

    async def run(self) -> None:
        """Handle events: requests, brokers that come and go, and the loss of the active controller; tell the brokers."""
        async with trio.open_nursery() as self._nursery:
            self._nursery.start_soon(self._senders.run)
            if self._candidacy is Candidacy.RESTING:  # since ``start``, whose end has cancelled the rest
                self._nursery.start_soon(self._check_later)
            if self._settings.auto_leader_rebalance_enable:
                self._nursery.start_soon(self._balance_leaders)
            await self._events.run()

    async def _balance_leaders(self) -> None:
        """In each term, after 5 s and then at intervals, give leadership back to the preferred replicas."""
        while True:
            term, changed, delay = self._term, self._term_changed, FIRST_BALANCE_SECONDS
            while term is not None and not changed.is_set():
                with trio.move_on_after(delay):
                    await changed.wait()
                    break  # the term has ended, and its brokers are not this controller's to balance
                self._put_look(ControllerTerm.balance_leaders)
                delay = self._settings.leader_imbalance_check_interval_seconds
            await changed.wait()

    # --- the session --------------------------------------------------------------------------------------------------

    async def elect(self) -> None:
        """Stand for election, and from now on whenever there is no controller. Raises StoreError."""
        self._candidacy = Candidacy.STANDING
        await self._events.ask(self._elect)

    async def resign(self) -> None:
        """The session has ended: drop what waits, and all that is known; return when nothing is under way any more.

        It is no candidate until ``elect``.
        """
        self._candidacy = Candidacy.NONE
        self._events.fail_pending(_not_controller())
        self._is_suspended = False
        # The queue may be held by ``suspend``. An event that is under way ends first: its change must be whole.
        self._events.resume()
        await self._events.ask(self._give_up)

    def suspend(self) -> None:
        """The session may be over: do nothing until ``resume`` or ``resign``."""
        self._is_suspended = True
        self._events.hold()

    def resume(self) -> None:
        """The session is not over, but watches may be lost: read everything again."""
        self._is_suspended = False
        self._events.resume()
        self._events.put(self._check_controller)
        if self._term is not None:
            self._term.forget_topic_watches()
        self._events.put(self._follow_brokers)
        for look in (
            ControllerTerm.follow_topics,
            ControllerTerm.follow_deletions,
            ControllerTerm.follow_log_dir_events,
            ControllerTerm.follow_isr_changes,
            ControllerTerm.follow_reassignment_node,
            ControllerTerm.follow_election_node,
        ):
            self._put_look(look)

    # --- settings -----------------------------------------------------------------------------------------------------

    def update_log_settings(self, settings: LogSettings) -> None:
        """The defaults of topics have changed, perhaps whether a replica that is not in sync may lead."""
        self._log_settings = settings
        if self._term is not None:
            self._term.update_log_settings(settings)
        self._put_look(ControllerTerm.elect_leaders)

    def _elect_if_allowed(self, delta: ClusterDelta, image: ClusterImage) -> None:
        """Look for leaders where a replica that is not in sync may lead now."""
        if any(kind is TOPICS and UNCLEAN_LEADER_ELECTION in values for (kind, _), values in delta.configs.items()):
            self._put_look(ControllerTerm.elect_leaders)

    # --- requests of administrators -----------------------------------------------------------------------------------

    async def create_topics(
        self, topics: Iterable[NewTopic], *, validate_only: bool = False, charge: Charge | None = None
    ) -> dict[str, CreatedTopic | KafkaError]:
        """The outcome by topic name; see ``Topics.create``. Raises KafkaError when nothing can be done at all."""

        async def create(term: ControllerTerm) -> dict[str, CreatedTopic | KafkaError]:
            results = await term.topics.create(topics, validate_only=validate_only, charge=charge)
            if any(isinstance(r, KafkaError) and r.code is ErrorCode.NOT_CONTROLLER for r in results.values()):
                await self._end_term(term)
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
            response = await self._alterations.answer(request, version)
        except KafkaError as error:
            return AlterPartitionResponse(error_code=error.code)
        if self._term is not None and self._term.reassignments.is_any_ready:
            self._put_look(ControllerTerm.finish_reassignments)
        return response

    async def _alter_partitions(self, turn: Turn) -> None:
        await self._ask(lambda term: turn(term.alter_partitions))

    async def controlled_shutdown(self, request: ControlledShutdownRequest) -> ControlledShutdownResponse:
        """Move leaders away from a broker that is about to stop; the response has the partitions that it still leads."""
        try:
            response = await self._ask(lambda term: term.shut_down(request))
            if request.broker_id == self._broker_id:
                # This controller ends with its broker. The next one tells brokers what is left.
                await self._senders.wait_responses()
            return response
        except KafkaError as error:
            return ControlledShutdownResponse(error_code=error.code)

    async def allocate_producer_ids(self, request: AllocateProducerIdsRequest) -> AllocateProducerIdsResponse:
        """A block of producer ids that no broker had before (KIP-730)."""
        try:
            return await self._ask(lambda term: term.allocate_producer_ids(request))
        except KafkaError as error:
            return AllocateProducerIdsResponse(error_code=error.code)

    # --- the turn of a request ----------------------------------------------------------------------------------------

    async def _request(self, change: Callable[[ControllerTerm], Awaitable[T]]) -> T:
        """Make a change in its turn, and wait until this broker has applied it, for its clients go on. Raises KafkaError."""
        outcome = await self._ask(change)
        # The change is made in any case.
        with trio.move_on_after(OWN_RESPONSE_SECONDS), contextlib.suppress(KafkaError):
            await self._wait_own_responses()
        return outcome

    async def _ask(self, change: Callable[[ControllerTerm], Awaitable[T]]) -> T:
        """Make a change in its turn. Raises KafkaError."""
        self._active_term()
        try:
            return await self._events.ask(functools.partial(self._act, change))
        except StoreError as error:
            raise refusal(error) from error

    async def _wait_own_responses(self) -> None:
        """Wait until this broker has responded to all requests, and its responses were handled. Raises KafkaError."""
        unanswered = self._senders.unanswered(self._broker_id)
        if unanswered is not None:
            await unanswered.wait()
        await self._events.ask(_nothing)

    def _active_term(self) -> ControllerTerm:
        if self._term is None or self._is_suspended:
            raise _not_controller()
        return self._term

    async def _act(self, change: Callable[[ControllerTerm], Awaitable[T]]) -> T:
        """Do something as the controller; resign if another broker turns out to be it. Raises StoreError."""
        term = self._active_term()
        try:
            return await change(term)
        except ControllerMovedError:
            logger.warning("The cluster's controller epoch is not %d any more", term.context.epoch)
            await self._end_term(term)
            raise
        except SessionExpiredError:
            await self._give_up()
            raise

    # --- what the store and the brokers tell --------------------------------------------------------------------------

    def _make_watches(self) -> Watches:
        return Watches(
            brokers=self._brokers_changed,
            topics=self._topics_changed,
            topic=self._topic_changed,
            deletions=self._deletions_changed,
            log_dir_events=self._log_dir_events_changed,
            isr_changes=self._isr_changes_changed,
            reassignments=self._reassignment_node_changed,
            elections=self._election_node_changed,
        )

    def _controller_changed(self, event: WatchEvent) -> None:
        self._events.put(self._check_controller)

    def _brokers_changed(self, event: WatchEvent) -> None:
        self._events.put(self._follow_brokers)

    def _topics_changed(self, event: WatchEvent) -> None:
        self._put_look(ControllerTerm.follow_topics)

    def _topic_changed(self, event: WatchEvent) -> None:
        if self._term is not None:
            self._term.note_changed_topic(event.path)
            self._put_look(ControllerTerm.follow_changed_topics)

    def _deletions_changed(self, event: WatchEvent) -> None:
        self._put_look(ControllerTerm.follow_deletions)

    def _log_dir_events_changed(self, event: WatchEvent) -> None:
        self._put_look(ControllerTerm.follow_log_dir_events)

    def _isr_changes_changed(self, event: WatchEvent) -> None:
        self._put_look(ControllerTerm.follow_isr_changes)

    def _reassignment_node_changed(self, event: WatchEvent) -> None:
        self._put_look(ControllerTerm.follow_reassignment_node)

    def _election_node_changed(self, event: WatchEvent) -> None:
        self._put_look(ControllerTerm.follow_election_node)

    def _answered(self, answer: Answer) -> None:
        async def process_response(term: ControllerTerm) -> None:
            await term.process_response(answer)

        self._put_look(process_response)

    def _put_look(self, look: Look) -> None:
        """Have the term that is present then look at something, unless the same look waits already."""
        self._events.put(TermEvent(self._follow, look))

    async def _follow(self, look: Look) -> None:
        """Look at what is new. If that fails halfway, resign and stand for election again: a new term reads everything."""
        term = self._term
        if term is None:
            return
        try:
            await self._act(look)
        except KafkaError:
            pass  # suspended; everything is looked at when it goes on
        except (ControllerMovedError, SessionExpiredError):
            pass  # it has resigned
        except OlderBrokerError as error:
            await self._withdraw(error)
        except StoreError as error:
            self._log_lost(error)
            if not isinstance(error, StoreFailedError):
                await self._end_term(term)

    async def _follow_brokers(self) -> None:
        if self._candidacy is Candidacy.HELD_BACK:
            self._candidacy = Candidacy.STANDING
            await self._check_controller()
        else:
            await self._follow(ControllerTerm.follow_brokers)

    # --- elections ----------------------------------------------------------------------------------------------------

    async def _check_controller(self) -> None:
        """Stand for election if there is no controller; note if another broker has become it."""
        if self._candidacy is not Candidacy.STANDING:
            return
        try:
            if self._term is not None and not await is_controller(self._store, self._controller_changed):
                logger.warning("Another broker became controller")
                await self._give_up()
            await self._elect()
        except SessionExpiredError:
            await self._give_up()
        except StoreError as error:
            self._log_lost(error)
            if not isinstance(error, StoreFailedError):
                self._rest()

    def _rest(self) -> None:
        # ``elect`` and ``resign`` may have been called meanwhile; only a candidate rests.
        if self._candidacy is Candidacy.STANDING:
            assert self._nursery is not None
            self._candidacy = Candidacy.RESTING
            self._nursery.start_soon(self._check_later)

    async def _check_later(self) -> None:
        await trio.sleep(RETRY_SECONDS)
        if self._candidacy is Candidacy.RESTING:
            self._candidacy = Candidacy.STANDING
        self._events.put(self._check_controller)

    async def _elect(self) -> None:
        while self._term is None:
            context = await stand_for_election(self._store, self._broker_id, self._clock, self._controller_changed)
            if context is None:
                return
            context.inter_broker_listener = self._inter_broker_listener
            term = self._new_term(context)
            # Before it takes over: ``_topic_changed`` notes in it what its watches tell meanwhile.
            self._set_term(term)
            try:
                await term.take_over()
            except ControllerMovedError:
                await self._give_up()
            except OlderBrokerError as error:
                await self._withdraw(error)
                return
            except StoreError:
                await self._give_up()
                raise

    def _new_term(self, context: ControllerContext) -> ControllerTerm:
        return ControllerTerm(
            self._store,
            context,
            self._configs,
            self._senders,
            self._settings,
            self._log_settings,
            self._randomness,
            self._watches,
            self.figures.elections,
        )

    def _set_term(self, term: ControllerTerm | None) -> None:
        self._term = term
        self.figures.context = None if term is None else term.context
        changed, self._term_changed = self._term_changed, trio.Event()
        changed.set()

    def _log_lost(self, error: StoreError) -> None:
        """Log each reason once in a row, because it is tried again every 100 ms."""
        if str(error) != self._last_loss:
            logger.error("The controller cannot follow the cluster: %s", error)
        self._last_loss = str(error)

    async def _withdraw(self, error: OlderBrokerError) -> None:
        """Resign, and be no candidate while that broker is in the cluster; one as old may be the controller."""
        self._log_lost(error)
        if self._candidacy is not Candidacy.NONE:
            self._candidacy = Candidacy.HELD_BACK
        await self._give_up()
        with contextlib.suppress(StoreError):  # the node goes with the session, and is looked at in the next one
            await withdraw(self._store)

    async def _end_term(self, term: ControllerTerm) -> None:
        """End the term, and be a candidate like any other broker."""
        await self._give_up()
        self._events.put(self._check_controller)

    async def _give_up(self) -> None:
        """Stop being the controller, and forget everything."""
        if self._term is not None:
            logger.info("No longer the controller, epoch %d", self._term.context.epoch)
            self._set_term(None)
            # What waits was decided under an epoch that is over. The next controller tells the brokers everything.
            self._senders.follow({})


async def _nothing() -> None:
    """An event that does nothing: when it is over, so are those before it."""


def _not_controller() -> KafkaError:
    return KafkaError(ErrorCode.NOT_CONTROLLER, "This is not the correct controller for this cluster.")
