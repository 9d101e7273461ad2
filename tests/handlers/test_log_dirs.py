"""AlterReplicaLogDirs and DescribeLogDirs on a broker with two log directories, and what clients see when one of them fails."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from kafka import KafkaAdminClient, KafkaConsumer, KafkaProducer

import ottla
from ottla.base.errors import ErrorCode
from ottla.broker.server import BrokerFailedError, StartError
from ottla.wire.messages.alter_replica_log_dirs import (
    AlterReplicaLogDir,
    AlterReplicaLogDirsRequest,
    AlterReplicaLogDirTopic,
)
from ottla.wire.messages.create_topics import CreatableTopic, CreatableTopicConfig, CreateTopicsRequest
from ottla.wire.messages.delete_topics import DeleteTopicsRequest, DeleteTopicState
from ottla.wire.messages.describe_log_dirs import DescribeLogDirsRequest
from ottla.wire.messages.metadata import MetadataRequest, MetadataRequestTopic

Places = dict[tuple[str, int, bool], tuple[int, int]]
"""(topic, partition, whether it is a future one) -> (number of the folder, lag)."""


class TwoFolders:
    """A broker on two folders, and a connection to it."""

    def __init__(self, folders: list[Path], connect: Callable[[str], Callable]) -> None:
        self.folders = folders
        self._connect = connect
        self.start()

    def start(self) -> None:
        properties = {"log.dirs": ",".join(map(str, self.folders)), "offsets.topic.num.partitions": "1"}
        self.broker = ottla.Broker(data_dir=self.folders[0], properties=properties).start()
        self.bootstrap_servers = self.broker.bootstrap_servers
        self.send = self._connect(self.bootstrap_servers)

    def restart(self) -> None:
        self.broker.stop()
        self.start()

    def create(self, name: str, partitions: int = 1, **configs: str) -> int:
        settings = [CreatableTopicConfig(name=key.replace("_", "."), value=value) for key, value in configs.items()]
        new = CreatableTopic(name=name, num_partitions=partitions, replication_factor=1, configs=settings)
        (created,) = self.send(CreateTopicsRequest(topics=[new], timeout_ms=10_000), 7).topics
        return created.error_code

    def alter(self, topic: str, partition: int, path: Path | str, version: int = 2) -> int:
        asked = AlterReplicaLogDir(path=str(path), topics=[AlterReplicaLogDirTopic(name=topic, partitions=[partition])])
        (result,) = self.send(AlterReplicaLogDirsRequest(dirs=[asked]), version).results
        assert result.topic_name == topic
        (answer,) = result.partitions
        assert answer.partition_index == partition
        return answer.error_code

    def places(self) -> Places:
        found: Places = {}
        for result in self.send(DescribeLogDirsRequest(topics=None), 4).results:
            number = [str(folder) for folder in self.folders].index(result.log_dir)
            for topic in result.topics:
                for partition in topic.partitions:
                    key = (topic.name, partition.partition_index, partition.is_future_key)
                    found[key] = (number, partition.offset_lag)
        return found

    def wait_until_in(self, folder: int, topic: str, partition: int = 0) -> None:
        deadline = time.monotonic() + 30
        while self.places().get((topic, partition, False)) != (folder, 0):
            assert time.monotonic() < deadline
            time.sleep(0.01)

    def errors(self) -> list[int]:
        return [result.error_code for result in self.send(DescribeLogDirsRequest(topics=[]), 4).results]

    def partition(self, topic: str, number: int, version: int = 12):
        (found,) = self.send(MetadataRequest(topics=[MetadataRequestTopic(name=topic)]), version).topics
        return found.partitions[number]

    def wait_until_leaderless(self, topic: str, number: int) -> None:
        deadline = time.monotonic() + 30
        while self.partition(topic, number).leader_id != -1:
            assert time.monotonic() < deadline
            time.sleep(0.01)

    def read(self, topic: str, count: int) -> list[bytes]:
        consumer = KafkaConsumer(
            topic, bootstrap_servers=self.bootstrap_servers, auto_offset_reset="earliest", consumer_timeout_ms=20_000
        )
        values = [next(consumer).value for _ in range(count)]
        consumer.close()
        return values


@pytest.fixture
def two(tmp_path: Path, connect: Callable[[str], Callable]) -> Iterator[TwoFolders]:
    started = TwoFolders([tmp_path / "first", tmp_path / "second"], connect)
    yield started
    try:
        started.broker.stop()
    except BrokerFailedError:
        pass


@pytest.mark.parametrize("version", [1, 2])
def test_partition_moves_there_and_back(two: TwoFolders, version: int) -> None:
    two.create("t", segment_bytes="2000")
    with KafkaProducer(bootstrap_servers=two.bootstrap_servers, linger_ms=0) as producer:
        for number in range(100):
            producer.send("t", b"%d" % number)
    for folder in (1, 0):
        assert two.alter("t", 0, two.folders[folder], version) == ErrorCode.NONE
        two.wait_until_in(folder, "t")
        assert (two.folders[folder] / "t-0").is_dir()
        assert not (two.folders[1 - folder] / "t-0").exists()
        assert two.read("t", 100) == [b"%d" % number for number in range(100)]
    two.restart()
    assert two.places()["t", 0, False] == (0, 0)
    assert two.read("t", 100) == [b"%d" % number for number in range(100)]


def test_producer_and_consumer_go_on_while_partitions_move(two: TwoFolders) -> None:
    two.create("t", 4)
    consumer = KafkaConsumer(
        "t",
        bootstrap_servers=two.bootstrap_servers,
        auto_offset_reset="earliest",
        group_id="g",
        enable_auto_commit=False,
    )
    seen: list[bytes] = []
    with KafkaProducer(bootstrap_servers=two.bootstrap_servers, acks="all") as producer:
        for number in range(4000):
            producer.send("t", b"%d" % number, partition=number % 4)
            if number % 250 == 0:
                producer.flush()
                path = two.folders[number // 250 % 2]
                assert [two.alter("t", partition, path) for partition in range(4)] == [0] * 4
                seen += [record.value for batch in consumer.poll(100).values() for record in batch]
    deadline = time.monotonic() + 60
    while len(seen) < 4000 and time.monotonic() < deadline:
        seen += [record.value for batch in consumer.poll(500).values() for record in batch]
    consumer.close()
    assert sorted(map(int, seen)) == list(range(4000))
    for partition in range(4):
        two.wait_until_in(1, "t", partition)


def test_errors_and_preferred_folder(two: TwoFolders, tmp_path: Path) -> None:
    two.create("t")
    assert two.alter("t", 0, tmp_path / "third") == ErrorCode.LOG_DIR_NOT_FOUND
    assert two.alter("t", 0, "first") == ErrorCode.LOG_DIR_NOT_FOUND, "paths are absolute"
    assert two.alter("t" * 230, 0, two.folders[1]) == ErrorCode.INVALID_TOPIC_EXCEPTION
    assert two.alter("t", 1, two.folders[1]) == ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
    for number in range(3):
        assert two.alter("later", number, two.folders[1]) == ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
    two.create("later", 3)
    assert [two.places()["later", number, False][0] for number in range(3)] == [1, 1, 1]


def test_partitions_named_for_two_folders_get_the_last(two: TwoFolders) -> None:
    two.create("t")
    topics = [AlterReplicaLogDirTopic(name="t", partitions=[0])]
    dirs = [AlterReplicaLogDir(path=str(folder), topics=topics) for folder in reversed(two.folders)]
    (result,) = two.send(AlterReplicaLogDirsRequest(dirs=dirs), 2).results
    assert [(p.partition_index, p.error_code) for p in result.partitions] == [(0, 0)]
    assert two.places()["t", 0, False] == (0, 0)


def test_kafka_python_moves_a_partition(two: TwoFolders) -> None:
    two.create("t")
    admin = KafkaAdminClient(bootstrap_servers=two.bootstrap_servers)
    answers = admin.alter_replica_log_dirs({("t", 0, 1): str(two.folders[1])})
    assert [error.errno for error in answers.values()] == [0]
    two.wait_until_in(1, "t")
    (broker,) = admin.describe_log_dirs(["t"])
    sizes = {folder["log_dir"]: len(folder["topics"]) for folder in broker["log_dirs"]}
    assert sizes == {str(two.folders[0]): 0, str(two.folders[1]): 1}
    admin.close()


def test_failed_folder(two: TwoFolders) -> None:
    two.create("t", 2, segment_bytes="1000")
    with KafkaProducer(bootstrap_servers=two.bootstrap_servers, retries=0) as producer:
        for number in range(2):
            producer.send("t", b"x" * 100, partition=number).get(30)
        two.folders[1].rename(two.folders[1].with_suffix(".gone"))  # the next segment cannot be made
        with pytest.raises(Exception, match=r"KafkaStorageError|56"):
            for _ in range(20):
                producer.send("t", b"x" * 100, partition=1).get(30)
        two.wait_until_leaderless("t", 1)
        producer.send("t", b"y", partition=0).get(30)
    lost = two.partition("t", 1)
    # The last replica in sync has become the eligible leader (KIP-966).
    assert (lost.error_code, lost.replica_nodes, lost.isr_nodes) == (ErrorCode.LEADER_NOT_AVAILABLE, [1], [])
    assert lost.offline_replicas == [1]
    assert two.partition("t", 0).offline_replicas == []
    assert two.errors() == [ErrorCode.NONE, ErrorCode.KAFKA_STORAGE_ERROR]
    assert ("t", 1, False) not in two.places()
    assert two.alter("t", 0, two.folders[1]) == ErrorCode.KAFKA_STORAGE_ERROR
    assert two.alter("t", 1, two.folders[0]) == ErrorCode.KAFKA_STORAGE_ERROR
    assert two.create("new", 3) == ErrorCode.NONE
    assert [two.places()["new", number, False][0] for number in range(3)] == [0, 0, 0]
    two.send(DeleteTopicsRequest(topics=[DeleteTopicState(name="new")], timeout_ms=10_000), 6)


def test_start_without_one_of_the_folders(two: TwoFolders) -> None:
    two.create("t", 2)
    with KafkaProducer(bootstrap_servers=two.bootstrap_servers) as producer:
        for number in range(2):
            producer.send("t", b"%d" % number, partition=number).get(30)
    two.broker.stop()
    kept = two.folders[1].rename(two.folders[1].with_suffix(".kept"))
    two.folders[1].write_text("no folder")
    two.start()
    assert (two.partition("t", 0).leader_id, two.partition("t", 1).leader_id) == (1, -1)
    assert two.partition("t", 1).offline_replicas == [1]
    assert two.errors() == [ErrorCode.NONE, ErrorCode.KAFKA_STORAGE_ERROR]
    two.broker.stop()
    two.folders[1].unlink()
    kept.rename(two.folders[1])
    two.start()
    assert two.partition("t", 1).leader_id == 1
    assert sorted(two.read("t", 2)) == [b"0", b"1"]


def test_broker_stops_when_the_first_folder_fails(two: TwoFolders) -> None:
    two.create("t", segment_bytes="1000")
    assert two.places()["t", 0, False][0] == 0
    with KafkaProducer(bootstrap_servers=two.bootstrap_servers, retries=0) as producer:
        producer.send("t", b"x").get(30)
        two.folders[0].rename(two.folders[0].with_suffix(".gone"))
        with pytest.raises(Exception, match=r"KafkaStorageError|56|KafkaConnectionError|NetworkException"):
            for _ in range(20):
                producer.send("t", b"x" * 100).get(30)
    with pytest.raises(BrokerFailedError, match=r"/first(, which has the cluster's state, has failed| is offline)"):
        two.broker.stop()
    two.folders[0].write_text("no folder")
    with pytest.raises(StartError, match=r"/first has the cluster.s state and cannot be used"):
        two.start()
