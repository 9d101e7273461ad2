"""A random walk of requests to share groups, their partitions and their states, which goes on from the responses it is given.

As ``walk``, it is a function of its seed and of the responses. Where Kafka does something after its response, the walk waits for
it: for states that are initialized, for records that are released, for sessions that end with their connections. Locks last
longer than the walk, but for those that it makes short and waits for. Each group lives for a while:

=============  ====================================================================================================
kind           what it is
=============  ====================================================================================================
``plain``      fetches and acknowledgements, administrators and other protocols in between
``limited``    the same, and some fetches in the mode record_limit, after which Kafka cuts ranges in other places
``committed``  reads committed records of one topic, to which transactions are written
=============  ====================================================================================================

A session without partitions (``A``) lives as long as its group, as Ottla forgets the share partitions of a group when its last
session ends, and Kafka only when that ends with its connection. Where the walk has a group forgotten, all connections end.
"""

from __future__ import annotations

import random
from collections.abc import Generator, Sequence
from itertools import count

from ottla.base.errors import ErrorCode
from ottla.compat_tests.raw.requests import batch
from ottla.wire.messages import produce
from ottla.wire.messages.share_group_heartbeat import ShareGroupHeartbeatRequest

from .share_looks import Looks
from .share_states import States
from .share_walkers import AT_FIRST_MS, UNTIL_WOKEN_MS, Held, Known, Place, ShareWalker
from .steps import (
    ADMIN,
    LATER,
    LIMITED,
    OF_TRANSACTIONS,
    TOPICS,
    Ask,
    AwaitInitialized,
    AwaitNoSession,
    AwaitResponse,
    AwaitStored,
    Configure,
    HangUp,
    Response,
    Responses,
    SetTopic,
    Step,
    Transact,
)
from .walkers import World

COMMITTED = "committed"
Steps = Generator[Step, Responses, None]
KINDS = ("plain", LIMITED, COMMITTED)
LIFE = (100, 300)
"""Steps of a group, from and to."""
MOST_PARTITIONS = 5
PRODUCE_VERSION = 9
SHORT_LOCK_MS = "1000"


class ShareWalk:
    """The state of a walk: the groups as their members see them."""

    def __init__(self, seed: int) -> None:
        self._chance = random.Random(seed)
        self._numbers = count()
        self.world = World(dict(TOPICS))
        self.left_alone: set[str] = set()
        self._states = States(self._chance)
        self._groups = [self._new_group(kind) for kind in KINDS]

    def _new_group(self, kind: str) -> _Group:
        return _Group(kind, f"{kind}-{next(self._numbers)}", self._chance, self.world)

    def steps(self) -> Steps:
        """Steps without end."""
        for name, size in sorted(TOPICS.items()):
            for number in range(size):
                yield write(Place(name, number), 1)  # a fetch that finds nothing takes its time
        for group in self._groups:
            yield from group.begin()
        while True:
            kind = self._chance.random()
            if kind < 0.005:
                yield from self._topics_change()
            elif kind < 0.12:
                yield from self._write()
            elif kind < 0.17:
                yield self._states.next_step()
            else:
                yield from self._group_acts(self._chance.randrange(len(self._groups)))

    def _group_acts(self, number: int) -> Steps:
        group = self._groups[number]
        if group.is_over or group.name in self.left_alone:
            if group.name not in self.left_alone:
                yield from group.end()
            yield HangUp(group.connections)
            group = self._groups[number] = self._new_group(group.kind)
            yield from group.begin()
        else:
            yield from group.act([each.name for each in self._groups])

    def _write(self) -> Steps:
        """Records, in a transaction or without one."""
        place = self.world_place(self._chance)
        size = self._chance.choice([1, 2, 3, 5, 8])
        if place.topic == OF_TRANSACTIONS and self._chance.random() < 0.5:
            yield Transact(place.topic, place.partition, size, self._chance.random() < 0.6)
        else:
            yield write(place, size)

    def world_place(self, chance: random.Random) -> Place:
        """Some partition."""
        name = chance.choice(sorted(TOPICS))
        return Place(name, chance.randrange(self.world.counts[name]))

    def _topics_change(self) -> Steps:
        counts, chance = self.world.counts, self._chance
        growing = [name for name in TOPICS if counts[name] < MOST_PARTITIONS]
        if chance.random() < 0.5 and growing:
            name = chance.choice(growing)
            counts[name] += 1
            yield SetTopic(name, counts[name])
            yield write(Place(name, counts[name] - 1), 1)
        else:
            name = chance.choice(sorted(LATER))
            counts[name] = 0 if counts.get(name) else chance.randrange(1, 3)
            yield SetTopic(name, counts[name])


