"""A cluster of KRaft that goes through everything, so that its metadata log has every kind of record.

Its nodes 1 to 3 are Apache Kafka's, 4 is a broker of Ottla; 3 and 4 have two log directories.
"""

from __future__ import annotations

import contextlib
import json
import subprocess
from collections.abc import Iterator, Sequence
from pathlib import Path

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

from ottla.compat_tests.clients.security import Security
from ottla.compat_tests.java.tools import MAIN_CLASSES, SHORT_LIVED, java_command
from ottla.compat_tests.kraft_cluster import KafkaNode
from ottla.compat_tests.quorum_cluster import QuorumCluster
from ottla.compat_tests.session import eventually
from ottla.compat_tests.wire_client import cluster_view, connect
from ottla.testing.held_port import HeldPort
from ottla.wire.messages.alter_replica_log_dirs import (
    AlterReplicaLogDir,
    AlterReplicaLogDirsRequest,
    AlterReplicaLogDirTopic,
)
from ottla.wire.messages.create_delegation_token import CreatableRenewers, CreateDelegationTokenRequest
from ottla.wire.messages.describe_log_dirs import DescribeLogDirsRequest
from ottla.wire.messages.expire_delegation_token import ExpireDelegationTokenRequest
from ottla.wire.messages.renew_delegation_token import RenewDelegationTokenRequest

_PROPERTIES = {
    "authorizer.class.name": "org.apache.kafka.metadata.authorizer.StandardAuthorizer",
    "super.users": "User:ANONYMOUS",
    "metadata.log.max.record.bytes.between.snapshots": "4000",
    "broker.session.timeout.ms": "3000",
    "broker.heartbeat.interval.ms": "500",
    "delegation.token.secret.key": "the brokers' secret",
}
_WITH_TWO_DIRECTORIES = (3, 4)
"""A broker of Kafka and one of Ottla."""
_USER = Security("SASL_PLAINTEXT", "PLAIN", "alice", "alices")


@contextlib.contextmanager
def walked_cluster(folder: Path) -> Iterator[QuorumCluster]:
    """A context with the cluster, which has gone through everything."""
    made = QuorumCluster(folder, kafkas=3, ottlas=1, properties=_PROPERTIES)
    with contextlib.closing(made), contextlib.closing(HeldPort()) as port:
        for each in _WITH_TWO_DIRECTORIES:
            made.node(each).data_folders.append(made.node(each).folder / "data-2")
        _add_login(made.kafka(1), f"127.0.0.1:{port.number}")
        made.start()
        _make_tokens(f"127.0.0.1:{port.number}")
        _go_through_everything(made)
        yield made


def _add_login(node: KafkaNode, address: str) -> None:
    """A listener where a user can log in, for none but one who has can make a token."""
    module = "org.apache.kafka.common.security.plain.PlainLoginModule"
    clients = f"PLAINTEXT://{node.address},SASL://{address}"
    node.properties |= {
        "listeners": f"{clients},CONTROLLER://{node.controller_address}",
        "advertised.listeners": clients,
        "listener.security.protocol.map": "PLAINTEXT:PLAINTEXT,SASL:SASL_PLAINTEXT,CONTROLLER:PLAINTEXT",
        "sasl.enabled.mechanisms": "PLAIN",
        "listener.name.sasl.plain.sasl.jaas.config": f'{module} required user_{_USER.username}="{_USER.password}";',
    }


def _make_tokens(address: str) -> None:
    """One that is renewed and stays, and one that is ended."""
    renewer = CreatableRenewers(principal_type="User", principal_name="bob, *~")
    with connect(address, security=_USER) as connection:
        made = [
            connection.call(CreateDelegationTokenRequest(renewers=renewers, max_lifetime_ms=3_600_000), 3)
            for renewers in ([renewer], [])
        ]
        assert [token.error_code for token in made] == [0, 0]
        renewal = RenewDelegationTokenRequest(hmac=made[0].hmac, renew_period_ms=60_000)
        end = ExpireDelegationTokenRequest(hmac=made[1].hmac, expiry_time_period_ms=-1)
        for request in (renewal, end):  # the controller knows a token a moment after it has made it
            eventually(lambda request=request: connection.call(request, 2).error_code == 0)


