"""Transactions whose coordinator is on another broker than the partitions: asked, told and ended over the network."""

from __future__ import annotations

from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from typing import Any

import pytest
import trio
import trio.testing

from ottla.base.errors import ErrorCode, KafkaError
from ottla.base.presence import Presence
from ottla.compat_tests.raw.requests import batch, produce_request
from ottla.replication.transaction_marker_channels import TransactionMarkerChannelManager
from ottla.replication.transaction_marker_writer import TransactionMarkerWriter
from ottla.wire.messages.add_partitions_to_txn import AddPartitionsToTxnRequest, AddPartitionsToTxnTopic
from ottla.wire.messages.describe_transactions import DescribeTransactionsRequest
from ottla.wire.messages.end_txn import EndTxnRequest
from ottla.wire.messages.find_coordinator import FindCoordinatorRequest
from ottla.wire.messages.init_producer_id import InitProducerIdRequest
from ottla.wire.messages.offset_fetch import OffsetFetchRequest
from ottla.wire.messages.txn_offset_commit import (
    TxnOffsetCommitRequest,
    TxnOffsetCommitRequestPartition,
    TxnOffsetCommitRequestTopic,
)
from ottla.wire.messages.write_txn_markers import (
    WritableTxnMarker,
    WritableTxnMarkerTopic,
    WriteTxnMarkersRequest,
    WriteTxnMarkersResponse,
)

from ...helpers.memory_cluster import MemoryCluster, running, until, until_true

ALL = (1, 2, 3)
ID = "payments"
CLASSIC, V2 = 1, 2


class Producer:
    """A transactional client of one generation of the protocol; each method gives the error code."""

    def __init__(self, cluster: MemoryCluster, coordinator: int, protocol: int) -> None:
        self._cluster = cluster
        self._protocol = protocol
        self.coordinator = coordinator
        self._producer = (-1, -1)
        self._sequences: dict[int, int] = {}

    async def initialize(self) -> int:
        """As often as the coordinator says that it has no producer id yet."""
        request = InitProducerIdRequest(transactional_id=ID, transaction_timeout_ms=60_000)
        while True:
            answer = await self._cluster.ask(self.coordinator, request, 4 if self._protocol == CLASSIC else 5)
            if answer.error_code != ErrorCode.COORDINATOR_LOAD_IN_PROGRESS:
                break
            await trio.sleep(0.1)
        self._producer = answer.producer_id, answer.producer_epoch
        self._sequences.clear()
        code: int = answer.error_code
        return code

    async def add(self, *partitions: int) -> int:
        request = AddPartitionsToTxnRequest(
            v3_and_below_transactional_id=ID,
            v3_and_below_producer_id=self._producer[0],
            v3_and_below_producer_epoch=self._producer[1],
            v3_and_below_topics=[AddPartitionsToTxnTopic(name="paid", partitions=list(partitions))],
        )
        answer = await self._cluster.ask(self.coordinator, request, 3)
        code: int = answer.results_by_topic_v3_and_below[0].results_by_partition[0].partition_error_code
        return code

    async def send(self, leader: int, partition: int, value: bytes) -> int:
        records = batch(
            value,
            producer_id=self._producer[0],
            producer_epoch=self._producer[1],
            base_sequence=self._sequences.get(partition, 0),
            is_transactional=True,
        )
        request = produce_request("paid", {partition: records}, transactional_id=ID)
        answer = await self._cluster.ask(leader, request, 9 if self._protocol == CLASSIC else 12)
        code: int = answer.responses[0].partition_responses[0].error_code
        if code == ErrorCode.NONE:
            self._sequences[partition] = self._sequences.get(partition, 0) + 1
        return code

    async def commit_offset(self, group_coordinator: int, group: str) -> int:
        part = TxnOffsetCommitRequestPartition(partition_index=0, committed_offset=1, committed_metadata="")
        request = TxnOffsetCommitRequest(
            transactional_id=ID,
            group_id=group,
            producer_id=self._producer[0],
            producer_epoch=self._producer[1],
            topics=[TxnOffsetCommitRequestTopic(name="paid", partitions=[part])],
        )
        answer = await self._cluster.ask(group_coordinator, request, 4 if self._protocol == CLASSIC else 5)
        code: int = answer.topics[0].partitions[0].error_code
        return code

    async def end(self, *, commit: bool = True) -> int:
        request = EndTxnRequest(
            transactional_id=ID, producer_id=self._producer[0], producer_epoch=self._producer[1], committed=commit
        )
        answer = await self._cluster.ask(self.coordinator, request, 3 if self._protocol == CLASSIC else 5)
        if self._protocol == V2 and answer.error_code == ErrorCode.NONE:
            if (answer.producer_id, answer.producer_epoch) != self._producer:
                self._sequences.clear()
            self._producer = answer.producer_id, answer.producer_epoch
        code: int = answer.error_code
        return code


