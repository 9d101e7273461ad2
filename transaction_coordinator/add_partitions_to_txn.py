"""A partition leader's requests to the coordinator of a transaction, local or on another broker (AddPartitionsToTxn).

The coordinator is the leader of the partition of ``__transaction_state`` that the transactional id belongs to, by the
metadata cache. Between brokers the versions from 4 on are used, which say whether a partition is to be added or only to be
verified (KIP-890, Kafka's AddPartitionsToTxnManager).
"""

from __future__ import annotations

from collections.abc import Collection
from typing import NamedTuple

import trio

from ..base.errors import ErrorCode, KafkaError, known_code
from ..base.partitions import TopicPartition
from ..replication.broker_client import NoAnswerError
from ..replication.coordinator_log import Flush
from ..replication.metadata_cache import MetadataCache
from ..replication.peers import Peers
from ..wire.messages.add_partitions_to_txn import (
    AddPartitionsToTxnRequest,
    AddPartitionsToTxnResponse,
    AddPartitionsToTxnTopic,
    AddPartitionsToTxnTransaction,
)
from .coordinator import TransactionCoordinator
from .settings import TOPIC
from .transaction import TRANSACTIONS_V2

_PURPOSE = "transaction-coordinator"
_BETWEEN_BROKERS_FROM = 4
_RETRY_SECONDS = 0.02
"""add.partitions.to.txn.retry.backoff.ms of Kafka 4."""


class ProducerPartitions(NamedTuple):
    """A producer, and the partitions it is about to write to."""

    transactional_id: str
    producer: tuple[int, int]
    partitions: Collection[TopicPartition]


class AddPartitionsToTxnManager:
    """The coordinators of all transactional ids. Every method raises KafkaError."""

    def __init__(self, broker_id: int, metadata: MetadataCache, peers: Peers, local: TransactionCoordinator) -> None:
        self._broker_id = broker_id
        self._metadata = metadata
        self._peers = peers
        self._local = local

    async def verify(self, asked: ProducerPartitions, flush: Flush) -> set[TopicPartition]:
        """Those of the partitions that are part of the producer's open transaction."""
        coordinator = self._coordinator(asked.transactional_id)
        if coordinator == self._broker_id:
            return await self._local.verify_partitions(asked.transactional_id, asked.producer, asked.partitions, flush)
        try:
            codes = await self._ask(coordinator, asked, flush, verify_only=True)
        except KafkaError as error:
            if error.code is ErrorCode.UNSUPPORTED_VERSION:
                return set(asked.partitions)  # brokers before Kafka 3.6 verify nothing
            raise
        for code in codes.values():
            if code not in (ErrorCode.NONE, ErrorCode.TRANSACTION_ABORTABLE, ErrorCode.INVALID_TXN_STATE):
                raise KafkaError(code)
        return {name for name, code in codes.items() if code is ErrorCode.NONE}

    async def add(self, asked: ProducerPartitions, flush: Flush) -> None:
        """Make the partitions part of the producer's transaction, which is of transactions V2 and begins with the first."""
        coordinator = self._coordinator(asked.transactional_id)
        if coordinator == self._broker_id:
            await self._local.add_partitions(
                asked.transactional_id, asked.producer, asked.partitions, TRANSACTIONS_V2, flush
            )
            return
        codes = await self._ask(coordinator, asked, flush, verify_only=False)
        for code in codes.values():
            if code is not ErrorCode.NONE:
                raise KafkaError(code)

    async def wait_ended(self, transactional_id: str) -> None:
        """Return when the id's last transaction may have ended: another coordinator is asked again after a moment."""
        if self._coordinator(transactional_id) == self._broker_id:
            await self._local.wait_ended(transactional_id)
        else:
            await trio.sleep(_RETRY_SECONDS)

    def _coordinator(self, transactional_id: str) -> int:
        """The broker that coordinates an id. As long as the topic does not exist no id is known, which this broker can say."""
        if self._metadata.topic(TOPIC) is None:
            return self._broker_id
        number = self._local.partition_for(transactional_id)
        state = self._metadata.partition(TOPIC, number)
        if state is None or state.leader < 0:
            raise KafkaError(ErrorCode.COORDINATOR_NOT_AVAILABLE, f"{TOPIC}-{number} has no leader")
        return state.leader

    async def _ask(
        self, coordinator: int, asked: ProducerPartitions, flush: Flush, *, verify_only: bool
    ) -> dict[TopicPartition, ErrorCode]:
        await flush()
        topics: dict[str, AddPartitionsToTxnTopic] = {}
        for topic, number in asked.partitions:
            topics.setdefault(topic, AddPartitionsToTxnTopic(name=topic)).partitions.append(number)
        transaction = AddPartitionsToTxnTransaction(
            transactional_id=asked.transactional_id,
            producer_id=asked.producer[0],
            producer_epoch=asked.producer[1],
            verify_only=verify_only,
            topics=list(topics.values()),
        )
        response = await self._exchange(coordinator, AddPartitionsToTxnRequest(transactions=[transaction]))
        if response.error_code:
            raise KafkaError(known_code(response.error_code))
        return {
            TopicPartition(topic.name, result.partition_index): known_code(result.partition_error_code)
            for answered in response.results_by_transaction
            for topic in answered.topic_results
            for result in topic.results_by_partition
        }

    async def _exchange(self, coordinator: int, request: AddPartitionsToTxnRequest) -> AddPartitionsToTxnResponse:
        try:
            client = self._peers.client(coordinator, _PURPOSE)
            version = await client.negotiate(AddPartitionsToTxnRequest)
            if version < _BETWEEN_BROKERS_FROM:
                raise KafkaError(ErrorCode.UNSUPPORTED_VERSION, f"broker {coordinator} does not verify transactions")
            response: AddPartitionsToTxnResponse = await client.send(request, version)
            return response
        except NoAnswerError as error:
            raise KafkaError(ErrorCode.NETWORK_EXCEPTION, str(error)) from error
