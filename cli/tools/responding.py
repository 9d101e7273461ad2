"""The brokers of a cluster that respond, and its quorum: the part that ``ottla doctor`` and ``ottla cluster health`` share.

Every registered broker is asked at the same time, and has ``RESPONSE_S``; a silent one is asked nothing else. Nothing is taken
from the cluster's metadata that a response, or its absence, contradicts: it lists a dead broker until its session has ended.

- A broker that does not respond here may respond elsewhere. Whether a voter has gone is therefore the leader's to tell: it knows
  when each one has fetched. A silent broker that is a voter gets ``_STOPPED_MS`` for that, and the leader is asked again.
- Brokers forward DescribeQuorum to the leader (KIP-595). Without a leader they respond late, or with an error.
"""

from __future__ import annotations

import dataclasses
import enum
from collections import Counter
from collections.abc import AsyncIterator, Collection, Container, Mapping
from contextlib import asynccontextmanager

import trio

from ...base.addresses import join_host_port, split_host_port
from ...base.errors import ErrorCode, KafkaError
from ...base.seams import TrioWorkers, Workers
from ...base.settings import SettingError
from ...base.tcp import TcpNetwork
from ...base.wording import counted, listed, plural
from ...security.client_security import ClientSecurity
from ...view.quorum_rows import SILENT_MS, QuorumReplicaRow, QuorumRow, describe_quorum_request, quorum_row
from ...view.remote.cluster_client import ClusterClient, of_each
from ...view.remote.connection_security import entry
from ...view.remote.topic_requests import ClusterState, cluster_state
from ...wire.messages.api_versions import ApiVersionsRequest
from ...wire.messages.describe_cluster import DescribeClusterRequest, DescribeClusterResponse
from ...wire.messages.metadata import MetadataRequest, MetadataRequestTopic, MetadataResponse
from .client import ClusterConnection, check_reachable, goes_by_proxy, servers
from .running import ToolError, UsageError

RESPONSE_S = 3.0
"""A broker whose event loop, or whose machine, is busy responds within this; a client that waits longer notices."""
_REQUEST_S = 10.0
_STOPPED_MS = 1_500
"""Voters fetch at least twice a second."""
_WITH_FENCED = 2
_MOST_ASKED = 3
"""So many brokers are asked for the quorum: one of them may be cut off from the controllers."""
_MOST_NAMED = 5
_NO_LEADER = "The quorum of controllers has no leader"
_UNCHANGEABLE = "nothing in the metadata can be changed"


class Silence(enum.Enum):
    """How a broker fails to serve a client."""

    REFUSED = enum.auto()
    """Nothing listens at its address."""
    LOST = enum.auto()
    """The address has no host, or no response came from it."""
    DENIED = enum.auto()
    """Its listener took the connection and then ended it, as where TLS or a password is wrong."""


@dataclasses.dataclass(frozen=True, slots=True)
class SilentBroker:
    """A broker that the metadata lists, and that did not serve this client."""

    broker_id: int
    address: str
    kind: Silence
    why: str

    @property
    def what(self) -> str:
        """A sentence."""
        verb = "does not let this client in" if self.kind is Silence.DENIED else "does not respond"
        return f"Broker {self.broker_id} {verb} at {self.address}: {self.why}"


@dataclasses.dataclass(frozen=True, slots=True)
class QuorumResponse:
    """What is known of the quorum."""

    row: QuorumRow | None = None
    """None where the cluster has no quorum."""
    problem: str = ""
    """Why the metadata cannot be changed, as a sentence; empty where they can be, or that is not known."""


