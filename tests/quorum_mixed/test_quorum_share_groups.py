"""Share groups in a cluster of KRaft, whose leaders, group coordinators and share coordinators are brokers of either kind."""

from __future__ import annotations

import base64
import itertools
from typing import Any, NamedTuple

import pytest

from ottla.base.errors import ErrorCode
from ottla.compat_tests.raw.share_groups.wire_share import (
    ShareConsumer,
    ShareGroup,
    accept,
    fetched,
    release,
)
from ottla.compat_tests.session import eventually
from ottla.compat_tests.wire_client import Connection
from ottla.wire.messages.find_coordinator import FindCoordinatorRequest
from ottla.wire.messages.incremental_alter_configs import (
    AlterableConfig,
    AlterConfigsResource,
    IncrementalAlterConfigsRequest,
)
from ottla.wire.messages.share_acknowledge import ShareAcknowledgeRequest
from ottla.wire.messages.share_fetch import ShareFetchRequest

from ..mixed.helpers.mixed import BOTH, KAFKA, PATIENCE_S
from ..mixed.test_mixed_coordinators import GROUP, coordinated_by
from .helpers.on_quorum import QuorumMixed

pytestmark = pytest.mark.slow

SHARE = 2
GROUP_RESOURCE = 32
ELSEWHERE = ErrorCode.NOT_LEADER_OR_FOLLOWER


def keys_of(group: ShareGroup, topic: str, partitions: int) -> list[str]:
    """The keys of share coordinators."""
    topic_id = base64.urlsafe_b64encode(group.names.id_of(topic)).rstrip(b"=").decode()
    return [f"{group.group_id}:{topic_id}:{number}" for number in range(partitions)]


def share_coordinators(connection: Connection, keys: list[str]) -> list[tuple[str, int, str, int]] | None:
    """Key, node, host and port of each, as one broker tells; None while one has no coordinator."""
    found = connection.call(FindCoordinatorRequest(key_type=SHARE, coordinator_keys=keys), 6).coordinators
    if any(each.error_code for each in found):
        return None
    return [(each.key, each.node_id, each.host, each.port) for each in found]


class Reading(NamedTuple):
    """A share group of a test, at its coordinator."""

    mixed: QuorumMixed
    group: ShareGroup
    topic: str

    def consumer(self, connection: Connection, member_id: str = "A") -> ShareConsumer:
        """A consumer of the topic over a connection to one of its leaders."""
        return ShareConsumer(self.group, member_id, self.topic, connection)


def begin(mixed: QuorumMixed, connection: Connection, group_id: str, topic: str) -> Reading:
    """A group whose states are initialized, and that begins with the first record."""
    config = AlterableConfig(name="share.auto.offset.reset", config_operation=0, value="earliest")
    resource = AlterConfigsResource(resource_type=GROUP_RESOURCE, resource_name=group_id, configs=[config])
    (result,) = connection.call(IncrementalAlterConfigsRequest(resources=[resource]), 1).responses
    assert result.error_code == ErrorCode.NONE, result
    group = ShareGroup(connection, group_id, topic)
    group.initialize(topic)
    return Reading(mixed, group, topic)


@pytest.mark.parametrize("coordinating", BOTH)
def test_every_leader_reaches_every_share_coordinator(mixed: QuorumMixed, coordinating: str, topic: str) -> None:
    """The group coordinator, the leaders and the share coordinators of a group are brokers of both kinds."""
    mixed.create(topic, *(mixed.replicas_from(each) for each in mixed.ids))
    coordinator = mixed.one(coordinating)
    group_id = coordinated_by(mixed, GROUP, coordinator, topic)
    with mixed.connect(coordinator) as connection:
        reading = begin(mixed, connection, group_id, topic)
        for number, leader in enumerate(mixed.ids):
            mixed.produce(topic, [b"%d" % value for value in range(3)], number)
            with mixed.connect(leader) as at_leader:
                consumer = reading.consumer(at_leader)
                taken: list[tuple[int, int, int]] = []
                while sum(last - first + 1 for first, last, _ in taken) < 3:
                    taken += acquired(consumer, number)
                    assert taken == sorted(taken)
                assert acknowledge(consumer, number, accept(0), release(1), accept(2)) == ErrorCode.NONE
                assert take(consumer, number) == [(1, 1, 2)]
                assert acknowledge(consumer, number, accept(1)) == ErrorCode.NONE
                assert consumer.close() == ErrorCode.NONE


def acquired(consumer: ShareConsumer, number: int) -> list[tuple[int, int, int]]:
    """What a fetch acquires in one partition, without an error."""
    found = consumer.fetch_all(add=[number], max_wait_ms=500).get(number)
    if found is None:
        return []
    assert not isinstance(found, ErrorCode), found
    assert found.error == ErrorCode.NONE, found
    return found.acquired


