"""Blocks of producer ids: each is given out once, by a conditional write of ``/latest_producer_id_block`` (KIP-730)."""

from __future__ import annotations

from . import znodes
from .store import BadVersionError, ClusterStore, ConnectionLossError, Set

BLOCK_SIZE = 1000


async def take_block(store: ClusterStore, broker_id: int) -> int:
    """Take the next block for a broker: the first of its ``BLOCK_SIZE`` ids. Raises StoreError."""
    while True:
        node = await store.get(znodes.PRODUCER_ID_BLOCK)
        first = znodes.decode_producer_id_block(node.data)[1] + 1 if node.data else 0
        data = znodes.encode_producer_id_block(broker_id, first, first + BLOCK_SIZE - 1)
        try:
            await store.multi([Set(znodes.PRODUCER_ID_BLOCK, data, node.stat.version)])
        except (BadVersionError, ConnectionLossError):
            continue  # a block that may have been taken in vain is lost, as at a broker's stop
        return first
