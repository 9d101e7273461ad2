"""The driver of kafka-python 2.x, whose admin client returns raw responses.

Its producer and consumer are called like those of 3.x.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Literal

import kafka
from kafka import KafkaAdminClient, TopicPartition
from kafka.admin import ConfigResource, ConfigResourceType, NewPartitions, NewTopic

from ottla.compat_tests.clients import model
from ottla.compat_tests.clients.kafka_python import Client as NewestClient
from ottla.compat_tests.clients.kafka_python import failures


def check(code: int, text: object) -> None:
    """Raise the error that a raw response carries."""
    if code:
        raise model.ClientFailure(code, str(text))


class Admin(model.Admin):
    """KafkaAdminClient of 2.x."""

    def __init__(self, bootstrap: str, way_in: Mapping[str, Any]) -> None:
        with failures():
            self._admin = KafkaAdminClient(bootstrap_servers=bootstrap, request_timeout_ms=20_000, **way_in)

    def create_topic(
        self,
        name: str,
        partitions: int,
        replication_factor: int = 1,
        configs: Mapping[str, str] | None = None,
        validate_only: bool = False,
    ) -> None:
        topic = NewTopic(name, partitions, replication_factor, topic_configs=dict(configs or {}))
        with failures():
            self._admin.create_topics([topic], validate_only=validate_only)

    def delete_topic(self, name: str) -> None:
        with failures():
            self._admin.delete_topics([name])

    def list_topics(self) -> set[str]:
        with failures():
            return set(self._admin.list_topics())

    def describe_topic(self, name: str) -> model.TopicDescription:
        with failures():
            (topic,) = self._admin.describe_topics([name])
        check(topic["error_code"], topic)
        return model.TopicDescription(name, {part["partition"]: part["leader"] for part in topic["partitions"]})

    def create_partitions(self, topic: str, total: int) -> None:
        with failures():
            self._admin.create_partitions({topic: NewPartitions(total)})

    def describe_configs(self, kind: Literal["topic", "broker"], name: str) -> dict[str, model.ConfigEntry]:
        resource = ConfigResource(ConfigResourceType[kind.upper()], name)
        with failures():
            (response,) = self._admin.describe_configs([resource], include_synonyms=True)
        (described,) = response.to_object()["resources"]
        check(described["error_code"], described["error_message"])
        return {
            entry["config_names"]: model.ConfigEntry(
                entry["config_value"],
                entry["config_source"],
                entry["read_only"],
                entry["is_sensitive"],
                tuple(
                    (each["config_name"], each["config_value"], each["config_source"])
                    for each in entry["config_synonyms"]
                ),
            )
            for entry in described["config_entries"]
        }

    def alter_configs(self, topic: str, configs: Mapping[str, str]) -> None:
        resource = ConfigResource(ConfigResourceType.TOPIC, topic, configs=dict(configs))
        with failures():
            response = self._admin.alter_configs([resource])
        for code, message, _kind, _name in response.resources:
            check(code, message)

    def list_groups(self) -> set[str]:
        with failures():
            return {group_id for group_id, _protocol_type in self._admin.list_consumer_groups()}

    def describe_group(self, group_id: str) -> model.GroupDescription:
        with failures():
            (group,) = self._admin.describe_consumer_groups([group_id])
        members = {member.member_id: owned(member.member_assignment) for member in group.members}
        return model.GroupDescription(group_id, group.state, group.protocol_type, members)

    def delete_group(self, group_id: str) -> None:
        with failures():
            for _group_id, error in self._admin.delete_consumer_groups([group_id]):
                if error is not kafka.errors.NoError:
                    raise error()

    def group_offsets(self, group_id: str) -> dict[tuple[str, int], model.Committed]:
        with failures():
            offsets = self._admin.list_consumer_group_offsets(group_id)
        return {
            (where.topic, where.partition): model.Committed(at.offset, at.metadata) for where, at in offsets.items()
        }

    def delete_records(self, topic: str, partition: int, before_offset: int) -> int:
        where = TopicPartition(topic, partition)
        with failures():
            return int(self._admin.delete_records({where: before_offset})[where]["low_watermark"])

    def describe_cluster(self) -> model.ClusterDescription:
        with failures():
            cluster = self._admin.describe_cluster()
        return model.ClusterDescription(
            cluster["cluster_id"],
            cluster["controller_id"],
            {broker["node_id"]: (broker["host"], broker["port"]) for broker in cluster["brokers"]},
        )

    def close(self) -> None:
        with failures():
            self._admin.close()


def owned(assignment: Any) -> frozenset[tuple[str, int]]:
    """The partitions of a decoded member assignment; empty bytes while the group rebalances."""
    if not assignment:
        return frozenset()
    return frozenset((topic, partition) for topic, partitions in assignment.assignment for partition in partitions)


class Client(NewestClient):
    """kafka-python 2.x."""

    def admin(self) -> model.Admin:
        return Admin(self._bootstrap, self._way_in)
