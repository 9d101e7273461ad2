"""The delegation tokens in ZooKeeper: the znodes under ``/delegation_token``, published as they change.

Any broker makes, renews and ends tokens, directly in the cluster's store. The node of a token is written together with a
notification under ``/delegation_token/token_changes`` that has the token's id as text. Each broker removes expired tokens once in
``delegation.token.expiry.check.interval.ms``; an expired token cannot be used before that either.

A token is changed as it is stored, on the condition that it has not changed meanwhile, and one that was removed is never written
again: a renewal that comes at the same time does not bring it back.
"""

from __future__ import annotations

import logging
import secrets
from collections.abc import Callable, Iterable, Mapping

import trio

from ...base.errors import ErrorCode, KafkaError
from ...base.seams import Clock
from ...metadata.delta import ClusterDelta
from ...replication.metadata_cache import MetadataCache
from ...security import delegation
from ...security.delegation import DelegationToken
from ...security.principal import Principal
from ..token_settings import DelegationTokenSettings
from .nodes.decoding import decoded
from .nodes.notifications import Notifications
from .nodes.token_znodes import CHANGE_PREFIX, CHANGES, TOKEN_PATHS, TOKENS
from .nodes.watch_loop import WatchLoop
from .store.cluster_store import (
    BadVersionError,
    ClusterStore,
    ConnectionLossError,
    Create,
    Delete,
    NoNodeError,
    Operation,
    Set,
    StoreError,
    StoreFailedError,
    ZnodeWithStat,
    ensure_paths,
)

logger = logging.getLogger(__name__)

Transform = Callable[[DelegationToken], DelegationToken | None]


class TokenStore:
    """``start`` once, then ``run`` in a task of its own. What is read goes to ``metadata``."""

    def __init__(
        self, store: ClusterStore, clock: Clock, settings: DelegationTokenSettings, metadata: MetadataCache
    ) -> None:
        self._store = store
        self._clock = clock
        self._settings = settings
        self._metadata = metadata
        self._watches = WatchLoop("delegation tokens")
        self._changes = Notifications(store, clock, CHANGES, self._watches.watch)

    # --- what is asked for --------------------------------------------------------------------------------------------

    async def create(
        self, owner: Principal, requester: Principal, renewers: Iterable[Principal], wanted_lifetime_ms: int
    ) -> DelegationToken:
        """Raises KafkaError KAFKA_STORAGE_ERROR when the store is gone."""
        now = self._clock.now_ms()
        token_id = secrets.token_urlsafe(16)
        token = delegation.new_token(
            token_id, owner, requester, renewers, wanted_lifetime_ms, self._settings.lifetimes, now
        )
        try:
            await self._write_new(token)
        except StoreError as error:
            raise KafkaError(ErrorCode.KAFKA_STORAGE_ERROR, str(error)) from error
        self._publish({token.token_id: token})
        logger.info("Delegation token %s of %s was made for %s", token.token_id, token.owner, token.requester)
        return token

    async def renew(self, token_id: str, principal: Principal, period_ms: int) -> int:
        """When the token ends now, in ms since the epoch. Raises KafkaError."""
        now, lifetimes = self._clock.now_ms(), self._settings.lifetimes

        def renewed(stored: DelegationToken) -> DelegationToken:
            return delegation.renewed(stored, principal, period_ms, lifetimes, now)

        token = await self._change(token_id, renewed)
        assert token is not None
        return token.expiry_ms

    async def expire(self, token_id: str, principal: Principal, period_ms: int) -> int:
        """When the token ends now, in ms since the epoch. Raises KafkaError."""
        now = self._clock.now_ms()

        def expired(stored: DelegationToken) -> DelegationToken | None:
            return delegation.expired(stored, principal, period_ms, now)

        token = await self._change(token_id, expired)
        if token is None:
            logger.info("Delegation token %s was ended by %s", token_id, principal)
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
                    self._publish({token_id: None})
                    raise KafkaError(ErrorCode.DELEGATION_TOKEN_NOT_FOUND)
                token = transform(stored)
                if token == stored or await self._try_change(token_id, node, token):
                    break
        except StoreError as error:
            raise KafkaError(ErrorCode.KAFKA_STORAGE_ERROR, str(error)) from error
        self._publish({token_id: token})
        return token

    async def _try_change(self, token_id: str, node: ZnodeWithStat, token: DelegationToken | None) -> bool:
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

    async def _stored(self, token_id: str) -> ZnodeWithStat | None:
        (node,) = await self._store.get_many([_path(token_id)])
        return node

    def _publish(self, tokens: Mapping[str, DelegationToken | None]) -> None:
        """Publish what differs from what is known of these tokens."""
        known = self._metadata.image.tokens
        changed = {token_id: token for token_id, token in tokens.items() if token != known.get(token_id)}
        if changed:
            self._metadata.publish(ClusterDelta(tokens=changed))

    # --- keeping up ---------------------------------------------------------------------------------------------------

    async def start(self) -> None:
        """Read everything, at first and again whenever watches may have been lost. Raises StoreError."""
        await ensure_paths(self._store, TOKEN_PATHS)
        # Before the read: what is changed while it is under way leaves a notification that does not count as seen.
        await self._changes.skip()
        await self._load({*await self._store.children(TOKENS), *self._metadata.image.tokens})

    def resync(self) -> None:
        """Watches may have been lost."""
        self._watches.resync()

    async def run(self) -> None:
        """Follow what other brokers do, and remove expired tokens, for as long as there is a store."""
        async with trio.open_nursery() as nursery:
            nursery.start_soon(self._remove_those_over)
            try:
                await self._watches.run(self._follow, self.start)
            except StoreFailedError as error:
                logger.error("Changes of delegation tokens are not followed any more: %s", error)
                nursery.cancel_scope.cancel()

    async def _follow(self) -> None:
        unseen = await self._changes.unseen()
        await self._load({node.data.decode(errors="replace") for _, node in unseen})
        await self._changes.remove_old()

    async def _load(self, token_ids: Iterable[str]) -> None:
        ids = [token_id for token_id in token_ids if token_id and "/" not in token_id]
        tokens: dict[str, DelegationToken | None] = {}
        for token_id, node in zip(ids, await self._store.get_many([_path(i) for i in ids]), strict=True):
            token = decoded(_path(token_id), node, delegation.decode_token) if node is not None else None
            tokens[token_id] = token if token is not None and token.token_id == token_id else None
        self._publish(tokens)

    async def _remove_those_over(self) -> None:
        while True:
            await trio.sleep(self._settings.expiry_check_interval_ms / 1000)
            now = self._clock.now_ms()
            for known in [token for token in self._metadata.image.tokens.values() if token.is_over(now)]:
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
