"""A broker before KRaft is started as a quorum of one: its clients find what they had, and go on with what they had begun."""

from __future__ import annotations

import random
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

import pytest
import trio
from trio.testing import MockClock

from ottla.broker.config_file import load_config
from ottla.broker.directories.format_directories import Formatting
from ottla.broker.directories.take_over import TakeOver
from ottla.broker.directories.verify_metadata import verify_metadata
from ottla.compat_tests.raw.requests import batch, fetch_request, produce_request
from ottla.controller.raft.voters import InitialVoter
from ottla.log.memory_disk import MemoryDisk
from ottla.log.verify.directory import verify_folder
from ottla.metadata.image import ClusterImage
from ottla.wire.messages.add_partitions_to_txn import AddPartitionsToTxnRequest, AddPartitionsToTxnTopic
from ottla.wire.messages.alter_client_quotas import AlterClientQuotasRequest, EntityData, EntryData, OpData
from ottla.wire.messages.alter_user_scram_credentials import (
    AlterUserScramCredentialsRequest,
    ScramCredentialUpsertion,
)
from ottla.wire.messages.create_acls import AclCreation, CreateAclsRequest
from ottla.wire.messages.create_topics import CreatableTopic, CreatableTopicConfig, CreateTopicsRequest
from ottla.wire.messages.delete_topics import DeleteTopicsRequest
from ottla.wire.messages.end_txn import EndTxnRequest
from ottla.wire.messages.fetch import FetchRequest
from ottla.wire.messages.find_coordinator import FindCoordinatorRequest
from ottla.wire.messages.incremental_alter_configs import (
    AlterableConfig,
    AlterConfigsResource,
    IncrementalAlterConfigsRequest,
)
from ottla.wire.messages.init_producer_id import InitProducerIdRequest
from ottla.wire.messages.offset_commit import (
    OffsetCommitRequest,
    OffsetCommitRequestPartition,
    OffsetCommitRequestTopic,
)
from ottla.wire.messages.offset_fetch import OffsetFetchRequest, OffsetFetchRequestTopic
from ottla.wire.records import iter_batches

from ..helpers.controller_world import SECONDS, ControllerWorld
from ..helpers.old_broker import old_broker

ACCESS = {
    "authorizer_class_name": "kafka.security.authorizer.AclAuthorizer",
    "super_users": "User:ANONYMOUS",
    "offsets_topic_num_partitions": "3",
    "offsets_topic_replication_factor": "1",
    "transaction_state_log_num_partitions": "3",
    "transaction_state_log_replication_factor": "1",
    "transaction_state_log_min_isr": "1",
}
ACCESS_OF_KRAFT = ACCESS | {
    "authorizer_class_name": "org.apache.kafka.metadata.authorizer.StandardAuthorizer",
}


