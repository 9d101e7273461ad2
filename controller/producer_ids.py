"""Producer ids of a broker, from blocks that it requests from the controller in advance (KIP-730).

As in Kafka's RPCProducerIdManager the next block is requested at 90 % of one, and a client that comes when no id is left has to
try again. Unlike there the first block is requested at the start, so that the first client need not wait. What is left of a
block at a stop is lost.
"""

from __future__ import annotations

import logging
from collections.abc import Callable
from typing import NamedTuple, Protocol

import trio

from ..base.errors import ErrorCode, KafkaError
from ..replication.broker_client import PeerUnavailableError
from ..replication.controller_channel import RequestChannel
from ..wire.messages.allocate_producer_ids import AllocateProducerIdsRequest, AllocateProducerIdsResponse

logger = logging.getLogger(__name__)

PREFETCH_AT = 0.9
RETRY_SECONDS = 0.05
"""After an answer that gave none, as in Kafka."""

_ASK_SECONDS = 60.0


class ProducerIdSource(Protocol):
    """Where a broker has its producer ids from; ``run`` in a task of its own."""

    async def next_producer_id(self) -> int: ...

    async def run(self) -> None: ...


class ProducerIdsBlock(NamedTuple):
    """The ids from ``first`` up to, and without, ``end``."""

    first: int
    end: int

    @property
    def prefetch_at(self) -> int:
        return self.first + int((self.end - self.first) * PREFETCH_AT)


_NONE = ProducerIdsBlock(0, 0)


class AllocatedProducerIds:
    """A ``ProducerIdSource``; ``run`` in a task of its own asks for blocks."""

    def __init__(self, channel: RequestChannel, broker_id: int, broker_epoch: Callable[[], int]) -> None:
        self._channel = channel
        self._broker_id = broker_id
        self._broker_epoch = broker_epoch
        self._block = _NONE
        self._next_id = 0
        self._next_block: ProducerIdsBlock | None = None
        self._wanted = trio.Event()

    async def next_producer_id(self) -> int:
        """An id that no producer had before. Raises KafkaError COORDINATOR_LOAD_IN_PROGRESS while there is none."""
        if self._next_id >= self._block.end:
            if self._next_block is None:
                self._wanted.set()
                raise KafkaError(ErrorCode.COORDINATOR_LOAD_IN_PROGRESS, "waiting for the next block of producer ids")
            self._block, self._next_block = self._next_block, None
            self._next_id = self._block.first
        given = self._next_id
        self._next_id += 1
        if given == self._block.prefetch_at:
            self._wanted.set()
        return given

    async def run(self) -> None:
        """Request the next block whenever it is wanted, the first one at once."""
        self._wanted.set()
        while True:
            await self._wanted.wait()
            self._next_block = await self._ask()
            if self._next_block is None:
                await trio.sleep(RETRY_SECONDS)
            else:
                self._wanted = trio.Event()

    async def _ask(self) -> ProducerIdsBlock | None:
        request = AllocateProducerIdsRequest(broker_id=self._broker_id, broker_epoch=self._broker_epoch())
        try:
            response: AllocateProducerIdsResponse = await self._channel.send(request, timeout=_ASK_SECONDS)
        except (PeerUnavailableError, KafkaError) as error:
            logger.warning("No block of producer ids could be obtained: %s", error)
            return None
        if response.error_code:
            # The controller does not know of this broker's registration yet, or of its newest.
            logger.info("The controller gave no block of producer ids: error %d", response.error_code)
            return None
        first, length = response.producer_id_start, response.producer_id_len
        if first < self._block.end or length <= 0:
            logger.error("The controller gave producer ids that are not new: %d from %d on", length, first)
            return None
        return ProducerIdsBlock(first, first + length)
