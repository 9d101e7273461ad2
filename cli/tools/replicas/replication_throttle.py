"""The throttle of moves of replicas, set and removed as kafka-reassign-partitions does (KIP-73).

What a broker sends and fetches for the replicas that move is limited to as many bytes a second, each way. Topics list these
replicas: of what has the data on the leader's side, of what is to get it on the follower's.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Collection, Iterable, Mapping

from kafka.admin import AlterConfigOp, ConfigResource, ConfigResourceType

from ..client import Admin
from ..cluster_view import Key
from ..config_changes import apply_changes
from .moves import PartitionReassignment

RATES = ("leader.replication.throttled.rate", "follower.replication.throttled.rate")
_ON_LEADER, _ON_FOLLOWER = REPLICAS = (
    "leader.replication.throttled.replicas",
    "follower.replication.throttled.replicas",
)


def throttle(
    admin: Admin, moves: Mapping[Key, PartitionReassignment], bytes_per_second: int, live: Collection[int]
) -> None:
    """Limit these moves, which are to be all there are. Raises ToolError.

    ``live`` are the brokers that run; another one has no traffic to be limited, and could not be told.
    """
    listed: dict[str, tuple[list[str], list[str]]] = defaultdict(lambda: ([], []))
    brokers: set[int] = set()
    for (topic, number), move in sorted(moves.items()):
        on_leader, on_follower = listed[topic]
        on_leader += [f"{number}:{replica}" for replica in sorted(move.sources)]
        on_follower += [f"{number}:{replica}" for replica in sorted(move.adding)]
        brokers |= {*move.sources, *move.adding}
    topics = [
        _set(ConfigResourceType.TOPIC, topic, {_ON_LEADER: ",".join(on_leader), _ON_FOLLOWER: ",".join(on_follower)})
        for topic, (on_leader, on_follower) in listed.items()
    ]
    rates = dict.fromkeys(RATES, str(bytes_per_second))
    apply_changes(admin, topics)
    apply_changes(admin, [_set(ConfigResourceType.BROKER, str(broker), rates) for broker in sorted(brokers & {*live})])


def unthrottle(admin: Admin, topics: Iterable[str], brokers: Iterable[int]) -> None:
    """Take the limits from topics, and from brokers. Raises ToolError."""
    resources = [_unset(ConfigResourceType.TOPIC, topic, REPLICAS) for topic in sorted(topics)]
    resources += [_unset(ConfigResourceType.BROKER, str(broker), RATES) for broker in sorted(brokers)]
    if resources:
        apply_changes(admin, resources)


def _set(kind: ConfigResourceType, name: str, values: Mapping[str, str]) -> ConfigResource:
    return ConfigResource(kind, name, {setting: (AlterConfigOp.SET, value) for setting, value in values.items()})


def _unset(kind: ConfigResourceType, name: str, settings: Iterable[str]) -> ConfigResource:
    return ConfigResource(kind, name, dict.fromkeys(settings, (AlterConfigOp.DELETE, None)))
