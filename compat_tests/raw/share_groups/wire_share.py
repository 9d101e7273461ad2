"""A share group as the wire tests see it: members, which send heartbeats, and consumers, which fetch and acknowledge.

The leader of a partition does not ask who is a member, so a consumer needs no member. It needs partitions whose state has been
initialized, though: ``ShareGroup.initialize`` has a member join for that, and leave.
Topics stand in expected values by name. Offsets are those of partition 0, unless a test says otherwise.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any, NamedTuple

from ottla.base.errors import ErrorCode
from ottla.compat_tests.raw.consumer_groups.wire_group import NOT_YET, Beat, TopicNames
from ottla.compat_tests.session import eventually
from ottla.compat_tests.wire_client import Connection, describe
from ottla.wire.messages import share_acknowledge, share_fetch
from ottla.wire.messages.list_groups import ListGroupsRequest
from ottla.wire.messages.share_acknowledge import ShareAcknowledgeRequest
from ottla.wire.messages.share_fetch import ShareFetchRequest
from ottla.wire.messages.share_group_describe import ShareGroupDescribeRequest
from ottla.wire.messages.share_group_heartbeat import ShareGroupHeartbeatRequest
from ottla.wire.records import iter_complete_batches

GAP, ACCEPT, RELEASE, REJECT, RENEW = range(5)
"""Types of an acknowledgement."""
BATCH_OPTIMIZED, RECORD_LIMIT = 0, 1
"""Acquire modes: of the batch that crosses the limit of records all of them, or none beyond it."""
FINAL_EPOCH = -1
FETCH_VERSION = ACKNOWLEDGE_VERSION = 2
BRIEFLY_MS = 200
UNTIL_THERE_ARE_MS = 10_000


class Ack(NamedTuple):
    """An acknowledgement batch: offsets, both inclusive, and one type for all or one for each."""

    first: int
    last: int
    types: Sequence[int]


def accept(first: int, last: int | None = None) -> Ack:
    """Of some offsets, by default of one."""
    return Ack(first, first if last is None else last, [ACCEPT])


def release(first: int, last: int | None = None) -> Ack:
    """Of some offsets, by default of one."""
    return Ack(first, first if last is None else last, [RELEASE])


def reject(first: int, last: int | None = None) -> Ack:
    """Of some offsets, by default of one."""
    return Ack(first, first if last is None else last, [REJECT])


def renew(first: int, last: int | None = None) -> Ack:
    """Of some offsets, by default of one."""
    return Ack(first, first if last is None else last, [RENEW])


class Fetched(NamedTuple):
    """What a response to ShareFetch says of one partition: (first offset, last offset, delivery count) of what was acquired."""

    acquired: list[tuple[int, int, int]]
    error: ErrorCode = ErrorCode.NONE
    acknowledged: ErrorCode = ErrorCode.NONE


NOTHING = Fetched([])


def fetched(partition: Any) -> Fetched:
    """Of a partition of a response."""
    return Fetched(
        [(each.first_offset, each.last_offset, each.delivery_count) for each in partition.acquired_records],
        ErrorCode(partition.error_code),
        ErrorCode(partition.acknowledge_error_code),
    )


def batches_of(partition: Any) -> list[tuple[int, int]]:
    """The first and the last offset of each record batch of a partition of a response."""
    return [(batch.base_offset, batch.last_offset) for batch in iter_complete_batches(partition.records or b"")]


class ShareGroup:
    """One group, asked through one connection to its coordinator, which leads its topics as well."""

    def __init__(self, connection: Connection, group_id: str, *topics: str) -> None:
        self.connection = connection
        self.group_id = group_id
        self.names = TopicNames(connection)
        self.names.learn(*topics)

    def member(self, member_id: str, **always: Any) -> ShareMember:
        """A member; ``always`` is in each of its heartbeats."""
        return ShareMember(self, member_id, always)

    def consumer(self, member_id: str, topic: str, connection: Connection | None = None) -> ShareConsumer:
        """A consumer of a topic, by default over the group's connection. Its session goes with its connection."""
        return ShareConsumer(self, member_id, topic, connection or self.connection)

    def initialize(self, *topics: str) -> None:
        """Have the states of all partitions of these topics initialized; the group has no member afterwards."""
        self.names.learn(*topics)
        initializer = self.member("initializer")
        initializer.join_all(*topics)
        assert initializer.beat(-1) == Beat(-1)

    def partition_count(self, topic: str) -> int:
        """As Metadata tells it."""
        return len(describe(self.connection, topic).topics[0].partitions)

    def described(self) -> Any:
        """Its part of a response to ShareGroupDescribe."""
        (group,) = self.connection.call(ShareGroupDescribeRequest(group_ids=[self.group_id]), 1).groups
        return group

    def state(self) -> tuple[str, int, int]:
        """State, group epoch and assignment epoch, as ShareGroupDescribe tells them."""
        group = self.described()
        return group.group_state, group.group_epoch, group.assignment_epoch

    def listed(self, version: int = 5, **filters: list[str]) -> tuple[str, ...] | None:
        """Protocol type, state and type in ListGroups; None where it is not listed."""
        found = self.connection.call(ListGroupsRequest(**filters), version).groups
        rows = [(g.protocol_type, g.group_state, g.group_type) for g in found if g.group_id == self.group_id]
        return rows[0] if rows else None