def write(place: Place, size: int) -> Ask:
    """A batch of so many records."""
    data = produce.PartitionProduceData(index=place.partition, records=batch(*(b"%d" % n for n in range(size))))
    topic = produce.TopicProduceData(name=place.topic, partition_data=[data])
    request = produce.ProduceRequest(transactional_id=None, acks=-1, timeout_ms=20_000, topic_data=[topic])
    return Ask(ADMIN, request, PRODUCE_VERSION)


def succeeded(response: Response) -> bool:
    """Whether a request has no error of its own."""
    return bool(response["error_code"] == ErrorCode.NONE)


class _Group:
    """One group, and the clients that are or may be its members."""

    def __init__(self, kind: str, name: str, chance: random.Random, world: World) -> None:
        self.kind = kind
        self.name = name
        self._chance = chance
        self._world = world
        self._left = chance.randrange(*LIFE)
        self._known = Known()
        self._is_configured = False
        self._needed: dict[str, int] = {}
        """Partitions that are known to be initialized."""
        topics = [OF_TRANSACTIONS] if kind == COMMITTED else ["t0", "t1", "t2", *sorted(LATER)]
        common = (name, chance, topics, world, self._known)
        self._anchor, *self._walkers, self._toucher = (
            ShareWalker(letter, *common, takes_all=kind == COMMITTED, is_limited=kind == LIMITED) for letter in "ABCDE"
        )
        self._looks = Looks(name, topics, chance, world, self._known)

    @property
    def is_over(self) -> bool:
        return self._left <= 0

    @property
    def connections(self) -> tuple[str, ...]:
        """Those of its clients."""
        return tuple(sorted({*(each.who for each in (self._anchor, self._toucher, *self._walkers)), self._looks.who}))

    def begin(self) -> Steps:
        """Its settings, its first member, and the session that lasts."""
        chance = self._chance
        values = {"auto.offset.reset": chance.choice(["earliest", "earliest", "earliest", "latest"])}
        self._looks.shows_starts = values["auto.offset.reset"] == "earliest" and self.kind != COMMITTED
        if chance.random() < 0.5:
            values["delivery.count.limit"] = str(chance.choice([2, 3, 4, 6]))
        if self.kind == COMMITTED:
            values["isolation.level"] = "read_committed"
        if chance.random() < 0.3:
            values["renew.acknowledge.enable"] = "false"
        yield Configure(self.name, tuple(values.items()))
        yield from self._join_first()

    def _join_first(self) -> Steps:
        yield from self._ask(self._walkers[0], self._walkers[0].join())
        yield from self._anchor_session()

    def _anchor_session(self) -> Steps:
        yield from self._ask(self._anchor, self._anchor.fetch())

    def end(self) -> Steps:
        """All is forgotten, and mostly deleted."""
        yield from self._forgotten()
        yield self._looks.delete()

    def act(self, names: Sequence[str]) -> Steps:
        """One or some steps."""
        self._left -= 1
        kind, walker = self._chance.random(), self._chance.choice(self._walkers)
        if kind < 0.2:
            yield from self._ask(walker, walker.some_heartbeat())
        elif kind < 0.55:
            step = walker.some_fetch()
            yield from self._touch(walker.wanted(step.request))
            yield from self._ask(walker, step)
        elif kind < 0.78:
            yield from self._ask(walker, walker.some_acknowledge())
        elif kind < 0.88:
            yield self._looks.next_step(names)
        elif kind < 0.93:
            yield self._looks.other_protocol()
        elif kind < 0.96:
            yield from self._wake(walker)
        elif kind < 0.98:
            yield from self._hang_up(walker)
        elif kind < 0.986:
            yield from self._let_locks_end(walker)
        else:
            yield from self._administrate()

    # ---- what takes several steps

    def _touch(self, places: Sequence[Place]) -> Steps:
        """The leader reads the states of partitions, one after the other: a fetch of several would not wait for all."""
        for place in places:
            if self._known.initialized.get(place.topic, 0) <= place.partition:
                continue
            yield from self._ask(self._toucher, self._toucher.fetch(wait_ms=AT_FIRST_MS, places=[place], max_records=1))
            yield from self._ask(self._toucher, self._toucher.close())
            self._known.touched.add(place)

    def _ask(self, walker: ShareWalker, step: Ask) -> Steps:
        """A request, and what a broker does after its response."""
        responses = yield step
        response = responses[step.who]
        walker.learn(step.request, response)
        released, walker.released = walker.released, []
        yield from self._stored(released)
        topics = {name for each in self._walkers for name in each.topics}
        wanted = {name: self._world.counts[name] for name in sorted(topics) if self._world.counts.get(name)}
        has_asked = isinstance(step.request, ShareGroupHeartbeatRequest) and walker.epoch and succeeded(response)
        if has_asked and any(self._known.initialized.get(name) != size for name, size in wanted.items()):
            yield AwaitInitialized(self.name, tuple(wanted.items()))
            self._known.initialized |= wanted

    def _stored(self, released: Sequence[Held]) -> Steps:
        for place, offset, delivery_count in released:
            yield AwaitStored(self.name, place.topic, place.partition, offset, delivery_count)

    def _wake(self, walker: ShareWalker) -> Steps:
        """A fetch that waits until a record comes."""
        if not walker.session or not walker.keys:
            return
        step = walker.fetch(wait_ms=UNTIL_WOKEN_MS)
        step = Ask(step.who, step.request, step.version, may_wait=True)
        responses = yield step
        if step.who not in responses:
            woken = yield write(self._chance.choice(sorted(walker.keys)), self._chance.choice([1, 2]))
            responses = {**woken, **(yield AwaitResponse(step.who))}
        walker.learn(step.request, responses[step.who])

    def _hang_up(self, walker: ShareWalker) -> Steps:
        """The connection of a client ends, and its session with it."""
        held = walker.locks_ended()
        yield HangUp((walker.who,))
        yield AwaitNoSession(self.name, walker.member_id)
        walker.lose_session()
        yield from self._stored(held)

    def _let_locks_end(self, walker: ShareWalker) -> Steps:
        """Records whose lock ends soon, and that nobody acknowledges."""
        if not walker.session or not walker.keys or walker.held:
            return
        yield Configure(self.name, (("record.lock.duration.ms", SHORT_LOCK_MS),))
        step = walker.fetch()
        responses = yield step
        walker.learn(step.request, responses[step.who])
        yield from self._stored(walker.locks_ended())
        yield Configure(self.name, (("record.lock.duration.ms", None),))

    def _forgotten(self) -> Steps:
        """The leader forgets the group's share partitions, as all connections end, and there are no members."""
        for walker in self._walkers:
            yield from self._hang_up(walker)
        yield from self._hang_up(self._anchor)
        self._known.touched.clear()
        for walker in self._walkers:
            if walker.epoch:
                step = walker.leave()
                responses = yield step
                walker.learn(step.request, responses[step.who])

    def _administrate(self) -> Steps:
        """Offsets are altered or deleted, or the group is, which begins anew then."""
        if self._chance.random() < 0.5:
            yield self._looks.change_offsets()  # it has members, mostly
            return
        if self.kind == COMMITTED:
            return  # Kafka takes what was in flight first, ends a fetch that finds but aborted records there, and Ottla reads on
        yield from self._forgotten()
        for _ in range(self._chance.choice([0, 1, 1, 2])):
            kind = self._chance.random()
            if kind < 0.6:
                yield self._looks.alter_offsets()
            elif kind < 0.85:
                yield self._looks.delete_offsets()
            else:
                yield self._looks.delete()
        # What is read anew would be in the batches that were stored, which are not the same.
        yield self._looks.alter_all_offsets()
        self._known.initialized.clear()
        yield from self._join_first()
