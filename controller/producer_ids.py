"""Producer ids, unique in the cluster: each broker takes blocks of a thousand from ``/latest_producer_id_block``."""

from __future__ import annotations

import trio

from ..base.errors import ErrorCode, KafkaError
from . import znodes
from .store import BadVersionError, ClusterStore, Set, StoreError

BLOCK_SIZE = 1000


class ProducerIds:
    """Hands out ids; a block left half used at a stop is lost, as in Kafka."""

    def __init__(self, store: ClusterStore, broker_id: int) -> None:
        self._store = store
        self._broker_id = broker_id
        self._next = 0
        self._end = 0
        self._lock = trio.Lock()

    async def next_producer_id(self) -> int:
        """An id nobody had before. Raises KafkaError KAFKA_STORAGE_ERROR when the store is gone."""
        while self._next >= self._end:
            async with self._lock:
                if self._next >= self._end:
                    try:
                        await self._take_block()
                    except StoreError as error:
                        raise KafkaError(ErrorCode.KAFKA_STORAGE_ERROR, str(error)) from error
        self._next += 1
        return self._next - 1

    async def _take_block(self) -> None:
        while True:
            node = await self._store.get(znodes.PRODUCER_ID_BLOCK)
            first = znodes.decode_producer_id_block(node.data)[1] + 1 if node.data else 0
            last = first + BLOCK_SIZE - 1
            data = znodes.encode_producer_id_block(self._broker_id, first, last)
            try:
                await self._store.multi([Set(znodes.PRODUCER_ID_BLOCK, data, node.stat.version)])
            except BadVersionError:
                continue
            self._next, self._end = first, last + 1
            return
