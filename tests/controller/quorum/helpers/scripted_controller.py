"""An active controller, played by a test: it registers brokers, makes topics and moves leaders, by the records of its log.

It does what a broker needs of it and no more; what Apache Kafka's does beside that, the tests of mixed clusters show.
"""

from __future__ import annotations

import random
from typing import Any

from ottla.base.errors import ErrorCode
from ottla.base.memory_network import MemoryNetwork
from ottla.metadata.types import UNASSIGNED_DIRECTORY
from ottla.wire.api_keys import ApiKey
from ottla.wire.codec import decode, encode_bytes
from ottla.wire.headers import decode_request_header, response_header_encoder
from ottla.wire.messages import alter_partition, broker_registration
from ottla.wire.messages.allocate_producer_ids import AllocateProducerIdsRequest, AllocateProducerIdsResponse
from ottla.wire.messages.alter_partition import AlterPartitionRequest, AlterPartitionResponse
from ottla.wire.messages.broker_heartbeat import BrokerHeartbeatRequest, BrokerHeartbeatResponse
from ottla.wire.messages.broker_records import (
    BrokerEndpoint,
    BrokerFeature,
    BrokerRegistrationChangeRecord,
    RegisterBrokerRecord,
)
from ottla.wire.messages.broker_registration import BrokerRegistrationRequest, BrokerRegistrationResponse
from ottla.wire.messages.create_topics import CreatableTopicResult, CreateTopicsRequest, CreateTopicsResponse
from ottla.wire.messages.delete_topics import DeletableTopicResult, DeleteTopicsRequest, DeleteTopicsResponse
from ottla.wire.messages.envelope import EnvelopeRequest, EnvelopeResponse
from ottla.wire.messages.incremental_alter_configs import (
    AlterConfigsResourceResponse,
    IncrementalAlterConfigsRequest,
    IncrementalAlterConfigsResponse,
)
from ottla.wire.messages.setting_records import ConfigRecord, FeatureLevelRecord, ProducerIdsRecord
from ottla.wire.messages.topic_records import PartitionChangeRecord, PartitionRecord, RemoveTopicRecord, TopicRecord
from ottla.wire.registry import request_class
from ottla.wire.schema import Message

from .scripted_quorum import ScriptedQuorum

FEATURES = {"metadata.version": 30, "transaction.version": 2}
_NO_LEADER = -1
_BLOCK = 1000


