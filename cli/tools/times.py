"""Times as people type them, and as records carry them: milliseconds since 1970."""

from __future__ import annotations

import datetime

from .running import UsageError


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
