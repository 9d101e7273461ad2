"""Validation of topic configs: names and values are those of the declared topic-level settings (pure functions).

Incremental changes follow KIP-339: SET and DELETE for every setting, APPEND and SUBTRACT for lists. If the list is not set on
the topic they start from its built-in default, and not from the brokers' configuration, as in Kafka
(``ConfigurationControlManager``). A list with nothing left stays empty.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from enum import IntEnum
from typing import NamedTuple

from ...base.errors import ErrorCode, KafkaError
from ...base.settings import ConfigValueType, Setting, SettingError
from ...log.settings import LogSettings


class ConfigOpType(IntEnum):
    """What an incremental change does to one setting."""

    SET = 0
    DELETE = 1
    APPEND = 2
    SUBTRACT = 3


class ConfigChange(NamedTuple):
    """One incremental change."""

    name: str
    change: ConfigOpType
    value: str | None


def check_overrides(settings: LogSettings, overrides: Mapping[str, str | None]) -> dict[str, str]:
    """Check overrides; returns them. Raises KafkaError INVALID_CONFIG if one is unknown or malformed, or two contradict."""
    known = LogSettings.topic_settings()
    checked = {}
    for name, value in overrides.items():
        if name not in known:
            raise KafkaError(ErrorCode.INVALID_CONFIG, f"Unknown topic config name: {name}")
        if value is None:
            raise KafkaError(ErrorCode.INVALID_CONFIG, f"Null value not supported for topic configs: {name}")
        checked[name] = value
    try:
        effective = settings.with_topic_overrides(checked)
    except SettingError as error:
        raise KafkaError(ErrorCode.INVALID_CONFIG, str(error)) from None
    if effective.max_compaction_lag_ms < effective.min_compaction_lag_ms:
        raise KafkaError(
            ErrorCode.INVALID_CONFIG,
            f"conflict topic config setting min.compaction.lag.ms ({effective.min_compaction_lag_ms}) > "
            f"max.compaction.lag.ms ({effective.max_compaction_lag_ms})",
        )
    if effective.remote_storage_enable:
        why = "Tiered Storage functionality is disabled in the broker. Topic cannot be configured with remote log storage."
        raise KafkaError(ErrorCode.INVALID_CONFIG, why)
    return checked


def not_of_type_list(name: str, change: ConfigOpType) -> str:
    """The message about an APPEND or SUBTRACT to a setting that is no list."""
    return f"Can't {change.name} to key {name} because its type is not LIST."


def apply_changes(
    known: Mapping[str, Setting],
    overrides: Mapping[str, str],
    changes: Iterable[ConfigChange],
    not_a_list: Callable[[str, ConfigOpType], str] = not_of_type_list,
) -> dict[str, str | None]:
    """``overrides`` after ``changes``, each of another setting; not checked yet.

    ``known`` are the settings there are, by name; ``not_a_list`` is the message about those that are no list.

    Raises KafkaError INVALID_REQUEST, INVALID_CONFIG.
    """
    result: dict[str, str | None] = dict(overrides)
    for name, change, value in changes:
        if change is ConfigOpType.DELETE:
            result.pop(name, None)
            continue
        if value is None:
            raise KafkaError(ErrorCode.INVALID_REQUEST, f"Null value not supported for: {name}")
        if change is ConfigOpType.SET:
            result[name] = value
            continue
        declared = known.get(name)
        if declared is None or declared.kind is not ConfigValueType.LIST:
            raise KafkaError(ErrorCode.INVALID_CONFIG, not_a_list(name, change))
        current = result[name] if name in overrides else declared.render(declared.default)
        result[name] = ",".join(_change_list(current or "", change, value))
    return result


def _change_list(current: str, change: ConfigOpType, value: str) -> list[str]:
    items = [item.strip() for item in current.split(",") if item.strip()]
    named = [item.strip() for item in value.split(",")]
    if change is ConfigOpType.APPEND:
        items.extend(item for item in named if item not in items)
    else:
        items = [item for item in items if item not in named]
    return items
