"""``ottla log-dirs``: the log directories of brokers, and their contents (DescribeLogDirs)."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from contextlib import closing
from typing import Any, NamedTuple

import kafka.errors

from ..client import Admin, Connection
from ..cluster_view import chosen_partitions
from ..output import Column, as_object, print_json, print_rows
from ..running import ToolError

FOLDER_COLUMNS = (
    Column("broker", is_number=True),
    Column("log_dir"),
    Column("partitions", is_number=True),
    Column("size", is_size=True),
    Column("total", is_size=True),
    Column("usable", is_size=True),
    Column("error"),
)
REPLICA_COLUMNS = (
    Column("broker", is_number=True),
    Column("log_dir"),
    Column("topic"),
    Column("partition", is_number=True),
    Column("size", is_size=True),
    Column("lag", is_number=True),
    Column("is_future"),
)


class Folder(NamedTuple):
    """One data folder; ``replicas`` are rows of ``REPLICA_COLUMNS``."""

    row: tuple[Any, ...]
    replicas: list[tuple[Any, ...]]


def show(
    connection: Connection,
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


def _folders(admin: Admin, topics: Sequence[str], brokers: Sequence[int]) -> Iterator[Folder]:
    wanted: dict[str, list[int]] | None = None
    if topics:
        wanted = {}
        for topic, partition in chosen_partitions(admin, topics):
            wanted.setdefault(topic.name, []).append(partition.number)
    live = sorted(broker["broker_id"] for broker in admin.describe_cluster()["brokers"])
    for broker in brokers or live:
        if broker not in live:
            raise ToolError(f"there is no broker {broker}, only {', '.join(map(str, live))} (BROKER_NOT_AVAILABLE)")
        for folder in sorted(admin.folders(broker, wanted), key=lambda folder: str(folder["log_dir"])):
            yield _folder(broker, folder)


def _folder(broker: int, told: Mapping[str, Any]) -> Folder:
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
    return Folder((broker, name, len(replicas), size, total, usable, error), replicas)


def _known(number: int | None) -> int | None:
    """Bytes of a volume, which brokers before Kafka 3.3 don't tell."""
    return None if number is None or number < 0 else number


def _object(folder: Folder) -> dict[str, Any]:
    described = as_object(FOLDER_COLUMNS, folder.row)
    described["replicas"] = [as_object(REPLICA_COLUMNS[2:], replica[2:]) for replica in folder.replicas]
    return described
