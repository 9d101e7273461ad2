"""Producers: idempotent ones, and transactional ones of both generations, which behave as Kafka's clients do.

A request whose response is lost is repeated unchanged, with the same sequence numbers, until it is answered. If a
transactional producer dies, the next one with its id aborts its transaction by InitProducerId.
"""

from __future__ import annotations

import trio

from ottla.base.errors import ErrorCode
from ottla.wire.messages.add_offsets_to_txn import AddOffsetsToTxnRequest
from ottla.wire.messages.add_partitions_to_txn import AddPartitionsToTxnRequest, AddPartitionsToTxnTopic
from ottla.wire.messages.end_txn import EndTxnRequest
from ottla.wire.messages.init_producer_id import InitProducerIdRequest
from ottla.wire.messages.produce import PartitionProduceData, ProduceRequest, TopicProduceData
from ottla.wire.messages.txn_offset_commit import (
    TxnOffsetCommitRequest,
    TxnOffsetCommitRequestPartition,
    TxnOffsetCommitRequestTopic,
)
from ottla.wire.records import build_batch

from .clients import PARTITIONS, Actor
from .history import History, Outcome, Sent, TopicPartition, Transaction
from .network import Lost
from .world import World

KEYS = 6
CLASSIC_TIMEOUT_MS = 60_000
_FIRST_V2_PRODUCE = 12


class Refused(Exception):
    """The broker returned an error that is not retriable."""

    def __init__(self, what: str, code: ErrorCode) -> None:
        super().__init__(f"{what}: {code.name}")
        self.code = code


class Producer(Actor):
    """A producer; ``is_settled`` once it has nothing left to do."""

    transactional_id: str | None = None
    produce_version = 11
    codecs = (0, 0, 0, 3, 4)

    def __init__(self, world: World, history: History, name: str, pause: float) -> None:
        super().__init__(world, history, name)
        self.pause = pause
        self.producer_id = -1
        self.epoch = -1
        self.sequences: dict[TopicPartition, int] = {}

    async def init(self) -> None:
        """Send InitProducerId until it succeeds."""
        request = InitProducerIdRequest(
            transactional_id=self.transactional_id, transaction_timeout_ms=CLASSIC_TIMEOUT_MS
        )
        answer = await self.insist(request, 4, lambda answer: [answer.error_code])
        if answer.error_code:
            raise Refused("InitProducerId", ErrorCode(answer.error_code))
        self.producer_id, self.epoch = answer.producer_id, answer.producer_epoch
        self.sequences = {}
        if self.transactional_id is None and not self.world.mode.may_lose:
            if other := self.history.producer_ids.get(self.producer_id):
                self.world.violate(f"{self.name} is producer {self.producer_id}, as {other} was before")
            self.history.producer_ids[self.producer_id] = self.name
        self.log(f"is producer {self.producer_id} epoch {self.epoch}")

    def new_records(self, partition: TopicPartition, transaction: Transaction | None) -> list[Sent]:
        rng = self.rng
        records = []
        for _ in range(rng.choice((1, 1, 2, 4))):
            is_compacted = partition[0] == "compact"
            records.append(
                self.history.record(
                    self.name,
                    partition,
                    self.world.clock.now_ms() + rng.randint(-500, 500),
                    key=f"key {rng.randrange(KEYS)}".encode() if is_compacted else None,
                    is_tombstone=is_compacted and rng.random() < 0.15,
                    padding=rng.choice((0, 10, 120)),
                    transaction=transaction,
                )
            )
        return records

    async def produce(self, partition: TopicPartition, records: list[Sent]) -> None:
        """Send a batch until it is answered. Raises Refused."""
        sequences = self.sequences  # of this producer id and epoch, which may change before the response
        sequence = sequences.get(partition, 0)
        batch = build_batch(
            [record.as_record() for record in records],
            producer_id=self.producer_id,
            producer_epoch=self.epoch,
            base_sequence=sequence,
            is_transactional=self.transactional_id is not None,
            compression=self.rng.choice(self.codecs),
        )
        data = PartitionProduceData(index=partition[1], records=bytes(batch))
        request = ProduceRequest(
            transactional_id=self.transactional_id,
            acks=self.rng.choice(self.world.acks),
            timeout_ms=10_000,
            topic_data=[TopicProduceData(name=partition[0], partition_data=[data])],
        )
        answer = await self.insist(
            request, self.produce_version, lambda answer: [answer.responses[0].partition_responses[0].error_code]
        )
        (result,) = answer.responses[0].partition_responses
        what = f"{partition[0]}-{partition[1]} {records[0].number}..{records[-1].number} sequence {sequence}"
        if result.error_code:
            raise Refused(f"Produce {what}", ErrorCode(result.error_code))
        sequences[partition] = sequence + len(records)
        for at, record in enumerate(records):
            record.offset = result.base_offset + at
        self.log(f"wrote {what} at {result.base_offset}")


class IdempotentProducer(Producer):
    """Writes to any partition, with one batch in flight to each: a partition without leader does not delay the others."""

    async def run(self, until: trio.Event) -> None:
        await self.init()
        busy: set[TopicPartition] = set()
        async with trio.open_nursery() as nursery:
            while not until.is_set():
                await trio.sleep(self.rng.expovariate(1 / self.pause))
                partition = self.rng.choice(PARTITIONS)
                if partition not in busy:
                    busy.add(partition)
                    nursery.start_soon(self._write, partition, busy)

    async def _write(self, partition: TopicPartition, busy: set[TopicPartition]) -> None:
        try:
            await self.produce(partition, self.new_records(partition, None))
        except Refused as error:
            if not self.world.mode.may_lose:
                self.world.violate(f"{self.name}: {error}")
            await self.init()
        busy.remove(partition)