async def committed(cluster: MemoryCluster, leader: int) -> list[bytes | None]:
    """What a consumer of committed records reads of the leader's partition."""
    return await cluster.values(leader, "paid", leader - 1, committed=True)


@asynccontextmanager
async def cluster_with_topic(*replicas: Sequence[int]) -> AsyncIterator[tuple[MemoryCluster, int]]:
    """Three brokers, partition ``i - 1`` of the topic led by broker ``i``; and which broker coordinates."""
    async with running(
        *ALL, transaction_state_log_replication_factor="1", offsets_topic_replication_factor="1"
    ) as cluster:
        await cluster.create("paid", *(replicas or ([1], [2], [3])))
        coordinators = []

        async def found() -> bool:
            coordinators.clear()
            for broker_id in sorted(ALL, key=lambda i: i != cluster.controller_id()):
                answer = await cluster.ask(broker_id, FindCoordinatorRequest(key=ID, key_type=1), 3)
                if answer.error_code == ErrorCode.NONE:
                    coordinators.append(answer.node_id)
            return len(coordinators) == len(ALL)

        await until_true(found)
        assert len(set(coordinators)) == 1, "every broker names the same"
        yield cluster, coordinators[0]


@pytest.mark.parametrize("protocol", [CLASSIC, V2])
@pytest.mark.parametrize("commit", [True, False])
async def test_a_transaction_over_all_brokers(
    protocol: int, commit: bool, autojump_clock: trio.testing.MockClock
) -> None:
    async with cluster_with_topic() as (cluster, coordinator):
        producer = Producer(cluster, coordinator, protocol)
        assert await producer.initialize() == ErrorCode.NONE
        for turn in range(2):
            if protocol == CLASSIC:
                await until_true(lambda: _is(producer.add(0, 1, 2), ErrorCode.NONE))
            for leader in ALL:
                code = await producer.send(leader, leader - 1, b"%d from %d" % (turn, leader))
                assert code == ErrorCode.NONE
                assert len(await committed(cluster, leader)) == (turn if commit else 0), "it is open"
            assert await producer.end(commit=commit) == ErrorCode.NONE
            for leader in ALL:
                expected = [b"%d from %d" % (number, leader) for number in range(turn + 1)] if commit else []
                await until_stable(cluster, leader, 2 * (turn + 1))
                assert await committed(cluster, leader) == expected


async def until_stable(cluster: MemoryCluster, leader: int, offset: int) -> None:
    """Return once no transaction is open in the leader's partition, which then ends at ``offset``."""
    log = cluster.services(leader).replicas.partition("paid", leader - 1).log
    await until(lambda: log.last_stable_offset == log.log_end_offset == offset)


async def state_of(cluster: MemoryCluster, coordinator: int) -> str:
    """Kafka's name of where the transaction is."""
    answer = await cluster.ask(coordinator, DescribeTransactionsRequest(transactional_ids=[ID]), 0)
    state: str = answer.transaction_states[0].transaction_state
    return state


async def _is(asked: object, code: object) -> bool:
    return await asked == code  # type: ignore[misc]


