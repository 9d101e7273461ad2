"""Snapshots in a quorum: when a fetch is told of one, how a leader serves it, and how a follower fetches it (KIP-630)."""

from __future__ import annotations

from typing import Any, NamedTuple

import pytest

from ottla.base.errors import ErrorCode
from ottla.controller.raft import events, messages
from ottla.controller.raft.effects import (
    AppendToSnapshot,
    BeginSnapshot,
    DeleteBefore,
    DropSnapshot,
    FinishSnapshot,
    HighWatermarkAdvanced,
    SnapshotRead,
)
from ottla.controller.raft.settings import RaftTimes
from ottla.controller.raft.voter_set import ReplicaKey
from ottla.log.metadata_snapshots import BOOTSTRAP_ID, MetadataSnapshotId
from ottla.tests.controller.raft.helpers.node_world import Fetched, NodeState, NodeWorld
from ottla.tests.controller.raft.helpers.quorum_parts import (
    BOOTSTRAP,
    CHECK_QUORUM_MS,
    FETCH_MS,
    OWN,
    batch_of,
    snapshot_of,
    voters_of,
)
from ottla.tests.simulation.raft.machine import CLUSTER_ID, key_of
from ottla.wire.messages.fetch import FetchRequest
from ottla.wire.messages.fetch_snapshot import FetchSnapshotRequest, FetchSnapshotResponse

LEVELS = pytest.mark.parametrize("kraft_version", [0, 1])
EPOCH = 6
LOG = [(2, 3), (2, 3), (4, 3)]
OLDEST, NEWEST = MetadataSnapshotId(3, 2), MetadataSnapshotId(6, 2)
LATER = MetadataSnapshotId(100, 4)


def led(**options: Any) -> NodeWorld:
    """A leader of epoch 6, whose first record has offset 9."""
    world = NodeWorld(**{"epoch": EPOCH - 1, "log": LOG, **options})
    world.become_leader()
    return world


# --- a fetch that is told of a snapshot -------------------------------------------------------------------------------


class FetchRow(NamedTuple):
    """A leader with these snapshots, deleted before ``log_start``, and what a fetch gets."""

    snapshots: tuple[MetadataSnapshotId, ...]
    log_start: MetadataSnapshotId | None
    offset: int
    last_epoch: int
    snapshot: MetadataSnapshotId | None = None
    diverging: tuple[int, int] | None = None


FETCHES = {
    "an empty log, and none is there": FetchRow((), None, 0, 0),
    "an empty log": FetchRow((OLDEST,), None, 0, 0, snapshot=OLDEST),
    "an empty log, and two are there": FetchRow((OLDEST, NEWEST), None, 0, 0, snapshot=NEWEST),
    "an empty log of an epoch": FetchRow((OLDEST,), None, 0, 2, snapshot=OLDEST),
    "an empty log of an epoch, and none is there": FetchRow((), None, 0, 3),
    "an empty log, and the log is deleted": FetchRow((OLDEST,), OLDEST, 0, 0, snapshot=OLDEST),
    "before the log": FetchRow((OLDEST,), OLDEST, 1, 2, snapshot=OLDEST),
    "before the log, and two are there": FetchRow((OLDEST, NEWEST), OLDEST, 1, 2, snapshot=NEWEST),
    "before a snapshot, in the log": FetchRow((NEWEST,), None, 1, 2),
    "at the start of the log": FetchRow((OLDEST,), OLDEST, 3, 2),
    "at the start of the log of a later epoch": FetchRow((OLDEST,), OLDEST, 3, 3, snapshot=OLDEST),
    "at the start of the log of an earlier epoch": FetchRow((OLDEST,), OLDEST, 3, 1, snapshot=OLDEST),
    "at a snapshot that is not the start": FetchRow((OLDEST,), None, 3, 2),
    "at a snapshot that is not the start, of a later epoch": FetchRow((OLDEST,), None, 3, 3, diverging=(2, 6)),
    "of an epoch before the oldest snapshot": FetchRow((OLDEST,), None, 6, 1, snapshot=OLDEST),
    "of an epoch before the oldest of two": FetchRow((OLDEST, NEWEST), OLDEST, 6, 1, snapshot=NEWEST),
    "of an unknown epoch behind the snapshot": FetchRow((OLDEST,), OLDEST, 7, 3, diverging=(2, 6)),
    "beyond an epoch behind the snapshot": FetchRow((OLDEST,), OLDEST, 7, 2, diverging=(2, 6)),
    "valid behind the snapshot": FetchRow((OLDEST,), OLDEST, 6, 2),
    "the log begins with a later epoch": FetchRow((NEWEST,), NEWEST, 7, 3, diverging=(2, 6)),
    "at the end": FetchRow((OLDEST,), OLDEST, 10, 6),
    "beyond the end": FetchRow((OLDEST,), OLDEST, 11, 6, diverging=(6, 10)),
}


