"""Random walks of clients of both protocols in one group: they come, die, leave, and change their protocol as they like.

Meanwhile the log refuses records, and other coordinators take over. Two clients never read the same partition, and once nothing
more happens to them they read all of them.
"""

from __future__ import annotations

import contextlib
import random
from typing import Any

import pytest

from ottla.base.errors import ErrorCode, KafkaError
from ottla.group_coordinator.embedded_protocol import read_subscription
from ottla.tests.group_coordinator.helpers.embedded_protocol import assigned, read_assigned, subscribed

from .helpers.consumers import Consumers

PARTITIONS = 6
ROUNDS = 120
SEEDS = range(60)
Owned = frozenset[int]


class MixedClient:
    """A process that reads the topic ``t``. ``owned`` are the partitions that it reads at the moment."""

    def __init__(self, beat: Consumers, name: str, instance: str | None) -> None:
        self.beat = beat
        self.machine = beat.machine
        self.name = name
        self.instance = instance
        self.owned: Owned = frozenset()

    def step(self) -> None:
        raise NotImplementedError

    def leave(self) -> None:
        raise NotImplementedError


class ConsumerClient(MixedClient):
    """One of KIP-848. It gives partitions up before its next heartbeat."""

    epoch = 0

    def step(self) -> None:
        try:
            owned = {"t": sorted(self.owned)} if self.owned else {}
            self.epoch, given = self.beat(self.name, self.epoch, owned, instance=self.instance)
        except KafkaError as error:
            if error.code is not ErrorCode.NOT_ENOUGH_REPLICAS:
                self.epoch, self.owned = 0, frozenset()
            return
        if given is not None:
            self.owned = frozenset(given.get("t", ()))

    def leave(self) -> None:
        self.owned = frozenset()
        self.beat(self.name, -1 if self.instance is None else -2, instance=self.instance)


class ClassicClient(MixedClient):
    """One of the classic protocol. A cooperative one keeps its partitions while it joins."""

    member_id = ""
    generation = -1
    is_cooperative = False
    join_waiter: Any = None
    sync_waiter: Any = None
    is_joined = False
    shares: dict[str, bytes] | None = None
    """The assignments that it is to send with SyncGroup, which comes next; none unless it leads."""

    def step(self) -> None:
        if self.join_waiter is not None:
            self._take_join()
        elif self.sync_waiter is not None:
            self._take_sync()
        elif self.shares is not None:
            self._sync()
        elif not self.is_joined:
            self._join()
        else:
            self._beat()

    def leave(self) -> None:
        self.owned = frozenset()
        if self.member_id:
            self.machine.leave((self.member_id, self.instance))

    def _join(self) -> None:
        if not self.is_cooperative:
            self.owned = frozenset()
        owned = {"t": sorted(self.owned)} if self.owned else {}
        metadata = subscribed("t", owned=owned, version=3 if self.is_cooperative else 0)
        protocols = (("range", metadata),)
        self.join_waiter = self.machine.join(self.member_id, instance=self.instance, protocols=protocols)
        self._take_join()

    def _take_join(self) -> None:
        response = self.join_waiter.answer
        if response is None:
            return
        self.join_waiter = None
        if response.error_code == ErrorCode.MEMBER_ID_REQUIRED:
            self.member_id = response.member_id
        elif response.error_code != ErrorCode.NONE:
            self._fail(response.error_code)
        else:
            self.member_id, self.generation, self.is_joined = response.member_id, response.generation_id, True
            self.shares = self._shares(response.members) if response.leader == self.member_id else {}

    def _sync(self) -> None:
        shares, self.shares = self.shares, None
        self.sync_waiter = self.machine.sync(self.member_id, self.generation, shares, group_instance_id=self.instance)
        self._take_sync()

    def _shares(self, members: Any) -> dict[str, bytes]:
        """Of a leader: nobody gets what another one has not given up."""
        has = {member.member_id: _owned_in(member.metadata) for member in members}
        names = sorted(has)
        shares: dict[str, list[int]] = {name: [] for name in names}
        for number in range(PARTITIONS):
            name = names[number % len(names)]
            if not any(number in has[other] for other in names if other != name):
                shares[name].append(number)
        return {name: assigned(t=share) for name, share in shares.items()}

    def _take_sync(self) -> None:
        response = self.sync_waiter.answer
        if response is None:
            return
        self.sync_waiter = None
        if response.error_code != ErrorCode.NONE:
            self._fail(response.error_code)
            return
        parts = read_assigned(bytes(response.assignment))[1] if response.assignment else {}
        before, self.owned = self.owned, frozenset(parts.get("t", ()))
        if self.is_cooperative and before - self.owned:
            self.is_joined = False

    def _beat(self) -> None:
        try:
            code = self.machine.heartbeat(self.member_id, self.generation, instance=self.instance).error_code
        except KafkaError as error:
            code = error.code
        if code != ErrorCode.NONE:
            self._fail(code)

    def _fail(self, code: int) -> None:
        self.is_joined = False
        if code in (ErrorCode.UNKNOWN_MEMBER_ID, ErrorCode.FENCED_INSTANCE_ID):
            self.member_id = ""
        if code in (ErrorCode.UNKNOWN_MEMBER_ID, ErrorCode.FENCED_INSTANCE_ID, ErrorCode.ILLEGAL_GENERATION):
            self.owned = frozenset()


