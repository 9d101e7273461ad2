"""SASL/PLAIN: name and password in one token (RFC 4616), as Kafka's PlainSaslServer reads it.

The users are options of the JAAS configuration of the listener: ``user_alice="secret"``. The module's own ``username`` and
``password`` are the broker's at other brokers.
"""

from __future__ import annotations

import hmac
from collections.abc import Mapping

from .jaas import LoginModule
from .principal import USER, Principal
from .sasl import Authenticated, AuthenticationError

PLAIN = "PLAIN"
_USER_PREFIX = "user_"


def plain_users(module: LoginModule) -> dict[str, str]:
    """The users of a login module: name -> password."""
    return {
        name.removeprefix(_USER_PREFIX): password
        for name, password in module.options.items()
        if name.startswith(_USER_PREFIX)
    }


class PlainServer:
    """Authenticates a client by its one token; the response to it is empty."""

    def __init__(self, users: Mapping[str, str]) -> None:
        self._users = users
        self.outcome: Authenticated | None = None

    def respond(self, token: bytes) -> bytes:
        parts = token.decode(errors="replace").split("\0", 3)
        if len(parts) != 3:
            raise AuthenticationError(
                f"Invalid SASL/PLAIN response: expected 3 tokens, got {len(parts)}", is_shown=True
            )
        authorization_id, name, password = parts
        if not name:
            raise AuthenticationError("Authentication failed: username not specified", is_shown=True)
        if not password:
            raise AuthenticationError("Authentication failed: password not specified", is_shown=True)
        if not self._is_right(name, password):
            raise AuthenticationError("Authentication failed: Invalid username or password", is_shown=True)
        if authorization_id not in ("", name):
            why = "Authentication failed: Client requested an authorization id that is different from username"
            raise AuthenticationError(why, is_shown=True)
        self.outcome = Authenticated(Principal(USER, name))
        return b""

    def _is_right(self, name: str, password: str) -> bool:
        """Whether the user is known and has this password, in a time that does not depend on the answer."""
        known = self._users.get(name)
        given = password.encode()
        return hmac.compare_digest(given, (known if known is not None else password).encode()) and known is not None


class PlainClient:
    """Sends name and password; the broker proves nothing in return."""

    def __init__(self, username: str, password: str) -> None:
        self._token: bytes | None = f"\0{username}\0{password}".encode()

    def respond(self, challenge: bytes) -> bytes | None:
        if challenge:
            raise AuthenticationError("the broker sent a challenge, but SASL/PLAIN has none")
        token, self._token = self._token, None
        return token
