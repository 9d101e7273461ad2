"""Totals per broker over the partitions of a cluster: replicas, leaderships, replicas out of sync."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence

from .admin_rows import ClusterDetail, MoveRow, NodeRow, TroubleRow

MOST_TROUBLES = 500


class ClusterSums:
    """The totals: ``add`` every partition first, then make the rows."""

    def __init__(self) -> None:
        self._replicas: Counter[int] = Counter()
        self._led: Counter[int | None] = Counter()
        self._out_of_sync: Counter[int] = Counter()
        self._troubles: list[TroubleRow] = []
        self._count = 0

    def add(self, topic: str, number: int, leader: int | None, replicas: Sequence[int], isr: Sequence[int]) -> None:
        """``leader`` is None while there is none."""
        for broker in replicas:
            self._replicas[broker] += 1
        self._led[leader] += 1
        if leader is None or len(isr) < len(replicas):
            self._out_of_sync.update(set(replicas) - set(isr))
            self._count += 1
            if len(self._troubles) < MOST_TROUBLES:
                self._troubles.append(TroubleRow(topic, number, leader, tuple(replicas), tuple(isr)))

    def node(
        self, broker_id: int, rack: str | None, listeners: tuple[tuple[str, str, int], ...], controller: int
    ) -> NodeRow:
        """A live broker."""
        sums = self._replicas[broker_id], self._led[broker_id], self._out_of_sync[broker_id]
        return NodeRow(broker_id, rack, listeners, broker_id == controller, *sums)

    def detail(
        self,
        cluster_id: str,
        controller: int,
        asked: int | None,
        nodes: Sequence[NodeRow],
        moves: tuple[MoveRow, ...] | None,
    ) -> ClusterDetail:
        """``controller`` is -1 where it is not known."""
        return ClusterDetail(
            cluster_id,
            controller if controller >= 0 else None,
            asked,
            tuple(nodes),
            tuple(sorted({*self._replicas} - {node.broker_id for node in nodes})),
            self._led.total(),
            tuple(sorted(self._troubles, key=lambda row: not row.is_offline)),
            self._count,
            moves,
        )
