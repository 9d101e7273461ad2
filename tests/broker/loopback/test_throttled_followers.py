"""A follower that was away catches up as fast as the limits allow that were set while the brokers ran (KIP-73)."""

from __future__ import annotations

import pytest
import trio
import trio.testing

from ottla.wire.messages.incremental_alter_configs import (
    AlterableConfig,
    AlterConfigsResource,
    IncrementalAlterConfigsRequest,
)

from ...helpers.memory_cluster import MemoryCluster, running, until
from ..helpers.followers import in_sync, stored

TOPIC, BROKER = 2, 4
SIZE = 10_000
BATCHES = 40
RATE = 20_000


async def change(cluster: MemoryCluster, asked: int, kind: int, name: str, setting: str, value: str | None) -> None:
    """Set a config, or with None delete it."""
    config = AlterableConfig(name=setting, config_operation=1 if value is None else 0, value=value)
    resource = AlterConfigsResource(resource_type=kind, resource_name=name, configs=[config])
    (answer,) = (await cluster.ask(asked, IncrementalAlterConfigsRequest(resources=[resource]), 1)).responses
    assert answer.error_code == 0, answer


async def catch_up(side: str, broker_id: int, limit: str | None) -> float:
    """How many seconds broker 3 takes for what it has missed; ``side`` is limited on broker ``broker_id``."""
    async with running(1, 2, 3, replica_fetch_max_bytes=str(SIZE), replica_fetch_wait_max_ms="100") as cluster:
        await cluster.create("t", (1, 2, 3))
        await cluster.stop(3)
        await until(lambda: in_sync(cluster, 1) == {1, 2})
        for _ in range(BATCHES):
            assert await cluster.produce(1, "t", 0, bytes(SIZE)) == 0
        await change(cluster, 1, TOPIC, "t", f"{side}.replication.throttled.replicas", f"0:{broker_id}")
        if broker_id == 1:
            await change(cluster, 1, BROKER, "1", f"{side}.replication.throttled.rate", limit)
        else:
            await change(cluster, 1, BROKER, "", f"{side}.replication.throttled.rate", limit)
        began = trio.current_time()
        await cluster.start(3)
        with trio.fail_after(300):
            while in_sync(cluster, 1) != {1, 2, 3}:
                await trio.sleep(0.05)
        assert stored(cluster, 3) == stored(cluster, 1)
        return trio.current_time() - began


@pytest.mark.parametrize(("side", "broker_id"), [("leader", 1), ("follower", 3)])
async def test_it_takes_as_long_as_its_limit_has_it(
    side: str, broker_id: int, autojump_clock: trio.testing.MockClock
) -> None:
    expected = BATCHES * SIZE / RATE
    assert await catch_up(side, broker_id, None) < expected / 4
    assert expected / 2 < await catch_up(side, broker_id, str(RATE)) < expected * 2
