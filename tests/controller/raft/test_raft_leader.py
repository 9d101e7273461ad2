"""What a leader of a quorum does: announces itself, counts who follows, commits, and responds to fetches (KIP-595, KIP-1166)."""

from __future__ import annotations

from typing import Any

import pytest

from ottla.base.errors import ErrorCode
from ottla.controller.raft.effects import Append, AppendRefused, HighWatermarkAdvanced, LogRead
from ottla.controller.raft.messages import begin_quorum_epoch_response
from ottla.controller.raft.settings import RaftTimes
from ottla.controller.raft.voter_set import ReplicaKey
from ottla.tests.controller.raft.helpers.node_world import Fetched, NodeState, NodeWorld, Told
from ottla.tests.controller.raft.helpers.quorum_parts import BEGIN_QUORUM_MS, CHECK_QUORUM_MS, OWN, REQUEST_MS
from ottla.tests.simulation.raft.machine import CLUSTER_ID, endpoint_of, key_of
from ottla.wire.messages.add_raft_voter import AddRaftVoterRequest, Listener
from ottla.wire.messages.api_versions import ApiVersionsRequest, ApiVersionsResponse, SupportedFeatureKey
from ottla.wire.messages.begin_quorum_epoch import BeginQuorumEpochRequest, BeginQuorumEpochResponse
from ottla.wire.messages.describe_quorum import DescribeQuorumRequest, PartitionData, TopicData
from ottla.wire.messages.fetch import FetchRequest
from ottla.wire.messages.remove_raft_voter import RemoveRaftVoterRequest
from ottla.wire.schema import ZERO_UUID

LEVELS = pytest.mark.parametrize("kraft_version", [0, 1])
EPOCH = 6
LOG = [(1, 3), (3, 3), (5, 3)]
"""Nine records; the leader's own epoch begins at offset 9 with three control records, or one with ``kraft.version`` 0."""
OBSERVER = key_of(4)


def led(**options: Any) -> NodeWorld:
    """A leader of epoch 6 that nobody has fetched from."""
    world = NodeWorld(**{"epoch": EPOCH - 1, "log": LOG, **options})
    assert world.become_leader() == EPOCH
    return world


# --- announcing itself ------------------------------------------------------------------------------------------------


def test_begin_quorum_epoch_says_who_leads_and_where() -> None:
    world = NodeWorld(epoch=5)
    for sent in world.become_candidate():
        world.answer_vote(sent)
    request: Any = world.sent(BeginQuorumEpochRequest, to=3).request
    partition = request.topics[0].partitions[0]
    assert (request.cluster_id, request.voter_id, partition.voter_directory_id) == (CLUSTER_ID, *key_of(3))
    assert (partition.leader_id, partition.leader_epoch) == (OWN, 6)
    assert [(each.name, each.host, each.port) for each in request.leader_endpoints] == [endpoint_of(OWN)]


def announced_to(world: NodeWorld) -> list[int]:
    """The voters that have just been told, and have answered."""
    requests = world.all_sent(BeginQuorumEpochRequest)
    for sent in requests:
        world.answer(sent, begin_quorum_epoch_response(world.leader_of(OWN), ErrorCode.NONE))
    return [each.peer.node_id for each in requests]


@LEVELS
def test_voters_that_do_not_fetch_are_told_again_and_again(kraft_version: int) -> None:
    world = led(kraft_version=kraft_version)
    for _ in range(2):
        world.sleep(BEGIN_QUORUM_MS - 1)
        assert not announced_to(world)
        world.sleep(1)
        assert announced_to(world) == [2, 3]


def test_voters_that_fetch_are_not_told() -> None:
    world = led()
    world.sleep(400)
    world.fetch(2)
    world.sleep(BEGIN_QUORUM_MS - 400)
    assert announced_to(world) == [3]
    world.sleep(400)
    world.fetch(2)
    world.fetch(3)
    world.sleep(BEGIN_QUORUM_MS - 400)
    assert not announced_to(world)
    world.sleep(BEGIN_QUORUM_MS)
    assert announced_to(world) == [2, 3]


