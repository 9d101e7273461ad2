"""OAUTHBEARER on a listener: which settings it takes, who gets in with which token, and for how long."""

from __future__ import annotations

import logging
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

import pytest
import trio
import trio.testing

from ottla.base.config import Config
from ottla.base.errors import ErrorCode
from ottla.base.seams import InlineWorkers
from ottla.base.settings import SettingError
from ottla.broker.auth.oauthbearer import OAuthBearerMechanism
from ottla.broker.config_file import warn_of_unused
from ottla.broker.listener_config import ListenerConfig
from ottla.security.oauthbearer import OAuthBearerClient
from ottla.security.sasl import AuthenticationError
from ottla.tests.security.helpers.oauth_tokens import NOW, claims, ec_jwk, ec_key, jwks, signed, unsigned
from ottla.wire.messages.sasl_authenticate import SaslAuthenticateRequest, SaslAuthenticateResponse

from ...helpers.memory_cluster import MemoryCluster
from ...helpers.memory_cluster import running as running_cluster
from ..helpers.sasl_clients import Client, connected

OAUTH = "OAUTHBEARER"
LISTENER = {
    "listeners": "SASL://broker1:9092",
    "listener.security.protocol.map": "SASL:SASL_PLAINTEXT",
    "inter.broker.listener.name": "SASL",
    "sasl.enabled.mechanisms": OAUTH,
}
MODULE = "org.apache.kafka.common.security.oauthbearer.OAuthBearerLoginModule required"
UNSECURED = {"listener.name.sasl.oauthbearer.sasl.jaas.config": f'{MODULE} unsecuredLoginStringClaim_sub="broker";'}
HANDLERS = "org.apache.kafka.common.security.oauthbearer."
URL = "sasl.oauthbearer.jwks.endpoint.url"
ENDPOINT = "sasl.oauthbearer.token.endpoint.url"
HANDLER = "listener.name.sasl.oauthbearer.sasl.server.callback.handler.class"
LOGIN_HANDLER = "listener.name.sasl.oauthbearer.sasl.login.callback.handler.class"


@pytest.fixture
def key_file(tmp_path: Path) -> Path:
    file = tmp_path / "keys.json"
    file.write_bytes(jwks())
    return file


@asynccontextmanager
async def running(**properties: str) -> AsyncIterator[MemoryCluster]:
    async with running_cluster(1, **{**LISTENER, **properties}) as cluster:
        yield cluster


async def authenticated(cluster: MemoryCluster, token: str) -> tuple[Client, SaslAuthenticateResponse]:
    client = await connected(cluster)
    await client.shake_hands(OAUTH)
    first = OAuthBearerClient(token).respond(b"")
    return client, await client.ask(SaslAuthenticateRequest(auth_bytes=first), 2)


async def test_a_client_with_a_signed_token_is_let_in_until_it_ends(
    key_file: Path, autojump_clock: trio.testing.MockClock
) -> None:
    async with running(**{URL: key_file.as_uri()}) as cluster:
        client, response = await authenticated(cluster, signed(claims(exp=NOW + 20)))
        assert response.error_code == ErrorCode.NONE
        assert 0 < response.session_lifetime_ms <= 20_000
        assert await client.is_let_in()
        await trio.sleep(21)
        assert not await client.is_let_in()


async def test_the_answer_to_a_refused_token_is_a_challenge_and_then_the_failure(
    key_file: Path, autojump_clock: trio.testing.MockClock
) -> None:
    async with running(**{URL: key_file.as_uri()}) as cluster:
        for token in (signed(claims(exp=NOW - 60, iat=NOW - 90)), signed(key=ec_key("second")), unsigned()):
            client, response = await authenticated(cluster, token)
            assert (response.error_code, bytes(response.auth_bytes)) == (0, b'{"status":"invalid_token"}')
            response = await client.ask(SaslAuthenticateRequest(auth_bytes=b"\x01"), 2)
            assert response.error_code == ErrorCode.SASL_AUTHENTICATION_FAILED
            assert response.error_message == '{"status":"invalid_token"}'
            assert await client.is_closed()


