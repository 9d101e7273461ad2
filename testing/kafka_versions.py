"""The API versions of Apache Kafka's releases, and those that Ottla serves when it stands in for one of them.

Source: ``validVersions`` of the request definitions in Apache Kafka (``clients/src/main/resources/common/message``) at the
tags 2.8.2, 3.0.2, 3.1.2, 3.2.3, 3.3.2, 3.4.1, 3.5.2, 3.6.2, 3.7.1 and 3.8.0, and as packed into kafka-clients 3.9.2, 4.0.0,
4.1.0, 4.2.0, 4.3.1 and 4.4.0; without a last version that is marked unstable. Up to 3.9 they are those of a broker in
ZooKeeper mode (listener ``zkBroker``), from 4.0 on of one in KRaft mode (``broker``).

A row has an API and its versions from a release on, until the next release that is named; ``-``: not served any more.

A version that Ottla does not serve is left out: Fetch below 4 is, even of Kafka 2.8. What is left is what ApiVersions
says, and a request at any other version is refused as that release refuses it.
"""

from __future__ import annotations

from ..handlers.table import SERVED, ServedApis, of_release
from ..wire.api_keys import ApiKey

RELEASES = (
    "2.8",
    "3.0",
    "3.1",
    "3.2",
    "3.3",
    "3.4",
    "3.5",
    "3.6",
    "3.7",
    "3.8",
    "3.9",
    "4.0",
    "4.1",
    "4.2",
    "4.3",
    "4.4",
)
_FIRST_WITH_FEATURES = "4.0"

__tracebackhide__ = True  # a failure points at the caller's line

