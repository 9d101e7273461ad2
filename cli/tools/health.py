"""``ottla cluster health``: what is wrong with a cluster, for scripts that only look at the exit status."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from contextlib import closing
from typing import Any

from .client import Connection
from .cluster_view import Partition, Topic, find_topics, topic_settings
from .output import print_json, text

_SHOWN = 10
HEALTHY, UNHEALTHY = 0, 1


def health(connection: Connection, *, as_json: bool) -> int:
    """Print what is wrong; the exit status: 0 nothing is, 1 something is. Raises ToolError when no broker answers."""
    with closing(connection.admin()) as admin:
        cluster = admin.describe_cluster()
        topics = find_topics(admin, None)
        settings = topic_settings(admin, topics)
    live = {broker["broker_id"] for broker in cluster["brokers"]}
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
    is_healthy = controller is not None and not any(found.values())
    if as_json:
        print_json({"healthy": is_healthy, "controller": controller, "brokers": sorted(live), **found})
    else:
        print(f"healthy: {text(is_healthy)}")
        print(f"controller: {'none' if controller is None else controller}")
        print(f"brokers: {text(sorted(live))}")
        for name, places in found.items():
            print(f"{name.replace('_', ' ')}: {_some(places)}")
    return HEALTHY if is_healthy else UNHEALTHY


def _where(topics: Sequence[Topic], is_wanted: Callable[[Topic, Partition], bool]) -> list[str]:
    return [f"{t.name}-{p.number}" for t in topics for p in t.partitions if is_wanted(t, p)]


def _some(places: Sequence[Any]) -> str:
    """How many, and which ones as long as they are few."""
    if not places:
        return "none"
    more = ", …" if len(places) > _SHOWN else ""
    return f"{len(places)} ({', '.join(map(str, places[:_SHOWN]))}{more})"
