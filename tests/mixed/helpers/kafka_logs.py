"""The errors and exceptions in the logs of a mixed cluster's brokers, except for known harmless ones.

Kafka's broker has one log here, with the entries of server.log, controller.log and state-change.log from WARN on.
"""

from __future__ import annotations

import itertools
import re
from collections.abc import Iterator

from ottla.compat_tests.brokers import BrokerProcess

_KAFKA_ENTRY = re.compile(r"^\[\d{4}-\d\d-\d\d [\d:,]+\] (\w+) ", re.MULTILINE)
_KAFKA_BAD = re.compile(r"\] (?:ERROR|FATAL) |Exception\b|^\s+at \S+\(", re.MULTILINE)
_OTTLA_BAD = re.compile(r"\b(?:ERROR|CRITICAL)\b|^Traceback ", re.MULTILINE)

ALLOWED_OF_KAFKA = {
    r"java\.io\.IOException: Connection to [\d.:]+ \(id: \d+ rack: null(?: isFenced: \w+)?\) failed": (
        "a broker that a test has stopped is away"
    ),
    r"java\.io\.IOException: Connection to \d+ was disconnected before the response was read": "the same, in the middle of it",
    r"fails to send (a )?request .*\njava\.lang\.InterruptedException": "a controller repeats nothing to a broker that is gone",
    r"fails to send request .*\njava\.io\.IOException: Client was shutdown before": "the same, while it waits for the answer",
    r"failed to change state for partition test-(one-out-of-sync|a-killed-leader)-\S+ from": "all of its replicas are stopped",
    r"cannot become follower since the new leader -1 is unavailable": "a new controller of Kafka tells first who is gone",
    r"kafka-log-retention.*\nj.*cannot be resumed since it is not paused": "Kafka alone: a log is truncated meanwhile",
    r"append operation on partition (?:\S+:)?test-(?:a-leader-of-each|the-active-controller|brokers-serve|each-broker-is)-\S+ "
    r".*\n.*\.(?:NotEnoughReplicas|OutOfOrderSequence)Exc": (
        "a leader was killed with requests in flight, which their producer sends again"
    ),
    r"append operation on partition \S*:__transaction_state-.*\n.*\.NotEnoughReplicasException": (
        "so few brokers are left that a test has stopped the others"
    ),
    r"\.TransactionCoordinatorFencedException: Invalid coordinator epoch .* \(zombie\)": (
        "the end markers of a coordinator in whose place another one has written them"
    ),
    r"append operation on partition \S*:test-the-java-client-\S+ .*\n.*\.OutOfOrderSequenceException": (
        "batches behind one that has come while the transaction before was still being completed; all are sent again"
    ),
    r"SessionTimeoutException: Client session timed out": "the test has paused this broker",
    r"SessionExpiredException: Unable to reconnect": "the same, for longer",
    r"Failed atomic move of \S+/leader-epoch-checkpoint.tmp": "Kafka alone: the folder is renamed meanwhile, to be deleted",
    r"Failed to write to checkpoint file .* This is ok if the topic/partition is being deleted": "the same, and Kafka says so",
    r"controller event queue overloaded. Timed out heartbeat from broker": "a busy machine",
    r"Exceptionally slow controller event": "the same",
    r"Failed to load metadata from __\S+ .*is no longer the leader": "leaders moved twice in a moment",
    r"Unexpected error REQUEST_TIMED_OUT in UPDATE_RAFT_VOTER": "the same, among Apache Kafka's controllers",
    r"Unexpected error handling request .*\n.*NotControllerException: ": "a new controller has just been elected",
    r"ClusterAuthorizationException: Request .* permission": "a user whom a test has denied that",
    r"Error preprocessing incrementalAlterConfigs request|validation of configProps": "settings that a test has refused",
    r"Expected partition \S+ with topic id \S+ to exist, but it was missing": "of each new replica of a topic that is there",
    r"during (KafkaServer )?startup\..*\norg.*KeeperException\$SessionExpired": "a JVM without a processor; it is started again",
}
"""By a pattern in an entry: why it is harmless."""

ALLOWED_OF_OTTLA: dict[str, str] = {}


def entries(text: str) -> Iterator[str]:
    """The entries of Kafka's log, each with the lines of its exception."""
    starts = [0, *(match.start() for match in _KAFKA_ENTRY.finditer(text)), len(text)]
    return (text[start:end] for start, end in itertools.pairwise(starts))


def troubles(kind: str, broker: BrokerProcess, since: int = 0) -> list[str]:
    """The errors in the output of a broker of this kind, from this character on."""
    text = broker.log()[since:]
    if kind == "ottla":
        bad, allowed, parts = _OTTLA_BAD, ALLOWED_OF_OTTLA, iter(text.splitlines())
    else:
        bad, allowed, parts = _KAFKA_BAD, ALLOWED_OF_KAFKA, entries(text)
    return [part for part in parts if bad.search(part) and not any(re.search(each, part) for each in allowed)]