def test_a_voter_that_has_not_fetched_for_just_so_long_is_told() -> None:
    world = led()
    world.sleep(BEGIN_QUORUM_MS)
    assert announced_to(world) == [2, 3]
    world.fetch(2)
    world.sleep(BEGIN_QUORUM_MS)
    assert announced_to(world) == [2, 3]


def test_observers_are_not_told() -> None:
    world = led(voters=(1, 2))
    world.fetch(OBSERVER)
    world.sleep(BEGIN_QUORUM_MS)
    assert world.receivers(BeginQuorumEpochRequest) == [2]


@pytest.mark.parametrize(
    ("error", "epoch", "leader", "expected"),
    [
        (ErrorCode.NONE, EPOCH, OWN, NodeState("RaftLeader", EPOCH, OWN)),
        (ErrorCode.INVALID_VOTER_KEY, EPOCH, OWN, NodeState("RaftLeader", EPOCH, OWN)),
        (ErrorCode.FENCED_LEADER_EPOCH, 7, 3, NodeState("RaftFollower", 7, 3)),
        (ErrorCode.FENCED_LEADER_EPOCH, 7, -1, NodeState("Unattached", 7)),
        (ErrorCode.NONE, 5, 3, NodeState("RaftLeader", EPOCH, OWN)),
    ],
    ids=["accepted", "meant for another voter", "a later leader", "a later epoch", "an earlier epoch"],
)
def test_the_response_to_begin_quorum_epoch(error: ErrorCode, epoch: int, leader: int, expected: NodeState) -> None:
    world = led()
    world.sleep(BEGIN_QUORUM_MS)
    sent = world.sent(BeginQuorumEpochRequest)
    world.answer(sent, begin_quorum_epoch_response(world.leader_of(leader, epoch), error))
    assert world.seen == expected


def test_a_refused_cluster_stops_a_leader() -> None:
    world = led()
    world.sleep(BEGIN_QUORUM_MS)
    with pytest.raises(AssertionError):
        world.answer(
            world.sent(BeginQuorumEpochRequest),
            BeginQuorumEpochResponse(error_code=ErrorCode.CLUSTER_AUTHORIZATION_FAILED),
        )


def test_a_leader_that_is_told_that_it_leads_agrees() -> None:
    world = led()
    assert world.begin(OWN, EPOCH) == Told(ErrorCode.NONE, EPOCH, OWN)
    assert world.end(OWN, EPOCH) == Told(ErrorCode.NONE, EPOCH, OWN)
    assert world.seen == NodeState("RaftLeader", EPOCH, OWN)


# --- check quorum -----------------------------------------------------------------------------------------------------


@LEVELS
@pytest.mark.parametrize(
    ("voters", "replicas", "stays"),
    [
        ((1, 2, 3), [], False),
        ((1, 2, 3), [2], True),
        ((1, 2, 3), [4], False),
        ((1, 2, 3), [-1], False),
        ((1, 2, 3, 5, 6), [2, 2, 2], False),
        ((1, 2, 3, 5, 6), [2, 3], True),
        ((1, 2, 3, 5), [2], False),
        ((1, 2, 3, 5), [2, 5], True),
        ((1,), [], True),
    ],
    ids=str,
)
def test_a_leader_that_no_majority_follows_resigns(
    voters: tuple[int, ...], replicas: list[int], stays: bool, kraft_version: int
) -> None:
    """A majority with itself; it counts each voter once. A single voter needs nobody."""
    world = led(voters=voters, kraft_version=kraft_version)
    world.sleep(CHECK_QUORUM_MS - 1)
    for replica in replicas:
        world.fetch(replica, 0, 0)
    world.sleep(1)
    assert world.seen == NodeState("RaftLeader" if stays else "Resigned", EPOCH, OWN)
    if stays and len(voters) > 1:
        world.sleep(CHECK_QUORUM_MS - 2)
        assert world.seen == NodeState("RaftLeader", EPOCH, OWN)
        world.sleep(1)
        assert world.seen == NodeState("Resigned", EPOCH, OWN)


