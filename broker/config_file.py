"""Reads ``server.properties`` and ``--override name=value``, and warns of properties without effect.

A property of Kafka that Ottla does not use gives one warning. So does an unknown name in a file, which may have been written for
another version; in an override or a program, which are written for this broker, an unknown name is an error. A malformed value is
always an error.
"""

from __future__ import annotations

import logging
from collections.abc import Iterable, Mapping
from pathlib import Path

from ..base import java_properties
from ..base.config import Config
from ..base.kafka_property_names import KAFKA_PROPERTY_NAMES
from ..base.listener_names import without_prefix
from ..base.settings import SettingError, Settings
from ..base.wording import meant

logger = logging.getLogger(__name__)


def declared_classes() -> list[type[Settings]]:
    """Every Settings class of Ottla, in the order of the reference page."""
    from ..controller.configs.password_settings import PasswordEncoderSettings
    from ..controller.quorum.settings import QuorumSettings
    from ..controller.raft.settings import MetadataLogSettings, RaftSettings
    from ..controller.settings import ControllerSettings
    from ..controller.token_settings import DelegationTokenSettings
    from ..controller.zookeeper.store.zookeeper_settings import ZooKeeperSettings
    from ..group_coordinator.consumer_group_settings import ConsumerGroupSettings
    from ..group_coordinator.settings import GroupSettings
    from ..group_coordinator.share_group_settings import ShareGroupSettings
    from ..group_coordinator.share_record_settings import ShareRecordSettings
    from ..log.settings import LogCleanerSettings, LogManagerSettings, LogSettings
    from ..replication.settings import QuotaSettings, ReplicationSettings
    from ..security.authorizer_settings import AuthorizerSettings
    from ..security.quota_settings import ClientQuotaSettings, ConnectionRateSettings
    from ..security.tls_settings import TlsSettings
    from ..share_coordinator.settings import ShareCoordinatorSettings
    from ..transaction_coordinator.settings import TransactionSettings
    from .auth.oauthbearer_settings import OauthbearerSettings
    from .auth.sasl_settings import SaslSettings
    from .formation_settings import FormationSettings
    from .settings import BrokerSettings

    return [
        BrokerSettings,
        SaslSettings,
        TlsSettings,
        LogSettings,
        LogManagerSettings,
        LogCleanerSettings,
        ReplicationSettings,
        QuotaSettings,
        ClientQuotaSettings,
        ConnectionRateSettings,
        ControllerSettings,
        QuorumSettings,
        RaftSettings,
        MetadataLogSettings,
        FormationSettings,
        ZooKeeperSettings,
        DelegationTokenSettings,
        PasswordEncoderSettings,
        OauthbearerSettings,
        GroupSettings,
        ConsumerGroupSettings,
        ShareGroupSettings,
        TransactionSettings,
        ShareCoordinatorSettings,
        ShareRecordSettings,
        AuthorizerSettings,
    ]


def declared_names() -> set[str]:
    """Every broker property that Ottla uses."""
    return {
        name for settings in declared_classes() for declared in settings.declared.values() for name in declared.names()
    }


def read_properties(path: Path) -> dict[str, str]:
    """The properties of a file in Java's format. Raises OSError; SettingError when it is not one."""
    try:
        return java_properties.read(path)
    except ValueError as error:
        raise SettingError(str(path), "(file)", f"not a properties file: {error}") from None


def parse_overrides(overrides: Iterable[str]) -> dict[str, str]:
    """``name=value`` strings. Raises SettingError for an unknown name."""
    properties = {}
    for override in overrides:
        name, separator, value = override.partition("=")
        name = name.strip()
        if not separator or not name:
            raise SettingError(override, "", "an override is name=value")
        properties[name] = value.strip()
    refuse_unknown(properties)
    return properties


def refuse_unknown(properties: Mapping[str, str]) -> None:
    """Raise SettingError for a name that neither Ottla nor Kafka has, with the one that may have been meant."""
    known = declared_names() | KAFKA_PROPERTY_NAMES
    for name, value in properties.items():
        if without_prefix(name) not in known:
            raise SettingError(name, value, f"no such property{meant(without_prefix(name), known)}")


def warn_of_unused(properties: Mapping[str, str]) -> None:
    """One warning for each property that has no effect."""
    names = declared_names()
    for name in sorted(properties):
        plain = without_prefix(name)
        if plain in names:
            continue
        if plain in KAFKA_PROPERTY_NAMES:
            logger.warning("%s is a property of Kafka that Ottla does not use", name)
        else:
            close = meant(plain, names | KAFKA_PROPERTY_NAMES)
            logger.warning("%s is not a property that Kafka or Ottla knows%s", name, close)


def load_config(properties: Mapping[str, str]) -> Config:
    """A Config in which every declared value was parsed once, so that the start finds a malformed one. Raises SettingError."""
    config = Config(properties)
    for settings in declared_classes():
        config.settings(settings)
    return config
