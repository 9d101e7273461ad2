"""Admin clients: topics, partitions, configs, records, offsets, the cluster."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from ottla.base.errors import ErrorCode
from ottla.compat_tests.clients import model
from ottla.compat_tests.clients.registry import CLIENTS
from ottla.compat_tests.session import ClientSession, eventually
from ottla.compat_tests.wire_client import Operator

TOPIC_CONFIG, STATIC_BROKER, DEFAULT = 1, 4, 5


def has_partitions(admin: model.Admin, topic: str, count: int) -> bool:
    """Whether Metadata shows that many partitions, all of them led. (Kafka's controller answers before its brokers know.)"""
    try:
        leaders = admin.describe_topic(topic).leaders
    except model.ClientFailure:
        return False
    return sorted(leaders) == list(range(count)) and all(leader is None or leader >= 0 for leader in leaders.values())


@pytest.mark.capability("create and delete topics")
def test_create_describe_delete(client: ClientSession, fresh_name: Callable[[str], str]) -> None:
    topic, admin = fresh_name("created"), client.admin
    admin.create_topic(topic, 3)
    eventually(lambda: has_partitions(admin, topic, 3))
    assert topic in admin.list_topics()
    with pytest.raises(model.ClientFailure) as failure:
        admin.create_topic(topic, 3)
    assert failure.value.code == ErrorCode.TOPIC_ALREADY_EXISTS
    admin.delete_topic(topic)
    eventually(lambda: topic not in admin.list_topics())
    with pytest.raises(model.ClientFailure) as failure:
        admin.delete_topic(topic)
    assert failure.value.code == ErrorCode.UNKNOWN_TOPIC_OR_PARTITION


@pytest.mark.capability("create and delete topics")
def test_recreated_topic_is_empty(client: ClientSession, fresh_name: Callable[[str], str], operator: Operator) -> None:
    topic, admin = fresh_name("recreated"), client.admin

    def is_created() -> bool:
        """A cluster still deletes a topic that clients are no longer told of."""
        try:
            admin.create_topic(topic, 1)
        except model.ClientFailure as failure:
            assert failure.code == ErrorCode.TOPIC_ALREADY_EXISTS
            return False
        return True

    for _ in range(2):
        eventually(is_created)
        operator.wait_until_ready(topic, 1)
        assert client.produce(topic, [b"first", b"second"]) == [0, 1]
        admin.delete_topic(topic)
        eventually(lambda: topic not in admin.list_topics())


@pytest.mark.capability("create topics: configs")
def test_create_with_configs(client: ClientSession, fresh_name: Callable[[str], str]) -> None:
    topic, admin = fresh_name("configured"), client.admin
    admin.create_topic(topic, 1, configs={"retention.ms": "12345"})
    eventually(lambda: has_partitions(admin, topic, 1))
    assert admin.describe_configs("topic", topic)["retention.ms"].value == "12345"
    admin.delete_topic(topic)


@pytest.mark.capability("create topics: only validate")
def test_validate_only(client: ClientSession, fresh_name: Callable[[str], str], topic: str) -> None:
    name = fresh_name("not created")
    client.admin.create_topic(name, 2, validate_only=True)
    assert name not in client.admin.list_topics()
    with pytest.raises(model.ClientFailure) as failure:
        client.admin.create_topic(topic, 2, validate_only=True)
    assert failure.value.code == ErrorCode.TOPIC_ALREADY_EXISTS


@pytest.mark.capability("create topics: validation")
@pytest.mark.parametrize(
    ("partitions", "replicas", "code"),
    [
        (0, 1, ErrorCode.INVALID_PARTITIONS),
        (1, 99, ErrorCode.INVALID_REPLICATION_FACTOR),
    ],
    ids=["partitions", "replicas"],
)
def test_refused(
    client: ClientSession, fresh_name: Callable[[str], str], partitions: int, replicas: int, code: ErrorCode
) -> None:
    name = fresh_name("refused")
    with pytest.raises((model.ClientFailure, ValueError)) as failure:
        client.admin.create_topic(name, partitions, replicas)
    assert getattr(failure.value, "code", None) in (code, None)
    assert name not in client.admin.list_topics()


@pytest.mark.capability("create topics: configs")
@pytest.mark.parametrize(
    ("config", "value"), [("retention.ms", "soon"), ("no.such.config", "1")], ids=["value", "name"]
)
def test_refused_configs(client: ClientSession, fresh_name: Callable[[str], str], config: str, value: str) -> None:
    name = fresh_name("refused")
    with pytest.raises((model.ClientFailure, ValueError)) as failure:
        client.admin.create_topic(name, 1, configs={config: value})
    assert getattr(failure.value, "code", None) in (ErrorCode.INVALID_CONFIG, None)
    assert name not in client.admin.list_topics()


@pytest.mark.capability("create topics: validation")
@pytest.mark.parametrize("name", ["a/b", "with space", "x" * 250, ".."])
def test_invalid_names(client: ClientSession, name: str) -> None:
    with pytest.raises(model.ClientFailure) as failure:
        client.admin.create_topic(name, 1)
    assert failure.value.code == ErrorCode.INVALID_TOPIC_EXCEPTION


@pytest.mark.capability("create partitions")
def test_create_partitions(client: ClientSession, topic: str, operator: Operator) -> None:
    client.produce(topic, [b"kept"])
    client.admin.create_partitions(topic, 4)
    eventually(lambda: has_partitions(client.admin, topic, 4))
    operator.wait_until_ready(topic, 4)  # the producer may ask another broker than the admin did
    assert client.produce(topic, [b"new"], partition=3) == [0]
    assert [message.value for message in client.read(topic, 1)] == [b"kept"]
    with pytest.raises(model.ClientFailure) as failure:
        client.admin.create_partitions(topic, 2)
    assert failure.value.code == ErrorCode.INVALID_PARTITIONS


@pytest.mark.capability("describe configs")
def test_describe_topic_configs(client: ClientSession, make_topic: Callable[..., str]) -> None:
    topic = make_topic(**{"segment.bytes": "2000000"})
    configs = client.admin.describe_configs("topic", topic)
    altered, default = configs["segment.bytes"], configs["cleanup.policy"]
    assert (altered.value, altered.source, altered.read_only) == ("2000000", TOPIC_CONFIG, False)
    assert (default.value, default.source) == ("delete", DEFAULT)
    # Tools look for these by name.
    assert configs.keys() >= {
        "cleanup.policy",
        "compression.type",
        "max.message.bytes",
        "message.timestamp.type",
        "min.insync.replicas",
        "retention.bytes",
        "retention.ms",
        "segment.ms",
    }
    # kafka-python 3 doesn't look at the error code: it finds no configs.
    with pytest.raises((model.ClientFailure, KeyError)):
        client.admin.describe_configs("topic", topic + "-not")["retention.ms"]


@pytest.mark.capability("describe configs: synonyms")
def test_describe_synonyms(client: ClientSession, make_topic: Callable[..., str]) -> None:
    topic = make_topic(**{"segment.bytes": "2000000"})
    synonyms = client.admin.describe_configs("topic", topic)["segment.bytes"].synonyms
    assert ("log.segment.bytes", DEFAULT) in {(name, source) for name, _value, source in synonyms}


@pytest.mark.capability("describe configs")
def test_describe_broker_configs(client: ClientSession) -> None:
    broker_id = next(iter(client.admin.describe_cluster().brokers))
    configs = client.admin.describe_configs("broker", str(broker_id))
    for name in ("log.segment.bytes", "num.partitions", "message.max.bytes"):
        assert int(configs[name].value or "") > 0
    assert configs["log.dirs"].value


@pytest.mark.capability("AlterConfigs")
def test_alter_configs_replaces(client: ClientSession, make_topic: Callable[..., str]) -> None:
    topic, admin = make_topic(**{"retention.ms": "1000000", "segment.bytes": "2000000"}), client.admin
    admin.alter_configs(topic, {"retention.ms": "2000000"})
    eventually(lambda: admin.describe_configs("topic", topic)["retention.ms"].value == "2000000")
    # What is not named goes back to its default.
    assert admin.describe_configs("topic", topic)["segment.bytes"].source == DEFAULT


@pytest.mark.capability("AlterConfigs: refused values")
def test_alter_configs_refuses(client: ClientSession, topic: str) -> None:
    with pytest.raises(model.ClientFailure) as failure:
        client.admin.alter_configs(topic, {"retention.ms": "soon"})
    assert failure.value.code == ErrorCode.INVALID_CONFIG


@pytest.mark.capability("AlterConfigs: values that were read can be written")
def test_what_was_read_can_be_written(client: ClientSession, topic: str) -> None:
    configs = client.admin.describe_configs("topic", topic)
    values = {name: entry.value for name, entry in configs.items() if entry.value is not None and not entry.read_only}
    client.admin.alter_configs(topic, values)
    eventually(lambda: client.admin.describe_configs("topic", topic)["retention.ms"].source == TOPIC_CONFIG)
    again = client.admin.describe_configs("topic", topic)
    assert {name: again[name].value for name in values} == values


@pytest.mark.capability("IncrementalAlterConfigs")
def test_incremental_alter_configs(client: ClientSession, make_topic: Callable[..., str]) -> None:
    topic, admin = make_topic(**{"retention.ms": "1000000", "segment.bytes": "2000000"}), client.admin
    admin.incremental_alter_configs(
        topic,
        [
            ("set", "retention.ms", "3000000"),
            ("delete", "segment.bytes", None),
            ("append", "cleanup.policy", "compact"),
        ],
    )
    eventually(lambda: admin.describe_configs("topic", topic)["retention.ms"].value == "3000000")
    configs = admin.describe_configs("topic", topic)
    assert configs["segment.bytes"].source == DEFAULT
    assert configs["cleanup.policy"].value == "delete,compact"
    admin.incremental_alter_configs(topic, [("subtract", "cleanup.policy", "compact")])
    eventually(lambda: admin.describe_configs("topic", topic)["cleanup.policy"].value == "delete")
    assert admin.describe_configs("topic", topic)["retention.ms"].value == "3000000"
    with pytest.raises(model.ClientFailure) as failure:
        admin.incremental_alter_configs(topic, [("append", "retention.ms", "1")])
    assert failure.value.code == ErrorCode.INVALID_CONFIG


@pytest.mark.capability("configs take effect")
def test_altered_limit_is_enforced(client: ClientSession, topic: str) -> None:
    assert client.produce(topic, [b"x" * 5000]) == [0]
    if "AlterConfigs" in CLIENTS[client.name].lacks:
        client.admin.incremental_alter_configs(topic, [("set", "max.message.bytes", "1000")])
    else:
        client.admin.alter_configs(topic, {"max.message.bytes": "1000"})

    def is_refused() -> bool:
        try:
            client.produce(topic, [b"x" * 5000])
        except model.ClientFailure as failure:
            return failure.code == ErrorCode.MESSAGE_TOO_LARGE
        return False

    eventually(is_refused)


@pytest.mark.capability("compacted topics want keys")
def test_compacted_topic_wants_keys(client: ClientSession, make_topic: Callable[..., str]) -> None:
    topic = make_topic(**{"cleanup.policy": "compact"})
    # Kafka Connect insists on exactly this value for its own topics.
    assert client.admin.describe_configs("topic", topic)["cleanup.policy"].value == "compact"
    producer = client.producer()
    producer.send(topic, b"with a key", key=b"k", partition=0)
    assert producer.flush()[0].offset == 0
    producer.send(topic, b"without", partition=0)
    with pytest.raises(model.ClientFailure) as failure:
        producer.flush()
    assert failure.value.code in (ErrorCode.INVALID_RECORD, None)  # aiokafka doesn't know that code


@pytest.mark.capability("delete records")
def test_delete_records(client: ClientSession, topic: str) -> None:
    client.produce(topic, [b"%d" % number for number in range(5)])
    assert client.admin.delete_records(topic, 0, 2) == 2
    assert client.admin.delete_records(topic, 0, 1) == 2
    assert client.admin.delete_records(topic, 0, -1) == 5
    with pytest.raises(model.ClientFailure) as failure:
        client.admin.delete_records(topic, 0, 6)
    assert failure.value.code == ErrorCode.OFFSET_OUT_OF_RANGE


@pytest.fixture
def three_times(client: ClientSession, topic: str) -> str:
    """A topic with the timestamps 1000, 3000, 2000 in partition 0."""
    producer = client.producer()
    for time_ms in (1000, 3000, 2000):
        producer.send(topic, b"x", partition=0, timestamp_ms=time_ms)
        producer.flush()
    return topic


@pytest.mark.capability("list offsets (admin)")
def test_list_offsets(client: ClientSession, three_times: str) -> None:
    latest, earliest = -1, -2
    found = [client.admin.list_offset(three_times, 0, spec) for spec in (latest, earliest, 1500, 2500, 9999)]
    assert found == [3, 0, 1, 1, -1]


@pytest.mark.capability("list offsets (admin): of the greatest timestamp")
def test_offset_of_the_greatest_timestamp(client: ClientSession, three_times: str) -> None:
    assert client.admin.list_offset(three_times, 0, -3) == 1


@pytest.mark.capability("describe cluster")
def test_describe_cluster(client: ClientSession, bootstrap: str) -> None:
    cluster = client.admin.describe_cluster()
    assert {f"{host}:{port}" for host, port in cluster.brokers.values()} >= set(bootstrap.split(","))
    assert cluster.controller_id in cluster.brokers
    assert client.admin.describe_cluster().cluster_id == cluster.cluster_id


@pytest.mark.capability("log dirs")
def test_log_dirs(client: ClientSession, make_topic: Callable[..., str]) -> None:
    topic = make_topic(2)
    client.produce(topic, [b"x" * 1000], partition=1)
    sizes = client.admin.describe_log_dirs(topic)
    assert sizes.keys() == {0, 1}
    assert sizes[0] == 0
    assert sizes[1] > 1000
