"""Record bytes and client-chosen names as harmless, readable text.

What is no UTF-8 is shown in hexadecimal. Characters that cannot be seen, or that turn the direction of the text round (with
which a name can be made to look like another), stand as their code.
"""

from __future__ import annotations

import codecs
import json
import re
from typing import NamedTuple

from markupsafe import Markup, escape

_UNSEEN = re.compile(
    "[\x00-\x08\x0b-\x1f\x7f-\x9f\xad\u061c\u115f\u1160\u180e\u200b-\u200f\u2028-\u202e\u2060-\u206f\u3164\ufe00-\ufe0f\ufeff"
    "\ufff9-\ufffb\ud800-\udfff\U000e0000-\U000e0fff]"
)
_TOKENS = re.compile(r'"(?:[^"\\]|\\.)*"|[\[\]{},:]|[^\s\[\]{},:"]+')
_SIGNS = frozenset("[]{},:")
_MOST_JSON = 256 * 1024
_SHORT_ID, _ID_BEGINS, _ID_ENDS = 24, 14, 6


def visible(text: str) -> Markup:
    """Escaped for HTML, each unseen character as its code."""
    return Markup('<bdi dir="ltr">{}</bdi>').format(_unseen_shown(text))


def _unseen_shown(text: str) -> Markup:
    parts = []
    end = 0
    for found in _UNSEEN.finditer(text):
        parts.append(escape(text[end : found.start()]))
        parts.append(Markup('<span class="code">{}</span>').format(_code(found.group())))
        end = found.end()
    parts.append(escape(text[end:]))
    return Markup("").join(parts)


def plain(text: str) -> str:
    """The same where there can be no elements: in titles."""
    return _UNSEEN.sub(lambda found: _code(found.group()), text)


def _code(character: str) -> str:
    return {"\0": "\\0", "\r": "\\r", "\x1b": "\\e"}.get(character) or (
        f"\\x{ord(character):02x}" if ord(character) < 256 else f"\\u{{{ord(character):x}}}"
    )


class Shown(NamedTuple):
    """Bytes as they are displayed."""

    kind: str
    """null, empty, text, json, tree (decoded) or hex."""
    text: str
    size: int
    is_cut: bool
    """Whether there is more than is displayed."""
    problem: str = ""
    """Why the bytes are not displayed as requested; empty if they are."""


def shown(data: bytes | None, size: int, show: str = "auto") -> Shown:
    """``data`` may be the beginning only of what has ``size`` bytes."""
    if data is None:
        return Shown("null", "null", 0, False)
    if not size:
        return Shown("empty", "empty", 0, False)
    is_cut = len(data) < size
    if show == "hex":
        return Shown("hex", hexdump(data), size, is_cut)
    text = _decoded(data, is_cut)
    if text is None:
        return Shown("hex", hexdump(data), size, is_cut)
    if show in ("auto", "json") and not is_cut and (pretty := indented(text)) is not None:
        return Shown("json", pretty, size, is_cut)
    return Shown("text", text, size, is_cut)


def _decoded(data: bytes, is_cut: bool) -> str | None:
    try:
        return codecs.getincrementaldecoder("utf-8")().decode(data, final=not is_cut)
    except UnicodeDecodeError:
        return None


def hexdump(data: bytes) -> str:
    """Sixteen bytes a line: where they are, in hexadecimal, and as ASCII."""
    lines = []
    width = 47 if len(data) > 16 else 0
    for start in range(0, len(data), 16):
        row = data[start : start + 16]
        letters = "".join(chr(byte) if 32 <= byte < 127 else "." for byte in row)
        lines.append(f"{start:08x}  {row.hex(' '):<{width}}  {letters}")
    return "\n".join(lines)


def indented(text: str) -> str | None:
    """JSON with an element a line, everything else as it was: numbers keep their digits, keys their order. None: no object."""
    if len(text) > _MOST_JSON or not text.lstrip().startswith(("{", "[")):
        return None
    try:
        json.loads(text)
    except (ValueError, RecursionError):
        return None
    out: list[str] = []
    depth = 0
    tokens = _TOKENS.findall(text)
    for place, token in enumerate(tokens):
        following = tokens[place + 1] if place + 1 < len(tokens) else ""
        if token in "{[":
            depth += 1
            out.append(token if following in "}]" and following else f"{token}\n{'  ' * depth}")
        elif token in "}]":
            depth -= 1
            before = tokens[place - 1]
            out.append(token if before in "{[" else f"\n{'  ' * depth}{token}")
        elif token == ",":
            out.append(f",\n{'  ' * depth}")
        else:
            out.append(": " if token == ":" else token)
    return "".join(out)


def coloured(text: str) -> Markup:
    """JSON, or what is laid out like it, with a class for each kind of token: ``k`` names, ``s`` strings, ``v`` other values."""
    parts: list[Markup] = []
    end = 0
    for found in _TOKENS.finditer(text):
        parts.append(escape(text[end : found.start()]))
        end = found.end()
        token = found.group()
        if token in _SIGNS:
            parts.append(escape(token))
        else:
            is_name = token.startswith('"') and text[end : end + 1] == ":"
            kind = "k" if is_name else "s" if token.startswith('"') else "v"
            parts.append(Markup('<span class="{}">{}</span>').format(kind, _unseen_shown(token)))
    parts.append(_unseen_shown(text[end:]))
    return Markup('<bdi dir="ltr">{}</bdi>').format(Markup("").join(parts))


def shortened(text: str) -> Markup:
    """A long id by its beginning and its end, by which people tell members apart; as it is if it is short."""
    if len(text) <= _SHORT_ID:
        return visible(text)
    return Markup("{}…{}").format(visible(text[:_ID_BEGINS]), visible(text[-_ID_ENDS:]))


FILTERS = {"visible": visible, "plain": plain, "coloured": coloured, "shortened": shortened}
