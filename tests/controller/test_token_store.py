"""Delegation tokens in the store: every broker knows them, they end in time, and their passwords are SCRAM's."""

from __future__ import annotations

import json
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

import pytest
import trio
import trio.testing

from ottla.base.errors import ErrorCode, KafkaError
from ottla.base.seams import SimulatedClock
from ottla.controller.token_passwords import TokenPasswords
from ottla.controller.token_settings import DelegationTokenSettings
from ottla.controller.zookeeper.nodes.notifications import NOTIFICATION_LIFETIME_MS
from ottla.controller.zookeeper.nodes.token_znodes import CHANGES, TOKENS
from ottla.controller.zookeeper.store.cluster_store import Delete
from ottla.controller.zookeeper.token_store import TokenStore
from ottla.replication.metadata_cache import MetadataCache
from ottla.security.delegation import token_password
from ottla.security.principal import Principal
from ottla.security.scram import ScramMechanism
from ottla.security.scram_exchange import ScramClient, ScramServer
from ottla.tests.zookeeper_double.embedded_store import EmbeddedSession, EmbeddedStore

ALICE, BOB = Principal("User", "alice"), Principal("User", "bob")
HOUR = 3600.0


class Broker(TokenStore):
    """What one broker knows of tokens, and does with them; they are named by their passwords."""

    def __init__(self, session: EmbeddedSession, clock: SimulatedClock) -> None:
        metadata = MetadataCache()
        super().__init__(session, clock, DelegationTokenSettings(), metadata)
        self._passwords = TokenPasswords("secret", metadata, clock)
        self.hmac = self._passwords.hmac
        self.scram_user = self._passwords.scram_user
        self.tokens = lambda: list(metadata.image.tokens.values())

    async def renew_by(self, principal: Principal, hmac: bytes, period_ms: int) -> int:
        return await self.renew(self._passwords.token_of(hmac).token_id, principal, period_ms)

    async def expire_by(self, principal: Principal, hmac: bytes, period_ms: int) -> int:
        return await self.expire(self._passwords.token_of(hmac).token_id, principal, period_ms)


@asynccontextmanager
async def two_brokers() -> AsyncIterator[tuple[EmbeddedSession, Broker, Broker]]:
    clock = SimulatedClock()
    store = EmbeddedStore(clock)
    await store.open()
    sessions = store.session(), store.session()
    brokers = [Broker(session, clock) for session in sessions]
    async with trio.open_nursery() as nursery:
        for broker in brokers:
            await broker.start()
            nursery.start_soon(broker.run)
        yield sessions[0], brokers[0], brokers[1]
        nursery.cancel_scope.cancel()


async def test_a_token_made_here_is_known_here_at_once_and_there_soon() -> None:
    async with two_brokers() as (store, here, there):
        token = await here.create(ALICE, ALICE, [BOB], -1)
        assert here.tokens() == [token]
        await trio.testing.wait_all_tasks_blocked()
        assert there.tokens() == [token]
        assert there.hmac(token) == here.hmac(token)
        node = await store.get(f"{TOKENS}/{token.token_id}")
        assert json.loads(node.data)["owner"] == "User%3Aalice"
        assert here.hmac(token).hex() not in node.data.decode()
        (change,) = await store.children(CHANGES)
        assert (change, (await store.get(f"{CHANGES}/{change}")).data.decode()) == (
            "token_change_0000000000",
            token.token_id,
        )


async def test_any_broker_renews_and_ends_a_token() -> None:
    async with two_brokers() as (_, here, there):
        token = await here.create(ALICE, ALICE, [BOB], -1)
        await trio.testing.wait_all_tasks_blocked()
        expiry_ms = await there.renew_by(BOB, here.hmac(token), 1000)
        assert expiry_ms < token.expiry_ms
        await trio.testing.wait_all_tasks_blocked()
        assert [known.expiry_ms for known in here.tokens()] == [expiry_ms]
        assert await here.expire_by(ALICE, here.hmac(token), 500) <= expiry_ms
        await there.expire_by(ALICE, here.hmac(token), -1)
        await trio.testing.wait_all_tasks_blocked()
        assert here.tokens() == there.tokens() == []


async def test_a_token_is_found_by_its_whole_password_only() -> None:
    async with two_brokers() as (_, here, _there):
        token = await here.create(ALICE, ALICE, [], -1)
        for given in (b"", here.hmac(token)[:-1], here.hmac(token) + b"\0", token.token_id.encode()):
            with pytest.raises(KafkaError) as refusal:
                await here.renew_by(ALICE, given, -1)
            assert refusal.value.code == ErrorCode.DELEGATION_TOKEN_NOT_FOUND