class ShareMember:
    """A member of a share group."""

    def __init__(self, group: ShareGroup, member_id: str, always: Mapping[str, Any]) -> None:
        self.group = group
        self.member_id = member_id
        self._always = always

    def heartbeat(self, epoch: int, **fields: Any) -> Any:
        """One request; the whole response, once the coordinator is there."""
        request = ShareGroupHeartbeatRequest(
            group_id=self.group.group_id,
            member_id=self.member_id,
            member_epoch=epoch,
            **{**self._always, **fields},
        )

        def answered() -> Any:
            response = self.group.connection.call(request, 1)
            return None if response.error_code in NOT_YET else response

        return eventually(answered)

    def beat(self, epoch: int, *topics: str, **fields: Any) -> Beat | ErrorCode:
        """One request, with topics to subscribe to if there are any, and what there is to see in its response."""
        if topics:
            fields["subscribed_topic_names"] = list(topics)
        response = self.heartbeat(epoch, **fields)
        if response.error_code != ErrorCode.NONE:
            return ErrorCode(response.error_code)
        given = response.assignment
        return Beat(response.member_epoch, None if given is None else self.group.names.to_names(given.topic_partitions))

    def join(self, *topics: str) -> Beat | ErrorCode:
        """The first heartbeat."""
        return self.beat(0, *topics)

    def join_all(self, *topics: str) -> Beat:
        """Join, and stay until all partitions of these topics are assigned; where that has led to."""
        numbers = {name: list(range(self.group.partition_count(name))) for name in topics}
        return self.until(self.joined(*topics), numbers)

    def joined(self, *topics: str) -> Beat:
        """The response to the first heartbeat, which must succeed."""
        found = self.join(*topics)
        assert isinstance(found, Beat), found
        return found

    def until(self, now: Beat, assigned: Mapping[str, Sequence[int]]) -> Beat:
        """Heartbeats, until exactly these partitions are assigned; where that has led to."""
        state = [now]

        def is_there() -> bool:
            found = self.beat(state[0].epoch)
            assert isinstance(found, Beat), found
            state[0] = Beat(found.epoch, state[0].assigned if found.assigned is None else found.assigned)
            return state[0].assigned == assigned

        if now.assigned != assigned:
            eventually(is_there)
        return state[0]


