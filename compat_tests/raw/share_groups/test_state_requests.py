"""The state of share partitions: requests 83-87, which brokers send each other, and FindCoordinator for them."""

from __future__ import annotations

import base64
from typing import Any

import pytest

from ottla.base.errors import ErrorCode
from ottla.compat_tests.raw.share_groups.conftest import MakeConsumer
from ottla.compat_tests.raw.share_groups.wire_share import accept, reject, release
from ottla.compat_tests.raw.transactional import STARTING
from ottla.compat_tests.session import eventually
from ottla.compat_tests.wire_client import Connection, describe
from ottla.wire.messages import (
    delete_share_group_state,
    initialize_share_group_state,
    read_share_group_state,
    read_share_group_state_summary,
    write_share_group_state,
)
from ottla.wire.messages.find_coordinator import FindCoordinatorRequest
from ottla.wire.schema import Message

pytestmark = [
    pytest.mark.client("wire"),
    pytest.mark.capability("share groups: state requests"),
    pytest.mark.one_broker("a cluster on ZooKeeper has no share groups"),
    pytest.mark.restart,
]
SHARE = 2
AVAILABLE, ACKNOWLEDGED, ARCHIVED = 0, 2, 4
NONE, INVALID = ErrorCode.NONE, ErrorCode.INVALID_REQUEST
UNKNOWN, OLD_LEADER = ErrorCode.UNKNOWN_TOPIC_OR_PARTITION, ErrorCode.FENCED_LEADER_EPOCH
OLD_STATE = ErrorCode.FENCED_STATE_EPOCH
Batch = tuple[int, int, int, int]


class SharePartition:
    """The state of one partition of a topic in a group, asked for at its coordinator."""

    def __init__(self, connection: Connection, group_id: str, topic_id: bytes, partition: int = 0) -> None:
        self._connection = connection
        self.group_id = group_id
        self.topic_id = topic_id
        self._partition = partition

    def sibling(self, topic_id: bytes, partition: int) -> SharePartition:
        """Another one of the group."""
        return SharePartition(self._connection, self.group_id, topic_id, partition)

    def _result(self, module: Any, kind: str, data: str, version: int, **fields: Any) -> Any:
        partition = module.PartitionData(partition=self._partition, **fields)
        topic = getattr(module, data)(topic_id=self.topic_id, partitions=[partition])
        request: Message = getattr(module, kind)(group_id=self.group_id, topics=[topic])

        def answered() -> Any:
            (result,) = self._connection.call(request, version).results
            (found,) = result.partitions
            return None if found.error_code in STARTING else found

        found = eventually(answered)
        assert found.partition == self._partition
        return found

    def initialize(self, state_epoch: int, start_offset: int = -1) -> ErrorCode:
        """InitializeShareGroupState."""
        found = self._result(
            *(initialize_share_group_state, "InitializeShareGroupStateRequest", "InitializeStateData", 0),
            state_epoch=state_epoch,
            start_offset=start_offset,
        )
        return ErrorCode(found.error_code)

    def read(self, leader_epoch: int = -1) -> tuple[int, int, list[Batch]] | ErrorCode:
        """ReadShareGroupState: the state epoch, the start offset, the batches."""
        found = self._result(
            read_share_group_state, "ReadShareGroupStateRequest", "ReadStateData", 0, leader_epoch=leader_epoch
        )
        if found.error_code != NONE:
            return ErrorCode(found.error_code)
        batches = [
            (each.first_offset, each.last_offset, each.delivery_state, each.delivery_count)
            for each in found.state_batches
        ]
        return found.state_epoch, found.start_offset, batches

    def write(
        self, state_epoch: int, leader_epoch: int, start_offset: int, *batches: Batch, complete: int = -1
    ) -> ErrorCode:
        """WriteShareGroupState."""
        names = ("first_offset", "last_offset", "delivery_state", "delivery_count")
        found = self._result(
            *(write_share_group_state, "WriteShareGroupStateRequest", "WriteStateData", 1),
            state_epoch=state_epoch,
            leader_epoch=leader_epoch,
            start_offset=start_offset,
            delivery_complete_count=complete,
            state_batches=[
                write_share_group_state.StateBatch(**dict(zip(names, each, strict=True))) for each in batches
            ],
        )
        return ErrorCode(found.error_code)

    def delete(self) -> ErrorCode:
        """DeleteShareGroupState."""
        found = self._result(delete_share_group_state, "DeleteShareGroupStateRequest", "DeleteStateData", 0)
        return ErrorCode(found.error_code)

    def summary(self, leader_epoch: int = -1) -> tuple[int, int, int, int] | ErrorCode:
        """ReadShareGroupStateSummary: state epoch, leader epoch, start offset, delivery complete count."""
        found = self._result(
            *(read_share_group_state_summary, "ReadShareGroupStateSummaryRequest", "ReadStateSummaryData", 1),
            leader_epoch=leader_epoch,
        )
        if found.error_code != NONE:
            return ErrorCode(found.error_code)
        return found.state_epoch, found.leader_epoch, found.start_offset, found.delivery_complete_count