async def test_a_transaction_ends_though_its_producer_leaves(autojump_clock: trio.testing.MockClock) -> None:
    """The marker has to wait for a follower, and nobody waits for the producer any more."""
    async with cluster_with_topic([1, 2], [2, 3], [3, 1]) as (cluster, coordinator):
        producer = Producer(cluster, coordinator, CLASSIC)
        assert await producer.initialize() == ErrorCode.NONE
        assert await producer.add(coordinator - 1) == ErrorCode.NONE
        assert await producer.send(coordinator, coordinator - 1, b"kept") == ErrorCode.NONE
        transactions = cluster.services(coordinator).transactions

        async def end_and_leave() -> None:
            """As the task of a connection does it whose client closes it at once."""
            presence = Presence()
            presence.begin()
            presence.leave()
            await transactions.end_transaction(ID, producer._producer, True, 1, trio.lowlevel.checkpoint)

        async with trio.open_nursery() as nursery:
            nursery.start_soon(end_and_leave)
        await until_true(lambda: _is(state_of(cluster, coordinator), "CompleteCommit"))
        await until_stable(cluster, coordinator, 2)  # there is one marker
        assert await committed(cluster, coordinator) == [b"kept"]


async def test_what_was_not_added_is_refused_by_the_leader_on_another_broker(
    autojump_clock: trio.testing.MockClock,
) -> None:
    async with cluster_with_topic() as (cluster, coordinator):
        producer = Producer(cluster, coordinator, CLASSIC)
        other, third = (broker_id for broker_id in ALL if broker_id != coordinator)
        assert await producer.initialize() == ErrorCode.NONE
        assert await producer.add(other - 1) == ErrorCode.NONE
        assert await producer.send(other, other - 1, b"added") == ErrorCode.NONE
        assert await producer.send(third, third - 1, b"not added") == ErrorCode.INVALID_TXN_STATE
        fenced = Producer(cluster, coordinator, V2)
        fenced._producer = producer._producer
        await until_true(lambda: _is(Producer(cluster, coordinator, V2).initialize(), ErrorCode.NONE))
        assert await fenced.send(third, third - 1, b"fenced") == ErrorCode.INVALID_PRODUCER_EPOCH


@pytest.mark.parametrize("protocol", [CLASSIC, V2])
async def test_a_leader_without_the_coordinator_has_its_client_try_again(
    protocol: int, autojump_clock: trio.testing.MockClock
) -> None:
    async with cluster_with_topic() as (cluster, coordinator):
        producer = Producer(cluster, coordinator, protocol)
        other = next(broker_id for broker_id in ALL if broker_id != coordinator)
        assert await producer.initialize() == ErrorCode.NONE
        if protocol == CLASSIC:
            assert await producer.add(other - 1) == ErrorCode.NONE
        await cluster.stop(coordinator)
        assert await producer.send(other, other - 1, b"too early") == ErrorCode.NOT_ENOUGH_REPLICAS
        await cluster.start(coordinator)
        await until_true(lambda: _is(producer.send(other, other - 1, b"again"), ErrorCode.NONE))
        assert await producer.end() == ErrorCode.NONE
        await until_true(lambda: _reads(cluster, other, [b"again"]))


async def _reads(cluster: MemoryCluster, leader: int, expected: list[bytes]) -> bool:
    try:
        return await committed(cluster, leader) == expected
    except KafkaError:  # it does not lead yet
        return False


async def test_a_leader_that_is_away_is_told_of_the_end_when_it_is_back(
    autojump_clock: trio.testing.MockClock,
) -> None:
    async with cluster_with_topic() as (cluster, coordinator):
        producer = Producer(cluster, coordinator, V2)
        other, third = (broker_id for broker_id in ALL if broker_id != coordinator)
        assert await producer.initialize() == ErrorCode.NONE
        for leader in (other, third):
            assert await producer.send(leader, leader - 1, b"paid") == ErrorCode.NONE
        await cluster.stop(other)
        assert await producer.end() == ErrorCode.NONE
        await until_true(lambda: _reads(cluster, third, [b"paid"]))
        await trio.sleep(5)
        await cluster.start(other)
        await until_true(lambda: _reads(cluster, other, [b"paid"]))


