"""The delegation tokens of the cluster, as one broker knows them: ``/delegation_token`` in memory, kept up by notifications.

Any broker makes, renews and ends tokens, directly in the cluster's store. The node of a token is written together with a
numbered notification under ``/delegation_token/token_changes`` that has the token's id as text; every broker watches that
folder and reads again what is named there. Each broker removes notifications older than 15 minutes, and expired tokens once in
``delegation.token.expiry.check.interval.ms``; an expired token cannot be used before that either.

A token is changed as it is stored, on the condition that it has not changed meanwhile, and one that was removed is never written
again: a renewal that comes at the same time does not bring it back.

Passwords are not stored: each is computed from the token's id and the brokers' common secret, and what SCRAM needs of it
when the token is first used, since that takes milliseconds.
"""

from __future__ import annotations

import hmac
import logging
from collections.abc import Callable, Iterable

import trio

from ...base.errors import ErrorCode, KafkaError
from ...base.seams import Clock
from ...security import delegation
from ...security.delegation import DelegationToken
from ...security.principal import Principal
from ...security.scram import ScramCredential, ScramMechanism, new_credential
from ...security.scram_exchange import ScramUser
from ..token_settings import DelegationTokenSettings
from .config_store import NOTIFICATION_LIFETIME_MS
from .loading import decoded
from .repeated_look import RepeatedLook
from .store.cluster_store import (
    BadVersionError,
    ClusterStore,
    ConnectionLossError,
    Create,
    Delete,
    Node,
    NoNodeError,
    Operation,
    Set,
    StoreError,
    StoreFailedError,
    ensure_paths,
)
from .token_znodes import CHANGE_PREFIX, CHANGES, TOKEN_PATHS, TOKENS

logger = logging.getLogger(__name__)

Transform = Callable[[DelegationToken], DelegationToken | None]