@pytest.fixture
def state(wire: Connection, group_id: str, topic: str) -> SharePartition:
    """Of the test's topic in a group, which need not exist; its coordinator does."""
    topic_id = describe(wire, topic).topics[0].topic_id
    assert find(wire, share_key(group_id, topic_id)).error_code == NONE
    return SharePartition(wire, group_id, topic_id)


def share_key(group_id: str, topic_id: bytes, partition: int = 0) -> str:
    """A share partition as FindCoordinator has it."""
    return f"{group_id}:{base64.urlsafe_b64encode(topic_id).decode().rstrip('=')}:{partition}"


@pytest.fixture
def controller_id(wire: Connection) -> int:
    """The id of the only broker."""
    (broker,) = describe(wire, "any").brokers
    return int(broker.node_id)


@pytest.fixture
def begun(state: SharePartition) -> SharePartition:
    """Initialized with state epoch 3, from offset 10 on."""
    assert state.initialize(3, 10) == NONE
    return state


def test_before_there_is_a_state(state: SharePartition) -> None:
    assert (state.read(), state.write(1, 0, 0)) == (INVALID, INVALID)
    assert state.summary() == (0, 0, -1, -1)
    assert state.delete() == NONE


def test_initialize(state: SharePartition) -> None:
    assert state.initialize(3) == NONE
    assert state.read() == (3, -1, [])
    assert state.summary() == (3, 0, -1, -1)
    assert state.initialize(2) == OLD_STATE
    assert state.initialize(3, 50) == NONE
    assert state.read() == (3, 50, [])
    assert state.initialize(4, 7) == NONE
    assert state.read() == (4, 7, [])
    assert state.summary() == (4, 0, 7, 0)


def test_initialize_again_forgets_batches(begun: SharePartition) -> None:
    assert begun.write(3, 0, 10, (12, 14, ACKNOWLEDGED, 1), complete=3) == NONE
    assert begun.initialize(3, 10) == NONE
    assert begun.read() == (3, 10, [])
    assert begun.summary() == (3, 0, 10, 0)


def test_write(begun: SharePartition) -> None:
    assert begun.write(3, 0, 10, (10, 14, ACKNOWLEDGED, 1), (15, 15, AVAILABLE, 2), complete=5) == NONE
    assert begun.read() == (3, 10, [(10, 14, ACKNOWLEDGED, 1), (15, 15, AVAILABLE, 2)])
    assert begun.summary() == (3, 0, 10, 5)
    # A later batch with a higher count wins …
    assert begun.write(3, 0, 10, (12, 20, AVAILABLE, 3), complete=2) == NONE
    assert begun.read() == (3, 10, [(10, 11, ACKNOWLEDGED, 1), (12, 20, AVAILABLE, 3)])
    # … also inside of one …
    assert begun.write(3, 0, 10, (14, 15, ARCHIVED, 3), complete=4) == NONE
    assert begun.read() == (
        *(3, 10),
        [(10, 11, ACKNOWLEDGED, 1), (12, 13, AVAILABLE, 3), (14, 15, ARCHIVED, 3), (16, 20, AVAILABLE, 3)],
    )
    # … what is below the start goes …
    assert begun.write(3, 0, 13, (13, 15, ACKNOWLEDGED, 4), complete=3) == NONE
    assert begun.read() == (3, 13, [(13, 15, ACKNOWLEDGED, 4), (16, 20, AVAILABLE, 3)])
    # … and neighbours in the same state become one, though not at once.
    assert begun.write(3, 0, 13, (16, 20, ACKNOWLEDGED, 4), complete=8) == NONE
    assert begun.write(3, 0, -1, (21, 21, ARCHIVED, 1), complete=9) == NONE
    assert begun.read() == (3, 13, [(13, 20, ACKNOWLEDGED, 4), (21, 21, ARCHIVED, 1)])
    assert begun.summary() == (3, 0, 13, 9)


