"""A leader that was replaced without having learned of it, and a producer that comes to it for want of newer metadata."""

from __future__ import annotations

import trio

from ottla.base.errors import ErrorCode
from ottla.compat_tests.raw.requests import batch, produce_request
from ottla.controller.zookeeper.nodes import znodes
from ottla.controller.zookeeper.store.cluster_store import Delete, Set
from ottla.wire.messages.produce import PartitionProduceResponse

from ..helpers.memory_cluster import MemoryCluster, running

PRODUCER = {"producer_id": 7, "producer_epoch": 0}


async def produced(cluster: MemoryCluster, sequence: int) -> PartitionProduceResponse:
    records = batch(b"value", base_sequence=sequence, **PRODUCER)
    response = await cluster.ask(1, produce_request("t", {0: records}), 9)
    answer = response.responses[0].partition_responses[0]
    assert isinstance(answer, PartitionProduceResponse)
    return answer


async def elect_elsewhere(cluster: MemoryCluster) -> None:
    """Another leader by the store, of which no broker is told."""
    session = cluster.services(1).cluster.session
    path = znodes.state_path("t", 0)
    node = await session.get(path)
    state = znodes.decode_state(node.data)
    state = state._replace(leader=2, leader_epoch=state.leader_epoch + 1)
    await session.multi([Set(path, znodes.encode_state(state))])


async def test_a_leader_that_was_replaced_finds_no_sequence_number_out_of_order(
    autojump_clock: trio.testing.MockClock,
) -> None:
    async with running(1, 2) as cluster:
        await cluster.create("t", [1, 2])
        assert (await produced(cluster, 0)).error_code == ErrorCode.NONE
        missing = await produced(cluster, 5)
        assert (missing.error_code, missing.log_start_offset) == (ErrorCode.OUT_OF_ORDER_SEQUENCE_NUMBER, 0)
        await elect_elsewhere(cluster)
        answer = await produced(cluster, 5)
        assert (answer.error_code, answer.log_start_offset) == (ErrorCode.NOT_LEADER_OR_FOLLOWER, -1)


async def test_a_leader_that_cannot_tell_whether_it_was_replaced_sends_the_producer_to_look(
    autojump_clock: trio.testing.MockClock,
) -> None:
    async with running(1, 2) as cluster:
        await cluster.create("t", [1, 2])
        assert (await produced(cluster, 0)).error_code == ErrorCode.NONE
        await cluster.services(1).cluster.session.multi([Delete(znodes.state_path("t", 0))])
        assert (await produced(cluster, 5)).error_code == ErrorCode.NOT_LEADER_OR_FOLLOWER
