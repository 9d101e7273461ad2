"""One case for each right that an API checks: a request, the rights that it needs, and how it is refused without each.

The same cases run on Ottla and on Apache Kafka 3.9. Topic ``t`` exists with one
partition, ``none`` and ``new`` do not; the group is ``g``, the transactional id ``x``.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Callable
from typing import Any

from ottla.base.errors import ErrorCode
from ottla.compat_tests.raw.requests import batch, fetch_request, produce_request
from ottla.handlers.config_resources import ConfigResourceKind as ConfigType
from ottla.security.acl import CLUSTER_NAME, Operation, ResourceType
from ottla.wire.api_keys import ApiKey
from ottla.wire.messages import add_offsets_to_txn as add_offsets
from ottla.wire.messages import add_partitions_to_txn as add_partitions
from ottla.wire.messages import (
    alter_configs,
    delete_share_group_state,
    incremental_alter_configs,
    initialize_share_group_state,
    read_share_group_state,
    read_share_group_state_summary,
    write_share_group_state,
)
from ottla.wire.messages import create_partitions as partitions
from ottla.wire.messages import delete_records as records
from ottla.wire.messages import delete_topics as deletion
from ottla.wire.messages import describe_configs as configs
from ottla.wire.messages import describe_producers as producers
from ottla.wire.messages import describe_share_group_offsets as share_offsets
from ottla.wire.messages import describe_topic_partitions as pages
from ottla.wire.messages import list_offsets as offsets
from ottla.wire.messages import offset_commit as commit
from ottla.wire.messages import offset_delete as forget
from ottla.wire.messages import offset_fetch as fetched
from ottla.wire.messages import offset_for_leader_epoch as epochs
from ottla.wire.messages import txn_offset_commit as txn_commit
from ottla.wire.messages.alter_client_quotas import AlterClientQuotasRequest, EntityData, EntryData
from ottla.wire.messages.alter_replica_log_dirs import (
    AlterReplicaLogDir,
    AlterReplicaLogDirsRequest,
    AlterReplicaLogDirTopic,
)
from ottla.wire.messages.alter_share_group_offsets import (
    AlterShareGroupOffsetsRequest,
    AlterShareGroupOffsetsRequestPartition,
    AlterShareGroupOffsetsRequestTopic,
)
from ottla.wire.messages.alter_user_scram_credentials import (
    AlterUserScramCredentialsRequest,
    ScramCredentialDeletion,
)
from ottla.wire.messages.consumer_group_describe import ConsumerGroupDescribeRequest
from ottla.wire.messages.consumer_group_heartbeat import ConsumerGroupHeartbeatRequest
from ottla.wire.messages.create_acls import AclCreation, CreateAclsRequest
from ottla.wire.messages.create_topics import CreatableTopic, CreateTopicsRequest
from ottla.wire.messages.delete_acls import DeleteAclsFilter, DeleteAclsRequest
from ottla.wire.messages.delete_groups import DeleteGroupsRequest
from ottla.wire.messages.delete_share_group_offsets import DeleteShareGroupOffsetsRequest
from ottla.wire.messages.describe_acls import DescribeAclsRequest
from ottla.wire.messages.describe_groups import DescribeGroupsRequest
from ottla.wire.messages.describe_transactions import DescribeTransactionsRequest
from ottla.wire.messages.elect_leaders import ElectLeadersRequest, TopicPartitions
from ottla.wire.messages.end_txn import EndTxnRequest
from ottla.wire.messages.find_coordinator import FindCoordinatorRequest
from ottla.wire.messages.heartbeat import HeartbeatRequest
from ottla.wire.messages.init_producer_id import InitProducerIdRequest
from ottla.wire.messages.join_group import JoinGroupRequest
from ottla.wire.messages.leave_group import LeaveGroupRequest
from ottla.wire.messages.metadata import MetadataRequest, MetadataRequestTopic
from ottla.wire.messages.share_group_describe import ShareGroupDescribeRequest
from ottla.wire.messages.share_group_heartbeat import ShareGroupHeartbeatRequest
from ottla.wire.messages.sync_group import SyncGroupRequest
from ottla.wire.messages.write_txn_markers import (
    WritableTxnMarker,
    WritableTxnMarkerTopic,
    WriteTxnMarkersRequest,
)
from ottla.wire.registry import request_class

from ...helpers.zookeeper_broker import AMONG_BROKERS_ON_A_ZOOKEEPER, QUORUM, SHARE_COORDINATOR, ZOOKEEPER

TOPIC, GROUP, CLUSTER = ResourceType.TOPIC, ResourceType.GROUP, ResourceType.CLUSTER
TRANSACTIONAL_ID = ResourceType.TRANSACTIONAL_ID
Op = Operation

T, G = ErrorCode.TOPIC_AUTHORIZATION_FAILED, ErrorCode.GROUP_AUTHORIZATION_FAILED
C, X = ErrorCode.CLUSTER_AUTHORIZATION_FAILED, ErrorCode.TRANSACTIONAL_ID_AUTHORIZATION_FAILED
REFUSALS = {T, G, C, X, ErrorCode.OPERATION_NOT_ATTEMPTED}

KAFKA = "kafka"
"""Apache Kafka 3.9 in ZooKeeper mode."""
EVERYWHERE = frozenset({QUORUM, ZOOKEEPER, KAFKA})
NOT_ON_KAFKA = frozenset({QUORUM, ZOOKEEPER})
ON_ZOOKEEPERS = frozenset({ZOOKEEPER, KAFKA})


@dataclasses.dataclass(frozen=True)
class Grant:
    """A right to one resource, and the response without it."""

    resource_type: ResourceType
    operation: Operation
    name: str
    refusal: frozenset[ErrorCode]


@dataclasses.dataclass(frozen=True)
class Case:
    """``grants`` are necessary and sufficient. ``kinds``: where the API is served at this version."""

    api: ApiKey
    version: int
    request: Callable[[], Any]
    grants: tuple[Grant, ...]
    kinds: frozenset[str] = EVERYWHERE


def topic(operation: Operation, name: str = "t", *refusal: ErrorCode) -> Grant:
    return Grant(TOPIC, operation, name, frozenset(refusal or (T,)))


def group(operation: Operation, name: str = "g") -> Grant:
    return Grant(GROUP, operation, name, frozenset({G}))


def cluster(operation: Operation, *refusal: ErrorCode) -> Grant:
    return Grant(CLUSTER, operation, CLUSTER_NAME, frozenset(refusal or (C,)))


def transactional_id(operation: Operation, *refusal: ErrorCode) -> Grant:
    return Grant(TRANSACTIONAL_ID, operation, "x", frozenset(refusal or (X,)))


def _metadata(name: str, create: bool = False) -> MetadataRequest:
    return MetadataRequest(topics=[MetadataRequestTopic(name=name)], allow_auto_topic_creation=create)


def _follower_fetch() -> Any:
    request = fetch_request("t", {0: 0})
    request.replica_id = 7
    return request


def _transactional_produce() -> Any:
    records = batch(b"v", producer_id=77, producer_epoch=0, base_sequence=0, is_transactional=True)
    return produce_request("t", {0: records}, transactional_id="x")


def _create(name: str) -> CreateTopicsRequest:
    new = CreatableTopic(name=name, num_partitions=1, replication_factor=1)
    return CreateTopicsRequest(topics=[new], timeout_ms=10_000, validate_only=True)


def _add_partitions(*names: str) -> add_partitions.AddPartitionsToTxnRequest:
    return add_partitions.AddPartitionsToTxnRequest(
        v3_and_below_transactional_id="x",
        v3_and_below_producer_id=5,
        v3_and_below_topics=[add_partitions.AddPartitionsToTxnTopic(name=name, partitions=[0]) for name in names],
    )


def _config_requests(kind: ConfigType, name: str) -> tuple[Any, Any, Any]:
    """DescribeConfigs, AlterConfigs and IncrementalAlterConfigs of one resource, without any effect."""
    describe = configs.DescribeConfigsResource(resource_type=kind, resource_name=name, configuration_keys=None)
    alter = alter_configs.AlterConfigsResource(resource_type=kind, resource_name=name)
    change = incremental_alter_configs.AlterConfigsResource(resource_type=kind, resource_name=name)
    return (
        configs.DescribeConfigsRequest(resources=[describe]),
        alter_configs.AlterConfigsRequest(resources=[alter], validate_only=True),
        incremental_alter_configs.IncrementalAlterConfigsRequest(resources=[change], validate_only=True),
    )


def _of_configs(
    kind: ConfigType, name: str, grant: Callable[[Operation], Grant], kinds: frozenset[str] = EVERYWHERE
) -> list[Case]:
    describe, alter, change = _config_requests(kind, name)
    return [
        Case(ApiKey.DESCRIBE_CONFIGS, 4, lambda: describe, (grant(Op.DESCRIBE_CONFIGS),), kinds),
        Case(ApiKey.ALTER_CONFIGS, 2, lambda: alter, (grant(Op.ALTER_CONFIGS),), kinds),
        Case(ApiKey.INCREMENTAL_ALTER_CONFIGS, 1, lambda: change, (grant(Op.ALTER_CONFIGS),), kinds),
    ]


_COMMITTED = commit.OffsetCommitRequestTopic(name="t", partitions=[commit.OffsetCommitRequestPartition()])
_TXN_COMMITTED = txn_commit.TxnOffsetCommitRequestTopic(
    name="t", partitions=[txn_commit.TxnOffsetCommitRequestPartition()]
)
_EPOCHS = epochs.OffsetForLeaderTopic(topic="t", partitions=[epochs.OffsetForLeaderPartition(leader_epoch=0)])
_MARKER = WritableTxnMarker(producer_id=5, topics=[WritableTxnMarkerTopic(name="t", partition_indexes=[0])])
_ALTERED = AlterShareGroupOffsetsRequestPartition(partition_index=0, start_offset=0)
_SHARE_OFFSETS = share_offsets.DescribeShareGroupOffsetsRequestGroup(
    group_id="none",
    topics=[share_offsets.DescribeShareGroupOffsetsRequestTopic(topic_name="t", partitions=[0])],
)
_DELETED = records.DeleteRecordsTopic(name="t", partitions=[records.DeleteRecordsPartition()])

PARTIAL = [
    Case(ApiKey.PRODUCE, 9, lambda: produce_request("t", {0: batch(b"v")}), (topic(Op.WRITE),)),
    Case(ApiKey.PRODUCE, 9, lambda: produce_request("none", {0: batch(b"v")}), (topic(Op.WRITE, "none"),)),
    Case(ApiKey.PRODUCE, 9, _transactional_produce, (topic(Op.WRITE), transactional_id(Op.WRITE))),
    Case(ApiKey.FETCH, 12, lambda: fetch_request("t", {0: 0}), (topic(Op.READ),)),
    Case(ApiKey.FETCH, 12, lambda: fetch_request("none", {0: 0}), (topic(Op.READ, "none"),)),
    Case(ApiKey.FETCH, 12, _follower_fetch, (cluster(Op.CLUSTER_ACTION, T),)),
    Case(
        ApiKey.LIST_OFFSETS,
        7,
        lambda: offsets.ListOffsetsRequest(
            topics=[offsets.ListOffsetsTopic(name="t", partitions=[offsets.ListOffsetsPartition(timestamp=-1)])]
        ),
        (topic(Op.DESCRIBE),),
    ),
    Case(ApiKey.METADATA, 9, lambda: _metadata("t"), (topic(Op.DESCRIBE),)),
    Case(ApiKey.METADATA, 9, lambda: _metadata("none"), (topic(Op.DESCRIBE, "none"),)),
    Case(ApiKey.METADATA, 9, lambda: _metadata("new", True), (topic(Op.DESCRIBE, "new"), topic(Op.CREATE, "new"))),
    Case(ApiKey.METADATA, 9, lambda: _metadata("new2", True), (topic(Op.DESCRIBE, "new2"), cluster(Op.CREATE, T))),
    Case(
        ApiKey.OFFSET_COMMIT,
        8,
        lambda: commit.OffsetCommitRequest(group_id="g", generation_id_or_member_epoch=-1, topics=[_COMMITTED]),
        (group(Op.READ), topic(Op.READ)),
    ),
    Case(
        ApiKey.OFFSET_FETCH,
        7,
        lambda: fetched.OffsetFetchRequest(
            group_id="g", topics=[fetched.OffsetFetchRequestTopic(name="t", partition_indexes=[0])]
        ),
        (group(Op.DESCRIBE), topic(Op.DESCRIBE)),
    ),
    Case(
        ApiKey.OFFSET_FETCH,
        8,
        lambda: fetched.OffsetFetchRequest(
            groups=[
                fetched.OffsetFetchRequestGroup(
                    group_id="g", topics=[fetched.OffsetFetchRequestTopics(name="t", partition_indexes=[0])]
                )
            ]
        ),
        (group(Op.DESCRIBE), topic(Op.DESCRIBE)),
    ),
    Case(ApiKey.FIND_COORDINATOR, 3, lambda: FindCoordinatorRequest(key="g"), (group(Op.DESCRIBE),)),
    Case(ApiKey.FIND_COORDINATOR, 4, lambda: FindCoordinatorRequest(coordinator_keys=["g"]), (group(Op.DESCRIBE),)),
    Case(
        ApiKey.FIND_COORDINATOR,
        3,
        lambda: FindCoordinatorRequest(key="x", key_type=1),
        (transactional_id(Op.DESCRIBE),),
    ),
    Case(
        ApiKey.FIND_COORDINATOR,
        6,
        lambda: FindCoordinatorRequest(coordinator_keys=["g:AAAAAAAAAAAAAAAAAAAAAA:0"], key_type=2),
        (cluster(Op.CLUSTER_ACTION),),
        frozenset({QUORUM}),
    ),
    Case(ApiKey.JOIN_GROUP, 6, lambda: JoinGroupRequest(group_id="g"), (group(Op.READ),)),
    Case(ApiKey.SYNC_GROUP, 4, lambda: SyncGroupRequest(group_id="g"), (group(Op.READ),)),
    Case(ApiKey.HEARTBEAT, 4, lambda: HeartbeatRequest(group_id="g"), (group(Op.READ),)),
    Case(ApiKey.LEAVE_GROUP, 4, lambda: LeaveGroupRequest(group_id="g"), (group(Op.READ),)),
    Case(
        ApiKey.CONSUMER_GROUP_HEARTBEAT,
        1,
        lambda: ConsumerGroupHeartbeatRequest(
            group_id="k", member_id="A", rebalance_timeout_ms=1000, subscribed_topic_names=["t"], topic_partitions=[]
        ),
        (group(Op.READ, "k"), topic(Op.DESCRIBE)),
        frozenset({QUORUM}),
    ),
    Case(
        ApiKey.CONSUMER_GROUP_DESCRIBE,
        1,
        lambda: ConsumerGroupDescribeRequest(group_ids=["none"]),
        (group(Op.DESCRIBE, "none"),),
        frozenset({QUORUM}),
    ),
    Case(
        ApiKey.SHARE_GROUP_HEARTBEAT,
        1,
        lambda: ShareGroupHeartbeatRequest(group_id="s", member_id="A", subscribed_topic_names=["t"]),
        (group(Op.READ, "s"), topic(Op.DESCRIBE)),
        frozenset({QUORUM}),
    ),
    Case(
        ApiKey.SHARE_GROUP_DESCRIBE,
        1,
        lambda: ShareGroupDescribeRequest(group_ids=["none"]),
        (group(Op.DESCRIBE, "none"),),
        frozenset({QUORUM}),
    ),
    Case(
        ApiKey.DESCRIBE_SHARE_GROUP_OFFSETS,
        1,
        lambda: share_offsets.DescribeShareGroupOffsetsRequest(groups=[_SHARE_OFFSETS]),
        (group(Op.DESCRIBE, "none"), topic(Op.DESCRIBE)),
        frozenset({QUORUM}),
    ),
    Case(
        ApiKey.ALTER_SHARE_GROUP_OFFSETS,
        0,
        lambda: AlterShareGroupOffsetsRequest(
            group_id="altered", topics=[AlterShareGroupOffsetsRequestTopic(topic_name="t", partitions=[_ALTERED])]
        ),
        (group(Op.READ, "altered"), topic(Op.READ)),
        frozenset({QUORUM}),
    ),
    Case(
        ApiKey.DELETE_SHARE_GROUP_OFFSETS,
        0,
        lambda: DeleteShareGroupOffsetsRequest(group_id="none"),
        (group(Op.DELETE, "none"),),
        frozenset({QUORUM}),
    ),
    Case(ApiKey.DESCRIBE_GROUPS, 5, lambda: DescribeGroupsRequest(groups=["g"]), (group(Op.DESCRIBE),)),
    Case(ApiKey.DELETE_GROUPS, 2, lambda: DeleteGroupsRequest(groups_names=["none"]), (group(Op.DELETE, "none"),)),
    Case(
        ApiKey.CREATE_TOPICS, 7, lambda: _create("new3"), (topic(Op.CREATE, "new3"), topic(Op.DESCRIBE_CONFIGS, "new3"))
    ),
    Case(ApiKey.CREATE_TOPICS, 7, lambda: _create("new4"), (cluster(Op.CREATE, T), topic(Op.DESCRIBE_CONFIGS, "new4"))),
    Case(
        ApiKey.DELETE_TOPICS,
        5,
        lambda: deletion.DeleteTopicsRequest(topic_names=["none"], timeout_ms=10_000),
        (topic(Op.DELETE, "none"),),
    ),
    Case(
        ApiKey.CREATE_PARTITIONS,
        3,
        lambda: partitions.CreatePartitionsRequest(
            topics=[partitions.CreatePartitionsTopic(name="t", count=1, assignments=None)], timeout_ms=10_000
        ),
        (topic(Op.ALTER),),
    ),
    Case(
        ApiKey.DELETE_RECORDS,
        2,
        lambda: records.DeleteRecordsRequest(topics=[_DELETED], timeout_ms=10_000),
        (topic(Op.DELETE),),
    ),
    Case(
        ApiKey.INIT_PRODUCER_ID,
        4,
        lambda: InitProducerIdRequest(transactional_id="x", transaction_timeout_ms=1000),
        (transactional_id(Op.WRITE),),
    ),
    Case(
        ApiKey.INIT_PRODUCER_ID,
        4,
        lambda: InitProducerIdRequest(transactional_id=None, transaction_timeout_ms=1000),
        (cluster(Op.IDEMPOTENT_WRITE),),
    ),
    Case(
        ApiKey.INIT_PRODUCER_ID,
        4,
        lambda: InitProducerIdRequest(transactional_id=None, transaction_timeout_ms=1000),
        (topic(Op.WRITE, "whatever", C),),
    ),
    Case(ApiKey.ADD_PARTITIONS_TO_TXN, 3, lambda: _add_partitions("t"), (transactional_id(Op.WRITE), topic(Op.WRITE))),
    Case(
        ApiKey.ADD_PARTITIONS_TO_TXN,
        3,
        lambda: _add_partitions("t", "u"),
        (
            transactional_id(Op.WRITE),
            topic(Op.WRITE, "t", T, ErrorCode.OPERATION_NOT_ATTEMPTED),
            topic(Op.WRITE, "u", T, ErrorCode.OPERATION_NOT_ATTEMPTED),
        ),
    ),
    Case(
        ApiKey.ADD_PARTITIONS_TO_TXN,
        4,
        lambda: add_partitions.AddPartitionsToTxnRequest(
            transactions=[
                add_partitions.AddPartitionsToTxnTransaction(
                    transactional_id="x",
                    producer_id=5,
                    verify_only=True,
                    topics=[add_partitions.AddPartitionsToTxnTopic(name="t", partitions=[0])],
                )
            ]
        ),
        (cluster(Op.CLUSTER_ACTION),),
    ),
    Case(
        ApiKey.ADD_OFFSETS_TO_TXN,
        3,
        lambda: add_offsets.AddOffsetsToTxnRequest(transactional_id="x", group_id="g", producer_id=5),
        (transactional_id(Op.WRITE), group(Op.READ)),
    ),
    Case(
        ApiKey.TXN_OFFSET_COMMIT,
        3,
        lambda: txn_commit.TxnOffsetCommitRequest(
            transactional_id="x", group_id="g", producer_id=5, topics=[_TXN_COMMITTED]
        ),
        (transactional_id(Op.WRITE), group(Op.READ), topic(Op.READ)),
    ),
    Case(ApiKey.END_TXN, 3, lambda: EndTxnRequest(transactional_id="x", producer_id=5), (transactional_id(Op.WRITE),)),
    Case(ApiKey.WRITE_TXN_MARKERS, 1, lambda: WriteTxnMarkersRequest(markers=[_MARKER]), (cluster(Op.ALTER),)),
    Case(ApiKey.WRITE_TXN_MARKERS, 1, lambda: WriteTxnMarkersRequest(markers=[_MARKER]), (cluster(Op.CLUSTER_ACTION),)),
    Case(
        ApiKey.OFFSET_FOR_LEADER_EPOCH,
        4,
        lambda: epochs.OffsetForLeaderEpochRequest(replica_id=-2, topics=[_EPOCHS]),
        (topic(Op.DESCRIBE),),
    ),
    Case(
        ApiKey.OFFSET_FOR_LEADER_EPOCH,
        4,
        lambda: epochs.OffsetForLeaderEpochRequest(replica_id=-2, topics=[_EPOCHS]),
        (cluster(Op.CLUSTER_ACTION, T),),
    ),
    *_of_configs(ConfigType.TOPIC, "t", topic),
    *_of_configs(ConfigType.BROKER, "1", cluster),
    *_of_configs(ConfigType.GROUP, "g", group, frozenset({QUORUM})),
    Case(
        ApiKey.OFFSET_DELETE,
        0,
        lambda: forget.OffsetDeleteRequest(
            group_id="g",
            topics=[
                forget.OffsetDeleteRequestTopic(name="t", partitions=[forget.OffsetDeleteRequestPartition()]),
            ],
        ),
        (group(Op.DELETE), topic(Op.READ)),
    ),
    Case(
        ApiKey.DESCRIBE_PRODUCERS,
        0,
        lambda: producers.DescribeProducersRequest(topics=[producers.TopicRequest(name="t", partition_indexes=[0])]),
        (topic(Op.READ),),
    ),
    Case(
        ApiKey.DESCRIBE_TRANSACTIONS,
        0,
        lambda: DescribeTransactionsRequest(transactional_ids=["x"]),
        (transactional_id(Op.DESCRIBE),),
    ),
    Case(
        ApiKey.DESCRIBE_TOPIC_PARTITIONS,
        0,
        lambda: pages.DescribeTopicPartitionsRequest(
            topics=[pages.TopicRequest(name="t")], response_partition_limit=100
        ),
        (topic(Op.DESCRIBE),),
        kinds=NOT_ON_KAFKA,
    ),
]

BY_CLUSTER_IN_QUORUMS = Case(
    ApiKey.DELETE_TOPICS,
    5,
    lambda: deletion.DeleteTopicsRequest(topic_names=["none"], timeout_ms=10_000),
    (cluster(Op.DELETE, T),),
)
"""A right on the cluster that only a quorum's controller looks at."""

