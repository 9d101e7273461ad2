"""kafka-delegation-tokens as it is, and Java's clients with delegation tokens and with OAUTHBEARER."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

import ottla

from .warm_tools import WarmTools

pytestmark = pytest.mark.slow

_MODULES = "org.apache.kafka.common.security"
PLAIN = f"{_MODULES}.plain.PlainLoginModule required"
SCRAM = f"{_MODULES}.scram.ScramLoginModule required"
OAUTH = f"{_MODULES}.oauthbearer.OAuthBearerLoginModule required"
PREFIX = "listener.name.sasl."
PROPERTIES = {
    "listeners": "SASL://127.0.0.1:0",
    "listener.security.protocol.map": "SASL:SASL_PLAINTEXT",
    "sasl.enabled.mechanisms": "PLAIN,SCRAM-SHA-256,SCRAM-SHA-512,OAUTHBEARER",
    f"{PREFIX}plain.sasl.jaas.config": f'{PLAIN} user_alice="alices" user_bob="bobs";',
    f"{PREFIX}oauthbearer.sasl.jaas.config": f'{OAUTH} unsecuredValidatorRequiredScope="kafka";',
    "delegation.token.secret.key": "the brokers' secret",
}


class Clients:
    """Files of client properties."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder

    def file(self, name: str, mechanism: str, jaas: str) -> str:
        path = self._folder / f"{name}.properties"
        lines = ("security.protocol=SASL_PLAINTEXT", f"sasl.mechanism={mechanism}", f"sasl.jaas.config={jaas}")
        path.write_text("\n".join(lines) + "\n")
        return str(path)


def test_tokens_by_kafkas_tool(tmp_path: Path) -> None:
    """One test, because a JVM is dear."""
    with ottla.Broker(properties=PROPERTIES) as broker:
        tools, clients = WarmTools(broker.bootstrap_servers, tmp_path), Clients(tmp_path)
        try:
            a_delegation_token_is_made_used_and_ended(tools, clients)
            tokens_that_nobody_has_signed(tools, clients)
        finally:
            tools.close()


def a_delegation_token_is_made_used_and_ended(tools: WarmTools, clients: Clients) -> None:
    alice = clients.file("alice", "PLAIN", f'{PLAIN} username="alice" password="alices";')
    bob = clients.file("bob", "PLAIN", f'{PLAIN} username="bob" password="bobs";')

    def asked(by: str, *arguments: str, code: int = 0) -> str:
        return tools("delegation-tokens", "--command-config", by, *arguments, code=code)

    made = asked(alice, "--create", "--max-life-time-period", "-1", "--renewer-principal", "User:bob")
    found = re.search(r"^(\S{22})\s+(\S{88})\s+User:alice\s+User:alice\s+\[User:bob\]\s", made, re.MULTILINE)
    assert found, made
    token_id, hmac = found.groups()
    for by, owner in ((alice, "User:alice"), (bob, "User:bob")):
        assert token_id in asked(by, "--describe", "--owner-principal", owner)
    assert token_id not in asked(alice, "--describe", "--owner-principal", "User:carol")

    jaas = f'{SCRAM} username="{token_id}" password="{hmac}" tokenauth="true";'
    for mechanism in ("SCRAM-SHA-256", "SCRAM-SHA-512"):
        worker = clients.file("worker", mechanism, jaas)
        topic = mechanism.lower()
        tools("topics", "--create", "--topic", topic, "--command-config", worker)
        assert topic in tools("topics", "--list", "--command-config", alice)
    refused = asked(worker, "--create", "--max-life-time-period", "-1", code=1)
    assert "Delegation Token requests are not allowed on PLAINTEXT/1-way SSL channels" in refused

    assert "Completed renew operation" in asked(bob, "--renew", "--renew-time-period", "-1", "--hmac", hmac)
    assert "Completed expire operation" in asked(alice, "--expire", "--expiry-time-period", "-1", "--hmac", hmac)
    assert "Delegation Token is not found" in asked(bob, "--renew", "--renew-time-period", "-1", "--hmac", hmac, code=1)
    failed = tools("topics", "--list", "--command-config", worker, code=1)
    assert (
        "Authentication failed during authentication due to invalid credentials with SASL mechanism SCRAM-SHA-512"
        in failed
    )


def tokens_that_nobody_has_signed(tools: WarmTools, clients: Clients) -> None:
    claims = 'unsecuredLoginStringClaim_sub="carol" unsecuredLoginListClaim_scope=",kafka,more"'
    carol = clients.file("carol", "OAUTHBEARER", f"{OAUTH} {claims};")
    assert "scram-sha-256" in tools("topics", "--list", "--command-config", carol)
    other = clients.file("other", "OAUTHBEARER", f'{OAUTH} unsecuredLoginStringClaim_sub="carol";')
    failed = tools("topics", "--list", "--command-config", other, code=1)
    assert '{"status":"insufficient_scope", "scope":"[kafka]"}' in failed