@pytest.mark.parametrize("row", FETCHES)
@pytest.mark.parametrize("max_wait_ms", [0, 500])
@pytest.mark.parametrize("replica", [2, 4], ids=["voter", "observer"])
def test_when_a_fetch_is_told_of_a_snapshot(row: str, max_wait_ms: int, replica: int) -> None:
    """At once, however long it would wait. It is the newest one, in any case."""
    snapshots, log_start, offset, last_epoch, snapshot, diverging = FETCHES[row]
    world = led(snapshots=snapshots, log_start=log_start)
    if row == "at the end" and max_wait_ms:
        world.commit(3)
        assert world.fetched(world.ask(world.fetch_request(replica, max_wait_ms=max_wait_ms))) is None
        return
    fetched = world.fetch(replica, offset, last_epoch, max_wait_ms=max_wait_ms)
    assert (fetched.error, fetched.snapshot, fetched.diverging) == (ErrorCode.NONE, snapshot, diverging)
    has_records = snapshot is None and diverging is None and row != "at the end"
    assert bool(fetched.batches) == has_records


def test_the_snapshot_of_formatting_is_kept_to_itself() -> None:
    """The first leader has copied it into the log."""
    world = led(log=[])
    assert BOOTSTRAP_ID in world.quorum.log.snapshots
    fetched = world.fetch(2, 0, 0)
    assert (fetched.snapshot, fetched.batches) == (None, ((0, EPOCH),))


def test_a_follower_that_needs_a_snapshot_does_not_count_for_the_high_watermark() -> None:
    world = led(snapshots=(OLDEST,), log_start=OLDEST)
    world.fetch(2, 0, 0)
    assert world.high_watermark is None


# --- serving it -------------------------------------------------------------------------------------------------------


class SnapshotPiece(NamedTuple):
    """What the response to a FetchSnapshot says."""

    error: ErrorCode
    epoch: int
    leader_id: int
    snapshot: MetadataSnapshotId | None = None
    size: int = 0
    position: int = 0
    data: bytes = b""


def fetch_snapshot(
    world: NodeWorld,
    snapshot: MetadataSnapshotId = NEWEST,
    position: int = 0,
    max_bytes: int = 1 << 20,
    *,
    epoch: int = EPOCH,
    replica: ReplicaKey = key_of(2),  # noqa: B008
) -> SnapshotPiece:
    request = messages.fetch_snapshot_request(CLUSTER_ID, replica, epoch, snapshot, position, max_bytes)
    response = world.response(world.ask(request))
    assert not response.error_code
    told = response.topics[0].partitions[0]
    found = MetadataSnapshotId(told.snapshot_id.end_offset, told.snapshot_id.epoch)
    return SnapshotPiece(
        ErrorCode(told.error_code),
        told.current_leader.leader_epoch,
        told.current_leader.leader_id,
        None if told.error_code else found,
        told.size,
        told.position,
        bytes(told.unaligned_records),
    )


@LEVELS
def test_a_snapshot_is_served_whole(kraft_version: int) -> None:
    world = led(snapshots=(NEWEST,), kraft_version=kraft_version)
    data = world.disk.snapshots[NEWEST]
    assert fetch_snapshot(world) == SnapshotPiece(ErrorCode.NONE, EPOCH, OWN, NEWEST, len(data), 0, data)


