"""The metadata log and the snapshots of Apache Kafka 4.3.1, after everything that its controllers write.

The judge of an image is ``kafka-metadata-shell``; that of bytes are Kafka's own.
"""

from __future__ import annotations

import contextlib
import json
import subprocess
import time
from collections.abc import Iterator, Sequence
from pathlib import Path

import pytest
from confluent_kafka import Producer
from confluent_kafka.admin import (
    AclBinding,
    AclBindingFilter,
    AclOperation,
    AclPermissionType,
    AdminClient,
    AlterConfigOpType,
    ConfigEntry,
    ConfigResource,
    NewPartitions,
    NewTopic,
    ResourcePatternType,
    ResourceType,
    ScramCredentialInfo,
    ScramMechanism,
    UserScramCredentialDeletion,
    UserScramCredentialUpsertion,
)

from ottla.compat_tests.java.tools import MAIN_CLASSES, SHORT_LIVED, java_command
from ottla.compat_tests.quorum_cluster import QuorumCluster
from ottla.compat_tests.session import eventually
from ottla.compat_tests.wire_client import cluster_view
from ottla.controller.quorum.replay import RecordReplay
from ottla.controller.quorum.snapshot_records import snapshot_records
from ottla.log.files import METADATA_LOG_FOLDER
from ottla.log.metadata_snapshots import SnapshotHead, SnapshotReader, encode_snapshot
from ottla.metadata.image import ClusterImage
from ottla.metadata.types import LogPosition
from ottla.wire.codec import encode_bytes
from ottla.wire.control_records import decode_quorum_record, encode_control_key
from ottla.wire.messages.metadata_log_records import (
    AbortTransactionRecord,
    BeginTransactionRecord,
    EndTransactionRecord,
)
from ottla.wire.messages.topic_records import PartitionChangeRecord
from ottla.wire.metadata_records import decode_metadata_record, encode_metadata_record, metadata_records
from ottla.wire.records import RecordBatch, RecordsBuilder, iter_batches
from ottla.wire.schema import Message

from .shell_tree import sections, sections_of

pytestmark = pytest.mark.slow

_PROPERTIES = {
    "authorizer.class.name": "org.apache.kafka.metadata.authorizer.StandardAuthorizer",
    "super.users": "User:ANONYMOUS",
    "metadata.log.max.record.bytes.between.snapshots": "4000",
    "broker.session.timeout.ms": "3000",
    "broker.heartbeat.interval.ms": "500",
}


@pytest.fixture(scope="module")
def cluster(tmp_path_factory: pytest.TempPathFactory) -> Iterator[QuorumCluster]:
    made = QuorumCluster(tmp_path_factory.mktemp("quorum"), kafkas=3, ottlas=1, properties=_PROPERTIES)
    with contextlib.closing(made):
        made.start()
        _go_through_everything(made)
        yield made


def _go_through_everything(cluster: QuorumCluster) -> None:
    admin = AdminClient({"bootstrap.servers": cluster.bootstrap, "log_level": 0})
    _wait(admin.create_topics([NewTopic("a", 3, 3, config={"min.insync.replicas": "2"}), NewTopic("b", 2, 2)]))
    _wait(
        admin.create_topics(
            [NewTopic("placed", 2, replica_assignment=[[2, 3, 4], [4, 2, 3]], config={"min.insync.replicas": "2"})]
        )
    )
    _wait(admin.create_partitions([NewPartitions("b", 4)]))
    for operation, value in (
        (AlterConfigOpType.SET, "2"),
        (AlterConfigOpType.SET, "1"),
        (AlterConfigOpType.DELETE, ""),
    ):
        entry = ConfigEntry("retention.ms", value, incremental_operation=operation)
        _wait(
            admin.incremental_alter_configs(
                [ConfigResource(ConfigResource.Type.TOPIC, "a", incremental_configs=[entry])]
            )
        )
    for which in (("--entity-name", "1"), ("--entity-default",)):
        brokers = ("--alter", "--entity-type", "brokers", *which)
        _tool(cluster, "configs", *brokers, "--add-config", "log.cleaner.threads=2,message.max.bytes=2000000")
        _tool(cluster, "configs", *brokers, "--delete-config", "log.cleaner.threads")
    rules = [
        AclBinding(ResourceType.TOPIC, name, ResourcePatternType.LITERAL, "User:alice", "*", AclOperation.READ, allow)
        for name in "xyz"
        for allow in (AclPermissionType.ALLOW,)
    ]
    _wait(admin.create_acls(rules))
    every = (ResourcePatternType.LITERAL, None, None, AclOperation.ANY, AclPermissionType.ANY)
    _wait(admin.delete_acls([AclBindingFilter(ResourceType.TOPIC, "x", *every)]))
    users = [
        UserScramCredentialUpsertion("alice", ScramCredentialInfo(ScramMechanism.SCRAM_SHA_256, 4096), b"secret"),
        UserScramCredentialUpsertion("bob", ScramCredentialInfo(ScramMechanism.SCRAM_SHA_512, 8192), b"secret"),
    ]
    _wait(admin.alter_user_scram_credentials(users))
    _wait(admin.alter_user_scram_credentials([UserScramCredentialDeletion("alice", ScramMechanism.SCRAM_SHA_256)]))
    user = ("--entity-type", "users", "--entity-name", "u")
    _tool(cluster, "configs", "--alter", "--add-config", "producer_byte_rate=1000", *user)
    words = (*user, "--entity-type", "clients", "--entity-name", "c")
    _tool(cluster, "configs", "--alter", "--add-config", "consumer_byte_rate=2000,request_percentage=50", *words)
    _tool(cluster, "configs", "--alter", "--delete-config", "request_percentage", *words)
    producer = Producer({"bootstrap.servers": cluster.bootstrap, "enable.idempotence": True, "log_level": 0})
    for number in range(100):
        producer.produce("a", b"%d" % number)
    assert producer.flush(60) == 0
    _wait(admin.delete_topics(["b"]))
    for wanted in ([1, 2, 4], [2, 3, 4]):
        _move(cluster, "placed", {0: wanted})
    for level in ("downgrade", "0"), ("upgrade", "1"):
        _tool(cluster, "features", level[0], "--feature", f"eligible.leader.replicas.version={level[1]}")
    cluster.node(4).stop()
    _tool(cluster, "cluster", "--id", "4", before=("unregister",))
    cluster.node(4).start()
    cluster.wait_joined()
    for number in (4, 3):  # with the last of them fewer replicas are in sync than min.insync.replicas
        cluster.node(number).kill()
        _wait_gone(cluster, number, asked=1)
    for number in (4, 3):
        cluster.node(number).launch()
    cluster.start()
    cluster.node(1).kill()
    _wait_gone(cluster, 1, asked=2)
    cluster.node(1).start()
    cluster.wait_joined()
    _wait(admin.create_topics([NewTopic("last", 1, 3)]))


