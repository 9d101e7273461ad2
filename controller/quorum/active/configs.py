"""Changes to the configs of topics, brokers, groups and client metrics (KIP-226, KIP-339).

A change is checked with everything else that is set on the resource. A resource succeeds or fails as a whole, and by itself. A
broker's config is written even where the value is the same: a record makes brokers load again what the value names, a file with
a certificate for instance (KAFKA-14136). Configs of brokers have been checked by the broker that forwards a change.

With eligible leader replicas (KIP-966) ``min.insync.replicas`` is set on all brokers or on topics, and what changes it is
followed by a ClearElrRecord.

Source: Kafka's ConfigurationControlManager, ControllerConfigurationValidator, and the checks of its ControllerApis. A change of
an unknown kind, or an APPEND without a value, makes Kafka's controller resign; here it is INVALID_REQUEST.
"""

from __future__ import annotations

import dataclasses
import re
from collections import Counter
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from functools import partial
from typing import NamedTuple, TypeVar

from ....base.errors import ErrorCode, KafkaError
from ....base.settings import Setting
from ....log.settings import LogSettings
from ....metadata.image import ClusterImage
from ....metadata.rules.topic_names import check_name
from ....security.entities import BROKERS, CLIENT_METRICS, DEFAULT, GROUPS, TOPICS, Entity
from ....wire.messages import alter_configs as legacy
from ....wire.messages import incremental_alter_configs as incremental
from ....wire.messages.setting_records import ConfigRecord
from ....wire.messages.topic_records import ClearElrRecord
from ....wire.metadata_records import VersionedRecord
from ...configs.client_metrics_configs import check_client_metrics
from ...configs.topic_configs import ConfigChange, ConfigOpType, apply_changes, check_overrides
from .. import metadata_version
from ..replay import BROKER_CONFIG, CONFIG_KINDS, TOPIC_CONFIG
from .context import MIN_ISR
from .result import ControllerResult, bounded

_CORDONED = "cordoned.log.dirs"
_LOGGER = 8
_LONGEST_VALUE = (1 << 15) - 1
_HIGHEST_ID = (1 << 31) - 1
_INTEGER = re.compile(r"[+-]?[0-9]{1,10}")
_COMMA = re.compile(r"\s*,\s*")


@dataclasses.dataclass(frozen=True)
class ConfigRules:
    """What configs are checked by, beside the cluster."""

    node_id: int
    """The controller's."""
    voters: Collection[int]
    """The ids of the quorum's voters."""
    topic_defaults: LogSettings
    """What a topic gets without a config of its own."""
    broker_settings: Mapping[str, Setting]
    """All settings of brokers by name, of which some are lists."""
    check_group: Callable[[Mapping[str, str]], None]
    """Raises KafkaError where a group cannot have these configs."""


class ConfigClient(NamedTuple):
    """The client of a request."""

    check_right: Callable[[int, str], None]
    """Called with a resource's type and name. Raises KafkaError where the client may not alter it."""
    is_forwarded: bool
    """Whether the request has come through a broker, which knows its own log directories."""


class _Resource(NamedTuple):
    """Those of a request that can be altered."""

    type: int
    name: str

    @property
    def entity(self) -> Entity:
        kind = CONFIG_KINDS[self.type]
        return Entity(kind, DEFAULT if kind is BROKERS and not self.name else self.name)


class _Altered(NamedTuple):
    """What a change makes of a resource."""

    written: Mapping[str, str | None]
    """The configs that are written; None for a removal."""
    configs: Mapping[str, str]
    """All configs that the resource has then."""


_Alter = Callable[[Mapping[str, str]], _Altered]
_Answer = TypeVar("_Answer")


def incremental_alter_configs(
    image: ClusterImage,
    request: incremental.IncrementalAlterConfigsRequest,
    rules: ConfigRules,
    client: ConfigClient,
) -> ControllerResult[incremental.IncrementalAlterConfigsResponse]:
    """Change some configs of each resource, and leave the others."""

    def alter(resource: incremental.AlterConfigsResource) -> _Alter:
        changes = {each.name: _change(each) for each in resource.configs}
        known = rules.broker_settings if resource.resource_type == BROKER_CONFIG else {}
        if resource.resource_type == TOPIC_CONFIG:
            known = LogSettings.topic_settings()

        def altered(before: Mapping[str, str]) -> _Altered:
            after = apply_changes(known, before, changes.values())
            return _Altered({name: after.get(name) for name in changes}, _without_nulls(after))

        return altered

    alterations = [(each.resource_type, each.resource_name, partial(alter, each)) for each in request.resources]
    records, responses = _alter_all(image, alterations, rules, client, incremental.AlterConfigsResourceResponse)
    response = incremental.IncrementalAlterConfigsResponse(responses=responses)
    return ControllerResult([] if request.validate_only else records, response)


