"""``ottla top``: a broker's view of itself, redrawn periodically, with the rows that its console shows.

They come as JSON from the console's ``/top.json``, in which whole numbers are text.
"""

from __future__ import annotations

import contextlib
import re
import time
from collections.abc import Callable, Iterator, Sequence
from typing import TYPE_CHECKING, Any, NamedTuple

from ...base.addresses import split_host_port
from ...base.wording import counted
from .client import ClusterConnection
from .console_client import ConsoleClient
from .keys import Pressed, pressed_keys
from .output import console, is_terminal, print_json, size_text
from .running import ToolError, UsageError

if TYPE_CHECKING:
    from rich.console import RenderableType

_UNSEEN = re.compile("[\x00-\x1f\x7f-\x9f\u061c\u200b-\u200f\u2028-\u202e\u2060-\u206f\ufeff]")
_KEPT_ERRORS = 5
_LONGEST, _LONGEST_FINDING = 60, 300


class TopColumn(NamedTuple):
    """A column: its head, the value's name, and how it is written."""

    head: str
    name: str
    show: Callable[[Any], str]


def show(connection: ClusterConnection, address: str, interval: float, *, once: bool, as_json: bool) -> None:
    """Print what the broker is doing, or draw it until interrupted; ``connection`` has the log-in. Raises ToolError."""
    try:
        host, port = split_host_port(address, 8080)
    except ValueError as error:
        raise UsageError(f"--console: {error}") from None
    source = ConsoleClient(host, port, connection.security())
    if as_json:
        print_json(source.look())
    elif once or not is_terminal():
        console().print(_drawn(source.look()))
    else:
        _follow(source, interval)


def _follow(source: ConsoleClient, interval: float) -> None:
    from rich.live import Live
    from rich.text import Text

    with (
        contextlib.suppress(KeyboardInterrupt),  # how it ends
        pressed_keys() as pressed,
        Live(_drawn(source.look()), console=console(), screen=True, auto_refresh=False) as live,
    ):
        while not _is_quit(pressed, interval):
            try:
                live.update(_drawn(source.look()), refresh=True)
            except ToolError as error:
                live.update(Text(f"ottla: {error}; looking again"), refresh=True)


def _is_quit(pressed: Pressed, seconds: float) -> bool:
    """Whether q is pressed within this time. Other keys change nothing, the time of the next look neither."""
    deadline = time.monotonic() + seconds
    while (left := deadline - time.monotonic()) > 0:
        if pressed(left) in ("q", "Q"):
            return True
    return False


def _drawn(seen: dict[str, Any]) -> RenderableType:
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
        *(Text(line, style) for line, style in _findings(broker)),
        Text(),
        _table(
            seen["topics"],
            TopColumn("TOPIC", "name", plain),
            TopColumn("IN", "rates", lambda value: _rate(value["bytes_in"])),
            TopColumn("RECORDS/S", "rates", lambda value: f"{value['messages_in']:,.1f}"),
            TopColumn("OUT", "rates", lambda value: _rate(value["bytes_out"])),
            TopColumn("SIZE", "size", lambda value: size_text(int(value))),
            TopColumn("RECORDS", "records", _number),
            TopColumn("LARGEST LAG", "max_lag", _number),
        ),
    ]
    if seen["groups"]:
        lines += [
            Text(),
            _table(
                seen["groups"],
                TopColumn("GROUP", "group_id", plain),
                TopColumn("STATE", "state", plain),
                TopColumn("MEMBERS", "members", _number),
                TopColumn("LAG", "lag", _number),
                TopColumn("LARGEST", "max_lag", _number),
            ),
        ]
    if seen["errors"]:
        lines += [
            Text(),
            _table(
                seen["errors"][:_KEPT_ERRORS],
                TopColumn("ERROR", "error", plain),
                TopColumn("API", "api", plain),
                TopColumn("CLIENT", "client_id", plain),
                TopColumn("COUNT", "count", _number),
            ),
        ]
    return Group(*lines)


def _findings(broker: dict[str, Any]) -> Iterator[tuple[str, str]]:
    """A line for each finding, and one for what could not be looked at; with their styles."""
    for finding in broker["findings"]:
        named = [plain(subject["name"]) for subject in finding["subjects"]]
        more = [] if len(named) >= int(finding["count"]) else ["…"]
        names = f": {', '.join((*named, *more))}" if named else ""
        yield plain(finding["what"], _LONGEST_FINDING) + names, "red" if finding["severity"] == "problem" else "yellow"
    missing = [check for check in broker["checks"] if check["why_not"]]
    if missing:
        yield f"not checked, or not completely: {'; '.join(check['what'] for check in missing)}", "dim"
    elif not broker["findings"]:
        yield f"nothing wrong in {counted(len(broker['checks']), 'check')}", "green"


def _table(rows: Sequence[dict[str, Any]], *fields: TopColumn) -> RenderableType:
    """Where it is too wide for the terminal, names are cut, and numbers are not."""
    from rich.table import Table
    from rich.text import Text

    table = Table(box=None, pad_edge=False, header_style="bold")
    for field in fields:
        is_name = field.show is plain
        # rich narrows the columns that it may wrap; their texts are in one line all the same.
        table.add_column(field.head, justify="left" if is_name else "right", no_wrap=not is_name)
    for row in rows:
        texts = [Text(field.show(row[field.name]), no_wrap=True, overflow="ellipsis") for field in fields]
        table.add_row(*texts)
    return table


def plain(text: str, longest: int = _LONGEST) -> str:
    """Text that clients chose, without what would change the terminal."""
    seen = _UNSEEN.sub(lambda found: f"\\x{ord(found.group()):02x}", text)
    return seen if len(seen) <= longest else seen[: longest - 1] + "…"


def _number(value: str | None) -> str:
    return "-" if value is None else f"{int(value):,}"


def _rate(value: float) -> str:
    return f"{size_text(round(value))}/s"


def _duration(ms: str) -> str:
    minutes, seconds = divmod(int(ms) // 1000, 60)
    hours, minutes = divmod(minutes, 60)
    return f"{hours} h {minutes} min" if hours else f"{minutes} min {seconds} s"