@pytest.mark.parametrize("parts", [2, 3, 7])
def test_a_snapshot_is_served_in_pieces(parts: int) -> None:
    world = led(snapshots=(NEWEST,))
    data = world.disk.snapshots[NEWEST]
    size = len(data) // parts
    served = b""
    while len(served) < len(data):
        piece = fetch_snapshot(world, position=len(served), max_bytes=size)
        assert (piece.size, piece.position) == (len(data), len(served))
        assert len(piece.data) == min(size, len(data) - len(served))
        assert world.reads[-1] == SnapshotRead(NEWEST, len(served), size)
        served += piece.data
    assert served == data


@pytest.mark.parametrize(
    ("snapshot", "position", "epoch", "error"),
    [
        (BOOTSTRAP_ID, 0, EPOCH, ErrorCode.SNAPSHOT_NOT_FOUND),
        (MetadataSnapshotId(3, 2), 0, EPOCH, ErrorCode.SNAPSHOT_NOT_FOUND),
        (MetadataSnapshotId(6, 3), 0, EPOCH, ErrorCode.SNAPSHOT_NOT_FOUND),
        (MetadataSnapshotId(6, 3), -1, EPOCH, ErrorCode.SNAPSHOT_NOT_FOUND),
        (NEWEST, -1, EPOCH, ErrorCode.POSITION_OUT_OF_RANGE),
        (NEWEST, 1 << 20, EPOCH, ErrorCode.POSITION_OUT_OF_RANGE),
        (NEWEST, None, EPOCH, ErrorCode.POSITION_OUT_OF_RANGE),
        (NEWEST, 0, EPOCH - 1, ErrorCode.FENCED_LEADER_EPOCH),
        (NEWEST, 0, EPOCH + 1, ErrorCode.UNKNOWN_LEADER_EPOCH),
        (BOOTSTRAP_ID, 0, EPOCH - 1, ErrorCode.FENCED_LEADER_EPOCH),
    ],
    ids=str,
)
def test_a_snapshot_that_is_not_served(
    snapshot: MetadataSnapshotId, position: int | None, epoch: int, error: ErrorCode
) -> None:
    world = led(snapshots=(NEWEST,))
    at = len(world.disk.snapshots[NEWEST]) if position is None else position
    assert fetch_snapshot(world, snapshot, at, epoch=epoch) == SnapshotPiece(error, EPOCH, OWN)


@pytest.mark.parametrize(
    ("voters", "replicas", "stays"),
    [
        ((1, 2, 3), [key_of(2)], True),
        ((1, 2, 3), [key_of(4)], False),
        ((1, 2, 3), [ReplicaKey(2, b"another disk 456")], False),
        ((1, 2, 3, 5, 6), [key_of(2)], False),
        ((1, 2, 3, 5, 6), [key_of(2), key_of(5)], True),
    ],
    ids=["voter", "observer", "another directory", "one of four", "two of four"],
)
def test_who_fetches_a_snapshot_follows(voters: tuple[int, ...], replicas: list[ReplicaKey], stays: bool) -> None:
    """It counts for check-quorum as a fetch of records does."""
    world = led(snapshots=(NEWEST,), voters=voters)
    world.sleep(CHECK_QUORUM_MS - 1)
    for replica in replicas:
        fetch_snapshot(world, replica=replica)
    world.sleep(1)
    assert world.seen.state == ("RaftLeader" if stays else "Resigned")


def test_a_replica_with_the_leaders_id_gets_no_snapshot() -> None:
    world = led(snapshots=(NEWEST,))
    assert fetch_snapshot(world, replica=key_of(OWN)).error == ErrorCode.UNKNOWN_SERVER_ERROR


# --- fetching one -----------------------------------------------------------------------------------------------------


def follower(own: int = OWN, **options: Any) -> NodeWorld:
    return NodeWorld(**{"own": key_of(own), "epoch": EPOCH, "leader": 2, **options})


