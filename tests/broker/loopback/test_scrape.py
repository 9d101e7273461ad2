"""A scrape under load from a stock client, read by prometheus-client's own parser: the values are what was done."""

from __future__ import annotations

import threading
import urllib.request
from collections.abc import Callable, Iterator

import pytest
from kafka import KafkaConsumer, KafkaProducer, TopicPartition
from kafka.structs import OffsetAndMetadata
from prometheus_client.parser import text_string_to_metric_families

import ottla
from ottla.broker.metrics.families import FAMILIES
from ottla.broker.metrics.families.family import MetricType
from ottla.compat_tests.wire_client import Connection
from ottla.wire.api_keys import ApiKey
from ottla.wire.headers import encode_request_header
from ottla.wire.messages.consumer_group_heartbeat import ConsumerGroupHeartbeatRequest
from ottla.wire.messages.create_topics import CreatableTopic, CreateTopicsRequest
from ottla.wire.messages.fetch import FetchPartition, FetchRequest, FetchTopic
from ottla.wire.messages.list_groups import ListGroupsRequest
from ottla.wire.messages.produce import PartitionProduceData, ProduceRequest, TopicProduceData
from ottla.wire.records import Record, build_batch

STATES = ("Empty", "Assigning", "Reconciling", "Stable", "Dead")
_REQUEST_TIMES = "kafka_network_requestmetrics_"


class Scrape:
    """What ``/metrics`` said at one time."""

    def __init__(self, address: str) -> None:
        with urllib.request.urlopen(f"http://{address}/metrics", timeout=20) as response:
            self.text = response.read().decode()
        self.families = {family.name: family for family in text_string_to_metric_families(self.text)}
        self._samples = {
            (sample.name, frozenset(sample.labels.items())): sample.value
            for family in self.families.values()
            for sample in family.samples
        }

    def value(self, name: str, **labels: str) -> float:
        """0 where there is no such sample."""
        return self._samples.get((name, frozenset(labels.items())), 0.0)

    def sum(self, name: str, **labels: str) -> float:
        """Over all samples that have these labels."""
        return sum(
            value
            for (found, its_labels), value in self._samples.items()
            if found == name and labels.items() <= dict(its_labels).items()
        )

    def counters(self) -> dict[tuple[str, frozenset[tuple[str, str]]], float]:
        """What never goes back, by its family's type: a gauge's name may end in ``_count``, too."""
        return {
            (sample.name, frozenset(sample.labels.items())): sample.value
            for family in self.families.values()
            if family.type in ("counter", "histogram", "summary")
            for sample in family.samples
        }


@pytest.fixture(scope="module")
def broker() -> Iterator[ottla.Broker]:
    properties = {"metrics.listener": "127.0.0.1:0", "group.initial.rebalance.delay.ms": "0", "num.partitions": "2"}
    with ottla.Broker(properties=properties) as running:
        yield running


@pytest.fixture
def scrape(broker: ottla.Broker) -> Callable[[], Scrape]:
    assert broker.metrics_address is not None
    address = broker.metrics_address
    return lambda: Scrape(address)


@pytest.fixture
def client(broker: ottla.Broker) -> Iterator[Connection]:
    made = Connection(broker.bootstrap_servers)
    yield made
    made.close()


def create(client: Connection, name: str, partitions: int = 1) -> None:
    topic = CreatableTopic(name=name, num_partitions=partitions, replication_factor=1)
    client.call(CreateTopicsRequest(topics=[topic], timeout_ms=10_000), 5)


def fetch(name: str, max_wait_ms: int, partitions: int = 1) -> FetchRequest:
    asked = [FetchPartition(partition=number, partition_max_bytes=1 << 20) for number in range(partitions)]
    return FetchRequest(
        max_wait_ms=max_wait_ms,
        min_bytes=1,
        max_bytes=1 << 20,
        session_epoch=-1,
        topics=[FetchTopic(topic=name, partitions=asked)],
    )


def bytes_on_disk(broker: ottla.Broker, topic: str) -> int:
    return sum(file.stat().st_size for file in broker.data_dir.glob(f"{topic}-*/*.log"))


def test_every_family_is_there_with_its_kind(scrape: Callable[[], Scrape]) -> None:
    found = scrape().families
    for family in FAMILIES:
        name = family.name.removesuffix("_total")
        assert name in found, family.name
        assert found[name].type == family.kind.value
        assert found[name].documentation == family.meaning
        assert family.name.endswith("_total") == (family.kind is MetricType.COUNTER)
    assert {"process_resident_memory_bytes", "process_cpu_seconds", "python_gc_collections"} <= found.keys()


