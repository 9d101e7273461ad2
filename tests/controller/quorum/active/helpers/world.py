"""An active controller on a log in memory, with brokers that register and send heartbeats as real ones do."""

from __future__ import annotations

import random
from collections.abc import Callable, Mapping, Sequence
from typing import Any, TypeVar

from ottla.base.errors import ErrorCode, KafkaError
from ottla.controller.quorum.active.alter_partition import alter_partition
from ottla.controller.quorum.active.context import ActiveSettings, OperationContext
from ottla.controller.quorum.active.controller import ActiveController
from ottla.controller.quorum.active.partition_additions import create_partitions
from ottla.controller.quorum.active.result import ControllerResult
from ottla.controller.quorum.active.topic_deletions import DeletionRights, delete_topics
from ottla.controller.quorum.active.topics import TopicCreation, create_topics
from ottla.controller.quorum.metadata_version import ELR, FEATURE, level_of
from ottla.controller.random_uuids import random_uuid
from ottla.metadata.image import ClusterImage
from ottla.metadata.types import PartitionRegistration, QuorumBroker
from ottla.wire.messages.alter_partition import (
    AlterPartitionRequest,
    BrokerState,
    PartitionData,
    ResponsePartitionData,
    TopicData,
)
from ottla.wire.messages.broker_heartbeat import BrokerHeartbeatRequest, BrokerHeartbeatResponse
from ottla.wire.messages.broker_records import BrokerRegistrationChangeRecord
from ottla.wire.messages.broker_registration import BrokerRegistrationRequest, Feature, Listener
from ottla.wire.messages.create_partitions import (
    CreatePartitionsRequest,
    CreatePartitionsTopic,
    CreatePartitionsTopicResult,
)
from ottla.wire.messages.create_topics import (
    CreatableReplicaAssignment,
    CreatableTopic,
    CreatableTopicConfig,
    CreatableTopicConfigs,
    CreatableTopicResult,
    CreateTopicsRequest,
)
from ottla.wire.messages.delete_topics import DeletableTopicResult, DeleteTopicsRequest
from ottla.wire.messages.setting_records import ConfigRecord, FeatureLevelRecord
from ottla.wire.metadata_records import VersionedRecord, decode_metadata_record
from ottla.wire.schema import Message

T = TypeVar("T")
CLUSTER = "cluster-of-the-tests"
FEATURES = {FEATURE: (7, 30), ELR: (0, 1), "kraft.version": (0, 1)}


class MemoryLog:
    """The batches that were appended, each a list of records with their versions."""

    def __init__(self, next_offset: int = 0) -> None:
        self.batches: list[list[VersionedRecord]] = []
        self._next_offset = next_offset
        self.leads = True

    @property
    def next_offset(self) -> int:
        return self._next_offset

    def append(self, epoch: int, values: Sequence[bytes]) -> int:
        if not self.leads:
            raise KafkaError(ErrorCode.NOT_CONTROLLER, "another node leads")
        self.batches.append([decode_metadata_record(value) for value in values])
        self._next_offset += len(values)
        return self._next_offset - 1

    @property
    def records(self) -> list[Message]:
        return [record for batch in self.batches for record, _ in batch]


def directory(broker_id: int, number: int = 0) -> bytes:
    return b"directory-%03d-%02d" % (broker_id, number)


def incarnation(broker_id: int, life: int = 1) -> bytes:
    return b"process-%03d-%04d" % (broker_id, life)


def fields(record: Message) -> dict[str, Any]:
    """What of a record differs from the defaults, without the id of a topic, by which tests tell nothing."""
    plain = type(record)()
    found = {name: getattr(record, name) for name in record.__slots__ if name != "unknown_tagged_fields"}
    return {name: value for name, value in found.items() if value != getattr(plain, name) and name != "topic_id"}


def anything(name: str) -> bool:
    """What a client may that has all rights."""
    return True


def plain_config_records(image: ClusterImage, topic: str, configs: Mapping[str, str]) -> list[VersionedRecord]:
    return [(ConfigRecord(resource_type=2, resource_name=topic, name=name, value=configs[name]), 0) for name in configs]


def plain_descriptions(configs: Mapping[str, str]) -> list[CreatableTopicConfigs]:
    return [CreatableTopicConfigs(name=name, value=configs[name]) for name in sorted(configs)]


