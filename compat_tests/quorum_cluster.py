"""A KRaft cluster of Apache Kafka nodes, some of whose brokers are Ottla's.

The nodes 1 to ``kafkas`` are brokers and controllers of Apache Kafka, those after them brokers of Ottla. What Ottla does not have
yet is turned off when the cluster is formatted. The voters are a property of every node.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path

from ottla.compat_tests.kraft_cluster import BROKER, KAFKA, OTTLA, TURNED_OFF, KRaftCluster, Seat


class QuorumCluster(KRaftCluster):
    """See the module, and ``KRaftCluster``."""

    def __init__(
        self,
        folder: Path,
        kafkas: int = 3,
        ottlas: int = 2,
        *,
        properties: Mapping[str, str] | None = None,
        release: str | None = None,
        turned_off: Sequence[str] = TURNED_OFF,
        format_by: str = OTTLA,
        controller_protocol: str = "PLAINTEXT",
    ) -> None:
        super().__init__(
            folder,
            [*[Seat(KAFKA)] * kafkas, *[Seat(OTTLA, (BROKER,))] * ottlas],
            properties=properties,
            release=release,
            turned_off=turned_off,
            format_by=format_by,
            controller_protocol=controller_protocol,
            has_static_voters=True,
        )
        self.kafkas, self.ottlas = kafkas, ottlas
