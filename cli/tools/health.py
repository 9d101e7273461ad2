"""``ottla cluster health``: reports the problems of a cluster, with an exit status for scripts.

Metadata lists a dead broker until its session has ended, so each one is asked, as ``ottla doctor`` does. Metadata leaves out the
topics that a user may not describe without a word, so the brokers are asked for what is in their log directories, too. A user
who may not see everything is never told that the cluster is healthy.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any

import trio

from ...base.errors import ErrorCode, KafkaError
from ...base.wording import plural
from ...view.remote.topic_requests import TopicWithPartitions, log_directories, min_isrs
from .client import ClusterConnection
from .cluster_view import TopicPartitionInfo
from .output import print_json, text
from .responding import RespondingCluster, hidden_topics, responding
from .running import ToolError

_SHOWN = 10
_NO_DESCRIBE = ErrorCode.CLUSTER_AUTHORIZATION_FAILED.name
HEALTHY, UNHEALTHY = 0, 1


@dataclasses.dataclass(frozen=True)
class ClusterHealth:
    """What was found. ``unseen`` is what this user may not see."""

    cluster: RespondingCluster
    found: Mapping[str, Sequence[Any]]
    unseen: Sequence[str]

    @property
    def problems(self) -> list[str]:
        """Sentences about brokers and controllers."""
        return self.cluster.problems()

    @property
    def is_healthy(self) -> bool | None:
        """None where that is not known."""
        seems_healthy = not self.problems and not any(self.found.values())
        return None if seems_healthy and self.unseen else seems_healthy


def health(connection: ClusterConnection, *, as_json: bool) -> int:
    """Print what is wrong; the exit status: 0 nothing is, 1 something is.

    Raises ToolError when no broker answers, and at the end where this user may not see everything.
    """
    try:
        seen = trio.run(_look, connection)
    except KafkaError as error:
        raise ToolError(f"the brokers refuse a request: {error}") from None
    cluster = seen.cluster
    live = sorted(cluster.state.brokers.keys() - cluster.silent.keys())
    if as_json:
        facts = {"healthy": seen.is_healthy, "controller": cluster.controller, "brokers": live}
        print_json({**facts, **seen.found, "problems": seen.problems, "not_seen": seen.unseen})
    else:
        print(f"healthy: {'not known' if seen.is_healthy is None else text(seen.is_healthy)}")
        print(f"controller: {_controller(cluster)}")
        print(f"brokers: {text(live)}")
        for name, places in seen.found.items():
            print(f"{name.replace('_', ' ')}: {_some(places)}")
        for problem in seen.problems:
            print(f"problem: {problem}")
    if seen.unseen:
        raise ToolError(f"this user may not see {'; nor '.join(seen.unseen)}")
    return HEALTHY if seen.is_healthy else UNHEALTHY


def _controller(cluster: RespondingCluster) -> str:
    if cluster.controller is not None:
        return str(cluster.controller)
    is_hidden = cluster.quorum.row is not None and cluster.quorum.row.why
    return "not known" if is_hidden else "none"


async def _look(connection: ClusterConnection) -> ClusterHealth:
    async with responding(connection, connection.security()) as cluster:
        topics = [cluster.state.topics[name] for name in sorted(cluster.state.topics)]
        minima = await min_isrs(cluster.client, cluster.state.topics)
        unseen = [*await _unseen(cluster), *_unseen_settings(cluster.state.topics.keys() - minima.keys())]
    found: dict[str, Sequence[Any]] = {
        "brokers_down": sorted({*cluster.down, *cluster.silent}),
        "offline_partitions": _where(topics, lambda _, partition: partition.leader is None),
        "under_min_isr_partitions": _where(
            topics, lambda topic, partition: partition.is_under_min_isr(minima.get(topic.name))
        ),
        "under_replicated_partitions": _where(topics, lambda _, partition: partition.is_under_replicated),
    }
    return ClusterHealth(cluster, found, unseen)


async def _unseen(cluster: RespondingCluster) -> list[str]:
    """What this user may not see of topics and controllers; of a broker that does not answer nothing is known."""
    folders = await log_directories(cluster.client, cluster.state, lambda broker_id, error: None)
    if folders.refused == _NO_DESCRIBE:
        return [f"which topics there are: that takes Describe of the cluster ({_NO_DESCRIBE})"]
    unseen = []
    if cluster.quorum.row is not None and cluster.quorum.row.why:
        unseen.append(f"the quorum: {cluster.quorum.row.why}")
    if hidden := await hidden_topics(cluster.client, folders.others):
        unseen.append(f"{_topics(hidden)}: that takes Describe (TOPIC_AUTHORIZATION_FAILED)")
    return unseen


def _unseen_settings(without: Iterable[str]) -> list[str]:
    names = sorted(without)
    if not names:
        return []
    return [f"min.insync.replicas of {_topics(names)}: that takes DescribeConfigs (TOPIC_AUTHORIZATION_FAILED)"]


def _topics(names: Sequence[str]) -> str:
    return f"{plural(len(names), 'topic')} {', '.join(names[:_SHOWN])}" + (
        f" and {len(names) - _SHOWN} more" if len(names) > _SHOWN else ""
    )


def _where(
    topics: Sequence[TopicWithPartitions], is_wanted: Callable[[TopicWithPartitions, TopicPartitionInfo], bool]
) -> list[str]:
    return [
        f"{topic.name}-{number}"
        for topic in topics
        for number, each in topic.partitions.items()
        if is_wanted(topic, TopicPartitionInfo(number, *each))
    ]


def _some(places: Sequence[Any]) -> str:
    """How many, and which ones as long as they are few."""
    if not places:
        return "none"
    more = ", …" if len(places) > _SHOWN else ""
    return f"{len(places)} ({', '.join(map(str, places[:_SHOWN]))}{more})"
