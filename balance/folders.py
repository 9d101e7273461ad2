"""Log directory balancing within a broker: placement of new replicas, and moves from full directories to others.

A move within a broker copies as many bytes as one between brokers, so it is done only where it is worth it: from a folder whose
volume is fuller than the cluster's ``disk_limit``, to one that stays below. Brokers that don't tell how full a volume is are
left alone.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import NamedTuple

from .model import BrokerModel, ClusterModel, Key, PartitionModel
from .plan import PlannedMove


class FolderMove(NamedTuple):
    """A replica that goes to another log directory of its broker."""

    key: Key
    broker_id: int
    before: str
    """The path of the log directory that it is in."""
    after: str
    """The path of the log directory that it goes to."""
    size: int
    """Bytes to copy."""
    why: str


class _Volumes:
    """The volumes of a broker's log directories, by path."""

    def __init__(self, broker: BrokerModel, disk_limit: float) -> None:
        self.taken: dict[str, int] = {}
        """Bytes that are taken there."""
        self.limit: dict[str, int] = {}
        """Bytes that may be taken there."""
        self.given: dict[str, int] = {}
        """New replicas that were given to it so far."""
        for folder in broker.folders:
            if folder.total is not None and folder.usable is not None:
                self.taken[folder.path] = folder.total - folder.usable
                self.limit[folder.path] = round(folder.total * disk_limit)

    @property
    def are_known(self) -> bool:
        return len(self.taken) > 1

    def over(self, path: str) -> int:
        return self.taken[path] - self.limit[path]

    def roomiest(self) -> str:
        return min(self.taken, key=lambda path: (self.over(path), self.given.get(path, 0), path))


def log_dirs_for_new(cluster: ClusterModel, moves: Iterable[PlannedMove]) -> dict[tuple[str, int, int], str]:
    """The folder with the most room for each replica that comes to a broker with several, by topic, partition and broker."""
    volumes = {broker.broker_id: _Volumes(broker, cluster.disk_limit) for broker in cluster.brokers}
    found = {}
    for move in moves:
        for broker in move.adding:
            there = volumes[broker]
            if there.are_known:
                path = there.roomiest()
                there.taken[path] += move.size
                there.given[path] = there.given.get(path, 0) + 1
                found[*move.key, broker] = path
    return found


def folder_moves(cluster: ClusterModel, going: Iterable[PlannedMove] = ()) -> list[FolderMove]:
    """What relieves full folders, where replicas that go to other brokers don't; the largest that helps first."""
    leaving = {(move.key, broker) for move in going for broker in move.removing}
    found = []
    for broker in cluster.brokers:
        volumes = _Volumes(broker, cluster.disk_limit)
        if broker.receives and volumes.are_known:
            there = [
                p for p in cluster.partitions if volumes.taken.get(p.folders.get(broker.broker_id, "")) is not None
            ]
            for partition in there:
                if (partition.key, broker.broker_id) in leaving:
                    volumes.taken[partition.folders[broker.broker_id]] -= partition.size
            staying = [p for p in there if (p.key, broker.broker_id) not in leaving]
            found += _relieve(broker.broker_id, volumes, sorted(staying, key=lambda p: (-p.size, p.key)))
    return found


def _relieve(broker_id: int, volumes: _Volumes, partitions: list[PartitionModel]) -> list[FolderMove]:
    found = []
    for partition in partitions:
        before, after = partition.folders[broker_id], volumes.roomiest()
        over = volumes.over(before)
        if over > 0 and partition.size and volumes.over(after) + partition.size <= 0:
            why = f"capacity: {before} is {over} bytes fuller than it may be"
            found.append(FolderMove(partition.key, broker_id, before, after, partition.size, why))
            volumes.taken[before] -= partition.size
            volumes.taken[after] += partition.size
    return found
