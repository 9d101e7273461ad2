"""What the controller has decided of a partition, as every replica is told.

In ZooKeeper mode LeaderAndIsr says it, in KRaft the metadata log; what applies it (``Partition.apply``) depends on neither.
"""

from __future__ import annotations

from typing import NamedTuple


class PartitionRegistration(NamedTuple):
    """One state of a partition.

    ``leader`` may be NO_LEADER. ``leader_epoch`` grows with every election, ``partition_epoch`` with every change.
    ``adding`` and ``removing`` are the replicas of a reassignment under way (KIP-455). ``is_recovering``: the leader was
    elected although it was out of sync (KIP-704). ``is_new``: the replicas have no log yet.
    """

    leader: int
    leader_epoch: int
    partition_epoch: int
    isr: tuple[int, ...]
    replicas: tuple[int, ...]
    adding: tuple[int, ...] = ()
    removing: tuple[int, ...] = ()
    is_recovering: bool = False
    is_new: bool = False