def downloading(snapshot: MetadataSnapshotId = LATER, **options: Any) -> NodeWorld:
    """A follower that has been told to fetch a snapshot."""
    world = follower(**options)
    world.answer_fetch(world.fetch_sent, snapshot=snapshot)
    return world


def snapshot_sent(world: NodeWorld) -> Any:
    return world.sent(FetchSnapshotRequest)


@LEVELS
@pytest.mark.parametrize("own", [OWN, 4], ids=["voter", "observer"])
def test_a_follower_fetches_a_snapshot(own: int, kraft_version: int) -> None:
    """It takes the place of the log, and all of it is committed."""
    world = downloading(own=own, kraft_version=kraft_version, times=RaftTimes(fetch_snapshot_max_bytes=60))
    data = snapshot_of(LATER, voters_of(1, 2, 3) if kraft_version else None)
    assert world.news(BeginSnapshot) == [BeginSnapshot(LATER)]
    position = 0
    while position < len(data):
        sent = snapshot_sent(world)
        assert sent.peer.node_id == 2
        asked = sent.request.topics[0].partitions[0]
        assert (sent.request.cluster_id, sent.request.replica_id, asked.replica_directory_id) == (
            CLUSTER_ID,
            *key_of(own),
        )
        assert (asked.snapshot_id.end_offset, asked.snapshot_id.epoch) == LATER
        assert (asked.current_leader_epoch, asked.position, sent.request.max_bytes) == (EPOCH, position, 60)
        piece = data[position : position + 60]
        world.answer_snapshot(sent, piece, snapshot=LATER, size=len(data), position=position)
        position += len(piece)
    assert len(world.news(AppendToSnapshot)) > 2
    assert world.disk.snapshots[LATER] == data
    assert world.news(FinishSnapshot) == [FinishSnapshot(LATER)]
    assert (world.quorum.log.start_offset, world.end_offset, world.quorum.log.end) == (100, 100, (4, 100))
    assert world.high_watermark == 100
    assert world.news(HighWatermarkAdvanced) == [HighWatermarkAdvanced(100)]
    asked = world.fetch_sent.request.topics[0].partitions[0]  # type: ignore[attr-defined]
    assert (asked.fetch_offset, asked.last_fetched_epoch, asked.high_watermark) == (100, 4, 100)


def finish(world: NodeWorld, snapshot: MetadataSnapshotId = LATER, voters: tuple[int, ...] = (1, 2, 3)) -> None:
    data = snapshot_of(snapshot, voters_of(*voters))
    world.answer_snapshot(snapshot_sent(world), data, snapshot=snapshot, size=len(data))


def test_the_log_is_emptied_even_where_it_goes_further() -> None:
    """A log of another epoch beyond the snapshot is not the leader's."""
    world = downloading(MetadataSnapshotId(4, 3), log=[(2, 9)])
    finish(world, MetadataSnapshotId(4, 3))
    assert (world.quorum.log.start_offset, world.quorum.log.end, world.batches) == (4, (3, 4), [])
    world.answer_fetch(world.fetch_sent, batch_of(4, 6))
    assert world.batches == [(4, 6)]


def test_a_snapshot_below_what_is_committed_stops_the_node() -> None:
    world = follower(log=[(2, 9)])
    world.answer_fetch(world.fetch_sent, high_watermark=9)
    world.answer_fetch(world.fetch_sent, snapshot=MetadataSnapshotId(4, 3))
    with pytest.raises(AssertionError):
        finish(world, MetadataSnapshotId(4, 3))


def test_older_snapshots_go_when_one_was_fetched() -> None:
    world = downloading(log=[(2, 9)], snapshots=(OLDEST, NEWEST))
    finish(world)
    assert list(world.quorum.log.snapshots) == [LATER]
    assert list(world.disk.snapshots) == [LATER]


def test_the_voters_are_those_of_the_snapshot() -> None:
    world = downloading()
    finish(world, voters=(1, 2, 3, 5))
    assert world.quorum.voters.ids == (1, 2, 3, 5)


