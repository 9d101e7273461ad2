"""SCRAM (RFC 5802, RFC 7677): mechanisms, keys, and the credentials that a broker stores.

::

    SaltedPassword  = PBKDF2(password, salt, iterations)
    ClientKey       = HMAC(SaltedPassword, "Client Key")        StoredKey = H(ClientKey)
    ServerKey       = HMAC(SaltedPassword, "Server Key")
    ClientProof     = ClientKey XOR HMAC(StoredKey, AuthMessage)
    ServerSignature = HMAC(ServerKey, AuthMessage)

A broker keeps salt, StoredKey, ServerKey and iterations: enough to check a proof, not to make one. As in Kafka, passwords are
taken as UTF-8 without SASLprep, and names on the wire are ASCII.
"""

from __future__ import annotations

import base64
import binascii
import dataclasses
import hashlib
import hmac
import secrets
from collections.abc import Iterable, Mapping
from enum import IntEnum

from ..base.errors import ErrorCode, KafkaError

MIN_ITERATIONS = 4096
MAX_ITERATIONS = 16384
"""The bounds for clients that set credentials (KIP-554); one written into the cluster's store by other means may have more."""

_FIELDS = ("salt", "stored_key", "server_key", "iterations")


class ScramMechanism(IntEnum):
    """Numbered as in requests (KIP-554)."""

    SHA_256 = 1
    SHA_512 = 2

    @property
    def sasl_name(self) -> str:
        """The name that clients use, and the credential's name in the cluster's store."""
        return f"SCRAM-{self._hash_name}"

    @property
    def _hash_name(self) -> str:
        return self.name.replace("_", "-")

    @property
    def _digest(self) -> str:
        return self.name.replace("_", "").lower()

    def hash(self, data: bytes) -> bytes:
        """H of the RFC."""
        return hashlib.new(self._digest, data).digest()

    def hmac(self, key: bytes, data: bytes) -> bytes:
        """HMAC of the RFC."""
        return hmac.digest(key, data, self._digest)

    def salted_password(self, password: str, salt: bytes, iterations: int) -> bytes:
        """Hi of the RFC. 4,096 iterations take about two milliseconds."""
        return hashlib.pbkdf2_hmac(self._digest, password.encode(), salt, iterations)


@dataclasses.dataclass(frozen=True)
class SaltedPassword:
    """What a client sends in place of a password that it sets, for one mechanism (KIP-554)."""

    mechanism: ScramMechanism
    iterations: int
    salt: bytes = dataclasses.field(repr=False)
    salted: bytes = dataclasses.field(repr=False)


SCRAM_MECHANISMS = {mechanism.sasl_name: mechanism for mechanism in ScramMechanism}


def checked_mechanism(user: str, number: int) -> ScramMechanism:
    """The mechanism of a credential that a client sets or removes. Raises KafkaError."""
    if not user:
        raise KafkaError(ErrorCode.UNACCEPTABLE_CREDENTIAL, "Username must not be empty")
    try:
        return ScramMechanism(number)
    except ValueError:
        raise KafkaError(ErrorCode.UNSUPPORTED_SASL_MECHANISM, "Unknown SCRAM mechanism") from None


def check_iterations(iterations: int) -> None:
    """Raises KafkaError UNACCEPTABLE_CREDENTIAL for what a client must not set."""
    if iterations < MIN_ITERATIONS:
        raise KafkaError(ErrorCode.UNACCEPTABLE_CREDENTIAL, "Too few iterations")
    if iterations > MAX_ITERATIONS:
        raise KafkaError(ErrorCode.UNACCEPTABLE_CREDENTIAL, "Too many iterations")


def altered_twice() -> KafkaError:
    """The error of a user of whom a request changes the same twice."""
    return KafkaError(ErrorCode.DUPLICATE_RESOURCE, "A user credential cannot be altered twice in the same request")


