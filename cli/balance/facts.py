"""What a plan is made of, as brokers tell it: replicas, sizes and folders (DescribeLogDirs), settings, rates.

What is under way counts as done: a partition has the replicas that it is to have.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping
from typing import Any, NamedTuple

from ...balance.model import Broker, Cluster, Folder, Key
from ...balance.model import Partition as Planned
from ..tools.client import Admin
from ..tools.cluster_view import find_topics, topic_settings
from ..tools.moves import Layout
from ..tools.running import ToolError
from .rates import Rates, Window


class _Folders(NamedTuple):
    """The folders of a broker, and the folder and bytes of each replica there."""

    folders: tuple[Folder, ...]
    replicas: dict[Key, tuple[str, int]]


def look(admin: Admin, leaving: Collection[int], disk_limit: float, window: Window) -> Cluster:
    """The cluster as it is, measured for as long as the window says. Raises ToolError, KafkaError."""
    layout = Layout(admin)
    on_disk = {broker: _folders(admin, broker) for broker in sorted(layout.racks)}
    brokers = _brokers(layout, leaving, on_disk)
    topics = find_topics(admin, None)
    settings = topic_settings(admin, topics)
    sizes = _sizes(layout, on_disk)
    rates: Mapping[Key, Rates] = window.measure(admin, sizes)
    partitions = []
    for key, partition in sorted(layout.partitions.items()):
        replicas = layout.targets[key]
        min_isr = settings[key[0]].min_isr if key[0] in settings else None
        rate = rates.get(key, Rates(0, 0))
        where = {b: on_disk[b].replicas[key][0] for b in replicas if b in on_disk and key in on_disk[b].replicas}
        partitions.append(
            Planned(
                key,
                replicas,
                partition.leader,
                frozenset(partition.isr),
                min_isr or 1,
                sizes[key],
                rate.written,
                rate.read,
                where,
            )
        )
    return Cluster(brokers, tuple(partitions), disk_limit)


def _brokers(layout: Layout, leaving: Collection[int], on_disk: Mapping[int, _Folders]) -> tuple[Broker, ...]:
    known = {*layout.racks, *(replica for replicas in layout.targets.values() for replica in replicas)}
    if strange := sorted(set(leaving) - known):
        raise ToolError(f"there is no broker {', '.join(map(str, strange))}, only {', '.join(map(str, sorted(known)))}")
    return tuple(
        Broker(
            broker_id,
            layout.racks.get(broker_id),
            on_disk[broker_id].folders if broker_id in on_disk else (),
            is_alive=broker_id in layout.racks,
            is_leaving=broker_id in leaving,
        )
        for broker_id in sorted(known)
    )


def _sizes(layout: Layout, on_disk: Mapping[int, _Folders]) -> dict[Key, int]:
    """Bytes of the leader's replica, which any other has in the end; of the largest where there is no leader."""
    found = {}
    for key, partition in layout.partitions.items():
        there = {
            b: on_disk[b].replicas[key][1] for b in partition.replicas if b in on_disk and key in on_disk[b].replicas
        }
        found[key] = there[partition.leader] if partition.leader in there else max(there.values(), default=0)
    return found


def _folders(admin: Admin, broker_id: int) -> _Folders:
    (told,) = admin.describe_log_dirs(None, brokers=[broker_id])
    healthy = [folder for folder in told["log_dirs"] if not folder["error_code"]]
    replicas = {
        (topic["name"], partition["partition_index"]): (folder["log_dir"], partition["partition_size"])
        for folder in healthy
        for topic in folder["topics"]
        for partition in topic["partitions"]
        if not partition["is_future_key"]
    }
    folders = (
        Folder(folder["log_dir"], _known(folder, "total_bytes"), _known(folder, "usable_bytes")) for folder in healthy
    )
    return _Folders(tuple(sorted(folders, key=lambda folder: folder.path)), replicas)


def _known(folder: Mapping[str, Any], field: str) -> int | None:
    """Bytes of a volume, which brokers before Kafka 3.3 don't tell."""
    number: int | None = folder.get(field)
    return None if number is None or number < 0 else number
