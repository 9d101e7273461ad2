"""Changes of the voter set by the leader: additions, removals and new addresses of voters (KIP-853).

One change at a time, which keeps a majority of the old set and one of the new from being apart: none begins before the leader has
committed a record of its epoch, and the last change. The new set counts from the moment at which it is appended. Kafka's
``AddVoterHandler``, ``RemoveVoterHandler`` and ``UpdateVoterHandler``.
"""

from __future__ import annotations

from ...base.build_info import version
from ...base.errors import ErrorCode, KafkaError, known_code
from ...wire.messages.add_raft_voter import AddRaftVoterRequest, AddRaftVoterResponse
from ...wire.messages.api_versions import ApiVersionsRequest, ApiVersionsResponse
from ...wire.messages.control_records import KRaftVersionRecord
from ...wire.messages.remove_raft_voter import RemoveRaftVoterRequest, RemoveRaftVoterResponse
from ...wire.messages.update_raft_voter import UpdateRaftVoterRequest
from ...wire.schema import ZERO_UUID, uuid_to_text
from .effects import RaftPeer, Respond
from .leader import PendingAdd, PendingRemove, RaftLeader
from .quorum_state import QuorumState
from .voter_set import ListenerEndpoint, QuorumVoter, ReplicaKey, VoterSet, address_of

KRAFT_VERSION_FEATURE = "kraft.version"
_WHO_ASKS = ApiVersionsRequest(client_software_name="ottla", client_software_version=version())
"""A node refuses a request for its versions that does not say who asks (KIP-511)."""


def committed_voters(quorum: QuorumState, leading: RaftLeader, now_ms: float, change: str = "updating") -> VoterSet:
    """The voters that a change starts from. Raises KafkaError where none may begin; ``change`` is its name in the message."""
    expire(quorum, leading, now_ms)
    if leading.adding is not None or leading.removing is not None:
        raise _not_yet("an earlier change of the voters has not ended")
    if leading.high_watermark is None:
        raise _not_yet("the leader has not committed a record of its epoch, so earlier changes are not fenced")
    entry = quorum.log.quorum
    if not entry.kraft_version:
        why = f"Cluster doesn't support {change} voter because the {KRAFT_VERSION_FEATURE} feature is 0"
        raise KafkaError(ErrorCode.UNSUPPORTED_VERSION, why)
    if entry.voters is None or not is_committed(quorum, leading):
        raise _not_yet("the latest change of the voters has not been committed")
    return entry.voters


def is_committed(quorum: QuorumState, leading: RaftLeader) -> bool:
    """Whether the newest voter set is."""
    return leading.high_watermark is not None and quorum.log.quorum.offset < leading.high_watermark


def _named(key: ReplicaKey) -> str:
    """As Kafka's tools show a voter."""
    return f"ReplicaKey(id={key.node_id}, directoryId={uuid_to_text(key.directory_id)})"


def _all_named(voters: VoterSet) -> str:
    return f"[{', '.join(_named(each) for each in voters.keys)}]"


def _not_yet(why: str) -> KafkaError:
    return KafkaError(ErrorCode.REQUEST_TIMED_OUT, f"Request timed out: {why}")


# --- adding -----------------------------------------------------------------------------------------------------------


def add_voter(
    quorum: QuorumState, leading: RaftLeader, request_id: int, request: AddRaftVoterRequest, now_ms: float
) -> AddRaftVoterResponse | None:
    """None where the response comes later. Raises KafkaError."""
    key = ReplicaKey(request.voter_id, request.voter_directory_id)
    endpoints = tuple(ListenerEndpoint(each.name, each.host, each.port) for each in request.listeners)
    address = address_of(endpoints, quorum.listener)
    if key.node_id < 0 or key.directory_id == ZERO_UUID:
        raise KafkaError(ErrorCode.INVALID_REQUEST, "Add voter request didn't include a valid voter")
    if address is None:
        raise KafkaError(ErrorCode.INVALID_REQUEST, f"Add voter request didn't include the listener {quorum.listener}")
    voters = committed_voters(quorum, leading, now_ms, "adding")
    if key.node_id in voters.voters:
        why = f"The voter id for {_named(key)} is already part of the set of voters {_all_named(voters)}."
        raise KafkaError(ErrorCode.DUPLICATE_VOTER, why)
    if not quorum.send(RaftPeer(key.node_id, address), _WHO_ASKS, now_ms):
        raise _not_yet("the versions of the new voter cannot be requested now")
    deadline = now_ms + quorum.times.request_timeout_ms
    leading.adding = PendingAdd(request_id, key, endpoints, request.ack_when_committed, deadline)
    return None


