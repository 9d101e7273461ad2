"""``ottla cluster add-voter | remove-voter``: changes of the voter set (AddRaftVoter, RemoveRaftVoter, KIP-853).

A voter is a node with one of its directories and its addresses. Both are found: the directory in what the leader says of its
observers, the address in the registration of the controller. The leader makes one change at a time, and refuses one before the
newcomer has the log; so it is asked again until the time is up. Whether a change is made is seen in the quorum, since the
response to a request whose time was up may have been lost.
"""

from __future__ import annotations

import sys
import time
from collections.abc import Callable
from contextlib import closing
from typing import NamedTuple

import kafka.errors

from ....base.addresses import split_host_port
from ....base.errors import ErrorCode
from ....base.wording import counted, plural
from ....wire.messages import add_raft_voter, describe_quorum
from ....wire.messages.add_raft_voter import AddRaftVoterRequest
from ....wire.messages.remove_raft_voter import RemoveRaftVoterRequest
from ....wire.schema import ZERO_UUID, uuid_to_text
from ..client import ClusterConnection
from ..running import ToolError, UsageError, refusal
from .quorum import NoLeaderError, Quorum, endpoint_text
from .quorum import describe_quorum as describe
from .quorum_client import ControllerConnection, QuorumClient, quorum_client

_PAUSE_S = 0.5
_REQUEST_MS = 10_000
_SILENT_MS = 5_000
"""A voter that has not fetched for so long does not count for a majority; voters fetch twice a second."""
_PASSING = (
    ErrorCode.REQUEST_TIMED_OUT,
    ErrorCode.NOT_CONTROLLER,
    ErrorCode.NOT_LEADER_OR_FOLLOWER,
    ErrorCode.BROKER_NOT_AVAILABLE,
    ErrorCode.VOTER_NOT_FOUND,
    ErrorCode.DUPLICATE_VOTER,
)
"""Errors after which the quorum is looked at again: the change may be made by now, or may be made later."""

_NOT_ACTIVE = (ErrorCode.NOT_CONTROLLER, ErrorCode.NOT_LEADER_OR_FOLLOWER)

Listener = describe_quorum.Listener


class _Refusal(NamedTuple):
    code: int
    message: str | None


def add_voter(
    connection: ClusterConnection, controller: str | None, node_id: int, *, endpoint: str | None, timeout_ms: int
) -> None:
    """Have a controller vote that follows the quorum as an observer. Raises ToolError where that fails in time."""
    given = None if endpoint is None else _parse_endpoint(endpoint)

    def change(client: QuorumClient, quorum: Quorum) -> _Refusal | None:
        key = _observer(quorum, node_id)
        listener = given or _registered(client, quorum, node_id)
        request = AddRaftVoterRequest(
            cluster_id=client.cluster_id,
            timeout_ms=_REQUEST_MS,
            voter_id=node_id,
            voter_directory_id=key,
            listeners=[add_raft_voter.Listener(name=listener.name, host=listener.host, port=listener.port)],
        )
        response = client.ask(request, 0, 1)
        return _Refusal(response.error_code, response.error_message) if response.error_code else None

    with closing(quorum_client(connection, controller)) as client:
        quorum = _described(client, timeout_ms)
        if node_id in quorum.voters:
            _check_same(quorum, node_id)
            print(f"Node {node_id} is a voter already.")
            return
        quorum = _carry_out(client, change, lambda quorum: node_id in quorum.voters, timeout_ms)
    known = quorum.endpoints.get(node_id, [])
    print(f"Node {node_id} is a voter now, at {', '.join(map(endpoint_text, known)) or '-'}. {_voters_text(quorum)}")


def remove_voter(
    connection: ClusterConnection, controller: str | None, node_id: int, *, force: bool, timeout_ms: int
) -> None:
    """Have a controller vote no more. Raises ToolError where the others have no majority, unless it is forced."""

    def change(client: QuorumClient, quorum: Quorum) -> _Refusal | None:
        request = RemoveRaftVoterRequest(
            cluster_id=client.cluster_id,
            voter_id=node_id,
            voter_directory_id=quorum.voters[node_id].replica_directory_id,
        )
        response = client.ask(request, 0, 0)
        return _Refusal(response.error_code, response.error_message) if response.error_code else None

    with closing(quorum_client(connection, controller)) as client:
        quorum = _described(client, timeout_ms)
        voter = quorum.voters.get(node_id)
        if voter is None:
            raise ToolError(f"node {node_id} is not a voter. {_voters_text(quorum)}")
        if len(quorum.voters) == 1:
            raise ToolError(f"node {node_id} is the only voter: without it there is no quorum")
        if not force:
            _check_majority(quorum, node_id)
        is_alive = _is_alive(quorum, node_id)
        quorum = _carry_out(client, change, lambda quorum: node_id not in quorum.voters, timeout_ms)
    print(f"Node {node_id} is not a voter any more. {_voters_text(quorum)}")
    if is_alive:
        print(
            (
                f"Node {node_id} still runs: with controller.quorum.auto.join.enable it will join again, unless it is "
                "stopped."
            ),
            file=sys.stderr,
        )


def _described(client: QuorumClient, timeout_ms: int) -> Quorum:
    """The quorum, once it has a leader, which it may be electing. Raises ToolError."""
    until = time.monotonic() + timeout_ms / 1000
    while True:
        try:
            return describe(client)
        except NoLeaderError:
            if time.monotonic() >= until:
                raise
            time.sleep(_PAUSE_S)
            client.find_again()


