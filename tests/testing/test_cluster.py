"""What a test may do to ``ottla.Cluster``: brokers die, stop, pause, are cut off, come back."""

from __future__ import annotations

import contextlib
import tempfile
import threading
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path

import pytest
from kafka import KafkaAdminClient
from kafka.admin import NewPartitions
from kafka.errors import PolicyViolationError

import ottla
from ottla.base.errors import ErrorCode, KafkaError
from ottla.base.settings import SettingError
from ottla.broker.server import BrokerFailedError, StartError
from ottla.compat_tests.wire_client import Connection
from ottla.testing.cluster import Cluster

from .helpers.cluster_calls import (
    LONGER_THAN_A_SESSION,
    live,
    make_topic_at,
    metadata,
    other_than,
    produce,
    until_ended,
    until_other_controller,
    values,
)

ALL = {1, 2, 3}
CLEAN_MARK = ".kafka_cleanshutdown"


@pytest.fixture(scope="module")
def cluster() -> Iterator[Cluster]:
    """For the tests that leave it as it was."""
    with ottla.Cluster() as running:
        yield running


def test_clients_are_told_of_all_brokers_by_each(cluster: Cluster) -> None:
    assert sorted(cluster.brokers) == [1, 2, 3]
    addresses = cluster.bootstrap_servers.split(",")
    assert [broker.bootstrap_servers for broker in cluster.brokers.values()] == addresses
    for broker in cluster.brokers:
        told = metadata(cluster, broker)
        assert {each.node_id: f"{each.host}:{each.port}" for each in told.brokers} == dict(enumerate(addresses, 1))
        assert told.controller_id == cluster.controller()
        assert cluster.brokers[broker].data_dir.name == f"broker-{broker}"


def test_a_topic_is_made_written_read_and_deleted(cluster: Cluster) -> None:
    cluster.create_topic("spread", partitions=3, replication_factor=1, configs={"retention.ms": "1000000"})
    leaders = {cluster.leader_of("spread", partition) for partition in range(3)}
    assert leaders == {1, 2, 3}
    assert all(
        cluster.isr_of("spread", partition) == {cluster.leader_of("spread", partition)} for partition in range(3)
    )
    cluster.wait_in_sync("spread")
    assert produce(cluster, "spread", b"one") == 0
    assert values(cluster, "spread", 1) == [b"one"]
    with pytest.raises(KafkaError, match="TOPIC_ALREADY_EXISTS"):
        cluster.create_topic("spread", replication_factor=1)
    cluster.delete_topic("spread")
    with pytest.raises(KafkaError, match="there is no topic spread"):
        cluster.leader_of("spread")
    cluster.create_topic("another", replication_factor=1)
    with pytest.raises(KafkaError, match=r"there is no topic spread; there are: .*another"):
        cluster.records("spread")


def test_what_cannot_be_is_told_to_the_caller(cluster: Cluster) -> None:
    with pytest.raises(KafkaError, match="INVALID_REPLICATION_FACTOR"):
        cluster.create_topic("many", replication_factor=4)
    cluster.create_topic("small", replication_factor=1)
    with pytest.raises(KafkaError, match="small-1 does not exist"):
        cluster.isr_of("small", 1)
    with pytest.raises(KafkaError, match="no other in-sync replica"):
        cluster.move_leader("small")
    with pytest.raises(KafkaError, match="ELIGIBLE_LEADERS_NOT_AVAILABLE"):
        cluster.move_leader("small", to=other_than(cluster, cluster.leader_of("small")))
    with pytest.raises(TimeoutError, match="0 committed records, not 1"):
        cluster.records("small", 1, timeout=0.02)
    with pytest.raises(ValueError, match="one broker"):
        ottla.Cluster(0)
    with pytest.raises(KafkaError, match="the cluster is not running"):
        ottla.Cluster().controller()
    with pytest.raises(StartError, match="broker 1 is running"):
        cluster.brokers[1].start()


def test_faults_and_recorded_requests_are_those_of_one_broker(cluster: Cluster) -> None:
    first, second = cluster.brokers[1], cluster.brokers[2]
    with first.requests.recording(), second.faults.add(api="Metadata", disconnect=True) as fault:
        metadata(cluster, 1)
        metadata(cluster, 3)
        with pytest.raises(EOFError):
            metadata(cluster, 2)
    assert fault.hits == 1
    assert len(first.requests.where(api="Metadata")) == 1


