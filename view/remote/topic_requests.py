"""Requests about topics: Metadata, ListOffsets, DescribeLogDirs, DescribeConfigs, DescribeProducers.

As few requests as there can be: one for all topics, or one for each broker with all that it leads, in parts of ``_AT_ONCE``. A
partition of which a broker does not tell is left out of a response; a broker that does not answer is told to ``failed``.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from typing import NamedTuple

from ...base.errors import ErrorCode, KafkaError, known_code
from ...base.partitions import TopicPartition
from ...handlers.config_entries import ConfigSource
from ...wire.messages.describe_configs import (
    DescribeConfigsRequest,
    DescribeConfigsResource,
    DescribeConfigsResourceResult,
    DescribeConfigsResponse,
)
from ...wire.messages.describe_log_dirs import DescribeLogDirsRequest, DescribeLogDirsResponse
from ...wire.messages.describe_producers import DescribeProducersRequest, DescribeProducersResponse, TopicRequest
from ...wire.messages.list_offsets import (
    ListOffsetsPartition,
    ListOffsetsRequest,
    ListOffsetsResponse,
    ListOffsetsTopic,
)
from ...wire.messages.metadata import MetadataRequest, MetadataRequestTopic, MetadataResponse, MetadataResponseTopic
from ..disk_space import DiskRow
from ..rows import ConfigRow, ProducerRow, id_text
from .cluster_client import BrokerClients, ClusterClient, of_each

Failed = Callable[[int, Exception], None]

LATEST, EARLIEST, LARGEST_TIMESTAMP = -1, -2, -3
_AT_ONCE = 5000
_TOPICS_AT_ONCE = 500
_TOPIC = 2
_MAX_TIMESTAMP_VERSION = 7
_MIN_ISR = "min.insync.replicas"
_SHOWN_SETTINGS = ("cleanup.policy", "retention.ms", "retention.bytes")


class PartitionInfo(NamedTuple):
    leader: int | None
    replicas: tuple[int, ...]
    isr: tuple[int, ...]


class TopicWithPartitions(NamedTuple):
    name: str
    topic_id: str
    is_internal: bool
    partitions: Mapping[int, PartitionInfo]


class BrokerAddress(NamedTuple):
    host: str
    port: int
    rack: str | None


class ClusterState(NamedTuple):
    """The cluster as Metadata tells it, its brokers by their ids."""

    cluster_id: str = ""
    controller_id: int = -1
    brokers: Mapping[int, BrokerAddress] = {}
    topics: Mapping[str, TopicWithPartitions] = {}

    def leaders(self, keys: Iterable[TopicPartition]) -> dict[int, list[TopicPartition]]:
        """Those of the partitions that have a leader, by it."""
        found: dict[int, list[TopicPartition]] = {}
        for key in keys:
            state = self.topics.get(key.topic)
            partition = None if state is None else state.partitions.get(key.partition)
            if partition is not None and partition.leader is not None:
                found.setdefault(partition.leader, []).append(key)
        return found


async def cluster_state(client: ClusterClient, topics: Iterable[str] | None = None) -> ClusterState:
    """The cluster with these topics, or with all of them. The client follows it. Raises OSError, KafkaError."""
    asked = None if topics is None else [MetadataRequestTopic(name=name) for name in topics]
    request = MetadataRequest(topics=asked, allow_auto_topic_creation=False)
    response: MetadataResponse = await client.ask_any(request)
    client.follow(response)
    return ClusterState(
        response.cluster_id or "",
        response.controller_id,
        {broker.node_id: BrokerAddress(broker.host, broker.port, broker.rack) for broker in response.brokers},
        {each.name: _topic(each) for each in response.topics if each.name is not None and not each.error_code},
    )


def _topic(topic: MetadataResponseTopic) -> TopicWithPartitions:
    partitions = {
        each.partition_index: PartitionInfo(
            each.leader_id if each.leader_id >= 0 else None, tuple(each.replica_nodes), tuple(each.isr_nodes)
        )
        for each in sorted(topic.partitions, key=lambda each: each.partition_index)
    }
    return TopicWithPartitions(topic.name or "", id_text(topic.topic_id), topic.is_internal, partitions)


class Offset(NamedTuple):
    """An offset found by ListOffsets."""

    offset: int
    time_ms: int
    """-1 if the response has none."""


async def offsets(
    client: BrokerClients,
    by_leader: Mapping[int, Sequence[TopicPartition]],
    timestamp: int,
    failed: Failed,
    *,
    is_committed: bool = False,
) -> dict[TopicPartition, Offset]:
    """The offsets at a timestamp, or one of the special ones; ``is_committed``: before open transactions only."""
    found: dict[TopicPartition, Offset] = {}

    async def ask(leader: int) -> None:
        for part in _parts(by_leader[leader], _AT_ONCE):
            topics = [
                ListOffsetsTopic(
                    name=name,
                    partitions=[
                        ListOffsetsPartition(partition_index=number, timestamp=timestamp) for number in numbers
                    ],
                )
                for name, numbers in _by_topic(part).items()
            ]
            if timestamp == LARGEST_TIMESTAMP:
                version = await client.version(leader, ListOffsetsRequest)
                if version < _MAX_TIMESTAMP_VERSION:
                    return
            request = ListOffsetsRequest(replica_id=-1, isolation_level=int(is_committed), topics=topics)
            response: ListOffsetsResponse = await client.ask(leader, request)
            for topic in response.topics:
                for each in topic.partitions:
                    if not each.error_code:
                        found[TopicPartition(topic.name, each.partition_index)] = Offset(each.offset, each.timestamp)

    await of_each(by_leader, ask, failed)
    return found


def _by_topic(keys: Iterable[TopicPartition]) -> dict[str, list[int]]:
    found: dict[str, list[int]] = {}
    for name, number in keys:
        found.setdefault(name, []).append(number)
    return found


def _parts(keys: Sequence[TopicPartition], size: int) -> Iterator[Sequence[TopicPartition]]:
    for start in range(0, len(keys), size):
        yield keys[start : start + size]


class DataFolders(NamedTuple):
    """What brokers tell of their log directories."""

    sizes: Mapping[TopicPartition, int] = {}
    """Bytes of the leaders' replicas."""
    disks: Sequence[DiskRow] = ()
    refused: str = ""
    """The error of a broker that refuses, for example because DESCRIBE on the cluster is not granted."""
    others: frozenset[str] = frozenset()
    """The topics in the folders that the cluster's state has not: they are new, or being deleted, or may not be described."""


