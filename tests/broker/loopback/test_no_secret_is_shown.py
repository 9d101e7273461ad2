"""Passwords, tokens and keys are planted everywhere, and looked for in all that a broker writes, answers and shows of itself."""

from __future__ import annotations

import base64
import logging
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import trio.testing

from ottla.base.config import Config
from ottla.base.errors import ErrorCode
from ottla.base.settings import SettingError
from ottla.broker.auth.sasl_mechanisms import enabled_mechanisms
from ottla.broker.config_file import load_config
from ottla.broker.listener_config import ListenerConfig
from ottla.log.memory_disk import MemoryDisk
from ottla.security.entities import USERS, Entity
from ottla.security.jaas import parse_jaas
from ottla.security.oauthbearer import OAuthBearerClient
from ottla.security.plain import PlainClient
from ottla.security.scram import ScramMechanism, new_credential
from ottla.security.scram_exchange import ScramClient
from ottla.tests.security.helpers.oauth_tokens import claims, jwks, signed
from ottla.wire.codec import encode_bytes
from ottla.wire.messages.alter_user_scram_credentials import (
    AlterUserScramCredentialsRequest,
    ScramCredentialUpsertion,
)
from ottla.wire.messages.create_delegation_token import CreateDelegationTokenRequest
from ottla.wire.messages.describe_configs import DescribeConfigsRequest, DescribeConfigsResource
from ottla.wire.messages.incremental_alter_configs import (
    AlterableConfig,
    AlterConfigsResource,
    IncrementalAlterConfigsRequest,
)
from ottla.wire.messages.renew_delegation_token import RenewDelegationTokenRequest
from ottla.wire.messages.sasl_authenticate import SaslAuthenticateRequest

from ...helpers.memory_cluster import MemoryCluster
from ..helpers.sasl_clients import LISTENER, Client, connected, running

ALICE, BROKER, WRONG, KEY_STORE, TOKEN_KEY, SCRAM, MASTER, SET = (
    f"planted-{name}" for name in ("alice", "broker", "wrong", "key-store", "token-key", "scram", "master", "set")
)
PLAIN_JAAS = (
    "org.apache.kafka.common.security.plain.PlainLoginModule required "
    f'username="broker" password="{BROKER}" user_broker="{BROKER}" user_alice="{ALICE}";'
)
SALTED = b"planted-salted-password-" + bytes(8)


def properties(folder: Path) -> dict[str, str]:
    keys = folder / "keys.json"
    keys.write_bytes(jwks())
    return {
        **LISTENER,
        "sasl.enabled.mechanisms": "PLAIN,SCRAM-SHA-256,OAUTHBEARER",
        "listener.name.sasl.plain.sasl.jaas.config": PLAIN_JAAS,
        "sasl.oauthbearer.jwks.endpoint.url": keys.as_uri(),
        "delegation.token.secret.key": TOKEN_KEY,
        "delegation.token.master.key": MASTER,
        "listener.name.sasl.ssl.keystore.password": KEY_STORE,
        "ssl.truststore.password": KEY_STORE,
    }


class Seen:
    """All that may have shown something, by where."""

    def __init__(self) -> None:
        self.texts: list[tuple[str, str]] = []

    def note(self, where: str, text: str | bytes) -> None:
        self.texts.append((where, text.decode("latin-1") if isinstance(text, bytes) else text))

    def leaks(self, *secrets: str | bytes) -> list[str]:
        """Where a secret stands, in the clear, in hex or in base 64."""
        forms = []
        for secret in secrets:
            plain = secret.encode() if isinstance(secret, str) else secret
            forms += [plain.decode("latin-1"), plain.hex(), base64.b64encode(plain).decode().rstrip("=")]
        return [where for where, text in self.texts if any(form in text for form in forms)]


def files(disk: MemoryDisk, folder: str = "/data") -> Iterator[tuple[str, bytes]]:
    for name in disk.names(folder):
        path = f"{folder}/{name}"
        if disk.is_dir(path):
            yield from files(disk, path)
        else:
            yield path, disk.read_file(path)


async def ask(client: Client, seen: Seen, request: Any, version: int) -> Any:
    response = await client.ask(request, version)
    if response is not None:
        seen.note(f"answer to {type(request).__name__}", encode_bytes(response, version))
        seen.note(f"repr of the answer to {type(request).__name__}", repr(response))
    seen.note(f"repr of {type(request).__name__}", repr(request))
    return response


async def log_in_and_fail(cluster: MemoryCluster, token: str) -> Client:
    """By every mechanism, with what is right and with what is not; a client that is let in."""
    for mechanism, right, wrong in (
        ("PLAIN", PlainClient("alice", ALICE), PlainClient("alice", WRONG)),
        (
            "SCRAM-SHA-256",
            ScramClient(ScramMechanism.SHA_256, "bob", SCRAM),
            ScramClient(ScramMechanism.SHA_256, "bob", WRONG),
        ),
        ("OAUTHBEARER", OAuthBearerClient(token), OAuthBearerClient(token[:-8] + "AAAAAAAA")),
    ):
        client = await connected(cluster)
        assert (await client.authenticate(mechanism, right)).error_code == 0
        refused = await connected(cluster)
        if mechanism == "OAUTHBEARER":
            await refused.shake_hands(mechanism)
            first = wrong.respond(b"")
            assert (await refused.ask(SaslAuthenticateRequest(auth_bytes=first), 2)).auth_bytes
        else:
            assert (await refused.authenticate(mechanism, wrong)).error_code == ErrorCode.SASL_AUTHENTICATION_FAILED
    alice = await connected(cluster)
    assert (await alice.authenticate("PLAIN", PlainClient("alice", ALICE))).error_code == 0
    return alice


