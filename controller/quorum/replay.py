"""Replay of metadata log records into a delta of the metadata image.

A replay begins with an image and takes records in their order; every field of the delta has then what the records have changed.
A record that does not fit (a change of a partition that does not exist, an unknown type) raises ReplayError, and the image that
was published stays as it is: a broker that passed over the record would have another cluster than the controller.

A snapshot is replayed on an empty image, and ``metadata.difference`` tells what is new in it. Model: Kafka's ``MetadataDelta``.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Iterable, Mapping
from typing import TYPE_CHECKING, Any

from ...base.errors import KafkaError
from ...metadata.delta import ClusterDelta, TopicDelta
from ...metadata.image import ClusterImage, TopicImage
from ...metadata.types import MIGRATING_DIRECTORY, FinalizedFeatures, LogPosition, PartitionRegistration
from ...security.acl import AclBinding, AclEntry, Operation, PatternType, Permission, ResourcePattern, ResourceType
from ...security.entities import BROKERS, CLIENT_METRICS, DEFAULT, GROUPS, TOPICS, Entity
from ...security.principal import parse_principal
from ...security.quota_entities import stored_entity
from ...security.scram import ScramCredential, ScramMechanism
from ...wire.messages import access_records, metadata_log_records, setting_records, topic_records
from ...wire.schema import Message
from .metadata_version import FEATURE, HIGHEST, KRAFT_VERSION, LOWEST
from .registrations import NodeReplay, ReplayError

if TYPE_CHECKING:
    from ...security.delegation import DelegationToken

TOPIC_CONFIG, BROKER_CONFIG, CLIENT_METRICS_CONFIG, GROUP_CONFIG = 2, 4, 16, 32
"""What a ConfigRecord is about (Kafka's ConfigResource)."""
CONFIG_KINDS = {
    TOPIC_CONFIG: TOPICS,
    BROKER_CONFIG: BROKERS,
    CLIENT_METRICS_CONFIG: CLIENT_METRICS,
    GROUP_CONFIG: GROUPS,
}
ANY_BROKER = ""
"""The name of the config of all brokers."""

_SAME_LEADER = -2
_NO_RECOVERY_CHANGE = -1


@dataclasses.dataclass
class _TopicChange:
    """A topic that is made or changed: as it was before this replay, and its partitions that differ."""

    name: str
    topic_id: bytes
    before: Mapping[int, PartitionRegistration]
    partitions: dict[int, PartitionRegistration] = dataclasses.field(default_factory=dict)

    def partition(self, number: int) -> PartitionRegistration | None:
        return self.partitions.get(number) or self.before.get(number)


class RecordReplay:
    """What records change of an image."""

    def __init__(self, image: ClusterImage) -> None:
        self._image = image
        self._nodes = NodeReplay(image)
        self._topics: dict[bytes, _TopicChange] = {}
        self._ids: dict[str, bytes] = {}
        self._removed: dict[bytes, TopicDelta] = {}
        self._configs: dict[Entity, dict[str, str]] = {}
        self._quotas: dict[Entity, dict[str, float]] = {}
        self._scram: dict[str, dict[ScramMechanism, Any]] = {}
        self._acl_ids: dict[bytes, AclBinding | None] = {}
        self._acls: dict[ResourcePattern, frozenset[AclEntry]] = {}
        self._tokens: dict[str, DelegationToken | None] = {}
        self._levels: dict[str, int] = {}
        self._next_producer_id: int | None = None

    def replay(self, record: Message) -> None:
        """Take one record. Raises ReplayError."""
        if self._nodes.replay(record):
            return
        replay = _REPLAYS.get(type(record))
        if replay is None:
            raise ReplayError(f"a {type(record).__name__} cannot be replayed")
        replay(self, record)

    def replay_all(self, records: Iterable[Message]) -> None:
        for record in records:
            self.replay(record)

    def delta(self, position: LogPosition) -> ClusterDelta:
        """What has changed, where the last record was at ``position``."""
        changed = [TopicDelta(t.name, t.topic_id, t.partitions) for t in self._topics.values() if t.partitions]
        return ClusterDelta(
            topics=[*self._removed.values(), *changed],
            configs=self._configs,
            quotas=self._quotas,
            scram=self._scram,
            acls=self._acls,
            tokens=self._tokens,
            features=FinalizedFeatures(position.offset, self._features()),
            next_producer_id=self._next_producer_id,
            acl_ids=self._acl_ids,
            position=position,
            brokers=self._nodes.alive(),
            quorum_brokers=self._nodes.brokers,
            quorum_controllers=self._nodes.controllers,
        )

    # --- topics -------------------------------------------------------------------------------------------------------

    def _topic(self, topic_id: bytes) -> _TopicChange:
        change = self._topics.get(topic_id)
        if change is None:
            known = self._image.topics_by_id.newest().get(topic_id)
            if known is None or topic_id in self._removed:
                raise ReplayError(f"there is no topic with the id {topic_id.hex()}")
            change = self._note_topic(known)
        return change

    def _note_topic(self, topic: TopicImage) -> _TopicChange:
        change = self._topics[topic.topic_id] = _TopicChange(topic.name, topic.topic_id, topic.partitions)
        self._ids[topic.name] = topic.topic_id
        return change

    def _add_topic(self, record: topic_records.TopicRecord) -> None:
        self._note_topic(TopicImage(record.name, record.topic_id, {}))

    def _remove_topic(self, record: topic_records.RemoveTopicRecord) -> None:
        change = self._topic(record.topic_id)
        del self._topics[record.topic_id], self._ids[change.name]
        if change.before:
            self._removed[record.topic_id] = TopicDelta(change.name, record.topic_id, dict.fromkeys(change.before))
        self._configs[Entity(TOPICS, change.name)] = {}

    def _add_partition(self, record: topic_records.PartitionRecord) -> None:
        self._topic(record.topic_id).partitions[record.partition_id] = PartitionRegistration(
            leader=record.leader,
            leader_epoch=record.leader_epoch,
            partition_epoch=record.partition_epoch,
            isr=tuple(record.isr),
            replicas=tuple(record.replicas),
            adding=tuple(record.adding_replicas),
            removing=tuple(record.removing_replicas),
            is_recovering=bool(record.leader_recovery_state),
            directories=tuple(record.directories) or (MIGRATING_DIRECTORY,) * len(record.replicas),
            elr=tuple(record.eligible_leader_replicas or ()),
            last_known_elr=tuple(record.last_known_elr or ()),
        )

    def _change_partition(self, record: topic_records.PartitionChangeRecord) -> None:
        topic = self._topic(record.topic_id)
        before = topic.partition(record.partition_id)
        if before is None:
            raise ReplayError(f"there is no partition {record.partition_id} of {topic.name}")
        topic.partitions[record.partition_id] = changed_partition(before, record)

    def _clear_elr(self, record: topic_records.ClearElrRecord) -> None:
        """Of one topic, or without a name of all."""
        if record.topic_name:
            topic_id = self._ids.get(record.topic_name)
            known = self._image.topics.newest().get(record.topic_name)
            if topic_id is None and known is not None:
                topic_id = known.topic_id
            if topic_id is None:
                raise ReplayError(f"there is no topic {record.topic_name} to clear the ELR of")
            topics = [self._topic(topic_id)]
        else:
            topics = [self._topic(each) for each in self._image.topics_by_id.newest() if each not in self._removed]
            topics += [change for key, change in self._topics.items() if not change.before]
        for topic in topics:
            for number in {**topic.before, **topic.partitions}:
                partition = topic.partition(number)
                if partition is not None and (partition.elr or partition.last_known_elr):
                    epoch = partition.partition_epoch + 1
                    topic.partitions[number] = partition._replace(partition_epoch=epoch, elr=(), last_known_elr=())

    # --- configs, quotas, features ------------------------------------------------------------------------------------

    def _change_config(self, record: setting_records.ConfigRecord) -> None:
        kind = CONFIG_KINDS.get(record.resource_type)
        if kind is None:
            raise ReplayError(f"there are no configs of resources of type {record.resource_type}")
        is_default = kind is BROKERS and record.resource_name == ANY_BROKER
        entity = Entity(kind, DEFAULT if is_default else record.resource_name)
        configs = self._configs.get(entity)
        if configs is None:
            configs = self._configs[entity] = dict(self._image.configs.newest().get(entity, {}))
        if record.value is None:
            configs.pop(record.name, None)
        else:
            configs[record.name] = record.value

    def _change_quota(self, record: setting_records.ClientQuotaRecord) -> None:
        try:
            entity = stored_entity({part.entity_type: part.entity_name for part in record.entity})
        except KafkaError as error:
            raise ReplayError(f"a quota: {error.message}") from None
        quotas = self._quotas.get(entity)
        if quotas is None:
            quotas = self._quotas[entity] = dict(self._image.quotas.newest().get(entity, {}))
        if record.remove:
            quotas.pop(record.key, None)
        else:
            quotas[record.key] = record.value

    def _set_feature(self, record: setting_records.FeatureLevelRecord) -> None:
        """``kraft.version`` belongs to control records; where it is here, an early Kafka has written it (KAFKA-18979)."""
        if record.name == FEATURE and not LOWEST <= record.feature_level <= HIGHEST:
            raise ReplayError(f"{FEATURE} {record.feature_level} is not one of {LOWEST} to {HIGHEST}")
        if record.name != KRAFT_VERSION:
            self._levels[record.name] = record.feature_level

    def _features(self) -> dict[str, int]:
        """All levels; 0 is the same as none."""
        known = self._image.features
        levels = {**({} if known is None else known.levels), **self._levels}
        return {name: level for name, level in levels.items() if level}

    def _allocate(self, record: setting_records.ProducerIdsRecord) -> None:
        self._next_producer_id = record.next_producer_id

    # --- access -------------------------------------------------------------------------------------------------------

    def _set_credential(self, record: access_records.UserScramCredentialRecord) -> None:
        credential = ScramCredential(record.salt, record.stored_key, record.server_key, record.iterations)
        self._credentials(record.name)[_mechanism(record.mechanism)] = credential

    def _remove_credential(self, record: access_records.RemoveUserScramCredentialRecord) -> None:
        self._credentials(record.name).pop(_mechanism(record.mechanism), None)

    def _credentials(self, user: str) -> dict[ScramMechanism, Any]:
        credentials = self._scram.get(user)
        if credentials is None:
            credentials = self._scram[user] = dict(self._image.scram.newest().get(user, {}))
        return credentials

    def _set_token(self, record: access_records.DelegationTokenRecord) -> None:
        from ...security.delegation import DelegationToken  # few clusters have tokens

        try:
            self._tokens[record.token_id] = DelegationToken(
                record.token_id,
                parse_principal(record.owner),
                parse_principal(record.requester),
                tuple(map(parse_principal, record.renewers)),
                record.issue_timestamp,
                record.max_timestamp,
                record.expiration_timestamp,
            )
        except ValueError as error:
            raise ReplayError(f"a delegation token: {error}") from None

    def _remove_token(self, record: access_records.RemoveDelegationTokenRecord) -> None:
        self._tokens[record.token_id] = None

    def _add_acl(self, record: access_records.AccessControlEntryRecord) -> None:
        try:
            binding = AclBinding(
                ResourcePattern(
                    ResourceType(record.resource_type), record.resource_name, PatternType(record.pattern_type)
                ),
                AclEntry(
                    record.principal, Permission(record.permission_type), record.host, Operation(record.operation)
                ),
            )
        except ValueError as error:
            raise ReplayError(f"an access rule: {error}") from None
        self._acl_ids[record.id] = binding
        self._acls[binding.pattern] = self._entries(binding.pattern) | {binding.entry}

    def _remove_acl(self, record: access_records.RemoveAccessControlEntryRecord) -> None:
        binding = self._acl_ids.get(record.id, self._image.acl_ids.newest().get(record.id))
        if binding is None:
            raise ReplayError(f"there is no access rule with the id {record.id.hex()}")
        self._acl_ids[record.id] = None
        self._acls[binding.pattern] = self._entries(binding.pattern) - {binding.entry}

    def _entries(self, pattern: ResourcePattern) -> frozenset[AclEntry]:
        return self._acls.get(pattern, self._image.acls.newest().get(pattern, frozenset()))

    def _pass(self, record: Message) -> None:
        """The record changes nothing of the cluster."""


def changed_partition(
    before: PartitionRegistration, record: topic_records.PartitionChangeRecord
) -> PartitionRegistration:
    """A partition after a change: its epoch grows by one, and with any leader the leader epoch (Kafka's ``merge``)."""
    changes: dict[str, Any] = {"partition_epoch": before.partition_epoch + 1}
    if record.leader != _SAME_LEADER:
        changes.update(leader=record.leader, leader_epoch=before.leader_epoch + 1)
    if record.leader_recovery_state != _NO_RECOVERY_CHANGE:
        changes["is_recovering"] = bool(record.leader_recovery_state)
    for name, value in (
        ("isr", record.isr),
        ("replicas", record.replicas),
        ("adding", record.adding_replicas),
        ("removing", record.removing_replicas),
        ("directories", record.directories),
        ("elr", record.eligible_leader_replicas),
        ("last_known_elr", record.last_known_elr),
    ):
        if value is not None:
            changes[name] = tuple(value)
    after = before._replace(**changes)
    if len(after.directories) != len(after.replicas):
        if record.directories:
            raise ReplayError(f"{len(after.replicas)} replicas have {len(after.directories)} directories")
        after = after._replace(directories=(MIGRATING_DIRECTORY,) * len(after.replicas))
    return after


def _mechanism(number: int) -> ScramMechanism:
    try:
        return ScramMechanism(number)
    except ValueError:
        raise ReplayError(f"there is no SCRAM mechanism with the number {number}") from None


_REPLAYS: dict[type[Message], Callable[[RecordReplay, Any], None]] = {
    topic_records.TopicRecord: RecordReplay._add_topic,
    topic_records.RemoveTopicRecord: RecordReplay._remove_topic,
    topic_records.PartitionRecord: RecordReplay._add_partition,
    topic_records.PartitionChangeRecord: RecordReplay._change_partition,
    topic_records.ClearElrRecord: RecordReplay._clear_elr,
    setting_records.ConfigRecord: RecordReplay._change_config,
    setting_records.ClientQuotaRecord: RecordReplay._change_quota,
    setting_records.FeatureLevelRecord: RecordReplay._set_feature,
    setting_records.ProducerIdsRecord: RecordReplay._allocate,
    access_records.UserScramCredentialRecord: RecordReplay._set_credential,
    access_records.RemoveUserScramCredentialRecord: RecordReplay._remove_credential,
    access_records.DelegationTokenRecord: RecordReplay._set_token,
    access_records.RemoveDelegationTokenRecord: RecordReplay._remove_token,
    access_records.AccessControlEntryRecord: RecordReplay._add_acl,
    access_records.RemoveAccessControlEntryRecord: RecordReplay._remove_acl,
    metadata_log_records.NoOpRecord: RecordReplay._pass,
    metadata_log_records.ZkMigrationStateRecord: RecordReplay._pass,
}
