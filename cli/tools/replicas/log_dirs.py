"""``ottla log-dirs``: the log directories of brokers, and their contents (DescribeLogDirs)."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from contextlib import closing
from typing import Any, NamedTuple

import kafka.errors

from ..client import Admin, ClusterConnection
from ..cluster_view import chosen_partitions
from ..nearest import no_broker
from ..output import OutputColumn, as_object, print_json, print_rows

FOLDER_COLUMNS = (
    OutputColumn("broker", is_number=True),
    OutputColumn("log_dir"),
    OutputColumn("partitions", is_number=True),
    OutputColumn("size", is_size=True),
    OutputColumn("total", is_size=True),
    OutputColumn("usable", is_size=True),
    OutputColumn("error"),
)
REPLICA_COLUMNS = (
    OutputColumn("broker", is_number=True),
    OutputColumn("log_dir"),
    OutputColumn("topic"),
    OutputColumn("partition", is_number=True),
    OutputColumn("size", is_size=True),
    OutputColumn("lag", is_number=True),
    OutputColumn("is_future"),
)


class LogDirDescription(NamedTuple):
    """One log directory."""

    row: tuple[Any, ...]
    replicas: list[tuple[Any, ...]]
    """Rows of ``REPLICA_COLUMNS``."""


def show(
    connection: ClusterConnection,
    topics: Sequence[str],
    *,
    brokers: Sequence[int],
    partitions: bool,
    as_json: bool,
) -> None:
    """A row for each folder, or for each replica where they or topics are asked for. Raises ToolError."""
    with closing(connection.admin()) as admin:
        folders = list(_folders(admin, topics, brokers))
    if as_json:
        print_json([_object(folder) for folder in folders])
    elif partitions or topics:
        print_rows(REPLICA_COLUMNS, [replica for folder in folders for replica in folder.replicas])
    else:
        print_rows(FOLDER_COLUMNS, [folder.row for folder in folders])


def _folders(admin: Admin, topics: Sequence[str], brokers: Sequence[int]) -> Iterator[LogDirDescription]:
    wanted: dict[str, list[int]] | None = None
    if topics:
        wanted = {}
        for topic, partition in chosen_partitions(admin, topics):
            wanted.setdefault(topic.name, []).append(partition.number)
    live = sorted(broker["broker_id"] for broker in admin.describe_cluster()["brokers"])
    for broker in brokers or live:
        if broker not in live:
            raise no_broker([broker], live, "BROKER_NOT_AVAILABLE")
        for folder in sorted(admin.folders(broker, wanted), key=lambda folder: str(folder["log_dir"])):
            yield _folder(broker, folder)


def _folder(broker: int, told: Mapping[str, Any]) -> LogDirDescription:
    name = told["log_dir"]
    replicas = sorted(
        (
            broker,
            name,
            topic["name"],
            partition["partition_index"],
            partition["partition_size"],
            partition["offset_lag"],
            bool(partition["is_future_key"]),
        )
        for topic in told["topics"]
        for partition in topic["partitions"]
    )
    code = told["error_code"]
    error = (getattr(kafka.errors.for_code(code), "message", "") or str(code)) if code else None
    size = sum(replica[4] for replica in replicas)
    total, usable = (_known(told.get(field)) for field in ("total_bytes", "usable_bytes"))
    return LogDirDescription((broker, name, len(replicas), size, total, usable, error), replicas)


def _known(number: int | None) -> int | None:
    """Bytes of a volume, which brokers before Kafka 3.3 don't tell."""
    return None if number is None or number < 0 else number


def _object(folder: LogDirDescription) -> dict[str, Any]:
    described = as_object(FOLDER_COLUMNS, folder.row)
    described["replicas"] = [as_object(REPLICA_COLUMNS[2:], replica[2:]) for replica in folder.replicas]
    return described
