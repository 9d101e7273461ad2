"""A broker's controller between elections: it stands for them, has a ``Term`` for each one that it wins, and handles events.

Everything is an event, handled one at a time as Kafka's controller thread does: what the store tells, what brokers answer,
and requests. No event waits for a broker: see ``sender``. A change that has begun is finished even if its caller is
cancelled, because store, context and brokers have to stay consistent.

Each write to the store checks the epoch, so a controller that was replaced can do no harm; as soon as it learns of that by
such a refusal, it resigns, forgets what it knew, and stands for election again. A broker's session decides when its
controller acts: see ``membership``.
"""

from __future__ import annotations

import contextlib
import functools
import logging
import random
from collections.abc import Awaitable, Callable
from typing import TypeVar

import trio

from ....base.errors import ErrorCode, KafkaError
from ....base.seams import Clock
from ....log.settings import LogSettings
from ....metadata.delta import ClusterDelta
from ....metadata.image import ClusterImage
from ....security.entities import TOPICS
from ...settings import ControllerSettings
from ..config_store import ConfigStore
from ..state.context import ControllerContext
from ..state.partition_states import refusal
from ..store.cluster_store import (
    ClusterStore,
    ControllerMovedError,
    EventType,
    OlderBrokerError,
    SessionExpiredError,
    StoreError,
    StoreFailedError,
    Watch,
    WatchEvent,
)
from .channels import Connect
from .controller_node import is_controller, stand_for_election, withdraw
from .events import EventQueue
from .figures import ControllerFigures
from .sender import Answer, Senders
from .term import Term, Watches

logger = logging.getLogger(__name__)

T = TypeVar("T")

RETRY_SECONDS = 0.1
"""Before an election that failed halfway is tried again."""
UNCLEAN_LEADER_ELECTION = "unclean.leader.election.enable"
FIRST_BALANCE_SECONDS = 5.0
"""After an election, before leadership first goes back to the preferred replicas, as in Kafka."""
OWN_ANSWER_SECONDS = 30.0
"""How long a request waits at most for the controller's own broker, the only one that any request waits for."""
_NOTHING_KNOWN = WatchEvent(EventType.CHANGED, "")
"""Stands for all that a watch may have missed."""