@dataclasses.dataclass(frozen=True, slots=True)
class RespondingCluster:
    """A cluster that has responded. The ``client`` leaves out silent brokers."""

    client: ClusterClient
    workers: Workers
    state: ClusterState
    """As the metadata has it, silent brokers included."""
    down: Mapping[int, str]
    """The brokers that are registered, or have replicas, and are not alive according to the metadata; each as a sentence."""
    silent: Mapping[int, SilentBroker]
    quorum: QuorumResponse

    @property
    def controller(self) -> int | None:
        """The leader of the quorum, or the controller of a cluster without one; None where none is known to respond."""
        if self.quorum.row is not None:
            return self.quorum.row.leader
        named = self.state.controller_id
        return named if named in self.state.brokers and named not in self.silent else None

    def problems(self) -> list[str]:
        """Sentences about brokers and controllers."""
        found = [*self.down.values(), *(each.what for each in self.silent.values())]
        return [*found, self.quorum.problem] if self.quorum.problem else found


@asynccontextmanager
async def responding(connection: ClusterConnection, security: ClientSecurity) -> AsyncIterator[RespondingCluster]:
    """The cluster at an address. Raises UsageError; ToolError where no broker responds, or lets this client in."""
    options = connection.security_options()
    if goes_by_proxy(options):
        raise UsageError("this command asks each broker itself, and does so without a proxy: leave out proxy.url")
    workers = TrioWorkers()
    bootstrap = [split_host_port(each) for each in servers(connection.bootstrap_server).split(",")]
    try:
        secure = entry(security, workers)
    except SettingError as error:
        raise UsageError(str(error)) from None
    client = ClusterClient(TcpNetwork(workers), bootstrap, secure, timeout=_REQUEST_S)
    try:
        try:
            await client.meet()
            state = await cluster_state(client)
        except (OSError, KafkaError) as error:
            await workers.run(lambda: check_reachable(connection.bootstrap_server, options=options, has_failed=True))
            raise ToolError(f"no broker answers: {error}") from None
        silent = await _silent(client)
        client.leave_out(silent)
        down = await _down(client, state)
        quorum = await _quorum(client, state, silent)
        yield RespondingCluster(client, workers, state, down, silent, quorum)
    finally:
        client.close()


async def _silent(client: ClusterClient) -> dict[int, SilentBroker]:
    found: dict[int, SilentBroker] = {}

    async def ask(broker_id: int) -> None:
        try:
            with trio.fail_after(RESPONSE_S):
                await client.version(broker_id, ApiVersionsRequest)
        except trio.TooSlowError:
            raise TimeoutError(f"no response within {RESPONSE_S:.0f} s") from None

    def failed(broker_id: int, error: Exception) -> None:
        found[broker_id] = _silent_broker(broker_id, join_host_port(*client.nodes[broker_id]), error)

    await of_each(client.nodes, ask, failed)
    return dict(sorted(found.items()))


def _silent_broker(broker_id: int, address: str, error: Exception) -> SilentBroker:
    """``error`` is that of the request, with that of the connection as its cause."""
    why = str(error).removeprefix(f"{address}: ")
    cause = error.__cause__
    if isinstance(cause, ConnectionRefusedError):
        return SilentBroker(broker_id, address, Silence.REFUSED, why.lower())
    was_connected = isinstance(cause, ConnectionResetError | BrokenPipeError) or getattr(cause, "errno", None) is None
    if was_connected and not isinstance(error, TimeoutError):
        return SilentBroker(broker_id, address, Silence.DENIED, why)
    return SilentBroker(broker_id, address, Silence.LOST, why[:1].lower() + why[1:])


async def _down(client: ClusterClient, state: ClusterState) -> dict[int, str]:
    topics = state.topics.values()
    replicas = Counter(replica for topic in topics for each in topic.partitions.values() for replica in each.replicas)
    gone = {*replicas, *await _registered(client)} - state.brokers.keys()
    return {
        broker_id: f"Broker {broker_id} is down, and "
        + (f"has {counted(replicas[broker_id], 'replica')}" if replicas[broker_id] else "is registered")
        for broker_id in sorted(gone)
    }


async def _registered(client: ClusterClient) -> set[int]:
    """The brokers of a quorum, fenced ones included; none where brokers do not tell."""
    request = DescribeClusterRequest(include_fenced_brokers=True)
    try:
        response: DescribeClusterResponse = await client.ask_any(request, lowest=_WITH_FENCED)
    except (OSError, KafkaError):
        return set()
    return {each.broker_id for each in response.brokers}