@pytest.mark.parametrize(
    "replica", [ReplicaKey(2, b"another disk 456"), ReplicaKey(2)], ids=["another directory", "no directory"]
)
def test_a_replica_with_another_directory_is_not_the_voter(replica: ReplicaKey) -> None:
    world = led()
    world.sleep(CHECK_QUORUM_MS - 1)
    world.fetch(replica)
    assert world.high_watermark is None
    world.sleep(1)
    assert world.seen.state == "Resigned"


def test_fetches_of_a_majority_one_after_the_other_count_together() -> None:
    world = led(voters=(1, 2, 3, 5, 6))
    for replica in (2, 3, 5, 6):
        world.sleep(CHECK_QUORUM_MS / 2 - 1)
        world.fetch(replica)
        assert world.seen.state == "RaftLeader"


def test_a_fetch_that_diverges_does_not_count() -> None:
    """Kafka notes only those that fit to the log."""
    world = led()
    world.sleep(CHECK_QUORUM_MS - 1)
    assert world.fetch(2, 6, 2).diverging == (1, 3)
    world.sleep(1)
    assert world.seen.state == "Resigned"


# --- the high watermark -----------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("voters", "fetches", "expected"),
    [
        ((1, 2), [], None),
        ((1, 2), [(2, 3)], None),
        ((1, 2), [(2, 9)], None),
        ((1, 2), [(2, 14)], 14),
        ((1, 2, 3), [(2, 9), (3, 9)], None),
        ((1, 2, 3), [(2, 12)], 12),
        ((1, 2, 3), [(2, 12), (3, 14)], 14),
        ((1, 2, 3), [(2, 14), (3, 12)], 14),
        ((1, 2, 3), [(2, 14), (2, 12)], 14),
        ((1, 2, 3), [(4, 14)], None),
        ((1, 2, 3), [(-1, 14)], None),
        ((1, 2, 3, 5), [(2, 14)], None),
        ((1, 2, 3, 5), [(2, 14), (3, 12)], 12),
        ((1, 2, 3, 5, 6), [(2, 14), (3, 12)], 12),
        ((1, 2, 3, 5, 6), [(2, 14), (3, 12), (5, 14)], 14),
        ((1, 2, 3, 5, 6), [(2, 14), (4, 14)], None),
    ],
    ids=str,
)
def test_the_high_watermark(voters: tuple[int, ...], fetches: list[tuple[int, int]], expected: int | None) -> None:
    """What a majority has, if a record of the leader's own epoch is among it; it never falls.

    The log: offsets 0 to 8 of earlier epochs, the beginning of this one from 9 to 11, data from 12 to 13.
    """
    world = led(voters=voters)
    world.append(2)
    assert world.end_offset == 14
    for replica, offset in fetches:
        world.fetch(replica, offset, {3: 1, 9: 5}.get(offset, EPOCH))
    assert world.high_watermark == expected


@LEVELS
def test_a_single_voter_commits_what_it_has_flushed(kraft_version: int) -> None:
    world = led(voters=(1,), kraft_version=kraft_version)
    end = world.end_offset
    assert world.high_watermark == end
    world.holds_flushes = True
    world.append(2)
    assert world.high_watermark == end
    world.finish_flush()
    assert world.high_watermark == world.end_offset == end + 2


def test_a_leader_counts_its_own_log_as_far_as_it_is_flushed() -> None:
    """Kafka's leader counts it before."""
    world = led(voters=(1, 2))
    world.commit()
    world.holds_flushes = True
    world.append(1)
    world.append(1)
    world.fetch(2)
    assert world.high_watermark == 12
    world.finish_flush()
    assert world.high_watermark == 13
    world.finish_flush()
    assert world.high_watermark == 14
    assert not world.is_flushing


def test_two_voters_have_a_majority_without_the_leaders_flush() -> None:
    world = led()
    world.holds_flushes = True
    world.append(1)
    world.commit(2, 3)
    assert world.is_flushing


