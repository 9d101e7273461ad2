"""The clients of a walk of share groups: a member with its share session, which mostly does as it should.

With several partitions in a session a fetch does not limit records: Kafka then takes first those whose place in the log it has
not kept. Nor does one of committed records: Kafka ends a fetch that finds nothing but aborted ones, and Ottla reads on.

A client knows what it holds: the records that responses have given it, and that it has not acknowledged since. It forgets no
partition, and begins no new session without one, in which it holds records: when a session ends, Kafka releases what a
member has in the partitions of the session alone, and Ottla all it has.
"""

from __future__ import annotations

import random
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, NamedTuple

from ottla.base.errors import ErrorCode
from ottla.wire.messages import share_acknowledge, share_fetch
from ottla.wire.messages.share_acknowledge import ShareAcknowledgeRequest
from ottla.wire.messages.share_fetch import ShareFetchRequest
from ottla.wire.messages.share_group_heartbeat import ShareGroupHeartbeatRequest
from ottla.wire.schema import Message

from .hash_order import member_ids
from .steps import TOPICS, Ask, Response, topic_id
from .walkers import World

GAP, ACCEPT, RELEASE, REJECT, RENEW = range(5)
FINAL_EPOCH = -1
BRIEFLY_MS = 120
"""A fetch that finds nothing waits so long."""
AT_FIRST_MS = 1_500
"""Within it a leader has read the state of a partition that nobody has fetched before."""
UNTIL_WOKEN_MS = 15_000
MANY = 500
FULL = 1 << 25


class Place(NamedTuple):
    """A partition."""

    topic: str
    partition: int


class Held(NamedTuple):
    """The last record of those that a client has acquired in a partition."""

    place: Place
    offset: int
    delivery_count: int


@dataclass(frozen=True)
class Ack:
    """What is said of some offsets."""

    first: int
    last: int
    types: tuple[int, ...]


@dataclass
class Known:
    """What the clients of a group know together."""

    initialized: dict[str, int] = field(default_factory=dict)
    """Partitions with a state, by topic."""
    touched: set[Place] = field(default_factory=set)
    """Partitions that somebody has fetched."""

    @property
    def places(self) -> list[Place]:
        """All partitions with a state, of topics that stay: Kafka fails where a topic id is not known."""
        lasting = sorted((name, count) for name, count in self.initialized.items() if name in TOPICS)
        return [Place(name, number) for name, count in lasting for number in range(count)]