def replace_configs(
    image: ClusterImage, request: legacy.AlterConfigsRequest, rules: ConfigRules, client: ConfigClient
) -> ControllerResult[legacy.AlterConfigsResponse]:
    """AlterConfigs: all configs of each resource; one that is not named is removed."""

    def alter(resource: legacy.AlterConfigsResource) -> _Alter:
        wanted = {each.name: each.value for each in resource.configs}

        def altered(before: Mapping[str, str]) -> _Altered:
            removed = {name: None for name in before if name not in wanted}
            return _Altered({**wanted, **removed}, _without_nulls(wanted))

        return altered

    alterations = [(each.resource_type, each.resource_name, partial(alter, each)) for each in request.resources]
    records, responses = _alter_all(image, alterations, rules, client, legacy.AlterConfigsResourceResponse)
    response = legacy.AlterConfigsResponse(responses=responses)
    return ControllerResult([] if request.validate_only else records, response)


def config_records(
    rules: ConfigRules, image: ClusterImage, topic: str, configs: Mapping[str, str]
) -> Sequence[VersionedRecord]:
    """The records of the configs of a topic that is about to be created. Raises KafkaError INVALID_CONFIG."""
    resource = _Resource(TOPIC_CONFIG, topic)
    records = _checked_records(image, resource, _Altered(configs, configs), {}, rules, is_forwarded=False)
    return [*records, *_elr_records(image, records)]


def _alter_all(
    image: ClusterImage,
    alterations: Sequence[tuple[int, str, Callable[[], _Alter]]],
    rules: ConfigRules,
    client: ConfigClient,
    answer: Callable[..., _Answer],
) -> tuple[Sequence[VersionedRecord], list[_Answer]]:
    """The records, and the response for each resource, which ``answer`` makes."""
    count = Counter((kind, name) for kind, name, _ in alterations)
    records: list[VersionedRecord] = []
    outcome: dict[tuple[int, str], KafkaError | None] = {}
    for kind, name, alter in alterations:
        try:
            if kind != _LOGGER and kind not in CONFIG_KINDS:
                raise KafkaError(ErrorCode.UNSUPPORTED_VERSION, f"Unknown resource type {kind}.")
            if count[kind, name] > 1:
                raise KafkaError(ErrorCode.INVALID_REQUEST, "Duplicate resource.")
            client.check_right(kind, name)
            if kind == _LOGGER:
                raise _logger_error(name, rules)
            records += _altered_records(image, _Resource(kind, name), alter(), rules, client)
        except KafkaError as error:
            outcome[kind, name] = error
        else:
            outcome[kind, name] = None
    return bounded([*records, *_elr_records(image, records)]), [
        answer(
            error_code=ErrorCode.NONE if error is None else error.code,
            error_message=None if error is None else error.message,
            resource_type=kind,
            resource_name=name,
        )
        for (kind, name), error in outcome.items()
    ]


def _altered_records(
    image: ClusterImage, resource: _Resource, alter: _Alter, rules: ConfigRules, client: ConfigClient
) -> list[VersionedRecord]:
    """Raises KafkaError."""
    before = image.configs.get(resource.entity, {})
    records = _checked_records(image, resource, alter(before), before, rules, is_forwarded=client.is_forwarded)
    _check_exists(image, resource, rules)
    return records


def _checked_records(
    image: ClusterImage,
    resource: _Resource,
    altered: _Altered,
    before: Mapping[str, str],
    rules: ConfigRules,
    *,
    is_forwarded: bool,
) -> list[VersionedRecord]:
    """Raises KafkaError."""
    written = {
        name: value
        for name, value in altered.written.items()
        if value != before.get(name) or resource.type == BROKER_CONFIG
    }
    for name, value in written.items():
        if resource.type == BROKER_CONFIG:
            _check_broker_config(image, resource, name, value, before, is_forwarded=is_forwarded)
        if value is not None and len(value) > _LONGEST_VALUE:
            why = f"it exceeds the maximum value size of {_LONGEST_VALUE} bytes."
            raise _invalid(f"The configuration value cannot be added because {why}")
    _check_configs(resource, altered.configs, rules)
    return [(_record(resource, name, value), 0) for name, value in written.items()]


def _check_broker_config(
    image: ClusterImage,
    resource: _Resource,
    name: str,
    value: str | None,
    before: Mapping[str, str],
    *,
    is_forwarded: bool,
) -> None:
    """Raises KafkaError INVALID_CONFIG."""
    if name == MIN_ISR and _has_elr(image):
        if resource.name:
            raise _invalid(f"Broker-level {MIN_ISR} cannot be altered while ELR is enabled.")
        if value is None:
            raise _invalid(f"Cluster-level {MIN_ISR} cannot be removed while ELR is enabled.")
    if name == _CORDONED:
        if not metadata_version.has_cordoned_directories(metadata_version.finalized_level(image.features)):
            why = f"it requires metadata.version >= {metadata_version.release_of(metadata_version.HIGHEST)}"
            raise _invalid(f"The {_CORDONED} configuration value cannot be set because {why}")
        if not is_forwarded and not _directories(value) <= _directories(before.get(name)):
            raise _invalid(
                f"When updating {_CORDONED} via controllers,  the new value must be a subset of the current "
                "configuration value."
            )


