"""Recognition of properties whose values are secrets, by name, and the text printed in place of a secret."""

from __future__ import annotations

HIDDEN = "[hidden]"
"""Kafka's text in place of a password."""

_ENDINGS = (
    "password",
    "secret",
    "sasl.jaas.config",
    "ssl.keystore.key",
    "delegation.token.master.key",
    "delegation.token.secret.key",
)


def is_secret(name: str) -> bool:
    """Whether the value must not be in logs and responses; the name may have a listener's prefix."""
    return name.lower().endswith(_ENDINGS)


def shown(name: str, value: str) -> str:
    """The value, or ``HIDDEN`` in place of a secret."""
    return HIDDEN if is_secret(name) else value
