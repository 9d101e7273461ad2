"""Kafka 4.3's command-line tools. A call costs a JVM of one to two seconds, so a test is a session with one kind of tool."""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterator

import pytest

from ottla.compat_tests.clients.registry import CLIENTS, JAVA_SNAPPY
from ottla.compat_tests.java.tools import KafkaTools
from ottla.compat_tests.session import ClientSession
from ottla.compat_tests.wire_client import Operator

pytestmark = pytest.mark.client("java-tools")
CODECS = ("gzip", "snappy", "lz4", "zstd")


@pytest.mark.capability("kafka-topics")
def test_topics(tools: KafkaTools, fresh_name: Callable[[str], str]) -> None:
    topic = fresh_name("tools")
    created = tools.run("topics", "--create", "--topic", topic, "--partitions", "2", "--config", "retention.ms=1000000")
    assert f"Created topic {topic}" in created
    assert "already exists" in tools.run("topics", "--create", "--topic", topic, fails=True)
    tools.run("topics", "--alter", "--topic", topic, "--partitions", "3")
    described = tools.run("topics", "--describe", "--topic", topic)
    assert re.search(r"PartitionCount: 3\s+ReplicationFactor: \d\s+Configs:.*retention.ms=1000000", described)
    partition = rf"Topic: {topic}\s+Partition: \d\s+Leader: \d+\s+Replicas: [\d,]+\s+Isr: [\d,]+"
    assert len(re.findall(partition, described)) == 3
    tools.run("topics", "--delete", "--topic", topic)
    assert topic not in tools.run("topics", "--list").split()


@pytest.mark.capability("kafka-console-producer, kafka-console-consumer, kafka-consumer-groups, kafka-get-offsets")
def test_console_and_groups(tools: KafkaTools, make_topic: Callable[..., str], group_id: str) -> None:
    topic = make_topic(2)
    lines = "".join(f"a:{number}\tk{number}\tv{number}\n" for number in range(1, 21))
    parsing = ("--reader-property", "parse.key=true", "--reader-property", "parse.headers=true")
    tools.run("console-producer", "--topic", topic, *parsing, stdin=lines)
    printing = [f"--formatter-property=print.{what}=true" for what in ("key", "headers", "offset", "partition")]
    limits = ("--max-messages", "20", "--timeout-ms", "20000")
    read = tools.run("console-consumer", "--topic", topic, "--from-beginning", "--group", group_id, *limits, *printing)
    records = [line.split("\t") for line in read.splitlines() if line.startswith("Partition:")]
    assert sorted(int(record[-1][1:]) for record in records) == list(range(1, 21))
    assert all(record[2] == f"a:{record[-1][1:]}" and record[3] == f"k{record[-1][1:]}" for record in records)

    offsets = tools.run("get-offsets", "--topic", topic)
    ends = dict(re.findall(rf"{topic}:(\d):(\d+)", offsets))
    assert sum(map(int, ends.values())) == 20
    described = tools.run("consumer-groups", "--describe", "--group", group_id)
    for partition, end in ends.items():
        assert re.search(rf"{group_id}\s+{topic}\s+{partition}\s+{end}\s+{end}\s+0\s", described)
    reset = ("--reset-offsets", "--group", group_id, "--topic", topic, "--execute")
    tools.run("consumer-groups", *reset, "--shift-by", "-3")
    described = tools.run("consumer-groups", "--describe", "--group", group_id)
    for partition, end in ends.items():
        assert re.search(rf"{group_id}\s+{topic}\s+{partition}\s+{int(end) - 3}\s+{end}\s+3\s", described)
    assert re.search(
        rf"{group_id}\s.*Empty\s+0", tools.run("consumer-groups", "--describe", "--group", group_id, "--state")
    )
    deleted = tools.run("consumer-groups", "--delete-offsets", "--group", group_id, "--topic", f"{topic}:0")
    assert re.search(rf"{topic}\s+0\s+Successful", deleted)
    tools.run("consumer-groups", "--delete", "--group", group_id)
    assert group_id not in tools.run("consumer-groups", "--list").split()


