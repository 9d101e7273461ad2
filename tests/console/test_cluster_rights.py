"""What a visitor may have another broker do is what the visitor's rights say, though that broker is asked by this one."""

from __future__ import annotations

from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager, contextmanager
from typing import Any, NamedTuple

import pytest
import trio
import trio.testing

from ottla.base.errors import KafkaError
from ottla.console.kafka_requests import ControllerTarget, GroupCoordinatorTarget, LeaderTarget, To
from ottla.console.own_broker import OwnBroker
from ottla.console.rehearsal import Rehearsal
from ottla.console.visitor import Visitor, visited_by
from ottla.handlers.connection_context import ConnectionContext
from ottla.handlers.rights import CLUSTER, GROUP, TOPIC
from ottla.security.acl import (
    CLUSTER_NAME,
    AclBinding,
    AclEntry,
    Operation,
    Permission,
    ResourcePattern,
    ResourceType,
)
from ottla.security.authorizer_settings import ACL_AUTHORIZER
from ottla.security.principal import USER, Principal
from ottla.wire.error_codes import error_finder
from ottla.wire.messages.create_partitions import CreatePartitionsRequest, CreatePartitionsTopic
from ottla.wire.messages.create_topics import CreatableTopic, CreateTopicsRequest
from ottla.wire.messages.delete_groups import DeleteGroupsRequest
from ottla.wire.messages.delete_records import DeleteRecordsPartition, DeleteRecordsRequest, DeleteRecordsTopic
from ottla.wire.messages.delete_topics import DeleteTopicsRequest
from ottla.wire.messages.describe_groups import DescribeGroupsRequest
from ottla.wire.messages.describe_producers import DescribeProducersRequest, TopicRequest
from ottla.wire.messages.list_offsets import ListOffsetsPartition, ListOffsetsRequest, ListOffsetsTopic
from ottla.wire.messages.offset_commit import (
    OffsetCommitRequest,
    OffsetCommitRequestPartition,
    OffsetCommitRequestTopic,
)
from ottla.wire.messages.offset_fetch import OffsetFetchRequest
from ottla.wire.messages.produce import PartitionProduceData, ProduceRequest, TopicProduceData
from ottla.wire.messages.write_txn_markers import WritableTxnMarker, WritableTxnMarkerTopic, WriteTxnMarkersRequest
from ottla.wire.records import Record, build_batch
from ottla.wire.schema import Message

from ..helpers.memory_cluster import MemoryCluster, running, until

OP = Operation
ORDERS, OTHER, G = (TOPIC, "orders"), (TOPIC, "other"), (GROUP, "g")
THE_CLUSTER = (CLUSTER, CLUSTER_NAME)
Grant = tuple[ResourceType, str, Operation]


class Asked(NamedTuple):
    """A request, who has to carry it out, and the rights that it needs, in the order in which they are missed.

    ``missed`` is what the refusals are about, where that is not the resource of the right.
    """

    request: Message
    to: To
    grants: tuple[Grant, ...]
    missed: ResourceType | None = None


def create(*names: str) -> CreateTopicsRequest:
    topics = [CreatableTopic(name=name, num_partitions=1, replication_factor=1) for name in names]
    return CreateTopicsRequest(topics=topics, timeout_ms=20_000)


def produce() -> ProduceRequest:
    data = PartitionProduceData(index=0, records=build_batch([Record(timestamp=1, value=b"v")]))
    return ProduceRequest(
        acks=-1, timeout_ms=20_000, topic_data=[TopicProduceData(name="orders", partition_data=[data])]
    )


def marker() -> WriteTxnMarkersRequest:
    topics = [WritableTxnMarkerTopic(name="orders", partition_indexes=[0])]
    return WriteTxnMarkersRequest(
        markers=[WritableTxnMarker(producer_id=1, producer_epoch=0, topics=topics, coordinator_epoch=0)]
    )


def commit(*topics: str) -> OffsetCommitRequest:
    partitions = [OffsetCommitRequestPartition(partition_index=0, committed_offset=0, committed_metadata="")]
    return OffsetCommitRequest(
        group_id="g", topics=[OffsetCommitRequestTopic(name=name, partitions=partitions) for name in topics]
    )


LEADER, COORDINATOR = LeaderTarget("orders", 0), GroupCoordinatorTarget("g")
TRIM = [DeleteRecordsTopic(name="orders", partitions=[DeleteRecordsPartition(partition_index=0, offset=1)])]
ENDS = [ListOffsetsTopic(name="orders", partitions=[ListOffsetsPartition(partition_index=0, timestamp=-1)])]
ENLARGE = CreatePartitionsTopic(name="orders", count=2, assignments=None)
CASES = (
    Asked(create("new"), ControllerTarget(), ((TOPIC, "new", OP.CREATE),)),
    Asked(create("newer"), ControllerTarget(), ((*THE_CLUSTER, OP.CREATE),), TOPIC),
    Asked(
        CreatePartitionsRequest(topics=[ENLARGE], timeout_ms=20_000, validate_only=True),
        ControllerTarget(),
        ((*ORDERS, OP.ALTER),),
    ),
    Asked(produce(), LEADER, ((*ORDERS, OP.WRITE),)),
    Asked(ListOffsetsRequest(replica_id=-1, topics=ENDS), LEADER, ((*ORDERS, OP.DESCRIBE),)),
    Asked(
        DescribeProducersRequest(topics=[TopicRequest(name="orders", partition_indexes=[0])]),
        LEADER,
        ((*ORDERS, OP.READ),),
    ),
    Asked(marker(), LEADER, ((*THE_CLUSTER, OP.ALTER),)),
    Asked(DeleteRecordsRequest(topics=TRIM, timeout_ms=20_000), LEADER, ((*ORDERS, OP.DELETE),)),
    Asked(commit("orders"), COORDINATOR, ((*G, OP.READ), (*ORDERS, OP.READ))),
    Asked(OffsetFetchRequest(group_id="g", topics=None), COORDINATOR, ((*G, OP.DESCRIBE),)),
    Asked(DescribeGroupsRequest(groups=["g"]), COORDINATOR, ((*G, OP.DESCRIBE),)),
    Asked(DeleteGroupsRequest(groups_names=["g"]), COORDINATOR, ((*G, OP.DESCRIBE), (*G, OP.DELETE))),
    Asked(DeleteTopicsRequest(topic_names=["other"], timeout_ms=20_000), ControllerTarget(), ((*OTHER, OP.DELETE),)),
)


