"""Delivery of the committed metadata log from a Raft node to its listeners: a controller, a broker, or both.

A ``MetadataFollower`` takes the node's news in their order, and tells its listener of leaders, snapshots and committed batches.
Several can follow one node, each at its own pace: the log stays readable behind it, and what was deleted comes as the snapshot
that stands for it. While nothing can be fetched nothing is delivered, and a broker goes on with the metadata that it has.

Model: Kafka's ``RaftClient.Listener``.
"""

from __future__ import annotations

import logging
import math
from collections.abc import Iterable, Iterator, Sequence
from typing import Protocol

from ...base.seams import Workers
from ...metadata.types import LogPosition
from ...wire.schema import Message
from ..raft.driver import RaftDriver
from ..raft.effects import LeaderChanged
from ..raft.election_file import NOBODY
from ..raft.metadata_log import CommittedBatch
from .loader import MetadataLoader

logger = logging.getLogger(__name__)


class MetadataListener(Protocol):
    """Is told what its Raft node finds out. Each call ends before the next one begins."""

    def handle_leader_change(self, news: LeaderChanged) -> None:
        """Another leader or epoch."""

    def handle_high_watermark(self, high_watermark: int) -> bool:
        """All below is committed; False where it is to be read to this listener, True where it has written that itself."""

    async def take_snapshot(self, batches: Iterable[Sequence[Message]], position: LogPosition) -> None:
        """A snapshot that ends with ``position`` takes the place of everything. Raises ReplayError, CorruptFileError."""

    async def handle_commit(self, batches: Iterator[CommittedBatch]) -> None:
        """The next batches; all of them are to be taken. Raises ReplayError."""

    def caught_up(self) -> None:
        """Everything that is known to be committed was delivered."""


class MetadataFollower:
    """Make it before the driver runs, and ``run`` it in a task of its own."""

    def __init__(self, driver: RaftDriver, listener: MetadataListener, workers: Workers) -> None:
        self._news = driver.news()
        self._log = driver.storage.log
        self._listener = listener
        self._workers = workers
        self._offset = 0
        """The next offset to deliver; everything below was delivered."""

    async def run(self) -> None:
        """Follow until cancelled.

        Raises KafkaError, OSError and CorruptFileError where the log cannot be read, ReplayError where it is not understood.
        """
        await self._load_newest_snapshot()
        async for news in self._news:
            if isinstance(news, LeaderChanged):
                self._listener.handle_leader_change(news)
            else:
                if self._listener.handle_high_watermark(news.high_watermark):
                    self._offset = news.high_watermark
                else:
                    await self._read(news.high_watermark)
                self._listener.caught_up()

    async def _read(self, high_watermark: int) -> None:
        log = self._log
        while self._offset < min(high_watermark, log.high_watermark):
            before = self._offset
            if before < log.start_offset:
                await self._load_newest_snapshot()
            else:
                await self._listener.handle_commit(self._counted(log.committed(before)))
            assert self._offset > before, f"nothing was read from {before} on, and {log.high_watermark} is committed"

    def _counted(self, batches: Iterator[CommittedBatch]) -> Iterator[CommittedBatch]:
        for batch in batches:
            yield batch
            self._offset = batch.position.offset + 1

    async def _load_newest_snapshot(self) -> None:
        """Of those on disk, if it is further than this."""
        log = self._log
        while (newest := log.newest_snapshot) is not None and newest.end_offset > self._offset:
            try:
                reader = await self._workers.run(log.read_snapshot, newest)
            except FileNotFoundError:
                if newest in log.snapshots:
                    raise
                continue  # another has taken its place meanwhile
            position = LogPosition(newest.end_offset - 1, newest.epoch, reader.head.last_contained_ms)
            await self._listener.take_snapshot(reader.batches(), position)
            self._offset = newest.end_offset


class LoaderListener:
    """Has what is committed loaded for a broker, which publishes nothing before it knows how much there is."""

    def __init__(self, driver: RaftDriver, loader: MetadataLoader) -> None:
        self._quorum = driver.node.quorum
        self._loader = loader
        known = driver.storage.log.election
        self._leader = LeaderChanged(-1, NOBODY) if known is None else LeaderChanged(known.epoch, known.leader_id)

    def handle_leader_change(self, news: LeaderChanged) -> None:
        if news.leader_id != NOBODY and news != self._leader:
            logger.info("Controller %d leads the quorum in epoch %d", news.leader_id, news.epoch)
        self._leader = news

    def handle_high_watermark(self, high_watermark: int) -> bool:
        return False

    async def take_snapshot(self, batches: Iterable[Sequence[Message]], position: LogPosition) -> None:
        await self._loader.load_snapshot(batches, position, self._enough)

    async def handle_commit(self, batches: Iterator[CommittedBatch]) -> None:
        await self._loader.commit(batches, self._enough)

    def caught_up(self) -> None:
        if not self._loader.has_caught_up:  # a snapshot may have had all there is before the high watermark was known
            self._loader.publish_changes(self._enough)

    @property
    def _enough(self) -> float:
        """What has to be loaded before anything is published: without a leader that tells it, nothing suffices."""
        known = self._quorum.leader_high_watermark
        return math.inf if known is None else known