def test_what_only_a_controller_does_is_sent_to_the_broker_that_clients_are_told_of(cluster: Cluster) -> None:
    """Whichever broker a client asks first."""
    controller = cluster.controller()
    assert controller is not None
    other = cluster.brokers[other_than(cluster, controller)]
    with closing(KafkaAdminClient(bootstrap_servers=other.bootstrap_servers)) as client:
        with cluster.brokers[controller].faults.add(api="CreatePartitions", error="POLICY_VIOLATION") as fault:
            cluster.create_topic("grows", replication_factor=1)
            with pytest.raises(PolicyViolationError):
                client.create_partitions({"grows": NewPartitions(2)})
        assert fault.hits == 1
        client.create_partitions({"grows": NewPartitions(2)})
    cluster.wait_in_sync("grows")
    assert cluster.leader_of("grows", 1) in ALL


def test_a_killed_broker_comes_back_with_what_it_had_written() -> None:
    with ottla.Cluster() as cluster:
        broker = other_than(cluster, cluster.controller())
        topic = make_topic_at(cluster, broker)
        assert produce(cluster, topic, b"one") == 0
        folder = cluster.brokers[broker].data_dir
        with contextlib.closing(Connection(cluster.brokers[broker].bootstrap_servers)) as client:
            cluster.kill(broker)
            assert not cluster.brokers[broker].is_running
            with pytest.raises(EOFError):
                client.receive_frame()
        with pytest.raises(ConnectionRefusedError):
            metadata(cluster, broker)
        assert not (folder / CLEAN_MARK).exists()
        cluster.kill(broker)  # as dead as before
        cluster.clock.advance(seconds=LONGER_THAN_A_SESSION)
        cluster.restart(broker)
        cluster.wait_in_sync(topic)
        assert values(cluster, topic) == [b"one"]
        assert produce(cluster, topic, b"two") == 0
        assert values(cluster, topic, 2) == [b"one", b"two"]


def test_a_session_left_by_a_killed_controller_has_to_run_out() -> None:
    with ottla.Cluster() as cluster:
        killed = cluster.controller()
        assert killed is not None
        cluster.kill(killed)
        assert cluster.controller() == killed
        now = until_other_controller(cluster, killed)
        cluster.create_topic("later", replication_factor=1)
        assert live(cluster, now) == set(cluster.brokers) - {killed}
        cluster.restart(killed)
        assert all(live(cluster, broker) == set(cluster.brokers) for broker in cluster.brokers)
        assert cluster.controller() == now


def test_a_broker_that_is_stopped_leaves_the_cluster_at_once_and_its_folder_clean() -> None:
    with ottla.Cluster() as cluster:
        stopped = cluster.controller()
        assert stopped is not None
        broker = cluster.brokers[stopped]
        topic = make_topic_at(cluster, stopped)
        assert produce(cluster, topic, b"one") == 0
        broker.faults.add(api="Metadata", nth=1_000, disconnect=True, required=False)
        broker.stop()
        assert (broker.data_dir / CLEAN_MARK).exists()
        assert cluster.controller() != stopped
        broker.start()
        cluster.wait_in_sync(topic)
        assert values(cluster, topic) == [b"one"]
        with broker.faults.add(api="Metadata", disconnect=True), pytest.raises(EOFError):
            metadata(cluster, stopped)


def test_a_paused_broker_answers_nobody_and_its_session_ends() -> None:
    with ottla.Cluster() as cluster:
        paused = cluster.controller()
        assert paused is not None
        cluster.pause(paused)
        assert cluster.brokers[paused].is_running
        with pytest.raises(TimeoutError):
            metadata(cluster, paused, timeout=0.1)
        now = until_other_controller(cluster, paused)
        assert paused not in live(cluster, now)
        cluster.resume(paused)
        cluster.brokers[paused].stop()
        cluster.pause(now)
        cluster.restart(now)  # which a paused one hears
        assert metadata(cluster, now).controller_id == cluster.controller()