def take(consumer: ShareConsumer, number: int) -> list[tuple[int, int, int]]:
    """What fetches acquire at last."""
    return eventually(lambda: acquired(consumer, number), PATIENCE_S)


def acknowledge(consumer: ShareConsumer, number: int, *acks: Any) -> ErrorCode:
    """The error of one partition."""
    request = acknowledgement(consumer, number, *acks)
    response = consumer.connection.call(request, 2)
    assert response.error_code == ErrorCode.NONE, response
    consumer.epoch += 1
    return ErrorCode(response.responses[0].partitions[0].error_code)


def acknowledgement(consumer: ShareConsumer, number: int, *acks: Any) -> ShareAcknowledgeRequest:
    request = consumer.acknowledge_request(*acks)
    request.topics[0].partitions[0].partition_index = number
    return request


def test_all_brokers_tell_the_same_share_coordinators(mixed: QuorumMixed, topic: str) -> None:
    """Several keys in one request, in any order, and a key that is none."""
    mixed.create(topic, mixed.replicas_from(mixed.one("ottla")))
    with mixed.connect(mixed.one("ottla")) as connection:
        keys = keys_of(ShareGroup(connection, "any", topic), topic, 12)
    told = []
    for order in (keys, keys[::-1]):
        for each in mixed.ids:
            with mixed.connect(each) as connection:
                found = eventually(lambda c=connection, k=order: share_coordinators(c, k), PATIENCE_S)
            assert [key for key, *_ in found] == order
            told.append(sorted(found))
    assert told == [told[0]] * len(told)
    assert len({node for _, node, _, _ in told[0]}) > 1
    errors = []
    for each, key in itertools.product(
        mixed.ids, ("", "g", "g:t:0", "g:AAAAAAAAAAAAAAAAAAAAAA:x", ":AAAAAAAAAAAAAAAAAAAAAA:0")
    ):
        with mixed.connect(each) as connection:
            request = FindCoordinatorRequest(key_type=SHARE, coordinator_keys=[key, keys[0]])
            wrong, right = connection.call(request, 6).coordinators
        errors.append((key, wrong.error_code, right.error_code))
    assert len(set(errors)) == 5, errors
    assert all("Share coordinator key is invalid" in each for each in mixed.troubles())  # Kafka logs them as errors


def test_a_broker_that_does_not_lead_says_who_does(mixed: QuorumMixed, topic: str) -> None:
    """And where: to a fetch brokers of both kinds, to an acknowledgement those of Ottla."""
    mixed.create(topic, *(mixed.replicas_from(each) for each in mixed.ids))
    group_id = coordinated_by(mixed, GROUP, mixed.one("ottla"), topic)
    with mixed.connect(mixed.one("ottla")) as connection:
        reading = begin(mixed, connection, group_id, topic)
        for leader, asked in itertools.permutations(mixed.ids, 2):
            number = leader - 1
            with mixed.connect(asked) as elsewhere:
                consumer = reading.consumer(elsewhere, f"member-{leader}-{asked}")
                response = elsewhere.call(fetch(consumer, number), 2)
                check_hints(mixed, response, leader)
                (partition,) = response.responses[0].partitions
                assert fetched(partition).error == ELSEWHERE
                consumer.epoch = 1
                response = elsewhere.call(acknowledgement(consumer, number, accept(0)), 2)
                # Kafka logs an error for a session that ends with a partition which its broker does not lead.
                forgotten = elsewhere.call(consumer.fetch_request(forget=[number], epoch=2, max_wait_ms=0), 2)
                assert forgotten.error_code == ErrorCode.NONE, forgotten
                (partition,) = response.responses[0].partitions
                if mixed.cluster.kind(asked) == KAFKA:  # which looks among the share partitions that it has alone
                    assert partition.error_code == ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
                    continue
                assert partition.error_code == ELSEWHERE
                check_hints(mixed, response, leader)


def fetch(consumer: ShareConsumer, number: int) -> ShareFetchRequest:
    return consumer.fetch_request(add=[number], max_wait_ms=100)


def check_hints(mixed: QuorumMixed, response: Any, leader: int) -> None:
    """A response names the leader of its one partition, and its address."""
    assert response.error_code == ErrorCode.NONE, response
    (partition,) = response.responses[0].partitions
    assert partition.current_leader.leader_id == leader
    assert partition.current_leader.leader_epoch >= 0
    host, _, port = mixed.cluster.broker(leader).address.rpartition(":")
    assert [(each.node_id, each.host, each.port) for each in response.node_endpoints] == [(leader, host, int(port))]
