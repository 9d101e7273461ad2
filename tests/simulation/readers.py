"""Consumers, which fetch and check batches as Kafka's consumer does, including CRCs and aborted transactions."""

from __future__ import annotations

import dataclasses
from collections.abc import Iterable
from typing import Any

import trio

from ottla.base.errors import ErrorCode, KafkaError
from ottla.wire.batch_layout import LENGTH_PREFIX_SIZE
from ottla.wire.messages.fetch import FetchPartition, FetchRequest, FetchTopic
from ottla.wire.messages.list_offsets import ListOffsetsPartition, ListOffsetsRequest, ListOffsetsTopic
from ottla.wire.records import Record, RecordBatch, iter_complete_batches

from .clients import PARTITIONS, Actor
from .history import History, Sent, TopicPartition
from .world import World

LATEST, EARLIEST = -1, -2
_ABORT_MARKER = b"\0\0\0\0"


@dataclasses.dataclass(frozen=True)
class Stored:
    """A record that was read. ``sent`` is the record that was sent, None if these bytes were never sent."""

    offset: int
    record: Record
    sent: Sent | None


@dataclasses.dataclass
class Piece:
    """A Fetch response: records for the reader, and the next offset. ``is_damaged``: it ends before a batch with a wrong CRC."""

    error: ErrorCode
    records: list[Stored]
    next_offset: int
    log_start_offset: int
    high_watermark: int
    is_damaged: bool = False
    control: list[Stored] = dataclasses.field(default_factory=list)