def take_api_versions(
    quorum: QuorumState, leading: RaftLeader, peer: RaftPeer, response: ApiVersionsResponse, now_ms: float
) -> None:
    """The new voter has told its versions, or failed to."""
    adding = leading.adding
    if adding is None or adding.offset is not None or adding.key.node_id != peer.node_id:
        return
    try:
        _append_added(quorum, leading, adding, response, now_ms)
    except KafkaError as error:
        leading.adding = None
        quorum.emit(
            Respond(adding.request_id, AddRaftVoterResponse(error_code=error.code, error_message=error.message))
        )


def _append_added(
    quorum: QuorumState, leading: RaftLeader, adding: PendingAdd, response: ApiVersionsResponse, now_ms: float
) -> None:
    if response.error_code:
        raise _not_yet(f"the new voter answers {known_code(response.error_code).name}")
    level = quorum.kraft_version
    ranges = [
        (each.min_version, each.max_version)
        for each in response.supported_features
        if each.name == KRAFT_VERSION_FEATURE
    ]
    if not ranges or not ranges[0][0] <= level <= ranges[0][1]:
        raise KafkaError(
            ErrorCode.INVALID_REQUEST, f"The new voter does not support the finalized kraft.version {level}"
        )
    if not leading.has_caught_up(adding.key, now_ms):
        raise _not_yet("the new voter is lagging behind")
    voter = QuorumVoter(adding.key, adding.endpoints, *ranges[0])
    adding.offset = quorum.append_voters(quorum.voters.with_voter(voter))
    if not adding.acks_when_committed:
        adding.has_response = True
        quorum.emit(Respond(adding.request_id, AddRaftVoterResponse()))


# --- removing and updating --------------------------------------------------------------------------------------------


def remove_voter(
    quorum: QuorumState, leading: RaftLeader, request_id: int, request: RemoveRaftVoterRequest, now_ms: float
) -> None:
    """The response comes with the commit. Raises KafkaError."""
    key = ReplicaKey(request.voter_id, request.voter_directory_id)
    if key.node_id < 0 or key.directory_id == ZERO_UUID:
        raise KafkaError(ErrorCode.INVALID_REQUEST, "Remove voter request didn't include a valid voter")
    committed = committed_voters(quorum, leading, now_ms, "removing")
    voters = committed.without(key)
    if voters is None:
        why = f"Cannot remove voter {_named(key)} from the set of voters {_all_named(committed)}"
        raise KafkaError(ErrorCode.VOTER_NOT_FOUND, why)
    offset = quorum.append_voters(voters)
    leading.removing = PendingRemove(request_id, offset, now_ms + quorum.times.request_timeout_ms)


def update_voter(quorum: QuorumState, leading: RaftLeader, request: UpdateRaftVoterRequest, now_ms: float) -> None:
    """Raises KafkaError. With ``kraft.version`` 0 the leader keeps it in memory."""
    versions = request.kraft_version_feature
    voter = QuorumVoter(
        ReplicaKey(request.voter_id, request.voter_directory_id),
        tuple(ListenerEndpoint(each.name, each.host, each.port) for each in request.listeners),
        versions.min_supported_version,
        versions.max_supported_version,
    )
    level = quorum.kraft_version
    invalid = KafkaError(ErrorCode.INVALID_REQUEST, "Update voter request didn't include a valid voter")
    if (
        voter.key.node_id < 0
        or voter.key.directory_id == ZERO_UUID
        or address_of(voter.endpoints, quorum.listener) is None
        or not 0 <= voter.min_version <= voter.max_version
    ):
        raise invalid
    voters = committed_voters(quorum, leading, now_ms) if level else _volatile_voters(leading)
    if not voter.min_version <= level <= voter.max_version:
        raise invalid
    is_known = voters.is_voter(voter.key) if level else voter.key.node_id in voters.voters
    if not is_known:
        raise KafkaError(ErrorCode.VOTER_NOT_FOUND, f"Cannot update voter {voter.key.node_id} of {voters.ids}")
    if level:
        quorum.append_voters(voters.with_voter(voter))
    else:
        leading.volatile_voters = voters.with_voter(voter)
    leading.update_check_quorum_for_following_voter(voter.key, now_ms)


