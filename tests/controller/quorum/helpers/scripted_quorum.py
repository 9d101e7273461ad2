"""Controllers of a quorum, played by a test: they answer fetches of the metadata log by Kafka's rules.

All of them share one log, which only the test changes. One leads, the others say who does. Offsets count records.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import trio

from ottla.base.errors import ErrorCode
from ottla.base.memory_network import MemoryConnection, MemoryNetwork
from ottla.controller.raft.metadata_log import TOPIC, TOPIC_ID
from ottla.log.metadata_snapshots import MetadataSnapshotId, SnapshotHead, encode_snapshot
from ottla.wire.api_keys import ApiKey
from ottla.wire.control_records import build_quorum_batch
from ottla.wire.messages import fetch, fetch_snapshot
from ottla.wire.messages.api_versions import ApiVersion, ApiVersionsResponse
from ottla.wire.messages.control_records import LeaderChangeMessage
from ottla.wire.metadata_records import encode_metadata_record
from ottla.wire.records import RecordBatch, RecordsBuilder
from ottla.wire.registry import response_class
from ottla.wire.schema import Message

from ....replication.helpers.scripted_peer import Peer

HOST = "controller"
_SERVED = {ApiKey.FETCH: (0, 18), ApiKey.FETCH_SNAPSHOT: (0, 1), ApiKey.API_VERSIONS: (0, 4)}
Answer = Callable[[Any], Message]
"""What a controller answers a request, at once."""


class ScriptedQuorum:
    """``run`` it beside the test. ``refusal``: the error in place of every answer to a fetch."""

    def __init__(self, network: MemoryNetwork, size: int = 3) -> None:
        self._network = network
        self.ids = range(1, size + 1)
        self.epoch = 1
        self.now_ms = 1_000
        self.leader_id = 1
        self.batches: list[RecordBatch] = []
        self.start_offset = 0
        self.high_watermark = 0
        self.snapshot: tuple[MetadataSnapshotId, bytes] | None = None
        self.epochs: list[tuple[int, int]] = []
        self.is_silent = False
        self.silent: set[int] = set()
        """Nodes that answer nothing, as the whole quorum does while it ``is_silent``."""
        self.refusal = ErrorCode.NONE
        self.asked: list[int] = []
        """Who was asked for the log, and answered."""
        self.fetch_batches = 1 << 30
        """How many batches a fetch gets at most."""
        self.snapshot_piece = 1 << 20
        self.before_piece: Callable[[int], None] = lambda position: None
        self.answers: dict[type[Message], Answer] = {}
        """Of the leader, to other requests than fetches; the other nodes say that they are not the controller."""
        self._changed = trio.Event()

    # --- what the test does -------------------------------------------------------------------------------------------

    @property
    def end_offset(self) -> int:
        return self.batches[-1].next_offset if self.batches else self.start_offset

    def append(self, *records: Message, commits: bool = True) -> None:
        """Append a batch with these records, in their newest versions; without any one with a LeaderChange."""
        if not records:
            self.append_control(LeaderChangeMessage(leader_id=self.leader_id), commits=commits)
            return
        builder = RecordsBuilder(base_offset=self.end_offset, leader_epoch=self.epoch)
        for record in records:
            builder.append(None, encode_metadata_record(record, type(record).valid_versions.stop - 1), self.now_ms)
        self._append(builder.build(), commits)

    def append_control(self, *records: Message, commits: bool = True) -> None:
        """Append a batch of control records."""
        versioned = [(record, 0) for record in records]
        data = build_quorum_batch(
            versioned, base_offset=self.end_offset, leader_epoch=self.epoch, timestamp=self.now_ms
        )
        self._append(data, commits)

    def _append(self, data: bytearray, commits: bool) -> None:
        if not self.epochs or self.epochs[-1][0] != self.epoch:
            self.epochs.append((self.epoch, self.end_offset))
        self.batches.append(RecordBatch(data))
        if commits:
            self.high_watermark = self.end_offset
        self.wake()

    def elect(self, leader_id: int, *, keeps: int | None = None) -> None:
        """Another leader in the next epoch, whose log has only the first ``keeps`` batches."""
        self.epoch, self.leader_id = self.epoch + 1, leader_id
        if keeps is not None:
            del self.batches[keeps:]
            self.epochs = [each for each in self.epochs if each[1] < self.end_offset]
        self.append()

    def take_snapshot(self, records: Sequence[Message]) -> None:
        """A snapshot of all there is; the log begins after it."""
        snapshot = MetadataSnapshotId(self.end_offset, self.epoch)
        versioned = [(record, type(record).valid_versions.stop - 1) for record in records]
        data = b"".join(encode_snapshot(SnapshotHead(self.now_ms), versioned, epoch=self.epoch, now_ms=self.now_ms))
        self.snapshot = snapshot, data
        self.start_offset = self.high_watermark = self.end_offset
        self.batches = []
        self.wake()

    def wake(self) -> None:
        self._changed.set()
        self._changed = trio.Event()

    # --- serving ------------------------------------------------------------------------------------------------------

    async def run(self, task_status: trio.TaskStatus[None] = trio.TASK_STATUS_IGNORED) -> None:
        async with trio.open_nursery() as nursery:
            for node_id in self.ids:
                listener = await self._network.listen(HOST, node_id, 10)

                async def accept(node_id: int = node_id, listener: object = listener) -> None:
                    while True:
                        connection = await listener.accept()  # type: ignore[attr-defined]
                        nursery.start_soon(self._serve, node_id, connection)

                nursery.start_soon(accept)
            task_status.started()

    async def _serve(self, node_id: int, connection: MemoryConnection) -> None:
        peer = Peer(connection)
        try:
            while True:
                header, request = await peer.request()
                if self.is_silent or node_id in self.silent:
                    await trio.sleep_forever()
                if isinstance(request, fetch.FetchRequest):
                    self.asked.append(node_id)
                    response: Message = await self._fetch(node_id, request)
                elif isinstance(request, fetch_snapshot.FetchSnapshotRequest):
                    response = self._fetch_snapshot(node_id, request)
                elif type(request) in self.answers:
                    response = self._answer(node_id, request)
                else:
                    served = {**_SERVED, **{each.api_key: _range(each) for each in self.answers}}
                    keys = [
                        ApiVersion(api_key=key, min_version=low, max_version=high)
                        for key, (low, high) in served.items()
                    ]
                    response = ApiVersionsResponse(api_keys=keys)
                await peer.answer(header, response)
        except (AssertionError, OSError):
            connection.close()

    def _answer(self, node_id: int, request: Message) -> Message:
        if node_id == self.leader_id:
            return self.answers[type(request)](request)
        response: Any = response_class(ApiKey(request.api_key))
        return response(error_code=ErrorCode.NOT_CONTROLLER)

    def _endpoints(self) -> list[fetch.NodeEndpoint]:
        return [fetch.NodeEndpoint(node_id=self.leader_id, host=HOST, port=self.leader_id)]

    async def _fetch(self, node_id: int, request: fetch.FetchRequest) -> fetch.FetchResponse:
        asked = request.topics[0].partitions[0]
        assert request.topics[0].topic_id == TOPIC_ID
        with trio.move_on_after(request.max_wait_ms / 1000):
            while (
                node_id == self.leader_id
                and asked.current_leader_epoch == self.epoch
                and asked.fetch_offset == self.end_offset
                and asked.high_watermark == self.high_watermark
            ):
                await self._changed.wait()
        answer = fetch.PartitionData(
            partition_index=0,
            current_leader=fetch.LeaderIdAndEpoch(leader_id=self.leader_id, leader_epoch=self.epoch),
            high_watermark=self.high_watermark,
            records=b"",
        )
        answer.error_code = self._error(node_id, asked.current_leader_epoch)
        if not answer.error_code:
            self._fill(answer, asked)
        topics = [fetch.FetchableTopicResponse(topic=TOPIC, topic_id=TOPIC_ID, partitions=[answer])]
        return fetch.FetchResponse(responses=topics, node_endpoints=self._endpoints())

    def _error(self, node_id: int, epoch: int) -> ErrorCode:
        if self.refusal:
            return self.refusal
        if epoch < self.epoch:
            return ErrorCode.FENCED_LEADER_EPOCH
        if epoch > self.epoch:
            return ErrorCode.UNKNOWN_LEADER_EPOCH
        return ErrorCode.NONE if node_id == self.leader_id else ErrorCode.NOT_LEADER_OR_FOLLOWER

    def _fill(self, answer: fetch.PartitionData, asked: fetch.FetchPartition) -> None:
        offset = asked.fetch_offset
        if self.snapshot is not None and offset < self.start_offset:
            snapshot = self.snapshot[0]
            answer.snapshot_id = fetch.SnapshotId(end_offset=snapshot.end_offset, epoch=snapshot.epoch)
            return
        ends = [start for epoch, start in self.epochs if epoch > asked.last_fetched_epoch]
        end, known = min([*ends, self.end_offset]), [e for e, _ in self.epochs if e <= asked.last_fetched_epoch]
        if end < offset:
            answer.diverging_epoch = fetch.EpochEndOffset(epoch=max(known, default=0), end_offset=end)
            return
        wanted = [batch for batch in self.batches if batch.base_offset >= offset]
        answer.records = b"".join(bytes(batch.view) for batch in wanted[: self.fetch_batches])

    def _fetch_snapshot(
        self, node_id: int, request: fetch_snapshot.FetchSnapshotRequest
    ) -> fetch_snapshot.FetchSnapshotResponse:
        asked = request.topics[0].partitions[0]
        self.before_piece(asked.position)
        answer = fetch_snapshot.ResponsePartitionSnapshot(
            index=0,
            snapshot_id=asked.snapshot_id,
            current_leader=fetch_snapshot.LeaderIdAndEpoch(leader_id=self.leader_id, leader_epoch=self.epoch),
            unaligned_records=b"",
        )
        answer.error_code = self._error(node_id, asked.current_leader_epoch)
        if not answer.error_code:
            if self.snapshot is None or asked.snapshot_id.end_offset != self.snapshot[0].end_offset:
                answer.error_code = ErrorCode.SNAPSHOT_NOT_FOUND
            else:
                data = self.snapshot[1]
                answer.size, answer.position = len(data), asked.position
                answer.unaligned_records = data[asked.position : asked.position + self.snapshot_piece]
        topics = [fetch_snapshot.ResponseTopicSnapshot(name=TOPIC, partitions=[answer])]
        endpoints = [
            fetch_snapshot.NodeEndpoint(node_id=each.node_id, host=each.host, port=each.port)
            for each in self._endpoints()
        ]
        return fetch_snapshot.FetchSnapshotResponse(topics=topics, node_endpoints=endpoints)


def _range(request: type[Message]) -> tuple[int, int]:
    return request.valid_versions.start, request.valid_versions.stop - 1