def _carry_out(
    client: QuorumClient,
    change: Callable[[QuorumClient, Quorum], _Refusal | None],
    is_made: Callable[[Quorum], bool],
    timeout_ms: int,
) -> Quorum:
    """Ask until the change is seen; the quorum with it. Raises ToolError."""
    until = time.monotonic() + timeout_ms / 1000
    while True:
        refused: _Refusal | None = None
        failure: Exception = ToolError("the change has not been seen in time")
        try:
            quorum = describe(client)
            # Looked at before asking again: a request whose response was lost may have made the change.
            if is_made(quorum):
                return quorum
            refused = change(client, quorum)
        except (_NotYetError, NoLeaderError, kafka.errors.KafkaError) as error:
            failure = error
        if refused is not None:
            failure = ToolError(_explained(refused))
            if refused.code not in _PASSING:
                raise failure
        if time.monotonic() >= until:
            raise failure
        if refused is not None or isinstance(failure, (_NotYetError, NoLeaderError)):
            time.sleep(_PAUSE_S)
        if isinstance(failure, NoLeaderError) or (refused is not None and refused.code in _NOT_ACTIVE):
            client.find_again()


class _NotYetError(ToolError):
    """What the change needs is not there, and may come."""


def _observer(quorum: Quorum, node_id: int) -> bytes:
    """The directory of the node that is to vote. Raises _NotYetError, ToolError."""
    found = [each for each in quorum.observers if each.replica_id == node_id]
    if not found:
        raise _NotYetError(
            f"node {node_id} does not follow the quorum: start it with process.roles=controller, or broker,controller, on "
            "directories that were formatted with --no-initial-controllers"
        )
    # A node whose disk was replaced is listed by its old directory as well, until the leader forgets that.
    newest = max(found, key=lambda each: each.last_fetch_timestamp)
    if newest.replica_directory_id == ZERO_UUID:
        raise ToolError("the controllers are too old to report directories: Kafka's can change their voters since 3.9")
    return newest.replica_directory_id


def _registered(client: QuorumClient, quorum: Quorum, node_id: int) -> Listener:
    """Where the controller says that it is, by the listener at which one of the voters can be asked. Raises ToolError."""
    failure: ToolError | None = None
    for _, listeners in sorted(quorum.endpoints.items(), key=lambda item: item[0] != quorum.leader_id):
        for listener in listeners:
            try:
                with ControllerConnection(listener.host, listener.port, client.options) as connection:
                    known = {each.broker_id: each for each in connection.describe_cluster().brokers}
            except ToolError as error:
                failure = error
                continue
            own = known.get(node_id)
            if own is None:
                raise _NotYetError(f"node {node_id} has not registered as a controller: is it a broker only?")
            # Registrations are told by the addresses of the listener that was asked.
            return Listener(name=listener.name, host=own.host, port=own.port)
    raise ToolError(f"{failure}; or say --endpoint LISTENER://HOST:PORT, where node {node_id} is")


def _check_same(quorum: Quorum, node_id: int) -> None:
    """Raises ToolError where the node follows the quorum with another directory than the one that votes."""
    directory = quorum.voters[node_id].replica_directory_id
    others = [
        each for each in quorum.observers if each.replica_id == node_id and each.replica_directory_id != directory
    ]
    if others:
        raise ToolError(
            f"node {node_id} is a voter with directory {uuid_to_text(directory)}, and follows the quorum with another one, "
            f"{uuid_to_text(others[0].replica_directory_id)}: remove the voter first, by 'ottla cluster remove-voter {node_id}'"
        )


def _check_majority(quorum: Quorum, node_id: int) -> None:
    """Raises ToolError if the voters that are left, and are alive, are no majority of those that are left."""
    others = [each for each in quorum.voters if each != node_id]
    silent = [each for each in others if not _is_alive(quorum, each)]
    if 2 * (len(others) - len(silent)) <= len(others):
        verb = "has" if len(silent) == 1 else "have"
        raise ToolError(
            f"without node {node_id} there is no majority: of the other {counted(len(others), 'voter')}, "
            f"{', '.join(map(str, silent))} {verb} not fetched for {_SILENT_MS // 1000} s. Remove those first, or say --force"
        )


def _is_alive(quorum: Quorum, node_id: int) -> bool:
    if node_id == quorum.leader_id:
        return True
    ago = quorum.ms_ago(quorum.voters[node_id].last_fetch_timestamp)
    return ago is not None and ago < _SILENT_MS


def _explained(refused: _Refusal) -> str:
    why = refusal(refused.code, refused.message)
    if refused.code == ErrorCode.UNSUPPORTED_VERSION:
        why += "; 'ottla cluster upgrade' raises kraft.version to 1, from which on voters can change"
    return why


def _voters_text(quorum: Quorum) -> str:
    return f"The {plural(len(quorum.voters), 'voter')}: {', '.join(map(str, quorum.voters))}."


def _parse_endpoint(text: str) -> Listener:
    name, separator, address = text.partition("://")
    if not separator or not name:
        raise UsageError(f"--endpoint takes LISTENER://HOST:PORT, not {text!r}")
    try:
        host, port = split_host_port(address)
    except ValueError as error:
        raise UsageError(f"--endpoint: {error}") from None
    return Listener(name=name.upper(), host=host, port=port)