def _volatile_voters(leading: RaftLeader) -> VoterSet:
    """Those that the leader has in memory while the voters are static. Raises KafkaError."""
    if leading.high_watermark is None:
        raise _not_yet("the leader has not committed a record of its epoch")
    return leading.volatile_voters


# --- kraft.version ----------------------------------------------------------------------------------------------------


def check_upgrade(quorum: QuorumState, leading: RaftLeader, level: int) -> bool:
    """Whether ``kraft.version`` is to be raised; False where it has this level.

    Raises KafkaError(INVALID_UPDATE_VERSION): there is no way back, and every voter must have told that it supports the level
    (``LeaderState.maybeAppendUpgradedKRaftVersion``).
    """
    known, voters = quorum.kraft_version, leading.volatile_voters
    if level == known:
        return False
    what = f"Invalid upgrade of {KRAFT_VERSION_FEATURE} from version {known} to {level}"
    if level < known:
        raise KafkaError(ErrorCode.INVALID_UPDATE_VERSION, f"{what} because the new version is a downgrade")
    missing = [
        voter.key.node_id
        for voter in voters.voters.values()
        if voter.key.directory_id == ZERO_UUID or not voter.min_version <= level <= voter.max_version
    ]
    if missing:
        raise KafkaError(ErrorCode.INVALID_UPDATE_VERSION, f"{what}: voters {missing} do not support it")
    return True


def upgrade(quorum: QuorumState, leading: RaftLeader, level: int) -> None:
    """Raise ``kraft.version``, and write down the voters with what they have told. Raises KafkaError."""
    if check_upgrade(quorum, leading, level):
        quorum.append_control([KRaftVersionRecord(k_raft_version=level), leading.volatile_voters.to_record()])


# --- ends -------------------------------------------------------------------------------------------------------------


def complete_committed(quorum: QuorumState, leading: RaftLeader) -> None:
    """Respond to the changes that are committed. A leader that is no voter any more resigns then."""
    high_watermark = leading.high_watermark
    assert high_watermark is not None, "it has just moved"
    adding, removing = leading.adding, leading.removing
    if adding is not None and adding.offset is not None and adding.offset < high_watermark:
        leading.adding = None
        _respond_to_add(quorum, adding, ErrorCode.NONE)
    if removing is not None and removing.offset < high_watermark:
        leading.removing = None
        quorum.emit(Respond(removing.request_id, RemoveRaftVoterResponse()))
    if not quorum.is_voter and is_committed(quorum, leading):
        # Not sooner: as long as the new set is not committed, this leader may be the only one that has it.
        leading.is_resign_requested = True


def expire(quorum: QuorumState, leading: RaftLeader, now_ms: float) -> None:
    """Give up on changes that take too long; what is in the log may be committed all the same."""
    if leading.adding is not None and leading.adding.deadline_ms <= now_ms:
        _fail_add(quorum, leading, ErrorCode.REQUEST_TIMED_OUT)
    if leading.removing is not None and leading.removing.deadline_ms <= now_ms:
        _fail_remove(quorum, leading, ErrorCode.REQUEST_TIMED_OUT)


def refuse_all(quorum: QuorumState, leading: RaftLeader) -> None:
    """The leader leads no more."""
    _fail_add(quorum, leading, ErrorCode.NOT_LEADER_OR_FOLLOWER)
    _fail_remove(quorum, leading, ErrorCode.NOT_LEADER_OR_FOLLOWER)


def _fail_add(quorum: QuorumState, leading: RaftLeader, error: ErrorCode) -> None:
    adding, leading.adding = leading.adding, None
    if adding is not None:
        _respond_to_add(quorum, adding, error)


def _respond_to_add(quorum: QuorumState, adding: PendingAdd, error: ErrorCode) -> None:
    if not adding.has_response:
        quorum.emit(Respond(adding.request_id, AddRaftVoterResponse(error_code=error)))


def _fail_remove(quorum: QuorumState, leading: RaftLeader, error: ErrorCode) -> None:
    removing, leading.removing = leading.removing, None
    if removing is not None:
        quorum.emit(Respond(removing.request_id, RemoveRaftVoterResponse(error_code=error)))
