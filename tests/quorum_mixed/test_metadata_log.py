"""The metadata log and the snapshots of Apache Kafka 4.3.1, after everything that its controllers write.

The judge of an image is ``kafka-metadata-shell``; that of bytes are Kafka's own.
"""

from __future__ import annotations

import contextlib
import datetime
import re
import subprocess
import time
from collections.abc import Iterator
from pathlib import Path

import pytest
from confluent_kafka.admin import NewTopic

from ottla.bench.failover.checks import read_all, wrong_in_log
from ottla.bench.failover.loads import ConfluentProducer
from ottla.bench.failover.outages import is_back
from ottla.compat_tests.java.tools import MAIN_CLASSES, SHORT_LIVED, java_command
from ottla.compat_tests.quorum_cluster import QuorumCluster
from ottla.compat_tests.session import eventually
from ottla.controller.quorum.snapshot_records import snapshot_records
from ottla.log.files import METADATA_PARTITION_DIR
from ottla.log.metadata_snapshots import SnapshotHead, SnapshotReader, encode_snapshot
from ottla.metadata.image import ClusterImage
from ottla.wire.codec import encode_bytes
from ottla.wire.control_records import decode_quorum_record, encode_control_key
from ottla.wire.messages.topic_records import PartitionChangeRecord
from ottla.wire.metadata_records import decode_metadata_record, encode_metadata_record
from ottla.wire.records import RecordBatch, RecordsBuilder, iter_batches
from ottla.wire.schema import Message, uuid_from_text

from .helpers.shell_tree import image_of_snapshot, replayed, sections, sections_of
from .helpers.walked_cluster import admin_of, move_to, place, wait, walked_cluster

pytestmark = pytest.mark.slow


@pytest.fixture(scope="module")
def cluster(tmp_path_factory: pytest.TempPathFactory) -> Iterator[QuorumCluster]:
    with walked_cluster(tmp_path_factory.mktemp("quorum")) as cluster:
        yield cluster


def shell(cluster: QuorumCluster, path: Path) -> dict[str, list[str]]:
    """What kafka-metadata-shell says of a log or a snapshot."""
    folder = cluster.node(1).folder
    command = [
        *java_command(folder, *SHORT_LIVED),
        MAIN_CLASSES["metadata-shell"],
        "--snapshot",
        str(path),
        "tree",
        "image",
    ]
    done = subprocess.run(command, capture_output=True, text=True, timeout=90)
    assert done.returncode == 0, done.stderr
    return sections_of(done.stdout)


def check_shell_says(cluster: QuorumCluster, image: ClusterImage, path: Path) -> None:
    """The shell reads a file in the background, and on a busy machine it prints before it has read all: it is asked again."""
    expected = sections(image)
    said: list[dict[str, list[str]]] = []

    def is_said() -> bool:
        said[:] = [shell(cluster, path)]
        return said == [expected]

    with contextlib.suppress(AssertionError):
        eventually(is_said, 60)
    assert said == [expected]


def folder_of(cluster: QuorumCluster, node_id: int) -> Path:
    return cluster.node(node_id).data_folders[0] / METADATA_PARTITION_DIR


def encoded_again(batch: RecordBatch) -> bytes:
    """A batch of which every record was decoded to a message and encoded."""
    builder = RecordsBuilder(
        base_offset=batch.base_offset, leader_epoch=batch.partition_leader_epoch, is_control=batch.is_control
    )
    for record in batch.records():
        if batch.is_control:
            message: Message | None = decode_quorum_record(record)
            assert message is not None
            assert record.value is not None
            value = encode_bytes(message, int.from_bytes(record.value[:2], "big"))
            key: bytes | None = record.key
            assert key is not None
            assert encode_control_key(int.from_bytes(key[2:4], "big")) == key  # type: ignore[arg-type]
        else:
            key, value = None, encode_metadata_record(*decode_metadata_record(record.value or b""))
        builder.append(key, value, record.timestamp, offset=record.offset)
    return bytes(builder.build())


WRITTEN = {
    "AccessControlEntryRecord",
    "BrokerRegistrationChangeRecord",
    "ClientQuotaRecord",
    "ConfigRecord",
    "DelegationTokenRecord",
    "FeatureLevelRecord",
    "NoOpRecord",
    "PartitionChangeRecord",
    "PartitionChangeRecord of a move",
    "PartitionChangeRecord of directories",
    "PartitionChangeRecord with eligible leaders",
    "PartitionRecord",
    "ProducerIdsRecord",
    "RegisterBrokerRecord",
    "RegisterControllerRecord",
    "RemoveAccessControlEntryRecord",
    "RemoveDelegationTokenRecord",
    "RemoveTopicRecord",
    "RemoveUserScramCredentialRecord",
    "TopicRecord",
    "UnregisterBrokerRecord",
    "UserScramCredentialRecord",
}
"""The records of what the cluster has gone through."""


def kinds(batch: RecordBatch) -> Iterator[str]:
    """The records of a batch, by name."""
    for record in () if batch.is_control else batch.records():
        message, _ = decode_metadata_record(record.value or b"")
        name = type(message).__name__
        yield name
        if isinstance(message, PartitionChangeRecord):
            if message.adding_replicas:
                yield f"{name} of a move"
            if message.directories and message.replicas is None:
                yield f"{name} of directories"
            if message.eligible_leader_replicas:
                yield f"{name} with eligible leaders"


def same_log(cluster: QuorumCluster) -> bool:
    """Whether every node has the same log by now."""
    ends = {(folder_of(cluster, node_id) / "00000000000000000000.log").stat().st_size for node_id in cluster.ids}
    return len(ends) == 1


