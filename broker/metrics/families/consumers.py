"""Metrics of the consumer groups that this broker coordinates, named as in kafka_exporter.

Kafka does not export the lag of groups.
"""

from __future__ import annotations

from .family import Family, families_of, gauge

_GROUPS = "kafka.coordinator.group:type=GroupMetadataManager,name="
_EXPORTER = "kafka_exporter"

GROUPS = gauge(
    "kafka_coordinator_group_groupmetadatamanager_numgroups",
    "",
    "Groups that this broker coordinates.",
    _GROUPS + "NumGroups",
)
EMPTY_GROUPS = gauge(
    "kafka_coordinator_group_groupmetadatamanager_numgroupsempty",
    "",
    "Groups of this broker in state Empty: they have no members.",
    _GROUPS + "NumGroupsEmpty",
)
PREPARING_GROUPS = gauge(
    "kafka_coordinator_group_groupmetadatamanager_numgroupspreparingrebalance",
    "",
    "Groups of this broker in state PreparingRebalance: they wait for members to join.",
    _GROUPS + "NumGroupsPreparingRebalance",
)
COMPLETING_GROUPS = gauge(
    "kafka_coordinator_group_groupmetadatamanager_numgroupscompletingrebalance",
    "",
    "Groups of this broker in state CompletingRebalance: they wait for the assignment of their leader.",
    _GROUPS + "NumGroupsCompletingRebalance",
)
STABLE_GROUPS = gauge(
    "kafka_coordinator_group_groupmetadatamanager_numgroupsstable",
    "",
    "Groups of this broker in state Stable: their members have their assignments.",
    _GROUPS + "NumGroupsStable",
)
DEAD_GROUPS = gauge(
    "kafka_coordinator_group_groupmetadatamanager_numgroupsdead",
    "",
    "Groups of this broker in state Dead: they are being deleted.",
    _GROUPS + "NumGroupsDead",
)
OFFSETS = gauge(
    "kafka_coordinator_group_groupmetadatamanager_numoffsets",
    "",
    "Committed offsets of the groups of this broker, one for each group and partition.",
    _GROUPS + "NumOffsets",
)
GROUP_MEMBERS = gauge(
    "kafka_consumergroup_members", "consumergroup", "Members of a group that this broker coordinates.", _EXPORTER
)
GROUP_OFFSET = gauge(
    "kafka_consumergroup_current_offset",
    "consumergroup topic partition",
    "The committed offset of a group that this broker coordinates.",
    _EXPORTER,
)
GROUP_LAG = gauge(
    "kafka_consumergroup_lag",
    "consumergroup topic partition",
    "The high watermark minus the committed offset of the group, where this broker also leads the partition.",
    _EXPORTER,
)

FAMILIES: tuple[Family, ...] = families_of(globals())