class ShareWalker:
    """A client. Its member ids begin with its letter, which is its client id."""

    def __init__(
        self,
        letter: str,
        group_id: str,
        chance: random.Random,
        topics: Sequence[str],
        world: World,
        known: Known,
        *,
        takes_all: bool,
        is_limited: bool,
    ) -> None:
        """``takes_all``: its fetches do not limit records; ``is_limited``: some have the mode record_limit."""
        self.letter = letter
        self.group_id = group_id
        self.topics: list[str] = []
        """Those that it is subscribed to."""
        self.epoch = 0
        """As a member; 0 where it is none."""
        self.session = 0
        """The epoch of its next request; 0 where it has no session."""
        self.keys: set[Place] = set()
        """The partitions in its session."""
        self.held: dict[Place, dict[int, int]] = {}
        """Delivery counts by offset."""
        self.released: list[Held] = []
        """What it had when its session ended, until that is looked at."""
        self.member_id = member_ids(letter)[0]
        self._before = 0
        self._chance = chance
        self._all_topics = topics
        self._world = world
        self._known = known
        self._takes_all = takes_all
        self._is_limited = is_limited

    @property
    def who(self) -> str:
        """Its connection."""
        return f"{self.group_id}/{self.letter}"

    # ---- as a member

    def join(self) -> Ask:
        """Its first heartbeat."""
        topics = self._some_topics()
        return self._beat(0, subscribed_topic_names=topics, rack_id=self._chance.choice([None, None, "r1"]))

    def leave(self) -> Ask:
        """Its last one."""
        return self._beat(-1)

    def heartbeat(self) -> Ask:
        """One that does as it should."""
        return self._beat(self.epoch) if self.epoch else self.join()

    def some_heartbeat(self) -> Ask:
        """Any one."""
        chance, kind = self._chance, self._chance.random()
        if not self.epoch:
            return self.join() if kind < 0.8 else self._beat(chance.choice([1, 5, -1, -2]))
        if kind < 0.5:
            return self._beat(self.epoch)
        if kind < 0.65:
            return self._beat(chance.choice([self._before, self.epoch - 1, self.epoch + 1, -2]))
        if kind < 0.8:
            return self._beat(self.epoch, subscribed_topic_names=self._some_topics())
        if kind < 0.85:
            return self._beat(self.epoch, rack_id=chance.choice(["", "r1", "r2"]))
        if kind < 0.88:
            return self._beat(self.epoch, subscribed_topic_names=[])
        if kind < 0.9:
            return self._beat(0, subscribed_topic_names=chance.choice([None, []]))
        if kind < 0.93:
            return self._beat(self.epoch, member_id=chance.choice(["", "nobody"]))
        return self.join() if kind < 0.95 else self.leave()

    def _some_topics(self) -> list[str]:
        if self._chance.random() < 0.5:
            return [*self._all_topics[:3]]
        return sorted(self._chance.sample(self._all_topics, min(len(self._all_topics), self._chance.randrange(1, 4))))

    def _beat(self, epoch: int, **fields: Any) -> Ask:
        names = {"group_id": self.group_id, "member_id": self.member_id}
        return Ask(self.who, ShareGroupHeartbeatRequest(member_epoch=epoch, **{**names, **fields}), 1)

    # ---- fetching

    def fetch(self, *, wait_ms: int = BRIEFLY_MS, places: Iterable[Place] = (), **fields: Any) -> Ask:
        """A fetch that adds these partitions, and does as it should."""
        return self._fetch(self.session, {}, places, (), wait_ms, **fields)

    def wanted(self, request: Message) -> list[Place]:
        """The partitions of a request that nobody has fetched yet."""
        return [
            each for each in _places(getattr(request, "topics", ()), "partitions") if each not in self._known.touched
        ]

    def some_fetch(self) -> Ask:
        """Any one."""
        chance, kind = self._chance, self._chance.random()
        if not self.session and kind < 0.9:
            return self._fetch(0, {}, self._some_places(), (), **self._limits())
        if kind < 0.05:
            epoch = chance.choice([self.session + 1, max(self.session - 1, 1), 5])
            return self._fetch(epoch, {}, self._some_places(), (), **self._limits())
        if kind < 0.08:
            return self._fetch(0, self.some_acks(), self._some_places(), (), **self._limits())
        if kind < 0.13:
            return self._fetch(0, {}, self._some_places(), (), **self._limits())
        if kind < 0.16:
            return self._fetch(FINAL_EPOCH, self.some_acks(), (), (), **self._limits())
        if kind < 0.18:
            return self._fetch(self.session, {}, (), (), member_id=chance.choice(["", "x" * 37]))
        if kind < 0.24:
            return self._renewing_fetch()
        acks = self.some_acks(most=1) if kind < 0.6 else {}  # the first one that is stored may end the wait
        added = self._some_places() if not self.keys or chance.random() < 0.2 else ()
        forgotten = [place for place in sorted(self.keys) if place not in self.held and chance.random() < 0.1]
        limits = self._limits()
        if any(RELEASE in ack.types for said in acks.values() for ack in said):
            limits["max_records"] = 0  # whether they come again at once depends on how soon that is stored
        return self._fetch(self.session, acks, added, forgotten, **limits)

    def _renewing_fetch(self) -> Ask:
        nothing = {"min_bytes": 0, "max_bytes": 0, "max_records": 0}
        if self._chance.random() < 0.2:
            nothing["max_records"] = 1
        return self._fetch(self.session, self.some_acks(may_renew=True), (), (), 0, is_renew_ack=True, **nothing)

    def _limits(self) -> dict[str, Any]:
        chance = self._chance
        limits: dict[str, Any] = {
            "max_records": chance.choice([1, 2, 3, 5, 10, MANY, MANY, MANY]),
            "batch_size": chance.choice([1, 3, MANY, MANY]),
            "share_acquire_mode": int(self._is_limited and chance.random() < 0.4),
        }
        if chance.random() < 0.03:
            limits["max_records"] = 0
        return limits

    def _some_places(self) -> list[Place]:
        """Partitions with a state; all those in which it holds something are among them."""
        places = self._known.places
        if not places:
            return []
        chosen = self._chance.sample(places, min(len(places), self._chance.choice([1, 1, 2, 3])))
        return sorted({*chosen, *self.held})

    def _fetch(
        self,
        epoch: int,
        acks: Mapping[Place, Sequence[Ack]],
        added: Iterable[Place],
        forgotten: Sequence[Place],
        wait_ms: int = BRIEFLY_MS,
        **fields: Any,
    ) -> Ask:
        added = set(added)
        topics = [
            share_fetch.FetchTopic(
                topic_id=topic_id(name),
                partitions=[
                    share_fetch.FetchPartition(
                        partition_index=place.partition,
                        acknowledgement_batches=[
                            share_fetch.AcknowledgementBatch(
                                first_offset=ack.first, last_offset=ack.last, acknowledge_types=list(ack.types)
                            )
                            for ack in acks.get(place, ())
                        ],
                    )
                    for place in places
                ],
            )
            for name, places in _by_topic({*added, *acks})
        ]
        lost = [
            share_fetch.ForgottenTopic(topic_id=topic_id(name), partitions=[each.partition for each in places])
            for name, places in _by_topic(forgotten)
        ]
        usual: dict[str, Any] = {
            "group_id": self.group_id,
            "member_id": self.member_id,
            "max_wait_ms": wait_ms,
            "min_bytes": 1,
            "max_bytes": FULL,
            "max_records": MANY,
            "batch_size": MANY,
            "topics": topics,
            "forgotten_topics_data": lost,
        }
        fields = {**usual, **fields}
        if fields["max_records"] and (self._takes_all or len({*self.keys, *added, *acks}) > 1):
            fields["max_records"] = MANY
        request = ShareFetchRequest(share_session_epoch=epoch, **fields)
        version = 2 if request.is_renew_ack or request.share_acquire_mode else self._chance.choice([1, 2])
        return Ask(self.who, request, version)

    # ---- acknowledging

    def some_acknowledge(self) -> Ask:
        """Any acknowledgement."""
        chance, kind = self._chance, self._chance.random()
        if kind < 0.06:
            return self._acknowledge(chance.choice([0, self.session + 1, FINAL_EPOCH]), self.some_acks())
        if kind < 0.1:
            return self._acknowledge(self.session, {})
        if kind < 0.2:
            return self._acknowledge(self.session, self.some_acks(may_renew=True), is_renew_ack=True)
        return self._acknowledge(self.session, self.some_acks())

    def close(self) -> Ask:
        """End the session."""
        return self._acknowledge(FINAL_EPOCH, {})

    def _acknowledge(self, epoch: int, acks: Mapping[Place, Sequence[Ack]], **fields: Any) -> Ask:
        topics = [
            share_acknowledge.AcknowledgeTopic(
                topic_id=topic_id(name),
                partitions=[
                    share_acknowledge.AcknowledgePartition(
                        partition_index=place.partition,
                        acknowledgement_batches=[
                            share_acknowledge.AcknowledgementBatch(
                                first_offset=ack.first, last_offset=ack.last, acknowledge_types=list(ack.types)
                            )
                            for ack in acks[place]
                        ],
                    )
                    for place in places
                ],
            )
            for name, places in _by_topic(acks)
        ]
        request = ShareAcknowledgeRequest(
            group_id=self.group_id, member_id=self.member_id, share_session_epoch=epoch, topics=topics, **fields
        )
        return Ask(self.who, request, 2 if request.is_renew_ack else self._chance.choice([1, 2]))

    def some_acks(self, *, may_renew: bool = False, most: int = 2) -> dict[Place, list[Ack]]:
        """Of some partitions, mostly of what it holds there."""
        chance = self._chance
        places = sorted(self.held)
        chosen = chance.sample(places, min(len(places), most, chance.choice([1, 1, 2])))
        acks = {place: self._acks(sorted(self.held[place]), may_renew=may_renew) for place in chosen}
        if chance.random() < 0.12:
            others = self._known.places
            place = chance.choice(others) if others else None
            if place is not None and (most > 1 or not acks or place in acks):
                acks[place] = self._wrong_acks(sorted(self.held.get(place, ())))
        return {place: said for place, said in acks.items() if said}

    def _acks(self, offsets: Sequence[int], *, may_renew: bool) -> list[Ack]:
        chance, acks = self._chance, []
        types = [ACCEPT] * 6 + [RELEASE] * 5 + [REJECT, GAP] + ([RENEW] * 6 if may_renew else [])
        for first, last in _runs(offsets):
            while first <= last and chance.random() < 0.85:
                end = chance.choice([last, chance.randint(first, last)])
                kinds = 1 if chance.random() < 0.6 else end - first + 1
                acks.append(Ack(first, end, tuple(chance.choice(types) for _ in range(kinds))))
                first = end + 1 + (chance.random() < 0.2)
        return acks

    def _wrong_acks(self, offsets: Sequence[int]) -> list[Ack]:
        if not offsets:
            # Kafka 4.3.1 fails where such offsets are on both sides of the first one that is not finished.
            offset = self._chance.choice([0, 0, 5, 50])
            return [Ack(offset, offset, (self._chance.choice([ACCEPT, RELEASE, RENEW, 5]),))]
        first, last = offsets[0], offsets[-1]
        return self._chance.choice(
            [
                [Ack(last + 1, last + 3, (ACCEPT,))],
                [Ack(first, last + 50, (ACCEPT,))],
                [Ack(last, first - 1, (ACCEPT,))],
                [Ack(first, first, (ACCEPT,)), Ack(first, last, (ACCEPT,))],
                [Ack(last, last, (ACCEPT,)), Ack(first, first, (ACCEPT,))],
                [Ack(first, last, (ACCEPT, ACCEPT, ACCEPT))],
                [Ack(first, last, ())],
                [Ack(first, first, (5,))],
                [Ack(first, first, (-1,))],
                [Ack(first, first, (RENEW,))],
                [Ack(0, 0, (RELEASE,))],
                [Ack(first, last, (RELEASE,))],
            ]
        )

    # ---- what it learns

    def learn(self, request: Message | None, response: Response) -> None:
        """A response to its request."""
        if isinstance(request, ShareGroupHeartbeatRequest) and request.member_id == self.member_id:
            self._learn_membership(request, response)
        elif isinstance(request, ShareFetchRequest | ShareAcknowledgeRequest):
            self._learn_session(request, response)

    def _learn_membership(self, request: ShareGroupHeartbeatRequest, response: Response) -> None:
        code = response["error_code"]
        if code == ErrorCode.NONE:
            epoch = max(response["member_epoch"], 0)
            if epoch != self.epoch:
                self._before, self.epoch = self.epoch, epoch
            if not epoch:
                self.topics = []
            elif request.subscribed_topic_names is not None:
                self.topics = list(request.subscribed_topic_names)
        elif code in (ErrorCode.UNKNOWN_MEMBER_ID, ErrorCode.GROUP_ID_NOT_FOUND):
            self.epoch, self.topics = 0, []

    def _learn_session(self, request: Any, response: Response) -> None:
        if response["error_code"] != ErrorCode.NONE:
            if response["error_code"] == ErrorCode.SHARE_SESSION_NOT_FOUND:
                self.lose_session()
            return
        is_fetch = isinstance(request, ShareFetchRequest)
        self._learn_acks(request, response, "acknowledge_error_code" if is_fetch else "error_code")
        if request.share_session_epoch == FINAL_EPOCH:
            self.released += self._last_held()
            self.lose_session()
            return
        if is_fetch and request.share_session_epoch == 0:
            self.keys = set()
        self.session = request.share_session_epoch + 1
        if not is_fetch:
            return
        self.keys |= set(_places(request.topics, "partitions"))
        for topic in request.forgotten_topics_data:
            self.keys -= {Place(_name(topic.topic_id), partition) for partition in topic.partitions}
        for topic in response["responses"]:
            for partition in topic["partitions"]:
                held = self.held.setdefault(Place(topic["topic_id"], partition["partition_index"]), {})
                for acquired in partition["acquired_records"]:
                    offsets = range(acquired["first_offset"], acquired["last_offset"] + 1)
                    held.update(dict.fromkeys(offsets, acquired["delivery_count"]))
        self.held = {place: held for place, held in self.held.items() if held}

    def _learn_acks(self, request: Any, response: Response, field_name: str) -> None:
        failed = {
            Place(topic["topic_id"], partition["partition_index"])
            for topic in response["responses"]
            for partition in topic["partitions"]
            if partition[field_name] != ErrorCode.NONE
        }
        for topic in request.topics:
            for partition in topic.partitions:
                place = Place(_name(topic.topic_id), partition.partition_index)
                if place in failed:
                    continue
                for batch in partition.acknowledgement_batches:
                    for offset in range(batch.first_offset, batch.last_offset + 1):
                        types = batch.acknowledge_types
                        kind = types[0] if len(types) == 1 else types[offset - batch.first_offset]
                        if kind != RENEW:
                            self.held.get(place, {}).pop(offset, None)
        self.held = {place: held for place, held in self.held.items() if held}

    def _last_held(self) -> list[Held]:
        return [Held(place, max(held), held[max(held)]) for place, held in sorted(self.held.items()) if held]

    def locks_ended(self) -> list[Held]:
        """Nothing is held any more; what was."""
        before, self.held = self._last_held(), {}
        return before

    def lose_session(self) -> None:
        """It has no session, and so it holds nothing."""
        self.session, self.keys, self.held = 0, set(), {}


def _name(given_id: bytes) -> str:
    return given_id.rstrip(b"\0").decode()


def _places(topics: Iterable[Any], attribute: str) -> list[Place]:
    return [Place(_name(each.topic_id), part.partition_index) for each in topics for part in getattr(each, attribute)]


def _by_topic(places: Iterable[Place]) -> list[tuple[str, list[Place]]]:
    names: dict[str, list[Place]] = {}
    for place in sorted(places):
        names.setdefault(place.topic, []).append(place)
    return list(names.items())


def _runs(offsets: Sequence[int]) -> list[tuple[int, int]]:
    """First and last of those that follow each other."""
    runs: list[tuple[int, int]] = []
    for offset in offsets:
        if runs and runs[-1][1] + 1 == offset:
            runs[-1] = (runs[-1][0], offset)
        else:
            runs.append((offset, offset))
    return runs
