"""``ottla cluster describe | wait``."""

from __future__ import annotations

import logging
import time
from collections.abc import Collection, Mapping
from contextlib import closing
from typing import Any

from ...base.wording import counted, plural
from .client import UNANSWERED, ClusterConnection
from .cluster_view import TopicPartitionInfo, find_topics, topic_settings
from .output import OutputColumn, as_object, print_json, print_rows, text
from .running import ToolError, explain

log = logging.getLogger(__name__)

_PAUSE_S = 0.25
_LEAST_S, _MOST_S = 5.0, 10.0
"""How long a broker has to answer: as long as is left, within these bounds."""

COLUMNS = (
    OutputColumn("broker", is_number=True),
    OutputColumn("host"),
    OutputColumn("port", is_number=True),
    OutputColumn("rack"),
    OutputColumn("controller"),
    OutputColumn("leaders", is_number=True),
    OutputColumn("replicas", is_number=True),
    OutputColumn("out_of_sync", is_number=True),
)


def describe(connection: ClusterConnection, *, as_json: bool) -> None:
    """Facts about the cluster, then a row for each broker, also for one that is down and has replicas."""
    with closing(connection.admin()) as admin:
        cluster = admin.describe_cluster()
        topics = find_topics(admin, None)
        settings = topic_settings(admin, topics)
    partitions = [partition for topic in topics for partition in topic.partitions]
    refusing = [p for topic in topics for p in topic.partitions if p.is_under_min_isr(settings[topic.name].min_isr)]
    controller = cluster["controller_id"]
    facts = {
        "cluster_id": cluster["cluster_id"],
        "controller": controller if controller >= 0 else None,
        "topics": len(topics),
        "partitions": len(partitions),
        "under_replicated_partitions": sum(partition.is_under_replicated for partition in partitions),
        "under_min_isr_partitions": len(refusing),
        "offline_partitions": sum(partition.leader is None for partition in partitions),
    }
    brokers = {broker["broker_id"]: broker for broker in cluster["brokers"]}
    known = sorted(brokers.keys() | {replica for partition in partitions for replica in partition.replicas})
    rows = [_row(broker_id, brokers.get(broker_id), controller, partitions) for broker_id in known]
    if as_json:
        print_json({**facts, "brokers": [as_object(COLUMNS, row) for row in rows]})
        return
    for name, value in facts.items():
        print(f"{name.replace('_', ' ')}: {text(value)}")
    print_rows(COLUMNS, rows)


def wait(connection: ClusterConnection, *, timeout_ms: int) -> None:
    """Wait until a broker answers, and all replicas are in sync. Raises ToolError, KafkaError when that is not so in time."""
    until = time.monotonic() + timeout_ms / 1000
    while True:
        try:
            return _wait_in_sync(connection, until)
        except UNANSWERED as error:
            if time.monotonic() >= until:
                raise
            log.info("%s: trying again", explain(error))
            time.sleep(_PAUSE_S)


def _wait_in_sync(connection: ClusterConnection, until: float) -> None:
    limit_s = min(max(until - time.monotonic(), _LEAST_S), _MOST_S)
    with closing(connection.admin(limit_s)) as admin:
        while True:
            partitions = [partition for topic in find_topics(admin, None) for partition in topic.partitions]
            missing = [p for p in partitions if p.leader is None or p.is_under_replicated]
            if not missing:
                print("Every partition has all its replicas in sync.")
                return
            if time.monotonic() >= until:
                break
            time.sleep(_PAUSE_S)
    gone = sorted({replica for partition in missing for replica in set(partition.replicas) - set(partition.isr)})
    raise ToolError(
        f"{counted(len(missing), 'partition')} of {len(partitions)} "
        f"lack replicas in sync, on {plural(len(gone), 'broker')} {', '.join(map(str, gone))}"
    )


def _row(
    broker_id: int, broker: Mapping[str, Any] | None, controller: int, partitions: Collection[TopicPartitionInfo]
) -> tuple[Any, ...]:
    """``broker`` is None where it is down."""
    return (
        broker_id,
        broker and broker["host"],
        broker and broker["port"],
        broker and broker["rack"],
        broker_id == controller,
        sum(partition.leader == broker_id for partition in partitions),
        sum(broker_id in partition.replicas for partition in partitions),
        sum(broker_id in partition.replicas and broker_id not in partition.isr for partition in partitions),
    )
