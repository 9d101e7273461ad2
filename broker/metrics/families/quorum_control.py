"""Metrics of a KRaft controller, active or not, in addition to those of ``control``.

They have no samples on other nodes.
"""

from __future__ import annotations

from .family import Family, counter, families_of, gauge, histogram

_CONTROLLER = "kafka.controller:type=KafkaController,name="


def _controller(name: str, meaning: str, labels: str = "") -> Family:
    kafka = _CONTROLLER + name + "".join(f",{label}=*" for label in labels.split())
    return gauge(f"kafka_controller_kafkacontroller_{name.lower()}", labels, meaning, kafka)


FENCED_BROKERS = _controller("FencedBrokerCount", "Registered brokers that are fenced: dead, or not ready yet.")
LEAVING_BROKERS = _controller("ControlledShutdownBrokerCount", "Brokers that shut down while their leaderships move.")
BROKER_STATES = _controller(
    "BrokerRegistrationState",
    "The state of a registered broker: 10 fenced, 20 in controlled shutdown, 30 active.",
    "broker",
)
BROKER_SILENCE = _controller(
    "TimeSinceLastHeartbeatReceivedMs",
    "How long ago a broker's last heartbeat came, in ms, at most broker.session.timeout.ms; on the active controller only.",
    "broker",
)
METADATA_ERRORS = _controller(
    "MetadataErrorCount",
    "Operations of this controller that failed as none should: bugs, of which the log has the traces.",
)
APPLIED_OFFSET = _controller(
    "LastAppliedRecordOffset", "The offset of the last record that this controller has applied, committed or not."
)
APPLIED_TIMESTAMP = _controller(
    "LastAppliedRecordTimestamp", "When that record was written, in milliseconds since 1970."
)
APPLIED_LAG = _controller(
    "LastAppliedRecordLagMs",
    "How long ago that record was written, in milliseconds. It grows while nothing changes.",
)
COMMITTED_OFFSET = _controller(
    "LastCommittedRecordOffset", "The offset of the last record that this controller knows to be committed."
)
NEW_CONTROLLERS = _controller(
    "NewActiveControllersCount", "How often this controller has seen another one become active, itself included."
)
TIMED_OUT_HEARTBEATS = _controller(
    "TimedOutBrokerHeartbeatCount",
    "Heartbeats that waited too long for their turn: 0, because the controller has no queue.",
)
OPERATIONS_STARTED = _controller(
    "EventQueueOperationsStartedCount", "Operations that this controller has begun: for requests, and its own tasks."
)
OPERATIONS_TIMED_OUT = _controller(
    "EventQueueOperationsTimedOutCount",
    "Operations that waited too long for their turn: 0, because the controller has no queue.",
)
IGNORED_VOTERS = _controller(
    "IgnoredStaticVoters",
    "1 where controller.quorum.voters is set and does not count, because the log has voters; else 0.",
)
OPERATION_TIMES = histogram(
    "kafka_controller_controllereventmanager_eventqueueprocessingtimems",
    "",
    "How long operations for requests took, in milliseconds, until their records were committed. Kafka also counts tasks.",
    "kafka.controller:type=ControllerEventManager,name=EventQueueProcessingTimeMs",
)
ELR_ELECTIONS = counter(
    "kafka_controller_controllerstats_electionfromeligibleleaderreplicas_total",
    "",
    "Leaders that were elected from the eligible leader replicas, out of sync and with everything committed (KIP-966).",
    "kafka.controller:type=ControllerStats,name=ElectionFromEligibleLeaderReplicasPerSec",
)

FAMILIES: tuple[Family, ...] = families_of(globals())
