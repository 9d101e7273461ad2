"""A cluster whose inter.broker.protocol.version is older than what its brokers know: as while Kafka's brokers are upgraded."""

from __future__ import annotations

import pytest
import trio.testing

from ottla.base.errors import ErrorCode
from ottla.wire.messages.init_producer_id import InitProducerIdRequest

from ...helpers.memory_cluster import running, until, until_true


@pytest.mark.parametrize("protocol", ["2.8", "3.1", "3.4", "3.5-IV0"])
async def test_brokers_replicate_and_fail_over(protocol: str, autojump_clock: trio.testing.MockClock) -> None:
    async with running(1, 2, 3, inter_broker_protocol_version=protocol) as cluster:
        await cluster.create("t", [1, 2, 3], unclean_leader_election_enable="true")

        async def is_in_sync(*replicas: int) -> bool:
            (topic,) = (await cluster.metadata(replicas[0], "t")).topics
            return sorted(topic.partitions[0].isr_nodes) == sorted(replicas)

        assert await cluster.produce(1, "t", 0, b"one") == 0
        await cluster.stop(1)
        await until_true(lambda: is_in_sync(2, 3))
        assert await cluster.produce(2, "t", 0, b"two") == 0
        await cluster.start(1)
        await until_true(lambda: is_in_sync(1, 2, 3))
        assert await cluster.produce(2, "t", 0, b"three") == 0
        logs = [cluster.services(each).replicas.partition("t", 0).log for each in (1, 2, 3)]
        await until(lambda: [log.log_end_offset for log in logs] == [3, 3, 3])
        ids: list[int] = []

        async def is_given_id(broker_id: int) -> bool:
            request = InitProducerIdRequest(transactional_id=None, transaction_timeout_ms=60_000)
            answer = await cluster.ask(broker_id, request, 4)
            if answer.error_code != ErrorCode.COORDINATOR_LOAD_IN_PROGRESS:
                assert answer.error_code == 0
                ids.append(answer.producer_id // 1_000)
            return answer.error_code == 0

        for broker_id in (1, 2, 3):
            await until_true(lambda broker_id=broker_id: is_given_id(broker_id))
        assert len(set(ids)) == 3, "each broker has a block of its own"
        # The last replica in sync goes away, and another one leads with what it has: LeaderAndIsr of old has no word for that.
        await cluster.stop(1, 3)
        await until_true(lambda: is_in_sync(2))
        await cluster.stop(2)
        await cluster.start(1, 3)
        await until_true(lambda: is_in_sync(1, 3))
