"""Producer ids of a broker that has the cluster's store for itself: it takes blocks of a thousand there, as it needs them."""

from __future__ import annotations

import trio

from ...base.errors import ErrorCode, KafkaError
from ...metadata.delta import ClusterDelta
from ...replication.metadata_cache import MetadataCache
from .producer_id_blocks import BLOCK_SIZE, take_block
from .store.cluster_store import ClusterStore, StoreError


class ProducerIds:
    """Hands out ids; a block left half used at a stop is lost, as in Kafka."""

    def __init__(self, store: ClusterStore, broker_id: int, metadata: MetadataCache) -> None:
        self._store = store
        self._metadata = metadata
        self._broker_id = broker_id
        self._next = 0
        self._end = 0
        self._lock = trio.Lock()

    async def run(self) -> None:
        """Does nothing: a block is taken when it is needed."""

    async def next_producer_id(self) -> int:
        """An id that no producer had before. Raises KafkaError KAFKA_STORAGE_ERROR when the store is gone."""
        while self._next >= self._end:
            async with self._lock:
                if self._next >= self._end:
                    try:
                        self._next = await take_block(self._store, self._broker_id)
                    except StoreError as error:
                        raise KafkaError(ErrorCode.KAFKA_STORAGE_ERROR, str(error)) from error
                    self._end = self._next + BLOCK_SIZE
                    self._metadata.publish(ClusterDelta(next_producer_id=self._end))
        self._next += 1
        return self._next - 1