@dataclasses.dataclass(frozen=True, slots=True)
class ScramCredential:
    """What a broker keeps of a password, of one user for one mechanism."""

    salt: bytes = dataclasses.field(repr=False)
    stored_key: bytes = dataclasses.field(repr=False)
    server_key: bytes = dataclasses.field(repr=False)
    iterations: int

    def render(self) -> str:
        """The text for the cluster's store (ScramCredentialUtils of Kafka)."""
        values = [base64.b64encode(value).decode() for value in (self.salt, self.stored_key, self.server_key)]
        return ",".join(f"{name}={value}" for name, value in zip(_FIELDS, [*values, self.iterations], strict=True))


@dataclasses.dataclass(frozen=True, slots=True)
class UnusableCredential:
    """A stored credential that cannot be read."""

    reason: str
    """Contains no part of the credential."""
    digest: bytes = dataclasses.field(repr=False)
    """Tells one such credential from another."""


StoredCredentials = Mapping[ScramMechanism, ScramCredential | UnusableCredential]
"""The credentials of a user."""


def read_credentials(stored: Mapping[str, str]) -> StoredCredentials:
    """The credentials among what is stored of a user, by the mechanisms' SASL names."""
    found: dict[ScramMechanism, ScramCredential | UnusableCredential] = {}
    for name, mechanism in SCRAM_MECHANISMS.items():
        if (text := stored.get(name)) is not None:
            try:
                found[mechanism] = parse_credential(text)
            except ValueError as error:
                found[mechanism] = UnusableCredential(str(error), hashlib.sha256(text.encode()).digest())
    return found


def parse_credential(text: str) -> ScramCredential:
    """Read what ``render`` wrote, or Kafka. Raises ValueError, whose text contains no part of the credential."""
    parts = dict(part.partition("=")[::2] for part in text.split(","))
    if sorted(parts) != sorted(_FIELDS):
        raise ValueError("a SCRAM credential has salt, stored_key, server_key and iterations")
    try:
        salt, stored_key, server_key = (base64.b64decode(parts[name], validate=True) for name in _FIELDS[:3])
        return ScramCredential(salt, stored_key, server_key, int(parts["iterations"]))
    except (binascii.Error, ValueError):
        raise ValueError("a SCRAM credential with a part that cannot be read") from None


def credential_from_salted_password(
    mechanism: ScramMechanism, salt: bytes, salted_password: bytes, iterations: int
) -> ScramCredential:
    """The credential of a password that the client has salted, because the password itself is not sent (KIP-554)."""
    stored_key = mechanism.hash(mechanism.hmac(salted_password, b"Client Key"))
    return ScramCredential(salt, stored_key, mechanism.hmac(salted_password, b"Server Key"), iterations)


def new_credential(
    mechanism: ScramMechanism, password: str, iterations: int = MIN_ITERATIONS, salt: bytes | None = None
) -> ScramCredential:
    """A credential for a password, with a salt of its own."""
    salt = salt or new_nonce().encode()
    return credential_from_salted_password(
        mechanism, salt, mechanism.salted_password(password, salt, iterations), iterations
    )


def new_nonce() -> str:
    """192 random bits, as characters that are allowed in a nonce."""
    return secrets.token_urlsafe(24)


def xor(first: bytes, second: bytes) -> bytes:
    """The exclusive or of two byte strings of the same length."""
    return bytes(a ^ b for a, b in zip(first, second, strict=True))


def escaped_name(name: str) -> str:
    """A user name as it is written in a message (saslname of the RFC)."""
    return name.replace("=", "=3D").replace(",", "=2C")


def unescaped_name(name: str) -> str:
    """The user name that is written in a message."""
    return name.replace("=2C", ",").replace("=3D", "=")


def auth_message(parts: Iterable[str]) -> bytes:
    """The bytes that both sides sign: client's first message without its header, server's first, client's final without proof."""
    return ",".join(parts).encode()
