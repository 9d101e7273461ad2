"""A minimal wire client: one socket, one frame at a time, every request field under the test's control.

It speaks through the broker's own codec, which other tests hold against Kafka's serializers. ``Operator`` prepares topics
for the suite with it, so that no client under test has a part in that.
"""

from __future__ import annotations

import contextlib
import socket
import struct
from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import partial
from typing import Any, NamedTuple

from ottla.base.errors import ErrorCode
from ottla.compat_tests.clients.security import Security
from ottla.compat_tests.login import encrypted, log_in
from ottla.compat_tests.session import eventually
from ottla.wire.api_keys import ApiKey
from ottla.wire.codec import decode, encode_bytes
from ottla.wire.headers import decode_response_header, encode_request_header
from ottla.wire.messages.create_topics import (
    CreatableReplicaAssignment,
    CreatableTopic,
    CreatableTopicConfig,
    CreateTopicsRequest,
)
from ottla.wire.messages.delete_topics import DeleteTopicsRequest, DeleteTopicState
from ottla.wire.messages.list_offsets import ListOffsetsPartition, ListOffsetsRequest, ListOffsetsTopic
from ottla.wire.messages.metadata import MetadataRequest, MetadataRequestTopic, MetadataResponseTopic
from ottla.wire.registry import response_class
from ottla.wire.schema import Message

TIMEOUT_S = 20.0
CLIENT_ID = "ottla-compat-wire"
_NOT_NOW = (ErrorCode.NOT_CONTROLLER, ErrorCode.INVALID_REPLICATION_FACTOR)


class _Run:
    """What holds for all connections of this process: most tests are not about how they get in."""

    security = Security()


def use(security: Security) -> None:
    """Have the connections that are made from now on get in this way, if they are not told another."""
    _Run.security = security


class Connection:
    """A blocking connection, to the first of several addresses that takes it. ``timeout_s`` is what one answer may take.

    ``source``: the address of this machine that it comes from. Raises OSError, EOFError where it does not get in.
    """

    def __init__(
        self, bootstrap: str, timeout_s: float = TIMEOUT_S, security: Security | None = None, *, source: str = ""
    ) -> None:
        security = security or _Run.security
        self.socket = _dial(bootstrap.split(","), timeout_s, source)
        if security.is_encrypted:
            self.socket = encrypted(self.socket, _host(bootstrap), security)
        self._stream = self.socket.makefile("rb")
        self._correlation_id = 0
        self._expected: list[tuple[int, ApiKey, int]] = []
        if security.mechanism is not None:
            log_in(self, security)

    def send_frame(self, frame: bytes) -> None:
        """One frame, which may hold anything."""
        self.socket.sendall(struct.pack(">i", len(frame)) + frame)

    def receive_frame(self) -> bytes:
        """The next frame; EOFError when the broker has closed the connection, be it in the middle of one."""
        (size,) = struct.unpack(">i", self._read(4))
        return self._read(size)

    def _read(self, size: int) -> bytes:
        try:
            data = self._stream.read(size)
        except ConnectionResetError:
            data = b""
        if len(data) < size:
            raise EOFError("the broker has closed the connection")
        return data

    def send(self, request: Message, version: int, *, client_id: str | None = CLIENT_ID, answered: bool = True) -> None:
        """Send a request; with ``answered`` its answer is expected, in this order."""
        self._correlation_id += 1
        key = ApiKey(type(request).api_key)
        header = encode_request_header(key, version, self._correlation_id, client_id)
        if answered:
            self._expected.append((self._correlation_id, key, version))
        self.send_frame(header + encode_bytes(request, version))

    def receive(self) -> Any:
        """The answer to the oldest request that has none yet."""
        correlation_id, key, version = self._expected.pop(0)
        frame = self.receive_frame()
        got, body = decode_response_header(frame, key, version)
        assert got == correlation_id, f"answer {got} came where {correlation_id} was due"
        return decode(response_class(key), version, memoryview(frame)[body:])

    def call(self, request: Message, version: int, *, client_id: str | None = CLIENT_ID) -> Any:
        """Send and receive."""
        self.send(request, version, client_id=client_id)
        return self.receive()

    def is_silent(self, wait_s: float = 0.3) -> bool:
        """Whether nothing at all arrives for a moment."""
        before = self.socket.gettimeout()
        self.socket.settimeout(wait_s)
        try:
            return not self.socket.recv(1, socket.MSG_PEEK) and False
        except TimeoutError:
            return True
        finally:
            self.socket.settimeout(before)

    def close(self) -> None:
        """Close the socket."""
        self._stream.close()
        self.socket.close()


