"""Metrics of requests and their records, connections, authentication and the quotas of clients."""

from __future__ import annotations

from .family import Family, counter, families_of, gauge, histogram

_REQUEST = "kafka.network:type=RequestMetrics,name="
_TOPIC = "kafka.server:type=BrokerTopicMetrics,name="
_FETCH_SESSIONS = "kafka.server:type=FetchSessionCache,name="
_SOCKETS = "kafka.server:type=socket-server-metrics"


def _times(name: str, meaning: str, kafka: str) -> Family:
    return histogram(f"kafka_network_requestmetrics_{name}", "request", meaning, kafka)


REQUESTS = counter(
    "kafka_network_requestmetrics_requests_total",
    "request version",
    "Requests that were answered, by API and version.",
    _REQUEST + "RequestsPerSec",
)
REQUEST_ERRORS = counter(
    "kafka_network_requestmetrics_errors_total",
    "request error",
    "Errors in responses, counted for each partition; Kafka also counts NONE.",
    _REQUEST + "ErrorsPerSec",
)
TOTAL_TIME = _times(
    "totaltimems",
    "Time from the start of its handling until a response is ready, in milliseconds, without queueing and sending.",
    _REQUEST + "TotalTimeMs",
)
LOCAL_TIME = _times(
    "localtimems",
    "The part of the total time until the handler first waits, in milliseconds.",
    _REQUEST + "LocalTimeMs",
)
REMOTE_TIME = _times(
    "remotetimems",
    "The part of the total time from the first wait on, in milliseconds: for records, replicas, members of a group, the disk.",
    _REQUEST + "RemoteTimeMs",
)
BYTES_IN = counter(
    "kafka_server_brokertopicmetrics_bytesin_total",
    "topic",
    "Bytes of record batches that were appended. The sample without a topic, here and in the next seven metrics, is the sum over "
    "all topics, deleted ones included.",
    _TOPIC + "BytesInPerSec",
)
MESSAGES_IN = counter(
    "kafka_server_brokertopicmetrics_messagesin_total",
    "topic",
    "Records that were appended.",
    _TOPIC + "MessagesInPerSec",
)
BYTES_OUT = counter(
    "kafka_server_brokertopicmetrics_bytesout_total",
    "topic",
    "Bytes of record batches in responses to consumers, without those to followers.",
    _TOPIC + "BytesOutPerSec",
)
BYTES_REJECTED = counter(
    "kafka_server_brokertopicmetrics_bytesrejected_total",
    "topic",
    "Bytes of record batches that were rejected because they are too large.",
    _TOPIC + "BytesRejectedPerSec",
)
PRODUCE_REQUESTS = counter(
    "kafka_server_brokertopicmetrics_totalproducerequests_total",
    "topic",
    "Produce requests, counted once for each partition.",
    _TOPIC + "TotalProduceRequestsPerSec",
)
FAILED_PRODUCE_REQUESTS = counter(
    "kafka_server_brokertopicmetrics_failedproducerequests_total",
    "topic",
    "Produce requests that failed, counted once for each partition. Not counted: another broker leads it, its "
    "log directory has failed, or the batch is damaged or too large.",
    _TOPIC + "FailedProduceRequestsPerSec",
)
FETCH_REQUESTS = counter(
    "kafka_server_brokertopicmetrics_totalfetchrequests_total",
    "topic",
    "Reads for Fetch requests of consumers and followers, counted once for each partition.",
    _TOPIC + "TotalFetchRequestsPerSec",
)
FAILED_FETCH_REQUESTS = counter(
    "kafka_server_brokertopicmetrics_failedfetchrequests_total",
    "topic",
    "Reads for Fetch requests that failed, counted once for each partition. Not counted: another broker leads "
    "it, its log directory has failed, or the offset is out of range.",
    _TOPIC + "FailedFetchRequestsPerSec",
)
CONNECTIONS = gauge(
    "kafka_server_socket_server_metrics_connection_count",
    "listener",
    "Open connections.",
    _SOCKETS + ",listener=*, connection-count",
)
CONNECTIONS_OPENED = counter(
    "kafka_server_socket_server_metrics_connection_creation_total",
    "listener",
    "Connections that were accepted.",
    _SOCKETS + ",listener=*, connection-creation-total",
)
CONNECTIONS_CLOSED = counter(
    "kafka_server_socket_server_metrics_connection_close_total",
    "listener",
    "Connections that were closed.",
    _SOCKETS + ",listener=*, connection-close-total",
)
CONNECTION_ERRORS = counter(
    "ottla_connection_errors_total",
    "reason",
    "Connections that the broker closed or that broke. Reasons: protocol (malformed bytes), authentication (failed or "
    "late), refused_request (no response is possible, as for a failed produce with acks=0). More reasons: limit, idle, "
    "network, storage (the records of a response were truncated or unreadable), bug.",
)
SUCCESSFUL_AUTHENTICATIONS = counter(
    "kafka_server_socket_server_metrics_successful_authentication_total",
    "listener",
    "Connections whose clients have authenticated by SASL.",
    _SOCKETS + ",listener=*, successful-authentication-total",
)
FAILED_AUTHENTICATIONS = counter(
    "kafka_server_socket_server_metrics_failed_authentication_total",
    "listener",
    "Connections that were closed because their clients failed to authenticate by SASL.",
    _SOCKETS + ",listener=*, failed-authentication-total",
)
SUCCESSFUL_REAUTHENTICATIONS = counter(
    "kafka_server_socket_server_metrics_successful_reauthentication_total",
    "listener",
    "Connections whose clients have authenticated again by SASL before their session ended (connections.max.reauth.ms, or the "
    "expiry of a token).",
    _SOCKETS + ",listener=*, successful-reauthentication-total",
)
FAILED_REAUTHENTICATIONS = counter(
    "kafka_server_socket_server_metrics_failed_reauthentication_total",
    "listener",
    "Connections that were closed because their clients failed to authenticate again.",
    _SOCKETS + ",listener=*, failed-reauthentication-total",
)
EXPIRED_CONNECTIONS = counter(
    "kafka_server_socket_server_metrics_expired_connections_killed_total",
    "listener",
    "Connections that were closed because a request arrived after the session had ended.",
    _SOCKETS + ",listener=*, expired-connections-killed-count",
)
CLIENT_BYTE_RATE = gauge(
    "kafka_server_quota_byte_rate",
    "resource user clientId",
    "Recent bytes per second that clients with a quota have written (Produce) and read (Fetch). The quota of a user is shared by "
    "all of its clients, and has an empty clientId; that of a client id has an empty user.",
    "kafka.server:type={Produce,Fetch},user=*,client-id=*, byte-rate",
)
CLIENT_REQUEST_TIME = gauge(
    "kafka_server_quota_request_time",
    "resource user clientId",
    "The recent share of the event loop's time, in percent, for requests of clients with a request_percentage.",
    "kafka.server:type=Request,user=*,client-id=*, request-time",
)
CLIENT_MUTATION_RATE = gauge(
    "kafka_server_quota_mutation_rate",
    "resource user clientId",
    "Recent partitions per second that clients with a controller_mutation_rate have created and deleted.",
    "kafka.server:type=ControllerMutation,user=*,client-id=*, mutation-rate",
)
CLIENT_TOKENS = gauge(
    "kafka_server_quota_tokens",
    "resource user clientId",
    "How many partitions clients with a controller_mutation_rate may create and delete at once; below 0 they are refused.",
    "kafka.server:type=ControllerMutation,user=*,client-id=*, tokens",
)
CLIENT_THROTTLE_TIME = gauge(
    "kafka_server_quota_throttle_time",
    "resource user clientId",
    "Average time in milliseconds for which clients were throttled because of a quota, recently; 0 if none was.",
    "kafka.server:type={Produce,Fetch,Request,ControllerMutation},user=*,client-id=*, throttle-time",
)
PURGATORY = gauge(
    "kafka_server_delayedoperationpurgatory_purgatorysize",
    "delayedOperation",
    "Requests that wait: Fetch for records, Produce for the high watermark.",
    "kafka.server:type=DelayedOperationPurgatory,name=PurgatorySize",
)

FETCH_SESSIONS = gauge(
    "kafka_server_fetchsessioncache_numincrementalfetchsessions",
    "",
    "Incremental fetch sessions of consumers and followers.",
    _FETCH_SESSIONS + "NumIncrementalFetchSessions",
)
FETCH_SESSION_PARTITIONS = gauge(
    "kafka_server_fetchsessioncache_numincrementalfetchpartitionscached",
    "",
    "Partitions in all incremental fetch sessions.",
    _FETCH_SESSIONS + "NumIncrementalFetchPartitionsCached",
)
FETCH_SESSION_EVICTIONS = counter(
    "kafka_server_fetchsessioncache_incrementalfetchsessionevictions_total",
    "",
    "Incremental fetch sessions that were evicted to make room for others.",
    _FETCH_SESSIONS + "IncrementalFetchSessionEvictionsPerSec",
)

FAMILIES: tuple[Family, ...] = families_of(globals())
