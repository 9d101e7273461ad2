"""Changes of everything that the metadata of a cluster can hold, made by clients, and what clients see of it."""

from __future__ import annotations

import contextlib
from collections.abc import Mapping
from typing import Any

from confluent_kafka import Consumer, ConsumerGroupTopicPartitions, Producer, TopicCollection, TopicPartition
from confluent_kafka.admin import (
    AclBinding,
    AclBindingFilter,
    AclOperation,
    AclPermissionType,
    AdminClient,
    AlterConfigOpType,
    ConfigEntry,
    ConfigResource,
    NewPartitions,
    NewTopic,
    ResourcePatternType,
    ResourceType,
    ScramCredentialInfo,
    ScramMechanism,
    UserScramCredentialUpsertion,
)

from ottla.base.errors import ErrorCode
from ottla.compat_tests.wire_client import connect
from ottla.wire.messages.alter_client_quotas import AlterClientQuotasRequest, EntityData, EntryData, OpData
from ottla.wire.messages.api_versions import ApiVersionsRequest
from ottla.wire.messages.describe_client_quotas import DescribeClientQuotasRequest
from ottla.wire.messages.incremental_alter_configs import (
    AlterableConfig,
    AlterConfigsResource,
    IncrementalAlterConfigsRequest,
)

from .either_quorum import PATIENCE_S, EitherQuorum

ANY = (ResourcePatternType.ANY, None, None, AclOperation.ANY, AclPermissionType.ANY)


def wait(futures: Mapping[Any, Any]) -> None:
    for future in futures.values():
        future.result(PATIENCE_S)


