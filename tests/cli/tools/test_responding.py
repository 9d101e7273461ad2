"""A quorum's leader tells of its voters: when their majority counts as lost. And a cluster some of whose addresses are silent."""

from __future__ import annotations

import socket
from contextlib import closing

import pytest
import trio

import ottla
from ottla.base.addresses import split_host_port
from ottla.base.seams import TrioWorkers
from ottla.base.tcp import TcpNetwork
from ottla.cli.tools.client import ClusterConnection
from ottla.cli.tools.responding import RespondingCluster, Silence, SilentBroker, lost_majority, responding
from ottla.cli.tools.running import ToolError, UsageError
from ottla.replication.broker_client import PeerUnavailableError
from ottla.testing.held_port import HeldPort
from ottla.view.quorum_rows import QuorumReplicaRow, QuorumRow
from ottla.view.remote.cluster_client import ClusterClient
from ottla.wire.messages.metadata import MetadataRequest, MetadataResponse, MetadataResponseBroker

LEADER = 1


def quorum(*fetched_ago_ms: int | None) -> QuorumRow:
    """Node 1 leads; the others have fetched so long ago, or never since its election."""
    voters = [(LEADER, 0), *enumerate(fetched_ago_ms, 2)]
    return QuorumRow(LEADER, voters=tuple(voter(number, ago) for number, ago in voters))


def voter(number: int, ago: int | None) -> QuorumReplicaRow:
    trouble = "has not fetched since the leader was elected" if ago is None else ""
    return QuorumReplicaRow(number, None, (), number == LEADER, 9, 0, ago, ago, trouble)


@pytest.mark.parametrize(
    ("row", "silent", "missing"),
    [
        (quorum(300, 300), set(), ""),
        (quorum(300, 6_000), set(), ""),
        (quorum(6_000, 6_000), set(), "2 of 3 voters do not fetch from the leader of the quorum (2, 3)"),
        (quorum(None, None), set(), "2 of 3 voters do not fetch from the leader of the quorum (2, 3)"),
        (quorum(2_000, 2_000), set(), ""),
        (quorum(2_000, 2_000), {2, 3}, "2 of 3 voters do not fetch from the leader of the quorum (2, 3)"),
        (quorum(300, 300), {2, 3}, ""),  # they are out of this machine's reach only
        (quorum(6_000), set(), "1 of 2 voters does not fetch from the leader of the quorum (2)"),
        (quorum(6_000, 300, 300), set(), ""),
        (quorum(6_000, 6_000, 300), set(), "2 of 4 voters do not fetch from the leader of the quorum (2, 3)"),
        (quorum(), {LEADER}, ""),
    ],
)
def test_a_majority_is_lost_when_its_leader_misses_it(row: QuorumRow, silent: set[int], missing: str) -> None:
    assert lost_majority(row, silent) == (
        f"{missing}: without a majority nothing in the metadata can be changed" if missing else ""
    )


def test_a_refusal_is_no_silence() -> None:
    assert SilentBroker(2, "kafka-2:9092", Silence.REFUSED, "connection refused").what == (
        "Broker 2 does not respond at kafka-2:9092: connection refused"
    )
    assert SilentBroker(2, "kafka-2:9092", Silence.DENIED, "authentication failed").what == (
        "Broker 2 does not let this client in at kafka-2:9092: authentication failed"
    )


async def seen(connection: ClusterConnection) -> RespondingCluster:
    async with responding(connection, connection.security()) as cluster:
        return cluster


@pytest.mark.slow
@pytest.mark.timeout(60)
def test_an_address_that_takes_connections_and_is_silent_holds_nothing_up(monkeypatch: pytest.MonkeyPatch) -> None:
    """However long a request may take; the other address responds before that, and only it is asked for more."""
    monkeypatch.setattr("ottla.cli.tools.responding._REQUEST_S", 3600.0)
    with ottla.Broker() as broker, socket.create_server(("127.0.0.1", 0)) as silent:
        connection = ClusterConnection(f"127.0.0.1:{silent.getsockname()[1]},{broker.bootstrap_servers}")
        cluster = trio.run(seen, connection)
        silent.setblocking(False)
        taken, _ = silent.accept()
        taken.close()
        with pytest.raises(BlockingIOError):
            silent.accept()
    assert next(iter(cluster.state.brokers.values()))[:2] == split_host_port(broker.bootstrap_servers)
    assert (cluster.controller, cluster.problems()) == (1, [])


@pytest.mark.slow
async def test_a_broker_that_advertises_another_address() -> None:
    """It is asked there, as clients do: where nothing listens, and where each connection is ended at once."""

    async def end(stream: trio.SocketStream) -> None:
        await stream.receive_some()
        await stream.aclose()

    with closing(HeldPort()) as own, closing(HeldPort()) as free:
        async with trio.open_nursery() as nursery:
            (listener,) = await trio.open_tcp_listeners(0, host="127.0.0.1")
            nursery.start_soon(trio.serve_listeners, end, [listener])
            ending = listener.socket.getsockname()[1]
            listening = {"listeners": f"PLAINTEXT://127.0.0.1:{own.number}"}
            for port, verb, why in (
                (free.number, "does not respond", "connection refused"),
                (ending, "does not let this client in", "the peer closed the connection"),
            ):
                with ottla.Broker(properties={**listening, "advertised.listeners": f"PLAINTEXT://127.0.0.1:{port}"}):
                    cluster = await seen(ClusterConnection(f"127.0.0.1:{own.number}"))
                assert cluster.problems() == [f"Broker 1 {verb} at 127.0.0.1:{port}: {why}"]
                assert cluster.controller == 1
            nursery.cancel_scope.cancel()


@pytest.mark.slow
async def test_a_broker_that_is_left_out_is_asked_nothing() -> None:
    """Not even when the metadata lists it again."""
    with ottla.Broker() as broker, socket.create_server(("127.0.0.1", 0)) as silent:
        silent.setblocking(False)
        client = ClusterClient(TcpNetwork(TrioWorkers()), [split_host_port(broker.bootstrap_servers)])
        addresses = {1: split_host_port(broker.bootstrap_servers), 2: silent.getsockname()}
        listed = [MetadataResponseBroker(node_id=n, host=host, port=port) for n, (host, port) in addresses.items()]
        with closing(client):
            client.follow(MetadataResponse(brokers=listed))
            client.leave_out({2})
            client.follow(MetadataResponse(brokers=listed))
            assert client.nodes == {1: addresses[1]}
            with pytest.raises(PeerUnavailableError):
                await client.ask(2, MetadataRequest(topics=[]))
            assert [each.node_id for each in (await client.ask_any(MetadataRequest(topics=[]))).brokers] == [1]
        with pytest.raises(BlockingIOError):
            silent.accept()


def test_nothing_responds() -> None:
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = taken.getsockname()[1]
    with pytest.raises(ToolError, match=rf"no broker answers at 127\.0\.0\.1:{port} \(connection refused\)"):
        trio.run(seen, ClusterConnection(f"127.0.0.1:{port}"))


def test_a_proxy_is_not_gone_round() -> None:
    connection = ClusterConnection("127.0.0.1:1", properties=("proxy.url=socks5://127.0.0.1:1",))
    with pytest.raises(UsageError, match="without a proxy"):
        trio.run(seen, connection)
