"""The store of the states of share partitions, as the share coordinator keeps them; its requests fail, or seem to fail."""

from __future__ import annotations

import random
from collections.abc import Callable, Sequence

import trio

from ottla.base.errors import ErrorCode, KafkaError
from ottla.share_coordinator.state import NOT_BEGUN, SharePartitionKey, ShareState, StateBatch

_TERMINAL = (2, 4)


class SimulatedStore:
    """See the module. States are kept offset by offset."""

    def __init__(self, rng: random.Random, violate: Callable[[str], None]) -> None:
        self._rng = rng
        self._violate = violate
        self.trouble = 0.0
        """The share of requests that fail."""
        self.delay_seconds = 0.0
        self.is_unsure = False
        """Whether something may have been stored that its leader takes for lost."""
        self.leader_epochs: dict[SharePartitionKey, int] = {}
        self.state_epochs: dict[SharePartitionKey, int] = {}
        self.starts: dict[SharePartitionKey, int] = {}
        self.ended: dict[SharePartitionKey, set[int]] = {}
        """The offsets that were acknowledged or archived here once."""
        self.states: dict[SharePartitionKey, dict[int, tuple[int, int]]] = {}
        """State and delivery count by offset, from the start offset on."""

    def begin(self, key: SharePartitionKey) -> None:
        self.leader_epochs[key], self.state_epochs[key] = 0, 1
        self.starts[key], self.states[key] = NOT_BEGUN, {}
        self.ended[key] = set()

    async def _delay(self) -> None:
        if self.delay_seconds:
            await trio.sleep(self._rng.uniform(0, self.delay_seconds))

    def _fail(self, share: float) -> None:
        if self._rng.random() < share:
            code = self._rng.choice((ErrorCode.NOT_COORDINATOR, ErrorCode.REQUEST_TIMED_OUT))
            raise KafkaError(code, "trouble")

    def _fence(self, key: SharePartitionKey, leader_epoch: int) -> None:
        if leader_epoch < self.leader_epochs[key]:
            raise KafkaError(ErrorCode.FENCED_LEADER_EPOCH, f"epoch {leader_epoch} is past")

    async def read(self, key: SharePartitionKey, leader_epoch: int) -> ShareState:
        await self._delay()
        self._fail(self.trouble)
        self._fence(key, leader_epoch)
        self.leader_epochs[key] = leader_epoch
        batches: list[StateBatch] = []
        for offset, (state, count) in sorted(self.states[key].items()):
            if batches and batches[-1][1:] == (offset - 1, state, count):
                batches[-1] = batches[-1]._replace(last_offset=offset)
            else:
                batches.append(StateBatch(offset, offset, state, count))
        return ShareState(self.state_epochs[key], self.starts[key], tuple(batches), -1)

    async def write(
        self,
        key: SharePartitionKey,
        state_epoch: int,
        leader_epoch: int,
        start_offset: int,
        delivery_complete_count: int,
        batches: Sequence[StateBatch],
    ) -> None:
        await self._delay()
        self._fail(self.trouble / 2)
        self._fence(key, leader_epoch)
        if state_epoch < self.state_epochs[key]:
            raise KafkaError(ErrorCode.FENCED_STATE_EPOCH, f"state epoch {state_epoch} is past")
        if start_offset < self.starts[key]:
            self._violate(f"the start offset goes back from {self.starts[key]} to {start_offset}")
        self.starts[key] = start_offset
        states = self.states[key]
        last = -1
        for batch in batches:
            if batch.first_offset <= last or batch.last_offset < batch.first_offset or batch.delivery_state == 1:
                self._violate(f"written batches are not in order: {batches}")
            last = batch.last_offset
            for offset in range(batch.first_offset, batch.last_offset + 1):
                states[offset] = batch.delivery_state, batch.delivery_count
                if batch.delivery_state in _TERMINAL:
                    self.ended[key].add(offset)
        for offset in [offset for offset in states if offset < start_offset]:
            del states[offset]
        stored = sum(state in _TERMINAL for state, _ in states.values())
        if stored > delivery_complete_count and not self.is_unsure:
            self._violate(f"{stored} records are done with, {delivery_complete_count} are counted")
        await self._delay()
        if self.trouble:
            self.is_unsure = True  # from here on the leader knows less than what is stored
        self._fail(self.trouble / 2)