def _directories(value: str | None) -> set[str]:
    """The paths of a list. A controller knows the ids of log directories only, so it cannot check them."""
    return set(_COMMA.split(value.strip())) if value is not None and value.strip() else set()


def _check_configs(resource: _Resource, configs: Mapping[str, str], rules: ConfigRules) -> None:
    """Check the name of a resource, and its configs as a whole. Raises KafkaError."""
    match CONFIG_KINDS[resource.type]:
        case kind if kind is TOPICS:
            if not resource.name:
                raise KafkaError(ErrorCode.INVALID_REQUEST, "Default topic resources are not allowed.")
            check_name(resource.name)
            check_overrides(rules.topic_defaults, configs)
        case kind if kind is BROKERS:
            _check_broker_name(resource.name)
        case kind if kind is CLIENT_METRICS:
            check_client_metrics(resource.name, configs)
        case kind if kind is GROUPS:
            if not resource.name:
                raise KafkaError(ErrorCode.INVALID_REQUEST, "Default group resources are not allowed.")
            rules.check_group(configs)


def _check_broker_name(name: str) -> None:
    """Raises KafkaError."""
    if name and (_INTEGER.fullmatch(name) is None or abs(int(name)) > _HIGHEST_ID):
        raise KafkaError(ErrorCode.INVALID_REQUEST, "Unable to parse broker name as a base 10 number.")
    if name and int(name) < 0:
        raise KafkaError(ErrorCode.INVALID_REQUEST, "Invalid negative broker ID.")


def _check_exists(image: ClusterImage, resource: _Resource, rules: ConfigRules) -> None:
    """Raises KafkaError where there is no such topic or node."""
    if resource.type == TOPIC_CONFIG and resource.name not in image.topics:
        raise KafkaError(ErrorCode.UNKNOWN_TOPIC_OR_PARTITION, f"The topic '{resource.name}' does not exist.")
    if resource.type == BROKER_CONFIG and resource.name:
        node_id = int(resource.name)
        known = (image.quorum_brokers, image.quorum_controllers, rules.voters)
        if not any(node_id in each for each in known):
            raise KafkaError(ErrorCode.BROKER_ID_NOT_REGISTERED, f"No node with id {node_id} found.")


def _logger_error(name: str, rules: ConfigRules) -> KafkaError:
    """Loggers have no records, and those of Kafka are not here."""
    if _INTEGER.fullmatch(name) is None:
        return KafkaError(ErrorCode.INVALID_REQUEST, f"Node id must be an integer, but it is: {name}")
    if int(name) != rules.node_id:
        why = f"Unexpected node id. Expected {rules.node_id}, but received {name}"
        return KafkaError(ErrorCode.INVALID_REQUEST, why)
    return _invalid("There are no loggers whose level can be changed.")


def _elr_records(image: ClusterImage, records: Iterable[VersionedRecord]) -> list[VersionedRecord]:
    """What follows records that change ``min.insync.replicas``: of a topic, or of all."""
    if not _has_elr(image):
        return []
    return [
        (ClearElrRecord(topic_name=record.resource_name if record.resource_type == TOPIC_CONFIG else ""), 0)
        for record, _ in records
        if isinstance(record, ConfigRecord) and record.name == MIN_ISR
    ]


def _has_elr(image: ClusterImage) -> bool:
    return image.features is not None and image.features.levels.get(metadata_version.ELR, 0) > 0


def _change(asked: incremental.AlterableConfig) -> ConfigChange:
    """A config without a value is one that is removed. Raises KafkaError INVALID_REQUEST."""
    try:
        change = ConfigOpType(asked.config_operation)
    except ValueError:
        why = f"Unknown operation type {asked.config_operation}"
        raise KafkaError(ErrorCode.INVALID_REQUEST, why) from None
    if change is ConfigOpType.SET and asked.value is None:
        change = ConfigOpType.DELETE
    return ConfigChange(asked.name, change, asked.value)


def _without_nulls(configs: Mapping[str, str | None]) -> dict[str, str]:
    return {name: value for name, value in configs.items() if value is not None}


def _record(resource: _Resource, name: str, value: str | None) -> ConfigRecord:
    return ConfigRecord(resource_type=resource.type, resource_name=resource.name, name=name, value=value)


def _invalid(why: str) -> KafkaError:
    return KafkaError(ErrorCode.INVALID_CONFIG, why)
