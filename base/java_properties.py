"""Java properties files: text without escapes is handled here, the rest by the javaproperties library.

That library brings XML and HTTP with it, a twentieth of what the start of a broker costs, and what Kafka and Ottla write
themselves has no escapes. Format: java.util.Properties' load and store.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from pathlib import Path

_ENCODING = "iso-8859-1"
"""Of a file; everything else is written as an escape."""
_PLAIN_LINE = re.compile(r"(?:[#!][ -\[\]-~]*|([\w.-]+)=([!-\[\]-~][ -\[\]-~]*)?)?", re.ASCII)
"""Nothing, a comment, or a name and a value. A value begins with no space, and nothing holds a backslash."""
_PLAIN_TEXT = re.compile(r"[\w.-]*", re.ASCII)


def read(path: Path) -> dict[str, str]:
    """The properties in a file. Raises OSError; ValueError for an escape that is none."""
    return loads(path.read_text(_ENCODING))


def loads(text: str) -> dict[str, str]:
    """The properties in a text; the last of one name counts. Raises ValueError for an escape that is none."""
    properties = {}
    for line in re.split(r"\r\n|\r|\n", text):
        if (plain := _PLAIN_LINE.fullmatch(line)) is None:
            import javaproperties

            return dict(javaproperties.loads(text))
        if plain[1] is not None:
            properties[plain[1]] = plain[2] or ""
    return properties


def dumps(properties: Mapping[str, str]) -> str:
    """The text of properties, without the time."""
    if all(_PLAIN_TEXT.fullmatch(text) for pair in properties.items() for text in pair):
        return "".join(f"{name}={value}\n" for name, value in properties.items())
    import javaproperties

    text: str = javaproperties.dumps(properties, timestamp=False)
    return text
