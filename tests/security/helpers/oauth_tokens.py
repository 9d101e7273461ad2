"""Tokens as an identity provider signs them, and its key set."""

from __future__ import annotations

import base64
import functools
import json
from typing import Any

import jwt
from cryptography.hazmat.primitives.asymmetric import ec, rsa

NOW_MS = 1_700_000_000_000
NOW = NOW_MS // 1000


@functools.cache
def ec_key(name: str) -> ec.EllipticCurvePrivateKey:
    return ec.generate_private_key(ec.SECP256R1())


@functools.cache
def rsa_key() -> rsa.RSAPrivateKey:
    return rsa.generate_private_key(public_exponent=65537, key_size=2048)


def ec_jwk(name: str = "first", **more: str) -> dict[str, str]:
    described: dict[str, str] = json.loads(jwt.get_algorithm_by_name("ES256").to_jwk(ec_key(name).public_key()))
    return {"kid": name, **described, **more}


def rsa_jwk(**more: str) -> dict[str, str]:
    described = json.loads(jwt.get_algorithm_by_name("RS256").to_jwk(rsa_key().public_key()))
    return {name: value for name, value in described.items() if name != "key_ops"} | {"kid": "rsa", **more}


def jwks(*keys: dict[str, str]) -> bytes:
    return json.dumps({"keys": keys or (ec_jwk(),)}).encode()


def claims(**changed: Any) -> dict[str, Any]:
    """The claims of a valid token; those that are None are omitted."""
    all_claims = {"sub": "alice", "iat": NOW - 10, "exp": NOW + 600, "scope": ["kafka"], **changed}
    return {name: value for name, value in all_claims.items() if value is not None}


def signed(
    content: dict[str, Any] | None = None, key: Any = None, algorithm: str = "ES256", kid: str | None = "first"
) -> str:
    headers = {"kid": kid} if kid is not None else None
    return jwt.encode(content or claims(), key or ec_key("first"), algorithm=algorithm, headers=headers)


def unsigned(content: dict[str, Any] | None = None, header: dict[str, Any] | None = None) -> str:
    return f"{_segment(header or {'alg': 'none'})}.{_segment(content or claims())}."


def _segment(value: object) -> str:
    return base64.urlsafe_b64encode(json.dumps(value).encode()).rstrip(b"=").decode()