def test_an_isolated_broker_leaves_the_cluster_and_still_answers_clients() -> None:
    with ottla.Cluster() as cluster:
        alone = cluster.controller()
        assert alone is not None
        cluster.isolate(alone)
        now = until_other_controller(cluster, alone)
        cluster.create_topic("later", replication_factor=1)
        assert alone not in live(cluster, now)
        assert live(cluster, alone) == set(cluster.brokers)
        cluster.heal()
        cluster.wait_in_sync("later")  # which it is told of, too
        assert metadata(cluster, alone).controller_id == cluster.controller()


def test_brokers_that_are_cut_off_stay_in_the_cluster_and_hear_of_its_changes() -> None:
    with ottla.Cluster() as cluster:
        one, other = 1, 2
        cluster.cut(one, other)
        cluster.clock.advance(seconds=LONGER_THAN_A_SESSION)
        cluster.create_topic("t", 3, 1)
        for broker in cluster.brokers:
            told = metadata(cluster, broker)
            assert {each.node_id for each in told.brokers} == set(cluster.brokers)
            assert any(topic.name == "t" for topic in told.topics)
        cluster.heal()


def test_brokers_that_are_alive_stay_alive_while_the_clock_is_advanced() -> None:
    """Each keeps what it leads: a session that ended would have brought the next leader epoch."""
    with ottla.Cluster() as cluster:
        cluster.create_topic("t", 3)
        cluster.wait_in_sync("t")
        before = leaders(cluster)
        cluster.clock.advance(days=30)
        assert leaders(cluster) == before
        cluster.kill(1)
        cluster.clock.advance(days=30)
        assert live(cluster, 2) == {2, 3}


def leaders(cluster: Cluster) -> dict[int, tuple[int, int]]:
    (told,) = [topic for topic in metadata(cluster, 2).topics if topic.name == "t"]
    return {each.partition_index: (each.leader_id, each.leader_epoch) for each in told.partitions}


def test_a_property_of_zookeeper_is_refused_with_the_one_that_took_its_place() -> None:
    with pytest.raises(SettingError, match=r"zookeeper.session.timeout.ms.*broker\.session\.timeout\.ms"):
        ottla.Cluster(properties={"zookeeper.session.timeout.ms": "1000"})


def test_one_clock_is_for_all() -> None:
    with ottla.Cluster(brokers=2) as cluster:
        cluster.create_topic("t", replication_factor=1, partitions=2, configs={"retention.ms": "3600000"})
        assert produce(cluster, "t", b"old") == 0
        before = cluster.clock.now_ms()
        cluster.clock.advance(minutes=30)
        assert cluster.clock.now_ms() - before >= 30 * 60_000
        assert values(cluster, "t") == [b"old"]
        cluster.clock.advance(minutes=31)
        assert values(cluster, "t") == []
        assert live(cluster, 1) == {1, 2}


def test_properties_are_those_of_every_broker() -> None:
    with ottla.Cluster(2, properties={"num.partitions": "4"}) as cluster:
        cluster.create_topic("t", partitions=-1, replication_factor=1)
        assert cluster.leader_of("t", 3) in (1, 2)


def test_a_cluster_that_cannot_start_says_why_and_leaves_nothing(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))
    before = threading.enumerate()
    with pytest.raises(StartError, match=r"inter\.broker\.listener\.name"):
        ottla.Cluster(properties={"inter.broker.listener.name": "UNKNOWN"}).start()
    assert "ottla-cluster" not in {thread.name for thread in threading.enumerate() if thread not in before}
    assert not list(tmp_path.iterdir())


def test_a_broker_that_ends_by_itself_is_told_of_at_the_end(tmp_path: Path) -> None:
    cluster = ottla.Cluster().start()
    broker = cluster.brokers[2]
    topic = make_topic_at(cluster, 2)
    broker.data_dir.rename(tmp_path / "gone")
    broker.data_dir.write_bytes(b"")  # not a folder any more, and the broker's only one
    assert produce(cluster, topic, b"lost") == ErrorCode.KAFKA_STORAGE_ERROR
    until_ended(cluster, 2)
    with pytest.raises(BrokerFailedError, match="broker-2"):
        cluster.stop()
    assert not broker.data_dir.parent.exists()
