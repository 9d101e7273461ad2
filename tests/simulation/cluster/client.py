"""A client of a cluster: it finds leaders and coordinators by Metadata and FindCoordinator, again when they have moved.

``ClusterClient.call`` sends the requests of ``Actor``\\ s, each about one partition, group or transactional id. Like Kafka's
clients, it ignores Metadata with an older leader epoch than it has seen, and has its epoch in Fetch and ListOffsets (KIP-320),
so that a former leader is detected.
"""

from __future__ import annotations

import functools
import random
from typing import Any

import trio

from ottla.base.errors import ErrorCode
from ottla.replication.broker_client import BrokerClient, NoAnswerError
from ottla.wire.messages.add_offsets_to_txn import AddOffsetsToTxnRequest
from ottla.wire.messages.add_partitions_to_txn import AddPartitionsToTxnRequest
from ottla.wire.messages.alter_partition_reassignments import AlterPartitionReassignmentsRequest
from ottla.wire.messages.consumer_group_describe import ConsumerGroupDescribeRequest
from ottla.wire.messages.consumer_group_heartbeat import ConsumerGroupHeartbeatRequest
from ottla.wire.messages.create_topics import CreateTopicsRequest
from ottla.wire.messages.delete_records import DeleteRecordsRequest
from ottla.wire.messages.delete_topics import DeleteTopicsRequest
from ottla.wire.messages.elect_leaders import ElectLeadersRequest
from ottla.wire.messages.end_txn import EndTxnRequest
from ottla.wire.messages.fetch import FetchRequest
from ottla.wire.messages.find_coordinator import FindCoordinatorRequest
from ottla.wire.messages.heartbeat import HeartbeatRequest
from ottla.wire.messages.init_producer_id import InitProducerIdRequest
from ottla.wire.messages.join_group import JoinGroupRequest
from ottla.wire.messages.leave_group import LeaveGroupRequest
from ottla.wire.messages.list_offsets import ListOffsetsRequest
from ottla.wire.messages.metadata import MetadataRequest, MetadataRequestTopic, MetadataResponse
from ottla.wire.messages.offset_commit import OffsetCommitRequest
from ottla.wire.messages.offset_fetch import OffsetFetchRequest
from ottla.wire.messages.produce import ProduceRequest
from ottla.wire.messages.sync_group import SyncGroupRequest
from ottla.wire.messages.txn_offset_commit import TxnOffsetCommitRequest
from ottla.wire.schema import Array, Message, Struct

from ..history import TopicPartition
from ..network import Lost, TroubledNetwork
from .network import ClusterNetwork

REQUEST_SECONDS = 5.0
_PAUSE_SECONDS = 0.05
_GROUP, _TRANSACTION = 0, 1
_TO_CONTROLLER = (
    AlterPartitionReassignmentsRequest,
    CreateTopicsRequest,
    DeleteTopicsRequest,
    ElectLeadersRequest,
)
_OF_GROUPS = (
    ConsumerGroupHeartbeatRequest,
    HeartbeatRequest,
    JoinGroupRequest,
    LeaveGroupRequest,
    OffsetCommitRequest,
    SyncGroupRequest,
    TxnOffsetCommitRequest,
)
_MOVED = frozenset(
    {
        ErrorCode.NOT_LEADER_OR_FOLLOWER,
        ErrorCode.LEADER_NOT_AVAILABLE,
        ErrorCode.UNKNOWN_TOPIC_OR_PARTITION,
        ErrorCode.FENCED_LEADER_EPOCH,
        ErrorCode.UNKNOWN_LEADER_EPOCH,
        ErrorCode.KAFKA_STORAGE_ERROR,
        ErrorCode.NOT_CONTROLLER,
        ErrorCode.NOT_COORDINATOR,
        ErrorCode.COORDINATOR_NOT_AVAILABLE,
    }
)