OTTLA = 4
"""The broker of Ottla."""
PATIENCE_S = 60.0


def metadata_log(cluster: QuorumCluster, node_id: int) -> bytes:
    return (folder_of(cluster, node_id) / "00000000000000000000.log").read_bytes()


def directory_id(folder: Path) -> bytes:
    """The id of a log directory."""
    (text,) = re.findall(r"^directory.id=(.+)$", (folder / "meta.properties").read_text(), re.MULTILINE)
    return uuid_from_text(text)


def announced_ms(cluster: QuorumCluster, topic_id: bytes, number: int, directory: bytes) -> int:
    """When the controller wrote that a partition has a replica in this directory."""
    return next(
        record.timestamp
        for batch in iter_batches(metadata_log(cluster, 1))
        if not batch.is_control
        for record in batch.records()
        if isinstance(message := decode_metadata_record(record.value or b"")[0], PartitionChangeRecord)
        and (message.topic_id, message.partition_id) == (topic_id, number)
        and directory in (message.directories or ())
    )


def swapped_ms(cluster: QuorumCluster, partition: str) -> float:
    """When the broker of Ottla says that a partition's log has moved."""
    lines = [line for line in cluster.node(OTTLA).log().splitlines() if f": {partition} is in " in line]
    return datetime.datetime.strptime(lines[-1][:23], "%Y-%m-%d %H:%M:%S,%f").timestamp() * 1000


def test_logs_that_are_written_move_to_another_directory_once_the_controllers_know(cluster: QuorumCluster) -> None:
    """Both partitions of a topic that a broker of Ottla leads, each to its other directory."""
    admin = admin_of(cluster)
    wait(admin.create_topics([NewTopic("live", 2, replica_assignment=[[OTTLA, 3]] * 2)]))
    producer = ConfluentProducer("producer", "live", cluster.bootstrap)
    producer.start()
    eventually(lambda: is_back(producer, 0.0), PATIENCE_S)
    folders = cluster.node(OTTLA).data_folders
    aims = {}
    for number in range(2):
        (begun,) = place(cluster, OTTLA, "live", number)
        aims[number] = 1 - begun
        move_to(cluster, OTTLA, "live", number, aims[number])
    for number, aim in aims.items():
        eventually(lambda number=number, aim=aim: place(cluster, OTTLA, "live", number) == (aim,), PATIENCE_S)
    moved = time.time()
    eventually(lambda: is_back(producer, moved), PATIENCE_S)
    producer.stop()
    assert [*wrong_in_log(producer, read_all(cluster.bootstrap, "live")), *producer.errors] == []
    topic = replayed(iter_batches(metadata_log(cluster, 1))).topics["live"]
    for number, aim in aims.items():
        directory, partition = directory_id(folders[aim]), topic.partitions[number]
        assert dict(zip(partition.replicas, partition.directories, strict=True))[OTTLA] == directory
        assert announced_ms(cluster, topic.topic_id, number, directory) < swapped_ms(cluster, f"live-{number}")


def test_every_batch_of_the_logs_and_snapshots_has_the_same_bytes_again(cluster: QuorumCluster) -> None:
    paths = [path for node_id in cluster.ids for path in folder_of(cluster, node_id).glob("*.log")]
    paths += [path for node_id in cluster.ids for path in folder_of(cluster, node_id).glob("*.checkpoint")]
    paths += [cluster.node(1).data_folders[0] / "bootstrap.checkpoint"]
    assert len(paths) > 8, paths
    seen: set[str] = set()
    for path in paths:
        for batch in iter_batches(path.read_bytes()):
            assert encoded_again(batch) == bytes(batch.view), f"{path} at {batch.base_offset}"
            seen |= set(kinds(batch))
    assert seen >= WRITTEN, WRITTEN - seen


def test_an_image_is_what_the_shell_says(cluster: QuorumCluster, tmp_path: Path) -> None:
    """That of a log, of each snapshot, and of a snapshot that is written here."""
    path = folder_of(cluster, 1) / "00000000000000000000.log"
    copied = tmp_path / path.name
    copied.write_bytes(path.read_bytes())
    image = replayed(iter_batches(copied.read_bytes()))
    check_shell_says(cluster, image, copied)
    newest = max(folder_of(cluster, 1).glob("*.checkpoint"))
    snapshot = tmp_path / newest.name
    snapshot.write_bytes(newest.read_bytes())
    reader = SnapshotReader(snapshot.read_bytes(), newest.name)
    check_shell_says(cluster, image_of_snapshot(snapshot), snapshot)
    own = tmp_path / "00000000000000001000-0000000009.checkpoint"
    head = SnapshotHead(1_000, 1, reader.head.voters)
    own.write_bytes(b"".join(encode_snapshot(head, snapshot_records(image), epoch=9, now_ms=int(time.time() * 1000))))
    check_shell_says(cluster, image, own)


def test_the_brokers_own_log_is_the_quorums(cluster: QuorumCluster) -> None:
    """Byte for byte, and the image of what it has is what the shell says of it."""
    ours, theirs = (folder_of(cluster, node_id) / "00000000000000000000.log" for node_id in (4, 1))

    def same() -> bool:
        mine, other = ours.read_bytes(), theirs.read_bytes()
        return bool(mine) and other.startswith(mine) and len(other) - len(mine) < 2_000

    eventually(same, 30)
    assert (ours.parent / "partition.metadata").read_text() == (theirs.parent / "partition.metadata").read_text()
