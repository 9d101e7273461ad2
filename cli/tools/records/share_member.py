"""A member of a share group (KIP-932): what it is assigned, and its share sessions with the leaders of those partitions.

Source: KIP-932; Kafka's ShareConsumerImpl.

- Heartbeats go between polls, so a member that does not poll for the group's session time-out has to join anew.
- What the caller says of records (``acknowledge``) goes with the next request to their leader, or with the last one.
- A session ends with its connection, and its records are the group's again. What was said of them and not stored is counted in
  ``unacknowledged``: they are delivered again.
- ``close`` ends the sessions, which releases the records that nothing was said of, and leaves the group.
"""

from __future__ import annotations

import base64
import dataclasses
import time
import uuid
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any, NamedTuple

import kafka.errors

from ....base.errors import ErrorCode, KafkaError, known_code
from ....wire.messages import share_acknowledge, share_fetch
from ....wire.messages.share_acknowledge import ShareAcknowledgeRequest, ShareAcknowledgeResponse
from ....wire.messages.share_fetch import ShareFetchRequest, ShareFetchResponse
from ....wire.messages.share_group_heartbeat import ShareGroupHeartbeatRequest, ShareGroupHeartbeatResponse
from ....wire.record_codec import Record
from ....wire.records import RecordBatch, iter_complete_batches
from ..client import UNANSWERED, Admin
from ..cluster_view import find_topics
from ..running import ToolError, refusal
from ..wire_request import WireRequest

GAP, ACCEPT = 0, 1
"""Types of an acknowledgement: there is no record at the offset; the record was processed."""

_HEARTBEAT_VERSIONS = 1, 1
_SESSION_VERSIONS = 1, 2
_WAIT_MS = 200
_MAX_RECORDS = 500
_MAX_BYTES = 32 << 20
_RECORD_LIMIT = 1
_PAUSE_S = 0.5
"""Between two requests for the same, where the first was in vain."""
_COORDINATOR_MOVES = (
    ErrorCode.COORDINATOR_NOT_AVAILABLE,
    ErrorCode.COORDINATOR_LOAD_IN_PROGRESS,
    ErrorCode.NOT_COORDINATOR,
)
_EXPELLED = (ErrorCode.UNKNOWN_MEMBER_ID, ErrorCode.FENCED_MEMBER_EPOCH)
_OTHER_GROUP = (ErrorCode.INCONSISTENT_GROUP_PROTOCOL, ErrorCode.GROUP_ID_NOT_FOUND)
_SESSION_LOST = (ErrorCode.SHARE_SESSION_NOT_FOUND, ErrorCode.INVALID_SHARE_SESSION_EPOCH)
_REFUSED = (
    ErrorCode.TOPIC_AUTHORIZATION_FAILED,
    ErrorCode.GROUP_AUTHORIZATION_FAILED,
    ErrorCode.CLUSTER_AUTHORIZATION_FAILED,
    ErrorCode.CORRUPT_MESSAGE,
)
NOT_SERVED = (
    "the cluster serves no share groups: they take a quorum with share.version 1 "
    "('ottla cluster upgrade --feature share.version=1' raises it)"
)


class SharePartitionId(NamedTuple):
    """A partition as the share requests name it."""

    topic_id: bytes
    number: int


@dataclasses.dataclass(slots=True)
class DeliveredRecord:
    """A record that was delivered to this member, with what a ConsumerRecord of kafka-python has."""

    where: SharePartitionId
    topic: str
    partition: int
    offset: int
    timestamp: int
    timestamp_type: int
    key: bytes | None
    value: bytes | None
    headers: Sequence[tuple[str, bytes | None]]
    leader_epoch: int
    delivery_count: int
    """1 for the first delivery."""


class _LeaderSession:
    """A share session with one leader."""

    def __init__(self) -> None:
        self.epoch = 0
        self.partitions: set[SharePartitionId] = set()
        self.said: dict[SharePartitionId, dict[int, int]] = {}
        """Types by offset, as the next request is to tell them."""
        self.pause_until = 0.0

    def begin_anew(self) -> int:
        """The session is over. Returns how many records something was said of in vain."""
        lost = sum(map(len, self.said.values()))
        self.epoch, self.partitions, self.said = 0, set(), {}
        return lost


