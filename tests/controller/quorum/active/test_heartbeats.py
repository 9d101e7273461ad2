"""What a broker may do next, and whose session is over: the cases of Kafka's BrokerHeartbeatManagerTest."""

from __future__ import annotations

from typing import Any

import pytest

from ottla.base.errors import ErrorCode, KafkaError
from ottla.controller.quorum.active.heartbeats import BrokerControlState, BrokerHeartbeats
from ottla.wire.messages.broker_heartbeat import BrokerHeartbeatRequest

from .helpers.world import World

FENCED, UNFENCED = BrokerControlState.FENCED, BrokerControlState.UNFENCED
LEAVING, GONE = BrokerControlState.CONTROLLED_SHUTDOWN, BrokerControlState.SHUTDOWN_NOW


def test_a_session_lasts_from_the_last_contact() -> None:
    heartbeats = BrokerHeartbeats(10)
    heartbeats.track(0, 100, now_ms=0)
    heartbeats.track(1, 101, now_ms=5)
    assert heartbeats.has_session(0, 100, 5) and heartbeats.has_session(1, 101, 5)
    assert not heartbeats.has_session(0, 99, 5), "another life of the broker"
    assert not heartbeats.has_session(3, 100, 5)
    assert heartbeats.next_expiry() == 11
    assert heartbeats.has_session(0, 100, 10)
    assert heartbeats.remove_expired(10) is None
    assert not heartbeats.has_session(0, 100, 11)
    assert heartbeats.has_session(1, 101, 11)
    assert heartbeats.remove_expired(11) == (0, 100)
    assert heartbeats.remove_expired(11) is None
    assert heartbeats.next_expiry() == 16
    assert heartbeats.remove_expired(16) == (1, 101)
    assert heartbeats.next_expiry() is None


def known_brokers() -> BrokerHeartbeats:
    """0 and 4 are fenced, 1 to 3 are not, 5 is in controlled shutdown since offset 99."""
    heartbeats = BrokerHeartbeats(10)
    for broker_id in range(6):
        heartbeats.register(broker_id, is_fenced=True)
    for broker_id, is_fenced, offset in (
        (0, True, 100),
        (1, False, 98),
        (2, False, 100),
        (3, False, 100),
        (5, False, 99),
    ):
        heartbeats.touch(broker_id, is_fenced=is_fenced, metadata_offset=offset)
    heartbeats.begin_shutdown(5, 99)
    return heartbeats


NEXT_STATES: dict[str, tuple[int, dict[str, Any], bool, BrokerControlState]] = {
    "fenced, shuts down": (0, {"want_shut_down": True}, False, GONE),
    "fenced, has caught up": (0, {"current_metadata_offset": 100}, False, UNFENCED),
    "fenced, has not caught up": (0, {"current_metadata_offset": 50}, False, FENCED),
    "fenced, wants to stay so": (0, {"want_fence": True, "current_metadata_offset": 100}, False, FENCED),
    "unfenced, goes on": (1, {}, False, UNFENCED),
    "unfenced, wants to be fenced": (1, {"want_fence": True}, True, FENCED),
    "unfenced, wants to be fenced and to shut down": (1, {"want_fence": True, "want_shut_down": True}, True, GONE),
    "unfenced, shuts down and leads": (1, {"want_shut_down": True}, True, LEAVING),
    "unfenced, shuts down and leads nothing": (1, {"want_shut_down": True}, False, GONE),
    "leaving, leads still": (5, {"want_shut_down": True}, True, LEAVING),
    "leaving, one does not know yet": (5, {"want_shut_down": True}, False, LEAVING),
}


@pytest.mark.parametrize(("broker_id", "wishes", "leads", "expected"), NEXT_STATES.values(), ids=NEXT_STATES)
def test_the_next_state(broker_id: int, wishes: dict[str, Any], leads: bool, expected: BrokerControlState) -> None:
    request = BrokerHeartbeatRequest(broker_id=broker_id, **wishes)
    state, following = known_brokers().next_state(request, 100, has_leaderships=leads)
    assert following is expected
    assert state is {0: FENCED, 1: UNFENCED, 5: LEAVING}[broker_id]


