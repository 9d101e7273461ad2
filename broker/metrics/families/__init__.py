"""Declarations of all metrics: name, kind, labels, meaning, and Kafka's metric with the same content.

They are the table of docs/metrics.md.

Where Kafka has the same thing, the name is the one that the usual configuration of Prometheus' JMX exporter makes of
Kafka's bean (``kafka-2_0_0.yml`` of prometheus/jmx_exporter, lower case), so that dashboards and alerts need no change.
Rates are left to Prometheus: Kafka's meters (``…PerSec``) are counters here. Metrics that Kafka's brokers don't export, such as
the lag of groups, have the names that kafka_exporter gives them. The names of Ottla's own metrics begin with ``ottla_``.
"""

from __future__ import annotations

from . import consumers, control, process, quorum, quorum_control, replication, sharing, storage, traffic
from .family import Family

FAMILIES: tuple[Family, ...] = tuple(
    family
    for part in (traffic, sharing, replication, control, quorum_control, quorum, storage, consumers, process)
    for family in part.FAMILIES
)
"""All families, in the order of the table."""