async def log_directories(client: ClusterClient, cluster: ClusterState, failed: Failed) -> DataFolders:
    """The log directories of all brokers that answer, and what is in them."""
    found: dict[TopicPartition, int] = {}
    disks: list[DiskRow] = []
    refused: list[str] = []
    others: set[str] = set()

    async def ask(broker: int) -> None:
        response: DescribeLogDirsResponse = await client.ask(broker, DescribeLogDirsRequest(topics=None))
        if response.error_code:
            refused.append(known_code(response.error_code).name)
        elif not response.results:
            refused.append(f"broker {broker} does not report its log directories")
        for folder in response.results:
            failure = known_code(folder.error_code).name if folder.error_code else ""
            disks.append(
                DiskRow(broker, folder.log_dir, _told(folder.total_bytes), _told(folder.usable_bytes), failure)
            )
            for topic in folder.topics:
                state = cluster.topics.get(topic.name)
                if state is None:
                    others.add(topic.name)
                for each in topic.partitions:
                    partition = None if state is None else state.partitions.get(each.partition_index)
                    if partition is not None and partition.leader == broker and not each.is_future_key:
                        found[TopicPartition(topic.name, each.partition_index)] = each.partition_size

    await of_each(cluster.brokers, ask, failed)
    disks.sort(key=lambda row: (row.broker_id, row.path))
    return DataFolders(found, disks, refused[0] if refused else "", frozenset(others))


