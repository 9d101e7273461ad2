"""The transaction coordinator of a broker: its shards, the transactions it ends, and the loops for timeouts.

A *shard* (``shard.py``) is one partition of ``__transaction_state`` that this broker leads; requests and their errors are
Kafka's. The response to EndTxn leaves once the decision is committed; the markers follow in the background, and the producer
is told CONCURRENT_TRANSACTIONS when it begins its next transaction before they are all there.
"""

from __future__ import annotations

import logging
from collections.abc import AsyncIterator, Callable, Collection, Iterator
from contextlib import asynccontextmanager
from typing import Protocol

import trio

from ..base.errors import ErrorCode, KafkaError
from ..base.partitions import TopicPartition
from ..base.seams import Clock
from ..replication.coordinator_log import CoordinatorLog, Flush, as_seen_by_clients, partition_of
from ..replication.coordinator_shards import CoordinatorShards
from ..wire.messages.describe_transactions import TransactionState as DescribedTransaction
from ..wire.messages.list_transactions import ListTransactionsRequest, ListTransactionsResponse
from . import transaction as transitions
from .describe import STATES, Filter, describe
from .ending import RETRY_SECONDS, FencedError, MarkerChannels, OutdatedError, bump_epoch_past, write_markers
from .settings import TOPIC, TransactionSettings
from .shard import TransactionShard
from .transaction import PREPARED, TRANSACTIONS_V2, Transaction, TransactionStatus

logger = logging.getLogger(__name__)

COMMIT_TIMEOUT_MS = 5000
_REMOVED_PER_BATCH = 1000


async def _no_flush() -> None:
    """The flush where no client waits: there are no answers to send first."""


class ProducerIdManager(Protocol):
    """The source of new producer ids, as Kafka's class of this name."""

    async def next_producer_id(self) -> int:
        """An id that no producer of the cluster had before. Raises KafkaError when there is none to be had."""
        ...


