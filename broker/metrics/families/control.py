"""Metrics of the controller, and of the broker's session at the cluster's store."""

from __future__ import annotations

from .family import Family, counter, families_of, gauge, histogram

_CONTROLLER = "kafka.controller:type=KafkaController,name="
_CONTROLLER_STATS = "kafka.controller:type=ControllerStats,name="
_EVENTS = "kafka.controller:type=ControllerEventManager,name="
_SENDERS = "kafka.controller:type=ControllerChannelManager,broker-id=*,name="
_SESSION = "kafka.server:type=SessionExpireListener,name="

ACTIVE_CONTROLLER = gauge(
    "kafka_controller_kafkacontroller_activecontrollercount",
    "",
    "1 on the active controller, else 0.",
    _CONTROLLER + "ActiveControllerCount",
)
ACTIVE_BROKERS = gauge(
    "kafka_controller_kafkacontroller_activebrokercount",
    "",
    "Brokers that are registered and not fenced. This and the next metrics of the cluster are 0 except on the controller; in a "
    "KRaft quorum all controllers have them, active or not.",
    _CONTROLLER + "ActiveBrokerCount",
)
OFFLINE_PARTITIONS = gauge(
    "kafka_controller_kafkacontroller_offlinepartitionscount",
    "",
    "Partitions without a leader.",
    _CONTROLLER + "OfflinePartitionsCount",
)
TOPICS = gauge(
    "kafka_controller_kafkacontroller_globaltopiccount",
    "",
    "Topics of the cluster.",
    _CONTROLLER + "GlobalTopicCount",
)
ALL_PARTITIONS = gauge(
    "kafka_controller_kafkacontroller_globalpartitioncount",
    "",
    "Partitions of the cluster.",
    _CONTROLLER + "GlobalPartitionCount",
)
TOPIC_PARTITIONS = gauge(
    "kafka_topic_partitions",
    "topic",
    "Partitions of a topic; only on the active controller.",
    "kafka_exporter",
)
PREFERRED_IMBALANCE = gauge(
    "kafka_controller_kafkacontroller_preferredreplicaimbalancecount",
    "",
    "Partitions that are not led by their preferred replica, the first one.",
    _CONTROLLER + "PreferredReplicaImbalanceCount",
)
TOPICS_TO_DELETE = gauge(
    "kafka_controller_kafkacontroller_topicstodeletecount",
    "",
    "Topics that are being deleted; 0 in a quorum, where that is one step.",
    _CONTROLLER + "TopicsToDeleteCount",
)
ELECTION_TIMES = histogram(
    "kafka_controller_controllerstats_leaderelectionrateandtimems",
    "",
    "How long the controller took to handle brokers that joined or left, elections included, in milliseconds; on ZooKeeper.",
    _CONTROLLER_STATS + "LeaderElectionRateAndTimeMs",
)
UNCLEAN_ELECTIONS = counter(
    "kafka_controller_controllerstats_uncleanleaderelections_total",
    "",
    "Unclean elections: leaders that were elected without having been in sync, so records may be lost.",
    _CONTROLLER_STATS + "UncleanLeaderElectionsPerSec",
)
EVENT_QUEUE_SIZE = gauge(
    "kafka_controller_controllereventmanager_eventqueuesize",
    "",
    "Events in the controller's queue; on ZooKeeper: the controller of a quorum has none.",
    _EVENTS + "EventQueueSize",
)
EVENT_QUEUE_TIMES = histogram(
    "kafka_controller_controllereventmanager_eventqueuetimems",
    "",
    "Time that events have waited in that queue, in milliseconds.",
    _EVENTS + "EventQueueTimeMs",
)
SENDER_QUEUE_SIZE = gauge(
    "kafka_controller_controllerchannelmanager_queuesize",
    "broker_id",
    "Requests of the controller to a broker (also to itself) that are not answered yet; only on the controller.",
    _SENDERS + "QueueSize",
)
SENDER_QUEUE_TIMES = histogram(
    "kafka_controller_controllerchannelmanager_requestrateandqueuetimems",
    "broker_id",
    "Time that requests of the controller to a broker waited until they were sent, in milliseconds, since its registration.",
    _SENDERS + "RequestRateAndQueueTimeMs",
)
SESSION_STATE = gauge(
    "kafka_server_sessionexpirelistener_sessionstate",
    "state",
    "1 for the state of the session at the cluster's store, 0 for the others: CONNECTED, CONNECTING, CLOSED (expired).",
    _SESSION + "SessionState",
)
SESSION_CONNECTS = counter(
    "kafka_server_sessionexpirelistener_zookeepersyncconnects_total",
    "",
    "How often the broker has connected to the cluster's store.",
    _SESSION + "ZooKeeperSyncConnectsPerSec",
)
SESSION_DISCONNECTS = counter(
    "kafka_server_sessionexpirelistener_zookeeperdisconnects_total",
    "",
    "How often the connection to the cluster's store was lost, or given up because nothing was received.",
    _SESSION + "ZooKeeperDisconnectsPerSec",
)
SESSION_EXPIRATIONS = counter(
    "kafka_server_sessionexpirelistener_zookeeperexpires_total",
    "",
    "Sessions at the cluster's store that have expired; the broker left the cluster each time, until it registered again.",
    _SESSION + "ZooKeeperExpiresPerSec",
)
STORE_TIMES = histogram(
    "kafka_server_zookeeperclientmetrics_zookeeperrequestlatencyms",
    "",
    "Time that requests to the cluster's store took, in milliseconds; the store of a single broker is its own.",
    "kafka.server:type=ZooKeeperClientMetrics,name=ZooKeeperRequestLatencyMs",
)

FAMILIES: tuple[Family, ...] = families_of(globals())
