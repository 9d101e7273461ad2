"""``ottla top``: a broker's view of itself, drawn again and again; the same rows that its console shows.

They come as JSON from the console's ``/top.json``, in which whole numbers are text.
"""

from __future__ import annotations

import json
import re
import time
import urllib.error
import urllib.request
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any, NamedTuple

from ...base.addresses import join_host_port, split_host_port
from .output import console, is_terminal, print_json, size_text
from .running import ToolError, UsageError

if TYPE_CHECKING:
    from rich.console import RenderableType

_SECONDS = 10.0
_UNSEEN = re.compile("[\x00-\x1f\x7f-\x9f\u061c\u200b-\u200f\u2028-\u202e\u2060-\u206f\ufeff]")
_KEPT_ERRORS = 5
_LONGEST = 60


class Field(NamedTuple):
    """A column: its head, the value's name, and how it is written."""

    head: str
    name: str
    show: Callable[[Any], str]


def show(address: str, interval: float, *, once: bool, as_json: bool) -> None:
    """Print what the broker is doing, or draw it until interrupted. Raises ToolError."""
    try:
        place = join_host_port(*split_host_port(address, 8080))
    except ValueError as error:
        raise UsageError(f"--console: {error}") from None
    if as_json:
        print_json(_look(place))
    elif once or not is_terminal():
        console().print(_drawn(_look(place), place))
    else:
        _follow(place, interval)


def _follow(place: str, interval: float) -> None:
    from rich.live import Live
    from rich.text import Text

    seen = _look(place)
    with Live(_drawn(seen, place), console=console(), screen=True, auto_refresh=False) as live:
        while True:
            time.sleep(interval)
            try:
                live.update(_drawn(_look(place), place), refresh=True)
            except ToolError as error:
                live.update(Text(f"ottla: {error}; looking again"), refresh=True)


def _look(place: str) -> dict[str, Any]:
    """Raises ToolError."""
    try:
        with urllib.request.urlopen(f"http://{place}/top.json", timeout=_SECONDS) as answer:
            seen = json.load(answer)
    except urllib.error.HTTPError as error:
        error.close()
        raise ToolError(f"what answers at {place} is no console of Ottla's: it says {error.code}") from None
    except (OSError, ValueError) as error:
        why = getattr(error, "reason", error)
        raise ToolError(f"no console answers at {place} ({why}); 'ottla serve --console {place}' has one") from None
    if not isinstance(seen, dict) or not seen.keys() >= {"broker", "topics", "groups", "errors"}:
        raise ToolError(f"what answers at {place} is no console of Ottla's")
    return seen


def _drawn(seen: dict[str, Any], place: str) -> RenderableType:
    from rich.console import Group
    from rich.text import Text

    broker, rates = seen["broker"], seen["broker"]["rates"]
    lines = [
        Text(
            f"Ottla broker {broker['broker_id']} at {broker['bootstrap_servers']}, up {_duration(broker['up_ms'])}",
            "bold",
        ),
        Text(
            f"in {_rate(rates['bytes_in'])}, {rates['messages_in']:,.0f} records/s   out {_rate(rates['bytes_out'])}   "
            f"requests {broker['requests']:,.0f}/s, errors {broker['errors']:,.0f}/s   loop {broker['loop_lag_ms']:.1f} ms late"
        ),
        Text(
            f"topics {broker['topics']}   partitions {broker['partitions']}   groups {broker['groups']}   "
            f"connections {broker['connections']}"
        ),
        *(Text(plain(warning), "red") for warning in broker["warnings"]),
        Text(),
        _table(
            seen["topics"],
            Field("TOPIC", "name", plain),
            Field("IN", "rates", lambda value: _rate(value["bytes_in"])),
            Field("RECORDS/S", "rates", lambda value: f"{value['messages_in']:,.1f}"),
            Field("OUT", "rates", lambda value: _rate(value["bytes_out"])),
            Field("SIZE", "size", lambda value: size_text(int(value))),
            Field("RECORDS", "records", _number),
            Field("LARGEST LAG", "max_lag", _number),
        ),
    ]
    if seen["groups"]:
        lines += [
            Text(),
            _table(
                seen["groups"],
                Field("GROUP", "group_id", plain),
                Field("STATE", "state", plain),
                Field("MEMBERS", "members", _number),
                Field("LAG", "lag", _number),
                Field("LARGEST", "max_lag", _number),
            ),
        ]
    if seen["errors"]:
        lines += [
            Text(),
            _table(
                seen["errors"][:_KEPT_ERRORS],
                Field("ERROR", "error", plain),
                Field("API", "api", plain),
                Field("CLIENT", "client_id", plain),
                Field("COUNT", "count", _number),
            ),
        ]
    return Group(*lines)


def _table(rows: Sequence[dict[str, Any]], *fields: Field) -> RenderableType:
    from rich.table import Table

    table = Table(box=None, pad_edge=False, header_style="bold")
    for place, field in enumerate(fields):
        table.add_column(field.head, justify="left" if place == 0 or field.show is plain else "right", no_wrap=True)
    for row in rows:
        table.add_row(*(field.show(row[field.name]) for field in fields))
    return table


def plain(text: str) -> str:
    """Text that clients chose, without what would change the terminal."""
    seen = _UNSEEN.sub(lambda found: f"\\x{ord(found.group()):02x}", text)
    return seen if len(seen) <= _LONGEST else seen[: _LONGEST - 1] + "…"


def _number(value: str | None) -> str:
    return "-" if value is None else f"{int(value):,}"


def _rate(value: float) -> str:
    return f"{size_text(round(value))}/s"


def _duration(ms: str) -> str:
    minutes, seconds = divmod(int(ms) // 1000, 60)
    hours, minutes = divmod(minutes, 60)
    return f"{hours} h {minutes} min" if hours else f"{minutes} min {seconds} s"