class Guarded:
    """Broker 1 is the controller, a leader and a coordinator; the console is that of broker 2, and its visitor alice."""

    def __init__(self, cluster: MemoryCluster) -> None:
        self.cluster = cluster
        self.console = OwnBroker(cluster.servers[2])

    @contextmanager
    def visit(self) -> Iterator[None]:
        connection = ConnectionContext("CONSOLE", "127.0.0.1:1")
        connection.principal = Principal(USER, "alice")
        with visited_by(Visitor(connection, "")):
            yield

    async def ask(self, request: Message, to: To) -> Any:
        with self.visit():
            return await self.console.ask(request, to)

    async def grant(self, *grants: Grant) -> None:
        entry = [AclEntry("User:alice", Permission.ALLOW, "*", operation) for _, _, operation in grants]
        patterns = [ResourcePattern(kind, name) for kind, name, _ in grants]
        bindings = [AclBinding(*each) for each in zip(patterns, entry, strict=True)]
        assert await self.cluster.services(2).commands.create_acls(bindings) == [None] * len(bindings)

    def topics(self) -> set[str]:
        """Those of which the controller knows."""
        names = self.cluster.services(1).metadata.topics
        return {name for name in names if not name.startswith("__")}


@asynccontextmanager
async def guarded() -> AsyncIterator[Guarded]:
    async with running(
        1,
        2,
        authorizer_class_name=ACL_AUTHORIZER,
        super_users="User:ANONYMOUS",
        offsets_topic_replication_factor="1",
        offsets_topic_num_partitions="1",
        auto_create_topics_enable="false",
    ) as cluster:
        for topic in ("orders", "other"):
            await cluster.create(topic, (1,))
        await cluster.create("__consumer_offsets", (1,), cleanup_policy="compact")
        await until(lambda: len(cluster.services(2).metadata.topics) == 3)
        assert await cluster.produce(1, "orders", 0, b"a", b"b") == 0
        yield Guarded(cluster)


@pytest.mark.parametrize("case", CASES, ids=lambda case: f"{type(case.request).__name__}-{case.grants[0][1]}")
async def test_each_request_needs_what_its_handler_looks_at(
    case: Asked, autojump_clock: trio.testing.MockClock
) -> None:
    async with guarded() as cluster:
        if isinstance(case.to, GroupCoordinatorTarget):
            await cluster.cluster.ask(1, commit("orders", "other"), 7)
            await cluster.grant((*G, OP.DESCRIBE))  # to find the coordinator
        for number, (resource_type, *_) in enumerate(case.grants):
            if (*G, OP.DESCRIBE) != case.grants[number]:
                with pytest.raises(KafkaError, match=f"{(case.missed or resource_type).name}_AUTHORIZATION_FAILED"):
                    await cluster.ask(case.request, case.to)
                assert cluster.topics() == {"orders", "other"}
                assert cluster.cluster.services(1).replicas.partition("orders", 0).log.log_start_offset == 0
                assert cluster.cluster.services(1).replicas.partition("orders", 0).log.log_end_offset == 2
            await cluster.grant(case.grants[number])
        response = await cluster.ask(case.request, case.to)
        codes = error_finder(type(response))(response)
        assert not codes or isinstance(case.request, WriteTxnMarkersRequest), codes
        if isinstance(case.request, OffsetFetchRequest):
            assert response.topics == [], "no topic that may not be described"
            await cluster.grant((*OTHER, OP.DESCRIBE))
            assert [topic.name for topic in (await cluster.ask(case.request, case.to)).topics] == ["other"]


async def test_one_refusal_is_enough(autojump_clock: trio.testing.MockClock) -> None:
    async with guarded() as cluster:
        await cluster.grant((TOPIC, "new", OP.CREATE))
        with pytest.raises(KafkaError, match="TOPIC_AUTHORIZATION_FAILED"):
            await cluster.ask(create("new", "newer"), ControllerTarget())
        assert cluster.topics() == {"orders", "other"}


async def test_what_is_wrong_with_a_request_is_said_by_the_broker_that_carries_it_out(
    autojump_clock: trio.testing.MockClock,
) -> None:
    async with guarded() as cluster:
        await cluster.grant((*ORDERS, OP.CREATE))
        response = await cluster.ask(create("orders"), ControllerTarget())
        assert "already exists" in response.topics[0].error_message


async def test_what_looks_at_no_right_is_not_sent(autojump_clock: trio.testing.MockClock) -> None:
    async with guarded() as cluster:
        services = cluster.cluster.services(2)
        assert services.authorizer is not None
        rehearsal = Rehearsal(services, services.authorizer)
        with pytest.raises(KafkaError, match="Another broker does this"):
            rehearsal.services.groups.find("g")
        with pytest.raises(AssertionError, match="checks no rights"):
            rehearsal.may_be_sent()