class Candidate:
    """One broker's controller, active or waiting. ``start`` once, then ``run`` in a task of its own.

    ``connect`` gives the channel to a broker that is registered, this one among them. ``figures`` are for metrics.
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
        self._senders = Senders(connect, self._answered)
        self._settings = settings
        self._log_settings = log_settings
        self._clock = clock
        self._randomness = randomness
        self._events = EventQueue()
        self.figures = ControllerFigures(self._events, self._senders)
        self._term: Term | None = None
        self._term_changed = trio.Event()
        self._watches = self._make_watches()
        self._elect_leaders = functools.partial(self._follow, lambda term: term.elect_leaders())
        self._finish_reassignments = functools.partial(self._follow, lambda term: term.finish_reassignments())
        configs.metadata.publishers.append(self._elect_if_allowed)
        self._retries: trio.Nursery | None = None
        self._is_candidate = False
        self._is_resting = False
        self._is_held_back = False  # by a broker too old, until other brokers are registered
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
                with trio.move_on_after(OWN_ANSWER_SECONDS):
                    while self._senders.unanswered(self._broker_id) is not None or not self._events.is_idle:
                        await self._own_answers()
            except StoreError as error:
                failure = error
            nursery.cancel_scope.cancel()
        if failure is not None:
            raise failure

    async def run(self) -> None:
        """Handle events: requests, brokers that come and go, and the loss of the active controller; tell the brokers."""
        async with trio.open_nursery() as self._retries:
            self._retries.start_soon(self._senders.run)
            if self._settings.auto_leader_rebalance_enable:
                self._retries.start_soon(self._balance_leaders)
            await self._events.run()

    # --- the session --------------------------------------------------------------------------------------------------

    async def elect(self) -> None:
        """Stand for election, and from now on whenever there is no controller. Raises StoreError."""
        self._is_candidate, self._is_held_back = True, False
        await self._events.ask(self._elect)

    async def resign(self) -> None:
        """The session has ended: drop what waits, and all that is known; return when nothing is under way any more.

        It is no candidate until ``elect``: the broker has to register first, or its own controller would take it for dead.
        """
        self._is_candidate = False
        self._events.refuse_waiting(_not_controller())
        self._is_suspended = False
        self._events.go_on()
        await self._events.ask(self._give_up)

    def suspend(self) -> None:
        """The session may be over: do nothing until ``resume`` or ``resign``."""
        self._is_suspended = True
        self._events.hold()

    def resume(self) -> None:
        """The session is not over, but watches may be lost: read everything again."""
        self._is_suspended = False
        self._events.go_on()
        self._events.put(self._check_controller)
        if self._term is not None:
            self._term.topic_changes.forget_watches()
        for watch in (w for w in self._watches if w is not self._watches.topic):
            watch(_NOTHING_KNOWN)

    # --- settings -----------------------------------------------------------------------------------------------------

    def update_log_settings(self, settings: LogSettings) -> None:
        """The defaults of topics have changed, perhaps whether a replica that is not in sync may lead."""
        self._log_settings = settings
        if self._term is not None:
            self._term.update_log_settings(settings)
        self._events.put(self._elect_leaders)

    def _elect_if_allowed(self, delta: ClusterDelta, image: ClusterImage) -> None:
        """Look for leaders where a replica that is not in sync may lead now."""
        if any(kind is TOPICS and UNCLEAN_LEADER_ELECTION in values for (kind, _), values in delta.configs.items()):
            self._events.put(self._elect_leaders)

    # --- requests -----------------------------------------------------------------------------------------------------

    async def _request(self, change: Callable[[Term], Awaitable[T]]) -> T:
        """Make a change in its turn, and wait until this broker has applied it, for its clients go on. Raises KafkaError."""
        outcome = await self._ask(change)
        with trio.move_on_after(OWN_ANSWER_SECONDS), contextlib.suppress(KafkaError):  # the change is made in any case
            await self._own_answers()
        return outcome

    async def _ask(self, change: Callable[[Term], Awaitable[T]]) -> T:
        """Make a change in its turn. Raises KafkaError."""
        self._active_term()
        try:
            return await self._events.ask(functools.partial(self._act, change))
        except StoreError as error:
            raise refusal(error) from error

    async def _own_answers(self) -> None:
        """Wait until this broker has answered what it was told, and these answers were handled. Raises KafkaError."""
        unanswered = self._senders.unanswered(self._broker_id)
        if unanswered is not None:
            await unanswered.wait()
        await self._events.ask(_nothing)

    def _active_term(self) -> Term:
        if self._term is None or self._is_suspended:
            raise _not_controller()
        return self._term

    async def _act(self, change: Callable[[Term], Awaitable[T]]) -> T:
        """Do something as the controller; resign if another broker turns out to be it. Raises StoreError."""
        term = self._active_term()
        try:
            return await change(term)
        except ControllerMovedError:
            logger.warning("The cluster's controller epoch is not %d any more", term.context.epoch)
            await self._stand_down(term)
            raise
        except SessionExpiredError:
            await self._give_up()
            raise

    # --- what the store tells -----------------------------------------------------------------------------------------

    def _controller_changed(self, event: WatchEvent) -> None:
        self._events.put(self._check_controller)

    def _make_watches(self) -> Watches:
        def watch(follow: Callable[[Term], Awaitable[None]]) -> Watch:
            event = functools.partial(self._follow, follow)
            return lambda _: self._events.put(event)

        changed = watch(lambda term: term.topic_changes.follow_changed())

        def note_topic(event: WatchEvent) -> None:
            if self._term is not None:
                self._term.topic_changes.note_changed(event.path)
                changed(event)

        return Watches(
            brokers=lambda _: self._events.put(self._follow_brokers),
            topics=watch(lambda term: term.topic_changes.follow()),
            topic=note_topic,
            deletions=watch(lambda term: term.follow_deletions()),
            folders=watch(lambda term: term.follow_folders()),
            isr_changes=watch(lambda term: term.follow_isr_changes()),
            reassignments=watch(lambda term: term.follow_reassignment_node()),
            elections=watch(lambda term: term.follow_election_node()),
        )

    def _answered(self, answer: Answer) -> None:
        self._events.put(functools.partial(self._follow, lambda term: term.take_answer(answer)))

    async def _follow_brokers(self) -> None:
        if self._is_held_back:
            self._is_held_back = False
            await self._check_controller()
        else:
            await self._follow(lambda term: term.follow_brokers())

    async def _check_controller(self) -> None:
        if not self._is_candidate or self._is_resting or self._is_held_back:
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
                assert self._retries is not None
                self._is_resting = True  # its own changes of ``/controller`` would make it try again at once
                self._retries.start_soon(self._check_later)

    async def _check_later(self) -> None:
        await trio.sleep(RETRY_SECONDS)
        self._is_resting = False
        self._events.put(self._check_controller)

    async def _balance_leaders(self) -> None:
        """In each term, after 5 s and then at intervals, give leadership back to the preferred replicas."""
        balance = functools.partial(self._follow, lambda term: term.balance_leaders())
        while True:
            term, changed, delay = self._term, self._term_changed, FIRST_BALANCE_SECONDS
            while term is not None and not changed.is_set():
                with trio.move_on_after(delay):
                    await changed.wait()
                    break
                self._events.put(balance)
                delay = self._settings.leader_imbalance_check_interval_seconds
            await changed.wait()

    async def _follow(self, change: Callable[[Term], Awaitable[None]]) -> None:
        """Look at what is new. If that fails halfway, resign and stand for election again: a new term reads everything."""
        term = self._term
        if term is None:
            return
        try:
            await self._act(change)
        except KafkaError:
            pass  # suspended; everything is looked at when it goes on
        except (ControllerMovedError, SessionExpiredError):
            pass  # it has resigned
        except OlderBrokerError as error:
            await self._hold_back(error)
        except StoreError as error:
            self._log_lost(error)
            if not isinstance(error, StoreFailedError):
                await self._stand_down(term)

    async def _elect(self) -> None:
        while self._term is None:
            context = await stand_for_election(self._store, self._broker_id, self._clock, self._controller_changed)
            if context is None:
                return
            context.inter_broker_listener = self._inter_broker_listener
            term = self._new_term(context)
            self._set_term(term)
            try:
                await term.take_over()
            except ControllerMovedError:
                await self._give_up()
            except OlderBrokerError as error:
                await self._hold_back(error)
                return
            except StoreError:
                await self._give_up()
                raise

    def _new_term(self, context: ControllerContext) -> Term:
        return Term(
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

    def _set_term(self, term: Term | None) -> None:
        self._term = term
        self.figures.context = None if term is None else term.context
        changed, self._term_changed = self._term_changed, trio.Event()
        changed.set()

    def _log_lost(self, error: StoreError) -> None:
        """Log each reason once in a row, because it is tried again every 100 ms."""
        if str(error) != self._last_loss:
            logger.error("The controller cannot follow the cluster: %s", error)
        self._last_loss = str(error)

    async def _hold_back(self, error: OlderBrokerError) -> None:
        """Resign, and be no candidate while that broker is in the cluster; one as old may be the controller."""
        self._log_lost(error)
        self._is_held_back = True
        await self._give_up()
        with contextlib.suppress(StoreError):  # the node goes with the session, and is looked at in the next one
            await withdraw(self._store)

    async def _stand_down(self, term: Term) -> None:
        """End the term, and be a candidate like any other broker."""
        await self._give_up()
        self._events.put(self._check_controller)

    async def _give_up(self) -> None:
        """Stop being the controller, and forget everything."""
        if self._term is not None:
            logger.info("No longer the controller, epoch %d", self._term.context.epoch)
            self._set_term(None)
            self._senders.follow({})


async def _nothing() -> None:
    """An event that does nothing: when it is over, so are those before it."""


def _not_controller() -> KafkaError:
    return KafkaError(ErrorCode.NOT_CONTROLLER, "This is not the correct controller for this cluster.")