@contextlib.contextmanager
def connect(bootstrap: str, timeout_s: float = TIMEOUT_S, security: Security | None = None) -> Iterator[Connection]:
    """A connection for the length of a block."""
    connection = Connection(bootstrap, timeout_s, security)
    try:
        yield connection
    finally:
        connection.close()


def _dial(addresses: Sequence[str], timeout_s: float, source: str) -> socket.socket:
    for address in addresses[:-1]:
        with contextlib.suppress(OSError):
            return _dial([address], timeout_s, source)
    host, _, port = addresses[-1].rpartition(":")
    return socket.create_connection((host, int(port)), timeout_s, (source, 0) if source else None)


def _host(bootstrap: str) -> str:
    """That of the first address: the brokers of a test are on one host."""
    return bootstrap.partition(",")[0].rpartition(":")[0]


class ClusterView(NamedTuple):
    """What one broker tells clients of the cluster: the controller's id or -1, and brokers' addresses by id."""

    controller: int
    brokers: Mapping[int, str]


def cluster_view(bootstrap: str, timeout_s: float = 5.0, security: Security | None = None) -> ClusterView | None:
    """What a broker tells of the cluster; None while it does not answer."""
    try:
        with connect(bootstrap, timeout_s, security) as connection:
            answer = connection.call(MetadataRequest(topics=[]), 12)
    except (OSError, EOFError):
        return None
    return ClusterView(answer.controller_id, {each.node_id: f"{each.host}:{each.port}" for each in answer.brokers})


