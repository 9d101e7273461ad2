"""The *shards* of a coordinator: one replayed state for each partition of its internal topic that this broker leads.

``load`` makes a shard and ``unload`` drops it: a request that waits on it gets NOT_COORDINATOR, and another broker replays the
same records. While it loads, requests get COORDINATOR_LOAD_IN_PROGRESS.

Every answer, to reads too, waits until the high watermark has passed the last record it depends on (``committed``);
otherwise a client could see what a change of leader undoes.

A partition with a damaged batch is not served (``coordinator_loading``), and the log says how an operator gets out of that.
"""

from __future__ import annotations

import itertools
import logging
from collections.abc import Callable, Iterator
from typing import Generic, Protocol, TypeVar

import trio

from ..base.errors import ErrorCode, KafkaError
from ..base.wording import counted
from ..wire.records import RecordBatch, iter_batches
from .coordinator_loading import SkippedRecords, check_batch
from .coordinator_log import CoordinatorLog, Flush, as_seen_by_clients

logger = logging.getLogger(__name__)

_STEPS_PER_TURN = 64
# These are expected: a folder's failure has been logged, and leadership moves.
_GONE = (
    ErrorCode.KAFKA_STORAGE_ERROR,
    ErrorCode.NOT_LEADER_OR_FOLLOWER,
    ErrorCode.UNKNOWN_TOPIC_OR_PARTITION,
)


class CoordinatorShard(Protocol):
    """One partition's state."""

    partition: int
    leader_epoch: int

    def load(self, batch: RecordBatch, skipped: SkippedRecords) -> Iterator[None]:
        """Replay a batch of the log, and yield after each record; those that cannot be understood are noted."""
        ...


S = TypeVar("S", bound=CoordinatorShard)


class CoordinatorShards(Generic[S]):
    """The partitions of ``topic``. ``name`` is the coordinator's, for the log.

    ``make(partition, leader_epoch)`` gives an empty shard; answers wait for at most ``commit_timeout_ms``.
    """

    def __init__(
        self, name: str, topic: str, log: CoordinatorLog, make: Callable[[int, int], S], commit_timeout_ms: int
    ) -> None:
        self._name = name
        self._topic = topic
        self._log = log
        self._make = make
        self._commit_timeout_ms = commit_timeout_ms
        self._shards: dict[int, S] = {}
        self._loading: dict[int, int] = {}
        self._loaded = trio.Event()

    def __iter__(self) -> Iterator[S]:
        return iter(list(self._shards.values()))

    @property
    def loading(self) -> int:
        """How many partitions are not known yet."""
        return len(self._loading)

    def is_current(self, shard: S) -> bool:
        """Whether the shard is still the one that answers for its partition."""
        return self._shards.get(shard.partition) is shard

    async def load(self, partition: int, leader_epoch: int) -> S | None:
        """Replay the partition's log; the new shard once it serves, None when it does not or did already."""
        known = self._shards.get(partition)
        known_epoch = self._loading.get(partition, -1) if known is None else known.leader_epoch
        if known_epoch >= leader_epoch:
            return None
        self._loading[partition] = leader_epoch
        shard = self._make(partition, leader_epoch)
        try:
            self._log.high_watermark(partition)  # it may have gone again since this was asked for
            await self._replay(shard)
        except KafkaError as error:
            self._log_refusal(partition, error)
            if self._loading.get(partition) == leader_epoch:
                del self._loading[partition]
            return None
        if self._loading.get(partition) != leader_epoch:
            return None  # while it was replayed the partition moved away, or came back under another epoch
        del self._loading[partition]
        self._shards[partition] = shard
        self._loaded.set()
        self._loaded = trio.Event()
        return shard

    def _log_refusal(self, partition: int, error: KafkaError) -> None:
        if error.code in _GONE:
            logger.info("%s: %s-%d cannot be loaded: %s", self._name, self._topic, partition, error)
            return
        logger.error(
            "%s: %s-%d cannot be loaded, and is not served: %s. Without the damaged records an older state would "
            "apply. To get out of this, let another replica lead. If there is none, stop this broker: 'ottla "
            "verify' names the place, and 'ottla set-aside' takes the batch out of the log",
            self._name,
            self._topic,
            partition,
            error,
        )

    async def _replay(self, shard: S) -> None:
        """Raises KafkaError for a damaged batch, and when the log cannot be read."""
        steps, skipped = 0, SkippedRecords()
        async for chunk in self._log.batches(shard.partition):
            for batch in iter_batches(chunk):
                check_batch(batch)
                for _ in itertools.chain(shard.load(batch, skipped), (None,)):
                    steps += 1
                    if steps % _STEPS_PER_TURN == 0:
                        await trio.lowlevel.checkpoint()
            if self._loading.get(shard.partition) != shard.leader_epoch:
                return
        if skipped.count:
            logger.warning(
                "%s: of %s-%d %s could not be understood and %s left out; the first is at %s",
                self._name,
                self._topic,
                shard.partition,
                counted(skipped.count, "record"),
                "was" if skipped.count == 1 else "were",
                skipped.first,
            )

    def renew(self, partition: int, leader_epoch: int) -> bool:
        """This broker was elected again without having lost the partition; False where nothing of it is served here.

        The shard has seen all that is in the log, so it goes on.
        """
        shard = self._shards.get(partition)
        if shard is not None:
            shard.leader_epoch = max(shard.leader_epoch, leader_epoch)
        return shard is not None

    async def wait_loaded(self, partition: int) -> None:
        """Return once the partition is served here."""
        while partition not in self._shards:
            await self._loaded.wait()

    def is_older(self, partition: int, leader_epoch: int) -> bool:
        """Whether what is known of the partition, if anything, is of an earlier epoch."""
        known = self._shards.get(partition)
        return (self._loading.get(partition, -1) if known is None else known.leader_epoch) < leader_epoch

    def unload(self, partition: int) -> S | None:
        """This broker does not lead the partition any more; the shard it had."""
        self._loading.pop(partition, None)
        return self._shards.pop(partition, None)

    def partitions(self) -> list[int]:
        """Those that are served or loading."""
        return [*self._shards, *self._loading]

    def find(self, partition: int, key: str) -> S:
        """The shard of a partition. KafkaError COORDINATOR_LOAD_IN_PROGRESS or NOT_COORDINATOR."""
        shard = self._shards.get(partition)
        if shard is None:
            loading = partition in self._loading
            code = ErrorCode.COORDINATOR_LOAD_IN_PROGRESS if loading else ErrorCode.NOT_COORDINATOR
            raise KafkaError(code, f"{key} belongs to partition {partition}")
        return shard

    async def committed(self, shard: S, offset: int, flush: Flush, timeout_ms: int | None = None) -> None:
        """Return when everything below ``offset`` is committed, which may take ``timeout_ms`` in place of what others wait.

        KafkaError when that takes longer.
        """
        try:
            if self._log.high_watermark(shard.partition) < offset:
                await flush()
                with trio.fail_after((timeout_ms or self._commit_timeout_ms) / 1000):
                    await self._log.wait_committed(shard.partition, offset)
        except trio.TooSlowError:
            raise KafkaError(ErrorCode.COORDINATOR_NOT_AVAILABLE, f"offset {offset} is not committed yet") from None
        except KafkaError as error:
            raise as_seen_by_clients(error) from error
        if not self.is_current(shard):
            raise KafkaError(ErrorCode.NOT_COORDINATOR, "the partition has moved")
