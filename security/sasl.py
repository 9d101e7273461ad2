"""The interface shared by all SASL mechanisms: both sides of a token exchange, its outcome and its failure.

A mechanism answers tokens with tokens; ``broker.listeners.sasl_gate`` and ``broker.auth.sasl_client`` send them in requests
(KIP-43, KIP-152).
"""

from __future__ import annotations

import dataclasses
from typing import Protocol

from .principal import Principal


class AuthenticationError(Exception):
    """The authentication of the other side has failed. ``str()`` is one line for this side's log, without secrets."""

    def __init__(self, why: str, *, is_shown: bool = False) -> None:
        super().__init__(why)
        self.is_shown = is_shown
        """Whether the client is sent the same text. The text could tell too much, such as which users exist; then the client is
        sent one text for all reasons. Kafka tells these apart as SaslAuthenticationException and SaslException.
        """


@dataclasses.dataclass(frozen=True, slots=True)
class Authenticated:
    """The outcome of a successful authentication."""

    principal: Principal
    expires_ms: int | None = None
    """When the client's credential expires, in ms since 1970; None for never."""


class SaslServer(Protocol):
    """One authentication of one client."""

    @property
    def outcome(self) -> Authenticated | None:
        """None until the client is authenticated."""
        ...

    def respond(self, token: bytes) -> bytes:
        """The response to the client's next token, maybe empty. Raises AuthenticationError, which ends the exchange."""
        ...


class SaslClient(Protocol):
    """One authentication at one broker."""

    def respond(self, challenge: bytes) -> bytes | None:
        """The response to the broker's last token, which is empty at first; None at the end of the exchange.

        Raises AuthenticationError: the broker did not prove its identity, or did not follow the mechanism.
        """
        ...
