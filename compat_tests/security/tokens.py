"""OAUTHBEARER tokens from an issuer that is created for each run."""

from __future__ import annotations

import datetime
import json
from pathlib import Path

import jwt
from cryptography.hazmat.primitives.asymmetric import rsa

AUDIENCE = "ottla-compat"
"""Whom the tokens are for."""
_LIFE = datetime.timedelta(days=1)
_KEY_ID = "the-key"


class TokenIssuer:
    """Signs tokens; ``jwks_file`` has the key to check them by."""

    def __init__(self, folder: Path, name: str) -> None:
        self._folder = folder
        self._name = name
        self._key = rsa.generate_private_key(public_exponent=65537, key_size=2048)
        public = json.loads(jwt.algorithms.RSAAlgorithm.to_jwk(self._key.public_key()))
        self.jwks_file = folder / f"{name}.json"
        self.jwks_file.write_text(json.dumps({"keys": [{**public, "kid": _KEY_ID, "alg": "RS256", "use": "sig"}]}))

    def issue(self, user: str) -> Path:
        """A file with a token that says that its bearer is ``user``."""
        now = datetime.datetime.now(datetime.UTC)
        claims = {"sub": user, "iat": now, "exp": now + _LIFE, "aud": AUDIENCE, "iss": self._name, "scope": "kafka"}
        file = self._folder / f"{self._name}-{user}.jwt"
        file.write_text(jwt.encode(claims, self._key, algorithm="RS256", headers={"kid": _KEY_ID}))
        return file
