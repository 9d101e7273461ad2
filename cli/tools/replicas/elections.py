"""``ottla cluster elect-leaders``: preferred replicas lead again, or one that was not in sync does (KIP-460)."""

from __future__ import annotations

import time
from collections.abc import Iterable, Mapping, Sequence
from contextlib import closing
from typing import Any

import kafka.errors
from kafka.protocol.admin import ElectLeadersRequest

from ....base.wording import counted
from ..client import Admin, ClusterConnection
from ..cluster_view import DescribedTopic, Key, TopicPartitionInfo, chosen_partitions, find_topics
from ..output import OutputColumn, is_terminal, print_rows
from ..running import ToolError, UsageError, refusal

COLUMNS = (
    OutputColumn("topic"),
    OutputColumn("partition", is_number=True),
    OutputColumn("leader_before", is_number=True),
    OutputColumn("leader", is_number=True),
    OutputColumn("outcome"),
)
_PREFERRED, _UNCLEAN = 0, 1
_FIRST_VERSION_WITH_UNCLEAN = 1
_SETTLE_S = 5.0
_PAUSE_S = 0.05

Partitions = Mapping[Key, TopicPartitionInfo]


def elect(
    connection: ClusterConnection, names: Sequence[str] | None, *, all_topics: bool, unclean: bool, as_json: bool
) -> None:
    """Have leaders elected, and print a row for each partition that needed it or was named. Raises ToolError if one has none.

    Preferred elections are for all partitions, unless some are named; for unclean ones they have to be, or all of them.
    """
    if names and all_topics:
        raise UsageError("--topic and --all-topics exclude each other")
    if unclean and not names and not all_topics:
        raise UsageError("an unclean election loses records: say where with --topic NAME[:0,1,…], or --all-topics")
    with closing(connection.admin()) as admin:
        chosen = chosen_partitions(admin, names) if names else _every(find_topics(admin, None))
        before = {(topic.name, partition.number): partition for topic, partition in chosen}
        results = _ask(admin, unclean, before if names else None)
        needed = {key: code for key, (code, _) in results.items() if code != kafka.errors.ElectionNotNeededError.errno}
        elected = [key for key, code in needed.items() if not code]
        after = _settled(admin, elected, before, unclean=unclean)
    shown = [key for key in sorted(results) if names or key in needed]
    rows = [(*key, _leader(before, key), _leader(after, key), _outcome(after.get(key), *results[key])) for key in shown]
    if rows or as_json or not is_terminal():
        print_rows(COLUMNS, rows, as_json=as_json)
    else:
        print(
            "Every partition has a leader." if unclean else "Every partition is led by the replica that is preferred."
        )
    if len(elected) < len(needed):
        raise ToolError(f"{counted(len(needed) - len(elected), 'election')} of {len(needed)} failed")


def _every(topics: Iterable[DescribedTopic]) -> list[tuple[DescribedTopic, TopicPartitionInfo]]:
    return [(topic, partition) for topic in topics for partition in topic.partitions]


def _ask(admin: Admin, unclean: bool, keys: Iterable[Key] | None) -> dict[Key, tuple[int, str | None]]:
    """The response, error code and message by partition; for ``keys`` None of those that needed an election."""
    grouped: dict[str, list[int]] = {}
    for topic, partition in keys or ():
        grouped.setdefault(topic, []).append(partition)
    request = ElectLeadersRequest(
        election_type=_UNCLEAN if unclean else _PREFERRED,
        topic_partitions=None if keys is None else list(grouped.items()),
        timeout_ms=admin.config["request_timeout_ms"],
        min_version=_FIRST_VERSION_WITH_UNCLEAN if unclean else 0,
    )
    try:
        answer = admin.ask_controller(request)
    except kafka.errors.IncompatibleBrokerVersion:
        first = "2.4 for unclean ones" if unclean else "2.2"
        raise ToolError(f"these brokers are too old for elections, which Kafka has since {first}") from None
    if answer.error_code:
        raise ToolError(refusal(answer.error_code, None))
    return {
        (topic.topic, result.partition_id): (result.error_code, result.error_message)
        for topic in answer.replica_election_results
        for result in topic.partition_result
    }


def _settled(admin: Admin, elected: Sequence[Key], before: Partitions, *, unclean: bool) -> Partitions:
    """The partitions once clients are told of the leaders that were elected, or as they are told after a few seconds."""
    until = time.monotonic() + _SETTLE_S
    while True:
        topics = find_topics(admin, sorted({topic for topic, _ in before})) if before else []
        after = {(topic.name, partition.number): partition for topic, partition in _every(topics)}
        leaders = {key: _leader(after, key) for key in elected}
        told = all(now is not None and (unclean or now == after[key].preferred) for key, now in leaders.items())
        if told or time.monotonic() >= until:
            return after
        time.sleep(_PAUSE_S)


def _leader(partitions: Partitions, key: Key) -> int | None:
    return partitions[key].leader if key in partitions else None


def _outcome(partition: TopicPartitionInfo | None, code: int, message: str | None) -> Any:
    if not code:
        return "elected"
    if code == kafka.errors.ElectionNotNeededError.errno:
        return "not needed"
    if partition is not None and code == kafka.errors.PreferredLeaderNotAvailableError.errno:
        preferred = partition.preferred
        if preferred in partition.offline:
            return f"failed: broker {preferred}, which is preferred, is down"
        if preferred not in partition.isr:
            return f"failed: broker {preferred}, which is preferred, is not in sync"
    if partition is not None and set(partition.offline) == set(partition.replicas):
        return "failed: every replica is down"
    return f"failed: {refusal(code, message)}"
