"""The store of the states of share partitions, as one leader has it: the product's client of the share coordinators.

Beside what happens to the coordinators (``coordinators``), its requests fail, or seem to fail.
"""

from __future__ import annotations

import random
from collections.abc import Sequence
from typing import Any

import trio

from ottla.base.errors import ErrorCode, KafkaError
from ottla.share_coordinator.client import ShareStateClient
from ottla.share_coordinator.state import SharePartitionKey, ShareState, StateBatch

from .coordinators import CoordinatorRoute, Coordinators


class StoreTerms:
    """What holds for the stores of all leaders."""

    def __init__(self) -> None:
        self.trouble = 0.0
        """The share of requests that fail."""
        self.delay_seconds = 0.0
        self.leader_epochs: dict[SharePartitionKey, int] = {}
        """The highest whose leader has read the state."""


async def _no_topic() -> None:
    raise AssertionError("the topic is there")


class SimulatedStore:
    """See the module."""

    def __init__(self, coordinators: Coordinators, terms: StoreTerms, rng: random.Random) -> None:
        self._violate = coordinators.world.violate
        self._terms = terms
        self._rng = rng
        self._route = CoordinatorRoute(coordinators, rng)
        route: Any = self._route
        self._client = ShareStateClient(route.leader, route, route, route, _no_topic)
        self._is_unsure: set[SharePartitionKey] = set()
        """Of which something may have been stored that its leader takes for lost."""

    async def _delay(self) -> None:
        if self._terms.delay_seconds:
            await trio.sleep(self._rng.uniform(0, self._terms.delay_seconds))

    def _fail(self, share: float) -> None:
        if self._rng.random() < share:
            code = self._rng.choice((ErrorCode.NOT_COORDINATOR, ErrorCode.REQUEST_TIMED_OUT))
            raise KafkaError(code, "trouble")

    async def read(self, key: SharePartitionKey, leader_epoch: int) -> ShareState:
        await self._delay()
        self._fail(self._terms.trouble)
        found = await self._client.read(key, leader_epoch)
        self._terms.leader_epochs[key] = max(leader_epoch, self._terms.leader_epochs.get(key, 0))
        self._is_unsure.discard(key)
        return found

    async def write(
        self,
        key: SharePartitionKey,
        state_epoch: int,
        leader_epoch: int,
        start_offset: int,
        delivery_complete_count: int,
        batches: Sequence[StateBatch],
    ) -> None:
        self._check(key, batches)
        try:
            await self._delay()
            self._fail(self._terms.trouble / 2)
            await self._client.write(key, state_epoch, leader_epoch, start_offset, delivery_complete_count, batches)
            ended = self._route.ended_counts[key]
            if ended > delivery_complete_count and key not in self._is_unsure:
                self._violate(f"{ended} records are done with, {delivery_complete_count} are counted")
            await self._delay()
            self._fail(self._terms.trouble / 2)
        except KafkaError:
            self._is_unsure.add(key)  # from here on the leader knows less than what is stored
            raise

    def _check(self, key: SharePartitionKey, batches: Sequence[StateBatch]) -> None:
        last = -1
        for batch in batches:
            if batch.first_offset <= last or batch.last_offset < batch.first_offset or batch.delivery_state == 1:
                self._violate(f"written batches are not in order: {batches}")
            last = batch.last_offset
