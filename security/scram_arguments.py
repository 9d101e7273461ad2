"""Parsing of SCRAM credentials on a command line: ``SCRAM-SHA-256=[name=alice,password=alice-secret]`` (KIP-900).

In place of ``password`` there may be ``saltedpassword`` with ``salt``, both in base 64; ``iterations`` are 4096 if not given.
Source: Kafka's ScramParser.
"""

from __future__ import annotations

import base64
import binascii
import secrets
from typing import NamedTuple

from .scram import (
    MAX_ITERATIONS,
    MIN_ITERATIONS,
    SCRAM_MECHANISMS,
    ScramCredential,
    ScramMechanism,
    credential_from_salted_password,
)

_SALT_BYTES = 16


class UserCredential(NamedTuple):
    """The credential of a user for one mechanism."""

    user: str
    mechanism: ScramMechanism
    credential: ScramCredential


def parse_credential_argument(text: str) -> UserCredential:
    """Raises ValueError, whose text has no password."""
    name, separator, rest = text.strip().partition("=")
    if not separator:
        raise ValueError(f"Failed to find equals sign in SCRAM argument '{text}'")
    mechanism = SCRAM_MECHANISMS.get(name)
    if mechanism is None:
        raise ValueError(f"The add-scram mechanism {name} is not supported.")
    if not rest.startswith("["):
        raise ValueError("Expected configuration string to start with [")
    if not rest.endswith("]"):
        raise ValueError("Expected configuration string to end with ]")
    parts = dict(map(_component, rest[1:-1].split(",")))
    if "name" not in parts:
        raise ValueError("You must supply 'name' to add-scram")
    user, iterations = parts.pop("name"), _iterations(parts.pop("iterations", None), mechanism)
    given_salt = _bytes(parts.pop("salt", None), "salt")
    salt = given_salt or secrets.token_bytes(_SALT_BYTES)
    password, salted = parts.pop("password", None), _bytes(parts.pop("saltedpassword", None), "saltedPassword")
    if parts:
        raise ValueError(f"Unknown SCRAM configurations: {', '.join(parts)}")
    if password is not None:
        salted = mechanism.salted_password(password, salt, iterations)
    elif salted is None:
        raise ValueError("You must supply one of 'password' or 'saltedpassword' to add-scram")
    elif given_salt is None:
        raise ValueError("You must supply 'salt' with 'saltedpassword' to add-scram")
    return UserCredential(user, mechanism, credential_from_salted_password(mechanism, salt, salted, iterations))


def _component(text: str) -> tuple[str, str]:
    name, separator, value = text.partition("=")
    if not separator:
        raise ValueError("No equals sign found in SCRAM component")
    if len(value) >= 2 and value.startswith('"') and value.endswith('"'):
        value = value[1:-1]
    return name, value


def _iterations(text: str | None, mechanism: ScramMechanism) -> int:
    if text is None:
        return MIN_ITERATIONS
    try:
        iterations = int(text)
    except ValueError:
        raise ValueError(f"Failed to parse iterations count: {text}") from None
    for is_wrong, bound, limit in (
        (iterations < MIN_ITERATIONS, ">=", MIN_ITERATIONS),
        (iterations > MAX_ITERATIONS, "<=", MAX_ITERATIONS),
    ):
        if is_wrong:
            raise ValueError(
                f"The 'iterations' value must be {bound} {limit} for add-scram using {mechanism.sasl_name.replace('-', '_')}"
            )
    return iterations


def _bytes(text: str | None, name: str) -> bytes | None:
    if text is None:
        return None
    try:
        return base64.b64decode(text, validate=True)
    except binascii.Error:
        raise ValueError(f"Failed to decode given {name}") from None