def test_the_high_watermark_that_a_node_knows_is_kept_as_leader() -> None:
    """It shows it to nobody before it has committed a record of its epoch."""
    world = NodeWorld(epoch=5, leader=2, log=LOG)
    world.answer_fetch(world.fetch_sent, high_watermark=9)
    assert world.high_watermark == 9
    world.become_leader()
    assert world.high_watermark == 9
    assert world.fetch(2, 9, 5).high_watermark == -1
    assert world.fetch(2).high_watermark == 12


def test_the_controller_is_told_each_high_watermark_once() -> None:
    world = led()
    world.append(1)
    world.forget()
    world.fetch(2, 12)
    world.fetch(3, 12)
    world.fetch(3)
    world.fetch(2)
    assert world.news(HighWatermarkAdvanced) == [HighWatermarkAdvanced(12), HighWatermarkAdvanced(13)]


# --- appending --------------------------------------------------------------------------------------------------------


def test_the_controller_appends() -> None:
    world = led()
    world.append(2, 3)
    assert world.batches[-2:] == [(12, EPOCH), (14, EPOCH)]
    assert world.flushed_offset == 17


@pytest.mark.parametrize("state", ["follower", "unattached", "candidate", "resigned", "another epoch"])
def test_only_a_leader_appends_and_in_its_epoch(state: str) -> None:
    options: dict[str, dict[str, Any]] = {
        "follower": {"leader": 2},
        "candidate": {"voted": key_of(OWN)},
        "resigned": {"leader": OWN},
    }
    world = NodeWorld(epoch=5, **options.get(state, {}))
    if state == "another epoch":
        world.become_leader()
    epoch, end = (5, world.end_offset)
    world.append(1, epoch=epoch)
    assert world.news(AppendRefused) == [AppendRefused(epoch)]
    assert not world.news(Append)
    assert world.end_offset == end


def test_a_batch_that_waits_for_the_leadership_lost_is_refused() -> None:
    world = led()
    world.begin(2, EPOCH + 1)
    world.append(1, epoch=EPOCH)
    assert world.news(AppendRefused) == [AppendRefused(EPOCH)]


# --- responding to fetches --------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("offset", "last_epoch", "expected"),
    [
        (0, 0, {"batches": ((0, 1), (3, 3), (6, 5), (9, 6))}),
        (3, 1, {"batches": ((3, 3), (6, 5), (9, 6))}),
        (4, 3, {"batches": ((3, 3), (6, 5), (9, 6))}),
        (6, 3, {"batches": ((6, 5), (9, 6))}),
        (9, 5, {"batches": ((9, 6),)}),
        (12, 6, {}),
        (4, 1, {"diverging": (1, 3)}),
        (6, 2, {"diverging": (1, 3)}),
        (3, 2, {"diverging": (1, 3)}),
        (7, 3, {"diverging": (3, 6)}),
        (6, 4, {"diverging": (3, 6)}),
        (10, 5, {"diverging": (5, 9)}),
        (13, 6, {"diverging": (6, 12)}),
        (99, 6, {"diverging": (6, 12)}),
        (5, 0, {"diverging": (0, 0)}),
    ],
    ids=str,
)
@pytest.mark.parametrize("replica", [2, 4, -1], ids=["voter", "observer", "consumer"])
def test_what_a_fetch_gets(offset: int, last_epoch: int, expected: dict[str, Any], replica: int) -> None:
    """Records where the end of the replica's log is in this one, else where to cut it."""
    world = led()
    fetched = world.fetch(replica, offset, last_epoch)
    high_watermark = 12 if (offset, replica) == (12, 2) else -1
    assert fetched == Fetched(ErrorCode.NONE, EPOCH, OWN, high_watermark)._replace(**expected)


@pytest.mark.parametrize("max_bytes", [0, 1, 1 << 20, (1 << 31) - 1])
def test_a_fetch_gets_as_much_as_it_asks_for(max_bytes: int) -> None:
    world = led()
    world.fetch(2, 3, 1, max_bytes=max_bytes)
    assert world.reads == [LogRead(3, 12, max_bytes)]


def test_a_fetch_gets_records_that_are_not_committed_nor_flushed() -> None:
    world = led()
    world.holds_flushes = True
    world.append(1)
    assert world.fetch(2, 12).batches == ((12, EPOCH),)
    assert world.high_watermark == 12