def test_a_snapshot_that_was_fetched_counts_after_a_restart() -> None:
    world = downloading()
    finish(world)
    world.restart()
    assert (world.quorum.log.start_offset, world.quorum.log.end) == (100, (4, 100))
    assert world.seen == NodeState("RaftFollower", EPOCH, 2)


@pytest.mark.parametrize("how", ["restart", "another leader", "a higher epoch", "timeout"])
def test_an_unfinished_snapshot_is_dropped(how: str) -> None:
    world = downloading()
    world.answer_snapshot(snapshot_sent(world), b"12345", snapshot=LATER, size=500)
    if how == "restart":
        world.disk.kill()
        world.restart()
    elif how == "another leader":
        world.begin(3, EPOCH + 1)
    elif how == "a higher epoch":
        world.vote(3, EPOCH + 1, (0, 0))
    else:
        world.sleep(FETCH_MS)
        assert world.seen.state == "Prospective"
    assert not world.disk.download
    assert world.disk.snapshots.keys() == {BOOTSTRAP_ID}
    assert bool(world.news(DropSnapshot)) == (how != "restart")


def test_a_response_that_comes_too_late_is_ignored() -> None:
    world = downloading()
    sent = snapshot_sent(world)
    world.sleep(FETCH_MS)
    world.answer_snapshot(sent, b"12345", snapshot=LATER, size=5)
    assert world.seen == NodeState("Prospective", EPOCH, 2)
    assert not world.news(AppendToSnapshot)


@pytest.mark.parametrize(
    ("snapshot", "error"),
    [
        (LATER, ErrorCode.SNAPSHOT_NOT_FOUND),
        (MetadataSnapshotId(-1, LATER.epoch), ErrorCode.NONE),
        (MetadataSnapshotId(LATER.end_offset, -1), ErrorCode.NONE),
    ],
    ids=["deleted", "no offset", "no epoch"],
)
def test_a_snapshot_that_the_leader_has_no_more(snapshot: MetadataSnapshotId, error: ErrorCode) -> None:
    """The follower starts over with a fetch, and may be told of a newer one."""
    world = downloading()
    world.sleep(FETCH_MS - 1)
    world.answer_snapshot(snapshot_sent(world), snapshot=snapshot, size=0, error=error)
    assert world.news(DropSnapshot) == [DropSnapshot(LATER)]
    sent = world.fetch_sent
    assert sent.peer.node_id == 2
    assert sent.request.topics[0].partitions[0].fetch_offset == 0  # type: ignore[attr-defined]
    world.sleep(FETCH_MS - 1)
    assert world.seen == NodeState("RaftFollower", EPOCH, 2)
    world.answer_fetch(sent, snapshot=MetadataSnapshotId(200, 5))
    finish(world, MetadataSnapshotId(200, 5))
    assert world.end_offset == 200


@pytest.mark.parametrize(
    ("error", "epoch", "leader", "expected"),
    [
        (ErrorCode.FENCED_LEADER_EPOCH, EPOCH + 1, 3, NodeState("RaftFollower", EPOCH + 1, 3)),
        (ErrorCode.FENCED_LEADER_EPOCH, EPOCH + 1, 2, NodeState("RaftFollower", EPOCH + 1, 2)),
        (ErrorCode.NONE, EPOCH + 1, 3, NodeState("RaftFollower", EPOCH + 1, 3)),
        (ErrorCode.FENCED_LEADER_EPOCH, EPOCH + 1, -1, NodeState("Unattached", EPOCH + 1)),
    ],
)
def test_a_new_epoch_ends_the_download(error: ErrorCode, epoch: int, leader: int, expected: NodeState) -> None:
    world = downloading()
    world.answer_snapshot(snapshot_sent(world), snapshot=LATER, size=9, error=error, epoch=epoch, leader=leader)
    assert world.seen == expected
    assert not world.news(AppendToSnapshot)
    sent = world.fetch_sent
    assert sent.request.topics[0].partitions[0].current_leader_epoch == EPOCH + 1  # type: ignore[attr-defined]
    assert sent.peer.node_id == (BOOTSTRAP if leader < 0 else leader)