class Client:
    """A client of the one node, old or new."""

    def __init__(self, world: ControllerWorld) -> None:
        self._world = world
        self.producer = (-1, -1)
        self.sequence = 0

    async def ask(self, request: Any, version: int) -> Any:
        return await self._world.ask(1, request, version)

    async def insist(self, request: Any, version: int, code: Any) -> Any:
        """Ask until there is no error: coordinators load what they keep."""
        with trio.move_on_after(SECONDS):
            while code(response := await self.ask(request, version)):
                await trio.sleep(0.05)
            return response
        raise AssertionError(response)

    async def create(self, topic: str, partitions: int, **configs: str) -> None:
        wanted = CreatableTopic(
            name=topic,
            num_partitions=partitions,
            replication_factor=1,
            configs=[CreatableTopicConfig(name=name.replace("_", "."), value=value) for name, value in configs.items()],
        )
        request = CreateTopicsRequest(topics=[wanted], timeout_ms=30_000)
        await self.insist(request, 7, lambda response: response.topics[0].error_code)

    async def find_coordinators(self) -> None:
        for key_type, key in ((0, "g"), (1, "x")):
            request = FindCoordinatorRequest(key=key, key_type=key_type)
            await self.insist(request, 3, lambda r: r.error_code)

    async def administer(self) -> None:
        """Set something of each kind."""
        config = AlterableConfig(name="log.retention.ms", config_operation=0, value="123456789")
        changes = [AlterConfigsResource(resource_type=4, resource_name=name, configs=[config]) for name in ("", "1")]
        await self.insist(IncrementalAlterConfigsRequest(resources=changes), 1, lambda r: r.responses[0].error_code)
        rule = AclCreation(
            resource_type=2,
            resource_name="t",
            resource_pattern_type=4,
            principal="User:alice",
            host="*",
            operation=3,
            permission_type=3,
        )
        await self.insist(CreateAclsRequest(creations=[rule]), 2, lambda r: r.results[0].error_code)
        credential = ScramCredentialUpsertion(
            name="alice", mechanism=1, iterations=4096, salt=b"salt", salted_password=b"salted" * 6
        )
        request = AlterUserScramCredentialsRequest(deletions=[], upsertions=[credential])
        await self.insist(request, 0, lambda r: r.results[0].error_code)
        entity = [
            EntityData(entity_type="user", entity_name="alice"),
            EntityData(entity_type="client-id", entity_name=None),
        ]
        quota = EntryData(entity=entity, ops=[OpData(key="producer_byte_rate", value=1e9)])
        await self.insist(AlterClientQuotasRequest(entries=[quota]), 1, lambda r: r.entries[0].error_code)

    async def produce(self, value: bytes, *, is_transactional: bool = False) -> None:
        records = batch(value)
        if is_transactional:
            producer_id, epoch = self.producer
            records = batch(
                value,
                producer_id=producer_id,
                producer_epoch=epoch,
                base_sequence=self.sequence,
                is_transactional=True,
            )
            self.sequence += 1
        request = produce_request("t", {0: records}, transactional_id="x" if is_transactional else None)
        await self.insist(request, 9, lambda r: r.responses[0].partition_responses[0].error_code)

    async def begin(self) -> None:
        """A transaction that has partition 0 of the topic."""
        request = InitProducerIdRequest(transactional_id="x", transaction_timeout_ms=600_000)
        response = await self.insist(request, 4, lambda r: r.error_code)
        self.producer, self.sequence = (response.producer_id, response.producer_epoch), 0
        await self.add_partition()

    async def add_partition(self) -> None:
        producer_id, epoch = self.producer
        added = AddPartitionsToTxnRequest(
            v3_and_below_transactional_id="x",
            v3_and_below_producer_id=producer_id,
            v3_and_below_producer_epoch=epoch,
            v3_and_below_topics=[AddPartitionsToTxnTopic(name="t", partitions=[0])],
        )
        await self.insist(
            added, 3, lambda r: r.results_by_topic_v3_and_below[0].results_by_partition[0].partition_error_code
        )

    async def end(self, *, commits: bool) -> None:
        producer_id, epoch = self.producer
        request = EndTxnRequest(transactional_id="x", producer_id=producer_id, producer_epoch=epoch, committed=commits)
        await self.insist(request, 3, lambda r: r.error_code)

    async def commit_offset(self, offset: int) -> None:
        part = OffsetCommitRequestPartition(partition_index=0, committed_offset=offset, committed_metadata="m")
        request = OffsetCommitRequest(group_id="g", topics=[OffsetCommitRequestTopic(name="t", partitions=[part])])
        await self.insist(request, 8, lambda r: r.topics[0].partitions[0].error_code)

    async def committed_offset(self) -> tuple[int, str]:
        request = OffsetFetchRequest(
            group_id="g", topics=[OffsetFetchRequestTopic(name="t", partition_indexes=[0])], require_stable=True
        )
        response = await self.insist(request, 7, lambda r: r.error_code or r.topics[0].partitions[0].error_code)
        part = response.topics[0].partitions[0]
        return part.committed_offset, part.metadata

    async def values(self, *, committed: bool) -> list[bytes]:
        """Of partition 0 up to its end, or to the first open transaction."""
        found: list[bytes] = []
        aborted: set[tuple[int, int]] = set()
        offset = 0
        while True:
            request: FetchRequest = fetch_request("t", {0: offset})
            request.isolation_level = int(committed)
            response = await self.insist(request, 12, lambda r: r.responses[0].partitions[0].error_code)
            (partition,) = response.responses[0].partitions
            aborted |= {(each.producer_id, each.first_offset) for each in partition.aborted_transactions or ()}
            batches = list(iter_batches(partition.records or b""))
            if not batches:
                return found
            for each in batches:
                if each.is_control:
                    aborted = {entry for entry in aborted if entry[0] != each.producer_id}
                elif not any(each.producer_id == entry[0] and each.base_offset >= entry[1] for entry in aborted):
                    found += [record.value or b"" for record in each.records()]
            offset = batches[-1].last_offset + 1


