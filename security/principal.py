"""Principals: who is at the other end of a connection, as ``Type:name`` (Kafka's KafkaPrincipal).

Two are equal when type and name are; whether one came with a delegation token is no part of who it is.
"""

from __future__ import annotations

import dataclasses

USER = "User"
"""The type of every principal that the broker itself makes."""


@dataclasses.dataclass(frozen=True, slots=True)
class Principal:
    """``token_authenticated``: it has shown a delegation token (KIP-48), with which no further token can be had."""

    type: str
    name: str
    token_authenticated: bool = dataclasses.field(default=False, compare=False)

    def __str__(self) -> str:
        return f"{self.type}:{self.name}"


ANONYMOUS = Principal(USER, "ANONYMOUS")
"""Of a client that did not say who it is: on PLAINTEXT, and on SSL without a certificate."""


def parse_principal(text: str) -> Principal:
    """What ``Type:name`` stands for; the name may have colons. Raises ValueError (SecurityUtils.parseKafkaPrincipal)."""
    kind, separator, name = text.partition(":")
    if not separator:
        raise ValueError(f"expected a string in format principalType:principalName but got {text}")
    return Principal(kind, name)
