"""A metadata image as the records of a snapshot, whose replay on an empty image yields the same image.

Their order is Kafka's: features, ``metadata.version`` first, because it says how the others are written; nodes, topics, configs,
quotas, producer ids, access rules, credentials, tokens. What the level of ``metadata.version`` has no record for raises
UnwritableImageError. Model: the ``write`` methods of Kafka's image classes.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import TYPE_CHECKING, Any

from ...metadata.image import ClusterImage, TopicImage
from ...metadata.types import (
    MIGRATING_DIRECTORY,
    SECURITY_PROTOCOLS,
    AdvertisedListener,
    PartitionRegistration,
    QuorumBroker,
    QuorumController,
    VersionRange,
)
from ...security.acl import AclBinding
from ...security.entities import DEFAULT, Entity
from ...security.quota_entities import named_entity
from ...security.scram import ScramCredential
from ...wire.messages import access_records, broker_records, setting_records, topic_records
from ...wire.metadata_records import VersionedRecord
from . import metadata_version
from .metadata_version import ELR, FEATURE
from .replay import ANY_BROKER, CONFIG_KINDS

if TYPE_CHECKING:
    from ...security.delegation import DelegationToken

_CONFIG_TYPES = {kind: number for number, kind in CONFIG_KINDS.items()}


class UnwritableImageError(Exception):
    """The image has something that no record of its ``metadata.version`` can carry. ``str()`` says what."""


def snapshot_records(image: ClusterImage) -> Iterator[VersionedRecord]:
    """All records. Raises UnwritableImageError."""
    levels = dict(image.features.levels) if image.features is not None else {}
    level = levels.pop(FEATURE, None)
    if level is None:
        raise UnwritableImageError(f"nothing can be written without {FEATURE}")
    for name, value in ((FEATURE, level), *levels.items()):
        yield setting_records.FeatureLevelRecord(name=name, feature_level=value), 0
    yield from records_beside_levels(image)


def records_beside_levels(image: ClusterImage) -> Iterator[VersionedRecord]:
    """All but those of the levels of features, which are needed to write them. Raises UnwritableImageError."""
    assert image.features is not None, "they say how records are written"
    levels = image.features.levels
    level = levels[FEATURE]
    yield from _nodes(image, level)
    for topic in image.topics_by_id.newest().values():
        yield from _topic(topic, level, has_elr=levels.get(ELR, 0) > 0)
    yield from _settings(image)
    yield from _access(image, level)


def _nodes(image: ClusterImage, level: int) -> Iterator[VersionedRecord]:
    for broker in image.quorum_brokers.newest().values():
        yield _broker(broker, level), metadata_version.broker_record_version(level)
    for controller in image.quorum_controllers.newest().values():
        if not metadata_version.has_controller_registrations(level):
            raise UnwritableImageError("registrations of controllers")
        yield _controller(controller), 0


def _broker(broker: QuorumBroker, level: int) -> broker_records.RegisterBrokerRecord:
    version = metadata_version.broker_record_version(level)
    if broker.is_migrating and version < 2:
        raise UnwritableImageError("that a broker comes from a ZooKeeper")
    if broker.directories and version < 3:
        raise UnwritableImageError("log directories of brokers")
    if broker.cordoned is not None and version < 4:
        raise UnwritableImageError("cordoned log directories of brokers")
    return broker_records.RegisterBrokerRecord(
        broker_id=broker.registration.broker_id,
        is_migrating_zk_broker=broker.is_migrating,
        incarnation_id=broker.incarnation_id,
        broker_epoch=broker.epoch,
        end_points=[_endpoint(broker_records.BrokerEndpoint, each) for each in broker.registration.endpoints],
        features=_features(broker_records.BrokerFeature, broker.features),
        rack=broker.registration.rack,
        fenced=broker.is_fenced,
        in_controlled_shutdown=broker.is_shutting_down,
        log_dirs=list(broker.directories),
        cordoned_log_dirs=None if broker.cordoned is None else list(broker.cordoned),
    )


def _controller(controller: QuorumController) -> broker_records.RegisterControllerRecord:
    return broker_records.RegisterControllerRecord(
        controller_id=controller.controller_id,
        incarnation_id=controller.incarnation_id,
        zk_migration_ready=controller.is_ready_to_migrate,
        end_points=[_endpoint(broker_records.ControllerEndpoint, each) for each in controller.endpoints],
        features=_features(broker_records.ControllerFeature, controller.features),
    )


def _endpoint(struct: Any, endpoint: AdvertisedListener) -> Any:
    protocol = SECURITY_PROTOCOLS[endpoint.security_protocol]
    return struct(name=endpoint.listener, host=endpoint.host, port=endpoint.port, security_protocol=protocol)


def _features(struct: Any, features: Mapping[str, VersionRange]) -> list[Any]:
    return [
        struct(name=name, min_supported_version=each.lowest, max_supported_version=each.highest)
        for name, each in features.items()
    ]


def _topic(topic: TopicImage, level: int, *, has_elr: bool) -> Iterator[VersionedRecord]:
    yield topic_records.TopicRecord(name=topic.name, topic_id=topic.topic_id), 0
    for number, partition in topic.partitions.items():
        yield partition_record(topic.topic_id, number, partition, level, has_elr=has_elr)


def partition_record(
    topic_id: bytes, number: int, partition: PartitionRegistration, level: int, *, has_elr: bool
) -> VersionedRecord:
    """The record that makes a partition. Raises UnwritableImageError."""
    version = metadata_version.partition_record_version(level)
    record = topic_records.PartitionRecord(
        partition_id=number,
        topic_id=topic_id,
        replicas=list(partition.replicas),
        isr=list(partition.isr),
        removing_replicas=list(partition.removing),
        adding_replicas=list(partition.adding),
        leader=partition.leader,
        leader_recovery_state=int(partition.is_recovering),
        leader_epoch=partition.leader_epoch,
        partition_epoch=partition.partition_epoch,
    )
    if version >= 1:
        record.directories = list(partition.directories)
    elif any(directory != MIGRATING_DIRECTORY for directory in partition.directories):
        raise UnwritableImageError("log directories of replicas")
    if has_elr:
        record.eligible_leader_replicas = list(partition.elr) or None
        record.last_known_elr = list(partition.last_known_elr) or None
    return record, version


def _settings(image: ClusterImage) -> Iterator[VersionedRecord]:
    for (kind, name), configs in image.configs.newest().items():
        resource = ANY_BROKER if name is DEFAULT else str(name)
        for key, value in configs.items():
            yield (
                setting_records.ConfigRecord(
                    resource_type=_CONFIG_TYPES[kind], resource_name=resource, name=key, value=value
                ),
                0,
            )
    for entity, quotas in image.quotas.newest().items():
        for key, limit in quotas.items():
            yield quota_record(entity, key, limit), 0
    if image.next_producer_id >= 0:
        yield setting_records.ProducerIdsRecord(broker_id=-1, next_producer_id=image.next_producer_id), 0


def _access(image: ClusterImage, level: int) -> Iterator[VersionedRecord]:
    for acl_id, binding in image.acl_ids.newest().items():
        yield acl_record(acl_id, binding), 0
    scram, tokens = image.scram.newest(), image.tokens.newest()
    if scram and not metadata_version.has_scram(level):
        raise UnwritableImageError("SCRAM credentials")
    if tokens and not metadata_version.has_tokens(level):
        raise UnwritableImageError("delegation tokens")
    for user, credentials in scram.items():
        for mechanism, credential in credentials.items():
            assert isinstance(credential, ScramCredential), "records have no credential that cannot be read"
            yield credential_record(user, mechanism, credential), 0
    for token in tokens.values():
        yield token_record(token), 0


def acl_record(acl_id: bytes, binding: AclBinding) -> access_records.AccessControlEntryRecord:
    """The record of one access rule."""
    pattern, entry = binding
    return access_records.AccessControlEntryRecord(
        id=acl_id,
        resource_type=pattern.resource_type,
        resource_name=pattern.name,
        pattern_type=pattern.pattern_type,
        principal=entry.principal,
        host=entry.host,
        operation=entry.operation,
        permission_type=entry.permission,
    )


def token_record(token: DelegationToken) -> access_records.DelegationTokenRecord:
    """The record of a delegation token, which stands for all of it each time it changes."""
    return access_records.DelegationTokenRecord(
        owner=str(token.owner),
        requester=str(token.requester),
        renewers=list(map(str, token.renewers)),
        issue_timestamp=token.issued_ms,
        max_timestamp=token.max_ms,
        expiration_timestamp=token.expiry_ms,
        token_id=token.token_id,
    )


def quota_record(entity: Entity, key: str, limit: float | None) -> setting_records.ClientQuotaRecord:
    """The record of one quota of an entity, without ``limit`` that of its removal."""
    named = [
        setting_records.EntityData(entity_type=each, entity_name=name) for each, name in named_entity(entity).items()
    ]
    return setting_records.ClientQuotaRecord(entity=named, key=key, value=limit or 0.0, remove=limit is None)


def credential_record(
    user: str, mechanism: int, credential: ScramCredential
) -> access_records.UserScramCredentialRecord:
    """The record of a user's credential for one mechanism."""
    return access_records.UserScramCredentialRecord(
        name=user,
        mechanism=mechanism,
        salt=credential.salt,
        stored_key=credential.stored_key,
        server_key=credential.server_key,
        iterations=credential.iterations,
    )