@asynccontextmanager
async def world_of_one() -> AsyncIterator[ControllerWorld]:
    async with trio.open_nursery() as nursery:
        yield ControllerWorld(nursery, {1: "broker,controller"})
        nursery.cancel_scope.cancel()


def take_over(world: ControllerWorld) -> None:
    """What the first start does before anything else."""
    plan = TakeOver(world.disk(1), load_config(world.properties(1, **ACCESS_OF_KRAFT)), ["/data"], "/data")
    assert plan.is_due and not plan.needs_logs
    assert plan.broker_id is not None and plan.cluster_id is not None
    wanted = Formatting(
        plan.broker_id,
        plan.cluster_id,
        ["/data"],
        "/data",
        "CONTROLLER",
        is_dynamic=True,
        voters=[InitialVoter(1, "node1", 9093, bytes(range(16)))],
        is_controller=True,
    )
    plan.run(wanted, random.Random(5), 1)


def told(image: ClusterImage) -> dict[str, Any]:
    """What clients can ask for. Positions of partitions are compared by themselves."""
    configs = {
        (entity.kind, str(entity.name)): {key: value for key, value in values.items() if key != "min.insync.replicas"}
        for entity, values in image.configs.items()
    }
    return {
        "topics": {name: (topic.topic_id, list(topic.partitions)) for name, topic in image.topics.items()},
        "configs": {entity: values for entity, values in configs.items() if values},
        "quotas": dict(image.quotas.items()),
        "scram": dict(image.scram.items()),
        "acls": dict(image.acls.items()),
    }


def check_no_younger(after: ClusterImage, before: ClusterImage) -> None:
    """Each partition is led, and no client that knows it finds it younger than it was. Every start of a broker elects."""
    for name, topic in before.topics.items():
        for number, then in topic.partitions.items():
            now = after.topics[name].partitions[number]
            assert (now.leader, now.replicas, now.isr) == (1, (1,), (1,))
            assert now.leader_epoch >= then.leader_epoch and now.partition_epoch >= then.partition_epoch


