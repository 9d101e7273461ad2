"""Dynamic broker configs: the properties that may be set on running brokers, and their effects (KIP-226).

The rules are those of Kafka's DynamicBrokerConfig, of 3.9 and 4.3. A property set on one broker overrides one set for all of
them, and both override those given at the start. There are these kinds of names:

- dynamic settings of Ottla: accepted, checked, and in force at once;
- dynamic settings of Kafka that Ottla has no use for (``UNUSED``): accepted and kept, without effect, with a warning;
- every other setting of Kafka: refused;
- names with a listener's prefix: as the name without it; key stores can be set with a prefix only;
- unknown names: accepted and kept, as in Kafka, where plugins may read them; with a warning, too.

Numbers of threads may at most double or halve at a time. What is stored but malformed (the store can be written to
directly) is ignored with an error in the log.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Mapping

from ...base.config import Config
from ...base.errors import ErrorCode, KafkaError
from ...base.kafka_property_names import KAFKA_PROPERTY_NAMES
from ...base.listener_names import listener_of, without_prefix
from ...base.settings import Setting, SettingError
from ...log.settings import LogCleanerSettings, LogManagerSettings
from ...metadata.delta import ClusterDelta
from ...metadata.image import ClusterImage
from ...metadata.published import PublishedMetadata
from ...security.entities import BROKERS, DEFAULT
from .unused_configs import UNUSED, UNUSED_FOR_ONE_BROKER

logger = logging.getLogger(__name__)

_CLUSTER_LEVEL_LISTENER = ("max.connections", "max.connection.creation.rate", "num.network.threads")
_LISTENERS = ("listeners", "advertised.listeners", "listener.security.protocol.map")
_WITH_PREFIX_ONLY = (
    "ssl.keystore.type",
    "ssl.keystore.location",
    "ssl.keystore.password",
    "ssl.keystore.key",
    "ssl.keystore.certificate.chain",
    "ssl.key.password",
    "ssl.truststore.type",
    "ssl.truststore.location",
    "ssl.truststore.password",
    "ssl.truststore.certificates",
)
"""SslConfigs.RECONFIGURABLE_CONFIGS."""


def declared_settings(config: Config) -> dict[str, Setting]:
    """Every setting that has a broker property, by its name."""
    return {
        declared.name: declared
        for group in config.parsed()
        for declared in group.declared.values()
        if declared.name is not None
    }


def check_broker_overrides(config: Config, overrides: Mapping[str, str | None], *, per_broker: bool) -> dict[str, str]:
    """Check the overrides of this broker, or of all brokers, with passwords in the clear; returns them. Raises KafkaError.

    A refusal is INVALID_REQUEST, even of a malformed value, because Kafka never changed that (KAFKA-13609).
    """
    declared = declared_settings(config)
    fixed = sorted(name for name in overrides if _is_fixed(name, declared))
    if fixed:
        raise KafkaError(ErrorCode.INVALID_REQUEST, f"Cannot update these configs dynamically: [{', '.join(fixed)}]")
    if unprefixed := sorted(name for name in overrides if name in _WITH_PREFIX_ONLY):
        why = "These security configs can be dynamically updated only per-listener using the listener prefix"
        raise KafkaError(ErrorCode.INVALID_REQUEST, f"{why}: [{', '.join(unprefixed)}]")
    if not per_broker:
        single = sorted(name for name in overrides if _is_per_broker(name))
        if single:
            why = "Cannot update these configs at default cluster level, broker id must be specified"
            raise KafkaError(ErrorCode.INVALID_REQUEST, f"{why}: [{', '.join(single)}]")
    checked = {}
    for name, value in overrides.items():
        if value is None:
            raise KafkaError(ErrorCode.INVALID_REQUEST, f"Null value not supported for: {name}")
        try:
            _check_value(name, value, declared)
        except SettingError as error:
            raise KafkaError(ErrorCode.INVALID_REQUEST, str(error)) from None
        checked[name] = value
    layers = (config.dynamic_default, checked) if per_broker else (checked, config.dynamic_broker)
    try:
        changed = config.with_dynamic(*layers)
        _check_threads(config, changed)
        for check in config.checks:
            check(changed)
    except SettingError as error:
        raise KafkaError(ErrorCode.INVALID_REQUEST, str(error)) from None
    return checked


def _is_fixed(name: str, declared: Mapping[str, Setting]) -> bool:
    if name in UNUSED:
        return False
    setting = declared.get(name)
    return name in KAFKA_PROPERTY_NAMES if setting is None else not setting.is_dynamic


def _is_per_broker(name: str) -> bool:
    if listener_of(name) is not None:
        return without_prefix(name) not in _CLUSTER_LEVEL_LISTENER
    return name in UNUSED_FOR_ONE_BROKER or name in _LISTENERS


def _check_value(name: str, value: str, declared: Mapping[str, Setting]) -> None:
    """Raises SettingError."""
    base = without_prefix(name)
    known = declared.get(base) or UNUSED.get(base)
    if known is not None:
        known.parse(value, name=name)


def _check_threads(before: Config, after: Config) -> None:
    """Numbers of threads change in small steps. Raises KafkaError."""
    for name, old, new in (
        (
            "num.recovery.threads.per.data.dir",
            before.settings(LogManagerSettings).recovery_threads_per_data_dir,
            after.settings(LogManagerSettings).recovery_threads_per_data_dir,
        ),
        (
            "log.cleaner.threads",
            before.settings(LogCleanerSettings).log_cleaner_threads,
            after.settings(LogCleanerSettings).log_cleaner_threads,
        ),
    ):
        why = None
        if new == old:
            continue
        if new < 1:
            why = "value should be at least 1"
        elif new < old // 2:
            why = f"value should be at least half the current value {old}"
        elif new > old * 2:
            why = f"value should not be greater than double the current value {old}"
        if why is not None:
            message = f"Dynamic thread count update validation failed for {name}={new}, {why}"
            raise KafkaError(ErrorCode.INVALID_REQUEST, message)


class BrokerConfigs:
    """Keeps ``Config`` at what the cluster's image says of this broker and of all of them.

    ``prepare`` makes what is set there of what is stored: passwords may be encrypted, and a value beyond a bound.
    """

    def __init__(
        self,
        config: Config,
        metadata: PublishedMetadata,
        broker_id: int,
        prepare: Callable[[Mapping[str, str]], Mapping[str, str]] = dict,
    ) -> None:
        self._config = config
        self._metadata = metadata
        self._name = str(broker_id)
        self._prepare = prepare
        self._told: set[str] = set()

    def follow(self) -> None:
        """Apply what is set, and from now on each change."""
        self._take_over()
        self._metadata.publishers.append(self._publish)

    def _publish(self, delta: ClusterDelta, image: ClusterImage) -> None:
        if any(kind is BROKERS and name in (self._name, DEFAULT) for kind, name in delta.configs):
            self._take_over()

    def _take_over(self) -> None:
        image = self._metadata.image
        default = self._usable(image.broker_config(DEFAULT), per_broker=False)
        broker = self._usable(image.broker_config(self._name), per_broker=True)
        self._config.change_dynamic(default, broker)

    def _usable(self, overrides: Mapping[str, str], *, per_broker: bool) -> dict[str, str]:
        declared = declared_settings(self._config)
        usable = {}
        for name, value in self._prepare(overrides).items():
            if _is_fixed(name, declared) or (not per_broker and _is_per_broker(name)):
                logger.error("%s is stored as a dynamic config but cannot be one; it is ignored", name)
                continue
            try:
                _check_value(name, value, declared)
            except SettingError as error:
                logger.error("A dynamic config is ignored: %s", error)
                continue
            base = without_prefix(name)
            if base not in declared and name not in self._told:
                self._told.add(name)
                known = "a property of Kafka that Ottla does not use" if base in UNUSED else "an unknown property"
                logger.warning("%s is set dynamically, but is %s", name, known)
            usable[name] = value
        return usable
