"""The input of a plan, requested from brokers: replicas, sizes (DescribeLogDirs), settings, rates."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from typing import Any

from ...balance.answers import BrokerLogDirs, ReportedPartition, cluster_of, size_of
from ...balance.model import ClusterModel, LogDirectoryModel
from ..tools.client import Admin
from ..tools.cluster_view import find_topics, topic_settings
from ..tools.nearest import no_broker
from ..tools.replicas.moves import ClusterLayout
from .rates import MeasurementWindow, PartitionRates


def look(admin: Admin, leaving: Collection[int], disk_limit: float, window: MeasurementWindow) -> ClusterModel:
    """The cluster as it is, measured for as long as the window says. Raises ToolError, KafkaError."""
    layout = ClusterLayout(admin)
    _check_known(layout, leaving)
    disks = {broker: _on_disk(admin, broker) for broker in sorted(layout.racks)}
    settings = topic_settings(admin, find_topics(admin, None))
    sizes = {key: size_of(key, tuple(p.replicas), p.leader, disks) for key, p in layout.partitions.items()}
    rates = window.measure(admin, sizes)
    partitions = {}
    for key, partition in layout.partitions.items():
        min_isr = settings[key[0]].min_isr if key[0] in settings else None
        rate = rates.get(key, PartitionRates(0, 0))
        partitions[key] = ReportedPartition(
            layout.targets[key],
            tuple(partition.replicas),
            partition.leader,
            partition.isr,
            min_isr or 1,
            rate.written,
            rate.read,
        )
    return cluster_of(layout.racks, partitions, disks, leaving, disk_limit)


def _check_known(layout: ClusterLayout, leaving: Collection[int]) -> None:
    known = {*layout.racks, *(replica for replicas in layout.targets.values() for replica in replicas)}
    if strange := sorted(set(leaving) - known):
        raise no_broker(strange, known)


def _on_disk(admin: Admin, broker_id: int) -> BrokerLogDirs:
    healthy = [folder for folder in admin.folders(broker_id) if not folder["error_code"]]
    replicas = {
        (topic["name"], partition["partition_index"]): (folder["log_dir"], partition["partition_size"])
        for folder in healthy
        for topic in folder["topics"]
        for partition in topic["partitions"]
        if not partition["is_future_key"]
    }
    folders = (
        LogDirectoryModel(folder["log_dir"], _known(folder, "total_bytes"), _known(folder, "usable_bytes"))
        for folder in healthy
    )
    return BrokerLogDirs(tuple(sorted(folders, key=lambda folder: folder.path)), replicas)


def _known(folder: Mapping[str, Any], field: str) -> int | None:
    """Bytes of a volume, which brokers before Kafka 3.3 don't tell."""
    number: int | None = folder.get(field)
    return None if number is None or number < 0 else number
