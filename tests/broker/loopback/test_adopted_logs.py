"""A log directory without metadata of a cluster: the topics are those of its folders, and go on where they were."""

from __future__ import annotations

import shutil
import time
from pathlib import Path

import pytest

import ottla
from ottla.base.errors import ErrorCode
from ottla.broker.server import StartError
from ottla.cli.tools.access.users_of_stopped_node import UsersOfStoppedNode
from ottla.compat_tests.raw.requests import new_producer, produce
from ottla.compat_tests.wire_client import Connection, Operator, connect, topic_metadata
from ottla.log.checkpoints import read_leader_epochs, read_topic_id, write_offsets, write_topic_id
from ottla.log.disk import OsDisk
from ottla.security.scram import SaltedPassword, ScramMechanism
from ottla.wire.messages.describe_configs import DescribeConfigsRequest, DescribeConfigsResource
from ottla.wire.messages.metadata import MetadataRequest
from ottla.wire.records import Record, build_batch

NOW_MS = int(time.time() * 1000)  # producers are forgotten by the time of their records


@pytest.fixture
def data(tmp_path: Path) -> Path:
    """A folder with two topics, one of them compacted once, as a broker that knew them left it."""
    folder = tmp_path / "data"
    with ottla.Broker(data_dir=folder) as broker, connect(broker.bootstrap_servers) as connection:
        operator = Operator(broker.bootstrap_servers)
        for topic in ("plain", "compacted"):
            operator.create_topic(topic, 2, {})
            for partition in range(2):
                batch = build_batch(
                    [Record(key=b"k", value=b"v", timestamp=NOW_MS)],
                    producer_id=5000,
                    producer_epoch=0,
                    base_sequence=0,
                )
                assert produce(connection, topic, batch, partition=partition).error_code == ErrorCode.NONE
    write_offsets(OsDisk(), str(folder / "cleaner-offset-checkpoint"), {("compacted", 1): 0})
    shutil.rmtree(folder / "__cluster_metadata-0")
    for name in ("bootstrap.checkpoint", "meta.properties"):
        (folder / name).unlink()
    return folder


def topics(connection: Connection) -> set[str]:
    return {topic.name for topic in connection.call(MetadataRequest(topics=None), 12).topics}


def config(connection: Connection, topic: str, name: str) -> str:
    resource = DescribeConfigsResource(resource_type=2, resource_name=topic, configuration_keys=[name])
    (result,) = connection.call(DescribeConfigsRequest(resources=[resource]), 4).results
    return result.configs[0].value


def test_topics_go_on(data: Path) -> None:
    topic_id = read_topic_id(OsDisk(), str(data / "plain-0/partition.metadata"))
    with ottla.Broker(data_dir=data) as broker, connect(broker.bootstrap_servers) as connection:
        assert topics(connection) == {"plain", "compacted"}
        described = topic_metadata(connection, "plain")
        assert described.topic_id == topic_id
        assert sorted(part.partition_index for part in described.partitions) == [0, 1]
        assert config(connection, "plain", "retention.ms") == "-1"
        assert config(connection, "compacted", "cleanup.policy") == "compact"
        again = build_batch(
            [Record(key=b"k", value=b"v", timestamp=NOW_MS)], producer_id=5000, producer_epoch=0, base_sequence=0
        )
        assert produce(connection, "plain", again).base_offset == 0, "a batch that was sent twice is there once"
        assert produce(connection, "plain", build_batch([Record(value=b"w", timestamp=2)])).base_offset == 1
        fresh, _ = new_producer(connection)
        assert fresh > 5000
    first, second = read_leader_epochs(OsDisk(), str(data / "plain-0/leader-epoch-checkpoint"))
    assert first == (0, 0)
    assert second[0] > 0 and second[1] == 1, "the partition has a new leader, whose first record is the second"


def test_users_may_be_added_before(data: Path) -> None:
    passwords = [SaltedPassword(ScramMechanism.SHA_256, 4096, b"salt", b"salted")]
    users = UsersOfStoppedNode(str(data))
    users.set("alice", passwords)
    with ottla.Broker(data_dir=data) as broker, connect(broker.bootstrap_servers) as connection:
        assert topics(connection) == {"plain", "compacted"}
    assert users.described() == {"alice": {ScramMechanism.SHA_256: 4096}}


def test_only_the_first_start_adopts(data: Path) -> None:
    with ottla.Broker(data_dir=data):
        pass
    shutil.copytree(data / "plain-0", data / "stray-0")
    with ottla.Broker(data_dir=data) as broker, connect(broker.bootstrap_servers) as connection:
        assert topics(connection) == {"plain", "compacted"}


def test_partition_that_is_elsewhere(data: Path) -> None:
    shutil.rmtree(data / "plain-0")
    with ottla.Broker(data_dir=data) as broker, connect(broker.bootstrap_servers) as connection:
        assert len(topic_metadata(connection, "plain").partitions) == 2
        assert produce(connection, "plain", build_batch([Record(value=b"w", timestamp=2)])).base_offset == 0
        assert (
            produce(connection, "plain", build_batch([Record(value=b"w", timestamp=2)]), partition=1).base_offset == 1
        )


def test_partitions_of_different_topics(data: Path) -> None:
    """It cannot be said which one is meant, and the other would be deleted: the folder is left as it is."""
    write_topic_id(OsDisk(), str(data / "plain-1/partition.metadata"), bytes(range(16)))
    with (
        pytest.raises(StartError, match="the partitions of topic plain belong to 2 different topics"),
        ottla.Broker(data_dir=data),
    ):
        pass
    assert (data / "plain-0").is_dir() and (data / "plain-1").is_dir()


def test_log_of_a_kraft_node(data: Path) -> None:
    """It looks like a partition's folder, and is set aside as it is."""
    (data / "__cluster_metadata-0").mkdir()
    (data / "__cluster_metadata-0/00000000000000000000.log").write_bytes(b"not looked at")
    with ottla.Broker(data_dir=data) as broker, connect(broker.bootstrap_servers) as connection:
        assert topics(connection) == {"plain", "compacted"}
    (kept,) = data.glob("__cluster_metadata-0.*-stray")
    assert (kept / "00000000000000000000.log").read_bytes() == b"not looked at"