class ShareMember:
    """See the module. ``poll`` joins the group."""

    def __init__(self, admin: Admin, group_id: str, topics: Sequence[str]) -> None:
        """Raises ToolError for a topic that is not there."""
        self.unacknowledged = 0
        """How many records the group has not taken for acknowledged, though it was said."""
        self._admin = admin
        self._group_id = group_id
        self._member_id = base64.urlsafe_b64encode(uuid.uuid4().bytes).decode().rstrip("=")
        self._topics = list(dict.fromkeys(topics))
        self._epoch = 0
        self._next_heartbeat = 0.0
        self._assigned: set[SharePartitionId] = set()
        self._names: dict[bytes, str] = {}
        self._leaders: dict[SharePartitionId, int] = {}
        self._is_known = False
        """Whether nothing tells against ``_leaders``."""
        self._next_look = 0.0
        self._sessions: dict[int, _LeaderSession] = {}
        self._find_leaders()

    def poll(self, max_records: int | None = None) -> list[DeliveredRecord]:
        """The records that the leaders have for this member, after a fraction of a second: none, or some of each leader.

        With ``max_records`` the leaders are asked one after the other for no more than that. Raises ToolError, KafkaError.
        """
        if time.monotonic() >= self._next_heartbeat:
            self._heartbeat()
        if not (self._is_known and self._assigned <= self._leaders.keys()) and time.monotonic() >= self._next_look:
            self._find_leaders()
        wanted = self._wanted()
        if not wanted:
            time.sleep(_PAUSE_S / 2)
            return []
        if max_records is None:
            return self._fetch(wanted, _MAX_RECORDS, _WAIT_MS)
        found: list[DeliveredRecord] = []
        for leader, partitions in wanted.items():
            left = max_records - len(found)
            if left > 0:
                found += self._fetch({leader: partitions}, min(left, _MAX_RECORDS), _WAIT_MS // len(wanted))
        return found

    def acknowledge(self, records: Iterable[DeliveredRecord]) -> None:
        """These records are processed."""
        for record in records:
            self._say(record.where, record.offset, ACCEPT)

    def close(self) -> None:
        """Tell what is said of records, release the others, and leave the group. Raises ToolError, KafkaError."""
        requests = {
            leader: ShareAcknowledgeRequest(
                group_id=self._group_id,
                member_id=self._member_id,
                share_session_epoch=-1,
                topics=_acknowledged(session.said),
            )
            for leader, session in self._sessions.items()
            if session.epoch
        }
        answers = self._admin.ask_each({leader: WireRequest(r, *_SESSION_VERSIONS) for leader, r in requests.items()})
        for leader, answer in answers.items():
            self._see_last(self._sessions[leader], answer)
        self._sessions.clear()
        if self._epoch:
            self._epoch = -1
            self._heartbeat()

    # --- the group ----------------------------------------------------------------------------------------------------

    def _heartbeat(self) -> None:
        """One heartbeat, or a first one. Raises ToolError."""
        request = ShareGroupHeartbeatRequest(
            group_id=self._group_id,
            member_id=self._member_id,
            member_epoch=self._epoch,
            subscribed_topic_names=None if self._epoch else self._topics,
        )
        self._next_heartbeat = time.monotonic() + _PAUSE_S
        try:
            coordinator = self._admin.coordinator(self._group_id)
            response: ShareGroupHeartbeatResponse = self._admin.ask(
                WireRequest(request, *_HEARTBEAT_VERSIONS), coordinator
            )
        except kafka.errors.IncompatibleBrokerVersion:
            raise ToolError(NOT_SERVED) from None
        except (*UNANSWERED, kafka.errors.CoordinatorNotAvailableError, kafka.errors.NotCoordinatorError):
            return
        code = known_code(response.error_code)
        if self._epoch < 0 or code in _COORDINATOR_MOVES:
            return
        if code in _EXPELLED:
            self._epoch, self._next_heartbeat = 0, 0.0
            self._assigned.clear()
            return
        if code is not ErrorCode.NONE:
            raise self._not_taken(code, response.error_message)
        self._epoch = response.member_epoch
        if response.assignment is not None:
            self._assigned = {
                SharePartitionId(topic.topic_id, number)
                for topic in response.assignment.topic_partitions
                for number in topic.partitions
            }
        # Who has nothing is assigned something soon.
        interval = response.heartbeat_interval_ms / 1000 if self._assigned else _PAUSE_S
        self._next_heartbeat = time.monotonic() + interval

    def _not_taken(self, code: ErrorCode, message: str | None) -> ToolError:
        if code is ErrorCode.UNSUPPORTED_VERSION:
            return ToolError(f"{NOT_SERVED} (UNSUPPORTED_VERSION)")
        if code in _OTHER_GROUP:
            return ToolError(
                f"{self._group_id} is a group of another protocol; --group reads as its member ({code.name})"
            )
        return ToolError(refusal(code, message))

    def _find_leaders(self) -> None:
        """Learn the ids of the topics, and who leads their partitions. Raises ToolError for a topic that is not there."""
        self._next_look = time.monotonic() + _PAUSE_S
        self._leaders, self._is_known = {}, True
        for topic in find_topics(self._admin, self._topics):
            topic_id = base64.urlsafe_b64decode(topic.topic_id + "==")
            self._names[topic_id] = topic.name
            for partition in topic.partitions:
                if partition.leader is not None:
                    self._leaders[SharePartitionId(topic_id, partition.number)] = partition.leader

    def _wanted(self) -> dict[int, set[SharePartitionId]]:
        """What to fetch from each leader, and leaders that are to learn of something else."""
        wanted: dict[int, set[SharePartitionId]] = {}
        for where in self._assigned:
            if where in self._leaders:
                wanted.setdefault(self._leaders[where], set()).add(where)
        for leader, session in self._sessions.items():
            if session.said or session.partitions:
                wanted.setdefault(leader, set())
        now = time.monotonic()
        return {
            leader: partitions
            for leader, partitions in wanted.items()
            if now >= self._sessions.setdefault(leader, _LeaderSession()).pause_until
        }

    # --- sessions -----------------------------------------------------------------------------------------------------

    def _fetch(
        self, wanted: Mapping[int, set[SharePartitionId]], max_records: int, wait_ms: int
    ) -> list[DeliveredRecord]:
        """Ask several leaders at the same time. Raises ToolError, KafkaError."""
        requests = {
            leader: WireRequest(self._request(leader, partitions, max_records, wait_ms), *_SESSION_VERSIONS)
            for leader, partitions in wanted.items()
        }
        found: list[DeliveredRecord] = []
        for leader, answer in self._admin.ask_each(requests).items():
            session = self._sessions[leader]
            if isinstance(answer, kafka.errors.IncompatibleBrokerVersion):
                raise ToolError(NOT_SERVED)
            if isinstance(answer, Exception):
                self._lose(session)
                continue
            try:
                found += self._see(session, answer, wanted[leader])
            except KafkaError as error:
                raise ToolError(refusal(error.code, error.message)) from None
        return found

    def _request(
        self, leader: int, partitions: set[SharePartitionId], max_records: int, wait_ms: int
    ) -> ShareFetchRequest:
        session = self._sessions[leader]
        return ShareFetchRequest(
            group_id=self._group_id,
            member_id=self._member_id,
            share_session_epoch=session.epoch,
            max_wait_ms=wait_ms,
            min_bytes=1,
            max_bytes=_MAX_BYTES,
            max_records=max_records,
            batch_size=max_records,
            share_acquire_mode=_RECORD_LIMIT,
            topics=_fetched(partitions - session.partitions, session.said),
            forgotten_topics_data=[
                share_fetch.ForgottenTopic(topic_id=topic_id, partitions=numbers)
                for topic_id, numbers in _by_topic(session.partitions - partitions).items()
            ],
        )

    def _see(
        self, session: _LeaderSession, response: ShareFetchResponse, partitions: set[SharePartitionId]
    ) -> Iterator[DeliveredRecord]:
        code = known_code(response.error_code)
        if code in _REFUSED or code is ErrorCode.UNSUPPORTED_VERSION:
            raise self._not_taken(code, response.error_message)
        if code is not ErrorCode.NONE:
            self._lose(session, pause_s=0.0 if code in _SESSION_LOST else _PAUSE_S)
            return
        said, session.said = session.said, {}
        session.partitions = partitions
        session.epoch = session.epoch % 0x7FFFFFFF + 1
        for topic in response.responses:
            for data in topic.partitions:
                where = SharePartitionId(topic.topic_id, data.partition_index)
                if data.acknowledge_error_code:
                    self.unacknowledged += len(said.get(where, ()))
                if data.error_code:
                    self._see_error(session, where, data)
                elif data.records:
                    yield from self._records(where, data)

    def _see_error(self, session: _LeaderSession, where: SharePartitionId, data: Any) -> None:
        code = known_code(data.error_code)
        if code in _REFUSED:
            raise ToolError(f"{self._names.get(where.topic_id)}-{where.number}: {refusal(code, data.error_message)}")
        session.partitions = session.partitions - {where}
        session.pause_until = time.monotonic() + _PAUSE_S
        self._leaders.pop(where, None)

    def _records(self, where: SharePartitionId, data: Any) -> Iterator[DeliveredRecord]:
        """The records of a partition that were acquired. Offsets without a record are acknowledged as gaps."""
        acquired = {
            offset: each.delivery_count
            for each in data.acquired_records
            for offset in range(each.first_offset, each.last_offset + 1)
        }
        for batch in iter_complete_batches(data.records):
            for record in () if batch.is_control else batch.records():
                count = acquired.pop(record.offset, None)
                if count is not None:
                    yield self._delivered(where, batch, record, count)
        for offset in acquired:
            self._say(where, offset, GAP)

    def _delivered(self, where: SharePartitionId, batch: RecordBatch, record: Record, count: int) -> DeliveredRecord:
        return DeliveredRecord(
            where,
            self._names[where.topic_id],
            where.number,
            record.offset,
            record.timestamp,
            batch.timestamp_type,
            record.key,
            record.value,
            record.headers,
            batch.partition_leader_epoch,
            count,
        )

    def _say(self, where: SharePartitionId, offset: int, kind: int) -> None:
        for session in self._sessions.values():
            if where in session.partitions:
                session.said.setdefault(where, {})[offset] = kind
                return
        self.unacknowledged += kind == ACCEPT

    def _lose(self, session: _LeaderSession, pause_s: float = _PAUSE_S) -> None:
        """The session is over, or its leader does not answer: begin a new one, with the leaders as they are then."""
        self.unacknowledged += session.begin_anew()
        session.pause_until = time.monotonic() + pause_s
        self._is_known = False

    def _see_last(self, session: _LeaderSession, answer: ShareAcknowledgeResponse | Exception) -> None:
        if isinstance(answer, Exception) or answer.error_code:
            self.unacknowledged += session.begin_anew()
            return
        for topic in answer.responses:
            for data in topic.partitions:
                if data.error_code:
                    self.unacknowledged += len(
                        session.said.get(SharePartitionId(topic.topic_id, data.partition_index), ())
                    )


def _by_topic(partitions: Iterable[SharePartitionId]) -> dict[bytes, list[int]]:
    found: dict[bytes, list[int]] = {}
    for topic_id, number in sorted(partitions):
        found.setdefault(topic_id, []).append(number)
    return found


def _spans(said: Mapping[int, int]) -> Iterator[tuple[int, int, int]]:
    """First and last offset of neighbours of which the same is said, and what."""
    first = last = kind = -1
    for offset, this in sorted(said.items()):
        if first >= 0 and (offset, this) == (last + 1, kind):
            last = offset
            continue
        if first >= 0:
            yield first, last, kind
        first, last, kind = offset, offset, this
    if first >= 0:
        yield first, last, kind


def _fetched(
    added: set[SharePartitionId], said: Mapping[SharePartitionId, Mapping[int, int]]
) -> list[share_fetch.FetchTopic]:
    """The part of a ShareFetch with the partitions that are new to the session, and acknowledgements."""
    return [
        share_fetch.FetchTopic(
            topic_id=topic_id,
            partitions=[
                share_fetch.FetchPartition(
                    partition_index=number,
                    acknowledgement_batches=[
                        share_fetch.AcknowledgementBatch(first_offset=first, last_offset=last, acknowledge_types=[kind])
                        for first, last, kind in _spans(said.get(SharePartitionId(topic_id, number), {}))
                    ],
                )
                for number in numbers
            ],
        )
        for topic_id, numbers in _by_topic(added | said.keys()).items()
    ]


def _acknowledged(said: Mapping[SharePartitionId, Mapping[int, int]]) -> list[share_acknowledge.AcknowledgeTopic]:
    """The part of a ShareAcknowledge with acknowledgements."""
    return [
        share_acknowledge.AcknowledgeTopic(
            topic_id=topic_id,
            partitions=[
                share_acknowledge.AcknowledgePartition(
                    partition_index=number,
                    acknowledgement_batches=[
                        share_acknowledge.AcknowledgementBatch(
                            first_offset=first, last_offset=last, acknowledge_types=[kind]
                        )
                        for first, last, kind in _spans(said[SharePartitionId(topic_id, number)])
                    ],
                )
                for number in numbers
            ],
        )
        for topic_id, numbers in _by_topic(said).items()
    ]
