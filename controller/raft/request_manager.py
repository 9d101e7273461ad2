"""A Raft node's own requests: one in flight per peer, and a pause after a failure (Kafka's ``RequestManager``)."""

from __future__ import annotations

import math
import random
from collections.abc import Collection, Sequence
from typing import NamedTuple

from ...wire.schema import Message
from .effects import RaftPeer
from .settings import RaftTimes
from .voters import ControllerAddress

_REFUSAL_BACKOFF_MS = 1000


class OwnRequest(NamedTuple):
    """A request in flight, and what it was made of: the response counts only while that is still so."""

    request_id: int
    peer: RaftPeer
    request: Message
    deadline_ms: float
    offset: int
    """The log end offset at that time."""


class RaftRequestManager:
    """See the module."""

    def __init__(self, bootstrap: list[RaftPeer], times: RaftTimes, randomness: random.Random) -> None:
        # The servers that are asked while no leader is known.
        self._bootstrap = bootstrap
        self._times = times
        self._randomness = randomness
        self._in_flight: dict[int, OwnRequest] = {}
        self._back_off_until: dict[int, float] = {}
        # Servers without a response to the last request: others are asked first until this time.
        self._unresponsive_until: dict[ControllerAddress, float] = {}
        self._last_id = 0

    def begin(self, peer: RaftPeer, request: Message, offset: int, now_ms: float) -> OwnRequest | None:
        """A request to send, or None where the peer has one, or has just failed."""
        if self.ready_in_ms(peer, now_ms) > 0:
            return None
        self._last_id += 1
        deadline = now_ms + self._times.request_timeout_ms
        own = OwnRequest(self._last_id, peer, request, deadline, offset)
        self._in_flight[peer.node_id] = own
        self._back_off_until.pop(peer.node_id, None)
        return own

    def take(self, request_id: int) -> OwnRequest | None:
        """The request that a response belongs to; None where it is waited for no more."""
        for own in self._in_flight.values():
            if own.request_id == request_id:
                return own
        return None

    def end(self, own: OwnRequest, succeeded: bool, now_ms: float) -> None:
        """A request has got its response, or has failed. The next one to the same peer waits a moment where that did not help."""
        self._end(own, 0 if succeeded else self._times.retry_backoff_ms, now_ms)

    def refuse(self, own: OwnRequest, now_ms: float) -> None:
        """The peer refuses a request, and is likely to refuse the next one, which waits for longer."""
        self._end(own, _REFUSAL_BACKOFF_MS, now_ms)

    def _end(self, own: OwnRequest, back_off_ms: float, now_ms: float) -> None:
        self._unresponsive_until.pop(own.peer.address, None)
        # Where the response has led to another state, ``reset`` has forgotten the request: the new state need not pause.
        if self._in_flight.get(own.peer.node_id) is own:
            del self._in_flight[own.peer.node_id]
            if back_off_ms:
                self._back_off_until[own.peer.node_id] = now_ms + back_off_ms

    def reset(self) -> None:
        """Forget all requests: in another epoch or state their responses mean nothing."""
        self._in_flight.clear()
        self._back_off_until.clear()

    def back_off_after_timeout(self, peer: RaftPeer, now_ms: float) -> None:
        """A peer has not responded in time. Others are asked for as long as it was waited for.

        Kafka asks it again after half an election timeout. A voter stands for election by then, and a broker would wait again.
        """
        own = self._in_flight.pop(peer.node_id, None)
        if own is not None:
            self._mark_unresponsive(own)
        self._back_off_until[peer.node_id] = now_ms + self._times.request_timeout_ms

    # --- when ---------------------------------------------------------------------------------------------------------

    def has_timed_out(self, peer: RaftPeer, now_ms: float) -> bool:
        own = self._in_flight.get(peer.node_id)
        return own is not None and own.deadline_ms <= now_ms

    def is_backing_off(self, peer: RaftPeer, now_ms: float) -> bool:
        return self._back_off_until.get(peer.node_id, -math.inf) > now_ms

    def ready_in_ms(self, peer: RaftPeer, now_ms: float) -> float:
        """How long until a request can be sent to this peer."""
        own = self._in_flight.get(peer.node_id)
        if own is not None:
            return max(0, own.deadline_ms - now_ms)
        return max(0, self._back_off_until.get(peer.node_id, now_ms) - now_ms)

    def busy_for_ms(self, now_ms: float) -> float:
        """How long a request may be in flight to any peer; 0 where none is. One fetch at a time: a second could append twice."""
        return max(
            (own.deadline_ms - now_ms for own in self._in_flight.values() if own.deadline_ms > now_ms), default=0
        )

    def ready_bootstrap(
        self, useless: Collection[ControllerAddress], now_ms: float, voters: Sequence[RaftPeer] = ()
    ) -> RaftPeer | None:
        """One of those that can be asked now, by chance; one of the ``voters`` where all bootstrap servers are useless."""
        for own in self._in_flight.values():
            if own.deadline_ms <= now_ms:
                self._mark_unresponsive(own)
        ready = [peer for peer in self._useful(useless, now_ms, voters) if self.ready_in_ms(peer, now_ms) <= 0]
        return self._randomness.choice(ready) if ready else None

    def bootstrap_ready_in_ms(
        self, useless: Collection[ControllerAddress], now_ms: float, voters: Sequence[RaftPeer] = ()
    ) -> float:
        useful = self._useful(useless, now_ms, voters)
        return min((self.ready_in_ms(peer, now_ms) for peer in useful), default=math.inf)

    def _useful(
        self, useless: Collection[ControllerAddress], now_ms: float, voters: Sequence[RaftPeer]
    ) -> list[RaftPeer]:
        """All but some, unless these are all. Kafka asks the node itself, and those that do not respond, as well."""
        others = [peer for peer in self._bootstrap if peer.address not in useless]
        others = others or [peer for peer in voters if peer.address not in useless] or self._bootstrap
        silent = self._unresponsive_until
        return [peer for peer in others if silent.get(peer.address, now_ms) <= now_ms] or others

    def _mark_unresponsive(self, own: OwnRequest) -> None:
        self._unresponsive_until[own.peer.address] = own.deadline_ms + 2 * self._times.request_timeout_ms