def test_an_older_epoch_is_void() -> None:
    """The same piece is asked for again."""
    world = downloading()
    options: dict[str, Any] = {"error": ErrorCode.UNKNOWN_LEADER_EPOCH, "epoch": EPOCH - 1, "leader": 3}
    world.answer_snapshot(snapshot_sent(world), snapshot=LATER, size=9, **options)
    assert world.seen == NodeState("RaftFollower", EPOCH, 2)
    assert snapshot_sent(world).request.topics[0].partitions[0].position == 0


@pytest.mark.parametrize("how", ["failure", "error", "top level"])
def test_a_piece_that_fails_is_asked_for_again(how: str) -> None:
    """Meanwhile another server is asked whether this leader is one."""
    world = downloading(times=RaftTimes(fetch_timeout_ms=20_000), bootstrap=(3,))
    sent = snapshot_sent(world)
    if how == "failure":
        world.fail(sent)
    elif how == "error":
        world.answer_snapshot(sent, snapshot=LATER, size=9, error=ErrorCode.UNKNOWN_SERVER_ERROR)
    else:
        world.answer(sent, FetchSnapshotResponse(error_code=ErrorCode.UNKNOWN_SERVER_ERROR))
    server = world.fetch_sent
    assert server.peer.node_id == BOOTSTRAP
    world.answer_fetch(server, error=ErrorCode.NOT_LEADER_OR_FOLLOWER, leader=2)
    world.sleep(world.times.retry_backoff_ms)
    world.fail(server)
    assert snapshot_sent(world).request.topics[0].partitions[0].position == 0


def test_each_piece_begins_the_fetch_timeout_anew() -> None:
    world = downloading()
    for position in range(4):
        world.sleep(FETCH_MS - 1)
        world.answer_snapshot(snapshot_sent(world), b"1", snapshot=LATER, size=500, position=position)
    assert world.seen == NodeState("RaftFollower", EPOCH, 2)


@pytest.mark.parametrize(
    ("snapshot", "position"), [(MetadataSnapshotId(101, 4), 0), (MetadataSnapshotId(100, 5), 0), (LATER, 3)], ids=str
)
def test_a_piece_that_was_not_asked_for_stops_the_node(snapshot: MetadataSnapshotId, position: int) -> None:
    world = downloading()
    with pytest.raises(AssertionError):
        world.answer_snapshot(snapshot_sent(world), b"1", snapshot=snapshot, size=9, position=position)


@pytest.mark.parametrize("data", [b"?" * 200, bytes(200), b"?", b""], ids=["no batch", "zeros", "a byte", "nothing"])
def test_a_damaged_snapshot_is_dropped(data: bytes) -> None:
    """It is fetched again from its beginning; the log stays as it is."""
    world = downloading(log=[(2, 9)])
    world.answer_snapshot(snapshot_sent(world), data, snapshot=LATER, size=len(data))
    assert world.news(DropSnapshot) == [DropSnapshot(LATER)]
    assert not world.news(FinishSnapshot)
    assert world.end_offset == 9


@pytest.mark.parametrize(
    "snapshot", [MetadataSnapshotId(-1, 4), MetadataSnapshotId(100, -1)], ids=["no offset", "no epoch"]
)
def test_a_snapshot_id_that_is_none(snapshot: MetadataSnapshotId) -> None:
    """Such a fetch has failed: the leader is left alone for a moment, and the timeout goes on."""
    world = follower(bootstrap=(3,))
    world.sleep(FETCH_MS - 1)
    world.answer_fetch(world.fetch_sent, snapshot=snapshot)
    assert not world.news(BeginSnapshot)
    assert world.receivers(FetchRequest) == [BOOTSTRAP]
    world.sleep(1)
    assert world.seen.state == "Prospective"