class Operator:
    """Prepares topics, of one broker or a cluster: created, every partition led and ready for its first record.

    With ``leader``, the id of a broker, that one leads all of them.
    """

    def __init__(self, bootstrap: str, leader: int | None = None) -> None:
        self._bootstrap = bootstrap
        self._leader = leader

    def create_topic(
        self, name: str, partitions: int, configs: Mapping[str, str], replicas: Sequence[Sequence[int]] = ()
    ) -> None:
        """Create it and wait until each leader serves it. Records of any age stay, unless ``configs`` says otherwise.

        It has as many replicas as the brokers give a topic (``default.replication.factor``); with a ``leader``, one on
        every broker; or those that ``replicas`` names for each partition.
        """
        kept = {"retention.ms": "-1", **configs}
        settings = [CreatableTopicConfig(name=key, value=value) for key, value in kept.items()]
        topic = CreatableTopic(name=name, num_partitions=partitions, replication_factor=-1, configs=settings)
        if self._leader is not None or replicas:
            topic.num_partitions = -1  # they are counted
            topic.assignments = _assigned(replicas or [self._led_by(self._leader)] * partitions)
        result = self._at_controller(
            CreateTopicsRequest(topics=[topic], timeout_ms=20_000), 7, lambda each: each.topics[0]
        )
        assert result.error_code == ErrorCode.NONE, (ErrorCode(result.error_code), result.error_message)
        self.wait_until_ready(name, partitions)

    def _led_by(self, leader: int | None) -> list[int]:
        view = cluster_view(self._bootstrap, TIMEOUT_S)
        assert view is not None, f"{self._bootstrap} does not answer"
        return sorted(view.brokers, key=lambda broker: (broker != leader, broker))

    def delete_topic(self, name: str) -> None:
        """Delete it; one that the test has deleted already is fine."""
        request = DeleteTopicsRequest(topics=[DeleteTopicState(name=name)], timeout_ms=20_000)
        self._at_controller(request, 6, lambda answer: answer.responses[0])

    def _at_controller(self, request: Message, version: int, result_of: Callable[[Any], Any]) -> Any:
        """The result that the controller gives, which may have become another one meanwhile.

        On a busy machine a broker's session may have ended, and there are too few for the replicas until it is back.
        """

        def ask() -> Any:
            view = cluster_view(self._bootstrap, TIMEOUT_S)
            if view is None or view.controller not in view.brokers:
                return None
            with connect(view.brokers[view.controller]) as connection:
                result = result_of(connection.call(request, version))
            return None if result.error_code in _NOT_NOW else result

        return eventually(ask)

    def wait_until_ready(self, name: str, partitions: int) -> None:
        """Wait until the leader of each partition serves it, and every broker tells clients of them."""
        with connect(self._bootstrap) as connection:
            addresses = [f"{broker.host}:{broker.port}" for broker in describe(connection, name).brokers]
        for address in addresses:
            with connect(address) as connection:
                eventually(partial(self._is_ready, connection, name, partitions))

    def _is_ready(self, connection: Connection, name: str, partitions: int) -> bool:
        description = describe(connection, name)
        leaders = {part.partition_index: part.leader_id for part in description.topics[0].partitions}
        if len(leaders) < partitions or min(leaders.values()) < 0:
            return False
        # Metadata may run ahead of the leader's own knowledge: only an answer of the leader shows that it leads.
        addresses = {broker.node_id: f"{broker.host}:{broker.port}" for broker in description.brokers}
        return all(
            self._leads(addresses[leader], name, [part for part in leaders if leaders[part] == leader])
            for leader in set(leaders.values())
        )

    def _leads(self, address: str, name: str, partitions: list[int]) -> bool:
        with connect(address) as leader:
            return all(part.error_code == ErrorCode.NONE for part in _list_offsets(leader, name, partitions, 0))

    def wait_until_ended(self, name: str, partitions: int = 1) -> None:
        """Wait until no transaction is open: the answer to its end leaves before the markers are written."""
        eventually(lambda: not self.has_open_transaction(name, partitions))

    def has_open_transaction(self, name: str, partitions: int = 1) -> bool:
        """Whether a partition has records of a transaction that has no end yet."""
        return self._ends(name, partitions, 1) != self._ends(name, partitions, 0)

    def _ends(self, name: str, partitions: int, isolation_level: int) -> list[tuple[int, int]]:
        ends = []
        for partition in range(partitions):
            with connect(self.leader(name, partition)) as connection:
                (answer,) = _list_offsets(connection, name, [partition], isolation_level)
            assert answer.error_code == ErrorCode.NONE
            ends.append((partition, answer.offset))
        return ends

    def leader(self, name: str, partition: int = 0) -> str:
        """The address of a partition's leader."""
        with connect(self._bootstrap) as connection:
            description = describe(connection, name)
        (leader,) = [each.leader_id for each in description.topics[0].partitions if each.partition_index == partition]
        (address,) = [f"{each.host}:{each.port}" for each in description.brokers if each.node_id == leader]
        return address

    def topics(self) -> set[str]:
        """The names of all topics."""
        with connect(self._bootstrap) as connection:
            return {topic.name for topic in connection.call(MetadataRequest(topics=None), 12).topics}


def _assigned(replicas: Sequence[Sequence[int]]) -> list[CreatableReplicaAssignment]:
    return [
        CreatableReplicaAssignment(partition_index=partition, broker_ids=list(brokers))
        for partition, brokers in enumerate(replicas)
    ]


def _list_offsets(connection: Connection, name: str, partitions: list[int], isolation_level: int) -> list[Any]:
    """The ends of partitions, as their leader tells them."""
    wanted = [ListOffsetsPartition(partition_index=partition, timestamp=-1) for partition in partitions]
    topic = ListOffsetsTopic(name=name, partitions=wanted)
    request = ListOffsetsRequest(replica_id=-1, isolation_level=isolation_level, topics=[topic])
    return list(connection.call(request, 5).topics[0].partitions)


def describe(connection: Connection, topic: str) -> Any:
    """Metadata of one topic, which is not created by asking."""
    request = MetadataRequest(topics=[MetadataRequestTopic(name=topic)], allow_auto_topic_creation=False)
    return connection.call(request, 12)


def topic_metadata(connection: Connection, topic: str) -> MetadataResponseTopic:
    """The topic's part of Metadata."""
    described: MetadataResponseTopic = describe(connection, topic).topics[0]
    return described
