"""The log output of a broker: levels by area, and one line per event, as text or as JSON.

An area is a folder of the package, which is the second word of its loggers' names: ``ottla.log.segment`` is of ``log``.

As text, the trace of an unexpected error follows the line of its event. As JSON, an event is an object in one line: ``time``
(ISO 8601 in UTC), ``level``, ``area``, ``logger``, ``message``, and where there is one ``exception``; the lines of
``--trace`` have ``request`` too, and those of one of several brokers ``broker``.
"""

from __future__ import annotations

import json
import logging
import sys
from datetime import UTC, datetime

_LEVELS = ("debug", "info", "warning", "error")
_AREAS = (
    "base",
    "wire",
    "log",
    "replication",
    "group_coordinator",
    "transaction_coordinator",
    "share_coordinator",
    "share_partitions",
    "controller",
    "security",
    "handlers",
    "broker",
    "view",
    "console",
    "cli",
)
_FORMATS = ("text", "json")
_PACKAGE = __name__.partition(".")[0]


def configure_logging(levels: str, log_format: str, label: str | None = None) -> None:
    """Send the log to standard error. ``levels``: ``info`` or ``info,log=debug,handlers=warning``. Raises ValueError.

    ``label`` says in each line which of several brokers it is of.
    """
    general, by_area = parse_levels(levels)
    if log_format not in _FORMATS:
        raise ValueError(f"--log-format takes {' or '.join(_FORMATS)}, not {log_format}")
    handler = logging.StreamHandler(sys.stderr)
    handler.setFormatter(JsonFormatter(label) if log_format == "json" else TextFormatter(label))
    root = logging.getLogger()
    root.handlers[:] = [handler]
    root.setLevel(general.upper())
    for area, level in by_area.items():
        logging.getLogger(f"{_PACKAGE}.{area}").setLevel(level.upper())


def parse_levels(text: str) -> tuple[str, dict[str, str]]:
    """The general level, and those of areas. Raises ValueError."""
    general, by_area = "info", {}
    for word in text.lower().split(","):
        area, is_of_area, level = word.strip().rpartition("=")
        if level not in _LEVELS:
            raise ValueError(f"--log-level takes {', '.join(_LEVELS)}, not {level}")
        if not is_of_area:
            general = level
        elif area in _AREAS:
            by_area[area] = level
        else:
            raise ValueError(f"--log-level knows the areas {', '.join(_AREAS)}, not {area}")
    return general, by_area


class TextFormatter(logging.Formatter):
    """``2026-01-31 12:00:00,123 INFO ottla.broker.server: message``; what comes from a client cannot begin a line."""

    def __init__(self, label: str | None = None) -> None:
        of_broker = "" if label is None else f" {label.replace('%', '%%')}"
        super().__init__(f"%(asctime)s{of_broker} %(levelname)s %(name)s: %(message)s")

    def formatMessage(self, record: logging.LogRecord) -> str:
        return super().formatMessage(record).replace("\r", "\\r").replace("\n", "\\n")


class JsonFormatter(logging.Formatter):
    """An object in one line."""

    def __init__(self, label: str | None = None) -> None:
        super().__init__()
        self._label = label

    def format(self, record: logging.LogRecord) -> str:
        time = datetime.fromtimestamp(record.created, UTC).isoformat(timespec="milliseconds")
        package, _, rest = record.name.partition(".")
        event: dict[str, object] = {
            "time": time,
            "level": record.levelname.lower(),
            "area": rest.partition(".")[0] if package == _PACKAGE else package,
            "logger": record.name,
            "message": record.getMessage(),
        }
        if self._label is not None:
            event["broker"] = self._label
        request = getattr(record, "request", None)
        if request is not None:
            event["request"] = request
        if record.exc_info:
            event["exception"] = self.formatException(record.exc_info)
        return json.dumps(event, ensure_ascii=False, default=str)