@pytest.mark.parametrize("snapshot", [NEWEST, BOOTSTRAP_ID], ids=["of its own", "of formatting"])
def test_a_snapshot_that_is_there_is_not_fetched(snapshot: MetadataSnapshotId) -> None:
    """As Kafka's ``createNewSnapshotUnchecked``; the follower goes on with a fetch."""
    world = follower(log=[(2, 9)], snapshots=(NEWEST,), log_start=None)
    world.answer_fetch(world.fetch_sent, snapshot=snapshot)
    assert not world.news(BeginSnapshot)
    assert world.receivers(FetchRequest) == [2]


# --- its own ones -----------------------------------------------------------------------------------------------------


def test_a_snapshot_that_was_written_is_served() -> None:
    world = led()
    world.commit(2)
    world.disk.add_snapshot(NEWEST, b"image")
    world.step(events.SnapshotWritten(NEWEST, 5))
    assert world.fetch(2, 0, 0).snapshot == NEWEST
    assert fetch_snapshot(world).data == b"image"


def test_a_snapshot_from_before_the_log_does_not_count() -> None:
    """It was begun before another was fetched."""
    world = downloading()
    finish(world)
    world.step(events.SnapshotWritten(NEWEST, 5))
    assert list(world.quorum.log.snapshots) == [LATER]


@pytest.mark.parametrize(
    ("wanted", "is_deleted"),
    [(OLDEST, True), (NEWEST, True), (MetadataSnapshotId(9, 4), False), (MetadataSnapshotId(12, 6), False)],
    ids=["the oldest", "the newest", "not there", "not committed"],
)
def test_the_log_is_deleted_before_a_snapshot_that_there_is(wanted: MetadataSnapshotId, is_deleted: bool) -> None:
    world = led(snapshots=(OLDEST, NEWEST))
    world.fetch(2, 9, 4)
    world.step(events.CleanRequested(wanted))
    assert world.news(DeleteBefore) == ([DeleteBefore(wanted)] if is_deleted else [])
    if is_deleted:
        assert world.quorum.log.start_offset == wanted.end_offset
        assert list(world.quorum.log.snapshots) == [each for each in (OLDEST, NEWEST) if each >= wanted]
        assert world.fetch(2, wanted.end_offset, 2).snapshot is None
        assert world.fetch(2, wanted.end_offset - 1, 2).snapshot == NEWEST


def test_deleting_twice_is_once() -> None:
    world = led(snapshots=(OLDEST, NEWEST))
    world.step(events.CleanRequested(NEWEST))
    world.step(events.CleanRequested(NEWEST))
    world.step(events.CleanRequested(OLDEST))
    assert world.news(DeleteBefore) == [DeleteBefore(NEWEST)]


def test_the_voters_of_a_snapshot_outlive_their_record() -> None:
    """What the log said of the quorum before its start is that of the snapshot."""
    record = voters_of(1, 2, 3, 5).to_record()
    world = led(log=[(2, 3), (2, record), (2, 2), (4, 3)], voters=(1, 2, 3))
    assert world.quorum.voters.ids == (1, 2, 3, 5)
    world.disk.add_snapshot(NEWEST, snapshot_of(NEWEST, voters_of(1, 2, 3, 5)))
    world.step(events.SnapshotWritten(NEWEST, 5))
    world.step(events.CleanRequested(NEWEST))
    assert world.quorum.voters.ids == (1, 2, 3, 5)
    assert world.quorum.log.quorum_at(8).voters == voters_of(1, 2, 3, 5)


def test_what_a_fetch_is_told_is_what_the_log_was() -> None:
    """A fetch that waits is answered by the log of that time."""
    world = led()
    world.commit(2)
    waiting = world.ask(world.fetch_request(4, max_wait_ms=500))
    world.disk.add_snapshot(MetadataSnapshotId(12, 6), b"image")
    world.step(events.SnapshotWritten(MetadataSnapshotId(12, 6), 5))
    world.step(events.CleanRequested(MetadataSnapshotId(12, 6)))
    assert world.fetched(waiting) is None
    world.append(1)
    assert world.fetched(waiting) == Fetched(ErrorCode.NONE, EPOCH, OWN, 12, ((12, EPOCH),))
