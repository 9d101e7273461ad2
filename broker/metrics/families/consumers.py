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
EMPTY_GROUPS = gauge(
    "kafka_coordinator_group_groupmetadatamanager_numgroupsempty",
    "",
    "Those of them that have no members.",
    _GROUPS + "NumGroupsEmpty",
)
PREPARING_GROUPS = gauge(
    "kafka_coordinator_group_groupmetadatamanager_numgroupspreparingrebalance",
    "",
    "Those of them whose members are being gathered.",
    _GROUPS + "NumGroupsPreparingRebalance",
)
COMPLETING_GROUPS = gauge(
    "kafka_coordinator_group_groupmetadatamanager_numgroupscompletingrebalance",
    "",
    "Those of them that wait for their leader to assign partitions.",
    _GROUPS + "NumGroupsCompletingRebalance",
)
STABLE_GROUPS = gauge(
    "kafka_coordinator_group_groupmetadatamanager_numgroupsstable",
    "",
    "Those of them whose members have their partitions.",
    _GROUPS + "NumGroupsStable",
)
DEAD_GROUPS = gauge(
    "kafka_coordinator_group_groupmetadatamanager_numgroupsdead",
    "",
    "Those of them that are being deleted.",
    _GROUPS + "NumGroupsDead",
)
OFFSETS = gauge(
    "kafka_coordinator_group_groupmetadatamanager_numoffsets",
    "",
    "Offsets they have committed.",
    _GROUPS + "NumOffsets",
)
GROUP_MEMBERS = gauge("kafka_consumergroup_members", "consumergroup", "Members of a group of this broker.", _EXPORTER)
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
