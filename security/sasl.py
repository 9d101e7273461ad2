"""What the SASL mechanisms have in common: the two sides of an exchange of tokens, its outcome and its failure.

A mechanism turns tokens into tokens and knows nothing of how they travel; ``broker.sasl_gate`` and ``broker.sasl_client`` carry
them (KIP-43, KIP-152).
"""

from __future__ import annotations

import dataclasses
from typing import Protocol

from .principal import Principal


class AuthenticationError(Exception):
    """The other side has not shown who it is. ``str()`` is one line for this side's log, without a secret in it.

    ``is_told``: the client may read the same text; where not, it could say too much, such as which users there are, and the
    client reads the same for every reason (as with Kafka's SaslException, in contrast to its SaslAuthenticationException).
    """

    def __init__(self, why: str, *, is_told: bool = False) -> None:
        super().__init__(why)
        self.is_told = is_told


@dataclasses.dataclass(frozen=True, slots=True)
class Authenticated:
    """Who the client is. ``expires_ms``: when what it has shown ends, in ms since 1970; None for never."""

    principal: Principal
    expires_ms: int | None = None


class SaslServer(Protocol):
    """One authentication of one client."""

    @property
    def outcome(self) -> Authenticated | None:
        """None until the client has shown who it is."""
        ...

    def respond(self, token: bytes) -> bytes:
        """The answer to the client's next token, maybe empty. Raises AuthenticationError, after which there is no next one."""
        ...


class SaslClient(Protocol):
    """One authentication at one broker."""

    def respond(self, challenge: bytes) -> bytes | None:
        """The answer to the broker's last token, which is empty at first; None when the broker has shown all it has to.

        Raises AuthenticationError: the broker is not who it should be, or does not keep to the mechanism.
        """
        ...
