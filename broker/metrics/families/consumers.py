"""Metrics of the groups that this broker coordinates; those of single groups are named as in kafka_exporter.

Kafka does not export the lag of groups.
"""

from __future__ import annotations

from .family import Family, counter, families_of, gauge

_GROUPS = "kafka.coordinator.group:type=GroupMetadataManager,name="
_COORDINATOR = "kafka.server:type=group-coordinator-metrics,"
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
GROUPS_BY_PROTOCOL = gauge(
    "kafka_server_group_coordinator_metrics_group_count",
    "protocol",
    "Groups that this broker coordinates, by their type: classic, consumer (KIP-848), share, streams.",
    _COORDINATOR + "protocol=*,group-count",
)
CONSUMER_GROUPS = gauge(
    "kafka_server_group_coordinator_metrics_consumer_group_count",
    "state",
    "Consumer groups (KIP-848) of this broker by state: Empty, Assigning (the next target assignment is not made yet), "
    "Reconciling (members do not have its partitions yet), Stable, Dead.",
    _COORDINATOR + "state=*,consumer-group-count",
)
CONSUMER_GROUP_REBALANCES = counter(
    "kafka_server_group_coordinator_metrics_consumer_group_rebalance_count_total",
    "",
    "New epochs of consumer groups: members came, went or read other topics, or topics have changed. Kafka leaves out "
    "those of members that went.",
    _COORDINATOR + "consumer-group-rebalance-count",
)
SHARE_GROUPS = gauge(
    "kafka_server_group_coordinator_metrics_share_group_count",
    "state",
    "Share groups (KIP-932) of this broker by state: Empty, Stable (it has members), Dead.",
    _COORDINATOR + "state=*,share-group-count",
)
SHARE_GROUP_REBALANCES = counter(
    "kafka_server_group_coordinator_metrics_share_group_rebalance_count_total",
    "",
    "New epochs of share groups: members came, went or read other topics, topics have changed, or partitions wait for members. "
    "Kafka leaves out those of members that went.",
    _COORDINATOR + "share-group-rebalance-count",
)
CLASSIC_REBALANCES = counter(
    "kafka_server_group_coordinator_metrics_group_completed_rebalance_count_total",
    "",
    "Rebalances of classic groups that have ended with assignments.",
    _COORDINATOR + "group-completed-rebalance-count",
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