class ShareConsumer:
    """The session of a member with the leader of a topic's partitions; ``epoch`` is that of its next request."""

    def __init__(self, group: ShareGroup, member_id: str, topic: str, connection: Connection) -> None:
        self.group = group
        self.member_id = member_id
        self.topic = topic
        self.topic_id = group.names.id_of(topic)
        self.connection = connection
        self.epoch = 0

    # ShareFetch

    def fetch_request(
        self,
        *acks: Ack,
        add: Iterable[int] | None = None,
        forget: Sequence[int] = (),
        epoch: int | None = None,
        **fields: Any,
    ) -> ShareFetchRequest:
        """A fetch that adds partitions to the session (by default partition 0 to a new one), and acknowledges in partition 0."""
        epoch = self.epoch if epoch is None else epoch
        added = [0] if add is None and epoch == 0 else list(add or ())
        partitions = [
            share_fetch.FetchPartition(
                partition_index=partition,
                acknowledgement_batches=[
                    share_fetch.AcknowledgementBatch(
                        first_offset=ack.first, last_offset=ack.last, acknowledge_types=list(ack.types)
                    )
                    for ack in (acks if partition == 0 else ())
                ],
            )
            for partition in sorted({*added, *([0] if acks else [])})
        ]
        topics = [share_fetch.FetchTopic(topic_id=self.topic_id, partitions=partitions)] if partitions else []
        forgotten = [share_fetch.ForgottenTopic(topic_id=self.topic_id, partitions=list(forget))] if forget else []
        usual = {
            "group_id": self.group.group_id,
            "member_id": self.member_id,
            "max_wait_ms": UNTIL_THERE_ARE_MS,
            "min_bytes": 1,
            "max_bytes": 1 << 25,
            "max_records": 1000,
            "batch_size": 1000,
            "topics": topics,
            "forgotten_topics_data": forgotten,
        }
        return ShareFetchRequest(share_session_epoch=epoch, **{**usual, **fields})

    def raw_fetch(self, *acks: Ack, version: int = FETCH_VERSION, **how: Any) -> Any:
        """One request; the whole response."""
        request = self.fetch_request(*acks, **how)
        return self._seen(request.share_session_epoch, self.connection.call(request, version))

    def fetch(self, *acks: Ack, **how: Any) -> Fetched | ErrorCode:
        """What a fetch says of partition 0, which is nothing where the response does not name it; or the request's error."""
        return self.fetch_all(*acks, **how).get(0, NOTHING)

    def fetch_all(self, *acks: Ack, **how: Any) -> dict[int, Fetched | ErrorCode]:
        """What a fetch says of each partition of its response; for 0 the error of the request, if it has one."""
        response = self.raw_fetch(*acks, **how)
        if response.error_code != ErrorCode.NONE:
            return {0: ErrorCode(response.error_code)}
        return {each.partition_index: fetched(each) for topic in response.responses for each in topic.partitions}

    def look(self, *acks: Ack, **how: Any) -> list[tuple[int, int, int]]:
        """Fetch from partition 0, and acknowledge, without an error; what was acquired, which may be nothing after a moment."""
        found = self.fetch(*acks, **{"max_wait_ms": BRIEFLY_MS, **how})
        assert isinstance(found, Fetched), found
        assert (found.error, found.acknowledged) == (ErrorCode.NONE, ErrorCode.NONE), found
        return found.acquired

    def take(self, *acks: Ack, **how: Any) -> list[tuple[int, int, int]]:
        """As ``look``, until there is something; a fetch with an epoch is sent once."""
        if "epoch" in how:
            return self.look(*acks, max_wait_ms=UNTIL_THERE_ARE_MS, **how)
        return self.look(*acks, **how) or eventually(lambda: self.look(**how))

    def gather(self, count: int, **how: Any) -> dict[int, int]:
        """Fetch until so many records are acquired; their delivery counts by their offsets."""
        found: dict[int, int] = {}
        while len(found) < count:
            for first, last, delivery_count in self.take(**how):
                assert found.keys().isdisjoint(range(first, last + 1)), (found, first, last)
                found |= dict.fromkeys(range(first, last + 1), delivery_count)
        return found

    def send_fetch(self, *acks: Ack, **how: Any) -> None:
        """Send a fetch; ``receive_fetch`` takes the response."""
        request = self.fetch_request(*acks, **how)
        self.connection.send(request, FETCH_VERSION)

    def receive_fetch(self) -> Fetched | ErrorCode:
        """What the response says of partition 0."""
        response = self._seen(self.epoch, self.connection.receive())
        if response.error_code != ErrorCode.NONE:
            return ErrorCode(response.error_code)
        found = [each for topic in response.responses for each in topic.partitions]
        return fetched(found[0]) if found else NOTHING

    # ShareAcknowledge

    def acknowledge_request(self, *acks: Ack, epoch: int | None = None, **fields: Any) -> ShareAcknowledgeRequest:
        """A request for partition 0."""
        batches = [
            share_acknowledge.AcknowledgementBatch(
                first_offset=ack.first, last_offset=ack.last, acknowledge_types=list(ack.types)
            )
            for ack in acks
        ]
        partition = share_acknowledge.AcknowledgePartition(partition_index=0, acknowledgement_batches=batches)
        topic = share_acknowledge.AcknowledgeTopic(topic_id=self.topic_id, partitions=[partition])
        usual = {
            "group_id": self.group.group_id,
            "member_id": self.member_id,
            "topics": [topic] if acks else [],
        }
        return ShareAcknowledgeRequest(
            share_session_epoch=self.epoch if epoch is None else epoch, **{**usual, **fields}
        )

    def raw_acknowledge(self, *acks: Ack, version: int = ACKNOWLEDGE_VERSION, **how: Any) -> Any:
        """One request; the whole response."""
        request = self.acknowledge_request(*acks, **how)
        return self._seen(request.share_session_epoch, self.connection.call(request, version))

    def acknowledge(self, *acks: Ack, **how: Any) -> ErrorCode:
        """The error of the request, or else the one of partition 0."""
        response = self.raw_acknowledge(*acks, **how)
        parts = [each for topic in response.responses for each in topic.partitions]
        return ErrorCode(response.error_code or (parts[0].error_code if parts else ErrorCode.NONE))

    def close(self) -> ErrorCode:
        """End the session."""
        return self.acknowledge(epoch=FINAL_EPOCH)

    def _seen(self, epoch: int, response: Any) -> Any:
        """A request that got into the session counts, whatever it says of partitions."""
        if response.error_code == ErrorCode.NONE:
            self.epoch = 0 if epoch == FINAL_EPOCH else epoch + 1
        return response