class TransactionalProducer(Producer):
    """One transaction after the other. Some of them commit offsets of ``group``; in some the producer ``dies``."""

    dies = True

    def __init__(self, world: World, history: History, name: str, pause: float, *, is_v2: bool) -> None:
        super().__init__(world, history, name, pause)
        self.transactional_id = name
        self.is_v2 = is_v2
        self.produce_version = _FIRST_V2_PRODUCE if is_v2 else 11
        self.group = f"group of {name}"
        self._count = 0

    async def run(self, until: trio.Event) -> None:
        try:
            await self.init()
            while not until.is_set():
                await trio.sleep(self.rng.expovariate(1 / self.pause))
                await self.transaction()
            await self.init()  # so that no transaction stays open
        except Refused as error:
            if not self.world.mode.may_lose:
                self.world.violate(f"{self.name}: {error}")
            self.log(f"gives up: {error}")

    async def transaction(self) -> None:
        """One transaction, until it is committed or aborted."""
        self._count += 1
        transaction = Transaction(f"{self.name} transaction {self._count}")
        self.history.transactions.append(transaction)
        self.log(f"begins {transaction.name}")
        began = self.world.clock.now_ms()
        try:
            await self._write(transaction)
            await self._end(transaction)
        except Refused as error:
            took_ms = self.world.clock.now_ms() - began
            if took_ms < CLASSIC_TIMEOUT_MS and self.world.trusts_time and not self.world.mode.may_lose:
                self.world.violate(f"{transaction.name}: {error}")
            self.log(f"gives up {transaction.name}, {transaction.outcome.value}: {error}")
            await self.init()

    async def _write(self, transaction: Transaction) -> None:
        for partition in self.rng.sample(PARTITIONS, self.rng.randint(1, 3)):
            if not self.is_v2:
                await self._add(partition)
            for _ in range(self.rng.choice((1, 1, 2))):
                await self.produce(partition, self.new_records(partition, transaction))
        if self.rng.random() < 0.5:
            await self._commit_offset(transaction)

    async def _add(self, partition: TopicPartition) -> None:
        request = AddPartitionsToTxnRequest(
            v3_and_below_transactional_id=self.name,
            v3_and_below_producer_id=self.producer_id,
            v3_and_below_producer_epoch=self.epoch,
            v3_and_below_topics=[AddPartitionsToTxnTopic(name=partition[0], partitions=[partition[1]])],
        )

        def codes(answer: AddPartitionsToTxnRequest) -> list[int]:
            return [answer.results_by_topic_v3_and_below[0].results_by_partition[0].partition_error_code]

        self._check(request, codes(await self.insist(request, 3, codes)))

    def _check(self, request: object, codes: list[int]) -> None:
        if any(codes):
            raise Refused(type(request).__name__, ErrorCode(next(filter(None, codes))))

    async def _commit_offset(self, transaction: Transaction) -> None:
        if not self.is_v2:
            added = AddOffsetsToTxnRequest(
                transactional_id=self.name,
                producer_id=self.producer_id,
                producer_epoch=self.epoch,
                group_id=self.group,
            )
            answer = await self.insist(added, 3, lambda answer: [answer.error_code])
            self._check(added, [answer.error_code])
        part = TxnOffsetCommitRequestPartition(partition_index=0, committed_offset=self._count, committed_metadata="")
        request = TxnOffsetCommitRequest(
            transactional_id=self.name,
            group_id=self.group,
            producer_id=self.producer_id,
            producer_epoch=self.epoch,
            topics=[TxnOffsetCommitRequestTopic(name="plain", partitions=[part])],
        )
        transaction.offsets = (self.group, self._count)
        answer = await self.insist(request, 5 if self.is_v2 else 4, lambda a: [a.topics[0].partitions[0].error_code])
        self._check(request, [answer.topics[0].partitions[0].error_code])

    async def _end(self, transaction: Transaction) -> None:
        commits = self.rng.random() < 0.7
        request = EndTxnRequest(
            transactional_id=self.name,
            producer_id=self.producer_id,
            producer_epoch=self.epoch,
            committed=commits,
        )
        death = self.rng.random() if self.dies else 1.0
        if death < 0.1:  # before it sends EndTxn
            await self._die(transaction)
            return
        if commits:
            transaction.outcome = Outcome.UNKNOWN
        version = 5 if self.is_v2 else 4
        if death < 0.2:  # before it has the response
            with trio.move_on_after(self.rng.choice((0, 0.01, 0.2))):
                try:
                    await self.client.call(request, version)
                except Lost:
                    pass
            await self._die(transaction)
            return
        answer = await self.insist(request, version, lambda answer: [answer.error_code])
        self._check(request, [answer.error_code])
        transaction.outcome = Outcome.COMMITTED if commits else Outcome.ABORTED
        self.log(f"ended {transaction.name}: {transaction.outcome.value}")
        if self.is_v2:
            if (answer.producer_id, answer.producer_epoch) == (self.producer_id, self.epoch):
                self.world.violate(f"{transaction.name} ended, and its epoch stays {self.epoch}")
            self.producer_id, self.epoch = answer.producer_id, answer.producer_epoch
            self.sequences = {}

    async def _die(self, transaction: Transaction) -> None:
        self.log(f"dies in {transaction.name}, {transaction.outcome.value}")
        self.client.close()
        await trio.sleep(self.rng.choice((0, 0.5)))
        await self.init()