class World:
    """``do`` commits what an operation has written, ``taken`` gives the batches since it was last asked."""

    def __init__(self, release: str = "4.3-IV0", *, has_elr: bool = True, **settings: Any) -> None:
        levels = {FEATURE: level_of(release)}
        if has_elr:
            levels[ELR] = 1
        self.levels = levels
        bootstrap: list[VersionedRecord] = [
            (FeatureLevelRecord(name=name, feature_level=level), 0) for name, level in levels.items()
        ]
        self.settings = ActiveSettings(node_id=99, cluster_id=CLUSTER, **settings)
        self.log = MemoryLog()
        self.now_ms = 0
        self.charged: list[int] = []
        self.controller = ActiveController(self.settings, self.log, bootstrap, random.Random(7))
        self.controller.claim(1, 0)
        self.commit()
        self._seen = len(self.log.batches)

    # --- operations ---------------------------------------------------------------------------------------------------

    def commit(self) -> None:
        self.controller.committed(self.log.next_offset - 1)

    def do(self, operation: Callable[[OperationContext], ControllerResult[T]]) -> T:
        return self.called(lambda respond: self.controller.run(operation, respond))

    def write(self, *records: VersionedRecord) -> None:
        """What no request would have written."""
        self.do(lambda context: ControllerResult(records, None))

    def set_topic_config(self, topic: str, name: str, value: str) -> None:
        self.write((ConfigRecord(resource_type=2, resource_name=topic, name=name, value=value), 0))

    def set_broker_config(self, broker: str, name: str, value: str) -> None:
        self.write((ConfigRecord(resource_type=4, resource_name=broker, name=name, value=value), 0))

    def shut_down(self, *broker_ids: int) -> None:
        """Brokers are in controlled shutdown, whether they lead anything or not."""
        for broker_id in broker_ids:
            change = BrokerRegistrationChangeRecord(
                broker_id=broker_id, broker_epoch=self.broker(broker_id).epoch, in_controlled_shutdown=1
            )
            self.write((change, 1))

    def called(self, call: Callable[[Callable[[T | KafkaError], None]], None]) -> T:
        """What a call responds with, after everything is committed; a KafkaError is raised."""
        responses: list[T | KafkaError] = []
        call(responses.append)
        self.commit()
        (response,) = responses
        if isinstance(response, KafkaError):
            raise response
        return response

    def taken(self) -> list[list[dict[str, Any]]]:
        """The batches since this was last asked: records by what differs from the defaults, with their type and version."""
        batches = self.log.batches[self._seen :]
        self._seen = len(self.log.batches)
        return [
            [
                {"is": type(record).__name__.removesuffix("Record"), "v": version, **fields(record)}
                for record, version in batch
            ]
            for batch in batches
        ]

    # --- brokers ------------------------------------------------------------------------------------------------------

    def registration(
        self, broker_id: int, life: int = 1, directories: int = 1, **others: Any
    ) -> BrokerRegistrationRequest:
        request = BrokerRegistrationRequest(
            broker_id=broker_id,
            cluster_id=CLUSTER,
            incarnation_id=incarnation(broker_id, life),
            rack=None,
            listeners=[Listener(name="PLAINTEXT", host=f"host-{broker_id}", port=9092, security_protocol=0)],
            features=[
                Feature(name=name, min_supported_version=lowest, max_supported_version=highest)
                for name, (lowest, highest) in FEATURES.items()
            ],
            log_dirs=[directory(broker_id, number) for number in range(directories)],
        )
        for name, value in others.items():
            setattr(request, name, value)
        return request

    def register(self, broker_id: int, life: int = 1, *, version: int = 4, **others: Any) -> int:
        """The epoch that a broker gets."""
        request = self.registration(broker_id, life, **others)
        return int(
            self.called(
                lambda respond: self.controller.register(request, version, 1, self.now_ms, respond)
            ).broker_epoch
        )

    def heartbeat(self, broker_id: int, **wishes: Any) -> BrokerHeartbeatResponse:
        """By default of a broker that has applied everything, and wants to serve."""
        request = BrokerHeartbeatRequest(
            **{
                "broker_id": broker_id,
                "broker_epoch": self.broker(broker_id).epoch,
                "current_metadata_offset": self.log.next_offset - 1,
                "cordoned_log_dirs": [],
                **wishes,
            }
        )
        return self.called(lambda respond: self.controller.heartbeat(request, self.now_ms, respond))

    def start(self, *broker_ids: int, **registration: Any) -> None:
        """Brokers register and are unfenced."""
        for broker_id in broker_ids:
            self.register(broker_id, **registration)
            assert not self.heartbeat(broker_id).is_fenced

    def broker(self, broker_id: int) -> QuorumBroker:
        return self.image.quorum_brokers[broker_id]

    def kill(self, *broker_ids: int) -> None:
        """Brokers end without a word; the others go on, and the controller notices."""
        alive = [
            each for each in self.image.quorum_brokers if not self.broker(each).is_fenced and each not in broker_ids
        ]
        for broker_id in alive:
            self.heartbeat(broker_id)
        self.now_ms += self.settings.session_timeout_ms
        for broker_id in alive:
            self.heartbeat(broker_id)
        self.pass_time(1)

    def pass_time(self, ms: int) -> None:
        """Time goes by, and the controller does what is due then."""
        self.now_ms += ms
        self.controller.tick(self.now_ms)
        self.commit()

    # --- topics -------------------------------------------------------------------------------------------------------

    @property
    def image(self) -> ClusterImage:
        return self.controller.state.image

    def creation(self, **others: Any) -> TopicCreation:
        randomness = self.controller.randomness
        creation = TopicCreation(
            plain_config_records,
            plain_descriptions,
            may_create=anything,
            may_describe=anything,
            charge=self.charged.append,
            new_uuid=lambda: random_uuid(randomness),
            randomness=randomness,
        )
        return creation._replace(**others)

    def create(self, request: CreateTopicsRequest, **others: Any) -> dict[str, CreatableTopicResult]:
        response = self.do(lambda context: create_topics(context, request, self.creation(**others)))
        return {result.name: result for result in response.topics}

    def topic(self, name: str, *replicas: Sequence[int], **configs: str) -> bytes:
        """A topic with these replicas; returns its id."""
        created = self.create(CreateTopicsRequest(topics=[assigned_topic(name, *replicas, **configs)]))[name]
        assert not created.error_code, created
        return created.topic_id

    def delete(self, request: DeleteTopicsRequest, version: int = 6, **others: Any) -> list[DeletableTopicResult]:
        rights = others.pop("rights", DeletionRights(anything, anything))
        charge = others.pop("charge", self.charged.append)
        return self.do(lambda context: delete_topics(context, request, version, rights, charge, **others)).responses

    def add_partitions(
        self, *topics: CreatePartitionsTopic, may_alter: Callable[[str], bool] = anything, validate_only: bool = False
    ) -> list[CreatePartitionsTopicResult]:
        request = CreatePartitionsRequest(topics=list(topics), validate_only=validate_only)
        charge, randomness = self.charged.append, self.controller.randomness
        return self.do(lambda context: create_partitions(context, request, may_alter, charge, randomness)).results

    def partition(self, topic: str, number: int = 0) -> PartitionRegistration:
        return self.image.topics[topic].partitions[number]

    def propose(
        self,
        topic: str,
        *isr: int,
        number: int = 0,
        version: int = 3,
        epochs: Mapping[int, int] | None = None,
        **others: Any,
    ) -> ResponsePartitionData:
        """The leader proposes an ISR, by default with all that it knows; ``others`` replace fields of the request."""
        known = self.partition(topic, number)
        sender = others.pop("sender", known.leader)
        given = epochs or {}
        members = [
            BrokerState(
                broker_id=each, broker_epoch=given.get(each, self.broker(each).epoch if self._knows(each) else 0)
            )
            for each in isr
        ]
        data = PartitionData(
            **{
                "partition_index": number,
                "leader_epoch": known.leader_epoch,
                "partition_epoch": known.partition_epoch,
                "new_isr": list(isr) if version < 3 else [],
                "new_isr_with_epochs": members if version >= 3 else [],
                **others,
            }
        )
        request = AlterPartitionRequest(
            broker_id=sender,
            broker_epoch=self.broker(sender).epoch,
            topics=[TopicData(topic_id=self.image.topics[topic].topic_id, partitions=[data])],
        )
        response = self.do(lambda context: alter_partition(context, request, version))
        return response.topics[0].partitions[0]

    def _knows(self, broker_id: int) -> bool:
        return broker_id in self.image.quorum_brokers


def assigned_topic(name: str, *replicas: Sequence[int], **configs: str) -> CreatableTopic:
    return CreatableTopic(
        name=name,
        num_partitions=-1,
        replication_factor=-1,
        assignments=[
            CreatableReplicaAssignment(partition_index=number, broker_ids=list(each))
            for number, each in enumerate(replicas)
        ],
        configs=[CreatableTopicConfig(name=key.replace("_", "."), value=value) for key, value in configs.items()],
    )


def counted_topic(name: str, partitions: int = -1, factor: int = -1, **configs: str | None) -> CreatableTopic:
    return CreatableTopic(
        name=name,
        num_partitions=partitions,
        replication_factor=factor,
        configs=[CreatableTopicConfig(name=key.replace("_", "."), value=value) for key, value in configs.items()],
    )
