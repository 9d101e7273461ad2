"""Which peer of a Raft node may be asked when: requests in flight, timeouts, backoffs (Kafka's ``RequestManager``)."""

from __future__ import annotations

import pytest

from ottla.controller.raft.effects import RaftPeer
from ottla.controller.raft.request_manager import OwnRequest, RaftRequestManager
from ottla.controller.raft.settings import RaftTimes
from ottla.tests.controller.raft.helpers.node_world import NoChance
from ottla.tests.controller.raft.helpers.quorum_parts import address_of_node
from ottla.wire.messages.api_versions import ApiVersionsRequest

TIMES = RaftTimes()
NOW = 1000.0
TIMEOUT, BACKOFF = TIMES.request_timeout_ms, TIMES.retry_backoff_ms
TWO, THREE = RaftPeer(2, address_of_node(2)), RaftPeer(3, address_of_node(3))
SERVERS = [RaftPeer(-2, address_of_node(2)), RaftPeer(-3, address_of_node(3))]


def connections() -> RaftRequestManager:
    return RaftRequestManager(SERVERS, TIMES, NoChance())


def begin(of: RaftRequestManager, peer: RaftPeer, now_ms: float = NOW) -> OwnRequest:
    own = of.begin(peer, ApiVersionsRequest(), 0, now_ms)
    assert own is not None
    return own


def ready(of: RaftRequestManager, now_ms: float) -> RaftPeer | None:
    return of.ready_bootstrap((), now_ms)


def test_one_request_to_each_peer() -> None:
    of = connections()
    first = begin(of, TWO)
    assert of.begin(TWO, ApiVersionsRequest(), 0, NOW) is None
    assert begin(of, THREE).request_id != first.request_id
    assert of.ready_in_ms(TWO, NOW + 1) == TIMEOUT - 1


@pytest.mark.parametrize(("succeeded", "ready_in_ms"), [(True, 0), (False, BACKOFF)], ids=["answered", "failed"])
def test_the_end_of_a_request(succeeded: bool, ready_in_ms: int) -> None:
    of = connections()
    own = begin(of, TWO)
    assert of.take(own.request_id) is own
    of.end(own, succeeded, NOW + 5)
    assert of.take(own.request_id) is None
    assert of.ready_in_ms(TWO, NOW + 5) == ready_in_ms
    assert of.is_backing_off(TWO, NOW + 5) == (not succeeded)
    assert not of.is_backing_off(TWO, NOW + 5 + BACKOFF)
    begin(of, TWO, NOW + 5 + BACKOFF)


def test_a_response_that_nobody_waits_for() -> None:
    of = connections()
    own = begin(of, TWO)
    assert of.take(own.request_id + 1) is None
    late = begin(of, TWO, NOW + TIMEOUT)
    assert of.take(own.request_id) is None
    of.end(own, False, NOW + TIMEOUT)
    assert of.take(late.request_id) is late
    assert not of.is_backing_off(TWO, NOW + TIMEOUT)


def test_a_request_that_takes_too_long() -> None:
    of = connections()
    begin(of, TWO)
    assert not of.has_timed_out(TWO, NOW + TIMEOUT - 1)
    assert of.has_timed_out(TWO, NOW + TIMEOUT)
    assert not of.has_timed_out(THREE, NOW + TIMEOUT)
    begin(of, TWO, NOW + TIMEOUT)


def test_whether_any_request_is_in_flight() -> None:
    of = connections()
    assert of.busy_for_ms(NOW) == 0
    begin(of, TWO)
    own = begin(of, THREE, NOW + 10)
    assert of.busy_for_ms(NOW + 20) == TIMEOUT - 10
    of.end(own, True, NOW + 20)
    assert of.busy_for_ms(NOW + 20) == TIMEOUT - 20
    assert of.busy_for_ms(NOW + TIMEOUT) == 0


def test_all_is_forgotten() -> None:
    of = connections()
    own = begin(of, TWO)
    of.end(begin(of, THREE), False, NOW)
    of.reset()
    assert of.take(own.request_id) is None
    assert of.busy_for_ms(NOW) == of.ready_in_ms(TWO, NOW) == of.ready_in_ms(THREE, NOW) == 0


def test_bootstrap_servers_in_turn() -> None:
    """One that has failed is not asked for a moment, then again."""
    of = connections()
    assert ready(of, NOW) == SERVERS[0]
    of.end(begin(of, SERVERS[0]), False, NOW)
    assert ready(of, NOW) == SERVERS[1]
    of.end(begin(of, SERVERS[1], NOW + 5), False, NOW + 5)
    assert ready(of, NOW + 5) is None
    assert of.bootstrap_ready_in_ms((), NOW + 5) == BACKOFF - 5
    assert ready(of, NOW + BACKOFF) == SERVERS[0]


def test_servers_that_are_of_no_use_are_asked_if_there_are_no_others() -> None:
    """The node itself, and the leader that does not answer. Kafka asks them as well."""
    of = connections()
    assert of.ready_bootstrap({SERVERS[0].address}, NOW) == SERVERS[1]
    assert of.ready_bootstrap({each.address for each in SERVERS}, NOW) == SERVERS[0]


def test_without_bootstrap_servers_there_is_nobody_to_ask() -> None:
    of = RaftRequestManager([], TIMES, NoChance())
    assert ready(of, NOW) is None
    assert of.bootstrap_ready_in_ms((), NOW) == float("inf")