class TransactionCoordinator:
    """Transactional ids on the partitions this broker leads.

    A producer is named by (producer id, epoch). Every request method raises KafkaError.
    """

    def __init__(
        self,
        log: CoordinatorLog,
        settings: TransactionSettings,
        clock: Clock,
        producer_ids: ProducerIdManager,
        channels: MarkerChannels,
    ) -> None:
        self.settings = settings
        self._log = log
        self._clock = clock
        self._producer_ids = producer_ids
        self._channels = channels
        self._shards = CoordinatorShards("Transaction coordinator", TOPIC, log, self._new_shard, COMMIT_TIMEOUT_MS)
        self._nursery: trio.Nursery | None = None
        # Prepared transactions that were loaded before ``run`` began.
        self._unfinished: list[tuple[TransactionShard, str]] = []

    # Partitions

    def partition_for(self, transactional_id: str) -> int:
        """The partition of ``__transaction_state`` that keeps the id. The setting counts only until the topic exists."""
        count = self._log.partition_count() or self.settings.transaction_state_log_num_partitions
        return partition_of(transactional_id, count)

    def _new_shard(self, partition: int, leader_epoch: int) -> TransactionShard:
        return TransactionShard(partition, leader_epoch, self._log)

    async def load(self, partition: int, leader_epoch: int) -> None:
        """This broker leads the partition from now on: replay its log, serve its ids, end what was decided.

        Where this broker led it before, and only the leader epoch is new because a replica has gone, the ids are served on
        without a pause, so that no waiting client looks for another coordinator (``Partition.makeLeader`` of Kafka tells its
        coordinators of new leaders only).
        """
        if self._shards.renew(partition, leader_epoch) or not self._shards.is_older(partition, leader_epoch):
            return
        self.unload(partition)
        shard = await self._shards.load(partition, leader_epoch)
        if shard is None:
            return
        for transaction in list(shard.transactions.values()):
            if transaction.state in PREPARED:
                logger.info("Resuming the end of transaction %s", transaction.transactional_id)
                self._finish_soon(shard, transaction.transactional_id)

    async def wait_loaded(self, partition: int) -> None:
        """Return once the ids of the partition are served here."""
        await self._shards.wait_loaded(partition)

    def unload(self, partition: int) -> None:
        """This broker does not lead the partition any more; nothing happens when it did not."""
        shard = self._shards.unload(partition)
        if shard is not None:
            shard.release()

    def stop(self) -> None:
        """Unload every partition, so that no request goes on waiting."""
        for partition in self._shards.partitions():
            self.unload(partition)

    def _shard(self, transactional_id: str) -> TransactionShard:
        if not transactional_id:
            raise KafkaError(ErrorCode.INVALID_REQUEST, "the transactional id is empty")
        return self._shards.find(self.partition_for(transactional_id), transactional_id)

    async def _write(self, shard: TransactionShard, transaction: Transaction, flush: Flush) -> None:
        """Change the state of an id, and return once that is committed.

        The producer waits as long as its transaction may take (``TransactionStateManager.appendTransactionToLog``): after an
        earlier timeout it would look for another coordinator, and there is none. What delays the commit is often a replica
        that has died, and that ends when the replica leaves the ISR.
        """
        offset = self._append(shard, transaction)
        await self._shards.committed(shard, offset, flush, transaction.timeout_ms)

    @asynccontextmanager
    async def _confirmed_errors(
        self, shard: TransactionShard, transactional_id: str, flush: Flush
    ) -> AsyncIterator[None]:
        """Send a refusal only after ``_confirm_state``: a producer takes it for final, and it may rest on outdated state.

        CONCURRENT_TRANSACTIONS goes out at once, because the producer asks again.
        """
        try:
            yield
        except KafkaError as error:
            if error.code is not ErrorCode.CONCURRENT_TRANSACTIONS:
                await self._confirm_state(shard, transactional_id, flush)
            raise

    async def _confirm_state(
        self, shard: TransactionShard, transactional_id: str, flush: Flush, timeout_ms: int | None = None
    ) -> None:
        """Return once what is known of an id is committed, and no other coordinator knows more of it.

        A broker that has lost the partition without having heard of it knows only an old state, while another coordinator
        goes on. So the state is written once more, which is committed only if the replicas in sync still follow this broker.
        Kafka does not do so, and may then refuse a valid request, or report an open transaction as ended.
        """
        offset = shard.depends_on(transactional_id)
        try:
            if self._log.is_replicated(shard.partition):
                offset = shard.repeat(transactional_id, self._clock.now_ms())
        except KafkaError as error:
            raise as_seen_by_clients(error) from error
        await self._shards.committed(shard, offset, flush, timeout_ms)

    def _append(self, shard: TransactionShard, transaction: Transaction) -> int:
        try:
            offset = shard.write(transaction, self._clock.now_ms())
        except KafkaError as error:
            raise as_seen_by_clients(error) from error
        if transaction.state in PREPARED:
            self._finish_soon(shard, transaction.transactional_id)
        return offset

    # Requests

    async def init_producer_id(
        self, transactional_id: str, timeout_ms: int, expected: tuple[int, int] | None, flush: Flush
    ) -> tuple[int, int]:
        """InitProducerId: the producer to be, after every one before it with this transactional id is fenced."""
        if not 0 < timeout_ms <= self.settings.transaction_max_timeout_ms:
            self._shard(transactional_id)  # raises first where another broker coordinates the id
            raise KafkaError(
                ErrorCode.INVALID_TRANSACTION_TIMEOUT,
                f"{timeout_ms} ms; transaction.max.timeout.ms is {self.settings.transaction_max_timeout_ms}",
            )
        new_id = transitions.NO_PRODUCER_ID
        # While an id is fetched the shard may move away, and the state of the id may change: both are looked up again.
        while True:
            shard = self._shard(transactional_id)
            known = shard.transactions.get(transactional_id)
            if new_id != transitions.NO_PRODUCER_ID or (known is not None and not known.is_epoch_exhausted):
                break
            await flush()
            new_id = await self._producer_ids.next_producer_id()
        now_ms = self._clock.now_ms()
        if known is None:
            renewed = transitions.create(transactional_id, new_id, timeout_ms, now_ms)
        elif known.state is TransactionStatus.ONGOING:
            async with self._confirmed_errors(shard, transactional_id, flush):
                transitions.check_expected(known, expected)
            await self._write(shard, transitions.fence(known, TRANSACTIONS_V2, now_ms), flush)
            raise KafkaError(ErrorCode.CONCURRENT_TRANSACTIONS, "the open transaction is being aborted")
        else:
            async with self._confirmed_errors(shard, transactional_id, flush):
                renewed = transitions.initialize(known, expected, new_id, timeout_ms, now_ms)
        await self._write(shard, renewed, flush)
        return renewed.producer_id, renewed.producer_epoch

    async def add_partitions(
        self,
        transactional_id: str,
        producer: tuple[int, int],
        partitions: Collection[TopicPartition],
        client_version: int,
        flush: Flush,
    ) -> None:
        """AddPartitionsToTxn and AddOffsetsToTxn; ``client_version`` 2 when the partition's leader asks for a V2 client."""
        shard = self._shard(transactional_id)
        async with self._confirmed_errors(shard, transactional_id, flush):
            known = transitions.check_adding(shard.transactions.get(transactional_id), *producer)
        changed = transitions.add_partitions(known, partitions, client_version, self._clock.now_ms())
        if changed is not None:
            await self._write(shard, changed, flush)
        else:  # nothing to write, whose commit would show that this broker still coordinates the id
            await self._confirm_state(shard, transactional_id, flush, known.timeout_ms)

    async def verify_partitions(
        self, transactional_id: str, producer: tuple[int, int], partitions: Collection[TopicPartition], flush: Flush
    ) -> set[TopicPartition]:
        """Those of ``partitions`` that are part of the producer's open transaction."""
        shard = self._shard(transactional_id)
        async with self._confirmed_errors(shard, transactional_id, flush):
            known = transitions.check_producer(shard.transactions.get(transactional_id), *producer)
        verified = {partition for partition in partitions if partition in known.partitions}
        # That a partition is missing is a refusal, and is confirmed like one.
        if len(verified) < len(partitions):
            await self._confirm_state(shard, transactional_id, flush)
        else:
            await self._shards.committed(shard, shard.depends_on(transactional_id), flush)
        return verified

    async def end_transaction(
        self, transactional_id: str, producer: tuple[int, int], commit: bool, client_version: int, flush: Flush
    ) -> tuple[int, int]:
        """EndTxn: returns once it is decided; the producer of the next transaction."""
        new_id = transitions.NO_PRODUCER_ID
        # As in ``init_producer_id``: state from before the wait for an id is not used.
        while True:
            shard = self._shard(transactional_id)
            known = shard.transactions.get(transactional_id)
            if new_id != transitions.NO_PRODUCER_ID or not transitions.needs_producer_id(known, client_version):
                break
            await flush()
            new_id = await self._producer_ids.next_producer_id()
        async with self._confirmed_errors(shard, transactional_id, flush):
            prepared = transitions.end(known, producer, commit, client_version, new_id, self._clock.now_ms())
        if prepared is None:
            assert known is not None
            await self._confirm_state(shard, transactional_id, flush, known.timeout_ms)
            return known.producer_id, known.producer_epoch
        await self._write(shard, prepared, flush)
        if prepared.next_producer_id != transitions.NO_PRODUCER_ID:
            return prepared.next_producer_id, 0
        return prepared.producer_id, prepared.producer_epoch

    async def wait_ended(self, transactional_id: str) -> None:
        """Return once no transaction of the id is between its decision and its end."""
        await self._shard(transactional_id).wait_ended(transactional_id)

    # Administration

    async def describe(self, transactional_id: str, flush: Flush) -> DescribedTransaction:
        """DescribeTransactions of one id."""
        shard = self._shard(transactional_id)
        known = shard.transactions.get(transactional_id)
        if known is None:
            raise KafkaError(ErrorCode.TRANSACTIONAL_ID_NOT_FOUND, f"{transactional_id} is not known")
        await self._shards.committed(shard, shard.depends_on(transactional_id), flush)
        return describe(known)

    def transactions(self) -> Iterator[Transaction]:
        """Every transactional id of the partitions this broker leads, as it is now."""
        for shard in self._shards:
            yield from list(shard.transactions.values())

    async def list_transactions(
        self, request: ListTransactionsRequest, may_describe: Callable[[str], bool], flush: Flush
    ) -> ListTransactionsResponse:
        """ListTransactions of this broker, of the transactional ids that the client may describe."""
        if self._shards.loading:
            raise KafkaError(
                ErrorCode.COORDINATOR_LOAD_IN_PROGRESS, f"partitions are still loading: {self._shards.loading}"
            )
        wanted = Filter(request, self._clock.now_ms())
        response = ListTransactionsResponse(
            unknown_state_filters=[name for name in request.state_filters if name not in STATES]
        )
        known = [transaction for shard in self._shards for transaction in shard.transactions.values()]
        waits = [(shard, shard.last_offset) for shard in self._shards]
        response.transaction_states = await wanted.select(known, may_describe, self._clock.elapsed)
        for shard, offset in waits:
            await self._shards.committed(shard, offset, flush)
        return response

    # The end of transactions

    def _finish_soon(self, shard: TransactionShard, transactional_id: str) -> None:
        if self._nursery is None:
            self._unfinished.append((shard, transactional_id))
        else:
            self._nursery.start_soon(self._finish, shard, transactional_id)

    async def _finish(self, shard: TransactionShard, transactional_id: str) -> None:
        """Write the markers of a prepared transaction and complete it, unless the partition moves away first."""
        with trio.CancelScope() as scope:
            shard.scopes.add(scope)
            try:
                await self._complete(shard, shard.transactions[transactional_id])
            finally:
                shard.scopes.discard(scope)

    async def _complete(self, shard: TransactionShard, prepared: Transaction) -> None:
        """Try until it succeeds: while too few replicas are in sync, nothing is committed and no state can be written."""
        transactional_id, has_markers, level = prepared.transactional_id, False, logging.WARNING
        while self._shards.is_current(shard):
            try:
                if not has_markers:
                    # Consumers see what a marker ends, and a new leader might lack a decision that is not committed.
                    await self._log.wait_committed(shard.partition, shard.depends_on(transactional_id))
                    prepared = await self._mark(shard, prepared)
                    has_markers = True
                shard.write(transitions.complete(prepared, self._clock.now_ms()), self._clock.now_ms())
                return
            except FencedError as error:
                logger.warning("Transaction %s is not ended by this coordinator: %s", transactional_id, error)
                return
            except KafkaError as error:
                logger.log(level, "Transaction %s is not complete yet: %s", transactional_id, error)
                level = logging.DEBUG
            await trio.sleep(RETRY_SECONDS)

    async def _mark(self, shard: TransactionShard, prepared: Transaction) -> Transaction:
        """Write the end markers to every partition; returns the transaction, with a later epoch where a partition has one.

        Raises FencedError; KafkaError when it has to be tried again.
        """
        try:
            await write_markers(self._channels, prepared, shard.leader_epoch)
            return prepared
        except OutdatedError as error:
            # Only the present coordinator may abort what a later epoch has open: its successor may have begun that.
            await self._confirm_state(shard, prepared.transactional_id, _no_flush)
            logger.warning("Transaction %s was not the last one: %s", prepared.transactional_id, error)
            return transitions.bump_epoch_past(
                prepared, await bump_epoch_past(self._channels, prepared, error.partitions, shard.leader_epoch)
            )

    # Time

    async def run(self) -> None:
        """End what was decided, abort what takes too long, and forget what is not used, for ever."""
        async with trio.open_nursery() as nursery:
            self._nursery = nursery
            unfinished, self._unfinished = self._unfinished, []
            for shard, transactional_id in unfinished:
                self._finish_soon(shard, transactional_id)
            nursery.start_soon(self._run_timeouts)
            nursery.start_soon(self._run_expiry)

    async def _run_timeouts(self) -> None:
        while True:
            await trio.sleep(self.settings.transaction_abort_timed_out_transaction_cleanup_interval_ms / 1000)
            self.abort_timed_out()

    def abort_timed_out(self) -> None:
        """Abort, and fence, every transaction that is open for longer than its producer allowed."""
        now_ms = self._clock.now_ms()
        for shard in self._shards:
            for known in list(shard.transactions.values()):
                if transitions.is_timed_out(known, now_ms):
                    logger.info("Transaction %s is aborted: it took too long", known.transactional_id)
                    try:
                        self._append(shard, transitions.fence(known, TRANSACTIONS_V2, now_ms))
                    except KafkaError as error:
                        logger.warning("Transaction %s could not be aborted: %s", known.transactional_id, error)

    async def _run_expiry(self) -> None:
        while True:
            await trio.sleep(self.settings.transaction_remove_expired_transaction_cleanup_interval_ms / 1000)
            self.remove_expired_transactional_ids()

    def remove_expired_transactional_ids(self) -> None:
        """Forget transactional ids that were not used for ``transactional.id.expiration.ms``."""
        now_ms = self._clock.now_ms()
        for shard in self._shards:
            expired = [
                transactional_id
                for transactional_id, known in shard.transactions.items()
                if transitions.is_expired(known, now_ms, self.settings.transactional_id_expiration_ms)
            ]
            try:
                for start in range(0, len(expired), _REMOVED_PER_BATCH):
                    shard.forget(expired[start : start + _REMOVED_PER_BATCH], now_ms)
            except KafkaError as error:
                logger.warning("Transactional ids of partition %d could not be removed: %s", shard.partition, error)