class ClusterClient:
    """One client, on a host with its own name. ``brokers`` are its bootstrap servers."""

    def __init__(self, network: ClusterNetwork, name: str, brokers: dict[str, int], rng: random.Random) -> None:
        self.name = name
        self._rng = rng
        self._network = TroubledNetwork(network.host(name), rng)
        self._bootstrap = list(brokers.items())
        self._clients: dict[tuple[str, int], BrokerClient] = {}
        self._leaders: dict[TopicPartition, tuple[str, int]] = {}
        self._epochs: dict[TopicPartition, int] = {}
        self._coordinators: dict[tuple[int, str], tuple[str, int]] = {}
        self._controller: tuple[str, int] | None = None

    async def call(self, request: Message, version: int) -> Any:
        """Send a request to the right broker; returns the response. Raises Lost."""
        try:
            address = await self._address(request)
            self._add_epoch(request)
            answer = await self._send(address, request, version)
        except Lost:
            self._forget(request)
            await trio.sleep(_PAUSE_SECONDS * self._rng.uniform(0.5, 2))
            raise
        if not _MOVED.isdisjoint(_codes(answer)):
            self._forget(request)
        return answer

    def close(self) -> None:
        """Abandon the connections, as a client that dies; the next call is made as a new client."""
        for client in self._clients.values():
            client.close()
        self._clients.clear()

    async def _send(self, address: tuple[str, int], request: Message, version: int) -> Any:
        client = self._clients.get(address)
        if client is None:
            client = BrokerClient(self._network, *address, self.name, timeout=REQUEST_SECONDS)
            self._clients[address] = client
        try:
            return await client.send(request, version)
        except NoAnswerError as error:
            raise Lost(str(error)) from None

    # --- where to ask -------------------------------------------------------------------------------------------------

    async def _address(self, request: Message) -> tuple[str, int]:
        if (partition := _partition(request)) is not None:
            if partition not in self._leaders:
                await self._look_up(partition)
            return self._leaders[partition]
        if (coordinator := _coordinator(request)) is not None:
            if coordinator not in self._coordinators:
                self._coordinators[coordinator] = await self._find(*coordinator)
            return self._coordinators[coordinator]
        if isinstance(request, _TO_CONTROLLER):
            if self._controller is None:
                await self._look_up(None)
            if self._controller is None:
                raise Lost("there is no controller")
            return self._controller
        return self._any()

    def _any(self) -> tuple[str, int]:
        return self._rng.choice(self._bootstrap)

    async def _look_up(self, partition: TopicPartition | None) -> None:
        """Look up leaders and the controller at any broker. Raises Lost."""
        topics = [] if partition is None else [MetadataRequestTopic(name=partition[0])]
        request = MetadataRequest(topics=topics, allow_auto_topic_creation=False)
        answer: MetadataResponse = await self._send(self._any(), request, 9)
        brokers = {broker.node_id: (broker.host, broker.port) for broker in answer.brokers}
        self._controller = brokers.get(answer.controller_id)
        for topic in answer.topics:
            for part in topic.partitions:
                key = (topic.name or "", part.partition_index)
                if part.leader_id in brokers and part.leader_epoch >= self._epochs.get(key, -1):
                    self._leaders[key] = brokers[part.leader_id]
                    self._epochs[key] = part.leader_epoch
        if partition is not None and partition not in self._leaders:
            raise Lost(f"{partition} has no leader")

    async def _find(self, key_type: int, key: str) -> tuple[str, int]:
        request = FindCoordinatorRequest(key_type=key_type, coordinator_keys=[key])
        (found,) = (await self._send(self._any(), request, 4)).coordinators
        if found.error_code:
            raise Lost(f"{key} has no coordinator: {ErrorCode(found.error_code).name}")
        return found.host, found.port

    def _forget(self, request: Message) -> None:
        """Forget where to send this request: it is outdated."""
        if (partition := _partition(request)) is not None:
            self._leaders.pop(partition, None)
        elif (coordinator := _coordinator(request)) is not None:
            self._coordinators.pop(coordinator, None)
        else:
            self._controller = None

    def _add_epoch(self, request: Message) -> None:
        if isinstance(request, FetchRequest):
            part: Any = request.topics[0].partitions[0]
        elif isinstance(request, ListOffsetsRequest):
            part = request.topics[0].partitions[0]
        else:
            return
        part.current_leader_epoch = self._epochs[_partition(request) or ("", 0)]


def _partition(request: Message) -> TopicPartition | None:
    """The partition of a request to its leader."""
    match request:
        case ProduceRequest():
            return request.topic_data[0].name, request.topic_data[0].partition_data[0].index
        case FetchRequest():
            return request.topics[0].topic, request.topics[0].partitions[0].partition
        case ListOffsetsRequest() | DeleteRecordsRequest():
            return request.topics[0].name, request.topics[0].partitions[0].partition_index
    return None


def _coordinator(request: Message) -> tuple[int, str] | None:
    """The kind and the key of the coordinator that a request is for."""
    match request:
        case AddPartitionsToTxnRequest():
            return _TRANSACTION, request.v3_and_below_transactional_id
        case AddOffsetsToTxnRequest() | EndTxnRequest():
            return _TRANSACTION, request.transactional_id
        case InitProducerIdRequest() if request.transactional_id is not None:
            return _TRANSACTION, request.transactional_id
        case OffsetFetchRequest():
            return _GROUP, request.groups[0].group_id
        case ConsumerGroupDescribeRequest():
            return _GROUP, request.group_ids[0]
    return (_GROUP, request.group_id) if isinstance(request, _OF_GROUPS) else None  # type: ignore[attr-defined]


def _codes(value: Struct) -> set[int]:
    """All error codes of a response."""
    names, inner_names = _places_of_codes(type(value))
    found = {getattr(value, name) for name in names}
    for name in inner_names:
        inner = getattr(value, name)
        for element in inner if isinstance(inner, list) else [inner]:
            if element is not None:
                found |= _codes(element)
    return found


@functools.cache
def _places_of_codes(kind: type[Struct]) -> tuple[list[str], list[str]]:
    """The fields that are error codes, and those that contain some."""
    names, inner_names = [], []
    for spec in kind.fields:
        inner = spec.type.element if isinstance(spec.type, Array) else spec.type
        if spec.name.endswith("error_code"):
            names.append(spec.name)
        elif isinstance(inner, type) and any(_places_of_codes(inner)):
            inner_names.append(spec.name)
    return names, inner_names
