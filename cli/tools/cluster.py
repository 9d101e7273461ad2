"""``ottla cluster describe``."""

from __future__ import annotations

from contextlib import closing

from .client import Connection
from .cluster_view import find_topics
from .output import Column, as_object, print_json, print_rows

COLUMNS = (
    Column("broker", is_number=True),
    Column("host"),
    Column("port", is_number=True),
    Column("rack"),
    Column("leader_of", is_number=True),
    Column("controller"),
)


def describe(connection: Connection, *, as_json: bool) -> None:
    """Facts about the cluster, then a row for each broker."""
    with closing(connection.admin()) as admin:
        cluster = admin.describe_cluster()
        topics = find_topics(admin, None)
    partitions = [partition for topic in topics for partition in topic.partitions]
    facts = {
        "cluster_id": cluster["cluster_id"],
        "controller": cluster["controller_id"],
        "topics": len(topics),
        "partitions": len(partitions),
        "under_replicated_partitions": sum(partition.is_under_replicated for partition in partitions),
        "offline_partitions": sum(partition.leader is None for partition in partitions),
    }
    rows = [
        (
            broker["broker_id"],
            broker["host"],
            broker["port"],
            broker["rack"],
            sum(partition.leader == broker["broker_id"] for partition in partitions),
            broker["broker_id"] == cluster["controller_id"],
        )
        for broker in sorted(cluster["brokers"], key=lambda broker: int(broker["broker_id"]))
    ]
    if as_json:
        print_json({**facts, "brokers": [as_object(COLUMNS, row) for row in rows]})
        return
    for name, value in facts.items():
        print(f"{name.replace('_', ' ')}: {value}")
    print_rows(COLUMNS, rows)