@pytest.mark.capability("kafka-configs")
def test_configs(tools: KafkaTools, topic: str) -> None:
    where = ("--entity-type", "topics", "--entity-name", topic)
    added = "segment.ms=3600000,cleanup.policy=[delete,compact]"
    assert "Completed" in tools.run("configs", "--alter", *where, "--add-config", added)
    described = tools.run("configs", "--describe", *where)
    assert "segment.ms=3600000" in described
    assert "cleanup.policy=delete,compact" in described
    tools.run("configs", "--alter", *where, "--delete-config", "segment.ms")
    every = tools.run("configs", "--describe", *where, "--all")
    assert "segment.ms=604800000 sensitive=false synonyms={" in every
    broker = tools.run("configs", "--describe", "--entity-type", "brokers", "--all")
    assert "log.segment.bytes=1073741824" in broker
    assert "DEFAULT_CONFIG:num.partitions=1" in broker


@pytest.mark.capability("kafka-configs")
def test_quotas(tools: KafkaTools, fresh_name: Callable[[str], str]) -> None:
    user = fresh_name("user")
    whose = ("--entity-type", "users", "--entity-name", user, "--entity-type", "clients", "--entity-name", "app")
    added = "producer_byte_rate=1048576,request_percentage=12.5,controller_mutation_rate=3"
    assert "Completed" in tools.run("configs", "--alter", *whose, "--add-config", added)
    described = tools.run("configs", "--describe", *whose)
    assert f"user-principal '{user}', client-id 'app'" in described
    assert all(each in described for each in ("producer_byte_rate=1048576.0", "request_percentage=12.5", "_rate=3.0"))
    tools.run("configs", "--alter", *whose, "--delete-config", re.sub("=[0-9.]+", "", added))
    assert user not in tools.run("configs", "--describe", "--entity-type", "users")


@pytest.mark.capability("kafka-delete-records, kafka-log-dirs")
def test_delete_records_and_log_dirs(tools: KafkaTools, topic: str, sessions: Callable[[str], ClientSession]) -> None:
    sessions("kafka-python").produce(topic, [b"x" * 100] * 10)
    wanted = {"partitions": [{"topic": topic, "partition": 0, "offset": 4}], "version": 1}
    deleted = tools.run("delete-records", "--offset-json-file", tools.file("delete.json", json.dumps(wanted)))
    assert f"partition: {topic}-0\tlow_watermark: 4" in deleted
    assert f"{topic}:0:4" in tools.run("get-offsets", "--topic", topic, "--time", "earliest")
    described = tools.run("log-dirs", "--describe", "--topic-list", topic)
    brokers = json.loads(described.splitlines()[-1])["brokers"]
    folders = [folder for broker in brokers for folder in broker["logDirs"] if folder["partitions"]]
    assert folders, "of each broker that has a replica"
    for folder in folders:
        assert folder["error"] is None
        assert [(each["partition"], each["isFuture"]) for each in folder["partitions"]] == [(f"{topic}-0", False)]
        assert folder["partitions"][0]["size"] > 1000


@pytest.mark.capability("perf tests, e2e-latency")
def test_performance_tools(tools: KafkaTools, make_topic: Callable[..., str], topic: str) -> None:
    many = make_topic(4)
    load = ("--num-records", "20000", "--record-size", "100", "--throughput", "-1")
    properties = ("--command-property", f"bootstrap.servers={tools.bootstrap}", "compression.type=lz4")
    produced = tools.run("producer-perf-test", "--topic", many, *load, *properties)
    assert re.search(r"^20000 records sent", produced, re.MULTILINE)
    consumed = tools.run("consumer-perf-test", "--topic", many, "--num-records", "20000", "--timeout", "60000")
    assert re.search(r"^20\d\d-.*, 20000, ", consumed, re.MULTILINE)
    assert "Percentiles" in tools.run("e2e-latency", tools.bootstrap, topic, "50", "all", "100")


@pytest.mark.capability("verifiable producer and consumer")
def test_verifiable_clients(tools: KafkaTools, make_topic: Callable[..., str], group_id: str) -> None:
    topic = make_topic(2)
    produced = tools.run("verifiable-producer", "--topic", topic, "--max-messages", "500", "--acks", "-1")
    events = [json.loads(line) for line in produced.splitlines()]
    assert sum(event["name"] == "producer_send_success" for event in events) == 500
    reading = ("--group-id", group_id, "--max-messages", "500", "--reset-policy", "earliest")
    consumed = tools.run("verifiable-consumer", "--topic", topic, *reading, "--group-instance-id", "static")
    events = [json.loads(line) for line in consumed.splitlines()]
    assert sum(event["count"] for event in events if event["name"] == "records_consumed") == 500
    assert all(event["success"] for event in events if event["name"] == "offsets_committed")


