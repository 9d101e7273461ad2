"""``python -m ottla.broker.settings_page`` prints the reference page of every setting, read from the declarations."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator

from ..base.settings import Setting, Settings
from .config_file import declared_classes

_HEAD = """\
# Configuration

All properties that Ottla reads, under Kafka's names. `make docs` generates this page from the source, and a test compares them.

Set a property in a file (`ottla serve --config server.properties`, in Java's format) or on the command line
(`--override name=value`, which takes precedence). A topic can set the *topic property* of a row, when it is created or later.
Properties that Ottla does not use are ignored with a warning. With a malformed value the broker does not start.

*Dynamic* properties can be changed while brokers run, for one broker or for all (`ottla configs set`, `kafka-configs --alter`).
They take precedence over the file and the command line, and survive restarts. Properties that are dynamic in Kafka but unused
in Ottla are accepted, stored and shown, with a warning in the log; passwords are refused. Listeners are changed on one broker
at a time: listeners with new names open, missing ones close with their connections, and the others keep their addresses and
protocols.

The prefix `listener.name.<listener>.` (in lower case) limits a setting of connections, TLS or SASL to one listener, and
`listener.name.<listener>.<mechanism>.` limits a setting of SASL to one mechanism of it.
"""


def page() -> str:
    """The whole page, in Markdown."""
    return "\n".join([_HEAD, *(line for settings in declared_classes() for line in _section(settings))])


def _section(settings: type[Settings]) -> Iterator[str]:
    words = re.findall("[A-Z][a-z]+", settings.__name__.removesuffix("Settings"))
    yield "## " + " ".join(words).capitalize().replace("Zoo keeper", "ZooKeeper")
    yield ""
    yield (settings.__doc__ or "").partition("\n")[0].replace("``", "`")
    yield ""
    yield from _table(
        ("property", "topic property", "type", "default", "allowed", "meaning"),
        (_row(declared) for declared in sorted(settings.declared.values(), key=_sort_key)),
    )
    yield ""


def _sort_key(declared: Setting) -> tuple[bool, str]:
    return declared.name is None, declared.name or declared.topic or ""


def _row(declared: Setting) -> tuple[str, ...]:
    default = declared.render(declared.default)
    also = "".join(f"; else `{fallback.name}`{_unit(fallback.factor)}" for fallback in declared.fallbacks)
    return (
        f"`{declared.name}`" if declared.name else "",
        f"`{declared.topic}`" if declared.topic else "",
        declared.kind.name.lower(),
        "" if default is None else f"`{default}`" if default else "empty",
        _allowed(declared),
        (declared.doc.rstrip(".") + also + "." + (" *Dynamic.*" if declared.is_dynamic else "")).strip(),
    )


def _unit(factor: int) -> str:
    names = {1: "", 1000: " (seconds)", 60_000: " (minutes)", 3_600_000: " (hours)"}
    return names.get(factor, f" (times {factor:,})")


def _allowed(declared: Setting) -> str:
    if declared.choices is not None:
        return ", ".join(f"`{choice}`" for choice in declared.choices)
    low, high = declared.at_least, declared.at_most
    if low is not None and high is not None:
        return f"{low} to {high}"
    if low is not None:
        return f"at least {low}"
    return f"at most {high}" if high is not None else ""


def _table(header: Iterable[str], rows: Iterable[Iterable[str]]) -> Iterator[str]:
    titles = list(header)
    yield _line(titles)
    yield _line("---" for _ in titles)
    for row in rows:
        yield _line(cell.replace("|", "\\|") for cell in row)


def _line(cells: Iterable[str]) -> str:
    return "| " + " | ".join(cells) + " |"


if __name__ == "__main__":
    print(page(), end="")