def test_bytes_and_messages_are_those_produced(broker: ottla.Broker, scrape: Callable[[], Scrape]) -> None:
    producer = KafkaProducer(bootstrap_servers=broker.bootstrap_servers)
    for number in range(500):
        producer.send("in", b"v" * number)
    producer.close()
    after = scrape()
    assert after.value("kafka_server_brokertopicmetrics_messagesin_total", topic="in") == 500
    size = bytes_on_disk(broker, "in")
    assert size > 500 * 499 / 2
    assert after.value("kafka_server_brokertopicmetrics_bytesin_total", topic="in") == size
    assert after.sum("kafka_log_log_size", topic="in") == size
    assert after.sum("kafka_log_log_logendoffset", topic="in") == 500
    assert after.sum("kafka_log_log_logstartoffset", topic="in") == 0
    assert after.sum("kafka_log_log_numlogsegments", topic="in") == len(list(broker.data_dir.glob("in-*/*.log")))


def test_bytes_out_are_those_fetched(broker: ottla.Broker, client: Connection, scrape: Callable[[], Scrape]) -> None:
    producer = KafkaProducer(bootstrap_servers=broker.bootstrap_servers)
    for number in range(100):
        producer.send("out", b"v" * number, partition=number % 2)
    producer.close()
    response = client.call(fetch("out", 100, partitions=2), 11)
    got = sum(len(partition.records) for partition in response.responses[0].partitions)
    assert got == bytes_on_disk(broker, "out")
    assert scrape().value("kafka_server_brokertopicmetrics_bytesout_total", topic="out") == got


def test_lag_is_what_was_not_committed(broker: ottla.Broker, scrape: Callable[[], Scrape]) -> None:
    producer = KafkaProducer(bootstrap_servers=broker.bootstrap_servers)
    for _ in range(100):
        producer.send("lagging", b"v", partition=1)
    producer.close()
    consumer = KafkaConsumer(bootstrap_servers=broker.bootstrap_servers, group_id="slow", enable_auto_commit=False)
    partition = TopicPartition("lagging", 1)
    consumer.assign([partition])
    consumer.commit({partition: OffsetAndMetadata(30, "", -1)})
    labels = {"consumergroup": "slow", "topic": "lagging", "partition": "1"}
    before = scrape()
    assert before.value("kafka_consumergroup_current_offset", **labels) == 30
    assert before.value("kafka_consumergroup_lag", **labels) == 70
    consumer.commit({partition: OffsetAndMetadata(100, "", -1)})
    after = scrape()
    assert after.value("kafka_consumergroup_lag", **labels) == 0
    groups = "kafka_coordinator_group_groupmetadatamanager_num"
    states = ("empty", "preparingrebalance", "completingrebalance", "stable", "dead")
    assert after.value(f"{groups}groups") == sum(after.value(f"{groups}groups{state}") for state in states) > 0
    assert after.value(f"{groups}groupsempty") > 0, "a consumer that assigns itself partitions is no member"
    assert after.value(f"{groups}offsets") >= 1
    assert after.value("kafka_consumergroup_members", consumergroup="slow") == 0
    consumer.close()


def test_requests_are_counted_by_api_and_version(client: Connection, scrape: Callable[[], Scrape]) -> None:
    before = scrape()
    for version in (3, 3, 3, 4):
        client.call(ListGroupsRequest(), version)
    after = scrape()

    def more(name: str, **labels: str) -> float:
        return after.value(name, **labels) - before.value(name, **labels)

    assert more("kafka_network_requestmetrics_requests_total", request="ListGroups", version="3") == 3
    assert more("kafka_network_requestmetrics_requests_total", request="ListGroups", version="4") == 1
    for times in ("totaltimems", "localtimems", "remotetimems"):
        assert more(f"{_REQUEST_TIMES}{times}_count", request="ListGroups") == 4
        assert more(f"{_REQUEST_TIMES}{times}_bucket", request="ListGroups", le="+Inf") == 4
    total, local = (
        more(f"{_REQUEST_TIMES}{times}_sum", request="ListGroups") for times in ("totaltimems", "localtimems")
    )
    assert total == local > 0
    assert more(f"{_REQUEST_TIMES}remotetimems_sum", request="ListGroups") == 0


def test_a_version_of_api_versions_that_is_not_served_is_not_counted(
    client: Connection, scrape: Callable[[], Scrape]
) -> None:
    """It is answered anyway, and is the first request of a client that is newer than the broker."""
    before = scrape().sum("kafka_network_requestmetrics_requests_total")
    client.send_frame(encode_request_header(ApiKey.API_VERSIONS, 99, 1, "newer"))
    client.receive_frame()
    assert scrape().sum("kafka_network_requestmetrics_requests_total") == before
    client.call(ListGroupsRequest(), 3)
    assert scrape().sum("kafka_network_requestmetrics_requests_total") == before + 1


