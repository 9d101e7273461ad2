"""Producer ids in ZooKeeper mode, allocated in blocks of a thousand (KIP-730).

Each id is given out once.

A block is taken by a conditional write of ``/latest_producer_id_block``: by the controller, for whichever broker asks, or by a
broker itself where ``inter.broker.protocol.version`` is older than the request for it.
"""

from __future__ import annotations

import trio

from ...base.errors import ErrorCode, KafkaError
from ...metadata.delta import ClusterDelta
from ...replication.metadata_cache import MetadataCache
from .nodes import znodes
from .nodes.decoding import decoded
from .store.cluster_store import BadVersionError, ClusterStore, ConnectionLossError, Set, StoreError

BLOCK_SIZE = 1000


async def take_block(store: ClusterStore, broker_id: int) -> int:
    """Take the next block for a broker: the first of its ``BLOCK_SIZE`` ids.

    Raises StoreError, and KafkaError UNKNOWN_SERVER_ERROR when what is stored is not understood: it could name ids in use.
    """
    while True:
        node = await store.get(znodes.PRODUCER_ID_BLOCK)
        block = decoded(znodes.PRODUCER_ID_BLOCK, node, znodes.decode_producer_id_block) if node.data else (-1, -1)
        if block is None:
            raise KafkaError(ErrorCode.UNKNOWN_SERVER_ERROR, f"{znodes.PRODUCER_ID_BLOCK} is not understood")
        first = block[1] + 1
        data = znodes.encode_producer_id_block(broker_id, first, first + BLOCK_SIZE - 1)
        try:
            await store.multi([Set(znodes.PRODUCER_ID_BLOCK, data, node.stat.version)])
        except (BadVersionError, ConnectionLossError):
            continue  # if the block was taken all the same it is lost, as at a broker's stop
        return first


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