def test_a_shutdown_ends_when_all_active_brokers_know_of_it() -> None:
    heartbeats = known_brokers()
    request = BrokerHeartbeatRequest(broker_id=5, want_shut_down=True)
    assert heartbeats.lowest_active_offset() == 98
    assert heartbeats.next_state(request, 100, has_leaderships=False) == (LEAVING, LEAVING)
    heartbeats.touch(1, is_fenced=True, metadata_offset=98)
    assert heartbeats.lowest_active_offset() == 100, "who is fenced is not waited for"
    assert heartbeats.next_state(request, 100, has_leaderships=False) == (LEAVING, GONE)
    assert heartbeats.next_state(request, 100, has_leaderships=True) == (LEAVING, LEAVING)
    for broker_id in (2, 3):
        heartbeats.touch(broker_id, is_fenced=True, metadata_offset=0)
    assert heartbeats.next_state(request, 100, has_leaderships=False) == (LEAVING, GONE), "nobody is left to know"


def test_the_first_records_of_a_shutdown_count() -> None:
    heartbeats = known_brokers()
    heartbeats.begin_shutdown(5, 120)
    heartbeats.touch(1, is_fenced=False, metadata_offset=99)
    request = BrokerHeartbeatRequest(broker_id=5, want_shut_down=True)
    assert heartbeats.next_state(request, 100, has_leaderships=False) == (LEAVING, GONE), "99 is enough"


def test_who_is_fenced_has_left_controlled_shutdown() -> None:
    heartbeats = known_brokers()
    heartbeats.touch(5, is_fenced=True, metadata_offset=99)
    request = BrokerHeartbeatRequest(broker_id=5, want_shut_down=True)
    assert heartbeats.next_state(request, 100, has_leaderships=True) == (FENCED, GONE)
    with pytest.raises(AssertionError):
        heartbeats.begin_shutdown(4, 100)


def test_a_stale_epoch_is_refused_and_tells_nothing() -> None:
    world = World()
    world.start(1)
    offset = world.log.next_offset
    for broker_id, epoch in ((1, 0), (2, 1)):
        with pytest.raises(KafkaError) as refused:
            request = BrokerHeartbeatRequest(broker_id=broker_id, broker_epoch=epoch)
            world.called(lambda respond, request=request: world.controller.heartbeat(request, world.now_ms, respond))
        assert refused.value.code is ErrorCode.STALE_BROKER_EPOCH
    world.pass_time(world.settings.session_timeout_ms)
    world.heartbeat(1)
    world.pass_time(1)
    assert world.log.next_offset == offset, "the sessions of unknown brokers end without a record"


def test_brokers_that_die_together_are_fenced_one_after_the_other() -> None:
    world = World(has_elr=False)
    world.start(1, 2, 3)
    world.topic("t", (1, 2, 3))
    world.taken()
    world.kill(1, 2)
    batches = world.taken()
    assert [[record["is"] for record in batch] for batch in batches] == [
        ["PartitionChange", "BrokerRegistrationChange"]
    ] * 2
    assert [batch[0]["isr"] for batch in batches] == [[2, 3], [3]]
    assert [batch[0]["leader"] for batch in batches] == [2, 3], "the second is fenced in the knowledge of the first"


def test_what_is_due_next() -> None:
    world = World(session_timeout_ms=1_000, imbalance_check_interval_ms=5_000, unclean_election_interval_ms=7_000)
    assert world.controller.tick(0) == 5_000
    world.start(1)
    assert world.controller.tick(0) == 1_001, "the end of the session"
    world.now_ms = 600
    world.heartbeat(1)
    assert world.controller.tick(600) == 1_601
    assert world.controller.tick(1_601) == 5_000
    assert world.broker(1).is_fenced
