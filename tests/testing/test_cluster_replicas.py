"""Replicas in ``ottla.Cluster``: who leads and who is in sync while brokers are killed, paused, cut off and isolated."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

import ottla
from ottla.base.errors import ErrorCode
from ottla.testing.cluster import Cluster

from .helpers.cluster_calls import LONGER_THAN_A_SESSION, other_than, produce, until_other_controller, values

ALL = {1, 2, 3}
LONGER_THAN_A_LAG = 3.5


@pytest.fixture
def cluster() -> Iterator[Cluster]:
    """With a topic "t" that has a replica on each broker."""
    with ottla.Cluster() as running:
        running.create_topic("t")
        running.wait_in_sync("t")
        yield running


def leader_of(cluster: Cluster) -> int:
    leader = cluster.leader_of("t")
    assert leader is not None
    return leader


def leader_beside_the_controller(cluster: Cluster) -> int:
    leader = leader_of(cluster)
    return cluster.move_leader("t") if leader == cluster.controller() else leader


def test_every_broker_has_a_replica_and_any_of_them_may_lead(cluster: Cluster) -> None:
    assert cluster.isr_of("t") == ALL
    for broker in sorted(ALL - {leader_of(cluster)}):
        assert cluster.move_leader("t", to=broker) == broker == cluster.leader_of("t")
        assert produce(cluster, "t", b"%d" % broker) == ErrorCode.NONE
    assert cluster.move_leader("t") != broker
    assert cluster.isr_of("t") == ALL
    assert len(values(cluster, "t", 2)) == 2


def test_when_its_leader_is_killed_another_replica_leads_with_all_that_was_acknowledged(cluster: Cluster) -> None:
    killed = leader_of(cluster)
    assert produce(cluster, "t", b"before") == ErrorCode.NONE
    cluster.kill(killed)
    assert cluster.leader_of("t") == killed, "its session lasts"
    cluster.clock.advance(seconds=LONGER_THAN_A_SESSION)
    cluster.wait_in_sync("t")
    assert cluster.isr_of("t") == ALL - {killed}
    assert produce(cluster, "t", b"after") == ErrorCode.NONE
    cluster.restart(killed)
    cluster.wait_in_sync("t")
    assert cluster.isr_of("t") == ALL
    assert cluster.move_leader("t", to=killed) == killed
    assert values(cluster, "t", 2) == [b"before", b"after"]


def test_a_stopped_leader_hands_over_before_it_goes(cluster: Cluster) -> None:
    stopped = leader_of(cluster)
    cluster.brokers[stopped].stop()
    assert cluster.leader_of("t") in ALL - {stopped}
    assert cluster.isr_of("t") == ALL - {stopped}
    assert produce(cluster, "t", b"one") == ErrorCode.NONE
    cluster.brokers[stopped].start()
    cluster.wait_in_sync("t")
    assert cluster.isr_of("t") == ALL


def test_a_replica_cut_off_from_its_leader_is_out_of_sync_until_it_has_caught_up(cluster: Cluster) -> None:
    leader = leader_of(cluster)
    cut = other_than(cluster, leader, cluster.controller())
    cluster.cut(leader, cut)
    cluster.clock.advance(seconds=LONGER_THAN_A_LAG)
    assert produce(cluster, "t", b"one") == ErrorCode.NONE
    assert cluster.isr_of("t") == ALL - {cut}
    cluster.heal()
    cluster.wait_in_sync("t")
    assert cluster.isr_of("t") == ALL
    assert cluster.move_leader("t", to=cut) == cut
    assert values(cluster, "t") == [b"one"]


def test_an_isolated_leader_takes_records_that_are_gone_when_it_is_back(cluster: Cluster) -> None:
    """As in Kafka: with acks=1 it acknowledges them, with acks=all it cannot."""
    alone = leader_beside_the_controller(cluster)
    assert produce(cluster, "t", b"kept") == ErrorCode.NONE
    cluster.isolate(alone)
    assert produce(cluster, "t", b"lost", broker=alone, acks=1) == ErrorCode.NONE
    assert produce(cluster, "t", b"never", broker=alone, timeout_ms=50) == ErrorCode.REQUEST_TIMED_OUT
    cluster.clock.advance(seconds=LONGER_THAN_A_SESSION)
    cluster.wait_in_sync("t")
    assert produce(cluster, "t", b"kept, too") == ErrorCode.NONE
    cluster.heal()
    cluster.wait_in_sync("t")
    assert cluster.isr_of("t") == ALL
    assert cluster.move_leader("t", to=alone) == alone
    assert values(cluster, "t", 2) == [b"kept", b"kept, too"]


def test_while_its_leader_is_paused_another_replica_leads(cluster: Cluster) -> None:
    paused = leader_beside_the_controller(cluster)
    assert produce(cluster, "t", b"before") == ErrorCode.NONE
    cluster.pause(paused)
    cluster.clock.advance(seconds=LONGER_THAN_A_SESSION)
    cluster.wait_in_sync("t")
    assert cluster.isr_of("t") == ALL - {paused}
    assert produce(cluster, "t", b"after") == ErrorCode.NONE
    cluster.resume(paused)
    cluster.wait_in_sync("t")
    assert cluster.isr_of("t") == ALL
    assert values(cluster, "t", 2) == [b"before", b"after"]


def test_without_enough_in_sync_replicas_nothing_is_taken() -> None:
    with ottla.Cluster(properties={"min.insync.replicas": "2"}) as cluster:
        cluster.create_topic("t")
        cluster.wait_in_sync("t")
        controller = cluster.controller()
        assert controller is not None
        for broker in ALL - {controller}:
            cluster.kill(broker)
        cluster.clock.advance(seconds=LONGER_THAN_A_SESSION)
        cluster.wait_in_sync("t")
        assert cluster.isr_of("t") == {controller} == {cluster.leader_of("t")}
        assert produce(cluster, "t", b"refused") == ErrorCode.NOT_ENOUGH_REPLICAS


def test_the_last_replica_in_sync_is_waited_for(cluster: Cluster) -> None:
    controller = cluster.controller()
    assert controller is not None
    for broker in ALL - {controller}:
        cluster.kill(broker)
    cluster.clock.advance(seconds=LONGER_THAN_A_SESSION)
    cluster.wait_in_sync("t")
    assert produce(cluster, "t", b"only here") == ErrorCode.NONE
    cluster.kill(controller)
    other = other_than(cluster, controller)
    cluster.clock.advance(seconds=LONGER_THAN_A_SESSION)
    cluster.restart(other)
    assert until_other_controller(cluster, controller) == other
    assert cluster.leader_of("t") is None
    cluster.restart(controller)
    cluster.wait_in_sync("t")
    assert cluster.leader_of("t") == controller
    assert values(cluster, "t", 1) == [b"only here"]


def test_what_a_failed_folder_led_is_led_elsewhere_and_filled_again_when_it_is_replaced(tmp_path: Path) -> None:
    folders = tmp_path / "first", tmp_path / "second"
    own = {1: {"log.dirs": ",".join(map(str, folders))}}
    with ottla.Cluster(broker_properties=own) as cluster:
        cluster.create_topic("t", 2, configs={"segment.bytes": "1000"})
        cluster.wait_in_sync("t")
        for partition in range(2):
            if cluster.leader_of("t", partition) != 1:
                cluster.move_leader("t", partition, to=1)
        (failing,) = (folder for folder in folders if (folder / "t-0").is_dir())
        assert produce(cluster, "t", b"a" * 900) == ErrorCode.NONE
        failing.rename(tmp_path / "gone")  # the next segment cannot be made
        assert produce(cluster, "t", b"b" * 900) == ErrorCode.KAFKA_STORAGE_ERROR
        until_led_by_another(cluster, 1)
        cluster.records("t")  # the new leader knows that it leads
        assert produce(cluster, "t", b"c" * 900) == ErrorCode.NONE
        assert cluster.isr_of("t") == {2, 3}
        assert (cluster.leader_of("t", 1), cluster.isr_of("t", 1)) == (1, ALL)
        cluster.restart(1)  # which makes the folder again
        cluster.wait_in_sync("t")
        assert cluster.isr_of("t") == ALL
        assert (failing / "t-0").is_dir()
        cluster.move_leader("t", to=1)
        assert values(cluster, "t", 2) == [b"a" * 900, b"c" * 900]


def until_led_by_another(cluster: Cluster, than: int) -> None:
    for _ in range(1000):
        if cluster.leader_of("t") not in (than, None):
            return
        cluster.clock.advance(seconds=0.01)
    raise AssertionError("no other broker leads")
