"""Requests and what they carry, connections, and what clients are held to: metrics of every broker's traffic."""

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
    "Errors in answers, each partition's counted; Kafka counts NONE as well.",
    _REQUEST + "ErrorsPerSec",
)
TOTAL_TIME = _times(
    "totaltimems",
    "From taking a request up to having its answer ready, in milliseconds; queueing and sending are not in it.",
    _REQUEST + "TotalTimeMs",
)
LOCAL_TIME = _times(
    "localtimems", "The part of it until the handler first waits, in milliseconds.", _REQUEST + "LocalTimeMs"
)
REMOTE_TIME = _times(
    "remotetimems",
    "The part of it from the first wait on, in milliseconds: for records, replicas, members of a group, the disk.",
    _REQUEST + "RemoteTimeMs",
)
BYTES_IN = counter(
    "kafka_server_brokertopicmetrics_bytesin_total",
    "topic",
    "Bytes of record batches that were appended. Here and below without a topic: of all topics, also those that were deleted.",
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
    "Bytes of record batches in answers to consumers; those for followers are not in it.",
    _TOPIC + "BytesOutPerSec",
)
BYTES_REJECTED = counter(
    "kafka_server_brokertopicmetrics_bytesrejected_total",
    "topic",
    "Bytes of record batches that were refused because they are too large.",
    _TOPIC + "BytesRejectedPerSec",
)
PRODUCE_REQUESTS = counter(
    "kafka_server_brokertopicmetrics_totalproducerequests_total",
    "topic",
    "Produce requests, each counted for every partition it names.",
    _TOPIC + "TotalProduceRequestsPerSec",
)
FAILED_PRODUCE_REQUESTS = counter(
    "kafka_server_brokertopicmetrics_failedproducerequests_total",
    "topic",
    "Those of them that failed; neither because of a leader elsewhere, nor of a batch that is damaged or too large.",
    _TOPIC + "FailedProduceRequestsPerSec",
)
FETCH_REQUESTS = counter(
    "kafka_server_brokertopicmetrics_totalfetchrequests_total",
    "topic",
    "Reads for Fetch requests, of consumers and followers, each counted for every partition it reads.",
    _TOPIC + "TotalFetchRequestsPerSec",
)
FAILED_FETCH_REQUESTS = counter(
    "kafka_server_brokertopicmetrics_failedfetchrequests_total",
    "topic",
    "Those of them that failed; neither because of a leader elsewhere, nor of an offset that is not there.",
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
    "Connections that have ended.",
    _SOCKETS + ",listener=*, connection-close-total",
)
CONNECTION_ERRORS = counter(
    "ottla_connection_errors_total",
    "reason",
    "Connections that the broker ended or that broke: protocol (bytes that cannot be read), authentication (a "
    "client that is not who it says), refused_request (no answer is possible, as for a failed produce with acks=0), "
    "limit, idle, network, storage (the records of an answer were "
    "truncated, or could not be read, before they left), bug.",
)
SUCCESSFUL_AUTHENTICATIONS = counter(
    "kafka_server_socket_server_metrics_successful_authentication_total",
    "listener",
    "Clients that have shown by SASL who they are.",
    _SOCKETS + ",listener=*, successful-authentication-total",
)
FAILED_AUTHENTICATIONS = counter(
    "kafka_server_socket_server_metrics_failed_authentication_total",
    "listener",
    "Clients that have not, and were cut off.",
    _SOCKETS + ",listener=*, failed-authentication-total",
)
SUCCESSFUL_REAUTHENTICATIONS = counter(
    "kafka_server_socket_server_metrics_successful_reauthentication_total",
    "listener",
    "Clients that have shown it again before their session ended (connections.max.reauth.ms, or a token's end).",
    _SOCKETS + ",listener=*, successful-reauthentication-total",
)
FAILED_REAUTHENTICATIONS = counter(
    "kafka_server_socket_server_metrics_failed_reauthentication_total",
    "listener",
    "Clients that could not any more, and were cut off.",
    _SOCKETS + ",listener=*, failed-reauthentication-total",
)
EXPIRED_CONNECTIONS = counter(
    "kafka_server_socket_server_metrics_expired_connections_killed_total",
    "listener",
    "Connections that were closed by a request that came when the session had ended.",
    _SOCKETS + ",listener=*, expired-connections-killed-count",
)
CLIENT_BYTE_RATE = gauge(
    "kafka_server_quota_byte_rate",
    "resource user clientId",
    "Bytes a second, of late, that clients with a quota have written (Produce) and read (Fetch). A quota of a user is shared by "
    "all of its clients, and has no clientId; one of a client id no user.",
    "kafka.server:type={Produce,Fetch},user=*,client-id=*, byte-rate",
)
CLIENT_REQUEST_TIME = gauge(
    "kafka_server_quota_request_time",
    "resource user clientId",
    "How much of the loop's time, of late, requests of clients with a request_percentage have taken, in percent.",
    "kafka.server:type=Request,user=*,client-id=*, request-time",
)
CLIENT_MUTATION_RATE = gauge(
    "kafka_server_quota_mutation_rate",
    "resource user clientId",
    "Partitions a second, of late, that clients with a controller_mutation_rate have created and deleted.",
    "kafka.server:type=ControllerMutation,user=*,client-id=*, mutation-rate",
)
CLIENT_TOKENS = gauge(
    "kafka_server_quota_tokens",
    "resource user clientId",
    "How many more they may create and delete at once; below 0 they are refused.",
    "kafka.server:type=ControllerMutation,user=*,client-id=*, tokens",
)
CLIENT_THROTTLE_TIME = gauge(
    "kafka_server_quota_throttle_time",
    "resource user clientId",
    "For how many milliseconds clients were held up because of a quota, averaged over those times of the last minute; 0 when "
    "none was.",
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
    "Fetch sessions of consumers and followers.",
    _FETCH_SESSIONS + "NumIncrementalFetchSessions",
)
FETCH_SESSION_PARTITIONS = gauge(
    "kafka_server_fetchsessioncache_numincrementalfetchpartitionscached",
    "",
    "Partitions that are fetched in them.",
    _FETCH_SESSIONS + "NumIncrementalFetchPartitionsCached",
)
FETCH_SESSION_EVICTIONS = counter(
    "kafka_server_fetchsessioncache_incrementalfetchsessionevictions_total",
    "",
    "Sessions that had to make room for others.",
    _FETCH_SESSIONS + "IncrementalFetchSessionEvictionsPerSec",
)

FAMILIES: tuple[Family, ...] = families_of(globals())