def _owned_in(metadata: bytes) -> Owned:
    return frozenset(number for part in read_subscription(metadata).owned_partitions for number in part.partitions)


class MixedWalk:
    """A group with up to four clients."""

    def __init__(self, machine: Any, seed: int) -> None:
        self.random = random.Random(seed)
        self.machine = machine
        self.beat = Consumers(machine, t=PARTITIONS)
        self.clients: list[MixedClient | None] = [None] * 4
        self.count = 0

    def turn(self) -> None:
        place = self.random.randrange(len(self.clients))
        client, chance = self.clients[place], self.random.random()
        if chance < 0.25:
            if client is not None and self.random.random() < 0.6:
                with contextlib.suppress(KafkaError):  # nobody waits for the response
                    client.leave()
            self.clients[place] = None if self.random.random() < 0.3 else self._new(place)
        elif chance < 0.3:
            self.machine.restart()
            self._cut_connections()
        elif chance < 0.35:
            self.machine.log.error = KafkaError(ErrorCode.NOT_ENOUGH_REPLICAS)
        self.round()

    def _new(self, place: int) -> MixedClient:
        self.count += 1
        instance = "i" if place == 0 else None
        kind = self.random.choice((ConsumerClient, ClassicClient))
        client = kind(self.beat, f"m{self.count}", instance)
        if isinstance(client, ClassicClient):
            client.is_cooperative = self.random.random() < 0.5
        return client

    def _cut_connections(self) -> None:
        for client in self.clients:
            if isinstance(client, ClassicClient) and (client.join_waiter or client.sync_waiter):
                client.join_waiter = client.sync_waiter = None
                client.is_joined = False

    def round(self) -> None:
        """Every client takes a step, in any order."""
        clients = [client for client in self.clients if client is not None]
        self.random.shuffle(clients)
        for client in clients:
            client.step()
            self.check()
        self.machine.advance(self.random.choice((0, 300, 1_000)))

    def check(self) -> None:
        """No partition is read by two."""
        owned = [client.owned for client in self.clients if client is not None]
        assert sum(map(len, owned)) == len(frozenset().union(*owned)), owned

    def settle(self) -> None:
        """Nothing happens any more, but for the end of sessions of those who are gone."""
        self.machine.log.error = None
        for _ in range(150):
            self.round()
            self.machine.advance(500)


@pytest.mark.parametrize("seed", SEEDS)
def test_a_walk(make_machine: Any, seed: int) -> None:
    interval_ms, delay_ms = (0, 1_000)[seed % 2], (0, 0, 700)[seed % 3]
    machine = make_machine({"assignment_interval_ms": interval_ms}, group_initial_rebalance_delay_ms=delay_ms)
    walk = MixedWalk(machine, seed)
    for _ in range(ROUNDS):
        walk.turn()
    walk.settle()
    owned = [client.owned for client in walk.clients if client is not None]
    if owned:
        assert frozenset().union(*owned) == frozenset(range(PARTITIONS)), owned
        group = machine.shard.groups["g"]
        assert group.state_name == "Stable"
        kinds = {type(client) for client in walk.clients if client is not None}
        assert group.type_name == ("classic" if kinds == {ClassicClient} else "consumer")
