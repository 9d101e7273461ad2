"""ElectLeaders on the only broker of a cluster, at every version."""

from __future__ import annotations

import pytest

from ottla.base.errors import ErrorCode
from ottla.handlers.table import SERVED
from ottla.wire.api_keys import ApiKey
from ottla.wire.messages.elect_leaders import ElectLeadersRequest, TopicPartitions

from ..helpers.zookeeper_broker import QUORUM, on_both_kinds

__all__ = ["on_both_kinds"]

ELECT = SERVED.by_key[ApiKey.ELECT_LEADERS]
VERSIONS = range(ELECT.lowest, ELECT.highest + 1)
PREFERRED, UNCLEAN = 0, 1


@pytest.mark.parametrize(
    ("version", "kind"), [(0, PREFERRED), (1, PREFERRED), (1, UNCLEAN), (2, PREFERRED), (2, UNCLEAN)]
)
def test_elections(send, make_topic, version, kind) -> None:
    topic, _ = make_topic(2)
    asked = [TopicPartitions(topic=topic, partitions=[0, 1, 2]), TopicPartitions(topic="none", partitions=[0])]
    response = send(ElectLeadersRequest(election_type=kind, topic_partitions=asked), version)
    assert response.error_code == 0
    codes = {
        (result.topic, partition.partition_id): partition.error_code
        for result in response.replica_election_results
        for partition in result.partition_result
    }
    assert codes == {
        (topic, 0): ErrorCode.ELECTION_NOT_NEEDED,
        (topic, 1): ErrorCode.ELECTION_NOT_NEEDED,
        (topic, 2): ErrorCode.UNKNOWN_TOPIC_OR_PARTITION,
        ("none", 0): ErrorCode.UNKNOWN_TOPIC_OR_PARTITION,
    }


@pytest.mark.parametrize("version", VERSIONS)
def test_all_partitions_are_named_only_where_an_election_was_needed(send, make_topic, cluster_kind, version) -> None:
    """A quorum names all topics."""
    topic, _ = make_topic()
    response = send(ElectLeadersRequest(topic_partitions=None), version)
    results = response.replica_election_results
    assert (response.error_code, [each for result in results for each in result.partition_result]) == (0, [])
    assert (topic in {result.topic for result in results}) == (cluster_kind == QUORUM)


def test_without_time_nothing_is_elected(send, make_topic) -> None:
    topic, _ = make_topic()
    asked = [TopicPartitions(topic=topic, partitions=[0])]
    (result,) = send(ElectLeadersRequest(topic_partitions=asked, timeout_ms=0), 2).replica_election_results
    assert [partition.error_code for partition in result.partition_result] == [ErrorCode.REQUEST_TIMED_OUT]


def test_an_election_of_no_known_type(send, make_topic) -> None:
    topic, _ = make_topic()
    asked = [TopicPartitions(topic=topic, partitions=[0])]
    response = send(ElectLeadersRequest(election_type=7, topic_partitions=asked), 2)
    assert response.error_code == ErrorCode.INVALID_REQUEST
    assert response.replica_election_results[0].partition_result[0].error_code == ErrorCode.INVALID_REQUEST