_TABLE = """\
PRODUCE 2.8=0-9 3.7=0-10 3.8=0-11 4.0=3-12 4.1=3-13
FETCH 2.8=0-12 3.1=0-13 3.5=0-15 3.7=0-16 3.9=0-17 4.0=4-17 4.1=4-18
LIST_OFFSETS 2.8=0-6 3.0=0-7 3.5=0-8 3.9=0-9 4.0=1-10 4.2=1-11
METADATA 2.8=0-11 3.1=0-12 4.0=0-13
LEADER_AND_ISR 2.8=0-5 3.2=0-6 3.4=0-7 4.0=-
STOP_REPLICA 2.8=0-3 3.4=0-4 4.0=-
UPDATE_METADATA 2.8=0-7 3.4=0-8 4.0=-
CONTROLLED_SHUTDOWN 2.8=0-3 4.0=-
OFFSET_COMMIT 2.8=0-8 3.7=0-9 4.0=2-9 4.2=2-10
OFFSET_FETCH 2.8=0-7 3.0=0-8 3.7=0-9 4.0=1-9 4.2=1-10
FIND_COORDINATOR 2.8=0-3 3.0=0-4 3.8=0-5 3.9=0-6
JOIN_GROUP 2.8=0-7 3.2=0-9 4.0=2-9 4.1=0-9
HEARTBEAT 2.8=0-4
LEAVE_GROUP 2.8=0-4 3.2=0-5
SYNC_GROUP 2.8=0-5
DESCRIBE_GROUPS 2.8=0-5 4.0=0-6
LIST_GROUPS 2.8=0-4 3.8=0-5
SASL_HANDSHAKE 2.8=0-1
API_VERSIONS 2.8=0-3 3.9=0-4 4.4=0-5
CREATE_TOPICS 2.8=0-7 4.0=2-7
DELETE_TOPICS 2.8=0-6 4.0=1-6
DELETE_RECORDS 2.8=0-2
INIT_PRODUCER_ID 2.8=0-4 3.8=0-5
OFFSET_FOR_LEADER_EPOCH 2.8=0-4 4.0=2-4
ADD_PARTITIONS_TO_TXN 2.8=0-3 3.6=0-4 3.8=0-5
ADD_OFFSETS_TO_TXN 2.8=0-3 3.8=0-4
END_TXN 2.8=0-3 3.8=0-4 4.0=0-5
WRITE_TXN_MARKERS 2.8=0-1 4.0=1-1 4.2=1-2
TXN_OFFSET_COMMIT 2.8=0-3 3.8=0-4 4.0=0-5 4.4=0-6
DESCRIBE_ACLS 2.8=0-2 3.3=0-3 4.0=1-3
CREATE_ACLS 2.8=0-2 3.3=0-3 4.0=1-3
DELETE_ACLS 2.8=0-2 3.3=0-3 4.0=1-3
DESCRIBE_CONFIGS 2.8=0-4 4.0=1-4
ALTER_CONFIGS 2.8=0-2
ALTER_REPLICA_LOG_DIRS 2.8=0-2 4.0=1-2
DESCRIBE_LOG_DIRS 2.8=0-2 3.2=0-3 3.3=0-4 4.0=1-4 4.3=1-5
SASL_AUTHENTICATE 2.8=0-2
CREATE_PARTITIONS 2.8=0-3
CREATE_DELEGATION_TOKEN 2.8=0-2 3.3=0-3 4.0=1-3
RENEW_DELEGATION_TOKEN 2.8=0-2 4.0=1-2
EXPIRE_DELEGATION_TOKEN 2.8=0-2 4.0=1-2
DESCRIBE_DELEGATION_TOKEN 2.8=0-2 3.3=0-3 4.0=1-3
DELETE_GROUPS 2.8=0-2 4.4=0-3
ELECT_LEADERS 2.8=0-2
INCREMENTAL_ALTER_CONFIGS 2.8=0-1
ALTER_PARTITION_REASSIGNMENTS 2.8=0-0 4.1=0-1
LIST_PARTITION_REASSIGNMENTS 2.8=0-0
OFFSET_DELETE 2.8=0-0
DESCRIBE_CLIENT_QUOTAS 2.8=0-1
ALTER_CLIENT_QUOTAS 2.8=0-1
DESCRIBE_USER_SCRAM_CREDENTIALS 2.8=0-0
ALTER_USER_SCRAM_CREDENTIALS 2.8=0-0
DESCRIBE_QUORUM 4.0=0-2
ALTER_PARTITION 2.8=0-0 3.2=0-1 3.3=0-2 3.5=0-3 4.0=-
UPDATE_FEATURES 2.8=0-0 3.3=0-1 4.0=0-2
ENVELOPE 3.4=0-0 4.0=-
DESCRIBE_CLUSTER 2.8=0-0 3.7=0-1 4.0=0-2
DESCRIBE_PRODUCERS 2.8=0-0
UNREGISTER_BROKER 4.0=0-0
DESCRIBE_TRANSACTIONS 3.0=0-0
LIST_TRANSACTIONS 3.0=0-0 3.8=0-1 4.1=0-2
ALLOCATE_PRODUCER_IDS 3.0=0-0 4.0=-
CONSUMER_GROUP_HEARTBEAT 3.7=0-0 4.0=0-1
CONSUMER_GROUP_DESCRIBE 3.8=0-0 4.0=0-1
GET_TELEMETRY_SUBSCRIPTIONS 4.0=0-0
PUSH_TELEMETRY 4.0=0-0
LIST_CONFIG_RESOURCES 4.0=0-0 4.1=0-1
DESCRIBE_TOPIC_PARTITIONS 4.0=0-0
SHARE_GROUP_HEARTBEAT 4.1=1-1
SHARE_GROUP_DESCRIBE 4.1=1-1
SHARE_FETCH 4.1=1-1 4.2=1-2
SHARE_ACKNOWLEDGE 4.1=1-1 4.2=1-2
ADD_RAFT_VOTER 4.0=0-0 4.2=0-1
REMOVE_RAFT_VOTER 4.0=0-0
INITIALIZE_SHARE_GROUP_STATE 4.1=0-0
READ_SHARE_GROUP_STATE 4.1=0-0
WRITE_SHARE_GROUP_STATE 4.1=0-0 4.2=0-1
DELETE_SHARE_GROUP_STATE 4.1=0-0
READ_SHARE_GROUP_STATE_SUMMARY 4.1=0-0 4.2=0-1
STREAMS_GROUP_HEARTBEAT 4.2=0-0 4.4=0-1
STREAMS_GROUP_DESCRIBE 4.2=0-0 4.4=0-1
DESCRIBE_SHARE_GROUP_OFFSETS 4.1=0-0 4.2=0-1
ALTER_SHARE_GROUP_OFFSETS 4.1=0-0
DELETE_SHARE_GROUP_OFFSETS 4.1=0-0
STREAMS_GROUP_TOPOLOGY_DESCRIPTION_UPDATE 4.4=0-0
UNREGISTER_CONTROLLER 4.4=0-0
"""


def api_versions(release: str) -> dict[ApiKey, tuple[int, int]]:
    """Lowest and highest version of each API at a release ("3.9"). Raises ValueError for one that is not in the table."""
    if release not in RELEASES:
        raise ValueError(f"version is {release!r}; it must be one of {', '.join(RELEASES)}")
    versions = {}
    for row in _TABLE.splitlines():
        name, *changes = row.split()
        current = "-"
        for change in changes:
            since, _, span = change.partition("=")
            if RELEASES.index(since) <= RELEASES.index(release):
                current = span
        if current != "-":
            lowest, _, highest = current.partition("-")
            versions[ApiKey[name]] = (int(lowest), int(highest))
    return versions


def served_by(release: str | None) -> ServedApis:
    """What Ottla serves of a release; everything for None. Raises ValueError."""
    if release is None:
        return SERVED
    versions = api_versions(release)
    limited = ((key, of_release(handler, versions)) for key, handler in SERVED.by_key.items())
    has_features = RELEASES.index(release) >= RELEASES.index(_FIRST_WITH_FEATURES)
    return ServedApis({key: handler for key, handler in limited if handler is not None}, has_features, versions)
