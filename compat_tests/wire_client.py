"""A client without cleverness: one socket, one frame at a time, every field of a request in the test's hands.

It speaks through the broker's own codec, which other tests hold against Kafka's serializers. ``Operator`` prepares topics
for the suite with it, so that no client under test has a part in that.
"""

from __future__ import annotations

import contextlib
import socket
import struct
from collections.abc import Iterator, Mapping
from typing import Any

from ottla.base.errors import ErrorCode
from ottla.compat_tests.session import eventually
from ottla.wire.api_keys import ApiKey
from ottla.wire.codec import decode, encode_bytes
from ottla.wire.headers import decode_response_header, encode_request_header
from ottla.wire.messages.create_topics import CreatableTopic, CreatableTopicConfig, CreateTopicsRequest
from ottla.wire.messages.delete_topics import DeleteTopicsRequest, DeleteTopicState
from ottla.wire.messages.list_offsets import ListOffsetsPartition, ListOffsetsRequest, ListOffsetsTopic
from ottla.wire.messages.metadata import MetadataRequest, MetadataRequestTopic, MetadataResponseTopic
from ottla.wire.registry import response_class
from ottla.wire.schema import Message

TIMEOUT_S = 20.0
CLIENT_ID = "ottla-compat-wire"


class Connection:
    """A blocking connection. ``timeout_s`` is what one answer may take."""

    def __init__(self, bootstrap: str, timeout_s: float = TIMEOUT_S) -> None:
        host, _, port = bootstrap.rpartition(":")
        self.socket = socket.create_connection((host, int(port)), timeout=timeout_s)
        self._stream = self.socket.makefile("rb")
        self._correlation_id = 0
        self._expected: list[tuple[int, ApiKey, int]] = []

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
def connect(bootstrap: str, timeout_s: float = TIMEOUT_S) -> Iterator[Connection]:
    """A connection for the length of a block."""
    connection = Connection(bootstrap, timeout_s)
    try:
        yield connection
    finally:
        connection.close()


class Operator:
    """Prepares topics: created, every partition led and ready for its first record."""

    def __init__(self, bootstrap: str) -> None:
        self._bootstrap = bootstrap

    def create_topic(self, name: str, partitions: int, configs: Mapping[str, str]) -> None:
        """Create it and wait until each leader serves it. Records of any age stay, unless ``configs`` says otherwise."""
        kept = {"retention.ms": "-1", **configs}
        settings = [CreatableTopicConfig(name=key, value=value) for key, value in kept.items()]
        topic = CreatableTopic(name=name, num_partitions=partitions, replication_factor=1, configs=settings)
        with connect(self._bootstrap) as connection:
            (result,) = connection.call(CreateTopicsRequest(topics=[topic], timeout_ms=20_000), 7).topics
            assert result.error_code == ErrorCode.NONE, (ErrorCode(result.error_code), result.error_message)
        self.wait_until_ready(name, partitions)

    def wait_until_ready(self, name: str, partitions: int) -> None:
        """Wait until the leader of each partition serves it."""
        with connect(self._bootstrap) as connection:
            eventually(lambda: self._is_ready(connection, name, partitions))

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
        wanted = [ListOffsetsPartition(partition_index=partition, timestamp=-1) for partition in partitions]
        request = ListOffsetsRequest(replica_id=-1, topics=[ListOffsetsTopic(name=name, partitions=wanted)])
        with connect(address) as leader:
            (topic,) = leader.call(request, 5).topics
        return all(part.error_code == ErrorCode.NONE for part in topic.partitions)

    def wait_until_ended(self, name: str, partitions: int = 1) -> None:
        """Wait until no transaction is open: the answer to its end leaves before the markers are written."""
        with connect(self._bootstrap) as connection:
            eventually(
                lambda: self._ends(connection, name, partitions, 1) == self._ends(connection, name, partitions, 0)
            )

    def _ends(self, connection: Connection, name: str, partitions: int, isolation_level: int) -> list[tuple[int, int]]:
        wanted = [ListOffsetsPartition(partition_index=partition, timestamp=-1) for partition in range(partitions)]
        topic = ListOffsetsTopic(name=name, partitions=wanted)
        request = ListOffsetsRequest(replica_id=-1, isolation_level=isolation_level, topics=[topic])
        answers = connection.call(request, 5).topics[0].partitions
        assert all(answer.error_code == ErrorCode.NONE for answer in answers)
        return sorted((answer.partition_index, answer.offset) for answer in answers)

    def topics(self) -> set[str]:
        """The names of all topics."""
        with connect(self._bootstrap) as connection:
            return {topic.name for topic in connection.call(MetadataRequest(topics=None), 12).topics}

    def delete_topic(self, name: str) -> None:
        """Delete it; one that the test has deleted already is fine."""
        with connect(self._bootstrap) as connection:
            connection.call(DeleteTopicsRequest(topics=[DeleteTopicState(name=name)], timeout_ms=20_000), 6)


def describe(connection: Connection, topic: str) -> Any:
    """Metadata of one topic, which is not created by asking."""
    request = MetadataRequest(topics=[MetadataRequestTopic(name=topic)], allow_auto_topic_creation=False)
    return connection.call(request, 12)


def topic_metadata(connection: Connection, topic: str) -> MetadataResponseTopic:
    """The topic's part of Metadata."""
    described: MetadataResponseTopic = describe(connection, topic).topics[0]
    return described