async def test_the_log_says_why_a_token_is_refused_and_the_client_is_not_told(
    key_file: Path, autojump_clock: trio.testing.MockClock, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.INFO, logger="ottla.broker")
    async with running(**{URL: key_file.as_uri()}) as cluster:
        client, _ = await authenticated(cluster, signed(claims(exp=NOW - 60, iat=NOW - 90)))
        response = await client.ask(SaslAuthenticateRequest(auth_bytes=b"\x01"), 2)
        assert "expired" not in response.error_message
        assert await client.is_closed()
    assert "failed authentication by OAUTHBEARER" in caplog.text
    assert "it has expired" in caplog.text


async def test_a_key_that_the_provider_has_now_is_found(key_file: Path, autojump_clock: trio.testing.MockClock) -> None:
    async with running(**{URL: key_file.as_uri()}) as cluster:
        key_file.write_bytes(jwks(ec_jwk("second")))
        token = signed(key=ec_key("second"), kid="second")
        _, response = await authenticated(cluster, token)
        assert bytes(response.auth_bytes) == b'{"status":"invalid_token"}'
        await trio.testing.wait_all_tasks_blocked()
        _, response = await authenticated(cluster, token)
        assert (response.error_code, bytes(response.auth_bytes)) == (0, b"")


async def test_a_token_that_nobody_has_signed_is_enough_where_that_is_asked_for(
    autojump_clock: trio.testing.MockClock, caplog: pytest.LogCaptureFixture
) -> None:
    async with running(**UNSECURED) as cluster:
        _, response = await authenticated(cluster, unsigned())
        assert (response.error_code, bytes(response.auth_bytes)) == (0, b"")
    assert caplog.text.count("any client can claim to be any user") == 1


async def test_brokers_show_each_other_tokens(autojump_clock: trio.testing.MockClock) -> None:
    options = (
        'unsecuredLoginStringClaim_sub="broker" unsecuredValidatorAllowableClockSkewMs="1000000000000"'  # two clocks
    )
    two = {**LISTENER, "listener.name.sasl.oauthbearer.sasl.jaas.config": f"{MODULE} {options};"}
    del two["listeners"]
    async with running_cluster(**two) as cluster:
        for broker_id in (1, 2):
            await cluster.start(broker_id, listeners=f"SASL://broker{broker_id}:9092")
        for broker_id in (1, 2):
            metadata = cluster.services(broker_id).metadata
            with trio.fail_after(20):
                await metadata.wait_until(lambda metadata=metadata: set(metadata.broker_ids()) == {1, 2})


async def test_brokers_show_each_other_signed_tokens(
    key_file: Path, tmp_path: Path, autojump_clock: trio.testing.MockClock
) -> None:
    token_file = tmp_path / "token"
    token_file.write_text(signed(claims(sub="broker")) + "\n")
    two = {**LISTENER, URL: key_file.as_uri(), ENDPOINT: token_file.as_uri()}
    del two["listeners"]
    async with running_cluster(**two) as cluster:
        for broker_id in (1, 2):
            await cluster.start(broker_id, listeners=f"SASL://broker{broker_id}:9092")
        for broker_id in (1, 2):
            metadata = cluster.services(broker_id).metadata
            with trio.fail_after(20):
                await metadata.wait_until(lambda metadata=metadata: set(metadata.broker_ids()) == {1, 2})


def mechanism(**properties: str) -> OAuthBearerMechanism:
    return OAuthBearerMechanism(ListenerConfig(Config({**LISTENER, **properties}), "SASL", "SASL_PLAINTEXT"))


def test_unsigned_tokens_have_to_be_asked_for() -> None:
    with pytest.raises(SettingError, match="needs the key set"):
        mechanism()
    with pytest.raises(SettingError, match="needs the key set"):
        mechanism(**{"listener.name.sasl.oauthbearer.sasl.jaas.config": f"{MODULE};"})
    mechanism(**UNSECURED)
    mechanism(**{HANDLER: HANDLERS + "internals.unsecured.OAuthBearerUnsecuredValidatorCallbackHandler"})