@pytest.mark.parametrize("replica", [2, 4, -1], ids=["voter", "observer", "consumer"])
def test_a_fetch_waits_for_records(replica: int) -> None:
    world = led()
    world.commit(3)
    waiting = world.ask(world.fetch_request(replica, max_wait_ms=500))
    assert world.fetched(waiting) is None
    world.append(1)
    fetched = world.fetched(waiting)
    assert fetched is not None
    assert (fetched.batches, fetched.high_watermark) == (((12, EPOCH),), 12)


def test_a_fetch_waits_as_long_as_it_says() -> None:
    world = led()
    world.commit(2)
    waiting = world.ask(world.fetch_request(2, max_wait_ms=500))
    world.sleep(499)
    assert world.fetched(waiting) is None
    world.sleep(1)
    assert world.fetched(waiting) == Fetched(ErrorCode.NONE, EPOCH, OWN, 12)


@pytest.mark.parametrize(
    ("known", "waits"),
    [(-1, False), (11, False), (12, True), (13, True)],
    ids=["unknown", "older", "the same", "newer"],
)
def test_a_fetch_does_not_wait_for_a_high_watermark_that_there_is(known: int, waits: bool) -> None:
    world = led()
    world.commit(2)
    waiting = world.ask(world.fetch_request(4, high_watermark=known, max_wait_ms=500))
    assert world.fetched(waiting) == (None if waits else Fetched(ErrorCode.NONE, EPOCH, OWN, 12))


def test_a_fetch_goes_on_waiting_while_nothing_moves() -> None:
    world = led()
    world.commit(2)
    waiting = world.ask(world.fetch_request(4, max_wait_ms=500))
    world.fetch(3)
    world.fetch(2)
    assert world.fetched(waiting) is None


def test_a_fetch_waits_if_the_leader_knows_no_high_watermark() -> None:
    world = led()
    waiting = world.ask(world.fetch_request(4, high_watermark=-1, max_wait_ms=500))
    assert world.fetched(waiting) is None


def test_a_fetch_waits_for_the_high_watermark() -> None:
    world = led()
    world.append(1)
    world.fetch(2, 12)
    waiting = world.ask(world.fetch_request(4, high_watermark=12, max_wait_ms=500))
    assert world.fetched(waiting) is None
    world.fetch(2)
    assert world.fetched(waiting) == Fetched(ErrorCode.NONE, EPOCH, OWN, 13)


@pytest.mark.parametrize(("offset", "last_epoch"), [(6, 2), (13, 6)], ids=["of an unknown epoch", "beyond the end"])
def test_a_fetch_that_diverges_does_not_wait(offset: int, last_epoch: int) -> None:
    world = led()
    assert world.fetch(2, offset, last_epoch, max_wait_ms=500).diverging is not None


@pytest.mark.parametrize(
    ("how", "epoch", "leader"),
    [("begin", EPOCH + 1, 3), ("resign", EPOCH, OWN), ("shut down", EPOCH, OWN), ("vote", EPOCH + 1, -1)],
)
def test_fetches_that_wait_are_refused_when_the_leader_gives_up(how: str, epoch: int, leader: int) -> None:
    """Records that came before do not help: who knows who leads now."""
    world = led()
    waiting = world.ask(world.fetch_request(2, max_wait_ms=10_000))
    if how == "begin":
        world.begin(3, EPOCH + 1)
    elif how == "resign":
        world.resign()
    elif how == "shut down":
        world.shut_down()
    else:
        world.vote(2, EPOCH + 1)
    assert world.fetched(waiting) == Fetched(ErrorCode.NOT_LEADER_OR_FOLLOWER, epoch, leader)


@pytest.mark.parametrize("version", [13, 14, 15, 16, 17, 18])
def test_the_replica_id_stands_in_one_of_two_places(version: int) -> None:
    """Below version 15 of Fetch in the request itself; both count."""
    world = led(kraft_version=0)
    request = world.fetch_request(2)
    if version < 15:
        request.replica_id, request.replica_state = 2, None
    if version < 17:
        request.topics[0].partitions[0].replica_directory_id = ZERO_UUID
    world.ask(request)
    assert world.high_watermark == world.end_offset == 10