def _told(size: int) -> int | None:
    return size if size >= 0 else None


class RetentionConfig(NamedTuple):
    """How long a topic's records are kept."""

    cleanup_policy: str | None
    retention_ms: int | None
    retention_bytes: int | None


async def kept(client: ClusterClient, topics: Iterable[str]) -> dict[str, RetentionConfig]:
    """Of each topic that may be asked about. Raises OSError, KafkaError."""
    found: dict[str, RetentionConfig] = {}
    for topic, values in (await _values(client, topics, _SHOWN_SETTINGS)).items():
        policy, time, size = (values.get(name) for name in _SHOWN_SETTINGS)
        found[topic] = RetentionConfig(policy, _number(time), _number(size))
    return found


async def min_isrs(client: ClusterClient, topics: Iterable[str]) -> dict[str, int]:
    """How many replicas have to be in sync for acks=all, of each topic that may be asked about. Raises OSError, KafkaError."""
    found = await _values(client, topics, (_MIN_ISR,))
    return {topic: _number(values.get(_MIN_ISR)) or 1 for topic, values in found.items()}


async def _values(
    client: ClusterClient, topics: Iterable[str], settings: Sequence[str]
) -> dict[str, dict[str, str | None]]:
    found: dict[str, dict[str, str | None]] = {}
    names = list(topics)
    for start in range(0, len(names), _TOPICS_AT_ONCE):
        resources = [
            DescribeConfigsResource(resource_type=_TOPIC, resource_name=name, configuration_keys=list(settings))
            for name in names[start : start + _TOPICS_AT_ONCE]
        ]
        response: DescribeConfigsResponse = await client.ask_any(DescribeConfigsRequest(resources=resources))
        for result in response.results:
            if not result.error_code:
                found[result.resource_name] = {each.name: each.value for each in result.configs}
    return found


def _number(text: str | None) -> int | None:
    return int(text) if text else None


async def settings(client: ClusterClient, topic: str) -> list[ConfigRow]:
    """A topic's settings with where each comes from; none where they may not be asked for. Raises OSError, KafkaError."""
    resource = DescribeConfigsResource(resource_type=_TOPIC, resource_name=topic, configuration_keys=None)
    request = DescribeConfigsRequest(resources=[resource], include_documentation=True)
    response: DescribeConfigsResponse = await client.ask_any(request)
    return [_setting(each) for result in response.results for each in result.configs]


def _setting(entry: DescribeConfigsResourceResult) -> ConfigRow:
    try:
        source = ConfigSource(entry.config_source).name
    except ValueError:  # one that is newer
        source = str(entry.config_source)
    value = "" if entry.is_sensitive else entry.value or ""
    return ConfigRow(entry.name, value, source, entry.documentation or "")


async def producers(
    client: ClusterClient, by_leader: Mapping[int, Sequence[TopicPartition]], failed: Failed
) -> list[ProducerRow]:
    """The producers that the leaders remember; none where they are older than KIP-664, or may not be asked."""
    rows: list[ProducerRow] = []

    async def ask(leader: int) -> None:
        topics = [
            TopicRequest(name=name, partition_indexes=found) for name, found in _by_topic(by_leader[leader]).items()
        ]
        try:
            response: DescribeProducersResponse = await client.ask(leader, DescribeProducersRequest(topics=topics))
        except KafkaError as error:
            if error.code is ErrorCode.UNSUPPORTED_VERSION:
                return
            raise
        for topic in response.topics:
            for partition in topic.partitions:
                rows.extend(
                    ProducerRow(
                        partition.partition_index,
                        each.producer_id,
                        each.producer_epoch,
                        each.last_sequence,
                        each.last_timestamp,
                        each.current_txn_start_offset if each.current_txn_start_offset >= 0 else None,
                    )
                    for each in partition.active_producers
                )

    await of_each(by_leader, ask, failed)
    return rows
