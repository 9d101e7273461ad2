"""Time ranges by name, as buttons of a form: the last hour, today, yesterday.

A button sends ``range``, which the server turns into ``from=time``, ``at`` and ``until`` of the address, so that a shared
link always finds the same records. Days are those of UTC here; a browser with scripts fills in those of its own zone instead.
"""

from __future__ import annotations

from collections.abc import Mapping
from datetime import UTC, datetime, timedelta

from .questions import WrongQuestionError

RANGES = (("hour", "Last hour"), ("today", "Today"), ("yesterday", "Yesterday"))
"""Name and text of each."""


def range_parameters(name: str, now_ms: int) -> Mapping[str, str]:
    """The parameters of an address. Raises WrongQuestionError."""
    now = datetime.fromtimestamp(now_ms / 1000, UTC)
    midnight = now.replace(hour=0, minute=0, second=0, microsecond=0)
    match name:
        case "hour":
            start, end = now - timedelta(hours=1), None
        case "today":
            start, end = midnight, None
        case "yesterday":
            start, end = midnight - timedelta(days=1), midnight
        case _:
            raise WrongQuestionError(f"There is no time range {name}: {', '.join(each for each, _ in RANGES)}.", "at")
    return {"from": "time", "at": _text(start), "until": "" if end is None else _text(end)}


def _text(moment: datetime) -> str:
    return moment.strftime("%Y-%m-%dT%H:%M:%SZ")