_VERSIONS = {ApiKey.DESCRIBE_LOG_DIRS: 4, ApiKey.LEADER_AND_ISR: 4, ApiKey.ALTER_PARTITION_REASSIGNMENTS: 0}
_KINDS = {
    ApiKey.DESCRIBE_INSIDE: NOT_ON_KAFKA,
    **dict.fromkeys(SHARE_COORDINATOR, frozenset({QUORUM})),
    ApiKey.LIST_CONFIG_RESOURCES: NOT_ON_KAFKA,
    **dict.fromkeys(AMONG_BROKERS_ON_A_ZOOKEEPER, ON_ZOOKEEPERS),
}


_RULE = AclCreation(
    resource_type=TOPIC, resource_name="a/b", principal="User:bob", host="*", operation=Op.READ, permission_type=3
)
_NO_RULE = DeleteAclsFilter(
    resource_type_filter=TOPIC, resource_name_filter="none", operation=Op.READ, permission_type=3
)
_MOVED = AlterReplicaLogDir(path="/none", topics=[AlterReplicaLogDirTopic(name="t", partitions=[0])])
_REQUESTS: dict[ApiKey, Callable[[], Any]] = {
    ApiKey.INITIALIZE_SHARE_GROUP_STATE: lambda: _share_state(initialize_share_group_state, "Initialize"),
    ApiKey.READ_SHARE_GROUP_STATE: lambda: _share_state(read_share_group_state, "Read"),
    ApiKey.WRITE_SHARE_GROUP_STATE: lambda: _share_state(write_share_group_state, "Write"),
    ApiKey.DELETE_SHARE_GROUP_STATE: lambda: _share_state(delete_share_group_state, "Delete"),
    ApiKey.READ_SHARE_GROUP_STATE_SUMMARY: lambda: _share_state(read_share_group_state_summary, "Read", "Summary"),
    ApiKey.ELECT_LEADERS: lambda: ElectLeadersRequest(
        topic_partitions=[TopicPartitions(topic="t", partitions=[0])], timeout_ms=10_000
    ),
    ApiKey.DESCRIBE_ACLS: lambda: DescribeAclsRequest(
        resource_type_filter=1, pattern_type_filter=1, operation=1, permission_type=1
    ),
    ApiKey.CREATE_ACLS: lambda: CreateAclsRequest(creations=[_RULE]),
    ApiKey.DELETE_ACLS: lambda: DeleteAclsRequest(filters=[_NO_RULE]),
    ApiKey.ALTER_USER_SCRAM_CREDENTIALS: lambda: AlterUserScramCredentialsRequest(
        deletions=[ScramCredentialDeletion(name="none", mechanism=1)]
    ),
    ApiKey.ALTER_CLIENT_QUOTAS: lambda: AlterClientQuotasRequest(
        entries=[EntryData(entity=[EntityData(entity_type="user", entity_name="none")])], validate_only=True
    ),
    ApiKey.ALTER_REPLICA_LOG_DIRS: lambda: AlterReplicaLogDirsRequest(dirs=[_MOVED]),
}


def _share_state(messages: Any, verb: str, what: str = "") -> Any:
    topic_data = getattr(messages, f"{verb}State{what}Data")
    request = getattr(messages, f"{verb}ShareGroupState{what}Request")
    return request(group_id="g", topics=[topic_data(topic_id=bytes(16), partitions=[messages.PartitionData()])])


def whole_request(api: ApiKey, operation: Operation, highest: int) -> Case:
    """An API that needs a right of the cluster for the whole request: its simplest request, which has no effect."""
    version = min(highest, _VERSIONS.get(api, 1))
    make = _REQUESTS.get(api, request_class(api))
    return Case(api, version, make, (cluster(operation),), _KINDS.get(api, EVERYWHERE))