class ScriptedController(ScriptedQuorum):
    """``replicas`` are those that new topics get. ``refusal_to_register`` stands in place of a registration."""

    def __init__(self, network: MemoryNetwork, size: int = 1) -> None:
        super().__init__(network, size)
        self.replicas = [1]
        self.directory = UNASSIGNED_DIRECTORY
        """Where the replicas of new topics are."""
        self.refusal_to_register = ErrorCode.NONE
        self.is_unfencing = True
        self.registrations: list[BrokerRegistrationRequest] = []
        self.heartbeats: list[BrokerHeartbeatRequest] = []
        self.envelopes: list[EnvelopeRequest] = []
        self.topics: dict[str, bytes] = {}
        self.partitions: dict[tuple[bytes, int], PartitionRecord] = {}
        self.keeps_directories = True
        """Whether a registration in the log has log directories, as it has since ``metadata.version`` 17."""
        self._incarnations: dict[int, bytes] = {}
        self._epochs: dict[int, int] = {}
        self._unfenced: set[int] = set()
        self._next_producer_id = 0
        self._random = random.Random(7)
        self.answers = {
            BrokerRegistrationRequest: self._register,
            BrokerHeartbeatRequest: self._beat,
            AlterPartitionRequest: self._alter_partition,
            AllocateProducerIdsRequest: self._allocate,
            EnvelopeRequest: self._open,
            CreateTopicsRequest: self._create,
        }
        self.append()
        self.append(*(FeatureLevelRecord(name=name, feature_level=level) for name, level in FEATURES.items()))

    # --- brokers ------------------------------------------------------------------------------------------------------

    def _register(self, request: BrokerRegistrationRequest) -> Message:
        self.registrations.append(request)
        if self.refusal_to_register:
            return BrokerRegistrationResponse(error_code=self.refusal_to_register)
        is_amended = self._incarnations.get(request.broker_id) == request.incarnation_id
        if not is_amended:
            self._incarnations[request.broker_id] = request.incarnation_id
            self._epochs[request.broker_id] = self.end_offset
            self._unfenced.discard(request.broker_id)
        epoch = self._epochs[request.broker_id]
        self.append(
            RegisterBrokerRecord(
                broker_id=request.broker_id,
                incarnation_id=request.incarnation_id,
                broker_epoch=epoch,
                end_points=[_endpoint(each) for each in request.listeners],
                features=[
                    BrokerFeature(
                        name=each.name,
                        min_supported_version=each.min_supported_version,
                        max_supported_version=each.max_supported_version,
                    )
                    for each in request.features
                ],
                rack=request.rack,
                fenced=request.broker_id not in self._unfenced,
                log_dirs=list(request.log_dirs) if self.keeps_directories else [],
            )
        )
        return BrokerRegistrationResponse(broker_epoch=epoch)

    def _beat(self, request: BrokerHeartbeatRequest) -> Message:
        self.heartbeats.append(request)
        broker_id = request.broker_id
        epoch = self._epochs.get(broker_id)
        if epoch is None or epoch != request.broker_epoch:
            return BrokerHeartbeatResponse(error_code=ErrorCode.STALE_BROKER_EPOCH)
        has_caught_up = request.current_metadata_offset >= epoch
        if not request.want_fence and has_caught_up and broker_id not in self._unfenced and self.is_unfencing:
            self._unfenced.add(broker_id)
            self.append(BrokerRegistrationChangeRecord(broker_id=broker_id, broker_epoch=epoch, fenced=-1))
            self._lead_again(broker_id)
        if request.want_shut_down and broker_id in self._unfenced:
            self._unfenced.discard(broker_id)
            self._leave(broker_id)
            self.append(BrokerRegistrationChangeRecord(broker_id=broker_id, broker_epoch=epoch, fenced=1))
        return BrokerHeartbeatResponse(
            is_caught_up=has_caught_up,
            is_fenced=broker_id not in self._unfenced,
            should_shut_down=request.want_shut_down,
        )

    def fence(self, broker_id: int) -> None:
        """A broker's session has ended, and it does not get another."""
        self.is_unfencing = False
        self._unfenced.discard(broker_id)
        self._leave(broker_id)
        epoch = self._epochs[broker_id]
        self.append(BrokerRegistrationChangeRecord(broker_id=broker_id, broker_epoch=epoch, fenced=1))

    def _lead_again(self, broker_id: int) -> None:
        for key, partition in self.partitions.items():
            if partition.leader == _NO_LEADER and broker_id in partition.replicas:
                self.change(*key, leader=broker_id, isr=[broker_id])

    def _leave(self, broker_id: int) -> None:
        for key, partition in self.partitions.items():
            if partition.leader == broker_id:
                others = [each for each in partition.isr if each in self._unfenced]
                self.change(*key, leader=others[0] if others else _NO_LEADER, isr=others or [broker_id])

    # --- topics -------------------------------------------------------------------------------------------------------

    def make_topic(self, name: str, partitions: int = 1, configs: dict[str, str] | None = None) -> bytes:
        """A topic on ``replicas``, whose first one leads."""
        topic_id = self.topics[name] = self._random.randbytes(16)
        records: list[Message] = [TopicRecord(name=name, topic_id=topic_id)]
        for key, value in (configs or {}).items():
            records.append(ConfigRecord(resource_type=2, resource_name=name, name=key, value=value))
        for number in range(partitions):
            partition = self.partitions[topic_id, number] = PartitionRecord(
                partition_id=number,
                topic_id=topic_id,
                replicas=list(self.replicas),
                isr=list(self.replicas),
                leader=self.replicas[0],
                leader_epoch=0,
                partition_epoch=0,
                directories=[self.directory] * len(self.replicas),
            )
            records.append(partition)
        self.append(*records)
        return topic_id

    def remove_topic(self, name: str) -> None:
        topic_id = self.topics.pop(name)
        self.partitions = {key: each for key, each in self.partitions.items() if key[0] != topic_id}
        self.append(RemoveTopicRecord(topic_id=topic_id))

    def change(self, topic_id: bytes, number: int, *, leader: int | None = None, isr: list[int] | None = None) -> None:
        """Another leader, or other in-sync replicas, of a partition."""
        partition = self.partitions[topic_id, number]
        partition.partition_epoch += 1
        if leader is not None:
            partition.leader, partition.leader_epoch = leader, partition.leader_epoch + 1
        if isr is not None:
            partition.isr = isr
        self.append(
            PartitionChangeRecord(
                partition_id=number, topic_id=topic_id, leader=-2 if leader is None else leader, isr=isr
            )
        )

    def _alter_partition(self, request: AlterPartitionRequest) -> Message:
        topics = []
        for topic in request.topics:
            answers = []
            for each in topic.partitions:
                isr = [state.broker_id for state in each.new_isr_with_epochs]
                self.change(topic.topic_id, each.partition_index, isr=isr)
                partition = self.partitions[topic.topic_id, each.partition_index]
                answers.append(
                    alter_partition.ResponsePartitionData(
                        partition_index=each.partition_index,
                        leader_id=partition.leader,
                        leader_epoch=partition.leader_epoch,
                        isr=isr,
                        partition_epoch=partition.partition_epoch,
                    )
                )
            topics.append(alter_partition.ResponseTopicData(topic_id=topic.topic_id, partitions=answers))
        return AlterPartitionResponse(topics=topics)

    def _create(self, request: CreateTopicsRequest) -> CreateTopicsResponse:
        results = []
        for topic in request.topics:
            if topic.name in self.topics:
                code = ErrorCode.TOPIC_ALREADY_EXISTS
                results.append(CreatableTopicResult(name=topic.name, error_code=code, error_message="it is there"))
                continue
            configs = {each.name: each.value or "" for each in topic.configs}
            topic_id = self.make_topic(topic.name, max(topic.num_partitions, 1), configs)
            results.append(CreatableTopicResult(name=topic.name, topic_id=topic_id))
        return CreateTopicsResponse(topics=results)

    def _delete(self, request: DeleteTopicsRequest) -> DeleteTopicsResponse:
        for topic in request.topics:
            self.remove_topic(topic.name or "")
        return DeleteTopicsResponse(responses=[DeletableTopicResult(name=topic.name) for topic in request.topics])

    def _configure(self, request: IncrementalAlterConfigsRequest) -> IncrementalAlterConfigsResponse:
        for resource in request.resources:
            kind, name = resource.resource_type, resource.resource_name
            self.append(
                *(
                    ConfigRecord(resource_type=kind, resource_name=name, name=config.name, value=config.value)
                    for config in resource.configs
                )
            )
        return IncrementalAlterConfigsResponse(
            responses=[
                AlterConfigsResourceResponse(resource_type=each.resource_type, resource_name=each.resource_name)
                for each in request.resources
            ]
        )

    # --- what is forwarded --------------------------------------------------------------------------------------------

    def _open(self, request: EnvelopeRequest) -> Message:
        self.envelopes.append(request)
        header, start = decode_request_header(request.request_data)
        key, version = ApiKey(header.api_key), header.api_version
        inner: Any = decode(request_class(key), version, request.request_data[start:])
        answer = {
            ApiKey.CREATE_TOPICS: self._create,
            ApiKey.DELETE_TOPICS: self._delete,
            ApiKey.INCREMENTAL_ALTER_CONFIGS: self._configure,
        }[key](inner)
        encode_header = response_header_encoder(key, version)
        return EnvelopeResponse(response_data=encode_header(header.correlation_id) + encode_bytes(answer, version))

    def _allocate(self, request: AllocateProducerIdsRequest) -> Message:
        first, self._next_producer_id = self._next_producer_id, self._next_producer_id + _BLOCK
        self.append(
            ProducerIdsRecord(
                broker_id=request.broker_id,
                broker_epoch=request.broker_epoch,
                next_producer_id=self._next_producer_id,
            )
        )
        return AllocateProducerIdsResponse(producer_id_start=first, producer_id_len=_BLOCK)


def _endpoint(listener: broker_registration.Listener) -> BrokerEndpoint:
    return BrokerEndpoint(
        name=listener.name, host=listener.host, port=listener.port, security_protocol=listener.security_protocol
    )