@pytest.mark.parametrize(
    ("first", "second", "wins"),
    [
        pytest.param((ACKNOWLEDGED, 2), (AVAILABLE, 3), 1, id="a higher count"),
        pytest.param((AVAILABLE, 3), (ACKNOWLEDGED, 2), 0, id="a lower count"),
        pytest.param((AVAILABLE, 2), (ACKNOWLEDGED, 2), 1, id="a later state"),
        pytest.param((ARCHIVED, 2), (ACKNOWLEDGED, 2), 0, id="an earlier state"),
    ],
)
def test_which_of_two_states_stays(
    begun: SharePartition, first: tuple[int, int], second: tuple[int, int], wins: int
) -> None:
    # The order of writes does not matter, so one that is repeated changes nothing.
    assert begun.write(3, 0, 10, (10, 14, *first)) == NONE
    assert begun.write(3, 0, 10, (10, 14, *second)) == NONE
    assert begun.read() == (3, 10, [(10, 14, *(first, second)[wins])])


def test_a_write_without_batches(begun: SharePartition) -> None:
    assert begun.write(3, 0, 10, (10, 20, ACKNOWLEDGED, 1), complete=11) == NONE
    assert begun.write(3, 0, 25) == NONE
    assert begun.read() == (3, 25, [])
    assert begun.summary() == (3, 0, 25, -1)
    assert begun.write(3, 0, 20, (24, 26, ARCHIVED, 1), complete=3) == NONE  # it is the leader who knows the start
    assert begun.read() == (3, 20, [(24, 26, ARCHIVED, 1)])


def test_epochs_of_states(begun: SharePartition) -> None:
    assert begun.write(2, 0, 11) == OLD_STATE
    assert begun.write(4, 0, 11) == NONE
    assert begun.read() == (3, 11, [])  # it is not for a write to change it
    assert begun.initialize(5, 60) == NONE
    assert begun.write(4, 0, 11) == OLD_STATE
    assert begun.write(5, 0, 61) == NONE
    assert begun.read() == (5, 61, [])


def test_epochs_of_leaders(begun: SharePartition) -> None:
    assert begun.read(4) == (3, 10, [])
    assert begun.summary() == (3, 4, 10, 0)
    assert (begun.read(3), begun.write(3, 3, 11)) == (OLD_LEADER, OLD_LEADER)
    # Who has no epoch is not asked for one; a look at the summary changes nothing.
    assert (begun.read(-1), begun.summary(3), begun.summary(9)) == ((3, 10, []), (3, 4, 10, 0), (3, 4, 10, 0))
    assert begun.write(3, -1, 12) == NONE
    assert begun.summary() == (3, 4, 12, -1)
    # A write is taken from a later leader, but does not make it known.
    assert begun.write(3, 6, 13) == NONE
    assert begun.summary() == (3, 4, 13, -1)
    assert begun.write(2, 3, 14) == OLD_LEADER  # the leader's epoch is looked at first
    assert begun.write(2, 4, 14) == OLD_STATE


def test_delete(begun: SharePartition) -> None:
    assert begun.delete() == NONE
    assert (begun.read(), begun.write(3, 0, 11), begun.summary()) == (INVALID, INVALID, (0, 0, -1, -1))
    assert begun.delete() == NONE
    assert begun.initialize(1, 5) == NONE
    assert begun.read() == (1, 5, [])


@pytest.mark.parametrize("topic_id", [b"n" * 16, bytes(16), None], ids=["no such topic", "no topic", "the topic"])
def test_partitions_that_are_not_there(state: SharePartition, topic_id: bytes | None) -> None:
    other = state.sibling(state.topic_id if topic_id is None else topic_id, 7)
    assert (other.initialize(1), other.summary(), other.delete()) == (UNKNOWN, UNKNOWN, UNKNOWN)
    assert (other.read(), other.write(1, 0, 0)) == (INVALID, INVALID)