async def test_a_coordinator_that_is_back_ends_what_was_decided(autojump_clock: trio.testing.MockClock) -> None:
    async with cluster_with_topic() as (cluster, coordinator):
        producer = Producer(cluster, coordinator, V2)
        other = next(broker_id for broker_id in ALL if broker_id != coordinator)
        assert await producer.initialize() == ErrorCode.NONE
        assert await producer.send(other, other - 1, b"paid") == ErrorCode.NONE
        await cluster.stop(other)
        assert await producer.end() == ErrorCode.NONE
        await cluster.stop(coordinator)
        await cluster.start(other)
        await until_true(lambda: _reads(cluster, other, []))
        await cluster.start(coordinator)
        await until_true(lambda: _reads(cluster, other, [b"paid"]))


async def test_a_transaction_begins_while_the_last_one_is_being_ended(
    autojump_clock: trio.testing.MockClock, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The leader asks for the next transaction; before the coordinator hears of that, the last one is ended everywhere."""
    async with cluster_with_topic() as (cluster, coordinator):
        producer = Producer(cluster, coordinator, V2)
        other = next(broker_id for broker_id in ALL if broker_id != coordinator)
        assert await producer.initialize() == ErrorCode.NONE
        assert await producer.send(other, other - 1, b"first") == ErrorCode.NONE
        services = cluster.services(other)
        write, add, asked = services.end_markers.write, services.add_partitions_to_txn_manager.add, trio.Event()

        async def write_late(request: WriteTxnMarkersRequest) -> WriteTxnMarkersResponse:
            await asked.wait()
            return await write(request)

        async def add_late(*arguments: Any) -> None:
            asked.set()
            await trio.sleep(1)
            await add(*arguments)

        monkeypatch.setattr(services.end_markers, "write", write_late)
        monkeypatch.setattr(services.add_partitions_to_txn_manager, "add", add_late)
        assert await producer.end() == ErrorCode.NONE
        assert await producer.send(other, other - 1, b"second") == ErrorCode.NONE
        assert await producer.end() == ErrorCode.NONE
        await until_true(lambda: _reads(cluster, other, [b"first", b"second"]))


async def test_offsets_are_tried_again_when_the_transactions_coordinator_is_out_of_reach(
    autojump_clock: trio.testing.MockClock, monkeypatch: pytest.MonkeyPatch
) -> None:
    async with cluster_with_topic() as (cluster, coordinator):
        await until_true(lambda: _found(cluster, "readers"))
        group_coordinator = (await _find(cluster, "readers")).node_id
        producer = Producer(cluster, coordinator, V2)
        assert await producer.initialize() == ErrorCode.NONE
        entries = cluster.services(group_coordinator).add_partitions_to_txn_manager

        async def unreachable(*arguments: object) -> None:
            raise KafkaError(ErrorCode.NETWORK_EXCEPTION, "no connection")

        with monkeypatch.context() as patch:
            patch.setattr(entries, "add", unreachable)
            assert await producer.commit_offset(group_coordinator, "readers") == ErrorCode.COORDINATOR_LOAD_IN_PROGRESS
        assert await producer.commit_offset(group_coordinator, "readers") == ErrorCode.NONE


async def _find(cluster: MemoryCluster, group: str) -> Any:
    return await cluster.ask(1, FindCoordinatorRequest(key=group, key_type=0), 3)


async def _found(cluster: MemoryCluster, group: str) -> bool:
    """Whether the group's coordinator is there, and has loaded."""
    for broker_id in ALL:
        await cluster.ask(broker_id, FindCoordinatorRequest(key=group, key_type=0), 3)
    found = await _find(cluster, group)
    if found.error_code:
        return False
    answer = await cluster.ask(found.node_id, OffsetFetchRequest(group_id=group, topics=None), 5)
    return bool(answer.error_code == ErrorCode.NONE)


async def test_the_markers_of_many_transactions_go_together(autojump_clock: trio.testing.MockClock) -> None:
    """One request to a broker at a time; what comes while it is under way goes with the next one."""
    async with running(1, 2) as cluster:
        await cluster.create("paid", [1], [2])
        sent: list[int] = []
        services = cluster.services(2)
        write = services.end_markers.write

        async def note(request: WriteTxnMarkersRequest) -> WriteTxnMarkersResponse:
            sent.append(len(request.markers))
            await trio.sleep(1)
            return await write(request)

        services.end_markers.write = note  # type: ignore[method-assign]
        own = cluster.services(1)
        peers = cluster.assembly(1).peers
        assert peers is not None
        channels = TransactionMarkerChannelManager(
            1, own.metadata, TransactionMarkerWriter(own.replicas, own.clock), peers
        )
        codes: dict[int, int] = {}

        async def end(producer_id: int) -> None:
            topic = WritableTxnMarkerTopic(name="paid", partition_indexes=[1])
            marker = WritableTxnMarker(producer_id=producer_id, producer_epoch=0, topics=[topic])
            response = await channels.write_txn_markers(2, WriteTxnMarkersRequest(markers=[marker]))
            (result,) = response.markers
            assert result.producer_id == producer_id
            codes[producer_id] = result.topics[0].partitions[0].error_code

        async with trio.open_nursery() as nursery:
            given_up = trio.CancelScope()
            nursery.start_soon(end, 0)
            await until(lambda: bool(sent))
            for producer_id in range(1, 10):
                nursery.start_soon(end, producer_id)

            async def give_up() -> None:
                with given_up:
                    await end(99)

            nursery.start_soon(give_up)
            await trio.sleep(0.5)
            given_up.cancel()
        assert codes == dict.fromkeys(range(10), ErrorCode.NONE)
        assert sent == [1, 9]


async def test_each_coordinator_epoch_has_its_own_answer(autojump_clock: trio.testing.MockClock) -> None:
    """An answer names producers only: two markers of one, of which the later coordinator's counts, go one after the other."""
    async with running(1, 2) as cluster:
        await cluster.create("paid", [2])
        own, peers = cluster.services(1), cluster.assembly(1).peers
        assert peers is not None
        markers, is_asked, may_answer = cluster.services(2).end_markers, trio.Event(), trio.Event()
        write = markers.write

        async def write_late(request: WriteTxnMarkersRequest) -> WriteTxnMarkersResponse:
            is_asked.set()
            await may_answer.wait()
            return await write(request)

        markers.write = write_late  # type: ignore[method-assign]
        channels = TransactionMarkerChannelManager(
            1, own.metadata, TransactionMarkerWriter(own.replicas, own.clock), peers
        )
        codes: dict[tuple[int, int], int] = {}

        async def end(producer_id: int, coordinator_epoch: int) -> None:
            topic = WritableTxnMarkerTopic(name="paid", partition_indexes=[0])
            marker = WritableTxnMarker(
                producer_id=producer_id, producer_epoch=0, topics=[topic], coordinator_epoch=coordinator_epoch
            )
            response = await channels.write_txn_markers(2, WriteTxnMarkersRequest(markers=[marker]))
            (result,) = response.markers
            codes[producer_id, coordinator_epoch] = result.topics[0].partitions[0].error_code

        async with trio.open_nursery() as nursery:
            nursery.start_soon(end, 99, 0)
            await is_asked.wait()
            nursery.start_soon(end, 7, 5)
            await trio.testing.wait_all_tasks_blocked()
            nursery.start_soon(end, 7, 4)
            await trio.testing.wait_all_tasks_blocked()
            may_answer.set()
        fenced = ErrorCode.TRANSACTION_COORDINATOR_FENCED
        assert codes == {(99, 0): ErrorCode.NONE, (7, 5): ErrorCode.NONE, (7, 4): fenced}
