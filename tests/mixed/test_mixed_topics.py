"""Topics, elections and settings in a mixed cluster: made, enlarged, deleted and changed through brokers of either kind."""

from __future__ import annotations

from collections.abc import Mapping

import pytest
from confluent_kafka.admin import NewPartitions, NewTopic

from ottla.compat_tests.session import eventually
from ottla.wire.messages.describe_configs import DescribeConfigsRequest, DescribeConfigsResource
from ottla.wire.messages.incremental_alter_configs import (
    AlterableConfig,
    AlterConfigsResource,
    IncrementalAlterConfigsRequest,
)

from .helpers.mixed import PATIENCE_S, Mixed

pytestmark = pytest.mark.slow

TOPIC, BROKER = 2, 4
SET, REMOVE = 0, 1
OF_TOPIC, OF_BROKER, OF_ALL_BROKERS, OF_DEFAULT = 1, 2, 3, 5


def test_a_topic_is_made_enlarged_deleted_and_made_again(mixed: Mixed, controller: int, topic: str) -> None:
    mixed.asked(lambda: mixed.admin.create_topics([NewTopic(topic, 6, replication_factor=3)])[topic])
    write_and_read(mixed, topic, 6)
    mixed.asked(lambda: mixed.admin.create_partitions([NewPartitions(topic, 9)])[topic])
    eventually(lambda: all(len(mixed.leaders(topic, each)) == 9 for each in mixed.ids), PATIENCE_S)
    write_and_read(mixed, topic, 9, again=range(6))
    for partition in range(9):
        mixed.wait_same(topic, partition)
    mixed.asked(lambda: mixed.admin.delete_topics([topic])[topic])
    eventually(lambda: not any(folders(mixed, each, topic) for each in mixed.ids), PATIENCE_S)
    mixed.asked(lambda: mixed.admin.create_topics([NewTopic(topic, 2, replication_factor=3)])[topic])
    eventually(lambda: all(len(mixed.leaders(topic, each)) == 2 for each in mixed.ids), PATIENCE_S)
    write_and_read(mixed, topic, 2)


def write_and_read(mixed: Mixed, topic: str, partitions: int, again: range = range(0)) -> None:
    """A record into each partition, the second one into some."""
    for partition in range(partitions):
        mixed.produce(topic, [b"%d" % partition], partition)
        count = 1 + (partition in again)
        assert mixed.read(topic, count, partition) == count * [b"%d" % partition]


def folders(mixed: Mixed, broker_id: int, topic: str) -> list[str]:
    """Those of a topic that is not deleted."""
    (data,) = mixed.cluster.broker(broker_id).data_folders
    return [each.name for each in data.glob(f"{topic}-[0-9]*") if not each.name.endswith("-delete")]


def test_a_topic_is_deleted_once_all_of_its_replicas_are_back(mixed: Mixed, controller: int, topic: str) -> None:
    (away, *_) = [broker_id for broker_id in reversed(mixed.ids) if broker_id != controller]
    mixed.create(topic, mixed.replicas_from(controller))
    mixed.cluster.broker(away).stop()
    mixed.asked(lambda: mixed.admin.delete_topics([topic])[topic])
    others = [broker_id for broker_id in mixed.ids if broker_id != away]
    eventually(lambda: not any(folders(mixed, each, topic) for each in others), PATIENCE_S)
    mixed.cluster.start_broker(away)
    eventually(lambda: not folders(mixed, away, topic), PATIENCE_S)
    mixed.asked(lambda: mixed.admin.create_topics([NewTopic(topic, 1, replication_factor=3)])[topic])
    eventually(lambda: all(len(mixed.leaders(topic, each)) == 1 for each in mixed.ids), PATIENCE_S)
    write_and_read(mixed, topic, 1)


def test_leaders_are_elected(mixed: Mixed, controller: int, topic: str) -> None:
    """Each broker in its turn, while those before it in the replicas are away."""
    order = mixed.replicas_from(next(each for each in mixed.ids if each != controller))
    mixed.create(topic, order)
    mixed.produce(topic, [b"one"])
    mixed.cluster.broker(order[0]).stop()
    mixed.wait(topic, {0: order[1]})
    mixed.produce(topic, [b"two"])
    mixed.cluster.start_broker(order[0])
    mixed.wait_isr(topic, mixed.ids)
    mixed.elect_preferred(topic, 0)
    mixed.wait(topic, {0: order[0]})
    assert mixed.read(topic, 2) == [b"one", b"two"]


