"""Requests to an identity provider: where they may be led, and whose certificate is trusted."""

from __future__ import annotations

from pathlib import Path

import pytest

from ottla.broker.auth.jwks_source import read_jwks
from ottla.broker.auth.provider_http import provider_context
from ottla.security.jwks import MAX_JWKS_BYTES, JwksError
from ottla.security.tls_context import server_context

from ...security.helpers.certificates import authority, broker, parsed, settings_of
from ..helpers.identity_provider import Provider, serving


def test_keys_may_be_somewhere_else_over_http(provider: Provider) -> None:
    provider.elsewhere = provider.url.replace("/keys", "/moved")
    assert [key.key_id for key in read_jwks(provider.url)] == ["first"]


@pytest.mark.parametrize("elsewhere", ["file:///etc/hostname", "ftp://127.0.0.1/keys"])
def test_a_provider_does_not_lead_to_other_kinds_of_places(provider: Provider, elsewhere: str) -> None:
    provider.elsewhere = elsewhere
    with pytest.raises(JwksError):
        read_jwks(provider.url)


def test_a_provider_does_not_fill_the_memory(provider: Provider) -> None:
    provider.content = b" " * (MAX_JWKS_BYTES + 1)
    with pytest.raises(JwksError, match="more than"):
        read_jwks(provider.url)


def test_an_https_provider_is_trusted_by_the_options_of_the_jaas_text(tmp_path: Path) -> None:
    server = Provider()
    context = server_context(*parsed(settings_of(broker())))
    server.socket = context.wrap_socket(server.socket, server_side=True)
    trusted = tmp_path / "ca.pem"
    trusted.write_text(authority().certificate)
    url = f"https://localhost:{server.server_port}/keys"
    options = {"ssl.truststore.type": "PEM", "ssl.truststore.location": str(trusted), "clientId": "x"}
    with serving(server):
        (key,) = read_jwks(url, provider_context(options))
        assert key.key_id == "first"
        with pytest.raises(JwksError, match="certificate verify failed"):
            read_jwks(url, provider_context({}))