class Reader(Actor):
    """Reads every partition from its start, repeatedly, with one isolation level."""

    def __init__(self, world: World, history: History, name: str, *, committed: bool) -> None:
        super().__init__(world, history, name)
        self.committed = committed
        self.seen: dict[tuple[TopicPartition, int], bytes] = {}
        """The name of every record that was read, by its place."""
        self.damaged = 0
        self.control: list[Stored] = []
        self._latest: dict[TopicPartition, int] = {}

    async def run(self, until: trio.Event) -> None:
        positions = dict.fromkeys(PARTITIONS, 0)
        while not until.is_set():
            await trio.sleep(self.rng.expovariate(1 / 0.6))
            for partition in PARTITIONS:
                piece = await self.fetch(
                    partition,
                    positions[partition],
                    max_bytes=self.rng.choice((1, 300, 1500, 1 << 20)),
                    max_wait_ms=self.rng.choice((0, 0, 50)),
                )
                positions[partition] = self._take(partition, positions[partition], piece)
                if self.rng.random() < 0.1:
                    await self.offset_for(partition, LATEST)

    def _take(self, partition: TopicPartition, position: int, piece: Piece) -> int:
        """Note what was read. Returns the next position."""
        if piece.error is ErrorCode.OFFSET_OUT_OF_RANGE:
            if position > piece.high_watermark >= 0 and not self.world.mode.may_lose:
                self.world.violate(f"{self.name} is at {position} of {partition}, which ends at {piece.high_watermark}")
            return 0 if piece.log_start_offset < 0 else piece.log_start_offset
        if piece.is_damaged:
            self.world.violate(f"{partition} has a wrong CRC after offset {piece.next_offset}")
        for stored in piece.records:
            self.note(partition, stored)
        return piece.next_offset

    def note(self, partition: TopicPartition, stored: Stored) -> None:
        """A record must be one that was sent to this partition, and always the same at its offset."""
        sent = stored.sent
        if sent is None or sent.partition != partition:
            self.world.violate(f"{partition} has at {stored.offset} what was not sent to it: {stored.record}")
            return
        if self.world.mode.may_lose:
            return
        if sent.offset not in (None, stored.offset):
            self.world.violate(f"{sent.name!r} was written at {sent.offset} and is read at {stored.offset}")
        known = self.seen.setdefault((partition, stored.offset), sent.name)
        if known != sent.name:
            self.world.violate(f"{partition} had {known!r} at {stored.offset}, and now has {sent.name!r}")

    # --- requests -----------------------------------------------------------------------------------------------------

    async def fetch(
        self, partition: TopicPartition, offset: int, *, max_bytes: int = 1 << 20, max_wait_ms: int = 0
    ) -> Piece:
        """One Fetch of one partition."""
        part = FetchPartition(partition=partition[1], fetch_offset=offset, partition_max_bytes=max_bytes)
        request = FetchRequest(
            max_wait_ms=max_wait_ms,
            min_bytes=1,
            max_bytes=1 << 20,
            isolation_level=int(self.committed),
            session_epoch=-1,
            topics=[FetchTopic(topic=partition[0], partitions=[part])],
        )
        answer = await self.insist(request, 12, lambda answer: [answer.responses[0].partitions[0].error_code])
        (result,) = answer.responses[0].partitions
        code = ErrorCode(result.error_code)
        if code is ErrorCode.OFFSET_OUT_OF_RANGE:
            return await self._where_it_is(partition, offset)
        if code is not ErrorCode.NONE:
            self.world.violate(f"{self.name} gets {code.name} for {partition} at {offset}")
            return Piece(code, [], offset, -1, -1)
        return self._judge(result, offset)

    async def _where_it_is(self, partition: TopicPartition, offset: int) -> Piece:
        start, _ = await self.offset_for(partition, EARLIEST)
        end, _ = await self.offset_for(partition, LATEST)
        return Piece(ErrorCode.OFFSET_OUT_OF_RANGE, [], offset, start, end)

    async def offset_for(self, partition: TopicPartition, timestamp: int) -> tuple[int, int]:
        """ListOffsets: (offset, timestamp). KafkaError."""
        wanted = ListOffsetsPartition(partition_index=partition[1], timestamp=timestamp)
        request = ListOffsetsRequest(
            replica_id=-1,
            isolation_level=int(self.committed),
            topics=[ListOffsetsTopic(name=partition[0], partitions=[wanted])],
        )
        answer = await self.insist(
            request,
            5,
            lambda answer: [answer.topics[0].partitions[0].error_code],
            frozenset({ErrorCode.KAFKA_STORAGE_ERROR}) if self.world.replication_factor == 1 else frozenset(),
        )
        (result,) = answer.topics[0].partitions
        if result.error_code:
            raise KafkaError(ErrorCode(result.error_code))
        if timestamp == LATEST:
            self._note_latest(partition, result.offset)
        return result.offset, result.timestamp

    def _note_latest(self, partition: TopicPartition, offset: int) -> None:
        """The end offset that a consumer gets never goes back (KIP-207)."""
        before = self._latest.get(partition, 0)
        self._latest[partition] = max(before, offset)
        if offset < before and not self.world.mode.may_lose:
            self.world.violate(f"{self.name}: {partition} ended at {before}, and now at {offset}")

    # --- what a consumer makes of an answer ---------------------------------------------------------------------------

    def _judge(self, result: Any, offset: int) -> Piece:
        piece = Piece(ErrorCode.NONE, [], offset, result.log_start_offset, result.high_watermark)
        begun = sorted((entry.first_offset, entry.producer_id) for entry in result.aborted_transactions or ())
        aborting: set[int] = set()
        for batch in iter_complete_batches(result.records or b""):
            try:
                batch.check_crc()
            except KafkaError:
                piece.is_damaged = True
                return piece
            while begun and begun[0][0] <= batch.last_offset:
                aborting.add(begun.pop(0)[1])
            piece.next_offset = max(piece.next_offset, batch.next_offset)
            if batch.is_control:
                marker = next(iter(batch.records()), None)  # none if compaction has removed it
                piece.control += [Stored(marker.offset, marker, None)] if marker else []
                if marker is not None and marker.key == _ABORT_MARKER:
                    aborting.discard(batch.producer_id)
            elif not (self.committed and batch.is_transactional and batch.producer_id in aborting):
                piece.records += self._records(batch, offset)
        return piece

    def _records(self, batch: RecordBatch, offset: int) -> Iterable[Stored]:
        return [
            Stored(record.offset, record, self.history.find(record))
            for record in batch.records()
            if record.offset >= offset
        ]

    async def read_all(self, partition: TopicPartition) -> list[Stored]:
        """All records, without damaged batches (``damaged`` counts them, ``control`` has the markers)."""
        self.damaged = 0
        self.control = []
        offset, _ = await self.offset_for(partition, EARLIEST)
        end, _ = await self.offset_for(partition, LATEST)
        found: list[Stored] = []
        while offset < end:
            piece = await self.fetch(partition, offset)
            found += piece.records
            self.control += piece.control
            if piece.is_damaged:
                self.damaged += 1
                piece.next_offset = await self._behind_damage(partition, piece.next_offset)
            if piece.next_offset <= offset:
                break  # the rest has been compacted away
            offset = piece.next_offset
        return found

    async def _behind_damage(self, partition: TopicPartition, offset: int) -> int:
        """The first offset after the damaged batch at ``offset``, found by trying: its header is not reliable."""
        end, _ = await self.offset_for(partition, LATEST)
        for candidate in range(offset + 1, end):
            piece = await self.fetch(partition, candidate)
            if not piece.is_damaged or piece.next_offset > candidate:
                return candidate
        return end


__all__ = ["LENGTH_PREFIX_SIZE", "Piece", "Reader", "Stored"]
