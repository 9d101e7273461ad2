"""The server and client side of a SCRAM authentication (RFC 5802, section 5).

The client sends two messages and gets one response to each.

As in Kafka an unknown user is refused at the first message, a wrong password at the second; the client is told the same.
"""

from __future__ import annotations

import base64
import dataclasses
import hmac
from collections.abc import Callable

from .principal import Principal
from .sasl import Authenticated, AuthenticationError
from .scram import MIN_ITERATIONS, ScramCredential, ScramMechanism, auth_message, escaped_name, new_nonce, xor
from .scram_messages import (
    ClientFirst,
    ServerFirst,
    parse_client_final,
    parse_client_first,
    parse_server_final,
    parse_server_first,
)

_NO_CHANNEL_BINDING = "n,,"
_MOST_ITERATIONS = 1 << 18
"""The most that this side computes as a client, in about a tenth of a second: a false broker could ask for any number."""


@dataclasses.dataclass(frozen=True, slots=True)
class ScramUser:
    """The user with the name in the client's first message."""

    principal: Principal
    credential: ScramCredential
    expires_ms: int | None = None
    """As in ``Authenticated``."""


FindUser = Callable[[str], ScramUser | None]
"""Finds a user by name, or by the id of a delegation token; None for one that is not known."""


class ScramServer:
    """Authenticates a client by its proof, and proves in return that it has the client's credential."""

    def __init__(
        self, mechanism: ScramMechanism, find_user: FindUser, find_token: FindUser, nonce: str | None = None
    ) -> None:
        """``nonce``: this side's part of the nonce; random if not given."""
        self.outcome: Authenticated | None = None
        self._mechanism = mechanism
        self._find_user = find_user
        self._find_token = find_token
        self._nonce = nonce or new_nonce()
        self._user: ScramUser | None = None
        self._client_first = ""
        self._server_first = ""

    def respond(self, token: bytes) -> bytes:
        if self._user is None:
            return self._take_first(parse_client_first(token))
        return self._take_final(token, self._user)

    def _take_first(self, message: ClientFirst) -> bytes:
        user = (self._find_token if message.is_token else self._find_user)(message.name)
        if user is None:
            raise AuthenticationError(f"no credential for {'token' if message.is_token else 'user'} {message.name!r}")
        if message.authorization_id not in ("", message.name):
            why = "Authentication failed: Client requested an authorization id that is different from username"
            raise AuthenticationError(why, is_shown=True)
        credential = user.credential
        if credential.iterations < MIN_ITERATIONS:
            raise AuthenticationError(f"the credential of {message.name!r} has less than {MIN_ITERATIONS} iterations")
        self._nonce = message.nonce + self._nonce
        salt = base64.b64encode(credential.salt).decode()
        self._client_first = message.bare
        self._server_first = f"r={self._nonce},s={salt},i={credential.iterations}"
        self._user = user
        return self._server_first.encode()

    def _take_final(self, token: bytes, user: ScramUser) -> bytes:
        mechanism, credential = self._mechanism, user.credential
        message = parse_client_final(token)
        if message.nonce != self._nonce:
            raise AuthenticationError("the client's final message has another nonce")
        signed = auth_message((self._client_first, self._server_first, message.without_proof))
        signature = mechanism.hmac(credential.stored_key, signed)
        if len(message.proof) != len(signature):
            raise AuthenticationError("the client's proof has another length")
        if not hmac.compare_digest(mechanism.hash(xor(signature, message.proof)), credential.stored_key):
            raise AuthenticationError(f"the proof of {user.principal} is wrong")
        self.outcome = Authenticated(user.principal, user.expires_ms)
        return b"v=" + base64.b64encode(mechanism.hmac(credential.server_key, signed))


class ScramClient:
    """Proves that it has the password, and checks that the broker has the credential."""

    def __init__(
        self,
        mechanism: ScramMechanism,
        username: str,
        password: str,
        *,
        is_token: bool = False,
        nonce: str | None = None,
    ) -> None:
        """``is_token``: the user is a delegation token's id, and the password its HMAC in base 64."""
        self._mechanism = mechanism
        self._password = password
        self._nonce = nonce or new_nonce()
        extension = ",tokenauth=true" if is_token else ""
        self._first = f"n={escaped_name(username)},r={self._nonce}{extension}"
        self._step: Callable[[bytes], bytes | None] = self._send_first
        self._expected_signature = b""

    def respond(self, challenge: bytes) -> bytes | None:
        return self._step(challenge)

    def _send_first(self, _challenge: bytes) -> bytes | None:
        self._step = self._send_final
        return (_NO_CHANNEL_BINDING + self._first).encode()

    def _send_final(self, challenge: bytes) -> bytes | None:
        message = parse_server_first(challenge)
        self._check(message)
        mechanism = self._mechanism
        salted_password = mechanism.salted_password(self._password, message.salt, message.iterations)
        client_key = mechanism.hmac(salted_password, b"Client Key")
        binding = base64.b64encode(_NO_CHANNEL_BINDING.encode()).decode()
        without_proof = f"c={binding},r={message.nonce}"
        signed = auth_message((self._first, message.text, without_proof))
        proof = xor(client_key, mechanism.hmac(mechanism.hash(client_key), signed))
        self._expected_signature = mechanism.hmac(mechanism.hmac(salted_password, b"Server Key"), signed)
        self._step = self._check_signature
        return f"{without_proof},p={base64.b64encode(proof).decode()}".encode()

    def _check(self, message: ServerFirst) -> None:
        # Nonces of both sides keep a recorded exchange from being replayed (RFC 5802).
        if not message.nonce.startswith(self._nonce) or message.nonce == self._nonce:
            raise AuthenticationError("the broker's nonce does not begin with the client's, or adds nothing to it")
        if not MIN_ITERATIONS <= message.iterations <= _MOST_ITERATIONS:
            why = f"the broker asks for {message.iterations} iterations, not {MIN_ITERATIONS} to {_MOST_ITERATIONS}"
            raise AuthenticationError(why)

    def _check_signature(self, challenge: bytes) -> bytes | None:
        if not hmac.compare_digest(parse_server_final(challenge), self._expected_signature):
            raise AuthenticationError("the broker does not know the password")
        return None
