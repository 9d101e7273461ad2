"""Settings as entries of DescribeConfigs and CreateTopics: value, source and synonyms.

Every declared setting is shown, set or not. The synonyms (KIP-226) list the places where a value was found, in the order of
precedence: the override of the topic or the group, then the property set on this broker while it runs, that set on all brokers,
that given at the start, then the default. A setting whose default comes from another property (``log.retention.ms`` from
``log.retention.hours``) has no default of its own.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence, Set
from enum import IntEnum
from typing import NamedTuple

from ..base.config import Config
from ..base.listener_names import without_prefix
from ..base.settings import ConfigValueType, Setting, Settings
from ..controller.configs.client_metrics_configs import CLIENT_METRICS_SETTINGS
from ..controller.configs.unused_configs import UNUSED
from ..group_coordinator.consumer_group_settings import ConsumerGroupSettings
from ..group_coordinator.group_configs import GROUP_SETTINGS, broker_property
from ..group_coordinator.share_group_settings import ShareGroupSettings
from ..group_coordinator.share_record_settings import ShareRecordSettings
from ..log.settings import LogSettings

_OF_GROUPS = (ConsumerGroupSettings, ShareGroupSettings, ShareRecordSettings)


class ConfigSource(IntEnum):
    """Where a value comes from, numbered as on the wire."""

    TOPIC_CONFIG = 1
    DYNAMIC_BROKER_CONFIG = 2
    DYNAMIC_DEFAULT_BROKER_CONFIG = 3
    STATIC_BROKER_CONFIG = 4
    DEFAULT_CONFIG = 5
    CLIENT_METRICS_CONFIG = 7
    GROUP_CONFIG = 8


class Synonym(NamedTuple):
    """One place where a value was found."""

    name: str
    value: str | None
    source: ConfigSource


class ConfigEntry(NamedTuple):
    """One setting of a resource."""

    name: str
    value: str | None
    """None for a setting that is not set, and for a sensitive one."""
    source: ConfigSource
    synonyms: tuple[Synonym, ...]
    kind: ConfigValueType
    documentation: str
    read_only: bool

    @property
    def is_sensitive(self) -> bool:
        # An unknown property may have a password in it.
        return self.kind in (ConfigValueType.PASSWORD, ConfigValueType.UNKNOWN)


def topic_entries(config: Config, overrides: Mapping[str, str], wanted: Set[str] = frozenset()) -> list[ConfigEntry]:
    """The topic-level settings of a topic with these overrides, by name: the ``wanted`` ones, or all where none is named."""
    settings = config.settings(LogSettings)
    effective = settings.with_topic_overrides(overrides) if overrides else settings
    known = LogSettings.topic_settings()
    names = sorted(known.keys() & wanted if wanted else known)
    return [_topic_entry(config, name, known[name], effective, name in overrides) for name in names]


def _topic_entry(
    config: Config, name: str, declared: Setting, effective: LogSettings, is_overridden: bool
) -> ConfigEntry:
    value = declared.render(getattr(effective, declared.attribute))
    synonyms = list(_broker_synonyms(config, declared))
    if is_overridden:
        synonyms.insert(0, Synonym(name, value or "", ConfigSource.TOPIC_CONFIG))
    source = synonyms[0].source if synonyms else ConfigSource.DEFAULT_CONFIG
    return ConfigEntry(name, value, source, tuple(synonyms), declared.kind, declared.doc, read_only=False)


def broker_entries(config: Config, settings: Iterable[Settings]) -> list[ConfigEntry]:
    """Every broker property that the given settings declare, or that was set at run time, by name."""
    groups = list(settings)
    declared_kinds = {each.name: each.kind for group in groups for each in group.declared.values() if each.name}
    set_at_run_time = config.dynamic_default | config.dynamic_broker
    entries = {entry.name: entry for entry in _undeclared_entries(config, set_at_run_time, declared_kinds)}
    for group in groups:
        for declared in group.declared.values():
            for entry in _broker_entries(config, declared, group):
                entries[entry.name] = entry
    return [entries[name] for name in sorted(entries)]


def _broker_entries(config: Config, declared: Setting, settings: Settings) -> Iterator[ConfigEntry]:
    if declared.name is not None:
        value = (
            None
            if _has_no_own_default(declared) and not config.is_given(declared.name)
            else getattr(settings, declared.attribute)
        )
        rendered = None if declared.kind is ConfigValueType.PASSWORD else declared.render(value)
        synonyms = tuple(_broker_synonyms(config, declared))
        source = synonyms[0].source if synonyms else ConfigSource.DEFAULT_CONFIG
        read_only = not declared.is_dynamic
        yield ConfigEntry(declared.name, rendered, source, synonyms, declared.kind, declared.doc, read_only)
    for fallback in declared.fallbacks:
        default = None if fallback.default is None else str(fallback.default)
        found = tuple(_found(fallback.name, config.properties.get(fallback.name), default))
        value = found[0].value if found else None
        source = found[0].source if found else ConfigSource.DEFAULT_CONFIG
        doc = f"The default of {declared.name}."
        kind = ConfigValueType.LONG if fallback.factor == 1 else ConfigValueType.INT
        yield ConfigEntry(fallback.name, value, source, found, kind, doc, read_only=True)


def _broker_synonyms(config: Config, declared: Setting) -> Iterator[Synonym]:
    """The broker properties behind a setting that have a value: those given first, then the default."""
    if declared.name is None or declared.kind is ConfigValueType.PASSWORD:
        return
    for source, properties in _layers(config):
        for name in declared.names():
            if name in properties:
                yield Synonym(name, properties[name], source)
    default = declared.render(declared.default)
    if default is not None and not _has_no_own_default(declared):
        yield Synonym(declared.name, default, ConfigSource.DEFAULT_CONFIG)


def default_broker_entries(config: Config, settings: Iterable[Settings]) -> list[ConfigEntry]:
    """What was set for all brokers at run time, by name."""
    declared = {entry.name: entry for entry in broker_entries(config, settings)}
    entries = []
    for name, value in sorted(config.dynamic_default.items()):
        entry = declared[name]
        source = ConfigSource.DYNAMIC_DEFAULT_BROKER_CONFIG
        shown = None if entry.is_sensitive else value
        entries.append(entry._replace(value=shown, source=source, synonyms=(Synonym(name, shown, source),)))
    return entries


def group_entries(config: Config, configs: Mapping[str, str]) -> list[ConfigEntry]:
    """All configs of a group of which these are set, by name."""
    brokers = {each.name: each for kind in _OF_GROUPS for each in kind.declared.values()}
    entries = []
    for name, declared in sorted(GROUP_SETTINGS.items()):
        behind = brokers.get(broker_property(name))
        if behind is None:
            default = declared.render(declared.default)
            synonyms = [Synonym(broker_property(name) or name, default, ConfigSource.DEFAULT_CONFIG)]
        else:
            synonyms = list(_broker_synonyms(config, behind))
        entries.append(_kept_entry(declared, name, configs, ConfigSource.GROUP_CONFIG, synonyms))
    return entries


def client_metrics_entries(configs: Mapping[str, str]) -> list[ConfigEntry]:
    """All configs of a subscription to clients' metrics of which these are set, by name. A default is no synonym."""
    return [
        _kept_entry(each, name, configs, ConfigSource.CLIENT_METRICS_CONFIG, [])
        for name, each in sorted(CLIENT_METRICS_SETTINGS.items())
    ]


