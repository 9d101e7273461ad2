"""The steps of a walk: requests, and changes of topics, in names of the walk's own.

A step is the same for every broker. Topics are ``t0``, ``t1``, ...; the id of a topic is its name, filled up with zeros. Member
ids that a broker makes are called by the connection that was first given them. ``broker_player`` translates.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, TypeAlias

from ottla.wire.schema import Message, Struct

ADMIN = "admin"
TOPICS = {"t0": 1, "t1": 2, "t2": 3, "t3": 4}
"""Topics that are there from the beginning, with partitions that become more."""
LATER = frozenset({"l0", "l1"})
"""Topics that come and go."""
OF_TRANSACTIONS = "t3"
"""In walks of share groups, the topic that transactions are written to. Groups of the kind ``committed`` read no other."""
LIMITED = "limited"
"""The kind of share groups that fetch in the mode record_limit."""
Response: TypeAlias = "dict[str, Any]"
"""A response in the walk's names: fields by name, lists in an order of their own, texts of errors as whether there is one."""
Responses = dict[str, Response]
"""By the connection that they came on: that of the step, and those of earlier steps that have waited."""


@dataclass(frozen=True)
class Ask:
    """A request."""

    who: str
    """A connection; ``client_id`` is what it tells of itself."""
    request: Message
    version: int
    may_wait: bool = False
    """Whether the response may come at a later step, as those to JoinGroup and SyncGroup do."""
    in_place: bool = False
    """Whether the member id that the response gives has to be in place (``hash_order``): the request is repeated until it is."""

    def __str__(self) -> str:
        return f"{self.who}: v{self.version} {brief(self.request)}"


@dataclass(frozen=True)
class SetTopic:
    """A topic that gets so many partitions, is made, or with 0 is deleted. It ends when the coordinator knows."""

    name: str
    partitions: int


@dataclass(frozen=True)
class HangUp:
    """Connections whose responses nobody waits for any longer."""

    who: tuple[str, ...]


@dataclass(frozen=True)
class AwaitEpoch:
    """A consumer group gets a later epoch than this one in the background."""

    group_id: str
    epoch: int


@dataclass(frozen=True)
class AwaitResponse:
    """The response that a connection waits for comes."""

    who: str


@dataclass(frozen=True)
class Configure:
    """A group gets these settings, without ``share.`` before their names; None takes one back. It ends when they are known."""

    group_id: str
    values: tuple[tuple[str, str | None], ...]


@dataclass(frozen=True)
class AwaitInitialized:
    """The share coordinator has begun with these partitions of a group, in the background: how many of each topic."""

    group_id: str
    partitions: tuple[tuple[str, int], ...]


@dataclass(frozen=True)
class AwaitNoSession:
    """The share session of a member ends, as its connection has."""

    group_id: str
    member_id: str


@dataclass(frozen=True)
class AwaitStored:
    """The share coordinator is told that a record that was delivered so often is not its member's any more."""

    group_id: str
    topic: str
    partition: int
    offset: int
    delivery_count: int


@dataclass(frozen=True)
class Transact:
    """A transaction of so many records in one partition begins and ends. It ends when all readers may see that."""

    topic: str
    partition: int
    size: int
    is_committed: bool


Step: TypeAlias = (
    "Ask | SetTopic | HangUp | AwaitEpoch"
    " | AwaitResponse | Configure | AwaitInitialized | AwaitNoSession | AwaitStored | Transact"
)


def client_id(who: str) -> str:
    """Of a connection: the last part of its name."""
    return who.rpartition("/")[2]


def brief(value: Any) -> str:
    """A request, without what has its default."""
    if isinstance(value, Struct):
        default = type(value)()
        given = {spec.name: getattr(value, spec.name) for spec in value.fields}
        shown = [f"{name}={brief(each)}" for name, each in given.items() if each != getattr(default, name)]
        return f"{type(value).__name__.removesuffix('Request')}({', '.join(shown)})"
    if isinstance(value, list):
        return f"[{', '.join(map(brief, value))}]"
    if isinstance(value, bytearray):
        return f"{len(value)} bytes"
    return repr(value.rstrip(b"\0") if isinstance(value, bytes) else value)


def topic_id(name: str) -> bytes:
    """As steps have it."""
    return name.encode().ljust(16, b"\0")
