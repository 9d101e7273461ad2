"""``ottla console`` of clusters in this process: one of three brokers, and one that asks who its clients are, over TLS."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

import pytest
import trio

import ottla
from ottla.base.addresses import split_host_port
from ottla.base.files import read_file
from ottla.base.seams import SystemClock, TrioWorkers
from ottla.base.tcp import TcpNetwork
from ottla.console.standalone import ConsoleAlone
from ottla.security.client_security import ClientSecurity, read_client_security
from ottla.testing.broker_security import MECHANISMS
from ottla.view.remote.cluster_view import ClusterView

USERS = {"alice": 'her "secret"'}


@asynccontextmanager
async def view_of(bootstrap: str, security: ClientSecurity | None = None) -> AsyncIterator[ClusterView]:
    addresses = [split_host_port(server) for server in bootstrap.split(",")]
    workers = TrioWorkers()
    alone = ConsoleAlone(addresses, security or ClientSecurity(), TcpNetwork(workers), SystemClock(), workers)
    async with trio.open_nursery() as nursery:
        nursery.start_soon(alone.view.run)
        with trio.fail_after(60):
            await alone.view.renew()
            yield alone.view
        nursery.cancel_scope.cancel()


async def test_a_cluster_of_three_loses_a_broker() -> None:
    with ottla.Cluster(3) as cluster:
        await trio.to_thread.run_sync(cluster.create_topic, "orders", 6)
        async with view_of(cluster.bootstrap_servers) as view:
            row = await view.cluster()
            assert row.brokers == (1, 2, 3)
            assert row.findings == ()
            detail = await view.topic("orders")
            assert {each.leader for each in detail.partitions} == {1, 2, 3}
            assert all(each.high_watermark == 0 for each in detail.partitions)
            assert len(await view.logs("orders")) == 6
            await trio.to_thread.run_sync(cluster.brokers[2].kill)
            with trio.fail_after(60):
                while not any(
                    each.what.startswith("6 partitions have fewer replicas in sync") for each in row.findings
                ):
                    await trio.sleep(0.05)
                    await view.renew()
                    row = await view.cluster()
            assert view.outage() is None
            assert row.brokers == (1, 3)
            assert len(await view.logs("orders")) == 6, "others lead by now"


@pytest.mark.parametrize("mechanism", MECHANISMS)
async def test_a_user_over_tls(mechanism: str) -> None:
    with ottla.Broker(users=USERS, tls=True) as broker:
        await trio.to_thread.run_sync(broker.create_topic, "seen")
        properties = broker.client_properties()
        properties |= {"sasl.mechanism": mechanism}
        properties["sasl.jaas.config"] = properties["sasl.jaas.config"].replace("scram.Scram", "plain.Plain")
        async with view_of(broker.bootstrap_servers, read_client_security(properties, read_file)) as view:
            assert "seen" in [row.name for row in await view.topics()]
            assert view.outage() is None
        properties["sasl.jaas.config"] = properties["sasl.jaas.config"].replace("secret", "wrong")
        async with view_of(broker.bootstrap_servers, read_client_security(properties, read_file)) as view:
            outage = view.outage()
            assert outage is not None
            assert f"authentication by {mechanism} has failed" in outage.why
        async with view_of(broker.bootstrap_servers) as view:
            assert view.outage() is not None
