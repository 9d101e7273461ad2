"""Every metric: its name, kind, labels, meaning, and which of Kafka's it stands for. The table in docs/operations.md is this.

Where Kafka has the same thing, the name is the one that the usual configuration of Prometheus' JMX exporter makes of
Kafka's bean (``kafka-2_0_0.yml`` of prometheus/jmx_exporter, lower case), so that dashboards and alerts need no change.
Rates are left to Prometheus: what is a meter in Kafka (``…PerSec``) is a counter here. What Kafka's brokers don't export has
the names of kafka_exporter, the lag of groups first of all. What only Ottla has begins with ``ottla_``. Each has one name.
"""

from __future__ import annotations

from . import consumers, control, process, replication, storage, traffic
from .family import Family

FAMILIES: tuple[Family, ...] = tuple(
    family for part in (traffic, replication, control, storage, consumers, process) for family in part.FAMILIES
)
"""All of them, in the order in which the page has them."""