@pytest.mark.parametrize("is_killed", [False, True], ids=["stopped", "killed"])
async def test_clients_go_on(is_killed: bool, autojump_clock: MockClock) -> None:
    async with world_of_one() as world:
        client = Client(world)
        async with old_broker(world, is_killed=is_killed, **ACCESS) as server:
            await client.create("t", 3, retention_ms="-1", cleanup_policy="delete")
            await client.create("gone", 2)
            await client.administer()
            await client.find_coordinators()
            await client.produce(b"a")
            await client.commit_offset(1)
            await client.begin()
            await client.produce(b"aborted", is_transactional=True)
            await client.end(commits=False)
            await client.begin()
            await client.produce(b"b", is_transactional=True)
            deleted = DeleteTopicsRequest(topic_names=["gone"], timeout_ms=10_000)
            await client.insist(deleted, 5, lambda r: r.responses[0].error_code)
            assert server.assembly is not None
            before = server.assembly.services.metadata.image
            world.forget_client(1)
        if not is_killed:
            assert [
                each for each in verify_folder(world.disk(1), "/data", verify_metadata) if "-delete" not in each.path
            ] == []
        take_over(world)
        await world.start(**ACCESS_OF_KRAFT)
        after = world.services(1).metadata.image
        assert told(after) == told(before)
        check_no_younger(after, before)
        assert await client.values(committed=False) == [b"a", b"aborted", b"b"]
        assert await client.values(committed=True) == [b"a"], "the transaction is still open"
        assert await client.committed_offset() == (1, "m")
        await client.produce(b"c", is_transactional=True)
        await client.end(commits=True)
        with trio.fail_after(SECONDS):
            while await client.values(committed=True) != [b"a", b"b", b"c"]:
                await trio.sleep(0.05)
        used = client.producer[0]
        fresh = await client.insist(
            InitProducerIdRequest(transactional_id=None, transaction_timeout_ms=1), 4, lambda r: r.error_code
        )
        assert fresh.producer_id > used
        await world.stop(1)
        await world.start(**ACCESS_OF_KRAFT)
        assert told(world.services(1).metadata.image) == told(before), "the log has all of it"
        assert await client.values(committed=True) == [b"a", b"b", b"c"]
        assert not [name for name in world.disk(1).names("/data") if "stray" in name]
        await world.stop(1)
        assert list(verify_folder(world.disk(1), "/data", verify_metadata)) == []


def go_back(disk: MemoryDisk) -> None:
    """The steps of the how-to: what was set aside gets its names again."""
    disk.remove("/data/__cluster_state")
    disk.make_dir("/data/__cluster_state")
    for name in ("journal", "snapshot"):
        if disk.exists(f"/data/before-kraft.{name}"):
            disk.rename(f"/data/before-kraft.{name}", f"/data/__cluster_state/{name}")


async def test_the_way_back_and_forth_again(autojump_clock: MockClock) -> None:
    """Records that were written since stay; what was set and made since does not."""
    async with world_of_one() as world:
        client = Client(world)
        async with old_broker(world, **ACCESS):
            await client.create("t", 1, retention_ms="-1")
            await client.administer()
            await client.find_coordinators()
            await client.produce(b"a")
            world.forget_client(1)
        take_over(world)
        await world.start(**ACCESS_OF_KRAFT)
        await client.begin()
        await client.produce(b"b", is_transactional=True)
        await client.end(commits=True)
        await client.commit_offset(2)
        await client.create("since", 1)
        used, epoch = client.producer[0], leader_epoch(world.services(1).metadata.image)
        await world.stop(1)

        go_back(world.disk(1))
        async with old_broker(world, **ACCESS) as server:
            assert server.assembly is not None
            image = server.assembly.services.metadata.image
            assert "t" in image.topics and "since" not in image.topics
            assert image.scram.keys() == {"alice"}
            assert leader_epoch(image) > epoch, "consumers ignore who leads with an older one"
            assert await client.values(committed=True) == [b"a", b"b"]
            assert await client.committed_offset() == (2, "m")
            await client.produce(b"c")
            request = InitProducerIdRequest(transactional_id=None, transaction_timeout_ms=1)
            again = await client.insist(request, 4, lambda r: r.error_code)
            assert again.producer_id > used
            epoch = leader_epoch(server.assembly.services.metadata.image)
            world.forget_client(1)

        take_over(world)
        await world.start(**ACCESS_OF_KRAFT)
        assert await client.values(committed=True) == [b"a", b"b", b"c"]
        assert leader_epoch(world.services(1).metadata.image) >= epoch
        once_more = await client.insist(request, 4, lambda r: r.error_code)
        assert once_more.producer_id > again.producer_id
        assert [name for name in world.disk(1).names("/data") if name.startswith("before-kraft")]


def leader_epoch(image: ClusterImage) -> int:
    return image.topics["t"].partitions[0].leader_epoch