def _wait_gone(cluster: QuorumCluster, number: int, *, asked: int) -> None:
    """Wait until a broker tells clients that another one is away."""

    def is_gone() -> bool:
        view = cluster_view(cluster.node(asked).address)
        return view is not None and number not in view.brokers

    eventually(is_gone, 60)


def _wait(futures: dict[object, object]) -> None:
    for future in futures.values():
        future.result(60)  # type: ignore[attr-defined]


def _tool(cluster: QuorumCluster, tool: str, *words: str, before: Sequence[str] = ()) -> str:
    """Run a tool of Kafka's; ``before`` are the words that go before the address of the brokers."""
    bootstrap = ("--bootstrap-server", cluster.bootstrap)
    command = [*java_command(cluster.node(1).folder, *SHORT_LIVED), MAIN_CLASSES[tool], *before, *bootstrap, *words]
    done = subprocess.run(command, capture_output=True, text=True, timeout=90)
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout


def _move(cluster: QuorumCluster, topic: str, replicas: dict[int, list[int]]) -> None:
    """Move partitions to these replicas, and wait until they are there."""
    partitions = [{"topic": topic, "partition": number, "replicas": each} for number, each in replicas.items()]
    file = cluster.node(1).folder / "moves.json"
    file.write_text(json.dumps({"version": 1, "partitions": partitions}))
    words = ("--reassignment-json-file", str(file))
    _tool(cluster, "reassign-partitions", *words, "--execute")
    eventually(lambda: "still in progress" not in _tool(cluster, "reassign-partitions", *words, "--verify"), 60)


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
    with contextlib.suppress(AssertionError):
        eventually(lambda: shell(cluster, path) == expected, 60)
    assert expected == shell(cluster, path)


def folder_of(cluster: QuorumCluster, node_id: int) -> Path:
    return cluster.node(node_id).data_folders[0] / METADATA_LOG_FOLDER


def replayed(batches: Iterator[RecordBatch]) -> ClusterImage:
    """The image of a whole log; the transaction at its beginning is committed."""
    replay, position = RecordReplay(ClusterImage()), LogPosition(0, 0, 0)
    transactions = (BeginTransactionRecord, EndTransactionRecord, AbortTransactionRecord)
    for batch in batches:
        if not batch.is_control:
            records = metadata_records(batch)
            replay.replay_all(record for record in records if not isinstance(record, transactions))
        position = LogPosition(batch.last_offset, batch.partition_leader_epoch, batch.max_timestamp)
    return ClusterImage().apply(replay.delta(position))


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
    "FeatureLevelRecord",
    "NoOpRecord",
    "PartitionChangeRecord",
    "PartitionChangeRecord of a move",
    "PartitionChangeRecord with eligible leaders",
    "PartitionRecord",
    "ProducerIdsRecord",
    "RegisterBrokerRecord",
    "RegisterControllerRecord",
    "RemoveAccessControlEntryRecord",
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
            if message.eligible_leader_replicas:
                yield f"{name} with eligible leaders"


def same_log(cluster: QuorumCluster) -> bool:
    """Whether every node has the same log by now."""
    ends = {(folder_of(cluster, node_id) / "00000000000000000000.log").stat().st_size for node_id in cluster.ids}
    return len(ends) == 1


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
    replay = RecordReplay(ClusterImage())
    for batch in reader.batches():
        replay.replay_all(batch)
    of_snapshot = ClusterImage().apply(replay.delta(LogPosition(1, 1, 1)))
    check_shell_says(cluster, of_snapshot, snapshot)
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