def test_a_negative_partition(state: SharePartition) -> None:
    other = state.sibling(state.topic_id, -1)
    assert (other.initialize(1), other.summary(), other.delete()) == (INVALID, INVALID, INVALID)
    assert (other.read(), other.write(1, 0, 0)) == (INVALID, INVALID)


def test_more_writes_than_a_snapshot_has(begun: SharePartition) -> None:
    for offset in range(10, 520):
        assert begun.write(3, 1, offset, (offset, offset, ACKNOWLEDGED, 1), complete=1) == NONE
    assert begun.read() == (3, 519, [(519, 519, ACKNOWLEDGED, 1)])
    assert begun.summary() == (3, 0, 519, 1)


def find(wire: Connection, key: str, version: int = 6) -> Any:
    """FindCoordinator of a share partition, once coordinators are found at all."""

    def answered() -> Any:
        (found,) = wire.call(FindCoordinatorRequest(key_type=SHARE, coordinator_keys=[key]), version).coordinators
        return None if found.error_code == ErrorCode.COORDINATOR_NOT_AVAILABLE else found

    return eventually(answered)


def test_find_coordinator(wire: Connection, controller_id: int, state: SharePartition) -> None:
    key = share_key(state.group_id, state.topic_id)
    for each in (key, share_key("a:b", state.topic_id), share_key(state.group_id, state.topic_id, 99)):
        found = find(wire, each)
        assert (found.error_code, found.key, found.node_id) == (NONE, each, controller_id)


@pytest.mark.parametrize("key", ["", "group", "group:{id}", "group:nonsense:0", "group:{id}:x", ":{id}:0"])
def test_keys_that_cannot_be_found(wire: Connection, state: SharePartition, key: str) -> None:
    topic_id = share_key("", state.topic_id).split(":")[1]
    assert find(wire, key.format(id=topic_id)).error_code == INVALID


def test_share_partitions_are_not_found_by_v5(wire: Connection, state: SharePartition) -> None:
    assert find(wire, share_key(state.group_id, state.topic_id), version=5).error_code == INVALID


def test_what_a_leader_writes(make_consumer: MakeConsumer, ten: str, state: SharePartition) -> None:
    a = make_consumer(ten)
    of_leader = state.sibling(a.topic_id, 0)
    (epoch, start, batches) = read(of_leader)
    assert (start, batches) == (-1, [])
    a.take()
    assert read(of_leader) == (epoch, -1, [])  # what is acquired is not written
    # The start that is written is the one before the acknowledgement.
    assert a.acknowledge(accept(0, 2), release(3), reject(4)) == NONE
    written = [(0, 2, ACKNOWLEDGED, 1), (3, 3, AVAILABLE, 1), (4, 4, ARCHIVED, 1)]
    assert read(of_leader) == (epoch, 0, written)
    assert of_leader.summary() == (epoch, 0, 0, 4)
    assert a.take() == [(3, 3, 2)]
    assert a.acknowledge(accept(3), release(5, 9)) == NONE
    assert read(of_leader) == (epoch, 3, [(3, 3, ACKNOWLEDGED, 2), (4, 4, ARCHIVED, 1), (5, 9, AVAILABLE, 1)])
    assert of_leader.summary() == (epoch, 0, 3, 2)
    assert a.take() == [(5, 9, 2)]
    assert a.acknowledge(accept(5, 9)) == NONE
    assert read(of_leader) == (epoch, 5, [(5, 9, ACKNOWLEDGED, 2)])
    assert of_leader.summary() == (epoch, 0, 5, 5)


def test_a_lost_session_is_written(make_consumer: MakeConsumer, ten: str, state: SharePartition) -> None:
    a = make_consumer(ten)
    of_leader = state.sibling(a.topic_id, 0)
    a.take()
    assert a.close() == NONE
    eventually(lambda: read(of_leader)[1:] == (0, [(0, 9, AVAILABLE, 1)]))


def read(of: SharePartition) -> tuple[int, int, list[Batch]]:
    """The state, which must be there."""
    found = of.read()
    assert not isinstance(found, ErrorCode)
    return found
