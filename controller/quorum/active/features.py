"""Updates of finalized feature levels, including ``metadata.version`` (KIP-584, KIP-778, KIP-1022).

A level is finalized if every node that is registered supports it: all brokers, and all voters among the controllers. Where one
update is refused, none is made. ``kraft.version`` belongs to the voters: what the log of this operation gets for it is a
NoOpRecord, whose commit the response waits for, and Raft writes its own control records.

Source: Kafka's FeatureControlManager, and for eligible leader replicas its ConfigurationControlManager.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Collection, Mapping
from enum import IntEnum

from ....base.errors import ErrorCode, KafkaError
from ....metadata.image import ClusterImage
from ....metadata.types import VersionRange
from ....security.entities import BROKERS, DEFAULT
from ....wire.messages.metadata_log_records import NoOpRecord
from ....wire.messages.setting_records import ConfigRecord, FeatureLevelRecord
from ....wire.messages.update_features import UpdatableFeatureResult, UpdateFeaturesRequest, UpdateFeaturesResponse
from ....wire.metadata_records import VersionedRecord
from .. import metadata_version
from ..features import FEATURES, FeatureError
from ..metadata_version import ELR, FEATURE, KRAFT_VERSION
from ..replay import ANY_BROKER, BROKER_CONFIG
from .context import MIN_ISR
from .result import ControllerResult, bounded

_DISABLED = VersionRange(0, 0)


class UpgradeType(IntEnum):
    """As UpdateFeatures numbers it."""

    UPGRADE = 1
    SAFE_DOWNGRADE = 2
    UNSAFE_DOWNGRADE = 3


@dataclasses.dataclass(frozen=True)
class FeatureRules:
    """What updates of features are checked by, beside the image."""

    node_id: int
    supported: Mapping[str, VersionRange]
    """The levels that this controller supports."""
    voters: Collection[int]
    """The ids of the quorum's voters, this node's among them."""
    kraft_version: int
    """The level that Raft has finalized."""
    min_insync_replicas: int = 1
    """What the controller's file says."""


@dataclasses.dataclass(frozen=True)
class FeatureUpdates:
    """The outcome of an UpdateFeatures request."""

    response: UpdateFeaturesResponse
    kraft_version: int | None = None
    """The level of ``kraft.version`` that Raft has to finalize before the records are written; None for none.

    If Raft refuses, the response is Raft's error, and no record is written. With ``validate_only`` Raft only checks.
    """


def update_features(
    image: ClusterImage, request: UpdateFeaturesRequest, version: int, rules: FeatureRules
) -> ControllerResult[FeatureUpdates]:
    """``version`` is the request's: up to 1 the response has a result for each feature."""
    updates = {each.feature: each for each in request.feature_updates}
    update = _Update(image, {name: each.max_version_level for name, each in updates.items()}, rules)
    try:
        records = [record for name, each in updates.items() for record in update.records(name, each.upgrade_type)]
    except KafkaError as error:
        return ControllerResult([], FeatureUpdates(refused_update(error)))
    if request.validate_only:
        records = []
    elif update.wanted.get(ELR, 0) > 0:
        records = [*_safe_min_isr(image, rules), *records]
    response = UpdateFeaturesResponse(error_message=None)
    if version <= 1:  # the message is what Kafka has there
        response.results = [UpdatableFeatureResult(feature=name, error_message="NONE") for name in updates]
    return ControllerResult(bounded(records), FeatureUpdates(response, update.kraft_version))


def refused_update(error: KafkaError) -> UpdateFeaturesResponse:
    """The response to an update that one feature keeps from being made."""
    why = f"The update failed for all features since the following feature had an error: {error.message}"
    return UpdateFeaturesResponse(error_code=error.code, error_message=why)


