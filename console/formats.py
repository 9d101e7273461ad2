"""Formatting of numbers, sizes, durations and times.

Numbers are text in a page: a browser would round those of 64 bits.
"""

from __future__ import annotations

from datetime import UTC, datetime

from markupsafe import Markup

_UNITS = ("B", "KiB", "MiB", "GiB", "TiB", "PiB", "EiB")
_NONE = Markup('<span class="none" title="not known here">&ndash;</span>')


def number(value: int | float | None) -> str | Markup:
    """With commas between thousands."""
    return _NONE if value is None else f"{value:,}" if isinstance(value, int) else f"{value:,.1f}"


def nbytes(value: int | float | None) -> str | Markup:
    """In the largest unit that it has one of; the exact number is its title."""
    if value is None:
        return _NONE
    amount, unit = float(value), 0
    while abs(amount) >= 1024 and unit < len(_UNITS) - 1:
        amount, unit = amount / 1024, unit + 1
    shown = f"{amount:.0f}" if unit == 0 else f"{amount:.1f}"
    return Markup('<span title="{} bytes">{} {}</span>').format(f"{round(value):,}", shown, _UNITS[unit])


def rate(value: float | None) -> str | Markup:
    """Of something a second; nothing for 0, so that what moves is seen."""
    if value is None:
        return _NONE
    return (
        Markup('<span class="none">0</span>') if value < 0.05 else f"{value:,.1f}" if value < 100 else f"{value:,.0f}"
    )


def byte_rate(value: float | None) -> str | Markup:
    if value is None:
        return _NONE
    return Markup('<span class="none">0</span>') if value < 0.5 else Markup("{}/s").format(nbytes(value))


def duration(ms: int | float | None) -> str | Markup:
    """Of milliseconds, in one or two units."""
    if ms is None:
        return _NONE
    if ms < 0:
        return "without end"
    seconds = int(ms / 1000)
    if seconds < 1:
        return f"{ms:.0f} ms"
    for size, unit, smaller, smaller_unit in ((86400, "d", 3600, "h"), (3600, "h", 60, "min"), (60, "min", 1, "s")):
        if seconds >= size:
            rest = seconds % size // smaller
            return f"{seconds // size:,} {unit}" + (f" {rest} {smaller_unit}" if rest and seconds < 100 * size else "")
    return f"{seconds} s"


def limit(value: int | None) -> str | Markup:
    """Of bytes, where -1 is none."""
    return _NONE if value is None else "no limit" if value < 0 else nbytes(value)


def moment(ms: int | None) -> str | Markup:
    """A time, in UTC; the page shows it in the browser's zone."""
    if ms is None or ms < 0:
        return _NONE
    try:
        shown = datetime.fromtimestamp(ms / 1000, UTC)
    except (OverflowError, ValueError, OSError):
        return Markup('<span title="ms since 1970">{}</span>').format(f"{ms} ms")
    text = shown.strftime("%Y-%m-%d %H:%M:%S.") + f"{ms % 1000:03}"
    return Markup('<time datetime="{}Z">{} UTC</time>').format(text.replace(" ", "T"), text)


def group_type(name: str) -> str | Markup:
    """The type of a group, as ListGroups tells it."""
    return {"": _NONE, "streams": "Streams"}.get(name, name)


def config_source(name: str) -> str:
    """The source of a setting in words: DYNAMIC_DEFAULT_BROKER_CONFIG is dynamic default broker."""
    return name.removesuffix("_CONFIG").replace("_", " ").lower()


FILTERS = {
    "number": number,
    "nbytes": nbytes,
    "rate": rate,
    "byte_rate": byte_rate,
    "duration": duration,
    "limit": limit,
    "moment": moment,
    "group_type": group_type,
    "config_source": config_source,
}
