"""The task that follows a quorum: it fetches the metadata log from the leader, and has what is committed loaded.

One request is in flight in all: an answer to a second one could be appended twice. While nothing can be fetched nothing changes,
and the broker goes on with the metadata that it has.
"""

from __future__ import annotations

import functools
import logging
import math

import trio

from ...base.errors import KafkaError
from ...base.seams import Workers
from ...log.metadata_snapshots import SnapshotReader
from ...metadata.types import LogPosition
from ...replication.broker_client import NoAnswerError
from ...wire.messages.fetch import FetchRequest
from ..raft.observer import NO_LEADER, Observer, OutboundRequest
from .controller_client import Connect, ControllerClient
from .loader import MetadataLoader

logger = logging.getLogger(__name__)

_RETRY_SECONDS = 0.02
"""``controller.quorum.retry.backoff.ms``."""
_REFUSAL_SECONDS = 1.0
"""After an answer that no later one need differ from, as that of another cluster."""


class QuorumFollower:
    """``run`` it in a task of its own. ``connect`` makes the way to a controller."""

    def __init__(
        self,
        observer: Observer,
        loader: MetadataLoader,
        connect: Connect,
        workers: Workers,
    ) -> None:
        self.observer = observer
        self.loader = loader
        self._controller = ControllerClient(connect)
        self._workers = workers
        self._told: set[str] = set()

    async def run(self) -> None:
        """Follow until cancelled.

        Raises KafkaError, OSError, CorruptFileError, ReplayError where the log cannot be kept, or not be understood.
        """
        try:
            await self._store_election()
            await self._load_newest_snapshot()
            await self._load_committed()
            while True:
                before = self.observer.leadership
                await self._ask()
                if self.observer.leadership != before:
                    await self._store_election()
                await self._load_committed()
        finally:
            self._controller.close()

    async def _store_election(self) -> None:
        """As Kafka does at each start, and at each change of the epoch or its leader."""
        await self.observer.log.write_election(self.observer.election)

    async def _ask(self) -> None:
        """Send one request, and apply what comes back."""
        asked = self.observer.next_request()
        client = self._controller.at(asked.address)
        try:
            version = await client.negotiate(type(asked.request))
            response = await client.send(asked.request, version)
        except NoAnswerError as error:
            self._tell(logging.WARNING, str(error))
            self.observer.take_failure(asked)
            await trio.sleep(_RETRY_SECONDS)
            return
        except KafkaError as error:
            await self._refused(asked, error)
            return
        if isinstance(asked.request, FetchRequest):
            await self._take_fetch(asked, response)
        else:
            await self._take_snapshot(asked, response)

    async def _take_fetch(self, asked: OutboundRequest, response: object) -> None:
        before = self.observer.leadership
        try:
            knows_whom_to_ask = self.observer.take_fetch(asked, response)  # type: ignore[arg-type]
        except KafkaError as error:
            self.observer.log.check_online()
            await self._refused(asked, error)
            return
        epoch, leader_id = self.observer.leadership
        if self.observer.leadership != before and leader_id != NO_LEADER:
            logger.info("Controller %d leads the quorum in epoch %d", leader_id, epoch)
        self._told.clear()
        if not knows_whom_to_ask:
            await trio.sleep(_RETRY_SECONDS)

    async def _refused(self, asked: OutboundRequest, error: KafkaError) -> None:
        """Try again later."""
        self._tell(logging.ERROR, f"{asked.address.host}:{asked.address.port}: {error.code.name}: {error.message}")
        self.observer.take_failure(asked)
        await trio.sleep(_REFUSAL_SECONDS)

    def _tell(self, level: int, reason: str) -> None:
        """One line for each controller and reason, until a fetch is answered again."""
        if reason not in self._told:
            self._told.add(reason)
            logger.log(level, "No metadata from the controller at %s", reason)

    async def _take_snapshot(self, asked: OutboundRequest, response: object) -> None:
        download = self.observer.take_snapshot(asked, response)  # type: ignore[arg-type]
        if download is None:
            return
        reader = await self._workers.run(download.finish)
        self.observer.start_after(download.id, reader.head)
        await self.observer.log.remove_forgotten()
        logger.info("Fetched the metadata snapshot %s, %d bytes", download.id.file_name, download.size)
        await self._load_snapshot(reader, download.id.end_offset, download.id.epoch)

    # --- loading ------------------------------------------------------------------------------------------------------

    async def _load_newest_snapshot(self) -> None:
        """At the start, of those that are on disk."""
        log = self.observer.log
        newest = log.newest_snapshot
        if newest is not None:
            reader = await self._workers.run(functools.partial(log.read_snapshot, newest))
            await self._load_snapshot(reader, newest.end_offset, newest.epoch)

    async def _load_snapshot(self, reader: SnapshotReader, end_offset: int, epoch: int) -> None:
        position = LogPosition(end_offset - 1, epoch, reader.head.last_contained_ms)
        await self.loader.load_snapshot(reader.batches(), position, self._known_high_watermark())

    async def _load_committed(self) -> None:
        log, loader = self.observer.log, self.loader
        while loader.loaded_offset < log.high_watermark:
            await loader.commit(log.committed(loader.loaded_offset), self._known_high_watermark())
        if not loader.has_caught_up:  # a snapshot may have had all there is before the high watermark was known
            loader.publish_changes(self._known_high_watermark())

    def _known_high_watermark(self) -> float:
        """What has to be loaded before anything is published: without a leader that tells it, nothing suffices."""
        known = self.observer.high_watermark
        return math.inf if known is None else known