def of_broker(name: str, value: str) -> IncrementalAlterConfigsRequest:
    config = AlterableConfig(name=name, config_operation=0, value=value)
    resource = AlterConfigsResource(resource_type=4, resource_name="1", configs=[config])
    return IncrementalAlterConfigsRequest(resources=[resource])


async def test_no_secret_is_written_or_answered(
    tmp_path: Path, autojump_clock: trio.testing.MockClock, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.DEBUG)
    seen = Seen()
    token = signed(claims(sub="carol"))
    credential = new_credential(ScramMechanism.SHA_256, SCRAM)
    async with running(**properties(tmp_path)) as cluster:
        configs = cluster.services(1).cluster.configs
        await configs.change(Entity(USERS, "bob"), lambda _: {"SCRAM-SHA-256": credential.render()})
        alice = await log_in_and_fail(cluster, token)
        upsertion = ScramCredentialUpsertion(
            name="dave", mechanism=1, iterations=4096, salt=b"salt", salted_password=SALTED
        )
        await ask(alice, seen, AlterUserScramCredentialsRequest(upsertions=[upsertion]), 0)
        made = await alice.ask(CreateDelegationTokenRequest(renewers=[], max_lifetime_ms=-1), 3)
        seen.note("repr of a token's answer", repr(made))
        await ask(alice, seen, RenewDelegationTokenRequest(hmac=made.hmac, renew_period_ms=-1), 2)
        for name in ("listener.name.sasl.plain.sasl.jaas.config", "ssl.keystore.password", "unknown.password"):
            await ask(alice, seen, of_broker(name, SET), 1)
        resource = DescribeConfigsResource(resource_type=4, resource_name="1", configuration_keys=None)
        described = DescribeConfigsRequest(resources=[resource], include_synonyms=True, include_documentation=True)
        await ask(alice, seen, described, 4)
        await alice.connection.send([b"\0\0\0\x0b\0\x03\0\x63garbage"])
        assert await alice.is_closed()
        for path, content in files(cluster.disk(1)):
            seen.note(path, content)
    seen.note("log", caplog.text)
    secrets = (ALICE, BROKER, WRONG, KEY_STORE, TOKEN_KEY, MASTER, SCRAM, SALTED, token, token[:-8], made.hmac)
    assert not seen.leaks(*secrets, SET)
    assert "alice" in caplog.text and len(seen.texts) > 20


@pytest.mark.parametrize(
    "given",
    [
        {"listener.name.sasl.plain.sasl.jaas.config": PLAIN_JAAS.replace(" required", "")},
        {"listener.name.sasl.plain.sasl.jaas.config": PLAIN_JAAS.removesuffix(";")},
        {"listener.name.sasl.plain.sasl.jaas.config": f"{PLAIN_JAAS} {PLAIN_JAAS}"},
        {"listener.name.sasl.plain.sasl.jaas.config": PLAIN_JAAS.replace("PlainLoginModule", "OtherModule")},
        {"listener.name.sasl.scram-sha-256.sasl.jaas.config": PLAIN_JAAS},
    ],
)
def test_no_secret_is_in_what_is_said_of_wrong_settings(given: dict[str, str], tmp_path: Path) -> None:
    config = Config({**properties(tmp_path), **given})
    with pytest.raises(SettingError) as refusal:
        enabled_mechanisms(ListenerConfig(config, "SASL", "SASL_PLAINTEXT"))
    seen = Seen()
    seen.note("the error", f"{refusal.value} {refusal.value!r}")
    assert not seen.leaks(ALICE, BROKER)


def test_no_secret_is_in_a_repr(tmp_path: Path) -> None:
    config = load_config(properties(tmp_path))
    listener = ListenerConfig(config, "SASL", "SASL_PLAINTEXT")
    mechanisms = enabled_mechanisms(listener)
    token = signed()
    shown = [
        config,
        listener,
        *config.parsed(),
        *mechanisms.values(),
        parse_jaas(PLAIN_JAAS),
        new_credential(ScramMechanism.SHA_256, SCRAM),
        PlainClient("alice", ALICE),
        ScramClient(ScramMechanism.SHA_256, "bob", SCRAM),
        OAuthBearerClient(token),
        SaslAuthenticateRequest(auth_bytes=f"\0alice\0{ALICE}".encode()),
    ]
    seen = Seen()
    for each in shown:
        seen.note(type(each).__name__, f"{each!r} {each}")
    assert not seen.leaks(ALICE, BROKER, SCRAM, KEY_STORE, TOKEN_KEY, MASTER, token)
