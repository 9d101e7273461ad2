"""The controller, and the broker's session at the cluster's store."""

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
    "1 on the broker that is the controller, else 0.",
    _CONTROLLER + "ActiveControllerCount",
)
ACTIVE_BROKERS = gauge(
    "kafka_controller_kafkacontroller_activebrokercount",
    "",
    "Brokers that are registered, on the controller; else 0.",
    _CONTROLLER + "ActiveBrokerCount",
)
OFFLINE_PARTITIONS = gauge(
    "kafka_controller_kafkacontroller_offlinepartitionscount",
    "",
    "Partitions without a leader, on the controller; else 0.",
    _CONTROLLER + "OfflinePartitionsCount",
)
TOPICS = gauge(
    "kafka_controller_kafkacontroller_globaltopiccount",
    "",
    "Topics of the cluster, on the controller; else 0.",
    _CONTROLLER + "GlobalTopicCount",
)
ALL_PARTITIONS = gauge(
    "kafka_controller_kafkacontroller_globalpartitioncount",
    "",
    "Partitions of the cluster, on the controller; else 0.",
    _CONTROLLER + "GlobalPartitionCount",
)
TOPIC_PARTITIONS = gauge(
    "kafka_topic_partitions",
    "topic",
    "Partitions of a topic of the cluster; on the controller only.",
    "kafka_exporter",
)
PREFERRED_IMBALANCE = gauge(
    "kafka_controller_kafkacontroller_preferredreplicaimbalancecount",
    "",
    "Partitions that are not led by the first of their replicas, on the controller; else 0.",
    _CONTROLLER + "PreferredReplicaImbalanceCount",
)
TOPICS_TO_DELETE = gauge(
    "kafka_controller_kafkacontroller_topicstodeletecount",
    "",
    "Topics that are being deleted, on the controller; else 0.",
    _CONTROLLER + "TopicsToDeleteCount",
)
ELECTION_TIMES = histogram(
    "kafka_controller_controllerstats_leaderelectionrateandtimems",
    "",
    "How long the controller took to elect and to have told after brokers came or went, in milliseconds.",
    _CONTROLLER_STATS + "LeaderElectionRateAndTimeMs",
)
UNCLEAN_ELECTIONS = counter(
    "kafka_controller_controllerstats_uncleanleaderelections_total",
    "",
    "Leaders that were elected without having been in sync: records may be lost.",
    _CONTROLLER_STATS + "UncleanLeaderElectionsPerSec",
)
EVENT_QUEUE_SIZE = gauge(
    "kafka_controller_controllereventmanager_eventqueuesize",
    "",
    "Events that wait for the controller.",
    _EVENTS + "EventQueueSize",
)
EVENT_QUEUE_TIMES = histogram(
    "kafka_controller_controllereventmanager_eventqueuetimems",
    "",
    "How long events have waited for their turn, in milliseconds.",
    _EVENTS + "EventQueueTimeMs",
)
SENDER_QUEUE_SIZE = gauge(
    "kafka_controller_controllerchannelmanager_queuesize",
    "broker_id",
    "Requests to a broker, itself among them, that it has not answered yet; on the controller.",
    _SENDERS + "QueueSize",
)
SENDER_QUEUE_TIMES = histogram(
    "kafka_controller_controllerchannelmanager_requestrateandqueuetimems",
    "broker_id",
    "How long these have waited until they were sent, in milliseconds, since the broker registered.",
    _SENDERS + "RequestRateAndQueueTimeMs",
)
SESSION_STATE = gauge(
    "kafka_server_sessionexpirelistener_sessionstate",
    "state",
    "1 for the state that the session at the cluster's store is in: CONNECTED, CONNECTING, CLOSED once it has expired; else 0.",
    _SESSION + "SessionState",
)
SESSION_CONNECTS = counter(
    "kafka_server_sessionexpirelistener_zookeepersyncconnects_total",
    "",
    "How often there was a connection to the cluster's store.",
    _SESSION + "ZooKeeperSyncConnectsPerSec",
)
SESSION_DISCONNECTS = counter(
    "kafka_server_sessionexpirelistener_zookeeperdisconnects_total",
    "",
    "How often it was lost, or given up because nothing came.",
    _SESSION + "ZooKeeperDisconnectsPerSec",
)
SESSION_EXPIRATIONS = counter(
    "kafka_server_sessionexpirelistener_zookeeperexpires_total",
    "",
    "How many sessions have expired, each of which took the broker out of the cluster for a while.",
    _SESSION + "ZooKeeperExpiresPerSec",
)
STORE_TIMES = histogram(
    "kafka_server_zookeeperclientmetrics_zookeeperrequestlatencyms",
    "",
    "How long requests to the cluster's store took, in milliseconds; to that of a single broker, too, which is its own.",
    "kafka.server:type=ZooKeeperClientMetrics,name=ZooKeeperRequestLatencyMs",
)

FAMILIES: tuple[Family, ...] = families_of(globals())