def test_errors_are_counted_by_code(client: Connection, scrape: Callable[[], Scrape]) -> None:
    labels = {"request": "Produce", "error": "UNKNOWN_TOPIC_OR_PARTITION"}
    before = scrape().value("kafka_network_requestmetrics_errors_total", **labels)
    records = bytes(build_batch([Record(0, 1, None, b"v", [])]))
    data = [PartitionProduceData(index=number, records=records) for number in range(3)]
    client.call(ProduceRequest(acks=1, topic_data=[TopicProduceData(name="nowhere", partition_data=data)]), 7)
    assert scrape().value("kafka_network_requestmetrics_errors_total", **labels) - before == 3


def test_errors_of_fetches_are_counted_too(client: Connection, scrape: Callable[[], Scrape]) -> None:
    errors = "kafka_network_requestmetrics_errors_total"
    unknown = {"request": "Fetch", "error": "UNKNOWN_TOPIC_OR_PARTITION"}
    session = {"request": "Fetch", "error": "FETCH_SESSION_ID_NOT_FOUND"}
    before = scrape()
    client.call(fetch("nowhere", 0, partitions=2), 11)
    client.call(FetchRequest(session_id=12345, session_epoch=1), 11)
    after = scrape()
    assert after.value(errors, **unknown) - before.value(errors, **unknown) == 2
    assert after.value(errors, **session) - before.value(errors, **session) == 1


def test_a_fetch_that_waits_on_many_partitions_is_one(client: Connection, scrape: Callable[[], Scrape]) -> None:
    create(client, "quiet", partitions=5)
    client.send(fetch("quiet", 60_000, partitions=5), 11)
    waiting = 0.0
    while not waiting:
        waiting = scrape().value("kafka_server_delayedoperationpurgatory_purgatorysize", delayedOperation="Fetch")
    assert waiting == 1


def test_the_time_a_fetch_waited_is_remote(client: Connection, scrape: Callable[[], Scrape]) -> None:
    create(client, "silent")
    before = scrape()
    client.call(fetch("silent", 300), 11)
    after = scrape()
    total, local, remote = (
        after.value(f"{_REQUEST_TIMES}{times}_sum", request="Fetch")
        - before.value(f"{_REQUEST_TIMES}{times}_sum", request="Fetch")
        for times in ("totaltimems", "localtimems", "remotetimems")
    )
    assert remote >= 299  # the broker keeps the request for so long, by its own clock
    assert total == pytest.approx(local + remote)
    assert 0 < local < remote


def test_requests_and_refused_bytes_are_counted_by_topic(client: Connection, scrape: Callable[[], Scrape]) -> None:
    create(client, "judged", partitions=2)
    before = scrape()
    good = bytes(build_batch([Record(0, 1, None, b"v", [])]))
    large = bytes(build_batch([Record(0, 1, None, b"v" * 1_100_000, [])]))
    invalid = bytes(build_batch([Record(0, 10**16, None, b"v", [])]))  # from a far future
    for records in (good, large, invalid):
        data = [PartitionProduceData(index=number, records=records) for number in range(2)]
        client.call(ProduceRequest(acks=1, topic_data=[TopicProduceData(name="judged", partition_data=data)]), 7)
    client.call(fetch("judged", 0, partitions=2), 11)
    after = scrape()

    def more(name: str, **labels: str) -> float:
        name = f"kafka_server_brokertopicmetrics_{name}_total"
        return after.value(name, **labels) - before.value(name, **labels)

    for labels in ({"topic": "judged"}, {}):
        assert more("totalproducerequests", **labels) == 6
        assert more("failedproducerequests", **labels) == 2
        assert more("bytesrejected", **labels) == 2 * len(large)
        assert more("totalfetchrequests", **labels) >= 2
        assert more("failedfetchrequests", **labels) == 0
        assert more("bytesin", **labels) == more("bytesout", **labels) == 2 * len(good)


def test_the_sum_of_all_topics_keeps_those_that_were_deleted(
    broker: ottla.Broker, client: Connection, scrape: Callable[[], Scrape]
) -> None:
    name = "kafka_server_brokertopicmetrics_messagesin_total"
    create(client, "short-lived")
    records = bytes(build_batch([Record(0, 1, None, b"v", [])]))
    data = [PartitionProduceData(index=0, records=records)]
    client.call(ProduceRequest(acks=1, topic_data=[TopicProduceData(name="short-lived", partition_data=data)]), 7)
    before = scrape()
    assert before.value(name, topic="short-lived") == 1
    broker.delete_topic("short-lived")
    after = scrape()
    assert after.value(name, topic="short-lived") == 0
    assert after.value(name) == before.value(name)