async def _quorum(client: ClusterClient, state: ClusterState, silent: Container[int]) -> QuorumResponse:
    found = await _described(client, state)
    if found.row is not None and _is_doubtful(found.row, silent):
        await trio.sleep(_STOPPED_MS / 1000)
        found = await _described(client, state)
    if found.row is None or found.problem:
        return found
    return QuorumResponse(found.row, lost_majority(found.row, silent))


async def _described(client: ClusterClient, state: ClusterState) -> QuorumResponse:
    """What the first broker says that tells of a leader, or refuses to; several are asked at the same time."""
    request = describe_quorum_request()
    asked: list[int | None] = [*sorted(client.nodes)[:_MOST_ASKED]] or [None]
    rows: list[QuorumRow] = []
    has_quorum = True

    async def ask(broker_id: int | None) -> None:
        nonlocal has_quorum
        try:
            response = await (client.ask_any(request) if broker_id is None else client.ask(broker_id, request))
        except OSError:
            return
        except KafkaError:  # it does not know the request
            has_quorum = False
            nursery.cancel_scope.cancel()
            return
        rows.append(quorum_row(response))
        if rows[-1].leader is not None or rows[-1].why:
            nursery.cancel_scope.cancel()

    with trio.move_on_after(RESPONSE_S):
        async with trio.open_nursery() as nursery:
            for broker_id in asked:
                nursery.start_soon(ask, broker_id)
    if rows:
        row = rows[-1]
        return QuorumResponse(row, "" if row.leader is not None or row.why else f"{_NO_LEADER}: {_UNCHANGEABLE}")
    if has_quorum:
        silence = f"No leader of the quorum has responded within {RESPONSE_S:.0f} s"
        return QuorumResponse(QuorumRow(None), f"{silence}: without one {_UNCHANGEABLE}")
    return QuorumResponse(None, "" if state.controller_id >= 0 else f"No broker is the controller: {_UNCHANGEABLE}")


def _is_doubtful(row: QuorumRow, silent: Container[int]) -> bool:
    """Whether the leader may know more of its voters in a moment: one has just become silent, or none has fetched yet."""
    fresh = [each for each in row.voters if each.fetched_ago_ms is not None and each.fetched_ago_ms <= _STOPPED_MS]
    return any(each.node_id in silent and not each.is_leader for each in fresh) or bool(lost_majority(row, silent))


def lost_majority(row: QuorumRow, silent: Container[int]) -> str:
    """A sentence where so many voters are missing that none is left to agree with; empty where a majority fetches."""
    missing = [each.node_id for each in row.voters if _is_missing(each, silent)]
    if not missing or 2 * (len(row.voters) - len(missing)) > len(row.voters):
        return ""
    names = listed([str(each) for each in missing], _MOST_NAMED)
    what = f"{len(missing)} of {counted(len(row.voters), 'voter')} {plural(len(missing), 'does', 'do')} not fetch from the leader"
    return f"{what} of the quorum ({names}): without a majority {_UNCHANGEABLE}"


def _is_missing(voter: QuorumReplicaRow, silent: Container[int]) -> bool:
    if voter.is_leader:
        return False
    if voter.fetched_ago_ms is None:
        return bool(voter.trouble)  # there is none where the leader is too old to tell times
    return voter.fetched_ago_ms > (_STOPPED_MS if voter.node_id in silent else SILENT_MS)


async def hidden_topics(client: ClusterClient, names: Collection[str]) -> list[str]:
    """Those of the topics that this user may not describe. Raises OSError, KafkaError."""
    if not names:
        return []
    asked = [MetadataRequestTopic(name=name) for name in sorted(names)]
    response: MetadataResponse = await client.ask_any(MetadataRequest(topics=asked, allow_auto_topic_creation=False))
    refused = ErrorCode.TOPIC_AUTHORIZATION_FAILED
    return [each.name for each in response.topics if each.error_code == refused and each.name is not None]
