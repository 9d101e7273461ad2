"""Which properties have secrets as their values, by their names; what is printed in place of one."""

from __future__ import annotations

HIDDEN = "[hidden]"
"""As Kafka prints a password."""

_ENDINGS = (
    "password",
    "secret",
    "sasl.jaas.config",
    "ssl.keystore.key",
    "delegation.token.master.key",
    "delegation.token.secret.key",
)


def is_secret(name: str) -> bool:
    """Whether the value is not for logs and answers; with a listener's prefix as without."""
    return name.lower().endswith(_ENDINGS)


def shown(name: str, value: str) -> str:
    """The value, or what stands for it."""
    return HIDDEN if is_secret(name) else value