def _kept_entry(
    declared: Setting, name: str, configs: Mapping[str, str], source: ConfigSource, behind: Sequence[Synonym]
) -> ConfigEntry:
    """A config that only the cluster's metadata has; ``behind`` are the places where its default stands."""
    synonyms = ([Synonym(name, configs[name], source)] if name in configs else []) + [*behind]
    value, found = declared.render(declared.default), ConfigSource.DEFAULT_CONFIG
    if synonyms:
        _, value, found = synonyms[0]
    return ConfigEntry(name, value, found, tuple(synonyms), declared.kind, declared.doc, read_only=False)


def _undeclared_entries(
    config: Config, names: Iterable[str], declared: Mapping[str, ConfigValueType]
) -> Iterator[ConfigEntry]:
    """Properties set at run time that are not declared by that name: for one listener, or of no use to Ottla."""
    for name in names:
        base = without_prefix(name)
        kind = declared.get(base) or (UNUSED[base].kind if base in UNUSED else ConfigValueType.UNKNOWN)
        synonyms = tuple(
            Synonym(
                name, None if kind in (ConfigValueType.PASSWORD, ConfigValueType.UNKNOWN) else properties[name], source
            )
            for source, properties in _layers(config)
            if name in properties
        )
        doc = f"{base} of one listener." if base in declared else "Kept, but of no use to Ottla."
        yield ConfigEntry(
            name, synonyms[0].value, synonyms[0].source, synonyms, kind, doc, read_only=name not in UNUSED
        )


def _layers(config: Config) -> tuple[tuple[ConfigSource, Mapping[str, str]], ...]:
    return (
        (ConfigSource.DYNAMIC_BROKER_CONFIG, config.dynamic_broker),
        (ConfigSource.DYNAMIC_DEFAULT_BROKER_CONFIG, config.dynamic_default),
        (ConfigSource.STATIC_BROKER_CONFIG, config.properties),
    )


def _found(name: str, given: str | None, default: str | None) -> Iterator[Synonym]:
    if given is not None:
        yield Synonym(name, given, ConfigSource.STATIC_BROKER_CONFIG)
    if default is not None:
        yield Synonym(name, default, ConfigSource.DEFAULT_CONFIG)


def _has_no_own_default(declared: Setting) -> bool:
    return any(fallback.default is not None for fallback in declared.fallbacks)
