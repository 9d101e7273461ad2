"""The beans of a quorum and of groups that a node of Kafka 4.3.1 has over JMX: each is a metric, or the docs say why not."""

from __future__ import annotations

from pathlib import Path

import pytest

from ottla.broker.metrics.families import FAMILIES

PAGE = (Path(__file__).resolve().parents[3] / "docs" / "metrics.md").read_text()
_CONTROLLER = """
ActiveBrokerCount ActiveControllerCount BrokerRegistrationState,broker=* ControlledShutdownBrokerCount
EventQueueOperationsStartedCount EventQueueOperationsTimedOutCount FencedBrokerCount GlobalPartitionCount GlobalTopicCount
IgnoredStaticVoters LastAppliedRecordLagMs LastAppliedRecordOffset LastAppliedRecordTimestamp LastCommittedRecordOffset
MetadataErrorCount NewActiveControllersCount OfflinePartitionsCount PreferredReplicaImbalanceCount
TimeSinceLastHeartbeatReceivedMs,broker=* TimedOutBrokerHeartbeatCount
"""
_RAFT = """
append-records-rate commit-latency-avg commit-latency-max current-epoch current-leader current-state current-vote
election-latency-avg election-latency-max fetch-records-rate high-watermark log-end-epoch log-end-offset number-of-observers
number-of-voters number-unknown-voter-connections poll-idle-ratio-avg uncommitted-voter-change
"""
_METADATA = """
ignored-static-voters last-applied-record-lag-ms last-applied-record-offset last-applied-record-timestamp
metadata-apply-error-count metadata-load-error-count
"""
_GROUPS = (
    "protocol=*,group-count",
    "state=*,consumer-group-count",
    "consumer-group-rebalance-count",
    "state=*,share-group-count",
    "share-group-rebalance-count",
    "group-completed-rebalance-count",
)
_LOADER = "CurrentControllerId CurrentMetadataVersion FinalizedLevel,featureName=* HandleLoadSnapshotCount"
BEANS = [
    *(f"kafka.controller:type=KafkaController,name={name}" for name in _CONTROLLER.split()),
    "kafka.controller:type=ControllerStats,name=UncleanLeaderElectionsPerSec",
    "kafka.controller:type=ControllerStats,name=ElectionFromEligibleLeaderReplicasPerSec",
    "kafka.controller:type=ControllerEventManager,name=EventQueueProcessingTimeMs",
    "kafka.controller:type=ControllerEventManager,name=EventQueueTimeMs",
    *(f"kafka.server:type=raft-metrics,{name}" for name in _RAFT.split()),
    *(f"kafka.server:type=broker-metadata-metrics,{name}" for name in _METADATA.split()),
    *(f"kafka.server:type=MetadataLoader,name={name}" for name in _LOADER.split()),
    "kafka.server:type=SnapshotEmitter,name=LatestSnapshotGeneratedAgeMs",
    "kafka.server:type=SnapshotEmitter,name=LatestSnapshotGeneratedBytes",
    *(f"kafka.server:type=group-coordinator-metrics,{name}" for name in _GROUPS),
    "kafka.server:type=node-metrics,feature-name=*,maximum-supported-level",
    "kafka.server:type=node-metrics,feature-name=*,minimum-supported-level",
]
NOT_THERE = [
    "streams-group-count",
    "current-vote-directory-id",
    "AvgIdleRatio",
    "BrokerMetadataListener",
    "raft-channel-metrics",
]


@pytest.mark.parametrize("bean", BEANS)
def test_there_is_a_metric_of(bean: str) -> None:
    (family,) = [each for each in FAMILIES if each.kafka == bean]
    what = bean.rpartition("name=")[2].partition(",")[0] if ",name=" in bean else bean.rpartition(",")[2]
    name = what.lower().replace("-", "_").removesuffix("persec")
    assert family.name.removesuffix("_total").endswith(name)


@pytest.mark.parametrize("what", NOT_THERE)
def test_the_docs_say_why_there_is_none_of(what: str) -> None:
    section = PAGE.partition("## Kafka's metrics that are not there\n")[2].partition("\n## ")[0]
    assert what in section
    assert not any(what in each.kafka for each in FAMILIES)
