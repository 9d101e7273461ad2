"""Consumer groups that this broker coordinates. Their lag has the names of kafka_exporter: Kafka does not export it."""

from __future__ import annotations

from .family import Family, families_of, gauge

_GROUPS = "kafka.coordinator.group:type=GroupMetadataManager,name="
_EXPORTER = "kafka_exporter"

GROUPS = gauge(
    "kafka_coordinator_group_groupmetadatamanager_numgroups",
    "",
    "Groups this broker coordinates.",
    _GROUPS + "NumGroups",
)
GROUPS_BY_STATE = gauge(
    "ottla_groups",
    "state",
    "The same by state, as DescribeGroups names it (Kafka: NumGroupsStable, NumGroupsEmpty, …).",
)
GROUP_OFFSET = gauge(
    "kafka_consumergroup_current_offset",
    "consumergroup topic partition",
    "What a group of this broker has committed.",
    _EXPORTER,
)
GROUP_LAG = gauge(
    "kafka_consumergroup_lag",
    "consumergroup topic partition",
    "How many offsets that is behind the high watermark, where this broker leads the partition.",
    _EXPORTER,
)

FAMILIES: tuple[Family, ...] = families_of(globals())
