"""Principals: the identity of a client, as ``Type:name`` (Kafka's KafkaPrincipal).

Two are equal when type and name are, whether or not one has authenticated with a delegation token.
"""

from __future__ import annotations

import dataclasses

USER = "User"
"""The type of every principal that the broker itself makes."""


@dataclasses.dataclass(frozen=True, slots=True)
class Principal:
    """The identity of a client."""

    type: str
    name: str
    token_authenticated: bool = dataclasses.field(default=False, compare=False)
    """Whether a delegation token was used (KIP-48); such a client cannot ask for another token."""

    def __str__(self) -> str:
        return f"{self.type}:{self.name}"


ANONYMOUS = Principal(USER, "ANONYMOUS")
"""The principal of a client without authentication: on PLAINTEXT, and on SSL without a certificate."""


def parse_principal(text: str) -> Principal:
    """Parse ``Type:name``; the name may have colons. Raises ValueError (SecurityUtils.parseKafkaPrincipal)."""
    kind, separator, name = text.partition(":")
    if not separator:
        raise ValueError(f"expected a string in format principalType:principalName but got {text}")
    return Principal(kind, name)