def test_one_out_of_sync_leads_where_that_is_allowed(mixed: Mixed, controller: int, topic: str) -> None:
    first, *_, second = (each for each in mixed.ids if each != controller)
    mixed.create(topic, [first, second], unclean_leader_election_enable="true")
    mixed.produce(topic, [b"one"])
    mixed.cluster.broker(second).stop()
    mixed.produce(topic, [b"lost"])
    mixed.cluster.broker(first).stop()
    mixed.cluster.start_broker(second)
    mixed.wait(topic, {0: second})
    mixed.produce(topic, [b"two"])
    mixed.cluster.start_broker(first)
    mixed.wait_isr(topic, [first, second])
    assert mixed.read(topic, 2) == [b"one", b"two"]
    eventually(lambda: mixed.segment(first, topic) == mixed.segment(second, topic), PATIENCE_S)


# --- settings ---------------------------------------------------------------------------------------------------------


def alter(mixed: Mixed, through: int, kind: int, name: str, changes: Mapping[str, str | None]) -> None:
    """Change settings at one broker; None removes."""
    configs = [
        AlterableConfig(name=key, config_operation=REMOVE if value is None else SET, value=value)
        for key, value in changes.items()
    ]
    resource = AlterConfigsResource(resource_type=kind, resource_name=name, configs=configs)
    with mixed.connect(through) as connection:
        (answer,) = connection.call(IncrementalAlterConfigsRequest(resources=[resource]), 1).responses
    assert answer.error_code == 0, answer


def described(mixed: Mixed, by: int, kind: int, name: str, setting: str) -> tuple[str | None, int]:
    """A setting and where it comes from, as a broker tells."""
    resource = DescribeConfigsResource(resource_type=kind, resource_name=name, configuration_keys=[setting])
    with mixed.connect(by) as connection:
        (result,) = connection.call(DescribeConfigsRequest(resources=[resource]), 4).results
    (config,) = result.configs
    return config.value, config.config_source


def wait_described(mixed: Mixed, by: int, kind: int, name: str, setting: str, value: str | None, source: int) -> None:
    """Return when a broker tells this value, or any if None, from this source."""

    def is_told() -> bool:
        told, where = described(mixed, by, kind, name, setting)
        return where == source and value in (None, told)

    eventually(is_told)


def test_settings_of_a_topic_that_any_broker_changes_hold_at_all(mixed: Mixed, controller: int, topic: str) -> None:
    mixed.create(topic, *(mixed.replicas_from(each) for each in mixed.ids))
    for number, through in enumerate(mixed.ids):
        limit = str(2_000 + number)
        alter(mixed, through, TOPIC, topic, {"max.message.bytes": limit, "retention.ms": "1234567"})
        for each in mixed.ids:
            wait_described(mixed, each, TOPIC, topic, "max.message.bytes", limit, OF_TOPIC)
            wait_described(mixed, each, TOPIC, topic, "retention.ms", "1234567", OF_TOPIC)
        for partition in range(len(mixed.ids)):
            mixed.produce(topic, [b"fits"], partition)
            with pytest.raises(AssertionError, match="MSG_SIZE_TOO_LARGE"):
                mixed.produce(topic, [bytes(3_000)], partition)
        alter(mixed, through, TOPIC, topic, {"max.message.bytes": None})
        for each in mixed.ids:
            wait_described(mixed, each, TOPIC, topic, "max.message.bytes", None, OF_DEFAULT)


def test_settings_of_brokers_are_changed_through_any_for_all_and_through_each_for_itself(
    mixed: Mixed, controller: int
) -> None:
    name = "message.max.bytes"
    for number, through in enumerate(mixed.ids):
        limit = str(3_000_000 + number)
        alter(mixed, through, BROKER, "", {name: limit})
        for each in mixed.ids:
            wait_described(mixed, each, BROKER, str(each), name, limit, OF_ALL_BROKERS)
        alter(mixed, through, BROKER, str(through), {name: "4000000"})
        wait_described(mixed, through, BROKER, str(through), name, "4000000", OF_BROKER)
        alter(mixed, through, BROKER, str(through), {name: None})
    alter(mixed, mixed.ids[0], BROKER, "", {name: None})