class DelegationTokens:
    """``start`` once, then ``run`` in a task of its own."""

    def __init__(self, store: ClusterStore, clock: Clock, settings: DelegationTokenSettings, secret: str) -> None:
        self._store = store
        self._clock = clock
        self._settings = settings
        self._secret = secret
        self._tokens: dict[str, DelegationToken] = {}
        self._credentials: dict[str, dict[ScramMechanism, ScramCredential]] = {}
        self._look = RepeatedLook("delegation tokens")
        self._last_change = -1

    # --- what is there ------------------------------------------------------------------------------------------------

    def tokens(self) -> list[DelegationToken]:
        """Those that are not removed yet; some may be over."""
        return list(self._tokens.values())

    def hmac(self, token: DelegationToken) -> bytes:
        """The token's password, as bytes."""
        return delegation.token_hmac(self._secret, token.token_id)

    def scram_user(self, mechanism: ScramMechanism, token_id: str) -> ScramUser | None:
        """The user that authenticates by SCRAM with a token; None for a token that is unknown or has expired."""
        token = self._tokens.get(token_id)
        if token is None or token.is_over(self._clock.now_ms()):
            return None
        known = self._credentials.setdefault(token_id, {})
        if mechanism not in known:
            known[mechanism] = new_credential(mechanism, delegation.token_password(self._secret, token_id))
        owner = Principal(token.owner.type, token.owner.name, token_authenticated=True)
        return ScramUser(owner, known[mechanism], min(token.max_ms, token.expiry_ms))

    def _by_hmac(self, given: bytes) -> DelegationToken:
        """Raises KafkaError DELEGATION_TOKEN_NOT_FOUND."""
        found = [token for token in self._tokens.values() if hmac.compare_digest(self.hmac(token), given)]
        if not found:
            raise KafkaError(ErrorCode.DELEGATION_TOKEN_NOT_FOUND)
        return found[0]

    # --- what is asked for --------------------------------------------------------------------------------------------

    async def create(
        self, owner: Principal, requester: Principal, renewers: Iterable[Principal], wanted_lifetime_ms: int
    ) -> DelegationToken:
        """Raises KafkaError KAFKA_STORAGE_ERROR when the store is gone."""
        now = self._clock.now_ms()
        token = delegation.new_token(owner, requester, renewers, wanted_lifetime_ms, self._settings.lifetimes, now)
        try:
            await self._write_new(token)
        except StoreError as error:
            raise KafkaError(ErrorCode.KAFKA_STORAGE_ERROR, str(error)) from error
        self._tokens[token.token_id] = token
        logger.info("Delegation token %s of %s was made for %s", token.token_id, token.owner, token.requester)
        return token

    async def renew(self, principal: Principal, given_hmac: bytes, period_ms: int) -> int:
        """When the token ends now, in ms since the epoch. Raises KafkaError."""
        now, lifetimes = self._clock.now_ms(), self._settings.lifetimes

        def renewed(stored: DelegationToken) -> DelegationToken:
            return delegation.renewed(stored, principal, period_ms, lifetimes, now)

        token = await self._change(self._by_hmac(given_hmac).token_id, renewed)
        assert token is not None
        return token.expiry_ms

    async def expire(self, principal: Principal, given_hmac: bytes, period_ms: int) -> int:
        """When the token ends now, in ms since the epoch. Raises KafkaError."""
        now, before = self._clock.now_ms(), self._by_hmac(given_hmac)

        def expired(stored: DelegationToken) -> DelegationToken | None:
            return delegation.expired(stored, principal, period_ms, now)

        token = await self._change(before.token_id, expired)
        if token is None:
            logger.info("Delegation token %s of %s was ended by %s", before.token_id, before.owner, principal)
            return now
        return token.expiry_ms

    async def _write_new(self, token: DelegationToken) -> None:
        """Raises StoreError. Ids are random, so a node under this one is the one just written."""
        operations = [Create(_path(token.token_id), delegation.encode_token(token)), _notification(token.token_id)]
        while True:
            try:
                await self._store.multi(operations)
                return
            except ConnectionLossError:
                if await self._stored(token.token_id) is not None:
                    return

    async def _change(self, token_id: str, transform: Transform) -> DelegationToken | None:
        """Replace the stored token by what ``transform`` makes of it, None to remove it; called again if another broker was
        faster. A token that was removed meanwhile stays removed.

        Raises what ``transform`` raises, KafkaError DELEGATION_TOKEN_NOT_FOUND for one that is gone, and KAFKA_STORAGE_ERROR
        without a store.
        """
        try:
            while True:
                node = await self._stored(token_id)
                stored = None if node is None else decoded(_path(token_id), node, delegation.decode_token)
                if node is None or stored is None:
                    self._forget(token_id)
                    raise KafkaError(ErrorCode.DELEGATION_TOKEN_NOT_FOUND)
                token = transform(stored)
                if token == stored or await self._try_change(token_id, node, token):
                    break
        except StoreError as error:
            raise KafkaError(ErrorCode.KAFKA_STORAGE_ERROR, str(error)) from error
        if token is None:
            self._forget(token_id)
        else:
            self._tokens[token_id] = token
        return token

    async def _try_change(self, token_id: str, node: Node, token: DelegationToken | None) -> bool:
        """Overwrite or remove the node, if it is as it was read; False if not. Raises StoreError."""
        path, version = _path(token_id), node.stat.version
        data = None if token is None else delegation.encode_token(token)
        operation: Operation = Delete(path, version) if data is None else Set(path, data, version)
        try:
            await self._store.multi([operation, _notification(token_id)])
        except (BadVersionError, NoNodeError):
            return False
        except ConnectionLossError:
            now = await self._stored(token_id)
            return (None if now is None else now.data) == data
        return True

    async def _stored(self, token_id: str) -> Node | None:
        (node,) = await self._store.get_many([_path(token_id)])
        return node

    def _forget(self, token_id: str) -> None:
        self._tokens.pop(token_id, None)
        self._credentials.pop(token_id, None)

    # --- keeping up ---------------------------------------------------------------------------------------------------

    async def start(self) -> None:
        """Read everything, at first and again whenever watches may have been lost. Raises StoreError."""
        await ensure_paths(self._store, TOKEN_PATHS)
        names = await self._store.children(CHANGES, self._look.watch)
        self._last_change = max(map(_number, names), default=-1)
        await self._load({*await self._store.children(TOKENS), *self._tokens})

    def look_again(self) -> None:
        """Watches may have been lost."""
        self._look.again()

    async def run(self) -> None:
        """Follow what other brokers do, and remove expired tokens, for as long as there is a store."""
        try:
            async with trio.open_nursery() as nursery:
                nursery.start_soon(self._remove_those_over)
                await self._look.run(self._follow, self.start)
        except* StoreFailedError as group:
            logger.error("Changes of delegation tokens are not followed any more: %s", group.exceptions[0])

    async def _follow(self) -> None:
        names = await self._store.children(CHANGES, self._look.watch)
        unseen = sorted((name for name in names if _number(name) > self._last_change), key=_number)
        nodes = await self._store.get_many([f"{CHANGES}/{name}" for name in unseen])
        await self._load({node.data.decode(errors="replace") for node in nodes if node is not None})
        if unseen:
            self._last_change = _number(unseen[-1])
        await self._remove_old_changes(names)

    async def _load(self, token_ids: Iterable[str]) -> None:
        ids = [token_id for token_id in token_ids if token_id and "/" not in token_id]
        for token_id, node in zip(ids, await self._store.get_many([_path(i) for i in ids]), strict=True):
            token = decoded(_path(token_id), node, delegation.decode_token) if node is not None else None
            if token is None or token.token_id != token_id:
                self._forget(token_id)
            else:
                self._tokens[token_id] = token

    async def _remove_old_changes(self, names: Iterable[str]) -> None:
        paths = [f"{CHANGES}/{name}" for name in names]
        limit = self._clock.now_ms() - NOTIFICATION_LIFETIME_MS
        for path, node in zip(paths, await self._store.get_many(paths), strict=True):
            if node is not None and node.stat.created_ms < limit:
                try:
                    await self._store.multi([Delete(path)])
                except (NoNodeError, ConnectionLossError):
                    pass  # gone already, or it is removed another time

    async def _remove_those_over(self) -> None:
        while True:
            await trio.sleep(self._settings.expiry_check_interval_ms / 1000)
            now = self._clock.now_ms()
            for known in [token for token in self.tokens() if token.is_over(now)]:
                try:
                    left = await self._change(known.token_id, self._unless_over)
                except KafkaError as error:
                    if error.code == ErrorCode.DELEGATION_TOKEN_NOT_FOUND:
                        continue  # another broker was faster
                    logger.warning(
                        "Delegation token %s has ended and could not be removed: %s", known.token_id, error.message
                    )
                    break
                if left is None:
                    logger.info("Delegation token %s of %s has ended", known.token_id, known.owner)

    def _unless_over(self, token: DelegationToken) -> DelegationToken | None:
        return None if token.is_over(self._clock.now_ms()) else token


def _path(token_id: str) -> str:
    return f"{TOKENS}/{token_id}"


def _notification(token_id: str) -> Create:
    return Create(CHANGE_PREFIX, token_id.encode(), sequence=True)


def _number(name: str) -> int:
    digits = name.rpartition("_")[2]
    return int(digits) if digits.isdigit() else -1
