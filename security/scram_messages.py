"""The four SCRAM messages (RFC 5802, section 7), parsed as strictly as in Kafka's ScramMessages.

Each pattern takes time at most proportional to the message, even to a hostile one. Extensions are ignored, except for
``tokenauth=true``: then the user's name is the id of a delegation token (KIP-48).
"""

from __future__ import annotations

import base64
import binascii
import dataclasses
import re

from .sasl import AuthenticationError
from .scram import unescaped_name

MAX_MESSAGE_BYTES = 16 * 1024
"""Matching a message takes up to a hundred times its size of memory, and the client's nonce is sent back."""

_NAME = r"(?:[^=,\x00]|=2C|=3D)+"
_NONCE = r"[!-+\--~]+"
_BASE64 = r"[A-Za-z0-9/+]*={0,2}"
_EXTENSIONS = r"(?:,[A-Za-z]+=[^,\x00]+)*"

_CLIENT_FIRST = re.compile(
    rf"(?P<header>n,(?:a=(?P<authorization_id>{_NAME}))?,)"
    rf"(?P<bare>n=(?P<name>{_NAME}),r=(?P<nonce>{_NONCE})(?P<extensions>{_EXTENSIONS}))",
    re.ASCII,
)
_SERVER_FIRST = re.compile(rf"r=(?P<nonce>{_NONCE}),s=(?P<salt>{_BASE64}),i=(?P<iterations>[0-9]{{1,10}}){_EXTENSIONS}")
_CLIENT_FINAL = re.compile(
    rf"(?P<without_proof>c=(?P<binding>{_BASE64}),r=(?P<nonce>{_NONCE}){_EXTENSIONS}),p=(?P<proof>{_BASE64})"
)
_SERVER_FINAL = re.compile(rf"(?:e=(?P<error>[^=,\x00]+)|v=(?P<signature>{_BASE64}){_EXTENSIONS})")


@dataclasses.dataclass(frozen=True, slots=True)
class ClientFirst:
    """The client's first message."""

    bare: str
    """The message without its header, which says that there is no channel binding."""
    name: str
    nonce: str
    authorization_id: str
    """Empty for the user's own name."""
    is_token: bool
    """Whether ``name`` is the id of a delegation token."""


@dataclasses.dataclass(frozen=True, slots=True)
class ServerFirst:
    """The server's first message."""

    text: str
    """The whole message."""
    nonce: str
    salt: bytes
    iterations: int


@dataclasses.dataclass(frozen=True, slots=True)
class ClientFinal:
    """The client's final message."""

    without_proof: str
    """The message up to its proof."""
    nonce: str
    proof: bytes = dataclasses.field(repr=False)


def parse_client_first(message: bytes) -> ClientFirst:
    """Raises AuthenticationError, also for a client that wants channel binding, which Kafka does not have."""
    match = _match(_CLIENT_FIRST, message, "client's first")
    extensions = dict(part.partition("=")[::2] for part in match["extensions"].split(",")[1:])
    return ClientFirst(
        match["bare"],
        unescaped_name(match["name"]),
        match["nonce"],
        unescaped_name(match["authorization_id"] or ""),
        is_token=extensions.get("tokenauth", "").lower() == "true",
    )


def parse_server_first(message: bytes) -> ServerFirst:
    """Raises AuthenticationError."""
    match = _match(_SERVER_FIRST, message, "server's first")
    return ServerFirst(match[0], match["nonce"], _decoded(match["salt"]), int(match["iterations"]))


def parse_client_final(message: bytes) -> ClientFinal:
    """Raises AuthenticationError. The field about channel binding is not checked, because there is none."""
    match = _match(_CLIENT_FINAL, message, "client's final")
    return ClientFinal(match["without_proof"], match["nonce"], _decoded(match["proof"]))


def parse_server_final(message: bytes) -> bytes:
    """The server's signature. Raises AuthenticationError, with the server's own word where it refuses."""
    match = _match(_SERVER_FINAL, message, "server's final")
    if match["error"] is not None:
        raise AuthenticationError(f"the broker has refused it: {match['error']}")
    return _decoded(match["signature"])


def _match(pattern: re.Pattern[str], message: bytes, whose: str) -> re.Match[str]:
    if len(message) > MAX_MESSAGE_BYTES:
        raise AuthenticationError(f"the {whose} message has {len(message)} bytes, more than {MAX_MESSAGE_BYTES}")
    match = pattern.fullmatch(message.decode("ascii", errors="replace"))
    if match is None or "\N{REPLACEMENT CHARACTER}" in match[0]:
        raise AuthenticationError(f"the {whose} message is not one of SCRAM")
    return match


def _decoded(text: str) -> bytes:
    try:
        return base64.b64decode(text, validate=True)
    except binascii.Error:
        raise AuthenticationError("a part of the message is not in base 64") from None
