"""Fetch: limits, offsets outside the log, long poll over many partitions, sessions (KIP-227).

Not here: transactions (read_committed, aborted lists), compaction, preferred replicas; that a full partition ends the wait
of the others (Kafka itself waits for min_bytes over all partitions); retention, which the tests of the log drive by a clock.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from ottla.base.errors import ErrorCode
from ottla.compat_tests.raw.requests import FETCH_VERSION, batch, fetch, fetch_request, partitions_of, produce
from ottla.compat_tests.wire_client import Connection
from ottla.wire.messages.delete_records import DeleteRecordsPartition, DeleteRecordsRequest, DeleteRecordsTopic
from ottla.wire.records import iter_batches

pytestmark = pytest.mark.client("wire")
NO_SESSION, NEW_SESSION = -1, 0


def base_offsets(records: memoryview) -> list[int]:
    """The first offset of every batch, complete or not."""
    return [each.base_offset for each in iter_batches(records)]


def delete_before(connection: Connection, topic: str, offset: int) -> None:
    """DeleteRecords of partition 0."""
    partition = DeleteRecordsPartition(partition_index=0, offset=offset)
    request = DeleteRecordsRequest(topics=[DeleteRecordsTopic(name=topic, partitions=[partition])], timeout_ms=20_000)
    assert connection.call(request, 2).topics[0].partitions[0].error_code == ErrorCode.NONE


class Session:
    """A fetch session over partitions of one topic."""

    def __init__(self, connection: Connection, topic: str, offsets: dict[int, int], **how: Any) -> None:
        self.connection, self.topic, self.how = connection, topic, how
        answer = connection.call(fetch_request(topic, offsets, session=(0, NEW_SESSION), **how), FETCH_VERSION)
        assert answer.error_code == ErrorCode.NONE
        assert answer.session_id > 0
        self.session_id, self.epoch, self.first = answer.session_id, 1, partitions_of(answer)

    def next(self, offsets: dict[int, int], forget: tuple[int, ...] = (), **how: Any) -> dict[int, Any]:
        """An incremental fetch; the answered partitions."""
        request = fetch_request(
            self.topic, offsets, session=(self.session_id, self.epoch), forget=forget, **{**self.how, **how}
        )
        self.epoch += 1
        answer = self.connection.call(request, FETCH_VERSION)
        assert (answer.error_code, answer.session_id) == (ErrorCode.NONE, self.session_id)
        return partitions_of(answer)


@pytest.mark.capability("fetch limits")
def test_new_topic(leader: Connection, topic: str) -> None:
    (answer,) = fetch(leader, topic, {0: 0}).values()
    assert (answer.high_watermark, answer.last_stable_offset, answer.log_start_offset) == (0, 0, 0)
    assert bytes(answer.records) == b""


@pytest.mark.capability("fetch limits")
@pytest.mark.parametrize(("partition_max_bytes", "max_bytes"), [(1, 1 << 25), (1 << 20, 1), (0, 0)])
def test_first_batch_is_whole(leader: Connection, topic: str, partition_max_bytes: int, max_bytes: int) -> None:
    size = len(batch(b"x" * 5000))
    produce(leader, topic, batch(b"x" * 5000), batch(b"y" * 5000))
    limits = {"partition_max_bytes": partition_max_bytes, "max_bytes": max_bytes}
    assert len(fetch(leader, topic, {0: 0}, **limits)[0].records) == size
    assert base_offsets(fetch(leader, topic, {0: 1}, **limits)[0].records) == [1]


@pytest.mark.capability("fetch limits")
def test_exact_sizes(leader: Connection, topic: str) -> None:
    size = len(batch(b"x" * 100))
    produce(leader, topic, *[batch(b"x" * 100)] * 4)

    def whole_batches(partition_max_bytes: int) -> int:
        return len(fetch(leader, topic, {0: 0}, partition_max_bytes=partition_max_bytes)[0].records) // size

    assert [whole_batches(limit) for limit in (size, 2 * size - 1, 2 * size, 2 * size + 1, 4 * size)] == [1, 1, 2, 2, 4]


@pytest.mark.capability("fetch limits")
def test_cap_of_the_whole_request(leader: Connection, make_topic: Callable[..., str]) -> None:
    topic = make_topic(4)
    size = len(batch(b"x" * 1000))
    for partition in range(4):
        produce(leader, topic, *[batch(b"x" * 1000)] * 5, partition=partition)
    offsets = dict.fromkeys(range(4), 0)
    # The count of a partition's bytes begins at zero for each, and the request has a limit beside theirs.
    answer = fetch(leader, topic, offsets, partition_max_bytes=2 * size)
    assert {partition: len(part.records) for partition, part in answer.items()} == dict.fromkeys(range(4), 2 * size)
    answer = fetch(leader, topic, offsets, partition_max_bytes=2 * size, max_bytes=5 * size)
    assert sum(len(part.records) // size for part in answer.values()) == 5
    assert [part.error_code for part in answer.values()] == [ErrorCode.NONE] * 4
    # Only the first partition with data is served beyond the limits.
    answer = fetch(leader, topic, offsets, max_bytes=1, partition_max_bytes=1)
    assert sorted(len(part.records) for part in answer.values()) == [0, 0, 0, size]


@pytest.mark.capability("fetch offsets")
def test_inside_a_batch(leader: Connection, topic: str) -> None:
    produce(leader, topic, batch(b"a", b"b", b"c"), batch(b"d", b"e"))
    for offset, expected in ((0, [0, 3]), (1, [0, 3]), (2, [0, 3]), (3, [3]), (4, [3]), (5, [])):
        assert base_offsets(fetch(leader, topic, {0: offset})[0].records) == expected


@pytest.mark.capability("fetch offsets")
def test_out_of_range(leader: Connection, make_topic: Callable[..., str]) -> None:
    topic = make_topic(3)
    for partition in range(3):
        produce(leader, topic, batch(b"a"), batch(b"b"), batch(b"c"), partition=partition)
    delete_before(leader, topic, 2)
    # An error is an answer: min_bytes are not waited for, and the other partitions are served.
    answer = fetch(leader, topic, {0: 1, 1: 4, 2: 1}, min_bytes=1 << 20, max_wait_ms=60_000)
    assert [answer[partition].error_code for partition in range(3)] == [
        ErrorCode.OFFSET_OUT_OF_RANGE,
        ErrorCode.OFFSET_OUT_OF_RANGE,
        ErrorCode.NONE,
    ]
    assert base_offsets(answer[2].records) == [1, 2]
    answer = fetch(leader, topic, {0: 2, 1: 3, 9: 0})
    assert (answer[0].error_code, answer[0].log_start_offset, base_offsets(answer[0].records)) == (0, 2, [2])
    assert (answer[1].error_code, bytes(answer[1].records)) == (ErrorCode.NONE, b"")
    assert answer[9].error_code == ErrorCode.UNKNOWN_TOPIC_OR_PARTITION


@pytest.mark.capability("fetch offsets")
def test_leader_epochs(leader: Connection, topic: str) -> None:
    assert fetch(leader, topic, {0: 0}, current_leader_epoch=0)[0].error_code == ErrorCode.NONE
    answer = fetch(leader, topic, {0: 0}, current_leader_epoch=5)
    assert answer[0].error_code == ErrorCode.UNKNOWN_LEADER_EPOCH


@pytest.mark.capability("fetch sessions")
def test_only_what_has_changed_is_answered(
    leader: Connection, make_topic: Callable[..., str], connections: Callable[[], Connection]
) -> None:
    topic = make_topic(3)
    session = Session(leader, topic, {0: 0, 1: 0, 2: 0})
    assert session.first.keys() == {0, 1, 2}
    assert session.next({}) == {}
    produce(leader, topic, batch(b"x"), partition=1)
    assert session.next({}).keys() == {1}
    # Read up to the end: nothing to say until something changes again.
    assert session.next({1: 1}) == {}
    delete_before(leader, topic, 0)
    assert session.next({}) == {}
    produce(leader, topic, batch(b"x"), partition=0)
    assert session.next({0: 1}).keys() == {0}  # no data from there, but a new high watermark
    assert session.next({}) == {}
    delete_before(leader, topic, 1)
    assert session.next({}).keys() == {0}  # a new log start offset
    assert session.next({9: 0}).keys() == {9}
    assert session.next({}).keys() == {9}  # an error is repeated
    assert session.next({}, forget=(9, 2)) == {}
    produce(leader, topic, batch(b"x"), partition=2)
    assert session.next({}) == {}
    assert session.next({2: 0}).keys() == {2}


@pytest.mark.capability("fetch sessions")
def test_an_empty_incremental_fetch_waits(
    leader: Connection, make_topic: Callable[..., str], connections: Callable[[], Connection]
) -> None:
    topic = make_topic(2)
    session = Session(leader, topic, {0: 0, 1: 0})
    request = fetch_request(topic, {}, session=(session.session_id, 1), min_bytes=1, max_wait_ms=60_000)
    leader.send(request, FETCH_VERSION)
    assert leader.is_silent()
    produce(connections(), topic, batch(b"wake up"), partition=1)
    assert partitions_of(leader.receive()).keys() == {1}


@pytest.mark.capability("fetch sessions")
def test_ids_and_epochs(leader: Connection, topic: str) -> None:
    def answer(session: tuple[int, int], offsets: dict[int, int]) -> tuple[int, int]:
        response = leader.call(fetch_request(topic, offsets, session=session), FETCH_VERSION)
        return response.error_code, response.session_id

    session = Session(leader, topic, {0: 0})
    assert answer((session.session_id, 5), {}) == (ErrorCode.INVALID_FETCH_SESSION_EPOCH, 0)
    assert answer((session.session_id, 1), {}) == (ErrorCode.NONE, session.session_id)
    assert answer((session.session_id, 1), {}) == (ErrorCode.INVALID_FETCH_SESSION_EPOCH, 0)
    assert answer((session.session_id + 1, 1), {}) == (ErrorCode.FETCH_SESSION_ID_NOT_FOUND, 0)
    # A full fetch without a session closes the one it names.
    assert answer((session.session_id, NO_SESSION), {0: 0}) == (ErrorCode.NONE, 0)
    assert answer((session.session_id, 2), {}) == (ErrorCode.FETCH_SESSION_ID_NOT_FOUND, 0)
    # A new session may take the place of an old one.
    old = Session(leader, topic, {0: 0})
    error, new = answer((old.session_id, NEW_SESSION), {0: 0})
    assert (error, new != old.session_id) == (ErrorCode.NONE, True)
    assert answer((old.session_id, 1), {}) == (ErrorCode.FETCH_SESSION_ID_NOT_FOUND, 0)
    assert answer((new, 1), {}) == (ErrorCode.NONE, new)


@pytest.mark.capability("fetch sessions")
def test_no_partition_starves(leader: Connection, make_topic: Callable[..., str]) -> None:
    topic = make_topic(3)
    for partition in range(3):
        produce(leader, topic, *[batch(b"x" * 1000)] * 5, partition=partition)
    # Every answer has room for one batch only. The partition that was served goes to the end of the line.
    session = Session(leader, topic, {0: 0, 1: 0, 2: 0}, max_bytes=1)

    def served(answer: dict[int, Any]) -> list[int]:
        return [partition for partition, part in answer.items() if len(part.records)]

    turns = [served(session.next({})) for _ in range(6)]
    assert sorted(turns[:3]) == [[0], [1], [2]]
    assert turns[3:] == turns[:3]


@pytest.mark.capability("fetch sessions")
def test_sessions_are_bounded(leader: Connection, topic: str) -> None:
    # More sessions than any broker keeps (max.incremental.fetch.session.cache.slots is 1000): some are refused, none fails.
    for _ in range(1100):
        leader.send(fetch_request(topic, {0: 0}, session=(0, NEW_SESSION)), FETCH_VERSION)
    answers = [leader.receive() for _ in range(1100)]
    assert {answer.error_code for answer in answers} == {ErrorCode.NONE}
    assert len({answer.session_id for answer in answers if answer.session_id}) <= 1000
    assert all(partitions_of(answer)[0].error_code == ErrorCode.NONE for answer in answers)
    for answer in answers:
        if answer.session_id:
            leader.call(fetch_request(topic, {}, session=(answer.session_id, NO_SESSION)), FETCH_VERSION)
