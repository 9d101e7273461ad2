"""A member of a share group: fetches, and says something of what it got, in time or late, once or twice, or not at all."""

from __future__ import annotations

import random
from collections.abc import Sequence

import trio

from ottla.base.errors import ErrorCode, KafkaError
from ottla.share_coordinator.state import SharePartitionKey
from ottla.share_partitions.acknowledgement import ACCEPT, GAP, REJECT, RELEASE, RENEW, Acknowledgement
from ottla.share_partitions.acquisition import AcquiredRange, RecordLimits
from ottla.share_partitions.led_partition import Outcome
from ottla.share_partitions.share_fetch import Fetched, ShareFetch, ShareFetchLimits, rotated

from .world import GROUP, KEYS, Life, ShareWorld

_REFUSALS = (ErrorCode.INVALID_RECORD_STATE, ErrorCode.INVALID_REQUEST)
_WAIT_SECONDS = 0.5
_PATIENCE_SECONDS = 1000.0
"""In the end nothing but being told ends a wait."""


async def _no_flush() -> None:
    pass


class ShareMember:
    """A process of the group, and those that take its place, one after the other."""

    def __init__(self, world: ShareWorld, name: str) -> None:
        self._world = world
        self._name = name
        self._rng: random.Random = world.random_for(name)
        self._number = 0
        self.member_id = ""
        self.is_calm = False
        """Whether it accepts all that it gets, at once."""
        self._epoch = 0

    async def run(self) -> None:
        """Until cancelled."""
        while True:
            self._number += 1
            self._epoch = 0
            self.member_id = f"{self._name}.{self._number}"
            life = self._world.life
            assert life is not None
            life.members.add(self.member_id)
            try:
                with trio.CancelScope() as scope:
                    life.requests.append(scope)
                    await self._live(life)
            finally:
                if life is self._world.life or self._rng.random() < 0.8:
                    self._end(life)
            await trio.sleep(self._rng.choice((0.0, 0.1, 1.0)) if not self.is_calm else 0.01)

    def _end(self, life: Life) -> None:
        if life.scope.cancel_called:
            return
        self._world.log(self.member_id, "session ends")
        for key in KEYS:
            model, leader = life.model(key)
            model.released(leader, self.member_id)
        life.end_session(self.member_id)

    async def _live(self, life: Life) -> None:
        """Serve one session."""
        rng = self._rng
        until = trio.current_time() + rng.expovariate(1 / 5)
        unsaid: list[tuple[SharePartitionKey, AcquiredRange]] = []
        while self.is_calm or trio.current_time() < until:
            if life is not self._world.life and (self.is_calm or rng.random() < 0.3):
                return
            if life.scope.cancel_called:
                return
            self._epoch += 1
            for result in await self._fetch(life):
                if result.error is not None:
                    self._world.log(self.member_id, f"{result.key.partition}: {result.error}")
                    await trio.sleep(0.05)
                unsaid.extend((result.key, acquired) for acquired in result.acquired)
            if self.is_calm:
                await self._accept(life, unsaid)
                unsaid = []
                await trio.sleep(0.01)
            else:
                unsaid = await self._say_something(life, unsaid)

    async def _fetch(self, life: Life) -> list[Fetched]:
        world, rng = self._world, self._rng
        wanted = RecordLimits(rng.choice((1, 3, 10, 500)), rng.choice((1, 5, 500)), rng.random() < 0.3)
        limits = ShareFetchLimits(
            wanted, rng.choice((0, 1, 1, 1500)), rng.choice((300, 100_000)), world.isolation_level
        )
        if self.is_calm:
            limits = ShareFetchLimits(RecordLimits(500, 500), 1, 100_000, world.isolation_level)
        fetch = ShareFetch(life.share_partitions, self.member_id, rotated(KEYS, self._epoch), limits)
        results = await fetch.run(_PATIENCE_SECONDS if self.is_calm else _WAIT_SECONDS, _no_flush)
        self._deliver(life, limits, results)
        return results

    def _deliver(self, life: Life, limits: ShareFetchLimits, results: Sequence[Fetched]) -> None:
        world = self._world
        total = 0
        for result in results:
            if not result.acquired:
                continue
            assert result.records is not None
            batches = result.records.batches
            sent = {offset for batch in batches for offset in range(batch.base_offset, batch.last_offset + 1)}
            gone = world.logs[result.key.partition].gone
            for first, last, _ in result.acquired:
                if missing := set(range(first, last + 1)) - sent - gone:
                    world.violate(f"{missing} are acquired, and not sent")
            first, last = result.acquired[0].first_offset, result.acquired[-1].last_offset
            is_past = batches[0].last_offset < first or batches[-1].base_offset > last
            if is_past and not gone.issuperset(range(first, last + 1)):
                world.violate(f"{first}-{last} are acquired, and more is sent: {batches}")
            result.records.release()
            world.log(self.member_id, f"{result.key.partition}: gets {[tuple(each) for each in result.acquired]}")
            is_current = world.is_current(life, result.key)
            model, leader = life.model(result.key)
            model.delivered(leader, self.member_id, result.acquired, is_current=is_current)
            total += sum(each.size for each in result.acquired)
        if limits.wanted.is_exact and total > limits.wanted.max_records:
            world.violate(f"{total} records were given, not {limits.wanted.max_records}")
        world.check(life)

    # --- what it says -------------------------------------------------------------------------------------------------

    async def _accept(self, life: Life, unsaid: Sequence[tuple[SharePartitionKey, AcquiredRange]]) -> None:
        for key, (first, last, _) in unsaid:
            await self._acknowledge(life, key, [Acknowledgement(first, last, (ACCEPT,))])

    async def _say_something(
        self, life: Life, unsaid: list[tuple[SharePartitionKey, AcquiredRange]]
    ) -> list[tuple[SharePartitionKey, AcquiredRange]]:
        rng = self._rng
        left = []
        await trio.sleep(rng.choice((0, 0, 0.01, 0.3, 0.9 * self._world.terms.lock_seconds, 3.0)))
        for key in KEYS:
            said = []
            for found, acquired in unsaid:
                if found != key:
                    continue
                choice = rng.random()
                if choice < 0.15:
                    left.append((key, acquired))
                elif choice < 0.95:
                    said.extend(self._words(acquired))
            if rng.random() < 0.03:
                first = rng.randint(0, 60)
                said.append(Acknowledgement(first, first + rng.randint(0, 5), (ACCEPT,)))  # who knows whose
            if not said:
                continue
            said.sort()
            await self._acknowledge(life, key, said)
            if rng.random() < 0.1:
                await self._acknowledge(life, key, said)
        return left

    def _words(self, acquired: AcquiredRange) -> list[Acknowledgement]:
        rng = self._rng
        first, last, _ = acquired
        kinds = (ACCEPT, ACCEPT, ACCEPT, RELEASE, REJECT, GAP, RENEW)
        choice = rng.random()
        if choice < 0.5:
            return [Acknowledgement(first, last, (rng.choice(kinds),))]
        if choice < 0.75:
            return [Acknowledgement(first, last, tuple(rng.choice(kinds) for _ in range(first, last + 1)))]
        middle = rng.randint(first, last)
        parts = [Acknowledgement(first, middle, (rng.choice(kinds),))]
        if middle < last and rng.random() < 0.7:
            parts.append(Acknowledgement(middle + 1, last, (rng.choice(kinds),)))
        return parts

    async def _acknowledge(self, life: Life, key: SharePartitionKey, said: Sequence[Acknowledgement]) -> None:
        world = self._world
        model, leader = life.model(key)
        try:
            start = life.share_partitions.find(key).state.start_offset
        except KafkaError as error:
            world.log(self.member_id, f"{key.partition}: {error}")
            return
        may_say = self._may_say(life, key, said, start, has_lock=False)
        must_be_heard = self._may_say(life, key, said, start, has_lock=True)
        texts = [(each.first_offset, each.last_offset, "".join(map(str, each.types))) for each in said]
        world.log(self.member_id, f"{key.partition}: says {texts}")
        try:
            outcome = await life.share_partitions.acknowledge(key, self.member_id, said)
        except KafkaError as error:
            world.log(self.member_id, f"{key.partition}: {error}")
            if must_be_heard and error.code in _REFUSALS:
                world.violate(f"{self.member_id} has {texts}, and is told {error}")
            return
        if not may_say:
            world.violate(f"{self.member_id} does not have all of {texts}, and may say so")
        for each in said:
            model.says(leader, each, start, outcome)
        is_stored = await self._outcome(outcome)
        world.log(self.member_id, f"{key.partition}: {texts} {'stored' if is_stored else 'not stored'}")
        for each in said:
            model.said(leader, each, start, outcome, is_stored=is_stored)

    def _may_say(
        self, life: Life, key: SharePartitionKey, said: Sequence[Acknowledgement], start: int, *, has_lock: bool
    ) -> bool:
        model, leader = life.model(key)
        seen: set[int] = set()
        for each in said:
            offsets = set(range(max(each.first_offset, start), each.last_offset + 1))
            if offsets & seen or not model.may_say(leader, self.member_id, each, start, has_lock=has_lock):
                return False
            seen |= offsets
        return True

    async def _outcome(self, outcome: Outcome | None) -> bool:
        if outcome is None:
            return True
        try:
            await outcome.wait()
        except KafkaError:
            return False
        return True


__all__ = ["GROUP", "ShareMember"]
