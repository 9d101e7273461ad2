"""The soft state of broker heartbeats: last contact, applied metadata offset, and permitted next state.

It is the active controller's alone. The next active controller begins anew: brokers that are not fenced get a whole session,
since otherwise one that died in between would never be fenced (KAFKA-18138, KAFKA-19130).

Contact is by id and epoch, because a heartbeat of an earlier life must not keep the present one alive. It is noted when a
heartbeat arrives, before its turn comes (KAFKA-17793). Sources: Kafka's BrokerHeartbeatTracker and BrokerHeartbeatManager.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping
from enum import Enum
from typing import NamedTuple

from ....metadata.types import QuorumBroker
from ....wire.messages.broker_heartbeat import BrokerHeartbeatRequest


class BrokerControlState(Enum):
    """What the controller has a broker do (Kafka's BrokerControlState)."""

    FENCED = "fenced"
    UNFENCED = "unfenced"
    CONTROLLED_SHUTDOWN = "controlled shutdown"
    SHUTDOWN_NOW = "shut down now"

    @property
    def is_fenced(self) -> bool:
        return self in (BrokerControlState.FENCED, BrokerControlState.SHUTDOWN_NOW)


class HeartbeatSession(NamedTuple):
    broker_id: int
    broker_epoch: int


@dataclasses.dataclass(slots=True)
class _Broker:
    is_fenced: bool
    metadata_offset: int = -1
    """The offset up to which it has applied the metadata log."""
    shutdown_offset: int = -1
    """The offset of the records that began its controlled shutdown; -1 outside of one."""

    @property
    def is_shutting_down(self) -> bool:
        return self.shutdown_offset >= 0

    @property
    def state(self) -> BrokerControlState:
        if self.is_shutting_down:
            return BrokerControlState.CONTROLLED_SHUTDOWN
        return BrokerControlState.FENCED if self.is_fenced else BrokerControlState.UNFENCED


class BrokerHeartbeats:
    """The brokers as the active controller hears of them. Times are ms of a monotonic clock."""

    def __init__(self, session_timeout_ms: int) -> None:
        self._session_timeout_ms = session_timeout_ms
        self._contacts: dict[HeartbeatSession, int] = {}
        self._replaceable: set[HeartbeatSession] = set()
        """Those whose broker is known to be gone, or told to go: its next life need not wait until they are over, as in Kafka."""
        self._brokers: dict[int, _Broker] = {}

    # --- sessions -----------------------------------------------------------------------------------------------------

    def begin(self, brokers: Mapping[int, QuorumBroker], now_ms: int, own_id: int) -> None:
        """Begin with the brokers that are registered; those not fenced have been heard of just now.

        A broker with the controller's own id runs in its process. Where that process has just begun, the broker of the earlier
        one is dead for certain, so its session keeps no new registration waiting. In Kafka it does, until it ends.
        """
        for broker_id, broker in brokers.items():
            self.register(broker_id, is_fenced=broker.is_fenced)
            if not broker.is_fenced:
                self.track(broker_id, broker.epoch, now_ms)
                if broker_id == own_id:
                    self.mark_replaceable(broker_id, broker.epoch)

    def track(self, broker_id: int, broker_epoch: int, now_ms: int) -> bool:
        """Note that a heartbeat has arrived, whoever sent it. True if a session begins with it."""
        session = HeartbeatSession(broker_id, broker_epoch)
        is_new = session not in self._contacts
        self._replaceable.discard(session)
        self._contacts[session] = now_ms
        return is_new

    def has_session(self, broker_id: int, broker_epoch: int, now_ms: int) -> bool:
        session = HeartbeatSession(broker_id, broker_epoch)
        contact = self._contacts.get(session)
        return contact is not None and session not in self._replaceable and not self._is_over(contact, now_ms)

    def mark_replaceable(self, broker_id: int, broker_epoch: int) -> None:
        """The broker was told to stop, or its process is no more. A heartbeat of it says that it is alive after all."""
        self._replaceable.add(HeartbeatSession(broker_id, broker_epoch))

    def silent_ms(self, brokers: Mapping[int, QuorumBroker], now_ms: int) -> dict[int, int]:
        """By broker, how long ago it was heard of; without a session, and at most, the length of one."""
        found = {}
        for broker_id, broker in brokers.items():
            contact = self._contacts.get(HeartbeatSession(broker_id, broker.epoch))
            silent_ms = self._session_timeout_ms if contact is None else now_ms - contact
            found[broker_id] = min(silent_ms, self._session_timeout_ms)
        return found

    def remove_expired(self, now_ms: int) -> HeartbeatSession | None:
        """Forget one session that is over, and return it."""
        for session, contact in self._contacts.items():
            if self._is_over(contact, now_ms):
                del self._contacts[session]
                self._replaceable.discard(session)
                return session
        return None

    def next_expiry(self) -> int | None:
        """The first moment at which a session is over; None without sessions."""
        return min(self._contacts.values()) + self._session_timeout_ms + 1 if self._contacts else None

    def _is_over(self, contact: int, now_ms: int) -> bool:
        return contact + self._session_timeout_ms < now_ms

    # --- what brokers have said ---------------------------------------------------------------------------------------

    def follow(self, before: Mapping[int, QuorumBroker], after: Mapping[int, QuorumBroker]) -> None:
        """Registrations have changed. Whoever has a new epoch begins anew, and whoever is fenced leaves controlled shutdown."""
        if before is after:
            return
        for broker_id, broker in after.items():
            known = before.get(broker_id)
            if known is broker:
                continue
            if known is not None and known.epoch != broker.epoch:
                self.remove(broker_id)
            self.register(broker_id, is_fenced=broker.is_fenced)
        for broker_id in before.keys() - after.keys():
            self.remove(broker_id)

    def register(self, broker_id: int, *, is_fenced: bool) -> None:
        broker = self._brokers.setdefault(broker_id, _Broker(is_fenced))
        self._set_fenced(broker, is_fenced=is_fenced)

    def remove(self, broker_id: int) -> None:
        self._brokers.pop(broker_id, None)

    def touch(self, broker_id: int, *, is_fenced: bool, metadata_offset: int) -> None:
        """A heartbeat of a registered broker has been processed."""
        broker = self._brokers[broker_id]
        self._set_fenced(broker, is_fenced=is_fenced)
        broker.metadata_offset = metadata_offset

    @staticmethod
    def _set_fenced(broker: _Broker, *, is_fenced: bool) -> None:
        broker.is_fenced = is_fenced
        if is_fenced:
            broker.shutdown_offset = -1

    def begin_shutdown(self, broker_id: int, offset: int) -> None:
        """A controlled shutdown is under way since ``offset``; what began it stands."""
        broker = self._brokers[broker_id]
        assert not broker.is_fenced, "a fenced broker shuts down at once"
        # The first offset stays: otherwise each heartbeat would give the other brokers more to apply.
        if not broker.is_shutting_down:
            broker.shutdown_offset = offset

    def lowest_active_offset(self) -> int | None:
        """What every active broker has applied; None where no broker is active."""
        return min(
            (
                each.metadata_offset
                for each in self._brokers.values()
                if not each.is_fenced and not each.is_shutting_down
            ),
            default=None,
        )

    # --- the next state -----------------------------------------------------------------------------------------------

    def next_state(
        self, request: BrokerHeartbeatRequest, registration_offset: int, *, has_leaderships: bool
    ) -> tuple[BrokerControlState, BrokerControlState]:
        """The state that a broker is in, and the one that its heartbeat brings. The broker must be registered.

        A fenced broker is unfenced once it has applied its own registration: the end of the log moves on meanwhile, and must
        not be waited for (KAFKA-13955). A controlled shutdown ends when the broker leads nothing, and every active broker knows
        that.
        """
        broker = self._brokers[request.broker_id]
        if broker.state is BrokerControlState.FENCED:
            return broker.state, _after_fenced(request, registration_offset)
        if broker.state is BrokerControlState.UNFENCED:
            return broker.state, _after_unfenced(request, has_leaderships=has_leaderships)
        lowest = self.lowest_active_offset()
        if has_leaderships or (lowest is not None and broker.shutdown_offset > lowest):
            return broker.state, BrokerControlState.CONTROLLED_SHUTDOWN
        return broker.state, BrokerControlState.SHUTDOWN_NOW


def _after_fenced(request: BrokerHeartbeatRequest, registration_offset: int) -> BrokerControlState:
    if request.want_shut_down:
        return BrokerControlState.SHUTDOWN_NOW
    if not request.want_fence and request.current_metadata_offset >= registration_offset:
        return BrokerControlState.UNFENCED
    return BrokerControlState.FENCED


def _after_unfenced(request: BrokerHeartbeatRequest, *, has_leaderships: bool) -> BrokerControlState:
    if request.want_fence:
        return BrokerControlState.SHUTDOWN_NOW if request.want_shut_down else BrokerControlState.FENCED
    if request.want_shut_down:
        return BrokerControlState.CONTROLLED_SHUTDOWN if has_leaderships else BrokerControlState.SHUTDOWN_NOW
    return BrokerControlState.UNFENCED