class _Update:
    """The levels that are, and those that are wanted."""

    def __init__(self, image: ClusterImage, wanted: Mapping[str, int], rules: FeatureRules) -> None:
        self._image = image
        self._rules = rules
        self.wanted = wanted
        self.kraft_version: int | None = None
        """What Raft is asked for."""
        finalized = image.features.levels if image.features is not None else {}
        self._current = {**finalized, KRAFT_VERSION: rules.kraft_version}

    def records(self, name: str, upgrade_type: int) -> list[VersionedRecord]:
        """Raises KafkaError INVALID_UPDATE_VERSION."""
        level, current = self.wanted[name], self._current.get(name, 0)
        if upgrade_type not in [*UpgradeType]:
            raise _invalid(name, level, "The controller does not support the given upgrade type.")
        if level < 0:
            raise _invalid(name, level, "A feature version cannot be less than 0.")
        if (why := self._why_unsupported(name, level)) is not None:
            raise _invalid(name, level, why)
        if level < current and upgrade_type == UpgradeType.UPGRADE:
            why = "upgrade type to either safe or unsafe downgrade."
            raise _invalid(name, level, f"Can't downgrade the version of this feature without setting the {why}")
        if level > current and upgrade_type != UpgradeType.UPGRADE:
            raise _invalid(name, level, "Can't downgrade to a newer version.")
        if name == FEATURE:
            _check_metadata_downgrade(level, current, upgrade_type)
        elif name == KRAFT_VERSION:
            return self._kraft_records(level, current, upgrade_type)
        else:
            self._check_dependency(name, level)
        return [(FeatureLevelRecord(name=name, feature_level=level), 0)]

    def _kraft_records(self, level: int, current: int, upgrade_type: int) -> list[VersionedRecord]:
        if upgrade_type == UpgradeType.UPGRADE:
            self.kraft_version = level
            # Raft writes the level, in a control record. The response waits for the commit of this record behind it.
            return [(NoOpRecord(), 0)]
        if level != current:
            raise _invalid(KRAFT_VERSION, level, "Can't downgrade the version of this feature.")
        return []

    def _check_dependency(self, name: str, level: int) -> None:
        feature = next((each for each in FEATURES if each.name == name), None)
        if feature is None:
            raise _invalid(name, level, f"Feature {name} not found.")
        try:
            feature.check_dependency(level, self.wanted.get(FEATURE, self._current.get(FEATURE, 0)))
        except FeatureError as error:
            raise _invalid(name, level, str(error)) from None

    def _why_unsupported(self, name: str, level: int) -> str | None:
        """None where all nodes support it."""
        rules = self._rules
        nodes = [(f"Local controller {rules.node_id}", rules.supported)]
        nodes += [(f"Broker {number}", each.features) for number, each in self._image.quorum_brokers.items()]
        registered = {rules.node_id: rules.supported}
        is_told = metadata_version.has_controller_registrations(self._current.get(FEATURE, 0))
        if is_told:
            for number, controller in self._image.quorum_controllers.items():
                if number != rules.node_id:
                    nodes.append((f"Controller {number}", controller.features))
                    registered[number] = controller.features
        for what, features in nodes:
            supported = features.get(name, _DISABLED)
            if not supported.lowest <= level <= supported.highest:
                return _range_text(what, supported)
        missing = [number for number in rules.voters if number not in registered]
        if is_told and missing:
            return f"controller {missing[0]} has not registered, and may not support this feature"
        return None


def _range_text(what: str, supported: VersionRange) -> str:
    if supported.highest == 0:
        return f"{what} does not support this feature."
    lowest, highest = supported
    return f"{what} only supports versions {lowest if lowest == highest else f'{lowest}-{highest}'}"


def _check_metadata_downgrade(level: int, current: int, upgrade_type: int) -> None:
    """A lower level that all records of the log can be read at is allowed. Raises KafkaError."""
    if level < current and metadata_version.changes_records(level, current):
        why = "Refusing to perform the requested downgrade because it might delete metadata information."
        if upgrade_type == UpgradeType.UNSAFE_DOWNGRADE:
            why = "Unsafe metadata downgrade is not supported in this version."
        raise KafkaError(
            ErrorCode.INVALID_UPDATE_VERSION, f"Unsupported metadata.version downgrade from {current} to {level}. {why}"
        )


def _safe_min_isr(image: ClusterImage, rules: FeatureRules) -> list[VersionedRecord]:
    """With eligible leader replicas all brokers have the same ``min.insync.replicas``, which is a record (KIP-966)."""
    records: list[VersionedRecord] = []
    if MIN_ISR not in image.broker_config(DEFAULT):
        records.append(_min_isr(ANY_BROKER, str(rules.min_insync_replicas)))
    for entity, configs in image.configs.items():
        if entity.kind is BROKERS and isinstance(entity.name, str) and MIN_ISR in configs:
            records.append(_min_isr(entity.name, None))
    return records


def _min_isr(broker: str, value: str | None) -> VersionedRecord:
    return ConfigRecord(resource_type=BROKER_CONFIG, resource_name=broker, name=MIN_ISR, value=value), 0


def _invalid(name: str, level: int, why: str) -> KafkaError:
    return KafkaError(ErrorCode.INVALID_UPDATE_VERSION, f"Invalid update version {level} for feature {name}. {why}")