@LEVELS
@pytest.mark.parametrize(
    "replica", [key_of(OWN), ReplicaKey(OWN, b"another disk 456"), ReplicaKey(OWN)], ids=["key", "id", "id alone"]
)
def test_a_replica_with_the_leaders_id_is_refused(replica: ReplicaKey, kraft_version: int) -> None:
    """Two nodes were given one id. The other one does not count, and does not stop this one."""
    world = led(voters=(1, 2), kraft_version=kraft_version)
    assert world.fetch(replica).error == ErrorCode.UNKNOWN_SERVER_ERROR
    assert world.high_watermark is None
    world.sleep(CHECK_QUORUM_MS)
    assert world.seen.state == "Resigned"


# --- describing the quorum --------------------------------------------------------------------------------------------


def described(world: NodeWorld) -> Any:
    topic = TopicData(topic_name="__cluster_metadata", partitions=[PartitionData(partition_index=0)])
    response = world.response(world.ask(DescribeQuorumRequest(topics=[topic])))
    assert not response.error_code
    return response


def replicas_of(states: Any) -> list[tuple[int, int, int, int]]:
    """(id, log end offset, last fetch, last caught up) of each."""
    return [
        (each.replica_id, each.log_end_offset, each.last_fetch_timestamp, each.last_caught_up_timestamp)
        for each in states
    ]


@pytest.mark.parametrize("state", ["follower", "unattached", "resigned"])
def test_only_the_leader_describes_the_quorum(state: str) -> None:
    leader = {"follower": 2, "resigned": OWN}.get(state, -1)
    world = NodeWorld(epoch=5, leader=leader)
    partition = described(world).topics[0].partitions[0]
    assert partition.error_code == ErrorCode.NOT_LEADER_OR_FOLLOWER


@LEVELS
def test_a_quorum_that_nobody_has_fetched_from(kraft_version: int) -> None:
    world = led(kraft_version=kraft_version)
    partition = described(world).topics[0].partitions[0]
    assert (partition.error_code, partition.leader_id, partition.leader_epoch) == (ErrorCode.NONE, OWN, EPOCH)
    assert partition.high_watermark == -1
    now = int(world.now)
    assert replicas_of(partition.current_voters) == [
        (1, world.end_offset, now, now),
        (2, -1, -1, -1),
        (3, -1, -1, -1),
    ]
    directories = [each.replica_directory_id for each in partition.current_voters]
    assert directories == [key_of(each).directory_id if kraft_version else ZERO_UUID for each in (1, 2, 3)]
    assert not partition.observers


def test_replicas_that_fetch_are_described() -> None:
    world = led()
    start = int(world.now)
    world.sleep(100)
    world.fetch(2, 9, 5)
    world.fetch(OBSERVER, 0, 0)
    world.sleep(100)
    world.commit(3)
    world.sleep(100)
    response = described(world)
    partition = response.topics[0].partitions[0]
    assert partition.high_watermark == 12
    assert replicas_of(partition.current_voters) == [
        (1, 12, start + 300, start + 300),
        (2, 9, start + 100, -1),
        (3, 12, start + 200, start + 200),
    ]
    assert replicas_of(partition.observers) == [(4, 0, start + 100, -1)]
    assert [(each.node_id, [(at.name, at.host, at.port) for at in each.listeners]) for each in response.nodes] == [
        (each, [endpoint_of(each)]) for each in (1, 2, 3)
    ]

    world.append(1)
    world.sleep(100)
    world.fetch(2, 12)
    world.fetch(3)
    partition = described(world).topics[0].partitions[0]
    assert partition.high_watermark == 13
    # 2 has reached the end that there was at its fetch before, so it was at the end then.
    assert replicas_of(partition.current_voters)[1:] == [
        (2, 12, start + 400, start + 100),
        (3, 13, start + 400, start + 400),
    ]


