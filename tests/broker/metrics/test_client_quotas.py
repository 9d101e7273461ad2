"""Who is held up for how long is seen in the metrics, by those who share a quota."""

from __future__ import annotations

import pytest
import trio
import trio.testing

from ottla.broker.metrics.client_quotas import client_quota_metrics
from ottla.wire.messages.create_topics import CreatableTopic, CreateTopicsRequest

from ...helpers.memory_cluster import MemoryCluster, running
from ..helpers.quotas import client, produce_of, set_quota

QUOTA = "kafka_server_quota_"


def found(cluster: MemoryCluster) -> dict[tuple[str, str, str, str], float]:
    """The samples, by metric, resource, user and client id."""
    return {
        (sample.name.removeprefix(QUOTA), *(sample.labels[label] for label in ("resource", "user", "clientId"))): (
            sample.value
        )
        for family in client_quota_metrics(cluster.services(1))
        for sample in family.samples
    }


async def test_there_is_nothing_to_see_of_clients_without_a_quota(autojump_clock: trio.testing.MockClock) -> None:
    async with running(1) as cluster:
        await cluster.create("t", (1,))
        assert await cluster.produce(1, "t", 0, b"v") == 0
        assert found(cluster) == {}


async def test_who_is_held_up_is_named(autojump_clock: trio.testing.MockClock) -> None:
    async with running(1) as cluster:
        await cluster.create("t", (1,))
        admin = client(cluster, "admin")
        await set_quota(admin, "producer_byte_rate", 1000, user=None)
        await set_quota(admin, "controller_mutation_rate", 1, client_id="a client")
        await set_quota(admin, "request_percentage", 100, user="ANONYMOUS", client_id=None)
        fast = client(cluster, "a client")
        answer = await fast.send(produce_of("t", 20_000), 9)
        topic = CreatableTopic(name="made", num_partitions=4, replication_factor=1)
        await fast.send(CreateTopicsRequest(topics=[topic]), 7)
        samples = found(cluster)
        by_user = "Produce", "ANONYMOUS", ""
        assert samples["throttle_time", *by_user] == answer.throttle_time_ms > 9_000
        assert 1000 < samples["byte_rate", *by_user] < 2200
        by_client = "ControllerMutation", "", "a client"
        assert samples["throttle_time", *by_client] == 0
        assert samples["tokens", *by_client] == pytest.approx(7, abs=0.5)
        assert samples["mutation_rate", *by_client] == pytest.approx(0.4, abs=0.05)
        assert ("request_time", "Request", "ANONYMOUS", "a client") in samples
        await trio.sleep(61)
        assert found(cluster)["throttle_time", *by_user] == 0
