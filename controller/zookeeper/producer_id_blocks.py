"""Blocks of producer ids: each is given out once, by a conditional write of ``/latest_producer_id_block`` (KIP-730)."""

from __future__ import annotations

from ...base.errors import ErrorCode, KafkaError
from . import znodes
from .loading import decoded
from .store.cluster_store import BadVersionError, ClusterStore, ConnectionLossError, Set

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