def _go_through_everything(cluster: QuorumCluster) -> None:
    admin = admin_of(cluster)
    wait(admin.create_topics([NewTopic("a", 3, 3, config={"min.insync.replicas": "2"}), NewTopic("b", 2, 2)]))
    wait(
        admin.create_topics(
            [NewTopic("placed", 2, replica_assignment=[[2, 3, 4], [4, 2, 3]], config={"min.insync.replicas": "2"})]
        )
    )
    wait(admin.create_partitions([NewPartitions("b", 4)]))
    for operation, value in (
        (AlterConfigOpType.SET, "2"),
        (AlterConfigOpType.SET, "1"),
        (AlterConfigOpType.DELETE, ""),
    ):
        entry = ConfigEntry("retention.ms", value, incremental_operation=operation)
        wait(
            admin.incremental_alter_configs(
                [ConfigResource(ConfigResource.Type.TOPIC, "a", incremental_configs=[entry])]
            )
        )
    for which in (("--entity-name", "1"), ("--entity-default",)):
        brokers = ("--alter", "--entity-type", "brokers", *which)
        tool(cluster, "configs", *brokers, "--add-config", "log.cleaner.threads=2,message.max.bytes=2000000")
        tool(cluster, "configs", *brokers, "--delete-config", "log.cleaner.threads")
    rules = [
        AclBinding(ResourceType.TOPIC, name, ResourcePatternType.LITERAL, "User:alice", "*", AclOperation.READ, allow)
        for name in "xyz"
        for allow in (AclPermissionType.ALLOW,)
    ]
    wait(admin.create_acls(rules))
    every = (ResourcePatternType.LITERAL, None, None, AclOperation.ANY, AclPermissionType.ANY)
    wait(admin.delete_acls([AclBindingFilter(ResourceType.TOPIC, "x", *every)]))
    users = [
        UserScramCredentialUpsertion("alice", ScramCredentialInfo(ScramMechanism.SCRAM_SHA_256, 4096), b"secret"),
        UserScramCredentialUpsertion("bob", ScramCredentialInfo(ScramMechanism.SCRAM_SHA_512, 8192), b"secret"),
    ]
    wait(admin.alter_user_scram_credentials(users))
    wait(admin.alter_user_scram_credentials([UserScramCredentialDeletion("alice", ScramMechanism.SCRAM_SHA_256)]))
    user = ("--entity-type", "users", "--entity-name", "u")
    tool(cluster, "configs", "--alter", "--add-config", "producer_byte_rate=1000", *user)
    words = (*user, "--entity-type", "clients", "--entity-name", "c")
    tool(cluster, "configs", "--alter", "--add-config", "consumer_byte_rate=2000,request_percentage=50", *words)
    tool(cluster, "configs", "--alter", "--delete-config", "request_percentage", *words)
    producer = Producer({"bootstrap.servers": cluster.bootstrap, "enable.idempotence": True, "log_level": 0})
    for number in range(100):
        producer.produce("a", b"%d" % number)
    assert producer.flush(60) == 0
    wait(admin.delete_topics(["b"]))
    for wanted in ([1, 2, 4], [2, 3, 4]):
        _move(cluster, "placed", {0: wanted})
    _move_between_directories(cluster)
    for level in ("downgrade", "0"), ("upgrade", "1"):
        tool(cluster, "features", level[0], "--feature", f"eligible.leader.replicas.version={level[1]}")
    cluster.node(4).stop()
    tool(cluster, "cluster", "--id", "4", before=("unregister",))
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
    wait(admin.create_topics([NewTopic("last", 1, 3)]))


def _wait_gone(cluster: QuorumCluster, number: int, *, asked: int) -> None:
    """Wait until a broker tells clients that another one is away."""

    def is_gone() -> bool:
        view = cluster_view(cluster.node(asked).address)
        return view is not None and number not in view.brokers

    eventually(is_gone, 60)


def wait(futures: dict[object, object]) -> None:
    for future in futures.values():
        future.result(60)  # type: ignore[attr-defined]


def tool(cluster: QuorumCluster, tool: str, *words: str, before: Sequence[str] = ()) -> str:
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
    tool(cluster, "reassign-partitions", *words, "--execute")
    eventually(lambda: "still in progress" not in tool(cluster, "reassign-partitions", *words, "--verify"), 60)


def _move_between_directories(cluster: QuorumCluster) -> None:
    """There and back, of a partition at each broker with two directories."""
    admin = admin_of(cluster)
    wait(admin.create_topics([NewTopic("disks", 2, replica_assignment=[[3, 4], [4, 3]])]))
    for directory in (1, 0):
        for node_id in _WITH_TWO_DIRECTORIES:
            eventually(lambda node_id=node_id: place(cluster, node_id, "disks", 1), 60)
            move_to(cluster, node_id, "disks", 1, directory)
            eventually(lambda node_id=node_id, there=(directory,): place(cluster, node_id, "disks", 1) == there, 60)


def admin_of(cluster: QuorumCluster) -> AdminClient:
    return AdminClient({"bootstrap.servers": cluster.bootstrap, "log_level": 0})


def move_to(cluster: QuorumCluster, node_id: int, topic: str, partition: int, directory: int) -> None:
    """Ask a broker to put a replica into one of its log directories, by number."""
    node = cluster.node(node_id)
    moved = AlterReplicaLogDirTopic(name=topic, partitions=[partition])
    wanted = AlterReplicaLogDir(path=str(node.data_folders[directory]), topics=[moved])
    with connect(node.address) as connection:
        (result,) = connection.call(AlterReplicaLogDirsRequest(dirs=[wanted]), 2).results
    assert [each.error_code for each in result.partitions] == [0]


def place(cluster: QuorumCluster, node_id: int, topic: str, partition: int) -> tuple[int, ...]:
    """The numbers of the log directories in which a broker has a replica: two of them while it moves."""
    folders = [str(folder) for folder in cluster.node(node_id).data_folders]
    with connect(cluster.node(node_id).address) as connection:
        results = connection.call(DescribeLogDirsRequest(topics=None), 4).results
    return tuple(
        folders.index(result.log_dir)
        for result in results
        for found in result.topics
        for each in found.partitions
        if (found.name, each.partition_index) == (topic, partition)
    )