@pytest.mark.capability("kafka-broker-api-versions, kafka-cluster")
def test_cluster_tools(tools: KafkaTools, sessions: Callable[[str], ClientSession]) -> None:
    versions = tools.run("broker-api-versions")
    assert all(address in versions for address in tools.bootstrap.split(","))
    # The minimum of Produce is a promise to old librdkafka, not a version that is served.
    assert re.search(r"Produce\(0\): 0 to \d+ \[usable: 1[13]\]", versions)  # 11: without transactions V2
    for served in ("Fetch(1): 4 to", "Metadata(3): 0 to", "InitProducerId(22): 0 to", "DescribeTopicPartitions(75): 0"):
        assert served in versions
    cluster_id = sessions("kafka-python").admin.describe_cluster().cluster_id
    assert f"Cluster ID: {cluster_id}" in tools.run("cluster", "cluster-id", "--bootstrap-server", tools.bootstrap)


@pytest.mark.capability("kafka-client-compatibility-test")
def test_kafkas_own_test_of_clients(
    tools: KafkaTools, make_topic: Callable[..., str], sessions: Callable[[str], ClientSession]
) -> None:
    admin = sessions("kafka-python").admin
    features = (
        "offsets-for-times",
        "cluster-id",
        "idempotent-producer",
        "create-topics",
        "describe-acls",
        "describe-configs",
    )
    expected = [word for feature in features for word in (f"--{feature}-supported", "true")]
    expected += ["--expect-record-too-large-exception", "false"]
    nodes = str(len(admin.describe_cluster().brokers))
    # That there is no authorizer is an answer to DescribeAcls, too.
    called = ("client-compatibility-test", "--num-cluster-nodes", nodes, *expected)
    # It gives itself ten seconds from its first record to its last, all of its administration between them: too few for a JVM on
    # a busy machine.
    for turn in range(3):
        try:
            said = tools.run(*called, "--topic", make_topic(1))
        except AssertionError as error:
            if "Timed out after 10000 ms" not in str(error) or turn == 2:
                raise
            continue
        finally:
            if "newtopic" in admin.list_topics():  # which it makes
                admin.delete_topic("newtopic")
        break
    assert "SUCCESS." in said


VALUES = [f"{number:04}" * 5000 for number in range(20)]


@pytest.fixture(scope="module")
def written_by_java(
    bootstrap: str, operator: Operator, fresh_name: Callable[[str], str], tmp_path_factory: pytest.TempPathFactory
) -> Iterator[str]:
    """A topic with VALUES once per codec, from the console producer, in batches far above a block of any framing."""
    tools = KafkaTools(bootstrap, tmp_path_factory.mktemp("tools"))
    topic = fresh_name("java-codecs")
    operator.create_topic(topic, 1, {})
    for codec in CODECS:
        producing = ("--compression-codec", codec, "--batch-size", "200000", "--timeout", "200")
        tools.run("console-producer", "--topic", topic, *producing, stdin="\n".join(VALUES) + "\n")
    yield topic
    operator.delete_topic(topic)


READERS = [
    pytest.param(name, marks=pytest.mark.not_offered(f"{name}: {entry.lacks[JAVA_SNAPPY]}"))
    if JAVA_SNAPPY in entry.lacks
    else name
    for name, entry in CLIENTS.items()
]


@pytest.mark.capability("Java's codecs are read by every client")
@pytest.mark.parametrize("reader", READERS)
def test_codecs_of_java(written_by_java: str, reader: str, sessions: Callable[[str], ClientSession]) -> None:
    messages = sessions(reader).read(written_by_java, len(VALUES) * len(CODECS))
    assert [(message.value or b"").decode() for message in messages] == VALUES * len(CODECS)


@pytest.mark.capability("Java reads every client's codecs")
@pytest.mark.parametrize("writer", CLIENTS)
def test_java_reads_codecs(
    tools: KafkaTools, topic: str, writer: str, sessions: Callable[[str], ClientSession]
) -> None:
    for codec in CODECS:
        sessions(writer).produce(topic, [value.encode() for value in VALUES], compression=codec, linger_ms=20)
    limits = ("--max-messages", str(len(VALUES) * len(CODECS)), "--timeout-ms", "20000")
    read = tools.run("console-consumer", "--topic", topic, "--from-beginning", *limits)
    assert read.splitlines() == VALUES * len(CODECS)
