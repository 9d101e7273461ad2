"""Validation of the configs of a client metrics subscription, names and values (KIP-714; pure functions).

Source: Kafka's ClientMetricsConfigs. Patterns are Python's regular expressions here, and Java's there.
"""

from __future__ import annotations

import re
from collections.abc import Mapping

from ...base.errors import ErrorCode, KafkaError
from ...base.settings import ConfigValueType, Setting, SettingError

_METRICS, _INTERVAL, _MATCH = "metrics", "interval.ms", "match"
_SHORTEST_MS, _LONGEST_MS = 100, 3_600_000
_MATCHED = (
    "client_instance_id",
    "client_id",
    "client_software_name",
    "client_software_version",
    "client_source_address",
    "client_source_port",
)
CLIENT_METRICS_SETTINGS = {
    name: Setting(name, None, default, kind, None, None, None, None, (), doc)
    for name, kind, default, doc in (
        (_INTERVAL, ConfigValueType.INT, 300_000, "How often clients push their metrics."),
        (_MATCH, ConfigValueType.LIST, (), "The clients that are matched, by their own descriptions."),
        (_METRICS, ConfigValueType.LIST, (), "How the names of the metrics begin; * for all."),
    )
}
"""All configs of a subscription, by name."""


def check_client_metrics(name: str, configs: Mapping[str, str]) -> None:
    """Check all configs of a subscription. Raises KafkaError INVALID_REQUEST, INVALID_CONFIG."""
    if not name:
        raise KafkaError(ErrorCode.INVALID_REQUEST, "Subscription name can't be empty")
    for key in configs:
        if key not in CLIENT_METRICS_SETTINGS:
            raise KafkaError(ErrorCode.INVALID_REQUEST, f"Unknown client metrics configuration: {key}")
    try:
        values = {key: CLIENT_METRICS_SETTINGS[key].parse(text) for key, text in configs.items()}
    except SettingError as error:
        raise KafkaError(ErrorCode.INVALID_CONFIG, str(error)) from None
    interval = values.get(_INTERVAL)
    if interval is not None and not _SHORTEST_MS <= interval <= _LONGEST_MS:
        raise KafkaError(
            ErrorCode.INVALID_REQUEST,
            f"Invalid value {interval} for {_INTERVAL}, interval must be between 100 and 3600000 (1 hour)",
        )
    for pattern in values.get(_MATCH, ()):
        if not _is_pattern(pattern):
            raise KafkaError(ErrorCode.INVALID_CONFIG, f"Illegal client matching pattern: {pattern}")


def _is_pattern(text: str) -> bool:
    """Whether it is the name of something about a client, and what that looks like: ``client_id=a.*``."""
    parts = [part.strip() for part in text.split("=")]
    if len(parts) != 2 or parts[0] not in _MATCHED or not parts[1]:
        return False
    try:
        re.compile(parts[1])
    except re.error:
        return False
    return True