def logged_in(tokens: Broker, token_id: str, password: str, mechanism: ScramMechanism) -> ScramServer:
    """The broker's side after a whole SCRAM conversation. Raises AuthenticationError."""
    server = ScramServer(mechanism, lambda _: None, lambda name: tokens.scram_user(mechanism, name))
    client = ScramClient(mechanism, token_id, password, is_token=True)
    message = client.respond(b"")
    while message is not None:
        message = client.respond(server.respond(message))
    return server


@pytest.mark.parametrize("mechanism", list(ScramMechanism))
async def test_a_token_and_its_password_authenticate_as_the_owner(mechanism: ScramMechanism) -> None:
    async with two_brokers() as (_, here, there):
        token = await here.create(ALICE, BOB, [], -1)
        await trio.testing.wait_all_tasks_blocked()
        outcome = logged_in(there, token.token_id, token_password("secret", token.token_id), mechanism).outcome
        assert outcome is not None
        assert (outcome.principal, outcome.principal.token_authenticated) == (ALICE, True)
        assert outcome.expires_ms == token.expiry_ms


async def test_a_token_that_is_over_authenticates_nobody_and_is_removed_within_the_hour(
    autojump_clock: trio.testing.MockClock,
) -> None:
    async with two_brokers() as (store, here, _):
        token = await here.create(ALICE, ALICE, [], 1000)
        assert here.scram_user(ScramMechanism.SHA_256, token.token_id) is not None
        await trio.sleep(1.5)
        assert here.scram_user(ScramMechanism.SHA_256, token.token_id) is None
        assert here.scram_user(ScramMechanism.SHA_256, "unknown") is None
        await trio.sleep(HOUR)
        await trio.testing.wait_all_tasks_blocked()
        assert here.tokens() == []
        assert await store.children(TOKENS) == []


async def test_changes_that_were_missed_are_found_when_everything_is_read_again() -> None:
    async with two_brokers() as (store, here, there):
        token = await here.create(ALICE, ALICE, [], -1)
        await trio.testing.wait_all_tasks_blocked()
        await store.multi([Delete(f"{TOKENS}/{token.token_id}")])
        assert there.tokens() == [token]
        there.resync()
        await trio.testing.wait_all_tasks_blocked()
        assert there.tokens() == []


async def test_notifications_are_removed_after_a_quarter_of_an_hour(autojump_clock: trio.testing.MockClock) -> None:
    async with two_brokers() as (store, here, _):
        await here.create(ALICE, ALICE, [], -1)
        await trio.sleep(NOTIFICATION_LIFETIME_MS / 1000 + 1)
        await here.create(ALICE, ALICE, [], -1)
        await trio.testing.wait_all_tasks_blocked()
        assert await store.children(CHANGES) == ["token_change_0000000001"]


@asynccontextmanager
async def one_that_has_not_heard() -> AsyncIterator[tuple[EmbeddedSession, Broker, Broker]]:
    """Two brokers that know the same, and do not follow each other from then on."""
    clock = SimulatedClock()
    store = EmbeddedStore(clock)
    await store.open()
    session = store.session()
    here, late = (Broker(store.session(), clock) for _ in range(2))
    await here.start()
    await here.create(ALICE, ALICE, [BOB], -1)
    await late.start()
    yield session, here, late


async def test_a_token_that_was_ended_is_not_brought_back_by_a_broker_that_has_not_heard_of_it() -> None:
    async with one_that_has_not_heard() as (store, here, late):
        (token,) = late.tokens()
        await here.expire_by(ALICE, here.hmac(token), -1)
        for change in (late.renew_by(BOB, late.hmac(token), -1), late.expire_by(ALICE, late.hmac(token), 5000)):
            with pytest.raises(KafkaError) as refusal:
                await change
            assert refusal.value.code == ErrorCode.DELEGATION_TOKEN_NOT_FOUND
        assert await store.children(TOKENS) == []
        assert late.tokens() == []


async def test_a_token_is_changed_as_it_is_stored(autojump_clock: trio.testing.MockClock) -> None:
    async with one_that_has_not_heard() as (_, here, late):
        (token,) = late.tokens()
        await here.expire_by(ALICE, here.hmac(token), 1000)
        await trio.sleep(1.5)
        with pytest.raises(KafkaError) as refusal:
            await late.renew_by(BOB, late.hmac(token), -1)
        assert refusal.value.code == ErrorCode.DELEGATION_TOKEN_EXPIRED