def test_what_kind_of_broker_it_is_and_how_idle(broker: ottla.Broker, scrape: Callable[[], Scrape]) -> None:
    found = scrape()
    assert found.value("kafka_server_kafkaserver_brokerstate") == 3
    assert found.sum("ottla_build_info", version=ottla.__version__) == 1
    for name in (
        "kafka_server_kafkarequesthandlerpool_requesthandleravgidle_percent",
        "kafka_network_socketserver_networkprocessoravgidle_percent",
    ):
        assert 0 <= found.value(name) <= 1
    folder, metadata = str(broker.data_dir), found.sum("kafka_log_log_size", topic="__cluster_metadata")
    logs = found.sum("kafka_log_log_size") - metadata
    assert metadata > 0
    assert found.value("ottla_log_folder_size_bytes", logDirectory=folder) == logs
    assert ("kafka_log_logmanager_logdirectoryoffline", frozenset({("logDirectory", folder)})) in found._samples


def test_flushes_are_counted(broker: ottla.Broker, scrape: Callable[[], Scrape]) -> None:
    broker.create_topic("flushed", configs={"flush.messages": "1"})
    name = "kafka_log_logflushstats_logflushrateandtimems"
    before = scrape()
    producer = KafkaProducer(bootstrap_servers=broker.bootstrap_servers)
    producer.send("flushed", b"v").get(timeout=30)
    producer.close()
    after = scrape()
    assert after.value(f"{name}_count") > before.value(f"{name}_count")
    assert after.value(f"{name}_sum") > before.value(f"{name}_sum")


def test_what_a_leader_knows_of_its_partitions(client: Connection, scrape: Callable[[], Scrape]) -> None:
    create(client, "led", partitions=2)
    data = [PartitionProduceData(index=1, records=bytes(build_batch([Record(0, 1, None, b"v", [])])))]
    client.call(ProduceRequest(acks=1, topic_data=[TopicProduceData(name="led", partition_data=data)]), 7)
    found, labels = scrape(), {"topic": "led", "partition": "1"}
    partition = "kafka_cluster_partition_"
    assert found.value(f"{partition}replicascount", **labels) == 1
    assert found.value(f"{partition}insyncreplicascount", **labels) == 1
    assert found.value(f"{partition}underreplicated", **labels) == found.value(f"{partition}underminisr", **labels) == 0
    assert found.value(f"{partition}atminisr", **labels) == 1
    assert found.value(f"{partition}laststableoffsetlag", **labels) == 0
    assert found.value("kafka_topic_partition_current_offset", **labels) == 1
    assert found.value("kafka_topic_partitions", topic="led") == 2


def test_partitions_topics_and_the_controller(client: Connection, scrape: Callable[[], Scrape]) -> None:
    before = scrape()
    create(client, "three", partitions=3)
    after = scrape()
    for name in (
        "kafka_server_replicamanager_partitioncount",
        "kafka_server_replicamanager_leadercount",
        "kafka_controller_kafkacontroller_globalpartitioncount",
    ):
        assert after.value(name) - before.value(name) == 3
    topics = "kafka_controller_kafkacontroller_globaltopiccount"
    assert after.value(topics) - before.value(topics) == 1
    assert after.value("kafka_controller_kafkacontroller_activecontrollercount") == 1
    for name in (
        "kafka_controller_kafkacontroller_offlinepartitionscount",
        "kafka_server_replicamanager_underreplicatedpartitions",
        "kafka_server_replicamanager_underminisrpartitioncount",
        "kafka_server_replicamanager_offlinereplicacount",
        "kafka_log_logmanager_offlinelogdirectorycount",
    ):
        assert (name, frozenset()) in after._samples
        assert after.value(name) == 0


def test_connections_come_go_and_fail(broker: ottla.Broker, scrape: Callable[[], Scrape]) -> None:
    sockets = "kafka_server_socket_server_metrics_"
    before = scrape()
    clients = [Connection(broker.bootstrap_servers) for _ in range(3)]
    for client in clients:
        client.call(ListGroupsRequest(), 3)
    during = scrape()
    listener = {"listener": "PLAINTEXT"}
    created = f"{sockets}connection_creation_total"
    assert during.value(created, **listener) - before.value(created, **listener) == 3
    assert during.value(f"{sockets}connection_count", **listener) >= 3
    clients[0].send_frame(encode_request_header(ApiKey.METADATA, 99, 1, None))
    with pytest.raises(EOFError):
        clients[0].receive_frame()
    after = scrape()
    errors = "ottla_connection_errors_total"
    assert after.value(errors, reason="protocol") - during.value(errors, reason="protocol") == 1
    for client in clients:
        client.close()


