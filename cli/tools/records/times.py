"""Parsing of times and durations into milliseconds, as records have them; times count from 1970."""

from __future__ import annotations

import datetime
import re

from ..running import UsageError

_DAY_MS = 86_400_000
_UNITS = {"ms": 1, "s": 1_000, "m": 60_000, "h": 3_600_000, "d": _DAY_MS}
_SHORT = re.compile(r"(\d+(?:\.\d+)?)(ms|s|m|h|d)")
_ISO = re.compile(r"(-?)P(?:(\d+)D)?(?:T(?=\d)(?:(\d+)H)?(?:(\d+)M)?(?:(\d+(?:\.\d+)?)S)?)?", re.IGNORECASE)


def parse_time_ms(text: str) -> int:
    """ISO 8601, in UTC where it names no zone, or milliseconds since 1970. Raises UsageError."""
    if text.isdigit() and len(text) > 8:
        return int(text)
    try:
        time = datetime.datetime.fromisoformat(text)
    except ValueError:
        raise UsageError(f"a time is 2026-01-31T12:00:00, or milliseconds since 1970, not {text!r}") from None
    if time.tzinfo is None:
        time = time.replace(tzinfo=datetime.UTC)
    return round(time.timestamp() * 1000)


def parse_duration_ms(text: str) -> int:
    """``90s``, ``1h30m``, or as ISO 8601 and Kafka's tools have it: ``PT1H30M``, ``P7D``. Raises UsageError."""
    if (iso := _ISO.fullmatch(text)) and text[-1].upper() not in "PT":
        sign, days, hours, minutes, seconds = iso.groups()
        named = ((days, "d"), (hours, "h"), (minutes, "m"), (seconds, "s"))
        length = sum(float(number) * _UNITS[unit] for number, unit in named if number)
        return round(-length if sign else length)
    parts = _SHORT.findall(text)
    if not parts or "".join(map("".join, parts)) != text:
        raise UsageError(f"a duration is 90s, 1h30m or PT1H30M, not {text!r}")
    return round(sum(float(number) * _UNITS[unit] for number, unit in parts))
