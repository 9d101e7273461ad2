"""The interface of a coordinator to its internal topic, and the mapping of keys to the partitions of that topic.

A coordinator is a replicated state machine whose records live in a topic of its own (``__consumer_offsets``,
``__transaction_state``, ``__share_group_state``); a key belongs to the partition it hashes to, and the leader of that partition
is its coordinator.
``coordinator_partition_log`` implements the log; ``coordinator_shards`` has the state of the partitions led here.
"""

from __future__ import annotations

from collections.abc import AsyncIterator, Awaitable, Callable
from typing import NamedTuple, Protocol

from ..base.errors import ErrorCode, KafkaError
from ..wire.messages.write_txn_markers import WritableTxnMarker

Flush = Callable[[], Awaitable[None]]
"""Sends what the connection has answered so far; called before any wait."""


class CoordinatorTime(NamedTuple):
    """Now: wall time for records and retention, and a clock that never goes back for timers. Milliseconds."""

    wall_ms: int
    monotonic_ms: float


class CoordinatorLog(Protocol):
    """The partitions of a coordinator's topic that this broker leads."""

    def partition_count(self) -> int | None:
        """How many partitions the topic has; None while it does not exist."""
        ...

    def append(self, partition: int, batch: bytearray) -> int:
        """Append one batch; the offset after it. KafkaError when it was not written."""
        ...

    def append_end_marker(self, partition: int, marker: WritableTxnMarker) -> int:
        """Append the end marker of a transaction; the offset after it. KafkaError when it was not written."""
        ...

    def high_watermark(self, partition: int) -> int:
        """The offset up to which records are committed; KafkaError when this broker does not lead the partition."""
        ...

    def is_replicated(self, partition: int) -> bool:
        """Whether other brokers have replicas; KafkaError when this broker does not lead the partition."""
        ...

    async def wait_committed(self, partition: int, offset: int) -> None:
        """Return when the high watermark is at ``offset`` or above; KafkaError when leadership is lost."""
        ...

    def batches(self, partition: int) -> AsyncIterator[bytes]:
        """Whole batches, in chunks of any number, from the log's start to the end it has when this is called."""
        ...


_SEEN_BY_CLIENTS = {
    ErrorCode.UNKNOWN_TOPIC_OR_PARTITION: ErrorCode.COORDINATOR_NOT_AVAILABLE,
    ErrorCode.NOT_ENOUGH_REPLICAS: ErrorCode.COORDINATOR_NOT_AVAILABLE,
    ErrorCode.NOT_ENOUGH_REPLICAS_AFTER_APPEND: ErrorCode.COORDINATOR_NOT_AVAILABLE,
    ErrorCode.REQUEST_TIMED_OUT: ErrorCode.COORDINATOR_NOT_AVAILABLE,
    ErrorCode.NOT_LEADER_OR_FOLLOWER: ErrorCode.NOT_COORDINATOR,
    ErrorCode.KAFKA_STORAGE_ERROR: ErrorCode.NOT_COORDINATOR,
    ErrorCode.MESSAGE_TOO_LARGE: ErrorCode.UNKNOWN_SERVER_ERROR,
    ErrorCode.RECORD_LIST_TOO_LARGE: ErrorCode.UNKNOWN_SERVER_ERROR,
}


def as_seen_by_clients(error: KafkaError) -> KafkaError:
    """What a client is told when the log refused: it did not produce, so errors of producing mean nothing to it."""
    code = _SEEN_BY_CLIENTS.get(error.code)
    return error if code is None else KafkaError(code, error.message)


def java_hash(text: str) -> int:
    """``String.hashCode`` of Java: over UTF-16 units, an int32."""
    value = 0
    for code in map(ord, text):
        # Without a codec: Python loads it when it is first used, which fails where no descriptor is left.
        units = (code,) if code < 0x10000 else (0xD7C0 + (code >> 10), 0xDC00 | code & 0x3FF)
        for unit in units:
            value = (31 * value + unit) & 0xFFFFFFFF
    return value - (1 << 32) if value >= 1 << 31 else value


def partition_of(key: str, partition_count: int) -> int:
    """The partition of a coordinator's topic that ``key`` belongs to, as Kafka computes it."""
    value = java_hash(key)
    return 0 if value == -(1 << 31) else abs(value) % partition_count