@pytest.mark.slow
def test_scrapes_under_load_parse_and_never_go_back(broker: ottla.Broker, scrape: Callable[[], Scrape]) -> None:
    stop = threading.Event()
    sent = 0

    def produce() -> None:
        nonlocal sent
        producer = KafkaProducer(bootstrap_servers=broker.bootstrap_servers, linger_ms=0)
        while not stop.is_set():
            producer.send("load", b"x" * 100)
            sent += 1
        producer.close()

    def consume() -> None:
        consumer = KafkaConsumer(
            "load", bootstrap_servers=broker.bootstrap_servers, group_id="load", auto_offset_reset="earliest"
        )
        while not stop.is_set():
            consumer.poll(timeout_ms=100)
        consumer.close()

    threads = [threading.Thread(target=function) for function in (produce, consume)]
    for thread in threads:
        thread.start()
    try:
        before = scrape()
        while before.value("kafka_server_brokertopicmetrics_messagesin_total", topic="load") < 2000:
            after = scrape()
            later = after.counters()
            for key, value in before.counters().items():
                assert later.get(key, -1) >= value, key
            before = after
    finally:
        stop.set()
        for thread in threads:
            thread.join()
    last = scrape()
    assert last.value("kafka_server_brokertopicmetrics_messagesin_total", topic="load") == sent
    assert last.value("kafka_server_brokertopicmetrics_bytesin_total", topic="load") == bytes_on_disk(broker, "load")


def test_open_metrics_where_it_is_asked_for(broker: ottla.Broker) -> None:
    from prometheus_client.openmetrics.parser import text_string_to_metric_families as parse

    request = urllib.request.Request(
        f"http://{broker.metrics_address}/metrics", headers={"accept": "application/openmetrics-text; version=1.0.0"}
    )
    with urllib.request.urlopen(request, timeout=20) as response:
        assert response.headers["content-type"].startswith("application/openmetrics-text")
        names = {family.name for family in parse(response.read().decode())}
    assert {family.name.removesuffix("_total") for family in FAMILIES} <= names


def test_groups_by_type_and_consumer_groups_by_state(
    broker: ottla.Broker, client: Connection, scrape: Callable[[], Scrape]
) -> None:
    coordinator = "kafka_server_group_coordinator_metrics"
    create(client, "read", 2)
    before = scrape()

    def beat(member_id: str, epoch: int) -> None:
        joins = epoch == 0
        request = ConsumerGroupHeartbeatRequest(
            group_id="modern",
            member_id=member_id,
            member_epoch=epoch,
            rebalance_timeout_ms=60_000 if joins else -1,
            subscribed_topic_names=["read"] if joins else None,
            topic_partitions=[] if joins else None,
        )
        assert client.call(request, 1).error_code == 0

    with KafkaConsumer(bootstrap_servers=broker.bootstrap_servers, group_id="classic", client_id="c") as consumer:
        consumer.subscribe(["read"])
        while not consumer.assignment():
            consumer.poll(100)
        beat("a", 0)
        stable = scrape()
        broker.clock.advance(seconds=2)
        beat("b", 0)
        reconciling = scrape()
    beat("a", -1)
    beat("b", -1)
    after = scrape()
    assert stable.value(f"{coordinator}_group_count", protocol="classic") >= 1
    assert stable.value(f"{coordinator}_group_count", protocol="consumer") == 1
    assert stable.value(f"{coordinator}_group_count", protocol="share") == 0
    found = [
        {state: each.value(f"{coordinator}_consumer_group_count", state=state) for state in STATES}
        for each in (before, stable, reconciling, after)
    ]
    assert [{state for state, count in each.items() if count} for each in found] == [
        set(),
        {"Stable"},
        {"Reconciling"},
        {"Empty"},
    ]
    assert reconciling.value("kafka_consumergroup_members", consumergroup="modern") == 2
    name = f"{coordinator}_consumer_group_rebalance_count_total"
    assert [each.value(name) - before.value(name) for each in (stable, reconciling, after)] == [1, 2, 4]
    name = f"{coordinator}_group_completed_rebalance_count_total"
    assert stable.value(name) > before.value(name)