@pytest.mark.parametrize("name", ["OAuthBearerValidatorCallbackHandler", "secured.OAuthBearerValidatorCallbackHandler"])
def test_the_names_of_kafkas_classes_stand_for_what_they_do(name: str, key_file: Path) -> None:
    mechanism(**{URL: key_file.as_uri(), HANDLER: HANDLERS + name})
    with pytest.raises(SettingError, match="only"):
        mechanism(**UNSECURED, **{HANDLER: HANDLERS + name})


@pytest.mark.parametrize("name", ["OAuthBearerLoginCallbackHandler", "secured.OAuthBearerLoginCallbackHandler"])
def test_the_names_of_kafkas_classes_for_a_brokers_own_token(
    name: str, key_file: Path, caplog: pytest.LogCaptureFixture
) -> None:
    own = {URL: key_file.as_uri(), ENDPOINT: key_file.as_uri()}
    properties = own | {LOGIN_HANDLER: HANDLERS + name, HANDLER: HANDLERS + "OAuthBearerValidatorCallbackHandler"}
    mechanism(**properties)
    warn_of_unused(properties)
    assert caplog.text == ""
    unsecured = HANDLERS + "internals.unsecured.OAuthBearerUnsecuredLoginCallbackHandler"
    mechanism(**UNSECURED, **{LOGIN_HANDLER: unsecured})
    for wrong in ({LOGIN_HANDLER: HANDLERS + name, **UNSECURED}, {**own, LOGIN_HANDLER: unsecured}):
        with pytest.raises(SettingError, match="only"):
            mechanism(**wrong)


@pytest.mark.parametrize("name", [HANDLER, LOGIN_HANDLER])
def test_other_classes_are_refused(name: str, key_file: Path) -> None:
    with pytest.raises(SettingError, match="only"):
        mechanism(**{URL: key_file.as_uri(), name: "com.example.Handler"})
    with pytest.raises(SettingError, match="Java classes"):
        mechanism(**{URL: key_file.as_uri(), "sasl.login.class": "com.example.Login"})


def test_what_a_provider_of_the_brokers_token_needs(key_file: Path) -> None:
    jaas = "listener.name.sasl.oauthbearer.sasl.jaas.config"
    login = f'{MODULE} clientId="broker" clientSecret="hunter2" scope="kafka"'
    mechanism(**{URL: key_file.as_uri(), ENDPOINT: "http://id.example.org/token", jaas: f"{login};"})
    for url, text, why in (
        ("http://id.example.org/token", f'{MODULE} clientId="broker";', "clientId and clientSecret"),
        ("ldap://id.example.org", f"{login};", "neither a file, http nor https URL"),
        ("https://id.example.org", f'{login} ssl.truststore.location="/nowhere" ssl.truststore.type="PEM";', "read"),
    ):
        with pytest.raises(SettingError, match=why) as refused:
            mechanism(**{URL: key_file.as_uri(), ENDPOINT: url, jaas: text})
        assert "hunter2" not in str(refused.value)


@pytest.mark.parametrize("url", ["file:///nowhere/keys.json", "ldap://x"])
def test_a_key_set_that_cannot_be_had_is_said_at_the_start(url: str) -> None:
    with pytest.raises(SettingError, match=r"jwks\.endpoint\.url"):
        mechanism(**{URL: url})


def test_settings_may_be_of_one_listener(key_file: Path) -> None:
    mechanism(**{f"listener.name.sasl.oauthbearer.{URL}": key_file.as_uri()})
    with pytest.raises(SettingError, match="needs the key set"):
        mechanism(**{f"listener.name.other.oauthbearer.{URL}": key_file.as_uri()})


async def test_a_broker_without_a_token_of_its_own_cannot_reach_others(key_file: Path) -> None:
    with pytest.raises(AuthenticationError, match="no token for other brokers"):
        await mechanism(**{URL: key_file.as_uri()}).client(InlineWorkers())
    handler = {HANDLER: HANDLERS + "internals.unsecured.OAuthBearerUnsecuredValidatorCallbackHandler"}
    with pytest.raises(AuthenticationError, match="unsecuredLoginStringClaim_sub"):
        await mechanism(**handler).client(InlineWorkers())
