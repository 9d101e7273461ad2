"""``ottla cluster health``: reports the problems of a cluster, with an exit status for scripts.

Metadata leaves out the topics that a user may not describe without a word, so the brokers are asked for what is in their log
directories, too. A user who may not see everything is never told that the cluster is healthy.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping, Sequence
from contextlib import closing
from typing import Any

import kafka.errors

from ...base.wording import plural
from .client import Admin, ClusterConnection
from .cluster_view import DescribedTopic, TopicPartitionInfo, TopicSettings, find_topics, topic_settings
from .output import print_json, text
from .running import ToolError

_SHOWN = 10
_BROKER_MS = 5_000
HEALTHY, UNHEALTHY = 0, 1


def health(connection: ClusterConnection, *, as_json: bool) -> int:
    """Print what is wrong; the exit status: 0 nothing is, 1 something is.

    Raises ToolError when no broker answers, and at the end where this user may not see everything.
    """
    with closing(connection.admin()) as admin:
        cluster = admin.describe_cluster()
        topics = find_topics(admin, None)
        settings = topic_settings(admin, topics)
        live = {broker["broker_id"] for broker in cluster["brokers"]}
        unseen = [*_unseen_topics(admin, live, topics), *_unseen_settings(settings)]
    controller = cluster["controller_id"] if cluster["controller_id"] in live else None
    replicas = {replica for topic in topics for partition in topic.partitions for replica in partition.replicas}
    found: dict[str, Sequence[Any]] = {
        "brokers_down": sorted(replicas - live),
        "offline_partitions": _where(topics, lambda _, partition: partition.leader is None),
        "under_min_isr_partitions": _where(
            topics, lambda topic, partition: partition.is_under_min_isr(settings[topic.name].min_isr)
        ),
        "under_replicated_partitions": _where(topics, lambda _, partition: partition.is_under_replicated),
    }
    seems_healthy = controller is not None and not any(found.values())
    is_healthy = None if seems_healthy and unseen else seems_healthy
    if as_json:
        facts = {"healthy": is_healthy, "controller": controller, "brokers": sorted(live)}
        print_json({**facts, **found, "not_seen": unseen})
    else:
        print(f"healthy: {'not known' if is_healthy is None else text(is_healthy)}")
        print(f"controller: {'none' if controller is None else controller}")
        print(f"brokers: {text(sorted(live))}")
        for name, places in found.items():
            print(f"{name.replace('_', ' ')}: {_some(places)}")
    if unseen:
        raise ToolError(f"this user may not see {'; nor '.join(unseen)}")
    return HEALTHY if is_healthy else UNHEALTHY


def _unseen_topics(admin: Admin, live: Collection[int], topics: Sequence[DescribedTopic]) -> list[str]:
    """What this user may not see of topics; of a broker that does not answer nothing is known."""
    on_disk: set[str] = set()
    for broker_id in sorted(live):
        try:
            on_disk |= admin.topics_on(broker_id, _BROKER_MS)
        except kafka.errors.ClusterAuthorizationFailedError:
            return ["which topics there are: that takes Describe of the cluster (CLUSTER_AUTHORIZATION_FAILED)"]
        except kafka.errors.KafkaError:
            continue
    others = sorted(on_disk - {topic.name for topic in topics})
    refused = kafka.errors.TopicAuthorizationFailedError.errno
    hidden = (
        [found["name"] for found in admin.describe_topics(others) if found["error_code"] == refused] if others else []
    )
    return [f"{_topics(hidden)}: that takes Describe (TOPIC_AUTHORIZATION_FAILED)"] if hidden else []


def _unseen_settings(settings: Mapping[str, TopicSettings]) -> list[str]:
    without = sorted(name for name, each in settings.items() if each.min_isr is None)
    if not without:
        return []
    return [f"min.insync.replicas of {_topics(without)}: that takes DescribeConfigs (TOPIC_AUTHORIZATION_FAILED)"]


def _topics(names: Sequence[str]) -> str:
    return f"{plural(len(names), 'topic')} {', '.join(names[:_SHOWN])}" + (
        f" and {len(names) - _SHOWN} more" if len(names) > _SHOWN else ""
    )


def _where(
    topics: Sequence[DescribedTopic], is_wanted: Callable[[DescribedTopic, TopicPartitionInfo], bool]
) -> list[str]:
    return [f"{t.name}-{p.number}" for t in topics for p in t.partitions if is_wanted(t, p)]


def _some(places: Sequence[Any]) -> str:
    """How many, and which ones as long as they are few."""
    if not places:
        return "none"
    more = ", …" if len(places) > _SHOWN else ""
    return f"{len(places)} ({', '.join(map(str, places[:_SHOWN]))}{more})"
