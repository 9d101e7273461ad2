"""Property names with a listener prefix, ``listener.name.<listener>.<name>``, or with a listener and SASL mechanism prefix."""

from __future__ import annotations

import re

LISTENER_PREFIX = "listener.name."

_PREFIXED = re.compile(
    r"listener\.name\.(?P<listener>[^.]+)\."
    r"(?:(?:plain|scram-sha-256|scram-sha-512|oauthbearer|gssapi)\.)?(?P<name>.+)"
)


def without_prefix(name: str) -> str:
    """The name without the prefix of a listener, or of a mechanism there; other names as they are."""
    match = _PREFIXED.fullmatch(name)
    return name if match is None else match["name"]


def listener_of(name: str) -> str | None:
    """The listener in the prefix of a name, in lower case as it is written; None for a name without prefix."""
    match = _PREFIXED.fullmatch(name)
    return None if match is None else match["listener"]
