"""The passwords of delegation tokens, computed by each node from the brokers' common secret (KIP-48).

They are not stored: each is computed from the token's id and the brokers' common secret, and what SCRAM needs of it when the
token is first used, since that takes milliseconds.
"""

from __future__ import annotations

import hmac

from ..base.errors import ErrorCode, KafkaError
from ..base.seams import Clock
from ..metadata.delta import ClusterDelta
from ..metadata.image import ClusterImage
from ..metadata.published import PublishedMetadata
from ..security import delegation
from ..security.delegation import DelegationToken
from ..security.principal import Principal
from ..security.scram import ScramCredential, ScramMechanism, new_credential
from ..security.scram_exchange import ScramUser


class TokenPasswords:
    """Those of the tokens in ``metadata``."""

    def __init__(self, secret: str, metadata: PublishedMetadata, clock: Clock) -> None:
        self._secret = secret
        self._metadata = metadata
        self._clock = clock
        self._credentials: dict[str, dict[ScramMechanism, ScramCredential]] = {}
        metadata.publishers.append(self._forget_removed)

    def _forget_removed(self, delta: ClusterDelta, image: ClusterImage) -> None:
        for token_id, token in delta.tokens.items():
            if token is None:
                self._credentials.pop(token_id, None)

    def hmac(self, token: DelegationToken) -> bytes:
        """The token's password, as bytes."""
        return delegation.token_hmac(self._secret, token.token_id)

    def token_of(self, given: bytes) -> DelegationToken:
        """The token with this password. Raises KafkaError DELEGATION_TOKEN_NOT_FOUND."""
        tokens = self._metadata.image.tokens.values()
        found = [token for token in tokens if hmac.compare_digest(self.hmac(token), given)]
        if not found:
            raise KafkaError(ErrorCode.DELEGATION_TOKEN_NOT_FOUND)
        return found[0]

    def scram_user(self, mechanism: ScramMechanism, token_id: str) -> ScramUser | None:
        """The user that authenticates by SCRAM with a token; None for a token that is unknown or has expired."""
        token = self._metadata.image.tokens.get(token_id)
        if token is None or token.is_over(self._clock.now_ms()):
            return None
        known = self._credentials.setdefault(token_id, {})
        if mechanism not in known:
            known[mechanism] = new_credential(mechanism, delegation.token_password(self._secret, token_id))
        owner = Principal(token.owner.type, token.owner.name, token_authenticated=True)
        return ScramUser(owner, known[mechanism], min(token.max_ms, token.expiry_ms))
