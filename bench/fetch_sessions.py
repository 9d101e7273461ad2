"""Fetch sessions (KIP-227) of 1 to 1,000 partitions, one of which has a new record at each fetch.

The record is written with acks=1 just before, over another connection. What the broker's CPU is used for cannot be told apart
while both go on, so that the produce alone is measured as well, just before the session begins: the difference is the fetch.
"""

from __future__ import annotations

import itertools
import struct
import time
from collections.abc import Iterator, Mapping
from types import TracebackType
from typing import Any

from ottla.compat_tests.wire_client import CLIENT_ID, Connection, topic_metadata
from ottla.wire.api_keys import ApiKey
from ottla.wire.codec import decode, encode_bytes
from ottla.wire.headers import decode_response_header, encode_request_header
from ottla.wire.messages.fetch import FetchPartition, FetchRequest, FetchResponse, FetchTopic

from .brokers import RunningBroker
from .load_generator import batch, produce_request
from .raw_client import produce_error
from .rows import Figure, Load, Topic

_ROUNDS, _LEAST = 2_000, 100
_VERSION = 13
_LEAVE = -1
"""The epoch of the request that ends a session."""
_LIMIT_S = 60.0
_MAX_WAIT_MS = 500
_PARTITION_MAX_BYTES = 1 << 20


class _Writer:
    """Writes one record at a time, to one partition after the other; ``ends`` is where each of them ends."""

    def __init__(self, bootstrap: str, topic: str, partitions: int) -> None:
        one = batch(1)
        self._frames = [produce_request(topic, [partition], one) for partition in range(partitions)]
        self._turns = itertools.cycle(range(partitions))
        self._connection = Connection(bootstrap, _LIMIT_S)
        self.ends = dict.fromkeys(range(partitions), 0)

    def write(self) -> int:
        """Write a record; the partition that has got it."""
        partition = next(self._turns)
        self._connection.socket.sendall(self._frames[partition])
        if error := produce_error(self._connection.receive_frame()):
            raise RuntimeError(f"Produce returned error {error}")
        self.ends[partition] += 1
        return partition

    def __enter__(self) -> _Writer:
        return self

    def __exit__(self, *_: object) -> None:
        self._connection.close()


class _Session:
    """A fetch session of all partitions of a topic, which goes on from ``ends``; it ends with the block."""

    def __init__(self, bootstrap: str, topic: str, ends: Mapping[int, int]) -> None:
        self._connection = Connection(bootstrap, _LIMIT_S)
        self._topic_id = topic_metadata(self._connection, topic).topic_id
        self._begins_at = dict(ends)
        self._id = self._epoch = 0

    def __enter__(self) -> _Session:
        answer = self._decoded(self._answer(self._frame(self._begins_at, max_wait_ms=0)))
        if answer.session_id == 0:
            raise RuntimeError("the broker has begun no session")
        self._id, self._epoch = answer.session_id, 1
        self._moved: dict[int, int] = {}
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if kind is None:
            self._epoch = _LEAVE
            self._decoded(self._answer(self._frame({}, max_wait_ms=0)))
        self._connection.close()

    def fetch(self, partition: int, offset: int) -> float:
        """Get the one record that is new, which is at this offset. How many seconds it took from request to answer.

        Raises RuntimeError when anything else comes.
        """
        frame = self._frame(self._moved, _MAX_WAIT_MS)
        began = time.perf_counter()
        body = self._answer(frame)
        seconds = time.perf_counter() - began
        found = {
            part.partition_index: _first_offset(part.records)
            for topic in self._decoded(body).responses
            for part in topic.partitions
            if part.records
        }
        if found != {partition: offset}:
            raise RuntimeError(f"partition {partition} has a record at {offset}, and these came: {found}")
        self._epoch += 1
        self._moved = {partition: offset + 1}
        return seconds

    def _frame(self, partitions: Mapping[int, int], max_wait_ms: int) -> bytes:
        """A request that tells from where on these partitions are wanted; those that it does not name stay as they are."""
        wanted = [
            FetchPartition(partition=partition, fetch_offset=offset, partition_max_bytes=_PARTITION_MAX_BYTES)
            for partition, offset in partitions.items()
        ]
        request = FetchRequest(
            max_wait_ms=max_wait_ms,
            min_bytes=1,
            session_id=self._id,
            session_epoch=self._epoch,
            topics=[FetchTopic(topic_id=self._topic_id, partitions=wanted)] if wanted else [],
        )
        header = encode_request_header(ApiKey.FETCH, _VERSION, self._epoch, CLIENT_ID)
        return header + encode_bytes(request, _VERSION)

    def _answer(self, frame: bytes) -> bytes:
        self._connection.send_frame(frame)
        return self._connection.receive_frame()

    def _decoded(self, frame: bytes) -> FetchResponse:
        """Raises RuntimeError for an error."""
        _, body = decode_response_header(frame, ApiKey.FETCH, _VERSION)
        answer = decode(FetchResponse, _VERSION, memoryview(frame)[body:])
        errors = [part.error_code for topic in answer.responses for part in topic.partitions if part.error_code]
        if answer.error_code or errors:
            raise RuntimeError(f"Fetch returned error {answer.error_code or errors[0]}")
        return answer


def _first_offset(records: Any) -> int:
    """That of the first batch."""
    (offset,) = struct.unpack_from(">q", records)
    return int(offset)


def _session_load(partitions: int) -> Load:
    plural = "" if partitions == 1 else "s"
    name = f"fetch session, {partitions:,} partition{plural}"

    def run(broker: RunningBroker, scale: float) -> Iterator[Figure]:
        rounds = max(_LEAST, int(_ROUNDS * scale))
        with Topic(broker, partitions) as topic, _Writer(broker.bootstrap, topic, partitions) as writer:
            for _ in range(max(rounds, partitions)):  # the first record of a partition costs more
                writer.write()
            with broker.measured(f"{name}, produce alone") as alone:
                for _ in range(rounds):
                    writer.write()
            with _Session(broker.bootstrap, topic, writer.ends) as session:
                for _ in range(rounds):
                    _round(writer, session)
                with broker.measured(name) as span:
                    times = sorted(_round(writer, session) for _ in range(rounds))
        yield Figure(name, "CPU µs/fetch and its produce", span.broker_cpu_s / rounds * 1e6, None, span.noise)
        yield Figure(name, "CPU µs/produce alone", alone.broker_cpu_s / rounds * 1e6, None, alone.noise)
        yield Figure(name, "p50 µs", times[rounds // 2] * 1e6, None, span.noise)
        yield Figure(name, "p99 µs", times[rounds * 99 // 100] * 1e6, None, span.noise)

    return Load(name, run, warms_up=True)


def _round(writer: _Writer, session: _Session) -> float:
    """One record written and fetched; how many seconds the fetch took."""
    partition = writer.write()
    return session.fetch(partition, writer.ends[partition] - 1)


SESSIONS = [_session_load(partitions) for partitions in (1, 10, 100, 1000)]