def test_replicas_are_described_by_the_newest_voters() -> None:
    """What is known of them is kept when they are added or removed."""
    world = led(voters=(1, 2, 3))
    world.commit(2)
    world.fetch(3, 9, 5)
    remove = RemoveRaftVoterRequest(cluster_id=CLUSTER_ID, voter_id=3, voter_directory_id=key_of(3).directory_id)
    world.ask(remove)
    partition = described(world).topics[0].partitions[0]
    assert [(each.replica_id, each.log_end_offset) for each in partition.current_voters] == [(1, 13), (2, 12)]
    assert [(each.replica_id, each.log_end_offset) for each in partition.observers] == [(3, 9)]
    world.commit(2)
    name, host, port = endpoint_of(3)
    listeners = [Listener(name=name, host=host, port=port)]
    world.fetch(3)
    directory_id = key_of(3).directory_id
    world.ask(
        AddRaftVoterRequest(cluster_id=CLUSTER_ID, voter_id=3, voter_directory_id=directory_id, listeners=listeners)
    )
    feature = SupportedFeatureKey(name="kraft.version", min_version=0, max_version=1)
    world.answer(world.sent(ApiVersionsRequest), ApiVersionsResponse(supported_features=[feature]))
    partition = described(world).topics[0].partitions[0]
    assert [(each.replica_id, each.log_end_offset) for each in partition.current_voters] == [(1, 14), (2, 13), (3, 13)]
    assert not partition.observers


def test_a_voter_that_has_lost_its_log_is_described_as_it_is() -> None:
    world = led()
    world.commit(2)
    world.fetch(2, 3, 1)
    partition = described(world).topics[0].partitions[0]
    assert partition.high_watermark == 12
    assert partition.current_voters[1].log_end_offset == 3


def test_an_observer_is_forgotten_after_five_minutes() -> None:
    world = led(voters=(1,))
    world.fetch(OBSERVER)
    world.fetch(-1)
    world.sleep(300_000 - 1)
    assert [each.replica_id for each in described(world).topics[0].partitions[0].observers] == [4]
    world.sleep(1)
    assert not described(world).topics[0].partitions[0].observers


def test_a_leader_that_is_no_voter_is_not_forgotten() -> None:
    """It has removed itself, which is not committed."""
    world = led()
    world.commit()
    world.ask(RemoveRaftVoterRequest(cluster_id=CLUSTER_ID, voter_id=OWN, voter_directory_id=key_of(OWN).directory_id))
    for _ in range(110):
        world.sleep(CHECK_QUORUM_MS - 1)
        world.fetch(2, 12)
        world.fetch(3, 12)
    partition = described(world).topics[0].partitions[0]
    assert [each.replica_id for each in partition.current_voters] == [2, 3]
    assert replicas_of(partition.observers) == [(OWN, 13, int(world.now), int(world.now))]


def test_another_topic_is_not_described() -> None:
    world = led()
    topic = TopicData(topic_name="other", partitions=[PartitionData(partition_index=0)])
    response = world.response(world.ask(DescribeQuorumRequest(topics=[topic])))
    assert response.topics[0].partitions[0].error_code == ErrorCode.UNKNOWN_TOPIC_OR_PARTITION


# --- nothing is done in vain ------------------------------------------------------------------------------------------


def test_a_leader_does_not_fetch() -> None:
    world = led()
    world.sleep(CHECK_QUORUM_MS - 1)
    assert not world.all_sent(FetchRequest)


def test_a_voter_that_does_not_answer_is_not_asked_twice_at_once() -> None:
    world = led(times=RaftTimes(fetch_timeout_ms=10_000, request_timeout_ms=REQUEST_MS))
    world.sleep(5000)
    assert world.receivers(BeginQuorumEpochRequest) == [2, 3]
    world.fetch(2)
    assert not world.all_sent(BeginQuorumEpochRequest)


def test_the_leaders_address_is_that_of_the_listener_asked() -> None:
    world = led()
    response = world.response(world.ask(world.fetch_request(2)))
    assert [(each.node_id, each.host, each.port) for each in response.node_endpoints] == [(OWN, *endpoint_of(OWN)[1:])]
    response = world.response(world.ask(world.fetch_request(2), listener="OTHER"))
    assert not response.node_endpoints