class MetadataWalk:
    """Changes of a cluster by clients, and what they see of it."""

    def __init__(self, quorum: EitherQuorum) -> None:
        self.quorum = quorum
        self.bootstrap = quorum.bootstrap
        self.connect_again()
        self._records: dict[str, list[bytes]] = {}

    def connect_again(self) -> None:
        """After a restart of brokers, librdkafka's client does not find its coordinators again."""
        self.admin = AdminClient({"bootstrap.servers": self.bootstrap, "log_level": 0})

    def change(self, turn: str) -> None:
        """Change everything: names begin with ``turn``."""
        self.connect_again()
        factor = min(3, len(self.quorum.brokers))
        first = self.quorum.brokers[0].node_id
        placed = NewTopic(f"{turn}-placed", 1, replica_assignment=[[first]])
        topics = [NewTopic(f"{turn}-{name}", 2, factor) for name in ("kept", "gone")]
        wait(self.admin.create_topics([*topics, placed]))
        wait(self.admin.create_partitions([NewPartitions(f"{turn}-kept", 3)]))
        wait(self.admin.delete_topics([f"{turn}-gone"]))
        self._set(ConfigResource.Type.TOPIC, f"{turn}-kept", "retention.ms", "123456789")
        self._set(ConfigResource.Type.BROKER, str(first), "log.cleaner.threads", "2")
        self._set_for_all_brokers("message.max.bytes", "2000000")
        rules = [
            AclBinding(
                ResourceType.TOPIC,
                f"{turn}-{name}",
                ResourcePatternType.PREFIXED,
                "User:alice",
                "*",
                AclOperation.READ,
                AclPermissionType.ALLOW,
            )
            for name in "ab"
        ]
        wait(self.admin.create_acls(rules))
        wait(self.admin.delete_acls([AclBindingFilter(ResourceType.TOPIC, f"{turn}-b", *ANY)]))
        credential = ScramCredentialInfo(ScramMechanism.SCRAM_SHA_256, 4096)
        wait(self.admin.alter_user_scram_credentials([UserScramCredentialUpsertion(turn, credential, b"secret")]))
        self._limit(turn)
        self._produce(f"{turn}-kept", turn.encode())
        self._commit_offset(turn)

    def make_topic(self, name: str) -> None:
        """A topic with records of transactions."""
        wait(self.admin.create_topics([NewTopic(name, 1, 1)]))
        self._produce(name, b"value")

    def _set(self, kind: Any, name: str, key: str, value: str) -> None:
        entry = ConfigEntry(key, value, incremental_operation=AlterConfigOpType.SET)
        wait(self.admin.incremental_alter_configs([ConfigResource(kind, name, incremental_configs=[entry])]))

    def _set_for_all_brokers(self, key: str, value: str) -> None:
        configs = [AlterableConfig(name=key, config_operation=0, value=value)]
        resource = AlterConfigsResource(resource_type=4, resource_name="", configs=configs)
        with connect(self.bootstrap) as connection:
            (result,) = connection.call(IncrementalAlterConfigsRequest(resources=[resource]), 1).responses
        assert result.error_code == 0, result.error_message

    def _limit(self, user: str) -> None:
        entity = [EntityData(entity_type="user", entity_name=user)]
        ops = [OpData(key="producer_byte_rate", value=1e6, remove=False)]
        request = AlterClientQuotasRequest(entries=[EntryData(entity=entity, ops=ops)])
        codes = []
        for broker in self.quorum.brokers:  # on a ZooKeeper only the controller takes it
            with connect(broker.address) as connection:
                codes += [each.error_code for each in connection.call(request, 1).entries]
            if codes[-1] == 0:
                break
        assert {*codes[:-1]} <= {ErrorCode.NOT_CONTROLLER} and codes[-1] == 0

    def _produce(self, topic: str, value: bytes) -> None:
        """By a transaction, so that there is a producer id of the quorum's."""
        producer = Producer({"bootstrap.servers": self.bootstrap, "transactional.id": topic, "log_level": 0})
        producer.init_transactions(PATIENCE_S)
        for number, commits in ((1, True), (2, False), (3, True)):
            producer.begin_transaction()
            producer.produce(topic, b"%s %d" % (value, number), partition=0)
            producer.commit_transaction(PATIENCE_S) if commits else producer.abort_transaction(PATIENCE_S)
        self._records[topic] = [b"%s %d" % (value, number) for number in (1, 3)]

    def _commit_offset(self, turn: str) -> None:
        offsets = [TopicPartition(f"{turn}-kept", 0, 2)]
        wait(self.admin.alter_consumer_group_offsets([ConsumerGroupTopicPartitions(f"group of {turn}", offsets)]))

    def read_all(self) -> None:
        """All records that were committed are there."""
        settings = {
            "bootstrap.servers": self.bootstrap,
            "group.id": "readers",
            "enable.auto.commit": False,
            "log_level": 0,
        }
        consumer = Consumer({**settings, "isolation.level": "read_committed", "auto.offset.reset": "earliest"})
        with contextlib.closing(consumer):
            for topic, expected in self._records.items():
                consumer.assign([TopicPartition(topic, 0, 0)])
                found: list[bytes | None] = []
                while len(found) < len(expected):
                    message = consumer.poll(PATIENCE_S)
                    assert message is not None, f"{topic}: {found} and no more"
                    assert message.error() is None
                    found.append(message.value())
                assert found == expected

    def seen(self) -> dict[str, object]:
        """What a client is told of the cluster, without its leaders."""
        self.connect_again()
        topics = {
            name: (
                str(topic.topic_id),
                {each.id: sorted(node.id for node in each.replicas) for each in topic.partitions},
            )
            for name, topic in self._topics().items()
        }
        kinds = [ConfigResource(ConfigResource.Type.TOPIC, name) for name in topics]
        brokers = [str(each.node_id) for each in self.quorum.brokers]
        configs = {}
        for resource in [*kinds, *(ConfigResource(ConfigResource.Type.BROKER, name) for name in brokers)]:
            (future,) = self.admin.describe_configs([resource]).values()
            changed = {
                each.name: each.value
                for each in future.result(PATIENCE_S).values()
                if each.source in (1, 2, 3)  # of a topic, a broker, all brokers
            }
            configs[resource.restype, resource.name] = changed
        with connect(self.bootstrap) as connection:
            quotas = connection.call(DescribeClientQuotasRequest(components=[], strict=False), 1).entries or []
            versions = connection.call(ApiVersionsRequest(client_software_name="test", client_software_version="1"), 4)
        groups = {
            group_id: [(each.topic, each.partition, each.offset) for each in found.result(PATIENCE_S).topic_partitions]
            for group_id, found in self._offsets().items()
        }
        rules = self.admin.describe_acls(AclBindingFilter(ResourceType.ANY, None, *ANY)).result(PATIENCE_S)
        users = self.admin.describe_user_scram_credentials(None).result(PATIENCE_S)
        return {
            "topics": topics,
            "configs": configs,
            "rules": sorted(map(str, rules)),
            "users": {
                name: [(each.mechanism, each.iterations) for each in found.scram_credential_infos]
                for name, found in users.items()
            },
            "quotas": sorted(str((each.entity, each.values)) for each in quotas),
            "features": {each.name: each.max_version_level for each in versions.finalized_features},
            "groups": groups,
        }

    def _topics(self) -> dict[str, Any]:
        names = [name for name in self.admin.list_topics(timeout=PATIENCE_S).topics if not name.startswith("__")]
        described = self.admin.describe_topics(TopicCollection(names))
        return {name: future.result(PATIENCE_S) for name, future in described.items()}

    def _offsets(self) -> dict[str, Any]:
        listed = self.admin.list_consumer_groups().result(PATIENCE_S).valid
        names = [each.group_id for each in listed]
        return {
            name: future
            for each in names
            for name, future in self.admin.list_consumer_group_offsets([ConsumerGroupTopicPartitions(each)]).items()
        }
